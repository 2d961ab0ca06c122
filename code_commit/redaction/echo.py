"""How a provider quotes a key back, `sk-pr****wxyz`: it shows more of the end than the specification does."""

import re
from collections.abc import Iterator
from functools import cached_property

from code_commit.redaction.spellings import Span, mask_of

_DOTS = re.compile(rb"\*\*\*|\.\.\.|\xe2\x80\xa6|xxxx")
_SHORTEST_END = 3
_LONGEST_END = 12
_LONGEST_DOTS = 4
_RARE = b"ZQJXYKVWHUBGFzqjKMNOLPDCATSREI"


class Echo:
    """A key's beginning and end with dots between them."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._end = secret[-_SHORTEST_END:]
        rare = next((bytes([code]) for code in _RARE if code in self._end), self._end)
        self._sought = rare, self._end.index(rare)

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield each place where the key is quoted."""
        if self.is_near(data):
            for match in self._pattern.finditer(data):
                yield (*match.span(), mask_of(self._secret))

    def is_near(self, data: bytes) -> bool:
        """Tell whether the end of the key stands in the data somewhere behind dots; it goes by its rarest character."""
        sought, offset = self._sought
        place = data.find(sought)
        while place >= 0:
            start = place - offset
            begin = max(0, start - _LONGEST_END - _LONGEST_DOTS)
            if data.startswith(self._end, max(0, start)) and _DOTS.search(data, begin, max(0, start)):
                return True
            place = data.find(sought, place + 1)
        return False

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        longest = len(self._secret) - 2
        lengths = range(min(_LONGEST_END, longest), _SHORTEST_END - 1, -1)
        ends = b"|".join(re.escape(self._secret[-length:]) for length in lengths)
        starts = b"|".join(re.escape(self._secret[:length]) for length in range(min(24, longest), 1, -1))
        return re.compile(rb"(?:" + starts + rb")(?:\*{3,}|\.{3,}|\xe2\x80\xa6|x{4,})(?:" + ends + rb")")
