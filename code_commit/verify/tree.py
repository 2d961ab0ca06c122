"""What stands in the tree where a response wants to write: looked at from the root down, following no link.

Nothing that could block is opened. The rules, some of them met on the way down (`descent`):

    link               a component is a symbolic link
    not-a-file         the target is a folder, a FIFO, a socket or a device; or a component of its path is a file
    other-file-system  a folder of the path, or the target, is mounted from elsewhere
    other-repository   a folder of the path is the root of another git repository, a bare one too
    same-file          an existing entry has the same name but for case or normalisation
    protected          a folder or file of the path is, by its inode, a protected one
    unreadable         the original, which undo needs, cannot be read
"""

import os
import stat
from collections.abc import Collection, Iterable

from code_commit.changes import OriginalFile
from code_commit.project import Project
from code_commit.verify.descent import KINDS, Folder, Stop, Surroundings, check_spelling, descent, enter
from code_commit.verify.paths import Fault
from code_commit.verify.protected import GuardedFolder

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK = 1 << 20


def look_at_targets(
    paths: Iterable[str], project: Project, guarded: Collection[GuardedFolder], submodules: Collection[str]
) -> tuple[dict[str, OriginalFile | None], dict[str, Fault]]:
    """Return what each path holds now (None: nothing yet), and the rule that each path breaks that cannot be written.

    The paths have passed the string rules. No file is written, no link followed, no FIFO waited for.
    """
    originals: dict[str, OriginalFile | None] = {}
    faults: dict[str, Fault] = {}
    closed: dict[bytes, Fault] = {}
    with descent(project, guarded, submodules) as (way, surroundings):
        for path in sorted(paths, key=lambda path: path.replace("/", "\0")):
            *folders, name = path.encode().split(b"/")
            try:
                enter(way, folders, surroundings, closed)
                originals[path] = _read_target(way[-1], name, surroundings)
            except Stop as stop:
                faults[path] = stop.fault
            except OSError as error:
                faults[path] = ("unreadable", f"cannot be looked at ({error.strerror}): choose another path")
    return originals, faults


def _read_target(folder: Folder, name: bytes, surroundings: Surroundings) -> OriginalFile | None:
    if folder.descriptor is None:
        return None
    path = folder.path + b"/" + name if folder.path else name
    if path in surroundings.submodules:
        raise Stop("other-repository", "is a submodule: change files of this repository alone")
    try:
        status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise Stop("link", "is a symbolic link: name the file that it points to, if that is inside the project")
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise Stop("not-a-file", f"is {kind}, not a file: choose another path")
    if (status.st_dev, status.st_ino) in surroundings.protected_inodes:
        raise Stop("protected", "is a protected file by another name: choose another path")
    if path in surroundings.mount_points:
        raise Stop("other-file-system", "is mounted from elsewhere: choose another path")
    check_spelling(folder.descriptor, name, status)
    return _read_original(folder.descriptor, name, status)


def _read_original(folder: int, name: bytes, status: os.stat_result) -> OriginalFile:
    file = os.open(name, _READ, dir_fd=folder)
    try:
        now = os.fstat(file)
        if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino) or not stat.S_ISREG(now.st_mode):
            raise Stop("unreadable", "changed while it was looked at: send the file again")
        content = _read_whole(file, now.st_size)
    finally:
        os.close(file)
    return OriginalFile(content, stat.S_IMODE(now.st_mode), now.st_dev, now.st_ino, now.st_mtime_ns)


def _read_whole(file: int, size: int) -> bytes:
    """Read to the end; one call does it where the file is as long as it was said to be."""
    content = os.read(file, size + 1)
    if len(content) == size:
        return content
    chunks = [content]
    while chunk := os.read(file, _CHUNK):
        chunks.append(chunk)
    return b"".join(chunks)
