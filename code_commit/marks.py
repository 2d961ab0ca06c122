"""The marks of thoughts in an LLM's answer: where they begin and end, as models, templates and servers write them."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# such as <think>, </seed:think>, <|begin_of_thought|>, <|END_THINKING|>, [/THINK], and channels of harmony and Gemma
_MARK = re.compile(
    r"[<\[◁](?i:"
    r"(?:(?<=<)\|?|(?<=◁))(?P<slash>/?)(?P<name>(?:[\w.:-]{0,60}[_:-])?(?:think|thinking|thoughts?|reasoning))"
    r"(?:\s[^<>\n]*)?(?<!/)(?:\|?>|▷)"
    r"|(?<=\[)(?P<bracket>/?)THINK\]"
    r"|(?<=<)\|channel\|>(?P<channel>final|analysis|commentary)[^<>\n]*(?:<\|constrain\|>[^<>\n]*)?<\|message\|>"
    r"|(?<=<)(?:\|channel>(?P<begun>thought|final|)|channel(?P<ended>\|)>)"
    r")"
)
_WORDS = ("think", "thought", "reasoning", "channel")  # one of them is in every mark
_LONGEST_WORD, _PART = max(map(len, _WORDS)), 1 << 16
_LAST = (">", "]", "▷")
_LONGEST = 200  # characters of a mark before a fence on its line
_QUOTES = "`'\"‘’“”«»"  # noqa: RUF001 - these quote
_MARKDOWN_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.MULTILINE)
_DEEPEST = 3  # blanks before a mark; more of them, or a tab, make code of it


class Mark(NamedTuple):
    """A mark of thoughts. One that is not firm stands inside a line, or alone in a Markdown fence: it may be prose."""

    start: int
    end: int
    opens: bool
    is_firm: bool = True


def may_have_marks(text: str) -> bool:
    """Tell whether a word of a mark is in the text; a part at a time, since most parts are ASCII and quickly read."""
    parts = (text[start : start + _PART + _LONGEST_WORD].lower() for start in range(0, len(text), _PART))
    return any(word in part for part in parts for word in _WORDS)


def fenced_marks(text: str, fence: str) -> list[int]:
    """Return, in order, the ends of the marks that a fence follows at once, on the same line."""
    ends = []
    for last in _LAST:
        position = text.find(last + fence)
        while position >= 0:
            end = position + len(last)
            window = max(text.rfind("\n", 0, end), end - _LONGEST, 0)
            if any(mark.end() == end for mark in _MARK.finditer(text, window, end)):
                ends.append(end)
            position = text.find(last + fence, end)
    return sorted(ends)


def find_marks(text: str, spans: Iterable[tuple[int, int]] | None = None) -> Iterator[Mark]:
    """Yield the marks in these spans of a text, by default in all of it, without those that are quoted."""
    open_fence = ""
    for start, end in [(0, len(text))] if spans is None else spans:
        regions, open_fence = _markdown_regions(text, start, end, open_fence)
        clean_to = start  # on this line there are only marks before it
        examples: dict[int, int] = {}  # by region, how many of its marks wait for their end
        for match in _MARK.finditer(text, start, end):
            mark = _read_mark(text, match, start, clean_to)
            if mark is None:
                continue
            if mark.is_firm:
                clean_to = mark.end
            at = bisect_right(regions, (mark.start, mark.start)) - 1
            if at < 0 or regions[at][1] <= mark.start:
                yield mark
            elif mark.opens:
                examples[at] = examples.get(at, 0) + 1
            elif examples.get(at):
                examples[at] -= 1
            else:
                yield mark._replace(is_firm=False)


def _read_mark(text: str, match: re.Match[str], start: int, clean_to: int) -> Mark | None:
    """Return the mark, None if it is quoted. `clean_to` is the end of the firm mark before it."""
    line_start = max(text.rfind("\n", start, match.start()) + 1, start)
    before = text[line_start : match.start()]
    after = text[match.end() : match.end() + 1]
    is_quoted = any(beside and beside in _QUOTES for beside in (before[-1:], after)) or before.count("`") % 2
    channel = match["channel"] or match["begun"] or match["ended"]
    if channel or match["begun"] is not None:
        opens = not match["ended"] and (channel or "").lower() != "final"
    else:
        opens = not (match["slash"] or match["bracket"] or (match["name"] or "").lower().startswith("end"))
    if is_quoted or before.startswith((">", "\t", " " * (_DEEPEST + 1))):
        return None
    is_first = not text[max(line_start, clean_to) : match.start()].strip(" ")
    is_last = after in ("", "\n", "^") or not text[match.end() : _line_end(text, match.end())].strip()
    return Mark(match.start(), match.end(), opens, bool(is_first or is_last or channel))


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


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
