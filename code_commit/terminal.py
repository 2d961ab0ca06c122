"""Text on a terminal: escape sequences, the final text of an output, the safe form of a name, width and colour."""

from __future__ import annotations  # types cost no time at start-up

import os
import re
import sys
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TextIO

ESCAPE_SEQUENCE = (
    r"(?:\x1b\[|\x9b)(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~]?)"  # CSI (ECMA-48, 5.4)
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\n]*?(?:\x07|\x1b\\|\x9c|(?=\n)|\Z)"  # OSC, DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]?"
)  # control sequences, strings and the shorter escapes of ECMA-48, 7-bit and 8-bit, also unfinished

_REWRITES = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]"

_ERASED = "\x18"  # marks the erased rest of a line: CAN, which no reader uses
_UP = "\x19"  # stands around the number of lines that the cursor goes up: EM
_MOST_UP, _WIDEST_GAP = 4, 100  # digits; blanks before what stands below the end of a longer line
_TELLS_FAILURE = r"(?i)(?<!\b0 )(?<!\bno )(?:error|fail|fatal|panic|exception|traceback)(?!\w*: *0\b)|[\u2715-\u2718]"
_LOOKED_AT = 200  # characters of a line, whether it tells a failure

TAIL_BYTES = 262_144  # of an output that is searched for the lines to show
_TAIL_LINES = 12
_COLOURS = {"red": 31, "green": 32, "yellow": 33}
TERMINAL = "/dev/tty"  # the user's own terminal, wherever the streams of this process lead


def render(output: bytes) -> str:
    """Return the text that a terminal finally shows: without escapes, broken UTF-8 replaced.

    A line that tells a failure stays, whatever is drawn anew over it: another program may have written it meanwhile,
    and a terminal with fewer lines has moved it out of reach.
    """
    text = output.decode("utf-8", "replace").replace("\r\n", "\n")
    if not re.search(_REWRITES, text):
        return text
    rows: list[str | list[str]] = []
    row, top, padded, goes_up = 0, 0, set[int](), re.search(r"[\[\x9b]\d*[AF]", text) is not None
    for line in text.split("\n"):
        rows += [""] * (row == len(rows))
        if rows[row] or re.search(_REWRITES, line):
            marked = re.sub(ESCAPE_SEQUENCE, _marked, line.replace(_UP, ""))
            column, pieces = 0, re.split(rf"{_UP}(\d+){_UP}", marked)
            for up, piece in zip(["0", *pieces[1::2]], pieces[::2], strict=True):
                if int(up):
                    top = row + 1 if _tells_failure(rows[row]) else top
                    row = max(top, row - int(up))
                    rows += [""] * (row == len(rows))
                here = rows[row]
                cells = rows[row] = here if isinstance(here, list) else list(here)
                padded |= {row} if "\r" in piece else set()
                column = _draw(cells, piece, column)
        else:
            rows[row] = line
        row += 1
        top = row if goes_up and _tells_failure(rows[row - 1]) else top
    while len(rows) > row and not rows[-1]:
        rows.pop()
    lines = map("".join, rows)
    return "\n".join(line.rstrip(" ") if number in padded else line for number, line in enumerate(lines))


def _tells_failure(row: Sequence[str]) -> bool:
    return re.search(_TELLS_FAILURE, "".join(row[:_LOOKED_AT])) is not None


def _draw(cells: list[str], piece: str, column: int) -> int:
    """Write a piece of text to a row at a column, and return the column behind it."""
    for part in re.split(r"([\r\b\x18])", piece):
        if part == "\r":
            column = 0
        elif part == "\b":
            column = max(0, column - 1)
        elif part == _ERASED:
            del cells[column:]
        else:
            printable = re.sub(_CONTROL, "", part)
            cells += [" "] * min(column - len(cells), _WIDEST_GAP)
            cells[column : column + len(printable)] = printable
            column += len(printable)
    return column


def _marked(match: re.Match[str]) -> str:
    final, parameters = match["final"], match["parameters"]
    if final in ("A", "F") and len(parameters) <= _MOST_UP and (parameters or "1").isdecimal():
        return f"{chr(13) * (final == 'F')}{_UP}{parameters or 1}{_UP}"
    if final == "K" or (final == "J" and parameters in ("", "0")):
        return _ERASED if parameters in ("", "0") else "\r" + _ERASED
    return "\r" if final == "G" and parameters in ("", "0", "1") else ""


def shown(text: str) -> str:
    """Return a name or message that can be printed on one line of any terminal.

    Control, format (invisible, direction-changing), surrogate, private and separator characters become escapes.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_visible(char) else char.encode("unicode_escape").decode() for char in text)


def shown_json(document: str) -> str:
    """Return a JSON text that can be printed on any terminal: JSON's own escapes for all that `shown` escapes.

    Its line ends stay: none stands in a string of JSON.
    """
    if document.isascii() and "\x7f" not in document:
        return document
    return document.translate(
        {ord(char): _json_escape(char) for char in set(document) - {"\n"} if not _is_visible(char)}
    )


def _json_escape(char: str) -> str:
    return "".join(rf"\u{unit}" for unit in char.encode("utf-16-be", "surrogatepass").hex(" ", 2).split())


def _is_visible(char: str) -> bool:
    return char == " " or unicodedata.category(char)[0] not in "CZ"


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal on a stream, standard output by default; None without a terminal."""
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or None
    except (AttributeError, OSError, ValueError):
        return None


def wrapped(line: str, columns: int | None, indent: int | None = None) -> list[str]:
    """Return a line as rows of at most `columns` (None: one row), the further ones indented (None: 2 more)."""
    if columns is None or len(line) <= columns:
        return [line]
    from textwrap import wrap  # few lines are that long

    if indent is None:
        indent = len(line) - len(line.lstrip(" ")) + 2
    lead = " " * min(indent, columns // 2)
    return wrap(line, columns, subsequent_indent=lead, break_long_words=False, break_on_hyphens=False)


def aligned(rows: Sequence[Sequence[str]], texts: Collection[int] = (0,)) -> list[str]:
    """Return the rows of a table, each column as wide as its longest cell: texts to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in texts else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def last_lines(output: bytes) -> list[str]:
    """Return the last lines of a program's output as a terminal shows them."""
    text = render(output[-TAIL_BYTES:]).rstrip().expandtabs()
    return text.split("\n")[-_TAIL_LINES:] if text else []


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """Return a text in a colour ("" for none) if the stream is a terminal without NO_COLOR."""
    is_wanted = colour and is_live_terminal(stream) and not os.environ.get("NO_COLOR")
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[m" if is_wanted else text


def is_live_terminal(stream: TextIO) -> bool:
    """Tell whether lines can be redrawn on a stream."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb") and not os.environ.get("CI")
