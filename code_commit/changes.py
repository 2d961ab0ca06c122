"""What a response asks for: file replacements and file removals, what is wrong with them, and the verified form.

The values that the parser, the verification pass and the transaction hand to one another.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from code_commit.errors import CodeCommitError
from code_commit.terminal import shown

Action = Literal["create", "replace", "delete"]

Line = int | Callable[[], int]
"""A line's number, or what counts it: only a response that is rejected needs to know."""


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """The whole new content of one file, as the response gave it. `line` is that of the opening fence, from 1."""

    path: str
    content: str
    opening: Line = field(default=0, compare=False, repr=False)

    @property
    def line(self) -> int:
        return _number(self.opening)


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """One file that the response deletes. `line` is that of the opening fence, from 1."""

    path: str
    opening: Line = field(default=0, compare=False, repr=False)

    @property
    def line(self) -> int:
        return _number(self.opening)


def _number(line: Line) -> int:
    return line if isinstance(line, int) else line()


FileChange = FileReplacement | FileRemoval


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason to reject a response. `line` counts from 1 in the response, 0 where no line is to blame."""

    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        name = "" if self.message.startswith(f"{self.path} ") else f"{shown(self.path)}: "
        return f"{where}{name if self.path else ''}{self.message}"


class RejectedResponseError(CodeCommitError):
    """The response cannot be used; `violations` holds every reason, in the order of the response's lines."""

    exit_code = 4
    status = "rejected"

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(sorted(violations, key=lambda violation: violation.line))
        super().__init__("\n".join(map(str, self.violations)))

    @property
    def complaint(self) -> str:
        """Without the reasons: they were shown as they were found."""
        return "no usable response, the last one was rejected"


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """An existing target as the verification pass saw it; the transaction refuses to touch a file that differs by then.

    `mode` is the permission bits alone (`stat.S_IMODE`).
    """

    content: bytes
    mode: int
    device: int
    inode: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class VerifiedChange:
    """One change that may be applied: `content` is what the file will hold, byte for byte (None deletes it).

    `mode` is the permission bits that it will have: the original's, or those of the umask, executable behind `#!`.
    """

    change: FileChange
    action: Action
    content: bytes | None
    mode: int
    original: OriginalFile | None

    @property
    def path(self) -> str:
        return self.change.path


@dataclass(frozen=True, slots=True)
class VerifiedChanges:
    """A response that passed the whole verification pass. Only `verify_changes` makes one; only this can be applied."""

    root: Path
    changes: tuple[VerifiedChange, ...]
    warnings: tuple[str, ...] = ()

    @property
    def file_changes(self) -> Sequence[FileChange]:
        return [verified.change for verified in self.changes]
