"""Placeholders that stand for code which the response left out. Rule `placeholder`.

A line counts when the whole of it is one: a comment, or dots on both sides, around words such as "rest of the file
unchanged". Ordinary ellipses do not: Python's `...`, spread and variadic arguments, prose, strings.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import islice
from typing import Literal

_LONGEST_LINE = 160
"""Longer lines are no placeholders."""

_MOST_LINES = 100_000
"""So many lines of a file are looked at that hold a hint: an LLM that leaves code out does so in its first thousand."""

_Kind = Literal["rest", "rest of all", "rest and state", "state"]

_HINT = re.compile(
    r"\.\.\.|\u2026|rest of|remain|existing|unchanged|omitted|same as|no change|snip|elided|truncated|unmodified"
    r"|as is|as-is|not shown|previous |untouched|stays|the same|other "
)
"""A line without one of these is no placeholder."""

_PROSE = (".md", ".markdown", ".txt", ".rst", ".adoc", ".org", ".tex")
"""In these files a line of words may speak of the rest of something: dots must stand on both sides."""

_COMMENT = r"//+!?|#+|--+|/\*+|<!--|\{/\*|;+|%+|\(\*|rem\b|\"\"\""
_COMMENT_END = r"(?:\*+/\}?|-->|\*\)|\"\"\"| --+| #+)$"
_BRACKETS = {"(": ")", "[": "]", "<": ">"}


def find_placeholder(path: str, new: str, old: str | None) -> tuple[int, str] | None:
    """Return the first placeholder that the old content (None: a new file) did not have: line from 0, and its text."""
    shrinks = old is not None and len(new) < len(old)
    found = list(_placeholders(path, new, is_new=old is None, shrinks=shrinks))
    had = Counter(line for _, line in _placeholders(path, old, is_new=False, shrinks=True)) if found and old else {}
    for number, line in found:
        if not had.get(line):
            return number, line
        had[line] -= 1
    return None


def _placeholders(path: str, text: str, *, is_new: bool, shrinks: bool) -> Iterator[tuple[int, str]]:
    lowered = text.lower()
    is_prose = path.lower().endswith(_PROSE)
    number, counted_to = 0, 0
    for start, line in islice(_candidates(lowered), _MOST_LINES):
        if _is_placeholder(line.strip(), is_prose=is_prose, is_new=is_new, shrinks=shrinks):
            number += lowered.count("\n", counted_to, start)
            counted_to = start
            yield number, line.strip()


def _candidates(lowered: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold a hint and are short enough, with their position."""
    end = 0
    while hint := _HINT.search(lowered, end):
        start = lowered.rfind("\n", 0, hint.start()) + 1
        end = lowered.find("\n", hint.end())
        end = len(lowered) if end < 0 else end
        if end - start <= _LONGEST_LINE:
            yield start, lowered[start:end]


@lru_cache(maxsize=256)
def _is_placeholder(line: str, *, is_prose: bool, is_new: bool, shrinks: bool) -> bool:
    """Take comment marks, dots and brackets off the words of a line, and judge by what was taken off."""
    line = line.replace("\u2026", "...").replace("[...]", "...")
    opening = re.match(_COMMENT, line)
    comment = opening[0] if opening else ""
    words = line[len(comment) :]
    is_example = words.startswith("  ")  # as in code that is commented out
    words = re.sub(_COMMENT_END, "", words) if comment else words.removeprefix("* ")
    words = " ".join(words.split())
    dots_before = dots_after = bracket = False
    while True:
        if words.startswith("...") and not dots_before:
            dots_before, words = True, words.lstrip(". ")
        elif words.endswith("...") and not dots_after:
            dots_after, words = True, words.rstrip(". ")
        elif not bracket and words[:1] in _BRACKETS and words.endswith(_BRACKETS[words[0]]):
            bracket, words = True, words[1:-1].strip()
        else:
            break
    if not words:
        return shrinks and not is_prose and comment != "" and dots_before and not is_example
    kind = _kind(words.rstrip(".:"))
    if kind is None or (dots_before and dots_after):
        return kind is not None
    if is_prose:
        return comment == "<!--" and kind != "state"
    if not comment:
        return bracket and kind == "rest and state"
    dots = dots_before or (dots_after and kind != "state")
    return dots or (not is_new and (bracket or kind != "rest"))


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
