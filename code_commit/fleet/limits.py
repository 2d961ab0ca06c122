"""The limits of a fleet: its budget, its failures, and how many tasks ask one host at a time."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from code_commit.commands.results import Result
from code_commit.llm.ledger import ROUNDING, Ledger
from code_commit.runs.words import count, dollars

_MOST_REFUSED = 3  # tasks that needed more than the rest of the money; after so many no other starts
_LEAST = 0.01
"""US dollars: the least grant, where no price is known here. A run that needs more says so before it asks."""
_FIRST_FAILURES, _REASONS_SHOWN = 20, 3
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0  # seconds
_MOST_PAUSES = 12  # pauses for a host that has answered: an hour and ten minutes in all


class Demand(NamedTuple):
    """The money that a task can use, in US dollars."""

    host: str
    limit: float | None = None  # what is left of its own `max_cost`
    spent: float = 0.0  # the cost of its run so far
    call: float = 0.0  # the cost of its next call where that is known
    answer: float = 0.0  # the cost of the shortest useful answer
    attempts: int = 1  # the answers that it may ask for


class Budget:
    """Keeps a fleet below its `--max-cost`: each task is granted a part of it, and gives back what it did not spend.

    `spent` is the cost of earlier starts, `dearest` by host the cost of the dearest task so far; `answers` has by task
    what `Demand` says of answers. All are in US dollars.
    """

    def __init__(
        self,
        limit: float | None,
        spent: float = 0.0,
        dearest: Mapping[str, float] | None = None,
        answers: Mapping[str, tuple[float, int]] | None = None,
    ) -> None:
        self.answers = answers or {}
        self._ledger = Ledger(limit, spent)
        self._grants: dict[int, tuple[Demand, float]] = {}
        self._dearest = defaultdict[str, float](float, dearest or {})
        self._called: dict[str, float] = {}  # by host: the least cost of a call that a grant was too low for
        self._refused = Counter[str]()

    def is_used_up_for(self, host: str) -> bool:
        """Tell whether the rest is too little for more tasks of a host."""
        return self._refused[host] >= _MOST_REFUSED

    @property
    def is_used_up(self) -> bool:
        """Whether a host's tasks could not begin for want of money."""
        return any(map(self.is_used_up_for, self._refused))

    @property
    def complaint(self) -> str:
        """The message that it is used up, and what the next call costs; "" if it is not."""
        if not self.is_used_up:
            return ""
        call = min((usd for host, usd in self._called.items() if self.is_used_up_for(host)), default=0.0)
        needs = f", and one more call can cost {dollars(call)}" if call else ""
        spent = f"up to {dollars(self._ledger.spent)} was spent{needs}"
        return f"--max-cost {self._ledger.limit:g} is too low to go on: {spent}; raise it to continue"

    def take(self, number: int, need: Demand) -> float | None:
        """Return a task's grant in US dollars, infinite without a limit; None where it must wait for others.

        It is what the dearest task of the host has cost, or all useful answers where none has cost anything; at least
        a useful answer and the next call. A task that came back from a grant gets beside that call as much as it has
        spent, or all useful answers: a small grant shortens an answer, and one that is cut off is paid for in vain.
        """
        free = self._ledger.left
        if free == float("inf"):
            return free
        if free <= ROUNDING and not self._grants:
            self._refused[need.host] = _MOST_REFUSED
        all_answers = need.answer * need.attempts
        usual, call = self._dearest[need.host] or all_answers, need.call or self._called.get(need.host, 0.0)
        if need.call and need.spent:
            call += max(need.spent, all_answers)
        grant = min(max(usual, call, need.answer, _LEAST), need.limit or float("inf"))
        if free <= ROUNDING or (free < grant - ROUNDING and self._grants):
            return None
        grant = min(free, grant)
        self._grants[number] = need, grant
        self._ledger.reserve(grant, "")
        return grant

    def release(self, number: int, cost: float) -> tuple[Demand, float]:
        """Record what was spent of a grant, and return what it was for; one that was lost tells no task's cost."""
        need, grant = self._grants.pop(number, (Demand(""), 0.0))
        self._ledger.settle(grant, cost)
        return need, grant

    def settle(self, number: int, cost: float, call: float = 0.0) -> bool:
        """Record what an ended task spent of its grant; return whether it could continue with a larger one.

        `call` is the cost of its next call if the grant, or its own limit, was too low for that.
        """
        need, grant = self.release(number, cost)
        if not call or grant in (0.0, need.limit):
            self._refused[need.host] = 0
            self._dearest[need.host] = max(self._dearest[need.host], need.spent + cost)
            return False
        self._called[need.host] = min(self._called.get(need.host, call), call)
        if not self._grants and call > self._ledger.left + ROUNDING:
            self._refused[need.host] += 1
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
        has_hope = self._reasons.total() < (self._most or _FIRST_FAILURES) or (self._most is None and self._green)
        return self._keyless >= _MOST_REFUSED or not has_hope

    @property
    def complaint(self) -> str:
        """The message that it ended for its failures, with the commonest reasons; "" if it did not."""
        if not self.is_over:
            return ""
        reasons = (f"{count(number, 'task')}: {reason}" for reason, number in self._reasons.most_common(_REASONS_SHOWN))
        is_keyless = self._keyless >= _MOST_REFUSED
        why = "the provider refuses the key, or its account has no money left" if is_keyless else "see --max-failures"
        return "\n".join([f"{count(self._reasons.total(), 'task')} failed; starting no more ({why}):", *reasons])


class RateLimiter:
    """Limits how many tasks ask a host at a time.

    A host that fails three tasks in a row for one reason gets one task at a time, after longer and longer pauses, until
    it answers or is given up.
    """

    def __init__(self, most: int) -> None:
        self.running = 0
        self._most, self._free_at = most, float("-inf")
        self._failure, self._alike, self._has_answered = "", 0, False
        self.pause = 0.0  # the seconds until the next try where the host fails, else 0

    @property
    def is_full(self) -> bool:
        return self.running >= (1 if self.pause else self._most) or time.monotonic() < self._free_at or self.is_given_up

    @property
    def is_given_up(self) -> bool:
        """Whether the host failed too often for another try: sooner where it never answered."""
        return self._alike >= _MOST_REFUSED + (_MOST_PAUSES if self._has_answered else _MOST_REFUSED)

    def ended(self, failure: str = "", *, has_answered: bool = True) -> None:
        """Count a task that ended; `failure` is the kind of the host's, "" where it did not fail."""
        self.running -= 1
        if not failure:
            self._has_answered |= has_answered
            self._alike, self.pause, self._free_at = 0, 0.0, float("-inf")
        elif time.monotonic() >= self._free_at:  # else it began before the pause
            self._alike = self._alike + 1 if failure == self._failure else 1
            self._failure = failure
            if self._alike >= _MOST_REFUSED:
                self.pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (self._alike - _MOST_REFUSED))
                self._free_at = time.monotonic() + self.pause
