"""Placeholders that stand for code which the response left out, told by their words. Rule `omission`, a suspicion.

A whole line has to be a placeholder: a comment, or dots on both sides, around words such as "rest of the file
unchanged"; in a file that shrinks also other words, and dots alone. Ordinary ellipses do not count: Python's `...`,
spread and variadic arguments, prose, strings.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from code_commit.changes import Edit
from code_commit.verify.parts import is_code

_LONGEST_LINE = 160  # longer lines are no placeholders
_MOST_LINES = 100_000  # with a hint that are checked: an LLM that leaves code out does so in its first thousand
_Kind = Literal["rest", "rest of all", "rest and state", "state"]

_HINTS = (
    *(
        "...",
        ". . .",
        "\u2026",
        "as before",
        "as is",
        "as-is",
        "brevity",
        "elided",
        "existing",
        "identical",
        "no change",
    ),
    *("no further", "not changed", "not modified", "not shown", "nothing", "omitted", "other ", "previous ", "remain"),
    *("rest of", "same as", "snip", "stays", "the same", "truncated", "unchanged", "unmodified", "untouched"),
)  # every placeholder has one

# their lines may speak of the rest of something: dots must stand on both sides
_PROSE = (".md", ".markdown", ".txt", ".rst", ".adoc", ".org", ".tex")
COMMENT = r"//+!?|#+|--\[\[|--+|/\*+|<!--|\{/\*|;+|%+|\(\*|@?rem\b|dnl\b|\"\"\"|'''|\{\{!(?:--)?|\{#|\{-|<%(?:#|--)"
_COMMENT_END = r"(?:\*+/\}?|(?:--)?\}\}|#\}|-\}|\]\]|-->|\*\)|\"\"\"|'''|--%>|%>| --+| #+)$"
_OTHER_COMMENTS = ((".vb", "'"), (".bas", "'"), (".vim", '"'), (".f90", "!"), (".rst", ".."))
_OF_DOCUMENTATION = ("///", "//!")
# in these a line of dots alone is no code, wherever it begins
_NO_DOTS = r"\.(?:[cm]?[jt]sx?|cs|go|java|json|kt|rs|s?css|swift)\Z"
_BRACKETS = {"(": ")", "[": "]", "<": ">", "{": "}"}

_SAID = (
    r"a|abbreviated|above|add|after|all|an?d?|any|as|at|be|before|below|bod(?:y|ies)|brevity|changed|changes|clarity"
    r"|class(?:es)?|code|collapsed|components?|contents?|continu(?:e|ed|es|ing)|copy|data|declarations?|definitions?"
    r"|details|else|end|etc|everything|existing|files?|follow(?:s|ing)?|for|from|functions?|further|goes|handlers?|here"
    r"|hidden|identical|implementations?|imports?|in|included?|insert|intact|is|its?|keep|kept|leave|left|lines?|logic|means"
    r"|methods?|modified|modules?|more|no|not|nothing|of|omitted|on|onwards|or|original|others?|page|parts?|paste|point"
    r"|preserved?|previous|prior|put|refer|remain(?:s|der|ing)?|removed|rest|retain|routes?|same|scope|script|sections?|see"
    r"|setup|shortened|should|shown|skipped|snip(?:ped)?|so|space|stays?|still|structure|styles?|tests?|text|than|that|the"
    r"|this|to|truncated|types?|unaltered|unchanged|unmodified|untouched|up|variables?|was|what|will|with|your"
)  # the words of a placeholder, numbers apart

_LEFT_OUT = (
    r"\b(?:un(?:altered|changed|modified|touched)|same|identical|intact|omitted|abbreviated|shortened|truncated|skipped"
    r"|collapsed|snip(?:ped)?|brevity|no (?:\w+ )?changes?|nothing (?:else )?changes|not (?:changed|modified|shown)"
    r"|as (?:before|above|is|it was|was))\b"
)


_CUT_OFF = r"\.\.\. ?[\[(<](?:[\w,]+ ){0,3}(?:truncated|omitted|elided|snipped)[^\])>]*[\])>]\Z"  # at the end of a line


class _File(NamedTuple):
    """The file of a line. `comment` matches the start of a comment, `bare_dots` a line of dots that is no code."""

    is_prose: bool
    is_new: bool
    shrinks: bool
    comment: str
    bare_dots: str


def find_placeholder(path: str, new: str, old: str | None, edits: Sequence[Edit] = ()) -> tuple[int, str] | None:
    """Return the first placeholder that the old content (None: a new file) did not have: its line from 0, its text.

    `edits` are all that the answer changes, () for a whole file.
    """
    name = path.lower()
    comment = next((mark for suffix, mark in _OTHER_COMMENTS if name.endswith(suffix)), COMMENT)
    bare_dots = r"\s*\.{3,4}" if re.search(_NO_DOTS, name) else r"\.{3,4}" if is_code(name) else r"(?!)"
    file = _File(name.endswith(_PROSE), old is None, old is not None and len(new) < len(old), comment, bare_dots)
    written = "\n".join(edit.replacement for edit in edits)  # it has a line that there are more of than before
    found = [] if edits and not any(_placeholders(written, file)) else list(_placeholders(new, file))
    if not found:
        return None
    texts = {line for _, line in found}
    had = Counter(line for line in map(str.strip, (old or "").lower().split("\n")) if line in texts)
    for number, line in found:
        if not had.get(line):
            return number, line
        had[line] -= 1
    return None


def _placeholders(text: str, file: _File) -> Iterator[tuple[int, str]]:
    lowered = text.lower()
    number, counted_to = 0, 0
    for start, line in islice(_candidates(lowered), _MOST_LINES):
        above = lowered[lowered.rfind("\n", 0, max(0, start - 1)) + 1 : start]
        is_continued = re.match(file.comment, above.lstrip()) is not None
        if _is_placeholder(line.rstrip(), file, is_continued=is_continued):
            number += lowered.count("\n", counted_to, start)
            counted_to = start
            yield number, line.strip()


def _candidates(lowered: str) -> Iterator[tuple[int, str]]:
    """Yield the first short lines that hold a hint, in order; one expression for all hints takes twice the time."""
    hints = filter(lowered.__contains__, _HINTS)
    found = dict(line for hint in hints for line in islice(_lines_with(hint, lowered), _MOST_LINES))
    return ((start, lowered[start:end]) for start, end in sorted(found.items()))


def _lines_with(hint: str, lowered: str) -> Iterator[tuple[int, int]]:
    place = lowered.find(hint)
    while place >= 0:
        start, end = lowered.rfind("\n", 0, place) + 1, lowered.find("\n", place)
        end = len(lowered) if end < 0 else end
        if end - start <= _LONGEST_LINE:
            yield start, end
        place = lowered.find(hint, end)


class _Line(NamedTuple):
    """The words of a line, and what was taken off them: the mark of a comment, dots on a side, brackets."""

    words: str
    comment: str
    is_example: bool
    dots_before: bool
    dots_after: bool
    bracket: str


@lru_cache(maxsize=256)
def _is_placeholder(text: str, file: _File, *, is_continued: bool) -> bool:
    """Tell whether a line is a placeholder; `is_continued`: the one before it is a comment too."""
    text = text.replace("\u2026", "...").replace("[...]", "...").replace(". . .", "...")
    if not file.is_prose and re.search(_CUT_OFF, text):
        return True
    line = _taken_apart(text.strip(), file.comment)
    if not line.words:
        is_comment = not file.is_prose and line.comment != "" and line.dots_before and not line.is_example
        return file.shrinks and (is_comment or re.fullmatch(file.bare_dots, text) is not None)
    is_enclosed = line.dots_before and line.dots_after
    if is_enclosed or (line.dots_before and line.comment and not file.is_prose):
        must_be_sure = (file.is_prose or file.is_new) if is_enclosed else not file.shrinks
        return _kind(line.words) is not None or _is_of_placeholders(line.words, must_be_sure=must_be_sure)
    if file.is_prose:
        return line.comment == "<!--" and _kind(line.words) not in (None, "state")
    if line.comment:
        return _is_likely(line, _kind(line.words), file, is_continued=is_continued)
    kind = _kind(line.words)
    is_word = kind == "state" and line.bracket in ("[", "<", "(", "{")
    is_likely = kind is not None and line.bracket in ("[", "<") and " " in line.words
    return (file.shrinks and (is_likely or is_word)) or kind == "rest and state"


def _is_likely(line: _Line, kind: _Kind | None, file: _File, *, is_continued: bool) -> bool:
    """Tell whether a comment without dots in front is a placeholder."""
    if kind is None:
        can_be = file.shrinks and not is_continued and " " in line.words
        return can_be and _is_of_placeholders(line.words, must_be_sure=True)
    if kind == "state" and line.comment in _OF_DOCUMENTATION:
        return False  # it may end a sentence
    return (line.dots_after and kind != "state") or (not file.is_new and (line.bracket != "" or kind != "rest"))


def _taken_apart(line: str, comment_mark: str) -> _Line:
    opening = re.match(comment_mark, line)
    comment = opening[0] if opening else ""
    words = line[len(comment) :]
    is_example = words.startswith("  ")  # as in code that is commented out
    words = re.sub(_COMMENT_END, "", words) if comment else words.removeprefix("* ")
    words = " ".join(words.split())
    dots_before, dots_after, bracket = False, False, ""
    while True:
        if words.startswith("...") and not dots_before:
            dots_before, words = True, words.lstrip(". ")
        elif words.endswith("...") and not dots_after:
            dots_after, words = True, words.rstrip(". ")
        elif words[:1] in _BRACKETS and words.endswith(_BRACKETS[words[0]]):
            bracket, words = words[0], words[1:-1].strip()
        else:
            return _Line(words.rstrip(".:"), comment, is_example, dots_before, dots_after, bracket)


def _is_of_placeholders(words: str, *, must_be_sure: bool) -> bool:
    """Tell whether all words are those of placeholders; with `must_be_sure` one must say that code was left out."""
    said = re.findall(r"[^\W\d]+", words) if re.fullmatch(r"[\w ,.:;()\[\]/&+'#-]+", words) else []
    can_be = said != [] and all(re.fullmatch(_SAID, word) for word in said)
    return can_be and (not must_be_sure or re.search(_LEFT_OUT, words) is not None)


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
    """Return the pattern, compiled on demand: most responses need none, and it takes milliseconds."""
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
