"""What the page shows, as values: everything the template needs, computed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from code_commit.commands.page.build_output import BuildView, build_view
from code_commit.commands.page.diff_markup import DiffMarkup, DiffView
from code_commit.commands.page.excerpt import read_excerpt
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.commands.page.outcome import Headline, headline_of, outcome_of, summary_of
from code_commit.commands.page.reasons import RejectionView, one_line, rejection_views, shortened
from code_commit.commands.page.result import read_result
from code_commit.commands.page.terminal import TerminalMarkup
from code_commit.commands.page.timeline import Bar, TokenBars, time_line, token_bars
from code_commit.commands.page.unified import parse_diff
from code_commit.diff import diff_files
from code_commit.run_record import Attempt, RunRecord

RESULT_ROOM = 2_500_000
DIFFS_ROOM = 3_000_000
BUILDS_ROOM = 2_000_000
"""Characters of markup for the result, for the diffs of all attempts, for their builds: the page stays under 10 MB."""
MOST_ATTEMPTS = 100
MOST_DIFF = 16_000_000
"""Bytes of a diff that are read."""
MOST_QUERY = 20_000
MOST_PROMPT = 50_000_000


@dataclass(frozen=True, slots=True)
class FileLink:
    """A file of the log: its name and its address from the page."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt; `outcome` is one of applied, passed, failed, rejected, proposed, unanswered."""

    attempt: Attempt
    outcome: str
    summary: str
    bars: Sequence[Bar]
    tokens: TokenBars
    retries: Sequence[str]
    rejections: Sequence[RejectionView]
    diff: DiffView | None
    is_result: bool
    build: BuildView | None
    links: Sequence[FileLink]


@dataclass(frozen=True, slots=True)
class ResultView:
    """What the run changed in all, or `reason`: why there is nothing to show."""

    diff: DiffView | None
    reason: str
    unknown: Sequence[str]


@dataclass(frozen=True, slots=True)
class RunView:
    """The whole page."""

    record: RunRecord
    headline: Headline
    message: Sequence[str]
    warnings: Sequence[str]
    query: Sequence[str]
    attempts: Sequence[AttemptView]
    more_attempts: int
    result: ResultView
    span: float
    links: Sequence[FileLink]
    terminal: TerminalMarkup


def run_view(run: LoggedRun, start: Path) -> RunView:
    """Read a run's log for the page; its links begin at the folder `start`."""
    record = run.record
    attempts = record.attempts[:MOST_ATTEMPTS]
    terminal, diffs = TerminalMarkup(), DiffMarkup()
    result = _result(run, diffs)
    only = _only_change(record) if result.diff and not result.unknown else None
    bars, span = time_line(attempts, record.totals.seconds)
    tokens = token_bars(attempts)
    views = [
        AttemptView(
            attempt,
            outcome_of(attempt),
            summary_of(attempt),
            bars[index],
            tokens[index],
            shortened(attempt.retries),
            rejection_views(run, attempt),
            None if attempt.number == only else _attempt_diff(run, attempt, DIFFS_ROOM // len(attempts), diffs),
            attempt.number == only,
            build_view(run, f"{attempt.number}-build.txt", BUILDS_ROOM // len(attempts), terminal),
            log_links(run.folder, start, f"{attempt.number}-"),
        )
        for index, attempt in enumerate(attempts)
    ]
    return RunView(
        record,
        headline_of(record, run.status),
        shortened((record.message or "").split("\n")) if record.message else (),
        shortened(record.warnings),
        _query(run),
        views,
        len(record.attempts) - len(attempts),
        result,
        span,
        [link for name in ("run.json", "traceback.txt") for link in log_links(run.folder, start, name)],
        terminal,
    )


def log_links(folder: Path, start: Path, prefix: str) -> list[FileLink]:
    """Return the files of a log folder whose names begin with `prefix`, in the order of an attempt."""
    way = os.path.relpath(folder, start)
    address = "." if way == "." else f"./{quote(os.fsencode(way))}"
    found = [name for name in _LOG_FILES if (folder / f"{prefix}{name}").is_file()]
    return [FileLink(f"{prefix}{name}", f"{address}/{quote(prefix + name)}") for name in found]


_LOG_FILES = ("", "query.txt", "query.json", "response.txt", "response.json", "changes.diff", "build.txt")


def _only_change(record: RunRecord) -> int | None:
    """Return the number of the attempt that alone made the result; its diff would be the same."""
    applied = [attempt.number for attempt in record.attempts if attempt.verdict == "applied"]
    return applied[0] if len(applied) == 1 else None


def _attempt_diff(run: LoggedRun, attempt: Attempt, room: int, diffs: DiffMarkup) -> DiffView | None:
    name = f"{attempt.number}-changes.diff"
    try:
        excerpt = read_excerpt(run.folder / name, MOST_DIFF, 0)
    except OSError:
        return None
    counts = {change.path: (change.lines_added, change.lines_removed) for change in attempt.changes}
    files = parse_diff(run.redactor.redact(excerpt.head))
    return diffs.view(files, f"attempt-{attempt.number}-file", name, room, counts)


def _result(run: LoggedRun, diffs: DiffMarkup) -> ResultView:
    if run.record.rolled_back:
        return ResultView(None, "The run was rolled back: every file is as it was before.", ())
    if not any(attempt.verdict == "applied" for attempt in run.record.attempts):
        return ResultView(None, "The run changed no file.", ())
    result = read_result(run)
    if isinstance(result, str):
        return ResultView(None, f"What the run changed in all cannot be shown: {run.redactor.redact_text(result)}.", ())
    files = parse_diff(run.redactor.redact(diff_files(result.edits)[1]))
    diff = diffs.view(files, "result-file", "N-changes.diff of each attempt", RESULT_ROOM, {})
    reason = "" if files or result.unknown else "In the end no file is different from what it was before."
    return ResultView(diff, reason, [run.redactor.redact_text(path) for path in result.unknown])


def _query(run: LoggedRun) -> list[str]:
    """Return the task where agent-config/query.txt still is the one that the run's first prompt holds."""
    try:
        query = read_excerpt(run.root / "agent-config" / "query.txt", MOST_QUERY, 0)
        prompt = read_excerpt(run.folder / "1-query.txt", MOST_PROMPT, 0).head
    except OSError:
        return []
    text = run.redactor.redact(query.head).strip()
    if not text or query.left_out or b"[query]\n" + text not in prompt.replace(b"[query]\n\n", b"[query]\n"):
        return []
    return [one_line(line, MOST_QUERY) for line in text.decode("utf-8", "replace").split("\n")]
