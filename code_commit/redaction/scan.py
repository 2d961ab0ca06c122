"""The scan: where keys stand in data, in any of their spellings."""

from collections.abc import Iterator, Sequence

from code_commit.redaction.dump_rows import first_row
from code_commit.redaction.echo import Echo
from code_commit.redaction.folding import (
    DROPPED,
    fold_beginning,
    fold_beginning_closely,
    foldings,
    place_of_last,
    place_of_last_closely,
)
from code_commit.redaction.glance import Glance
from code_commit.redaction.spellings import Form, Span, forms_of, mask_of, running_spellings, shows_in_rows

_BYTES_PER_CHARACTER = 12
"""A key is looked for that many times its length back when a write may have ended inside it (`\\u0073` is 6)."""

_NO_KEY = b"\x7f"
"""Stands in no spelling and in no gap of one."""

_NUMBER_MARKS = b"\\%xXuU0&#"


class Scan:
    """Looks for a set of keys. Immutable."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = secrets
        self._echoes = [Echo(secret) for secret in secrets]
        self._window = max(_BYTES_PER_CHARACTER * len(secret) + 256 for secret in secrets)
        self._forms = [form for secret in secrets for form in forms_of(secret)]
        self._anchors = frozenset().union(*(form.anchors for form in self._forms))
        self._openings = frozenset(_NUMBER_MARKS).union(*map(_dropped_beginning, secrets))
        self._running = sorted({spelling for secret in secrets for spelling in running_spellings(secret)})
        self._is_sure = all(form.anchors for form in self._forms)
        sequences = [form.sequence for form in self._forms if form.sequence]
        sizes = [*map(len, secrets)]
        self._glance = Glance(sequences, self._anchors, sizes, has_text_anchors=all(map(shows_in_rows, secrets)))

    def spans(self, data: bytes) -> list[Span]:
        """Return where keys stand: (start, end, mask), in order, those that overlap joined into one.

        Keys as they are, in the header of a request say, are found without the patterns of their spellings: to compile
        one takes longer than to read a log.
        """
        is_met = self._meets_key(data)
        literal = [span for secret in self._secrets for span in _literal_spans(data, secret)] if is_met else []
        if literal:
            data = _blanked(data, literal)
            is_met = self._meets_key(data)
        finders: list[Form | Echo] = [echo for echo in self._echoes if echo.is_near(data)]
        if is_met:
            met = {anchor for folded in foldings(data) for anchor in self._anchors if anchor in folded}
            finders += [form for form in self._forms if not form.anchors or not met.isdisjoint(form.anchors)]
        return _joined(sorted([*literal, *(span for finder in finders for span in finder.spans(data))]))

    def _meets_key(self, data: bytes) -> bool:
        return not self._is_sure or self._glance.meets_key(data)

    def unfinished(self, data: bytes, spans: Sequence[Span]) -> tuple[int, int] | None:
        """Return (position, characters read) of the first key behind the spans that may go on past the end, else None.

        The last rows of a dump may be a part of one, keys that have been found in them too: what is beside their
        numbers comes later.
        """
        found_end = spans[-1][1] if spans else 0
        start = max(found_end, len(data) - self._window)
        first, read = self._running_key(data, start)
        while first > start and data[first - 1] in self._openings:
            first -= 1
        rows = first_row(data, max(0, len(data) - self._window))
        if rows < first:
            first, read = min([rows, *(span[0] for span in spans if span[0] < rows < span[1])]), len(data) - rows
        return (first, read) if first < len(data) else None

    def _running_key(self, data: bytes, start: int) -> tuple[int, int]:
        folded = fold_beginning(data[start:])
        read = max(_shared_length(folded, spelling) for spelling in self._running)
        closely = fold_beginning_closely(data[start:])
        if closely == folded:
            return place_of_last(data, read, start), read
        first = place_of_last(data, read, start)
        read_closely = max(_shared_length(closely, spelling) for spelling in self._running)
        if read_closely:
            first = min(first, place_of_last_closely(data, read_closely, start))
        return first, max(read, read_closely)


def _dropped_beginning(secret: bytes) -> bytes:
    """Return the characters that a key begins with, in either direction, and that folding drops."""
    backwards = secret[::-1]
    return secret[: len(secret) - len(secret.lstrip(DROPPED))] + backwards[: len(secret) - len(secret.rstrip(DROPPED))]


def _literal_spans(data: bytes, secret: bytes) -> Iterator[Span]:
    start = data.find(secret)
    while start >= 0:
        yield start, start + len(secret), mask_of(secret)
        start = data.find(secret, start + len(secret))


def _blanked(data: bytes, spans: list[Span]) -> bytes:
    blanked = bytearray(data)
    for start, end, _ in spans:
        blanked[start:end] = _NO_KEY * (end - start)
    return bytes(blanked)


def _joined(found: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end, mask in found:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]), joined[-1][2])
        else:
            joined.append((start, end, mask))
    return joined


_PROBE = 4


def _shared_length(text: bytes, spelling: bytes) -> int:
    """Return the length of the longest end of the text that the spelling begins with.

    Most often that is none: then the text's last few characters are not in the spelling at all.
    """
    probe = text[-_PROBE:]
    place = spelling.rfind(probe) if len(probe) == _PROBE else -1
    while place >= 0:
        if text.endswith(spelling[: place + _PROBE]):
            return place + _PROBE
        place = spelling.rfind(probe, 0, place + _PROBE - 1)
    lengths = range(min(len(text), len(spelling), _PROBE - 1), 0, -1)
    return next((length for length in lengths if text.endswith(spelling[:length])), 0)
