"""Measures of work, which the machine's other work can only add to: the least of several is the nearest."""

import time
from collections.abc import Callable
from math import inf

TRIES = 7


def least(measure: Callable[[], float], enough: float) -> float:
    """Return the first measure under `enough`, or the least of seven."""
    found = inf
    for _ in range(TRIES):
        found = min(found, measure())
        if found < enough:
            break
    return found


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of this process, in seconds, while it does the work."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def is_linear(work: Callable[[int], object], size: int) -> bool:
    """Tell whether work of four times the size takes six times as long at most: at the square it would be sixteen."""
    small = large = inf
    for _ in range(TRIES):
        small = min(small, cpu_seconds(lambda: work(size)))
        large = min(large, cpu_seconds(lambda: work(4 * size)))
        if large < 6 * small + 0.01:
            return True
    return False
