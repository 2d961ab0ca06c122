"""A diff as HTML: a table for each file, old beside new, cut off where it would be too much for a page."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from code_commit.commands.page.highlight import Highlighter, Piece, line_markup
from code_commit.commands.page.patience import Patience
from code_commit.commands.page.side_by_side import MOST_SECONDS, Group, Row, Side, side_by_side, text_of
from code_commit.commands.page.unified import DiffLine, FileDiff, Hunk
from code_commit.terminal import shown

MOST_FILES = 1_000
MOST_FILE_SHARE = 0.6
"""What one file may take of the space of its diff, where others follow."""
OPEN_LINES = 400
MOST_PRINTED_LINES = 4_000
"""A file that shows more lines than these is folded at first, and is printed only when its reader unfolds it."""


@dataclass(frozen=True, slots=True)
class FileView:
    """One file of a diff, for the page. `path` and `note` are text, `rows` is markup."""

    anchor: str
    path: str
    note: str
    added: int
    removed: int
    rows: Markup
    lines: int

    @property
    def folded(self) -> bool:
        return self.lines > OPEN_LINES

    @property
    def without_lines(self) -> str:
        """What to say of a file that has no rows."""
        if self.note.startswith("new"):
            return "It is empty."
        return "It was empty." if self.note == "deleted" else "No line of it changed."

    @property
    def is_long(self) -> bool:
        return self.lines > MOST_PRINTED_LINES


@dataclass(frozen=True, slots=True)
class DiffView:
    """A diff for the page; `left_out` names how many files there was no room for, `source` where all of it is."""

    files: Sequence[FileView]
    left_out: int
    source: str


class DiffMarkup:
    """Makes the markup of diffs: all of a page share the time that colours and marks may take."""

    def __init__(self) -> None:
        self._highlighter = Highlighter()
        self._patience = Patience(MOST_SECONDS)

    def view(
        self, files: Sequence[FileDiff], anchor: str, source: str, room: int, counts: Mapping[str, tuple[int, int]]
    ) -> DiffView:
        """Return a diff's view in about `room` characters; `counts` are the lines added and removed, where known."""
        views: list[FileView] = []
        for number, file in enumerate(files[:MOST_FILES], start=1):
            share = room if number == len(files) else int(room * MOST_FILE_SHARE)
            if share < _LEAST_ROOM:
                break
            rows, lines = self._rows(file, source, share)
            added, removed = counts.get(file.path, (file.count("+"), file.count("-")))
            path = shown(file.path)
            views.append(FileView(f"{anchor}-{number}", path, _note(file), added, removed, rows, lines))
            room -= len(rows) + len(path) + _LEAST_ROOM
        return DiffView(views, len(files) - len(views), source)

    def _rows(self, file: FileDiff, source: str, room: int) -> tuple[Markup, int]:
        """Return a file's rows and how many lines of the diff they show."""
        parts: list[Markup] = []
        total = sum(len(hunk.lines) for hunk in file.hunks)
        shown_lines = 0
        for hunk in file.hunks:
            for lines, body in self._hunk(file, hunk):
                if room < len(body):
                    return Markup("").join([*parts, _cut_off(total - shown_lines, source)]), shown_lines
                parts.append(body)
                room -= len(body)
                shown_lines += lines
        return Markup("").join(parts), shown_lines

    def _hunk(self, file: FileDiff, hunk: Hunk) -> Iterator[tuple[int, Markup]]:
        """Yield a hunk's heading and rows, each with the number of diff lines in it."""
        yield 0, _HUNK_ROW.format(_heading(hunk))
        crlf = all(line.content.endswith(b"\r\n") for line in hunk.lines)
        old = _coloured(self._highlighter, file.path, [line for line in hunk.lines if line.kind != "+"], crlf=crlf)
        new = _coloured(self._highlighter, file.path, [line for line in hunk.lines if line.kind != "-"], crlf=crlf)
        for group in side_by_side(hunk, self._patience):
            yield from _group_rows(group, old, new)


_LEAST_ROOM = 600
_HUNK_ROW = Markup("<tbody class=h><tr><td colspan=2>{}</tbody>")


def _group_rows(group: Group, old: "_Lines", new: "_Lines") -> Iterator[tuple[int, Markup]]:
    """A change is one <tbody>, so that narrow screens can show its old lines above its new ones."""
    opening, closing = Markup("<tbody class=x>") if group.changed else Markup("<tbody>"), Markup("</tbody>")
    for start in range(0, len(group.rows), _ROWS_AT_ONCE):
        rows = group.rows[start : start + _ROWS_AT_ONCE]
        body = Markup("").join(_row(row, old, new) for row in rows)
        yield sum(_lines_in(row, changed=group.changed) for row in rows), opening + body + closing


_ROWS_AT_ONCE = 200


def _lines_in(row: Row, *, changed: bool) -> int:
    return (row.old is not None) + (row.new is not None) if changed else 1


def _row(row: Row, old: "_Lines", new: "_Lines") -> Markup:
    return Markup("<tr>") + _cell(row.old, old) + _cell(row.new, new)


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of one side of a hunk, in pieces, and which of them has no line end."""

    pieces: Sequence[Sequence[Piece]]
    unended: frozenset[int]


def _cell(side: Side | None, lines: _Lines) -> Markup:
    if side is None:
        return Markup("<td class=e>")
    cell = _CELL + str(side.number) + _CELL_END + line_markup(lines.pieces[side.index], side.marks)
    return cell + _NO_LINE_END if side.index in lines.unended else cell


_CELL, _CELL_END = Markup("<td data-n="), Markup(">")
_NO_LINE_END = Markup("<i>no line end</i>")


def _coloured(highlighter: Highlighter, path: str, lines: Sequence[DiffLine], *, crlf: bool) -> _Lines:
    texts = [text_of(line) for line in lines]
    if crlf:
        texts = [text.removesuffix("\r") for text in texts]
    unended = frozenset(index for index, line in enumerate(lines) if not line.content.endswith(b"\n"))
    return _Lines(highlighter.lines(path, texts), unended)


def _heading(hunk: Hunk) -> str:
    old, new = (sum(line.kind != kind for line in hunk.lines) for kind in "+-")
    return f"@@ -{hunk.old_start},{old} +{hunk.new_start},{new} @@"


def _cut_off(lines: int, source: str) -> Markup:
    said = f"{lines:,} more lines of this file are not shown; all of it: {source}"
    return Markup("<tbody class=cut><tr><td colspan=2>{}</tbody>").format(said)


def _note(file: FileDiff) -> str:
    """Return what happened to the file beside its lines."""
    notes = {note.rpartition(" mode ")[0]: note.rpartition(" ")[2] for note in file.notes}
    if "new file" in notes:
        return "new, executable" if notes["new file"] == "100755" else "new"
    if "deleted file" in notes:
        return "deleted"
    if "old" in notes and "new" in notes:
        return f"mode {notes['old'][-3:]} is now {notes['new'][-3:]}"
    return ""
