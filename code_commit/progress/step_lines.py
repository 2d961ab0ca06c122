"""What is said of each step of a run, in lines for a person."""

from __future__ import annotations  # a command that runs nothing prints without loading the run's record

from collections.abc import Iterable
from typing import TYPE_CHECKING

from code_commit.changes import in_words

if TYPE_CHECKING:
    from code_commit.run_record import Attempt, Event, RunRecord, Totals

FILES_SHOWN = 3
"""Names of changed files on a step's line; the log and `--verbose` have all of them."""


def step_lines(record: RunRecord, event: Event, *, verbose: bool) -> Iterable[str]:
    """Return what is said of a step; those of an attempt begin with its number."""
    if event == "started":
        return [f"model: {record.model}", f"log: {record.log_dir}"] if record.command == "run" else []
    if event == "warned":
        return [f"warning: {record.warnings[-1]}"]
    if event == "finished":
        return _closing_lines(record)
    attempt = record.attempts[-1]
    lines = _attempt_lines(record.model, attempt, event, verbose=verbose)
    lead = attempt_lead(record)
    return [f"{lead}: {line}" if lead else line for line in lines[:1]] + lines[1:]


def attempt_lead(record: RunRecord) -> str:
    """Return `attempt 2 of 4`; "" for a command that makes one attempt by its nature."""
    if record.command != "run":
        return ""
    return f"attempt {len(record.attempts)} of {1 + int(record.options['max_repairs'])}"


def _attempt_lines(model: str, attempt: Attempt, event: Event, *, verbose: bool) -> list[str]:
    if event == "retrying":
        return [attempt.retries[-1]]
    if event == "responded":
        return [f"{model} answered after {duration(attempt.seconds or 0)}{_tokens(attempt)}"]
    if event == "rejected":
        return _rejections(attempt, verbose=verbose)
    if event == "applied":
        return _changed_files(attempt, verbose=verbose)
    if event == "built" and attempt.build:
        return [f"build {'passed' if attempt.build.passed else 'failed'}: {attempt.build.ending}"]
    return []


def _rejections(attempt: Attempt, *, verbose: bool) -> list[str]:
    listed = attempt.rejections if verbose else attempt.rejections[:FILES_SHOWN]
    more = len(attempt.rejections) - len(listed) + attempt.more_rejections
    return ["response rejected, nothing written:", *(f"  {reason}" for reason in in_words(listed, more))]


def _changed_files(attempt: Attempt, *, verbose: bool) -> list[str]:
    changes = attempt.changes
    added, removed = sum(change.lines_added for change in changes), sum(change.lines_removed for change in changes)
    rows = [f"{change.path} ({change.action}) +{change.lines_added} -{change.lines_removed}" for change in changes]
    summary = f"{_count(len(changes), 'file')} changed, +{added} -{removed}"
    if verbose:
        return [summary, *(f"  {row}" for row in rows)]
    names = ", ".join(change.path for change in changes[:FILES_SHOWN])
    more = f" and {len(changes) - FILES_SHOWN} more" if len(changes) > FILES_SHOWN else ""
    return [f"{summary}: {names}{more}"]


def _closing_lines(record: RunRecord) -> list[str]:
    spent = f"{duration(record.totals.seconds)}{_total_cost(record.totals)}"
    attempts = _count(record.totals.attempts, "attempt")
    changed = _count(record.totals.files_changed, "file")
    review = f"Review: git status, git diff, code-commit log.\nLog: {record.log_dir}"
    if record.message and record.status == "success":
        return [f"{record.message[0].upper()}{record.message[1:]}.", *([review] if record.totals.files_changed else [])]
    if record.status == "success":
        return [f"The build passes after {attempts}: {changed} changed in {spent}.", review]
    if record.status == "build_failed":
        return [f"The build still fails after {attempts}: {changed} changed in {spent}.", review]
    return []


def _tokens(attempt: Attempt) -> str:
    usage = attempt.usage
    if usage is None or not usage.input + usage.output:
        return ""
    cost = f", ${attempt.cost_usd:.4f}" if attempt.cost_usd is not None else ""
    cached = f" ({usage.cached_input:,} cached)" if usage.cached_input else ""
    return f": {usage.input:,} tokens in{cached}, {usage.output:,} out{cost}"


def _total_cost(totals: Totals) -> str:
    tokens = totals.usage.input + totals.usage.output
    if not tokens:
        return ""
    return f", {tokens:,} tokens" + (f", ${totals.cost_usd:.4f}" if totals.cost_usd is not None else "")


def duration(seconds: float) -> str:
    """Return a time as it is read: `12.3 s`, `1 min 10 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
