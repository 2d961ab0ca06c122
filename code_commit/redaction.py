"""The Redactor: every byte that leaves the process passes it, and an API key comes out censored.

The specification: only the last two characters of a key are revealed. A key is found as it is, escaped for JSON, URLs
or XML (one in another where its letters are not escaped), in hexadecimal, in base64 at each of its three alignments and
in both alphabets, as a vendor quotes it (`sk-pr****wxyz`), and split over any number of writes. Other encodings are not
detected: a build gets no key.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Span = tuple[int, int, bytes]  # the begin and the end of a key in the data, and its mask

_LARGE = 1 << 18  # bytes of data that are worth the import of pydantic's regular expressions
_SHORTEST_PIECE = 8  # characters of a key that are censored where a text was cut in the middle of it

_ESCAPES = (b"\\u%04x", b"\\u%04X", b"%%%02x", b"%%%02X", b"&#%d;", b"&#x%x;", b"&#x%X;")
_LONGEST_ESCAPE = len("&amp;amp;#x0073;")
_XML_NAMES = {b"&": b"amp", b"<": b"lt", b">": b"gt", b'"': b"quot", b"'": b"apos"}

_DOTS = rb"(?:\*\*\*\*{0,197}|\.\.\.\.{0,197}|xxxxx{0,196}|\xe2\x80\xa6)"
"""Each alternative begins with a character, not with a repetition: that takes a tenth of the time."""
_LAST_DOTS = r"(?:\*\*|\.\.|xx|…)".encode()
_LONGEST_QUOTATION = 240
_SCALARS = frozenset((str, int, float, bool, type(None)))


class Redactor:
    """Censors a set of API keys. Every sink of a run shares it, so that a key which is fetched later joins in all."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._texts = {*filter(None, secrets)}
        self._secrets = [_Secret(os.fsencode(secret)) for secret in self._texts]

    def add(self, secret: str) -> None:
        """Censor one more key from now on, if it is long enough to be one."""
        if len(secret) >= _SHORTEST_PIECE and secret not in self._texts:
            self._texts.add(secret)
            self._secrets = [*self._secrets, _Secret(os.fsencode(secret))]
            self.__dict__.pop("_any_needle", None)

    def redact(self, data: bytes) -> bytes:
        """Return the data with every key censored."""
        return _Masking().mask(data, self.spans(data), len(data))

    def redact_text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        censored = self.redact(data)
        return text if censored is data else censored.decode("utf-8", "surrogatepass")

    def redact_cut(self, text: str) -> str:
        """Return a shortened text with every key censored, and the pieces of one at its ends."""
        for secret in self._secrets:
            text = secret.without_pieces(text)
        return self.redact_text(text)

    def redact_quotations(self, text: str) -> str:
        """Return a text with every key censored, and the pieces of one before and after the dots of a cut."""
        return "...".join(map(self.redact_cut, self.redact_text(text).split("...")))

    def redact_json(self, value: Any) -> bytes:
        """Return dataclasses and JSON-like data as JSON for people, every key censored, in names of members too."""
        return self.redact(whole_characters(_json_text(value, "\n")).encode() + b"\n")

    def reveals_key(self, text: str) -> bool:
        """Tell whether a key stands in the text, in any form."""
        return bool(self._secrets) and bool(self.spans(text.encode("utf-8", "surrogatepass")))

    def stream(self, write: Callable[[bytes], object]) -> "RedactingStream":
        """Return a sink for data in pieces, which passes the censored data to `write`."""
        return RedactingStream(self, write)

    def spans(self, data: bytes) -> list[Span]:
        """Return the places of keys in order, the longest first of those that begin together."""
        if not self._secrets or (len(data) >= _LARGE and self._has_no_needle(data)):
            return []
        spans = [span for secret in self._secrets for span in secret.spans(data)]
        return sorted(spans, key=lambda span: (span[0], -span[1]))

    def _has_no_needle(self, data: bytes) -> bool:
        """Tell whether the data are UTF-8 without any needle, in one pass, a tenth of the time of a `find` for each."""
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
        """Return the place of a key's beginning that more data may complete; the data's length where none is."""
        return min((secret.unfinished(data) for secret in self._secrets), default=len(data))


class RedactingStream:
    """Redacts data that comes in pieces; holds back only what may be a key's beginning in the last word."""

    def __init__(self, redactor: Redactor, write: Callable[[bytes], object]) -> None:
        self._redactor = redactor
        self._write = write
        self._pending = b""
        self._masking = _Masking()

    def write(self, piece: bytes) -> None:
        """Take the next piece of the data."""
        data = self._pending + piece if self._pending else piece
        self._hand_on(data, self._redactor.unfinished(data))

    def close(self) -> None:
        """Pass on the rest: no more data comes."""
        self._hand_on(self._pending, len(self._pending))

    def _hand_on(self, data: bytes, end: int) -> None:
        censored = self._masking.mask(data, self._redactor.spans(data), end)
        self._pending = data[end:]
        if censored:
            self._write(censored)


class _Masking:
    """Puts masks in the place of keys, in data that may come in pieces: one mask for keys that overlap or touch."""

    def __init__(self) -> None:
        self._reach = -1  # into the next data, of a key whose mask was passed on; -1 where none does

    def mask(self, data: bytes, spans: Iterable[Span], end: int) -> bytes:
        """Return the data up to `end`; the rest comes again with the next."""
        reach, pieces = self._reach, []
        for start, stop, mask in spans:
            if start < end:
                if start > reach:
                    pieces += [data[max(reach, 0) : start], mask]
                reach = max(reach, stop)
        pieces.append(data[max(reach, 0) : end])
        self._reach = reach - end if reach >= end else -1
        return b"".join(pieces)


class _Secret:
    """One key in all its forms."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._mask = b"*" * (len(key) - 2) + re.sub(rb'["\\]', b"*", key[-2:])  # JSON stays JSON around it
        digits = key.hex().encode()
        self._encoded = list(dict.fromkeys([digits, digits.upper(), *_base64_forms(key)]))
        self._run = max(re.findall(rb"[A-Za-z0-9]*", key[1:]), key=len) or key
        self._escaped_runs = _escaped(self._run)
        self._longest = max(_LONGEST_ESCAPE * len(key), _LONGEST_QUOTATION)
        self._gaps = [gap for gap in (b"\n", b"\r", b"\t", b" ") if gap not in key]  # no form of the key has one
        firsts = b"".join(form[:1] for form in (b"\\", b"%", b"&", key, *self._encoded))
        self._begin = re.compile(b"[" + re.escape(firsts) + b"]")

    @property
    def any_needle(self) -> bytes:
        """Return a pattern for the middle of every form of the key; its beginning is common to all keys of a vendor."""
        run = _middle(self._run)
        needles = [run, *_escaped(run), *map(_middle, self._encoded)]
        return b"|".join([*map(re.escape, needles), _LAST_DOTS + self._ends])

    def spans(self, data: bytes) -> Iterator[Span]:
        """Yield each place of the key in the data."""
        for form in self._encoded:
            yield from self._literal_spans(data, form)
        for needle in (self._run, *self._escaped_runs):
            yield from self._spelled_spans(data, needle)
        if self._end.search(data):
            for match in self._quotation.finditer(data):
                yield match.start(), match.end(1), self._mask

    def _literal_spans(self, data: bytes, form: bytes) -> Iterator[Span]:
        place = data.find(form)
        while place >= 0:
            yield place, place + len(form), self._mask
            place = data.find(form, place + 1)

    def _spelled_spans(self, data: bytes, needle: bytes) -> Iterator[Span]:
        """Yield the places of the key as it is, or escaped anywhere but in its longest run of letters and digits."""
        for place, end in self._windows(data, needle):
            if end - place == len(self._key):  # no other window is so short, and the pattern takes long to compile
                yield place, end, self._mask
                continue
            start = place
            while match := self._spelled.search(data, start, end):
                yield (*match.span(), self._mask)
                start = match.start() + 1  # keys may overlap

    def _windows(self, data: bytes, needle: bytes) -> Iterator[tuple[int, int]]:
        """Yield the places of the key as it is, and the windows for its other spellings around needles, joined."""
        inside, place = self._key.find(needle), data.find(needle)
        while place >= 0:
            begin = place - inside
            if 0 <= inside <= place and data.startswith(self._key, begin):
                yield begin, begin + len(self._key)
                place = data.find(needle, place + 1)
                continue
            start, end = max(0, place - self._longest), place + self._longest
            while 0 <= (place := data.find(needle, place + 1)) < end:
                end = place + self._longest
            yield start, end

    @cached_property
    def _spelled(self) -> re.Pattern[bytes]:
        return re.compile(b"".join(b"(?:" + _spellings(code) + b")" for code in self._key))

    @cached_property
    def _end(self) -> re.Pattern[bytes]:
        """Match the key's last three characters, by the last one: faster than `find` for so few."""
        return re.compile(re.escape(self._key[-1:]) + b"(?<=" + re.escape(self._key[-3:]) + b")")

    @cached_property
    def _quotation(self) -> re.Pattern[bytes]:
        """Match a vendor's quotation: the key's beginning, dots, and its end; all but two characters look ahead."""
        return re.compile(re.escape(self._key[:2]) + b"(?=(" + self._beginnings + _DOTS + self._ends + b"))")

    @property
    def _beginnings(self) -> bytes:
        """Return a pattern for a quotation from the key's third character to the dots."""
        lengths = range(min(24, len(self._key) - 1), 1, -1)
        return b"(?:" + b"|".join(re.escape(self._key[2:length]) for length in lengths) + b")"

    @property
    def _ends(self) -> bytes:
        lengths = range(min(12, len(self._key) - 1), 2, -1)
        return b"(?:" + b"|".join(re.escape(self._key[-length:]) for length in lengths) + b")"

    def unfinished(self, data: bytes) -> int:
        """Return the place in the last word where a form of the key may begin, as `Redactor.unfinished`."""
        tail = data[-self._longest :]
        start = max((tail.rfind(gap) for gap in self._gaps), default=-1) + 1
        begin = self._begin.search(tail, start)
        return len(data) - (len(tail) - begin.start() if begin else 0)

    def without_pieces(self, text: str) -> str:
        """Return the text with the key's end at its beginning, and the key's beginning at its end, censored."""
        key, mask = os.fsdecode(self._key), os.fsdecode(self._mask)
        for size in range(len(key) - 1, _SHORTEST_PIECE - 1, -1):
            if text.startswith(key[-size:]):
                text = mask[-size:] + text[size:]
            if text.endswith(key[:size]):
                text = text[:-size] + "*" * size
        return text


def _base64_forms(key: bytes) -> Iterator[bytes]:
    """Yield the base64 characters that depend on the key alone, for each alignment in both alphabets."""
    for alignment, first in enumerate((0, 2, 3)):
        encoded = base64.b64encode(b"\0" * alignment + key).rstrip(b"=")
        core = encoded[first : len(encoded) - (1 if (alignment + len(key)) % 3 else 0)]
        yield from (core, core.translate(bytes.maketrans(b"+/", b"-_")))


def _escaped(run: bytes) -> list[bytes]:
    return list(dict.fromkeys(b"".join(escape % code for code in run) for escape in _ESCAPES))


def _middle(needle: bytes) -> bytes:
    start = max(0, len(needle) - _SHORTEST_PIECE) // 2
    return needle[start : start + _SHORTEST_PIECE]


@cache
def _spellings(code: int) -> bytes:
    """Return patterns for a character as it is, and as JSON, code, a URL and XML escape it, through three layers."""
    plain = bytes([code])
    digits = b"%02x" % code if plain.hex().isdigit() else b"(?i:%02x)" % code
    forms = [rb"\\{1,4}(?:u00|x)" + digits, rb"%(?:25){0,2}" + digits]
    forms += [rb"&(?:amp;){0,2}#0?%d;" % code, rb"&(?:amp;){0,2}#[xX]0{0,2}" + digits + b";"]
    forms += [rb"&(?:amp;){0,2}" + _XML_NAMES[plain] + b";"] if plain in _XML_NAMES else []
    forms += [rb"\\{1,7}" + re.escape(plain)] if plain in b"\"'\\/" else []
    return b"|".join([*forms, re.escape(plain)])


def _json_text(value: Any, line: str) -> str:
    """Return a JSON text; `line` is a line's end with the next indentation."""
    if type(value) in _JSON_TEXTS:  # an encoder takes ten times as long for so little
        return _JSON_TEXTS[type(value)](value)
    value = _members(value)
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if _SCALARS.issuperset(map(type, members)):
        return _encode_json(value)
    deeper = f"{line}  "
    texts = [_json_text(member, deeper) for member in members]
    if isinstance(value, dict):
        texts = [f"{encode_basestring(str(name))}: {text}" for name, text in zip(value, texts, strict=True)]
        return f"{{{deeper}{f',{deeper}'.join(texts)}{line}}}"
    return f"[{deeper}{f',{deeper}'.join(texts)}{line}]"


def whole_characters(text: str) -> str:
    """Return the text with two halves of a UTF-16 pair as one character, and U+FFFD for one alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _members(value: Any) -> Any:
    if fields := getattr(value, "__dataclass_fields__", None):
        return {name: getattr(value, name) for name in fields}
    return value


_JSON_TEXTS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring,
    int: str,
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): lambda _: "null",
}
_encode_json = json.JSONEncoder(ensure_ascii=False, default=_members).encode
