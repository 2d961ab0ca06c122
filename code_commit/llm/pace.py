"""The clock and the patience of a call: how long each step may take, how long is waited, how much is read."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """All times in seconds. The vendors' SDKs are less patient: their calls answer a person, ours a script."""

    now: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random

    connect: float = 15.0
    write: float = 120.0
    read: float = 60.0
    """The longest silence in the answer to a short request: creating, polling and cancelling a job."""
    stream_read: float = 600.0
    """The longest silence in a stream. A model that thinks may send nothing for minutes."""
    cancel: float = 10.0
    """For cancelling a job, all in all: somebody waits for the tool to end."""

    largest_reply: int = 512 * 1024 * 1024
    """In bytes, decompressed; no model writes that much."""

    shortest_poll: float = 0.01
    first_poll: float = 0.5
    longest_poll: float = 15.0
    poll_growth: float = 1.6

    first_backoff: float = 1.0
    first_overload_backoff: float = 4.0
    longest_backoff: float = 60.0
