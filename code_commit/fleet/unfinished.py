"""The logs in OUT of unfinished tasks: with its log a task continues its run.

    OUT/.ID.DIGEST.log   the log folder of the task's run, packed, its run.json first
    OUT/.ID.START.start  what a start may have cost of which no log tells the end

A log is kept as it grows, so that it is there when the worker, the client or the scheduler is not. A start that was
lost counts with all that it was allowed to spend, until a log tells its end.
"""

import hashlib
import json
import platform
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from code_commit.commands.results import RESULTS, Result, add_result
from code_commit.errors import LogError, NotSetUpError
from code_commit.exchange import Cost
from code_commit.files import load_json, read_regular_file
from code_commit.fleet.baseline import CANNOT_RUN, Baselines
from code_commit.fleet.limits import Failures
from code_commit.fleet.page import Pages
from code_commit.fleet.results import (
    TaskOutcome,
    append_line,
    first_run,
    free_room,
    opened_archive,
    packed,
    recorded_cost,
    reserve_room,
    store_result,
    write_own,
)
from code_commit.fleet.table import FleetTable
from code_commit.fleet.tasks import FleetTask
from code_commit.runs.record import RunRecord, load_run_record
from code_commit.status import Status

_DIGITS = 16  # the length of a task's digest in the name of its log: the log of another task is ignored
_LOG_NAME = rf"\.[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}\.[0-9a-f]{{{_DIGITS}}}\.log"
STARTS = "starts.txt"
"""In a log: each start that wrote it, the cost of the run as it went on with it, and `ended` if the log tells all."""
_ENDED, _MEMBERS = " ended", 3
_FINAL = [status for status in Status if status.is_final]


def latest_log(log: bytes, kept: Path, fleet: str = "") -> bytes:
    """Return the packed log, or that in `kept` if it tells more of the run, or is of a lost start of `fleet`."""
    with suppress(OSError, ValueError):
        ours = read_regular_file(kept, follow_link=False)
        told = _read(ours)
        is_lost_with_it = told.record is not None and any(start.startswith(f"{fleet}-") for start in told.starts)
        if told.tells_more_than(_read(log)) if log else is_lost_with_it:
            return ours
    return log


def cost_in_log(log: bytes) -> float:
    """Return the most that the run of a packed log has cost, 0 without a log that can be read."""
    with suppress(ValueError):
        return _read(log).cost.highest
    return 0.0


class _Log(NamedTuple):
    """A packed log: the record if a run began; by start whether it has ended, and the cost of the run before."""

    record: RunRecord | None
    starts: dict[str, bool]
    begun: dict[str, float]

    @property
    def cost(self) -> Cost:
        return recorded_cost(self.record) if self.record else Cost()

    def tells_more_than(self, former: "_Log") -> bool:
        """Tell whether it is of the same run and further, and no start of the other one is missing."""
        if not self.record or not former.record or first_run(self.record) != first_run(former.record):
            return False
        return former.starts.keys() <= self.starts.keys() and self.steps > former.steps

    @property
    def steps(self) -> tuple[bool, int, int]:
        """How far the run is; its choice of files comes before it, and the job of an answer before that."""
        assert self.record is not None  # noqa: S101 - it was asked for
        steps = (
            (each.finish_reason or each.job_id, each.finish_reason, each.verdict, each.build)
            for each in self.record.attempts
        )
        made = sum(step is not None for each in steps for step in each)
        return self.record.command == "run", made, sum(self.starts.values())


def _read(log: bytes) -> _Log:
    """Return what a packed log tells. Raises ValueError."""
    with opened_archive(log) as tar:  # they are the first members
        found = {
            member.name: (tar.extractfile(member) or BytesIO()).read()
            for member in islice(tar, _MEMBERS)
            if member.name in ("run.json", STARTS)
        }
    lines = [line for line in found.get(STARTS, b"").decode().split("\n") if line]
    words = [line.removesuffix(_ENDED).split() for line in lines]
    starts = {name: line.endswith(_ENDED) for (name, *_), line in zip(words, lines, strict=True)}
    if not starts and "run.json" not in found:
        raise ValueError("the packed log has no record")
    record = load_run_record(found["run.json"]) if "run.json" in found else None
    return _Log(record, starts, {name: float(cost) for name, *costs in words for cost in costs})


def starts_file(folder: Path, start: str, *, is_over: bool) -> bytes:
    """Return the file of starts of a log that began as `folder`, with this one: its name, and the cost before."""
    lines, name = [], start.partition(" ")[0]
    with suppress(OSError):
        lines = [line for line in (folder / STARTS).read_text().split("\n") if line and line.split()[0] != name]
    return "\n".join([*lines, f"{start}{_ENDED}" if is_over else start]).encode() if start else b""


def log_path(out: Path, task: FleetTask) -> Path:
    """Return the path of an unfinished task's log, or the path that an earlier version gave it."""
    ours, *earlier = (out / f".{task.id}.{digest[:_DIGITS]}.log" for digest in task.digests)
    return next((path for path in (ours, *earlier) if path.exists()), ours)


class Unfinished:
    """The logs in OUT, and what all runs and lost starts have cost, each counted once. `lines` are all results.

    Tasks in `built_again` continue from the log of their green result: its change is built, no LLM is asked.

    Raises LogError; NotSetUpError where it is not known what a log's run did cost.
    """

    def __init__(self, out: Path, lines: Iterable[Result], built_again: Collection[str] = ()) -> None:
        self._out = out
        self._built_again = built_again
        self._costs: defaultdict[str, dict[str, tuple[float | None, float | None]]] = defaultdict(dict)
        """By task: what each of its runs, and of its starts that were lost, has cost, settled and beside it."""
        self._told: dict[str, float] = {}  # by start: the most that its run has cost, as far as that is known
        self._over: set[str] = set()  # the starts of which all is known
        self.sizes: dict[str, int] = {}  # how many bytes the logs have that were kept since the start, by task
        for line in lines:
            self._costs[line.id] = dict(line.runs)
            self._over.add(line.start)
        for path in out.glob(".*.start"):
            task, _, start = path.name[1 : -len(".start")].rpartition(".")
            if start in self._over or start in self._costs[task]:
                path.unlink()
            else:
                self.lose(task, start)
        self._logs: defaultdict[str, set[Path]] = defaultdict(set)
        for path in out.glob(".*.log"):
            task = path.name[1 : -_DIGITS - len("..log")]
            self._logs[task].add(path)
            try:
                self._note(task, read_regular_file(path, follow_link=False))
            except (OSError, ValueError) as error:
                message = f"{path} is damaged, so the cost of its task is unknown: delete it if you accept that"
                raise NotSetUpError(message) from error

    @property
    def spent(self) -> Cost:
        """The cost of all starts, as far as it is known."""
        costs = (Cost(settled, most or 0.0) for runs in self._costs.values() for settled, most in runs.values())
        return sum(costs, Cost(0.0))

    def begin(self, task: str, start: str, limit: float | None, known: float = 0.0) -> None:
        """Keep that a start may spend money until its run, of `known` cost, has cost `limit`. Raises LogError."""
        write_own(self._start(task, start), json.dumps([limit, known]).encode(), sync=True)

    def lose(self, task: str, start: str) -> None:
        """Count a start with all that it may have spent beyond what its log tells. Raises LogError."""
        limit, known = None, 0.0
        with suppress(OSError, ValueError, TypeError):
            limit, known = load_json(read_regular_file(self._start(task, start), follow_link=False))
        known = self._told.setdefault(start, known)
        self._costs[task][start] = (0.0, None if limit is None else max(limit - known, 0.0))
        write_own(self._start(task, start), json.dumps([limit, known]).encode())

    def end(self, task: str, start: str) -> None:
        """Note that all is known of a start."""
        self._over.add(start)
        self._costs[task].pop(start, None)
        self._start(task, start).unlink(missing_ok=True)

    def _start(self, task: str, start: str) -> Path:
        return self._out / f".{task}.{start}.start"

    def log_of(self, task: FleetTask) -> tuple[bytes, float]:
        """Return the packed log to continue from, and the cost of its run; b"" if there is none. Raises LogError."""
        try:
            log = read_regular_file(log_path(self._out, task), follow_link=False)
        except FileNotFoundError:
            folder = self._out / task.id / "log"
            if task.id not in self._built_again or not (folder / "run.json").is_file():
                return b"", 0.0
            first = {name: (folder / name).read_bytes() for name in ("run.json", STARTS) if (folder / name).is_file()}
            log = packed({"": folder}, first)
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
        before = self.spent.highest
        for name, log in logs.items():
            if re.fullmatch(_LOG_NAME, name):
                with suppress(OSError, ValueError):
                    self._take_up(name[1 : -_DIGITS - len("..log")], self._out / name, log)
        return self.spent.highest - before

    def _take_up(self, task: str, path: Path, log: bytes) -> None:
        told, is_there = _read(log), path.exists()
        is_more = is_there and told.tells_more_than(_read(read_regular_file(path, follow_link=False)))
        is_new = not is_there and told.record is not None and first_run(told.record) not in self._costs[task]
        if is_more or is_new:
            self._keep(task, path, log)
        elif told.record is None:
            self._end_all(task, told)

    def paid_for(self, task: FleetTask) -> float:
        """Return the most that all runs of a task have cost so far."""
        return sum((settled or 0.0) + (most or 0.0) for settled, most in self._costs[task.id].values())

    def count(self, result: Result, log: bytes = b"") -> Result:
        """Return the result of a run, which has this packed log, with what all runs of its task have cost."""
        costs = self._costs[result.id]
        with suppress(ValueError):  # as without a log
            self._shorten(costs, _read(log))
        if result.run:
            costs[result.run] = (result.cost_usd, result.unsettled_usd)
        return result.with_runs(costs)

    def drop(self, task: FleetTask, *, keep_current: bool) -> None:
        """Remove the logs of a task's former lines; unless `keep_current`, also its present one."""
        self.sizes.pop(task.id, None)
        own = {log_path(self._out, task)} if keep_current else set()
        for path in self._logs[task.id] - own:
            path.unlink(missing_ok=True)
        self._logs[task.id] &= own
        for start in self._costs[task.id]:
            self._start(task.id, start).unlink(missing_ok=True)

    def _keep(self, task: str, path: Path, log: bytes) -> None:
        self._logs[task].add(path)
        write_own(path, log, sync=True)
        self._note(task, log)

    def _note(self, task: str, log: bytes) -> float:
        told = _read(log)
        if told.record is None:
            raise ValueError("the packed log has no record")
        costs, cost, run = self._costs[task], told.cost, first_run(told.record)
        self._shorten(costs, told)
        costs[run] = (cost.settled, cost.unsettled)
        self._told[next(reversed(told.starts), "")] = cost.highest
        self._end_all(task, told)
        return cost.highest

    def _shorten(self, costs: dict[str, tuple[float | None, float | None]], told: _Log) -> None:
        """Count of each lost start that wrote this log only what it may have spent beyond what the log tells.

        The log has its costs until the next start went on with the run.
        """
        if told.record is None:
            return
        for start, following in pairwise([*told.starts, ""]):
            if start in costs and (rest := costs[start][1]) is not None:
                known = told.begun.get(following, 0.0) if following else told.cost.highest
                before = self._told.get(start, known)  # more, where what was pending then has cost less
                costs[start], self._told[start] = (0.0, max(rest + before - known, 0.0)), known

    def _end_all(self, task: str, told: _Log) -> None:
        for start, is_over in told.starts.items():
            if is_over:
                self.end(task, start)


class ResultStore:
    """Keeps what comes back from the cluster in OUT, and tells it on the terminal. Raises LogError."""

    def __init__(
        self, unfinished: Unfinished, table: FleetTable, failures: Failures, pages: Pages, baselines: Baselines
    ) -> None:
        self.name = hashlib.sha256(f"{platform.node()} {pages.out}".encode()).hexdigest()[:12]
        """The same at each start with this OUT."""
        self._out, self._results = pages.out, pages.results
        self.table, self._pages, self._unfinished = table, pages, unfinished
        self._failures, self._baselines = failures, baselines
        self.log_of = unfinished.log_of
        self.keep, self.paid_for, self.count = unfinished.keep, unfinished.paid_for, unfinished.count
        self.begin, self.end, self.catch_up = unfinished.begin, unfinished.end, pages.catch_up
        self._add_up()

    def _add_up(self) -> None:
        self._pages.spent = spent = self._unfinished.spent
        self.table.totals.set_cost(spent)

    def lose(self, task: str, start: str) -> None:
        self._unfinished.lose(task, start)
        self._add_up()

    def take_up(self, logs: Mapping[str, bytes]) -> float:
        """Keep a worker's logs as `Unfinished.take_up`; a result whose costs they change gets another line."""
        cost = self._unfinished.take_up(logs)
        for task, result in self._results.items():
            if (counted := self._unfinished.count(replace(result, run=""))).runs != result.runs:
                self._results[task] = replace(counted, run=result.run)
                append_line(self._out / RESULTS, self._results[task])
        self._add_up()
        return cost

    def require_room(self) -> None:
        """Raise LogError where OUT has no room for the logs of what runs."""
        reserve_room(self._out, self._unfinished.sizes)

    def take(self, task: FleetTask, outcome: TaskOutcome) -> bool:
        """Take what came of a task; return whether to go on with what has not begun."""
        if outcome.result.status == Status.INTERRUPTED and not outcome.result.run:
            return True
        outcome = self._write(task, outcome, is_over=outcome.result.status != Status.INTERRUPTED)
        self._unfinished.drop(task, keep_current=outcome.result.status not in _FINAL)
        self.table.report(outcome.result)
        self._add_up()
        self._pages.is_due = True
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
        self._add_up()

    def _write(self, task: FleetTask, outcome: TaskOutcome, *, is_over: bool) -> TaskOutcome:
        """Write what came of a task; on a full disk its log alone, in the room that is reserved for it."""
        try:
            if outcome.log and outcome.result.status not in _FINAL:
                self.keep(task, outcome.log)
            facts: Any = {"path": str(task.path or ""), "baseline": self._baselines.of(task).state}
            outcome = outcome._replace(result=replace(self._unfinished.count(outcome.result, outcome.log), **facts))
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
