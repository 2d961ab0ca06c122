"""The Redactor: every byte that leaves the process passes it, and an API key comes out censored.

The specification: only the last two characters of a key are revealed, wherever it appears. A key is found as it is,
and as tools write it: escaped for JSON, URLs or XML, in hexadecimal, in base64 at each of its three alignments and in
both alphabets, as a vendor quotes it (`sk-pr****wxyz`), and split over any number of writes. No other disguise is
looked for: the build gets no key that it could disguise.
"""

import base64
import dataclasses
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Span = tuple[int, int, bytes]
"""Where a key begins and ends, and what stands there instead."""

_LARGE = 1 << 18
"""Bytes of data for which it is worth while to import pydantic's regular expressions, and too many to be indented."""

_SHORTEST_PIECE = 8
"""So many characters of a key are censored where a text was cut in the middle of it."""

_ESCAPES = (b"\\u%04x", b"\\u%04X", b"%%%02x", b"%%%02X", b"&#%d;", b"&#x%x;", b"&#x%X;")
_LONGEST_ESCAPE = len("&#x0073;")
_XML_NAMES = {b"&": b"amp", b"<": b"lt", b">": b"gt", b'"': b"quot", b"'": b"apos"}
_HALF_ESCAPED = re.compile(rb"(?:\\{1,2}(?:u[0-9a-fA-F]{0,3})?|%[0-9a-fA-F]?|&[#0-9a-zA-Z]{0,6})?\Z")
"""Nothing, or what may become an escaped character, at the end of the data."""

_DOTS = rb"(?:\*{3,200}|\.{3,200}|x{4,200}|\xe2\x80\xa6)"
_HALF_DOTS = rb"(?:\*{1,200}|\.{1,200}|x{1,200}|\xe2(?:\x80\xa6?)?)"
_LONGEST_QUOTATION = 240


class Redactor:
    """Censors a set of API keys. Immutable, so every sink of a run can share it."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = [_Secret(os.fsencode(secret)) for secret in {*secrets} if secret]

    def redact(self, data: bytes) -> bytes:
        """Return the data with every key censored."""
        return _masked(data, self.spans(data), len(data))[0]

    def redact_text(self, text: str) -> str:
        """Return the text with every key censored."""
        data = text.encode("utf-8", "surrogatepass")
        censored = self.redact(data)
        return text if censored is data else censored.decode("utf-8", "surrogatepass")

    def redact_cut(self, text: str) -> str:
        """Return a text that was shortened with every key censored, and with what a cut left of one at its ends."""
        for secret in self._secrets:
            text = secret.without_pieces(text)
        return self.redact_text(text)

    def redact_quotations(self, text: str) -> str:
        """Return a text with every key censored, and with what is left of one before and after the dots of a cut."""
        return "...".join(map(self.redact_cut, self.redact_text(text).split("...")))

    def redact_json(self, value: Any) -> bytes:
        """Return dataclasses and JSON-like data as a JSON document with every key censored, in names of members too."""
        return self.redact(_json_document(value))

    def reveals_key(self, text: str) -> bool:
        """Tell whether a key stands in the text, in any form."""
        return bool(self._secrets) and bool(self.spans(text.encode("utf-8", "surrogatepass")))

    def stream(self, write: Callable[[bytes], object]) -> "RedactingStream":
        """Return a sink for data in pieces, which hands the censored data on to `write`."""
        return RedactingStream(self, write)

    def spans(self, data: bytes) -> list[Span]:
        """Return where keys stand, in order; of those that begin together the longest comes first."""
        if not self._secrets or (len(data) >= _LARGE and self._has_no_needle(data)):
            return []
        spans = [span for secret in self._secrets for span in secret.spans(data)]
        return sorted(spans, key=lambda span: (span[0], -span[1]))

    def _has_no_needle(self, data: bytes) -> bool:
        """Tell whether the data are UTF-8 without any of the needles, ten times as fast as `find` for each of them.

        Rust's regular expressions, which pydantic brings along, look for all needles in one pass.
        """
        from pydantic_core import ValidationError

        try:
            self._any_needle.validate_python(data)
        except ValidationError as error:
            return error.errors(include_input=False, include_context=False)[0]["type"] == "string_pattern_mismatch"
        return False

    @cached_property
    def _any_needle(self) -> "SchemaValidator":
        from pydantic_core import SchemaValidator, core_schema

        pattern = b"|".join(secret.any_needle for secret in self._secrets).decode("utf-8", "ignore")
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))

    def unfinished(self, data: bytes) -> int:
        """Return where the beginning of a key stands that more data may complete; the data's length where none does."""
        return min((secret.unfinished(data) for secret in self._secrets), default=len(data))


class RedactingStream:
    """Redacts data that comes in pieces; holds back only what may be the beginning of a key, until `close`."""

    def __init__(self, redactor: Redactor, write: Callable[[bytes], object]) -> None:
        self._redactor = redactor
        self._write = write
        self._pending = b""
        self._reach = -1

    def write(self, piece: bytes) -> None:
        """Take the next piece of the data."""
        data = self._pending + piece if self._pending else piece
        self._hand_on(data, self._redactor.unfinished(data))

    def close(self) -> None:
        """Hand on what was held back: no more data comes."""
        self._hand_on(self._pending, len(self._pending))

    def _hand_on(self, data: bytes, end: int) -> None:
        censored, self._reach = _masked(data, self._redactor.spans(data), end, self._reach)
        self._pending = data[end:]
        if censored:
            self._write(censored)


def _masked(data: bytes, spans: Sequence[Span], end: int, reach: int = -1) -> tuple[bytes, int]:
    """Return the data up to `end` with masks in the place of keys: one mask for keys that overlap or touch.

    Up to `reach` the data stand for a key already whose mask was handed on, -1 where none was. How far the last mask
    reaches past `end` is returned in the same way.
    """
    pieces = []
    for start, stop, mask in spans:
        if start < end:
            if start > reach:
                pieces += [data[max(reach, 0) : start], mask]
            reach = max(reach, stop)
    rest = data[max(reach, 0) : end]
    return b"".join([*pieces, rest]) if pieces else rest, reach - end if reach >= end else -1


class _Secret:
    """One key in all its forms."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._mask = b"*" * (len(key) - 2) + re.sub(rb'["\\]', b"*", key[-2:])  # JSON stays JSON around it
        digits = key.hex().encode()
        self._encoded = list(dict.fromkeys([digits, digits.upper(), *_base64_forms(key)]))
        self._run = max(re.findall(rb"[A-Za-z0-9]*", key[1:]), key=len) or key
        self._escaped_runs = list(dict.fromkeys(b"".join(escape % code for code in self._run) for escape in _ESCAPES))
        self._longest = max(_LONGEST_ESCAPE * len(key), _LONGEST_QUOTATION)

    @property
    def any_needle(self) -> bytes:
        """Return a pattern for the pieces of which one stands wherever the key does."""
        needles = map(re.escape, (self._run, *self._escaped_runs, *self._encoded))
        return b"|".join([*needles, "[*.x…]".encode() + self._ends])

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield each place where the key stands in the data."""
        for form in self._encoded:
            yield from self._literal_spans(data, form)
        for needle in (self._run, *self._escaped_runs):
            yield from self._spelled_spans(data, needle)
        for end in self._end.finditer(data):
            if match := self._quotation.search(data, max(0, end.end() - _LONGEST_QUOTATION), end.end()):
                yield (*match.span(), self._mask)

    def _literal_spans(self, data: bytes, form: bytes) -> Iterator[Span]:
        place = data.find(form)
        while place >= 0:
            yield place, place + len(form), self._mask
            place = data.find(form, place + 1)

    def _spelled_spans(self, data: bytes, needle: bytes) -> Iterator[Span]:
        """Yield where the key stands as it is, or with any of its characters escaped but those of its longest run.

        The letters and digits of this run are the needle: tools escape all letters and digits or none.
        """
        place = data.find(needle)
        while place >= 0:
            for match in self._spelled.finditer(data, max(0, place - self._longest), place + 2 * self._longest):
                yield (*match.span(1), self._mask)
            place = data.find(needle, place + self._longest)

    @cached_property
    def _spelled(self) -> re.Pattern[bytes]:
        """Matches nothing, where the key stands in any spelling, and has it as its group: keys may overlap."""
        return re.compile(b"(?=(" + b"".join(_spelling(code).pattern for code in self._key) + b"))")

    @cached_property
    def _end(self) -> re.Pattern[bytes]:
        """Finds the key's last three characters: by the last one, which is faster than `find` for so few."""
        return re.compile(re.escape(self._key[-1:]) + b"(?<=" + re.escape(self._key[-3:]) + b")")

    @cached_property
    def _quotation(self) -> re.Pattern[bytes]:
        """Matches the key as a vendor shows it: its beginning, dots, and more of its end than two characters."""
        return re.compile(self._beginnings + _DOTS + self._ends + rb"\Z")

    @cached_property
    def _half_quotation(self) -> re.Pattern[bytes]:
        return re.compile(self._beginnings + _HALF_DOTS + b"[" + re.escape(self._key) + rb"]{0,12}\Z")

    @property
    def _beginnings(self) -> bytes:
        lengths = range(min(24, len(self._key) - 1), 1, -1)
        return b"(?:" + b"|".join(re.escape(self._key[:length]) for length in lengths) + b")"

    @property
    def _ends(self) -> bytes:
        lengths = range(min(12, len(self._key) - 1), 2, -1)
        return b"(?:" + b"|".join(re.escape(self._key[-length:]) for length in lengths) + b")"

    def unfinished(self, data: bytes) -> int:
        """Return where the beginning of the key stands that more data may complete; the data's length if none does.

        No form of a key has a line end in it.
        """
        start = max(data.rfind(b"\n") + 1, len(data) - self._longest)
        tail = data[start:]
        if not tail:
            return start
        places = [_beginning_of(form, tail) for form in self._encoded]
        firsts = (*_spelling(self._key[0]).finditer(tail), *_HALF_ESCAPED.finditer(tail))
        places += [first.start() for first in firsts if self._is_begun(tail, first.start())]
        if quoted := self._half_quotation.search(tail):
            places.append(quoted.start())
        return start + min(places)

    def _is_begun(self, data: bytes, place: int) -> bool:
        """Tell whether all that stands from here on is the beginning of the key, however it is spelled."""
        for code in self._key:
            if _HALF_ESCAPED.match(data, place):
                return True
            match = _spelling(code).match(data, place)
            if match is None:
                return False
            place = match.end()
        return False

    def without_pieces(self, text: str) -> str:
        """Return the text with the key's end at its beginning, and the key's beginning at its end, censored."""
        key, mask = os.fsdecode(self._key), os.fsdecode(self._mask)
        for size in range(len(key) - 1, _SHORTEST_PIECE - 1, -1):
            if text.startswith(key[-size:]):
                text = mask[-size:] + text[size:]
            if text.endswith(key[:size]):
                text = text[:-size] + "*" * size
        return text


def _beginning_of(form: bytes, data: bytes) -> int:
    """Return where the beginning of the form stands with which the data end; their length where they do not."""
    place = data.find(form[:1], max(0, len(data) - len(form) + 1))
    while place >= 0 and not form.startswith(data[place:]):
        place = data.find(form[:1], place + 1)
    return place if place >= 0 else len(data)


def _base64_forms(key: bytes) -> Iterator[bytes]:
    """Yield the base64 characters that depend on the key alone, when so many bytes stand before it in its triple.

    The one at each end that depends on a neighbour too stays.
    """
    for alignment, first in enumerate((0, 2, 3)):
        encoded = base64.b64encode(b"\0" * alignment + key).rstrip(b"=")
        core = encoded[first : len(encoded) - (1 if (alignment + len(key)) % 3 else 0)]
        yield from (core, core.translate(bytes.maketrans(b"+/", b"-_")))


@cache
def _spelling(code: int) -> re.Pattern[bytes]:
    """Return a pattern for a character as it is, and as JSON (once more in a JSON text), a URL and XML escape it."""
    plain = bytes([code])
    forms = [rb"\\{1,2}u00(?i:%02x)" % code, rb"%%(?i:%02x)" % code]
    forms += [rb"&#0?%d;" % code, rb"&#[xX]0{0,2}(?i:%x);" % code]
    forms += [b"&" + _XML_NAMES[plain] + b";"] if plain in _XML_NAMES else []
    forms += [rb"\\" + re.escape(plain)] if plain in b'"\\/' else []
    return re.compile(b"(?:" + b"|".join([*forms, re.escape(plain)]) + b")")


def _json_document(value: Any) -> bytes:
    """Return a JSON document that a person can read; a large one is all on one line.

    Python indents at a tenth of the speed, and with ten times the memory.
    """
    text = json.dumps(value, ensure_ascii=False, default=_members)
    if len(text) < _LARGE:
        text = json.dumps(value, ensure_ascii=False, indent=2, default=_members)
    return whole_characters(text).encode() + b"\n"


def whole_characters(text: str) -> str:
    """Return the text with halves of a UTF-16 pair that met in joining as one character, and U+FFFD for one alone.

    An escape in the JSON of a reply can make half of a pair: nothing that reads UTF-8 or JSON could take it.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _members(value: Any) -> dict[str, Any]:
    """Return the members of a dataclass."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
