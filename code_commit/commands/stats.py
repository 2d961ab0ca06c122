"""What the runs of a log, or those of a fleet, solved and cost, by model."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypedDict

from code_commit.errors import NotSetUpError
from code_commit.exchange import Usage
from code_commit.runs.list import read_run, status_of
from code_commit.runs.record import RunRecord
from code_commit.runs.words import dollars, duration
from code_commit.terminal import shown


class Sum(TypedDict):
    """Of those runs that have such a number; None where there is none of them."""

    total: float | None
    median: float | None


class Choices(TypedDict):
    """The choices of files, and what their calls came to."""

    choices: int
    calls: int
    tokens: int
    cost_usd: float | None


class ModelStats(NamedTuple):
    """What the runs of a model came to. Times are seconds.

    `passed` counts the runs whose build passed, by their last attempt, `ended` the others by their status or as
    `dry_run`. `rejected` counts the rejected answers by rule: one that broke several counts for each.
    `file_choices` are those of the runs, whichever model chose, and those of this model that no run followed. They are
    in the totals of tokens, cost and time too; those that no run followed are in no median.
    `unknown_costs` counts the answers, and the choices, whose price is not known.
    """

    model: str
    runs: int
    passed: dict[int, int]
    ended: dict[str, int]
    rejected_answers: int
    rejected: dict[str, int]
    tokens: Sum
    cost_usd: Sum
    file_choices: Choices
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
    records = [record for record in map(read_run, folders) if isinstance(record, RunRecord) and record.asks]
    followed = {record.choice.run for record in records if record.choice}
    models: dict[str, list[RunRecord]] = {}
    for record in records:
        if record.command == "run" or record.run not in followed:
            models.setdefault(record.asked_model, []).append(record)
    return [_add_up(model, models[model]) for model in sorted(models)]


def _add_up(model: str, records: Sequence[RunRecord]) -> ModelStats:
    runs = [record for record in records if record.command == "run"]
    alone = [record for record in records if record.command != "run"]
    choices = [run.choice for run in runs if run.choice] + [record.as_choice for record in alone]
    ends = [(run, "dry_run" if run.options.get("dry_run") else status_of(run)) for run in runs]
    answers = [attempt for run in runs for attempt in run.attempts]
    rejected = [attempt for attempt in answers if attempt.verdict == "rejected"]

    def added(number: Callable[[RunRecord], float | None]) -> Sum:
        return _sum(map(number, runs), map(number, alone))

    return ModelStats(
        model=model,
        runs=len(runs),
        passed=dict(sorted(Counter(len(run.attempts) for run, end in ends if end == "success").items())),
        ended=dict(sorted(Counter(end for _, end in ends if end != "success").items())),
        rejected_answers=len(rejected),
        rejected=dict(Counter(rule for answer in rejected for rule in sorted({why.rule for why in answer.rejections}))),
        tokens=added(lambda run: _tokens(run.totals.usage) or None),
        cost_usd=added(_cost),
        file_choices=Choices(
            choices=len(choices),
            calls=sum(choice.calls for choice in choices),
            tokens=sum(_tokens(choice.usage) for choice in choices),
            cost_usd=_sum(choice.cost_usd for choice in choices)["total"],
        ),
        unknown_costs=sum(answer.usage is not None and answer.cost_usd is None for answer in answers)
        + sum(_tokens(choice.usage) > 0 and choice.cost_usd is None for choice in choices),
        llm_seconds=added(lambda run: run.totals.llm_seconds or None),
        build_seconds=added(lambda run: run.totals.build_seconds or None),
    )


def _tokens(usage: Usage) -> int:
    return usage.input + usage.output


def _cost(run: RunRecord) -> float | None:
    costs = [*(attempt.cost_usd for attempt in run.attempts), run.choice.cost_usd if run.choice else None]
    return _sum(costs)["total"]


def _sum(numbers: Iterable[float | None], besides: Iterable[float | None] = ()) -> Sum:
    """Add up the numbers that are known, and those besides that count for no median."""
    known, more = ([number for number in each if number is not None] for each in (numbers, besides))
    return Sum(total=sum([*known, *more]) if known or more else None, median=median(known) if known else None)


def stats_table(models: Sequence[ModelStats], columns: int) -> str:
    """Return a table with a column for each model; where these do not fit beside one another, a table for each."""
    if not models:
        return "No run yet."
    table = _aligned(list(_rows(models)))
    if max(map(len, table)) <= columns:
        return "\n".join(table)
    blocks = ([[name], _aligned(rows)] for (_, name), *rows in (list(_rows([stats])) for stats in models))
    return "\n\n".join("\n".join(line for lines in block for line in lines) for block in blocks)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows, each column as wide as the longest of its cells."""
    label, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        row[0].ljust(label) + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths, strict=True))
        for row in rows
    ]


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
    if any(stats.file_choices["choices"] for stats in models):
        chosen = [stats.file_choices for stats in models]
        yield ["choices of files", *(_number(each["choices"]) for each in chosen)]
        yield ["  calls", *(_number(each["calls"]) for each in chosen)]
        yield ["  tokens, of all", *(_number(each["tokens"]) for each in chosen)]
        yield ["  cost, of all", *(dollars(each["cost_usd"]) for each in chosen)]
    yield ["answers of unknown cost", *(_number(stats.unknown_costs) for stats in models)]
