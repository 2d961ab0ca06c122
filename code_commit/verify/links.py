"""Which inodes are protected: what is reached by another name (link, hard link, bind mount) is the same file."""

import os
import stat
import sys
from collections.abc import Collection, Iterator

from code_commit.project import AGENT_CONFIG, Project
from code_commit.verify.ignore_files import folders_of
from code_commit.verify.protected import PROTECTED, PROTECTED_ANYWHERE, GuardedFolder

Inode = tuple[int, int]

_FS_IOC_GETFLAGS = 0x80086601
_IMMUTABLE_OR_APPEND = 0x10 | 0x20
"""FS_IMMUTABLE_FL and FS_APPEND_FL of Linux's uapi/linux/fs.h; the request is `_IOR('f', 1, long)` of 64 bits."""


def find_protected_inodes(project: Project, guarded: Collection[GuardedFolder]) -> frozenset[Inode]:
    """Return the inodes of the protected entries of the root and of the guarded folders, where they exist."""
    root = os.fsencode(project.root)
    names = {*PROTECTED, *PROTECTED_ANYWHERE}
    paths = [*(root + b"/" + name.encode() for name in names), *(os.fsencode(folder.path) for folder in guarded)]
    return frozenset(filter(None, map(_inode, paths))) - {_inode(root)}


def find_protected_links(project: Project, path: bytes) -> frozenset[Inode]:
    """Return the inodes of protected files that a hard link at `path` may lead to. For files with several links.

    Looked through are agent-config, the git directory with its hooks, and the folders that the path lies in.
    """
    root = os.fsencode(project.root)
    folders = [root + b"/" + name for name in (AGENT_CONFIG.encode(), b".git")]
    if project.git is not None:
        git_folders = (
            project.git.git_dir,
            project.git.common_dir,
            project.git.common_dir / "info",
            project.git.hooks_dir,
        )
        folders += [os.fsencode(folder) for folder in git_folders if folder != project.root]
    above = [root, *(root + b"/" + folder for folder in folders_of([path]) if folder)]
    named = (_inode(folder + b"/" + name.encode()) for folder in above for name in PROTECTED_ANYWHERE)
    return frozenset(filter(None, named)).union(*map(_inodes_in, folders))


def _inode(path: bytes) -> Inode | None:
    """Links are followed: what a protected name leads to is as critical as the name."""
    try:
        status = os.stat(path)  # noqa: PTH116 - of bytes
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def _inodes_in(folder: bytes) -> Iterator[Inode]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.path for entry in entries]
    except OSError:
        return
    yield from filter(None, map(_inode, names))


def is_immutable(descriptor: int, status: os.stat_result) -> bool:
    """Tell whether the file's flags forbid to replace it (`chattr +i`, `+a` on Linux, `chflags` on BSD and macOS)."""
    flags = getattr(status, "st_flags", None)
    if flags is not None:
        return bool(flags & (stat.UF_IMMUTABLE | stat.UF_APPEND | stat.SF_IMMUTABLE | stat.SF_APPEND))
    if sys.platform != "linux":
        return False
    import fcntl

    buffer = bytearray(8)
    try:
        fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, buffer)
    except OSError:
        return False
    return bool(int.from_bytes(buffer[:4], sys.byteorder) & _IMMUTABLE_OR_APPEND)
