"""The marks of thoughts in an LLM's answer: where they begin and end, as models, templates and servers write them."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from code_commit.regex import regex

# such as <think>, </seed:think>, <|begin_of_thought|>, <|END_THINKING|>, [/THINK], and channels of harmony and Gemma
_MARK = regex(
    r"[<\[◁](?i:"
    r"(?:(?<=<)\|?|(?<=◁))(?P<slash>/*)(?P<name>(?:[\w.:-]{0,60}[_:-])?(?:think|thinking|thoughts?|reasoning))"
    r"(?:\s[^<>\n]*)?(?<!/)(?:\|?>|▷)"
    r"|(?<=\[)(?P<bracket>/?)THINK\]"
    r"|(?<=<)\|channel\|>(?P<channel>final|analysis|commentary)[^<>\n]*(?:<\|constrain\|>[^<>\n]*)?<\|message\|>"
    r"|(?<=<)(?:\|channel>(?P<begun>thought|final|)|channel(?P<ended>\|)>)"
    r")"
)
_WORDS = ("think", "thought", "reasoning", "channel")  # one of them is in every mark
_FIRST = "<[◁"
_LONGEST_WORD, _PART = max(map(len, _WORDS)), 1 << 16
_LAST = regex(r"[>\]▷](?=\^)")
_LONGEST = 200  # characters of a mark before a fence on its line
_QUOTES = "`'\"‘’“”«»"  # noqa: RUF001 - these quote
_MARKDOWN_FENCE = regex(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.MULTILINE)
_BLANK_REST = regex(r"[^\S\n]*(?:\n|\Z)")
_DEEPEST = 3  # blanks before a mark; more of them, or a tab, make code of it


class Mark(NamedTuple):
    """A mark of thoughts. One that is not firm stands inside a line, or alone in a Markdown fence: it may be prose."""

    start: int
    end: int
    opens: bool
    is_firm: bool = True


def may_have_marks(text: str) -> bool:
    """Tell whether a word of a mark is in the text; a part at a time, since most parts are ASCII and quickly read."""
    if not any(first in text for first in _FIRST):
        return False
    parts = (text[start : start + _PART + _LONGEST_WORD].lower() for start in range(0, len(text), _PART))
    return any(word in part for part in parts for word in _WORDS)


def fenced_mark(text: str, fence: str, start: int, end: int) -> int:
    """Return where the first fence of a part begins that follows a mark at once, on the same line; else its end."""
    if (first := text.find(fence, start, end)) < 0:
        return end
    for last in _LAST.finditer(text, max(first - 1, 0), end):
        at = last.end()
        line = max(text.rfind("\n", max(at - _LONGEST, 0), at), at - _LONGEST, 0)
        if text.startswith(fence, at) and any(mark.end() == at for mark in _MARK.finditer(text, line, at)):
            return at
    return end


def find_marks(text: str, spans: Iterable[tuple[int, int]] | None = None) -> Iterator[Mark]:
    """Yield the marks in these spans of a text, by default in all of it, without those that are quoted."""
    open_fence = ""
    for start, end in [(0, len(text))] if spans is None else spans:
        regions, open_fence = _markdown_regions(text, start, end, open_fence)
        examples: dict[int, int] = {}  # by region, how many of its marks wait for their end
        for mark in _unquoted_marks(text, start, end):
            at = bisect_right(regions, (mark.start, mark.start)) - 1
            if at < 0 or regions[at][1] <= mark.start:
                yield mark
            elif mark.opens:
                examples[at] = examples.get(at, 0) + 1
            elif examples.get(at):
                examples[at] -= 1
            else:
                yield mark._replace(is_firm=False)


def _unquoted_marks(text: str, start: int, end: int) -> Iterator[Mark]:
    """Yield the marks of a span that are not quoted. However long a line is, what is before a mark is read once."""
    read = line_start = clean_to = start
    is_clean, ticks = True, 0  # on this line there are only firm marks so far, and so many backticks
    for match in _MARK.finditer(text, start, end):
        begin, after = match.start(), text[match.end() : match.end() + 1]
        if (line_end := text.rfind("\n", read, begin)) >= 0:
            read = line_start = line_end + 1
            is_clean, ticks = True, 0
        ticks += text.count("`", read, begin)
        read, before = begin, text[max(line_start, begin - 1) : begin]
        is_quoted = any(beside and beside in _QUOTES for beside in (before, after)) or ticks % 2
        is_first = is_clean and not text[max(line_start, clean_to) : begin].strip(" ")
        is_clean = False
        if not is_quoted and not text.startswith((">", "\t", " " * (_DEEPEST + 1)), line_start, begin):
            is_last = after == "^" or _BLANK_REST.match(text, match.end()) is not None
            mark = _read_mark(match, is_alone=is_first or is_last)
            if mark.is_firm:
                is_clean, clean_to = True, mark.end
            yield mark


def _read_mark(match: re.Match[str], *, is_alone: bool) -> Mark:
    channel = match["channel"] or match["begun"] or match["ended"]
    if channel or match["begun"] is not None:
        opens = not match["ended"] and (channel or "").lower() != "final"
    else:
        opens = not (match["slash"] or match["bracket"] or (match["name"] or "").lower().startswith("end"))
    return Mark(match.start(), match.end(), opens, is_alone or bool(channel))


def _markdown_regions(text: str, start: int, end: int, fence: str) -> tuple[list[tuple[int, int]], str]:
    """Return what stands between Markdown fences in a span, and the fence that is open after it.

    `fence` is the one that is open before the span: what it encloses holds a block, and is no quotation.
    """
    regions: list[tuple[int, int]] = []
    opened = -1
    for match in _MARKDOWN_FENCE.finditer(text, start, end):
        if fence and match[1].startswith(fence) and not match[2].strip():
            if opened >= 0:
                regions.append((opened, match.start()))
            fence = ""
        elif not fence or match[2].strip():
            fence, opened = match[1], match.start()
    return regions, fence
