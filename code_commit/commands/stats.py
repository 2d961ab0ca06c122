"""The results and costs of the runs of a log or of a fleet, by model, and of a fleet's tasks by label."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple, Self, TypedDict, TypeVar

from code_commit.commands.results import Result
from code_commit.errors import NotSetUpError
from code_commit.exchange import Cost, Usage
from code_commit.files import is_folder
from code_commit.runs.record import RunRecord
from code_commit.runs.words import cost_in_cell, dollars, duration
from code_commit.status import Status, status_in_words
from code_commit.terminal import aligned, shown

T = TypeVar("T")
_USUAL_ATTEMPTS = 4
_USUAL_ENDS = [each for each in Status if each.is_recorded and each.is_final and each is not Status.SUCCESS]
_NOT_JUDGED = [each for each in Status if not each.is_judged]
_OF_ALL = " of all runs"  # the cost, where the other numbers are those of each task's latest run
_NORMAL_QUANTILE = 1.959964  # of 97.5 %


class Sum(TypedDict):
    """A sum over the runs that have such a number; None where no run has one."""

    total: float | None
    median: float | None


class ModelStats(NamedTuple):
    """The results of a model's runs. Times are seconds.

    `passed` counts the runs whose build passed, by their last attempt, `ended` the others by their status or as
    `dry_run`. `rejected` counts the rejected answers by rule: one that broke several counts for each. `edits` counts
    the files sent as edits, `edits_that_fit` those whose places were found. Tokens, cost and time include the choices
    of files, also those of this model without a run; these are in no median. The cost of a fleet's task is that of all
    its runs, all else is of its latest one: `has_more_runs` says that there were others. `unknown_costs` counts the
    answers and choices whose price is not known, `unsettled_usd` is the highest cost of calls whose cost no reply
    tells.
    """

    model: str
    runs: int
    passed: dict[int, int]
    ended: dict[str, int]
    rejected_answers: int
    rejected: dict[str, int]
    edits: int
    edits_that_fit: int
    tokens: Sum
    cost_usd: Sum
    unknown_costs: int
    llm_seconds: Sum
    build_seconds: Sum
    unsettled_usd: float
    has_more_runs: bool = False


def runs_of_fleet(out: Path) -> list[Path]:
    """Return the folders of a fleet's tasks that hold a run. Raises NotSetUpError where there is none."""
    folders = [path.parent for path in sorted(out.glob("[!.]*/run.json"))] if is_folder(out) else []
    if not folders:
        raise NotSetUpError(f"{shown(str(out))} contains no runs: name the folder that a fleet's results are in")
    return folders


class StatsRun(NamedTuple):
    """A run with its status and its cost; that of a fleet's task is the cost of all its runs, which may be more."""

    record: RunRecord
    status: Status
    cost: Cost
    has_more_runs: bool = False


def collect(runs: Iterable[StatsRun]) -> list[ModelStats]:
    """Return the results of runs by the model asked last, without those that their first build ended."""
    asking = [run for run in runs if run.record.asks and (run.record.attempts or not run.record.first_build)]
    followed = {run.record.choice.run for run in asking if run.record.choice}
    models: dict[str, list[StatsRun]] = {}
    for run in asking:
        if run.record.is_main or run.record.run not in followed:
            models.setdefault(run.record.asked_model, []).append(run)
    return [_add_up(model, models[model]) for model in sorted(models)]


def _add_up(model: str, records: Sequence[StatsRun]) -> ModelStats:
    ends = [(record, Status.DRY_RUN if record.options.get("dry_run") else status) for record, status, *_ in records]
    ends = [(record, end) for record, end in ends if record.is_main]
    runs, alone = [run for run, _ in ends], [record for record, *_ in records if not record.is_main]
    choices = [run.choice for run in runs if run.choice] + [record.as_choice for record in alone]
    answers = [attempt for run in runs for attempt in run.attempts]
    rejected = [attempt for attempt in answers if attempt.verdict == "rejected"]
    cost = sum((run.cost for run in records), Cost())

    def added(number: Callable[[RunRecord], float | None]) -> Sum:
        return _sum(map(number, runs), map(number, alone))

    return ModelStats(
        model=model,
        runs=len(runs),
        passed=dict(sorted(Counter(len(run.attempts) for run, end in ends if end == Status.SUCCESS).items())),
        ended=dict(sorted(Counter(end for _, end in ends if end != Status.SUCCESS).items())),
        rejected_answers=len(rejected),
        rejected=dict(Counter(rule for answer in rejected for rule in sorted({why.rule for why in answer.rejections}))),
        edits=sum(answer.edits for answer in answers),
        edits_that_fit=sum(answer.edits - len(answer.misfits) for answer in answers),
        tokens=added(lambda run: _tokens(run.totals.usage) or None),
        cost_usd=Sum(total=cost.settled, median=added(lambda run: run.cost.settled)["median"]),
        unknown_costs=sum(
            answer.finish_reason is not None and answer.cost_usd is None and not answer.unsettled_usd
            for answer in answers
        )
        + sum(_tokens(choice.usage) > 0 and choice.cost_usd is None for choice in choices)
        + cost.unpriced,
        llm_seconds=added(lambda run: run.totals.llm_seconds or None),
        build_seconds=added(lambda run: run.totals.build_seconds or None),
        unsettled_usd=cost.unsettled,
        has_more_runs=any(run.has_more_runs for run in records),
    )


def _tokens(usage: Usage) -> int:
    return usage.input + usage.output


def _sum(numbers: Iterable[float | None], besides: Iterable[float | None] = ()) -> Sum:
    """Add up the known numbers, and those besides that are in no median."""
    known, more = ([number for number in each if number is not None] for each in (numbers, besides))
    return Sum(total=sum([*known, *more]) if known or more else None, median=median(known) if known else None)


def stats_table(models: Sequence[ModelStats], columns: int) -> str:
    """Return a table with a column for each model, or one table for each if the columns do not fit."""
    return _table(models, _rows, columns) if models else "No run yet."


def _table(items: Sequence[T], rows_of: Callable[[Sequence[T]], Iterable[list[str]]], columns: int) -> str:
    """Return a table; if it is too wide, with letters as heads; if that is too wide, one table for each item."""
    (corner, *heads), *rows = rows_of(items)
    letters = {chr(ord("A") + number): name for number, name in enumerate(heads)}
    for head, legend in ((heads, ()), (letters, (f"{letter}: {name}" for letter, name in letters.items()))):
        table = aligned([[corner, *head], *rows])
        if max(map(len, table)) <= columns:
            return "\n".join([*legend, *table])
    blocks = ([[name], aligned(rows)] for (_, name), *rows in (list(rows_of([item])) for item in items))
    return "\n\n".join("\n".join(line for lines in block for line in lines) for block in blocks)


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


def _rows(models: Sequence[ModelStats]) -> Iterator[list[str]]:
    """Yield the rows of a table, each a label and a cell for each model."""
    yield ["", *(shown(stats.model) or "-" for stats in models)]
    yield ["runs", *(_number(stats.runs) for stats in models)]
    for number in range(1, max(_USUAL_ATTEMPTS, *(max(stats.passed, default=0) for stats in models)) + 1):
        yield [f"  passed at attempt {number}", *(_number(stats.passed.get(number)) for stats in models)]
    for end in dict.fromkeys((*_USUAL_ENDS, *(end for stats in models for end in stats.ended))):
        yield [f"  {status_in_words(end)}", *(_number(stats.ended.get(end)) for stats in models)]
    yield ["rejected answers", *(_number(stats.rejected_answers) for stats in models)]
    for rule in sorted({rule for stats in models for rule in stats.rejected}):
        yield [f"  {rule}", *(_number(stats.rejected.get(rule)) for stats in models)]
    if any(stats.edits for stats in models):
        yield ["files sent as edits", *(_number(stats.edits) for stats in models)]
        yield ["  that fit", *(_number(stats.edits_that_fit) for stats in models)]
    for label, name, words in _SUMS:
        sums = [getattr(stats, name) for stats in models]
        is_of_more = name == "cost_usd" and any(stats.has_more_runs for stats in models)
        yield [f"{label}{_OF_ALL * is_of_more}", *(words(numbers["total"]) for numbers in sums)]
        yield ["  median of a run", *(words(numbers["median"]) for numbers in sums)]
    if any(stats.unsettled_usd for stats in models):
        yield ["  unsettled, at most", *(dollars(stats.unsettled_usd or None) for stats in models)]
    yield ["answers of unknown cost", *(_number(stats.unknown_costs) for stats in models)]


class LabelStats(NamedTuple):
    """The results of a label's trials; `tasks` has words for those of each task, in their order.

    Trials that were not set up, or that the machine failed, are counted in `not_set_up` and in no other number but
    the costs, which are those of all runs: `cost_usd` what was settled, `unsettled_usd` what may be paid beside it.
    All else is of each trial's latest run: `has_more_runs` says that there were others.
    `pass_at_1` is the share of tasks that one trial solves, `interval` its Wilson interval of 95 %, as if each task had
    been tried once; `pass_at_k` the share that one of `k` trials solves, `k` being the most trials of a task.
    `cost_per_solved`, of what was settled, is None where a cost is not known, or nothing solved.
    """

    label: str
    tasks: dict[str, list[str]]
    trials: int
    solved: int
    not_verified: int
    not_set_up: int
    pass_at_1: float | None
    interval: tuple[float, float] | None
    k: int
    pass_at_k: float | None
    cost_usd: float | None
    unsettled_usd: float
    cost_per_solved: float | None
    input_tokens: int
    output_tokens: int
    seconds: float
    attempts: int
    has_more_runs: bool


class Comparison(NamedTuple):
    """The results of a fleet, label beside label."""

    labels: Sequence[LabelStats]

    @classmethod
    def of(cls, trials: Iterable[Result]) -> Self:
        """Return the comparison of the results, those without a label by model."""
        labels: dict[str, list[Result]] = {}
        for trial in trials:
            labels.setdefault(trial.label or trial.model or "-", []).append(trial)
        return cls([_label(label, labels[label]) for label in sorted(labels)])

    @property
    def as_json(self) -> list[dict[str, Any]]:
        return [each._asdict() for each in self.labels]

    @property
    def rows(self) -> list[list[str]]:
        """The rows of a table, each a name and a cell for each label."""
        return list(_label_rows(self.labels))

    def table(self, columns: int) -> str:
        """Return tasks against labels and the sums of each label, as `stats_table`."""
        return _table(self.labels, _label_rows, columns)


def _label(label: str, trials: Sequence[Result]) -> LabelStats:
    judged = [trial for trial in trials if trial.status not in _NOT_JUDGED]
    tasks: dict[str, list[str]] = {}
    ends: dict[str, list[bool]] = {}
    for trial in sorted(trials, key=lambda trial: trial.id):
        name = trial.task or trial.id
        tasks.setdefault(name, []).append(trial.word)
        if trial in judged:
            ends.setdefault(name, []).append(trial.is_green)

    solved, k = sum(map(sum, ends.values())), max(map(len, ends.values()), default=0)
    share = mean(mean(end) for end in ends.values()) if ends else None
    settled = [trial.cost_usd for trial in trials]
    cost = None if None in settled else sum(each or 0.0 for each in settled)
    return LabelStats(
        label=label,
        tasks=tasks,
        trials=len(judged),
        solved=solved,
        not_verified=sum(trial.status == Status.NOT_VERIFIED for trial in judged),
        not_set_up=len(trials) - len(judged),
        pass_at_1=share,
        interval=None if share is None else _wilson(share, len(ends)),
        k=k,
        pass_at_k=mean(any(end) for end in ends.values() if len(end) == k) if ends else None,
        cost_usd=cost,
        unsettled_usd=sum(trial.unsettled_usd for trial in trials),
        cost_per_solved=cost / solved if cost is not None and solved else None,
        input_tokens=sum(trial.input_tokens for trial in judged),
        output_tokens=sum(trial.output_tokens for trial in judged),
        seconds=sum(trial.seconds for trial in judged),
        attempts=sum(trial.attempts for trial in judged),
        has_more_runs=any(trial.has_more_runs for trial in trials),
    )


def _wilson(share: float, number: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (E. B. Wilson, 1927)."""
    square = _NORMAL_QUANTILE**2 / number
    centre = share + square / 2
    half = math.sqrt(square * share * (1 - share) + square * square / 4)
    return (centre - half) / (1 + square), (centre + half) / (1 + square)


def _label_rows(labels: Sequence[LabelStats]) -> Iterator[list[str]]:
    yield ["", *(shown(each.label) for each in labels)]
    for task in dict.fromkeys(task for each in labels for task in each.tasks):
        yield [task, *(_ends(each.tasks.get(task, [])) for each in labels)]
    green = "green" if any("green" in ends for each in labels for ends in each.tasks.values()) else "solved"
    yield [green, *(f"{each.solved} of {each.trials}" for each in labels)]
    yield ["  not verified", *(_number(each.not_verified) for each in labels)]
    yield ["not set up", *(_number(each.not_set_up) for each in labels)]
    yield ["pass@1", *(_percent(each.pass_at_1) for each in labels)]
    yield ["  95 % interval", *(" to ".join(map(_percent, each.interval or [None])) for each in labels)]
    if any(each.k > 1 for each in labels):
        yield ["pass@k", *(f"{_percent(each.pass_at_k)} (k = {each.k})" for each in labels)]
    of_all = _OF_ALL * any(each.has_more_runs for each in labels)
    yield [f"cost{of_all}", *(cost_in_cell(Cost(each.cost_usd, each.unsettled_usd), short=True) for each in labels)]
    yield [f"  for each {green}", *(dollars(each.cost_per_solved, short=True) for each in labels)]
    yield ["tokens in", *(_number(each.input_tokens) for each in labels)]
    yield ["tokens out", *(_number(each.output_tokens) for each in labels)]
    yield ["time", *(_time(each.seconds) for each in labels)]
    yield ["attempts", *(_number(each.attempts) for each in labels)]


def _ends(ends: Sequence[str]) -> str:
    """Return the end of one trial, or how many of those that were set up solved the task."""
    judged = [end for end in ends if end not in [status.words for status in _NOT_JUDGED]]
    if len(ends) > 1 and judged:
        return f"{sum(end in ('solved', 'green') for end in judged)} of {len(judged)}"
    return ends[0] if ends else "-"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
