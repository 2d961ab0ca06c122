"""The spellings of a key: for each the pattern that finds it, and the anchors without which it cannot be there."""

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from code_commit.redaction.folding import DUMP_ROW_START, ESCAPE_SEQUENCE, NUMERIC_SPELLINGS, OFFSET, QUOTED_LINE, fold

Span = tuple[int, int, bytes]
"""Where a key begins and ends, and what stands there instead."""

_Unit = tuple[bytes, ...]

_DUMP_ROW = rb"(?:[|<]\r?)?" + DUMP_ROW_START
_BETWEEN_READABLE = _DUMP_ROW + rb"|" + QUOTED_LINE + rb"|[\x00-\x1a\x1c-\x20'\"\\]|\\[nr]|" + ESCAPE_SEQUENCE
_MOST_BETWEEN = 16
_READABLE_GAP = rb"(?:" + _BETWEEN_READABLE + rb"){0,%d}" % _MOST_BETWEEN
_QUOTES = (b"'", b'"', b"\\")
_BASE64_GAP = rb"(?:[\x00-\x1a\x1c-\x20]|\\[nr]|" + ESCAPE_SEQUENCE + rb"){0,12}"
_MARK = rb"[ \t\r\n:,;\x00]|0x|\\x"
_NUMBER_GAP = rb"(?:(?>[^\n]{0,40}[\r\n]*" + OFFSET + rb")(?:" + _MARK + rb"){0,8}+|(?:" + _MARK + rb"){1,8}+)?"
"""What may stand between two characters. Each gap can be read in one way only, or a text that is nearly a key would be
tried in all of them: blanks are taken as a whole, and what one alternative begins with, no other can reach."""

_XML_NAMES = {ord("&"): b"&amp;", ord("<"): b"&lt;", ord(">"): b"&gt;", ord('"'): b"&quot;", ord("'"): b"&apos;"}

_ANCHOR = 6
"""Characters of an anchor: two of them fit into a row of a dump, which holds 16."""

_SHORTEST_ANCHOR = 3


class Form:
    """One spelling of a key: its units in order, each with its alternatives, and what may stand between them.

    `anchors` are folded pieces of it: data whose folded text holds none of them does not hold the key in this
    spelling. There are two where a row of a dump may end inside one; none where nothing is sure to be met.
    `sequence` is what stands there character by character, b"" where each of them is a number.
    """

    def __init__(
        self, units: list[_Unit], gap: bytes, mask: bytes, anchors: list[bytes], sequence: bytes = b""
    ) -> None:
        self.anchors = frozenset(anchors)
        self.sequence = sequence
        self._mask = mask
        self._units = units
        self._gap = gap

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield each place where the key stands in the data."""
        for match in self._pattern.finditer(data):
            yield (*match.span(), self._mask)

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        """A quote inside the key counts as one of the things between its other characters, for it looks like those."""
        first, *inner, last = self._units
        pieces, quotes = [_either(first)], list[_Unit]()
        for unit in [*inner, last]:
            if unit[0] in _QUOTES and unit is not last:
                quotes.append(unit)
            else:
                pieces += [_wider_gap(quotes) if quotes else self._gap, _either(unit)]
                quotes = []
        return re.compile(b"".join(pieces), re.IGNORECASE)


def _either(spellings: Iterable[bytes]) -> bytes:
    return b"(?:" + b"|".join(map(re.escape, spellings)) + b")"


def _wider_gap(quotes: Sequence[_Unit]) -> bytes:
    """Return the gap with quotes in it. One that stands as itself is in the gap already: it is read in one way only."""
    escaped = dict.fromkeys(re.escape(spelling) for unit in quotes for spelling in unit[1:])
    between = b"|".join([*escaped, _BETWEEN_READABLE])
    return b"(?:" + between + b"){0,%d}" % (_MOST_BETWEEN + len(quotes))


def forms_of(secret: bytes) -> Iterator[Form]:
    """Yield every spelling in which a key is recognised."""
    mask = mask_of(secret)
    yield Form([_readable_unit(code) for code in secret], _READABLE_GAP, mask, _readable_anchors(secret), secret)
    backwards = secret[::-1]
    anchors = _readable_anchors(backwards)[:1]
    yield Form([(bytes([code]),) for code in backwards], _READABLE_GAP, mask, anchors, backwards)
    for alignment in range(3):
        yield _base64_form(secret, alignment, mask)
    for spelling in (b"%02x", b"%03o", b"%d"):
        yield _number_form(secret, spelling, mask)


def mask_of(secret: bytes) -> bytes:
    """Return what stands in a key's place: as the specification says, its last two characters are revealed."""
    return b"*" * (len(secret) - 2) + secret[-2:]


def _readable_unit(code: int) -> _Unit:
    """Every spelling of one character: itself, JSON, URL (twice too), XML, Python, shell and C."""
    spellings = [bytes([code]), *(spelling % code for spelling in NUMERIC_SPELLINGS)]
    return tuple([*spellings, _XML_NAMES[code]] if code in _XML_NAMES else spellings)


def _longest_run(secret: bytes) -> bytes:
    return max(map(fold, re.split(rb"[^A-Za-z0-9]", secret)), key=len)


def shows_in_rows(secret: bytes) -> bool:
    """Tell whether one of the anchors is sure to be whole in the text beside the numbers of a dump."""
    return len(_longest_run(secret)) >= 2 * _ANCHOR


def _readable_anchors(secret: bytes) -> list[bytes]:
    """What is sure to be met of a key: a run of letters and digits (they alone are never escaped singly), or the
    numbers of its first characters where all are escaped alike. [] where the key has no such run.
    """
    run = _longest_run(secret)
    if len(run) < _SHORTEST_ANCHOR:
        return []
    readable = [run[:_ANCHOR], run[_ANCHOR : 2 * _ANCHOR]] if len(run) >= 2 * _ANCHOR else [run]
    return readable + [fold(_spelled(secret[:_ANCHOR], spelling)) for spelling in NUMERIC_SPELLINGS]


def _spelled(secret: bytes, spelling: bytes) -> bytes:
    return b"".join(spelling % code for code in secret)


def _number_form(secret: bytes, spelling: bytes, mask: bytes) -> Form:
    """A dump: every character as a number of fixed width."""
    numbers = [spelling % code for code in secret]
    size = min(_ANCHOR, len(secret) // 2)
    anchors = [fold(b"".join(numbers[:size])), fold(b"".join(numbers[size : 2 * size]))]
    return Form([(number,) for number in numbers], _NUMBER_GAP, mask, anchors)


def _base64_form(secret: bytes, alignment: int, mask: bytes) -> Form:
    """The base64 characters that depend on the secret alone when `alignment` bytes stand before it in its triple.

    The one at each end that depends on a neighbour too stays. Letter case is not told apart.
    """
    core = _base64_core(secret, alignment)
    either: dict[int, _Unit] = {ord("+"): (b"+", b"-"), ord("/"): (b"/", b"_")}
    units = [either.get(code, (bytes([code]),)) for code in core]
    return Form(units, _BASE64_GAP, mask, [fold(core[: 2 * _ANCHOR])], core)


def _base64_core(secret: bytes, alignment: int) -> bytes:
    encoded = base64.b64encode(b"\0" * alignment + secret).rstrip(b"=")
    shared = 1 if (alignment + len(secret)) % 3 else 0
    return encoded[(0, 2, 3)[alignment] : len(encoded) - shared]


def running_spellings(secret: bytes) -> Iterator[bytes]:
    """Yield how the key may run through a stream, folded: a piece that ends inside one of these waits for more."""
    specials_quoted = (
        re.sub(rb"[^A-Za-z0-9._~-]", lambda match: b"%%%02x" % match[0][0], secret),
        re.sub(rb"[^A-Za-z0-9._~-]", lambda match: b"%%25%02x" % match[0][0], secret),
        b"".join(_XML_NAMES.get(code, bytes([code])) for code in secret),
    )
    numbers = (_spelled(secret, spelling) for spelling in NUMERIC_SPELLINGS)
    base64s = (_base64_core(secret, alignment) for alignment in range(3))
    return map(fold, {secret, secret[::-1], *specials_quoted, *numbers, *base64s})
