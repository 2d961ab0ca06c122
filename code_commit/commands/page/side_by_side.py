"""A hunk side by side: which old line stands beside which new one, and what differs within the two."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from code_commit.commands.page.patience import Patience
from code_commit.commands.page.unified import DiffLine, Hunk

Marks = tuple[tuple[int, int], ...]

MOST_PAIRS = 2_500
"""Old times new lines of one block up to which the best pairs are searched for; above it lines pair in order."""
MOST_IN_ORDER = 1_000
"""Lines of such a block that pair; those behind stand beside each other with nothing marked in them."""
MOST_WORD_PAIRS = 160_000
"""Old times new words of two lines up to which the changes within them are searched for."""
MOST_SECONDS = 6.0
"""What pairing and marking may cost a page; from then on lines stand beside each other in order."""
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


def side_by_side(hunk: Hunk, patience: Patience) -> Iterator[Group]:
    """Yield a hunk's rows in groups; once the patience is used up, with nothing marked in them."""
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
        pairs = _align_patiently(removed, added, patience) if changed else [(i, i, (), ()) for i in range(len(block))]
        yield Group(changed, [_row(pair, old, new, first_old, first_new) for pair in pairs])
        old, new = old + len(removed), new + len(added)


_Pair = tuple[int | None, int | None, Marks, Marks]


def _row(pair: _Pair, old: int, new: int, first_old: int, first_new: int) -> Row:
    left, right, old_marks, new_marks = pair
    return Row(
        None if left is None else Side(old + left, first_old + old + left, old_marks),
        None if right is None else Side(new + right, first_new + new + right, new_marks),
    )


def _align_patiently(removed: Sequence[str], added: Sequence[str], patience: Patience) -> list[_Pair]:
    if patience.left <= 0:
        return list(_beside(0, len(removed), 0, len(added)))
    with patience.spending():
        return align(removed, added)


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
        return [(i, i) for i in paired if likeness(_words(removed[i]), _words(added[i])) >= LEAST_ALIKE]
    rows, columns = len(removed), len(added)
    new_words = list(map(_words, added))
    alike = [[likeness(old, new) for new in new_words] for old in map(_words, removed)]
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


def _words(line: str) -> Counter[str]:
    """Count a line's words; blanks do not count."""
    return Counter(word for word in _WORD.findall(line[:MOST_MARKED]) if not word.isspace())


def likeness(old: Counter[str], new: Counter[str]) -> float:
    """Return how much of two lines' words is shared, from 0 to 1."""
    total = old.total() + new.total()
    return 2 * (old & new).total() / total if total else 1.0


def changed_ranges(old: str, new: str) -> tuple[Marks, Marks]:
    """Return the ranges of characters that differ, word by word."""
    if max(len(old), len(new)) > MOST_MARKED:
        return (), ()
    old_words, new_words = _WORD.findall(old), _WORD.findall(new)
    if len(old_words) * len(new_words) > MOST_WORD_PAIRS:
        return (), ()
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
