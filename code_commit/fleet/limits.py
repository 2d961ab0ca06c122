"""What a fleet may spend, and how many tasks ask one provider at a time."""

import json
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from code_commit.errors import LogError
from code_commit.fleet.results import SPENDING, Result
from code_commit.summary import count

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

    def take(self, name: str, own_limit: float | None, idle: int) -> float | None:
        """Return what a task may cost in US dollars, infinite without a limit; None where it must wait for others.

        `idle` is how many tasks could begin now.
        """
        if self._limit is None:
            return float("inf")
        free = self._free()
        if not free and not self._parts:
            self._refused = _MOST_REFUSED
        wanted = own_limit or max(free / idle, self._least)
        if not free or (free < wanted and self._parts):
            return None
        self._parts[name] = min(free, wanted)
        self._write(name, self._parts[name])
        return self._parts[name]

    def settle(self, name: str, result: Result | None) -> bool:
        """Take back what a task did not spend; all of its part is spent where nobody knows, and of one that was lost.

        Return whether the part was too little for its first call: then it can begin again, with more.
        """
        part = self._parts.pop(name, 0.0)
        is_known = result is not None and (result.cost_usd is not None or not result.attempts)
        cost = (result.cost_usd or 0.0) if result and is_known else part
        self._spent += cost
        self._write(name, cost)
        if not part or result is None or cost or result.status != "llm_error" or _TOO_LITTLE not in result.message:
            self._refused = 0
            return False
        if self._parts or part < self._free():
            self._least = 2 * part
        else:
            self._least, self._refused = 0.0, self._refused + 1
        return True

    def _free(self) -> float:
        return max(0.0, (self._limit or 0.0) - self._spent - sum(self._parts.values()))

    def _read(self) -> dict[str, float]:
        costs: dict[str, float] = {}
        for line in self._file.read_bytes().split(b"\n") if self._file.exists() else ():
            with suppress(ValueError):  # a line that was not written to its end
                costs.update(json.loads(line))
        return costs

    def _write(self, name: str, cost: float) -> None:
        try:
            with self._file.open("a") as file:
                file.write(f"\n{json.dumps({name: cost})}")
        except OSError as error:
            raise LogError(self._file, error) from error


_TOO_LITTLE = "could pass --max-cost"
"""What a run says that must not make its next call."""


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
    """How many tasks ask a provider at a time: half as many when it answers 429, one more with each that ends."""

    def __init__(self, most: int) -> None:
        self.running = 0
        self._most = self._now = most
        self._halved = float("-inf")

    @property
    def is_full(self) -> bool:
        return self.running >= self._now

    def slow_down(self) -> None:
        if time.monotonic() > self._halved + _SECONDS_TO_TAKE_EFFECT:
            self._halved = time.monotonic()
            self._now = max(1, min(self._now, self.running) // 2)

    def ended(self) -> None:
        self.running -= 1
        self._now = min(self._most, self._now + 1)


_SECONDS_TO_TAKE_EFFECT = 10.0
