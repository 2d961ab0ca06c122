"""The Dask cluster that a fleet runs on: one with a scheduler's address, or one of processes on this machine."""

import asyncio
import logging
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future as Answer
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import dask
from distributed import Client, LocalCluster

from code_commit.errors import ClusterError, NotSetUpError
from code_commit.fleet import FleetOptions
from code_commit.fleet.processes import TICK
from code_commit.interrupts import ENDING_SIGNALS, signals_blocked
from code_commit.runs.words import count, duration
from code_commit.version import __version__

SCHEDULER_LOST = "the scheduler is lost: finished tasks are kept; rerun the same command to continue with the rest"
_FEWEST_SENT = 64  # tasks that are on their way at a time to a cluster, however small: it may grow
_SECONDS_TO_ANSWER, _SECONDS_WITHOUT = 5, 120


class SchedulerLostError(ClusterError):
    """The scheduler ended, or cannot be reached any more."""


@dataclass(slots=True)
class Cluster:
    """A Dask cluster, how many tasks it is given at a time, and for how many seconds it may have no worker."""

    client: Any
    at_once: int
    is_local: bool
    wait: float
    say: Callable[[str], object]
    last_seen: float = field(default_factory=time.monotonic)
    told: int = 0

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
                f"no worker for {duration(lack)} (--wait): start some, then rerun the same command to continue"
            )
        if lack // _SECONDS_WITHOUT > self.told:
            self.told += 1
            self.say(f"no worker for {duration(lack)}: waiting for one")
        return False


@contextmanager
def connect(options: FleetOptions, say: Callable[[str], object], *, again: bool = False) -> Iterator[Cluster]:
    """Give the cluster with the options' scheduler, as soon as it has a worker, or else one of this machine.

    Raises NotSetUpError and ClusterError. A scheduler that was lost is waited for: `again`.
    """
    logging.disable()  # what it means for the fleet is told here
    wait = options.wait or float("inf")
    if options.scheduler is None:
        most = options.at_once or 2 * (os.cpu_count() or 1)
        with _local_cluster(most) as local, Client(local) as client:
            yield Cluster(client, most, is_local=True, wait=wait, say=say)
        return
    with _client(options, time.monotonic() + (options.wait or _SECONDS_WITHOUT) if again else 0.0) as client:
        cluster = Cluster(client, options.at_once or _FEWEST_SENT, is_local=False, wait=wait, say=say)
        if not cluster.has_worker():
            say(f"waiting for a worker at {options.scheduler}")
        while not cluster.has_worker():
            time.sleep(TICK)
        _require_version(client)
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
                raise NotSetUpError(f"there is no scheduler at {options.scheduler}: {error}") from error


def _require_version(client: Any) -> None:
    """Raise NotSetUpError, with their addresses, where workers that answer soon have another version than this one."""
    answers = {worker: ask_worker(client, worker, worker_version) for worker in client.nthreads()}
    wait(answers.values(), _SECONDS_TO_ANSWER)
    told = {worker: answer.exception() or answer.result() for worker, answer in answers.items() if answer.done()}
    if others := [f"{worker}: {version}" for worker, version in told.items() if version != __version__]:
        what = f"{len(others)} of {count(len(told), 'worker')} lack code-commit {__version__}: install it there"
        raise NotSetUpError("\n".join([what, *others]))


def ask_worker(client: Any, worker: str, question: Callable[..., Any], *words: str) -> "Answer[Any]":
    """Call a function in a worker; one that is frozen never answers."""

    async def call() -> Any:
        return (await client.run(question, *words, workers=[worker]))[worker]

    return asyncio.run_coroutine_threadsafe(call(), client.loop.asyncio_loop)


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
        why = "must be a folder of yours with mode 700: remove it, or name another place with TMPDIR"
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


def worker_version() -> str:
    return __version__
