"""What a fleet may spend, and how many tasks ask one provider at a time."""

import json
import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from code_commit.errors import LogError
from code_commit.files import open_regular
from code_commit.fleet.results import SPENDING, Result, open_own
from code_commit.runs.words import count

_MOST_REFUSED = 3
"""Tasks that the whole rest of the money was too little for; then no other begins."""


class Budget:
    """Keeps a fleet below its `--max-cost`: each task has its part, and what it did not spend comes back.

    OUT/spending.jsonl has the part of a task before it begins, later its cost. So what a fleet gave out that was
    killed counts as spent. Raises LogError.
    """

    def __init__(self, out: Path, limit: float | None) -> None:
        self._file = out / SPENDING
        self._limit = limit
        self._parts: dict[str, float] = {}
        self._spent = sum(self._read().values())
        self._least = 0.0
        self._refused = 0

    @property
    def complaint(self) -> str:
        """Say that what is left is too little for more tasks, "" while it is not."""
        if self._refused < _MOST_REFUSED:
            return ""
        return f"--max-cost {self._limit:g} is too little for all: ${self._spent:.4f} are spent; with more it goes on"

    def take(self, name: str, own_limit: float | None, need: float, idle: int) -> float | None:
        """Return what a task may cost in US dollars, infinite without a limit; None where it must wait for others.

        `need` is what its first call needs, as far as that is known; `idle` is how many tasks could begin now.
        """
        if self._limit is None:
            return float("inf")
        free = self._free()
        if not free and not self._parts:
            self._refused = _MOST_REFUSED
        wanted = own_limit or max(free / idle, need or self._least)
        if not free or (free < wanted and self._parts):
            return None
        self._parts[name] = min(free, wanted)
        self._write(name, self._parts[name])
        return self._parts[name]

    def settle(self, name: str, result: Result | None, own_limit: float | None = None) -> float:
        """Take back what a task did not spend; all of its part is spent where nobody knows, and of one that was lost.

        Return what its first call needs where its part was too little for that: it can begin again. Else 0.
        """
        part = self._parts.pop(name, 0.0)
        cost = part if result is None or result.cost_usd is None else result.cost_usd
        self._spent += cost
        self._write(name, cost)
        is_whole = part in (0, own_limit)
        need = 0.0 if cost or is_whole or result is None else result.needed_usd
        if not need:
            self._refused = 0
        elif self._parts or part < self._free():
            self._least = min(self._least or need, need)
        else:
            self._refused += 1
        return need

    def _free(self) -> float:
        return max(0.0, round((self._limit or 0.0) - self._spent - sum(self._parts.values()), 6))

    def _read(self) -> dict[str, float]:
        costs: dict[str, float] = {}
        try:
            with open_regular(self._file) as file:
                lines = file.readall().split(b"\n")
        except FileNotFoundError:
            return costs
        except OSError as error:
            raise LogError(self._file, error) from error
        for line in lines:
            with suppress(ValueError, TypeError):  # a line that was not written to its end
                costs.update(json.loads(line))
        return costs

    def _write(self, name: str, cost: float) -> None:
        try:
            with open(open_own(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a") as file:  # noqa: PTH123
                file.write(f"\n{json.dumps({name: cost})}")
        except OSError as error:
            raise LogError(self._file, error) from error


class Failures:
    """Ends a fleet that only fails: after `most` failures, where that is None after the first 20 without a success."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._green = 0
        self._reasons: Counter[str] = Counter()

    def allow_more_after(self, result: Result) -> bool:
        self._green += result.is_green
        self._reasons.update([] if result.is_green else [f"{result.word}: {result.reason}"])
        return not self.complaint

    @property
    def complaint(self) -> str:
        """Say that it ended for that, with the commonest reasons; "" when it did not."""
        failed = self._reasons.total()
        if failed < (self._most or _FIRST_FAILURES) or (self._most is None and self._green):
            return ""
        reasons = (f"{number:,} times {reason}" for reason, number in self._reasons.most_common(_REASONS_SHOWN))
        return "\n".join([f"{count(failed, 'task')} failed, no other is begun (see --max-failures):", *reasons])


_FIRST_FAILURES = 20
_REASONS_SHOWN = 3


class Pace:
    """How many tasks ask a provider at a time: half as many when it answers 429, then slowly more with those that end.

    So TCP finds out what a line carries.
    """

    def __init__(self, most: int) -> None:
        self.running = 0
        self._most = self._allowed = float(most)
        self._halved = float("-inf")

    @property
    def is_full(self) -> bool:
        return self.running >= int(self._allowed)

    def slow_down(self) -> None:
        if time.monotonic() > self._halved + _SECONDS_TO_TAKE_EFFECT:
            self._halved = time.monotonic()
            self._allowed = max(1.0, min(self._allowed, self.running) / 2)

    def ended(self) -> None:
        self.running -= 1
        self._allowed = min(self._most, self._allowed + 1 / self._allowed)


_SECONDS_TO_TAKE_EFFECT = 10.0
