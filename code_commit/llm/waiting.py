"""How long to wait before a call is made again: what the API asks for in its many spellings, else a growing backoff."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from code_commit.llm.json_values import list_of, member, text_of
from code_commit.llm.pace import Pace

_SHORTEST_OBEYED = 1.0
"""A server that asks for less again and again is waited for as long as the backoff says."""


def asked_delay(headers: Mapping[str, str], body: Any, pace: Pace) -> float | None:
    """Return the seconds to wait that an error reply asks for, None where it names none that can be read.

    In this order: retry-after-ms, retry-after (seconds or an HTTP date), Google's RetryInfo.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    stated = headers.get("retry-after", "")
    seconds = _number(stated)
    if seconds is not None:
        return seconds
    until_date = _until(stated, pace)
    if until_date is not None:
        return until_date
    return _retry_info(body)


def backoff(failures: int, pace: Pace, longest: float, *, is_overload: bool) -> float:
    """Return the delay after so many failures, from 0 on, with full jitter: anything up to a limit that doubles."""
    first = pace.first_overload_backoff if is_overload else pace.first_backoff
    return pace.random() * min(longest, first * 2.0 ** min(failures, 16))


def obeyed_delay(asked: float | None, usual: float) -> float:
    """Return what the API asks for, but not less than the usual backoff when it asks for next to nothing."""
    return asked if asked is not None and asked >= _SHORTEST_OBEYED else max(asked or 0.0, usual)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,12}(\.\d{0,12})?\s*", text, re.ASCII) else None


def _until(date: str, pace: Pace) -> float | None:
    if not date:
        return None
    try:
        return max(parsedate_to_datetime(date).timestamp() - pace.wall_clock(), 0.0)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _retry_info(body: Any) -> float | None:
    """Read `retryDelay`, such as "34.07s", from the details of a Google error."""
    for detail in list_of(body, "error", "details"):
        if text_of(detail, "@type").endswith("RetryInfo"):
            delay = member(detail, "retryDelay")
            if isinstance(delay, str) and delay.endswith("s"):
                return _number(delay[:-1])
    return None
