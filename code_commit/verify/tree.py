"""Checks of the tree where a response would write, from the root down, without following links.

Nothing that could block is opened. Each folder is checked by its inode, not by its name. The rules:

    link               a component is a symbolic link
    not-a-file         the target is a folder, a FIFO, a socket or a device; or a component of its path is a file
    other-file-system  a folder of the path, or the target, is mounted from elsewhere
    other-repository   a folder of the path is another git repository, or the response would make it look like one
    same-file          an existing entry has the same name but for case or normalisation
    protected          a folder or file of the path is, by its inode, a protected one
    unreadable         the original, which undo needs, cannot be read
    wrong-format       the path of a new file begins with a folder of diffs or examples that is not there; or it is
                       two paths, or a path with a word or a comment beside it
    astray             a new file is an existing one in a folder that is not there, or without one; or is called `PATH`
"""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate, takewhile
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
_COMMENTED = re.compile(r"(.*\.\w{1,10})[ \t]+(?:\(.*\)|(?:#|//|--|<|\u2014|\u2013).*)")
_MOST_NEW = 200
_SHORTEST_COMPARED = 10  # lines
_LARGER = 8  # bytes for each character of a new file: no larger one has most lines in common with it


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


def find_invented_folder(path: str, root: Path, removed: Collection[str]) -> Fault | None:
    """Return the violation of a new path below an `a/`, `b/` or `path/to/` that the project does not have."""
    match = re.fullmatch(r"((path)/to|[ab])/(.+)", path)
    if match is None or os.path.lexists(root / path.split("/", 1)[0]):
        return None
    name = match[3]
    if not match[2] and (name in removed or not os.path.lexists(root / name)):
        return None
    return "wrong-format", f"begins with {match[1]}/, which the project does not have: write {shown(name)}"


def find_astray(
    new: Mapping[str, str], answered: Collection[str], tracked: Iterable[str], project: Project, query: str
) -> Iterator[tuple[str, str, str]]:
    """Yield each new path, of up to two hundred, that is an existing one under other folders, with fact and advice.

    A folder is taken as intended if the query names it, or if most of its new files are unlike existing ones.
    """
    if len(new) > _MOST_NEW:
        return
    names = {path.rpartition("/")[2] for path in new if not project.has(path.split("/")[0])}
    likely = [path for path in tracked if path.rpartition("/")[2] in names and path not in answered] if names else []
    with Tree(project.root) as tree:
        meant = {path: seen for path, text in new.items() if (seen := _find_meant(path, text, answered, likely, tree))}
    for path in new:
        if path.split("/")[0] == "PATH" and not project.has("PATH"):
            yield path, "is called as the instructions' examples", "write the file's own path"
        elif path in meant:
            folder, existing = meant[path]
            beside = [other in meant for other in new if other.startswith(f"{folder}/")]
            if 2 * sum(beside) >= len(beside) and not re.search(rf"(?<![\w./-])(?:\./)?{re.escape(folder)}/", query):
                fact = f"has most lines of {shown(existing)}, and there is no folder {shown(folder)}/"
                yield path, fact, f"write {shown(existing)}"


def _find_meant(
    path: str, text: str, answered: Collection[str], likely: Iterable[str], tree: Tree
) -> tuple[str, str] | None:
    """Return a missing folder of the path, and the existing file under another folder that has most of its lines."""
    given = _stripped(text)
    lines = {*given}
    folders = list(accumulate(path.split("/"), "{}/{}".format))[:-1]
    others = [(folder, path[len(folder) + 1 :]) for folder in folders]
    others += [(folders[0], other) for other in likely if folders and other.endswith(f"/{path}")]
    for folder, other in others:
        with suppress(OSError):
            state = None if other in answered or tree.look(folder) else tree.look(other)
            if state is None or state.st_size > _LARGER * len(text):
                continue
            old = tree.read(other)[0].decode("utf-8", "replace")
            said = _stripped(old)
            is_like = 2 * sum(line in lines for line in said) > len(said) and said != given
            if is_like and old.count("\n") >= _SHORTEST_COMPARED:
                return folder, other
    return None


def _stripped(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]


def find_second_path(path: str, root: Path) -> Fault | None:
    """Return the violation of a new path like `PATH a.c`, `a.c (new file)`, `create src/a.c` and `a.c -> b.c`."""
    comment = _COMMENTED.fullmatch(path)
    if comment and not Path(path).suffix[1:].isalnum():
        return "wrong-format", f"has a comment after the path: write {shown(comment[1])} alone after the carets"
    if path.startswith("PATH "):
        return "wrong-format", f"begins with the word of the instructions: write {shown(path[5:])}"
    for word in re.finditer(r"(?<= )\S+", path):
        first, slash, _ = word[0].partition("/")
        is_path = slash and os.path.lexists(root / first) and not os.path.lexists(root / (path[: word.start()] + first))
        if is_path or re.fullmatch(r"[-=]>|\u2192|\^+|`.*", word[0]):
            message = "write the bare path after the carets; to rename, delete the old path and create the new one"
            return "wrong-format", f"is not a path alone: {message}"
    return None


def find_other_cases(paths: Iterable[str], removed: Collection[str], root: Path) -> Iterator[tuple[str, str]]:
    """Yield each new path that equals one that stays but for case, wholly or at its beginning, and a message."""
    spellings: dict[str, dict[str, str]] = {}  # by folder and by name without case, how the folder spells it
    for path in paths:
        *folders, _ = parts = path.split("/")
        known = list(takewhile(lambda folder: os.path.lexists(root / folder), accumulate(folders, "{}/{}".format)))
        folder = known[-1] if known else ""
        if folder not in spellings:
            spellings[folder] = {entry.name.casefold(): entry.name for entry in (root / folder).glob("*")}
        spelling = spellings[folder].get(parts[len(known)].casefold())
        if spelling is not None:
            other = f"{folder}/{spelling}" if folder else spelling
            if other not in removed:
                yield path, f"differs from {shown(other)} in letter case alone: on macOS and Windows they are one"


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
