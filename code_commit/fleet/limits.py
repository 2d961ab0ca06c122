"""The limits of a fleet: its budget, its failures, and how many tasks ask one host at a time."""

import time
from collections import Counter
from collections.abc import Iterable

from code_commit.fleet.results import Result
from code_commit.llm.ledger import ROUNDING, Ledger
from code_commit.runs.words import count, dollars

_MOST_REFUSED = 3
"""Tasks that needed more than the rest of the money; after so many no other starts."""
_FIRST = 4
"""Tasks that share the money while no task's cost is known."""
_FIRST_FAILURES, _REASONS_SHOWN = 20, 3
_SECONDS_TO_TAKE_EFFECT = 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0  # seconds
_MOST_PAUSES = 12
"""Pauses for a host that has answered: an hour and ten minutes in all."""


class Budget:
    """Keeps a fleet below its `--max-cost`: each task gets a part of it, and gives back what it did not spend.

    `spent` is the cost of earlier starts, `costs` the cost of each finished task.
    """

    def __init__(self, limit: float | None, spent: float = 0.0, costs: Iterable[float] = ()) -> None:
        self._ledger = Ledger(limit, spent)
        self._parts: dict[int, float] = {}
        self._most = max(costs, default=0.0)
        self._needed = 0.0
        self._refused = 0

    @property
    def is_used_up(self) -> bool:
        """Whether the rest is too little for more tasks."""
        return self._refused >= _MOST_REFUSED

    @property
    def complaint(self) -> str:
        """The message that it is used up, and what the next call costs; "" if it is not."""
        if not self.is_used_up:
            return ""
        needs = f"one more call can cost {dollars(self._needed)}, and " if self._needed else ""
        spent = dollars(self._ledger.spent)
        return (
            f"--max-cost {self._ledger.limit:g} is used up: {needs}{spent} count as spent; raise --max-cost to continue"
        )

    def take(self, number: int, own_limit: float | None, need: float, idle: int) -> float | None:
        """Return what a task may cost in US dollars, infinite without a limit; None where it must wait for others.

        `need` is the cost of its next call, if known; `idle` is how many tasks could start now. Each is budgeted at the
        dearest task so far, with all its attempts.
        """
        free = self._ledger.left
        if free == float("inf"):
            return free
        if free <= ROUNDING and not self._parts:
            self._refused = _MOST_REFUSED
        share = free / (idle if self._most else min(idle, _FIRST))
        wanted = own_limit or max(share, self._most, need or self._needed)
        if free <= ROUNDING or (free < wanted - ROUNDING and self._parts):
            return None
        self._parts[number] = min(free, wanted)
        self._ledger.reserve(self._parts[number], "")
        return self._parts[number]

    def settle(self, number: int, cost: float, needed: float = 0.0, own_limit: float | None = None) -> bool:
        """Record the cost of a task, and release its part; return whether it could continue with a larger part.

        `needed` is the cost of its next call if its part, or its own limit, was too low for that.
        """
        part = self._parts.pop(number, 0.0)
        self._ledger.settle(part, cost)
        if not needed or part in (0.0, own_limit):
            self._refused = 0
            self._most = max(self._most, cost)
            return False
        self._needed = min(self._needed or needed, needed)
        if not self._parts and needed > self._ledger.left + ROUNDING:
            self._refused += 1
        return True


class Failures:
    """Ends a fleet that only fails: after `most` failures; if that is None, when the first 20 tasks fail.

    It also ends when the provider refuses three tasks in a row, for the key or for money.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._green = self._keyless = 0
        self._reasons: Counter[str] = Counter()

    def allow_more_after(self, result: Result) -> bool:
        self._green += result.is_green
        self._keyless = self._keyless + 1 if result.error in ("key", "quota") else 0
        self._reasons.update([] if result.is_green else [f"{result.word}: {result.reason}"])
        return not self.is_over

    @property
    def is_over(self) -> bool:
        """Whether the fleet ends for its failures."""
        has_hope = self._reasons.total() < (self._most or _FIRST_FAILURES) or (self._most is None and self._green)
        return self._keyless >= _MOST_REFUSED or not has_hope

    @property
    def complaint(self) -> str:
        """The message that it ended for its failures, with the commonest reasons; "" if it did not."""
        if not self.is_over:
            return ""
        reasons = (f"{count(number, 'time')} {reason}" for reason, number in self._reasons.most_common(_REASONS_SHOWN))
        return "\n".join(
            [f"{count(self._reasons.total(), 'task')} failed; starting no more tasks (see --max-failures):", *reasons]
        )


class RateLimiter:
    """Limits how many tasks ask a host at a time: half as many after an answer 429, then slowly more as tasks end.

    TCP finds the capacity of a line in this way. A host that fails three tasks in a row for one reason gets one task at
    a time, after longer and longer pauses, until it answers or is given up.
    """

    def __init__(self, most: int) -> None:
        self.running = 0
        self._most = self._allowed = float(most)
        self._halved = self._free_at = float("-inf")
        self._failure, self._alike, self._has_answered = "", 0, False
        self.pause = 0.0
        """The seconds until the next try where the host fails, else 0."""

    @property
    def is_full(self) -> bool:
        return self.running >= int(self._allowed) or time.monotonic() < self._free_at or self.is_given_up

    @property
    def is_given_up(self) -> bool:
        """Whether the host failed too often for another try: sooner where it never answered."""
        return self._alike >= _MOST_REFUSED + (_MOST_PAUSES if self._has_answered else _MOST_REFUSED)

    def slow_down(self) -> None:
        if time.monotonic() > self._halved + _SECONDS_TO_TAKE_EFFECT:
            self._halved = time.monotonic()
            self._allowed = max(1.0, min(self._allowed, self.running) / 2)

    def ended(self, failure: str = "", *, has_answered: bool = True) -> None:
        """Count a task that ended; `failure` is the kind of the host's, "" where it did not fail."""
        self.running -= 1
        if not failure:
            self._has_answered |= has_answered
            self._alike, self.pause, self._free_at = 0, 0.0, float("-inf")
            self._allowed = min(self._most, self._allowed + 1 / self._allowed)
        elif time.monotonic() >= self._free_at:  # else it began before the pause
            self._alike = self._alike + 1 if failure == self._failure else 1
            self._failure = failure
            if self._alike >= _MOST_REFUSED:
                self._allowed = 1.0
                self.pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (self._alike - _MOST_REFUSED))
                self._free_at = time.monotonic() + self.pause
