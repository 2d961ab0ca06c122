"""What is compared with what, in turns; the rows that come of it, and the tables of these."""

import math
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.environments import CACHE, SOURCE, Tool, environment
from bench.measuring import Command, CommandFailedError, Cost, UnavailableError

MEGABYTE = 1_000_000
STEPS = Path(__file__).with_name("steps.py")
SHOWN = math.inf  # in the place of a target: what was measured is shown, whatever it is
GROWTH = 12.0  # times, for ten times as much
WORSE = 1.1  # times
RECHECKS = 3  # how often what seems to be worse is measured again
HEADINGS = ("what", "against", "ours", "theirs", "times", "by CPU", "at most", "")
GROWTH_HEADINGS = ("what, and ten times as much of it", "small", "large", "factor", "by CPU", "at most", "")
VERDICTS = {None: "", True: "met", False: "**missed**"}

Side = Callable[[Tool], Command | Cost]
"""What is done with a tool to measure it, or what was measured or granted already."""


@dataclass(frozen=True)
class Plan:
    """What every benchmark is given. `folder` is there for one run alone; `quick` takes the smallest sizes, no peers.

    `repository` is the one whose latest commits are replayed, so many of them.
    """

    folder: Path
    kept: Path = CACHE
    quick: bool = False
    repository: Path = SOURCE
    commits: int = 50

    def sizes(self, *sizes: int) -> tuple[int, ...]:
        """Return which of the sizes to measure."""
        return sizes[:1] if self.quick else sizes

    def peer(self, package: str, version: str, script: str) -> Path:
        """Return the command of another tool, installed when it is not there yet. Raises UnavailableError."""
        return environment(self.kept / f"{package}-{version}", f"{package}=={version}") / "bin" / script

    @contextmanager
    def work_folder(self) -> Iterator[Path]:
        """Make a folder for the time of some measurements."""
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


@dataclass(frozen=True)
class Comparison:
    """`time` and `memory` are the most that ours may be of theirs; None where it is not looked at.

    Where it `grows`, ours is ten times as much as theirs. `unit` is that of a figure, in the place of a time.
    """

    what: str
    against: str
    ours: Side
    theirs: Side
    rounds: int = 5
    time: float | None = SHOWN
    memory: float | None = None
    grows: bool = False
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of both, round by round: `measure` is a field of Cost, `pick` takes that which counts."""

    what: str
    against: str
    measure: str
    unit: str
    ours: Sequence[Cost]
    theirs: Sequence[Cost]
    most: float | None
    grows: bool
    by_cpu: bool
    pick: Callable[[Sequence[float]], float] = statistics.median

    def values(self, measure: str) -> tuple[float, float]:
        """Return ours and theirs."""
        values = [[getattr(cost, measure) for cost in costs] for costs in (self.ours, self.theirs)]
        return self.pick(values[0]), self.pick(values[1])

    def times(self, measure: str) -> float:
        """Return how many times theirs ours is."""
        ours, theirs = self.values(measure)
        return ours / theirs if theirs else math.inf if ours else 1.0

    @property
    def met(self) -> bool | None:
        """Whether it is what it may be at most; None where that is anything."""
        measure = "cpu" if self.by_cpu and self.measure == "wall" else self.measure
        return None if self.most is None else self.times(measure) <= self.most

    def cells(self) -> list[str]:
        """Return the columns of its table."""
        shown = [shown_value(value, self.unit) for value in self.values(self.measure)]
        sides = [self.what, *reversed(shown)] if self.grows else [self.what, self.against, *shown]
        cpu = f"{self.times('cpu'):.3g}" if self.measure == "wall" else "-"
        most = "-" if self.most is None else f"{self.most:.3g}"
        return [*sides, f"{self.times(self.measure):.3g}", cpu, most, VERDICTS[self.met]]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A comparison that was not made, and why: something is not to be had here, or else it went wrong."""

    what: str
    against: str
    error: Exception
    grows: bool = False

    @property
    def met(self) -> bool | None:
        return None if isinstance(self.error, UnavailableError) else False

    def cells(self) -> list[str]:
        """Return the columns of its table."""
        why = " ".join(f"{type(self.error).__name__}: {self.error}".split())[:300].replace("|", "/")
        verdict = f"**ERROR**: {why}" if self.met is False else f"skipped: {why}"
        return [self.what, *([] if self.grows else [self.against]), *"-" * 5, verdict]


def in_turns(sides: Sequence[Callable[[], Command | Cost]], rounds: int) -> list[list[Cost]]:
    """Measure each side that many times, one after the other: what disturbs one round disturbs all of them."""
    costs: list[list[Cost]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, found in zip(sides, costs, strict=True):
            found.append(_measured(side()))
    return costs


def _measured(made: Command | Cost) -> Cost:
    return made.run() if isinstance(made, Command) else made


def compare(comparison: Comparison, tool: Tool, rounds: int, *, by_cpu: bool) -> list[Row]:
    """Measure both sides."""
    return rows_of(
        comparison, *in_turns([lambda: comparison.ours(tool), lambda: comparison.theirs(tool)], rounds), by_cpu
    )


def compare_tools(comparison: Comparison, now: Tool, then: Tool, rounds: int, *, by_cpu: bool) -> list[Row]:
    """Measure our side with one tool and with the other. What seems to be worse is measured again.

    Raises UnavailableError for what the other cannot do: it may be older than that.
    """

    def other() -> Cost:
        try:
            return _measured(comparison.ours(then))
        except CommandFailedError as error:
            raise UnavailableError(f"{then.name} cannot do it: {error}") from error

    time, memory = (None if most is None else WORSE for most in (comparison.time, comparison.memory))
    comparison = replace(comparison, against=then.name, time=time, memory=memory, grows=False)
    costs: list[list[Cost]] = [[], []]
    rows: list[Row] = []
    while not rows or (len(costs[0]) <= RECHECKS * rounds and not all(row.met for row in rows)):
        more = in_turns([lambda: comparison.ours(now), other], rounds)
        costs = [found + new for found, new in zip(costs, more, strict=True)]
        rows = [replace(row, pick=min) for row in rows_of(comparison, *costs, by_cpu)]
    return rows


def rows_of(comparison: Comparison, ours: Sequence[Cost], theirs: Sequence[Cost], by_cpu: bool) -> list[Row]:  # noqa: FBT001
    """Return the rows of what was measured: the time or the figure, and the memory."""
    what, against, grows = comparison.what, comparison.against, comparison.grows
    measure = "wall" if comparison.unit == "s" else "figure"
    kinds = [(what, measure, comparison.unit, comparison.time), (f"{what}, memory", "peak", "bytes", comparison.memory)]
    return [
        Row(name, against, measure, unit, ours, theirs, None if most == SHOWN else most, grows, by_cpu)
        for name, measure, unit, most in kinds
        if most is not None
    ]


def growth(what: str, large: Side, small: Side, rounds: int = 5, memory: float | None = None) -> Comparison:
    """Return the comparison of ten times as much with as much as `what` says."""
    return Comparison(what, "", large, small, rounds, GROWTH, memory, grows=True)


def ours(folder: Path, *arguments: str | Path, **options: Any) -> Side:
    """Return the side that runs our command in a folder."""
    return lambda tool: Command([tool.command, *arguments], folder, **options)


def step(folder: Path, *arguments: str | Path, **options: Any) -> Side:
    """Return the side that runs one of `steps.py` with our interpreter."""
    return lambda tool: Command([tool.python, "-P", STEPS, *arguments], folder, times_itself=True, **options)


def shell(folder: Path, script: str, *arguments: str | Path, **options: Any) -> Side:
    """Return the side that runs a script, whose $1, $2 ... are the arguments."""
    return lambda _: Command(["sh", "-c", script, "sh", *arguments], folder, **options)


def limit(seconds: float = 0.0, *, peak: float = 0.0, figure: float = 0.0) -> Side:
    """Return the side that is granted so much, of time both by the clock and of the CPU."""
    return lambda _: Cost(seconds, seconds, peak, figure)


def counted(count: Callable[[Tool], float]) -> Side:
    """Return the side of which something is counted."""
    return lambda tool: Cost(figure=count(tool))


def shown_value(value: float, unit: str) -> str:
    """Return a value with its unit, three digits long."""
    if unit == "s":
        return f"{value * 1000:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
    if unit == "bytes":
        return f"{value / MEGABYTE:.1f} MB" if value >= MEGABYTE / 10 else f"{value / 1000:.1f} kB"
    return f"${value:.3f}" if unit == "dollars" else f"{value:,.0f} {unit}"


def tables(rows: Sequence[Row | Unmeasured]) -> str:
    """Return the rows as Markdown: the comparisons, then how costs grow."""
    kinds = ((HEADINGS, [row for row in rows if not row.grows]), (GROWTH_HEADINGS, [row for row in rows if row.grows]))
    return "\n\n".join(table(headings, [row.cells() for row in some]) for headings, some in kinds if some)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose columns are aligned."""
    widths = [max(len(line[column]) for line in (headings, *rows)) for column in range(len(headings) - 1)] + [0]
    lines = [headings, ["---".ljust(width, "-") for width in widths], *rows]
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines
    )
