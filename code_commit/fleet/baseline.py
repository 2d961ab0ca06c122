"""The checks before anything is paid for: keys and prices that this machine knows, and the build as it is.

Each build runs once, and is green, red, or cannot run. OUT/baselines.jsonl has a line for each that ran: it is built
again only where its commit or its build is another.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from code_commit.api import count_missing_keys
from code_commit.commands.results import read_lines
from code_commit.errors import NotSetUpError
from code_commit.files import is_folder
from code_commit.fleet.builds import link_keys
from code_commit.fleet.repositories import find_bases
from code_commit.fleet.results import BASELINES, TaskOutcome, append_line
from code_commit.fleet.tasks import BUILD_ALONE, FleetTask
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.project import AGENT_CONFIG
from code_commit.runs.words import count
from code_commit.settings import ENVIRONMENT_PREFIX, KEYS_VARIABLE, Facet, settings_for
from code_commit.status import Status
from code_commit.terminal import shown

K = TypeVar("K")
T = TypeVar("T")
GREEN, RED, CANNOT_RUN = "green", "red", "cannot run"
BUILD_SETTINGS = settings_for(Facet.BUILD)
_WORDS = {GREEN: "passes", RED: "fails", CANNOT_RUN: CANNOT_RUN, "": "did not end"}
_STATES: dict[str, str] = {Status.SUCCESS: GREEN, Status.BUILD_FAILED: RED, Status.NOT_SET_UP: CANNOT_RUN}


@dataclass(frozen=True, slots=True)
class Baseline:
    """How a build ended on the commit as it is, or why it cannot run."""

    key: str
    state: str
    message: str = ""
    told: str = ""  # by `check --build --json`, of a build that fails


class UnpaidStore:
    """Stands in for a `ResultStore` of builds, which ask no LLM, have no log and cost nothing."""

    def log_of(self, _: FleetTask) -> tuple[bytes, float]:
        return b"", 0.0

    def paid_for(self, _: FleetTask) -> float:
        return 0.0

    def take_up(self, _: Mapping[str, bytes]) -> float:
        return 0.0

    def note(self, *_: object) -> None:
        pass

    begin = lose = count = end = require_room = catch_up = note


class Baselines(UnpaidStore):
    """The baselines of tasks, one for all those that share repository, commit, build and overlay."""

    def __init__(self, out: Path, tasks: Sequence[FleetTask]) -> None:
        self._out = out
        bases = find_bases((task.place, task.commit) for task in tasks)
        self._keys = {task.id: _key_of(task, bases) for task in tasks}
        self._known: dict[str, Baseline] = {}
        with suppress(OSError):
            self._known = {known.key: known for known in read_lines(out / BASELINES, Baseline)}
        wanted = {self._keys[task.id]: task for task in tasks if self.of(task).state in ("", CANNOT_RUN)}
        self.builds = [task.model_copy() for task in wanted.values()]
        for task in self.builds:
            task._solution = BUILD_ALONE  # noqa: SLF001 - no line has it

    def of(self, task: FleetTask) -> Baseline:
        """Return the baseline of a task, one without a state where it is not known."""
        return self._known.get(self._keys.get(task.id, ""), Baseline("", ""))

    def fit(self, tasks: Sequence[FleetTask], *, skip_red: bool) -> list[FleetTask]:
        """Return the tasks that can begin, each with what its build has shown; red ones too, unless `skip_red`."""
        unfit = (CANNOT_RUN, RED) if skip_red else (CANNOT_RUN,)
        for task in tasks:
            known = self.of(task)
            task._baseline = known.state == GREEN, known.told  # noqa: SLF001 - no line has it
        return [task for task in tasks if self.of(task).state not in unfit]

    @property
    def in_words(self) -> str:
        """Return `baseline: build.sh passes in 3 of 4, fails in 1, before any change`, "" where none ran."""
        states = Counter(_WORDS[self.of(task).state] for task in self.builds)
        (first, number), *others = states.most_common() or [("", 0)]
        told = [f"{first} in {number} of {len(self.builds)}", *(f"{state} in {number}" for state, number in others)]
        return f"baseline: build.sh {', '.join(told)}, before any change" if number else ""

    def take(self, task: FleetTask, outcome: TaskOutcome) -> bool:
        if state := _STATES.get(outcome.result.status):
            told = outcome.record.decode("utf-8", "replace") if state == RED else ""
            found = Baseline(self._keys[task.id], state, outcome.result.message, told)
            self._known[found.key] = found
            append_line(self._out / BASELINES, found)
        return True


def _key_of(task: FleetTask, bases: Mapping[tuple[str, str], str]) -> str:
    """Return the hash of all that a build on the commit as it is depends on."""
    commit = bases.get((task.place, task.commit), task.commit)
    settings = {name: value for name, value in sorted(task.settings.items()) if name in BUILD_SETTINGS}
    parts = [task.place, commit, task.build, task.setup, sorted(task.overlay.items()), settings]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@contextmanager
def _linked_keys() -> Iterator[str]:
    """Give a folder of a project that has nothing but links to the keys of this machine."""
    with TemporaryDirectory() as folder:
        config = Path(folder, AGENT_CONFIG)
        config.mkdir(mode=0o700)
        link_keys(config)
        yield folder


def ask_of_each(
    runs: Iterable[tuple[K, Mapping[str, Any]]], question: Callable[..., T], *, is_elsewhere: bool
) -> Iterator[tuple[K, T]]:
    """Yield each run's key and the answer to a question about its settings, which is asked once about equal ones."""
    known: dict[str, T] = {}
    with _linked_keys() as folder:
        for key, settings in runs:
            text = json.dumps(settings, sort_keys=True)
            if text not in known:
                known[text] = question(folder, settings, is_elsewhere=is_elsewhere)
            yield key, known[text]


def require_keys(tasks: Sequence[FleetTask]) -> None:
    """Raise NotSetUpError, once for all tasks, where they name models on this machine that it has no key for."""
    with _linked_keys() as folder:
        lacking = count_missing_keys(folder, [task.settings for task in tasks])
    place = os.environ.get(KEYS_VARIABLE, "")
    if lacking and place and not is_folder(place):
        raise NotSetUpError(f"{KEYS_VARIABLE} names {shown(place)}, which is not a folder: name the one with your keys")
    told = [
        f"no key for {provider or 'any provider'} ({count(number, 'task')}): set "
        f"{KEY_VARIABLES.get(provider) or ' or '.join(KEY_VARIABLES.values())}, or "
        + (f"write it into {shown(place)}/" if place else f"{KEYS_VARIABLE} to a folder with ")
        + f"{provider or 'PROVIDER'}-key.txt"
        for provider, number in lacking.items()
    ]
    if told:
        raise NotSetUpError("\n".join(told))


def ways_left_out(tasks: Sequence[FleetTask], own: Mapping[str, Any]) -> str:
    """Return which of the user's own settings of the way to an address reach no task that lacks them, "" for none."""
    given = {"key_command"} if os.environ.get(f"{ENVIRONMENT_PREFIX}KEY_COMMAND") else set()
    names = [name for name in settings_for(Facet.REACH) if own.get(name) and name not in given]
    lacking = [name for name in names if any(name not in task.settings for task in tasks)]
    if not lacking:
        return ""
    way = "put headers as text into a task's settings, and CODE_COMMIT_KEY_COMMAND into a worker's environment"
    return f"the tasks of a fleet do not use {' and '.join(lacking)} from your own settings: {way}"
