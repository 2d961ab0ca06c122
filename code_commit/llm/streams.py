"""What all streamed answers share: telling a stream from a plain JSON reply, and showing how far it is."""

from collections.abc import Iterable, Iterator
from itertools import chain

from code_commit.llm.call import Call
from code_commit.llm.connection import OpenReply, Reply


def json_instead(reply: OpenReply) -> tuple[Reply | None, Iterator[bytes]]:
    """Return the whole reply where a server sent JSON (or a web page) although a stream was asked for, else the stream.

    Its first character tells: content types are set carelessly.
    """
    pieces = iter(reply.pieces)
    begin = b""
    for piece in pieces:
        begin += piece
        if begin.lstrip(b"\xef\xbb\xbf \t\r\n"):
            break
    if begin.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[", b"<"):
        return Reply(reply.status, reply.headers, begin + b"".join(pieces)), iter(())
    return None, chain((begin,), pieces)


def counted_pieces(call: Call, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Hand the pieces on, telling the listener how many bytes have come."""
    size = 0
    for piece in pieces:
        size += len(piece)
        call.progressed(f"{size / 1000:.1f} kB received")
        yield piece
