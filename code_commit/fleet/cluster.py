"""The cluster: tasks go out to Dask's workers, and what comes of them comes back.

Where a task runs, and which worker was lost, Dask knows. Whether a task runs again that a worker was lost with is
decided here, since it costs again: where Dask starts it a second time it returns at once.
"""

import logging
import os
import shutil
import signal
import stat
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import gettempdir
from typing import Any, NamedTuple

import dask
from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, get_worker
from distributed.core import Status
from distributed.utils import sync

from code_commit.errors import ClusterError, NotSetUpError
from code_commit.fleet.limits import Budget, Pace
from code_commit.fleet.table import FleetTable
from code_commit.fleet.tasks import FleetTask
from code_commit.fleet.worker import (
    GRACE,
    TICK,
    Outcome,
    Source,
    Supervision,
    UnwantedError,
    machine_failed,
    run_task,
)
from code_commit.git import ask_git
from code_commit.runs.words import count
from code_commit.terminal import shown
from code_commit.version import __version__

_MOST_LOST = 3  # workers that may be lost with a task
_FEWEST_SENT = 64  # tasks that are on their way at a time to a cluster, however small: it may grow
_SECONDS_FOR_A_RESULT = 120


class Cluster(NamedTuple):
    """A Dask cluster, and how many tasks it is given at a time."""

    client: Any
    at_once: int
    is_local: bool


@contextmanager
def connect(scheduler: str | None, at_once: int | None, say: Callable[[str], object]) -> Iterator[Cluster]:
    """Give the cluster with the scheduler at this address, as soon as it has a worker, or else one of this machine.

    Raises NotSetUpError.
    """
    logging.disable()  # what it means for the fleet is told here
    if scheduler is None:
        most = at_once or 2 * (os.cpu_count() or 1)
        with _local_cluster(most) as local, Client(local) as client:
            yield Cluster(client, most, is_local=True)
        return
    try:
        remote = Client(scheduler)
    except (OSError, ValueError, TypeError) as error:  # the last for tls:// without certificates
        raise NotSetUpError(f"there is no scheduler at {scheduler}: {error}") from error
    with remote as client:
        if not client.nthreads():
            say(f"waiting for a worker at {scheduler}")
        try:
            version = client.submit(worker_version, pure=False).result()
        except ImportError as error:
            raise NotSetUpError(f"the workers lack code-commit {__version__} ({error}): install it there") from error
        if version != __version__:
            raise NotSetUpError(f"the workers have code-commit {version}, this is {__version__}: make them the same")
        threads = sum(client.nthreads().values())
        yield Cluster(client, at_once or max(_FEWEST_SENT, 2 * threads), is_local=False)


def _local_cluster(at_once: int) -> LocalCluster:
    """Start a cluster for so many tasks at a time; nobody else on this machine has the certificate to talk to it."""
    processes = min(os.cpu_count() or 1, at_once)
    sys.warnoptions.append("ignore::UserWarning:multiprocessing.resource_tracker")  # it warns after a second interrupt
    dask.config.set(
        {
            "temporary-directory": str(_own_folder()),
            "distributed.nanny.pre-spawn-environ": {},  # OMP_NUM_THREADS=1 is for Dask's own work, not for builds
            "distributed.scheduler.http.routes": [],  # no page is served: they have no password
            "distributed.worker.http.routes": [],
        }
    )
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


def _own_folder() -> Path:
    """Return the folder below which Dask makes those of workers, and removes those of dead ones. Raises NotSetUpError.

    Had somebody else made it, he could put his files in the place of a clone.
    """
    folder = Path(gettempdir(), f"code-commit-fleet-{os.geteuid()}")
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    state = folder.lstat()
    if (state.st_mode, state.st_uid) != (stat.S_IFDIR | 0o700, os.geteuid()):
        raise NotSetUpError(f"{folder} is not a folder of yours alone: remove it, or name another place with TMPDIR")
    return folder


def dask_setup(worker: Any) -> None:
    """Take a worker on this machine out of the terminal's process group: an interrupt is its client's.

    Nor does it import from the folder that its builds may write to.
    """
    os.setpgid(0, 0)
    sys.path[:] = [path for path in sys.path if path != worker.local_directory]


def worker_version() -> str:
    return __version__


def on_worker(task: FleetTask, source: Source, max_cost: float | None, fleet: str, number: int) -> Outcome | None:
    """Do the task in a Dask worker; None where a worker was lost that had begun it, and where nobody waits for it."""
    worker, event = get_worker(), _event(fleet, number)
    if sync(worker.loop, worker.scheduler.event_is_set, name=event):
        return None
    sync(worker.loop, worker.scheduler.event_set, name=event)
    key = worker.get_current_task()

    def is_wanted() -> bool:
        state = worker.state.tasks.get(key)
        return state is not None and state.state == "executing" and worker.status in _WORKING

    def tell(what: str) -> None:
        worker.log_event(fleet, [what, number])

    tell("begun")
    try:
        supervision = Supervision(is_wanted, lambda: tell("limited"), _tls_keys(worker))
        return run_task(task, source, _place(worker, fleet), max_cost, supervision)
    except UnwantedError:
        return None
    except Exception as error:  # noqa: BLE001 - a full disk of the worker, or a bug, is this task's end alone
        return Outcome(machine_failed(task, f"{type(error).__name__}: {error}"))
    finally:
        with suppress(Exception):  # the scheduler may be lost
            tell("ended")


_WORKING = {Status.running, Status.paused, Status.closing_gracefully}


def _tls_keys(worker: Any) -> list[str]:
    """Return the files with the keys by which a worker shows that it is of the cluster."""
    keys = (getattr(worker.security, f"tls_{role}_key", None) for role in ("client", "scheduler", "worker"))
    return sorted({key for key in keys if key and os.path.isfile(key)})  # noqa: PTH113 - a key itself is no file's name


def _event(fleet: str, number: int) -> str:
    return f"{fleet}-{number}"


def _place(worker: Any, fleet: str) -> Path:
    return Path(worker.local_directory, fleet)


def clear_up(fleet: str, dask_worker: Any) -> None:
    """Remove a worker's copies of the fleet's repositories."""
    shutil.rmtree(_place(dask_worker, fleet), ignore_errors=True)


@dataclass(slots=True)
class _Sent:
    """A task that waits, or is on its way.

    `lost` counts the workers that were lost with it; `need` is what its first call can cost, where money is scarce.
    """

    task: FleetTask
    lost: int = 0
    need: float = 0.0
    future: "Future[Outcome | None] | None" = None


class Dispatcher:
    """Sends tasks to a cluster, so many at a time, and hands over what comes back.

    `land` takes each outcome and returns whether to go on with what has not begun. The repositories of this machine
    travel as bundles to an existing cluster, whose workers do not see them.
    """

    def __init__(
        self,
        cluster: Cluster,
        budget: Budget,
        table: FleetTable,
        land: Callable[[Outcome], bool],
    ) -> None:
        self._client, self._at_once, self._is_local = cluster
        self._budget = budget
        self._table = table
        self._land = land
        self._fleet = f"code-commit-{os.urandom(6).hex()}"
        self._goes_on = True
        self._waiting: defaultdict[str, deque[_Sent]] = defaultdict(deque)
        """By provider."""
        self._paces: defaultdict[str, Pace] = defaultdict(lambda: Pace(self._at_once))
        self._sent: dict[int, _Sent] = {}
        self._begun: set[int] = set()
        self._last = 0
        self._inbox: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._left: Counter[str] = Counter()
        """How many tasks of each repository are not done."""
        self._bundles: dict[str, Future[Source]] = {}

    def run(self, tasks: Sequence[FleetTask]) -> None:
        """Do the tasks, as far as money and failures let it. However it ends, nothing of it runs on.

        Raises ClusterError where the scheduler is lost, and what `land` raises.
        """
        for task in tasks:
            self._waiting[task.provider].append(_Sent(task))
            self._left[task.repository] += 1
        self._client.subscribe_topic(self._fleet, lambda event: self._inbox.put(tuple(event[1])))
        try:
            self._send_more()
            while self._sent:
                with suppress(Empty):
                    self._attend(*self._inbox.get(timeout=1))
                    self._send_more()
        except BaseException:
            self._end_all()
            raise
        finally:
            if self._client.status == "running":
                self._client.run(clear_up, self._fleet, on_error="ignore")

    def _send_more(self) -> None:
        for provider, waiting in self._waiting.items():
            pace = self._paces[provider]
            while waiting and self._goes_on and not self._budget.complaint and not pace.is_full:
                idle = min(self._at_once - len(self._sent), len(waiting))
                number, limit = self._last + 1, waiting[0].task.settings.get("max_cost")
                part = self._budget.take(_event(self._fleet, number), limit, waiting[0].need, idle) if idle else None
                if part is None:
                    break
                self._last = number
                self._send(number, waiting.popleft(), part)
                pace.running += 1

    def _send(self, number: int, sent: _Sent, part: float) -> None:
        arguments = (sent.task, self._source_of(sent.task), None if part == float("inf") else part)
        sent.future = self._client.submit(
            on_worker, *arguments, self._fleet, number, key=(self._fleet, number), pure=False
        )
        self._sent[number] = sent
        sent.future.add_done_callback(lambda _: self._inbox.put(("done", number)))

    def _source_of(self, task: FleetTask) -> "Source | Future[Source]":
        """Return where a worker finds the repository: a bundle goes to each worker that needs it, once."""
        if task.path is None or self._is_local:
            return Source(str(task.path or task.repository))
        if task.repository not in self._bundles:
            bundle = ask_git(["bundle", "create", "-q", "-", "--all", "HEAD"], task.path)
            if bundle.returncode != 0:
                complaint = shown(bundle.stderr.decode("utf-8", "replace").strip())
                raise NotSetUpError(f"git bundle of {task.repository}: {complaint}")
            source = Source(str(task.path), bundle.stdout)
            while not self._client.nthreads():  # or scattering would fail
                time.sleep(TICK)
            (self._bundles[task.repository],) = self._client.scatter([source], hash=False)
        return self._bundles[task.repository]

    def _attend(self, what: str, number: int) -> None:
        """Take one piece of news of a task."""
        if what == "begun":
            self._begun.add(number)
        elif what == "ended":
            self._begun.discard(number)
        elif what == "limited" and number in self._sent:
            self._paces[self._sent[number].task.provider].slow_down()
        elif what == "done" and number in self._sent:
            self._begun.discard(number)
            self._take(number, self._sent[number])
        self._table.running = len(self._begun)

    def _take(self, number: int, sent: _Sent) -> None:
        """Hand over what came of a task, or let it wait where it has to begin again."""
        outcome = self._outcome_of(sent)
        del self._sent[number]
        task, event = sent.task, _event(self._fleet, number)
        self._client.sync(self._client.scheduler.event_clear, name=event)
        self._paces[task.provider].ended()
        sent.need = self._budget.settle(event, outcome and outcome.result, task.settings.get("max_cost"))
        sent.lost, sent.future = sent.lost + (outcome is None), None
        if sent.need or (outcome is None and sent.lost < _MOST_LOST):
            self._waiting[task.provider].append(sent)
        else:
            self._left[task.repository] -= 1
            lost = f"{_MOST_LOST} workers were lost that worked at it"
            self._goes_on = self._land(outcome or Outcome(machine_failed(task, lost)))
        if outcome is None or not self._left[task.repository]:
            self._bundles.pop(task.repository, None)  # the lost worker may have been the only one that had it

    def _outcome_of(self, sent: _Sent) -> Outcome | None:
        """Return what came of a task, None where its worker was lost. Raises ClusterError."""
        assert sent.future is not None  # noqa: S101 - it was sent
        try:
            return sent.future.result(timeout=_SECONDS_FOR_A_RESULT)
        except (KilledWorker, CancelledError, TimeoutError, OSError) as error:
            if self._client.status != "running":
                message = "the scheduler is lost: what had ended is kept; the same command goes on with the rest"
                raise ClusterError(message) from error
            return None
        except Exception as error:  # noqa: BLE001 - what a worker could not even begin
            return Outcome(machine_failed(sent.task, f"{type(error).__name__}: {error}"))

    def _end_all(self) -> None:
        """End what runs and wait until it has ended; a second signal leaves at once, the workers then end it."""
        self._table.__exit__()
        if self._client.status != "running":
            return
        for ending in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ending, lambda ending, _: os._exit(128 + ending))
        if self._begun:
            self._table.say(f"ending {count(len(self._begun), 'running task')}; a second interrupt leaves at once")
        self._client.cancel([sent.future for sent in self._sent.values()])
        until = time.monotonic() + 2 * GRACE
        while self._begun and time.monotonic() < until:
            with suppress(Empty):
                what, number = self._inbox.get(timeout=TICK)
                self._begun.discard(number if what == "ended" else 0)
