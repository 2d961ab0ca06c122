"""Folded text: what a key's characters look like when all that tools put between and before them is dropped.

Letters lose their case, the two base64 alphabets become one, and blanks, quotes, colours and the marks of numbers go.
"""

import re

_ESCAPE = rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[PX\]^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-OQ-WYZ\\`-~]"

ESCAPE_SEQUENCE = _ESCAPE
"""CSI, the strings OSC, DCS, SOS, PM and APC, and the shorter ones (ECMA-48, section 5)."""

DROPPED = bytes(range(0x1B)) + bytes(range(0x1C, 0x21)) + b"'\"\\%xXuU0&#;:,|"

_FOLDED = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", b"abcdefghijklmnopqrstuvwxyz+/")
_COLOUR = re.compile(_ESCAPE)
_UNFINISHED = rb"\x1b(?:\[[0-?]*[ -/]*|[PX\]^_][^\x07\x1b\n]*\x1b?|[ -/]*)\Z"
_COLOUR_OR_ITS_START = re.compile(_ESCAPE + rb"|" + _UNFINISHED)


def fold(data: bytes) -> bytes:
    """Return the folded text."""
    if b"\x1b" in data:
        data = _COLOUR.sub(b"", data)
    return data.translate(_FOLDED, DROPPED)


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
