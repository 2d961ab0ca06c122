"""The baseline: each build runs once before anything is paid for, and is green, red, or cannot run.

OUT/baselines.jsonl has a line for each that ran: it is built again only where its commit or its build is another.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from code_commit.commands.results import read_lines
from code_commit.fleet.repositories import find_bases
from code_commit.fleet.results import BASELINES, TaskOutcome, append_line
from code_commit.fleet.tasks import BUILD_ALONE, FleetTask
from code_commit.settings import Facet, settings_for
from code_commit.status import Status

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
