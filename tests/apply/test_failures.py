"""An error at every file-changing call of an apply: the old tree and a message, or the new tree, and no left-over."""

import itertools
from collections import Counter
from pathlib import Path

import pytest
from apply_driver import SNAPSHOT, Tree, make_tree, read_tree
from kill_points import Call, Driver, Outcome, changing, needs_strace, sample

from code_commit.apply.recover import needs_recovery, recover
from code_commit.apply.snapshot import load_layers
from code_commit.project import Project

pytest_plugins = ["apply_fixtures"]

pytestmark = needs_strace

WORDS = {
    "ENOSPC": "the disk is full",
    "EIO": "input/output error",
    "EACCES": "permission denied",
    "EROFS": "read-only",
    "EDQUOT": "quota",
    "EXDEV": "cross-device link",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORDS)
def test_error_at_every_call_of_an_apply(name: str, fast_path: Path, driver: Driver, trees, whole, say) -> None:
    old, new = trees
    project = make_tree(fast_path / "traced")
    points = changing(driver.trace(fast_path / "trace", "apply", project.root))
    cleaning = points.index(next(call for call in points if "settled.json" in call.text)) + 2
    outcomes: Counter[str] = Counter()
    for number, call in enumerate(sample(points, 12, whole=whole)):
        project = make_tree(fast_path / f"tree-{number}")
        outcome = driver.inject(call, f"error={name}", "apply", project.root)
        if points.index(call) >= cleaning:
            recover(project)
        tree = read_tree(project.root)
        assert not needs_recovery(project), call
        if outcome.error is None:
            assert points.index(call) >= cleaning or may_go_on(name, call), (call, outcome)
            assert tree == new or left_a_folder(name, call, tree, new), call
            outcomes["new tree"] += 1
        else:
            check_failure(name, call, outcome)
            assert tree == old, (call, outcome)
            assert not (project.root / SNAPSHOT).exists()
            outcomes["old tree"] += 1
    assert outcomes["old tree"]
    say(f"{name} at {outcomes.total()} of {len(points)} calls of an apply: {dict(outcomes)}, 0 torn trees")


def check_failure(name: str, call: Call, outcome: Outcome) -> None:
    assert "\n" not in outcome.message
    if "agent-config/.lock" in call.text:
        assert (outcome.exit_code, outcome.error) == (2, "NotSetUpError")
        return
    assert (outcome.exit_code, outcome.error) == (5, "ApplyError"), (call, outcome)
    assert WORDS[name] in outcome.message, (call, outcome)
    assert "every file is as it was before" in outcome.message


def may_go_on(name: str, call: Call) -> bool:
    """The holder's name is a courtesy; a copy does for a hard link; an emptied folder may stay; files can be staged
    beside their targets."""
    return (
        (".lock" in call.text and call.name != "openat")
        or (name == "EACCES" and call.name == "linkat")
        or (name == "EACCES" and "AT_REMOVEDIR" in call.text)
        or name == "EXDEV"
    )


def left_a_folder(name: str, call: Call, tree: Tree, new: Tree) -> bool:
    return name == "EACCES" and "AT_REMOVEDIR" in call.text and all(path in tree for path in new)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["EIO", "ENOSPC"])
def test_a_second_error_while_putting_back_is_told_and_repaired_later(
    name: str, fast_path: Path, driver: Driver, trees, say
) -> None:
    old, _ = trees
    project = make_tree(fast_path / "traced")
    calls = driver.trace(fast_path / "trace", "apply", project.root)
    renames = [call for call in calls if call.name == "renameat" and "new-" in call.text]
    assert len(renames) == 17
    for number, call in enumerate(renames[1:]):
        project = make_tree(fast_path / f"tree-{number}")
        for_ever = Call(call.name, call.number, call.text)
        outcome = driver.inject(for_ever, f"error={name}", "apply", project.root, until="+")
        assert outcome.error == "ApplyError"
        assert "run code-commit again, it repairs the tree" in outcome.message, outcome
        assert needs_recovery(project)
        assert str(recover(project)).startswith("repaired an interrupted apply")
        assert read_tree(project.root) == old
        assert not load_layers(project.root / SNAPSHOT)
    say(f"{name} from each of {len(renames) - 1} renames on, the putting back included: repaired by the next start")


def test_interrupted_calls_are_made_again(fast_path: Path, driver: Driver, trees, whole) -> None:
    _, new = trees
    project = make_tree(fast_path / "traced")
    points = changing(driver.trace(fast_path / "trace", "apply", project.root))
    wanted = [call for call in points if call.name in {"write", "fsync", "openat", "fchmod", "ftruncate", "pwrite64"}]
    for number, call in zip(itertools.count(), sample(wanted, 8, whole=whole), strict=False):
        project = make_tree(fast_path / f"tree-{number}")
        outcome = driver.inject(call, "error=EINTR", "apply", project.root)
        assert outcome.error is None, (call, outcome)
        assert read_tree(project.root) == new


def test_a_project_without_agent_config_is_told_so(tmp_path: Path) -> None:
    assert recover(Project(tmp_path)) == ""
    assert not list(tmp_path.iterdir())
