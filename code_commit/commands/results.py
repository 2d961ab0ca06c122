"""The results of a fleet's tasks, a line each in results.jsonl: the fleet writes them, the statistics read them too."""

import dataclasses
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from code_commit.exchange import Cost
from code_commit.files import load_json, read_regular_file
from code_commit.runs.record import require_finite
from code_commit.runs.words import cost_in_words
from code_commit.status import Status, status_in_words

T = TypeVar("T")
RESULTS = "results.jsonl"
_OF_EARLIER_VERSION = "earlier version"  # the costs of a task's earlier runs, which it told in one sum


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a task. `status` and `exit_code` are the run's, or say why it did not end.

    `digest` is that of the task's line, `identity` that of what the LLM is asked; `path` is the repository's folder on
    the client, `baseline` the state of the build before, `base` the commit as the line names it, `commit` its SHA;
    `query` is the first line of the query. `task` is the task of which this is a variant or a trial, `label` the
    variant. Equal patches have an equal `patch`, others another; the lines are those of changes.patch. `build_changes`
    names the files of build.patch, `rewritten` those of changes.patch that the build changed after the answer.
    `verified` tells whether the build passed again with the files that the run did not see, None without such. `error`
    is the kind of the run's error. `run` is the name of the run, or of its choice of files, `start` that of the start
    that ended with it, `seconds` the time of all starts of that run. `cost_usd` is what was settled, over all runs of
    the task, None where a price is unknown; `unsettled_usd` is what may have been paid beside it. `runs` has both of
    each run, and of each start that was lost: without a bound (None) where nothing limited it. `needed_usd` is the cost
    of the call that `--max-cost` did not allow. `is_build_supplied` tells whether the build.sh that passed came from
    the list of tasks; else `without_build` is the digest of the line without its build.
    """

    id: str
    digest: str
    status: str
    exit_code: int
    attempts: int = 0
    cost_usd: float | None = None
    needed_usd: float = 0.0
    seconds: float = 0.0
    files_changed: int = 0
    message: str = ""
    model: str = ""
    repository: str = ""
    query: str = ""
    task: str = ""
    label: str = ""
    commit: str = ""
    patch: str = ""
    lines_added: int = 0
    lines_removed: int = 0
    build_changes: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    verified: bool | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    run: str = ""
    error: str = ""
    worker: str = ""
    identity: str = ""
    path: str = ""
    base: str = ""
    baseline: str = ""
    unsettled_usd: float = 0.0
    is_build_supplied: bool = False
    without_build: str = ""
    start: str = ""
    runs: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)

    @property
    def cost(self) -> Cost:
        return Cost(self.cost_usd, self.unsettled_usd)

    @property
    def is_cost_known(self) -> bool:
        """Whether each answer has a price, and each start that was lost a limit."""
        is_told = self.cost_usd is not None or not self.attempts
        return is_told and all(most is not None for _, most in self.runs.values())

    @property
    def has_more_runs(self) -> bool:
        """Whether the cost includes that of another run, or of a start that was lost; all else is of `run` alone."""
        return any(any(cost != 0 for cost in costs) for run, costs in self.runs.items() if run != self.run)

    @property
    def cost_in_words(self) -> str:
        """Return `$0.24`, or `$0.24 in all runs` where the attempts are those of the latest; "" for no cost."""
        cost = cost_in_words(self.cost, short=True)
        return f"{cost} in all runs" if cost and self.has_more_runs else cost

    def with_runs(self, runs: Mapping[str, tuple[float | None, float | None]]) -> "Result":
        """Return the result of a task whose runs have cost this."""
        settled = [cost for cost, _ in runs.values()]
        total = None if None in settled else sum(cost or 0.0 for cost in settled)
        unsettled = sum(most or 0.0 for _, most in runs.values())
        return dataclasses.replace(self, cost_usd=total, unsettled_usd=unsettled, runs=dict(runs))

    @property
    def is_of_earlier_version(self) -> bool:
        """Whether it counts what may have been paid in earlier runs as paid."""
        return _OF_EARLIER_VERSION in self.runs

    @property
    def is_open(self) -> bool:
        """Whether the same command continues it: it was interrupted, or lacks a key or money."""
        return self.status == Status.INTERRUPTED or self.error in ("key", "quota") or self.needed_usd > 0

    @property
    def is_green(self) -> bool:
        return self.exit_code == 0

    @property
    def is_compared(self) -> bool:
        """Whether it is one of several trials or variants, or was verified: then labels are summed up."""
        return bool(self.label) or self.verified is not None or self.task not in ("", self.id)

    @property
    def word(self) -> str:
        """The result in a word or two: `solved`, `green`, `build failed`."""
        return ("solved" if self.verified else "green") if self.is_green else status_in_words(self.status)

    @property
    def reason(self) -> str:
        """The first line of the message, or all of a list that it announces; "" for a green result."""
        first, *more = self.message.split("\n")
        if self.is_green:
            return ""
        return " ".join([first, *more]) if first.endswith(":") else first or f"exit code {self.exit_code}"


def read_lines(file: Path, kind: type[T]) -> list[T]:
    """Return the values of a file of JSON Lines, without damaged and foreign lines. Raises OSError."""
    from pydantic import TypeAdapter

    adapter, values = TypeAdapter(kind), []
    for line in read_regular_file(file, follow_link=False).split(b"\n"):
        with suppress(ValueError):
            value = load_json(line)
            require_finite(value)
            values.append(adapter.validate_python(_upgraded(value) if kind is Result else value))
    return values


def _upgraded(line: Any) -> Any:
    """Return a line of results.jsonl as this version writes it.

    `paid_usd` of an earlier version counted what may have been paid in earlier runs as paid, and so does the line.
    Raises ValueError.
    """
    if not isinstance(line, dict) or "runs" in line:
        return line
    try:
        cost, unsettled = line.get("cost_usd"), line.get("unsettled_usd", 0.0)
        settled = None if cost is None else max(cost - unsettled, 0.0)
        earlier = max((line.get("paid_usd") or 0.0) - (cost or 0.0), 0.0)
        total = None if settled is None else settled + earlier
        runs = {str(line.get("run", "")): (settled, unsettled), _OF_EARLIER_VERSION: (earlier, 0.0)}
    except TypeError as error:
        raise ValueError("it holds something else") from error
    return {**line, "cost_usd": total, "runs": runs}


def counting(results: Iterable[Result]) -> dict[str, Result]:
    """Return the result of each task that counts, by its id: the latest, or a green one of the same line before it."""
    count: dict[str, Result] = {}
    for result in results:
        add_result(count, result)
    return count


def add_result(results: dict[str, Result], result: Result) -> None:
    before = results.get(result.id)
    stays = before and before.is_green and not result.is_green and before.digest == result.digest
    results[result.id] = before.with_runs(result.runs) if before and stays else result
