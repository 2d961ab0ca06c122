"""`code-commit log`: the runs as a table, or one run attempt by attempt, from their run.json."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from code_commit.changes import shown
from code_commit.errors import NotSetUpError
from code_commit.project import LOG_FOLDER_SUFFIX, Project, log_folders
from code_commit.run_record import Attempt, RunRecord, load_run_record, run_record_schema

BUILD_TAIL_LINES = 12


def log_command(project: Project, run: str | None, *, schema: bool) -> str:
    """Return what the command prints. Raises NotSetUpError for a run that is not there."""
    if schema:
        return json.dumps(run_record_schema(), indent=2)
    return describe(project, find_run(project, run)) if run else table(list_runs(project))


def list_runs(project: Project) -> list[RunRecord]:
    """Return the records of all runs, oldest first; a folder without a readable run.json is left out."""
    return [record for folder in log_folders(project) if (record := _read(folder)) is not None]


def find_run(project: Project, name: str) -> RunRecord:
    """Return the record of the run whose name begins with `name`, the latest of several. Raises NotSetUpError."""
    runs = [record for record in list_runs(project) if record.run.startswith(name)]
    if not runs:
        raise NotSetUpError(f"there is no run {shown(name)}: code-commit log lists them")
    return runs[-1]


def table(records: list[RunRecord]) -> str:
    """Return the runs as a table for a terminal of 80 columns."""
    if not records:
        return "No run yet."
    rows: list[tuple[str, ...]] = [("RUN", "STATUS", "TRIES", "FILES", "TOKENS", "COST", "SECONDS", "MODEL")]
    rows += [_row(record) for record in records]
    columns = list(zip(*rows, strict=True))
    justified = [_justify(index, column) for index, column in enumerate(columns)]
    return "\n".join(shown("  ".join(row).rstrip()) for row in zip(*justified, strict=True))


def _justify(index: int, column: Sequence[str]) -> list[str]:
    width = max(map(len, column))
    return [cell.rjust(width) if index in _NUMBER_COLUMNS else cell.ljust(width) for cell in column]


_NUMBER_COLUMNS = range(2, 7)


def _row(record: RunRecord) -> tuple[str, ...]:
    totals = record.totals
    tokens = totals.usage.input + totals.usage.output
    return (
        record.run.removesuffix(LOG_FOLDER_SUFFIX),
        status_of(record),
        str(totals.attempts),
        str(totals.files_changed),
        f"{tokens:,}" if tokens else "-",
        f"${totals.cost_usd:.2f}" if totals.cost_usd is not None else "-",
        f"{totals.seconds:.1f}",
        record.model or f"({record.command})",
    )


def status_of(record: RunRecord) -> str:
    """Return the run's status, `killed` where it was running and its process is gone."""
    return "killed" if record.status == "running" and not _is_alive(record.pid) else record.status


def describe(project: Project, record: RunRecord) -> str:
    """Return one run attempt by attempt."""
    return "\n".join(shown(line) for line in _description(project, record))


def _description(project: Project, record: RunRecord) -> Iterator[str]:
    yield f"run       {record.run}"
    yield f"status    {status_of(record)}" + (
        f" (exit code {record.exit_code})" if record.exit_code is not None else ""
    )
    yield f"started   {record.started}"
    yield f"model     {record.model}" + (f" at {record.base_url}" if record.base_url else "")
    yield f"log       {record.log_dir}"
    yield from (f"warning   {warning}" for warning in record.warnings)
    for attempt in record.attempts:
        yield ""
        yield from _attempt_lines(project, record, attempt)
    if record.message:
        yield ""
        yield from record.message.split("\n")


def _attempt_lines(project: Project, record: RunRecord, attempt: Attempt) -> Iterator[str]:
    usage = attempt.usage
    spent = f", {usage.input:,} tokens in, {usage.output:,} out" if usage and usage.input + usage.output else ""
    cost = f", ${attempt.cost_usd:.4f}" if attempt.cost_usd is not None else ""
    seconds = f"{attempt.seconds:.1f} s" if attempt.seconds is not None else "no answer"
    yield f"attempt {attempt.number} ({attempt.kind}): {seconds}{spent}{cost}"
    yield from (f"  retried: {retry}" for retry in attempt.retries)
    if attempt.verdict == "rejected":
        yield "  rejected, nothing written:"
        yield from (f"    {rejection}" for rejection in attempt.rejections)
    for change in attempt.changes:
        yield f"  {change.action:8}{change.path}  +{change.lines_added} -{change.lines_removed}"
    if attempt.build:
        yield f"  build {'passed' if attempt.build.passed else 'failed'}: {attempt.build.ending}"
        if not attempt.build.passed:
            yield from (f"    | {line}" for line in _build_tail(project, record, attempt))


def _build_tail(project: Project, record: RunRecord, attempt: Attempt) -> list[str]:
    try:
        with (project.root / record.log_dir / f"{attempt.number}-build.txt").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 8192))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ["(the build's log is gone)"]
    return text.rstrip("\n").split("\n")[-BUILD_TAIL_LINES:]


def _read(folder: Path) -> RunRecord | None:
    try:
        return load_run_record((folder / "run.json").read_bytes())
    except (OSError, ValueError):
        return None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
