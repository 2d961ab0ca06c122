"""A build's output for the page: its last lines, in their colours, with their numbers."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from code_commit.commands.page.highlight import MOST_SHOWN, more_characters, visible
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.files import CHUNK, open_regular, read_ends
from code_commit.terminal import ESCAPE_SEQUENCE, render

MOST_BYTES = 512_000  # that are read from the ends of all outputs: the errors are there
MOST_LINES = 6_000  # of each of them
SEARCHED_LINES = 300  # last lines that are searched for the first error
LAST_LINES = 12
_ERROR = re.compile(r"(?i)(?<![\w/])(\w*error|fatal|fail(ed|ure|ures)?|panicked|traceback|\w*exception|undefined)\b|✗")
_NO_ERROR = re.compile(r"(?i)\b(0|no) (errors?|fail(ed|ures?))\b")


class BuildView(NamedTuple):
    """The end of an output as markup, after `left_out` lines; `last` are its last lines."""

    left_out: int
    lines: Markup
    last: Markup


def build_view(run: LoggedRun, name: str, outputs: int) -> BuildView | None:
    """Return the view of a build log, one of so many; None where there is no such file."""
    from rich.ansi import AnsiDecoder

    try:
        ends = read_ends(run.folder / name, 0, MOST_BYTES // outputs)
        before, output = _count_lines(run.folder / name, ends.between), ends.tail
    except OSError:
        return None
    if ends.between:  # it begins within a line
        before, output = before + 1, output[output.find(b"\n") + 1 :]
    lines = list(enumerate(_lines(run, output), start=before + 1))
    left_out = before + max(0, len(lines) - MOST_LINES)
    lines = lines[-MOST_LINES:]
    decoder, error = AnsiDecoder(), _error_line(lines[-SEARCHED_LINES:])
    html = [_line_html(run, decoder, number, line, error) for number, line in lines]
    markup = [Markup("".join(part)) for part in (html, html[-LAST_LINES:])]  # noqa: S704 - made of escaped pieces
    return BuildView(left_out, *markup)


def _count_lines(path: Path, size: int) -> int:
    """Return how many lines end within the first bytes of a file."""
    with open_regular(path) as file:
        return sum(file.read(min(CHUNK, size - at)).count(b"\n") for at in range(0, size, CHUNK))


def _lines(run: LoggedRun, output: bytes) -> list[str]:
    """Return the lines as a terminal finally shows them, with their colours unless a line was overwritten."""
    lines = run.redactor.redact_cut(output.decode("utf-8", "replace")).replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        del lines[-1]
    return [render(line.encode()) if re.search("[\r\b]", line) else _colours_alone(line) for line in lines]


def _colours_alone(line: str) -> str:
    if line.isprintable():
        return line
    line = re.sub(ESCAPE_SEQUENCE, lambda match: f"\x1b[{match['parameters']}m" if match["final"] == "m" else "", line)
    return re.sub(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]", "", line)


def _error_line(lines: Sequence[tuple[int, str]]) -> int:
    """Return the number of the first line that reports an error, or of the last line."""
    plain = ((number, re.sub(r"\x1b\[[0-?]*m", "", line)) for number, line in lines)
    telling = (number for number, line in plain if _ERROR.search(line) and not _NO_ERROR.search(line))
    return next(telling, lines[-1][0] if lines else 0)


def _line_html(run: LoggedRun, decoder: Any, number: int, line: str, error: int) -> str:
    """Return one line; the decoder carries its colours over to the next."""
    text = decoder.decode_line(line[:MOST_SHOWN])
    plain, parts, position = text.plain, [], 0
    for span in text.spans:
        parts.append(visible(plain[position : span.start]))
        parts.append(f'<span class="{_classes(span.style)}">{visible(plain[span.start : span.end])}</span>')
        position = span.end
    parts.append(visible(plain[position:]))
    if text.spans and run.redactor.reveals_key(plain):  # it is whole again now that the escapes are gone
        parts = [visible(run.redactor.redact_text(plain))]
    marked = " class=error" if number == error else ""
    return f"<span data-n={number}{marked}>{''.join(parts)}{more_characters(len(line))}\n</span>"


@cache
def _classes(style: Any) -> str:
    """Return the style classes: one of eight colours, a box for a background, and the set attributes."""
    from rich.color import ColorSystem

    ground = None if style.bgcolor is None or style.bgcolor.is_default else style.bgcolor
    colour = ground or style.color
    names = [name for name in ("bold", "dim", "italic", "underline") if getattr(style, name)]
    names += ["box"] if ground or style.reverse else []
    if colour and not colour.is_default:
        names.append(f"a{(colour.downgrade(ColorSystem.STANDARD).number or 0) % 8}")
    return " ".join(names)
