"""Placeholders that stand for code which the response left out. Rule `placeholder`.

A line counts when the whole of it is one: a comment, or dots on both sides, around words such as "rest of the file
unchanged". Ordinary ellipses do not: Python's `...`, spread and variadic arguments, prose, strings.
"""

import re
from collections import Counter
from collections.abc import Iterator

_LONGEST_LINE = 160
"""Longer lines are no placeholders. The longest one met in the wild has 96 characters."""

_DOTS = r"(?:\.{3,}|\u2026|\[\.{3}\]|\[\u2026\])"
_OPEN = r"(?://+!?|#+|--+|/\*+|<!--|\{/\*|;+|%+|\(\*|rem\b|'|\"\"\"|=begin)"
_CLOSE = r"(?:\*+/\}?|-->|\*\)|\"\"\"|--+|#+)?"

_THING = (
    r"(?:codes?|code ?base|files?|contents?|implementations?|methods?|functions?|imports?|class(?:es)?|logic"
    r"|bod(?:y|ies)|lines?|sections?|fields?|propert(?:y|ies)|props|tests?|test cases|config(?:uration)?|set-?up"
    r"|definitions?|declarations?|routes?|handlers?|styles?|rules?|entries|items?|cases?|variants?|options?|text|documents?|modules?"
    r"|scripts?|components?|markup|html|jsx|css|types?|constants?|variables?|state|dependencies|steps?|jobs?|arms|helpers?"
    r"|statements?|structs?|enums?|members?|parts?|stuff|fixtures?|tables?|schemas?|models?|views?|templates?|exports?)"
)
_WHOLE = r"(?:code|file|class|function|method|implementation|component|module|imports|tests|contents?|script|page)"
_ELIDED = (
    r"(?:(?:and |keep |include |insert |your |all )*(?:the |your |all |all of the |of )*"
    r"(?:(?:rest|remainder)(?: of(?: (?:the|this|your|my))?(?: [\w.'/-]+){1,3}?)?"
    rf"|(?:remaining|existing|previous|prior|original|other|unchanged|unmodified|same)(?: [\w.'/-]+){{0,3}}? {_THING}))"
)
_STATE = (
    r"(?:,? ?\(?(?:is |are |will |should |to )?(?:be |remains? |stays? |kept |left |goes |go |continues? )?"
    r"(?:exactly )?(?:the )?(?:same(?: as (?:before|above|in the original|original))?|unchanged|unmodified"
    r"|untouched|omitted|as(?:-| )is|as before|here|not shown|elided|truncated|snipped|unaltered|intact)"
    r"(?: for (?:brevity|clarity|space))?(?: here)?\)?)"
)
_BARE = (
    r"(?:\(?(?:(?:code |content |lines )?(?:unchanged|omitted|truncated|elided|snipped)(?: code| content| lines)?"
    r"(?: for (?:brevity|clarity))?|snip|no changes?(?: here)?|same as (?:before|original))\)?)"
)
_END = r"[.:]?"

_UNMISTAKABLE = re.compile(
    rf"{_OPEN}? ?(?:"
    rf"{_DOTS} ?[(\[]?(?:{_ELIDED}{_STATE}?|{_BARE})[)\]]?{_END} ?{_DOTS}"
    rf"|(?<=[^\s\w.] )(?<![.] )(?:{_DOTS} ?[(\[]?(?:{_ELIDED}{_STATE}?|{_BARE})[)\]]?{_END}"
    rf"|[(\[]?{_ELIDED}{_STATE}?[)\]]? ?{_DOTS})"
    rf") ?{_CLOSE}"
    rf"|{_OPEN} ?{_DOTS} ?[(\[]?(?:{_ELIDED}{_STATE}?|{_BARE})[)\]]?{_END} ?{_DOTS}? ?{_CLOSE}"
    rf"|{_OPEN} ?[(\[]?{_ELIDED}{_STATE}?[)\]]? ?{_DOTS} ?{_CLOSE}"
    rf"|[(\[<] ?{_DOTS}? ?{_ELIDED}{_STATE} ?{_DOTS}? ?[)\]>]"
)
_LIKELY = re.compile(
    rf"{_OPEN} ?(?:\((?:{_ELIDED}{_STATE}?|{_BARE})\)|\[(?:{_ELIDED}{_STATE}?|{_BARE})\]|{_ELIDED}{_STATE}"
    rf"|(?:the )?rest of (?:the |your )?(?:[\w.'/-]+ )?{_WHOLE}|{_BARE}){_END} ?{_CLOSE}"
)
_BARE_DOTS = re.compile(rf"(?://|#|--|;|/\*|<!--|\{{/\*) ?{_DOTS} ?(?:\*/\}}?|-->)?")

_HINTS = (
    *(
        "...",
        "\u2026",
        "rest of",
        "remain",
        "existing",
        "unchanged",
        "omitted",
        "same as",
        "no change",
        "snip",
        "elided",
    ),
    *(
        "truncated",
        "unmodified",
        "as is",
        "as-is",
        "not shown",
        "previous ",
        "untouched",
        "stays",
        "the same",
        "other ",
    ),
)

_PROSE = (".md", ".markdown", ".txt", ".rst", ".adoc", ".org", ".tex")
"""In these files a line of words may speak of the rest of something: dots must stand on both sides."""

_PROSE_PLACEHOLDER = re.compile(
    rf"(?:{_OPEN} ?)?{_DOTS} ?[(\[]?(?:{_ELIDED}{_STATE}?|{_BARE})[)\]]?{_END} ?{_DOTS} ?{_CLOSE}"
    rf"|[(\[<] ?{_DOTS}? ?{_ELIDED}{_STATE} ?{_DOTS}? ?[)\]>]"
    rf"|<!-- ?{_DOTS}? ?{_ELIDED}{_STATE}? ?{_DOTS}? ?-->"
)


def find_placeholder(path: str, new: str, old: str | None) -> tuple[int, str] | None:
    """Return the first placeholder that the old content (None: a new file) did not have: line from 0, and its text."""
    shorter = old is not None and len(new) < len(old)
    had = Counter(line for _, line in _placeholders(path, old, is_new=False, shorter=True)) if old else Counter()
    for number, line in _placeholders(path, new, is_new=old is None, shorter=shorter):
        if had[line] == 0:
            return number, line
        had[line] -= 1
    return None


def _placeholders(path: str, text: str, *, is_new: bool, shorter: bool) -> Iterator[tuple[int, str]]:
    lowered = text.lower()
    is_prose = path.lower().endswith(_PROSE)
    patterns = [_PROSE_PLACEHOLDER] if is_prose else [_UNMISTAKABLE]
    if not is_new and not is_prose:
        patterns += [_LIKELY, _BARE_DOTS] if shorter else [_LIKELY]
    counted, counted_to = 0, 0
    for start, line in _candidates(lowered):
        words = re.sub(r"[\s*]+(?=\*/)|\s+", " ", line.strip())
        if any(pattern.fullmatch(words) for pattern in patterns):
            counted += lowered.count("\n", counted_to, start)
            counted_to = start
            yield counted, words


def _candidates(lowered: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold one of the hints, with their position, at the speed of `str.find` over the rest."""
    starts: dict[int, int] = {}
    for hint in _HINTS:
        position = lowered.find(hint)
        while position >= 0:
            start = lowered.rfind("\n", 0, position) + 1
            end = lowered.find("\n", position)
            end = len(lowered) if end < 0 else end
            if end - start <= _LONGEST_LINE:
                starts[start] = end
            position = lowered.find(hint, end)
    for start in sorted(starts):
        yield start, lowered[start : starts[start]]
