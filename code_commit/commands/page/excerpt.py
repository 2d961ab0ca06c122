"""Parts of files that may be of any size: their beginning and their end."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A file's first and last bytes and how many between them were not read. All of it is `head` when it was short."""

    head: bytes
    left_out: int = 0
    tail: bytes = b""


def read_excerpt(path: Path, most_head: int, most_tail: int) -> Excerpt:
    """Read the first and the last bytes of a regular file. Raises OSError, also for a link, a FIFO or a device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no regular file")
        if status.st_size <= most_head + most_tail:
            return Excerpt(file.read(most_head + most_tail))
        head = file.read(most_head)
        file.seek(status.st_size - most_tail)
        return Excerpt(head, status.st_size - most_head - most_tail, file.read(most_tail))
