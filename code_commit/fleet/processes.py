"""The programs of a task, each in a session of its own: they end with the task, and with the worker.

`setpriv --pdeathsig` ends them with the thread that started them, on Linux.
"""

import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from code_commit.api import find_addresses
from code_commit.errors import NO_ROOM, NotSetUpError
from code_commit.fleet.tasks import FleetTask
from code_commit.git import git_environment, require_git
from code_commit.project import USER_VARIABLE
from code_commit.settings import ENVIRONMENT_PREFIX, KEYS_VARIABLE
from code_commit.terminal import shown
from code_commit.trust import with_parent_death_signal

TICK = 0.2  # seconds between two looks at what no process tells
GRACE = 15.0  # seconds between SIGTERM and SIGKILL: a run takes five to end its build


class TaskSupervision(NamedTuple):
    """Callbacks to the sender of a task: `is_wanted` tells whether to continue, `logged` gets the log as it grows.

    `is_drained` tells whether to end before the next call to an LLM. `hidden` are files that a sandbox hides from
    builds, if they exist here. `start` is the line for this start in its log, as `starts_file` takes it.
    """

    is_wanted: Callable[[], bool] = lambda: True
    logged: Callable[[bytes], object] = lambda _: None
    hidden: Sequence[str | Path] = ()
    start: str = ""
    is_drained: Callable[[], bool] = lambda: False


class WorkerError(Exception):
    """The worker failed, not the task."""


class GitError(NotSetUpError):
    """Git could not make the clone: the fault is the repository's or the worker's."""


class EndedError(Exception):
    """The task is not wanted any more, or timed out; all its processes have ended."""


def tells_of_no_room(complaint: str) -> bool:
    """Return whether git failed to write to the disk: it does not always say why."""
    return any(words in complaint for words in ("unable to write", "write error", *map(os.strerror, NO_ROOM)))


class TaskProcesses:
    """Runs programs for a task while it is wanted and has time; `look` is called all the while."""

    def __init__(self, task: FleetTask, is_wanted: Callable[[], bool], look: Callable[[], object]) -> None:
        self._task, self._is_wanted, self._look = task, is_wanted, look
        self.is_late = self.is_unwanted = False
        self.set_timeout(task.timeout)

    def set_timeout(self, seconds: float | None) -> None:
        """Restart the time limit; None is no limit."""
        self._deadline = time.monotonic() + (seconds or math.inf)

    def check(self) -> None:
        """Raise EndedError if the task is not wanted any more, or its time is over."""
        self.is_unwanted = not self._is_wanted()
        self.is_late = not self.is_unwanted and time.monotonic() > self._deadline
        if self.is_unwanted or self.is_late:
            raise EndedError
        self._look()

    def git(self, folder: Path, *arguments: str) -> str:
        """Run git and return what it prints. Raises NotSetUpError with its complaint."""
        words = [require_git(folder), "-c", "core.fsmonitor=false", *arguments]
        done = self._run(words, folder, git_environment(folder))
        if done.returncode != 0:
            complaint = shown(" ".join(done.stderr.decode("utf-8", "replace").split())[:1000])
            kind = WorkerError if tells_of_no_room(complaint) else GitError
            raise kind(f"git {arguments[0]} of {self._task.repository}: {complaint}")
        return done.stdout.decode("utf-8", "replace").strip()

    def command(self, words: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
        """Run a command of ours without its user's settings, but with the addresses that the task's keys may go to."""
        settings = self._task.settings
        named = {KEYS_VARIABLE, *(ENVIRONMENT_PREFIX + name.upper() for name in settings)}
        environment = {name: value for name, value in os.environ.items() if name not in named}
        addresses = {ENVIRONMENT_PREFIX + name.upper(): url for name, url in find_addresses(settings).items()}
        return self._run(words, folder, environment | addresses | {USER_VARIABLE: "off"})

    def _run(
        self, words: list[str], folder: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end. Raises EndedError after ending the program and its session."""
        words = with_parent_death_signal(words, folder)
        null, pipe = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(
            words, cwd=folder, env=environment, stdin=null, stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:
            while True:
                try:
                    self.check()
                    output, complaint = process.communicate(timeout=TICK)
                    return subprocess.CompletedProcess(words, process.returncode, output, complaint)
                except subprocess.TimeoutExpired:
                    continue
                except BaseException:
                    _end(process)
                    raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and its session, with force when it takes too long."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.communicate(timeout=GRACE)
