"""The glance: passes over data that cannot hold a key, several times as fast as folding it would be.

It asks for less than a spelling needs, so what it finds is looked at closely, and what it does not find is not there:

- A spelling in letters holds every letter and digit of its sequence as itself. The rarest of them in ordinary output
  is the witness: `bytes.find` goes from one place of it to the next, and there the next characters of the sequence
  must follow. Where the witness itself is escaped, that is what is looked for.
- A spelling in numbers (a dump) is a run of digits, of what marks numbers and of what is dropped, at least two bytes
  for a character. Such a run cannot hide from a look at every n-th byte. It may end with the row of a dump.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from code_commit.redaction.folding import DROPPED, foldings

RAREST_FIRST = b"zqjkxyvw9876543bhgf210mpudclronaiste"
"""Letters of both cases and digits as they come in build logs and source code."""

_AROUND = 256
"""So many bytes per character of the longest key lie between its first and its last character at most."""

_DENSE = 4
_ROW = 32
"""A row of a dump has at least so many bytes of numbers and blanks together."""

_LOOKS = 16
"""So many of the bytes that are looked at fall into the shortest run: fewer meet too many numbers that are no key."""

_BLANKS = rb"[\x00-\x1a\x1c-\x20'\"\\]*"
_ODD_GAP = rb"\x1b|\n[ \t]*[+|#>*]|\"[ \t]*\+|\\[nr]|[|<]?\r?\n[0-9a-fA-F]{6}"
"""What a gap can have beside blanks and quotes, by its beginning: here the glance does not follow it."""

_ESCAPES = rb"\\[ux01]|%[2-7]|&"
_GAP_STARTS = frozenset(b"|<\x1b" + bytes(range(0x21)) + b"'\"\\%&")
_FOLLOWERS = 3
_QUOTES = b"'\"\\"
"""The blanks before a follower take these too."""

_IN_NUMBERS = bytes(code in b"0123456789abcdefABCDEF" + DROPPED for code in range(256))


class Witness:
    """A character by which sequences are met: for each of them what follows it there."""

    def __init__(self, code: int, rests: Sequence[bytes]) -> None:
        self._rests = rests
        self.codes = frozenset(bytes([code]) + bytes([code]).upper())
        firsts = b"".join(rest[:1] for rest in rests)
        self._following = _GAP_STARTS.union(firsts.lower(), firsts.upper(), firsts.translate(_URL_BASE64))

    def places(self, data: bytes) -> Iterator[int]:
        """Yield where the sequences may stand in the data."""
        following, last = self._following, len(data) - 1
        for case in map(bytes, zip(self.codes)):
            place = data.find(case, 0, last)
            while place >= 0:
                if data[place + 1] in following and self._follow.match(data, place + 1):
                    yield place
                place = data.find(case, place + 1, last)

    @cached_property
    def _follow(self) -> re.Pattern[bytes]:
        return re.compile(b"|".join(map(_followers, self._rests)), re.IGNORECASE)


def _either_case(char: bytes) -> bytes:
    return char.lower() + char.upper()


_URL_BASE64 = bytes.maketrans(b"+/", b"-_")


def _followers(rest: bytes) -> bytes:
    """Return a pattern of a sequence's next characters, as far as the glance follows the gaps before them."""
    pattern = b""
    for code in reversed(rest):
        char = bytes([code])
        unit = rb"[" + re.escape(char) + re.escape(char.translate(_URL_BASE64)) + rb"]"
        pattern = _BLANKS + rb"(?:" + _ODD_GAP + rb"|" + _ESCAPES + rb"|" + unit + pattern + rb")"
    return pattern


class Glance:
    """Looks for the witnesses of sequences, and for runs of numbers. `sizes` are the keys' lengths.

    The closer look is for the anchors, of which one is sure to be whole near a witness or in a run. A run may be as
    short as a dump's row, unless one is sure to be whole in the text beside the numbers (`has_text_anchors`).
    """

    def __init__(
        self, sequences: Iterable[bytes], anchors: Iterable[bytes], sizes: Sequence[int], *, has_text_anchors: bool
    ) -> None:
        missing = set(sequences)
        self._witnesses = list(_choose_witnesses(missing))
        self._is_blind = bool(missing)
        self._anchors = frozenset(anchors)
        self._around = _AROUND * max(sizes)
        self._size = 2 * min(sizes) if has_text_anchors else min(2 * min(sizes), _ROW)
        self._step = max(1, self._size // _LOOKS)
        self._run = b"\1" * (self._size // self._step)

    def meets_key(self, data: bytes) -> bool:
        """Tell whether the data may hold a key; False is certain."""
        return self._is_blind or any(map(self._has_anchor, self._suspects(data)))

    def _has_anchor(self, suspect: bytes) -> bool:
        return any(anchor in folded for folded in foldings(suspect) for anchor in self._anchors)

    def _suspects(self, data: bytes) -> Iterator[bytes]:
        """Yield each piece of the data that has to be looked at closely."""
        for witness in self._witnesses:
            yield from self._surroundings(data, witness.places(data))
        yield from self._surroundings(data, self._escaped_witnesses(data))
        yield from self._number_runs(data)

    def _surroundings(self, data: bytes, places: Iterator[int]) -> Iterator[bytes]:
        """Yield what stands around the places, so that no part of it is looked at more than a few times."""
        reach = 0
        for place in places:
            if place + self._around > reach:
                is_dense = place < reach
                reach = place + (_DENSE if is_dense else 1) * self._around
                yield data[max(0, place - self._around) : reach]

    def _escaped_witnesses(self, data: bytes) -> Iterator[int]:
        last = len(data) - 1
        for mark, following, pattern in self._telltales:
            place = data.find(mark, 0, last)
            while place >= 0:
                if data[place + 1] in following and pattern.match(data, place):
                    yield place
                place = data.find(mark, place + 1, last)

    @cached_property
    def _telltales(self) -> list[tuple[bytes, bytes, re.Pattern[bytes]]]:
        """How an escaped witness looks: its first character, what the second may be, and the whole."""
        codes = sorted({code for witness in self._witnesses for code in witness.codes})
        hexadecimal = (
            b"(?:" + b"|".join(b"%d[%s]" % (code >> 4, _either_case(b"%x" % (code & 15))) for code in codes) + b")"
        )
        octal = b"|".join(b"%03o" % code for code in codes)
        decimal = b"|".join(b"%d" % code for code in codes)
        return [
            (b"\\", b"uUxX01", re.compile(rb"\\(?:(?:[uU]00|[xX])" + hexadecimal + b"|" + octal + b")")),
            (b"%", b"234567", re.compile(rb"%(?:25)?" + hexadecimal)),
            (b"&", b"#", re.compile(rb"&#(?:[xX]" + hexadecimal + b"|" + decimal + b")")),
        ]

    def _number_runs(self, data: bytes) -> Iterator[bytes]:
        step = self._step
        looks = data[::step].translate(_IN_NUMBERS)
        begin = looks.find(self._run)
        while begin >= 0:
            end = looks.find(b"\0", begin)
            end = len(looks) if end < 0 else end
            run = data[max(0, (begin - 1) * step) : end * step]
            if b"\1" * self._size in run.translate(_IN_NUMBERS) and not run.isspace():
                yield run
            begin = looks.find(self._run, end)


def _choose_witnesses(missing: set[bytes]) -> Iterator[Witness]:
    """Yield few witnesses that are rare, each for the sequences that have it and none before; these leave the set."""
    for code in RAREST_FIRST:
        rests = {}
        for sequence in missing:
            place = sequence.lower().find(code, 0, max(1, len(sequence) - _FOLLOWERS))
            if place >= 0:
                rests[sequence] = sequence[place + 1 :].translate(None, _QUOTES)[:_FOLLOWERS]
        if rests:
            yield Witness(code, list(rests.values()))
            missing.difference_update(rests)
