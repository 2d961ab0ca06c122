"""The money of a run, or of a fleet: each request reserves its highest cost until its cost is known."""

import math

from code_commit.errors import OverBudgetError
from code_commit.exchange import Cost
from code_commit.runs.words import cost_in_words

ROUNDING = 1e-9  # US dollars: the error that a sum of floating-point numbers may have


class Ledger:
    """The limit in US dollars (None: none), the money spent, and the money reserved for requests of unknown cost.

    Messages call the limit as `named`, by default as an option.
    """

    def __init__(self, limit: float | None = None, spent: float = 0.0, reserved: float = 0.0, named: str = "") -> None:
        self.limit = limit
        self._named = named
        self.spent = spent
        self.reserved = reserved

    @property
    def left(self) -> float:
        """The money that is not reserved; infinite without a limit."""
        return math.inf if self.limit is None else max(0.0, self.limit - self.spent - self.reserved)

    def reserve(self, usd: float, what: str) -> None:
        """Reserve money for a request, which `what` describes. Raises OverBudgetError if less is left."""
        if usd > self.left + ROUNDING:
            so_far = cost_in_words(Cost(self.spent, self.reserved))
            limit = self._named or f"--max-cost {self.limit:g}"
            raise OverBudgetError(f"the next call could exceed {limit}: {so_far} so far, {what}", usd, self.left)
        self.reserved += usd

    def settle(self, reserved: float, cost: float) -> None:
        """Replace the reservation of a request by its cost."""
        self.reserved -= reserved
        self.spent += cost
