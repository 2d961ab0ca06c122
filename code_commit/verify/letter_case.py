"""Which paths the ignore rules may read otherwise without regard to case: git is asked again for these alone.

Any other path has the same answer with both values of `core.ignoreCase`, because every pattern matches it and each of
its folders with both or with neither. That is so for a pattern without a letter; for a path and a pattern that both
have no capital letter (git lowers capitals, those of ASCII alone: wildmatch.c, dir.c); and where the pattern's literal
pieces do not stand in the path in their order, because then it cannot match at all.
"""

import re
from collections.abc import Collection, Iterable

from code_commit.verify.ignore_files import numbered_lines

Pieces = tuple[tuple[int, bytes], ...]
"""What a path must hold for a pattern to match it: the least number of bytes to skip, then a literal piece, and so on.
Both are lowered, the path stands between slashes."""

_LETTER = re.compile(rb"[A-Za-z\[]")
_CLASS = re.compile(rb"\[([A-Za-z0-9_.]+)\]")
_SLASHES = re.compile(rb"/+")
_WILD = re.compile(rb"/?(?:[^a-z0-9_./?-]+/?)+")
"""Everything that is not plainly itself counts as `*`; a slash beside it too, since `**/` matches nothing as well."""
_GAP = re.compile(rb"([*?]+)")


def read_otherwise(places: Collection[bytes], contents: Iterable[bytes]) -> set[bytes]:
    """Return those of the paths that the patterns in the contents of ignore files may match in one regard alone."""
    always, in_capitals = _read_patterns(contents)
    capital = [place for place in places if place != place.lower()]
    small = [place for place in places if place == place.lower()]
    return _matched(always, small) | _matched(always | in_capitals, capital)


def _read_patterns(contents: Iterable[bytes]) -> tuple[set[Pieces], set[Pieces]]:
    """Return the patterns that may read any path otherwise, and those that only do so with a path in capitals."""
    always: set[Pieces] = set()
    in_capitals: set[Pieces] = set()
    for content in contents:
        for _, line in numbered_lines(content):
            if not _LETTER.search(line):
                continue
            pattern, bracket, _ = _CLASS.sub(_wild_class, line.removeprefix(b"!")).partition(b"[")
            text = b"/%s/" % (pattern + b"*" if bracket else pattern.strip(b"/"))
            (always if bracket or text != text.lower() else in_capitals).add(_pieces(text.lower()))
    return always, in_capitals


def _pieces(text: bytes) -> Pieces:
    parts = [b"", *_GAP.split(_WILD.sub(b"*", _SLASHES.sub(b"/", text)))]
    return tuple((gap.count(b"?"), piece) for gap, piece in zip(parts[::2], parts[1::2], strict=True) if piece)


def _wild_class(match: re.Match[bytes]) -> bytes:
    """A class such as `[Bb]` or `[cod]` matches a small letter with both values, or with neither."""
    return b"?" if set(match[1].lower()) <= set(match[1]) else match[0]


def _matched(patterns: Collection[Pieces], places: Collection[bytes]) -> set[bytes]:
    texts = [b"/%s/" % place.lower() for place in places]
    everything = b"\n".join(texts)
    present = [pieces for pieces in patterns if all(piece in everything for _, piece in pieces)]
    return {
        place
        for place, text in zip(places, texts, strict=True)
        if any(_stand_in_order(pieces, text) for pieces in present)
    }


def _stand_in_order(pieces: Pieces, text: bytes) -> bool:
    position = 0
    for gap, piece in pieces:
        found = text.find(piece, position + gap)
        if found < 0:
            return False
        position = found + len(piece)
    return True
