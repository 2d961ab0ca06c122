"""`--approve`: shows the diff of each answer on the terminal and asks there whether it is applied."""

import termios
from pathlib import Path

from code_commit.changes import AppliedChange, NotApprovedError, RejectedResponseError, Violation
from code_commit.commands.output import coloured_diff
from code_commit.files import write_all
from code_commit.runs.progress import Progress
from code_commit.runs.record import Attempt
from code_commit.runs.words import check_lines, count
from code_commit.settings import Settings
from code_commit.start import Approve
from code_commit.terminal import TERMINAL, shown

_YES, _NO, _ALL = ("y", "yes"), ("n", "no"), ("a", "all")
_MOST_LINES, _MOST_BYTES = 200, 20_000  # the part of a diff that is shown at first


def approval_of(settings: Settings, progress: Progress) -> Approve | None:
    """Return the function that asks on the terminal whether to apply an answer, None without `--approve`."""
    if not settings.approve:
        return None

    def approve(diff: bytes, attempt: Attempt, goes_back: bool) -> None:  # noqa: FBT001 - as `Approve` has it
        try:
            with progress.paused():
                answer = _ask(diff, _question(attempt.changes, goes_back=goes_back))
        except (OSError, termios.error):  # the terminal was closed
            answer = _NO[0]
        if answer.lower() in _YES:
            return
        words = "" if answer.lower() in _NO else f": {answer}"
        reason = Violation("", 0, "not-approved", f"not approved{words}")
        raise RejectedResponseError([reason]) if words and goes_back else NotApprovedError([reason])

    return approve


def _question(changes: list[AppliedChange], *, goes_back: bool) -> str:
    added, removed = sum(change.lines_added for change in changes), sum(change.lines_removed for change in changes)
    words = ", or tell the LLM what is wrong" if goes_back else " (ends the run)"
    checks = "".join(f"{line}\n" for line in check_lines(changes))
    return f"{checks}Apply this ({count(len(changes), 'file')}, +{added} -{removed})? yes, no{words}: "


def _ask(diff: bytes, question: str) -> str:
    """Show the diff, ask until there is an answer, and return it; no more input means no."""
    with Path(TERMINAL).open("rb+", buffering=0) as terminal:
        start = b"".join(diff[:_MOST_BYTES].splitlines(keepends=True)[:_MOST_LINES])
        write_all(terminal.fileno(), coloured_diff(start))
        if left := len(diff) - len(start):
            write_all(terminal.fileno(), f"... {left:,} bytes more: answer all to see the whole diff\n".encode())
        while True:
            termios.tcflush(terminal, termios.TCIFLUSH)
            write_all(terminal.fileno(), question.encode("utf-8", "replace"))
            try:
                line = terminal.readline()
            except KeyboardInterrupt:
                write_all(terminal.fileno(), b"\n")
                raise
            answer = line.decode("utf-8", "replace").strip()
            if answer.lower() in _ALL:
                write_all(terminal.fileno(), coloured_diff(diff))
            elif not line:
                return _NO[0]
            elif answer.lower() in (*_YES, *_NO) or " " in answer or not answer.isascii():
                return answer
            elif answer:
                unclear = f"{shown(answer)} is neither yes nor no: tell the LLM what is wrong in more than one word\n"
                write_all(terminal.fileno(), unclear.encode("utf-8", "replace"))
