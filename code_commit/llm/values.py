"""Foreign JSON, read without trust: a member that is missing or of another kind is empty."""

import codecs
import json
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

_MOST = 10**12  # no prompt has more tokens
_LONGEST_UNPACKED = 1 << 20  # in bytes, of a refusal
_LONGEST_REPLY = 10_000  # in characters, of one within another


def json_or_text(data: bytes) -> Any:
    """Return the parsed JSON, with null for NaN and infinite numbers, or the text if it is not JSON."""
    try:
        return json.loads(data, parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def opened(value: Any) -> Any:
    """Return the reply of another server that a string holds as JSON, else the value."""
    if not isinstance(value, str) or value.lstrip()[:1] != "{" or len(value) > _LONGEST_REPLY:
        return value
    inner = json_or_text(value.encode("utf-8", "replace"))
    return inner if isinstance(inner, dict) else value


def is_text(begin: bytes) -> bool:
    """Tell whether a body is text by its beginning, which of a compressed one has other bytes."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(begin)
    except UnicodeDecodeError:
        return False
    return re.search(r"[\x00-\x08\x0e-\x1f]", text) is None


def unpacked(pieces: Iterable[bytes]) -> bytes:
    """Return the beginning of a compressed body, b"" if it is neither gzip nor deflate."""
    import zlib

    packed = b"".join(pieces)
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        with suppress(zlib.error):
            return zlib.decompressobj(window).decompress(packed, _LONGEST_UNPACKED)
    return b""


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def member(value: object, *names: str) -> Any:
    """Return the member of parsed JSON at a path of names, None if it is missing."""
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text_of(value: object, *names: str) -> str:
    found = member(value, *names)
    return found if isinstance(found, str) else ""


def list_of(value: object, *names: str) -> list[Any]:
    found = member(value, *names)
    return found if isinstance(found, list) else []


def members_of(value: object, *names: str) -> dict[str, Any]:
    found = member(value, *names)
    return found if isinstance(found, dict) else {}


def count_of(value: object, *names: str) -> int:
    return _count(member(value, *names)) or 0


def has_count(value: object, *names: str) -> bool:
    """Tell whether the member is a plausible count."""
    return _count(member(value, *names)) is not None


def _count(value: object) -> int | None:
    """Return a count, also of a float or of digits in a string, as some servers write them; None if it is none."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,13}(\.\d{1,9})?", value, re.ASCII):
        value = float(value)
    if isinstance(value, float) and math.isfinite(value):
        value = math.ceil(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else None


def larger_counts(one: Any, other: Any) -> Any:
    """Return two reports of one usage as one: the larger of two counts, else the later value that is not null."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: larger_counts(one.get(name), other.get(name)) for name in (one | other)}
    if other is None:
        return one
    counts = (_count(one), _count(other))
    return one if None not in counts and counts[0] > counts[1] else other  # type: ignore[operator]
