"""The history in a prompt: what each earlier attempt changed, how it ended, and the LLM's notes on it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from code_commit.regex import regex
from code_commit.runs.record import Attempt, BuildResult
from code_commit.runs.words import ending_of, listed

_LONGEST_HISTORY = 1_950  # characters; 2,000 with the words before it
_LONGEST_NOTES = 600
_ENDS_ALONE = (
    "differs from {} in line ends or the last newline alone, which stayed as they were: send that again to write it"
)
_STUCK = ": if the cause lies in the project, take another way now; if outside, send ^^^cannot"
_NUMBER = regex(r"\b0x[\da-fA-F]+|(?<!\w)\d+([.,:]\d+)*(?![.,:]?\d)(\s?([mnu\u00b5]?s|min|seconds?|h)\b|(?!\w))")
_COMPARED_LINES, _COMPARED_CHARACTERS = 20, 20_000


class AttemptSummary(NamedTuple):
    """An attempt as the next prompts describe it: its number and changes, its result, the LLM's notes on one line."""

    start: str
    ending: str
    notes: str

    def __str__(self) -> str:
        return self.without_notes + (f"  Its notes: {self.notes}\n" if self.notes else "")

    @property
    def without_notes(self) -> str:
        return f"{self.start}{self.ending}\n"


def tell_attempt(attempt: Attempt) -> AttemptSummary:
    changes, start, ending = attempt.changes, f"Attempt {attempt.number} ", ""
    start += f"sent the change of attempt {attempt.same_change_as} again and " if attempt.same_change_as else ""
    if attempt.verdict == "rejected":
        start += "was rejected"
        more = " (and more)" if len(attempt.reasons) > 1 else ""
        ending = f", none of it was written: {attempt.reasons[0]}{more}"
    elif attempt.asked:
        start += "asked to see files and changed nothing"
    elif changes:
        added, removed = sum(change.lines_added for change in changes), sum(change.lines_removed for change in changes)
        start += f"changed {listed([change.name for change in changes], 8)} (+{added} -{removed})"
    else:
        start += "changed nothing, every file held that already"
    if attempt.ends_alone:
        ending += f"; it {_ENDS_ALONE.format(listed(attempt.ends_alone, 8))}"
    if attempt.build:
        ending += f"; the build failed: {ending_of(attempt.build)}"
        ending += f", just as after attempt {attempt.same_failure_as}" if attempt.same_failure_as else ""
        ending += _STUCK if attempt.same_change_as or attempt.same_failure_as or not changes else ""
    notes = " ".join(attempt.notes.split())
    return AttemptSummary(start, ending, notes if len(notes) <= _LONGEST_NOTES else f"{notes[:_LONGEST_NOTES]} ...")


def tell_history(attempts: Sequence[AttemptSummary], *, last_is_told_apart: bool) -> list[str]:
    """Return a line for each attempt, 1,950 characters at most: older ones lose their notes first, then their text."""
    lines = [str(told) for told in attempts]
    for number, (before, after) in enumerate(pairwise(attempts)):
        if before.notes == after.notes:
            lines[number] = before.without_notes
    if last_is_told_apart:
        attempts = [*attempts[:-1], AttemptSummary(attempts[-1].start, ": see [rejected response].", "")]
        lines[-1] = str(attempts[-1])
    for number, told in enumerate(attempts):
        if sum(map(len, lines)) > _LONGEST_HISTORY:
            lines[number] = told.without_notes
    over = sum(map(len, lines)) - _LONGEST_HISTORY
    text = "".join(lines)
    return lines if over <= 0 else [f"...{text[over + 3 :]}", *[""] * (len(lines) - 1)]


def comparable(build: BuildResult, output: str) -> tuple[object, ...]:
    """Return what two builds that failed in the same way share: their ends and their last lines, without numbers."""
    lines = [line for line in _NUMBER.sub("", output[-_COMPARED_CHARACTERS:]).split("\n") if line.strip()]
    return build.exit_code, build.signal, build.timed_out, *lines[-_COMPARED_LINES:]
