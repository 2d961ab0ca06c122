"""Where other file systems, or other parts of the same one, are mounted inside the project (Linux: mountinfo)."""

import os
import re
from pathlib import Path

_MOUNT_TABLE = Path("/proc/self/mountinfo")


def mount_points_below(root: Path) -> frozenset[bytes]:
    """Return the mount points inside the root, relative to it. Empty where the system has no such table.

    A bind mount of the same file system shows in no device number, only here (proc(5), field 5).
    """
    prefix = os.fsencode(root).rstrip(b"/") + b"/"
    try:
        table = _MOUNT_TABLE.read_bytes()
    except OSError:
        return frozenset()
    points = (_unescaped(line.split(b" ")[4]) for line in table.splitlines())
    return frozenset(point.removeprefix(prefix) for point in points if point.startswith(prefix))


def _unescaped(point: bytes) -> bytes:
    if b"\\" not in point:
        return point
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), point)
