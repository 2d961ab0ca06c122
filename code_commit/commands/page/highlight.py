"""Source code in syntax colours: pygments reads it, the markup is made here, of escaped pieces only."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from types import FrameType
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from code_commit.commands.page.patience import Patience
from code_commit.terminal import shown

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

Piece = tuple[str, str]
"""A style class of page.css ("" for none) and the text that has it."""

MOST_CODE = 400_000
"""Characters of one hunk that are coloured."""
MOST_SECONDS = 8.0
"""What colours may cost a page. Lexers are regular expressions, and some input makes some of them very slow."""
MOST_SHOWN = 2_000
"""Characters of a line that are shown."""


class _TooSlowError(Exception):
    pass


class Highlighter:
    """Colours code as long as its time lasts."""

    def __init__(self, seconds: float = MOST_SECONDS) -> None:
        self._patience = Patience(seconds)

    def lines(self, path: str, texts: Sequence[str]) -> list[list[Piece]]:
        """Return the lines of one side of a hunk in pieces; in one piece each where they cannot be coloured."""
        plain = [[("", text)] for text in texts]
        code = "\n".join(texts) + "\n"
        if len(code) > MOST_CODE or self._patience.left <= 0:
            return plain
        try:
            with self._patience.spending(), _time_limit(self._patience.left):
                lexer = _lexer(path.rpartition("/")[2])
                coloured = _lines_of(lexer, code) if lexer else plain
        except Exception:  # noqa: BLE001 - a lexer's bug, or its time is up, costs the colours and nothing else
            coloured = plain
        return coloured if len(coloured) == len(plain) else plain


@cache
def _lexer(name: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _lines_of(lexer: "Lexer", code: str) -> list[list[Piece]]:
    """`get_tokens` would make line ends of every CR; `get_tokens_unprocessed` leaves the text as it is."""
    lines: list[list[Piece]] = [[]]
    for _, kind, text in lexer.get_tokens_unprocessed(code):
        style = _style(kind)
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append([])
            if part and lines[-1] and lines[-1][-1][0] == style:
                lines[-1][-1] = (style, lines[-1][-1][1] + part)
            elif part:
                lines[-1].append((style, part))
    if "\n".join("".join(text for _, text in line) for line in lines) != code:
        return []
    return lines[:-1]


@cache
def _style(kind: "_TokenType") -> str:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    styles = (
        (Comment, "c"),
        (Keyword.Constant, "m"),
        (Keyword, "k"),
        (Operator.Word, "k"),
        (String, "s"),
        (Number, "m"),
        (Name.Constant, "m"),
        (Name.Tag, "k"),
        (Name.Function, "f"),
        (Name.Class, "f"),
        (Name.Decorator, "f"),
        (Name.Builtin, "b"),
        (Name.Attribute, "b"),
    )
    return next((style for parent, style in styles if kind[: len(parent)] == parent), "")


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise _TooSlowError when the time is up, also within a regular expression: `re` looks for signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise _TooSlowError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def line_markup(pieces: Sequence[Piece], marks: Sequence[tuple[int, int]] = ()) -> Markup:
    """Return one line as HTML: its pieces in their colours, `marks` in <mark>, what cannot be seen as its escape."""
    parts = []
    position = 0
    for style, text in pieces:
        for start, end, marked in _cut(position, min(position + len(text), MOST_SHOWN), marks):
            part = visible(text[start - position : end - position])
            part = _OPENING + style + _OPENED + part + _CLOSING if style else part
            parts.append(_MARK + part + _MARK_END if marked else part)
        position += len(text)
    if position > MOST_SHOWN:
        parts.append(Markup("<i>… {:,} more characters</i>").format(position - MOST_SHOWN))
    return Markup("").join(parts)


_OPENING, _OPENED, _CLOSING = Markup("<span class="), Markup(">"), Markup("</span>")
_MARK, _MARK_END = Markup("<mark>"), Markup("</mark>")


def _cut(start: int, end: int, marks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, bool]]:
    """Yield the parts of a range, cut where a mark begins or ends."""
    for mark_start, mark_end in marks:
        if mark_end <= start or mark_start >= end:
            continue
        if mark_start > start:
            yield start, mark_start, False
        yield max(start, mark_start), min(end, mark_end), True
        start = min(end, mark_end)
    if start < end:
        yield start, end, False


def visible(text: str) -> Markup:
    """Escape a text for HTML; characters that cannot be seen, or that turn the others around, come as their escape."""
    if text.replace("\t", " ").isprintable():
        return escape(text)
    parts = (Markup("<i>{}</i>").format(shown(part)) if hidden else escape(part) for part, hidden in _parts(text))
    return Markup("").join(parts)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield runs of characters that can be seen, and of those that cannot."""
    for hidden, run in groupby(text, lambda char: not char.isprintable() and char != "\t"):
        yield "".join(run), hidden
