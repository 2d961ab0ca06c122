"""The money of a run, or of a fleet: each request reserves its highest cost until its cost is known."""

import math

from code_commit.errors import OverBudgetError

ROUNDING = 1e-9  # US dollars: the error that a sum of floating-point numbers may have


class Ledger:
    """The limit in US dollars (None: none), the money spent, and the money reserved for open requests."""

    def __init__(self, limit: float | None = None, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = spent
        self.reserved = 0.0

    @property
    def left(self) -> float:
        """The money that is not reserved; infinite without a limit."""
        return math.inf if self.limit is None else max(0.0, self.limit - self.spent - self.reserved)

    def reserve(self, usd: float, what: str) -> None:
        """Reserve money for a request, which `what` describes. Raises OverBudgetError if less is left."""
        if usd > self.left + ROUNDING:
            spent = f"--max-cost {self.limit:g}: ${self.spent + self.reserved:.4f} is spent"
            raise OverBudgetError(f"the next call could exceed {spent}, {what}", usd, self.left)
        self.reserved += usd

    def settle(self, reserved: float, cost: float) -> None:
        """Replace the reservation of a request by its cost."""
        self.reserved -= reserved
        self.spent += cost
