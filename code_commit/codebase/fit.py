"""A codebase that fits: files whole in the order of their worth to the query, then outlines, then names and sizes.

For the choice it shows outlines of the files of most worth, then names, then folders. After it the chosen files are
whole, or the chosen parts of them, with outlines of what they import and of what imports them.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple

from code_commit.codebase.near import find_near, has_test_name, is_document
from code_commit.codebase.outline import beside, brief, outline, read_definitions
from code_commit.codebase.parts import FileRequest
from code_commit.codebase.rank import CHANGE_LOG, Survey, rank
from code_commit.codebase.select import in_order
from code_commit.codebase.text import NAMES_LINE, Section, part_of, part_section
from code_commit.files import folders_of
from code_commit.project import BUILD_SCRIPT
from code_commit.runs.words import count
from code_commit.views import Part

_BESIDE, _SHARE_BESIDE = 9_600, 4  # characters of outlines beside the chosen text, or one part of it in so many
_JUDGES, _JUDGES_OF_CHOICE = 48_000, 12_000  # bytes of files that build.sh names, after and in a choice
_NO_ROOM = "no room for an outline, or nothing to outline:\n"
_FAR = "not next to a chosen file, or nothing to outline:\n"
_UNNAMED = "and {:,} more{}\n"
_LONGEST_FOLDERS, _SHARE_OF_FOLDERS = 2_000, 50
_NAMED_BESIDE = 5_000  # characters of names after a choice
_SHARE_OF_NAMES = _SHARE_OF_OUTLINES = 5  # of the room, one part in five each
_SHARE_OF_NAMES_IN_CHOICE = 10
_MOST_TOO_LONG = 10  # outlines, for what is left of the room, before no more files are read
_LONGEST_OUTLINE = 3_000  # characters, for a choice
_MOST_IN_PART = 20  # of the best files
PART, _LONG, _LARGE = 12_000, 40_000, 200_000
"""Bytes of a file of which a choice asks for parts, that is fitted by its definitions, that no prompt holds whole."""
_SHORT = 400  # bytes of a file that is not worth a choice
_MOST_UNRELEASED, _HEAD, _HEAD_OF_RELEASE = 200, 60, 20
"""Lines of a change log: with new entries, without sections, without new entries."""

_OPEN = "has a section for changes that are not released: what users notice is entered there"
_CLOSED = "has no section for changes that are not released: no entry is wanted but where the task says so"
_LONGEST_HEAD, _NEAR_TITLE, _SECTIONS = 20_000, 40, 2  # characters, characters, headings of a log without sections
_MOST_BYTES = 4  # of a character
_HEADING = re.compile(r"#{1,3} .*|(?P<text>\S.*)(?=\n(?:={3,}|-{3,}|~{3,})$)", re.MULTILINE)
_UNRELEASED = re.compile(r"(?i)\bunreleased\b|\bupcoming\b|\bin development\b|\bnot (?:yet )?released\b")
_IDLE = re.compile(r"(?:.*/)?(?:(?i:README)(?:\.[^./]*)?|FUNDING\.ya?ml|dependabot\.ya?ml)")


class Choice(NamedTuple):
    """The files that an LLM chose, whole or in part, and its words about them."""

    files: Mapping[str, FileRequest]
    words: str = ""


class FitRequest(NamedTuple):
    """The purpose of a codebase: the query's survey, and a text whose files are worth as much as those that it names.

    `chosen` are the files to show whole beside those that all tasks need, None where words choose. For a choice the
    outlines are short, `most_outlines` of them, and `fixed` files have none. With `edits` an answer may change a file
    shown in part, such as change logs by their `heads` and chosen files by their `parts`, None
    where these were not found. Long `conventions` are shown by their headings.
    """

    survey: Survey
    mentions: str = ""
    chosen: Collection[str] | None = None
    most_outlines: int = 0
    fixed: Collection[str] = ()
    heads: Mapping[str, Part] = {}
    parts: Mapping[str, Part | None] = {}
    conventions: Collection[str] = ()
    edits: bool = False

    @property
    def is_chosen(self) -> bool:
        return self.chosen is not None and not self.most_outlines

    def named(self) -> set[str]:
        """Return the files that the query or the mentions name, a README or a LICENSE by this word too."""
        words = set(re.findall(r"(?<![\w./+-])[\w./+-]*\w", f"{self.survey.query}\n{self.mentions}"))
        bases = [(file.name, file.name.rpartition("/")[2]) for file in self.survey.files]
        stems = {name: base.partition(".")[0] for name, base in bases}
        named = {name for name, base in bases if name in words or ("." in base and base in words)}
        return named | {name for name, stem in stems.items() if stem in words and re.fullmatch(r"[A-Z_]{4,}", stem)}


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The files for which a budget has room; `unseen` are the others, of which `end` has names and numbers."""

    whole: Mapping[str, str] = field(default_factory=dict)
    in_part: Mapping[str, Part] = field(default_factory=dict)
    outlines: Mapping[str, str] = field(default_factory=dict)
    unseen: Sequence[Section] = ()
    end: str = ""

    @property
    def text(self) -> str:
        parts = (part_section(name, part) for name, part in self.in_part.items())
        return "".join([*self.whole.values(), *parts, *self.outlines.values(), self.end])


class _Budget:
    def __init__(self, room: int) -> None:
        self.room = room
        self.texts: dict[str, str] = {}

    def add(
        self, candidates: Iterable[tuple[str, str]], most: int | None = None, *, misses: int = sys.maxsize
    ) -> dict[str, str]:
        """Add or replace texts until the room, `most`, or the allowed misses run out. Return those added."""
        added, left = {}, self.room if most is None else most
        for name, text in candidates:
            cost = len(text) - len(self.texts.get(name, ""))
            if cost <= left:
                left, self.room = left - cost, self.room - cost
                self.texts[name] = added[name] = text
            elif (misses := misses - 1) < 0:
                break
        return added


def fit_sections(context: Collection[str], room: int, request: FitRequest) -> Fitted:
    """Return the files that fit into `room` characters; `context` are the names of files that all tasks need."""
    places = {name: place for place, name in enumerate(in_order(file.name for file in request.survey.files))}
    sections = sorted(request.survey.files, key=lambda file: places[file.name])
    if request.chosen is None and sum(file.bytes for file in sections) <= room * _MOST_BYTES:
        whole = {file.name: file.text for file in sections}
        if sum(map(len, whole.values())) <= room:
            return Fitted(whole=whole)
    longest = min(_LONGEST_FOLDERS, room // _SHARE_OF_FOLDERS)
    room -= len(f"{NAMES_LINE}\n{_FAR}\n{_UNNAMED.format(len(sections), '')}") + longest
    ranked = rank(request.survey, request.named().union(request.survey.judges), context)
    if request.edits and not request.most_outlines:
        request = request._replace(parts={**_telling_parts(ranked, request), **request.parts})
    show = _fill if request.chosen is None else _outline_best if request.most_outlines else _show_chosen
    whole, parts, names = show(ranked, _wanted(ranked, context, request), _Budget(room), request)
    heads = {**request.heads, **{name: part for name, part in request.parts.items() if part}}
    named = [file for file in sections if file.name in names]
    unnamed = [file for file in ranked if not (file.name in whole or file.name in parts or file.name in names)]
    told = (_FAR if request.is_chosen else _NO_ROOM) + "".join(file.as_name for file in named)
    told += _UNNAMED.format(len(unnamed), _folders(unnamed, longest)) if unnamed else ""
    in_part = [file.name for file in sections if file.name in parts and file.name not in whole]
    return Fitted(
        whole={file.name: whole[file.name] for file in sections if file.name in whole},
        in_part={name: heads[name] for name in in_part if name in heads},
        outlines={name: parts[name] for name in in_part if name not in heads},
        unseen=[*named, *unnamed],
        end=f"{NAMES_LINE}\n{told}\n" if named or unnamed else "",
    )


def _telling_parts(ranked: Sequence[Section], request: FitRequest) -> dict[str, Part]:
    """Return the definitions that hold the query's names, of the best long files that were not chosen."""
    lines = defaultdict[str, set[int]](set)
    for mention in chain.from_iterable(request.survey.telling()):
        lines[mention.path].add(mention.line)
    wanted = request.survey.judges if request.is_chosen else {file.name for file in ranked[:_MOST_IN_PART]}
    parts = {}
    for file in ranked:
        if file.bytes > _LONG and file.name in wanted and lines[file.name] and file.name not in (request.chosen or ()):
            text = file.file_text
            holding = [
                [
                    found
                    for found in read_definitions(file.name, text)
                    if found.name and found.first <= line <= found.last
                ]
                for line in lines[file.name]
            ]
            part = part_of(text, ((found[-1].first, found[-1].last) for found in holding if found))
            if part.passages and len(part_section(file.name, part)) < file.bytes // 2:
                parts[file.name] = part
    return parts


def _fill(
    ranked: Sequence[Section], wanted: Collection[str], budget: _Budget, request: FitRequest
) -> tuple[dict[str, str], ...]:
    """Return the texts of files, the parts and the names that fill the budget."""
    room = budget.room
    known = ranked[: len(budget.add(_names(ranked), room // _SHARE_OF_NAMES, misses=0))]
    parts = budget.add(_parts((file for file in known if file.name in request.parts), request), room // 2)
    wanted = set(wanted).difference(parts)
    whole = budget.add(_texts(known, wanted), budget.room - room // _SHARE_OF_OUTLINES)
    parts |= budget.add(
        _parts((file for file in known if file.name not in whole and file.name not in parts), request),
        misses=_MOST_TOO_LONG,
    )
    whole |= budget.add(_texts(known, wanted.difference(whole)))
    budget.add(_names(ranked[len(known) :]), misses=0)
    return whole, parts, {name: text for name, text in budget.texts.items() if not (name in whole or name in parts)}


def _outline_best(
    ranked: Sequence[Section], wanted: Collection[str], budget: _Budget, request: FitRequest
) -> tuple[dict[str, str], ...]:
    """Return what a choice sees: the texts of files for all tasks, the outlines of the best ones, other names."""
    room = budget.room
    whole = budget.add(_texts(ranked, wanted), room // 2)
    best = [file for file in ranked if file.name not in whole and file.name not in request.fixed]
    best.sort(key=lambda file: file.name not in request.conventions)
    outlines = islice(_parts(best, request), request.most_outlines)
    parts = budget.add(outlines, budget.room - room // _SHARE_OF_NAMES_IN_CHOICE, misses=_MOST_TOO_LONG)
    others = (file for file in ranked if not (file.name in whole or file.name in parts))
    return whole, parts, budget.add(_names(others), room // _SHARE_OF_NAMES_IN_CHOICE, misses=0)


def _show_chosen(
    ranked: Sequence[Section], wanted: Collection[str], budget: _Budget, request: FitRequest
) -> tuple[dict[str, str], ...]:
    """Return the chosen texts, what stands beside them, and the names of the folders that they are in."""
    folders = {name.rpartition("/")[0] for name in request.chosen or ()}
    near, chosen = find_near(request.survey.files, request.chosen or ()), request.chosen or ()
    ranked = sorted(ranked, key=lambda file: (file.name not in wanted, file.name not in chosen, file.name not in near))
    whole = budget.add(_texts(ranked, wanted), budget.room - budget.room // _SHARE_OF_OUTLINES)
    logs = {name for name in request.heads if name.rpartition("/")[0] in folders_of(chosen) | {""}}
    in_part = logs.union(request.parts, request.conventions, chosen).difference(whole)
    heads = budget.add(_parts((file for file in ranked if file.name in in_part), request))
    short = {file.name for file in ranked if file.bytes < _SHORT and file.name.rpartition("/")[0] in folders}
    most = max(_BESIDE, sum(map(len, whole.values())) // _SHARE_BESIDE)
    beside = _Budget(min(most, budget.room))
    whole |= beside.add(_texts(ranked, short.difference(whole)), most // _SHARE_BESIDE)
    others = [file for file in ranked if file.name in near and not (file.name in whole or file.name in heads)]
    parts = heads | beside.add(_parts(others, request), misses=_MOST_TOO_LONG)
    budget.add(beside.texts.items())
    whole |= budget.add(_texts(ranked, set(wanted).difference(whole)))
    unseen = (file for file in ranked if not (file.name in whole or file.name in parts))
    concerned = (file for file in unseen if file.name.rpartition("/")[0] in folders)
    return whole, parts, budget.add(_names(concerned), _NAMED_BESIDE)


def _texts(files: Iterable[Section], wanted: Collection[str]) -> Iterator[tuple[str, str]]:
    return ((file.name, file.text) for file in files if file.name in wanted)


def _names(files: Iterable[Section]) -> Iterator[tuple[str, str]]:
    return ((file.name, file.as_name) for file in files)


def _wanted(files: Sequence[Section], context: Collection[str], request: FitRequest) -> set[str]:
    """Return the files to show whole: where words choose, all but unnamed ones that serve no task."""
    named = request.named()
    empty = {file.name for file in files if file.name.endswith("__init__.py") and not file.bytes}
    idle = empty.union(file.name for file in files if _IDLE.fullmatch(file.name))
    if request.chosen is None:
        return {file.name for file in files}.difference(idle.union(request.heads) - named)
    judges, room = {BUILD_SCRIPT}, _JUDGES_OF_CHOICE if request.most_outlines else _JUDGES
    for file in files:
        if file.name in request.survey.judges and file.bytes <= room:
            room -= file.bytes
            judges.add(file.name)
    in_part = set(request.heads) - named if request.edits else set()
    too_large = {file.name for file in files if file.bytes > _LARGE and request.edits}
    chosen = set(request.chosen).difference(in_part, too_large)
    return chosen.union(set(context) - (idle - named), judges).difference(request.parts)


def _folders(files: Sequence[Section], room: int) -> str:
    """Return the number of files in each folder, of those with most of them where there is no room for all."""
    counts = Counter("/".join(file.name.split("/")[:-1][:2]) or "." for file in files).most_common()
    while counts:
        told = f": {', '.join(f'{folder} {number}' for folder, number in counts)}"
        if len(told) <= room:
            return told
        counts = counts[: len(counts) * 3 // 4]
    return ""


def _parts(files: Iterable[Section], request: FitRequest) -> Iterator[tuple[str, str]]:
    """Yield the outlines of files and the heads of change logs, where they are shorter than the file."""
    for file in files:
        if part := request.parts.get(file.name):
            hidden = [(each.first, each.name) for each in read_definitions(file.name, file.file_text)]
            text = part_section(file.name, part, hidden=hidden)
        elif file.name in request.heads:
            text = (
                part_section(file.name, request.heads[file.name]) if request.edits and not request.most_outlines else ""
            )
        else:
            lines = outline(file.name, file.content, numbered=request.edits and file.bytes > PART)
            if request.most_outlines:
                lines = lines if is_document(file.name) else brief(beside(lines, tests=False))
                lines = _shortened(lines, request.survey)
            elif request.chosen is not None:
                lines = beside(lines, tests=has_test_name(file.name))
            text = file.as_outline(lines) if lines else ""
        if text and len(text) < len(file.text):
            yield file.name, text


def _shortened(lines: str, survey: Survey) -> str:
    """Return an outline of bearable length: of a longer one the lines that share words with the query, then others.

    A line stands below that of its class.
    """
    if len(lines) <= _LONGEST_OUTLINE:
        return lines
    numbered, room = list(enumerate(lines.splitlines(keepends=True))), _LONGEST_OUTLINE
    shared, kept = [sum(map(line.lower().__contains__, survey.words)) for _, line in numbered], set[int]()
    owners, owner_of = list[tuple[int, int]](), list[set[int]]()
    for number, line in numbered:
        depth = len(line) - len(line.lstrip())
        owners = [owner for owner in owners if owner[0] < depth]
        owner_of.append({number, *(owner for _, owner in owners)})
        owners.append((depth, number))
    for number, _ in sorted(numbered, key=lambda item: -shared[item[0]]):
        added = owner_of[number] - kept
        if (room := room - sum(len(numbered[each][1]) for each in added)) < 0:
            break
        kept |= added
    text = "".join(numbered[number][1] for number in sorted(kept))
    return f"{text}... and {count(len(numbered) - len(kept), 'definition')} more\n"


def heads_of_logs(files: Iterable[Section]) -> tuple[dict[str, Part], list[str]]:
    """Return the first lines of each long change log, and a sentence for each of the root: does it want an entry."""
    heads, told = dict[str, Part](), list[str]()
    for file in files:
        if CHANGE_LOG.fullmatch(file.name):
            content = file.content
            last, is_open = _end_of_unreleased(content)
            if content.count("\n") > last + 1:
                heads[file.name] = part_of(file.file_text, [(1, last)])
            if "/" not in file.name and is_open is not None:
                told.append(f"{file.name} {_OPEN if is_open else _CLOSED}\n")
    return heads, told


def _level(text: str, heading: re.Match[str]) -> int:
    """Return the level of a heading, 1 for the highest, by its signs or by those that underline it."""
    signs = len(heading[0]) - len(heading[0].lstrip("#"))
    return signs or 1 + "=-~".index(text[heading.end() + 1])


def _end_of_unreleased(text: str) -> tuple[int, bool | None]:
    """Return how many lines of a change log to show, with the heading after its section for what is not released, and
    whether it has such a section; None where it has no sections.
    """
    text = text[:_LONGEST_HEAD]
    headings = list(_HEADING.finditer(text))
    for number, heading in enumerate(headings):
        if _UNRELEASED.search(text[heading.start() : heading.end() + _NEAR_TITLE]):
            level = _level(text, heading)
            after = next((each for each in headings[number + 1 :] if _level(text, each) <= level), None)
            return min(text.count("\n", 0, after.start()) + 2, _MOST_UNRELEASED) if after else _HEAD, True
    return (_HEAD_OF_RELEASE, False) if len(headings) > _SECTIONS else (_HEAD, None)
