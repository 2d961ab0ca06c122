"""What the runs of a log, or those of a fleet, solved and cost, by model."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypedDict

from code_commit.errors import NotSetUpError
from code_commit.runs.list import read_run, status_of
from code_commit.runs.record import RunRecord
from code_commit.runs.words import dollars, duration
from code_commit.terminal import shown


class Sum(TypedDict):
    """Of those runs that have such a number; None where there is none of them."""

    total: float | None
    median: float | None


class ModelStats(NamedTuple):
    """What the runs of a model came to. Times are seconds.

    `passed` counts the runs whose build passed, by their last attempt, `ended` the others by their status or as
    `dry_run`. `rejected` counts the rejected answers by rule: one that broke several counts for each.
    `unknown_costs` counts the answers whose price is not known.
    """

    model: str
    runs: int
    passed: dict[int, int]
    ended: dict[str, int]
    rejected_answers: int
    rejected: dict[str, int]
    tokens: Sum
    cost_usd: Sum
    unknown_costs: int
    llm_seconds: Sum
    build_seconds: Sum


def runs_of_fleet(out: Path) -> list[Path]:
    """Return the folders of a fleet's tasks that hold a run. Raises NotSetUpError where there is none."""
    folders = [path.parent for path in sorted(out.glob("[!.]*/run.json"))]
    if not folders:
        raise NotSetUpError(f"{shown(str(out))} holds no runs: name the folder that a fleet's results are in")
    return folders


def collect(folders: Iterable[Path]) -> list[ModelStats]:
    """Return what the runs of these folders came to, by the model asked last; one that cannot be read is left out."""
    runs: dict[str, list[RunRecord]] = {}
    for record in map(read_run, folders):
        if isinstance(record, RunRecord) and record.command == "run":
            runs.setdefault(record.asked_model, []).append(record)
    return [_add_up(model, runs[model]) for model in sorted(runs)]


def _add_up(model: str, runs: Sequence[RunRecord]) -> ModelStats:
    ends = [(run, "dry_run" if run.options.get("dry_run") else status_of(run)) for run in runs]
    attempts = [attempt for run in runs for attempt in run.attempts]
    rejected = [attempt for attempt in attempts if attempt.verdict == "rejected"]
    return ModelStats(
        model=model,
        runs=len(runs),
        passed=dict(sorted(Counter(len(run.attempts) for run, end in ends if end == "success").items())),
        ended=dict(sorted(Counter(end for _, end in ends if end != "success").items())),
        rejected_answers=len(rejected),
        rejected=dict(Counter(rule for answer in rejected for rule in sorted({why.rule for why in answer.rejections}))),
        tokens=_sum(run.totals.usage.input + run.totals.usage.output or None for run in runs),
        cost_usd=_sum(_cost(run) for run in runs),
        unknown_costs=sum(attempt.usage is not None and attempt.cost_usd is None for attempt in attempts),
        llm_seconds=_sum(run.totals.llm_seconds or None for run in runs),
        build_seconds=_sum(run.totals.build_seconds or None for run in runs),
    )


def _cost(run: RunRecord) -> float | None:
    costs = [*(attempt.cost_usd for attempt in run.attempts), run.choice.cost_usd if run.choice else None]
    return _sum(costs)["total"]


def _sum(numbers: Iterable[float | None]) -> Sum:
    known = [number for number in numbers if number is not None]
    return Sum(total=sum(known), median=median(known)) if known else Sum(total=None, median=None)


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
    for label, name, words in _SUMS:
        sums = [getattr(stats, name) for stats in models]
        yield [label, *(words(numbers["total"]) for numbers in sums)]
        yield ["  median of a run", *(words(numbers["median"]) for numbers in sums)]
    yield ["answers of unknown cost", *(_number(stats.unknown_costs) for stats in models)]


def _number(number: float | None) -> str:
    return f"{number:,.0f}" if number else "-"


def _time(seconds: float | None) -> str:
    return duration(seconds) if seconds else "-"


_SUMS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("tokens", "tokens", _number),
    ("time of the LLM", "llm_seconds", _time),
    ("time of the build", "build_seconds", _time),
    ("cost", "cost_usd", dollars),
)
_USUAL_ATTEMPTS, _USUAL_ENDS = 4, ("build_failed", "rejected", "declined")
