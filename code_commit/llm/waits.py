"""The wait that a reply asks for, in every form: headers, members of the body, words."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from code_commit.llm.values import count_of, has_count, opened
from code_commit.regex import regex

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS = r"ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?"
_PART = rf"(\d{{1,9}}(?:\.\d{{1,9}})?|an?(?= )|one)\s*(?:more\s+)?({_UNITS})(?![a-z])"
_CLOCK = r"(?:(\d{1,3})[.d] ?)?(\d{1,2}):(\d\d):(\d\d)(?!\d)"  # days, hours, minutes, seconds
_DURATION = rf"{_CLOCK}|{_PART}(?:[\s,]*(?:and\s+)?{_PART})*"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_TIME = (
    rf"\d{{4}}-\d\d-\d\d(?:T| (?:at )?)\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?{_ZONE}"
    rf"|[A-Z][a-z]{{2}}, \d{{1,2}} [A-Z][a-z]{{2}} \d{{4}} \d\d:\d\d:\d\d{_ZONE}|\d{{10}}(?:\d{{3}})?(?!\d)"
)
_ABOUT = r"\W{1,3}(?:(?:about|approximately|around|at least|another)\s+|~\s*)?"
_IN_WORDS = regex(rf"(?i)\b(?:in|after|wait|for|within){_ABOUT}(?P<duration>{_DURATION})|(?P<time>{_TIME})")
_ASKS = regex(
    r"(?i)\b(re-?)?try|\bwait\b|\bagain\b|\breset|\bback\b|\b(un)?available\b|\bcool|\bre(new|plenish|fill|gain)|\buntil\b"
)
_AS_MEMBER = regex(
    r"(?i)\bretry[-_ ]?(?:after|in)(?:[-_ ]?(m)(?:illi)?s(?:ec\w*)?|[-_ ]?s(?:ec\w*)?)?"
    r"[\"']?[:=]\s*\"?(\d{1,9})(?![\d.a-z])"
)
_IN_CHINESE = regex(r"(\d{1,9}) ?(秒|分|小时|天)[钟之以]*后")  # of Chinese gateways: "in 30 seconds"
_RESETS_IN_CHINESE = regex(r"\s?(重置|恢复|后)")  # behind a time: "is reset"
_CHINESE = {"秒": "s", "分": "m", "小时": "h", "天": "d"}
_NAMES_WAIT = regex(
    r"retry(after|in|delay|at)|resets?(at|in|after|on|delay|time|timestamp)?(s|seconds|ms)?$"
    r"|wait(time)?(s|seconds|ms)?$|estimatedtime"
)
_LIMIT_LEFT = regex(r"\b(?:r|remaining)=(\d+).*\b(?:t|reset)=(\d+)")  # of the header `RateLimit` of IETF's drafts
_DEEPEST = 6
_EPOCH = 10**9  # seconds since 1970; a smaller number is a duration


def asked_wait(headers: Mapping[str, str], body: Any, words: str, now: float) -> float | None:
    """Return the seconds to wait that a reply asks for, None if it names none. `now` is the time since 1970.

    In this order: retry-after in milliseconds, retry-after, members of the body (Google's RetryInfo), the headers of
    a limit that is used up, the API's words.
    """
    sent = _time(headers.get("date", ""))
    asked = [name for name in headers if "retry-after" in name]
    for name in sorted(asked, key=lambda name: (not name.endswith("ms"), len(name))):
        wait = _named_wait(name, headers[name], now if sent is None else sent)
        if wait is not None:
            return wait
    waits = [*_members(body, now), *_resets(headers, now)]
    return next(iter(waits), None) or _wait_in(words, now)


def _members(value: Any, now: float, depth: int = 0) -> Iterator[float]:
    """Yield the waits that members of a body name, at any depth; some hold the headers of another reply."""
    if depth > _DEEPEST:
        return
    for part in value if isinstance(value, list) else []:
        yield from _members(part, now, depth + 1)
    if not isinstance(value, dict):
        return
    parts = {str(name).lower(): part for name, part in value.items()}
    for name, part in parts.items():
        left = _number(str(parts.get(name.replace("reset", "remaining"), ""))) if "reset" in name else None
        wait = _named_wait(name, part, now) if _NAMES_WAIT.search(_plain(name)) and not left else None
        if wait is not None:
            yield wait
        yield from _members(opened(part), now, depth + 1)
    if isinstance(held := parts.get("headers"), dict):
        yield from _resets({str(name).lower(): str(text) for name, text in held.items()}, now)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _named_wait(name: str, value: Any, now: float) -> float | None:
    """Return the wait that a header or a member of a body holds, in the unit of its name."""
    if isinstance(value, dict):  # a protobuf's Duration
        has_seconds = has_count(value, "seconds")
        value = f"{count_of(value, 'seconds')}.{count_of(value, 'nanos'):09}s" if has_seconds else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip(" \"'")
    if _plain(name).endswith(("ms", "milliseconds")) and (number := _number(text)) is not None:
        return _wait(f"{number:f}ms", now)
    waits = [_wait(part, now) for part in (text, *text.split(","))]  # a header that was sent twice
    return next((wait for wait in waits if wait is not None), None)


def _resets(headers: Mapping[str, str], now: float) -> Iterator[float]:
    """Yield the longest wait until a limit begins anew that is used up."""
    waits = []
    for name, text in headers.items():
        plain = name.replace("-", "")
        if plain == "ratelimit":
            waits += [_wait(reset, now) for left, reset in _LIMIT_LEFT.findall(text) if not int(left)]
        elif "ratelimit" in plain and "reset" in name:
            left = _number(headers.get(name.replace("-after", "").replace("reset", "remaining"), ""))
            waits += [] if left else [_wait(text, now)]
    if known := [wait for wait in waits if wait is not None]:
        yield max(known)


def _wait(text: str, now: float) -> float | None:
    """Return the seconds of a number, a duration (`6m0s`), a date, or a time since 1970 in (milli)seconds."""
    number = _number(text)
    if number is not None and number < _EPOCH:
        return number
    if re.fullmatch(rf"\s*(?:{_DURATION})\s*", text, re.ASCII | re.IGNORECASE):
        return _seconds(text)
    at = _time(text)
    return None if at is None else max(0.0, at - now)


def _wait_in(words: str, now: float) -> float | None:
    """Return the wait that a message names, such as `try again in 40m19s` or `resets at 2026-11-28 12:00 UTC`."""
    if found := _AS_MEMBER.search(words):
        return float(found[2]) * _SECONDS["ms" if found[1] else "s"]
    if found := _IN_CHINESE.search(words):
        return float(found[1]) * _SECONDS[_CHINESE[found[2]]]
    for found in _IN_WORDS.finditer(words):
        before = words[max(0, found.start() - 60) : found.start() + 5]
        if _ASKS.search(before) or _RESETS_IN_CHINESE.match(words, found.end()):
            return _wait(found["duration"] or found["time"], now)
    return None


def _seconds(duration: str) -> float:
    if clock := re.fullmatch(_CLOCK, duration.strip()):
        days, *rest = (float(digits or 0) for digits in clock.groups())
        return days * _SECONDS["d"] + sum(part * size for part, size in zip(rest, (3600, 60, 1), strict=True))
    parts = re.findall(f"(?i){_PART}", duration)
    return sum((float(many) if many[0].isdigit() else 1.0) * _factor(unit.lower()) for many, unit in parts)


def _factor(unit: str) -> float:
    return _SECONDS["ms" if unit == "ms" or unit.startswith("milli") else unit[0]]


def _time(text: str) -> float | None:
    """Return the time since 1970 of a date of HTTP or RFC 3339, or of a large number; without a zone it is UTC's."""
    from email.utils import parsedate_to_datetime  # takes 10 ms, and few calls need it

    if (number := _number(text)) is not None:
        since = number / 1000 if number > _EPOCH * 100 else number
        return since if since >= _EPOCH else None
    text = re.sub(r"^([\d-]+) at (?=\d)", r"\1 ", text.strip())
    iso = re.sub(r"(?<=\d) ?(UTC|GMT)$", "Z", text)
    for parse, form in ((datetime.fromisoformat, iso), (parsedate_to_datetime, text)):
        try:
            at = parse(form)
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\+?\d{1,15}(\.\d{0,12})?\s*", text, re.ASCII) else None
