"""A build's output for the page: its first and last lines, in their colours, with their numbers."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from code_commit.commands.page.highlight import MOST_SHOWN, more_characters, visible
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.files import CHUNK, FileEnds, open_regular, read_ends
from code_commit.terminal import ESCAPE_SEQUENCE, render

MOST_HEAD = 128_000  # bytes that are read from the beginnings of all outputs
MOST_TAIL = 384_000  # and from their ends: what went wrong stands there
MOST_LINES = 3_000  # of each of them
SEARCHED_LINES = 300  # last lines in which the first that tells of an error is looked for
LAST_LINES = 12
_ERROR = re.compile(r"(?i)(?<![\w/])(\w*error|fatal|fail(ed|ure|ures)?|panicked|traceback|\w*exception|undefined)\b|✗")
_NO_ERROR = re.compile(r"(?i)\b(0|no) (errors?|fail(ed|ures?))\b")


class BuildView(NamedTuple):
    """An output as markup, `left_out` lines between `head` and `tail`; `last` are its last lines."""

    head: Markup
    left_out: int
    tail: Markup
    last: Markup


def build_view(run: LoggedRun, name: str, outputs: int) -> BuildView | None:
    """Return the view of a build log, one of so many; None where there is no such file."""
    from rich.ansi import AnsiDecoder

    try:
        ends = read_ends(run.folder / name, MOST_HEAD // outputs, MOST_TAIL // outputs)
        between = _count_lines_between(run.folder / name, ends)
    except OSError:
        return None
    head, tail = ends.head, ends.tail
    if head:  # both ends are cut to whole lines
        head, tail = head[: head.rfind(b"\n") + 1] or head, tail[tail.find(b"\n") + 1 :]
        between += 1
    first, last = _lines(run, head), _lines(run, tail)
    total = len(first) + between + len(last)
    top = list(enumerate(first, start=1))[:MOST_LINES]
    bottom = list(enumerate(last, start=total - len(last) + 1))[-MOST_LINES:]
    decoder, error = AnsiDecoder(), _error_line(bottom[-SEARCHED_LINES:])
    html = [_line_html(run, decoder, number, line, error) for number, line in [*top, *bottom]]
    parts = (html[: len(top)], html[len(top) :], html[len(top) :][-LAST_LINES:])
    markup = [Markup("".join(lines)) for lines in parts]  # noqa: S704 - made of escaped pieces
    return BuildView(markup[0], total - len(html), *markup[1:])


def _count_lines_between(path: Path, ends: FileEnds) -> int:
    with open_regular(path) as file:
        file.seek(len(ends.head))
        return sum(file.read(min(CHUNK, ends.between - at)).count(b"\n") for at in range(0, ends.between, CHUNK))


def _lines(run: LoggedRun, output: bytes) -> list[str]:
    """Return the lines as a terminal would finally show them, with their colours where nothing was written over."""
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
    """Return the number of the first of the lines that tells of an error; of the last where none does."""
    plain = ((number, re.sub(r"\x1b\[[0-?]*m", "", line)) for number, line in lines)
    telling = (number for number, line in plain if _ERROR.search(line) and not _NO_ERROR.search(line))
    return next(telling, lines[-1][0] if lines else 0)


def _line_html(run: LoggedRun, decoder: Any, number: int, line: str, error: int) -> str:
    """Return one line; the decoder's colours go on in the next."""
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
    """Return the style classes: one of eight colours, a box for a background, the attributes that were set."""
    from rich.color import ColorSystem

    ground = None if style.bgcolor is None or style.bgcolor.is_default else style.bgcolor
    colour = ground or style.color
    names = [name for name in ("bold", "dim", "italic", "underline") if getattr(style, name)]
    names += ["box"] if ground or style.reverse else []
    if colour and not colour.is_default:
        names.append(f"a{(colour.downgrade(ColorSystem.STANDARD).number or 0) % 8}")
    return " ".join(names)
