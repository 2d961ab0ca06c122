"""The lock of a tree: one code-commit at a time, by `flock` on `agent-config/.lock`.

The kernel frees the lock when its holder ends. The file stays and names the last holder's process and the namespace of
its id, for messages alone: in two containers two processes have the same id.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from code_commit.errors import NotSetUpError
from code_commit.project import AGENT_CONFIG, Project

LOCK_NAME = ".lock"
TRIES = 5
PAUSE = 0.02  # seconds; `is_locked` of another process holds the lock for microseconds

_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HELD: set[tuple[int, int, int]] = set()  # the lock files that are held here, by thread, device and inode


@contextmanager
def lock_tree(project: Project) -> Iterator[None]:
    """Hold the tree's lock. Raises NotSetUpError at once when it is held, and names the holder's process."""
    lock = _take(project)
    file = _identity(os.fstat(lock))
    with suppress(OSError):  # a full disk: the lock holds without its holder's name
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d %s\n" % (os.getpid(), _namespace()), 0)
    _HELD.add(file)
    try:
        yield
    finally:
        _HELD.discard(file)
        os.close(lock)


@contextmanager
def locked(project: Project) -> Iterator[None]:
    """Hold the tree's lock unless this thread holds it already. Raises NotSetUpError as `lock_tree` does."""
    is_held = False
    with suppress(OSError):
        is_held = _identity((project.agent_config / LOCK_NAME).stat(follow_symlinks=False)) in _HELD
    with nullcontext() if is_held else lock_tree(project):
        yield


def is_locked(project: Project) -> int | None:
    """Return the process id of the lock's holder (0 when it has none here), None when the lock is free."""
    with suppress(OSError):
        lock = os.open(project.agent_config / LOCK_NAME, os.O_RDONLY | _OPEN)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            number, _, namespace = os.pread(lock, 64, 0).partition(b" ")
            return int(number) if number.isdigit() and namespace == b"%s\n" % _namespace() else 0
        finally:
            os.close(lock)
    return None


def _identity(state: os.stat_result) -> tuple[int, int, int]:
    return threading.get_ident(), state.st_dev, state.st_ino


def _take(project: Project) -> int:
    lock = _open(project)
    for _ in range(TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError as error:
            os.close(lock)
            message = (
                f"{AGENT_CONFIG}/{LOCK_NAME} cannot be locked: {error.strerror}; use a file system that supports locks"
            )
            raise NotSetUpError(message) from error
        else:
            return lock
    os.close(lock)
    holder = is_locked(project)
    name = f"process {holder}" if holder else "another process"
    raise NotSetUpError(f"{name} is running code-commit in this tree: wait for it to end, or stop it")


def _open(project: Project) -> int:
    try:
        return os.open(project.agent_config / LOCK_NAME, os.O_RDWR | os.O_CREAT | _OPEN, 0o600)
    except FileNotFoundError as error:
        raise NotSetUpError(f"{AGENT_CONFIG}/ is missing: `code-commit init` makes it") from error
    except OSError as error:
        message = f"{AGENT_CONFIG}/{LOCK_NAME} cannot be opened: {error.strerror}; it must be a file that you can write"
        raise NotSetUpError(message) from error


def _namespace() -> bytes:
    with suppress(OSError):
        return os.fsencode(Path("/proc/self/ns/pid").readlink())
    return b""  # no Linux: a process has one id
