"""The parser of event streams: the same events, wherever the stream is cut."""

import tracemalloc
from itertools import pairwise, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as some
from measure import least

from code_commit.llm.events import read_events

EVENTS = [
    (b"data: a\n\n", [("", "a")]),
    (b"data:a\n\n", [("", "a")]),
    (b"data:  a \n\n", [("", " a ")]),
    (b"data: a\r\n\r\ndata: b\r\n\r\n", [("", "a"), ("", "b")]),
    (b"event: x\ndata: a\n\ndata: b\n\n", [("x", "a"), ("", "b")]),
    (b"data: a\ndata: b\ndata\n\n", [("", "a\nb\n")]),
    (b": OPENROUTER PROCESSING\n\n:\n\ndata: a\n\n", [("", "a")]),
    (b"\n\n\ndata: a\n\n", [("", "a")]),
    (b"event: x\n\ndata: a\n\n", [("", "a")]),
    (b"id: 1\nretry: 5\nunknown: z\ndata: a\n\n", [("", "a")]),
    (b"data: a", [("", "a")]),
    (b"data: a\n", [("", "a")]),
    (b"", []),
    (b"data: a\r\rdata: b\r\r", [("", "a"), ("", "b")]),
    (b"\xef\xbb\xbfdata: a\n\n", [("", "a")]),
    (b'error: {"code": 400}\n\ndata: a\n\n', [("error", '{"code": 400}'), ("", "a")]),
    (b'{"error": "x"}\n', [("", '{"error": "x"}')]),
    (b'data: {"a": 1}\ndata: {"b": 2}\ndata: [DONE]\n', [("", '{"a": 1}'), ("", '{"b": 2}'), ("", "[DONE]")]),
    (b"event: a\ndata: {}\nevent: b\ndata: {}\n\n", [("a", "{}"), ("b", "{}")]),
    (b'data: [\ndata: {"a": 1},\ndata: {"b": 2}\ndata: ]\n\n', [("", '[\n{"a": 1},\n{"b": 2}\n]')]),
    (b"Data: a\n\n", [("", "a")]),
    ("data: 日本\u2028語\x85\n\n".encode(), [("", "日本\u2028語\x85")]),
]


@pytest.mark.parametrize(("stream", "events"), EVENTS, ids=repr)
def test_events(stream, events):
    events = [(name, data.encode()) for name, data in events]
    assert list(read_events([stream])) == events
    assert list(read_events(stream[i : i + 1] for i in range(len(stream)))) == events


@given(
    lines=some.lists(some.sampled_from(["data: a", "data: {é😀}", ": c", "event: n", "", "data:", "x"])),
    end=some.sampled_from(["\n", "\r\n", "\r"]),
    cuts=some.lists(some.integers(0, 200)),
)
def test_the_cuts_of_a_stream_do_not_matter(lines, end, cuts):
    stream = end.join(lines).encode()
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:stop] for start, stop in pairwise(places)]
    assert list(read_events(pieces)) == list(read_events([stream]))


def test_an_event_is_told_as_soon_as_it_is_whole():
    told = []

    def pieces():
        for piece in (b"data: 1\n", b"\n", b"data: 2\r\n\r\n", b"data: 3\n\n"):
            yield piece
            told.append(len(seen))

    seen: list[bytes] = []
    for _, data in read_events(pieces()):
        seen.append(data)
    assert seen == [b"1", b"2", b"3"]
    assert told == [0, 1, 2, 3]


@pytest.mark.parametrize("line", [b"data\n", b"data: {\n", b"data: []\n", b"\n", b": a\n", b"event: x\n"])
def test_a_stream_of_short_lines_takes_memory_in_proportion_to_it(line):
    def peak() -> float:
        tracemalloc.start()
        try:
            events = list(read_events(repeat(line * 10_000, 10)))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            assert len(events) == line.startswith(b"data")

    limit = 400_000 + 5 * 100_000 * len(line)  # a thread of another test may allocate a buffer of 256 KiB
    assert least(peak, limit) < limit
