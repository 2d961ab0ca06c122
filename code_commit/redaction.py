"""The Redactor: every byte that leaves the process passes it, and an API key comes out censored.

The specification: only the last two characters of a key are revealed, wherever it appears. A key is recognised
as it is and in the spellings that tools give it: JSON, URL, XML, shell and Python escapes, any letter case,
UTF-16, reversed, hex and octal dumps, base64 at each of its three alignments; also where line wraps, quotes or
colour codes stand between its characters, and when it is split over any number of writes. What it cannot see is
a key that somebody transformed on purpose (encrypted, cut in pieces): the build therefore gets no key to read.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

_Span = tuple[int, int, bytes]
_Unit = tuple[bytes, ...]

_ESCAPE_SEQUENCE = rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[PX\]^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\`-~]"
"""CSI, the strings OSC, DCS, SOS, PM and APC, and the shorter ones (ECMA-48, section 5)."""
_DUMP_ROW = rb"\|?\r?\n[0-9a-fA-F]{6,8}:?[ \t]+(?:[0-9a-fA-F]{2,4}[ \t]+)*\|?"
_DUMP_TEXT = rb"[ \t]*\|?[^\n]{0,19}\r?\n[0-9a-fA-F]{6,8}:?[ \t]+"
_QUOTED_LINE = rb"\r?\n[ \t]*[+|#>*]+[ \t]+|\"[ \t]*\+[ \t\r\n]*\""
_READABLE_GAP = (
    rb"(?:" + _DUMP_ROW + rb"|" + _QUOTED_LINE + rb"|[\x00-\x1a\x1c-\x20'\"\\]|\\[nr]|" + _ESCAPE_SEQUENCE + rb"){0,12}"
)
_BASE64_GAP = rb"(?:[\x00-\x1a\x1c-\x20]|\\[nr]|" + _ESCAPE_SEQUENCE + rb"){0,12}"
_NUMBER_GAP = rb"(?:[ \t\r\n:,;\x00]|0x|\\x|" + _DUMP_TEXT + rb"){0,8}"

_SHORT_START = 4
"""So few characters of a key in front of a line end are shown at once: a line must not wait for the next one."""

_XML_NAMES = {ord("&"): b"&amp;", ord("<"): b"&lt;", ord(">"): b"&gt;", ord('"'): b"&quot;", ord("'"): b"&apos;"}

_FOLDED = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", b"abcdefghijklmnopqrstuvwxyz+/")
_DROPPED = bytes(range(0x1B)) + bytes(range(0x1C, 0x21)) + b"'\"\\%xXuU0&#;:,|"


def _fold(data: bytes) -> bytes:
    """Drop what may stand between a key's characters and what numbers are marked with, so that `find` meets them."""
    if b"\x1b" in data:
        data = _COLOUR.sub(b"", data)
    return data.translate(_FOLDED, _DROPPED)


_COLOUR = re.compile(_ESCAPE_SEQUENCE)
_COLOUR_OR_ITS_START = re.compile(_ESCAPE_SEQUENCE + rb"|\x1b(?:\[[0-?]*[ -/]*|[PX\]^_][^\x07\x1b\n]*\x1b?|[ -/]*)\Z")


class _Form:
    """One spelling of a key: its units in order, each with its alternatives, and what may stand between them.

    `anchors` are folded pieces of it: data whose folded text holds none of them is passed over at the speed of
    `bytes.find`. There are two where a row of a dump may end inside one; none where nothing is sure to be met.
    """

    def __init__(self, units: list[_Unit], gap: bytes, anchors: list[bytes], mask: bytes) -> None:
        self.anchors = frozenset(anchors)
        self.mask = mask
        self._units = units
        self._gap = gap

    def spans(self, data: bytes) -> Iterator[_Span]:
        """Yield each place where the key stands in the data."""
        for match in self._pattern.finditer(data):
            yield (*match.span(), self.mask)

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        alternatives = (b"(?:" + b"|".join(map(re.escape, unit)) + b")" for unit in self._units)
        return re.compile(self._gap.join(alternatives), re.IGNORECASE)


def _readable_unit(code: int) -> _Unit:
    """Every spelling of one character: itself, JSON, URL (twice too), XML, Python, shell and C."""
    spellings = [bytes([code]), *(spelling % code for spelling in _NUMERIC_SPELLINGS)]
    return tuple([*spellings, _XML_NAMES[code]] if code in _XML_NAMES else spellings)


_NUMERIC_SPELLINGS = (b"\\u00%02x", b"%%%02x", b"%%25%02x", b"&#%d;", b"&#x%x;", b"\\x%02x", b"\\%03o")

_ANCHOR = 6
"""Characters of an anchor: two of them fit into a row of a dump, which holds 16."""

_SHORTEST_ANCHOR = 3


def _readable_anchors(secret: bytes) -> list[bytes]:
    """What is sure to be met of a key: a run of letters and digits (they alone are never escaped singly), or the
    numbers of its first characters where all are escaped alike. [] where the key has no such run.
    """
    run = max(map(_fold, re.split(rb"[^A-Za-z0-9]", secret)), key=len)
    if len(run) < _SHORTEST_ANCHOR:
        return []
    readable = [run[:_ANCHOR], run[_ANCHOR : 2 * _ANCHOR]] if len(run) >= 2 * _ANCHOR else [run]
    return readable + [_fold(_spelled(secret[:_ANCHOR], spelling)) for spelling in _NUMERIC_SPELLINGS]


def _spelled(secret: bytes, spelling: bytes) -> bytes:
    return b"".join(spelling % code for code in secret)


def _number_form(secret: bytes, spelling: bytes, mask: bytes) -> _Form:
    """A dump: every character as a number of fixed width."""
    numbers = [spelling % code for code in secret]
    size = min(_ANCHOR, len(secret) // 2)
    anchors = [_fold(b"".join(numbers[:size])), _fold(b"".join(numbers[size : 2 * size]))]
    return _Form([(number,) for number in numbers], _NUMBER_GAP, anchors, mask)


def _base64_form(secret: bytes, alignment: int, mask: bytes) -> _Form:
    """The base64 characters that depend on the secret alone when `alignment` bytes stand before it in its triple.

    The one at each end that depends on a neighbour too stays. Letter case is not told apart.
    """
    core = _base64_core(secret, alignment)
    either: dict[int, _Unit] = {ord("+"): (b"+", b"-"), ord("/"): (b"/", b"_")}
    units = [either.get(code, (bytes([code]),)) for code in core]
    return _Form(units, _BASE64_GAP, [_fold(core[: 2 * _ANCHOR])], mask)


def _base64_core(secret: bytes, alignment: int) -> bytes:
    encoded = base64.b64encode(b"\0" * alignment + secret).rstrip(b"=")
    shared = 1 if (alignment + len(secret)) % 3 else 0
    return encoded[(0, 2, 3)[alignment] : len(encoded) - shared]


def _forms(secret: bytes, mask: bytes) -> Iterator[_Form]:
    yield _Form([_readable_unit(code) for code in secret], _READABLE_GAP, _readable_anchors(secret), mask)
    backwards = secret[::-1]
    yield _Form([(bytes([code]),) for code in backwards], _READABLE_GAP, _readable_anchors(backwards)[:1], mask)
    for alignment in range(3):
        yield _base64_form(secret, alignment, mask)
    yield _number_form(secret, b"%02x", mask)
    yield _number_form(secret, b"%03o", mask)
    yield _number_form(secret, b"%d", mask)


def _spellings(secret: bytes) -> Iterator[bytes]:
    """Yield how the key may run through a stream, folded: a piece that ends inside one of these waits for more."""
    specials_quoted = (
        re.sub(rb"[^A-Za-z0-9._~-]", lambda match: b"%%%02x" % match[0][0], secret),
        re.sub(rb"[^A-Za-z0-9._~-]", lambda match: b"%%25%02x" % match[0][0], secret),
        b"".join(_XML_NAMES.get(code, bytes([code])) for code in secret),
    )
    numbers = (_spelled(secret, spelling) for spelling in _NUMERIC_SPELLINGS)
    base64s = (_base64_core(secret, alignment) for alignment in range(3))
    return map(_fold, {secret, secret[::-1], *specials_quoted, *numbers, *base64s})


class _Echo:
    """How a provider quotes a key back, `sk-pr****wxyz`: it shows more of the end than the specification does."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def spans(self, data: bytes) -> Iterator[_Span]:
        if self._secret[-3:] in data and any(dots in data for dots in _ECHO_DOTS):
            for match in self._pattern.finditer(data):
                yield (*match.span(), _mask(self._secret))

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        longest = len(self._secret) - 2
        ends = b"|".join(re.escape(self._secret[-length:]) for length in range(min(12, longest), 2, -1))
        starts = b"|".join(re.escape(self._secret[:length]) for length in range(min(24, longest), 1, -1))
        return re.compile(rb"(?:" + starts + rb")(?:\*{3,}|\.{3,}|\xe2\x80\xa6|x{4,})(?:" + ends + rb")")


_ECHO_DOTS = (b"***", b"...", b"\xe2\x80\xa6", b"xxxx")

_BYTES_PER_CHARACTER = 12
"""A key is looked for that many times its length back when a write may have ended inside it (`\\u0073` is 6)."""


class Redactor:
    """Censors a set of API keys. Immutable, so every sink of a run can share it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({secret.encode() for secret in secrets if secret}, key=len, reverse=True)
        self._echoes = [_Echo(secret) for secret in self._secrets]
        self._window = max((_BYTES_PER_CHARACTER * len(secret) + 256 for secret in self._secrets), default=0)
        self._forms = [form for secret in self._secrets for form in _forms(secret, _mask(secret))]
        self._anchors = frozenset().union(*(form.anchors for form in self._forms))
        self._spellings = sorted({spelling for secret in self._secrets for spelling in _spellings(secret)})

    def redact(self, data: bytes) -> bytes:
        """Return the data with every key censored."""
        return _masked(data, self.spans(data), 0, len(data)) if self._secrets else data

    def redact_text(self, text: str) -> str:
        """Return the text with every key censored."""
        if not self._secrets:
            return text
        return self.redact(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def redact_json(self, value: Any) -> bytes:
        """Return JSON-like data as a JSON document with every key censored, in names of members too."""
        document = _json_document(value)
        return _json_document(self._redact_value(value)) if self.spans(document) else document

    def _redact_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {self._redact_value(name): self._redact_value(member) for name, member in value.items()}
        if isinstance(value, list | tuple):
            return [self._redact_value(member) for member in value]
        return value

    def reveals_key(self, text: str) -> bool:
        """Tell whether a key stands in the text, in any spelling."""
        return bool(self._secrets) and bool(self.spans(text.encode("utf-8", "surrogatepass")))

    def stream(self, write: Callable[[bytes], object]) -> "RedactingStream":
        """Return a sink for data in pieces, which hands the censored data on to `write`."""
        return RedactingStream(self, write)

    def spans(self, data: bytes) -> list[_Span]:
        """Return where keys stand: (start, end, mask), in order, those that overlap joined into one."""
        if not self._secrets:
            return []
        folded = _fold(data)
        met = {anchor for anchor in self._anchors if anchor in folded}
        forms = [form for form in self._forms if not form.anchors or not met.isdisjoint(form.anchors)]
        finders: list[_Form | _Echo] = [*forms, *self._echoes]
        found = sorted(span for finder in finders for span in finder.spans(data))
        joined: list[_Span] = []
        for start, end, mask in found:
            if joined and start < joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]), joined[-1][2])
            else:
                joined.append((start, end, mask))
        return joined

    def unfinished(self, data: bytes, start: int) -> tuple[int, int] | None:
        """Return (position, characters read) of the first key from `start` on that may go on past the end, else None.

        The rows of a hex dump are not followed across pieces: a program writes such a row as one.
        """
        start = max(start, len(data) - self._window)
        hidden = {p for match in _COLOUR_OR_ITS_START.finditer(data, start) for p in range(*match.span())}
        places = [p for p in range(start, len(data)) if data[p] not in _DROPPED and p not in hidden]
        folded = bytes(data[p] for p in places).translate(_FOLDED)
        read = max((_shared_length(folded, spelling) for spelling in self._spellings), default=0)
        first = places[-read] if read else len(data)
        while first > start and data[first - 1] in _NUMBER_MARKS:
            first -= 1
        return (first, read) if first < len(data) else None


def _shared_length(text: bytes, spelling: bytes) -> int:
    """Return the length of the longest end of the text that the spelling begins with."""
    lengths = range(min(len(text), len(spelling)), 0, -1)
    return next((length for length in lengths if text.endswith(spelling[:length])), 0)


_NUMBER_MARKS = b"\\%xXuU0&#"


class RedactingStream:
    """Redacts data that comes in pieces; holds back only what may be the beginning of a key, until `close`."""

    def __init__(self, redactor: Redactor, write: Callable[[bytes], object]) -> None:
        self._redactor = redactor
        self._write = write
        self._pending = b""
        self._shown = 0

    def write(self, piece: bytes) -> None:
        """Take the next piece of the data."""
        data = self._pending + piece
        spans = self._redactor.spans(data)
        hold = self._redactor.unfinished(data, spans[-1][1] if spans else 0) or (len(data), 0)
        self._emit(data, spans, hold[0])
        self._pending = data[hold[0] :]
        self._shown = max(0, self._shown - hold[0])
        if hold[1] < _SHORT_START and self._pending.endswith(b"\n"):
            self._emit(self._pending, [], len(self._pending))
            self._shown = len(self._pending)

    def close(self) -> None:
        """Hand on what was held back: no more data comes."""
        self._emit(self._pending, self._redactor.spans(self._pending), len(self._pending))
        self._pending = b""
        self._shown = 0

    def _emit(self, data: bytes, spans: list[_Span], end: int) -> None:
        censored = _masked(data, spans, self._shown, end)
        if censored:
            self._write(censored)


def _json_document(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _masked(data: bytes, spans: list[_Span], start: int, end: int) -> bytes:
    pieces = []
    position = start
    for span_start, span_end, mask in spans:
        pieces += [data[position:span_start], mask]
        position = span_end
    return b"".join([*pieces, data[position:end]])


def _mask(secret: bytes) -> bytes:
    return b"*" * (len(secret) - 2) + secret[-2:]
