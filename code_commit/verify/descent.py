"""The way down from the project's root to a target's folder, following no link.

Folders are entered by `dir_fd` with `O_NOFOLLOW`, each once, and checked by what they are, not by their name.
"""

import errno
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from code_commit.project import Project
from code_commit.terminal import shown
from code_commit.verify.links import find_protected_inodes
from code_commit.verify.mounts import mount_points_below
from code_commit.verify.paths import Fault
from code_commit.verify.protected import GuardedFolder
from code_commit.verify.twins import other_spelling

ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_LINK_ERRORS = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR})

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Stop(Exception):  # noqa: N818 - not an error: the way down ends here
    """The rule that ends the way down, told to the caller as `fault`."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(rule, message)
        self.fault: Fault = (rule, message)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is looked up once for a whole response. Inodes are (device, number)."""

    device: int
    protected_inodes: Collection[tuple[int, int]]
    mount_points: Collection[bytes]
    submodules: Collection[bytes]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on the way down: its descriptor, None where it does not exist yet."""

    path: bytes
    descriptor: int | None


@contextmanager
def descent(
    project: Project, guarded: Collection[GuardedFolder], submodules: Collection[str]
) -> Iterator[tuple[list[Folder], Surroundings]]:
    """Open the root; yield the open folders, for `enter`, and the surroundings. Raises OSError where it cannot."""
    way = [Folder(b"", os.open(project.root, ENTER))]
    try:
        surroundings = Surroundings(
            device=project.root.stat().st_dev,
            protected_inodes=find_protected_inodes(project, guarded),
            mount_points=mount_points_below(project.root),
            submodules=frozenset(map(os.fsencode, submodules)),
        )
        yield way, surroundings
    finally:
        _leave(way, 0)


def _leave(way: list[Folder], depth: int) -> None:
    while len(way) > depth:
        folder = way.pop()
        if folder.descriptor is not None:
            os.close(folder.descriptor)


def enter(way: list[Folder], folders: list[bytes], surroundings: Surroundings, closed: dict[bytes, Fault]) -> None:
    """Make `way` the open folders from the root to the last of `folders`. Raises Stop where none may be entered."""
    wanted = b"/".join(folders)
    while len(way) > 1 and way[-1].path != wanted and not wanted.startswith(way[-1].path + b"/"):
        _leave(way, len(way) - 1)
    for name in folders[len(way) - 1 :]:
        path = way[-1].path + b"/" + name if way[-1].path else name
        if path in closed:
            raise Stop(*closed[path])
        try:
            way.append(Folder(path, _open_folder(way[-1], name, path, surroundings)))
        except Stop as stop:
            closed[path] = stop.fault
            raise


def _open_folder(parent: Folder, name: bytes, path: bytes, surroundings: Surroundings) -> int | None:
    if parent.descriptor is None:
        return None
    if path in surroundings.submodules:
        raise Stop("other-repository", f"{_shown(path)} is a submodule: change files of this repository alone")
    try:
        descriptor = os.open(name, ENTER, dir_fd=parent.descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Stop(*_closed_folder(parent.descriptor, name, path, error)) from error
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
            kind = KINDS.get(stat.S_IFMT(mode), "a file")
            return "not-a-file", f"{_shown(path)} is {kind}, nothing can lie below it: choose another path"
    return "unreadable", f"the folder {_shown(path)} cannot be entered ({error.strerror}): choose another path"


def _check_folder(parent: int, descriptor: int, name: bytes, path: bytes, surroundings: Surroundings) -> None:
    status = os.fstat(descriptor)
    if (status.st_dev, status.st_ino) in surroundings.protected_inodes:
        raise Stop("protected", f"{_shown(path)} is a protected folder by another name: put the file elsewhere")
    if status.st_dev != surroundings.device or path in surroundings.mount_points:
        raise Stop("other-file-system", f"{_shown(path)} is mounted from elsewhere: choose a path outside of it")
    if _exists(descriptor, b".git") or _looks_bare(descriptor):
        raise Stop("other-repository", f"{_shown(path)} is another git repository: choose a path outside of it")
    check_spelling(parent, name, status)


def check_spelling(parent: int, name: bytes, status: os.stat_result) -> None:
    """Raise Stop where the folder spells the existing entry otherwise."""
    spelling = other_spelling(parent, name, status)
    if spelling is not None:
        raise Stop("same-file", f"is there under the spelling {_shown(spelling)}: write it like that")


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


def _shown(path: bytes) -> str:
    return shown(path.decode("utf-8", "surrogateescape"))
