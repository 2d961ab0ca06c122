"""The reference encoder: a change of a file as the shortest edits that fit, each with the least unique context."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

MOST_CONTEXT = 40
"""Lines around a change; where that is not enough, it becomes one with its neighbour."""

Span = tuple[int, int, int, int]
"""Lines of the old file from and to, which those of the new one from and to replace."""
Part = tuple[str, str]
"""What a fence of an edit says, and the lines after it."""


def encode(path: str, old: str | None, new: str | None) -> str:
    """Return the block that makes the new content of the old one, by edits where these are shorter; None is no file."""
    if new is None:
        return f"^^^{path}\n^^^delete\n"
    whole = _block(path, [("", new if new.endswith("\n") or not new else new + "\n")])
    edits = "" if old is None else encode_edits(path, old, new)
    return min(edits or whole, whole, key=len)


def encode_edits(path: str, old: str, new: str) -> str:
    """Return the block of edits that makes the new content of the old one; "" where there can be none."""
    parts = edits_between(old, new)
    return _block(path, parts) if parts else ""


def _block(path: str, parts: Sequence[Part]) -> str:
    longest = max(
        (len(match) for _, lines in parts for match in re.findall(r"^\^{3,}", lines, re.MULTILINE)), default=2
    )
    fence = "^" * (longest + 1)
    body = "".join((f"{fence}{name}\n" if name else "") + lines for name, lines in parts)
    return f"{fence}{path}\n{body}{fence}end\n"


def edits_between(old: str, new: str) -> list[Part]:
    """Return what to find, of a range also the last lines, and what to put there, in turns.

    [] where edits cannot say it or nothing differs.
    """
    is_cut = old != "" and not old.endswith("\n")
    if old.startswith("\ufeff") != new.startswith("\ufeff") or is_cut != (new != "" and not new.endswith("\n")):
        return []
    before, after = (_lines(text, old) for text in (old, new))
    crlf = [{line.endswith("\r") for line in lines} for lines in (before, after)]
    if len(crlf[0]) < 2 and not crlf[1] <= crlf[0]:
        return []  # new lines end as those of the file do
    if crlf[0] == {True}:
        before, after = ([line.removesuffix("\r") for line in lines] for lines in (before, after))
    spans = _widened(before, _spans(before, after))
    if is_cut and spans and spans[-1][1] == len(before) and spans[-1][2] == spans[-1][3]:
        return []  # the line before it would keep its line end
    text = _text_of(before)
    return [
        part
        for first, last, start, end in spans
        for part in (*_find(text, before[first:last]), ("replace", _text_of(after[start:end])))
    ]


def _text_of(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _find(text: str, lines: Sequence[str]) -> list[Part]:
    """Return the lines to find, or where that is shorter the least of the first and of the last that are there once."""
    text = f"\n{text}"
    sizes = range(1, min(len(lines), MOST_CONTEXT))
    first = next((size for size in sizes if _is_once(text, lines[:size])), len(lines))
    last = next((size for size in sizes if _is_once(text, lines[-size:])), len(lines))
    whole, ends = _text_of(lines), [_text_of(lines[:first]), _text_of(lines[len(lines) - last :])]
    if first + last > len(lines) or len(ends[0]) + len("^^^to\n") + len(ends[1]) >= len(whole):
        return [("find", whole)]
    return [("find", ends[0]), ("to", ends[1])]


def _lines(text: str, old: str) -> list[str]:
    text = text.removeprefix("\ufeff")
    if text and not text.endswith("\n"):
        ends = old.count("\n")
        text += "\r\n" if ends and old.count("\r\n") == ends else "\n"
    return text.split("\n")[:-1]


def _spans(old: Sequence[str], new: Sequence[str]) -> list[Span]:
    """Return where the two differ."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[~at] != new[~at]), shorter - head)
    inner = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail], autojunk=False)
    return [
        (first + head, last + head, start + head, end + head)
        for kind, first, last, start, end in inner.get_opcodes()
        if kind != "equal"
    ]


def _widened(old: Sequence[str], spans: list[Span]) -> list[Span]:
    """Take so many of the lines around each change in that it is found once; [] where nothing is enough."""
    text = "\n" + _text_of(old)
    at = 0
    wide: list[Span] = []
    while at < len(spans):
        above = spans[at][0] - (spans[at - 1][1] if at else 0)
        below = (spans[at + 1][0] if at + 1 < len(spans) else len(old)) - spans[at][1]
        context = _least_context(text, old, spans[at], above, below)
        if context:
            first, last, start, end = spans[at]
            wide.append((first - context[0], last + context[1], start - context[0], end + context[1]))
            at += 1
        elif at + 1 < len(spans):
            spans[at : at + 2] = [_joined(spans[at], spans[at + 1])]
        elif at:
            at -= 1
            wide.pop()
            spans[at : at + 2] = [_joined(spans[at], spans[at + 1])]
        else:
            return []
    for first, second in reversed(list(pairwise(range(len(wide))))):
        if wide[second][0] < wide[first][1]:
            wide[first : second + 1] = [_joined(wide[first], wide[second])]
    return wide


def _joined(one: Span, other: Span) -> Span:
    return one[0], other[1], one[2], other[3]


def _least_context(text: str, old: Sequence[str], span: Span, above: int, below: int) -> tuple[int, int] | None:
    """Return how many lines above and below make the lines of the span unique in the text."""
    for lines in range(span[0] == span[1], MOST_CONTEXT + 1):
        fitting = [
            (sum(map(len, find)), before, lines - before)
            for before in range(max(0, lines - below), min(above, lines) + 1)
            if _is_once(text, find := old[span[0] - before : span[1] + lines - before])
        ]
        if fitting:
            return min(fitting)[1:]
    return None


def _is_once(text: str, find: Sequence[str]) -> bool:
    wanted = "\n" + _text_of(find)
    place = text.find(wanted)
    return place >= 0 and text.find(wanted, place + 1) < 0
