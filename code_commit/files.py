"""Files and folders: opened without following a link or waiting, written whole, kept durably.

A file's data needs fsync before the rename that publishes it, its name needs fsync of the folder. `syncfs` gives the
same promise for a whole file system: since Linux 5.8 it waits, and reports failed write-back of anything written after
its descriptor was opened (syncfs(2)). Elsewhere every file gets its own fsync.
"""

import errno
import fcntl
import json
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from code_commit.ownership import Ownership, set_attributes, set_mode

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
CHUNK = 1 << 20

_OLD_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_A_FILE = {errno.ELOOP, errno.EMLINK, errno.ENXIO}  # a link (FreeBSD says EMLINK); a socket
_MANY_FILES = 8  # from here on one `syncfs` costs less than an fsync each
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}  # some network and FUSE file systems
_BUFFER = 1 << 16  # bytes: a codebase is written file by file
_ROOM_UNIT = 1 << 16  # bytes
_ROOM = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class NotAFileError(OSError):
    """The file to read is not regular: a link, a folder, a FIFO, a socket or a device."""

    def __init__(self, path: str | bytes | Path, number: int = errno.EINVAL) -> None:
        super().__init__(number, "it is not a regular file", path)


def folders_of(paths: Iterable[str]) -> set[str]:
    """Return every folder that the paths lie in, the top "" included."""
    folders = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def open_regular(path: str | bytes | Path, *, folder: int | None = None, follow_link: bool = False) -> FileIO:
    """Open a regular file for reading, unbuffered, without waiting. Raises OSError: NotAFileError for other files."""
    return FileIO(_open_regular(path, _OLD_FILE if follow_link else _OLD_FILE | os.O_NOFOLLOW, folder)[0])


def _open_regular(path: str | bytes | Path, flags: int, folder: int | None) -> tuple[int, os.stat_result]:
    try:
        file = os.open(path, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _NOT_A_FILE:
            raise NotAFileError(path, error.errno) from error
        raise
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode):
        os.close(file)
        raise NotAFileError(path)
    return file, state


def read_regular_file(path: Path, *, follow_link: bool = True) -> bytes:
    """Return the content of a file. Raises OSError as `open_regular` does."""
    with open_regular(path, follow_link=follow_link) as file:
        return file.readall()


def is_file(path: str | Path) -> bool:
    """Tell whether a file is there; Path.is_file() raises for a name that is too long for one."""
    return os.path.isfile(path)  # noqa: PTH113 - see above


def is_folder(path: str | Path) -> bool:
    """Tell whether a folder is there, as `is_file`."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def explain_unread(path: Path, name: str, error: OSError) -> str:
    """Return why a user's file cannot be read, and what to do."""
    if is_folder(path):
        return f"{name} is a folder, and must be a file"
    advice = f"; make it readable: chmod u+r {name}" if isinstance(error, PermissionError) else ""
    return f"{name} cannot be read: {error.strerror}{advice}"


def load_json(content: bytes | str) -> Any:
    """Return the value of a JSON text. Raises ValueError, also for one that is nested too deep."""
    try:
        return json.loads(content)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


class FileEnds(NamedTuple):
    """The first and the last bytes of a file, and how many lie between; of a short file `tail` has all."""

    head: bytes
    between: int
    tail: bytes


def read_ends(path: Path, most_head: int, most_tail: int) -> FileEnds:
    """Return a file's ends, at most so many bytes of each. Raises OSError as `open_regular` does."""
    with open_regular(path) as file:
        between = os.fstat(file.fileno()).st_size - most_head - most_tail
        if between <= 0:
            return FileEnds(b"", 0, file.readall())
        head = file.read(most_head)
        file.seek(between, os.SEEK_CUR)
        return FileEnds(head, between, file.read(most_tail))


def decode_text(content: bytes) -> str:
    """Return a text file's text. Raises ValueError, its message a predicate, where git or an LLM cannot show it."""
    if b"\0" in content:
        raise ValueError("is binary (it contains NUL bytes)")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from error


def enter_folder(parent: int, name: str, path: str) -> int:
    """Open a folder of the parent, and no link to one. Raises OSError (ENOENT, ENOTDIR, ELOOP)."""
    if name in {"", ".", ".."}:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return os.open(name, FOLDER, dir_fd=parent)


class Tree(AbstractContextManager["Tree"]):
    """The folders below a root, entered one after the other, never through a link. Open until `close`.

    Paths are relative to the root, with `/`; the root itself is the empty path. `enter` opens one folder, given the
    parent's descriptor, the name, and the path for a message; its errors pass through.
    """

    def __init__(self, root: Path, enter: Callable[[int, str, str], int] = enter_folder) -> None:
        self._enter = enter
        self._way = [("", os.open(root, FOLDER & ~os.O_NOFOLLOW))]
        self._twins: frozenset[str] = frozenset()

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._leave(0)

    def forget(self) -> None:
        """Walk again from the root at the next call: folders have come or gone."""
        self._leave(1)

    def tell_apart(self, paths: Iterable[str]) -> None:
        """Find a path by its exact spelling alone if some file systems take it for another one of these paths."""
        by_key: dict[str, set[str]] = {}
        for path in paths:
            by_key.setdefault(unicodedata.normalize("NFC", path).casefold(), set()).add(path)
        self._twins = frozenset(path for same in by_key.values() if len(same) > 1 for path in same)

    def folder(self, path: str) -> int:
        """Return a descriptor of the folder, good until the next call. Raises OSError (ENOENT, ENOTDIR, ELOOP)."""
        while (at := self._way[-1][0]) not in ("", path) and not path.startswith(f"{at}/"):
            self._leave(len(self._way) - 1)
        descriptor = self._way[-1][1]
        if at != path:
            for name in path[len(at) + 1 if at else 0 :].split("/"):
                at = f"{at}/{name}" if at else name
                descriptor = self._enter(descriptor, name, at)
                self._way.append((at, descriptor))
        return descriptor

    def parent(self, path: str) -> tuple[int, str]:
        """Return the folder that the path's last component is in, and that component."""
        folder, _, name = path.rpartition("/")
        return self.folder(folder), name

    def look(self, path: str) -> os.stat_result | None:
        """Return the state of the path, of a link itself too; None when nothing is there."""
        try:
            folder, name = self.parent(path)
            self._require_spelling(folder, name, path)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: str) -> tuple[int, os.stat_result]:
        """Return the descriptor of a regular file, which the caller closes, and its state. Raises as `open_regular`."""
        folder, name = self.parent(path)
        self._require_spelling(folder, name, path)
        return _open_regular(name, _OLD_FILE | os.O_NOFOLLOW, folder)

    def read(self, path: str) -> tuple[bytes, os.stat_result]:
        """Return a regular file's content, and its state just before. Raises OSError as `open`."""
        file, state = self.open(path)
        try:
            return read_all(file, state.st_size), state
        finally:
            os.close(file)

    def existing_folder(self, path: str) -> str:
        """Return the path's nearest ancestor that exists as a folder."""
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            with suppress(FileNotFoundError, NotADirectoryError):
                self.folder(folder)
                break
        return folder

    def _require_spelling(self, folder: int, name: str, path: str) -> None:
        if path in self._twins and unicodedata.normalize("NFC", name) not in {
            unicodedata.normalize("NFC", entry) for entry in os.listdir(folder)
        }:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _leave(self, depth: int) -> None:
        while len(self._way) > depth:
            os.close(self._way.pop()[1])


def read_all(file: int, size: int) -> bytes:
    """Return the rest of a file, read at once where it still has that many bytes."""
    content = os.read(file, size + 1)
    return content if len(content) == size else b"".join([content, *iter(lambda: os.read(file, CHUNK), b"")])


def write_all(file: int, content: bytes) -> None:
    """Write every byte: `os.write` may write fewer without an error, at a size limit for example."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest[:CHUNK]) :]


class NewFiles(AbstractContextManager["NewFiles"]):
    """Makes new files durable: a few of them one by one, from eight on by a sync of the whole file system."""

    def __init__(self, count: int = 1) -> None:
        self._sync_all = _find_file_system_sync() if count >= _MANY_FILES else None
        self._to_sync: dict[int, int] = {}
        """By file system the first file on it, open: the failures since then are reported to it."""

    def __exit__(self, *exception: object) -> None:
        while self._to_sync:
            os.close(self._to_sync.popitem()[1])

    def write(
        self, folder: int, name: str, content: bytes, mode: int = 0o600, owner: Ownership | None = None
    ) -> Ownership:
        """Make a file that is not there yet, with this mode and what can be kept of an ownership; return its own."""
        file = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
        try:
            write_all(file, content)
            attributes = set_attributes(file, owner.attributes if owner else ())
            state = set_mode(file, mode, owner and owner[:2])
            if self._sync_all is None:
                os.fsync(file)
            elif state.st_dev not in self._to_sync:
                self._to_sync[state.st_dev] = os.dup(file)
        finally:
            os.close(file)
        return Ownership(state.st_uid, state.st_gid, attributes)

    def sync(self) -> bool:
        """Sync all the new files. Return True if their names are durable too, without `sync_folder`."""
        if self._sync_all is None:
            return False
        for file in self._to_sync.values():
            self._sync_all(file)
        return True


@contextmanager
def replacing(path: Path, *, sync: bool = False) -> Iterator[BinaryIO]:
    """Give a new file to write, which then takes the path's place, with `sync` durably; an error removes it."""
    new = path.with_name(f".{os.urandom(6).hex()}.new")
    try:
        with open(os.open(new, _NEW_FILE, 0o600), "wb", _BUFFER) as file:  # noqa: PTH123 - a descriptor
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


class KeptRoom:
    """Keeps room on the disk for the last content of a file: a file beside it to write over and to rename."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._room = path.with_name(f".{path.name}.room")
        self._size = 0

    def keep(self, size: int) -> None:
        """Keep room for so many bytes at least. Raises OSError, and keeps what it had."""
        if size <= self._size:
            return
        size += -size % _ROOM_UNIT
        try:
            with self._filled(bytes(size)):
                pass
        except OSError:
            with suppress(OSError):
                os.truncate(self._room, self._size)
            raise
        self._size = size

    def write(self, content: bytes, *, sync: bool = False) -> None:
        """Write the last content of the file, whole, and give up the room; `sync` makes it durable. Raises OSError.

        The content is in its place before it is durable: a kill costs less time to it than a power cut does.
        """
        with self._filled(content) as file:
            self._room.replace(self._path)
            self._size = 0
            if sync:
                os.fsync(file.fileno())
                sync_names(self._path.parent)

    def release(self) -> None:
        """Give up the room. Raises OSError."""
        self._room.unlink(missing_ok=True)
        self._size = 0

    @contextmanager
    def _filled(self, content: bytes) -> Iterator[BinaryIO]:
        with open(os.open(self._room, _ROOM, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(content)
            file.truncate()
            yield file


def sync_folder(folder: int) -> None:
    """Make the folder's names durable; on macOS down to the medium, with all that was synced before."""
    with suppress(OSError):  # not every file system has it
        if hasattr(fcntl, "F_FULLFSYNC"):
            fcntl.fcntl(folder, fcntl.F_FULLFSYNC)
            return
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


@contextmanager
def opened_folder(path: Path) -> Iterator[int]:
    """Open a folder, or the one that a link leads to."""
    folder = os.open(path, FOLDER & ~os.O_NOFOLLOW)
    try:
        yield folder
    finally:
        os.close(folder)


def sync_names(path: Path) -> None:
    with opened_folder(path) as folder:
        sync_folder(folder)


def _find_file_system_sync() -> Callable[[int], None] | None:
    """Return the call that syncs the whole file system of a descriptor, None where its errors would go unreported."""
    if tuple(map(int, re.findall("[0-9]+", os.uname().release)[:2])) < (5, 8):
        return None
    try:
        import ctypes

        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (ImportError, OSError, AttributeError):
        return None

    def sync(folder: int) -> None:
        if syncfs(folder) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return sync


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """Return a key of the file that changes when it is replaced or written to."""
    times = status.st_mtime_ns, status.st_ctime_ns
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, *times)
