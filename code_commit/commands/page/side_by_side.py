"""A hunk side by side: which old line stands beside which new one, and what differs within the two."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from code_commit.commands.page.unified import DiffLine, Hunk

Marks = tuple[tuple[int, int], ...]

MOST_PAIRS = 2_500
"""Old times new lines of one block up to which the best pairs are searched for; above it lines pair in order."""
MOST_IN_ORDER = 1_000
"""Lines of such a block that pair; those behind stand beside each other with nothing marked in them."""
MOST_MARKED = 1_000
"""Characters of a line up to which the changes within it are marked."""
LEAST_ALIKE = 0.4
"""Two lines that share fewer of their words than this stand beside each other by chance; nothing in them is marked."""


@dataclass(frozen=True, slots=True)
class Side:
    """A line on one side: its index among the hunk's lines of that side, its number in the file, what changed in it."""

    index: int
    number: int
    marks: Marks = ()


@dataclass(frozen=True, slots=True)
class Row:
    """The two lines of a row; None where a side has none."""

    old: Side | None
    new: Side | None


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that belong together: unchanged ones, or all of one change."""

    changed: bool
    rows: list[Row]


def text_of(line: DiffLine) -> str:
    """Return a line as text, without its line feed; broken UTF-8 is replaced."""
    return line.content.removesuffix(b"\n").decode("utf-8", "replace")


def side_by_side(hunk: Hunk) -> Iterator[Group]:
    """Yield a hunk's rows in groups."""
    old = new = position = 0
    lines = hunk.lines
    first_old, first_new = max(hunk.old_start, 1), max(hunk.new_start, 1)
    while position < len(lines):
        start = position
        changed = lines[start].kind != " "
        while position < len(lines) and (lines[position].kind != " ") == changed:
            position += 1
        block = lines[start:position]
        removed = [text_of(line) for line in block if line.kind != "+"]
        added = [text_of(line) for line in block if line.kind != "-"]
        pairs = align(removed, added) if changed else [(i, i, (), ()) for i in range(len(block))]
        yield Group(changed, [_row(pair, old, new, first_old, first_new) for pair in pairs])
        old, new = old + len(removed), new + len(added)


_Pair = tuple[int | None, int | None, Marks, Marks]


def _row(pair: _Pair, old: int, new: int, first_old: int, first_new: int) -> Row:
    left, right, old_marks, new_marks = pair
    return Row(
        None if left is None else Side(old + left, first_old + old + left, old_marks),
        None if right is None else Side(new + right, first_new + new + right, new_marks),
    )


def align(removed: Sequence[str], added: Sequence[str]) -> list[_Pair]:
    """Return which removed line stands beside which added one, both in order, with the ranges that differ in them."""
    rows: list[_Pair] = []
    old = new = 0
    for left, right in [*_alike(removed, added), (len(removed), len(added))]:
        rows += _beside(old, left, new, right)
        if left < len(removed):
            rows.append((left, right, *changed_ranges(removed[left], added[right])))
        old, new = left + 1, right + 1
    return rows


def _beside(old: int, old_end: int, new: int, new_end: int) -> Iterator[_Pair]:
    """Lines without a counterpart stand beside one another as far as they go."""
    for offset in range(max(old_end - old, new_end - new)):
        left, right = old + offset, new + offset
        yield left if left < old_end else None, right if right < new_end else None, (), ()


def _alike(removed: Sequence[str], added: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of lines that are versions of each other: those with the greatest likeness in all."""
    if len(removed) * len(added) > MOST_PAIRS:
        paired = range(min(len(removed), len(added), MOST_IN_ORDER))
        return [(i, i) for i in paired if likeness(removed[i], added[i]) >= LEAST_ALIKE]
    rows, columns = len(removed), len(added)
    alike = [[likeness(old, new) for new in added] for old in removed]
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            together = best[i + 1][j + 1] + alike[i][j] if alike[i][j] >= LEAST_ALIKE else 0.0
            best[i][j] = max(best[i + 1][j], best[i][j + 1], together)
    pairs = []
    i = j = 0
    while i < rows and j < columns:
        if alike[i][j] >= LEAST_ALIKE and best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


_WORD = re.compile(r"\w+|\s+|[^\w\s]")


def likeness(old: str, new: str) -> float:
    """Return how much of two lines' words is shared, from 0 to 1; blanks do not count."""
    old_words, new_words = (Counter(_WORD.findall(line[:MOST_MARKED])) for line in (old, new))
    for words in (old_words, new_words):
        for blank in [word for word in words if word.isspace()]:
            del words[blank]
    total = old_words.total() + new_words.total()
    return 2 * (old_words & new_words).total() / total if total else float(old.strip() == new.strip())


def changed_ranges(old: str, new: str) -> tuple[Marks, Marks]:
    """Return the ranges of characters that differ, word by word."""
    if max(len(old), len(new)) > MOST_MARKED:
        return (), ()
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    blocks = SequenceMatcher(None, old_words, new_words, autojunk=False).get_opcodes()
    different = [block for block in blocks if block[0] != "equal"]
    return (
        _ranges(old_words, [(start, end) for _, start, end, _, _ in different]),
        _ranges(new_words, [(start, end) for _, _, _, start, end in different]),
    )


def _ranges(words: Sequence[str], blocks: Sequence[tuple[int, int]]) -> Marks:
    ends = [0]
    for word in words:
        ends.append(ends[-1] + len(word))
    return tuple((ends[start], ends[end]) for start, end in blocks if end > start)
