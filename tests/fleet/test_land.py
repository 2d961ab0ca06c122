"""A green result becomes a branch in the user's clone: every state of it, and nothing else of the clone changes."""

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import by_count, by_parameters, git, tree
from fleet_out import RECORD, store
from fleet_tools import make_list, make_repository, task

from code_commit.commands.results import Result
from code_commit.errors import NotSetUpError
from code_commit.fleet import FleetOptions
from code_commit.fleet.land import find_moved, land_results, load_landings
from code_commit.fleet.page import write_pages
from code_commit.fleet.patches import digest_of
from code_commit.fleet.results import load_results, results_folder

LINES = "".join(f"{line}\n" for line in ("not yet", *range(9)))
MAIL = """From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: code-commit <code-commit@localhost>
Date: Mon, 23 Nov 2026 16:00:00 +0000
Subject: [PATCH] {subject}

chat:fake, 1 attempt: the build passed

    It says @ok **now**.
---

{diff}
base-commit: {base}
"""


def change(root: Path, text: str, name: str = "ok.txt") -> str:
    """Commit a text of a file, and return the commit."""
    (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", f"change {name}")
    return git(root, "rev-parse", "HEAD").strip()


class Fleet:
    """A folder of results, and the clones that they are for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"

    def make(self, name: str) -> Path:
        root = make_repository(self.folder / name)
        change(root, LINES)
        return root

    def add_green(self, root: Path, name: str = "", *, by_url: bool = False, new: str = "new\n", **more) -> Result:
        """Land a result that lets ok.txt say ok, and adds new.txt; then a build has changed lock.txt."""
        base = git(root, "rev-parse", "HEAD").strip()
        mails = []
        for subject, files in (
            ("Make ok.txt say ok.", {"ok.txt": LINES.replace("not yet", "ok"), "new.txt": new}),
            ("build.sh changed lock.txt", {"lock.txt": "built\n"}),
        ):
            for file, text in files.items():
                (root / file).write_text(text)
            git(root, "add", "-A")
            diff = git(root, "diff", "--cached", "--full-index", "--binary")
            git(root, "commit", "-qm", "scratch")
            mails.append(MAIL.format(subject=subject, diff=diff, base=base).encode())
        git(root, "reset", "-q", "--hard", base)
        place = {"repository": f"file://{root}"} if by_url else {"repository": f"../{root.name}", "path": str(root)}
        facts = {"commit": base, "base": "HEAD", "patch": digest_of(mails[0]), "query": "Make ok.txt say ok."}
        result = Result(name or root.name, "d", "success", 0, **place | facts | more)
        with results_folder(self.out):
            store(self.out, result, RECORD, mails[0], b"", mails[1])
        return result

    def land(self, **options) -> dict[str, SimpleNamespace]:
        results = load_results(self.out)
        done = load_landings(self.out, results)
        return {each.id: each for each in land_results(self.out, results, FleetOptions(**options), done)}

    def states(self) -> dict[str, str]:
        results = load_results(self.out)
        return {name: landing.state for name, landing in load_landings(self.out, results).items()}


@pytest.fixture
def fleet(tmp_path) -> Fleet:
    return Fleet(tmp_path)


def subjects(root: Path, branch: str) -> list[str]:
    return git(root, "log", "--format=%s", f"HEAD..{branch}").splitlines()


def test_a_green_result_becomes_a_branch_and_nothing_else_of_the_clone_changes(fleet):
    root = fleet.make("web")
    fleet.add_green(root)
    for hook in ("reference-transaction", "post-commit", "post-checkout", "pre-commit"):
        (root / ".git/hooks").mkdir(exist_ok=True)
        (root / f".git/hooks/{hook}").write_text(f"#!/bin/sh\ntouch {fleet.folder}/ran\n")
        (root / f".git/hooks/{hook}").chmod(0o755)
    (root / "ok.txt").write_text("mine\n")
    git(root, "add", "ok.txt")
    (root / "other.txt").write_text("mine too\n")
    before = tree(root), git(root, "status", "--short"), git(root, "rev-parse", "HEAD")

    landing = fleet.land()["web"]
    assert (landing.state, landing.branch, landing.clone) == ("landed", "fleet/web", str(root))
    assert (tree(root), git(root, "status", "--short"), git(root, "rev-parse", "HEAD")) == before
    assert not (fleet.folder / "ran").exists()
    assert subjects(root, "fleet/web") == ["build.sh changed lock.txt", "Make ok.txt say ok."]
    assert git(root, "show", "fleet/web:new.txt", "fleet/web:lock.txt") == "new\nbuilt\n"
    assert git(root, "show", "fleet/web:ok.txt").startswith("ok\n0\n")
    author = git(root, "log", "-1", "--format=%an <%ae> by %cn", "fleet/web").strip()
    assert author == "Tester <tester@example.org> by Tester"


def test_the_text_of_a_pull_request_says_what_was_built(fleet):
    result = fleet.add_green(fleet.make("web"), verified=True)
    fleet.land()
    text = (fleet.out / "web/pull-request.md").read_text()
    title, _, verdict, _, words, *rest = text.split("\n")
    assert title == "Make ok.txt say ok."
    assert verdict.startswith(
        f"chat:fake, 1 attempt: the build passed. `build.sh` passed on {result.commit[:12]} with this change."
    )
    assert verdict.endswith("So did a build with tests that the LLM did not see.")
    assert words == "    It says @ok **now**.", "as code, which calls nobody"
    assert " 3 files changed, 3 insertions(+), 1 deletion(-)" in rest
    fleet.add_green(fleet.make("docs"), is_build_supplied=True)
    fleet.land()
    assert "A `build.sh` of the fleet's list passed on" in (fleet.out / "docs/pull-request.md").read_text()


def test_branch_author_and_text_are_the_users_choice(fleet):
    root = fleet.make("web")
    fleet.add_green(root)
    template = fleet.out.parent / "template"
    template.write_text("[JIRA-1] $title $$ $nothing")
    fleet.land(branch="httpx", author="Ann Other <ann@example.org>", pull_request=template)
    assert git(root, "log", "-1", "--format=%an %ae, %cn", "httpx").strip() == "Ann Other ann@example.org, Tester"
    assert (fleet.out / "web/pull-request.md").read_text() == "[JIRA-1] Make ok.txt say ok. $ $nothing"
    with pytest.raises(NotSetUpError, match="--author ann: write it as"):
        fleet.land(author="ann")


def test_author_and_committer_are_those_of_git_commit(fleet, tmp_path, monkeypatch):
    root, who = fleet.make("web"), ("log", "-1", "--format=%an %ae, %cn %ce")
    fleet.add_green(root)
    for name, value in {"AUTHOR_NAME": "Ann", "AUTHOR_EMAIL": "ann@x.org", "COMMITTER_NAME": "Bob"}.items():
        monkeypatch.setenv(f"GIT_{name}", value)
    fleet.land(branch="by-variables")
    assert git(root, *who, "by-variables").strip() == "Ann ann@x.org, Bob tester@example.org"
    fleet.add_green(other := fleet.make("docs"))
    for name in ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME"):
        monkeypatch.delenv(f"GIT_{name}")
    for name, value in ({"HOME": str(tmp_path)} | by_count({"user.useConfigOnly": "true"})).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NotSetUpError, match=r"git does not know who commits in .*docs: set user.name"):
        fleet.land()
    assert git(other, "branch", "--list", "fleet/*") == ""
    fleet.land(author="Ann Other <ann@example.org>")
    assert git(other, *who, "fleet/docs").strip() == "Ann Other ann@example.org, Ann Other ann@example.org"


def test_the_same_command_does_the_rest_also_after_a_kill(fleet):
    roots = [fleet.make(name) for name in ("one", "two")]
    for root in roots:
        fleet.add_green(root)
    results = load_results(fleet.out)
    next(land_results(fleet.out, results, FleetOptions(), {}))
    (fleet.out / "landed.jsonl").write_text('{"id": "tw')  # the line of the first was lost
    assert [landing.branch for landing in fleet.land().values()] == ["fleet/one", "fleet/two"]
    assert [git(root, "branch", "--list", "fleet/*").split() for root in roots] == [["fleet/one"], ["fleet/two"]]
    git(roots[0], "branch", "-D", "fleet/one")
    assert {landing.state for landing in fleet.land().values()} == {"landed"}
    assert git(roots[0], "branch", "--list", "fleet/*") == "", "what landed is the user's now"


def test_a_branch_that_exists_stays_as_it_is(fleet):
    root = fleet.make("web")
    git(root, "branch", "fleet/web")
    theirs = git(root, "rev-parse", "fleet/web")
    fleet.add_green(root)
    assert fleet.land()["web"].branch == "fleet/web-2"
    assert git(root, "rev-parse", "fleet/web") == theirs
    other = fleet.make("api")
    git(other, "branch", "fleet")
    fleet.add_green(other)
    assert fleet.land()["api"].message.startswith("git update-ref")
    assert fleet.states() == {"web": "landed", "api": "failed"}


@pytest.mark.parametrize("left", ["of another run", ""])
def test_what_a_killed_fleet_left_in_the_place_of_a_green_result_does_not_land(fleet, left):
    """A later run of the task, which failed, has its folder in place, and its line was not written."""
    root = fleet.make("web")
    fleet.add_green(root)
    patch = fleet.out / "web/changes.patch"
    red = patch.read_text().replace("+ok", "+no")
    patch.unlink()
    if left:
        patch.write_text(red)
    landing = fleet.land()["web"]
    assert (landing.state, landing.branch) == ("failed", "")
    assert landing.message.endswith("is not that of the green result: run the fleet again, then land its result")
    assert git(root, "branch", "--list", "fleet/*") == ""


@pytest.mark.slow
def test_a_newer_base_gets_the_change_and_is_told_to_be_unbuilt(fleet):
    root = fleet.make("web")
    result = fleet.add_green(root)
    newer = change(root, LINES.replace("8", "eight"))
    landing = fleet.land()["web"]
    assert (landing.state, landing.branch) == ("base moved", "fleet/web")
    assert landing.message == f"nothing has built it on {newer[:12]}; --moved does"
    assert landing.message in (fleet.out / "web/pull-request.md").read_text()
    assert subjects(root, "fleet/web") == ["build.sh changed lock.txt", "Make ok.txt say ok."]
    assert git(root, "show", "fleet/web:ok.txt").split() == ["ok", *"01234567", "eight"]
    assert find_moved({"web": result}, load_landings(fleet.out, {"web": result})) == {"web"}
    change(root, "more\n", "more.txt")
    assert fleet.land()["web"] == landing, "one branch is enough"


@pytest.mark.parametrize("way", ["the repository", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"])
def test_no_program_of_the_users_git_merges(way, fleet, monkeypatch):
    """Attributes choose a driver for all files, a filter for another, which `merge.renormalize` would run."""
    root = fleet.make("web")
    mine = f"touch {fleet.folder}/ran; cat"
    change(root, "*.txt merge=a=b filter=mine\n", ".gitattributes")
    fleet.add_green(root)
    newer = change(root, LINES.replace("8", "eight"))
    settings = {"merge.a=b.driver": f"{mine} %B >%A", "filter.mine.clean": mine, "filter.mine.smudge": mine}
    settings |= {"merge.default": "a=b", "merge.renormalize": "true"}
    by_variables = {"GIT_CONFIG_COUNT": by_count, "GIT_CONFIG_PARAMETERS": by_parameters}
    for name, value in by_variables[way](settings).items() if way in by_variables else ():
        monkeypatch.setenv(name, value)
    for name, value in () if way in by_variables else settings.items():
        git(root, "config", name, value)
    landing = fleet.land()["web"]
    assert (landing.state, newer[:12] in landing.message) == ("base moved", True)
    text = (fleet.out / "web/pull-request.md").read_text()
    told = landing.message, " 3 files changed, 3 insertions(+), 1 deletion(-)"
    assert [each in text for each in told] == [True, True], "of the answer and its build alone"
    assert subjects(root, "fleet/web") == ["build.sh changed lock.txt", "Make ok.txt say ok."]
    assert not (fleet.folder / "ran").exists()
    assert git(root, "show", "fleet/web:ok.txt").split() == ["ok", *"01234567", "eight"]


def test_the_base_is_the_branch_that_the_line_names(fleet):
    root = fleet.make("web")
    git(root, "branch", "stable")
    fleet.add_green(root, base="stable")
    change(root, LINES.replace("8", "eight"))
    assert fleet.land()["web"].state == "landed"


def test_a_conflict_leaves_nothing_behind(fleet):
    root = fleet.make("web")
    result = fleet.add_green(root)
    newer = change(root, LINES.replace("not yet", "never"))
    before = tree(root), git(root, "for-each-ref")
    landing = fleet.land()["web"]
    assert (landing.state, landing.message) == ("conflicts", f"with {newer[:12]}: --moved does the task again")
    assert (tree(root), git(root, "for-each-ref")) == before
    assert find_moved({"web": result}, load_landings(fleet.out, {"web": result})) == {"web"}
    git(root, "reset", "-q", "--hard", "HEAD^")
    assert fleet.land()["web"].state == "landed", "it is tried again"


def test_a_change_that_is_already_there_needs_no_branch(fleet):
    root = fleet.make("web")
    result = fleet.add_green(root)
    change(root, LINES.replace("not yet", "ok"))
    change(root, "built\n", "lock.txt")
    change(root, "new\n", "new.txt")
    change(root, "else\n", "else.txt")
    assert fleet.land()["web"].state == "already there"
    assert git(root, "branch", "--list", "fleet/*") == ""
    assert find_moved({"web": result}, load_landings(fleet.out, {"web": result})) == set()


def test_a_green_result_that_changed_nothing_says_so(fleet, monkeypatch):
    """It needs no author, and is done again like any other where its base has moved since."""
    root = fleet.make("web")
    base = git(root, "rev-parse", "HEAD").strip()
    result = Result("web", "d", "success", 0, repository="../web", path=str(root), commit=base, base="HEAD")
    with results_folder(fleet.out):
        store(fleet.out, result, RECORD, b"", b"", b"")
    with monkeypatch.context() as unknown:
        for name, value in ({"HOME": str(fleet.folder)} | by_count({"user.useConfigOnly": "true"})).items():
            unknown.setenv(name, value)
        assert [fleet.land()["web"].in_words for _ in range(2)] == ["changed nothing", "changed nothing"]
    assert len((fleet.out / "landed.jsonl").read_text().splitlines()) == 1
    landings = load_landings(fleet.out, {"web": result})
    assert find_moved({"web": result}, landings) == set()
    write_pages(fleet.out, (), load_results(fleet.out))
    assert "<p>changed nothing</p>" in (fleet.out / "index.html").read_text()
    assert git(root, "branch", "--list", "fleet/*") == ""
    change(root, "more\n", "more.txt")
    assert find_moved({"web": result}, landings) == {"web"}


def test_another_history_gets_nothing_back_that_it_lost(fleet):
    root = fleet.make("web")
    change(root, "secret\n", "secret.txt")
    fleet.add_green(root)
    git(root, "reset", "-q", "--hard", "HEAD^")
    change(root, "else\n", "else.txt")
    assert fleet.land()["web"].state == "conflicts"
    assert git(root, "branch", "--list", "fleet/*") == ""


@pytest.mark.slow
def test_a_repository_that_is_gone_is_told_and_keeps_no_other_from_landing(fleet):
    fleet.add_green(fleet.make("gone"))
    fleet.add_green(fleet.make("web"))
    (fleet.folder / "gone").rename(fleet.folder / "elsewhere")
    landings = fleet.land()
    assert landings["gone"].message == f"{fleet.folder}/gone is no longer there"
    assert fleet.states() == {"gone": "failed", "web": "landed"}


@pytest.mark.slow
def test_a_url_lands_in_a_clone_of_ours_by_its_branch_of_now(fleet):
    root = fleet.make("web")
    result = fleet.add_green(root, by_url=True)
    landing = fleet.land()["web"]
    clone = Path(landing.clone)
    assert (landing.state, clone.parent) == ("landed", fleet.out / "clones")
    assert git(clone, "show", "fleet/web:new.txt") == "new\n"
    assert git(root, "branch", "--list", "fleet/*") == ""
    again = fleet.add_green(root, "again", by_url=True)
    assert find_moved({"again": again}, {}) == set()
    change(root, "more\n", "more.txt")
    assert fleet.land()["again"].state == "base moved"
    assert find_moved({"again": again}, {}) == {"again"}
    assert find_moved({"web": result}, load_landings(fleet.out, {"web": result})) == set(), "it landed"


def test_what_is_named_lands_and_the_page_names_how(fleet):
    first, _, _ = (
        fleet.add_green(fleet.make(name), new=text) for name, text in (("a", "1\n"), ("b", "1\n"), ("c", "2\n"))
    )
    group = first.patch[:12]
    with results_folder(fleet.out):
        store(fleet.out, Result("red", "d", "build_failed", 1, patch="66"), b"", b"", b"")
    write_pages(fleet.out, (), load_results(fleet.out))
    page = (fleet.out / "index.html").read_text()
    assert page.count(f"code-commit fleet --land {fleet.out} --group {group}") == 1
    assert page.count(f"code-commit fleet --land {fleet.out} --only c") == 1
    assert set(fleet.land(group=[group])) == {"a", "b"}
    assert set(fleet.land(only=["c"])) == {"c"}
    with pytest.raises(NotSetUpError, match="nothing can land"):
        fleet.land(only=["red"])
    write_pages(fleet.out, (), load_results(fleet.out))
    assert "landed: fleet/a" in (fleet.out / "index.html").read_text()


def test_a_moved_base_is_a_result_of_its_own_branch(fleet):
    root = fleet.make("web")
    fleet.add_green(root)
    change(root, LINES.replace("8", "eight"))
    fleet.land()
    git(root, "reset", "-q", "--hard", "HEAD")
    newer = change(root, LINES)
    fleet.add_green(root)
    assert fleet.states() == {}, "the result of another commit has not landed"
    assert fleet.land()["web"].branch == "fleet/web-2"
    line = json.loads((fleet.out / "landed.jsonl").read_text().splitlines()[-1])
    assert (line["commit"], line["state"]) == (newer, "landed")


@pytest.mark.slow
def test_a_second_campaign_does_again_only_what_has_to_be(cluster, forked_fleet, server, tmp_path):
    """One base is as it was, one moved elsewhere (it is only built again), one moved in the changed file."""
    roots = {name: make_repository(tmp_path / name) for name in ("same", "moved", "conflicting")}
    tasks = make_list(
        tmp_path / "tasks.jsonl", *(task(name, root, settings=server.settings) for name, root in roots.items())
    )
    assert cluster.run_fleet(tasks).returncode == 0
    change(roots["moved"], "more\n", "more.txt")
    change(roots["conflicting"], "other\n")

    def land_all():
        done = forked_fleet.run(["fleet", "--land", str(tmp_path / "out")], tmp_path, os.environ)
        return done.returncode, [line.split(": ")[:2] for line in done.stdout.splitlines()]

    assert land_all() == (1, [["conflicting", "conflicts"], ["moved", "base moved"], ["same", "landed"]])
    server.calls.clear()
    checked = cluster.run_fleet(tasks, "--moved", "--check")
    assert checked.stdout.endswith("1 kept, 0 would continue, 2 would be built again, 0 would start\n")
    again = cluster.run_fleet(tasks, "--moved")
    assert (again.returncode, len(server.calls)) == (0, 1), again.stderr
    assert land_all() == (0, [["conflicting", "landed"], ["moved", "landed"], ["same", "landed before"]])
    assert git(roots["moved"], "branch", "--list", "fleet/*").split() == ["fleet/moved", "fleet/moved-2"]
    assert git(roots["moved"], "show", "fleet/moved-2:ok.txt", "fleet/moved-2:more.txt") == "ok\nmore\n"
    server.calls.clear()
    assert cluster.run_fleet(tasks, "--moved").returncode == 0
    assert server.calls == [], "all have landed"


def test_a_branch_that_git_or_a_reader_would_not_expect_is_refused_before_anything_lands(fleet):
    fleet.add_green(fleet.make("web"))
    for name, why in {
        "x-{nosuch}": "only {id} is filled in, not {nosuch}",
        "a b-{id}": "git does not allow a branch of this name",
    }.items():
        with pytest.raises(NotSetUpError, match=re.escape(why)):
            fleet.land(branch=name)
    with pytest.raises(NotSetUpError, match="has no task nosuch"):
        fleet.land(only=["nosuch"])
    assert fleet.states() == {}
