"""The worth of each file to a task, by one reading of all files: words only rank here.

`WEIGHTS` says what each signal counts: files that the query names most, then those that define what it names, those of
its scope, the few that hold a rare word of its beginning, shared words (BM25), and the files that earlier commits
changed whose messages are like the query.
"""

import math
import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from code_commit.codebase.bundles import is_wrapped
from code_commit.codebase.defining import find_defining, may_be_defined
from code_commit.codebase.images import has_images
from code_commit.codebase.mentions import (
    BEFORE_NAME,
    LinesOfNames,
    Mentions,
    SharedWords,
    UsedNames,
    begins_piece,
    is_definition,
    places_of,
)
from code_commit.codebase.near import is_document
from code_commit.codebase.select import CONVENTIONS, Commit
from code_commit.codebase.task import (
    CODE,
    COMMON,
    NAMES_ALONE,
    NO_NAMES,
    beginning,
    identifiers,
    joined_names,
    names_in,
    pieces_of,
    plain_names,
    read_task,
    shared_words,
    words_of,
)
from code_commit.codebase.text import Section
from code_commit.files import folders_of
from code_commit.project import BUILD_SCRIPT
from code_commit.regex import fast_pattern, regex

CHANGE_LOG = regex(
    r"(?:.*/)?(?i:change(?:s|[-_]?logs?|[-_]?history)|history|news|releases|(?:release|rel)[-_]?notes?|whats[-_]?new)"
    r"(?i:\.(?:md|markdown|rst|txt|adoc|asciidoc|rdoc|org|pod))?"
)
_LAST = regex(
    r"(?:.*/)?(?i:licen[cs]es?|copying|notice|authors|contributors|code_of_conduct)(?:\.\w+)?|docs?/(?:.*/)?index\.\w+"
)
_PATH = regex(r"[\w.-]*/[\w./-]*|\b[\w-]+\.\w+(?=:)")  # in a build's output
_MOST_ADOPTED = 12  # names of a build's output
_LENGTH, _SATURATION, _IN_PATH = 0.75, 1.2, 1.0  # BM25's usual b and k1; a word in the path
_RARE, _LONG = 5, 5  # a rare word is in at most so many files, and has at least so many letters
_LIKE_IT = 50  # commits whose messages are most like the query
_MOST_COUNTED = 65_535  # times of a word in a file


class Signals(NamedTuple):
    """The reasons for a file, each from 0 to 1: shared `words` and the commits that `touched` it, by the best file."""

    words: float = 0
    touched: float = 0
    is_named: float = 0
    defines: float = 0
    in_scope: float = 0
    holds_rare: float = 0
    is_context: float = 0
    is_wrapped: float = 0
    is_script: float = 0
    tells_how: float = 0
    is_last: float = 0


WEIGHTS = Signals(
    words=1.0,
    touched=0.7,
    is_named=2.5,  # by the query, or by build.sh
    defines=1.8,  # a name of the query
    in_scope=0.8,  # of a message as `fix(scope): ..`
    holds_rare=1.25,  # a word of the query's beginning
    is_context=0.25,  # which all tasks need
    is_wrapped=-2.5,  # on few long lines: it may be a bundle that was built of others
    is_script=400,  # build.sh
    tells_how=200,  # to work here
    is_last=-1000,  # licenses and the like, unless they are named
)


def score(signals: Signals) -> float:
    """Return the worth of a file by its signals."""
    return sum(weight * value for weight, value in zip(WEIGHTS, signals, strict=True))


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The files, and what reading them once told about the query: the signals of each, and the lines with its names.

    `near` has the signal `words` of each file: equal signals are one object without it. `judges` are the files that
    build.sh names. `pictured` files are embedded images for the most part.
    """

    query: str
    words: Sequence[str]
    shared: SharedWords
    files: Sequence[Section]
    near: Sequence[float]
    signals: Sequence[Signals]
    mentions: Mentions = field(default_factory=Mentions)
    judges: Collection[str] = ()
    pictured: Collection[str] = ()


class _Words:
    """The query's words and names, and what each file tells of them."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.words = words_of(query)
        plain = NO_NAMES.sub("", query)
        self.code = names_in(" ".join(CODE.findall(query)))
        self.first = names_in(beginning(query))
        self.long = {name for name in names_in(beginning(plain), 6) if name.lower() not in COMMON}
        self.told, self.adopted = self.code | self.long, list[str]()
        self.joined = joined_names(beginning(plain))
        self.shared = shared_words(plain)
        self.own = shared_words(NAMES_ALONE.sub("", plain))
        self.names, self.parts = dict[str, re.Pattern[str]](), dict[str, set[int]]()
        self._look_for(self.code | self.first | self.long)
        self.parts |= {name: self._parts_of(name) for name in self.joined}
        self.counts = array("H")  # of each word in each file: numbers of their own take more room
        self.finders = [(word, fast_pattern(word)) for word in self.words]
        self.may_share = fast_pattern(self.own.pattern) if len(self.own.words) > 1 else None
        self.defined = defaultdict[str, list[int]](list)
        self.lines = LinesOfNames(self.own)
        self.may_be_defined: dict[int, list[str]] = {}  # by number of the file

    def _look_for(self, names: Collection[str]) -> None:
        self.names |= {name: re.compile(rf"{name}\b") for name in names}
        self.parts |= {name: self._parts_of(name) for name in names}
        either = "|".join(self.names).lower()
        self.may_define = fast_pattern(f"{BEFORE_NAME}(?:{either})".replace(r"\b", "")) if either else None

    def _parts_of(self, name: str) -> set[int]:
        """Return numbers of words: without one of them a file does not hold the name."""
        return {number for number, word in enumerate(self.words) if word in name.lower()}

    def held_by(self, word: str) -> list[int]:
        """Return the numbers of the files that hold a word."""
        column = self.counts[self.words.index(word) :: len(self.words)]
        return [number for number, times in enumerate(column) if times]

    def adopt(self, names: Collection[str], output: str) -> None:
        """Look for names for a query without own ones: those it shares a word with, then those of a build's output."""
        printed = dict.fromkeys(CODE.findall(_PATH.sub(" ", output)))
        last = [name for code in printed for name in re.findall(r"[A-Za-z_]\w{2,}", code)[-1:]]
        like = sorted(name for name in {*names, *last} if self.shared.of(name))
        like = sorted(like, key=lambda name: -len(self.shared.of(name)))
        like = list(dict.fromkeys([*like, *last]))[:_MOST_ADOPTED]
        self.told = self.told.union(like)
        self.adopted = like
        self._look_for(like)

    def read(self, file: Section, number: int) -> None:
        text = file.text
        lower = text.lower()
        counts = [lower.count(word) if is_in(lower) else 0 for word, is_in in self.finders]
        self.counts.extend(min(times, _MOST_COUNTED) for times in counts)
        held = {number for number, times in enumerate(counts) if times}
        may_define = self.may_define is not None and self.may_define(lower)
        may_tell = CHANGE_LOG.fullmatch(file.name) is None
        for name, pattern in self.names.items():
            if not held.issuperset(self.parts[name]):
                continue
            if may_define and len(self.defined[name]) <= _RARE:
                starts = (match.start() for match in pattern.finditer(text))
                if any(is_definition(text, start) for start in starts):
                    self.defined[name].append(number)
            if name in self.told and may_tell:
                is_here = self.defined[name][-1:] == [number]
                self.lines.note(name, file, text, places_of(text, pattern), is_defined_here=is_here)
        if not is_document(file.name):
            self._note_definitions(number, text, held)
        if may_tell and len(lower) == len(text):
            self._note_alike(file, lower, held)

    def _note_definitions(self, number: int, text: str, held: set[int]) -> None:
        names = [name for name in self.code if held.issuperset(self.parts[name])]
        if names := [name for name in names if may_be_defined(text, places_of(text, self.names[name]))]:
            self.may_be_defined[number] = names

    def _note_alike(self, file: Section, lower: str, held: set[int]) -> None:
        """Note where words of the query stand together in names."""
        for name in self.joined:
            if held.issuperset(self.parts[name]) and name in lower:
                places = places_of(lower, re.compile(name), within_words=True)
                begun = (place for place in places if begins_piece(file.text, place))
                self.lines.note(name, file, file.text, begun, is_defined_here=False)
        if self.may_share and not is_document(file.name) and self.may_share(lower):
            self.lines.note_alike(file, file.text, lower, self.names)


def survey_files(
    files: Iterable[Section],
    query: str,
    commits: Sequence[Commit] = (),
    judges: Collection[str] = (),
    output: str = "",
) -> Survey:
    """Return what one reading of the files tells about the query; `judges` come first among them.

    The names of the judges count, and of a failed build's `output`, if the query writes none.
    """
    task = read_task(query)
    found, words, used = list[Section](), _Words(task.text), UsedNames(judges)
    pictured, wrapped, adopts = set[str](), set[int](), not words.code
    for file in files:
        if adopts and file.name not in judges:
            words.adopt(set().union(*used.missing.values()), output)
            adopts = False
        pictured.update([file.name] if has_images(file.text) else ())
        wrapped.update([len(found)] if is_wrapped(file.name, file.content) else ())
        words.read(file, len(found))
        used.read(file)
        found.append(file)
    holding = {word: len(words.held_by(word)) for word in words.words}
    code = identifiers(task.text, found)
    defining, rare = _defining(words, found, holding, code)
    near, touched = _by_words(found, words, holding), _touched(words, commits)
    words.counts = array("H")  # they are not needed any more
    signals = (
        Signals(
            touched=touched.get(file.name, 0),
            defines=number in defining,
            in_scope=bool(task.scope) and task.scope.issubset(pieces_of(file.name)),
            holds_rare=number in rare,
            is_wrapped=number in wrapped,
            is_last=bool(_LAST.fullmatch(file.name) or (CHANGE_LOG.fullmatch(file.name) and "/" in file.name)),
        )
        for number, file in enumerate(found)
    )
    known = dict[Signals, Signals]()
    code_names = identifiers(NO_NAMES.sub("", task.text), found)
    told = code_names or words.long.union(words.adopted)
    plain = told.difference(code_names, words.adopted) | plain_names(code_names, task.text)
    lines = {name: lines for name, lines in words.lines.lines.items() if name in told or name in words.joined}
    return Survey(
        query=query,
        words=words.words,
        shared=words.shared,
        files=found,
        near=near,
        signals=[known.setdefault(each, each) for each in signals],
        mentions=Mentions(words.words, lines, plain, words.lines.alike, used.missing),
        judges=judges,
        pictured=pictured,
    )


def _defining(
    words: _Words, found: Sequence[Section], holding: Mapping[str, int], code: Collection[str]
) -> tuple[set[int], set[int]]:
    """Return the numbers of the few files that define a name of the query, and of those that hold a rare word."""
    defined = {name: set(numbers) for name, numbers in words.defined.items()}
    defined |= {name: set[int]() for name in words.code} | find_defining(found, words.may_be_defined, words.defined)
    few = {name: numbers for name, numbers in defined.items() if len(numbers) <= _RARE}
    rare = set().union(*(few.get(name, ()) for name in words.first))
    for word, files in holding.items():
        if files <= _RARE and len(word) >= _LONG and word in beginning(words.query).lower():
            rare.update(words.held_by(word))
    return set().union(*(few.get(name, ()) for name in code)), rare


def _by_words(files: Sequence[Section], words: _Words, holding: Mapping[str, int]) -> Sequence[float]:
    """Return how near each file is to the query by its words (BM25), 1 for the best."""
    weights = _weights(words, holding, len(files))
    average = sum(file.bytes for file in files) / max(len(files), 1) or 1
    scores = array("d")
    for number, file in enumerate(files):
        length = 1 - _LENGTH + _LENGTH * file.bytes / average
        name, near = file.name.lower(), 0.0
        counts = words.counts[number * len(words.words) : (number + 1) * len(words.words)]
        for word, times in zip(words.words, counts, strict=True):
            if not times and word not in name:
                continue
            in_text = times * (_SATURATION + 1) / (times + _SATURATION * length)
            near += weights[word] * (in_text + _IN_PATH * (word in name))
        scores.append(near)
    best = max(scores, default=0) or 1
    return array("d", (near / best for near in scores))


def _weights(words: _Words, holding: Mapping[str, int], most: int, power: float = 1.0) -> dict[str, float]:
    """Return what each word tells: a rare one more, one of the query's beginning twice as much."""
    query, first = words.query.lower(), beginning(words.query)
    rarity = {word: math.log(1 + (most - number + 0.5) / (number + 0.5)) for word, number in holding.items()}
    return {word: rarity[word] * query.count(word) ** power * (2 if word in first else 1) for word in holding}


def _touched(words: _Words, commits: Sequence[Commit]) -> dict[str, float]:
    """Return how much the commits whose messages are most like the query changed the files, 1 for the most."""
    telling = [(commit.message.lower(), commit.paths) for commit in commits]
    holding = {word: [n for n, (message, _) in enumerate(telling) if word in message] for word in words.words}
    weights = _weights(words, {word: len(numbers) for word, numbers in holding.items()}, len(telling), 0.5)
    likeness = [0.0] * len(telling)
    for word, numbers in holding.items():
        for number in numbers:
            likeness[number] += weights[word]
    average = sum(len(message) for message, _ in telling) / max(len(telling), 1) or 1
    likeness = [value / (1 + len(telling[n][0]) / average) ** 0.5 for n, value in enumerate(likeness)]
    often, touched = Counter(path for _, paths in telling for path in paths), defaultdict[str, float](float)
    for number in sorted(range(len(telling)), key=lambda number: -likeness[number])[:_LIKE_IT]:
        for path in telling[number][1]:
            touched[path] += likeness[number] ** 2 / len(telling[number][1]) / (1 + often[path]) ** 0.3
    most = max(touched.values(), default=0) or 1
    return {path: value / most for path, value in touched.items()}


def rank(survey: Survey, named: Collection[str] = (), context: Collection[str] = ()) -> list[Section]:
    """Return the files by their worth to the query, the best first, after build.sh and what tells how to work."""

    def worth(number: int) -> float:
        name, signals = survey.files[number].name, survey.signals[number]
        signals = signals._replace(
            words=survey.near[number],
            is_named=name in named,
            is_context=name in context,
            is_script=name == BUILD_SCRIPT,
            tells_how=name in context and CONVENTIONS.fullmatch(name) is not None,
            is_last=signals.is_last and name not in named,
        )
        return score(signals)

    by_name = sorted(range(len(survey.files)), key=lambda number: survey.files[number].name)
    return [survey.files[number] for number in sorted(by_name, key=worth, reverse=True)]


def add_files(survey: Survey, files: Iterable[Section]) -> Survey:
    """Return the survey with files that it did not read, as of no worth."""
    added = list(files)
    signals, near = [*survey.signals, *(Signals() for _ in added)], [*survey.near, *(0.0 for _ in added)]
    return replace(survey, files=[*survey.files, *added], near=near, signals=signals)


def within(survey: Survey, folders: Collection[str]) -> Survey:
    """Return what the survey tells about the files below folders."""
    kept = [number for number, file in enumerate(survey.files) if not folders_of([file.name]).isdisjoint(folders)]
    files, near = [survey.files[number] for number in kept], [survey.near[number] for number in kept]
    signals = [survey.signals[number] for number in kept]
    return replace(survey, files=files, near=near, signals=signals, mentions=Mentions(), judges=(), pictured=())
