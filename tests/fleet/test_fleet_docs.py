"""The commands of docs/fleet.md: tried without a key (by two tasks), made into branches, on a small cluster."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from command import git
from fleet_tools import RIGHT, make_answers, make_list, make_repository, task

from code_commit.errors import NotSetUpError
from code_commit.fleet import FleetOptions
from code_commit.fleet.cluster import connect
from code_commit.fleet.land import Landing
from code_commit.fleet.repositories import list_repositories
from code_commit.fleet.tasks import FleetTask, read_tasks

DOCUMENT = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text("utf-8")
SCRIPTS = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)
_, LIST, REPOSITORIES, TRY, BRANCHES, PUSH, STATUS, ENDS, ON_GITLAB, LAND, CLUSTER, _ = SCRIPTS


def shell(folder: Path, script: str, scheduler: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script, where a fleet with results goes to this scheduler if there is one."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    there = (
        f'case "$*" in "fleet "*" --out "*) set -- "$@" --scheduler {scheduler} --insecure;; esac\n'
        if scheduler
        else ""
    )
    for name, module in (("code-commit", "code_commit"), ("dask", "dask")):
        (bin_folder / name).write_text(f'#!/bin/sh\n{there}exec {sys.executable} -P -m {module} "$@"\n')
        (bin_folder / name).chmod(0o755)
    folders = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": folders, "TMPDIR": str(folder)}
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_example_is_a_list_of_tasks():
    lines = re.findall(r"^```json\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)[0].splitlines()
    assert [FleetTask.model_validate_json(line).id for line in lines] == ["api-httpx", "web-httpx", "bug-1234"]


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq here")
def test_the_example_of_a_first_line(tmp_path):
    assert shell(tmp_path, LIST).returncode == 0
    (tmp_path / "web").mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        git(tmp_path / "web", *words)
    with (tmp_path / "many.jsonl").open("a") as file:
        file.write('{"id": "web", "repository": "web", "query": "Upgrade httpx to 0.28."}')
    (task,) = read_tasks(tmp_path / "many.jsonl")
    assert (task.build, task.setup) == ("make test\n", True)


def add_stub(folder: Path, name: str, answers: dict[str, str]) -> None:
    """Put a program there that notes its folder and its words, and prints the answer to a call that begins like this."""
    (folder / "bin").mkdir(exist_ok=True)
    cases = "".join(f"'{words}'*) echo {shlex.quote(answer)};;\n" for words, answer in answers.items())
    note = f'echo "${{PWD##*/}}: {name} $1 $2 ... $(printf "%s\\n" "$@" | tail -n 1)" >>{folder}/called\n'
    (folder / "bin" / name).write_text(f'#!/bin/sh\n{note}case "$*" in\n{cases}*) exit 1;;\nesac\n')
    (folder / "bin" / name).chmod(0o755)


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq here")
def test_the_repositories_of_an_organization_and_of_a_group_are_a_list(tmp_path):
    pages = [[{"http_url_to_repo": f"https://gitlab.example.org/my-team/{name}.git"}] for name in ("one", "two")]
    add_stub(tmp_path, "gh", {"repo list my-team --source": "https://github.com/my-team/web"})
    add_stub(tmp_path, "glab", {"api --paginate groups/my-team/projects?": "".join(map(json.dumps, pages))})
    done = shell(tmp_path, REPOSITORIES)
    assert done.returncode == 0, done.stderr
    lines = list_repositories((tmp_path / "list").read_text().split("\n"), tmp_path, {"query": "Do it."})
    assert [json.loads(line)["id"] for line in filter(None, lines)] == ["my-team-web", "my-team-one", "my-team-two"]


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq here")
def test_pull_requests_are_asked_for_merged_and_closed_in_each_clone(tmp_path):
    (tmp_path / "results").mkdir()
    landings = [
        Landing(name, "c", "p", "landed", f"fleet/{name[0]}", str(tmp_path / name)) for name in ("a", "b b", "c")
    ]
    landings += [Landing("red", "c", "p", "conflicts"), landings[0]]
    lines = "".join(json.dumps(asdict(landing)) + "\n" for landing in landings)
    (tmp_path / "results" / "landed.jsonl").write_text(lines)
    for name in ("a", "b b"):
        (tmp_path / name).mkdir()
    add_stub(tmp_path, "gh", {"pr view": "OPEN", "pr merge": "", "pr close": ""})
    merge_request = json.dumps({"state": "opened", "web_url": "https://gitlab.example.org/a/1"})
    add_stub(tmp_path, "glab", {"mr view": merge_request, "mr merge": "", "mr close": ""})
    done = shell(tmp_path, STATUS + ENDS + ON_GITLAB)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["OPEN", "OPEN"]
    assert done.stdout.count("opened\thttps://gitlab.example.org/a/1") == 2
    assert done.stderr.count("No such file") == 6, "a clone that is gone keeps no other from it"
    acts = [f"{program} {act}" for program in ("gh pr", "glab mr") for act in ("view", "merge", "close")]
    called = [f"{name}: {act} ... fleet/{name[0]}" for act in acts for name in ("a", "b b")]
    assert (tmp_path / "called").read_text().splitlines() == called


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq here")
def test_tasks_without_a_key_become_branches(cluster, tmp_path):
    two_tasks = TRY.replace("in one two three;", "in one two;")
    done = shell(tmp_path, two_tasks + BRANCHES, cluster.address)
    assert done.returncode == 0, done.stderr
    assert "2 tasks: no mistakes" in done.stdout
    assert "2 of 2 tasks green" in done.stderr
    landings = [json.loads(line) for line in (tmp_path / "results/landed.jsonl").read_text().splitlines()]
    assert [landing["branch"] for landing in landings] == ["fleet/one", "fleet/two"]
    for landing in landings:
        shown = git(Path(landing["clone"]), "show", "--format=%s", landing["branch"])
        assert shown.startswith("Slugs must drop punctuation.\n")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq here")
def test_the_results_of_many_repositories_become_branches_also_where_one_moved_on(cluster, tmp_path):
    """Three have the same patch. A red result becomes no branch; the changes of a build are a commit of their own."""
    names = ("team-api", "team-web", "same", "moved", "red")
    build = "grep -q '^ok$' ok.txt && echo built >lock.txt"
    roots = {name: make_repository(tmp_path / name, build if name != "red" else "exit 1") for name in names}
    (roots["team-web"] / "lock.txt").write_text("old\n")
    (roots["moved"] / "ok.txt").write_text("".join(f"{line}\n" for line in ("not yet", *range(9))))
    for root in roots.values():
        git(root, "add", "-A")
        git(root, "commit", "-qm", "more", "--allow-empty")
    answers = {"moved": RIGHT.replace("ok\n^^^", "".join(f"{line}\n" for line in ("ok", *range(9))) + "^^^")}
    lines = [task(name, f"../{name}", make_answers(tmp_path / f"{name}s", answers.get(name, RIGHT))) for name in names]
    (tmp_path / "work").mkdir()
    done = cluster.run_fleet(make_list(tmp_path / "work" / "tasks.jsonl", *lines), "--out", "results")
    assert "4 of 5 tasks green" in done.stderr
    assert "1 build also changed tracked files that no answer touched" in done.stderr
    assert "3 repositories, the same patch" in (tmp_path / "work/results/index.html").read_text()
    (roots["moved"] / "ok.txt").write_text("".join(f"{line}\n" for line in ("not yet", *range(8), "nine")))
    git(roots["moved"], "commit", "-qam", "nine")
    heads = {name: git(root, "rev-parse", "HEAD") for name, root in roots.items()}

    done = shell(tmp_path / "work", f"{BRANCHES.strip()} || test $? = 1\n{LAND}")
    assert done.returncode == 0, done.stderr
    assert "moved: base moved: fleet/moved: nothing has built it on" in done.stdout
    assert "4 green results: 3 landed, 1 base moved" in done.stderr
    subjects = {
        name: git(root, "log", "--format=%s", f"HEAD..fleet/{name}").splitlines()
        for name, root in roots.items()
        if name != "red"
    }
    one = ["Make ok.txt say ok."]
    assert subjects == {"team-api": one, "team-web": ["build.sh changed lock.txt", *one], "same": one, "moved": one}
    assert git(roots["moved"], "show", "fleet/moved:ok.txt").splitlines()[:1] == ["ok"]
    assert git(roots["moved"], "show", "fleet/moved:ok.txt").splitlines()[-1:] == ["nine"]
    assert git(roots["red"], "branch", "--list", "fleet/*") == ""
    assert "base moved: fleet/moved" in (tmp_path / "work/results/index.html").read_text()
    assert {name: git(root, "rev-parse", "HEAD") for name, root in roots.items()} == heads

    for name in ("team-api", "team-web", "same", "moved"):
        git(tmp_path, "init", "-q", "--bare", f"{name}.git")
        git(roots[name], "remote", "add", "origin", str(tmp_path / f"{name}.git"))
    gh = tmp_path / "work/bin/gh"
    gh.write_text(f'#!/bin/sh\necho "$2 $4 $6: $8" | head -n 1 >>{tmp_path}/requests\n')
    gh.chmod(0o755)
    (tmp_path / "work/bin").rename(tmp_path / "bin")
    done = shell(tmp_path / "work", f"PATH={tmp_path}/bin:$PATH\n{PUSH}")
    assert done.returncode == 0, done.stderr
    requests = sorted((tmp_path / "requests").read_text().splitlines())
    assert [line.split(": ")[0] for line in requests] == [
        f"create fleet/{name} Make ok.txt say ok." for name in ("moved", "same", "team-api", "team-web")
    ]
    assert git(tmp_path / "moved.git", "branch").split() == ["fleet/moved"]

    for repository in ("team/api", "team/web"):
        clone, name = tmp_path / "clones" / repository, repository.replace("/", "-")
        git(tmp_path, "clone", "-q", str(roots[name]), str(clone))
        environment = os.environ | {"REPOSITORY": repository}
        subprocess.run([tmp_path / "work" / "land"], cwd=clone, env=environment, check=True)
        assert git(clone, "rev-parse", "HEAD^{tree}") == git(roots[name], "rev-parse", f"fleet/{name}^{{tree}}")


def test_the_smallest_cluster(tmp_path, whole):
    if not whole:
        pytest.skip("it takes ten seconds; --whole runs it")
    three_tasks = TRY.replace("code-commit fleet tasks.jsonl --out results\n", "")
    done = shell(tmp_path, "trap 'kill $(jobs -p); wait' EXIT\n" + three_tasks + CLUSTER)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 tasks green" in done.stderr
    assert (tmp_path / "of-the-cluster" / "one" / "changes.patch").exists()


def test_a_cluster_that_wants_a_certificate_and_gets_none_is_no_bug_of_ours():
    with (
        pytest.raises(NotSetUpError, match="check your TLS configuration"),
        connect(FleetOptions(scheduler="tls://127.0.0.1:1"), "fleet", print, again=False),
    ):
        pass
