"""What a run changed in all is the same diff whatever became of the tree since; git applies it."""

import subprocess
from pathlib import Path

import pytest
from command import Run, after_a_run, git, recorded, the_log, tree

from code_commit.commands.diff import net_diff

FIRST = (
    "^^^ok.txt\nnot\n^^^end\n^^^dos.txt\none\ntwo\n^^^end\n^^^deep/new.sh\n#!/bin/sh\n^^^end\n^^^old.txt\n^^^delete\n"
)
SECOND = "^^^ok.txt\nok\n^^^end\n^^^dos.txt\none\n2\n^^^end\n^^^empty.txt\n^^^end\n"


@pytest.fixture
def root(project_folder: Path, run_code_commit: Run) -> Path:
    """A run of two attempts; both changed dos.txt and ok.txt."""
    files = {"dos.txt": "one\r\n", "old.txt": "old\n"}
    return after_a_run(project_folder, run_code_commit, files, FIRST, SECOND)


def unapply(root: Path, diff: bytes) -> None:
    subprocess.run(["git", "apply", "-R", "--whitespace=nowarn", "-"], cwd=root, input=diff, check=True)


def test_it_is_what_git_sees(root: Path):
    after = tree(root)
    diff, unknown, _ = net_diff(the_log(root), root)
    assert unknown == []
    unapply(root, diff)
    assert git(root, "status", "--porcelain") == ""
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=root, input=diff, check=True)
    assert tree(root) == after


def test_it_stays_when_the_tree_moves_on(root: Path, run_code_commit: Run):
    log = the_log(root)
    before = net_diff(log, root)
    assert before.diff.count(b"diff --git") == 5
    (root / "dos.txt").write_text("something else\n")
    (root / "ok.txt").unlink()
    for path in log.glob("*-response.txt"):
        path.unlink()
    assert net_diff(log, root) == before
    assert run_code_commit(root, "undo", "--force").returncode == 0
    assert net_diff(log, root) == before
    (undo_log,) = set(log.parent.iterdir()) - {log}
    assert net_diff(undo_log, root).diff.count(b"diff --git") == 5


def test_of_an_older_log_the_tree_may_tell_or_the_file_is_named(root: Path):
    log = the_log(root)
    before = net_diff(log, root)
    for path in log.glob("snapshot/*.contents"):
        path.unlink()
    assert net_diff(log, root) == before
    (root / "dos.txt").write_text("something else\n")
    (root / "ok.txt").unlink()
    diff, unknown, _ = net_diff(log, root)
    assert unknown == ["dos.txt", "ok.txt"]
    assert sorted(diff.split(b"diff --git ")) == sorted(
        part for part in before.diff.split(b"diff --git ") if b"dos.txt" not in part and b"ok.txt" not in part
    )


def test_contents_that_are_damaged_are_not_taken_for_what_was_there(root: Path):
    log = the_log(root)
    (contents,) = sorted(log.glob("snapshot/changes-1.contents"))
    contents.write_bytes(b"x" * contents.stat().st_size)
    for path in ("deep/new.sh",):
        (root / path).unlink()
    assert net_diff(log, root).unknown == ["deep/new.sh"]


def test_what_edits_made_is_known_when_the_file_has_changed_since(root: Path, run_code_commit: Run):
    (root / "agent-config" / "logs").rename(root / "agent-config" / "earlier")
    (root / "dos.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    (root / "ok.txt").write_text("not yet\n")
    answers = [
        "^^^dos.txt\n^^^find\ntwo\n^^^replace\n2\n^^^end\n",
        "^^^dos.txt\n^^^find\none\n2\n^^^replace\n1\n1\n2\n^^^end\n^^^ok.txt\nok\n^^^end\n",
    ]
    options = [*recorded(root, *answers), "--sandbox", "off", "--answer-format", "edits"]
    done = run_code_commit(root, *options)
    assert done.returncode == 0, done.stderr
    assert (root / "dos.txt").read_bytes() == b"\xef\xbb\xbf1\r\n1\r\n2\r\nthree"
    before = net_diff(the_log(root), root)
    (root / "dos.txt").write_text("something else\n")
    assert net_diff(the_log(root), root) == before
    assert before.unknown == []


def test_a_file_with_a_bom_is_known_when_it_is_gone(root: Path, run_code_commit: Run):
    (root / "agent-config" / "logs").rename(root / "agent-config" / "earlier")
    (root / "dos.txt").write_bytes(b"\xef\xbb\xbfone\r\n")
    done = run_code_commit(root, *recorded(root, "^^^dos.txt\ntwo\n^^^end\n"), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    assert (root / "dos.txt").read_bytes() == b"\xef\xbb\xbftwo\r\n"
    before = net_diff(the_log(root), root, "sub/")
    (root / "dos.txt").unlink()
    assert net_diff(the_log(root), root, "sub/") == before
    assert before.unknown == []
