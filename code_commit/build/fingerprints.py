"""The protected files as they were before a run's first build: compared after each build, and put back.

Contents are kept in memory. An unchanged `stat` counts as unchanged content, since ctime cannot be set. Every file
is opened by descriptors, never through a link. A file that an original replaces is kept: it may be the user's edit.
"""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from code_commit.files import FOLDER, NewFiles, Tree, open_regular
from code_commit.ownership import Ownership, set_mode
from code_commit.regex import regex

MOST_ENTRIES = 5000  # of a folder and what is below it: hooks and settings are few
FOLDER_NAME = "changed-by-build"

_WAY = FOLDER | getattr(os, "O_PATH", 0)  # needs no right to list the folders on the way
_HEAD = regex(rb"refs/|ref:\s*refs/|[0-9a-f]{40}")  # git's validate_headref(), for a link and for a file
_TOUCHED = ("st_dev", "st_ino", "st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns")
_COUNTS = ("st_mode", "st_uid", "st_gid")


class Entry(NamedTuple):
    """One file, folder or link as it was. `content` is a link's target; None for a folder and what cannot be read."""

    status: os.stat_result
    content: bytes | None

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    def is_same_folder(self, now: os.stat_result | None) -> bool:
        """Tell whether this is the very same folder, and not a link with its inode number."""
        same = ("st_dev", "st_ino")
        return now is not None and stat.S_ISDIR(now.st_mode) and _values(now, same) == _values(self.status, same)


class Damage(NamedTuple):
    """A change of a protected file. `detail` says why it was not put back, or what the user can do."""

    kind: str
    is_undone: bool = True
    detail: str = ""

    def __str__(self) -> str:
        text, mark = (self.kind, "; ") if self.is_undone else (f"{self.kind}, and cannot be put back", ": ")
        return f"{text}{mark}{self.detail}" if self.detail else text


def _values(status: os.stat_result, names: tuple[str, ...]) -> list[int]:
    return [getattr(status, name) for name in names]


def _names(folder: int) -> list[str]:
    opened = os.open(".", FOLDER, dir_fd=folder)
    try:
        return sorted(os.listdir(opened))  # noqa: PTH208 - a descriptor
    finally:
        os.close(opened)


def _open_tree() -> Tree:
    """Return the tree of this machine, by paths without their first slash."""
    return Tree(Path("/"), lambda parent, name, _: os.open(name, _WAY, dir_fd=parent))


def _in_tree(path: Path) -> str:
    """Return the path in the tree of this machine; only its last component may be a link."""
    return os.path.join(os.path.realpath(path.parent), path.name)[1:]  # noqa: PTH118 - many of them


def _make_folder(tree: Tree, path: str, mode: int = 0o777) -> int:
    """Return a descriptor of the folder, made where it is missing. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        return tree.folder(path)
    above, _, name = path.rpartition("/")
    parent = _make_folder(tree, above, mode)
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=parent)
    return tree.folder(path)


class Fingerprints:
    """The protected files as they were when this was made. Keeps folders open until `close`."""

    def __init__(
        self,
        root: Path,
        paths: Collection[Path],
        *,
        identity_only: Collection[Path] = (),
        head: Path | None = None,
        only_told: Collection[Path] = (),
    ) -> None:
        """Remember the paths, and everything below those that are folders.

        An `identity_only` folder only has to stay the same, `head` a HEAD for git. Nothing in `only_told` is put back.
        """
        self._tree = _open_tree()
        self._root = str(root)[1:] or "."
        self._entries: dict[str, Entry | None] = {}
        self._listed: set[str] = set()
        self._identity_only = {self._root, *map(_in_tree, identity_only)}
        self._only_told = tuple(f"{_in_tree(path)}/" for path in only_told)
        self._kept_open: list[int] = []
        for path in (self._root, *map(_in_tree, [*paths, *identity_only])):
            self._remember(path)
            if (entry := self._entries[path]) and entry.is_folder:  # no other gets the inode number of an open folder
                self._kept_open.append(os.dup(self._tree.folder(path)))
        self._head = _in_tree(head) if head else None
        if self._head:
            self._remember(self._head)

    def close(self) -> None:
        self._tree.close()
        while self._kept_open:
            os.close(self._kept_open.pop())

    def forbid(self, path: Path) -> None:
        """Allow nothing at the path from now on."""
        self._entries[_in_tree(path)] = None

    def put_back(self, quarantine: "Quarantine") -> dict[Path, Damage]:
        """Restore the files that differ, folders first, and return the damages. Replaced files go to the quarantine."""
        self._tree.forget()
        root = self._entries[self._root]
        if root is None or not root.is_same_folder(self._look(self._root)):  # nothing at its path is ours to change
            return {Path("/", self._root): Damage("moved or removed", is_undone=False)}
        damages: dict[str, Damage] = {}
        for find in (self._lost, self._new):  # what is new may be the old under another name
            for path, entry in self._entries.items():
                for place, damage in find(path, entry):
                    damages[place] = damage
                    try:
                        self._restore(place, quarantine)
                    except OSError as error:
                        damages[place] = damage._replace(is_undone=False, detail=str(error.strerror))
        return {Path("/", path): damage for path, damage in damages.items()}

    def _remember(self, path: str) -> None:
        if path in self._entries:
            return
        status = self._look(path)
        entry = self._entries[path] = Entry(status, self._content(path, status)) if status else None
        if entry and entry.is_folder and path not in self._identity_only and len(self._entries) < MOST_ENTRIES:
            self._listed.add(path)
            for name in self._names(path):
                self._remember(f"{path}/{name}")

    def _look(self, path: str) -> os.stat_result | None:
        """Return the state of the path; None if it is missing, or cannot be reached without a link."""
        with contextlib.suppress(OSError):
            return self._tree.look(path)
        return None

    def _content(self, path: str, status: os.stat_result) -> bytes | None:
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(status.st_mode):
                folder, name = self._tree.parent(path)
                return os.fsencode(os.readlink(name, dir_fd=folder))
            if stat.S_ISREG(status.st_mode):
                return self._tree.read(path)[0]
        return None

    def _names(self, path: str) -> list[str]:
        with contextlib.suppress(OSError):
            return _names(self._tree.folder(path))
        return []

    def _lost(self, path: str, entry: Entry | None) -> Iterator[tuple[str, Damage]]:
        """Yield the path and its damage if an entry was there and differs now."""
        if entry is None:
            return
        now = self._look(path)
        if now is None:
            yield path, Damage("removed")
        elif path in self._identity_only and entry.is_folder:
            if not entry.is_same_folder(now) or entry.status.st_mode & ~now.st_mode & stat.S_IRWXU:
                yield path, Damage("changed")
        elif path == self._head and _HEAD.match(self._content(path, now) or b""):
            return
        elif _values(entry.status, _TOUCHED) != _values(now, _TOUCHED) and (
            _values(entry.status, _COUNTS) != _values(now, _COUNTS)
            or entry.content != self._content(path, now)
            or (entry.is_folder and not entry.is_same_folder(now) and self._is_aside(path, entry))
        ):
            yield path, Damage("changed")

    def _is_aside(self, path: str, entry: Entry) -> bool:
        """Tell whether the folder that was at the path lies beside it now."""
        with contextlib.suppress(OSError):
            return _name_of(entry, self._tree.folder(path.rpartition("/")[0])) is not None
        return False

    def _new(self, path: str, entry: Entry | None) -> Iterator[tuple[str, Damage]]:
        """Yield the path if it is new, and the new entries of a folder."""
        now = self._look(path) if entry is None else None
        if now and not (path in self._identity_only and stat.S_ISDIR(now.st_mode)):
            yield path, Damage("new")
        for name in self._names(path) if path in self._listed else ():
            if f"{path}/{name}" not in self._entries:
                yield f"{path}/{name}", Damage("new")

    def _restore(self, path: str, quarantine: "Quarantine") -> None:
        """Put back the former state of the path over the present one. Raises OSError."""
        if f"{path}/".startswith(self._only_told):
            raise OSError(errno.EPERM, "it is outside the project")
        entry = self._entries.get(path)
        above, _, name = path.rpartition("/")
        folder = _make_folder(self._tree, above)
        if entry is None:
            quarantine.take(folder, name, path)
        elif entry.is_folder:
            _restore_folder(folder, path, entry, quarantine, identity_only=path in self._identity_only)
        elif entry.content is None:
            raise OSError(errno.EACCES, "it could not be read before the build")
        else:
            _restore_file(folder, path, entry.content, entry.status, quarantine)
        self._tree.forget()


def stamp_files(folders: Iterable[Path]) -> dict[Path, list[int]]:
    """Return a stamp of each file below the folders, without the ctime: uv makes hard links to its cache."""
    stamps = {}
    for place, _, names in chain.from_iterable(map(os.walk, folders)):
        for name in names if not place.endswith("__pycache__") else ():
            with contextlib.suppress(FileNotFoundError):
                stamps[Path(place, name)] = _values(os.lstat(f"{place}/{name}"), _TOUCHED[:-1])
    return stamps


def _restore_file(folder: int, path: str, content: bytes, status: os.stat_result, quarantine: "Quarantine") -> None:
    name, new = path.rpartition("/")[2], f".{os.urandom(6).hex()}.new"
    try:
        if stat.S_ISLNK(status.st_mode):
            os.symlink(content, new, dir_fd=folder)
        else:
            with NewFiles() as files:
                owner = Ownership(status.st_uid, status.st_gid)
                files.write(folder, new, content, stat.S_IMODE(status.st_mode), owner)
        quarantine.take(folder, name, path)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new, dir_fd=folder)
        raise


def _restore_folder(parent: int, path: str, entry: Entry, quarantine: "Quarantine", *, identity_only: bool) -> None:
    """Put a folder back: the same one where it was only renamed, else an empty one.

    Raises OSError where an empty one is not enough: nothing is known of the contents of an `identity_only` folder.
    """
    name = path.rpartition("/")[2]
    now = _status(parent, name)
    if not entry.is_same_folder(now):
        moved = _name_of(entry, parent)
        if moved or (now and not stat.S_ISDIR(now.st_mode)):
            quarantine.take(parent, name, path)
        if moved:
            os.rename(moved, name, src_dir_fd=parent, dst_dir_fd=parent)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
    try:
        folder = os.open(name, FOLDER, dir_fd=parent)
    except PermissionError:
        os.chmod(name, stat.S_IRWXU, dir_fd=parent)
        folder = os.open(name, FOLDER, dir_fd=parent)
    try:
        set_mode(folder, stat.S_IMODE(entry.status.st_mode), (entry.status.st_uid, entry.status.st_gid))
    finally:
        os.close(folder)
    if identity_only and not entry.is_same_folder(_status(parent, name)):
        raise OSError(errno.ENOENT, "what was in it is gone, or was moved away")


def _name_of(entry: Entry, parent: int) -> str | None:
    """Return the name that a folder has now in its parent; None if it is gone."""
    return next((name for name in _names(parent) if entry.is_same_folder(_status(parent, name))), None)


def _status(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


class Quarantine:
    """Keeps files that give way to the originals in a new folder of agent-config, each by number and path in one word.

    A file in the place of agent-config itself goes into a folder of the root. `folders` counts the files of each.
    """

    def __init__(self, root: Path, agent_config: Path) -> None:
        stamp = time.strftime("%Y-%m-%d-%H-%M-%S-", time.gmtime()) + os.urandom(3).hex()
        self._choice = agent_config / FOLDER_NAME / stamp, root / f".{FOLDER_NAME}-{stamp}"
        self._root = f"{root}/"[1:]
        self.folders: dict[Path, int] = {}

    def take(self, folder: int, name: str, path: str) -> None:
        """Move a file or a folder to the quarantine; remove a link, a FIFO or a device. Raises OSError."""
        status = _status(folder, name)
        if status and not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=folder)
        elif status:
            if stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_IWUSR:  # only root can move it so
                os.chmod(name, stat.S_IRWXU, dir_fd=folder)
            try:
                self._move(folder, name, path, self._choice[0])
            except OSError:
                self._move(folder, name, path, self._choice[1])

    def _move(self, folder: int, name: str, path: str, place: Path) -> None:
        count = self.folders.get(place, 0) + 1
        word = f"{count}-{path.removeprefix(self._root).replace('/', '_')}"  # .git alone would be a repository again
        with _open_tree() as tree:
            own = _make_folder(tree, str(place)[1:], 0o700)
            try:
                os.rename(name, word, src_dir_fd=folder, dst_dir_fd=own)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                with open_regular(name, folder=folder) as file, NewFiles() as files:
                    files.write(own, word, file.readall())
                os.unlink(name, dir_fd=folder)
        self.folders[place] = count
