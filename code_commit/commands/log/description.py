"""One run attempt by attempt: what was rejected, what was changed, and the end of a build that failed."""

import os
from collections.abc import Iterator

from code_commit.commands.log.runs import status_of
from code_commit.project import Project
from code_commit.run_record import Attempt, RunRecord, Totals
from code_commit.terminal import settle, shown

_BUILD_TAIL_LINES = 12
_BUILD_TAIL_BYTES = 8192


def describe(project: Project, record: RunRecord) -> str:
    """Return one run attempt by attempt."""
    return "\n".join(shown(line) for line in _description(project, record))


def _description(project: Project, record: RunRecord) -> Iterator[str]:
    status = status_of(record)
    yield f"run       {record.run}" + (f" ({record.command})" if record.command != "run" else "")
    yield f"status    {status}" + (f" (exit code {record.exit_code})" if record.exit_code is not None else "")
    if status == "killed" and record.command == "run":
        yield "          code-commit resume goes on with it, code-commit undo takes back what it changed"
    yield f"started   {record.started}"
    if record.model:
        yield f"model     {record.model}" + (f" at {record.base_url}" if record.base_url else "")
    yield f"log       {record.log_dir}"
    yield f"total     {_total(record.totals)}"
    yield from (f"warning   {warning}" for warning in record.warnings)
    for attempt in record.attempts:
        yield ""
        yield from _attempt_lines(project, record, attempt)
    if record.message:
        yield ""
        yield from record.message.split("\n")


def _total(totals: Totals) -> str:
    tokens = totals.usage.input + totals.usage.output
    spent = [f"{tokens:,} tokens"] if tokens else []
    spent += [f"${totals.cost_usd:.4f}"] if totals.cost_usd is not None else []
    return ", ".join([f"{totals.seconds:.1f} s", *spent, f"files changed: {totals.files_changed}"])


def _attempt_lines(project: Project, record: RunRecord, attempt: Attempt) -> Iterator[str]:
    usage = attempt.usage
    spent = f", {usage.input:,} tokens in, {usage.output:,} out" if usage and usage.input + usage.output else ""
    cost = f", ${attempt.cost_usd:.4f}" if attempt.cost_usd is not None else ""
    seconds = f"{attempt.seconds:.1f} s" if attempt.seconds is not None else "no answer"
    yield f"attempt {attempt.number} ({attempt.kind}): {seconds}{spent}{cost}"
    yield from (f"  retried: {retry}" for retry in attempt.retries)
    if attempt.verdict == "rejected":
        yield "  rejected, nothing written:"
        yield from (f"    {reason}" for reason in attempt.reasons)
    for change in attempt.changes:
        yield f"  {change.action:8}{change.path}  +{change.lines_added} -{change.lines_removed}"
    if attempt.build:
        yield f"  build {'passed' if attempt.build.passed else 'failed'}: {attempt.build.ending}"
        if not attempt.build.passed:
            yield from (f"    | {line}" for line in _build_tail(project, record, attempt))


def _build_tail(project: Project, record: RunRecord, attempt: Attempt) -> list[str]:
    """Return the last lines of the build's output, as a terminal would have shown them."""
    try:
        with (project.root / record.log_dir / f"{attempt.number}-build.txt").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _BUILD_TAIL_BYTES))
            output = file.read()
    except OSError:
        return ["(the build's log is gone)"]
    return settle(output).rstrip("\n").split("\n")[-_BUILD_TAIL_LINES:]
