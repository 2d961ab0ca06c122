"""A codebase that fits: files whole in the order of their worth to the query, then outlines, then names and sizes.

Words only rank here. A file that the query names comes first, then the few that hold a rare word of its beginning (the
name of a function, say), then what tells of the whole project, then by the words that query and file share (BM25: rare
words count more, long files less; what the query repeats, or begins with, counts more too).
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from code_commit.codebase.text import NAMES_LINE, OUTLINE_MARK, Section, header

UNLIMITED = 10**12
"""Tokens of a model that nobody knows the window of."""


class Fitted(NamedTuple):
    """What a budget has room for, each in the order in which the files came."""

    whole: list[Section]
    outlines: dict[str, str]
    names: list[Section]
    unnamed: list[Section]
    """The files that there is not even room for the names of."""

    @property
    def text(self) -> str:
        """All of it, as long as was granted at most."""
        names = "".join(section.as_name for section in self.names)
        more = _UNNAMED.format(len(self.unnamed)) if self.unnamed else ""
        end = f"{NAMES_LINE}\n{names}{more}\n" if names or more else ""
        return "".join([*(section.text for section in self.whole), *self.outlines.values(), end])


_TINY = 200
"""Characters of a file that is whole though nobody chose it: its name and size take nearly as many."""
_UNNAMED = "and {:,} more\n"
_SHARE_OF_NAMES = _SHARE_OF_OUTLINES = 5
"""One part in so many of the room is for them: they tell the LLM what there is beside the whole files."""


class Need(NamedTuple):
    """What a codebase is for: the words of the task, and a text whose files are worth as much as those that it names.

    `chosen` are the files that go in whole beside those that all tasks need; None where the words choose.
    """

    query: str
    mentions: str = ""
    chosen: Collection[str] | None = None


def fit_sections(sections: Sequence[Section], context: Collection[str], room: int, need: Need) -> Fitted:
    """Return what of the files goes into so many characters. `context` are the names of files that all tasks need."""
    chosen = need.chosen
    if chosen is None and sum(len(section.text) for section in sections) <= room:
        return Fitted(list(sections), {}, [], [])
    room -= len(f"{NAMES_LINE}\n\n") + len(_UNNAMED.format(len(sections)))
    ranked = rank(sections, need, context)
    wanted = {file.name for file in sections if chosen is None or len(file.text) <= _TINY}
    if chosen is not None:
        wanted |= {*chosen, *context}
        ranked.sort(key=lambda file: file.name not in chosen)
    known, names = _first(ranked, room // _SHARE_OF_NAMES)
    room -= names
    kept = room // _SHARE_OF_OUTLINES
    whole, used = _whole([file for file in known if file.name in wanted], room - kept, {})
    room -= used
    outlines = _outlines([section for section in known if section.name not in whole], room)
    room -= sum(len(outlines[file.name]) - len(file.as_name) for file in known if file.name in outlines)
    more, used = _whole([file for file in known if file.name in wanted - whole], room, outlines)
    whole |= more
    named = [*known, *_first(ranked[len(known) :], room - used)[0]]
    only_named = {section.name for section in named} - whole - outlines.keys()
    return Fitted(
        [section for section in sections if section.name in whole],
        {file.name: outlines[file.name] for file in sections if file.name in outlines and file.name not in whole},
        [section for section in sections if section.name in only_named],
        ranked[len(named) :],
    )


def _first(sections: Sequence[Section], room: int) -> tuple[list[Section], int]:
    """Return the first files, as many as there is room for their names, and what that takes."""
    used = 0
    for number, section in enumerate(sections):
        if used + len(section.as_name) > room:
            return list(sections[:number]), used
        used += len(section.as_name)
    return list(sections), used


def _whole(sections: Iterable[Section], room: int, outlines: Mapping[str, str]) -> tuple[set[str], int]:
    """Return the files that can be whole in the place of their outlines or names, and how much room that takes."""
    whole, used = set(), 0
    for section in sections:
        cost = len(section.text) - len(outlines.get(section.name, section.as_name))
        if used + cost <= room:
            used += cost
            whole.add(section.name)
    return whole, used


def _outlines(sections: Iterable[Section], room: int) -> dict[str, str]:
    """Return the outlines of the first files, as many as there is room for; no more files are read than that."""
    from code_commit.codebase.outline import outline

    outlines = {}
    for section in sections:
        text = f"{header(section.name + OUTLINE_MARK)}{outline(section.name, section.content)}\n"
        if text.count("\n") == 2 or len(text) >= len(section.text):
            continue
        room -= len(text) - len(section.as_name)
        if room < 0:
            break
        outlines[section.name] = text
    return outlines


def rank(sections: Iterable[Section], need: Need, context: Collection[str]) -> list[Section]:
    """Return the files by their worth to the query, the most useful first."""
    files, query = list(sections), need.query
    scores, holding_rare = _bm25(files, query.lower(), _words(query))
    mentioned = set(re.findall(r"[\w./+-]*\w", f"{query}\n{need.mentions}"))

    def place(number: int) -> tuple[int, float, str]:
        name = files[number].name
        base = name.rpartition("/")[2]
        is_named = name in mentioned or ("." in base and base in mentioned)
        place = 0 if is_named else 1 if number in holding_rare else 2 if name in context else 3
        return place, -scores[number], name

    return [files[number] for number in sorted(range(len(files)), key=place)]


_MOST_WORDS = 64
_LENGTH, _SATURATION, _IN_PATH = 0.75, 1.2, 1.0
"""BM25's usual b and k1; what a word counts for that the path holds, where a text full of it has 2.2."""


def _words(query: str) -> list[str]:
    """Return the words of a query, in lower case and without their endings, the longest ones of a long query."""
    pieces = re.findall(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])|\w{3,}", query)
    words = {word.lower() for word in [*pieces, *re.findall(r"\w{3,}", query)]}
    stems = {re.sub(r"(?<=\w{3})(ing|ed|es|s|e)$", "", word) for word in words}
    return sorted(stems, key=lambda word: (-len(word), word))[:_MOST_WORDS]


_RARE, _LONG = 5, 5
"""A word is rare that no more files hold, and that has as many letters; on short ones files agree by chance."""


def _bm25(files: Sequence[Section], query: str, words: Sequence[str]) -> tuple[list[float], set[int]]:
    """Return the score of each file, and which hold a rare word of the query's first paragraph.

    A word is found inside of others too, as `slug` in `make_slug`.
    """
    beginning = query.strip().partition("\n\n")[0]
    holding_rare: set[int] = set()
    average = sum(len(file.text) for file in files) / max(len(files), 1)
    scores = [0.0] * len(files)
    texts = [file.text.lower() for file in files]
    for word in words:
        counts = [text.count(word) for text in texts]
        holding = sum(1 for count in counts if count)
        rarity = math.log(1 + (len(files) - holding + 0.5) / (holding + 0.5))
        weight = rarity * query.count(word) * (2 if word in beginning else 1)
        if holding <= _RARE and len(word) >= _LONG and word in beginning:
            holding_rare.update(number for number, count in enumerate(counts) if count)
        for number, count in enumerate(counts):
            length = 1 - _LENGTH + _LENGTH * len(texts[number]) / average
            in_text = count * (_SATURATION + 1) / (count + _SATURATION * length)
            scores[number] += weight * (in_text + _IN_PATH * (word in files[number].name.lower()))
    return scores, holding_rare
