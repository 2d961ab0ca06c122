"""How a cost grows with a size."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from bench.rows import Row


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the costs over the sizes, both as logarithms: 1.0 is linear (least squares)."""
    xs = [math.log(size) for size, _ in points]
    ys = [math.log(cost) for _, cost in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return covariance / sum((x - mean_x) ** 2 for x in xs)


def series_of(rows: Iterable[Row]) -> Mapping[tuple[str, str], list[Row]]:
    """Return the rows that have sizes, by series and peer, smallest first; only those of two sizes or more."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.size is not None:
            found[row.series, row.against].append(row)
    return {name: sorted(group, key=lambda row: row.size or 0) for name, group in found.items() if len(group) > 1}


def points_of(group: Iterable[Row], *, ours: bool) -> list[tuple[float, float]]:
    """Return sizes and median costs, ours or theirs."""
    medians = [(row.size, statistics.median(row.ours if ours else row.theirs)) for row in group]
    return [(size, cost) for size, cost in medians if size and cost > 0]
