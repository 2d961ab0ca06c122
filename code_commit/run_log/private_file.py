"""A file of the log, which only its owner can read."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from code_commit.errors import LogError


def create_private(path: Path) -> "PrivateFile":
    """Create a file that only its owner can read, in the place of whatever has its name. Raises LogError."""
    try:
        path.unlink(missing_ok=True)
        return PrivateFile(
            path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        )
    except OSError as error:
        raise LogError(path, error) from error


class PrivateFile:
    """A file of the log, open for writing; nothing is buffered, so that the file shows what has happened."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)

    def write(self, data: bytes) -> None:
        """Write all of it: one `os.write` may take less without an error, at a file-size limit or a signal."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise LogError(self._path, error) from error

    def take_back(self, count: int) -> None:
        """Drop the last bytes of the file, as far as it has so many."""
        with suppress(OSError):
            os.ftruncate(self._descriptor, max(0, os.fstat(self._descriptor).st_size - count))
            os.lseek(self._descriptor, 0, os.SEEK_END)
