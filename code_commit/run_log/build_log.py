"""N-build.txt, written while the build runs."""

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from code_commit.errors import LogError
from code_commit.run_log.private_file import create_private
from code_commit.run_record import Attempt, BuildResult

if TYPE_CHECKING:
    from code_commit.run_log.run_log import RunLog


class BuildLog:
    """N-build.txt while the build runs: its output as it comes, redacted, and at last a line that says how it ended."""

    def __init__(self, log: "RunLog", attempt: Attempt, path: Path) -> None:
        self.result: BuildResult | None = None
        self._log = log
        self._attempt = attempt
        self._file = create_private(path)
        self._stream = log.redactor.stream(self._write)
        self._at_line_start = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if isinstance(error, LogError):
                self._file.take_back(_ROOM_FOR_THE_END)
                self._at_line_start = False
            else:
                self._stream.close()
            ending = self.result.ending if self.result else f"no result, {error or 'it did not run to its end'}"
            self._write(f"{'' if self._at_line_start else chr(10)}[build.sh: {ending}]\n".encode())
        self._attempt.build = self.result
        if self.result:
            self._log.save("built")

    def write(self, piece: bytes) -> None:
        """Take the next piece of the build's output."""
        self._stream.write(piece)

    def _write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._at_line_start = piece.endswith(b"\n")
        tail = piece if len(piece) <= _LIVE_BYTES else b"\n" + piece[-_LIVE_BYTES:]
        self._log.listener.live(tail.decode("utf-8", "replace"))


_ROOM_FOR_THE_END = 64 * 1024
"""Bytes of a build log that filled the disk are given back, so that the run can write down how it ended."""

_LIVE_BYTES = 400
"""Of each piece of output so much is offered to a live display, which shows one line: a longer one begins anew."""
