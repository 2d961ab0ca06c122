"""The rollup's file: written beside the one before, and put in its place at once when it is whole."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LEFT_BEHIND = re.compile(r"\.rollup-[0-9a-f]{12}\.new")
_PENDING = 512 * 1024
_MOST_PIECES = 512  # IOV_MAX is 1024 (limits.h of Linux and macOS)


class Output:
    """A file that grows at its end, and can be taken back to where it was. `size` counts what is pending too."""

    def __init__(self, file: int) -> None:
        self.size = 0
        self._file = file
        self._pending: list[bytes] = []
        self._written = 0

    def begin(self, size: int) -> int:
        """Return the place that `take_back` leads to, before about so many bytes are written."""
        if self.size - self._written + size > _PENDING or len(self._pending) > _MOST_PIECES:
            self.flush()
        return self.size

    def write(self, piece: bytes) -> None:
        self._pending.append(piece)
        self.size += len(piece)
        if self.size - self._written > 2 * _PENDING:
            self.flush()

    def take_back(self, place: int) -> None:
        """Drop everything from the place on."""
        if place < self._written:
            os.ftruncate(self._file, place)
            os.lseek(self._file, place, os.SEEK_SET)
            self._pending, self._written, self.size = [], place, place
        while self.size > place:
            self.size -= len(self._pending.pop())

    def flush(self) -> None:
        """Write what is pending, all of it: `os.writev` may write less without an error."""
        pieces, self._pending = self._pending, []
        while pieces:
            now = pieces[:_MOST_PIECES]
            done = os.writev(self._file, now)
            if done < sum(map(len, now)):
                rest = b"".join(now)[done:]
                now, pieces = [], [rest, *pieces[_MOST_PIECES:]]
            else:
                pieces = pieces[_MOST_PIECES:]
        self._written = self.size


@contextmanager
def replaced(folder: Path, name: str) -> Iterator[Output]:
    """Give the new file to write, mode 0600; leaving without an error puts it in place. Makes the folder (0700)."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    _clear(folder)
    new, file = _create(folder)
    try:
        os.fchmod(file, 0o600)  # whatever the umask took away
        output = Output(file)
        yield output
        output.flush()
        new.rename(folder / name)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
    finally:
        os.close(file)


def _create(folder: Path) -> tuple[Path, int]:
    """Make a file of an unused name and lock it, as a sign that somebody writes it."""
    while True:
        new = folder / f".rollup-{os.urandom(6).hex()}.new"
        file = os.open(new, _NEW_FILE, 0o600)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return new, file
        os.close(file)  # `_clear` of another process came between


def _clear(folder: Path) -> None:
    """Remove what killed processes left behind: the kernel took their locks away."""
    for path in folder.iterdir():
        if not _LEFT_BEHIND.fullmatch(path.name):
            continue
        with suppress(OSError):
            file = os.open(path, _OLD_FILE)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(file)
