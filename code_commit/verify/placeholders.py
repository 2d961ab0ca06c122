"""Placeholders that stand for code which the response left out. Rule `placeholder`.

A line counts when the whole of it is one: a comment, or dots on both sides, around words such as "rest of the file
unchanged". Ordinary ellipses do not: Python's `...`, spread and variadic arguments, prose, strings.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from code_commit.verify.changed_part import find_changed_part

_LONGEST_LINE = 160
"""Longer lines are no placeholders."""

_Kind = Literal["rest", "rest of all", "rest and state", "state"]

_HINTS = (
    "...", "\u2026", "rest of", "remain", "existing", "unchanged", "omitted", "same as", "no change", "snip", "elided",
    "truncated", "unmodified", "as is", "as-is", "not shown", "previous ", "untouched", "stays", "the same", "other ",
)  # fmt: skip

_PROSE = (".md", ".markdown", ".txt", ".rst", ".adoc", ".org", ".tex")
"""In these files a line of words may speak of the rest of something: dots must stand on both sides."""

_COMMENT = r"//+!?|#+|--+|/\*+|<!--|\{/\*|;+|%+|\(\*|rem\b|\"\"\""
_COMMENT_END = r"(?:\*+/\}?|-->|\*\)|\"\"\"| --+| #+)$"
_BRACKETS = {"(": ")", "[": "]", "<": ">"}


@dataclass(frozen=True, slots=True)
class _Wrapping:
    """What stands around the words of a line."""

    comment: str
    dots_before: bool
    dots_after: bool
    bracket: bool


def find_placeholder(path: str, new: str, old: str | None) -> tuple[int, str] | None:
    """Return the first placeholder that the old content (None: a new file) did not have: line from 0, and its text."""
    if old is None:
        return next(_placeholders(path, new, is_new=True, shorter=False), None)
    part = find_changed_part(new, old)
    found = _placeholders(path, part.new, is_new=False, shorter=len(new) < len(old))
    first = next(found, None)
    if first is None:
        return None
    had = Counter(line for _, line in _placeholders(path, part.old, is_new=False, shorter=True))
    for number, line in (first, *found):
        if had[line] == 0:
            return new.count("\n", 0, part.start) + number, line
        had[line] -= 1
    return None


def _placeholders(path: str, text: str, *, is_new: bool, shorter: bool) -> Iterator[tuple[int, str]]:
    lowered = text.lower()
    is_prose = path.lower().endswith(_PROSE)
    number, counted_to = 0, 0
    for start, line in _candidates(lowered):
        if _is_placeholder(line, is_prose=is_prose, is_new=is_new, shorter=shorter):
            number += lowered.count("\n", counted_to, start)
            counted_to = start
            yield number, line.strip()


@lru_cache(maxsize=256)
def _is_placeholder(line: str, *, is_prose: bool, is_new: bool, shorter: bool) -> bool:
    words, wrapping = _unwrap(" ".join(line.split()))
    if is_prose:
        return _is_placeholder_in_prose(words, wrapping)
    if _is_unmistakable(words, wrapping):
        return True
    return not is_new and (_is_likely(words, wrapping) or (shorter and _is_bare(words, wrapping)))


def _candidates(lowered: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold one of the hints, with their position, at the speed of `str.find` over the rest."""
    ends: dict[int, int] = {}
    for hint in _HINTS:
        position = lowered.find(hint)
        while position >= 0:
            start = lowered.rfind("\n", 0, position) + 1
            end = lowered.find("\n", position)
            end = len(lowered) if end < 0 else end
            if end - start <= _LONGEST_LINE:
                ends[start] = end
            position = lowered.find(hint, end)
    for start in sorted(ends):
        yield start, lowered[start : ends[start]]


def _unwrap(line: str) -> tuple[str, _Wrapping]:
    """Take comment marks, dots and brackets off the words of a line."""
    line = line.replace("\u2026", "...").replace("[...]", "...")
    opening = re.match(_COMMENT, line)
    comment = opening[0] if opening else ""
    words = line[len(comment) :]
    words = re.sub(_COMMENT_END, "", words).strip() if comment else words.removeprefix("* ")
    before = after = bracket = False
    while True:
        if words.startswith("...") and not before:
            before, words = True, words.lstrip(". ")
        elif words.endswith("...") and not after:
            after, words = True, words.rstrip(". ")
        elif not bracket and words[:1] in _BRACKETS and words.endswith(_BRACKETS[words[0]]):
            bracket, words = True, words[1:-1].strip()
        else:
            return words.rstrip(".:"), _Wrapping(comment, before, after, bracket)


def _is_unmistakable(words: str, around: _Wrapping) -> bool:
    if not words or not (around.dots_before or around.dots_after or around.bracket):
        return False
    kind = _kind(words)
    if kind is None:
        return False
    if around.dots_before and around.dots_after:
        return True
    if around.comment and (around.dots_before or (around.dots_after and kind != "state")):
        return True
    return around.bracket and not around.comment and kind == "rest and state"


def _is_likely(words: str, around: _Wrapping) -> bool:
    if not words or not around.comment:
        return False
    kind = _kind(words)
    return kind is not None and (kind != "rest" or around.bracket)


def _is_bare(words: str, around: _Wrapping) -> bool:
    return not words and bool(around.comment) and around.dots_before


def _is_placeholder_in_prose(words: str, around: _Wrapping) -> bool:
    is_wrapped = around.comment == "<!--" or around.bracket or (around.dots_before and around.dots_after)
    kind = _kind(words) if words and is_wrapped else None
    if kind is None or (around.dots_before and around.dots_after):
        return kind is not None
    return kind == "rest and state" or (around.comment == "<!--" and kind != "state")


def _kind(words: str) -> _Kind | None:
    match = _phrases().fullmatch(words)
    if match is None:
        return None
    if match["bare"]:
        return "state"
    if match["state"]:
        return "rest and state"
    return "rest of all" if match["all"] else "rest"


@cache
def _phrases() -> re.Pattern[str]:
    """Compiled when a line asks for it: most responses have none, and it takes milliseconds."""
    thing = (
        r"(?:codes?|code ?base|files?|contents?|implementations?|methods?|functions?|imports?|class(?:es)?|logic"
        r"|bod(?:y|ies)|lines?|sections?|fields?|propert(?:y|ies)|props|tests?|test cases|config(?:uration)?|set-?up"
        r"|definitions?|declarations?|routes?|handlers?|styles?|rules?|entries|items?|cases?|variants?|options?|text"
        r"|documents?|modules?|scripts?|components?|markup|html|jsx|css|types?|constants?|variables?|state|dependencies"
        r"|steps?|jobs?|arms|helpers?|statements?|structs?|enums?|members?|parts?|stuff|fixtures?|tables?|schemas?"
        r"|models?|views?|templates?|exports?)"
    )
    whole = r"(?:code|file|class|function|method|implementation|component|module|imports|tests|contents?|script|page)"
    word = r" [\w.'/-]+"
    rest = rf"(?:rest|remainder)(?: of(?: (?:the|this|your|my))?(?:{word}){{1,3}}?)?"
    rest_of_all = rf"(?P<all>rest of (?:the |your )?(?:[\w.'/-]+ )?{whole})"
    others = (
        rf"(?:remaining|existing|previous|prior|original|other|unchanged|unmodified|same)(?:{word}){{0,3}}? {thing}"
    )
    state = (
        r",? ?\(?(?:is |are |will |should |to )?(?:be |remains? |stays? |kept |left |goes |go |continues? )?"
        r"(?:exactly )?(?:the )?(?:same(?: as (?:before|above|in the original|original))?|unchanged|unmodified"
        r"|untouched|omitted|as[- ]is|as before|here|not shown|elided|truncated|snipped|unaltered|intact)"
        r"(?: for (?:brevity|clarity|space))?(?: here)?\)?"
    )
    bare = (
        r"(?:code |content |lines )?(?:unchanged|omitted|truncated|elided|snipped)(?: code| content| lines)?"
        r"(?: for (?:brevity|clarity))?|snip|no changes?(?: here)?|same as (?:before|original)"
    )
    lead = r"(?:and |keep |include |insert )?(?:all )?(?:of )?(?:the |your )?"
    return re.compile(rf"{lead}(?:{rest_of_all}|{rest}|{others})(?P<state>{state})?|(?P<bare>{bare})")
