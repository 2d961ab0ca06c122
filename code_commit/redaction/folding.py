"""Folded text: what a key's characters look like when all that tools put between and before them is dropped.

Letters lose their case, the two base64 alphabets become one, and blanks, quotes, colours and the marks of numbers go.
"""

import re
from collections.abc import Iterator

_ESCAPE = rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[PX\]^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\`-~]"

ESCAPE_SEQUENCE = _ESCAPE
"""CSI, the strings OSC, DCS, SOS, PM and APC, and the shorter ones (ECMA-48, section 5)."""

DROPPED = bytes(range(0x1B)) + bytes(range(0x1C, 0x21)) + b"'\"\\%xXuU0&#;:,|"

OFFSET = rb"\n[0-9a-fA-F]{6,8}:?[ \t]++"
DUMP_ROW_START = (
    OFFSET + rb"(?>(?:[0-9a-fA-F]{2,4}[ \t])*+(?:[ \t](?:[0-9a-fA-F]{2}[ \t])*+[ \t]*+\||[ \t]*+(?:>|\|?)))"
)
"""Where the text of a dump's row goes on in the next row, behind its offset and its numbers.

Two blanks end the numbers (the text may look like more of them), but for the middle of a row of `hexdump -C`.
"""

QUOTED_LINE = rb"\n[ \t]*[+|#>*]++[ \t]++|\"[ \t]*\+[ \t\r\n]*\""
"""The beginning of a line in a diff, a comment or a quotation; a string that goes on in the next one."""

NUMERIC_SPELLINGS = (b"\\u00%02x", b"%%%02x", b"%%25%02x", b"&#%d;", b"&#x%x;", b"\\x%02x", b"\\%03o")

_FOLDED = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", b"abcdefghijklmnopqrstuvwxyz+/")
_COLOUR = re.compile(_ESCAPE)
_UNFINISHED = rb"\x1b(?:\[[0-?]*[ -/]*|[PX\]^_][^\x07\x1b\n]*\x1b?|[ -/]*)\Z"
_COLOUR_OR_ITS_START = re.compile(_ESCAPE + rb"|" + _UNFINISHED)
_HEX = rb"([2-7][0-9a-fA-F])"
_ESCAPED = (
    rb"\\u00" + _HEX + rb"|\\x" + _HEX + rb"|%(?:25)?" + _HEX + rb"|&#x" + _HEX + rb";|&#([0-9]{2,3});|\\([01][0-7]{2})"
)
_ROWS = b"|".join(start + DUMP_ROW_START for start in (b"", rb"\|\r?", rb"<\r?"))
_IN_LINES = _ESCAPED + rb"|\\[nr]|" + QUOTED_LINE
_CLOSE_GAPS = _IN_LINES + rb"|" + _ROWS
_CLOSE_READINGS = (re.compile(_IN_LINES), re.compile(_CLOSE_GAPS))
_HALF_ESCAPED = rb"\\(?:u0{0,2}|x|u00[2-7]|x[2-7]|[01][0-7]?)?\Z|%(?:2|25)?[2-7]?\Z|&(?:#(?:x?[0-9a-fA-F]{0,3}))?\Z"
_HALF_GAP = rb"\n[ \t]*[+|#>*]+[ \t]*\Z|\"[ \t]*\+[ \t\r\n]*\Z"
_CLOSELY_TO_END = re.compile(b"|".join([_HALF_ESCAPED, _HALF_GAP, _CLOSE_GAPS, _ESCAPE, _UNFINISHED]))
_ASCII_END = 0x7F
_BASES = (16, 16, 16, 16, 10, 8)


def fold(data: bytes) -> bytes:
    """Return the folded text."""
    if b"\x1b" in data:
        data = _COLOUR.sub(b"", data)
    return data.translate(_FOLDED, DROPPED)


def foldings(data: bytes) -> Iterator[bytes]:
    """Yield the folded text in each way in which a piece of a key may be read from it.

    As it is; with escaped characters as themselves, and without what begins the lines of one text; and without what
    begins the rows of a dump too (a piece of a key may look like a row's offset). All that also with what looks like
    escape sequences, for one that broke off would take the key's first characters with it.
    """
    for text in [data, _COLOUR.sub(b"", data)] if b"\x1b" in data else [data]:
        yield text.translate(_FOLDED, DROPPED)
        for reading in _CLOSE_READINGS:
            yield reading.sub(_unescaped, text).translate(_FOLDED, DROPPED)


def _unescaped(match: re.Match[bytes]) -> bytes:
    group = match.lastindex
    if group is None:
        return b""
    code = int(match[group], _BASES[group - 1])
    return bytes([code]) if code < _ASCII_END else b""


def fold_beginning(data: bytes) -> bytes:
    """Return the folded text of data that goes on: an escape sequence that has only begun is dropped as well."""
    if b"\x1b" in data:
        data = _COLOUR_OR_ITS_START.sub(b"", data)
    return data.translate(_FOLDED, DROPPED)


def place_of_last(data: bytes, count: int, start: int) -> int:
    """Return where the last `count` characters of `fold_beginning(data[start:])` begin in the data."""
    hidden: set[int] = set()
    if b"\x1b" in data[start:]:
        hidden = {place for match in _COLOUR_OR_ITS_START.finditer(data, start) for place in range(*match.span())}
    place = len(data)
    while count:
        place -= 1
        count -= data[place] not in DROPPED and place not in hidden
    return place


def fold_beginning_closely(data: bytes) -> bytes:
    """Return what `fold_beginning` does, but with escaped characters as themselves and without what begins lines."""
    return _CLOSELY_TO_END.sub(_unescaped, data).translate(_FOLDED, DROPPED)


def place_of_last_closely(data: bytes, count: int, start: int) -> int:
    """Return where the last `count` characters of `fold_beginning_closely(data[start:])` begin in the data."""
    places: list[int] = []
    for match in _CLOSELY_TO_END.finditer(data, start):
        places += [place for place in range(start, match.start()) if data[place] not in DROPPED]
        if _unescaped(match).translate(None, DROPPED):
            places.append(match.start())
        start = match.end()
    places += [place for place in range(start, len(data)) if data[place] not in DROPPED]
    return places[-count]
