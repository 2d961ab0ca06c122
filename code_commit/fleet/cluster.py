"""The Dask cluster that a fleet runs on: one with a scheduler's address, or one of processes on this machine."""

import asyncio
import logging
import os
import signal
import stat
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future as Answer
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import dask
from distributed import Client, Future, LocalCluster

from code_commit.commands.results import Result
from code_commit.errors import ClusterError, NoKeyError, NotSetUpError
from code_commit.fleet import FleetOptions
from code_commit.fleet.builds import TICK, Source
from code_commit.fleet.tasks import FleetTask
from code_commit.git import ask_git
from code_commit.interrupts import ENDING_SIGNALS, signals_blocked
from code_commit.runs.words import count, duration
from code_commit.status import Status
from code_commit.terminal import shown
from code_commit.version import __version__

SCHEDULER_LOST = "the scheduler is lost: finished tasks are kept; rerun the same command to continue with the rest"
_FEWEST_SENT = 64  # tasks that are on their way at a time to a cluster, however small: it may grow
SECONDS_TO_ANSWER, _SECONDS_WITHOUT = 5, 120
_MOST_FAULTS = 2  # tasks that may fail for a worker's own reasons


class SchedulerLostError(ClusterError):
    """The scheduler ended, or cannot be reached any more."""


@dataclass(slots=True)
class Cluster:
    """A Dask cluster and its workers, as this connection for a fleet knows them.

    It is given `at_once` tasks at a time, and may have no worker for `wait` seconds. One that exists gets the
    repositories of this machine as bundles, since its workers do not see them. `holders` are by place of a repository
    the workers that have a copy, since they began a task of it.
    """

    client: Any
    fleet: str
    at_once: int
    is_local: bool
    wait: float
    say: Callable[[str], object]
    last_seen: float = field(default_factory=time.monotonic)
    told: int = 0
    bundles: "dict[str, Future[Source]]" = field(default_factory=dict)
    holders: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _faults: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By worker: the reasons of its faults."""

    def has_worker(self) -> bool:
        """Tell whether there is a worker, and the user every two minutes that none is. Raises ClusterError."""
        lack = time.monotonic() - self.last_seen
        try:
            workers = self.client.nthreads()
        except OSError as error:
            raise SchedulerLostError(SCHEDULER_LOST) from error
        if workers:
            self.last_seen, self.told = time.monotonic(), 0
            return True
        if lack >= self.wait:
            raise ClusterError(
                f"no worker for {duration(lack)} (--wait): start some; rerun the same command to continue"
            )
        if lack // _SECONDS_WITHOUT > self.told:
            self.told += 1
            self.say(f"no worker for {duration(lack)}: waiting for one")
        return False

    def ask(self, worker: str, question: Callable[..., Any], *words: str) -> "Answer[Any]":
        """Call a function in a worker with the fleet and these words; one that is frozen never answers."""

        async def call() -> Any:
            return (await self.client.run(question, self.fleet, *words, workers=[worker]))[worker]

        return asyncio.run_coroutine_threadsafe(call(), self.client.loop.asyncio_loop)

    def ask_all(self, question: Callable[..., Any], seconds: float = SECONDS_TO_ANSWER) -> Any:
        """Call a function in all workers; return the answers that came within `seconds`, and the pending ones."""
        workers: Iterable[str] = ()
        with suppress(OSError, TimeoutError):
            workers = self.client.nthreads()
        return wait([self.ask(worker, question) for worker in workers], seconds)

    def fit_workers(self, unfit: Collection[str]) -> list[str] | None:
        """Return the workers that can take a task, None for all. Raises ClusterError if none is left."""
        bad = {worker for worker, faults in self._faults.items() if len(faults) >= _MOST_FAULTS}
        if not bad and not unfit:
            return None
        good = [worker for worker in self.client.nthreads() if worker not in bad]
        if not good:
            reasons = "; ".join(sorted({faults[-1] for faults in self._faults.values() if faults}))
            raise ClusterError(f"no usable worker is left: {reasons}; fix that and rerun the same command to continue")
        return [worker for worker in good if worker not in unfit] or good

    def blame(self, result: Result, unfit: dict[str, str]) -> bool:
        """Record the faults of workers that a result reveals; return whether its task needs another worker.

        `unfit` are those that could not begin the task, each with the reason. A clone that fails, or a key that is
        missing, is the worker's fault if another worker has it.
        """
        reason, faults = unfit_reason(result), dict[str, str]()
        if result.status == Status.MACHINE_FAILED and result.error != "patch":
            faults = {result.worker: result.message}
        elif not reason and result.status != Status.NOT_SET_UP:  # it could begin
            faults = {worker: why for worker, why in unfit.items() if worker != result.worker}
        for worker, why in faults.items():
            self._faults[worker].append(why)
            if len(self._faults[worker]) == _MOST_FAULTS:
                self.say(f"the worker {worker} gets no more tasks because {_MOST_FAULTS} failed there: {why}")
        if result.worker in faults or reason:
            unfit[result.worker] = reason or result.message
            return any(worker not in unfit for worker in self.client.nthreads())
        unfit.clear()
        return False

    def source_of(self, task: FleetTask) -> "Source | Future[Source]":
        """Return the source of the task's repository; a bundle is sent once to each worker that needs it."""
        if task.path is None or self.is_local:
            return Source(task.place)
        if task.place not in self.bundles:
            try:
                bundle = ask_git(["bundle", "create", "-q", "-", "--all", "HEAD"], task.path)
            except OSError as error:  # the folder is gone
                return Source(task.place, problem=f"{shown(task.place)}: {error.strerror}")
            if bundle.returncode != 0:  # as of an empty repository
                complaint = shown(" ".join(bundle.stderr.decode("utf-8", "replace").split()))
                return Source(task.place, problem=f"git bundle of {task.repository}: {complaint}")
            source = Source(task.place, bundle.stdout)
            while not self.has_worker():  # or scattering would fail
                time.sleep(TICK)
            (self.bundles[task.place],) = self.client.scatter([source], hash=False)
        return self.bundles[task.place]


def unfit_reason(result: Result) -> str:
    """Return why the worker of a result could not begin its task, where another one may; "" where it is not known."""
    if result.error == "clone":
        return f"{result.repository} could not be cloned"
    return result.message if result.status == Status.NOT_SET_UP and result.error == NoKeyError.kind else ""


@contextmanager
def connect(options: FleetOptions, fleet: str, say: Callable[[str], object], *, again: bool) -> Iterator[Cluster]:
    """Give the options' cluster once it has a worker; `again`: a lost one. Raises NotSetUpError and ClusterError."""
    logging.disable()  # what it means for the fleet is told here
    wait = options.wait or float("inf")
    if options.scheduler is None:
        most = options.at_once or 2 * (os.cpu_count() or 1)
        with _local_cluster(most) as local, Client(local) as client:
            yield Cluster(client, fleet, most, is_local=True, wait=wait, say=say)
        return
    with _client(options, time.monotonic() + (options.wait or _SECONDS_WITHOUT) if again else 0.0) as client:
        cluster = Cluster(client, fleet, options.at_once or _FEWEST_SENT, is_local=False, wait=wait, say=say)
        if not cluster.has_worker():
            say(f"waiting for a worker at {options.scheduler}")
        while not cluster.has_worker():
            time.sleep(TICK)
        _require_version(cluster)
        cluster.at_once = options.at_once or max(_FEWEST_SENT, 2 * sum(client.nthreads().values()))
        yield cluster


def _client(options: FleetOptions, end: float) -> Client:
    """Return a client of the options' scheduler, which may come back until the time `end`."""
    while True:
        try:
            return Client(options.scheduler, timeout=min(30, options.wait or 30))
        except (OSError, ValueError, TypeError) as error:  # the last for tls:// without certificates
            if time.monotonic() < end:
                time.sleep(1)
            elif end:
                raise ClusterError(SCHEDULER_LOST) from error
            else:
                raise NotSetUpError(f"cannot connect to the scheduler at {options.scheduler}: {error}") from error


def _require_version(cluster: Cluster) -> None:
    """Raise NotSetUpError, with their addresses, where workers that answer soon have another version than this one."""
    answers = {worker: cluster.ask(worker, worker_version) for worker in cluster.client.nthreads()}
    wait(answers.values(), SECONDS_TO_ANSWER)
    told = {worker: answer.exception() or answer.result() for worker, answer in answers.items() if answer.done()}
    if others := [f"{worker}: {version}" for worker, version in told.items() if version != __version__]:
        what = f"{len(others)} of {count(len(told), 'worker')} lack code-commit {__version__}: install it there"
        raise NotSetUpError("\n".join([what, *others]))


def _local_cluster(at_once: int) -> LocalCluster:
    """Start a cluster for so many tasks at a time; nobody else on this machine has the certificate to talk to it."""
    processes = min(os.cpu_count() or 1, at_once)
    sys.warnoptions.append("ignore::UserWarning:multiprocessing.resource_tracker")  # it warns after a second interrupt
    dask.config.set(
        {
            "temporary-directory": str(own_folder()),
            "distributed.nanny.pre-spawn-environ": {},  # OMP_NUM_THREADS=1 is for Dask's own work, not for builds
            "distributed.scheduler.http.routes": [],  # no page is served: they have no password
            "distributed.worker.http.routes": [],
            "distributed.worker.profile.enabled": False,  # it, the ticks and the monitor take a tenth of a core
            "distributed.admin.tick.interval": "1s",
            "distributed.admin.system-monitor.interval": "10s",
        }
    )
    resource_tracker.ensure_running()  # as it starts it unblocks signals
    with signals_blocked():  # also in what is started here, until `dask_setup`
        return LocalCluster(
            n_workers=processes,
            threads_per_worker=-(-at_once // processes),
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            security=True,
            preload=__name__,
        )


def own_folder() -> Path:
    """Return the folder below which Dask makes those of workers, and removes those of dead ones. Raises NotSetUpError.

    If another user had made it, they could replace a clone with their own files.
    """
    folder = Path(gettempdir(), f"code-commit-fleet-{os.geteuid()}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    state = folder.lstat()
    if (state.st_mode, state.st_uid) != (stat.S_IFDIR | 0o700, os.geteuid()):
        why = "must be your own folder with mode 700: remove it, or name another place with TMPDIR"
        raise NotSetUpError(f"{folder} {why}")
    return folder


def dask_setup(worker: Any) -> None:
    """Take a worker on this machine out of the terminal's process group: an interrupt is its client's.

    Signals were blocked until now, and an interrupt that waits is dropped. Nor does it import from the folder that its
    builds may write to.
    """
    os.setpgid(0, 0)
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
    signal.signal(signal.SIGINT, former)
    sys.path[:] = [path for path in sys.path if path != worker.local_directory]


def worker_version(_: str) -> str:
    return __version__
