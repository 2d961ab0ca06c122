"""One code-commit at a time in a tree."""

import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from apply_driver import NEW_FILES, SNAPSHOT, make_tree, read_tree, verified
from kill_points import driver_command, driver_environment

from code_commit.apply.lock import is_locked, lock_tree
from code_commit.apply.recover import needs_recovery, recover
from code_commit.apply.restore import restore
from code_commit.apply.transaction import apply_changes
from code_commit.errors import NotSetUpError
from code_commit.project import Project


def start(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        driver_command(*arguments), env=driver_environment(), stdout=subprocess.PIPE, text=True, bufsize=1
    )


def test_the_lock_makes_one_file_in_agent_config_and_nothing_else(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.agent_config.mkdir()
    with lock_tree(project):
        assert is_locked(project) == os.getpid()
    assert is_locked(project) is None
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["agent-config", "agent-config/.lock"]
    assert project.agent_config.joinpath(".lock").stat().st_mode & 0o777 == 0o600


def test_asking_makes_nothing(tmp_path: Path) -> None:
    assert is_locked(Project(tmp_path)) is None
    (tmp_path / "agent-config").mkdir()
    assert is_locked(Project(tmp_path)) is None
    assert not needs_recovery(Project(tmp_path))
    assert [path.name for path in tmp_path.rglob("*")] == ["agent-config"]


def test_without_agent_config_init_is_named(tmp_path: Path) -> None:
    missing = pytest.raises(NotSetUpError, match="agent-config/ is missing: `code-commit init` makes it")
    with missing, lock_tree(Project(tmp_path)):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_lock_that_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    project = Project(tmp_path)
    project.agent_config.mkdir()
    lock = project.agent_config / ".lock"
    if kind == "link":
        lock.symlink_to(tmp_path / "victim")
    else:
        lock.mkdir()
    with pytest.raises(NotSetUpError, match=r"agent-config/\.lock"), lock_tree(project):
        pass
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("words", ["", "x ", "1e3 ", "- ", "9" * 80, "\0" * 80])
def test_a_damaged_lock_file_names_nobody(tmp_path: Path, words: str) -> None:
    project = Project(tmp_path)
    project.agent_config.mkdir()
    lock = project.agent_config / ".lock"
    with lock_tree(project):
        lock.write_bytes(words.encode() + lock.read_bytes().partition(b" ")[2])
        assert is_locked(project) == 0
        with (
            pytest.raises(NotSetUpError, match="another process is running code-commit in this tree"),
            lock_tree(project),
        ):
            pass


def test_the_holder_is_named_and_its_death_frees_the_tree(tmp_path: Path) -> None:
    project = make_tree(tmp_path / "tree")
    before = read_tree(project.root)
    with start("hold", project.root) as holder:
        assert holder.stdout.readline() == "held\n"
        assert is_locked(project) == holder.pid
        with pytest.raises(NotSetUpError, match=f"process {holder.pid} is running code-commit in this tree"):
            apply_changes(verified(project.root, NEW_FILES), project, project.root / SNAPSHOT)
        (project.agent_config / ".txn").mkdir()
        with pytest.raises(NotSetUpError, match=f"process {holder.pid} "):
            recover(project)
        with pytest.raises(NotSetUpError, match=f"process {holder.pid} "):
            restore(project.root / SNAPSHOT, project, project.root / SNAPSHOT)
        (project.agent_config / ".txn").rmdir()
        assert read_tree(project.root) == before
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert is_locked(project) is None
        with lock_tree(project):
            assert is_locked(project) == os.getpid()


def test_all_of_it_works_under_the_lock_of_the_caller(tmp_path: Path) -> None:
    project = make_tree(tmp_path / "tree")
    before = read_tree(project.root)
    with lock_tree(project):
        assert recover(project) == ""
        apply_changes(verified(project.root, NEW_FILES), project, project.root / SNAPSHOT)
        restore(project.root / SNAPSHOT, project, project.root / "agent-config/logs/two/snapshot")
        assert is_locked(project) == os.getpid()
    assert read_tree(project.root) == before


def test_the_lock_alone_says_who_holds_it(tmp_path: Path) -> None:
    """As in two containers, where each of the two processes may have the id 1."""
    project = make_tree(tmp_path / "tree")
    before = read_tree(project.root)
    with start("hold", project.root) as holder:
        assert holder.stdout.readline() == "held\n"
        project.agent_config.joinpath(".lock").write_text(f"{os.getpid()} pid:[1]\n")
        (project.agent_config / ".txn").mkdir()
        with pytest.raises(NotSetUpError, match="another process is running code-commit in this tree"):
            recover(project)
        (project.agent_config / ".txn").rmdir()
        with pytest.raises(NotSetUpError, match="is running code-commit in this tree"):
            apply_changes(verified(project.root, NEW_FILES), project, project.root / SNAPSHOT)
        holder.kill()
    assert read_tree(project.root) == before


def test_another_thread_does_not_hold_the_lock(tmp_path: Path) -> None:
    project = make_tree(tmp_path / "tree")
    before = read_tree(project.root)
    with lock_tree(project), ThreadPoolExecutor(1) as thread:
        applied = thread.submit(apply_changes, verified(project.root, NEW_FILES), project, project.root / SNAPSHOT)
        with pytest.raises(NotSetUpError, match=f"process {os.getpid()} is running code-commit in this tree"):
            applied.result()
    assert read_tree(project.root) == before


def test_a_lock_file_that_somebody_removed_is_no_lock(tmp_path: Path) -> None:
    project = make_tree(tmp_path / "tree")
    with lock_tree(project):
        (project.agent_config / ".lock").unlink()
        with start("hold", project.root) as holder:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(NotSetUpError, match=f"process {holder.pid} is running code-commit in this tree"):
                apply_changes(verified(project.root, NEW_FILES), project, project.root / SNAPSHOT)
            holder.kill()


def test_a_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    project = make_tree(tmp_path / "tree")
    with lock_tree(project), subprocess.Popen(["sleep", "30"], close_fds=False) as child:
        pass_on = child.pid
        os.kill(pass_on, 0)
        child.kill()
    with lock_tree(project):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        assert is_locked(project) is None
    finally:
        child.kill()
        child.wait()


def test_questions_never_make_a_start_fail(tmp_path: Path) -> None:
    project = make_tree(tmp_path / "tree")
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            is_locked(project)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for _ in range(200):
            with lock_tree(project):
                pass
    finally:
        done.set()
        thread.join()


def test_many_at_once_apply_one_after_the_other_or_not_at_all(tmp_path: Path) -> None:
    project = make_tree(tmp_path / "tree")
    expected = make_tree(tmp_path / "expected")
    apply_changes(verified(expected.root, NEW_FILES), expected, expected.root / SNAPSHOT)
    runs = [start("apply", project.root) for _ in range(6)]
    codes = []
    for run in runs:
        run.communicate()
        codes.append(run.returncode)
    assert codes.count(0) >= 1
    assert set(codes) <= {0, 2, 5}
    assert read_tree(project.root) == read_tree(expected.root)
    assert not needs_recovery(project)
