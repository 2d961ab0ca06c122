"""What the protected files were before a build, whether the build changed them, and how they come back.

Contents are kept in memory. An unchanged `stat` counts as unchanged content: its ctime cannot be set. What stands in
the place of what comes back is saved, in case it was the user's own edit.
"""

import contextlib
import errno
import itertools
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from code_commit.files import FOLDER, open_regular, replacing

MOST_ENTRIES = 5000  # of a folder and what is below it: hooks and settings are few
FOLDER_NAME = "changed-by-build"
NOT_PUT_BACK = ", and cannot be put back"


class Entry(NamedTuple):
    """One file, folder or link as it was. `content` is a link's target; None for a folder and what cannot be read."""

    status: os.stat_result
    content: bytes | None

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)

    def is_unchanged(self, path: Path, now: os.stat_result) -> bool:
        """Tell whether nothing happened to it, or nothing that counts: its times and its inode may be others."""
        if _values(self.status, _TOUCHED) == _values(now, _TOUCHED):
            return True
        counts = ("st_mode", "st_uid", "st_gid")
        return _values(self.status, counts) == _values(now, counts) and self.content == _content(path, now)

    def is_this_folder(self, path: Path) -> bool:
        """Tell whether the very same folder is at the path. A link that took its place may have its inode number."""
        now = _status(path)
        names = ("st_dev", "st_ino")
        return now is not None and stat.S_ISDIR(now.st_mode) and _values(now, names) == _values(self.status, names)


_TOUCHED = ("st_dev", "st_ino", "st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns")


def _values(status: os.stat_result, names: tuple[str, ...]) -> list[int]:
    return [getattr(status, name) for name in names]


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _content(path: Path, status: os.stat_result) -> bytes | None:
    with contextlib.suppress(OSError):
        if stat.S_ISLNK(status.st_mode):
            return os.fsencode(path.readlink())
        if stat.S_ISREG(status.st_mode):
            with open_regular(path) as file:
                return file.readall()
    return None


def _names(folder: Path) -> list[str]:
    """Return what is in a folder; nothing of where a link leads."""
    try:
        with _opened(folder) as descriptor:
            return sorted(os.listdir(descriptor))  # noqa: PTH208 - a descriptor
    except OSError:
        return []


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class Fingerprints:
    """The protected files as they were before the build."""

    def __init__(
        self, paths: Collection[Path], *, shells: Collection[Path] = (), never_removed: Collection[Path] = ()
    ) -> None:
        """Remember what is at the paths, and below those that are folders.

        Of those that are `shells` too it matters only that they are the same folders still, and of `never_removed`
        that they are there.
        """
        self._entries: dict[Path, Entry | None] = {}
        self._listed: set[Path] = set()
        self._parents: dict[Path, str] = {}
        self._shells = frozenset(shells)
        self._never_removed = [path for path in never_removed if os.path.lexists(path)]
        for path in paths:
            self._parents[path.parent] = os.path.realpath(path.parent)
            self._remember(path)

    def put_back(self, saved: "Saved") -> dict[Path, str]:
        """Compare, and restore what differs: {path: what the build had done to it}. Folders come before their contents.

        What cannot be restored is told in the text of its path. What is replaced or removed is saved.
        """
        damages: dict[Path, str] = {}
        for find in (self._lost, self._new):  # what is new may be the old under another name
            for path, entry in self._entries.items():
                for place, damage in find(path, entry):
                    damages[place] = damage
                    try:
                        self._check_parent(place.parent)
                        _restore(place, self._entries.get(place), saved, is_shell=place in self._shells)
                    except OSError as error:
                        damages[place] += f"{NOT_PUT_BACK}: {error.strerror}"
        for path in self._never_removed:
            if NOT_PUT_BACK not in damages.get(path.parent, "") and not os.path.lexists(path):
                damages[path] = f"removed{NOT_PUT_BACK}: no copy of it was made"
        saved.store()
        return damages

    def _remember(self, path: Path) -> None:
        if path in self._entries:
            return
        status = _status(path)
        entry = self._entries[path] = Entry(status, _content(path, status)) if status else None
        if entry and entry.is_folder and path not in self._shells and len(self._entries) < MOST_ENTRIES:
            self._listed.add(path)
            self._parents[path] = os.path.realpath(path)
            for name in _names(path):
                self._remember(path / name)

    def _check_parent(self, folder: Path) -> None:
        """Raise OSError when the path of a folder leads elsewhere than before: nothing there is ours to change."""
        if os.path.realpath(folder) != self._parents[folder]:
            raise OSError(errno.ELOOP, f"{folder} leads elsewhere now")

    def _lost(self, path: Path, entry: Entry | None) -> Iterator[tuple[Path, str]]:
        """Yield the path and what happened to it, where there was something."""
        now = _status(path)
        if entry and now is None:
            yield path, "removed"
        elif entry and now:
            is_another = path in self._shells and not entry.is_this_folder(path)
            if is_another or not entry.is_unchanged(path, now):
                yield path, "changed"

    def _new(self, path: Path, entry: Entry | None) -> Iterator[tuple[Path, str]]:
        """Yield the path where there was nothing, and what is new in it where it was a folder."""
        now = _status(path)
        if entry is None and now and not (path in self._shells and stat.S_ISDIR(now.st_mode)):
            yield path, "new"
        for name in _names(path) if path in self._listed else ():
            if path / name not in self._entries:
                yield path / name, "new"


class Saved:
    """What a build changed before the originals return, by its path below the root, in a new folder of agent-config.

    Until `store` it is collected in the root: agent-config itself may have to come back first.
    """

    def __init__(self, root: Path, parent: Path) -> None:
        self.folder: Path | None = None
        self._root = root
        self._parent = parent

    def take(self, path: Path) -> None:
        """Take a file or a folder away; a link, a FIFO or a device has no content and just goes. Raises OSError."""
        status = _status(path)
        if status and (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            shutil.move(path, self._place(path))
        elif status:
            path.unlink()

    def store(self) -> None:
        """Move what was taken to where the user is told; where that fails it stays in the root."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self._parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder = Path(shutil.move(self.folder, self._parent / self.folder.name.removeprefix(".")))

    def _place(self, path: Path) -> Path:
        """Return a free path for it, with its parent made."""
        if self.folder is None:
            prefix = time.strftime(".%Y-%m-%d-%H-%M-%S-", time.gmtime())
            self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self._root))
        relative = path.relative_to(self._root if path.is_relative_to(self._root) else path.anchor)
        for number in itertools.count():
            place = (self.folder / f"again-{number}" if number else self.folder) / relative
            with contextlib.suppress(FileExistsError, NotADirectoryError):  # a file was taken that is a folder here
                place.parent.mkdir(parents=True, exist_ok=True)
                if not os.path.lexists(place):
                    return place
        raise AssertionError


def _restore(path: Path, entry: Entry | None, saved: Saved, *, is_shell: bool) -> None:
    """Put an entry back over whatever is in its place now; an entry that was not there goes. Raises OSError."""
    if entry is None:
        saved.take(path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.is_folder:
        _restore_folder(path, entry, saved, is_shell=is_shell)
    elif entry.content is None:
        raise OSError(errno.EACCES, "it could not be read before the build")
    elif stat.S_ISLNK(entry.status.st_mode):
        saved.take(path)
        path.symlink_to(os.fsdecode(entry.content))
    else:
        with replacing(path, mode=stat.S_IMODE(entry.status.st_mode), sync=True) as file:
            file.write(entry.content)
            _give_back(file.fileno(), entry.status)
            saved.take(path)


def _restore_folder(path: Path, entry: Entry, saved: Saved, *, is_shell: bool) -> None:
    """Put a folder back: the same one where it was only renamed, else, unless it is a shell, an empty one."""
    if not entry.is_this_folder(path):
        neighbours = (path.parent / name for name in _names(path.parent))
        moved = next((place for place in neighbours if entry.is_this_folder(place)), None)
        if moved or not _is_folder(path):
            saved.take(path)
        if moved:
            moved.rename(path)
        elif is_shell:
            raise OSError(errno.ENOENT, "it was removed with all that was in it, or moved away")
        else:
            path.mkdir(exist_ok=True)
    with _opened(path) as folder:
        os.fchmod(folder, stat.S_IMODE(entry.status.st_mode))
        _give_back(folder, entry.status)


def _is_folder(path: Path) -> bool:
    status = _status(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _give_back(file: int, status: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.fchown(file, status.st_uid, status.st_gid)
