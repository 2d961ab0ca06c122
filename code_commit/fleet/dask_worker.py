"""A Dask worker's part of a fleet: it does the tasks that a client sends, and keeps their logs for it."""

import os
import shutil
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from distributed import get_worker
from distributed.core import Status
from distributed.utils import sync

from code_commit.errors import LogError
from code_commit.files import read_regular_file
from code_commit.fleet.builds import Source, WorkerError, copy_path
from code_commit.fleet.results import TaskOutcome, packed, write_own
from code_commit.fleet.tasks import FleetTask
from code_commit.fleet.unfinished import STARTS, cost_in_log, latest_log, log_path, starts_file
from code_commit.fleet.worker import TASK_PREFIX, TaskSupervision, left_log, run_task
from code_commit.status import Status as TaskStatus
from code_commit.version import __version__


def on_worker(  # noqa: PLR0913, PLR0917 - Dask hands them over one by one
    task: FleetTask, source: Source, max_cost: float | None, log: bytes, fleet: str, number: int, version: str
) -> TaskOutcome | None:
    """Do the task in a Dask worker of this version; None if a lost worker had started it."""
    worker, event = get_worker(), f"{fleet}-{number}"
    if version != __version__:
        message = f"the worker has code-commit {__version__}, the client {version}: install the same version on both"
        return TaskOutcome(task.ended(TaskStatus.MACHINE_FAILED, message, worker=worker.address))
    if fleet in _drained:
        return TaskOutcome(task.ended(TaskStatus.INTERRUPTED))
    if sync(worker.loop, worker.scheduler.event_is_set, name=event):
        return None
    sync(worker.loop, worker.scheduler.event_set, name=event)
    key, kept = worker.get_current_task(), log_path(_kept_logs(Path(worker.local_directory).parent, fleet), task)

    def is_wanted() -> bool:
        state = worker.state.tasks.get(key)
        is_executing = state is not None and state.state == "executing" and worker.status in _WORKING
        return is_executing and fleet not in _ended

    def tell(what: str) -> None:
        worker.log_event(fleet, [what, number, worker.address])

    def keep(log: bytes) -> None:
        _logs[fleet][number] = time.monotonic(), log
        _keep(kept, log)
        tell("logged")

    tell("begun")
    try:
        hidden: list[str | Path] = [*_tls_keys(worker), task.list_file]
        log = latest_log(log, kept, fleet)
        start = f"{event} {cost_in_log(log)!r}"
        is_drained = partial(_drained.__contains__, fleet)
        supervision = TaskSupervision(is_wanted, keep, hidden, start, is_drained)
        outcome = run_task(task, source, Path(worker.local_directory, fleet), max_cost, supervision, log)
        if outcome.log or not kept.exists():
            _keep(kept, outcome.log or packed({}, {STARTS: starts_file(kept, event, is_over=True)}))
    except Exception as error:  # noqa: BLE001 - a full disk of the worker, or a bug, is this task's end alone
        outcome = TaskOutcome(task.ended(TaskStatus.MACHINE_FAILED, _words_for(error)))
    finally:
        _logs[fleet].pop(number, None)
    return outcome._replace(result=replace(outcome.result, worker=worker.address, start=event))


_logs: defaultdict[str, dict[int, tuple[float, bytes]]] = defaultdict(dict)
"""By fleet and task: what a worker's tasks have logged since the client asked, and when."""
_ended: set[str] = set()  # the fleets that do not go on
_drained: set[str] = set()  # the fleets whose tasks make no more calls, and none of whose tasks begins


def collect_logs(fleet: str) -> dict[int, tuple[float, bytes]]:
    logs = _logs[fleet]
    return {number: log for number in list(logs) if (log := logs.pop(number, None))}  # a task may end meanwhile


def end_tasks(fleet: str) -> None:
    """End a worker's tasks of the fleet; they return as they are."""
    _ended.add(fleet)


def drain_tasks(fleet: str) -> None:
    """Let a worker's tasks of the fleet return before their next call to an LLM."""
    _drained.add(fleet)


def _words_for(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) if isinstance(error, WorkerError) else f"{type(error).__name__}: {error}"


_WORKING = {Status.running, Status.paused, Status.closing_gracefully}


def _tls_keys(worker: Any) -> list[str]:
    """Return the files with the keys by which a worker shows that it is of the cluster."""
    keys = (getattr(worker.security, f"tls_{role}_key", None) for role in ("client", "scheduler", "worker"))
    return sorted({key for key in keys if key and os.path.isfile(key)})  # noqa: PTH113 - a key itself is no file's name


def _kept_logs(workers: Path, fleet: str) -> Path:
    """Return the folder, among those of workers, with the logs of a fleet: it outlives the workers and the client."""
    return workers / f"{fleet.rpartition('-')[0]}-logs"


def _keep(file: Path, log: bytes) -> None:
    with suppress(OSError, LogError):  # the client has it soon
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_own(file, log)


def rescue_logs(workers: Path, fleet: str) -> None:
    """Keep the logs that workers of an earlier start of the fleet had not kept yet when they were killed.

    `workers` is the folder of their folders: no worker may have started there since, for Dask removes what is left.
    """
    for folder in workers.glob(f"*/{fleet.rpartition('-')[0]}-*/{TASK_PREFIX}*"):
        with suppress(OSError, ValueError):
            name, log = left_log(folder)
            kept = _kept_logs(workers, fleet) / name
            _keep(kept, latest_log(log, kept))


def drop_copy(fleet: str, url: str, dask_worker: Any) -> None:
    """Remove a worker's copy of a repository that the fleet has no more tasks of."""
    copy = copy_path(Path(dask_worker.local_directory, fleet), url)
    Thread(target=shutil.rmtree, args=[copy, True], daemon=True).start()


def drop_copies(fleet: str, dask_worker: Any) -> None:
    shutil.rmtree(Path(dask_worker.local_directory, fleet), ignore_errors=True)


def kept_logs(fleet: str, dask_worker: Any) -> dict[str, bytes]:
    """Return the packed logs of the fleet's tasks that are kept on a worker's machine, by the names of their files."""
    logs = {}
    for file in _kept_logs(Path(dask_worker.local_directory).parent, fleet).glob(".*.log"):
        with suppress(OSError):
            logs[file.name] = read_regular_file(file, follow_link=False)
    return logs


def drop_logs(fleet: str, dask_worker: Any) -> None:
    """Remove the logs that are kept on a worker's machine: the client has them."""
    shutil.rmtree(_kept_logs(Path(dask_worker.local_directory).parent, fleet), ignore_errors=True)
