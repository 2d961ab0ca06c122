"""N-build.txt: the output of a build as it comes, and how the build ended."""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from code_commit.errors import LogError
from code_commit.files import write_all
from code_commit.runs.record import Attempt, BuildResult
from code_commit.runs.words import ending_of

if TYPE_CHECKING:
    from code_commit.runs.log import RunLog

_ROOM_FOR_THE_END = 64 * 1024


class BuildLog:
    """N-build.txt while the build runs: its output as it comes, redacted, and at last a line that says how it ended.

    Nothing is buffered, so that the file shows what has happened.
    """

    def __init__(self, log: "RunLog", attempt: Attempt, path: Path) -> None:
        self.result: BuildResult | None = None
        self._log = log
        self._attempt = attempt
        self._path = path
        self._stream = log.redactor.stream(self._write_output)
        self._at_line_start = True
        try:
            path.unlink(missing_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LogError(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, LogError):
                self._make_room()
            else:
                self._stream.close()
            ending = ending_of(self.result) if self.result else f"no result, {error or 'it did not run to its end'}"
            self._write(f"{'' if self._at_line_start else chr(10)}[build.sh: {ending}]\n".encode())
        finally:
            os.close(self._file)
        self._attempt.build = self.result
        if self.result:
            self._log.save("built")

    def write(self, piece: bytes) -> None:
        """Take the next piece of the build's output."""
        self._stream.write(piece)

    def _write_output(self, piece: bytes) -> None:
        self._write(piece)
        self._log.listener.output(piece)

    def _write(self, piece: bytes) -> None:
        try:
            write_all(self._file, piece)
        except OSError as error:
            raise LogError(self._path, error) from error
        self._at_line_start = piece.endswith(b"\n")

    def _make_room(self) -> None:
        """Give the last bytes of a log back that filled the disk, so that the run can write down how it ended."""
        with suppress(OSError):
            os.ftruncate(self._file, max(0, os.fstat(self._file).st_size - _ROOM_FOR_THE_END))
        self._at_line_start = False
