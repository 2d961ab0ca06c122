"""The rows of the table: what was measured against what, whether the target is met, and how that is printed."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bench.measuring import Cost

HEADINGS = ("what", "against", "ours", "theirs", "ratio (quartiles)", "CPU ratio", "target", "")


@dataclass(frozen=True, slots=True)
class Target:
    """The most that ours may be: a ratio to theirs, or a difference from theirs in the row's unit."""

    most: float
    of: Literal["ratio", "difference"] = "ratio"


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `ours` and `theirs` are paired: values of the same place come from the same round."""

    what: str
    against: str
    ours: Sequence[float]
    theirs: Sequence[float]
    unit: Literal["s", "bytes", "dollars", "answers", "clones", "commits", "tokens"] = "s"
    target: Target | None = None
    cpu_ratio: float | None = None
    """Of the CPU seconds: steadier than the time where others use the machine too."""

    @property
    def ratios(self) -> list[float]:
        return [mine / other for mine, other in zip(self.ours, self.theirs, strict=True) if other]

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None where there is no target."""
        if self.target is None:
            return None
        differences = [mine - other for mine, other in zip(self.ours, self.theirs, strict=True)]
        return statistics.median(self.ratios if self.target.of == "ratio" else differences) <= self.target.most

    def cells(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        ours, theirs = (shown_value(statistics.median(values), self.unit) for values in (self.ours, self.theirs))
        low, middle, high = quartiles(self.ratios)
        target = "-"
        if self.target is not None:
            difference = self.target.of == "difference"
            target = f"<= +{shown_value(self.target.most, self.unit)}" if difference else f"<= {self.target.most:.3g}"
        cpu = f"{self.cpu_ratio:.3g}" if self.cpu_ratio else "-"
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        ratio = f"{middle:.3g} ({low:.3g} to {high:.3g})"
        return self.what, self.against, ours, theirs, ratio, cpu, target, verdict


@dataclass(frozen=True, slots=True)
class Skipped:
    """A comparison that could not be made here, and why."""

    what: str
    against: str
    why: str

    def cells(self) -> tuple[str, ...]:
        """Return the columns of the table."""
        return self.what, self.against, *"-" * 5, f"skipped: {self.why}"


def timed(what: str, against: str, ours: Sequence[Cost], theirs: Sequence[Cost], target: Target | None = None) -> Row:
    """Return the row that compares the time of two commands."""
    walls = [cost.wall for cost in ours], [cost.wall for cost in theirs]
    cpu = [mine.cpu / other.cpu for mine, other in zip(ours, theirs, strict=True) if other.cpu]
    return Row(what, against, *walls, target=target, cpu_ratio=statistics.median(cpu) if cpu else None)


def weighed(what: str, against: str, ours: Sequence[Cost], theirs: Sequence[Cost], target: Target | None = None) -> Row:
    """Return the row that compares the peak memory of two commands."""
    peaks = [cost.peak for cost in ours], [cost.peak for cost in theirs]
    return Row(f"{what}, memory", against, *peaks, unit="bytes", target=target)


def limited(what: str, limit: str, ours: Sequence[Cost], seconds: float) -> Row:
    """Return the row that compares the time of a command with a limit."""
    walls, cpu = [cost.wall for cost in ours], statistics.median(cost.cpu for cost in ours) / seconds
    return Row(what, limit, walls, [seconds] * len(ours), target=Target(1.0), cpu_ratio=cpu)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the first quartile, the median and the third; of a single value it is that value."""
    if len(values) < 2:
        return values[0], values[0], values[0]
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, middle, third


def shown_value(value: float, unit: str) -> str:
    """Return a value with its unit, three digits long."""
    if unit == "s":
        return f"{value * 1000:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
    if unit == "bytes":
        return f"{value / _MEGABYTE:.1f} MB" if value >= _MEGABYTE / 10 else f"{value / 1000:.1f} kB"
    return f"${value:.3f}" if unit == "dollars" else f"{value:,.0f}"


_MEGABYTE = 1_000_000


def as_lines(rows: Iterable[Row | Skipped]) -> list[str]:
    """Return the rows as a Markdown table whose columns are aligned."""
    cells = [row.cells() for row in rows]
    widths = [max(len(line[column]) for line in (HEADINGS, *cells)) for column in range(len(HEADINGS))]
    ruler = tuple("-" * width for width in widths)
    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in (HEADINGS, ruler, *cells)
    ]


def as_json(rows: Iterable[Row | Skipped], machine: dict[str, Any]) -> dict[str, Any]:
    """Return everything that was measured, value by value."""
    measured, skipped = [], []
    for row in rows:
        if isinstance(row, Skipped):
            skipped.append(asdict(row))
        else:
            low, middle, high = quartiles(row.ratios)
            measured.append(asdict(row) | {"met": row.met, "ratio": {"median": middle, "quartiles": (low, high)}})
    return {"machine": machine, "rows": measured, "skipped": skipped}
