"""All runs as a table: one line a run, which fits the terminal."""

from collections.abc import Sequence

from code_commit.commands.log.runs import UnreadableRun, status_of
from code_commit.project import LOG_FOLDER_SUFFIX
from code_commit.run_record import RunRecord
from code_commit.terminal import shown

_HEAD = ("RUN (UTC)", "STATUS", "TRIES", "FILES", "TOKENS", "COST", "SECONDS", "MODEL")
_NUMBERS = ("TRIES", "FILES", "TOKENS", "COST", "SECONDS")
_DISPENSABLE = ("TOKENS", "FILES", "SECONDS", "COST", "TRIES", "STATUS")
"""In this order they go where a terminal is too narrow for all: after the model's name was cut."""

_SHORTEST_MODEL = 8
_GAP = 2


def table(runs: Sequence[RunRecord | UnreadableRun], columns: int | None = None) -> str:
    """Return the runs as a table, oldest first, no wider than `columns` (None: as wide as it is)."""
    if not runs:
        return "No run yet."
    rows = [dict(zip(_HEAD, _cells(run), strict=True)) for run in runs]
    heads = _heads_that_fit(rows, columns)
    lines = ["".join(_lay(head, head, rows) for head in heads)]
    lines += ["".join(_lay(head, row[head], rows) for head in heads) for row in rows]
    notes = [f"{_name(run)} cannot be shown: {run.why}" for run in runs if isinstance(run, UnreadableRun)]
    return "\n".join([*(line.rstrip()[:columns] for line in lines), *notes])


def _heads_that_fit(rows: list[dict[str, str]], columns: int | None) -> list[str]:
    """Return the heads that there is room for, with every model's name cut to its column."""
    if columns is None:
        return list(_HEAD)
    for number in range(len(_DISPENSABLE) + 1):
        heads = [head for head in _HEAD if head not in _DISPENSABLE[:number]]
        room = columns - sum(_width(head, rows) + _GAP for head in heads[:-1])
        if room >= min(_SHORTEST_MODEL, _width("MODEL", rows)):
            for row in rows:
                row["MODEL"] = _cut(row["MODEL"], room)
            return heads
    return ["RUN (UTC)"]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}\N{HORIZONTAL ELLIPSIS}"


def _lay(head: str, cell: str, rows: list[dict[str, str]]) -> str:
    width = _width(head, rows)
    return (cell.rjust(width) if head in _NUMBERS else cell.ljust(width)) + " " * _GAP


def _width(head: str, rows: list[dict[str, str]]) -> int:
    return max(len(head), *(len(row[head]) for row in rows))


def _name(run: RunRecord | UnreadableRun) -> str:
    return shown(run.run.removesuffix(LOG_FOLDER_SUFFIX))


def _cells(run: RunRecord | UnreadableRun) -> tuple[str, ...]:
    if isinstance(run, UnreadableRun):
        return (_name(run), "unreadable", *["-"] * 6)
    totals = run.totals
    tokens = totals.usage.input + totals.usage.output
    return (
        _name(run),
        status_of(run),
        str(totals.attempts) if run.command == "run" else "-",
        str(totals.files_changed),
        f"{tokens:,}" if tokens else "-",
        f"${totals.cost_usd:.2f}" if totals.cost_usd is not None else "-",
        f"{totals.seconds:.1f}",
        shown(run.model) or f"({run.command})",
    )
