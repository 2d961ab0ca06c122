"""Diffs of the log, read back for the reviewer."""

import re
from typing import NamedTuple

from code_commit.changes import Action, AppliedChange
from code_commit.regex import regex
from code_commit.runs.diff import NOT_SHOWN, kind_of

_NOT_SHOWN = regex(re.escape(NOT_SHOWN.decode().strip()).replace("%s", "(.+)"))
_HUNK = regex(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@")
_OLD_NAME, _NEW_NAME = "rename from ", "rename to "
_MODE = regex(r"(new file|deleted file|old|new) mode ([0-7]{6})")


class Line(NamedTuple):
    """One line of a hunk: ` `, `-` or `+`, its text without the line feed, and whether it has one."""

    kind: str
    text: str
    ended: bool = True


class Hunk(NamedTuple):
    """One hunk: its heading, where it starts on both sides, and its lines."""

    heading: str
    old_start: int
    new_start: int
    lines: list[Line]


class FileDiff(NamedTuple):
    """One file of a diff. `modes` are its mode lines: `new file` -> `100644`. `renamed_from` is its old path."""

    path: str
    modes: dict[str, str]
    hunks: list[Hunk]
    is_secret: bool = False
    renamed_from: str = ""

    @property
    def is_new(self) -> bool:
        return "new file" in self.modes

    @property
    def is_deleted(self) -> bool:
        return "deleted file" in self.modes

    @property
    def as_change(self) -> AppliedChange:
        """The same in numbers, but for the size, which a diff does not tell."""
        action: Action = "create" if self.is_new or self.renamed_from else "delete" if self.is_deleted else "replace"
        kind, before = kind_of(self.path, self.renamed_from), self.renamed_from
        return AppliedChange(self.path, action, 0, self.count("+"), self.count("-"), kind, before)

    @property
    def lines(self) -> list[Line]:
        return [line for hunk in self.hunks for line in hunk.lines]

    def count(self, kind: str) -> int:
        return sum(line.kind == kind for line in self.lines)

    @property
    def note(self) -> str:
        """The change of the file apart from its lines."""
        if self.is_secret:
            return "a secret, not shown"
        if self.is_new:
            return "new, executable" if self.modes["new file"] == "100755" else "new"
        notes = ["deleted"] if self.is_deleted else []
        notes += [f"renamed from {self.renamed_from}"] if self.renamed_from else []
        notes += [f"mode {self.modes['old'][-3:]} is now {self.modes['new'][-3:]}"] if "old" in self.modes else []
        return ", ".join(notes)


def parse_diff(data: bytes) -> list[FileDiff]:
    """Return the files of a diff; other lines are ignored."""
    files: list[FileDiff] = []
    for line in data.decode("utf-8", "replace").split("\n"):
        hunks = files[-1].hunks if files else []
        if line.startswith("diff --git "):
            files.append(FileDiff(_path(line.removeprefix("diff --git ")), {}, []))
        elif secret := _NOT_SHOWN.fullmatch(line):
            files.append(FileDiff(_unquoted(secret[1]), {}, [], is_secret=True))
        elif files and (match := _HUNK.match(line)):
            hunks.append(Hunk(line, int(match[1]), int(match[2]), []))
        elif hunks and line[:1] in {" ", "-", "+"}:
            hunks[-1].lines.append(Line(line[0], line[1:]))
        elif hunks and hunks[-1].lines and line.startswith("\\"):
            hunks[-1].lines[-1] = hunks[-1].lines[-1]._replace(ended=False)
        elif files and not hunks and line.startswith(_OLD_NAME):
            files[-1] = files[-1]._replace(renamed_from=_unquoted(line.removeprefix(_OLD_NAME)))
        elif files and not hunks and line.startswith(_NEW_NAME):
            files[-1] = files[-1]._replace(path=_unquoted(line.removeprefix(_NEW_NAME)))
        elif files and (mode := _MODE.fullmatch(line)):
            files[-1].modes[mode[1]] = mode[2]
    return files


def _path(names: str) -> str:
    """Return the file's name of `a/NAME b/NAME`, in which both halves are of the same length."""
    return _unquoted(names[: len(names) // 2]).removeprefix("a/")


def _unquoted(name: str) -> str:
    if not name.startswith('"'):
        return name
    return re.sub(r"\\(?:([0-7]{3})|(.))", lambda part: chr(int(part[1], 8)) if part[1] else part[2], name[1:-1])
