"""The dispatcher: tasks go out to Dask's workers, so many at a time, and what comes of them comes back.

Dask knows where a task runs and which worker was lost. This module decides whether a task runs again after that, since
it costs again: a task that Dask itself starts a second time returns at once.
"""

import os
import signal
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Self

from distributed import CancelledError, Future, KilledWorker

from code_commit.commands.results import Result
from code_commit.errors import CodeCommitError, Interrupted
from code_commit.fleet import FleetOptions, dask_worker
from code_commit.fleet.builds import GRACE, TICK
from code_commit.fleet.cluster import (
    SCHEDULER_LOST,
    SECONDS_TO_ANSWER,
    SchedulerLostError,
    connect,
    own_folder,
    unfit_reason,
)
from code_commit.fleet.limits import Budget, Demand, RateLimiter
from code_commit.fleet.results import TaskOutcome
from code_commit.fleet.table import FleetTable
from code_commit.fleet.tasks import FleetTask
from code_commit.fleet.unfinished import ResultStore
from code_commit.interrupts import DeferredSignals, exit_at_next_signal, first_interrupt
from code_commit.llm.ledger import ROUNDING
from code_commit.runs.words import count, duration
from code_commit.status import Status
from code_commit.version import __version__

_MOST_LOST = 3  # workers that may be lost with a task
_OUTAGES = ("network", "timeout")  # the kinds of errors that are the host's, not the task's
_SECONDS_FOR_A_RESULT, _SECONDS_FOR_LOGS = 120, 60


@dataclass(slots=True)
class _QueuedTask:
    """A task that waits, or was sent to a worker."""

    task: FleetTask
    lost: int = 0  # workers that were lost with it, or failed
    unfit: dict[str, str] = field(default_factory=dict)  # workers that could not begin it, each with the reason
    need: float = 0.0  # the cost of its next call, if its limit was too low for that
    spent: float = 0.0  # the cost of its runs before it was sent
    continued: float = 0.0  # the cost of the run that it continues
    most: float | None = None  # what that run may cost in all
    start: str = ""  # the start that a worker has begun, and whose end is not known
    future: "Future[TaskOutcome | None] | None" = None
    is_running: bool = False
    logged: float = 0.0  # when its worker made the log that is kept, by the worker's clock
    failed: int = 0  # runs that ended by its host's failure

    def needs(self, budget: Budget) -> Demand:
        own: float | None = self.task.settings.get("max_cost")
        limit, answers = own and max(own - self.continued, ROUNDING), budget.answers.get(self.task.id, ())
        return Demand(self.task.host, limit, self.continued, self.need, *answers)


class Dispatcher:
    """Sends tasks to a cluster, a limited number at a time, and hands their outcomes to a store. A context manager."""

    def __init__(self, options: FleetOptions, table: FleetTable, name: str) -> None:
        self._options, self._table = options, table
        self._fleet = f"code-commit-{name}-{os.urandom(6).hex()}"
        self._connection = ExitStack()
        self._waiting: defaultdict[str, deque[_QueuedTask]] = defaultdict(deque)  # by host
        self._limiters: defaultdict[str, RateLimiter] = defaultdict(lambda: RateLimiter(self._cluster.at_once))
        self._sent: dict[int, _QueuedTask] = {}
        self._has_logs = False  # whether all logs that workers kept of earlier starts were fetched
        self._unconfirmed: set[str] = set()
        """The ids of tasks that were sent and whose logs may exist only on the workers."""
        self._last = 0
        self._is_drained = False
        self._inbox: SimpleQueue[tuple[str, int, Any]] = SimpleQueue()

    def __enter__(self) -> Self:
        if self._options.scheduler is None:
            dask_worker.rescue_logs(own_folder() / "dask-scratch-space", self._fleet)
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        with self._connection:
            if self._client.status == "running":
                self._cluster.ask_all(dask_worker.drop_copies)
                if self._has_logs and not self._unconfirmed:
                    self._cluster.ask_all(dask_worker.drop_logs)

    def _connect(self, *, again: bool = False) -> None:
        with suppress(RuntimeError, OSError, TimeoutError):  # of a lost scheduler: Dask's client may be connecting anew
            self._connection.close()
        self._limiters.clear()
        connected = connect(self._options, self._fleet, self._table.say, again=again)
        self._cluster = self._connection.enter_context(connected)
        self._client = self._cluster.client
        self._client.subscribe_topic(self._fleet, lambda event: self._inbox.put(tuple(event[1])))

    def take_up_logs(self, store: ResultStore, budget: Budget) -> None:
        """Keep the logs that an earlier start left with the workers: a task may go to another one now."""
        done, late = self._cluster.ask_all(dask_worker.kept_logs, _SECONDS_FOR_LOGS)
        answers = [each.result() for each in done if not each.exception()]
        for logs in answers:
            budget.release(0, store.take_up(logs))
        self._has_logs = not late and 0 < len(answers) == len(done)

    def run(
        self, tasks: Sequence[FleetTask], store: ResultStore, budget: Budget, later: Iterable[FleetTask] = ()
    ) -> None:
        """Do the tasks; no process is left. The copies for those of `later` stay. Raises ClusterError and LogError."""
        self._store, self._budget, self._goes_on = store, budget, not self._is_drained
        self._left = Counter(task.place for task in (*tasks, *later))
        self._waiting.clear()
        while tasks:
            for task in tasks:
                self._waiting[task.host].append(_QueuedTask(task, continued=store.log_of(task)[1]))
            try:
                with first_interrupt(lambda: self._inbox.put(("drain", 0, ""))):
                    self._do_what_waits()
                tasks = ()
            except SchedulerLostError:
                if self._cluster.is_local or not self._goes_on:
                    raise
                self._table.say("the scheduler is lost: waiting for it")
                tasks = self._give_up()
                self._connect(again=True)
                self.take_up_logs(store, budget)
            except BaseException:
                self._end_all()
                raise

    def _do_what_waits(self) -> None:
        self._send_more()
        while self._sent or self._has_pauses:
            try:
                self._attend(*self._inbox.get(timeout=1))
            except Empty:
                self._cluster.has_worker()
                self._store.require_room()
                if self._is_drained and not self._running:
                    break
            self._send_more()
            self._store.catch_up()
        if self._is_drained:
            raise Interrupted(signal.SIGINT)

    def _give_up(self) -> list[FleetTask]:
        """Return the tasks that are not done, and free the money reserved for them."""
        for number, sent in self._sent.items():
            self._lose(sent)
            self._budget.release(number, self._store.paid_for(sent.task) - sent.spent)
        self._budget.release(self._last, 0.0)  # of a task that could not be sent
        waiting = (sent for each in self._waiting.values() for sent in each)
        tasks = [sent.task for sent in (*self._sent.values(), *waiting)]
        self._sent.clear()
        self._waiting.clear()
        return tasks

    @property
    def _running(self) -> list[_QueuedTask]:
        return [sent for sent in self._sent.values() if sent.is_running]

    @property
    def _has_pauses(self) -> bool:
        """Whether a task waits for a host that fails now but may answer later."""
        waits = [host for host, waiting in self._waiting.items() if waiting and not self._budget.is_used_up_for(host)]
        limiters = [self._limiters[host] for host in waits]
        return self._goes_on and any(limiter.pause and not limiter.is_given_up for limiter in limiters)

    def _send_more(self) -> None:
        for host, waiting in self._waiting.items():
            pace = self._limiters[host]
            while waiting and self._goes_on and not self._budget.is_used_up_for(host) and not pace.is_full:
                is_idle = len(self._sent) < self._cluster.at_once
                number, next_one = self._last + 1, waiting[0]
                grant = self._budget.take(number, next_one.needs(self._budget)) if is_idle else None
                if grant is None:
                    break
                self._last = number
                self._send(number, next_one, grant)
                waiting.popleft()
                pace.running += 1

    def _send(self, number: int, sent: _QueuedTask, grant: float) -> None:
        log, sent.continued = self._store.log_of(sent.task)
        sent.spent = self._store.paid_for(sent.task)
        limit = None if grant == float("inf") else sent.continued + grant
        sent.most = sent.task.settings.get("max_cost") if limit is None else limit
        arguments = (sent.task, self._cluster.source_of(sent.task), limit, log, self._fleet, number, __version__)
        workers = self._cluster.fit_workers(sent.unfit)
        sent.is_running, sent.logged = False, 0.0
        sent.future = self._client.submit(
            dask_worker.on_worker, *arguments, key=(self._fleet, number), pure=False, workers=workers
        )
        self._sent[number] = sent
        self._unconfirmed.add(sent.task.id)
        sent.future.add_done_callback(lambda _: self._inbox.put(("done", number, "")))

    def _attend(self, what: str, number: int, told: Any) -> None:
        """Take in news of a task: `told` is the worker that it comes from, or its answer."""
        sent = self._sent.get(number)
        if sent and what == "logged":
            self._store.require_room()
            answer = self._cluster.ask(told, dask_worker.collect_logs)
            answer.add_done_callback(lambda answer: self._inbox.put(("collected", 0, answer)))
        elif what == "collected" and not (told.cancelled() or told.exception()):
            for logged, (when, log) in told.result().items():
                if (sent := self._sent.get(logged)) and when > sent.logged:  # answers may overtake each other
                    sent.logged = when
                    self._store.keep(sent.task, log)
        elif sent and what == "begun":
            sent.is_running, sent.start = True, f"{self._fleet}-{number}"
            self._store.begin(sent.task.id, sent.start, sent.most, sent.continued)
            self._cluster.holders[sent.task.place].add(told)
            if self._is_drained:  # it joined the cluster since
                self._cluster.ask(told, dask_worker.drain_tasks)
        elif what == "drain":
            self._drain()
        elif sent and what == "done":
            self._accept_result(number, sent)
        self._table.running = len(self._running)

    def _drain(self) -> None:
        """Start nothing new, and let what runs end before its next call."""
        self._is_drained, self._goes_on = True, False
        self._cluster.ask_all(dask_worker.drain_tasks, 0)
        if running := self._running:
            tasks = count(len(running), "running task")
            self._table.say(f"{tasks} may finish the current call and build; a second interrupt ends everything now")

    def _accept_result(self, number: int, sent: _QueuedTask) -> None:
        """Hand over the outcome of a task, or queue the task again: first if it lost its worker, else last."""
        outcome = self._outcome_of(sent)
        self._client.sync(self._client.scheduler.event_clear, name=f"{self._fleet}-{number}")
        result = outcome.result if outcome else None
        is_tried_again = self._is_tried_again(sent, result)
        is_worker_lost = result is None or self._cluster.blame(result, sent.unfit)
        with DeferredSignals():  # until here it can be taken again
            del self._sent[number]
            if result is None:
                self._lose(sent)
                self._cluster.bundles.pop(sent.task.place, None)  # the lost worker may have been the only one with it
            is_too_dear = self._settle(number, sent, outcome)
            sent.lost += is_worker_lost and not (result and unfit_reason(result))
            if is_too_dear or is_tried_again:
                self._waiting[sent.task.host].append(sent)
            elif is_worker_lost and sent.lost < _MOST_LOST:
                self._waiting[sent.task.host].appendleft(sent)
            else:
                self._hand_over(sent.task, outcome)
            if outcome and (is_too_dear or is_tried_again or is_worker_lost):
                self._store.note(sent.task, outcome)
                self._unconfirmed.discard(sent.task.id)
            if outcome and sent.start:
                self._store.end(sent.task.id, sent.start)
                sent.start = ""

    def _lose(self, sent: _QueuedTask) -> None:
        """Count what a start may have cost whose worker or scheduler was lost."""
        if sent.start:
            self._store.lose(sent.task.id, sent.start)
            sent.start = ""

    def _hand_over(self, task: FleetTask, outcome: TaskOutcome | None) -> None:
        self._left[task.place] -= 1
        if not self._left[task.place]:  # its copies are not needed any more
            self._cluster.bundles.pop(task.place, None)
            for worker in self._cluster.holders.pop(task.place, ()):
                self._cluster.ask(worker, dask_worker.drop_copy, task.place)
        lost = f"{_MOST_LOST} workers were lost while they ran this task"
        goes_on = self._store.take(task, outcome or TaskOutcome(task.ended(Status.MACHINE_FAILED, lost)))
        self._goes_on = goes_on and not self._is_drained
        self._unconfirmed.discard(task.id)

    def _settle(self, number: int, sent: _QueuedTask, outcome: TaskOutcome | None) -> bool:
        """Record the cost of a task; return whether it could continue with more money."""
        if outcome:
            self._store.count(outcome.result, outcome.log)
        sent.need, sent.future = outcome.result.needed_usd if outcome else 0.0, None
        cost = self._store.paid_for(sent.task) - sent.spent
        sent.spent += cost
        if outcome is None:
            self._budget.release(number, cost)
            sent.continued = self._store.log_of(sent.task)[1]
            return False
        sent.continued += cost
        return self._budget.settle(number, cost, sent.need)

    def _is_tried_again(self, sent: _QueuedTask, result: Result | None) -> bool:
        """Tell the end of a task to its host's limiter; return whether the task waits because the host fails."""
        host, failure = sent.task.host, result.error if result and result.error in _OUTAGES else ""
        limiter = self._limiters[host]
        before = limiter.pause
        limiter.ended(failure, has_answered=bool(result and result.attempts))
        if not failure or limiter.is_given_up:
            if failure and self._waiting[host]:
                again = "rerun the same command to continue with the rest"
                self._table.say(f"stopped using {host or 'the LLM'} ({failure}): {again}")
            return False
        if limiter.pause != before:
            self._table.say(f"{host or 'the LLM'} fails ({failure}): one task tries again in {duration(limiter.pause)}")
        sent.failed += 1
        has_others = bool(self._waiting[host]) or limiter.running > 0
        return bool(limiter.pause) or (has_others and sent.failed == 1)

    def _outcome_of(self, sent: _QueuedTask) -> TaskOutcome | None:
        """Return the outcome of a task, None if its worker was lost. Raises ClusterError."""
        assert sent.future is not None  # noqa: S101 - it was sent
        try:
            return sent.future.result(timeout=_SECONDS_FOR_A_RESULT)
        except (KilledWorker, CancelledError, TimeoutError, OSError) as error:
            if self._client.status != "running":
                raise SchedulerLostError(SCHEDULER_LOST) from error
            return None
        except Exception as error:  # noqa: BLE001 - what a worker could not even begin
            return TaskOutcome(sent.task.ended(Status.MACHINE_FAILED, f"{type(error).__name__}: {error}"))

    def _end_all(self) -> None:
        """End the running tasks and take their outcomes. After a second signal the workers end them alone."""
        self._table.__exit__()
        if self._client.status != "running":
            return
        exit_at_next_signal()
        workers = self._client.nthreads()
        running = self._running if workers else []
        if running:
            self._table.say(f"ending {count(len(running), 'running task')}; an interrupt exits without waiting")
        self._cluster.ask_all(dask_worker.end_tasks, 0)
        for number, sent in self._sent.items():
            if sent.future and sent.future.done():  # an interrupt may have come when this news was attended
                self._inbox.put(("done", number, ""))
        last = time.monotonic()
        while self._sent and time.monotonic() < last + (2 * GRACE if workers and self._running else SECONDS_TO_ANSWER):
            with suppress(Empty, CodeCommitError):  # the disk is full
                what, number, told = self._inbox.get(timeout=TICK)
                try:
                    self._attend(what, number, told)
                finally:
                    last = time.monotonic() if what == "done" else last
        with suppress(CodeCommitError):
            for sent in self._sent.values():
                self._lose(sent)
        self._client.cancel([sent.future for sent in self._sent.values()])
