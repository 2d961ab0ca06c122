"""The logs in OUT of unfinished tasks: with its log a task continues its run.

    OUT/.ID.DIGEST.log  the log folder of the task's run, packed, its run.json first

A log is kept as it grows, so that it is there when the worker, the client or the scheduler is not.
"""

import hashlib
import platform
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from code_commit.errors import LogError, NotSetUpError
from code_commit.fleet.baseline import CANNOT_RUN, Baselines
from code_commit.fleet.limits import Failures
from code_commit.fleet.page import Pages
from code_commit.fleet.results import (
    RESULTS,
    Result,
    TaskOutcome,
    add_result,
    append_line,
    first_run,
    free_room,
    opened_archive,
    packed,
    read_own,
    reserve_room,
    store_result,
    write_own,
)
from code_commit.fleet.table import FleetTable
from code_commit.fleet.tasks import FleetTask
from code_commit.runs.record import RunRecord, load_run_record
from code_commit.status import Status

_DIGITS = 16
"""The length of a task's digest in the name of its log: the log of another task is ignored."""
_LOG_NAME = rf"\.[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}\.[0-9a-f]{{{_DIGITS}}}\.log"
_FINAL = [status for status in Status if status.is_final]


def latest_log(log: bytes, kept: Path) -> bytes:
    """Return the packed log, or the one in the file `kept` where that tells more of the same run."""
    with suppress(OSError, ValueError):
        ours = read_own(kept)
        if _tells_more(_record_in(ours), log):
            return ours
    return log


def _tells_more(record: RunRecord, log: bytes) -> bool:
    """Tell whether the record is of the packed log's run, and further."""
    former = _record_in(log)
    return first_run(former) == first_run(record) and _count_steps(record) > _count_steps(former)


def _count_steps(record: RunRecord) -> tuple[bool, int]:
    """Return how far a run is; its choice of files comes before it, and the job of an answer before that."""
    steps = (
        (each.finish_reason or each.job_id, each.finish_reason, each.verdict, each.build) for each in record.attempts
    )
    return record.command == "run", sum(step is not None for each in steps for step in each)


def _record_in(log: bytes) -> RunRecord:
    """Return the record in a packed log. Raises ValueError."""
    with opened_archive(log) as tar:  # it is the first member
        file = next((tar.extractfile(member) for member in tar if member.name == "run.json"), None)
        return load_run_record(file.read() if file else b"")


def log_path(out: Path, task: FleetTask) -> Path:
    """Return the path of an unfinished task's log, or the path that an earlier version gave it."""
    ours, earlier = (out / f".{task.id}.{digest[:_DIGITS]}.log" for digest in task.digests)
    return earlier if earlier.exists() and not ours.exists() else ours


class Unfinished:
    """The logs in OUT, and what all runs have cost, each counted once. `lines` are all results of before.

    Tasks in `built_again` continue from the log of their green result: its change is built, no LLM is asked.

    Raises LogError; NotSetUpError where it is not known what a log's run did cost.
    """

    def __init__(self, out: Path, lines: Iterable[Result], built_again: Collection[str] = ()) -> None:
        self._out = out
        self._built_again = built_again
        self._paid: defaultdict[str, float] = defaultdict(float)
        """By task; beside it what each of its runs has cost so far."""
        self._costs: dict[tuple[str, str], float] = {}
        self.sizes: dict[str, int] = {}
        """How many bytes the logs have that were kept since the start, by task."""
        for line in lines:
            cost = line.cost_usd or 0.0
            self._paid[line.id] = self._paid[line.id] + cost if line.paid_usd is None else line.paid_usd
            self._costs[line.id, line.run] = cost
        self._logs: defaultdict[str, set[Path]] = defaultdict(set)
        for path in out.glob(".*.log"):
            task = path.name[1 : -_DIGITS - len("..log")]
            self._logs[task].add(path)
            try:
                self._note(task, read_own(path))
            except (OSError, ValueError) as error:
                message = f"{path} is damaged, so the cost of its task is unknown: delete it if you accept that"
                raise NotSetUpError(message) from error

    @property
    def spent(self) -> float:
        """The cost of all starts, in US dollars."""
        return sum(self._paid.values())

    def log_of(self, task: FleetTask) -> tuple[bytes, float]:
        """Return the packed log to continue from, and the cost of its run; b"" if there is none. Raises LogError."""
        try:
            log = read_own(log_path(self._out, task))
        except FileNotFoundError:
            folder = self._out / task.id / "log"
            if task.id not in self._built_again or not (folder / "run.json").is_file():
                return b"", 0.0
            log = packed({"": folder})
        except OSError as error:
            raise LogError(log_path(self._out, task), error) from error
        return log, self._note(task.id, log)

    def keep(self, task: FleetTask, log: bytes) -> None:
        """Keep the log of a task as it is now, and count its cost. Raises LogError."""
        self.sizes[task.id] = len(log)
        self._keep(task.id, log_path(self._out, task), log)

    def take_up(self, logs: Mapping[str, bytes]) -> float:
        """Keep a worker's logs that tell more than ours, or of runs that are not known here.

        `logs` are given by the names of their files. Return what their runs have cost beyond what was known. Raises
        LogError.
        """
        before = self.spent
        for name, log in logs.items():
            if not re.fullmatch(_LOG_NAME, name):
                continue
            task, path = name[1 : -_DIGITS - len("..log")], self._out / name
            with suppress(OSError, ValueError):
                record, is_there = _record_in(log), path.exists()
                is_more = is_there and _tells_more(record, read_own(path))
                is_new = not is_there and (task, first_run(record)) not in self._costs
                if is_more or is_new:
                    self._keep(task, path, log)
        return self.spent - before

    def paid_for(self, task: FleetTask) -> float:
        """Return what all runs of a task have cost so far."""
        return self._paid[task.id]

    def count(self, result: Result) -> Result:
        """Return the result with what all runs of its task have cost."""
        if result.run and result.cost_usd is not None:
            self._add(result.id, result.run, result.cost_usd)
        return replace(result, paid_usd=self._paid[result.id])

    def drop(self, task: FleetTask, *, keep_current: bool) -> None:
        """Remove the logs of a task's former lines; unless `keep_current`, also its present one."""
        self.sizes.pop(task.id, None)
        own = {log_path(self._out, task)} if keep_current else set()
        for path in self._logs[task.id] - own:
            path.unlink(missing_ok=True)
        self._logs[task.id] &= own

    def _keep(self, task: str, path: Path, log: bytes) -> None:
        self._logs[task].add(path)
        write_own(path, log, sync=True)
        self._note(task, log)

    def _note(self, task: str, log: bytes) -> float:
        record = _record_in(log)
        self._add(task, first_run(record), record.cost.highest)
        return record.cost.highest

    def _add(self, task: str, run: str, cost: float) -> None:
        self._paid[task] += cost - self._costs.get((task, run), 0.0)
        self._costs[task, run] = cost


class ResultStore:
    """Keeps what comes back from the cluster in OUT, and tells it on the terminal. Raises LogError."""

    def __init__(
        self, unfinished: Unfinished, table: FleetTable, failures: Failures, pages: Pages, baselines: Baselines
    ) -> None:
        self.name = hashlib.sha256(f"{platform.node()} {pages.out}".encode()).hexdigest()[:12]
        """The same at each start with this OUT."""
        self._out, self._results = pages.out, pages.results
        self.table = table
        self._failures = failures
        self._pages = pages
        self._unfinished = unfinished
        self._baselines = baselines
        self.log_of = unfinished.log_of
        self.keep, self.paid_for, self.count = unfinished.keep, unfinished.paid_for, unfinished.count
        table.totals.cost_usd = unfinished.spent

    def take_up(self, logs: Mapping[str, bytes]) -> float:
        """Keep a worker's logs of earlier starts, and return their cost, as `Unfinished.take_up`."""
        cost = self._unfinished.take_up(logs)
        self.table.totals.cost_usd = self._unfinished.spent
        return cost

    def require_room(self) -> None:
        """Raise LogError where OUT has no room for the logs of what runs; else write the page if it is due."""
        reserve_room(self._out, self._unfinished.sizes)
        self._pages.catch_up()

    def take(self, task: FleetTask, outcome: TaskOutcome) -> bool:
        """Take what came of a task; return whether to go on with what has not begun."""
        if outcome.result.status == Status.INTERRUPTED and not outcome.result.run:
            return True
        outcome = self._write(task, outcome, is_over=outcome.result.status != Status.INTERRUPTED)
        self._unfinished.drop(task, keep_current=outcome.result.status not in _FINAL)
        self.table.report(outcome.result)
        self.table.totals.cost_usd = self._unfinished.spent
        self._pages.write()
        return self._failures.allow_more_after(outcome.result)

    def refuse(self, tasks: Iterable[FleetTask]) -> None:
        """Write a result for each task whose build cannot run: no LLM was asked."""
        for task in tasks:
            baseline = self._baselines.of(task)
            if baseline.state == CANNOT_RUN:
                result = task.ended(Status.NOT_SET_UP, baseline.message, error="baseline")
                self.table.report(self._write(task, TaskOutcome(result), is_over=True).result)

    def note(self, task: FleetTask, outcome: TaskOutcome) -> None:
        """Write the log of a task that continues later, and a line if it has cost something."""
        self._write(task, outcome, is_over=False)
        self.table.totals.cost_usd = self._unfinished.spent

    def _write(self, task: FleetTask, outcome: TaskOutcome, *, is_over: bool) -> TaskOutcome:
        """Write what came of a task; on a full disk its log alone, in the room that is reserved for it."""
        try:
            if outcome.log and outcome.result.status not in _FINAL:
                self.keep(task, outcome.log)
            facts: Any = {"path": str(task.path or ""), "baseline": self._baselines.of(task).state}
            outcome = outcome._replace(result=replace(self._unfinished.count(outcome.result), **facts))
            if is_over:
                store_result(self._out, outcome, self._results)
            elif outcome.result.run:
                append_line(self._out / RESULTS, outcome.result)
            if is_over or outcome.result.run:
                add_result(self._results, outcome.result)
        except LogError:
            free_room(self._out)
            if outcome.log:
                self.keep(task, outcome.log)
            raise
        return outcome
