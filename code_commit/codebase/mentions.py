"""The mentions: lines that hold names of the query, for the choice of files and beside the chosen ones; there also
lines that hold names of the choice.

Definitions whose names hold two words of the query come first, then single names. For a name there is one line of each
source file, then of tests; documents come last.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import NamedTuple

from code_commit.codebase.near import is_document, is_test
from code_commit.codebase.text import Section
from code_commit.regex import regex
from code_commit.runs.words import count, listed

_KEYWORD = (
    r"\b(?:class|const|def|enum|fn|func|function|interface|macro_rules!|module|object|protocol|record|static|struct|trait"
    r"|type|val|var)"
)
BEFORE_NAME = rf"{_KEYWORD}[ \t]+(?:\([^)\n]{{0,99}}\)[ \t]*)?(?:self\.)?"
_OF_ANOTHER = regex(r"\w+(?:::\w|[ \t]*[&*]+[ \t]*\w)")  # `const name::other`, `const name& other`
_BEGINS_DEFINITION = regex(rf"{BEFORE_NAME}\Z")
_ENDS_BEFORE_NAME, _LONGEST_BEGINNING = " \t.)", 120
_HEAD_WITHOUT_WORD = regex(  # of a function, which no sign ends that ends a statement
    r"(?!(?:return|else|throw|case|goto|new)\b)(?:[A-Za-z_][\w:<>,*&\[\]]*[ \t*&]+)+\Z"
)
_ROOM, _LONGEST, _LINES_OF_ONE = 4_000, 120, 8  # characters of all, and of a line; lines of a name
_MANY_LINES, _TOO_MANY_LINES = 20, 100  # a name on more lines tells nothing, but where it is defined; is not looked for
_FILES_OF_ONE = 5  # whose lines are numbered
_MANY_DEFINITIONS = 2  # files: a name on many lines that more define tells nothing either
_MOST_OF_TWO_WORDS, _LEAST_OF_TEXT = 12, 4  # lines; letters of a word that is looked for within a longer one
_USED = regex(r"(?:\.|\bimport )([A-Za-z_]\w{3,})")
_OWN = regex(rf"{_KEYWORD}[ \t]+(\w+)")
_PIECES = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FEW_NAMES, _MOST_USED = 40, 12
_MOST_CHOSEN, _MOST_FILES = 20, 5_000  # names whose uses are looked for, and in how many files
_IS_WORD = 5  # letters


_ALIKE = "definitions that share two words with the query:\n"


class Mention(NamedTuple):
    """A line that holds a name: its place among those of the file, the file, its number, and the line to show."""

    defines: bool
    place: int
    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Mentions:
    """The lines that hold each name of a query, and its words.

    `plain` names are words; `alike` are definitions, by the words that their names share with the query; `missing` are
    names that tests of the build use and no other file holds, by test.
    """

    words: Sequence[str] = ()
    lines: Mapping[str, Sequence[Mention]] = field(default_factory=dict)
    plain: Collection[str] = ()
    alike: Mapping[frozenset[str], Sequence[Mention]] = field(default_factory=dict)
    missing: Mapping[str, Collection[str]] = field(default_factory=dict)

    def telling(self) -> Iterator[Sequence[Mention]]:
        return (lines for lines in self.lines.values() if len(lines) <= _MANY_LINES)


class SharedWords:
    """The words of a query, of which names may hold two."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)
        self._known: dict[str, frozenset[str]] = {}

    @property
    def pattern(self) -> str:
        """A pattern of lower-case text that has two of the words in one name."""
        either = "|".join(map(re.escape, sorted(self.words, key=len, reverse=True)))
        return rf"(?:{either})\w*(?:{either})"

    def of(self, name: str) -> frozenset[str]:
        """Return the words that a name holds: its pieces begin with them, or the name has a long one anywhere."""
        if (known := self._known.get(name)) is None:
            pieces, lower = [piece.lower() for piece in _PIECES.findall(name)], name.lower()
            held = [
                word
                for word in self.words
                if any(piece.startswith(word) for piece in pieces) or (len(word) > _LEAST_OF_TEXT and word in lower)
            ]
            known = frozenset(word for word in held if not any(word in other and word != other for other in held))
            self._known[name] = known
        return known


class UsedNames:
    """The names that tests use and no other file turns out to hold, by test; the tests are read first."""

    def __init__(self, tests: Collection[str]) -> None:
        self.tests = tests
        self.missing: dict[str, set[str]] = {}

    def read(self, file: Section) -> None:
        if file.name in self.tests:
            self.missing[file.name] = set(_USED.findall(file.text)) - set(_OWN.findall(file.text))
        elif names := set().union(*self.missing.values()):
            text = file.text
            words = set(re.findall(r"\w+", text)) if len(names) > _FEW_NAMES else text
            held = {name for name in names if name in words}
            self.missing = {test: used - held for test, used in self.missing.items()}


class LinesOfNames:
    """The lines that hold names, as files are read, and the definitions whose names share two words with the query."""

    def __init__(self, shared: SharedWords) -> None:
        self.lines = defaultdict[str, list[Mention]](list)
        self.alike = defaultdict[frozenset[str], list[Mention]](list)
        self._shared = shared
        self._end_of_name = re.compile(rf"{shared.pattern}\w*") if len(shared.words) > 1 else None

    def note(self, name: str, file: Section, text: str, places: Iterable[int], *, is_defined_here: bool) -> None:
        """Note the lines of a file that hold a name, at these places of its text."""
        lines, counted = self.lines[name], _Counted(file, text)
        for place, at in enumerate(places):
            if len(lines) > _TOO_MANY_LINES and not is_defined_here:
                return
            if (defines := is_definition(text, at)) or len(lines) <= _TOO_MANY_LINES:
                lines.append(counted.mention(at, place, defines=defines))

    def note_alike(self, file: Section, text: str, lower: str, known: Collection[str]) -> None:
        """Note the definitions of a file whose names share two words with the query, without `known` ones."""
        counted, place = _Counted(file, text), 0
        for match in self._end_of_name.finditer(lower) if self._end_of_name else ():
            at = match.start()  # a pattern of the whole name would try each letter
            while at and (lower[at - 1].isalnum() or lower[at - 1] == "_"):
                at -= 1
            name = text[at : match.end()]
            words = self._shared.of(name)
            is_new = name not in known and len(words) > 1 and len(self.alike.get(words, ())) <= _TOO_MANY_LINES
            if is_new and begins_definition(text, at):
                self.alike[words].append(counted.mention(at, place, defines=True))
                place += 1


def find_uses(names: Iterable[str], files: Iterable[Section], seen: Collection[str]) -> Mentions:
    """Return the lines that hold each of a few names in files that are not `seen`, of the first names and files."""
    last = (re.split(r"\W+", name)[-1] for name in names)
    patterns = {name: re.compile(rf"{name}\b") for name in dict.fromkeys(last) if len(name) >= _LEAST_OF_TEXT}
    patterns, lines = dict(islice(patterns.items(), _MOST_CHOSEN)), LinesOfNames(SharedWords(()))
    for file in islice(files if patterns else (), _MOST_FILES):
        if file.name not in seen and not is_document(file.name):
            text = file.text
            for name, pattern in patterns.items():
                lines.note(name, file, text, places_of(text, pattern), is_defined_here=False)
    return Mentions(lines={name: found for name, found in lines.lines.items() if 0 < len(found) <= _MANY_LINES})


class _Counted:
    """The lines of a text, numbered as they are asked for from the first to the last."""

    def __init__(self, file: Section, text: str) -> None:
        self.path, self.text, self.line, self.at = file.name, text, 0, 0

    def mention(self, at: int, place: int, *, defines: bool) -> Mention:
        self.line, self.at = self.line + self.text.count("\n", self.at, at), at
        end = self.text.find("\n", at)
        whole = self.text[self.text.rfind("\n", 0, at) + 1 : end if end >= 0 else None].strip()
        cut = f"{whole[:_LONGEST]} ..." if len(whole) > _LONGEST else whole
        return Mention(defines, place, self.path, self.line, f"{self.path}:{self.line}:{cut}\n")


def places_of(text: str, pattern: re.Pattern[str], *, within_words: bool = False) -> Iterator[int]:
    """Yield where a name stands in a section's text, once a line."""
    start = text.find("\n") + 1
    while match := pattern.search(text, start):
        start = match.end()
        if within_words or not (text[match.start() - 1].isalnum() or text[match.start() - 1] == "_"):
            yield match.start()
            start = text.find("\n", start)
            if start < 0:
                return


def begins_piece(text: str, name: int) -> bool:
    """Tell whether a piece of a name begins at this place: `array` does in `anArray`, not in `subarray`."""
    return not text[name - 1 : name].isalnum() or (text[name].isupper() and text[name - 1].islower())


def is_definition(text: str, name: int) -> bool:
    """Tell whether a word that defines stands before the name at this place, and it is no scope or type of another."""
    if text[name - 1 : name] not in _ENDS_BEFORE_NAME or _OF_ANOTHER.match(text, name):
        return False
    start = max(name - _LONGEST_BEGINNING, 0)
    return _BEGINS_DEFINITION.search(text, max(start, text.rfind("\n", start, name)), name) is not None


def begins_definition(text: str, name: int) -> bool:
    """Tell whether the name at this place looks defined there: after such a word, or as a function of C is."""
    if is_definition(text, name):
        return True
    start = text.rfind("\n", 0, name) + 1
    if name - start > _LONGEST_BEGINNING or not _HEAD_WITHOUT_WORD.match(text, start, name):
        return False
    end = text.find("\n", name)
    line = text[name : end if end >= 0 else None]
    return re.match(r"\w+[ \t]*\([^;=]*$", line) is not None


def show_mentions(mentions: Mentions, seen: Collection[str] = (), *, again: bool = False) -> str:
    """Return the lines that hold the query's names, without those of files that are `seen`, in a limited room.

    Definitions that share two words with the query come first, if the names leave room for them, then rare names. A
    name on many lines has only those that define it, unless these are many too; if nothing defines it, the numbers of
    its lines. A plain word on many lines has none. Names that tests lack have to share a word with the query. Lines
    that a choice has seen are shown `again` in short: single lines of names, in half of the room.
    """
    long = [word for word in mentions.words if len(word) >= _IS_WORD]
    told = ""
    for test, missing in mentions.missing.items():
        names = sorted(name for name in missing if any(word in name.lower() for word in long))
        told += f"used in {test}, in no other file: {listed(names, _MOST_USED)}\n" if names else ""
    alike = [] if again else _most_alike(mentions, seen)
    found = [*_about_names(mentions, seen, {line.text for line in alike}, numbered=not again)]
    short, room = set[str](), _ROOM // (2 if again else 1) - len(told)
    for text in sorted((text for _, text in found), key=len):
        short.update([text] if (room := room - len(text)) >= 0 else ())
    named = "".join(text for _, text in sorted(found) if text in short)
    sizes = accumulate((len(line.text) for line in alike), initial=len(told + named + _ALIKE))
    defined = "".join(line.text for line, size in zip(alike, islice(sizes, 1, None), strict=True) if size <= _ROOM)
    return told + (_ALIKE + defined if defined else "") + named


def _about_names(
    mentions: Mentions, seen: Collection[str], already: set[str], *, numbered: bool
) -> Iterator[tuple[int, str]]:
    """Yield what there is to tell of each name, after the number of its lines; `already` has lines that are told."""
    for name, lines in sorted(mentions.lines.items(), key=lambda item: (-len(item[0]), item[0])):
        fresh = [line for line in lines if line.path not in seen and line.text not in already]
        is_many, is_plain = len(lines) > _MANY_LINES, name in mentions.plain
        some = [line for line in fresh if line.defines] if is_many or is_plain else fresh
        is_told = not (is_many and (is_plain or len({line.path for line in some}) > _MANY_DEFINITIONS))
        if told := _in_order(some if is_told else ())[:_LINES_OF_ONE]:
            more = f", {len(told)} shown" if len(told) < len(lines) else ""
            text = "".join(line.text for line in told)
            already.update(line.text for line in told)
            yield len(lines), f"{name}: {count(len(lines), 'line')}{more}\n{text}"
        elif numbered and fresh and not is_plain and _MANY_LINES < len(lines) <= _TOO_MANY_LINES and not some:
            yield len(lines), f"{name}: {count(len(lines), 'line')}\n{_numbers(fresh)}"


def _numbers(lines: Iterable[Mention]) -> str:
    """Return the numbers of lines, those of the files that have most of them."""
    places = defaultdict[str, list[int]](list)
    for line in lines:
        places[line.path].append(line.line)
    most = sorted(places.items(), key=lambda place: -len(place[1]))[:_FILES_OF_ONE]
    return "".join(f"{path}: {', '.join(map(str, numbers[:_MANY_LINES]))}\n" for path, numbers in most)


def _in_order(lines: Iterable[Mention]) -> list[Mention]:
    """Return the best line of each source file, its definition or else its first, then of each test, then others."""
    seen, others = set[str](), list[tuple[int, bool, Mention]]()
    for line in sorted(lines, key=lambda line: (not line.defines, line.place)):
        is_more = line.path in seen
        seen.add(line.path)
        group = 3 if is_document(line.path) else 2 if is_more else int(is_test(line.path))
        others.append((group, not line.defines, line))
    return [line for *_, line in sorted(others, key=lambda each: each[:2])]


def _most_alike(mentions: Mentions, seen: Collection[str]) -> list[Mention]:
    """Return the definitions that share most words with the query, rare ones first; what many share tells nothing."""
    often = Counter[str]()
    for words, lines in mentions.alike.items():
        often.update(dict.fromkeys(words, len(lines)))
    found = [
        (-len(words), sum(often[word] for word in words), is_test(line.path), line.text, line)
        for words, lines in mentions.alike.items()
        if len(lines) <= _MANY_LINES
        for line in lines
        if line.path not in seen
    ]
    return [line for *_, line in sorted(found)[:_MOST_OF_TWO_WORDS]]
