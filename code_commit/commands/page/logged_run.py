"""One run as its log has it: the content of its files, and its result in words."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from code_commit.commands.page.changes import FileDiff, parse_diff
from code_commit.errors import ApplyError
from code_commit.files import read_ends
from code_commit.redaction import Redactor
from code_commit.runs.diff import kind_of
from code_commit.runs.log import QUERY_OF_RUN
from code_commit.runs.record import RunRecord
from code_commit.runs.words import (
    FILE_KINDS,
    check_lines,
    count,
    duration,
    headline_of,
    total_cost,
    ways_on,
    would_change,
)
from code_commit.status import Status, Tone
from code_commit.terminal import shown

MOST_TEXT = 64_000_000  # bytes of a file of the log that are read as one text


class Headline(NamedTuple):
    """The result of a run in a few words, with a sign and a tone."""

    text: str
    tone: Tone

    @property
    def sign(self) -> str:
        return {"good": "✓", "bad": "✗", "wait": "…"}[self.tone]


class RunChanges(NamedTuple):
    """All changes of a run, the files whose content at that time is lost, and why there are none, with an error."""

    files: Sequence[FileDiff] = ()
    unknown: Sequence[str] = ()
    reason: str = ""
    error: str = ""
    is_made: bool = True  # not by a dry run

    @property
    def in_words(self) -> str:
        """The number of files and lines: `16 files +1,070 -1,070`, with a minus sign; "" for none."""
        files = len(self.files) + len(self.unknown)
        added, removed = (sum(file.count(kind) for file in self.files) for kind in "+-")
        changed = f"{count(files, 'file')} +{added:,} \N{MINUS SIGN}{removed:,}" if files else ""
        return changed if self.is_made or not files else would_change(changed)


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """A run's record and its log folder; `status` is that of `status_of`.

    The record is censored; files of the folder are read through the redactor. `name` is the short name of the run,
    `argument` names it to a command. `net_diff` returns all its changes and the files whose content at that time is
    lost, or raises ApplyError; `patch` replaces it if the tree is gone.
    """

    folder: Path
    root: Path
    record: RunRecord
    status: Status
    redactor: Redactor
    name: str = ""
    argument: str = ""
    net_diff: Callable[[], tuple[bytes, Sequence[str]]] = lambda: (b"", ())
    patch: bytes | None = None

    @property
    def applied(self) -> list[int]:
        """The numbers of the attempts that changed files."""
        return [attempt.number for attempt in self.record.attempts if attempt.verdict == "applied"]

    @property
    def headline(self) -> Headline:
        if self.record.undone:
            return Headline(f"{self._ending.text} (undone since: its changes are no longer in the tree)", "wait")
        return self._ending

    @property
    def _ending(self) -> Headline:
        return Headline(headline_of(self.record, self.status), self.status.tone)

    def numbers(self, changed: str) -> str:
        """Return `2 attempts · 16 files +70 -7 · 6.2 s · $0.01`; `changed` is the part about the files."""
        totals = self.record.totals
        price = total_cost(totals, short=True)
        attempts = count(totals.attempts, "attempt") if self.record.asks else ""
        return " · ".join(filter(None, [attempts, changed, duration(totals.seconds), price]))

    @property
    def message(self) -> list[str]:
        """The last message of the run, and what to do next where it is not done."""
        is_open = self.status == Status.REJECTED or (self.record.has_next_step and self.status != Status.RUNNING)
        goes_on = ways_on(self.record, self.argument) if is_open and self.patch is None else ()
        return [*filter(None, (self.record.message or "").split("\n")), *goes_on]

    @property
    def warnings(self) -> list[str]:
        return list(map(str, self.record.warnings))

    def checks(self, changes: RunChanges) -> list[str]:
        """Return a line for each test, CI file and build file that is another one after the run than before it."""
        lost = {path: kind for path in changes.unknown if (kind := kind_of(path))}
        told = [
            f"{shown(path)} is {FILE_KINDS[kind]}: changed, but how is no longer known" for path, kind in lost.items()
        ]
        return check_lines(file.as_change for file in changes.files) + told

    @property
    def task(self) -> list[str]:
        """The lines of the task; only its first line if the log is an older one without it."""
        query = (self.read(QUERY_OF_RUN) or self.record.query).strip()
        return query.split("\n") if query else []

    def read(self, name: str) -> str:
        """Return the first bytes of a file of the log; "" if it cannot be read."""
        with suppress(OSError):
            ends = read_ends(self.folder / name, MOST_TEXT, 0)
            return self.redactor.redact_cut((ends.head + ends.tail).decode("utf-8", "replace"))
        return ""

    def diff(self, name: str) -> list[FileDiff]:
        return parse_diff(self.read(name).encode("utf-8", "replace"))

    def changes(self) -> RunChanges:
        """Return all changes of the run; those it would make if it is a dry run."""
        if self.record.rolled_back:
            return RunChanges(reason="The run was rolled back: every file is as it was before.")
        if not self.applied:
            if self.record.options.get("dry_run") and (files := self.diff("1-changes.diff")):
                return RunChanges(files, reason="A dry run: this would have been changed.", is_made=False)
            return RunChanges(reason="The run changed no file.")
        try:
            diff, unknown = self.net_diff() if self.patch is None else (self.patch, [])
        except ApplyError as error:
            return RunChanges(reason="It cannot be shown:", error=self.redactor.redact_text(str(error)))
        files = parse_diff(self.redactor.redact(diff))
        reason = "" if files or unknown else "In the end no file is different from what it was before."
        return RunChanges(files, [self.redactor.redact_text(path) for path in unknown], reason)
