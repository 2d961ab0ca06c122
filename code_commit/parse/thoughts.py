"""The model's thoughts in a response, and the place where its answer begins. Blocks in thoughts do not count."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from code_commit.changes import Reasons, RunWarning, quoted
from code_commit.grammar import EDITING, SHORTEST_FENCE
from code_commit.marks import Mark, fenced_mark, find_marks, may_have_marks
from code_commit.parse import fences
from code_commit.regex import regex

_MOST_UNCLOSED = 1_000  # blocks and quotations; they alone reject an answer of which they all count
_TAG = regex(
    r"^ {0,3}(?:<(?P<closed>\w+)\|>|[<\[{(\u3010\u25c1]{1,2}[|\uff5c]?(?P<slash>/?)"
    r"(?P<name>[^\W\d_][\w:.\u2581-]*)(?:[\s=][^<>\n]*)?[|\uff5c]?[>\]})\u3011\u25b7]{1,2}|<\|(?P<opened>\w+)>\w*|<\|channel\|>(?P<channel>\w+)"
    r"|(?P<opened_dots>[A-Z]\w+)(?:\.{3}|\u2026)|(?:\.{3}|\u2026)\w+ (?P<closed_dots>\w+)\.?)[ \t\r]*$",
    re.MULTILINE,
)
"""Lines that frame what is between them: tags in any brackets, tokens, and words with dots as ollama prints them."""
_BEGIN_OR_END = regex(r"(?:(begin|start)|end)[_\u2581-](?:of[_\u2581-])?(.+)")
_ANSWER = regex(r"(?i:(?:.*[_:-])?(?:answer|response|output|result|solution|final))")
_WORD = regex(r"\S+")
_STRIPPED = regex(r"\s*(?:analysis|commentary)(?s:.*)assistantfinal(?=[^\s\"'`.,:;)\]]|\s*\^{3})")
"""Harmony whose tokens a server left out. A name that is only spoken of has a blank or a sign behind it."""
_BARE_CHANNEL = regex(r"\s*(analysis|commentary|thought)[ \t\r]*\n")
_TURN = regex(
    r"(?i:^[ \t]*(?:<[^<>\n]{1,40}>)*"
    r"(?:(?:user|human)(?:<[^<>\n]{1,40}>)*[ \t\r]*$|(?:\#+[ \t]*(?:user|human)|human):|\[INST\])"
    r"|<[^<>\n]{0,39}[|_\uff5c][^<>\n]{0,39}>(?:user|human)\b|<[|\uff5c](?:user|human)(?:_token)?[|\uff5c]>)",
    re.MULTILINE,
)
"""The beginning of another speaker's words, by a template's tokens or without them: the answer ended before it."""
_ONLY_NAMED = "; put a tag that you only mention in backticks"
_UNENDED = "never end, and blocks in thoughts do not count: end them, then send the answer"
_SEND_AGAIN = "send the blocks that count, without thoughts or tags around them"


class Thoughts(NamedTuple):
    """The place where the answer begins, how many blocks stand before it, and what is wrong with the marks after it.

    `doubt` is a mark that makes thoughts of blocks that may be the answer; `unended` opens thoughts that never end.
    """

    end: int
    dropped: int = 0
    doubt: Mark | None = None
    unended: Mark | None = None
    are_all: bool = False


class _Span(NamedTuple):
    """A text outside of closed blocks; a draft is the text of a block that is not closed."""

    start: int
    end: int
    is_draft: bool


def find_thoughts(text: str) -> Thoughts:
    """Return where thoughts end: after the last closing mark outside of blocks that has blocks after it."""
    if (stripped := _STRIPPED.match(text)) and fences.opens_block(text[stripped.end() :]):
        return Thoughts(stripped.end(), len(_outline(stripped[0])[0]))
    openings, spans = _outline(text) if may_have_marks(text) else ([], [])
    marks = list(_marks_in(text, spans))
    end = dropped = 0
    is_open = False
    for mark in marks:
        before = bisect_left(openings, mark.end)
        if mark.opens:
            is_open = is_open or mark.is_firm
        elif mark.is_firm or (is_open and not before):
            is_open = False
            if before < len(openings) or not openings:
                end, dropped = mark.end, before
    doubt, unended = _find_faults([mark for mark in marks if mark.start >= end], openings, dropped)
    if openings:
        return Thoughts(end, dropped, doubt, unended)
    are_all = bool(marks) and not text[end : unended.start if unended else None].strip()
    return Thoughts(len(text) if are_all else end, are_all=are_all)


def _find_faults(marks: Sequence[Mark], openings: Sequence[int], dropped: int) -> tuple[Mark | None, Mark | None]:
    """Return the mark that puts blocks in doubt which count, and the one that opens thoughts without an end."""
    doubt = opened = None
    for mark in marks:
        before = bisect_left(openings, mark.end)
        if mark.opens:
            opened = opened or (mark if mark.is_firm else None)
        else:
            is_after_all = opened is not None and bisect_left(openings, opened.end) == len(openings)
            if before > dropped and not is_after_all and (mark.is_firm or before < len(openings)):
                doubt = mark
            opened = None
    if opened is None or not openings:
        return doubt, opened
    before = bisect_left(openings, opened.end)
    if before == dropped:
        return doubt, opened
    return doubt or (opened if before < len(openings) else None), None


def _outline(text: str) -> tuple[list[int], list[_Span]]:
    """Return where blocks open, and the texts outside of closed blocks; none where too many are not closed."""
    openings: list[int] = []
    spans: list[_Span] = []
    position, is_draft, unclosed = int(text.startswith("\ufeff")), False, 0
    tokens = fences.BEGINS_WITH_TOKENS.match(text, position)
    after_tokens, at_line = tokens.end() if tokens else -1, -1
    while position < len(text) and unclosed < _MOST_UNCLOSED:
        if at_line < position:
            at_line = fences.next_opening(text, position)
        opening = fenced_mark(text, SHORTEST_FENCE, position, at_line)
        if position <= after_tokens:
            opening = min(opening, after_tokens)
        spans.append(_Span(position, opening, is_draft))
        carets, name, position = fences.split_fence(text, opening)
        is_draft = False
        if opening < len(text) and not fences.is_inner(name):
            end = _end_of_block(text, carets, position)
            if end or not fences.is_pointed_out(text, opening):
                openings.append(opening)
                is_draft = not end
            unclosed += not end
            position = end or position
    return (openings, spans) if unclosed < _MOST_UNCLOSED else ([], [])


def _end_of_block(text: str, carets: int, body: int) -> int:
    """Return where the text after a closed block begins, 0 if the block is not closed."""
    closing = fences.closing_fence(text, body, carets)
    _, word, after = fences.split_fence(text, closing)
    if word == "delete" and closing == body:
        return fences.skip_end(text, after, carets)
    if word == "find" and closing == body:
        while word in EDITING:
            _, word, after = fences.split_fence(text, fences.closing_fence(text, after, carets))
        return after if word == "end" else 0
    while not word and closing < len(text):
        if fences.BARE_END.match(text, closing):
            return after
        closing = fences.closing_fence(text, after, carets)
        _, word, after = fences.split_fence(text, closing)
    return after if word == "end" else 0


def _marks_in(text: str, spans: Sequence[_Span]) -> Iterator[Mark]:
    """Yield the marks outside of blocks, but for a pair in one that is not closed: it may be a part of the file."""
    starts = [span.start for span in spans]
    opened: tuple[int, Mark] | None = None
    for mark in find_marks(text, [(span.start, span.end) for span in spans]):
        at = bisect_right(starts, mark.start) - 1
        if opened and (mark.opens or opened[0] != at):
            yield opened[1]
            opened = None
        if mark.opens and spans[at].is_draft:
            opened = at, mark
        elif opened:
            opened = None
        else:
            yield mark
    if opened:
        yield opened[1]


def report_thoughts(text: str, thoughts: Thoughts, reasons: Reasons) -> None:
    """Add what the marks say against the answer, and the warning that counts dropped blocks."""
    if thoughts.end:
        reasons.leniences.add("thoughts-dropped")
    if thoughts.dropped:
        counted = "1 block" if thoughts.dropped == 1 else f"{thoughts.dropped:,} blocks"
        verb = "does" if thoughts.dropped == 1 else "do"
        reasons.warnings.append(RunWarning("thoughts", f"{counted} in the model's thoughts {verb} not count"))
    if mark := thoughts.unended:
        fact = f"the thoughts that '{quoted(text[mark.start : mark.end])}' begins {_UNENDED}{_ONLY_NAMED}"
        reasons.add("", _line_of(text, mark.start), "thoughts", fact)
    if not thoughts.end and (channel := _BARE_CHANNEL.match(text)):
        fact = f"the first line, '{channel[1]}', begins thoughts that have no end"
        reasons.suspect("", _line_of(text, channel.start(1)), "thoughts", fact, _SEND_AGAIN)
    if mark := thoughts.doubt:
        fact = f"if '{quoted(text[mark.start : mark.end])}' marks thoughts, blocks that may be the answer do not count"
        reasons.suspect("", _line_of(text, mark.start), "thoughts", fact, _SEND_AGAIN + _ONLY_NAMED)


def suspect_tagged_blocks(text: str, cuts: Sequence[int], reasons: Reasons) -> None:
    """Suspect blocks after another speaker's words, or between an opening and a closing tag of one name that is no
    mark, each alone on its line.

    All of the answer may stand in a tag of a name that says so, or in any one with nothing but the blocks.
    """
    opened: dict[str, tuple[int, int]] = {}
    pieces = list(pairwise(cuts))
    outside = pieces[::2]
    for blocks, (start, end) in enumerate(outside):
        if 0 < blocks < len(pieces) // 2 and (turn := _TURN.search(text, start, end)):
            fact = f"'{quoted(turn[0].strip())}' begins another speaker's turn, and blocks stand before and after it"
            reasons.suspect("", _line_of(text, turn.start()), "thoughts", fact, "send the blocks that count, alone")
            return
        for tag in _TAG.finditer(text, start, end):
            name, opens = _read_tag(tag)
            if any(find_marks(tag[0])):
                continue
            if opens:
                opened.setdefault(name, (blocks, tag.end()))
                continue
            before, inside = opened.pop(name, (blocks, 0))
            is_around_all = before == 0 and blocks == len(pieces) // 2
            is_answer = is_around_all and (_ANSWER.fullmatch(name) or _has_blocks_alone(text, outside, inside, tag))
            if before < blocks and not is_answer:
                fact = f"blocks stand between the beginning of {name} and '{quoted(tag[0].strip())}', as in thoughts"
                reasons.suspect("", _line_of(text, tag.start()), "thoughts", fact, _SEND_AGAIN)
                return


def _read_tag(tag: re.Match[str]) -> tuple[str, bool]:
    """Return the name of a frame, and whether the line opens it."""
    if tag["channel"]:
        return "channel", tag["channel"].lower() != "final"
    name = (tag["name"] or tag["opened"] or tag["closed"] or tag["opened_dots"] or tag["closed_dots"]).lower()
    opens = not (tag["slash"] or tag["closed"] or tag["closed_dots"])
    if match := _BEGIN_OR_END.fullmatch(name):
        return match[2], match[1] is not None
    return name, opens


def _has_blocks_alone(text: str, outside: Sequence[tuple[int, int]], inside: int, tag: re.Match[str]) -> bool:
    """Tell whether nothing but blocks, other tags apart, stands between a tag and its end: thoughts have words."""
    parts = (text[max(start, inside) : min(end, tag.start())] for start, end in outside)
    return not any(_TAG.sub("", part).strip() for part in parts)


def _line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def end_thoughts(text: str, thoughts: str) -> str:
    """Return the text with a closing mark after the thoughts that it repeats, if there are blocks in them.

    `thoughts` are those that the provider handed over beside the text.
    """
    if not fences.opens_block(thoughts) or thoughts.lstrip().startswith(SHORTEST_FENCE):
        return text
    end, repeated = 0, _WORD.finditer(text)
    for word in _WORD.finditer(thoughts):
        said = next(repeated, None)
        if said is None or said[0] != word[0]:
            return text
        end = said.end()
    return f"{text[:end]}\n</think>\n{text[end:]}" if fences.opens_block(text[end:]) else text
