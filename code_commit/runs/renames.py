"""Renames among the changes of files: a deleted file and a new one with most lines the same."""

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, product

_BOM = b"\xef\xbb\xbf"
_MOST_PAIRS = 50_000  # of a deleted and a new file
_MOST_LINES = 2_000_000  # of all pairs that are compared
_LARGER = 8  # times: no file of this size has most lines in common with the other


def find_renames(deleted: Mapping[str, bytes], created: Mapping[str, bytes]) -> dict[str, str]:
    """Return, for each new file that renames a deleted one, the path of that: the best match, each file once.

    Line ends, a BOM and blank lines do not count; a file without other lines is none.
    """
    found, taken = dict[str, str](), set[str]()
    for *_, path, other in sorted(_similar_files(deleted, created)):
        if path not in found and other not in taken:
            found[path] = other
            taken.add(other)
    return found


def _similar_files(
    deleted: Mapping[str, bytes], created: Mapping[str, bytes]
) -> Iterator[tuple[float, bool, str, str]]:
    """Yield the pairs with most lines the same, each after the negative share of these and whether the names differ."""
    old_lines = functools.cache(lambda path: _count_lines(deleted[path]))
    new_lines = functools.cache(lambda path: _count_lines(created[path]))
    room = _MOST_LINES
    for other, path in _pairs(deleted, created):
        sizes = len(deleted[other]), len(created[path])
        if max(sizes) > _LARGER * min(sizes):
            continue
        few, many = sorted((old_lines(other), new_lines(path)), key=len)
        least, most = sorted((few.total(), many.total()))
        if 2 * least <= most:
            continue
        room -= len(few)
        if room < 0:
            return
        shared = sum(min(few[line], many[line]) for line in few.keys() & many.keys())
        if 2 * shared > most:
            yield -shared / most, _name(path) != _name(other), path, other


def _pairs(old: Iterable[str], new: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return pairs, first those of the same name, and not all if there are many."""
    by_name: dict[str, list[str]] = {}
    for path in new:
        by_name.setdefault(_name(path), []).append(path)
    same_name = ((other, path) for other in old for path in by_name.get(_name(other), ()))
    others = ((other, path) for other, path in product(old, new) if _name(other) != _name(path))
    return islice(chain(same_name, others), _MOST_PAIRS)


def _count_lines(content: bytes) -> Counter[bytes]:
    text = content.removeprefix(_BOM).replace(b"\r", b"\n")
    return Counter(line for line in text.split(b"\n") if line.strip())


def _name(path: str) -> str:
    return path.rpartition("/")[2]
