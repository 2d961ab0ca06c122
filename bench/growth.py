"""How a cost grows with a size."""

import math
from collections.abc import Sequence


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the costs over the sizes, both as logarithms: 1.0 is linear (least squares)."""
    xs = [math.log(size) for size, _ in points]
    ys = [math.log(cost) for _, cost in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return covariance / sum((x - mean_x) ** 2 for x in xs)
