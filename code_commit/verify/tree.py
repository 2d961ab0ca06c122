"""What stands in the tree where a response wants to write: looked at from the root down, following no link.

Folders are entered by `dir_fd` with `O_NOFOLLOW`, each once; nothing that could block is opened. The rules:

    link               a component is a symbolic link
    not-a-file         the target is a folder, a FIFO, a socket or a device; or a component of its path is a file
    other-file-system  a folder of the path, or the target, is mounted from elsewhere
    other-repository   a folder of the path is the root of another git repository, a bare one too
    same-file          an existing entry has the same name but for case or normalisation
    protected          a folder or file of the path is, by its inode, a protected one
    immutable          the file system refuses every change of the file
    unreadable         the original, which undo needs, cannot be read
"""

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from code_commit.changes import OriginalFile, shown
from code_commit.project import Project
from code_commit.verify.links import find_protected_inodes, find_protected_links, is_immutable
from code_commit.verify.mounts import mount_points_below
from code_commit.verify.paths import Fault
from code_commit.verify.protected import GuardedFolder
from code_commit.verify.twins import other_spelling

ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_LINK_ERRORS = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR})

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class _Stop(Exception):  # noqa: N818 - not an error: the rule that ends the way down, told to the caller as a value
    def __init__(self, rule: str, message: str) -> None:
        super().__init__(rule, message)
        self.fault: Fault = (rule, message)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What is looked up once for a whole response. Inodes are (device, number)."""

    device: int
    protected_inodes: Collection[tuple[int, int]]
    mount_points: Collection[bytes]
    submodules: Collection[bytes]


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder on the way down: its descriptor, None where it does not exist yet."""

    path: bytes
    descriptor: int | None


def look_at_targets(
    paths: Iterable[str], project: Project, guarded: Collection[GuardedFolder], submodules: Collection[str]
) -> tuple[dict[str, OriginalFile | None], dict[str, Fault]]:
    """Return what each path holds now (None: nothing yet), and the rule that each path breaks that cannot be written.

    The paths have passed the string rules. No file is written, no link followed, no FIFO waited for.
    """
    originals: dict[str, OriginalFile | None] = {}
    faults: dict[str, Fault] = {}
    closed: dict[bytes, Fault] = {}
    with _descent(project, guarded, submodules) as (way, surroundings):
        for path in sorted(paths, key=lambda path: path.replace("/", "\0")):
            *folders, name = path.encode().split(b"/")
            try:
                _enter(way, folders, surroundings, closed)
                originals[path] = _read_target(way[-1], name, surroundings, project)
            except _Stop as stop:
                faults[path] = stop.fault
            except OSError as error:
                faults[path] = ("unreadable", f"cannot be looked at ({error.strerror}): choose another path")
    return originals, faults


@contextmanager
def _descent(
    project: Project, guarded: Collection[GuardedFolder], submodules: Collection[str]
) -> Iterator[tuple[list[_Folder], _Surroundings]]:
    way = [_Folder(b"", os.open(project.root, ENTER))]
    try:
        surroundings = _Surroundings(
            device=project.root.stat().st_dev,
            protected_inodes=find_protected_inodes(project, guarded),
            mount_points=mount_points_below(project.root),
            submodules={path.encode() for path in submodules},
        )
        yield way, surroundings
    finally:
        _leave(way, 0)


def _leave(way: list[_Folder], depth: int) -> None:
    while len(way) > depth:
        folder = way.pop()
        if folder.descriptor is not None:
            os.close(folder.descriptor)


def _enter(way: list[_Folder], folders: list[bytes], surroundings: _Surroundings, closed: dict[bytes, Fault]) -> None:
    """Make `way` the open folders from the root to the last of `folders`. Raises _Stop where none may be entered."""
    wanted = b"/".join(folders)
    while len(way) > 1 and way[-1].path != wanted and not wanted.startswith(way[-1].path + b"/"):
        _leave(way, len(way) - 1)
    for name in folders[len(way) - 1 :]:
        path = way[-1].path + b"/" + name if way[-1].path else name
        if path in closed:
            raise _Stop(*closed[path])
        try:
            way.append(_Folder(path, _open_folder(way[-1], name, path, surroundings)))
        except _Stop as stop:
            closed[path] = stop.fault
            raise


def _open_folder(parent: _Folder, name: bytes, path: bytes, surroundings: _Surroundings) -> int | None:
    if parent.descriptor is None:
        return None
    if path in surroundings.submodules:
        raise _Stop("other-repository", f"{_shown(path)} is a submodule: change files of this repository alone")
    try:
        descriptor = os.open(name, ENTER, dir_fd=parent.descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _Stop(*_closed_folder(parent.descriptor, name, path, error)) from error
    try:
        _check_folder(parent.descriptor, descriptor, name, path, surroundings)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _closed_folder(parent: int, name: bytes, path: bytes, error: OSError) -> Fault:
    if error.errno in _LINK_ERRORS:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            return "link", f"{_shown(path)} is a symbolic link: name the file where it really is, inside the project"
        if not stat.S_ISDIR(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "a file")
            return "not-a-file", f"{_shown(path)} is {kind}, nothing can lie below it: choose another path"
    return "unreadable", f"the folder {_shown(path)} cannot be entered ({error.strerror}): choose another path"


def _check_folder(parent: int, descriptor: int, name: bytes, path: bytes, surroundings: _Surroundings) -> None:
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) in surroundings.protected_inodes:
        raise _Stop("protected", f"{_shown(path)} is a protected folder by another name: put the file elsewhere")
    if status.st_dev != surroundings.device or path in surroundings.mount_points:
        raise _Stop("other-file-system", f"{_shown(path)} is mounted from elsewhere: choose a path outside of it")
    if _exists(descriptor, b".git") or _looks_bare(descriptor):
        raise _Stop("other-repository", f"{_shown(path)} is another git repository: choose a path outside of it")
    _check_spelling(parent, name, status)


def _check_spelling(parent: int, name: bytes, status: os.stat_result) -> None:
    spelling = other_spelling(parent, name, status)
    if spelling is not None:
        raise _Stop("same-file", f"is there under the spelling {_shown(spelling)}: write it like that")


def _exists(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _looks_bare(folder: int) -> bool:
    """What git takes for a repository: setup.c, is_git_directory()."""
    if not _exists(folder, b"HEAD") or _exists(folder, b"HEAD/."):
        return False
    return _exists(folder, b"commondir") or (_exists(folder, b"objects") and _exists(folder, b"refs"))


def _read_target(folder: _Folder, name: bytes, surroundings: _Surroundings, project: Project) -> OriginalFile | None:
    if folder.descriptor is None:
        return None
    path = folder.path + b"/" + name if folder.path else name
    try:
        status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if path in surroundings.submodules:
        raise _Stop("other-repository", "is a submodule: change files of this repository alone")
    if stat.S_ISLNK(status.st_mode):
        raise _Stop("link", "is a symbolic link: name the file that it points to, if that is inside the project")
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise _Stop("not-a-file", f"is {kind}, not a file: choose another path")
    if (status.st_dev, status.st_ino) in surroundings.protected_inodes or (
        status.st_nlink > 1 and (status.st_dev, status.st_ino) in find_protected_links(project, path)
    ):
        raise _Stop("protected", "is a protected file by another name: choose another path")
    if path in surroundings.mount_points:
        raise _Stop("other-file-system", "is mounted from elsewhere: choose another path")
    _check_spelling(folder.descriptor, name, status)
    return _read_original(folder.descriptor, name, status)


def _read_original(folder: int, name: bytes, status: os.stat_result) -> OriginalFile:
    with open(os.open(name, _READ, dir_fd=folder), "rb", buffering=0) as file:  # noqa: PTH123 - by dir_fd
        now = os.fstat(file.fileno())
        if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino) or not stat.S_ISREG(now.st_mode):
            raise _Stop("unreadable", "changed while it was looked at: send the file again")
        if is_immutable(file.fileno(), now):
            raise _Stop("immutable", "is marked immutable or append-only: leave it as it is")
        content = file.readall()
    return OriginalFile(content, stat.S_IMODE(now.st_mode), now.st_dev, now.st_ino, now.st_mtime_ns)


def _shown(path: bytes) -> str:
    return shown(path.decode("utf-8", "surrogateescape"))
