"""The rows of the table: what was measured against what, and whether the target is met."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.measuring import Cost

Unit = Literal["s", "bytes", "count"]


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


def timed(  # noqa: PLR0913 - a row's columns
    bench: str,
    what: str,
    against: str,
    ours: Sequence[Cost],
    theirs: Sequence[Cost],
    *,
    target: Target | None = None,
    series: str = "",
    size: float | None = None,
) -> Row:
    """Return the row that compares the time of two commands."""
    walls = [cost.wall for cost in ours], [cost.wall for cost in theirs]
    cpu = [mine.cpu / other.cpu for mine, other in zip(ours, theirs, strict=True) if other.cpu]
    ratio = statistics.median(cpu) if cpu else None
    return Row(bench, what, against, *walls, target=target, series=series, size=size, cpu_ratio=ratio)


def weighed(  # noqa: PLR0913 - a row's columns
    bench: str,
    what: str,
    against: str,
    ours: Sequence[Cost],
    theirs: Sequence[Cost],
    *,
    target: Target | None = None,
    series: str = "",
    size: float | None = None,
) -> Row:
    """Return the row that compares the peak memory of two commands."""
    peaks = [cost.peak for cost in ours], [cost.peak for cost in theirs]
    return Row(bench, what, against, *peaks, unit="bytes", target=target, series=series, size=size)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the first and the third quartile; of a single value it is that value."""
    if len(values) < 2:
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third
