"""The events of a stream (server-sent events), by the WHATWG's rules and with what servers write beside them."""

from collections.abc import Iterable, Iterator
from itertools import chain

from code_commit.llm.values import json_or_text
from code_commit.regex import regex

LONGEST_BEGIN = 9  # of a BOM and the longest name of a field
_BOM = b"\xef\xbb\xbf"
_FIRST_LINE = regex(rb"(?:\xef\xbb\xbf)?\s*(?::|(?i:data|event|id|retry|error)(?::|[\r\n]|$))")


def begins_stream(begin: bytes) -> bool:
    """Tell whether a reply is a stream of events, by its first `LONGEST_BEGIN` bytes without blanks."""
    return not begin.strip() or _FIRST_LINE.match(begin) is not None


def read_events(pieces: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield (event name, data) of each event that has data, including a last one without a blank line after it.

    A line that is no field of the format is an event of its own if it has a field `error` or a JSON object. So is an
    event that another one follows without the blank line between them.
    """
    name, is_joined = "", False
    data = bytearray()  # joining a list takes 80 bytes for each line
    for line in chain(_read_lines(pieces), [b""]):
        if not line:
            if data:
                yield name, bytes(data[1:])
            name, data, is_joined = "", bytearray(), False
            continue
        field, _, value = line.partition(b":")
        field, value = field.lower(), value.removeprefix(b" ")
        if data and not is_joined and _begins_event(field, value):
            is_joined = not isinstance(json_or_text(bytes(data)), dict)
            if not is_joined:
                yield name, bytes(data[1:])
                name, data = "", bytearray()
        if field == b"data":
            data += b"\n"
            data += value
        elif field == b"event":
            name = value.decode("utf-8", "replace")
        elif field == b"error":
            yield "error", value
        elif line[:1] == b"{":
            yield "", line


def _begins_event(field: bytes, value: bytes) -> bool:
    return field == b"event" or (field == b"data" and (value[:1] == b"{" or value.strip() == b"[DONE]"))


def _read_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each line of a stream as soon as its end arrives: LF, CR LF or CR. A BOM at the beginning is left out."""
    unfinished: list[bytes] = []
    is_first, after_cr = True, False
    for arrived in pieces:
        piece = arrived[1:] if after_cr and arrived[:1] == b"\n" else arrived
        after_cr = piece[-1:] == b"\r" or (after_cr and not arrived)
        if not piece:
            continue
        first, *others = (piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in piece else piece).split(b"\n")
        unfinished.append(first)
        for line in others:
            whole = b"".join(unfinished)
            yield whole.removeprefix(_BOM) if is_first else whole
            is_first, unfinished = False, [line]
    whole = b"".join(unfinished)
    yield whole.removeprefix(_BOM) if is_first else whole
