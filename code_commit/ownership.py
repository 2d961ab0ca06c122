"""Whose a file is: owner, group, permission bits, access list and attributes, kept where that is possible."""

import os
import stat
from contextlib import suppress
from typing import NamedTuple

_ACCESS_LIST, _INHERITED_LIST = "system.posix_acl_access", "system.posix_acl_default"
_OF_USER = "user."
_ANYBODY = -1
Attributes = tuple[tuple[str, bytes], ...]  # each name with its value; one of the names may be that of the access list


class Ownership(NamedTuple):
    """The user and the group of a file (-1: those of the process), and its attributes."""

    uid: int = _ANYBODY
    gid: int = _ANYBODY
    attributes: Attributes = ()

    def lost_in(self, now: "Ownership") -> tuple[str, ...]:
        """Return what another ownership lacks of this one, in words."""
        lost = ["owner"] if self.uid not in (_ANYBODY, now.uid) else []
        lost += ["group"] if self.gid not in (_ANYBODY, now.gid) else []
        lacking = (name for name, value in self.attributes if (name, value) not in now.attributes)
        return (*lost, *("access list" if name == _ACCESS_LIST else f"attribute {name}" for name in lacking))


def is_kept(name: str) -> bool:
    """Tell whether an attribute of this name belongs to a file's owner."""
    return name.startswith(_OF_USER) or name == _ACCESS_LIST


def read_attributes(file: int) -> Attributes:
    """Return the attributes of an open file that belong to its owner; none where the system has none."""
    with suppress(OSError, AttributeError):  # macOS has no os.listxattr
        return tuple((name, os.getxattr(file, name)) for name in sorted(os.listxattr(file)) if is_kept(name))
    return ()


def has_inherited_list(folder: int) -> bool:
    """Tell whether an open folder has an access list for the files that are made in it."""
    with suppress(OSError, AttributeError):
        return _INHERITED_LIST in os.listxattr(folder)
    return False


def set_attributes(file: int, attributes: Attributes) -> Attributes:
    """Set attributes of an open file, and return those that could be set."""
    done = []
    for name, value in attributes:
        with suppress(OSError, AttributeError):
            os.setxattr(file, name, value)
            done.append((name, value))
    return tuple(done)


def set_mode(file: int, mode: int, owner: tuple[int, int] | None) -> os.stat_result:
    """Set a file's or folder's permission bits and, where the process may, its owner and group, if they differ.

    Return its state before the bits.
    """
    now = os.fstat(file)
    for uid, gid in [owner, (_ANYBODY, owner[1])] if owner is not None else ():
        if uid in (_ANYBODY, now.st_uid) and gid in (_ANYBODY, now.st_gid):
            break
        with suppress(OSError):
            os.fchown(file, uid, gid)
            now = os.fstat(file)
    if stat.S_IMODE(now.st_mode) != mode:
        os.fchmod(file, mode)
    return now
