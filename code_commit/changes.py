"""The changes that a response asks for, its violations, and its verified form."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from code_commit.errors import CodeCommitError
from code_commit.status import Status
from code_commit.terminal import shown

Action = Literal["create", "replace", "delete"]

FileKind = Literal["", "test", "ci", "build"]  # the way in which a file checks the work, "" for any other file

_MOST_REASONS = 50  # a response with more is wrong in kind, not in places
_LONGEST_QUOTE = 500
_MOST_NAMES = 8
_OR_AGAIN = "; if you mean it so, send it again unchanged"
SuspicionRule = Literal[
    "astray",
    "bare-end",
    "copy",
    "damaged",
    "decorated",
    "delete-word",
    "gone",
    "line-ends",
    "mixed-format",
    "omission",
    "repeated",
    "same-file",
    "thoughts",
    "wrong-format",
]
"""The rules of what may be meant: rejected once, it is accepted with a warning when it comes again."""
_OfAnswer = Literal["shrunk", "unseen", "overwritten", "cut-off", SuspicionRule]
_OfRun = Literal["build", "review", "rollback", "log", "owner", "server"]
_OfOlderVersions = Literal["test", "runner", "ci", "other", "case"]
WarningKind = Literal["setup", "codebase", "fallback", _OfAnswer, _OfRun, _OfOlderVersions]  # the subject of a warning


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """The whole new content of one file, as the response gave it. `line` is that of the opening fence, from 1."""

    path: str
    content: str
    line: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """One file that the response deletes. `line` is that of the opening fence, from 1."""

    path: str
    line: int = field(default=0, compare=False, repr=False)


FileChange = FileReplacement | FileRemoval


@dataclass(frozen=True, slots=True)
class Edit:
    """Whole lines of a file and their replacement; of a range `find` has the first and `last` the last lines."""

    find: str
    replacement: str
    line: int = field(default=0, compare=False, repr=False)
    last: str = ""


@dataclass(frozen=True, slots=True)
class EditBlock:
    """Edits of one existing file as it stood before the response. `line` is that of the opening fence, from 1."""

    path: str
    edits: tuple[Edit, ...]
    line: int = field(default=0, compare=False, repr=False)


RequestedChange = FileChange | EditBlock


class Note(NamedTuple):
    """A text of a response outside its blocks, and the line of its start, from 1. A block stands between two notes."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason to reject a response. `line` counts from 1, 0 is none; a long `path` is cut.

    With `may_be_meant` it is a suspicion: it is accepted when the same `fact` comes again.
    """

    path: str
    line: int
    rule: str
    message: str
    may_be_meant: bool = False
    fact: str = ""

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        name = "" if self.message.startswith(f"{self.path} ") else f"{self.path}: "
        return f"{where}{name if self.path else ''}{self.message}"


class RejectedResponseError(CodeCommitError):
    """The response cannot be used; `violations` has its reasons by line, `more` is the count of those beyond fifty."""

    status = Status.REJECTED
    exit_code = status.exit_code
    complaint = "no usable response: it was rejected\nSee: code-commit log --open."  # its reasons were shown before

    def __init__(self, violations: Iterable[Violation], more: int = 0) -> None:
        self.violations = tuple(sorted(violations, key=lambda violation: violation.line))
        self.more = more
        super().__init__("\n".join(self.reasons))

    @property
    def reasons(self) -> list[str]:
        return in_words(self.violations, self.more)

    @property
    def may_be_meant(self) -> bool:
        """Whether all its reasons are suspicions."""
        return not self.more and all(violation.may_be_meant for violation in self.violations)

    def name_reason(self, reason: str) -> None:
        """Let the run's end name the reason of a rejection that was shown for an earlier attempt alone."""
        more = self.complaint.partition("\n")[2]
        self.complaint = f"no usable response, rejected again for this reason: {reason}\n{more}"

    def name_way(self, response: str) -> None:
        """Let the run's end name the command that applies the response, a file of the log, all the same."""
        self.complaint += f"\nIf the answer is meant that way: code-commit apply --as-sent {response}"


class NotApprovedError(RejectedResponseError):
    """The supervisor refused the response: the run ends, even if attempts are left."""

    complaint = (
        "the answer was not approved; none of it was written\nDescribe the task in more detail (-m), then run again."
    )


class FilesAskedError(RejectedResponseError):
    """The response changes nothing, it asks to see files first; `names` are the lines of its list."""

    def __init__(self, names: Sequence[str], line: int) -> None:
        self.names = names
        listed = _listed(names)
        super().__init__([Violation("", line, "asked", f"it asks to see files, and changes nothing: {listed}")])
        self._what = f"the answer asks to see files and changes nothing: {listed}"
        self.complaint = f"{self._what}\nName them in the task, and let the prompt show them with --rollup fit."

    def tell_shown(self) -> None:
        """Let the run's end say that the prompt of the answer shows all of the files."""
        way = "Say in the task what to change in them, or use another --model."
        self.complaint = f"{self._what}\nThe prompt already shows them whole. {way}"

    def name_missing(self, paths: Sequence[str]) -> None:
        """Let the run's end name those of the paths that are not there."""
        if paths:
            self.complaint += f"\nThe project has no {_listed(paths)}: name the right files in the task."


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names[:_MOST_NAMES])) + (" ..." if len(names) > _MOST_NAMES else "")


class DeclinedError(CodeCommitError):
    """The LLM says that no change of the project can do the task; the message is its reason, in its own words."""

    status = Status.DECLINED
    exit_code = status.exit_code

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        way = "Fix that, or describe the task in more detail (-m), then run again."
        self.complaint = f"the LLM says that it cannot do this: {self}\n{way}"


def in_words(violations: Iterable[Violation], more: int) -> list[str]:
    """Return each reason of a rejection as a sentence, and one for the others."""
    return [*map(str, violations), *([f"and {more:,} more"] if more else [])]


Lenience = Literal[
    "bare-end",
    "byte-order-mark",
    "decorated-path",
    "delete-word",
    "end-token",
    "start-token",
    "listed-removals",
    "longer-fence",
    "protected-copy",
    "thoughts-dropped",
]
"""The forms of an answer that are read beside those of the specification."""

IsMeant = Callable[[tuple[str, str, str]], bool]
"""Tells whether the suspicion of a rule about a (quoted) path for a fact is known, so that its answer is accepted."""


class Reasons:
    """Collects why a response is rejected: the first fifty reasons, and how many more there are.

    A suspicion that `is_meant` knows is no reason. It becomes one of the `warnings`. `leniences` are those used. `left`
    are the paths of files that stay as they are.
    """

    def __init__(self, is_meant: IsMeant = frozenset[tuple[str, str, str]]().__contains__) -> None:
        self.kept: list[Violation] = []
        self.more = 0
        self.warnings: list[RunWarning] = []
        self.leniences: set[Lenience] = set()
        self.left: list[str] = []
        self._is_meant = is_meant

    def add(self, path: str, line: int, rule: str, message: str) -> None:
        self._keep(Violation(quoted(path), line, rule, message))

    def suspect(self, path: str, line: int, rule: SuspicionRule, fact: str, advice: str) -> bool:
        """Add a reason that may be mistaken, and return True; add a warning instead, and return False, if it is meant.

        `fact` says what was found, and `advice` what to send instead.
        """
        if not self._is_meant((rule, quoted(path), fact)):
            message = f"{fact}: {advice}{_OR_AGAIN}"
            self._keep(Violation(quoted(path), line, rule, message, may_be_meant=True, fact=fact))
            return True
        name = f"{shown(path)}: " if path else ""
        self.warnings.append(RunWarning(rule, f"{name}{fact}; accepted as sent", path))
        return False

    def leave(self, path: str, rule: SuspicionRule, fact: str) -> bool:
        """Tell that a file stays as it is because of a fact, and return True; return False, with a warning, if the
        answer means it.
        """
        is_left = not self._is_meant((rule, quoted(path), ""))
        if is_left:
            self.left.append(path)
        done = "left as it is" if is_left else "accepted as sent"
        self.warnings.append(RunWarning(rule, f"{shown(path)}: {fact}; {done}", path))
        return is_left

    def _keep(self, reason: Violation) -> None:
        if len(self.kept) == _MOST_REASONS:
            self.more += 1
        else:
            self.kept.append(reason)

    def reject(self, censor: Callable[[str], str] = str) -> None:
        """Raise RejectedResponseError if there is a reason. `censor` takes out what a cut quotation left of a key."""
        if self.kept:
            kept = [
                replace(each, path=censor(each.path), message=censor(each.message), fact=censor(each.fact))
                for each in self.kept
            ]
            raise RejectedResponseError(kept, self.more)


def quoted(text: str) -> str:
    """Return a name or a line for a message: safe to print, and cut if it is very long."""
    return shown(text) if len(text) <= _LONGEST_QUOTE else f"{shown(text[:_LONGEST_QUOTE])}..."


class OriginalFile(NamedTuple):
    """A target as the verification pass saw it; it is not changed if it differs later. `mode` is `stat.S_IMODE`."""

    content: bytes
    mode: int


class VerifiedChange(NamedTuple):
    """One change that may be applied: the new `content` (None deletes the file) and permission bits of the file.

    `renamed_from` is the deleted file that a new one renames.
    """

    change: FileChange
    action: Action
    content: bytes | None
    mode: int
    original: OriginalFile | None
    renamed_from: str = ""

    @property
    def path(self) -> str:
        return self.change.path


@dataclass(frozen=True, slots=True)
class RunWarning:
    """A warning to the reviewer of a run. `path` is the file that it is about, "" where it is about none."""

    kind: WarningKind
    message: str
    path: str = ""

    def __str__(self) -> str:
        return self.message


class VerifiedChanges(NamedTuple):
    """A response that passed the whole verification pass. Only `verify_changes` makes one; only this can be applied.

    `ends_alone` are files that stay as they are: the response differs from them in line ends or the last newline alone.
    """

    root: Path
    changes: tuple[VerifiedChange, ...]
    warnings: tuple[RunWarning, ...] = ()
    ends_alone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """One file that an applied response changed. `bytes` is its new size; lines are counted as `git diff` counts.

    `renamed_from` is the path of a deleted file that it renames, which is no change of its own.
    """

    path: str
    action: Action
    bytes: int
    lines_added: int
    lines_removed: int
    kind: FileKind = ""
    renamed_from: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.renamed_from, self.path) if self.renamed_from else (self.path,)

    @property
    def name(self) -> str:
        """Its path; of a rename `old -> new`."""
        return " -> ".join(self.paths)
