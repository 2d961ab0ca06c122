"""How a fleet goes on: a line on standard error for each task that is done, and on a terminal a live table below."""

import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

from code_commit.fleet.results import PAGE, Result
from code_commit.summary import count, duration
from code_commit.terminal import coloured, is_live_terminal, shown, terminal_width, wrapped

if TYPE_CHECKING:
    from rich.table import Table

_REDRAWS_PER_SECOND = 2


@dataclass(slots=True)
class Totals:
    """Sums over the results of so many tasks. `cost_usd` leaves out what `unknown_costs` tasks cost."""

    tasks: int
    done: int = 0
    green: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    cost_usd: float = 0.0
    unknown_costs: int = 0

    def add(self, result: Result) -> None:
        self.done += 1
        self.green += result.is_green
        self.statuses[result.status] += 1
        self.attempts += result.attempts
        self.cost_usd += result.cost_usd or 0.0
        self.unknown_costs += result.cost_usd is None and result.attempts > 0

    @property
    def in_words(self) -> str:
        """Return `7 of 10 tasks green, 2 build failed, 1 not done`."""
        others = [(_words(status), number) for status, number in self.statuses.most_common() if status != "success"]
        parts = [f"{number} {status}" for status, number in [*others, ("not done", self.tasks - self.done)] if number]
        return ", ".join([f"{self.green} of {count(self.tasks, 'task')} green", *parts])

    @property
    def cost(self) -> str:
        """Return `$0.31`, or `$0.31 and 2 tasks of unknown cost`."""
        unknown = f" and {count(self.unknown_costs, 'task')} of unknown cost" if self.unknown_costs else ""
        return f"${self.cost_usd:.2f}{unknown}"


class FleetTable:
    """Prints a fleet's results as they come. A context manager: on leaving it only the lines stay on the terminal.

    `results` are those of before, which `totals` counts too.
    """

    def __init__(
        self, tasks: int, results: Iterable[Result] = (), *, quiet: bool = False, stream: TextIO | None = None
    ) -> None:
        self.totals = Totals(tasks)
        self.running = 0
        """How many tasks run now; whoever starts them says so."""
        self._quiet = quiet
        self._stream = stream or sys.stderr
        self._live: Any = None
        self._started = time.monotonic()
        for result in results:
            self.totals.add(result)
        self._earlier = self.totals.done

    def __enter__(self) -> Self:
        if not self._quiet and is_live_terminal(self._stream):
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=self._stream),
                get_renderable=self._draw,
                transient=True,
                refresh_per_second=_REDRAWS_PER_SECOND,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            with suppress(OSError, ValueError):
                self._live.stop()
            self._live = None

    def landed(self, result: Result) -> None:
        """Count a result, and print its line."""
        self.totals.add(result)
        attempts = f" after {count(result.attempts, 'attempt')}" if result.attempts else ""
        price = "" if result.cost_usd is None else f", ${result.cost_usd:.2f}"
        ending = f"{word_of(result)}{attempts} in {duration(result.seconds)}{price}"
        why = "" if result.is_green else f": {reason_of(result)}"
        self.say(
            f"{self.totals.done} of {self.totals.tasks}: {result.id}: {ending}{why}",
            "green" if result.is_green else "red",
        )

    def close(self, out: Path) -> None:
        """Print what came of the fleet, and where its page is."""
        self.__exit__()
        took = duration(time.monotonic() - self._started)
        self.say(f"{self.totals.in_words}: {self.totals.cost}, {took}. Page: {out / PAGE}")

    def say(self, text: str, colour: str = "") -> None:
        """Print a message above the table, unless `quiet`."""
        if self._quiet:
            return
        lines = [row for line in text.split("\n") for row in wrapped(shown(line), terminal_width(self._stream))]
        with suppress(OSError, ValueError):  # its reader may be gone: the fleet goes on
            if self._live:
                self._live.console.print("\n".join(lines), style=colour or None, markup=False, highlight=False)
            else:
                print(coloured("\n".join(lines), colour, self._stream), file=self._stream, flush=True)

    def _draw(self) -> "Table":
        from rich.table import Table

        totals = self.totals
        waiting = totals.tasks - totals.done - self.running
        cells = {"waiting": waiting, "running": self.running, "done": totals.done, "green": totals.green}
        table = Table(box=None, style="dim")
        for head in (*cells, "cost", "time left"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_row(*map(str, cells.values()), f"${totals.cost_usd:.2f}", self._time_left())
        return table

    def _time_left(self) -> str:
        """Return how long it takes if it goes on as it did so far."""
        done, left = self.totals.done - self._earlier, self.totals.tasks - self.totals.done
        return duration((time.monotonic() - self._started) / done * left) if done else "-"


def word_of(result: Result) -> str:
    """Return what came of a task in a word or two: `green`, `build failed`."""
    return "green" if result.is_green else _words(result.status)


def _words(status: str) -> str:
    return status.replace("_", " ")


def reason_of(result: Result) -> str:
    """Return the first line of why a task is not green."""
    return result.message.split("\n")[0] or f"exit code {result.exit_code}"
