"""What the runs of a log, or those of a fleet, solved and cost, by model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from code_commit.errors import NotSetUpError
from code_commit.run_record import RunRecord
from code_commit.runs import read_run, status_of
from code_commit.summary import dollars, duration
from code_commit.terminal import shown


class ModelStats(NamedTuple):
    """What the runs of a model came to; a median is that of those runs which have such a number.

    `passed` counts the runs whose build passed, by their last attempt, `ended` the others by their status or as
    `dry_run`. `rejected` counts the rejected answers by rule: one that broke several counts for each.
    `cost_usd` sums what is known, `unknown_costs` counts the other calls. Times are seconds.
    """

    model: str
    runs: int
    passed: dict[int, int]
    ended: dict[str, int]
    rejected_answers: int
    rejected: dict[str, int]
    calls: int
    tokens: int
    median_tokens: float | None
    cost_usd: float | None
    median_cost_usd: float | None
    unknown_costs: int
    llm_seconds: float
    median_llm_seconds: float | None
    build_seconds: float
    median_build_seconds: float | None


def runs_of_fleet(out: Path) -> list[Path]:
    """Return the folders of a fleet's tasks that hold a run. Raises NotSetUpError where there is none."""
    folders = [path.parent for path in sorted(out.glob("[!.]*/run.json"))]
    if not folders:
        raise NotSetUpError(f"{shown(str(out))} holds no runs: name the folder that a fleet's results are in")
    return folders


def collect(folders: Iterable[Path]) -> list[ModelStats]:
    """Return what the runs of these folders came to, by model; one that cannot be read counts for nothing."""
    runs: dict[str, list[RunRecord]] = {}
    for record in map(read_run, folders):
        if isinstance(record, RunRecord) and record.command == "run":
            runs.setdefault(record.model, []).append(record)
    return [_add_up(model, runs[model]) for model in sorted(runs)]


def _add_up(model: str, runs: Sequence[RunRecord]) -> ModelStats:
    ends = [(run, "dry_run" if run.options.get("dry_run") else status_of(run)) for run in runs]
    attempts = [attempt for run in runs for attempt in run.attempts]
    rejected = [attempt for attempt in attempts if attempt.verdict == "rejected"]
    calls = [attempt for attempt in attempts if attempt.seconds is not None]
    costs = [attempt.cost_usd for attempt in calls if attempt.cost_usd is not None]
    totals = [run.totals for run in runs]
    tokens = [total.usage.input + total.usage.output for total in totals]
    return ModelStats(
        model=model,
        runs=len(runs),
        passed=dict(sorted(Counter(len(run.attempts) for run, end in ends if end == "success").items())),
        ended=dict(sorted(Counter(end for _, end in ends if end != "success").items())),
        rejected_answers=len(rejected),
        rejected=dict(Counter(rule for answer in rejected for rule in sorted({why.rule for why in answer.rejections}))),
        calls=len(calls),
        tokens=sum(tokens),
        median_tokens=_median(count or None for count in tokens),
        cost_usd=sum(costs) if costs else None,
        median_cost_usd=_median(total.cost_usd for total in totals),
        unknown_costs=len(calls) - len(costs),
        llm_seconds=sum(total.llm_seconds for total in totals),
        median_llm_seconds=_median(total.llm_seconds or None for total in totals),
        build_seconds=sum(total.build_seconds for total in totals),
        median_build_seconds=_median(total.build_seconds or None for total in totals),
    )


def _median(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return median(known) if known else None


def stats_table(models: Sequence[ModelStats], columns: int) -> str:
    """Return a table with a column for each model: as many beside one another as there is room for, then the next."""
    if not models:
        return "No run yet."
    width = min(max(len(shown(stats.model)) for stats in models), _LONGEST_MODEL)
    beside = max(1, (columns - _LABEL) // (width + 2))
    parts = [list(_rows(models[first : first + beside])) for first in range(0, len(models), beside)]
    return "\n\n".join("\n".join(_line(label, cells, width) for label, *cells in rows) for rows in parts)


_LABEL, _LONGEST_MODEL = 24, 54


def _line(label: str, cells: Sequence[str], width: int) -> str:
    cut = (cell if len(cell) <= width else f"{cell[: width - 1]}…" for cell in cells)
    return label.ljust(_LABEL) + "".join(f"  {cell:>{width}}" for cell in cut)


def _rows(models: Sequence[ModelStats]) -> Iterator[list[str]]:
    """Yield the rows of a table, each a label and a cell for each model."""
    yield ["", *(shown(stats.model) or "-" for stats in models)]
    yield ["runs", *(_number(stats.runs) for stats in models)]
    for number in range(1, max(_USUAL_ATTEMPTS, *(max(stats.passed, default=0) for stats in models)) + 1):
        yield [f"  passed at attempt {number}", *(_number(stats.passed.get(number)) for stats in models)]
    for end in dict.fromkeys((*_USUAL_ENDS, *(end for stats in models for end in stats.ended))):
        yield [f"  {end.replace('_', ' ')}", *(_number(stats.ended.get(end)) for stats in models)]
    yield ["rejected answers", *(_number(stats.rejected_answers) for stats in models)]
    for rule in sorted({rule for stats in models for rule in stats.rejected}):
        yield [f"  {rule}", *(_number(stats.rejected.get(rule)) for stats in models)]
    yield ["LLM calls", *(_number(stats.calls) for stats in models)]
    yield ["tokens", *(_number(stats.tokens) for stats in models)]
    yield [_MEDIAN, *(_number(stats.median_tokens) for stats in models)]
    yield ["cost", *(dollars(stats.cost_usd) for stats in models)]
    yield [_MEDIAN, *(dollars(stats.median_cost_usd) for stats in models)]
    if any(stats.unknown_costs for stats in models):
        yield ["  calls not in it", *(_number(stats.unknown_costs) for stats in models)]
    yield ["time of the LLM", *(duration(stats.llm_seconds) for stats in models)]
    yield [_MEDIAN, *(duration(stats.median_llm_seconds or 0) for stats in models)]
    yield ["time of the build", *(duration(stats.build_seconds) for stats in models)]
    yield [_MEDIAN, *(duration(stats.median_build_seconds or 0) for stats in models)]


_USUAL_ATTEMPTS, _USUAL_ENDS = 4, ("build_failed", "rejected", "declined")
_MEDIAN = "  median of a run"


def _number(number: float | None) -> str:
    return f"{number:,.0f}" if number else "-"
