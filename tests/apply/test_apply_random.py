"""Random trees, random changes, a kill at a random moment: always the old tree or the new one, and undo finds the way back.

Python tells its audit hooks of every call that makes, moves or removes a name, right before the call: a forked child
kills itself there.
"""

import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from apply_driver import Tree, make_tree, read_tree, verified
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kill_points import MEMORY

from code_commit.apply.recover import needs_recovery, recover
from code_commit.apply.restore import restore
from code_commit.apply.transaction import apply_changes
from code_commit.project import Project

pytest_plugins = ["apply_fixtures"]

EVENTS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod", "os.chown", "os.truncate", "open"}
NAMES = st.sampled_from(["a", "b", "c", "ü d"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
CONTENTS = st.sampled_from([b"", b"1\n", b"#!/bin/sh\n", b"\xff\xfe", b"x" * 5000]) | st.binary(max_size=8)
MODES = st.sampled_from([0o644, 0o755, 0o600, 0o400])
FOLDER_MODES = st.sampled_from([0o755, 0o700, 0o750])
Wanted = dict[str, bytes | None]


def without_nesting(paths: dict[str, object]) -> bool:
    return not any(one != other and other.startswith(f"{one}/") for one in paths for other in paths)


TREES = st.dictionaries(PATHS, st.tuples(MODES, CONTENTS), max_size=8).filter(without_nesting)
FOLDERS = st.dictionaries(PATHS, FOLDER_MODES, max_size=3)


@st.composite
def plans(draw: Callable[..., object]) -> tuple[dict, dict, list[Wanted]]:
    """A tree, and up to three sets of changes that can be applied to it one after the other."""
    files = draw(TREES)
    folders = {path: mode for path, mode in draw(FOLDERS).items() if without_nesting({**files, path: 0})}
    folders = {path: mode for path, mode in folders.items() if path not in files}
    now = dict.fromkeys(files)
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        wanted: Wanted = {}
        for path in draw(st.lists(st.sampled_from(sorted(now)), unique=True, max_size=6)) if now else []:
            wanted[path] = draw(st.none() | CONTENTS)
        for path, content in draw(st.dictionaries(PATHS, CONTENTS, max_size=6)).items():
            others = {other: 0 for other in (*now, *wanted) if other != path}
            if without_nesting({**others, path: 0}) and not any(folder.startswith(path) for folder in folders):
                wanted[path] = content
        now = {path: None for path in {**now, **wanted} if wanted.get(path, b"") is not None}
        steps.append(wanted)
    return files, folders, steps


def killed_at(number: int, action: Callable[[], object]) -> bool:
    """Do it in a child that kills itself before its `number`-th change; tell whether it came that far."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: the child only uses this one
        child = os.fork()
    if child == 0:
        left = [number]

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            if event not in EVENTS or (event == "open" and not int(str(arguments[2] or 0)) & os.O_CREAT):
                return
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            action()
        except BaseException:  # noqa: BLE001 - a child of the tests must not go on with them
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) in {0, -signal.SIGKILL}
    return os.WIFSIGNALED(status)


RENAMES = {
    "src/a.py": None,
    "src/A.py": b"a = 1\n",
    "dup.txt": None,
    "dup.txt/x/y": b"a = 1\n",
    "gone/one.txt": None,
    "gone/two/three.txt": None,
    "Gone/one.txt": b"1\n",
}


@pytest.mark.slow
def test_renames_killed_at_each_moment() -> None:
    """Of case alone, of a folder's case, and of a file that becomes a folder; back and forth."""
    moments = 0
    for undone in (False, True):
        is_killed = True
        while is_killed:
            folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
            try:
                project = make_tree(folder / "tree")
                snapshot, old = project.logs / "one/snapshot", read_tree(folder / "tree")
                changes = verified(project.root, RENAMES)
                if undone:
                    apply_changes(changes, project, snapshot)
                before = read_tree(project.root)
                act = partial(restore, snapshot, project, project.logs / "two/snapshot")
                is_killed = killed_at(moments, act if undone else partial(apply_changes, changes, project, snapshot))
                recover(project)
                now = read_tree(project.root)
                assert now == before or (now == old) is undone
                if list(snapshot.glob("changes-*.json")) and now != old:
                    restore(snapshot, project, project.logs / "three/snapshot")
                assert read_tree(project.root) == old
                moments += 1
            finally:
                shutil.rmtree(folder)
        assert moments > 20
        moments = 0


@pytest.mark.slow
def test_random_plans_killed_at_random_moments(whole, say) -> None:
    counts = {"plans": 0, "killed": 0, "old": 0, "new": 0}

    @settings(max_examples=1000 if whole else 30, suppress_health_check=list(HealthCheck))
    @given(plans(), st.integers(0, 60), st.integers(0, 30), st.data())
    def check(plan: tuple[dict, dict, list[Wanted]], moment: int, second: int, data: st.DataObject) -> None:
        folder = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
        try:
            run(folder, plan, moment, second)
        finally:
            shutil.rmtree(folder)

    def run(folder: Path, plan: tuple[dict, dict, list[Wanted]], moment: int, second: int) -> None:
        files, folders, steps = plan
        root = folder / "tree"
        project = make_tree(root, files, folders)
        snapshot = project.logs / "one/snapshot"
        states = [read_tree(root)]
        for wanted in steps:
            states.append(apply_with_a_kill(project, wanted, snapshot, moment, second, states[-1]))
        if list(snapshot.glob("changes-*.json")):
            if killed_at(moment, lambda: restore(snapshot, project, project.logs / "two/snapshot")):
                killed_at(second, lambda: recover(project))
                recover(project)
                assert read_tree(root) in (states[0], states[-1])
            restore(snapshot, project, project.logs / "three/snapshot")
        assert read_tree(root) == states[0]
        counts["plans"] += 1

    def apply_with_a_kill(
        project: Project, wanted: Wanted, snapshot: Path, moment: int, second: int, old: Tree
    ) -> Tree:
        dead = killed_at(moment, lambda: apply_changes(verified(project.root, wanted), project, snapshot))
        if dead:
            counts["killed"] += 1
            killed_at(second, lambda: recover(project))
            recover(project)
        tree = read_tree(project.root)
        if dead and tree == old:
            counts["old"] += 1
            apply_changes(verified(project.root, wanted), project, snapshot)
            tree = read_tree(project.root)
        else:
            counts["new"] += 1
        contents = {path: content for path, (_, content) in tree.items() if content is not None}
        expected = {path: content for path, (_, content) in old.items() if content is not None} | wanted
        assert contents == {path: content for path, content in expected.items() if content is not None}
        assert not needs_recovery(project)
        return tree

    check()
    say(f"random: {counts}, 0 torn trees, every undo exact")
