"""Which inodes are protected: what is reached by another name (link, hard link, bind mount) is the same file."""

import os
import stat
import sys
from collections.abc import Collection, Iterator
from functools import cached_property

from code_commit.project import AGENT_CONFIG, Project
from code_commit.protected import PROTECTED, PROTECTED_ANYWHERE
from code_commit.verify.ignore_files import folders_of
from code_commit.verify.protected import GuardedFolder

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


class ProtectedLinks:
    """The inodes of protected files that a hard link may lead to; looked for when a file has several links.

    Looked through are agent-config, the git directory with its hooks, and the folders that the file lies in.
    """

    def __init__(self, project: Project) -> None:
        self._root = os.fsencode(project.root)
        self._project = project
        self._named: dict[bytes, frozenset[Inode]] = {}

    def hold(self, inode: Inode, path: bytes) -> bool:
        """Tell whether the file at `path` (from the root) is a hard link to a protected one."""
        return inode in self._everywhere or any(inode in self._named_in(folder) for folder in folders_of([path]))

    @cached_property
    def _everywhere(self) -> frozenset[Inode]:
        folders = [self._root + b"/" + name for name in (AGENT_CONFIG.encode(), b".git")]
        git = self._project.git
        if git is not None:
            git_folders = (git.git_dir, git.common_dir, git.common_dir / "info", git.hooks_dir)
            folders += [os.fsencode(folder) for folder in git_folders if folder != self._project.root]
        return frozenset(inode for folder in folders for inode in _inodes_in(folder))

    def _named_in(self, folder: bytes) -> frozenset[Inode]:
        if folder not in self._named:
            paths = (b"/".join((self._root, folder, name.encode())) for name in PROTECTED_ANYWHERE)
            self._named[folder] = frozenset(filter(None, map(_inode, paths)))
        return self._named[folder]


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
