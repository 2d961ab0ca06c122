"""What the record says in words, laid out for the page: lists that may be of any length, reasons with their lines."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from code_commit.commands.page.excerpt import read_excerpt
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.run_record import Attempt

MOST_LINES = 200
MOST_CHARACTERS = 2_000
"""Reasons, warnings, lines of a message that are shown of each, and characters of one."""
MOST_SOURCE = 300
MOST_RESPONSE = 16_000_000
"""Bytes of a response in which the lines of its rejections are looked up."""


@dataclass(frozen=True, slots=True)
class RejectionView:
    """One reason of a rejection, with the line of the response that it is about, where it is about one."""

    line: int
    path: str
    message: str
    rule: str
    source: str


def rejection_views(run: LoggedRun, attempt: Attempt) -> list[RejectionView]:
    """Return the reasons of an attempt's rejection."""
    shown = attempt.rejections[:MOST_LINES]
    source: list[bytes] = []
    if any(rejection.line for rejection in shown):
        with suppress(OSError):
            excerpt = read_excerpt(run.folder / f"{attempt.number}-response.txt", MOST_RESPONSE, 0)
            source = run.redactor.redact(excerpt.head).split(b"\n")
    views = [
        RejectionView(
            rejection.line,
            "" if rejection.message.startswith(rejection.path) else rejection.path[:MOST_CHARACTERS],
            rejection.message[:MOST_CHARACTERS],
            rejection.rule,
            _line(source, rejection.line),
        )
        for rejection in shown
    ]
    if len(attempt.rejections) > len(shown):
        more = f"{len(attempt.rejections) - len(shown):,} more reasons are in run.json"
        views.append(RejectionView(0, "", more, "", ""))
    if attempt.more_rejections:
        views.append(RejectionView(0, "", f"and {attempt.more_rejections:,} more", "", ""))
    return views


def _line(source: Sequence[bytes], number: int) -> str:
    if not 0 < number <= len(source):
        return ""
    return one_line(source[number - 1].decode("utf-8", "replace"), MOST_SOURCE)


def one_line(text: str, most: int) -> str:
    """Return a line as it is laid out: the tabs as blanks, without the CR at its end, cut where it is too long."""
    text = text.removesuffix("\r").expandtabs(4)
    return text if len(text) <= most else text[:most] + " …"


def shortened(lines: Sequence[str]) -> list[str]:
    """Return the first lines of a list that may be of any length."""
    first = [one_line(line, MOST_CHARACTERS) for line in lines[:MOST_LINES]]
    return [*first, f"{len(lines) - MOST_LINES:,} more are in run.json"] if len(lines) > MOST_LINES else first
