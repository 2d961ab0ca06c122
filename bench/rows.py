"""The rows of the table: what was measured against what, and whether the target is met."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.measuring import Cost

Unit = Literal["s", "bytes", "count", "dollars"]


@dataclass(frozen=True, slots=True)
class Target:
    """The most that ours may be: a ratio to theirs, or a difference from theirs in the row's unit."""

    most: float
    of: Literal["ratio", "difference"] = "ratio"


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `ours` and `theirs` are paired: values of the same place come from the same round.

    Rows of one `series` differ in their `size` alone; their costs over the size are plotted and fitted.
    """

    bench: str
    what: str
    against: str
    ours: Sequence[float]
    theirs: Sequence[float]
    unit: Unit = "s"
    target: Target | None = None
    series: str = ""
    size: float | None = None
    size_unit: Literal["bytes", "files", "paths"] = "bytes"
    cpu_ratio: float | None = None
    """Of the CPU seconds: steadier than the time where others use the machine too."""

    @property
    def ratios(self) -> list[float]:
        return [mine / other for mine, other in zip(self.ours, self.theirs, strict=True) if other]

    @property
    def differences(self) -> list[float]:
        return [mine - other for mine, other in zip(self.ours, self.theirs, strict=True)]

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None where there is no target."""
        if self.target is None:
            return None
        values = self.ratios if self.target.of == "ratio" else self.differences
        return statistics.median(values) <= self.target.most


@dataclass(frozen=True, slots=True)
class Skipped:
    """A comparison that could not be made here, and why."""

    bench: str
    what: str
    against: str
    why: str


def timed(bench: str, what: str, against: str, ours: Sequence[Cost], theirs: Sequence[Cost], **more: Any) -> Row:
    """Return the row that compares the time of two commands; `more` are fields of the row."""
    walls = [cost.wall for cost in ours], [cost.wall for cost in theirs]
    cpu = [mine.cpu / other.cpu for mine, other in zip(ours, theirs, strict=True) if other.cpu]
    return Row(bench, what, against, *walls, cpu_ratio=statistics.median(cpu) if cpu else None, **more)


def weighed(bench: str, what: str, against: str, ours: Sequence[Cost], theirs: Sequence[Cost], **more: Any) -> Row:
    """Return the row that compares the peak memory of two commands; `more` are fields of the row."""
    peaks = [cost.peak for cost in ours], [cost.peak for cost in theirs]
    return Row(bench, what, against, *peaks, unit="bytes", **more)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the first and the third quartile; of a single value it is that value."""
    if len(values) < 2:
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third
