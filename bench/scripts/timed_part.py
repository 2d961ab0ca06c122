"""The part of a script that is measured: what comes before, imports above all, is not."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager


def _cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@contextmanager
def timed_part() -> Iterator[None]:
    """Print wall and CPU seconds of the block, children included, as the last line of the output."""
    wall, cpu = time.perf_counter(), _cpu_seconds()
    yield
    print(f"\n{time.perf_counter() - wall} {_cpu_seconds() - cpu}", flush=True)
