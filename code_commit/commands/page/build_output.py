"""A build's output for the page: its last lines with their numbers."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from code_commit.commands.page.highlight import MOST_SHOWN, more_characters, visible
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.files import CHUNK, open_regular, read_ends
from code_commit.terminal import render

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
    try:
        ends = read_ends(run.folder / name, 0, MOST_BYTES // outputs)
        before, output = _count_lines(run.folder / name, ends.between), ends.tail
    except OSError:
        return None
    if ends.between:  # it begins within a line
        before, output = before + 1, output[output.find(b"\n") + 1 :]
    texts = run.redactor.redact_cut(render(output)).removesuffix("\n").split("\n")
    lines = list(enumerate(texts, start=before + 1))
    left_out = before + max(0, len(lines) - MOST_LINES)
    lines = lines[-MOST_LINES:]
    error = _error_line(lines[-SEARCHED_LINES:])
    html = [_line_html(number, line, is_error=number == error) for number, line in lines]
    markup = [Markup("".join(part)) for part in (html, html[-LAST_LINES:])]  # noqa: S704 - made of escaped pieces
    return BuildView(left_out, *markup)


def _count_lines(path: Path, size: int) -> int:
    """Return how many lines end within the first bytes of a file."""
    with open_regular(path) as file:
        return sum(file.read(min(CHUNK, size - at)).count(b"\n") for at in range(0, size, CHUNK))


def _error_line(lines: Sequence[tuple[int, str]]) -> int:
    """Return the number of the first line that reports an error, or of the last line."""
    errors = (number for number, line in lines if _ERROR.search(line) and not _NO_ERROR.search(line))
    return next(errors, lines[-1][0])


def _line_html(number: int, line: str, *, is_error: bool) -> str:
    marked = " class=error" if is_error else ""
    return f"<span data-n={number}{marked}>{visible(line[:MOST_SHOWN])}{more_characters(len(line))}\n</span>"
