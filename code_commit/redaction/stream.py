"""The stream: redacts data that comes in pieces, a key split over any number of them too."""

from collections.abc import Callable

from code_commit.redaction.scan import Scan
from code_commit.redaction.spellings import Span

_SHORT_START = 4
"""So few characters of a key in front of a line end are shown at once: a line must not wait for the next one."""


class RedactingStream:
    """Redacts data that comes in pieces; holds back only what may be the beginning of a key, until `close`."""

    def __init__(self, scan: Scan | None, write: Callable[[bytes], object]) -> None:
        self._scan = scan
        self._write = write
        self._pending = b""
        self._shown = 0

    def write(self, piece: bytes) -> None:
        """Take the next piece of the data."""
        if self._scan is None:
            self._write(piece)
            return
        data = self._pending + piece if self._pending else piece
        spans = self._scan.spans(data)
        end, read = self._scan.unfinished(data, spans) or (len(data), 0)
        self._emit(data, [span for span in spans if span[1] <= end], end)
        self._pending = data[end:]
        self._shown = max(0, self._shown - end)
        if read < _SHORT_START and self._pending.endswith(b"\n"):
            self._emit(self._pending, [], len(self._pending))
            self._shown = len(self._pending)

    def close(self) -> None:
        """Hand on what was held back: no more data comes."""
        if self._scan is not None:
            self._emit(self._pending, self._scan.spans(self._pending), len(self._pending))
        self._pending = b""
        self._shown = 0

    def _emit(self, data: bytes, spans: list[Span], end: int) -> None:
        censored = masked(data, spans, self._shown, end)
        if censored:
            self._write(censored)


def masked(data: bytes, spans: list[Span], start: int, end: int) -> bytes:
    """Return the data between two places with masks where keys stand. A span may begin before `start`."""
    if not spans:
        return data[start:end]
    pieces = []
    position = start
    for span_start, span_end, mask in spans:
        pieces += [data[position:span_start], mask]
        position = span_end
    return b"".join([*pieces, data[position:end]])
