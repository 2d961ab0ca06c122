r"""A file's content after the edits of a response, and the violations of these rules:

no-match   the lines to find do not stand in the file: the nearest are named, and where they differ
ambiguous  they stand in more than one place
overlap    two edits share lines
order      the last lines of a range do not stand after its first ones
unseen     the LLM was shown the file in part, and these lines stand elsewhere, or not in one passage of it
stale      it was shown the file in part, and the file has changed since
repeated   they come twice, since the replacement says lines beside its place again: a suspicion

Whole lines are compared without their ends, all with the file as it stands before the response: exactly, and where that
finds nothing once more without the blanks at their ends. In a file shown in part only the shown lines are searched.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from operator import itemgetter
from typing import NamedTuple

from code_commit.changes import Edit, EditBlock, quoted
from code_commit.regex import regex
from code_commit.runs.diff import without_equal_ends
from code_commit.verify.parts import Suspicion
from code_commit.verify.writing import FileLines, Replacement, put_in, read_lines, with_lf
from code_commit.views import Part, Span, find_current, lines_of

_MOST_PLACES = 10  # of an ambiguous find that are named
_FEW = 10  # finds that are searched one by one
_MOST_COMPARED = 100  # lines of a find that look for the nearest passage, and places of a word that count
_MOST_PASSAGES = 50  # as many as there can be reasons
_MOST_LIKELY = 5
_MOST_CHARACTERS = 200  # of each of so many passages that are compared
_ESCAPED = "a backslash stands here for a single character: write that character, or find other lines, or a range"
_FEWEST_REPEATED, _MOST_REPEATED = 2, 200  # lines: with a word, and of each side that are compared
_MOST_ODD = 2  # characters of a line; more of them are another text
_MORE_LINES = "include enough surrounding lines for the find to match exactly once"
_OF_THE_END = "of the last lines (^^^to): "
_BOM = "\ufeff"
_BLANKS = " \t\r"
_WORD = regex(r"\w")
UNSEEN_PART = (
    "only some of its lines are shown: send edits whose finds, or both ends of a range, lie in one shown passage; ask"
    " for other lines with ^^^files, or leave its block out"
)
STALE_PART = "it has changed since its lines were shown: edit its lines as they are now, or leave its block out"


class ContentFault(NamedTuple):
    line: int
    rule: str
    message: str


class VisibleLines(NamedTuple):
    """The lines of a file that edits may change, and those that a reason may quote, right-stripped; None for all."""

    editable: tuple[Span, ...] | None = None
    quotable: Callable[[], Collection[str]] | None = None


_ALL = VisibleLines()


def find_shown(text: str, part: Part) -> list[Span] | None:
    """Return the lines of a text that a prompt shows, None where the text is no longer that of which it shows them."""
    shown = find_current(part, text)
    return [(0, len(read_lines(text).lines))] if shown == [(0, len(lines_of(text)))] else shown


def edit_text(
    text: str, edits: Sequence[Edit], visible: VisibleLines = _ALL, *, as_sent: bool = False
) -> tuple[str, list[ContentFault]]:
    """Return the text after the edits and no faults, or the text as it is and the faults.

    With `as_sent` all lines of the edits get the ends that the answer gives them, also those that they only repeat.
    """
    file, ours, spans, faults = _place(text, tuple(edits), tuple(edit.line for edit in edits), visible)
    if faults:
        return text, [*faults]
    order = sorted(range(len(ours)), key=spans.__getitem__)
    if as_sent:
        sent = _without_bom(edits) if file.bom else edits
        return put_in(file, ((*spans[at], _lines(sent[at].replacement)) for at in order), as_sent=True), []
    return put_in(file, (_narrowed(file.lines, spans[at], ours[at]) for at in order)), []


@lru_cache(maxsize=1)
def _place(
    text: str, edits: tuple[Edit, ...], _lines: tuple[int, ...], visible: VisibleLines
) -> tuple[FileLines, Sequence[Edit], Sequence[Span], Sequence[ContentFault]]:
    """Return a file's lines, the edits with its ends, and the lines in whose place each puts its own, or faults.

    It is asked twice. The edits' lines in the answer are given for themselves: edits are equal without them.
    """
    file = read_lines(text)
    ours = [_with_lf(edit, has_cr=file.has_cr) for edit in (_without_bom(edits) if file.bom else edits)]
    return file, ours, *_locate(file.lines, ours, visible)


def find_repetition(change: EditBlock, old: str, visible: VisibleLines = _ALL) -> Suspicion | None:
    """Return the first of the edits, whose places are found, that puts lines beside the same lines of the file."""
    file, edits, spans, faults = _place(old, change.edits, tuple(edit.line for edit in change.edits), visible)
    if faults:
        return None
    after, places, at = list[str](), list[tuple[Edit, Replacement, int]](), 0
    for span, edit in sorted(zip(spans, edits, strict=True), key=itemgetter(0)):
        put = _narrowed(file.lines, span, edit)
        after += [*file.lines[at : put[0]], *put[2]]
        places.append((edit, put, len(after)))
        at = put[1]
    after += file.lines[at:]
    for edit, (start, stop, new), end in places:
        first, there = end - len(new), file.lines[start:stop]
        above = _said_again(there[::-1], new[::-1], after[max(0, first - _MOST_REPEATED) : first][::-1])[::-1]
        for side, lines in (("below", _said_again(there, new, after[end : end + _MOST_REPEATED])), ("above", above)):
            words = [line.strip() for line in lines if _WORD.search(line)]
            if len(words) >= _FEWEST_REPEATED:
                fact = f"'{quoted(words[0])}' to '{quoted(words[-1])}' come twice: they stand right {side} the edit too"
                return Suspicion(edit.line, fact, "leave them out, or take them into the find", rule="repeated")
    return None


def _said_again(there: Sequence[str], new: Sequence[str], below: Sequence[str]) -> Sequence[str]:
    """Return the lines at the end of new ones that stand below them too, behind the same last lines of the find."""
    shared = _shared(new, below)
    if not any(map(_WORD.search, shared)):
        return []
    pairs = zip(new[-len(shared) - 1 :: -1], there[::-1], strict=False)
    before = [line for line, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    return [*before[::-1], *shared]


def _shared(one: Sequence[str], other: Sequence[str]) -> Sequence[str]:
    """Return the most lines with which one text ends and the other begins."""
    most = min(len(one), len(other), _MOST_REPEATED)
    sizes = (size for size in range(most, 0, -1) if other[size - 1] == one[-1] and one[-size:] == other[:size])
    return other[: next(sizes, 0)]


def _without_bom(edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits without the BOM that a codebase shows before the first line."""
    pairs = ((edit.find.removeprefix(_BOM), edit.replacement.removeprefix(_BOM), edit) for edit in edits)
    return [replace(edit, find=find, replacement=new) for find, new, edit in pairs]


def _with_lf(edit: Edit, *, has_cr: bool) -> Edit:
    parts = (edit.find, edit.replacement, edit.last)
    if not any("\r" in part for part in parts):
        return edit
    find, replacement, last = (with_lf(part, has_cr=has_cr) for part in parts)
    return Edit(find, replacement, edit.line, last)


def _narrowed(old: Sequence[str], span: Span, edit: Edit) -> Replacement:
    """Return the lines of an edit that it does not only repeat, and those in whose place they are put."""
    start, stop = span
    first, last, new = _lines(edit.find), _lines(edit.last), _lines(edit.replacement)
    find = [*first, *old[start + len(first) : stop - len(last)], *last]
    (begin, end), (new_begin, new_end) = without_equal_ends(find, new)
    return start + begin, start + end, new[new_begin:new_end]


def _lines(text: str) -> list[str]:
    return text.split("\n")[:-1]


def lines_in_ranges(edits: Sequence[Edit], fewer: int) -> int:
    """Return how many lines the ranges among these edits replace, given how many `fewer` the file has after all."""
    return fewer + sum(edit.replacement.count("\n") - (0 if edit.last else edit.find.count("\n")) for edit in edits)


def _locate(
    lines: Sequence[str], edits: Sequence[Edit], visible: VisibleLines
) -> tuple[list[Span], list[ContentFault]]:
    parts = [(edit, is_end) for edit in edits for is_end in ((False, True) if edit.last else (False,))]
    finds = [_lines(edit.last if is_end else edit.find) for edit, is_end in parts]
    searched = [(0, len(lines))] if visible.editable is None else visible.editable
    places = _places_in(lines, searched, finds)
    unfound = [number for number, found in enumerate(places) if not found]
    if unfound:
        again = iter(_places_in(_stripped(lines), searched, [_stripped(finds[number]) for number in unfound]))
        places = [found or next(again) for found in places]
    missed = [number for number, found in enumerate(places) if not found] if visible.editable is not None else []
    anywhere = _places_in(_stripped(lines), [(0, len(lines))], [_stripped(finds[number]) for number in missed])
    for number, found in zip(missed, anywhere, strict=True):
        if found:
            return [], [ContentFault(parts[number][0].line, "unseen", UNSEEN_PART)]
    faults: list[ContentFault] = []
    wanted = [find for find, found in zip(finds, places, strict=True) if not found][:_MOST_PASSAGES]
    quotable = (visible.quotable() if visible.quotable else {*_stripped(lines)}) if wanted else ()
    index = _index_words(lines, searched, wanted, quotable) if wanted else {}
    for (edit, is_end), find, found in zip(parts, finds, places, strict=True):
        which = _OF_THE_END if is_end else ""
        if not found:
            nearest = _nearest(lines, find, index, quotable) if len(faults) < _MOST_PASSAGES else ""
            faults.append(ContentFault(edit.line, "no-match", which + nearest))
        elif len(found) > 1:
            told = ", ".join(str(place + 1) for place in found[:_MOST_PLACES])
            more = " and more" if len(found) > _MOST_PLACES else ""
            message = (
                f"the lines to find are there more than once, starting at lines {told}{more} of the file: {_MORE_LINES}"
            )
            faults.append(ContentFault(edit.line, "ambiguous", which + message))
    if faults:
        return [], faults
    starts = iter([place for (place,) in places])
    spans = [_span(edit, next(starts), next(starts) if edit.last else None) for edit in edits]
    return spans, _overlaps(spans, edits) or _across_gaps(spans, edits, searched)


def _across_gaps(spans: Sequence[Span], edits: Sequence[Edit], searched: Sequence[Span]) -> list[ContentFault]:
    """Return the fault of the first edit whose range spans more than one searched part."""
    for (start, stop), edit in zip(spans, edits, strict=True):
        if not any(first <= start and stop <= last for first, last in searched):
            return [ContentFault(edit.line, "unseen", UNSEEN_PART)]
    return []


def _span(edit: Edit, start: int, last: int | None) -> Span:
    """Return the lines that an edit replaces; a range whose ends stand in the wrong order ends too early."""
    return start, start + edit.find.count("\n") if last is None else last + edit.last.count("\n")


def _overlaps(spans: Sequence[Span], edits: Sequence[Edit]) -> list[ContentFault]:
    faults = []
    for (start, end), edit in zip(spans, edits, strict=True):
        if end - start < edit.find.count("\n") + edit.last.count("\n"):
            last = end - edit.last.count("\n") + 1
            until = start + edit.find.count("\n")
            fact = f"the lines after ^^^to start at line {last} of the file, those after ^^^find end at line {until}"
            faults.append(ContentFault(edit.line, "order", f"{fact}: the last lines must lie below the first"))
    if faults:
        return faults
    for first, second in pairwise(sorted(range(len(edits)), key=spans.__getitem__)):
        if spans[second][0] < spans[first][1]:
            shared = f"line {spans[second][0] + 1} of the file is in this edit and the one at line {edits[first].line}"
            faults.append(ContentFault(edits[second].line, "overlap", f"{shared}: make the two into one"))
    return faults


def _stripped(lines: Iterable[str]) -> list[str]:
    return [line.rstrip(_BLANKS) for line in lines]


class _Trie:
    """All finds in one, for the search of Aho and Corasick with lines for letters; a node is the beginning of finds."""

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


def _places_in(lines: Sequence[str], searched: Sequence[Span], finds: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return for each find the indexes of the lines where it begins within a searched part."""
    found: list[list[int]] = [[] for _ in finds]
    for start, stop in searched:
        for places, inside in zip(found, _places(lines[start:stop], finds), strict=True):
            places += [start + place for place in inside]
    return [places[: _MOST_PLACES + 1] for places in found]


def _places(lines: Sequence[str], finds: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return for each find the indexes of the lines where it begins, up to eleven, in linear time."""
    if len(finds) > _FEW:
        return _places_of_many(lines, finds)
    text, *wanted = ("\n".join(["", *part, ""]) for part in (lines, *finds))
    return [list(islice(_matches(text, find), _MOST_PLACES + 1)) for find in wanted]


def _matches(text: str, find: str) -> Iterator[int]:
    """Yield the number of line ends before each place of a find, which begins with a line end."""
    number, counted, place = 0, 0, text.find(find)
    while place >= 0:
        number += text.count("\n", counted, place)
        yield number
        counted, place = place, text.find(find, place + 1)


def _places_of_many(lines: Iterable[str], finds: Sequence[Sequence[str]]) -> list[list[int]]:
    trie = _Trie(finds)
    ends: list[list[int]] = [[] for _ in trie.shorter]
    node, firsts = 0, {find[0] for find in finds}
    for number, line in enumerate(lines, 1):
        if node or line in firsts:
            node = trie.follow(node, line)
            if len(ends[node]) <= _MOST_PLACES:
                ends[node].append(number)
    for node in trie.longest_first:
        also = trie.shorter[node]
        ends[also] = sorted(ends[also] + ends[node])[: _MOST_PLACES + 1]
    return [[end - len(find) for end in ends[node]] for node, find in zip(trie.nodes, finds, strict=True)]


def _index_words(
    lines: Sequence[str], searched: Iterable[Span], finds: Iterable[Sequence[str]], visible: Collection[str]
) -> dict[str, list[int]]:
    """Return the first hundred searched lines that hold each word of the finds, or are one of their lines."""
    wanted = {word for find in finds for line in find[:_MOST_COMPARED] for word in _words(line)}
    index: dict[str, list[int]] = {word: [] for word in wanted}
    for number, line in ((number, lines[number]) for span in searched for number in range(*span)):
        for word in _words(line) & wanted if line.rstrip(_BLANKS) in visible else ():
            if len(index[word]) < _MOST_COMPARED:
                index[word].append(number)
    return index


def _words(line: str) -> set[str]:
    if line.isascii() and line.isprintable():
        return {*re.findall(r"\w+", line), line.strip()} - {""}
    composed = unicodedata.normalize("NFKC", line)
    seen = "".join(each for each in composed if each == "\t" or unicodedata.category(each) not in ("Cc", "Cf"))
    return {*re.findall(r"\w+", seen), seen.strip(), unicodedata.normalize("NFC", line).strip()} - {""}


def _likeness(lines: Sequence[str], find: Sequence[str]) -> float:
    there, wanted = ("\n".join(passage)[:_MOST_CHARACTERS] for passage in (lines, find))
    return SequenceMatcher(None, there, wanted, autojunk=False).ratio()


def _nearest(lines: Sequence[str], find: Sequence[str], index: dict[str, list[int]], visible: Collection[str]) -> str:
    """Return a message with the visible lines most like those to find, and where they differ."""
    votes: dict[int, float] = defaultdict(float)
    for offset, line in enumerate(find[:_MOST_COMPARED]):
        for word in _words(line):
            for number in index[word]:
                votes[number - offset] += 1 / len(index[word])
    if not votes:
        return (
            "the lines to find are not in the file, nor any shown ones like them: copy them from the file as it was"
            " shown, or leave its block out"
        )
    likely = sorted(votes, key=lambda place: (-votes[place], place))[:_MOST_LIKELY]
    start = max(
        (max(0, place) for place in likely), key=lambda place: _likeness(lines[place : place + len(find)], find)
    )
    said, there = _stripped(find), _stripped(lines[start : start + len(find)])
    differs = next((at for at, pair in enumerate(zip(said, there, strict=False)) if pair[0] != pair[1]), len(there))
    if differs == len(there):
        extra = f"line ('{quoted(said[-1])}')" if len(said) == differs + 1 else f"{len(said) - differs} lines"
        return f"the find goes on after the file's last line, {len(lines)}: leave its last {extra} out"
    is_shown = there[differs] in visible
    what = f"'{quoted(there[differs])}' and" if is_shown else "what you were not shown,"
    odd = _odd_characters(there[differs], said[differs]) if is_shown else ""
    is_spelled = is_shown and quoted(there[differs]) == there[differs]
    advice = "copy them exactly as they are" if is_spelled or not is_shown else _ESCAPED
    if is_shown and re.fullmatch(rf"\s*\d+\W+{re.escape(there[differs])}", said[differs]):
        advice = "leave the line numbers out"
    says = f"says {what} not '{quoted(said[differs])}'{odd}: {advice}"
    if len(said) == 1:
        nearest = f"line {start + 1} of the file: it"
    elif len(there) == 1:
        nearest = f"line {start + 1} of the file, which"
    else:
        nearest = f"lines {start + 1} to {start + len(there)} of the file, where line {start + differs + 1}"
    return f"the lines to find are not in the file; nearest is {nearest} {says}"


def _odd_characters(there: str, said: str) -> str:
    """Return the names of the few characters, beside those of ASCII, that one of two lines has and the other lacks."""
    sides = []
    for side, one, other in (("the file", there, said), ("your line", said, there)):
        odd = sorted(character for character in {*one} - {*other} if not " " <= character <= "~")
        names = [f"U+{ord(each):04X} {unicodedata.name(each, '')}".strip() for each in odd]
        if len(names) > _MOST_ODD:
            return ""
        sides += [f"{side} has {', '.join(names)}"] if names else []
    return f" ({'; '.join(sides)})" if sides else ""
