"""A diff as HTML: a table for each file, old beside new or in one column, up to a limit."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, takewhile, zip_longest
from typing import NamedTuple

from markupsafe import Markup

from code_commit.commands.page.changes import FileDiff, Hunk, Line
from code_commit.commands.page.highlight import LONGEST_LINE, Piece, highlighted, line_html, visible

MOST_OF_FILE = 600_000  # characters of markup
_NO_MARKS = ((0, 0), (0, 0))


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
    words = _shared(before, after)
    start = len("".join(before[:words]))
    end = len("".join(before[len(before) - _shared(before[words:][::-1], after[words:][::-1]) :]))
    shared = len(old[:start].strip()) + len(old[len(old) - end :].strip())
    if 3 * shared < max(len(old.strip()), len(new.strip())):
        return _NO_MARKS
    return (start, len(old) - end), (start, len(new) - end)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many first words are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
