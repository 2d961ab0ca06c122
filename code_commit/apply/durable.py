"""What a file has beside its name: its content, its owner, its mode and its extended attributes."""

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from io import FileIO

from code_commit.files import CHUNK

_KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access", "security.selinux")
_NO_SUCH_ATTRIBUTES = {errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENODATA, errno.ENOSYS}


def holds(file: FileIO, content: bytes) -> bool:
    """Tell whether the open file, as long as that, has this content, without a second copy of it in memory."""
    rest = memoryview(content)
    while rest:
        chunk = file.read(min(CHUNK, len(rest)))
        if not chunk or rest[: len(chunk)] != chunk:
            return False
        rest = rest[len(chunk) :]
    return True


def digest_of(file: FileIO) -> str:
    """Return the SHA-256 of the open file's content."""
    digest = sha256()
    while chunk := file.read(CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def set_owner_and_mode(
    file: int, uid: int, gid: int, mode: int, attributes: Mapping[str, bytes] | None = None
) -> tuple[int, int]:
    """Give the file its owner and group (-1: as it is), extended attributes and mode; return the owner and group.

    Only root gives files away, a user may choose among his groups. What is so already is left alone: some file
    systems know one owner and one mode for all.
    """
    now = os.fstat(file)
    owner, group = now.st_uid, now.st_gid
    if gid not in {-1, group}:
        with suppress(PermissionError):
            os.fchown(file, -1, gid)
            group = gid
    if uid not in {-1, owner} and os.geteuid() == 0:
        os.fchown(file, uid, -1)
        owner = uid
    if attributes:
        write_attributes(file, attributes)
    if attributes or stat.S_IMODE(now.st_mode) != mode or (owner, group) != (now.st_uid, now.st_gid):
        os.fchmod(file, mode)
    return owner, group


def read_attributes(file: int) -> Mapping[str, bytes]:
    """Return the extended attributes that a successor keeps, the access list among them."""
    if not hasattr(os, "listxattr"):
        return {}
    try:
        names = os.listxattr(file)
        return {name: os.getxattr(file, name) for name in names if name.startswith(_KEPT_ATTRIBUTES)}
    except OSError as error:
        if error.errno in _NO_SUCH_ATTRIBUTES:
            return {}
        raise


def write_attributes(file: int, attributes: Mapping[str, bytes]) -> None:
    """Set them, as far as this user and this file system can."""
    for name, value in attributes.items():
        try:
            os.setxattr(file, name, value)
        except OSError as error:
            if error.errno not in _NO_SUCH_ATTRIBUTES:
                raise
