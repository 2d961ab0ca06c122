"""The bare copies of repositories below a worker's folder, whose objects the clones of its tasks share.

A copy goes when the fleet has no task of it left; where the disk gets full, the least used go first.
"""

import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

_KEPT_FREE = 10 << 30  # bytes; a tenth of a smaller disk
_tasks: Counter[Path] = Counter()
"""How many tasks use a copy."""
_last_used: dict[Path, float] = {}
_guard = Lock()


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
