"""The run's time and tokens as bars of a chart, to scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from code_commit.exchange import Usage
from code_commit.run_record import Attempt

WIDTH = 1000
"""Units of the charts' viewBox."""
LEAST_WIDTH = 2.0
"""Units that a bar has at least: what took a moment is to be seen too."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what it stands for, where it begins and how wide it is, and its value."""

    kind: str
    x: float
    width: float
    value: float


@dataclass(frozen=True, slots=True)
class TokenBars:
    """The bars of one attempt's tokens and cost; each chart has its own scale."""

    read: Sequence[Bar]
    written: Sequence[Bar]
    cost: Sequence[Bar]


def time_line(attempts: Sequence[Attempt], total: float) -> tuple[list[list[Bar]], float]:
    """Return the bars of each attempt (`llm`, `change`, `build`), one behind the other, and the seconds of the axis."""
    spent = [
        [
            ("llm", _amount(attempt.seconds)),
            ("change", _amount(attempt.change_seconds)),
            ("build", _amount(attempt.build.seconds if attempt.build else None)),
        ]
        for attempt in attempts
    ]
    span = max(_amount(total), sum(seconds for parts in spent for _, seconds in parts), 0.001)
    now = 0.0
    lanes = []
    for parts in spent:
        lane = []
        for kind, seconds in parts:
            if seconds > 0:
                lane.append(_bar(kind, now, seconds, span))
            now += seconds
        lanes.append(lane)
    return lanes, span


def token_bars(attempts: Sequence[Attempt]) -> list[TokenBars]:
    """Return the bars of each attempt's tokens and cost, the largest as wide as its chart."""
    usages = [attempt.usage or Usage() for attempt in attempts]
    read = max((usage.input for usage in usages), default=0)
    written = max((usage.output for usage in usages), default=0)
    cost = max((_amount(attempt.cost_usd) for attempt in attempts), default=0.0)
    return [
        TokenBars(
            _stacked(("cached", usage.cached_input), ("fresh", usage.input - usage.cached_input), scale=read),
            _stacked(("reasoning", usage.reasoning), ("text", usage.output - usage.reasoning), scale=written),
            _stacked(("cost", _amount(attempt.cost_usd)), scale=cost),
        )
        for usage, attempt in zip(usages, attempts, strict=True)
    ]


def _amount(number: float | None) -> float:
    """What can be drawn of a number that a damaged record may hold."""
    return max(0.0, number) if number is not None and math.isfinite(number) else 0.0


def _stacked(*parts: tuple[str, float], scale: float) -> list[Bar]:
    bars = []
    start = 0.0
    for kind, value in parts:
        if value > 0:
            bars.append(_bar(kind, start, value, scale))
            start += value
    return bars


def _bar(kind: str, start: float, value: float, scale: float) -> Bar:
    width = min(max(LEAST_WIDTH, WIDTH * value / scale), WIDTH)
    return Bar(kind, round(min(WIDTH * start / scale, WIDTH - width), 2), round(width, 2), value)
