"""A codebase that is older than the tree: what is told of it, before the first request."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Run, git, replay, the_log

ROLLUP = "agent-config/codeRollup.txt"
CHANGED = "changed since codeRollup.txt was written (the LLM sees the old text)"
GONE = "gone since codeRollup.txt was written (the LLM still sees them)"
NEW = "new since codeRollup.txt was written (the LLM does not see them)"
LONG_AGO = "2026-01-01T00:00:00Z"
FILES = {
    "README.md": "# Project\n",
    "src/a.py": "def a():\n    return 1\n",
    "src/b.py": "def b():\n    return 2\n",
    "src/deep/c.py": "def c():\n    return 3\n",
    "docs/guide.md": "Sections begin so:\n\n--- src/gone.py ---\n\n--- src/a.py ---\nand so on\n",
}


def commit(root: Path, files: dict[str, str], date: str = "") -> None:
    """Write and commit the files, with a date before the rollup: git counts in seconds."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, newline="")
    git(root, "add", "-A")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_COMMITTER_DATE", date) if date else None
        git(root, "commit", "-qm", "more")


@pytest.fixture
def root(project_folder: Path) -> Path:
    commit(project_folder, FILES, LONG_AGO)
    (project_folder / "agent-config" / "recorded").mkdir()
    return project_folder


def keep_time(path: Path, change: Callable[[Path], object]) -> None:
    """Change a file, and let it look as old as it was."""
    state = path.stat()
    change(path)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def told(root: Path, run_code_commit: Run) -> dict[str, str]:
    """Return what `check` tells of the codebase's age."""
    done = run_code_commit(root, "check", "--json", "--model", "replay:agent-config/recorded")
    warnings = [warning.rpartition(": run ")[0] for warning in json.loads(done.stdout)["warnings"]]
    parts = [warning.partition(": ") for warning in warnings if "codeRollup.txt" in warning]
    return {what: names for what, _, names in parts}


def test_a_codebase_as_the_tree_is_tells_nothing(root: Path, run_code_commit: Run):
    commit(
        root,
        {
            "crlf.txt": "a\r\nb\r\n",
            "bom.txt": "\ufeffa\n",
            "empty.txt": "",
            "open.txt": "no end",
            "tail.txt": "a\n\n\n",
        },
    )
    for options in ([], ["src"], ["src/a.py"], ["--exclude", "docs/"], ["--fit", "300"], ["--fit", "150"]):
        assert run_code_commit(root, "rollup", *options).returncode == 0
        for path in root.rglob("*.*"):
            os.utime(path) if path.is_file() and ".git" not in path.parts and path.name != "codeRollup.txt" else None
        assert told(root, run_code_commit) == {}, options


def test_what_changed_went_or_came_is_told_before_the_first_request(root: Path, run_code_commit: Run):
    run_code_commit(root, "rollup")
    keep_time(root / "src/a.py", lambda path: path.write_text("def a():\n    return 9\n"))
    git(root, "rm", "-q", "src/b.py")
    git(root, "mv", "src/deep/c.py", "src/moved.py")
    (root / "src/new.py").write_text("new = 1\n")
    (root / "src/untracked.py").write_text("not tracked\n")
    git(root, "add", "src/new.py")
    expected = {CHANGED: "src/a.py", GONE: "src/b.py, src/deep/c.py (now src/moved.py)", NEW: "src/new.py"}
    assert told(root, run_code_commit) == expected
    git(root, "commit", "-qam", "changes")
    assert told(root, run_code_commit) == expected
    done = run_code_commit(root, "--model", "replay:agent-config/recorded")
    assert done.returncode == 3, "there was no answer"
    warnings = [f"{what}: {names}: run code-commit rollup" for what, names in expected.items()]
    assert all(f"warning: {warning}\n" in done.stderr for warning in warnings), done.stderr
    record = json.loads((the_log(root) / "run.json").read_text())
    assert [warning["message"] for warning in record["warnings"] if warning["kind"] == "codebase"] == warnings


def test_ten_are_named_and_the_others_counted(root: Path, run_code_commit: Run):
    commit(root, {f"src/m{number:02}.py": f"old = {number}\n" for number in range(12)})
    run_code_commit(root, "rollup")
    for number in range(12):
        (root / f"src/m{number:02}.py").write_text("changed\n")
    names = ", ".join(f"src/m{number:02}.py" for number in range(10))
    assert told(root, run_code_commit) == {CHANGED: f"{names} and 2 more"}


RESTRICTED = {
    "a folder": (["src"], {"docs/new.md": "", "src/new.py": NEW, "src/deep/new.py": NEW, "other/new.py": ""}),
    "a suffix": (["*.py"], {"src/new.py": NEW, "src/new.md": "", "docs/new.md": "", "other/new.py": ""}),
    "a file": (["src/a.py"], {"src/new.py": "", "new.py": ""}),
    "all but a folder": (["--exclude", "docs/"], {"docs/new.md": "", "src/new.py": NEW, "src/new.rs": ""}),
    "what fits": (["--fit", "400"], {"src/new.py": NEW, "image.png": "", "package-lock.json": "", "prod.env": ""}),
}


@pytest.mark.parametrize(("options", "files"), RESTRICTED.values(), ids=RESTRICTED)
def test_new_is_what_the_same_rollup_would_take(options, files, root: Path, run_code_commit: Run):
    assert run_code_commit(root, "rollup", *options).returncode == 0
    commit(root, {name: "\0binary\n" if name.endswith(".png") else f"new {name}\n" for name in files})
    new = sorted(name for name, what in files.items() if what)
    assert told(root, run_code_commit) == ({NEW: ", ".join(new)} if new else {})


def test_what_the_settings_exclude_is_not_new(root: Path, run_code_commit: Run):
    (root / "agent-config" / "config.toml").write_text("rollup_exclude = ['src/gen/']\n")
    run_code_commit(root, "rollup")
    commit(root, {"src/gen/x.py": "x = 1\n"})
    assert told(root, run_code_commit) == {}


def test_a_file_that_was_left_out_and_is_touched_is_not_new(root: Path, run_code_commit: Run):
    run_code_commit(root, "rollup", "src/a.py")
    (root / "src/b.py").write_text("changed\n")
    os.utime(root / "README.md")
    assert told(root, run_code_commit) == {}


def test_what_is_shown_in_part_is_not_compared_but_missed(root: Path, run_code_commit: Run):
    long = "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(300))
    commit(root, {"src/long.py": long}, LONG_AGO)
    run_code_commit(root, "rollup", "--fit", "1500")
    assert "--- src/long.py (outline" in (root / ROLLUP).read_text()
    (root / "src/long.py").write_text(f"{long}more = 1\n")
    assert told(root, run_code_commit) == {}
    git(root, "rm", "-qf", "src/long.py")
    git(root, "commit", "-qm", "gone")
    assert told(root, run_code_commit) == {GONE: "src/long.py"}


NUMBERED = "".join(
    f"--- {name} ---\n" + "".join(f"{number}: {line}\n" for number, line in enumerate(text.split("\n"), 1))
    for name, text in FILES.items()
)
FOREIGN = {
    "numbered lines": NUMBERED,
    "the first lines of each": "".join(f"--- {name} ---\n{text[:9]}\n" for name, text in FILES.items()),
    "line ends of its own": "".join(f"--- {name} ---\n{text.strip()}\n\n\n\n" for name, text in FILES.items()),
    "headings": "--- Introduction ---\nwords\n\n--- notes/old.md ---\nmore words\n--- v1.2 ---\n",
    "XML": "".join(f'<file path="{name}">\n{text}</file>\n' for name, text in FILES.items()),
    "a diff": "--- a/src/a.py ---\n+++ b/src/a.py ---\n",
    "paths that leave": "text\n--- ../elsewhere.py ---\nx\n--- /etc/passwd ---\nx\n",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_another_tools_codebase_gives_no_false_alarm(text: str, root: Path, run_code_commit: Run):
    (root / ROLLUP).write_text(text)
    assert told(root, run_code_commit) == {}


def test_the_projects_own_script_is_named(root: Path, run_code_commit: Run):
    (root / "codeRollup.sh").write_text("#!/bin/sh\n")
    (root / ROLLUP).write_text("".join(f"--- {name} ---\n{text}" for name, text in FILES.items()))
    (root / "src/a.py").write_text("changed\n")
    shutil.rmtree(root / "src/deep")
    done = run_code_commit(root, "check", *replay(root))
    said = " ".join(done.stdout.split())
    assert f"{CHANGED}: src/a.py: run codeRollup.sh" in said
    assert f"{GONE}: src/deep/c.py: run codeRollup.sh" in said


def test_a_line_like_a_heading_in_a_changed_file_is_no_file_that_is_gone(root: Path, run_code_commit: Run):
    run_code_commit(root, "rollup")
    (root / "docs/guide.md").write_text("No sections any more.\n")
    assert told(root, run_code_commit) == {CHANGED: "docs/guide.md"}


def test_a_run_that_makes_its_codebase_tells_nothing(root: Path, run_code_commit: Run):
    run_code_commit(root, "rollup")
    (root / "src/a.py").write_text("changed\n")
    done = run_code_commit(root, *replay(root), "--rollup", "fresh", "--sandbox", "off")
    assert (done.returncode, "codeRollup.txt was written" in done.stderr) == (0, False), done.stderr
