"""What the protected files were before a build, whether the build changed them, and how they come back.

Contents are kept in memory, large ones in an unnamed file that only this process can reach. An unchanged `stat` counts
as unchanged content: its ctime cannot be set.
"""

import contextlib
import errno
import itertools
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Self

from code_commit.build.kept import Kept

IN_MEMORY = 1 << 18  # bytes of one file
MOST_ENTRIES = 5000  # of a folder and what is below it: hooks and settings are few

NOT_PUT_BACK = ", and cannot be put back"

Damage = Literal["changed", "removed", "new"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or link as it was. `content` is None for a folder, a large file and what cannot be read."""

    status: os.stat_result
    content: bytes | None = None
    copy: BinaryIO | None = None
    target: str | None = None

    @property
    def kind(self) -> int:
        return stat.S_IFMT(self.status.st_mode)

    def looks_like(self, status: os.stat_result) -> bool:
        """Tell whether nothing at all has happened to it."""
        return all(getattr(self.status, field) == getattr(status, field) for field in _COMPARED)


_COMPARED = ("st_dev", "st_ino", "st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns", "st_ctime_ns")


class Fingerprints:
    """The remembered files. Close it to give the copies of large ones free."""

    def __init__(
        self, paths: Collection[Path], *, shells: Collection[Path] = (), lasting: Collection[Path] = ()
    ) -> None:
        """Remember what is at the paths, and below those that are folders.

        Of those that are `shells` too it matters only that they are the same folders still, and of the `lasting` that
        they are not removed.
        """
        self._entries: dict[Path, Entry | None] = {}
        self._listed: set[Path] = set()
        self._copies = contextlib.ExitStack()
        self._shells = frozenset(shells)
        self._lasting = [path for path in lasting if os.path.lexists(path)]
        for path in paths:
            self._remember(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._copies.close()

    def put_back(self, kept: Kept) -> dict[Path, str]:
        """Compare, and restore what differs: {path: what the build had done to it}. Folders come before their contents.

        What cannot be restored is told in the text of its path. What is replaced or removed goes to `kept`.
        """
        damages: dict[Path, str] = {}
        for path, entry in self._entries.items():
            for place, damage in self._damages(path, entry):
                damages[place] = damage + _restore_or_say(
                    place, self._entries.get(place), kept, is_shell=place in self._shells
                )
        for path in self._lasting:
            if NOT_PUT_BACK not in damages.get(path.parent, "") and not os.path.lexists(path):
                damages[path] = f"removed{NOT_PUT_BACK}: no copy of it was made"
        for path, problem in kept.gather().items():
            damages[path] = damages.get(path, "changed") + problem
        return damages

    def _remember(self, path: Path) -> None:
        if path in self._entries:
            return
        entry = self._entries[path] = self._look(path)
        if path in self._shells:
            return
        if entry is not None and entry.kind == stat.S_IFDIR and len(self._entries) < MOST_ENTRIES:
            self._listed.add(path)
            for name in _names(path):
                self._remember(path / name)

    def _look(self, path: Path) -> Entry | None:
        status = _status(path)
        if status is None:
            return None
        with contextlib.suppress(OSError):
            if stat.S_ISLNK(status.st_mode):
                return Entry(status, target=str(path.readlink()))
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb", opener=_open_itself) as file:
                    if status.st_size <= IN_MEMORY:
                        return Entry(status, content=file.read())
                    copy = self._copies.enter_context(_unnamed_file(path.parent))
                    _copy(file, copy)
                    return Entry(status, copy=copy)
        return Entry(status)

    def _damages(self, path: Path, entry: Entry | None) -> Iterator[tuple[Path, Damage]]:
        """Yield (path, damage) of one entry, and of what is new in it when it is a folder."""
        status = _status(path)
        if status is None or entry is None:
            if status is not None and not (path in self._shells and stat.S_ISDIR(status.st_mode)):
                yield path, "new"
            elif entry is not None:
                yield path, "removed"
            return
        is_another = path in self._shells and not _is_folder(path, entry.status)
        if is_another or not (entry.looks_like(status) or _is_the_same(path, entry, status)):
            yield path, "changed"
        if path in self._listed and stat.S_ISDIR(status.st_mode):
            for name in _names(path):
                if path / name not in self._entries:
                    yield path / name, "new"


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - the names are what is compared
    except OSError:
        return []


def _open_itself(path: str, flags: int) -> int:
    """Open without following a link and without waiting for the other end of a FIFO."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _unnamed_file(folder: Path) -> BinaryIO:
    import tempfile

    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError:
        return tempfile.TemporaryFile()


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    shutil.copyfileobj(source, target, 1 << 20)
    target.flush()


def _is_the_same(path: Path, entry: Entry, status: os.stat_result) -> bool:
    """Compare what counts when the times differ: kind, permissions, owner and content."""
    if any(getattr(entry.status, field) != getattr(status, field) for field in ("st_mode", "st_uid", "st_gid")):
        return False
    try:
        if entry.kind == stat.S_IFREG:
            with open(path, "rb", opener=_open_itself) as file:
                return file.read() == entry.content if entry.copy is None else _same_content(file, entry.copy)
        return entry.target is None or str(path.readlink()) == entry.target
    except OSError:
        return False


def _same_content(file: BinaryIO, copy: BinaryIO) -> bool:
    copy.seek(0)
    while True:
        piece = file.read(1 << 20)
        if piece != copy.read(1 << 20):
            return False
        if not piece:
            return True


def _restore_or_say(path: Path, entry: Entry | None, kept: Kept, *, is_shell: bool) -> str:
    try:
        _restore(path, entry, kept, is_shell=is_shell)
    except OSError as error:
        return f"{NOT_PUT_BACK}: {error.strerror}"
    return ""


def _restore(path: Path, entry: Entry | None, kept: Kept, *, is_shell: bool = False) -> None:
    """Put an entry back over whatever is in its place now; an entry that was not there goes."""
    if entry is not None and entry.kind == stat.S_IFDIR and _move_back(path, entry.status, kept):
        return
    status = _status(path)
    if status is not None and (entry is None or stat.S_IFMT(status.st_mode) != entry.kind):
        kept.take(path)
        status = None
    if entry is None:
        return
    if entry.kind == stat.S_IFDIR:
        if is_shell and not _is_folder(path, entry.status):
            raise OSError(errno.ENOENT, "it was removed with all that was in it, or moved away")
        path.parent.mkdir(parents=True, exist_ok=True)
        if status is None:
            path.mkdir()
        _give_rights(path, entry.status)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{os.getpid()}-{time.monotonic_ns()}.restored")
    try:
        _write(fresh, entry)
        if status is not None:
            kept.link(path)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _move_back(path: Path, original: os.stat_result, kept: Kept) -> bool:
    """Look for a folder that was only renamed, and rename it back over what took its place."""
    if _is_folder(path, original):
        return False
    places = itertools.chain([Path(os.path.realpath(path))], path.parent.iterdir() if path.parent.is_dir() else ())
    moved = next((other for other in places if _is_folder(other, original)), None)
    if moved is None:
        return False
    if _status(path) is not None:
        kept.take(path)
    moved.rename(path)
    _give_rights(path, original)
    return True


def _is_folder(path: Path, original: os.stat_result) -> bool:
    status = _status(path)
    return status is not None and (status.st_dev, status.st_ino) == (original.st_dev, original.st_ino)


def _write(fresh: Path, entry: Entry) -> None:
    if entry.target is not None:
        fresh.symlink_to(entry.target)
        return
    if entry.content is None and entry.copy is None:
        raise OSError(errno.EACCES, "it could not be read before the build")
    with fresh.open("xb") as file:
        if entry.copy is not None:
            entry.copy.seek(0)
            _copy(entry.copy, file)
        else:
            file.write(entry.content or b"")
        file.flush()
        os.fsync(file.fileno())
    _give_rights(fresh, entry.status)


def _give_rights(path: Path, status: os.stat_result) -> None:
    if os.geteuid() == 0:
        os.chown(path, status.st_uid, status.st_gid)
    path.chmod(stat.S_IMODE(status.st_mode))
