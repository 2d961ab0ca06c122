"""Gates: whether a text may have what a pattern finds, told in a tenth of the time that Python's expressions take."""

import functools
import re
from collections.abc import Iterable, Iterator

from code_commit.regex import fast_pattern

_WORTH = 500_000
"""Characters at gates after which Rust's engine is worth its import, which takes 34 ms: a small answer does without."""
_PIECE = 1_000
_LOOSER = (
    (r"\b", ""),
    (r"\s", r"[\s\x1c-\x1f]"),
    (r"\d", "[0-9[:^ascii:]]"),
    (r"\w", "[0-9A-Za-z_[:^ascii:]]"),
)
"""Classes of Python's expressions, and what has all of their characters in Rust's."""


class _Engine:
    """Counts the characters at gates."""

    seen = 0


def may_have(pattern: str, text: str) -> bool:
    """Tell whether a text may have a pattern of Python's, in which no negated class has the letters of all scripts.

    There are more such texts than those that have it, and while they are few and short, all are.
    """
    _Engine.seen += len(text)
    return _Engine.seen < _WORTH or fast_pattern(_looser(pattern))(text)


def find_all(pattern: re.Pattern[str], text: str, needed: str = "") -> Iterable[re.Match[str]]:
    """Return what a pattern finds; each has a piece that matches the `needed` one, or the pattern itself."""
    return pattern.finditer(text) if may_have(needed or pattern.pattern, text) else ()


@functools.cache
def _looser(pattern: str) -> str:
    return functools.reduce(lambda changed, pair: changed.replace(*pair), _LOOSER, pattern)


def pieces_of(text: str) -> Iterator[str]:
    """Yield the text in pieces of a few lines, each with its last line's end."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _PIECE) + 1 or len(text)
        yield text[start:end]
        start = end
