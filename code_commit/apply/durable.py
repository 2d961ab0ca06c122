"""Bytes that stay: files written in full and synced, folders synced, many of both in one call.

Source of the rules: a file's data needs fsync before the rename that publishes it, its name needs fsync of the folder.
`syncfs` gives the same promise for a whole file system; it waits, and since Linux 5.8 it reports failed write-back of
anything written after its descriptor was opened (syncfs(2)). Elsewhere every file gets its own fsync.
"""

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

CHUNK = 1 << 20
SYNC_AT_ONCE = 64  # from this many files on one `syncfs` costs less than an fsync each, also beside other writers

_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}  # some network and FUSE file systems
_KEPT_ATTRIBUTES = ("user.", "system.posix_acl_access", "security.selinux")
_NO_SUCH_ATTRIBUTES = {errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENODATA, errno.ENOSYS}


def write_all(file: int, content: bytes) -> None:
    """Write every byte: `os.write` may write fewer without an error, at a size limit for example."""
    rest = memoryview(content)
    while rest:
        written = os.write(file, rest[:CHUNK])
        if written == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest = rest[written:]


def read_all(file: int) -> bytes:
    """Return the content from the descriptor's position on."""
    chunks = []
    while chunk := os.read(file, CHUNK):
        chunks.append(chunk)
    return b"".join(chunks)


def holds(file: int, content: bytes) -> bool:
    """Tell whether the open file, as long as that, has this content, without a second copy of it in memory."""
    rest = memoryview(content)
    while rest:
        chunk = os.read(file, min(CHUNK, len(rest)))
        if not chunk or rest[: len(chunk)] != chunk:
            return False
        rest = rest[len(chunk) :]
    return True


def digest_of(file: int) -> str:
    """Return the SHA-256 of the open file's content."""
    from hashlib import sha256

    digest = sha256()
    while chunk := os.read(file, CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def write_new_file(
    folder: int, name: str, content: bytes, *, sync: bool, finish: Callable[[int], None] | None = None
) -> None:
    """Make a file that is not there yet, let `finish` set its mode (else 0600) and owner, and sync it if asked to."""
    file = os.open(name, NEW_FILE, 0o600, dir_fd=folder)
    try:
        write_all(file, content)
        if finish is not None:
            finish(file)
        if sync:
            os.fsync(file)
    finally:
        os.close(file)


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


def sync_folder(folder: int) -> None:
    """Make the folder's names durable; on macOS down to the medium, with all that was synced before."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        try:
            fcntl.fcntl(folder, fcntl.F_FULLFSYNC)
        except OSError:
            pass  # not every file system has it
        else:
            return
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def find_file_system_sync() -> Callable[[int], None] | None:
    """Return the call that syncs the whole file system of a descriptor, None where its errors would go unreported."""
    if sys.platform != "linux" or _kernel_version() < (5, 8):
        return None
    try:
        import ctypes

        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (ImportError, OSError, AttributeError):
        return None

    def sync(folder: int) -> None:
        if syncfs(folder) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return sync


def _kernel_version() -> tuple[int, int]:
    major, minor, *_ = os.uname().release.split(".")
    return int(major), int("".join(char for char in minor if char.isdigit()) or 0)
