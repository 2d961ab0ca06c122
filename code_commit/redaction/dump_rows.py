"""The rows of a hex or octal dump at the end of data: a program may write a row in two pieces."""

import re

_OFFSET = rb"[0-9a-fA-F]{6,8}:?"
_NUMBER = rb"(?:[0-9a-fA-F]{2,4}|[!-~]|\\[!-~])(?=[ \t\r\n])"
_ROW = re.compile(_OFFSET + rb"[ \t]+" + _NUMBER)
_ROW_OR_ITS_START = re.compile(_OFFSET + rb"[ \t]+(?:" + _NUMBER + rb"|[!-~]{0,4}\Z)|[0-9a-fA-F]{1,8}:?\Z")


def first_row(data: bytes, start: int) -> int:
    """Return where the rows begin with which the data end, `start` at the earliest; the data's end where none are."""
    first = len(data)
    if data.endswith(b"\n"):
        line = data.rfind(b"\n", start, first - 1) + 1 or start
        is_row = _ROW.match(data, line)
    else:
        line = data.rfind(b"\n", start) + 1 or start
        is_row = _ROW_OR_ITS_START.match(data, line)
    while is_row:
        first = line
        if line <= start:
            break
        line = data.rfind(b"\n", start, line - 1) + 1 or start
        is_row = _ROW.match(data, line)
    return first
