"""One file of the tree, read so that nothing is harmed or waited for, and copied if the rollup may hold it.

Folders are walked by descriptor and no link is followed, so that a folder exchanged for a link leads nowhere. A FIFO,
socket or device is never opened: to open one may wait for ever, or disturb whoever stands at its other end.
"""

import codecs
import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from code_commit.redaction import Redactor
from code_commit.rollup.names import LOCK_FILES
from code_commit.rollup.replacing import Output
from code_commit.rollup.summary import (
    BINARY,
    CHANGED,
    DELETED,
    KEY_FILE,
    LARGE_LOCK_FILE,
    LINK,
    NOT_UTF8,
    OTHER_REPOSITORY,
    REVEALS_KEY,
    SPECIAL,
    UNREADABLE,
)

CHUNK = 512 * 1024
"""Bytes that are read, checked and written at once."""

_OVERLAP = 32 * 1024
"""Bytes of a chunk that are searched again with the next one: a key may begin in them."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REASONS = {errno.ENOENT: DELETED, errno.ENOTDIR: DELETED, errno.ELOOP: LINK, errno.EMLINK: LINK, errno.ENXIO: SPECIAL}


class UnfitFileError(Exception):
    """A file that the rollup does without."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


class FileReader:
    """Copies files of one tree. A context manager: it holds the folders that it reads in."""

    def __init__(self, root: Path, redactor: Redactor, lock_file_limit: int) -> None:
        self._redactor = redactor
        self._lock_file_limit = lock_file_limit
        self._root = os.open(root, _FOLDER)
        self._folder = self._root
        self._folder_name = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        os.close(self._root)

    def copy(self, name: str, output: Output) -> tuple[int, int]:
        """Append the file; return its bytes and the characters added. Raises UnfitFileError: nothing was added.

        An OSError of the output goes on to the caller.
        """
        folder_name, _, base_name = name.rpartition("/")
        try:
            self._enter(folder_name)
            before = os.stat(base_name, dir_fd=self._folder, follow_symlinks=False)
            _require_fit(before, base_name, self._lock_file_limit)
            file = os.open(base_name, _FILE, dir_fd=self._folder)
        except OSError as error:
            raise _unfit(error) from error
        try:
            start = output.begin(before.st_size)
            try:
                return self._append(name, file, before, output)
            except UnfitFileError:
                output.take_back(start)
                raise
        finally:
            os.close(file)

    def _append(self, name: str, file: int, before: os.stat_result, output: Output) -> tuple[int, int]:
        checks = _TextChecks(self._redactor)
        size, chunk = 0, b"\n"
        header = f"--- {name} ---\n"
        output.write(header.encode())
        while size < before.st_size:
            try:
                chunk = os.read(file, min(CHUNK, before.st_size - size))
            except OSError as error:
                raise _unfit(error) from error
            size += len(chunk)
            checks.take(chunk, is_last=size == before.st_size)
            if not chunk:
                break
            output.write(chunk)
        if size != before.st_size or not _is_same(os.fstat(file), before):
            raise UnfitFileError(CHANGED)
        end = b"\n" if chunk.endswith(b"\n") else b"\n\n"
        output.write(end)
        return size, len(header) + checks.characters + len(end)

    def _enter(self, name: str) -> None:
        """Make the folder the current one, walking to it from the root."""
        if name == self._folder_name:
            return
        self._leave()
        try:
            for part in name.split("/") if name else []:
                folder = _open_folder(part, self._folder)
                self._leave()
                self._folder = folder
        except BaseException:
            self._leave()
            raise
        self._folder_name = name

    def _leave(self) -> None:
        if self._folder != self._root:
            os.close(self._folder)
        self._folder, self._folder_name = self._root, ""


def _open_folder(part: str, parent: int) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=parent)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(part, dir_fd=parent, follow_symlinks=False).st_mode):
            raise UnfitFileError(LINK, "behind a link") from None
        raise


def _require_fit(status: os.stat_result, base_name: str, lock_file_limit: int) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise UnfitFileError(LINK)
    if stat.S_ISDIR(status.st_mode):
        raise UnfitFileError(OTHER_REPOSITORY)
    if not stat.S_ISREG(status.st_mode):
        raise UnfitFileError(SPECIAL)
    if status.st_size > lock_file_limit and base_name in LOCK_FILES:
        raise UnfitFileError(LARGE_LOCK_FILE, f"{status.st_size:,} bytes")


def _unfit(error: OSError) -> UnfitFileError:
    reason = _REASONS.get(error.errno or 0, UNREADABLE)
    return UnfitFileError(reason, str(error.strerror) if reason == UNREADABLE else "")


def _is_same(now: os.stat_result, before: os.stat_result) -> bool:
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) == (
        before.st_dev,
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )


class _TextChecks:
    """Tells of a text that comes in chunks whether the rollup may hold it, and counts its characters."""

    def __init__(self, redactor: Redactor) -> None:
        self.characters = 0
        self._redactor = redactor
        self._decoder: codecs.IncrementalDecoder | None = None
        self._tail = b""

    def take(self, chunk: bytes, *, is_last: bool) -> None:
        """Raise UnfitFileError for a chunk that shows the file unfit."""
        if b"\0" in chunk:
            raise UnfitFileError(BINARY)
        self._count(chunk, is_last=is_last)
        if not self._tail and chunk.startswith(b"-----BEGIN ") and b"PRIVATE KEY" in chunk[:64]:
            raise UnfitFileError(KEY_FILE, "a private key")
        searched = self._tail + chunk if self._tail else chunk
        if self._redactor.spans(searched):
            raise UnfitFileError(REVEALS_KEY)
        self._tail = b"" if is_last else searched[-_OVERLAP:]

    def _count(self, chunk: bytes, *, is_last: bool) -> None:
        if self._decoder is None:
            if chunk.isascii():
                self.characters += len(chunk)
                return
            self._decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            self.characters += len(self._decoder.decode(chunk, final=is_last))
        except UnicodeDecodeError as error:
            raise UnfitFileError(NOT_UTF8) from error
