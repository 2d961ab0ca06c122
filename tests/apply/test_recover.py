"""Killed at every file-changing call of an apply, and of the repair after it: the tree is the old one or the new one."""

import json
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from apply_driver import (
    NEW_FILES,
    OLD_FILES,
    SNAPSHOT,
    UNDO_SNAPSHOT,
    Tree,
    make_tree,
    read_tree,
    verified,
)
from kill_points import Call, Driver, changing, needs_strace, run_driver, sample

from code_commit.apply.journal import FileStep, state_of
from code_commit.apply.lock import is_locked
from code_commit.apply.recover import _find as find
from code_commit.apply.recover import needs_recovery, recover
from code_commit.apply.restore import restore
from code_commit.apply.snapshot import load_layers
from code_commit.apply.transaction import apply_changes
from code_commit.files import Tree as FileTree
from code_commit.project import Project

pytest_plugins = ["apply_fixtures"]

pytestmark = needs_strace

KILL = "signal=SIGKILL"
NO_WAY_ACROSS = ("-e", "inject=linkat:error=EXDEV:when=1")  # agent-config is on another file system


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def fresh(root: Path) -> Project:
    shutil.rmtree(root, ignore_errors=True)
    return make_tree(root)


def kill(driver: Driver, call: Call, what: str, root: Path, always: Sequence[str] = ()) -> None:
    """Run the driver into the kill; it counts only if it really died there."""
    outcome = driver.inject(call, KILL, what, root, always=always)
    assert outcome.exit_code == -signal.SIGKILL, (call, outcome)


def test_new_tree_is_what_the_changes_say(trees: tuple[Tree, Tree]) -> None:
    old, new = trees
    assert len(NEW_FILES) == 20
    for path, content in NEW_FILES.items():
        assert new.get(path, (0, None))[1] == content
        if path in OLD_FILES and content is not None:
            assert new[path][0] == old[path][0]
    assert new["other.txt"] == old["other.txt"]
    assert not any(path.startswith("gone") for path in new)


@pytest.mark.slow
def test_killed_at_every_call_of_an_apply(
    fast_path: Path, driver: Driver, trees: tuple[Tree, Tree], whole, say
) -> None:
    old, new = trees
    root = fast_path / "tree"
    fresh(root)
    points = changing(driver.trace(fast_path / "trace", "apply", root))
    assert len(points) > 150
    outcomes: Counter[str] = Counter()
    for call in sample(points, 30, whole=whole):
        project = fresh(root)
        kill(driver, call, "apply", root)
        assert is_locked(project) is None
        recover(project)
        assert not needs_recovery(project)
        tree = read_tree(root)
        assert tree in (old, new), call
        outcomes["old" if tree == old else "new"] += 1
        assert bool(load_layers(root / SNAPSHOT)) == (tree == new), call
        if tree == new:
            restore(root / SNAPSHOT, project, root / UNDO_SNAPSHOT)
            assert read_tree(root) == old
    assert outcomes["old"]
    assert outcomes["new"]
    say(f"killed at {outcomes.total()} of {len(points)} calls of an apply: {dict(outcomes)}, 0 torn trees")


@pytest.mark.slow
def test_killed_at_every_call_of_an_apply_that_stages_beside_the_targets(
    fast_path: Path, driver: Driver, trees: tuple[Tree, Tree], whole, say
) -> None:
    old, new = trees
    root = fast_path / "tree"
    fresh(root)
    calls = changing(driver.trace(fast_path / "trace", "apply", root, always=NO_WAY_ACROSS))
    assert read_tree(root) == new
    points = [call for call in calls if call.name != "linkat"]  # strace takes one injection for a name
    assert any(".code-commit-txn" in call.text for call in points)
    outcomes: Counter[str] = Counter()
    for call in sample(points, 12, whole=whole):
        project = fresh(root)
        kill(driver, call, "apply", root, NO_WAY_ACROSS)
        recover(project)
        tree = read_tree(root)
        assert tree in (old, new), call
        outcomes["old" if tree == old else "new"] += 1
    say(
        f"killed at {outcomes.total()} of {len(points)} calls, staged beside the targets: {dict(outcomes)}, 0 torn trees"
    )


def test_git_does_not_see_what_is_staged_beside_the_targets(tmp_path: Path, driver: Driver) -> None:
    other = tmp_path / "other"
    fresh(other)
    calls = driver.trace(tmp_path / "trace", "apply", other, always=NO_WAY_ACROSS)
    root = tmp_path / "tree"
    fresh(root)
    git(root, "init", "-q")
    (root / ".git/info/exclude").write_text("/agent-config\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    kill(driver, next(call for call in calls if "journal.json.new" in call.text), "apply", root, NO_WAY_ACROSS)
    assert sum(1 for _ in root.rglob(".code-commit-txn/new-*")) == 17
    assert git(root, "status", "--porcelain", "-uall") == ""
    recover(Project(root))
    assert not list(root.rglob(".code-commit-txn"))


@pytest.mark.slow
def test_killed_at_every_call_of_a_repair(
    fast_path: Path, driver: Driver, trees: tuple[Tree, Tree], whole, say
) -> None:
    old, new = trees
    root = fast_path / "tree"
    fresh(root)
    calls = changing(driver.trace(fast_path / "trace", "apply", root))
    renames = [call for call in calls if call.name == "renameat" and "new-" in call.text]
    settle = next(call for call in calls if "settled.json" in call.text)
    cleaning = calls[calls.index(settle) + 6]
    tried = of = 0
    for start in (renames[len(renames) // 2], settle, cleaning):
        fresh(root)
        kill(driver, start, "apply", root)
        torn = fast_path / "torn"
        shutil.rmtree(torn, ignore_errors=True)
        subprocess.run(["cp", "-a", root, torn], check=True)  # hard links stay hard links
        points = changing(driver.trace(fast_path / "trace", "recover", root))
        assert read_tree(root) == (new if start is cleaning else old)
        of += len(points)
        for call in sample(points, 12, whole=whole):
            shutil.rmtree(root)
            subprocess.run(["cp", "-a", torn, root], check=True)
            kill(driver, call, "recover", root)
            recover(Project(root))
            assert read_tree(root) == (new if start is cleaning else old), (start, call)
            assert not needs_recovery(Project(root))
            tried += 1
    say(f"killed at {tried} of {of} calls of three repairs: 0 torn trees")


def killed_undos(driver: Driver, done: Path, trees: tuple[Tree, Tree], most: int, *, whole: bool) -> str:
    """Undo what was done in copies of a project, each killed at another call; return how many, and what came of them."""
    old, new = trees
    root = done.with_name("tree")
    subprocess.run(["cp", "-a", done, root], check=True)
    points = changing(driver.trace(done.with_name("trace"), "restore", root))
    outcomes: Counter[str] = Counter()
    for call in sample(points, most, whole=whole):
        shutil.rmtree(root)
        subprocess.run(["cp", "-a", done, root], check=True)
        kill(driver, call, "restore", root)
        recover(Project(root))
        tree = read_tree(root)
        assert tree in (old, new), call
        outcomes["undone" if tree == old else "not undone"] += 1
    return f"at {outcomes.total()} of {len(points)} calls, {dict(outcomes)},"


@pytest.mark.slow
def test_killed_at_every_call_of_an_undo(fast_path: Path, driver: Driver, trees: tuple[Tree, Tree], whole, say) -> None:
    done = fast_path / "done"
    project = fresh(done)
    apply_changes(verified(done, NEW_FILES), project, done / SNAPSHOT)
    say(f"killed {killed_undos(driver, done, trees, 16, whole=whole)} of an undo, 0 torn trees")


@pytest.mark.slow
def test_killed_while_files_and_folders_take_each_others_place(fast_path: Path, driver: Driver, whole, say) -> None:
    done = fast_path / "done"
    project = fresh(done)
    old = read_tree(done)
    for wanted in (
        {"run.sh": None, "half/stays.txt": None, "half/goes.txt": None, "gone/two/three.txt": None},
        {"run.sh/is/a folder": b"now\n", "half": b"is a file now\n", "gone/two": b"too\n"},
    ):
        apply_changes(verified(done, wanted), project, done / SNAPSHOT)
    new = read_tree(done)
    say(f"killed {killed_undos(driver, done, (old, new), 16, whole=whole)} while files became folders, 0 torn trees")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_at_every_call_leave_the_old_tree_or_the_new_one(
    name: str, fast_path: Path, driver: Driver, trees: tuple[Tree, Tree], whole, say
) -> None:
    old, new = trees
    root = fast_path / "tree"
    fresh(root)
    points = changing(driver.trace(fast_path / "trace", "apply", root))
    outcomes: Counter[str] = Counter()
    held = points.index(next(call for call in points if call.name == "renameat" and "journal.json.new" in call.text))
    for call in sample(points, 8, whole=whole):
        project = fresh(root)
        result = driver.inject(call, f"signal={name}", "apply", root)
        assert result.exit_code == 128 + signal.Signals[name], (call, result)
        tree = read_tree(root)
        if needs_recovery(project):  # it came while cleaning up after an interruption
            recover(project)
            tree = read_tree(root)
        assert tree == (old if points.index(call) < held else new), call
        outcomes["old" if tree == old else "new"] += 1
    say(f"{name} at {outcomes.total()} of {len(points)} calls: {dict(outcomes)}, 0 torn trees")


@pytest.mark.slow
def test_a_file_edited_after_the_crash_stops_the_repair(
    fast_path: Path, driver: Driver, trees: tuple[Tree, Tree]
) -> None:
    old, _ = trees
    root = fast_path / "tree"
    fresh(root)
    calls = changing(driver.trace(fast_path / "trace", "apply", root))
    fresh(root)
    kill(driver, next(call for call in calls if "settled.json" in call.text), "apply", root)
    (root / "src/a.py").write_bytes(b"edited by hand\n")
    before = read_tree(root)
    result = run_driver("recover", root)
    assert result.exit_code == 5
    assert result.error == "EditedSinceError"
    assert "src/a.py" in result.message
    assert read_tree(root) == before
    (root / "src/a.py").rename(fast_path / "mine.py")
    assert run_driver("recover", root).exit_code == 0
    assert read_tree(root) == old


def test_folders_removed_after_the_crash_come_back(fast_path: Path, driver: Driver, trees: tuple[Tree, Tree]) -> None:
    old, _ = trees
    root = fast_path / "tree"
    fresh(root)
    calls = changing(driver.trace(fast_path / "trace", "apply", root))
    project = fresh(root)
    kill(driver, next(call for call in calls if "settled.json" in call.text), "apply", root)
    (root / "src/deep/er/c.py").unlink()
    (root / "src/deep/er").rmdir()
    shutil.rmtree(root / "made")
    assert "put back" in str(recover(project))
    assert read_tree(root) == old


def test_a_damaged_journal_is_named_and_nothing_touched(fast_path: Path, driver: Driver) -> None:
    root = fast_path / "tree"
    fresh(root)
    calls = changing(driver.trace(fast_path / "trace", "apply", root))
    fresh(root)
    kill(driver, next(call for call in calls if "settled.json" in call.text), "apply", root)
    journal = root / "agent-config/.txn/journal.json"
    journal.write_bytes(journal.read_bytes()[:-40])
    before = read_tree(root)
    result = run_driver("recover", root)
    assert result.exit_code == 5
    assert "journal is damaged: it is not whole" in result.message
    assert read_tree(root) == before


def test_the_journal_of_an_older_version_has_a_checksum_and_is_read(
    fast_path: Path, driver: Driver, trees: tuple[Tree, Tree]
) -> None:
    old, _ = trees
    root = fast_path / "tree"
    fresh(root)
    calls = changing(driver.trace(fast_path / "trace", "apply", root))
    project = fresh(root)
    kill(driver, next(call for call in calls if "settled.json" in call.text), "apply", root)
    journal = root / "agent-config/.txn/journal.json"
    journal.write_text(json.dumps({"sha256": "0" * 64} | json.loads(journal.read_text())))
    assert "put back 20 of 20 files" in str(recover(project))
    assert read_tree(root) == old


def test_a_file_with_its_old_content_and_another_mode_is_not_the_old_one(tmp_path: Path):
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "a").chmod(0o755)
    step = FileStep("a", state_of(b"x\n", 0o644), state_of(b"x\n", 0o755))
    with FileTree(tmp_path) as tree:
        assert find(tree, step, ()) == "new"
        (tmp_path / "a").chmod(0o644)
        assert find(tree, step, ()) == "old"
