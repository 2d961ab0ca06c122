"""Which lines of a file two versions of it share, and so which ranges of lines differ.

Lines that stand once in both versions and in the same order hold the versions together (Bram Cohen's patience diff);
what lies between two of them is compared in turn, line by line only where it is short: the time grows with the lines,
not with their pairs.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

Range = tuple[int, int]
Block = tuple[Range, Range]
"""Lines of the old version, from the first to before the last, and those of the new one that stand for them."""

MOST_LINE_PAIRS = 40_000
"""Above this product two ranges without a line to hold on to are shown as replaced: 10 ms of comparing."""

MOST_LEVELS = 16
"""So often what lies between two lines is searched for lines to hold on to; each level takes as long as a file is."""


def differing_ranges(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[Block]:
    """Yield the ranges of lines that differ, in order, each pair as short as its ends allow."""
    pending = [(((0, len(old)), (0, len(new))), MOST_LEVELS)]
    while pending:
        block, levels = pending.pop()
        (old_start, old_end), (new_start, new_end) = _without_equal_ends(old, new, block)
        before, after = old[old_start:old_end], new[new_start:new_end]
        if not before and not after:
            continue
        if levels and before and after and (anchors := _anchors(before, after)):
            corners = [(-1, -1), *anchors, (len(before), len(after))]
            for (a, b), (next_a, next_b) in zip(corners[-2::-1], corners[:0:-1], strict=True):
                between = (old_start + a + 1, old_start + next_a), (new_start + b + 1, new_start + next_b)
                pending.append((between, levels - 1))
        elif before and after and len(before) * len(after) <= MOST_LINE_PAIRS:
            yield from _compared(before, after, old_start, new_start)
        else:
            yield (old_start, old_end), (new_start, new_end)


def _without_equal_ends(old: Sequence[bytes], new: Sequence[bytes], block: Block) -> Block:
    (old_start, old_end), (new_start, new_end) = block
    while old_start < old_end and new_start < new_end and old[old_start] == new[new_start]:
        old_start, new_start = old_start + 1, new_start + 1
    while old_start < old_end and new_start < new_end and old[old_end - 1] == new[new_end - 1]:
        old_end, new_end = old_end - 1, new_end - 1
    return (old_start, old_end), (new_start, new_end)


def _anchors(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return where lines stand that both have once: as many as go in the order of both, by patience sorting."""
    counts = Counter(old)
    place = {line: index for index, line in enumerate(new) if counts[line] == 1}
    again = Counter(new)
    shared = [(index, place[line]) for index, line in enumerate(old) if line in place and again[line] == 1]
    ends: list[int] = []  # the lowest place in `new` that ends a chain of each length
    last: list[int] = []  # which of `shared` that is
    previous: list[int] = []
    for number, (_, position) in enumerate(shared):
        length = bisect_left(ends, position)
        previous.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [position]
        last[length : length + 1] = [number]
    chain = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(shared[number])
        number = previous[number]
    return chain[::-1]


def _compared(old: Sequence[bytes], new: Sequence[bytes], old_start: int, new_start: int) -> Iterator[Block]:
    """Yield the ranges that differ by the longest common subsequence of two short ranges."""
    shared = _shared_from(old, new)
    i = j = 0
    while i < len(old) or j < len(new):
        begin_old, begin_new = i, j
        while (i < len(old) or j < len(new)) and not (i < len(old) and j < len(new) and old[i] == new[j]):
            if i < len(old) and shared[i + 1][j] >= (shared[i][j + 1] if j < len(new) else 0):
                i += 1
            else:
                j += 1
        if (i, j) != (begin_old, begin_new):
            yield (old_start + begin_old, old_start + i), (new_start + begin_new, new_start + j)
        while i < len(old) and j < len(new) and old[i] == new[j]:
            i, j = i + 1, j + 1


def _shared_from(old: Sequence[bytes], new: Sequence[bytes]) -> list[list[int]]:
    """Return how many lines old[i:] and new[j:] can share in order, for every i and j."""
    table = [[0] * (len(new) + 1)]
    for line in reversed(old):
        below = table[-1]
        row = [0] * (len(new) + 1)
        for j in range(len(new) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if line == new[j] else max(below[j], row[j + 1])
        table.append(row)
    return table[::-1]
