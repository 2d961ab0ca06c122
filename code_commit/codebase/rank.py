"""The worth of each file to a task, by one reading of all files: words only rank here.

Files that the query names count most, then those that define what it names, the few that hold a rare word of its
beginning, shared words (BM25), and the files that earlier commits changed whose messages are like the query.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from code_commit.codebase.bundles import is_wrapped
from code_commit.codebase.defining import find_defining, may_be_defined
from code_commit.codebase.images import has_images
from code_commit.codebase.near import is_document
from code_commit.codebase.select import CONVENTIONS, Commit
from code_commit.codebase.text import Section
from code_commit.files import folders_of
from code_commit.project import BUILD_SCRIPT
from code_commit.runs.words import count, listed

CHANGE_LOG = re.compile(
    r"(?:.*/)?(?i:change(?:s|[-_]?logs?|[-_]?history)|history|news|releases|(?:release|rel)[-_]?notes?|whats[-_]?new)"
    r"(?i:\.(?:md|markdown|rst|txt|adoc|asciidoc|rdoc|org|pod))?"
)
_LAST = re.compile(
    r"(?:.*/)?(?i:licen[cs]es?|copying|notice|authors|contributors|code_of_conduct)(?:\.\w+)?|docs?/(?:.*/)?index\.\w+"
)
_CODE = re.compile(r"`[^`\n]+`|\b(?:\w+(?:(?:\.|::|->)\w+)+|\w+(?=\()|\w*[a-z0-9][A-Z]\w*|\w*[^\W_]_\w+)")
_KEYWORD = (
    r"\b(?:class|const|def|enum|fn|func|function|interface|macro_rules!|module|object|protocol|record|static|struct|trait"
    r"|type|val|var)"
)
_BEFORE_NAME = r"[ \t]+(?:\([^)\n]{0,99}\)[ \t]*)?(?:self\.)?"
_BEGINS_DEFINITION = re.compile(rf"{_KEYWORD}{_BEFORE_NAME}\Z")
_ENDS_BEFORE_NAME, _LONGEST_BEGINNING = " \t.)", 120
_MOST_NAMES, _MOST_WORDS = 300, 64
_LENGTH, _SATURATION, _IN_PATH = 0.75, 1.2, 1.0  # BM25's usual b and k1; a word in the path
_RARE, _LONG = 5, 5  # a rare word is in at most so many files, and has at least so many letters
_NAMED, _DEFINING, _HOLDING_RARE, _CONTEXT, _TOUCHED = 2.5, 1.8, 1.25, 0.25, 0.7  # beside the best score, which is 1
_OF_WRAPPED = 0.2  # of its worth: it may be a bundle that was built of others
_LIKE_IT, _MOST_TOUCHED = 50, 30  # commits whose messages are most like the query; files of a commit that tells
# of commit messages
_NO_NAMES = re.compile(r"\b\w+://\S+|(?<!\S)[^\s@]+@\S+|^\w+\(\w+\)!?:|^[A-Z][\w-]+-by:.*", re.MULTILINE)
_MENTIONS, _LONGEST_MENTION, _MENTIONS_OF_ONE = 4_000, 120, 8  # characters of all, and of a line; lines of a name
_MANY_LINES, _TOO_MANY_LINES, _DEFINES = 40, 100, 0
_MOST_JOINED, _JOINED_WORDS, _BEGINNING = 40, (3, 2), 400  # names, how many words one joins, characters of the query
_NOT_JOINED = r"\b(?:and|are|but|for|from|has|have|into|its|must|not|should|that|the|then|this|when|where|which|with)\b"
_USED = re.compile(r"(?:\.|\bimport )([A-Za-z_]\w{3,})")
_OWN = re.compile(rf"{_KEYWORD}[ \t]+(\w+)")
_FEW_NAMES, _MOST_USED = 40, 12


class Mention(NamedTuple):
    """A line that holds a name: 0 where it defines it, its place among the file's, the file, its number, and the line
    to show.
    """

    kind: int
    place: int
    path: str
    line: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The files, and what reading them once told about the query, as the worth of each by their words.

    `plain` are names of `lines` that the query writes as words. `judges` are the files that build.sh names; `missing`
    are names that they use and no other file holds, by judge. `pictured` files are embedded images for the most part.
    """

    query: str
    words: Sequence[str]
    files: Sequence[Section]
    scores: Sequence[float]
    lines: Mapping[str, Sequence[Mention]] = field(default_factory=dict)
    plain: Collection[str] = ()
    judges: Collection[str] = ()
    missing: Mapping[str, Collection[str]] = field(default_factory=dict)
    pictured: Collection[str] = ()

    def telling(self) -> Iterator[Sequence[Mention]]:
        return (lines for lines in self.lines.values() if len(lines) <= _MANY_LINES)


class _UsedNames:
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


class _Words:
    """The query's words and names, and what each file tells of them."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.words = _words(query)
        plain = _NO_NAMES.sub("", query)
        self.code = names_in(" ".join(_CODE.findall(query)))
        self.first = names_in(beginning(query))
        self.long = names_in(beginning(plain), 6)
        self.told = self.code | self.long
        self.names = {name: re.compile(rf"{name}\b") for name in self.code | self.first | self.long}
        self.joined = _joined(beginning(plain))
        self.parts = {
            name: {number for number, word in enumerate(self.words) if word in name.lower()}
            for name in (*self.names, *self.joined)
        }  # numbers of words: without one of them a file does not hold the name
        self.counts: list[list[int]] = []
        self.finders = [(word, _finder(word)) for word in self.words]
        names = "|".join(self.names).lower()
        self.may_define = _finder(f"{_KEYWORD}{_BEFORE_NAME}(?:{names})".replace(r"\b", "")) if names else None
        self.defined = defaultdict[str, list[int]](list)
        self.lines = defaultdict[str, list[Mention]](list)
        self.may_be_defined: dict[int, list[str]] = {}  # by number of the file

    def read(self, file: Section) -> None:
        text = file.text
        lower, number = text.lower(), len(self.counts)
        counts = [lower.count(word) if is_in(lower) else 0 for word, is_in in self.finders]
        self.counts.append(counts)
        held = {number for number, times in enumerate(counts) if times}
        may_define = self.may_define is not None and self.may_define(lower)
        for name, pattern in self.names.items():
            if not held.issuperset(self.parts[name]):
                continue
            if may_define and len(self.defined[name]) <= _RARE:
                starts = (match.start() for match in pattern.finditer(text))
                if any(_is_definition(text, start) for start in starts):
                    self.defined[name].append(number)
            if name in self.told:
                self._note_lines(name, file, text, _places(text, pattern))
        if not is_document(file.name):
            names = [name for name in self.code if held.issuperset(self.parts[name])]
            if names := [name for name in names if may_be_defined(text, _places(text, self.names[name]))]:
                self.may_be_defined[number] = names
        for name in self.joined if len(lower) == len(text) else ():
            if held.issuperset(self.parts[name]) and name in lower:
                self._note_lines(name, file, text, _places(lower, re.compile(name), within_words=True))

    def _note_lines(self, name: str, file: Section, text: str, places: Iterator[int]) -> None:
        lines, line, counted = self.lines[name], 0, 0
        is_defined_here = self.defined[name][-1:] == [len(self.counts) - 1]
        for place, at in enumerate(places if not CHANGE_LOG.fullmatch(file.name) else ()):
            if len(lines) > _TOO_MANY_LINES and not is_defined_here:
                return
            kind = _DEFINES if _is_definition(text, at) else _DEFINES + 1
            if len(lines) > _TOO_MANY_LINES and kind != _DEFINES:
                continue
            line, counted = line + text.count("\n", counted, at), at
            end = text.find("\n", at)
            whole = text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else None].strip()
            cut = f"{whole[:_LONGEST_MENTION]} ..." if len(whole) > _LONGEST_MENTION else whole
            lines.append(Mention(kind, place, file.name, line, f"{file.name}:{line}:{cut}\n"))


def _places(text: str, pattern: re.Pattern[str], *, within_words: bool = False) -> Iterator[int]:
    """Yield where a name stands in a section's text, once a line."""
    start = text.find("\n") + 1
    while match := pattern.search(text, start):
        start = match.end()
        if within_words or not (text[match.start() - 1].isalnum() or text[match.start() - 1] == "_"):
            yield match.start()
            start = text.find("\n", start)
            if start < 0:
                return


def survey_files(
    files: Iterable[Section], query: str, commits: Sequence[Commit] = (), judges: Collection[str] = ()
) -> Survey:
    """Return what one reading of the files tells about the query; `judges` come first among them."""
    found, words, used = list[Section](), _Words(query), _UsedNames(judges)
    pictured, wrapped = set[str](), set[int]()
    for file in files:
        pictured.update([file.name] if has_images(file.text) else ())
        wrapped.update([len(found)] if is_wrapped(file.name, file.content) else ())
        words.read(file)
        used.read(file)
        found.append(file)
    holding = {word: {n for n, row in enumerate(words.counts) if row[k]} for k, word in enumerate(words.words)}
    code = identifiers(query, found)
    defined = {name: set(numbers) for name, numbers in words.defined.items()}
    defined |= {name: set[int]() for name in words.code} | find_defining(found, words.may_be_defined, words.defined)
    few = {name: numbers for name, numbers in defined.items() if len(numbers) <= _RARE}
    rare = set().union(*(few.get(name, ()) for name in words.first))
    for word, numbers in holding.items():
        if len(numbers) <= _RARE and len(word) >= _LONG and word in beginning(query).lower():
            rare |= numbers
    defining = set().union(*(few.get(name, ()) for name in code))
    scores = _scores(found, words, holding, commits)
    worth = [s + _DEFINING * (n in defining) + _HOLDING_RARE * (n in rare) for n, s in enumerate(scores)]
    worth = [value * _OF_WRAPPED if number in wrapped else value for number, value in enumerate(worth)]
    written = identifiers(_NO_NAMES.sub("", query), found)
    told = written or words.long
    return Survey(
        query=query,
        words=words.words,
        files=found,
        scores=worth,
        lines={name: lines for name, lines in words.lines.items() if name in told or name in words.joined},
        plain=told - written,
        judges=judges,
        missing=used.missing,
        pictured=pictured,
    )


def _scores(
    files: Sequence[Section], words: _Words, holding: Mapping[str, Collection[int]], commits: Sequence[Commit]
) -> list[float]:
    """Return how near each file is to the query by its words, and by the messages of commits; at most 1 by each."""
    weights = _weights(words, {word: len(numbers) for word, numbers in holding.items()}, len(files))
    average = sum(file.bytes for file in files) / max(len(files), 1) or 1
    scores = []
    for file, counts in zip(files, words.counts, strict=True):
        length = 1 - _LENGTH + _LENGTH * file.bytes / average
        name, score = file.name.lower(), 0.0
        for word, number in zip(words.words, counts, strict=True):
            if not number and word not in name:
                continue
            in_text = number * (_SATURATION + 1) / (number + _SATURATION * length)
            score += weights[word] * (in_text + _IN_PATH * (word in name))
        scores.append(score)
    touched, best = _touched(words, commits), max(scores, default=0) or 1
    most = max(touched.values(), default=0) or 1
    return [score / best + _TOUCHED * touched[file.name] / most for file, score in zip(files, scores, strict=True)]


def _weights(words: _Words, holding: Mapping[str, int], most: int, power: float = 1.0) -> dict[str, float]:
    """Return what each word tells: a rare one more, one of the query's beginning twice as much."""
    query, first = words.query.lower(), beginning(words.query)
    rarity = {word: math.log(1 + (most - number + 0.5) / (number + 0.5)) for word, number in holding.items()}
    return {word: rarity[word] * query.count(word) ** power * (2 if word in first else 1) for word in holding}


def _touched(words: _Words, commits: Sequence[Commit]) -> Counter[str]:
    """Return how much the files were changed by the commits whose messages are most like the query."""
    telling = [(commit.message.lower(), commit.paths) for commit in commits if len(commit.paths) <= _MOST_TOUCHED]
    holding = {word: [n for n, (message, _) in enumerate(telling) if word in message] for word in words.words}
    weights = _weights(words, {word: len(numbers) for word, numbers in holding.items()}, len(telling), 0.5)
    likeness = [0.0] * len(telling)
    for word, numbers in holding.items():
        for number in numbers:
            likeness[number] += weights[word]
    average = sum(len(message) for message, _ in telling) / max(len(telling), 1) or 1
    likeness = [value / (1 + len(telling[n][0]) / average) ** 0.5 for n, value in enumerate(likeness)]
    often, touched = Counter(path for _, paths in telling for path in paths), Counter[str]()
    for number in sorted(range(len(telling)), key=lambda number: -likeness[number])[:_LIKE_IT]:
        for path in telling[number][1]:
            touched[path] += likeness[number] ** 2 / len(telling[number][1]) / (1 + often[path]) ** 0.3
    return touched


def rank(survey: Survey, named: Collection[str] = (), context: Collection[str] = ()) -> list[Section]:
    """Return the files by their worth to the query, the best first, after build.sh and what tells how to work."""

    def place(number: int) -> tuple[bool, bool, bool, float, str]:
        name = survey.files[number].name
        is_last = _LAST.fullmatch(name) or (CHANGE_LOG.fullmatch(name) and "/" in name)
        tells_how = name in context and CONVENTIONS.fullmatch(name) is not None
        worth = survey.scores[number] + _NAMED * (name in named) + _CONTEXT * (name in context)
        return bool(is_last) and name not in named, name != BUILD_SCRIPT, not tells_how, -worth, name

    return [survey.files[number] for number in sorted(range(len(survey.files)), key=place)]


def add_files(survey: Survey, files: Iterable[Section]) -> Survey:
    """Return the survey with files that it did not read, as of no worth."""
    added = list(files)
    return replace(survey, files=[*survey.files, *added], scores=[*survey.scores, *(0.0 for _ in added)])


def within(survey: Survey, folders: Collection[str]) -> Survey:
    """Return what the survey tells about the files below folders."""
    kept = [number for number, file in enumerate(survey.files) if not folders_of([file.name]).isdisjoint(folders)]
    files, scores = [survey.files[number] for number in kept], [survey.scores[number] for number in kept]
    return Survey(query=survey.query, words=survey.words, files=files, scores=scores)


def show_mentions(survey: Survey, seen: Collection[str] = ()) -> str:
    """Return the lines that hold the query's names, rare names first, without those of files that are `seen`.

    A plain word has only the lines that define it. Names that tests lack have to share a word with the query.
    """
    found, already = [], set[str]()
    for name, lines in sorted(survey.lines.items(), key=lambda item: (-len(item[0]), item[0])):
        told = [line for line in lines if line.path not in seen and line.text not in already]
        if not told:
            continue
        is_telling = len(lines) <= _MANY_LINES and name not in survey.plain
        telling = [line for line in told if is_telling or line.kind == _DEFINES]
        some = sorted(telling, key=lambda line: (line.kind, line.place))[:_MENTIONS_OF_ONE]
        more = f", {len(some)} shown" if len(some) < len(lines) else ""
        text = "".join(line.text for line in some)
        already.update(line.text for line in some)
        found += [(len(lines), f"{name}: {count(len(lines), 'line')}{more}\n{text}")] if some else []
    mentions, words = "", [word for word in survey.words if len(word) >= _LONG]
    for test, missing in survey.missing.items():
        names = sorted(name for name in missing if any(word in name.lower() for word in words))
        mentions += f"used in {test}, in no other file: {listed(names, _MOST_USED)}\n" if names else ""
    for _, text in sorted(found):
        mentions += text if len(mentions) + len(text) <= _MENTIONS else ""
    return mentions


def identifiers(query: str, files: Iterable[Section]) -> set[str]:
    """Return the names that a query writes as code: `name`, a.name, name(), aName, a_name; without file names."""
    suffixes = {file.name.rpartition(".")[2] for file in files}
    code = [match for match in _CODE.findall(query) if match.rpartition(".")[2] not in suffixes]
    return names_in(" ".join(code))


def names_in(text: str, least: int = 3) -> set[str]:
    return set(islice(dict.fromkeys(re.findall(rf"[A-Za-z_]\w{{{least - 1},}}", text)), _MOST_NAMES))


def _joined(text: str) -> list[str]:
    """Return names that words standing together may be parts of: `option_name`, `optionname`."""
    runs = [re.findall(r"[a-z]{3,}", run) for run in re.split(rf"[^a-z\s-]+|{_NOT_JOINED}", text.lower()[:_BEGINNING])]
    tuples = [run[at : at + many] for many in _JOINED_WORDS for run in runs for at in range(len(run) - many + 1)]
    return list(dict.fromkeys(sign.join(parts) for parts in tuples for sign in ("_", "")))[:_MOST_JOINED]


def _is_definition(text: str, name: int) -> bool:
    if text[name - 1 : name] not in _ENDS_BEFORE_NAME:
        return False
    start = max(name - _LONGEST_BEGINNING, 0)
    return _BEGINS_DEFINITION.search(text, max(start, text.rfind("\n", start, name)), name) is not None


def _finder(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether a text has a pattern, by Rust's expressions: most words are in few files."""
    from pydantic_core import SchemaValidator, core_schema

    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python


def _words(query: str) -> list[str]:
    """Return the lower-case stems of the words of a query, the longest ones of a long query."""
    pieces = re.findall(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])|\w{3,}", query)
    words = {word.lower() for word in [*pieces, *re.findall(r"\w{3,}", query)]}
    stems = {re.sub(r"(?<=\w{3})(ing|ed|es|s|e)$", "", word) for word in words}
    return sorted(stems, key=lambda word: (-len(word), word))[:_MOST_WORDS]


def beginning(query: str) -> str:
    return query.strip().partition("\n\n")[0]
