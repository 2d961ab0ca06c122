"""The wait that a reply asks for, in every form: headers, members of the body, words."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from code_commit.llm.values import member

_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])"
_DURATION = rf"{_PART}(?:[\s,]*(?:and\s+)?{_PART})*"
_WORDS = re.compile(rf"(?i)\b(?:in|after|wait|wait for|for|within)\s+(?:about\s+|at least\s+)?({_DURATION})")
_ASKS = re.compile(r"(?i)\b(re-?)?try|\bwait\b|\bagain\b|\breset|\bback\b|\bavailable\b|\bcool")
_IN_SECONDS = frozenset(["retryafter", "retryafterseconds", "retryafters", "retryin", "retrydelay", "resetinseconds"])
_IN_MILLISECONDS = frozenset(["retryafterms", "retryaftermilliseconds"])
_DEEPEST = 6
_EPOCH = 10**9  # seconds since 1970; a smaller number is a duration


def asked_wait(headers: Mapping[str, str], body: Any, words: str, now: float) -> float | None:
    """Return the seconds to wait that a reply asks for, None if it names none. `now` is the time since 1970.

    In this order: retry-after-ms, retry-after, members of the body (Google's RetryInfo), the headers of a limit that
    is used up, the API's words.
    """
    milliseconds, asked = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    if milliseconds is not None:
        return milliseconds / 1000
    sent = _date(headers.get("date", ""))
    if (wait := _wait(asked, now if sent is None else sent)) is not None:
        return wait
    waits = [*_members(body, now), *_resets(headers, now)]
    return next(iter(waits), None) or _wait_in(words)


def _members(value: Any, now: float, depth: int = 0) -> Iterator[float]:
    """Yield the waits that members of a body name, at any depth; some hold the headers of another reply."""
    if depth > _DEEPEST:
        return
    for part in value if isinstance(value, list) else []:
        yield from _members(part, now, depth + 1)
    if not isinstance(value, dict):
        return
    for name, part in value.items():
        plain = re.sub(r"[^a-z]", "", str(name).lower())
        text = str(part) if isinstance(part, str | int | float) and not isinstance(part, bool) else ""
        wait = None
        if text and plain in _IN_MILLISECONDS:
            wait = _wait(f"{text}ms", now)
        elif text and plain in _IN_SECONDS:
            wait = _wait(text, now)
        if wait is not None:
            yield wait
        yield from _members(part, now, depth + 1)
    if isinstance(held := member(value, "headers"), dict):
        yield from _resets({str(name).lower(): str(text) for name, text in held.items()}, now)


def _resets(headers: Mapping[str, str], now: float) -> Iterator[float]:
    """Yield the longest wait until a limit begins anew that is used up."""
    waits = []
    for name, text in headers.items():
        if "ratelimit" in name.replace("-", "") and "reset" in name:
            left = _number(headers.get(name.replace("-after", "").replace("reset", "remaining"), ""))
            wait = _wait(text, now)
            if wait is not None and not left:
                waits.append(wait)
    if waits:
        yield max(waits)


def _wait(text: str, now: float) -> float | None:
    """Return the seconds of a number, a duration (`6m0s`), a date, or a time since 1970 in (milli)seconds."""
    number = _number(text)
    if number is not None:
        since = number / 1000 if number > _EPOCH * 100 else number
        return max(0.0, since - now) if since > _EPOCH else since
    if re.fullmatch(rf"\s*{_DURATION}\s*", text, re.ASCII | re.IGNORECASE):
        return _seconds(text)
    at = _date(text)
    return None if at is None else max(0.0, at - now)


def _wait_in(words: str) -> float | None:
    """Return the wait that a message names, such as `try again in 40m19s`."""
    for found in _WORDS.finditer(words):
        if _ASKS.search(words[max(0, found.start() - 60) : found.start() + 5]):
            return _seconds(found[1])
    return None


def _seconds(duration: str) -> float:
    return sum(float(digits) * _factor(unit.lower()) for digits, unit in re.findall(f"(?i){_PART}", duration))


def _factor(unit: str) -> float:
    return _UNIT["ms" if unit == "ms" or unit.startswith("milli") else unit[0]]


def _date(text: str) -> float | None:
    """Return the time since 1970 of a date of HTTP or RFC 3339."""
    from email.utils import parsedate_to_datetime  # takes 10 ms, and few calls need it

    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            at = parse(text.strip())
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,15}(\.\d{0,12})?\s*", text, re.ASCII) else None
