"""N-build.txt: the output and the end of a build; and the files that the build rewrote."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self

from code_commit.changes import AppliedChange
from code_commit.errors import LogError
from code_commit.files import write_all
from code_commit.redaction import Redactor
from code_commit.runs.diff import FileEdit
from code_commit.runs.record import BuildResult, RewrittenFile
from code_commit.runs.words import ending_of

_ROOM_FOR_THE_END = 64 * 1024


class BuildLog:
    """N-build.txt while the build runs: its redacted output, which is passed to `show` too, and its end."""

    def __init__(
        self,
        path: Path,
        redactor: Redactor,
        show: Callable[[bytes], object],
        end: Callable[[BuildResult | None], object],
    ) -> None:
        self.result: BuildResult | None = None
        self._path = path
        self._stream = redactor.stream(self._write_output)
        self._show = show
        self._end = end
        self._at_line_start = True
        try:
            path.unlink(missing_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LogError(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if isinstance(error, LogError):
                self._make_room()
            else:
                self._stream.close()
            ending = ending_of(self.result) if self.result else f"no result, {error or 'it did not run to its end'}"
            self._write(f"{'' if self._at_line_start else chr(10)}[build.sh: {ending}]\n".encode())
        finally:
            os.close(self._file)
        self._end(self.result)

    def write(self, piece: bytes) -> None:
        self._stream.write(piece)

    def _write_output(self, piece: bytes) -> None:
        self._write(piece)
        self._show(piece)

    def _write(self, piece: bytes) -> None:
        try:
            write_all(self._file, piece)
        except OSError as error:
            raise LogError(self._path, error) from error
        self._at_line_start = piece.endswith(b"\n")

    def _make_room(self) -> None:
        """Remove the last bytes of a log that filled the disk, to make room for the record of the end."""
        with suppress(OSError):
            os.ftruncate(self._file, max(0, os.fstat(self._file).st_size - _ROOM_FOR_THE_END))
        self._at_line_start = False


def rewritten_files(changes: Iterable[AppliedChange], edits: Iterable[FileEdit]) -> list[RewrittenFile]:
    return [
        RewrittenFile(change.path, _action_of_build(edit), change.lines_added, change.lines_removed)
        for change, edit in zip(changes, edits, strict=True)
    ]


def _action_of_build(edit: FileEdit) -> Literal["reformat", "replace", "mode", "delete", "create"]:
    if edit.old is None or edit.new is None:
        return "delete" if edit.new is None else "create"
    if edit.old == edit.new:
        return "mode"
    return "reformat" if b"".join(edit.old.split()) == b"".join(edit.new.split()) else "replace"
