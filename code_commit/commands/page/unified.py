"""Unified diffs read back: those of the log, which `code_commit.diff` wrote, whole or cut off, and damaged ones."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a hunk: what it is and its content, with the line end that it has in the file."""

    kind: Kind
    content: bytes


@dataclass(slots=True)
class Hunk:
    """One hunk: where it starts on both sides, as its header says it, and its lines."""

    old_start: int
    new_start: int
    lines: list[DiffLine] = field(default_factory=list)


@dataclass(slots=True)
class FileDiff:
    """What a diff says of one file. `notes` are its mode lines: `new file mode 100644`."""

    path: str
    notes: list[str] = field(default_factory=list)
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def deleted(self) -> bool:
        return any(note.startswith("deleted") for note in self.notes)

    def count(self, kind: Kind) -> int:
        return sum(line.kind == kind for hunk in self.hunks for line in hunk.lines)


class PatchError(ValueError):
    """The hunks are not those of this content."""


def parse_diff(data: bytes) -> list[FileDiff]:
    """Return the files of a diff; what is no part of one is passed over, a hunk that is cut off keeps its lines."""
    files: list[FileDiff] = []
    lines = data.split(b"\n")
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        if line.startswith(_FILE):
            files.append(FileDiff(_path(line.removeprefix(_FILE))))
        elif files and (match := _HUNK.match(line)):
            old_start, old, new_start, new = (int(number or 1) for number in match.groups())
            hunk = Hunk(old_start, new_start)
            position = _read_hunk(hunk, lines, position, old, new)
            files[-1].hunks.append(hunk)
        elif files and line.startswith(_NOTES):
            files[-1].notes.append(line.decode("utf-8", "replace"))
    return files


_FILE = b"diff --git "
_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NOTES = (b"new file mode", b"deleted file mode", b"old mode", b"new mode")


def _read_hunk(hunk: Hunk, lines: list[bytes], position: int, old: int, new: int) -> int:
    """Read the lines that the header promised; return the position behind them."""
    while position < len(lines):
        line = lines[position]
        if line.startswith(b"\\") and hunk.lines:
            last = hunk.lines[-1]
            hunk.lines[-1] = DiffLine(last.kind, last.content.removesuffix(b"\n"))
        elif line.startswith(b" ") and old and new:
            old, new = old - 1, new - 1
            hunk.lines.append(DiffLine(" ", line[1:] + b"\n"))
        elif line.startswith(b"-") and old:
            old -= 1
            hunk.lines.append(DiffLine("-", line[1:] + b"\n"))
        elif line.startswith(b"+") and new:
            new -= 1
            hunk.lines.append(DiffLine("+", line[1:] + b"\n"))
        else:
            break
        position += 1
    return position


def _path(names: bytes) -> str:
    """Return the file's name of `a/NAME b/NAME`, in which both halves are of the same length."""
    return _unquoted(names[: len(names) // 2]).removeprefix(b"a/").decode("utf-8", "replace")


def _unquoted(name: bytes) -> bytes:
    if not (name.startswith(b'"') and name.endswith(b'"')):
        return name
    return _QUOTED.sub(lambda match: bytes([int(match[1], 8) & 0xFF]) if match[1] else match[2], name[1:-1])


_QUOTED = re.compile(rb"\\(?:([0-7]{3})|(.))", re.DOTALL)


def patch(content: bytes, file: FileDiff) -> bytes:
    """Return what a file's diff makes of its content. Raises PatchError where a line is not the one that it names."""
    return b"".join(_patched_lines(split_lines(content), file.hunks))


def _patched_lines(old: list[bytes], hunks: list[Hunk]) -> Iterator[bytes]:
    position = 0
    for hunk in hunks:
        has_old = any(line.kind != "+" for line in hunk.lines)
        start = hunk.old_start - 1 if has_old else hunk.old_start
        yield from old[position:start]
        position = start
        for line in hunk.lines:
            if line.kind != "+":
                if old[position : position + 1] != [line.content]:
                    raise PatchError(f"line {position + 1} is another one")
                position += 1
            if line.kind != "-":
                yield line.content
    yield from old[position:]


def split_lines(content: bytes) -> list[bytes]:
    """Return the lines of a file with their ends, split at LF only."""
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
