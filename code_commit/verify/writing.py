"""The text of a file after a response: the one writer for whole files and for edits.

Line ends and the last newline belong to the file, those of the answer never count. A line that the file has keeps its
end. A new line gets that of the line before it, a new first line that of the old first one. A missing last newline
stays missing.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import NamedTuple

from code_commit.runs.diff import Block, differing_ranges

_BOM = "\ufeff"
_LF, _CR, _CRLF = "\n", "\r", "\r\n"
_MOST_PAIRS = 250_000  # of an old and a new line that are compared where no line is there only once
Replacement = tuple[int, int, Sequence[str]]  # old lines, from the first to before the last, and those in their place


class FileLines(NamedTuple):
    """A file's lines without their ends, and the end of all of them, or of each. A cut file has none after its last.

    With `has_cr` a carriage return alone ends a line, else it is a part of one.
    """

    bom: str
    lines: Sequence[str]
    ends: str | Sequence[str]
    is_cut: bool
    has_cr: bool


def read_lines(text: str) -> FileLines:
    """Return the lines of a file."""
    bom, body = _without_bom(text)
    end = _common_end(body)
    if end is None:
        return _mixed_lines(bom, body)
    lines = body.split(end)
    is_cut = lines[-1] != ""
    return FileLines(bom, lines if is_cut else lines[:-1], end, is_cut, has_cr=end == _CR)


def put_in(file: FileLines, replacements: Iterable[Replacement], *, as_sent: bool = False) -> str:
    """Return the file's text with other lines in place of some, given in order; with LF after them if `as_sent`."""
    lines: list[str] = []
    ends: list[str] = []
    old_ends = [file.ends] * len(file.lines) if isinstance(file.ends, str) else file.ends
    first = old_ends[0] if old_ends else _LF
    at, is_cut = 0, file.is_cut
    for start, stop, new in replacements:
        lines += [*file.lines[at:start], *new]
        ends += old_ends[at:start]
        ends += [_LF if as_sent else ends[-1] if ends else first] * len(new)
        at = stop
        is_cut = is_cut and not (as_sent and new and at == len(file.lines))
    lines += file.lines[at:]
    ends += old_ends[at:]
    if lines and is_cut:
        ends[-1] = ""
    return file.bom + "".join(chain.from_iterable(zip(lines, ends, strict=True)))


def whole_text(text: str, old: str | None, new_end: str = _LF) -> str:
    """Return a text that an answer sent for a whole file, as it is to be written. Lines of a new file get `new_end`."""
    if old is None:
        return with_lf(text).replace(_LF, new_end)
    if not text:
        return text
    bom, body = _without_bom(text)
    old_bom, old_body = _without_bom(old)
    end = _common_end(old_body)
    if end is None:
        file = read_lines(old_body)
        new = with_lf(body, has_cr=file.has_cr).removesuffix(_LF).split(_LF)
        blocks = ((start, stop, new[first:last]) for (start, stop), (first, last) in _differing(file.lines, new))
        return (bom or old_bom) + put_in(file, blocks)
    body = with_lf(body, has_cr=end == _CR)
    if old_body and body:
        body = body.removesuffix(_LF) + (_LF if old_body.endswith(end) else "")
    return (bom or old_bom) + (body if end == _LF else body.replace(_LF, end))


def whole_text_as_sent(text: str, old: str) -> str:
    """Return a text that an answer sent for a whole file, with its own ends."""
    return text if text.startswith(_BOM) or not text else _without_bom(old)[0] + text


def _without_bom(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)


def _common_end(body: str) -> str | None:
    """Return the end of all lines, LF if there is none; None where they differ."""
    if _CR not in body:
        return _LF
    ends = body.count(_LF)
    if not ends:
        return _CR
    return _CRLF if body.count(_CRLF) == ends == body.count(_CR) else None


def _mixed_lines(bom: str, body: str) -> FileLines:
    """Return lines of several ends. CR alone is one of them if there are more of it than others."""
    segments = body.split(_LF)
    has_cr = body.count(_CR) - body.count(_CRLF) >= len(segments)
    lines: list[str] = []
    ends: list[str] = []
    for segment in segments:
        text = segment.rstrip(_CR)
        inner = text.split(_CR) if has_cr else [text]
        lines += inner
        ends += [*[_CR] * (len(inner) - 1), segment[len(text) :] + _LF]
    ends[-1] = ends[-1].removesuffix(_LF)
    if not segments[-1]:
        return FileLines(bom, lines[:-1], ends[:-1], is_cut=False, has_cr=has_cr)
    is_cut = not ends[-1]
    ends[-1] = ends[-1] or ends[-2]  # for lines that are put in after it
    return FileLines(bom, lines, ends, is_cut, has_cr)


def with_lf(text: str, *, has_cr: bool = False) -> str:
    """Return a text of an answer with LF at all line ends, for a file in which CR alone ends lines or does not."""
    if _CR not in text:
        return text
    *whole, last = text.split(_LF)
    text = _LF.join([*(line.rstrip(_CR) for line in whole), last])
    return text.replace(_CR, _LF) if has_cr else text


def _differing(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    """Yield the ranges of lines that differ, in order."""
    for block in sorted(differing_ranges(old, new)):
        (start, stop), (first, last) = block
        if not 0 < (stop - start) * (last - first) <= _MOST_PAIRS:
            yield block
            continue
        matcher = SequenceMatcher(None, old[start:stop], new[first:last], autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag != "equal":
                yield (start + a, start + b), (first + c, first + d)
