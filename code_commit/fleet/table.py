"""The progress of a fleet: a line on standard error for each finished task, and on a terminal a live table below."""

import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from code_commit.commands.results import Result
from code_commit.fleet.results import PAGE, FleetTotals
from code_commit.runs.progress import print_lines, start_live
from code_commit.runs.words import cost_in_cell, count, duration
from code_commit.status import Status
from code_commit.terminal import is_live_terminal, shown

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_REDRAWS_PER_SECOND = 2


class FleetTable:
    """Prints a fleet's results as they come; `totals` counts `results` of before too. On leaving it only lines stay."""

    def __init__(self, tasks: int, results: Iterable[Result] = (), *, quiet: bool = False) -> None:
        self.totals = FleetTotals(tasks)
        self.running = 0  # how many tasks run now; whoever starts them says so
        self._quiet = quiet
        self._live: Live | None = None
        self._started = time.monotonic()
        for result in results:
            self.totals.add(result)
        self._earlier = self.totals.done

    def __enter__(self) -> Self:
        if not self._quiet and is_live_terminal(sys.stderr):
            self._live = start_live(sys.stderr, self._draw, _REDRAWS_PER_SECOND)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            with suppress(OSError, ValueError):
                self._live.stop()
            self._live = None

    def report(self, result: Result) -> None:
        """Count a result, and print its line."""
        self.totals.add(result)
        took = f" in {duration(result.seconds)}"
        if result.attempts and result.status in (Status.INTERRUPTED, Status.LLM_ERROR):  # the last has not ended
            took = f" in attempt {result.attempts} after {duration(result.seconds)}"
        elif result.attempts:
            took = f" after {count(result.attempts, 'attempt')}{took}"
        price = f", {cost}" if (cost := result.cost_in_words) else ""
        ending = f"{result.word}{took}{price}"
        why = "" if result.is_green else f": {result.reason}"
        self.say(
            f"{self.totals.done} of {self.totals.tasks}: {result.id}: {ending}{why}",
            "green" if result.is_green else "red",
        )

    def close(self, out: Path) -> None:
        """Print the totals of the fleet, and the path of its page."""
        self.__exit__()
        took = duration(time.monotonic() - self._started)
        if self._earlier == self.totals.tasks:
            again = "" if self.totals.green == self.totals.tasks else " (--failed runs those that are not green)"
            took = f"{count(self._earlier, 'task')} kept, none ran{again}"
        if built := self.totals.built:
            self.say(f"{count(built, 'build')} also changed tracked files that no answer touched: see build.patch")
        self.say(f"{self.totals.in_words}: {self.totals.cost}, {took}. Page: {out / PAGE}")

    def say(self, text: str, colour: str = "") -> None:
        """Print a message above the table, unless `quiet`."""
        if text and not self._quiet:
            print_lines("\n".join(map(shown, text.split("\n"))), colour, sys.stderr, self._live)

    def _draw(self) -> "Table":
        from rich.table import Table

        totals = self.totals
        waiting = totals.tasks - totals.done - self.running
        cells = {"waiting": waiting, "running": self.running, "done": totals.done, "green": totals.green}
        table = Table(box=None, style="dim")
        for head in (*cells, "cost", "time left"):
            table.add_column(head, justify="right", no_wrap=True)
        ended, left = totals.done - self._earlier, totals.tasks - totals.done
        time_left = duration((time.monotonic() - self._started) / ended * left) if ended else "-"
        table.add_row(*map(str, cells.values()), cost_in_cell(totals.known, short=True), time_left)
        return table
