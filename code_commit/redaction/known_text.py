"""Text that holds no key, and need not be looked at again: the codebase stands in every prompt of a run."""

import json
from collections.abc import Iterator
from functools import cached_property

_SHORTEST = 1 << 18
"""Below so many bytes looking again is as fast as recognising the text."""

_BEGINNING = 1024
_TRIES = 8
_OVERLAP = 1 << 16
"""More bytes than a key has in any spelling: one that begins or ends inside the text is met in this overlap."""


class KnownText:
    """A text that was searched for keys: of large data that hold it whole only the two ends have to be searched."""

    def __init__(self, text: str) -> None:
        self._text = text

    def ends_of(self, data: bytes) -> list[bytes] | None:
        """Return what has to be searched of data that hold the text; None where they do not."""
        if len(data) < _SHORTEST:
            return None
        for form in self.forms():
            if len(form) >= _SHORTEST and (place := _place_of(form, data)) >= 0:
                return [data[: place + _OVERLAP], data[place + len(form) - _OVERLAP :]]
        return None

    def forms(self) -> Iterator[bytes]:
        """Yield the text as the log's files have it: as it is, and as a string of JSON."""
        yield self._as_it_is
        yield self._in_json

    @cached_property
    def _as_it_is(self) -> bytes:
        return self._text.encode("utf-8", "surrogatepass")

    @cached_property
    def _in_json(self) -> bytes:
        return json.dumps(self._text, ensure_ascii=False)[1:-1].encode("utf-8", "backslashreplace")


def _place_of(form: bytes, data: bytes) -> int:
    """Return where the form stands; -1 where it does not, or begins too often for trying to be worth the time."""
    place = data.find(form[:_BEGINNING])
    for _ in range(_TRIES):
        if place < 0 or data.startswith(form, place):
            return place
        place = data.find(form[:_BEGINNING], place + 1)
    return -1
