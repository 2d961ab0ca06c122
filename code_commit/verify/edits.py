r"""What a file holds after the edits of a response, and what is wrong with them. The rules:

no-match   the lines to find do not stand in the file: the nearest are named, and where they differ
ambiguous  they stand in more than one place
overlap    two edits share lines

Whole lines are compared, all with the file as it stands before the response: exactly, and where that finds nothing
once more without the blanks and the `\r` at their ends. Nothing else is tried.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from code_commit.changes import Edit, quoted

_MOST_PLACES = 10
"""So many places of an ambiguous find are told."""

_FEW = 10
"""So many finds are looked for one by one."""

_MOST_COMPARED = 100
"""Lines of a find that look for the nearest passage, and places of a word that count: it costs no more in any file."""

_MOST_PASSAGES = 50
"""No more reasons are told of a response, and so no more passages are looked for."""

_MOST_LIKELY = 5
_MOST_CHARACTERS = 200
"""So many passages are compared by their characters, and so many of each."""

_MORE_LINES = "take so many of the lines around the right place into the find that it is there once"
_BOM = "\ufeff"
_BLANKS = " \t\r"


class ContentFault(NamedTuple):
    """A rule that a change breaks, and the line of the response that is to blame."""

    line: int
    rule: str
    message: str


def edit_text(text: str, edits: Sequence[Edit]) -> tuple[str, list[ContentFault]]:
    r"""Return the text after the edits, or what is wrong with them and the text as it is.

    New lines end as the file's lines do, where these all end alike. A last line without line end stays so.
    """
    bom = _BOM if text.startswith(_BOM) else ""
    body = text[len(bom) :]
    all_ends, long_ends = body.count("\n"), body.count("\r\n")
    end = "\r\n" if long_ends and long_ends == all_ends else "\n"
    is_cut = body != "" and not body.endswith("\n")
    lines = (body + end if is_cut else body).split("\n")[:-1]
    places, faults = _locate(lines, edits)
    if faults:
        return text, faults
    parts: list[str] = []
    at = 0
    for start, edit in sorted(zip(places, edits, strict=True), key=lambda place: place[0]):
        parts += lines[at:start]
        at = start + edit.find.count("\n")
        new = _put_in(lines[start:at], edit, None if 0 < long_ends < all_ends else end)
        is_cut = is_cut and bool(new or at < len(lines))
        parts += new
    parts += lines[at:]
    edited = "".join(f"{line}\n" for line in parts)
    return bom + (edited.removesuffix(end) if is_cut else edited), []


def _put_in(old: Sequence[str], edit: Edit, end: str | None) -> list[str]:
    """Return the lines that stand in the place of the old ones; those that the edit only repeats stay as they are."""
    find, new = _lines(edit.find), _lines(edit.replacement)
    shorter = min(len(find), len(new))
    head = next((index for index in range(shorter) if find[index] != new[index]), shorter)
    tail = next((index for index in range(shorter - head) if find[~index] != new[~index]), shorter - head)
    inner = new[head : len(new) - tail]
    if end is not None:
        inner = [line.removesuffix("\r") + end[:-1] for line in inner]
    return [*old[:head], *inner, *old[len(old) - tail :]]


def _lines(text: str) -> list[str]:
    return text.split("\n")[:-1]


def _locate(lines: Sequence[str], edits: Sequence[Edit]) -> tuple[list[int], list[ContentFault]]:
    """Return for each edit the index of the line where it begins; and the faults, where there are any."""
    finds = [_lines(edit.find) for edit in edits]
    places = _places(lines, finds)
    unfound = [number for number, found in enumerate(places) if not found]
    if unfound:
        again = iter(_places(_stripped(lines), [_stripped(finds[number]) for number in unfound]))
        places = [found or next(again) for found in places]
    faults: list[ContentFault] = []
    missed = [find for find, found in zip(finds, places, strict=True) if not found][:_MOST_PASSAGES]
    index = _index_words(lines, missed) if missed else {}
    for edit, find, found in zip(edits, finds, places, strict=True):
        if not found:
            nearest = _nearest(lines, find, index) if len(faults) < _MOST_PASSAGES else ""
            faults.append(ContentFault(edit.line, "no-match", nearest))
        elif len(found) > 1:
            told = ", ".join(str(place + 1) for place in found[:_MOST_PLACES])
            more = " and more" if len(found) > _MOST_PLACES else ""
            message = (
                f"the lines to find are there more than once, from lines {told}{more} of the file on: {_MORE_LINES}"
            )
            faults.append(ContentFault(edit.line, "ambiguous", message))
    starts = [found[0] if found else 0 for found in places]
    return starts, faults or _overlaps(starts, finds, edits)


def _overlaps(starts: Sequence[int], finds: Sequence[Sequence[str]], edits: Sequence[Edit]) -> list[ContentFault]:
    order = sorted(range(len(edits)), key=starts.__getitem__)
    faults = []
    for first, second in pairwise(order):
        end = starts[first] + len(finds[first])
        if starts[second] < end:
            shared = f"line {starts[second] + 1} of the file is in this find and in that of line {edits[first].line}"
            faults.append(ContentFault(edits[second].line, "overlap", f"{shared}: make one edit of the two"))
    return faults


def _stripped(lines: Iterable[str]) -> list[str]:
    return [line.rstrip(_BLANKS) for line in lines]


class _Trie:
    """All finds in one, for the search of Aho and Corasick with lines for letters.

    A node is the beginning of finds, 0 the empty one. `shorter` has of each node the longest other one that ends alike.
    """

    def __init__(self, finds: Iterable[Sequence[str]]) -> None:
        self._steps: dict[tuple[int, str], int] = {}
        self._lengths = [0]
        self.nodes = [self._add(find) for find in finds]
        self.shorter = [0] * len(self._lengths)
        self.longest_first: list[int] = []
        for (node, line), longer in sorted(self._steps.items(), key=lambda step: self._lengths[step[1]]):
            self.shorter[longer] = self.follow(self.shorter[node], line) if node else 0
            self.longest_first.append(longer)
        self.longest_first.reverse()

    def _add(self, find: Sequence[str]) -> int:
        node = 0
        for length, line in enumerate(find, 1):
            node = self._steps.setdefault((node, line), len(self._lengths))
            if node == len(self._lengths):
                self._lengths.append(length)
        return node

    def follow(self, node: int, line: str) -> int:
        """Return the longest node that the lines of a node and this one after them end with."""
        while node and (node, line) not in self._steps:
            node = self.shorter[node]
        return self._steps.get((node, line), 0)


def _places(lines: Sequence[str], finds: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return for each find the indexes of the lines where it begins: all of them, or one more than are told.

    The time is in proportion to the lines of the file and of the finds, whatever they repeat. Up to ten finds are
    looked for one by one, in less time than all in one.
    """
    if len(finds) > _FEW:
        return _places_of_many(lines, finds)
    text, *wanted = ("\n".join(["", *part, ""]) for part in (lines, *finds))
    return [list(islice(_matches(text, find), _MOST_PLACES + 1)) for find in wanted]


def _matches(text: str, find: str) -> Iterator[int]:
    """Yield how many line ends stand before each place where a find begins, which is with a line end."""
    number, counted, place = 0, 0, text.find(find)
    while place >= 0:
        number += text.count("\n", counted, place)
        yield number
        counted, place = place, text.find(find, place + 1)


def _places_of_many(lines: Iterable[str], finds: Sequence[Sequence[str]]) -> list[list[int]]:
    trie = _Trie(finds)
    ends: list[list[int]] = [[] for _ in trie.shorter]
    node = 0
    for number, line in enumerate(lines, 1):
        node = trie.follow(node, line)
        if len(ends[node]) <= _MOST_PLACES:
            ends[node].append(number)
    for node in trie.longest_first:
        also = trie.shorter[node]
        ends[also] = sorted(ends[also] + ends[node])[: _MOST_PLACES + 1]
    return [[end - len(find) for end in ends[node]] for node, find in zip(trie.nodes, finds, strict=True)]


def _index_words(lines: Sequence[str], finds: Iterable[Sequence[str]]) -> dict[str, list[int]]:
    """Return the indexes of the first hundred lines that hold each word of the finds."""
    wanted = {word for find in finds for line in find[:_MOST_COMPARED] for word in _words(line)}
    index: dict[str, list[int]] = {word: [] for word in wanted}
    for number, line in enumerate(lines):
        for word in _words(line) & wanted:
            if len(index[word]) < _MOST_COMPARED:
                index[word].append(number)
    return index


def _words(line: str) -> set[str]:
    return set(re.findall(r"\w+", line))


def _likeness(lines: Sequence[str], find: Sequence[str]) -> float:
    """Return how much of the characters two passages share in order, from 0 to 1; of long ones the beginnings'."""
    from difflib import SequenceMatcher  # no answer that can be used needs it

    there, wanted = ("\n".join(passage)[:_MOST_CHARACTERS] for passage in (lines, find))
    return SequenceMatcher(None, there, wanted, autojunk=False).ratio()


def _nearest(lines: Sequence[str], find: Sequence[str], index: dict[str, list[int]]) -> str:
    """Say which lines are nearest to those to find, and where they differ.

    Of those that share the rarest words they are those that share the most characters.
    """
    votes: dict[int, float] = defaultdict(float)
    for offset, line in enumerate(find[:_MOST_COMPARED]):
        for word in _words(line):
            for number in index[word]:
                votes[number - offset] += 1 / len(index[word])
    if not votes:
        return "the lines to find are not in the file, nor any like them: copy them from the file as it is now"
    likely = sorted(votes, key=lambda place: (-votes[place], place))[:_MOST_LIKELY]
    start = max(
        (max(0, place) for place in likely), key=lambda place: _likeness(lines[place : place + len(find)], find)
    )
    said, there = _stripped(find), _stripped(lines[start : start + len(find)])
    differs = next((at for at, pair in enumerate(zip(said, there, strict=False)) if pair[0] != pair[1]), len(there))
    if differs == len(there):
        extra = f"line ('{quoted(said[-1])}')" if len(said) == differs + 1 else f"{len(said) - differs} lines"
        return f"the find goes on after the file's last line, {len(lines)}: leave its last {extra} out"
    says = f"says '{quoted(there[differs])}' and not '{quoted(said[differs])}': copy them exactly as they are"
    if len(said) == 1:
        nearest = f"line {start + 1} of the file: it"
    elif len(there) == 1:
        nearest = f"line {start + 1} of the file, which"
    else:
        nearest = f"lines {start + 1} to {start + len(there)} of the file, where line {start + differs + 1}"
    return f"the lines to find are not in the file; nearest is {nearest} {says}"
