"""A codebase that fits: files whole in the order of their worth to the query, then outlines, then names and sizes.

For the choice it shows outlines of the files of most worth, then names, then folders. After it the chosen files are
whole, or the chosen parts of them, with outlines of what these name of their imports. Both show the tests that build.sh
names if they share two words with the query.
"""

import re
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, islice
from typing import ClassVar, NamedTuple

from code_commit.codebase import excerpts
from code_commit.codebase.change_logs import is_change_log, logs_of
from code_commit.codebase.images import without_images
from code_commit.codebase.near import find_near, has_test_name, imports_any, is_document, without_imports
from code_commit.codebase.outline import beside, brief, outline, tell_left_out, without_fields
from code_commit.codebase.rank import Survey, rank
from code_commit.codebase.select import place_of
from code_commit.codebase.text import NAMES_LINE, Section, add_to_list, count_by_folder, list_names, part_section
from code_commit.exchange import weigh
from code_commit.files import folders_of
from code_commit.project import BUILD_SCRIPT
from code_commit.regex import regex
from code_commit.views import Name, Outline, Part, View, Views, Whole, of_kind, whole_of

_BESIDE, _SHARE_BESIDE = 9_600, 4  # characters of outlines beside the chosen text, or one part of it in so many
_JUDGES, _JUDGES_OF_CHOICE = 48_000, 12_000  # bytes of files that build.sh names, after and in a choice
_NO_ROOM = "no room for an outline, or nothing to outline, with their bytes:\n"
_NOT_OUTLINED = "no room for an outline, or nothing to outline, bytes of long ones:\n"
_FAR = "not next to a chosen file, or nothing to outline, with their bytes:\n"
_UNNAMED = "and {:,} more{}\n"
_LONGEST_FOLDERS, _SHARE_OF_FOLDERS, _NAMED_BESIDE = 2_000, 50, 2_500  # the last: characters, after a choice
_SHARE_OF_NAMES = _SHARE_OF_OUTLINES = 5  # of the room, one part in five each
_USUAL, _SHARE_OF_NAMES_IN_CHOICE = 20_000, 20  # of a choice: characters to which its first outlines grow; of the room
_MOST_TOO_LONG = 10  # outlines, for what is left of the room, before no more files are read
_FIRST, _LONGEST_OF_FIRST, _LONGEST_OUTLINE = 8, 1_600, 520  # for a choice: files, characters of each, of another
_LAST, _LONGEST_OF_LAST, _PLAIN = 20, 260, 3  # behind so many: of each; of others, lines that share no word: one part
_SHARE_OF_ONE_OUTLINE, _MOST_IN_PART = 10, 20  # of the room, one part in so many at most; of the best files
PART, _LARGE = 12_000, 200_000  # bytes of a file of which a choice asks for parts, and that no prompt holds whole
_SHORT, _MANY_SHORT = 400, 3  # bytes of a file that is not worth a choice; more of them are counted by their folder
_FEW_CALLED = 20  # files whose names have the same word of the query
_MOST_STEMS = 1_000  # of the best files: a header is named with its source, wherever it is ranked itself
_MOST_BYTES = 4  # of a character
_IDLE = regex(r"(?:.*/)?(?:(?i:README)(?:\.[^./]*)?|FUNDING\.ya?ml|dependabot\.ya?ml)")


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
            cost = weigh(text) - weigh(self.texts.get(name, ""))
            if cost <= left:
                left, self.room = left - cost, self.room - cost
                self.texts[name] = added[name] = text
            elif (misses := misses - 1) < 0:
                break
        return added


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy(ABC):
    """A way to show the surveyed files in a room: `fit` returns the text and the views of what it has room for.

    The files of `mentions` are worth as much as those that the query names. With `edits` an answer may change a file
    shown in part: change logs by their `heads`, and files by their `parts`, None where these were not found. All tasks
    need the files of `context`; long `conventions` are shown by their headings. No outline is longer than `longest`.
    """

    survey: Survey
    mentions: str = ""
    edits: bool = False
    parts: Mapping[str, Part | None] = field(default_factory=dict)
    heads: Mapping[str, Part] = field(default_factory=dict)
    context: Collection[str] = ()
    conventions: Collection[str] = ()
    longest: int = sys.maxsize

    words_of_names: ClassVar[str] = _NO_ROOM
    judges: ClassVar[int] = _JUDGES
    sized: ClassVar[int] = 0  # bytes, from which on the names of a folder have their sizes
    shows_heads: ClassVar[bool] = True

    def fit(self, room: int) -> tuple[str, Views]:
        """Return the text that fits into so many characters, and the view of each file."""
        sections = self.sections()
        longest = min(_LONGEST_FOLDERS, room // _SHARE_OF_FOLDERS)
        strategy = replace(self, longest=room // _SHARE_OF_ONE_OUTLINE)
        room -= len(f"{NAMES_LINE}\n{_FAR}\n{_UNNAMED.format(len(sections), '')}") + longest
        ranked = rank(self.survey, self.named().union(self.survey.judges), self.context)
        known = {**excerpts.beside_images(ranked, self.survey), **strategy.telling_parts(ranked)} if self.edits else {}
        parts: dict[str, Part | None] = {**known, **excerpts.joined(ranked, self.parts, known, self.heads)}
        long = {file.name for file in ranked if (part := parts.get(file.name)) and not excerpts.is_shorter(file, part)}
        parts = {name: part for name, part in parts.items() if name not in long}
        strategy = replace(strategy, parts=parts)
        return _lay_out(sections, ranked, strategy, strategy.pack(ranked, _Budget(room)), longest)

    def sections(self) -> list[Section]:
        """Return the files in the order of a codebase."""
        return sorted(self.survey.files, key=lambda file: place_of(file.name))

    def named(self) -> set[str]:
        """Return the files that the query or the mentions name, a README or a LICENSE by this word too."""
        words = set(re.findall(r"(?<![\w./+-])[\w./+-]*\w", f"{self.survey.query}\n{self.mentions}"))

        def is_named(name: str) -> bool:
            base = name.rpartition("/")[2]
            stem, dot, _ = base.partition(".")
            is_word = stem in words and re.fullmatch(r"[A-Z_]{4,}", stem) is not None
            return is_word or name in words or (dot != "" and base in words)

        return {file.name for file in self.survey.files if is_named(file.name)}

    def telling_parts(self, ranked: Sequence[Section]) -> dict[str, Part]:
        """Return the parts that tell most: of the tests of build.sh those that share two words with the query."""
        return dict(excerpts.telling_tests(ranked, self.survey, min(self.judges, 2 * self.longest)))

    @abstractmethod
    def pack(self, ranked: Sequence[Section], budget: _Budget) -> "_Packed":
        """Put into the budget what is shown of the files, given in the order of their worth."""

    @abstractmethod
    def outline(self, file: Section) -> str:
        """Return the outline of a file, "" if it has none."""

    def in_part(self, files: Iterable[Section]) -> Iterator[tuple[str, str]]:
        """Yield the parts and outlines of files, and the heads of change logs, where they are shorter than the file."""
        for file in files:
            if part := self.parts.get(file.name):
                text = excerpts.text_of_part(file, part)
            elif file.name in self.heads:
                text = part_section(file.name, self.heads[file.name]) if self.edits and self.shows_heads else ""
            elif file.name in self.survey.pictured and self.shows_heads:
                text = file.as_outline(without_images(file.content))
            else:
                lines = "" if is_change_log(file) else self.outline(file)
                text = file.as_outline(excerpts.shortened(lines, self.survey, self.longest)) if lines else ""
            if text and len(text) < len(file.text):
                yield file.name, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(Strategy):
    """Fill the room: files whole in the order of their worth, then outlines, then names."""

    def fit(self, room: int) -> tuple[str, Views]:
        """Return all files whole where they fit, else what the room is filled with."""
        if not self.survey.pictured and sum(file.bytes for file in self.survey.files) <= room * _MOST_BYTES:
            sections = self.sections()
            texts = [file.text for file in sections]
            if sum(map(weigh, texts)) <= room:
                return "".join(texts), {file.name: whole_of(file.content, file.bytes) for file in sections}
        return Strategy.fit(self, room)

    def telling_parts(self, ranked: Sequence[Section]) -> dict[str, Part]:
        """Return the definitions that hold the query's names, of the best files where they are long."""
        return excerpts.telling_parts(ranked[:_MOST_IN_PART], self.survey)

    def pack(self, ranked: Sequence[Section], budget: _Budget) -> "_Packed":
        """Return the texts of files, the parts and the names that fill the budget."""
        room = budget.room
        known = ranked[: len(budget.add(_names(ranked), room // _SHARE_OF_NAMES, misses=0))]
        parts = budget.add(self.in_part(file for file in known if file.name in self.parts), room // 2)
        wanted = self._wanted(known).difference(parts)
        whole = budget.add(_texts(known, wanted), budget.room - room // _SHARE_OF_OUTLINES)
        others = (file for file in known if file.name not in whole and file.name not in parts)
        parts |= budget.add(self.in_part(others), misses=_MOST_TOO_LONG)
        whole |= budget.add(_texts(known, wanted.difference(whole)))
        budget.add(_names(ranked[len(known) :]), misses=0)
        return _Packed(whole, parts, {name for name in budget.texts if not (name in whole or name in parts)})

    def _wanted(self, files: Sequence[Section]) -> set[str]:
        """Return the files without images, and unnamed ones that serve no task or are shown by their heads."""
        unwanted = _idle(files).union(self.heads) - self.named()
        return {file.name for file in files}.difference(self.survey.pictured, unwanted)

    def outline(self, file: Section) -> str:
        lines = outline(file.name, file.content, numbered=self.edits and file.bytes > PART)
        return lines if len(lines) <= self.longest else tell_left_out(lines, without_fields(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlines(Strategy):
    """Show what a choice reads: files for all tasks, `most` short outlines of the best others, names of the rest.

    `fixed` files have no outline, unless build.sh names them. The `first` ones are longer, much in a short choice.
    With `counts_short` short files of a folder, and copies, are counted, unless their path has a word of the query.
    """

    most: int
    fixed: Collection[str] = ()
    first: int = _FIRST
    most_of_one: int = _LONGEST_OF_FIRST
    counts_short: bool = True
    judges: ClassVar[int] = _JUDGES_OF_CHOICE
    shows_heads: ClassVar[bool] = False
    words_of_names: ClassVar[str] = _NOT_OUTLINED
    sized: ClassVar[int] = PART + 1

    def pack(self, ranked: Sequence[Section], budget: _Budget) -> "_Packed":
        """Return the texts of files for all tasks, the outlines of the best ones, and other names."""
        room, wanted = budget.room, _for_all_tasks(self, ranked)
        whole = budget.add(_texts(ranked, wanted), room // 2)
        hidden = set(self.fixed).difference(self.survey.judges).union(whole)
        best = [file for file in ranked if file.name not in hidden]
        best.sort(key=lambda file: file.name not in self.conventions)
        outlines = islice(self._outlines(best), self.most)
        parts = budget.add(outlines, budget.room - room // _SHARE_OF_NAMES_IN_CHOICE, misses=_MOST_TOO_LONG)
        others = [file for file in ranked if not (file.name in whole or file.name in parts)]
        counted = self._counted(others) if self.counts_short else ()
        called = self._called(others)
        stems = {_stem(file): place for place, file in reversed([*enumerate(ranked[:_MOST_STEMS])])}
        named = [file for file in others if file.name not in counted]
        named.sort(key=lambda file: (file.name not in called, stems.get(_stem(file), _MOST_STEMS)))
        names = budget.add(add_to_list(named, self.sized), room // _SHARE_OF_NAMES_IN_CHOICE, misses=0)
        apart = {*self.survey.judges, *filter(is_document, parts)}
        firsts = [file for file in best if file.name in parts][: self.first]
        cut = [file for file in firsts if parts[file.name].endswith(" more\n\n") and file.name not in apart]
        for place, file in enumerate(cut):
            spare = max(budget.room + min(_USUAL - room, 0), 0) // (len(cut) - place)
            parts |= budget.add(replace(self, most_of_one=_LONGEST_OF_FIRST + spare).in_part([file]))
        return _Packed(whole, parts, {*names})

    def _called(self, files: Iterable[Section]) -> set[str]:
        """Return the files that have a word of the query in their own name, which few of them have."""
        words = {file.name: self.survey.shared.of(file.name.rpartition("/")[2]) for file in files}
        often = Counter(word for shared in words.values() for word in shared)
        return {name for name, shared in words.items() if any(often[word] <= _FEW_CALLED for word in shared)}

    def _counted(self, files: Iterable[Section]) -> set[str]:
        """Return short files where a folder has many, and copies, but those with a word of the query in their path.

        A copy has the name and the size of many others, as a license in each package does.
        """
        told = {*(name.lower() for name in self.survey.mentions.lines), *self.survey.shared.words}
        untold = [file for file in files if not any(word in file.name.lower() for word in told)]
        short = [file.name for file in untold if file.bytes < _SHORT]
        many = Counter(name.rpartition("/")[0] for name in short)
        alike = Counter((file.name.rpartition("/")[2], file.bytes) for file in untold)
        copies = {file.name for file in untold if alike[file.name.rpartition("/")[2], file.bytes] > _MANY_SHORT}
        return copies.union(name for name in short if many[name.rpartition("/")[0]] > _MANY_SHORT)

    def _outlines(self, files: Iterable[Section]) -> Iterator[tuple[str, str]]:
        shown, short = 0, replace(self, first=0, most_of_one=_LONGEST_OUTLINE)
        shortest = replace(short, most_of_one=_LONGEST_OF_LAST)
        for file in files:
            way = self if shown < self.first else short if shown < max(_LAST, self.first) else shortest
            found = list(way.in_part([file]))
            shown += len(found)
            yield from found

    def outline(self, file: Section) -> str:
        is_judge, is_document_ = file.name in self.survey.judges, is_document(file.name)
        longest = _LONGEST_OF_FIRST if is_judge and not is_document_ else self.most_of_one
        lines = outline(file.name, file.content, numbered=self.edits and (file.bytes > PART or is_judge))
        if not is_document_:
            lines = brief(whole := beside(lines, tests=False))
            if len(lines) > self.most_of_one:
                lines = brief(without_fields(whole))
        plain = longest if longest >= _LONGEST_OF_FIRST else longest // _PLAIN
        return excerpts.shortened(lines, self.survey, longest, plain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Strategy):
    """Show the files that were chosen, whole or in `parts`, with what is next to them: of that the `used` names.

    `names` are the definitions that were chosen.
    """

    files: Collection[str]
    names: Sequence[str] = ()
    used: Collection[str] | None = None
    words_of_names: ClassVar[str] = _FAR

    def pack(self, ranked: Sequence[Section], budget: _Budget) -> "_Packed":
        """Return the chosen texts, what stands beside them, and the names of the folders that they are in."""
        chosen, wanted = self.files, self._wanted(ranked)
        folders = {name.rpartition("/")[0] for name in chosen}
        near = find_near(self.survey.files, chosen)
        order = sorted(
            ranked, key=lambda file: (file.name not in wanted, file.name not in chosen, file.name not in near)
        )
        whole = budget.add(_texts(order, wanted), budget.room - budget.room // _SHARE_OF_OUTLINES)
        in_part = set(self.parts).difference(self.survey.pictured)
        in_part |= self._logs().intersection(self.heads).union(self.conventions, chosen)
        in_part = in_part.union(self.survey.judges).difference(whole)
        heads = budget.add(self.in_part(file for file in order if file.name in in_part))
        short = {file.name for file in order if file.bytes < _SHORT and file.name.rpartition("/")[0] in folders}
        short = {file.name for file in order if file.name in short and (file.name in near or imports_any(file, chosen))}
        most = max(_BESIDE, sum(map(len, whole.values())) // _SHARE_BESIDE)
        beside = _Budget(min(most, budget.room))
        whole |= beside.add(_texts(order, short.difference(whole)), most // _SHARE_BESIDE)
        others = [file for file in order if file.name in near and not (file.name in whole or file.name in heads)]
        texts = (text for name, text in (*whole.items(), *heads.items()) if name in chosen)
        used = frozenset(word for text in texts for word in re.findall(r"\w{3,}", without_imports(text)))
        parts = heads | beside.add(replace(self, used=used).in_part(others), misses=_MOST_TOO_LONG)
        budget.add(beside.texts.items())
        whole |= budget.add(_texts(order, wanted.difference(whole)))
        unseen = (file for file in order if not (file.name in whole or file.name in parts))
        concerned = (file for file in unseen if file.name.rpartition("/")[0] in folders)
        return _Packed(whole, parts, {*budget.add(_names(concerned), _NAMED_BESIDE)})

    def _wanted(self, ranked: Sequence[Section]) -> set[str]:
        """Return the chosen files and those for all tasks, without what is shown in part or too large."""
        in_part = set(self.heads) - self.named() if self.edits else set()
        too_large = {file.name for file in ranked if file.bytes > _LARGE and self.edits}
        chosen = (set(self.files) | (self._logs() - self.heads.keys())).difference(in_part, too_large)
        return chosen.difference(self.parts).union(_for_all_tasks(self, ranked)).difference(self.survey.pictured)

    def _logs(self) -> set[str]:
        """Return the change logs beside or above the chosen files, if answers may be edits of them."""
        return logs_of((file.name for file in self.survey.files), folders_of(self.files)) if self.edits else set()

    def outline(self, file: Section) -> str:
        is_judge = file.name in self.survey.judges
        numbered = self.edits and (file.bytes > PART or is_judge)
        read = partial(outline, file.name, file.content, numbered=numbered)
        lines = read(names=self.used)
        lines = lines if len(lines) <= self.longest else without_fields(lines)
        if is_judge:
            return tell_left_out(brief(read()), brief(lines))
        return tell_left_out(beside(read(), tests=False), beside(lines, tests=has_test_name(file.name)))


class _Packed(NamedTuple):
    """The texts of whole files, those shown in part or in outline, and the files of which there are only names."""

    whole: dict[str, str]
    in_part: dict[str, str]
    names: Collection[str]


def _lay_out(
    sections: Sequence[Section], ranked: Sequence[Section], strategy: Strategy, packed: _Packed, longest: int
) -> tuple[str, Views]:
    """Return the text of what was packed, in the order of a codebase, and the view of each file."""
    heads = {**strategy.heads, **{name: part for name, part in strategy.parts.items() if part}}
    views: dict[str, View] = {}
    for file in sections:
        if file.name in packed.whole:
            views[file.name] = whole_of(file.content, file.bytes)
        elif file.name in packed.in_part:
            views[file.name] = heads.get(file.name) or Outline(file.bytes)
    texts = [packed.whole[name] for name in of_kind(views, Whole)]
    texts += [packed.in_part[name] for name in (*of_kind(views, Part), *of_kind(views, Outline))]
    named = [file for file in sections if file.name in packed.names]
    unnamed = [file for file in ranked if file.name not in views and file.name not in packed.names]
    told = strategy.words_of_names + list_names(named, strategy.sized)
    told += _UNNAMED.format(len(unnamed), count_by_folder(unnamed, longest)) if unnamed else ""
    texts.append(f"{NAMES_LINE}\n{told}\n" if named or unnamed else "")
    as_name = cache(Name)  # many files have the same size
    views.update((file.name, as_name(file.bytes)) for file in chain(named, unnamed))
    return "".join(texts), views


def _texts(files: Iterable[Section], wanted: Collection[str]) -> Iterator[tuple[str, str]]:
    return ((file.name, file.text) for file in files if file.name in wanted)


def _stem(file: Section) -> str:
    return file.name.rpartition(".")[0] or file.name


def _names(files: Iterable[Section]) -> Iterator[tuple[str, str]]:
    return ((file.name, file.as_name) for file in files)


def _idle(files: Iterable[Section]) -> set[str]:
    """Return the files that serve no task unless it names them."""
    return {
        file.name
        for file in files
        if (file.name.endswith("__init__.py") and not file.bytes) or _IDLE.fullmatch(file.name)
    }


def _for_all_tasks(strategy: Strategy, ranked: Sequence[Section]) -> set[str]:
    """Return the files of the context, build.sh, and those that it names, as many bytes of these as are shown."""
    judges, room = {BUILD_SCRIPT}, strategy.judges
    for file in ranked:
        can_be_outlined = strategy.edits and file.bytes > excerpts.SHORT_JUDGE
        if file.name in strategy.survey.judges and file.bytes <= room and not can_be_outlined:
            room -= file.bytes
            judges.add(file.name)
    return judges.union(set(strategy.context) - (_idle(ranked) - strategy.named()))
