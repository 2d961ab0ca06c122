"""The bare copies of repositories below a worker's folder, whose objects the clones of its tasks share.

A copy goes when the fleet has no task of it left; where the disk gets full, the least used go first.
"""

import hashlib
import os
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import NamedTuple

from code_commit.errors import NotSetUpError
from code_commit.fleet.processes import TICK, TaskProcesses
from code_commit.fleet.tasks import FleetTask

_KEPT_FREE = 10 << 30  # bytes; a tenth of a smaller disk
_tasks: Counter[Path] = Counter()
"""How many tasks use a copy."""
_last_used: dict[Path, float] = {}
_guard = Lock()
_copying: defaultdict[Path, Lock] = defaultdict(Lock)


class Source(NamedTuple):
    """The place that a worker clones a repository from: a URL, a path that it sees, or the bytes of a git bundle.

    `problem` says why there is none.
    """

    url: str
    bundle: bytes | None = None
    problem: str = ""


def copy_path(place: Path, url: str) -> Path:
    """Return where the copy of a repository is."""
    return place / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.git"


@contextmanager
def used_copy(bare: Path) -> Iterator[Path]:
    """Keep others from removing a copy, there or not yet."""
    with _guard:
        _tasks[bare] += 1
    try:
        yield bare
    finally:
        with _guard:
            _tasks[bare] -= 1
            _last_used[bare] = time.monotonic()


def remove_copy(bare: Path) -> None:
    """Remove a copy, unless a task uses it."""
    old = bare.with_suffix(f".{os.urandom(4).hex()}")
    with _guard:
        if _tasks[bare] or not bare.exists():
            return
        bare.rename(old)
        _last_used.pop(bare, None)
    shutil.rmtree(old, ignore_errors=True)


def _is_full(place: Path) -> bool:
    disk = shutil.disk_usage(place)
    return disk.free < min(_KEPT_FREE, disk.total // 10)


def make_room(place: Path, is_full: Callable[[Path], bool] = _is_full) -> None:
    """Remove copies that no task uses, the least used first, while the disk of a folder is full."""
    with _guard:
        copies = sorted(_last_used, key=_last_used.__getitem__)
    for bare in copies:
        if is_full(place):
            remove_copy(bare)


def find_commit(task: FleetTask, source: Source, bare: Path, processes: TaskProcesses) -> str:
    """Return the task's commit in the worker's copy of the repository, made by the first task that needs it.

    Raises NotSetUpError.
    """
    while not _copying[bare].acquire(timeout=TICK):
        processes.check()
    try:
        if not bare.exists():
            make_room(bare.parent)
            _copy(task, source, bare, processes)
        question = ("rev-parse", "-q", "--verify", "--end-of-options")
        try:
            return processes.git(bare, *question, f"{task.commit}^{{commit}}")
        except NotSetUpError:
            processes.git(bare, "fetch", "-q", "origin", task.commit)
            return processes.git(bare, *question, "FETCH_HEAD^{commit}")
    finally:
        _copying[bare].release()


def _copy(task: FleetTask, source: Source, bare: Path, processes: TaskProcesses) -> None:
    if source.problem:
        raise NotSetUpError(source.problem)
    refs = "--mirror" if task.path else "--bare"  # a host has refs of every pull request as well
    with TemporaryDirectory(dir=bare.parent, prefix="copy-", ignore_cleanup_errors=True) as folder:
        url, copy = source.url, Path(folder, "copy")
        if source.bundle is not None:
            url = f"{folder}/bundle"
            Path(url).write_bytes(source.bundle)
        processes.git(bare.parent, "clone", "-q", refs, "--", url, str(copy))
        copy.rename(bare)
