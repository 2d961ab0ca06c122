"""The money of a run, or of a fleet: each request reserves what it can cost at most, until its cost is known."""

import math

from code_commit.errors import OverBudgetError

ROUNDING = 1e-9
"""US dollars that a sum of floating-point numbers may be off."""


class Ledger:
    """What may be spent in US dollars (None: anything), and what is spent, or reserved for what is on its way."""

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = spent
        self.reserved = 0.0

    @property
    def left(self) -> float:
        """What nobody has reserved; infinite without a limit."""
        return math.inf if self.limit is None else max(0.0, self.limit - self.spent - self.reserved)

    def reserve(self, usd: float, what: str) -> None:
        """Set this much aside for a request. Raises OverBudgetError, which says `what` it is, where less is left."""
        if usd > self.left + ROUNDING:
            spent = f"--max-cost {self.limit:g}: ${self.spent + self.reserved:.4f} are spent"
            raise OverBudgetError(f"the next call could pass {spent}, {what}", usd, self.left)
        self.reserved += usd

    def settle(self, reserved: float, cost: float) -> None:
        """Count what a request did cost, in place of what was reserved for it."""
        self.reserved -= reserved
        self.spent += cost
