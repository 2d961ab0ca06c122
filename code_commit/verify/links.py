"""Which inodes are protected: what is reached by another name (link, bind mount) is the same file."""

import os
from collections.abc import Collection

from code_commit.project import Project
from code_commit.protected import PROTECTED, PROTECTED_ANYWHERE
from code_commit.verify.protected import GuardedFolder

Inode = tuple[int, int]


def find_protected_inodes(project: Project, guarded: Collection[GuardedFolder]) -> frozenset[Inode]:
    """Return the inodes of the protected entries of the root and of the guarded folders, where they exist."""
    root = os.fsencode(project.root)
    names = {*PROTECTED, *PROTECTED_ANYWHERE}
    paths = [*(root + b"/" + name.encode() for name in names), *(os.fsencode(folder.path) for folder in guarded)]
    return frozenset(filter(None, map(_inode, paths))) - {_inode(root)}


def _inode(path: bytes) -> Inode | None:
    """Links are followed: what a protected name leads to is as critical as the name."""
    try:
        status = os.stat(path)  # noqa: PTH116 - of bytes
    except OSError:
        return None
    return (status.st_dev, status.st_ino)
