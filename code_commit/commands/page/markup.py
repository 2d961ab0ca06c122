"""Text of the log as HTML: code in colours, diffs, the output of a build. All markup is made here of escaped pieces."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby, pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

from code_commit.commands.page.changes import FileDiff, Hunk, Line
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.files import CHUNK, open_regular, read_ends
from code_commit.outputs import telling, tells_failure
from code_commit.runs.diff import without_equal_ends
from code_commit.terminal import render, shown

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

Piece = tuple[str, str]  # a style class of page.css ("" for none) and the text that has it

MOST_CODE = 200_000  # characters of one side of a hunk that are coloured
LONGEST_LINE = 1_000  # characters of a line up to which its hunk is coloured: some lexers are very slow on longer ones
MOST_SHOWN = 2_000  # characters of a line
MOST_OF_FILE = 600_000  # characters of markup
MOST_BYTES = 512_000  # that are read from the ends of all outputs: the errors are there
MOST_LINES = 6_000  # of each of them
SEARCHED_LINES = 300  # last lines that are searched for the first error
LAST_LINES = 4_000  # that are searched for what tells most
_NAMES = {"nf": "f", "fm": "f", "nc": "f", "nd": "f", "nb": "b", "bp": "b", "na": "b", "nt": "k", "ow": "k", "no": "m"}
_NO_MARKS = ((0, 0), (0, 0))


def highlighted(path: str, texts: Sequence[str]) -> list[list[Piece]]:
    """Return the lines in coloured pieces, or each in one piece where that is not possible."""
    plain = [[("", text)] for text in texts]
    code = "\n".join(texts) + "\n"
    lexer = _lexer(path.rpartition("/")[2])
    if lexer is None or len(code) > MOST_CODE or max(map(len, texts)) > LONGEST_LINE:
        return plain
    lines: list[list[Piece]] = [[]]
    for _, kind, text in lexer.get_tokens_unprocessed(code):  # `get_tokens` would make line ends of every CR
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append([])
            lines[-1].append((_style(kind), part))
    same = ["".join(text for _, text in line) for line in lines] == [*texts, ""]
    return lines if same else plain


@cache
def _lexer(name: str) -> "Lexer | None":
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(name)
    return found() if found else None


@cache
def _style(kind: "_TokenType") -> str:
    """Return the style class: the first letter of pygments' own short name, or that of a few names."""
    from pygments.token import STANDARD_TYPES

    while kind not in STANDARD_TYPES and kind.parent:
        kind = kind.parent
    name = STANDARD_TYPES.get(kind, "")
    return name[0] if name[:1] in {*"ksmc"} else _NAMES.get(name, "")


def line_html(pieces: Sequence[Piece], mark: tuple[int, int] = (0, 0)) -> str:
    """Return one line as HTML: its pieces in their colours, the range `mark` in <mark>."""
    parts = []
    position = 0
    for style, text in pieces:
        cuts = [min(max(cut - position, 0), len(text)) for cut in (0, *mark, MOST_SHOWN)]
        for index, (start, end) in enumerate(pairwise(cuts)):
            if start < end:
                part = visible(text[start:end])
                part = f"<span class={style}>{part}</span>" if style else part
                parts.append(f"<mark>{part}</mark>" if index == 1 else part)
        position += len(text)
    return "".join(parts) + more_characters(position)


def more_characters(length: int) -> str:
    """Return the note on the characters of a line that are not shown; "" where all are."""
    return f"<i>… {length - MOST_SHOWN:,} more characters</i>" if length > MOST_SHOWN else ""


def visible(text: str) -> str:
    """Escape a text for HTML, invisible and direction-changing characters as their escape sequences."""
    if text.replace("\t", " ").isprintable():
        return str(escape(text))
    runs = groupby(text, lambda char: char == "\t" or char.isprintable())
    parts = ((is_seen, "".join(run)) for is_seen, run in runs)
    return "".join(str(escape(part)) if is_seen else f"<i>{escape(shown(part))}</i>" for is_seen, part in parts)


class FileView(NamedTuple):
    """One file of a diff, its rows as markup, and how many lines of the diff they show."""

    file: FileDiff
    rows: Markup
    lines: int


def diff_view(files: Sequence[FileDiff], source: str, room: int) -> list[FileView]:
    """Return the views of the first files that fit into `room` characters; the log file `source` has all of them."""
    views: list[FileView] = []
    for file in files:
        if room > 0:
            views.append(_file_view(file, source, min(room, MOST_OF_FILE)))
            room -= len(views[-1].rows) + 1_000  # about what stands around them
    return views


def _file_view(file: FileDiff, source: str, room: int) -> FileView:
    parts: list[str] = []
    lines = 0
    across = "" if file.is_new or file.is_deleted else " colspan=2"
    for hunk in file.hunks:
        parts.append(f"<tbody class=h><tr><td{across}>{visible(hunk.heading)}</tbody>")
        for opening, row, shown_lines in _rows(file, hunk):
            room -= len(row)
            if room < 0:
                left_out = f"{len(file.lines) - lines:,} more lines of this file are not shown; all of it: {source}"
                parts.append(f"<tbody class=cut><tr><td{across}>{left_out}</tbody>")
                return FileView(file, _markup(parts), lines)
            parts.append(opening + row)
            lines += shown_lines
    return FileView(file, _markup(parts), lines)


def _markup(parts: Sequence[str]) -> Markup:
    return Markup("".join(parts))  # noqa: S704 - made of escaped pieces


class _Cell(NamedTuple):
    """A line on one side: its number in the file, and its text in colours."""

    number: int
    line: Line
    pieces: Sequence[Piece]


def _rows(file: FileDiff, hunk: Hunk) -> Iterator[tuple[str, str, int]]:
    """Yield the opening tag of a group of rows or "", a row, and how many lines of the diff it shows.

    Old and new lines of a change are side by side in order. Each change is one <tbody>, so that a narrow screen can
    show its old lines above its new ones.
    """
    old, new = _cells(file, hunk, "-"), _cells(file, hunk, "+")
    for changed, group in groupby(hunk.lines, lambda line: line.kind != " "):
        kinds = [line.kind for line in group]
        before, after = ([next(side) for kind in kinds if kind in (" ", own)] for side, own in ((old, "-"), (new, "+")))
        opening = "<tbody class=x>" if changed else "<tbody>"
        for left, right in zip_longest(before, after):
            marks = _changes_within(left.line.text, right.line.text) if changed and left and right else _NO_MARKS
            cells = "" if file.is_new else _cell_html(left, marks[0])
            cells += "" if file.is_deleted else _cell_html(right, marks[1])
            yield opening, f"<tr>{cells}", (bool(left) + bool(right)) if changed else 1
            opening = ""


def _cells(file: FileDiff, hunk: Hunk, kind: str) -> Iterator[_Cell]:
    crlf = "\r" if all(line.text.endswith("\r") for line in hunk.lines) else ""
    lines = [line for line in hunk.lines if line.kind in (" ", kind)]
    pieces = highlighted(file.path, [line.text.removesuffix(crlf) for line in lines]) if lines else []
    first = max(hunk.old_start if kind == "-" else hunk.new_start, 1)
    return (_Cell(first + index, line, pieces[index]) for index, line in enumerate(lines))


def _cell_html(cell: _Cell | None, mark: tuple[int, int]) -> str:
    if cell is None:
        return "<td class=e>"
    end = "" if cell.line.ended else "<i>no line end</i>"
    return f"<td data-n={cell.number}>{line_html(cell.pieces, mark)}{end}"


def _changes_within(old: str, new: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the ranges that differ in two versions of a line: all between the words at both ends that are equal.

    Nothing is marked in lines that share less than a third: they are side by side by chance.
    """
    if max(len(old), len(new)) > LONGEST_LINE:
        return _NO_MARKS
    before, after = (re.findall(r"\w+|\W", line) for line in (old, new))
    (first, last), _ = without_equal_ends(before, after)
    start, end = len("".join(before[:first])), len("".join(before[last:]))
    shared = len(old[:start].strip()) + len(old[len(old) - end :].strip())
    if 3 * shared < max(len(old.strip()), len(new.strip())):
        return _NO_MARKS
    return (start, len(old) - end), (start, len(new) - end)


class BuildView(NamedTuple):
    """The end of an output as markup, after `left_out` lines; `telling` are the lines that tell most of a failure."""

    left_out: int
    lines: Markup
    telling: Markup


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
    error = next((number for number, line in lines[-SEARCHED_LINES:] if tells_failure(line)), lines[-1][0])
    html = [_line_html(number, line, is_error=number == error) for number, line in lines]
    last = html[-LAST_LINES:]
    return BuildView(left_out, _markup(html), _markup([last[number] for number in telling(texts[-LAST_LINES:])]))


def _count_lines(path: Path, size: int) -> int:
    """Return how many lines end within the first bytes of a file."""
    with open_regular(path) as file:
        return sum(file.read(min(CHUNK, size - at)).count(b"\n") for at in range(0, size, CHUNK))


def _line_html(number: int, line: str, *, is_error: bool) -> str:
    marked = " class=error" if is_error else ""
    return f"<span data-n={number}{marked}>{visible(line[:MOST_SHOWN])}{more_characters(len(line))}\n</span>"
