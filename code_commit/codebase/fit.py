"""A codebase that fits: files whole in the order of their worth to the query, then outlines, then names and sizes.

Words only rank here: build.sh, files that the query names, files that define what it names, the few that hold a rare
word of its beginning, files about the whole project, the others by shared words (BM25), and last licences and the like.
After a choice the chosen files are whole, with outlines of those next to them.
"""

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from typing import NamedTuple

from code_commit.codebase.text import NAMES_LINE, Section, window, window_section
from code_commit.exchange import Window
from code_commit.project import BUILD_SCRIPT

BESIDE = 48_000  # characters, about 15,000 tokens, beside the chosen files; beside larger ones, as many as they have
_NO_ROOM = "no room for an outline, or nothing to outline:\n"
_FAR = "not next to a chosen file, or nothing to outline:\n"
_UNNAMED = "and {:,} more{}\n"
_LONGEST_FOLDERS, _SHARE_OF_FOLDERS = 400, 50
_NAMED_BESIDE = 5_000  # characters of names after a choice
_SHARE_OF_NAMES = _SHARE_OF_OUTLINES = 5  # of the room, one part in five each
_MOST_TOO_LONG = 10  # outlines, for what is left of the room, before no more files are read
CHANGE_LOG = re.compile(r"(?:.*/)?(?i:change(?:s|[-_]?log)|history|news)(?i:\.(?:md|markdown|rst|txt|adoc|rdoc))?")
_HEAD = 60  # lines of a change log: new entries go there
_IDLE = re.compile(r"(?:.*/)?(?:(?i:README)(?:\.[^./]*)?|FUNDING\.ya?ml|dependabot\.ya?ml)")
_LAST = re.compile(
    r"(?:.*/)?(?i:licen[cs]es?|copying|notice|authors|contributors|code_of_conduct)(?:\.\w+)?|docs?/(?:.*/)?index\.\w+"
)
_IMPORT = re.compile(
    r"(?:^[ \t]*(?:from|import|(?:pub )?(?:use|mod)|using|#[ \t]*include|source|load|export\b.*\bfrom)"
    r"|\brequire(?:_relative)?)\b(?:[^(\n]*\([^)]{0,2000}\)|.*)",
    re.MULTILINE,
)
_TEST_NAME = re.compile(r"^tests?[_-]|[_-](?:tests?|spec)$|(?<=[a-z])Tests?$")
_MOST_OF_A_NAME = 100  # files: one that more have tells nothing
_FOLDER_NAMES = {"__init__", "index", "mod"}
_CODE = re.compile(r"`[^`\n]+`|\b(?:\w+(?:(?:\.|::|->)\w+)+|\w+(?=\()|\w*[a-z0-9][A-Z]\w*|\w*[^\W_]_\w+)")
_KEYWORD = (
    r"\b(?:class|const|def|enum|fn|func|function|interface|macro_rules!|module|object|protocol|record|static|struct|trait"
    r"|type|val|var)"
)
_BEFORE_NAME = r"[ \t]+(?:\([^)\n]{0,99}\)[ \t]*)?(?:self\.)?"
DEFINITION = rf"{_KEYWORD}{_BEFORE_NAME}%s\b"
_BEGINS_DEFINITION = re.compile(rf"{_KEYWORD}{_BEFORE_NAME}\Z")
_ENDS_BEFORE_NAME, _LONGEST_BEGINNING = " \t.)", 120
_MOST_NAMES = 300
_MOST_WORDS = 64
_LENGTH, _SATURATION, _IN_PATH = 0.75, 1.2, 1.0  # BM25's usual b and k1; a word in the path
_RARE, _LONG = 5, 5  # a rare word is in at most so many files, and has at least so many letters


class FitRequest(NamedTuple):
    """The purpose of a codebase: the task, and a text whose files are worth as much as those that the task names.

    `chosen` are the files to show whole beside those that all tasks need, None where words choose. With `for_choice`
    outlines are short. `judges` are the files that build.sh names; `edits`: an answer may change a file shown in part.
    """

    query: str
    mentions: str = ""
    chosen: Collection[str] | None = None
    for_choice: bool = False
    judges: Collection[str] = ()
    edits: bool = False

    def named(self, files: Iterable[Section]) -> set[str]:
        """Return the files that the query or the mentions name, a README or a LICENSE by this word too."""
        words = set(re.findall(r"(?<![\w./+-])[\w./+-]*\w", f"{self.query}\n{self.mentions}"))
        bases = [(file.name, file.name.rpartition("/")[2]) for file in files]
        stems = {name: base.partition(".")[0] for name, base in bases}
        named = {name for name, base in bases if name in words or ("." in base and base in words)}
        return named | {name for name, stem in stems.items() if stem in words and re.fullmatch(r"[A-Z_]{4,}", stem)}


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The files for which a budget has room; `why` introduces the names, `folders` counts the unnamed files."""

    whole: Sequence[Section]
    windows: Sequence[Window] = ()
    outlines: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[Section] = ()
    unnamed: Sequence[Section] = ()
    why: str = ""
    folders: str = ""

    @property
    def text(self) -> str:
        names = "".join(section.as_name for section in self.names)
        more = _UNNAMED.format(len(self.unnamed), self.folders) if self.unnamed else ""
        end = f"{NAMES_LINE}\n{self.why}{names}{more}\n" if names or more else ""
        parts = [*map(window_section, self.windows), *self.outlines.values(), end]
        return "".join([*(section.text for section in self.whole), *parts])


class _Budget:
    def __init__(self, room: int) -> None:
        self.room = room
        self.texts: dict[str, str] = {}

    def add(
        self, candidates: Iterable[tuple[str, str]], most: int | None = None, *, misses: int = sys.maxsize
    ) -> dict[str, str]:
        """Replace texts while the room, of it `most` for these, allows, up to so many misses; return them."""
        added, left = {}, self.room if most is None else most
        for name, text in candidates:
            cost = len(text) - len(self.texts.get(name, ""))
            if cost <= left:
                left, self.room = left - cost, self.room - cost
                self.texts[name] = added[name] = text
            elif (misses := misses - 1) < 0:
                break
        return added


def fit_sections(sections: Sequence[Section], context: Collection[str], room: int, request: FitRequest) -> Fitted:
    """Return the files that fit into `room` characters; `context` are the names of files that all tasks need."""
    if request.chosen is None and sum(len(section.text) for section in sections) <= room:
        return Fitted(whole=sections)
    is_chosen = request.chosen is not None and not request.for_choice
    why, longest = _FAR if is_chosen else _NO_ROOM, min(_LONGEST_FOLDERS, room // _SHARE_OF_FOLDERS)
    room -= len(f"{NAMES_LINE}\n{why}\n{_UNNAMED.format(len(sections), '')}") + longest
    heads = _heads_of_logs(sections)
    ranked, wanted = rank(sections, request, context), _wanted(sections, context, request, heads)
    near = find_near(sections, request.chosen or ()).union(wanted, request.judges) if is_chosen else wanted
    if request.chosen is not None:
        chosen = set(request.chosen)  # of a change log the head alone, before what is only near
        ranked.sort(key=lambda file: (file.name not in wanted, file.name not in chosen, file.name not in near))
    budget = _Budget(room)
    known = ranked[: len(budget.add(_names(ranked), room // _SHARE_OF_NAMES, misses=0))]
    texts = {file.name: file.text for file in known if file.name in wanted}
    whole = budget.add(texts.items(), budget.room - room // _SHARE_OF_OUTLINES)
    others = [file for file in known if file.name not in whole and (file.name in near or not is_chosen)]
    beside = max(BESIDE, sum(map(len, whole.values()))) if is_chosen else budget.room
    parts = _Budget(min(beside, budget.room)).add(_parts(others, request, heads), misses=_MOST_TOO_LONG)
    budget.add(parts.items())
    whole |= budget.add(texts.items())
    budget.add(_names(ranked[len(known) :]), misses=0)
    names = {name: text for name, text in budget.texts.items() if name not in whole and name not in parts}
    names = _Budget(_NAMED_BESIDE).add(names.items(), misses=0) if is_chosen else names
    unnamed = [file for file in ranked if not (file.name in whole or file.name in parts or file.name in names)]
    in_part = [file.name for file in sections if file.name in parts and file.name not in whole]
    return Fitted(
        whole=[file for file in sections if file.name in whole],
        windows=[heads[name] for name in in_part if name in heads],
        outlines={name: parts[name] for name in in_part if name not in heads},
        names=[file for file in sections if file.name in names],
        unnamed=unnamed,
        why=why,
        folders=_folders(unnamed, longest),
    )


def _heads_of_logs(sections: Sequence[Section]) -> dict[str, Window]:
    logs = [file for file in sections if CHANGE_LOG.fullmatch(file.name) and file.content.count("\n") > _HEAD + 1]
    return {file.name: window(file.name, file.file_text, [(1, _HEAD)]) for file in logs}


def _names(files: Iterable[Section]) -> Iterator[tuple[str, str]]:
    return ((file.name, file.as_name) for file in files)


def _wanted(
    sections: Sequence[Section], context: Collection[str], request: FitRequest, heads: Collection[str]
) -> set[str]:
    """Return the files to show whole: where words choose, all but unnamed ones that serve no task."""
    named = request.named(sections)
    empty = {file.name for file in sections if file.name.endswith("__init__.py") and not file.content.strip()}
    idle = empty.union(file.name for file in sections if _IDLE.fullmatch(file.name))
    if request.chosen is None:
        return {file.name for file in sections}.difference(idle.union(heads) - named)
    judges, room = {BUILD_SCRIPT}, BESIDE
    for file in sections:
        if file.name in request.judges and len(file.text) <= room:
            room -= len(file.text)
            judges.add(file.name)
    in_part = set(heads) - named if request.edits else set()
    return set(request.chosen).difference(in_part).union(set(context) - (idle - named), judges)


def _folders(files: Sequence[Section], room: int) -> str:
    """Return the number of files in each folder, "" if that is longer than the room."""
    counts = Counter("/".join(file.name.split("/")[:-1][:2]) or "." for file in files)
    told = f": {', '.join(f'{folder} {number}' for folder, number in counts.most_common())}"
    return told if len(told) <= room else ""


def _parts(files: Iterable[Section], request: FitRequest, heads: Mapping[str, Window]) -> Iterator[tuple[str, str]]:
    """Yield the outlines of files and the heads of change logs, where they are shorter than the file."""
    from code_commit.codebase.outline import beside, brief, outline

    for file in files:
        if file.name in heads:
            text = window_section(heads[file.name]) if request.edits else ""
        else:
            lines = outline(file.name, file.content)
            if request.for_choice:
                lines = brief(lines)
            elif request.chosen is not None:
                lines = beside(lines, tests=_TEST_NAME.search(_module(file.name)) is not None)
            text = file.as_outline(lines) if lines else ""
        if text and len(text) < len(file.text):
            yield file.name, text


def find_near(sections: Sequence[Section], chosen: Collection[str]) -> set[str]:
    """Return the files next to the chosen ones: their imports, importers, tests, folders, and the change log."""
    code = {name for name in chosen if not _is_document(name)}
    folders = {name.rpartition("/")[0] for name in code}
    by_module = defaultdict(list)
    for file in sections:
        if not _is_document(file.name):
            by_module[_module(file.name)].append(file.name)
    modules, tested = {_module(name) for name in code}, {_TEST_NAME.sub("", _module(name)) for name in code}

    def meant(modules: Iterable[str], importing: str) -> set[str]:
        named = (by_module.get(module, ()) for module in modules)
        return {name for names in named if len(names) <= _MOST_OF_A_NAME for name in _nearest(names, importing)}

    imported = chain.from_iterable(meant(_imports(file), file.name) for file in sections if file.name in code)
    return set(chosen).union(imported) | {
        file.name
        for file in sections
        if CHANGE_LOG.fullmatch(file.name.partition("/")[0])
        or (_module(file.name) not in modules and _TEST_NAME.sub("", _module(file.name)) in tested)
        or (not _is_document(file.name) and file.name.rpartition("/")[0] in folders)
        or not code.isdisjoint(meant(modules & _imports(file), file.name))
    }


def _is_document(path: str) -> bool:
    return path.endswith((".md", ".rst", ".txt"))


def _nearest(paths: Iterable[str], path: str) -> Iterator[str]:
    """Yield the paths that share the most leading folders with a path; of several that share none, no path."""

    def shared(other: str) -> int:
        pairs = zip(other.split("/")[:-1], path.split("/")[:-1], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    common = {other: shared(other) for other in paths}
    most = max(common.values(), default=0)
    return (other for other, number in common.items() if number == most and (most or len(common) == 1))


def _module(path: str) -> str:
    folder, _, base = path.rpartition("/")
    stem = base.partition(".")[0]
    return folder.rpartition("/")[2] if stem in _FOLDER_NAMES else stem


def _imports(file: Section) -> set[str]:
    return set() if _is_document(file.name) else set(re.findall(r"[\w-]+", " ".join(_IMPORT.findall(file.content))))


def rank(sections: Iterable[Section], request: FitRequest, context: Collection[str]) -> list[Section]:
    """Return the files by their worth to the query, the most useful first."""
    files, query = list(sections), request.query
    scores, holding = _bm25(files, query.lower(), _words(query))
    named = request.named(files).union(request.judges)
    defining = _find_defining(files, identifiers(query, files), holding)
    holding_rare = _find_defining(files, names_in(beginning(query)), holding)
    for word, numbers in holding.items():
        if len(numbers) <= _RARE and len(word) >= _LONG and word in beginning(query).lower():
            holding_rare |= numbers

    def place(number: int) -> tuple[bool, int, float, str]:
        name = files[number].name
        kinds = (name == BUILD_SCRIPT, name in named, number in defining, number in holding_rare, name in context, True)
        is_last = _LAST.fullmatch(name) or (CHANGE_LOG.fullmatch(name) and "/" in name)
        return bool(is_last) and name not in named, kinds.index(True), -scores[number], name

    return [files[number] for number in sorted(range(len(files)), key=place)]


def identifiers(query: str, files: Iterable[Section]) -> set[str]:
    """Return the names that a query writes as code: `name`, a.name, name(), aName, a_name; without file names."""
    suffixes = {file.name.rpartition(".")[2] for file in files}
    code = [match for match in _CODE.findall(query) if match.rpartition(".")[2] not in suffixes]
    return names_in(" ".join(code))


def names_in(text: str, least: int = 3) -> set[str]:
    return set(islice(dict.fromkeys(re.findall(rf"[A-Za-z_]\w{{{least - 1},}}", text)), _MOST_NAMES))


def _find_defining(files: Sequence[Section], names: Collection[str], holding: Mapping[str, set[int]]) -> set[int]:
    """Return the numbers of the files that define one of the names, without names that many files define."""
    found: set[int] = set()
    for name in names:
        pattern = re.compile(rf"{name}\b")  # begins with what is searched for at once
        holders = (numbers for word, numbers in holding.items() if word in name.lower())
        numbers = set(range(len(files))).intersection(*holders)
        defining = list(islice((number for number in numbers if _defines(files[number].text, pattern)), _RARE + 1))
        found.update(defining if len(defining) <= _RARE else ())
    return found


def _defines(text: str, pattern: re.Pattern[str]) -> bool:
    for match in pattern.finditer(text):
        name = match.start()
        if text[name - 1 : name] in _ENDS_BEFORE_NAME:
            start = max(name - _LONGEST_BEGINNING, 0)
            if _BEGINS_DEFINITION.search(text, max(start, text.rfind("\n", start, name)), name):
                return True
    return False


def _words(query: str) -> list[str]:
    """Return the lower-case stems of the words of a query, the longest ones of a long query."""
    pieces = re.findall(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])|\w{3,}", query)
    words = {word.lower() for word in [*pieces, *re.findall(r"\w{3,}", query)]}
    stems = {re.sub(r"(?<=\w{3})(ing|ed|es|s|e)$", "", word) for word in words}
    return sorted(stems, key=lambda word: (-len(word), word))[:_MOST_WORDS]


def _bm25(files: Sequence[Section], query: str, words: Sequence[str]) -> tuple[list[float], dict[str, set[int]]]:
    """Return the score of each file, and the files that hold each word, inside of other words too."""
    first = beginning(query)
    holding: dict[str, set[int]] = {}
    average = sum(len(file.text) for file in files) / max(len(files), 1)
    scores = [0.0] * len(files)
    lengths, columns = [], []
    for file in files:  # one after the other: all texts in lower case take as much memory again
        text = file.text.lower()
        lengths.append(len(text))
        columns.append([text.count(word) for word in words])
    for word, counts in zip(words, zip(*columns, strict=True), strict=False):
        holding[word] = {number for number, count in enumerate(counts) if count}
        rarity = math.log(1 + (len(files) - len(holding[word]) + 0.5) / (len(holding[word]) + 0.5))
        weight = rarity * query.count(word) * (2 if word in first else 1)
        for number, count in enumerate(counts):
            length = 1 - _LENGTH + _LENGTH * lengths[number] / average
            in_text = count * (_SATURATION + 1) / (count + _SATURATION * length)
            scores[number] += weight * (in_text + _IN_PATH * (word in files[number].name.lower()))
    return scores, holding


def beginning(query: str) -> str:
    return query.strip().partition("\n\n")[0]
