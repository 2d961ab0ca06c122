"""Server-sent events, as the HTML standard defines the stream: lines in pieces of any size to events."""

import codecs
from collections.abc import Iterable, Iterator


def read_events(pieces: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield (event name, data) of each event. Comments and events without data are skipped.

    An event that the stream ends in is yielded too: servers leave out the blank line behind the last one, and
    a half one is no JSON.
    """
    name = ""
    data: list[str] = []
    for line in read_lines(pieces):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    if data:
        yield name, "\n".join(data)


def read_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Yield the lines of a stream, which end with CR LF, LF or CR, as soon as their end has come.

    Bytes that are no UTF-8 come out as lone surrogates, so that whoever needs the line sees the damage.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    unfinished: list[str] = []
    after_return = False
    for piece in pieces:
        text = decoder.decode(piece)
        if after_return and text:
            text = text.removeprefix("\n")
            after_return = False
        after_return = after_return or text.endswith("\r")
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        unfinished.append(lines[0])
        if len(lines) > 1:
            yield "".join(unfinished)
            yield from lines[1:-1]
            unfinished = [lines[-1]]
    last = "".join(unfinished) + decoder.decode(b"", final=True)
    if last:
        yield last
