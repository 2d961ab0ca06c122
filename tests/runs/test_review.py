"""What a reviewer would not see is told: what a build did to the repository, and to files that no answer changed."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Run, Start, chess_board, git, recorded, the_log, tree, wait_for

from code_commit.git import UnansweredError
from code_commit.project import find_project
from code_commit.runs.review import look_at_tree

OK, WRONG = "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nwrong\n^^^end\n"
NEW = f"{OK}^^^new/a.txt\nx\n^^^end\n"
ELSEWHERE = "git diff may not show the whole change, code-commit diff does"


@pytest.fixture
def root(project_folder: Path) -> Path:
    """The project, with a lock file and sources beside what the answers change."""
    (project_folder / "Cargo.lock").write_text("version = 1\n")
    (project_folder / "src").mkdir()
    (project_folder / "kept").mkdir()
    (project_folder / "kept" / ".gitattributes").write_text("*.png binary\n")
    for number in range(8):
        (project_folder / "src" / f"{number}.txt").write_text("text\n")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "more")
    return project_folder


def build_does(root: Path, script: str) -> None:
    (root / "build.sh").write_text(f"#!/bin/sh\n{script}\ngrep -qx ok ok.txt\n")
    git(root, "commit", "-qam", "its build")


def the_record(root: Path) -> dict:
    return json.loads((the_log(root) / "run.json").read_text())


HIDING = {
    # what build.sh does: what is said of it
    "git commit -qam x": [
        "during the run HEAD moved from main at ",
        ELSEWHERE,
        "git diff does not show ok.txt: committed",
    ],
    "git checkout -q -b other": ["HEAD moved from main at ", " to other at ", ELSEWHERE],
    "git stash -q; echo ok > ok.txt": ["during the run the number of git stashes changed from 0 to 1", ELSEWHERE],
    "git update-index --skip-worktree ok.txt": [
        "git's index was set to hide changes to ok.txt",
        "git diff does not show ok.txt: git's index marks it as skip-worktree",
    ],
    "git update-index --assume-unchanged src/*": [
        "hide changes to src/0.txt, src/1.txt, src/2.txt, src/3.txt, src/4.txt and 3 more"
    ],
    "git add -A": ["git diff does not show new/a.txt, ok.txt: staged, see git diff --staged"],
    "cp ok.txt x; echo other > ok.txt; git add ok.txt; mv x ok.txt": [
        "git diff does not show ok.txt: partly staged, see git diff HEAD"
    ],
    "git add ok.txt; git replace HEAD $(git commit-tree -m x $(git write-tree))": [
        "git replace now substitutes some objects",
        ELSEWHERE,
    ],
    "echo '*' > new/.gitignore": [
        "git diff does not show new/a.txt: git ignores it now",
        "the build wrote new/.gitignore (unless you did): git status may not show new files there",
    ],
    "echo '*' > src/.gitignore": ["the build wrote src/.gitignore (unless you did): git status may not show new"],
    "echo '* -diff' > .gitattributes; echo '* -diff' >> kept/.gitattributes; cp .gitattributes src": [
        "the build wrote .gitattributes, kept/.gitattributes, src/.gitattributes (unless you did): git diff may not"
    ],
    "git init -q new": ["git diff does not show new/a.txt: git ignores it now, or it is in a repository of its own"],
    "rm -r new": ["git diff does not show new/a.txt: it is gone, and HEAD does not have it either"],
}


@pytest.mark.parametrize(("script", "command"), chess_board(HIDING, ["run", "apply"]))
def test_what_git_diff_does_not_show_is_told(script: str, command: str, root: Path, run_code_commit: Run):
    build_does(root, script)
    arguments = recorded(root, NEW) if command == "run" else ["apply", "--build", "-"]
    done = run_code_commit(root, *arguments, stdin=NEW)
    assert done.returncode == 0, done.stderr
    for told in HIDING[script]:
        assert told in done.stderr
    assert ("Nothing is committed." in done.stderr) == ("HEAD moved" not in done.stderr), done.stderr
    assert the_record(root)["head_moved"] == ("HEAD moved" in done.stderr)
    assert all(any(told in warning["message"] for warning in the_record(root)["warnings"]) for told in HIDING[script])


def test_git_waits_on_no_fifo_for_ever(root: Path, monkeypatch: pytest.MonkeyPatch):
    project = find_project(root)
    assert look_at_tree(project)
    monkeypatch.setattr("code_commit.git._GIT_SECONDS", 0.5)
    (root / "new").mkdir()
    os.mkfifo(root / "new" / ".gitignore")
    with pytest.raises(UnansweredError, match="is there a FIFO in the tree"):
        look_at_tree(project)


@pytest.mark.parametrize("where", ["../../elsewhere", "../src"])
def test_a_work_tree_elsewhere_is_told(where: str, root: Path, run_code_commit: Run):
    (root.parent / "elsewhere").mkdir()
    git(root, "config", "core.worktree", where)
    done = run_code_commit(root, *recorded(root, OK))
    assert (done.returncode, "(core.worktree), and this folder is not in it" in done.stderr) == (2, True), done.stderr


def in_a_folder_of_the_repository(root: Path) -> None:
    (root / ".git").rename(root.parent / ".git")
    git(root.parent, "add", "-A")
    git(root.parent, "commit", "-qm", "in a folder")


@pytest.mark.parametrize("lay_out", [lambda _: None, in_a_folder_of_the_repository])
def test_of_a_build_that_hides_nothing_nothing_is_told(
    lay_out: Callable[[Path], None], root: Path, run_code_commit: Run
):
    """A build may look at git; what was so before the run is not its doing, nor what only a filter makes clean.

    Tools hide their own folders by a .gitignore in them.
    """
    git(root, "config", "filter.upper.clean", "tr a-z A-Z")
    (root / ".gitattributes").write_text("*.filtered filter=upper\n")
    (root / "a.filtered").write_text("text\n")
    git(root, "add", "-A")
    own_folders = "target .venv .pytest_cache node_modules/a node_modules/b/c"
    build_does(
        root,
        "git status; git update-index --refresh; mkdir -p target; echo x > target/out; touch own.txt\n"
        f"for folder in {own_folders}; do mkdir -p $folder; echo '*' > $folder/.gitignore; done; chmod -R u+rw kept",
    )
    lay_out(root)
    (root / "src" / ".gitignore").write_text("*\n")
    (root / "a.filtered").touch()
    git(root, "update-index", "--skip-worktree", "src/0.txt")
    (root / "src" / "1.txt").write_text("the user's own\n")
    git(root, "stash", "-q")
    for own in ("src/2.txt", "own.txt"):
        (root / own).write_text("the user's own\n")
    done = run_code_commit(root, *recorded(root, NEW))
    assert done.returncode == 0, done.stderr
    record = the_record(root)
    told = ("git diff does not", "the build wrote", ELSEWHERE)
    assert not any(words in warning["message"] for words in told for warning in record["warnings"])
    assert (record["build_changes"], record["new_files"]) == ([], 0)
    assert "build also" not in done.stderr


def test_rules_for_git_above_the_project_are_told(root: Path, run_code_commit: Run):
    build_does(root, "echo '* -diff' > ../.gitattributes")
    in_a_folder_of_the_repository(root)
    done = run_code_commit(root, *recorded(root, OK))
    assert "the build wrote ../.gitattributes (unless you did): git diff may not show changes there" in done.stderr


@pytest.mark.parametrize("lay_out", [lambda _: None, in_a_folder_of_the_repository])
def test_other_changes_of_a_build_are_named_and_survive_undo(
    lay_out: Callable[[Path], None], root: Path, run_code_commit: Run
):
    """Cargo writes its lock file, a formatter what it likes, and a build may undo what the user had not committed."""
    (root / "src" / "1.txt").write_text("text\n" * 2)
    build_does(
        root, "echo built >> Cargo.lock; git checkout -q src/2.txt; echo x >> src/3.txt; rm src/4.txt; touch a b"
    )
    lay_out(root)
    for edited in ("1", "2", "3"):
        (root / "src" / f"{edited}.txt").write_text("not committed\n")
    done = run_code_commit(root, *recorded(root, OK))
    assert done.returncode == 0, done.stderr
    changed = ["Cargo.lock", "src/2.txt", "src/3.txt", "src/4.txt"]
    said = f"changed {', '.join(changed)} and left 2 new files: a, b"
    assert (
        f"\nThe build also {said} (unless you did); undo does not take that back.\nNothing is committed. "
        in done.stderr
    )
    record = the_record(root)
    assert (record["build_changes"], record["new_files"]) == (changed, 2)
    assert f"build     also {said}\n" in run_code_commit(root, "log", record["run"]).stdout

    after = tree(root)
    done = run_code_commit(root, "undo")
    assert (done.returncode, f"the build's own changes stay: it {said}" in done.stderr) == (0, True), done.stderr
    assert tree(root) == after | {"ok.txt": (after["ok.txt"][0], b"not yet\n")}


@pytest.mark.parametrize(
    ("answers", "script", "code"),
    [
        ([WRONG, "no blocks"], "echo built >> Cargo.lock", 4),
        ([WRONG], "echo built >> Cargo.lock", 3),
        ([WRONG], "echo built >> Cargo.lock; echo x >> .gitignore", 5),
    ],
)
def test_whatever_the_end_of_a_run_it_is_told(answers, script, code, root: Path, run_code_commit: Run):
    build_does(root, f"{script}; git add ok.txt")
    done = run_code_commit(root, *recorded(root, *answers), "--max-repairs", "1", "--sandbox", "off")
    assert done.returncode == code, done.stderr
    assert "git diff does not show ok.txt: staged" in done.stderr
    assert "The build also changed Cargo.lock (unless you did)" in done.stderr
    assert the_record(root)["build_changes"] == ["Cargo.lock"]


def test_an_interrupted_and_resumed_run_tells_what_both_builds_changed(
    root: Path, run_code_commit: Run, start_code_commit: Start
):
    build_does(root, "echo x >> src/$CODE_COMMIT_ATTEMPT.txt; [ $CODE_COMMIT_ATTEMPT = 1 ] || [ -e go ] || sleep 60")
    process = start_code_commit(root, *recorded(root, WRONG, OK), "--sandbox", "off")
    wait_for(lambda: (root / "src" / "2.txt").read_text() == "text\nx\n")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=180) == 143
    (root / "go").touch()
    assert run_code_commit(root, "resume").returncode == 0
    assert the_record(root)["build_changes"] == ["src/1.txt", "src/2.txt"]


def test_a_git_that_no_longer_answers_is_told(root: Path, run_code_commit: Run):
    build_does(root, "git update-index --refresh; printf broken > .git/index")
    done = run_code_commit(root, *recorded(root, OK), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    assert "git diff may not show all of the change, code-commit diff does" in done.stderr


def test_of_many_new_files_three_are_named(root: Path, run_code_commit: Run):
    build_does(root, "touch d c b a")
    done = run_code_commit(root, *recorded(root, OK))
    assert "left 4 new files: a, b, c and 1 more (unless you did)" in done.stderr, done.stderr


REWRITING = {
    # what build.sh does after an answer of five files: the actions in run.json, what is said
    "": ([], ""),
    "chmod go-rwx *.py": ([], ""),
    "sed -i 's/x=1/x = 1/' a.py b.py": (
        [("a.py", "reformat", 1, 1), ("b.py", "reformat", 1, 1)],
        "reformatted a.py, b.py",
    ),
    "echo mine >> a.py; sed -i 's/x=1/x = 1/' b.py": (
        [("a.py", "replace", 1, 0), ("b.py", "reformat", 1, 1)],
        "rewrote a.py and reformatted b.py",
    ),
    "echo evil >> a.py; chmod +x b.py; rm new.txt; ln -s ok.txt link; mv link deep/c.py; echo back > gone.txt": (
        [
            ("a.py", "replace", 1, 0),
            ("b.py", "mode", 0, 0),
            ("deep/c.py", "delete", 0, 1),
            ("gone.txt", "create", 1, 0),
            ("new.txt", "delete", 0, 1),
        ],
        "rewrote a.py and changed the mode of b.py and removed deep/c.py, new.txt and brought back gone.txt",
    ),
}
FIVE = "".join(f"^^^{path}\nx=1\n^^^end\n" for path in ("a.py", "b.py", "deep/c.py", "new.txt"))


@pytest.mark.slow
@pytest.mark.parametrize(("script", "command"), chess_board(REWRITING, ["run", "apply"]))
def test_what_a_build_made_of_the_answer_is_named_with_a_diff(
    script: str, command: str, root: Path, run_code_commit: Run
):
    """What was looked at before the build, with --approve too, is not what lands then."""
    actions, said = REWRITING[script]
    (root / "gone.txt").write_text("to go\n")
    build_does(root, script or "true")
    answer = f"{OK}{FIVE}^^^gone.txt\n^^^delete\n"
    arguments = recorded(root, answer) if command == "run" else ["apply", "--build", "-"]
    done = run_code_commit(root, *arguments, "--sandbox", "off", stdin=answer)
    assert done.returncode == 0, done.stderr
    record, log = the_record(root), the_log(root)
    assert [tuple(file.values()) for file in record["rewritten"]] == actions
    where = f"{record['log_dir']}/built.diff"
    assert (f"\nThe build also {said} (unless you did); {where} shows it.\n" in done.stderr) == bool(said)
    assert (f"build     also {said}: {where}\n" in run_code_commit(root, "log", log.name).stdout) == bool(said)
    assert (f"after the answer the build {said}: {where}" in run_code_commit(root, "diff").stderr) == bool(said)
    assert (f"The build also `{said}`" in run_code_commit(root, "log", "--markdown").stdout) == bool(said)
    assert run_code_commit(root, "log", "--html", "page.html").returncode == 0
    page = (root / "page.html").read_text()
    assert (f"What the build {said} after the answer" in page) == bool(said)
    diff = (log / "built.diff").read_text() if actions else ""
    assert (diff.count("diff --git"), (log / "built.diff").exists()) == (len(actions), bool(actions))
    assert ("evil" in diff) == ("evil" in page) == ("evil" in script)
    undone = run_code_commit(root, "undo")
    edited = [path for path, action, *_ in actions if action != "reformat"]
    went = f"this also undid what the build, or you, did to {', '.join(edited)} after the answer"
    expected = (2, False) if "ln -s" in script else (0, bool(edited))  # it follows no link
    assert (undone.returncode, went in undone.stderr) == expected, undone.stderr


def test_of_what_was_rolled_back_or_answered_anew_no_build_is_told(root: Path, run_code_commit: Run):
    build_does(root, "echo more >> ok.txt")
    done = run_code_commit(root, *recorded(root, OK, WRONG), "--rollback")
    assert (done.returncode, "The build also" in done.stderr) == (0, True), done.stderr
    build_does(root, "[ $CODE_COMMIT_ATTEMPT = 2 ] || echo more >> a.py; [ $CODE_COMMIT_ATTEMPT = 2 ]")
    a = "^^^a.py\nx\n^^^end\n"
    done = run_code_commit(root, *recorded(root, a + WRONG, "^^^a.py\ny\n^^^end\n" + OK))
    assert (done.returncode, "The build also" in done.stderr) == (0, False), done.stderr
    build_does(root, "echo more >> a.py; false")
    done = run_code_commit(root, *recorded(root, a + WRONG), "--rollback", "--max-repairs", "0")
    assert (done.returncode, "The build also" in done.stderr) == (1, False), done.stderr


def test_of_new_files_it_is_told_only_where_the_answer_changes_one(root: Path, run_code_commit: Run):
    """Most trees have a file that git does not track: a warning in every run is soon read no more."""
    doubt = "git status is not clean: git diff will mix your changes with the LLM's"
    (root / "notes.txt").write_text("mine\n")
    done = run_code_commit(root, *recorded(root, OK))
    assert (done.returncode, doubt in done.stderr, "notes.txt" in done.stderr) == (0, False, False), done.stderr
    git(root, "checkout", "-q", "ok.txt")
    done = run_code_commit(root, *recorded(root, f"{OK}^^^notes.txt\nanother\n^^^end\n"))
    assert "warning: git does not track notes.txt: git diff cannot show what was there" in done.stderr
    assert doubt not in done.stderr
    done = run_code_commit(root, *recorded(root, f"{OK}^^^notes.txt\nanother\n^^^end\n"))
    assert "git does not track notes.txt" not in done.stderr, "it is the same"
    done = run_code_commit(root, *recorded(root, OK))
    assert doubt in done.stderr, "ok.txt is tracked"
    git(root, "checkout", "-q", "ok.txt")
    done = run_code_commit(root, *recorded(root, OK), "--require-clean")
    assert (done.returncode, doubt in done.stderr) == (2, True)


def test_a_file_that_head_lacks_is_not_as_in_head(root: Path, run_code_commit: Run):
    (root / "kept.txt").write_text("mine\n")
    done = run_code_commit(root, *recorded(root, f"{OK}^^^kept.txt\n^^^delete\n"))
    assert "git diff does not show kept.txt: it is gone, and HEAD does not have it either" in done.stderr, done.stderr
    (root / "ok.txt").write_text("not yet\n")
    build_does(root, "git checkout -q ok.txt; exit 0")
    done = run_code_commit(root, *recorded(root, OK))
    assert "git diff does not show ok.txt: it is as in HEAD" in done.stderr, done.stderr
