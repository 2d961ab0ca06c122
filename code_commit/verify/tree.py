"""Checks of the tree where a response would write, from the root down, without following links.

Nothing that could block is opened. Each folder is checked by its inode, not by its name. The rules:

    link               a component is a symbolic link
    not-a-file         the target is a folder, a FIFO, a socket or a device; or a component of its path is a file
    other-file-system  a folder of the path, or the target, is mounted from elsewhere
    other-repository   a folder of the path is another git repository, or the response would make it look like one
    same-file          an existing entry has the same name but for case or normalisation
    protected          a folder or file of the path is, by its inode, a protected one
    unreadable         the original, which undo needs, cannot be read
"""

import errno
import os
import stat
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from code_commit.changes import OriginalFile
from code_commit.files import Tree, enter_folder, folders_of
from code_commit.paths.names import Fault, GuardedFolder, fold
from code_commit.paths.protected import PROTECTED, PROTECTED_ANYWHERE
from code_commit.project import Project
from code_commit.terminal import shown

Inode = tuple[int, int]
_NOT_A_FOLDER = frozenset({errno.ELOOP, errno.EMLINK, errno.ENOTDIR})
_KINDS = {stat.S_IFREG: "a file", stat.S_IFDIR: "a folder"}

# git's setup.c, is_git_directory(): the entries that make a folder a repository
_REPOSITORIES = (("HEAD", "objects", "refs"), ("HEAD", "commondir"))
_REPOSITORY_MARKS = {fold(name): name for marks in _REPOSITORIES for name in marks}


class _Refusal(Exception):  # noqa: N818 - not an error: a path that cannot be written
    """The rule that a path breaks, and the advice."""


def look_at_targets(
    paths: Collection[str],
    removed: Collection[str],
    project: Project,
    guarded: Collection[GuardedFolder],
    submodules: Collection[str],
) -> tuple[dict[str, OriginalFile | None], dict[str, Fault]]:
    """Return the content at each path (None: nothing yet), and the violation of each that cannot be written.

    A file at a removed path may give way to a folder, and to its own name in another case.
    """
    originals: dict[str, OriginalFile | None] = {}
    faults: dict[str, Fault] = {}
    checks = _Checks(project, guarded, submodules, dict.fromkeys(paths, False) | dict.fromkeys(removed, True))
    with Tree(project.root, checks.enter) as tree:
        for path in sorted(paths, key=lambda path: path.split("/")):
            try:
                originals[path] = checks.read_target(tree, path)
            except _Refusal as refusal:
                rule, message = refusal.args
                faults[path] = rule, message
            except OSError as error:
                faults[path] = ("unreadable", f"cannot be looked at ({error.strerror}): choose another path")
    return originals, faults


class _Checks:
    """The checks of each folder and target, with facts that are read once for a response."""

    def __init__(
        self,
        project: Project,
        guarded: Collection[GuardedFolder],
        submodules: Collection[str],
        is_removed: Mapping[str, bool],
    ) -> None:
        self._device = project.root.stat().st_dev
        self._protected = find_protected_inodes(project, guarded)
        self._submodules = submodules
        self._is_removed = is_removed
        self._written_in = folders_of(path for path, is_gone in is_removed.items() if not is_gone)

    def enter(self, parent: int, name: str, path: str) -> int:
        """Open a folder of the path. Raises FileNotFoundError where it does not exist yet."""
        if path in self._submodules:
            raise _Refusal("other-repository", f"{shown(path)} is a submodule: change files of this repository alone")
        try:
            folder = enter_folder(parent, name, path)
        except OSError as error:
            if error.errno not in _NOT_A_FOLDER:
                raise
            if self._is_removed.get(path) and stat.S_ISREG(_stat(parent, name).st_mode):
                raise FileNotFoundError(errno.ENOENT, "a folder takes the place of this file", path) from error
            raise _refused_folder(parent, name, path) from error
        try:
            self._check_folder(parent, folder, name, path)
        except BaseException:
            os.close(folder)
            raise
        return folder

    def _check_folder(self, parent: int, folder: int, name: str, path: str) -> None:
        self._check_entry(parent, name, path, os.fstat(folder))
        if any(all(_inode(folder, mark) for mark in marks) for marks in ((".git",), *_REPOSITORIES)):
            message = f"{shown(path)} is another git repository: choose a path outside of it"
            raise _Refusal("other-repository", message)

    def _check_entry(self, folder: int, name: str, path: str, status: os.stat_result) -> None:
        if (status.st_dev, status.st_ino) in self._protected:
            raise _Refusal("protected", f"{shown(path)} is protected, by another name: choose another path")
        if status.st_dev != self._device:
            raise _Refusal("other-file-system", f"{shown(path)} is mounted from elsewhere: choose another path")
        spelling = other_spelling(folder, name, status)
        if spelling is not None:
            message = f"{shown(path)} is there under the spelling {shown(spelling)}: write it like that"
            raise _Refusal("same-file", message)

    def read_target(self, tree: Tree, path: str) -> OriginalFile | None:
        """Return the file at the path, None for nothing. Raises _Refusal for a target that cannot be replaced."""
        if path in self._submodules:
            raise _Refusal("other-repository", "is a submodule: change files of this repository alone")
        try:
            folder, name = tree.parent(path)
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(status.st_mode):
            raise _Refusal("link", "is a symbolic link: name the file that it points to, if that is inside the project")
        if self._has_given_way(folder, path, status):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise _Refusal("not-a-file", f"is {_kind(status)}, not a file: choose another path")
        self._check_entry(folder, name, path, status)
        content, now = tree.read(path)
        return OriginalFile(content, stat.S_IMODE(now.st_mode))

    def _has_given_way(self, folder: int, path: str, status: os.stat_result) -> bool:
        """Tell whether what is there is another path of the answer: of a rename, before or after it."""
        is_removed = self._is_removed[path]
        if stat.S_ISDIR(status.st_mode):
            return is_removed and path in self._written_in
        above, slash, name = path.rpartition("/")
        spelling = other_spelling(folder, name, status)
        return spelling is not None and self._is_removed.get(above + slash + spelling) is (not is_removed)


def _stat(parent: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def _refused_folder(parent: int, name: str, path: str) -> _Refusal:
    status = _stat(parent, name)
    if stat.S_ISLNK(status.st_mode):
        message = f"{shown(path)} is a symbolic link: name the file where it really is, inside the project"
        return _Refusal("link", message)
    message = f"{shown(path)} is {_kind(status)}, nothing can lie below it: choose another path"
    return _Refusal("not-a-file", message)


def _kind(status: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(status.st_mode), "a FIFO, a socket or a device")


def find_protected_inodes(project: Project, guarded: Collection[GuardedFolder]) -> frozenset[Inode]:
    """Return the inodes of the protected entries of the root and of the guarded folders, following links."""
    paths = [project.root / name for name in {*PROTECTED, *PROTECTED_ANYWHERE}]
    inodes = {_inode(None, path, follow_link=True) for path in [*paths, *(folder.path for folder in guarded)]}
    return frozenset(inode for inode in inodes if inode) - {_inode(None, project.root)}


def _inode(folder: int | None, path: str | Path, *, follow_link: bool = False) -> Inode | None:
    try:
        status = os.stat(path, dir_fd=folder, follow_symlinks=follow_link)
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def other_spelling(folder: int, name: str, status: os.stat_result) -> str | None:
    """Return the folder's own spelling of the entry that `name` led to, None if it is exactly that."""
    variants = {name.swapcase()}
    if not name.isascii():
        variants |= {unicodedata.normalize(form, name) for form in ("NFC", "NFD")}
    inode = (status.st_dev, status.st_ino)
    if not any(_inode(folder, variant) == inode for variant in variants - {name}):
        return None
    names = os.listdir(folder)
    if name in names:
        return None
    return next((other for other in names if _inode(folder, other) == inode), name)


def find_bare_repositories(written: Iterable[str], root: Path) -> Iterator[tuple[str, str]]:
    """Yield each path that, with the others, makes a folder look like a repository; and the folder."""
    marked: dict[str, dict[str, str]] = {}
    for path in written:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            mark = _REPOSITORY_MARKS.get(fold(part))
            if mark and (mark != "HEAD" or depth == len(parts) - 1):
                marked.setdefault("/".join(parts[:depth]), {}).setdefault(mark, path)
    for folder, marks in marked.items():
        there = {mark for mark in _REPOSITORY_MARKS.values() if mark in marks or os.path.lexists(root / folder / mark)}
        if any(there.issuperset(repository) for repository in _REPOSITORIES):
            yield from ((path, folder) for path in marks.values())
