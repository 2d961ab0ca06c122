"""The values of the page's template."""

import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import quote

from code_commit.commands.page.changes import RunChanges, attempt_changes, built_changes, run_changes
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.commands.page.markup import build_view, diff_view
from code_commit.runs.record import BUILT_DIFF, Attempt
from code_commit.runs.words import outcome_of, retries_in_words, summary_of

RESULT_ROOM = 2_500_000
DIFFS_ROOM = 3_000_000
"""Characters of markup for the result, and for the diffs of all attempts: the page stays under 10 MB."""
MOST_ATTEMPTS = 100
MOST_LINES = 200  # of a text, reasons, warnings
MOST_CHARACTERS = 2_000  # of each


def page_values(run: LoggedRun, start: Path) -> dict[str, Any]:
    """Return the values of a run's page; its links begin at the folder `start`."""
    record, changes, of_build = run.record, run_changes(run), built_changes(run)
    is_standing = bool(run.applied) and not (record.rolled_back or record.undone) and run.patch is None
    attempts = record.attempts[:MOST_ATTEMPTS] if record.command != "undo" else []
    starts = list(accumulate((sum(seconds for _, seconds in _times(attempt)) for attempt in attempts), initial=0.0))
    usages = [call.usage for call in [record.choice, *attempts] if call and call.usage]
    return {
        "run": run,
        "task": run.task,
        "changes": changes,
        "files": diff_view(changes.files, "N-changes.diff of each attempt", RESULT_ROOM),
        "built_files": diff_view(of_build, BUILT_DIFF, RESULT_ROOM // 5),
        "built_changes": of_build,
        "undo": run.name if is_standing else "",
        "attempts": [_attempt_values(run, *each, changes, start) for each in zip(attempts, starts, strict=False)],
        "seconds": max(record.totals.seconds - (record.choice.seconds if record.choice else 0.0), starts[-1], 0.001),
        "tokens": max((usage.input + usage.output for usage in usages), default=0),
        "files_of_log": [
            *_links(run.folder, start, "run.json"),
            *_links(run.folder, start, BUILT_DIFF),
            *_links(run.folder, start, "traceback.txt"),
            *(_links(run.root, start, "changes.patch") if run.patch else ()),
        ],
    }


def _attempt_values(
    run: LoggedRun, attempt: Attempt, started: float, changes: RunChanges, start: Path
) -> dict[str, Any]:
    number, share = attempt.number, min(len(run.record.attempts), MOST_ATTEMPTS)
    is_whole = bool(changes.files) and not changes.unknown and not run.record.rewritten
    is_result = is_whole and run.applied in ([number], [])
    files = [] if is_result else attempt_changes(run, number)
    return {
        "attempt": attempt,
        "outcome": outcome_of(attempt),
        "summary": summary_of(attempt),
        "said": attempt.notes.split("\n") if attempt.notes else [],
        "retries": retries_in_words(attempt.retries),
        "started": started,
        "times": _times(attempt),
        "is_result": is_result,
        "changed": files,
        "files": diff_view(files, f"{number}-changes.diff", DIFFS_ROOM // share),
        "build": build_view(run, f"{number}-build.txt", share),
        "links": _links(run.folder, start, f"{number}-*"),
    }


def _times(attempt: Attempt) -> list[tuple[str, float]]:
    """Return the parts of an attempt's time, by their names in the chart."""
    build = "build-failed" if outcome_of(attempt) == "failed" else "build"
    seconds = (attempt.seconds, attempt.change_seconds, attempt.build.seconds if attempt.build else 0)
    return [(kind, max(each or 0, 0)) for kind, each in zip(("llm", "change", build), seconds, strict=True)]


def shortened(lines: Sequence[str]) -> list[str]:
    """Return the first lines of a long text or list, and the beginning of each."""
    first = [line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]} …" for line in lines[:MOST_LINES]]
    return first if len(lines) <= MOST_LINES else [*first, f"{len(lines) - MOST_LINES:,} more are in the log"]


def _links(folder: Path, start: Path, pattern: str) -> list[tuple[str, str]]:
    """Return the names and addresses of the log files that match the pattern."""
    names = sorted(path.name for path in folder.glob(pattern) if path.is_file())
    return [(name, f"./{quote(os.path.relpath(folder / name, start))}") for name in names]
