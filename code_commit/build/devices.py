"""The devices in the sandbox of root's build: all but those that lead around its mounts.

A user's build is held by the mode of each device; root may open them all.
"""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from code_commit.regex import regex

_MADE_ANEW = "null zero full random urandom tty console ptmx pts fd stdin stdout stderr core"
"""Bubblewrap makes these itself."""

_LEADS_AROUND = regex(
    r"k?mem|port|cpu|dax.*|uio\d+|vfio|snapshot|mapper|(btrfs|loop)-control|autofs|input|uinput|uhid|userio"
    r"|tty[1-9]\d*|vcs.*"
)
"""Devices that sysfs does not tell: memory, makers of disks and mounts, a hand on another program's keyboard, other
terminals than the one in front, and what stands on a screen."""


@cache
def device_mounts(folder: Path = Path("/dev"), sysfs: Path = Path("/sys")) -> tuple[str, ...]:
    """Return bubblewrap's arguments for what it does not make of /dev itself. A device that comes later stays out."""
    below = _mounts_below(folder, sysfs, _above_disks(sysfs), {*_MADE_ANEW.split(), "shm"})
    return ("--dev-bind-try", str(folder / "shm"), str(folder / "shm"), *below)


def _mounts_below(folder: Path, sysfs: Path, above_disks: Collection[Path], but: Collection[str]) -> Iterator[str]:
    with suppress(OSError):
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - most are left out
            if name in but or _LEADS_AROUND.fullmatch(name):
                continue
            path = folder / name
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) and not path.is_mount():
                yield from _mounts_below(path, sysfs, above_disks, ())
            elif stat.S_ISLNK(mode):
                yield from ("--symlink", str(path.readlink()), str(path))
            elif stat.S_ISDIR(mode) or (stat.S_ISCHR(mode) and not _reaches_a_disk(path, sysfs, above_disks)):
                yield from ("--dev-bind-try", str(path), str(path))


def _above_disks(sysfs: Path) -> set[Path]:
    """Return the places of all disks among the kernel's devices, and of what they are parts of."""
    disks = [_target(disk) for disk in (sysfs / "class/block").glob("*")]
    return {place for disk in disks for place in (disk, *disk.parents)}


def _reaches_a_disk(path: Path, sysfs: Path, above_disks: Collection[Path]) -> bool:
    """Tell whether a device, or what it belongs to, has a disk: as `sg`, `bsg`, `nvme`, `mtd` and raw USB have."""
    number = path.stat().st_rdev
    place = _target(sysfs / f"dev/char/{os.major(number)}:{os.minor(number)}")
    return place in above_disks or _target(place / "device") in above_disks


def _target(link: Path) -> Path:
    """Return the target of a link of sysfs, in which is no other link; `Path.resolve` looks at each folder of it."""
    with suppress(OSError):
        return Path(os.path.normpath(link.parent / link.readlink()))
    return link
