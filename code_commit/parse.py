r"""The parser: fences of a response -> file changes. Text in, values out; it never looks at the file system.

Grammar, on lines split at `\n` only; a `\r` before it belongs to the line end of fence lines:

    ^^^PATH            at column 0 opens a block; PATH is the rest of the line, outer blanks stripped
    ...                content: every line up to the closing fence, verbatim, each with its line end
    ^^^end             closes it

    ^^^PATH            followed at once by
    ^^^delete          removes the file; a following ^^^end is tolerated

    ^^^PATH            followed at once by
    ^^^find            opens an edit of the file
    ...                whole lines of the file as it is; of a longer passage the first ones, then
    ^^^to
    ...                the last ones
    ^^^replace
    ...                the lines that stand there instead, none to remove them; then the next ^^^find, or
    ^^^end

    ^^^cannot          as the only block: the task is declined
    ...                the reason
    ^^^end

    ^^^files           as the only block: these files are asked for, before anything is changed
    ...                their paths, one a line
    ^^^end

A fence may be longer (`^^^^PATH` ... `^^^^end`): inside it, lines that begin with any other number of carets are
content, so that every file can be sent. Text outside blocks and a leading `<think>...</think>` are ignored.

What cannot be parsed without a guess rejects the response as a whole, with every reason. Whether a path may be
written is not decided here.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice

from code_commit.changes import (
    DeclinedError,
    Edit,
    EditBlock,
    FileRemoval,
    FileReplacement,
    FilesAskedError,
    Reasons,
    RequestedChange,
    quoted,
)

SHORTEST_FENCE = "^^^"
_THINKING = re.compile(r"\s*<think>.*?</think>[ \t]*\r?\n?", re.DOTALL)
_INDENTED_FENCE = re.compile(r"^[ \t>\ufeff\u200b-\u200d\u2060]+(\^{3,}[^\s^].*)", re.MULTILINE)
_REDUNDANT_SLASHES = re.compile(r"(?<=/)\.?/")

_INNER = ("end", "delete", "find", "to", "replace")
"""What stands in a block after the carets, and never opens one: a file of such a name is sent as `./end`."""

_DECLINE = "cannot"
"""What opens the block of a reason, in any case; a file of this name is sent as `./cannot`."""
_DECLINING = re.compile(rf"(?i:{_DECLINE})(?![\w/-]|\.\S)")

_LIST = "files"
"""What opens a list of files to be seen whole; a file of this name is sent as `./files`."""

_MIXED = {
    _DECLINE: "^^^cannot stands beside blocks of files: send it alone, or the files without it",
    _LIST: "^^^files stands beside other blocks: send it alone, or them without it (a file of this name: ^^^./files)",
}

_NO_BLOCK = (
    "the response has no ^^^ block: send every file to change between ^^^PATH and ^^^end; when nothing has to change,"
    " one short file as it is; to see files first, ^^^files, their paths on the lines after it, and ^^^end; when no"
    " change of the project can do the task, ^^^cannot, the reason on the lines after it, and ^^^end"
)

_NAMED_WORD = re.compile(r"(delete|end)[ \t]+(\S+)")
_COMMENT = re.compile(r"(?<=\S)[ \t]+//")
_FIND_LINE = re.compile(r"(\^{2,})[ \t]*find[ \t\r]*$", re.MULTILINE)
_REPLACE_LINE = re.compile(r"^(\^{2,})[ \t]*replace[ \t\r]*$", re.MULTILINE)
_DELETE_ALONE = re.compile(r"(\^{2,})[ \t]*delete\s*")
_SHORT_FIND = re.compile(r"^(\^\^)[ \t]*find(?=[ \t\r]*$)", re.MULTILINE)
_SHORT_END = re.compile(r"^\^\^[ \t]*end(?=[ \t\r]*$)", re.MULTILINE)
_SHORT_FENCE = re.compile(r"^\^\^[^\s^].*", re.MULTILINE)

_DEEPEST = 10
"""So many fences open one inside the other are forgotten ends, not the lines of a file."""

_MOST_LISTED = 200
"""So many files of a list are read."""

_MOST_BLOCKS = 50_000
"""No LLM's response has room for so many: what stands after them is not read."""


@dataclass(slots=True)
class _Findings:
    """What the parser has found so far. Lines are counted from 1, for positions that come in ascending order."""

    text: str
    changes: dict[str, RequestedChange] = field(default_factory=dict)
    reasons: Reasons = field(default_factory=Reasons)
    line: int = 1
    counted_to: int = 0
    closed: FileReplacement | EditBlock | None = None
    overran: FileReplacement | EditBlock | None = None
    unused_carets: int = 0
    cuts: list[int] = field(default_factory=list)
    """Where a piece of text outside the blocks begins, where the block after it begins, and so on to the end.

    A stray fence counts as a block.
    """
    declined_in: int = 0
    declined: list[str] = field(default_factory=list)
    """What the blocks of `^^^cannot` say, and the line of the last."""
    listed_in: int = 0
    listed: list[str] = field(default_factory=list)
    """The lines of the blocks of `^^^files`, and the line of the last."""

    def line_at(self, position: int) -> int:
        self.line += self.text.count("\n", self.counted_to, position)
        self.counted_to = position
        return self.line

    def reject(self, line: int, rule: str, message: str, path: str = "") -> None:
        self.reasons.add(path, line, rule, message)

    def add(self, change: RequestedChange) -> None:
        known = self.changes.setdefault(change.path, change)
        if known != change:
            message = f"the file comes twice, first in line {known.line}: give each file one block"
            self.reject(change.line, "duplicate-path", message, change.path)


def parse_response(text: str) -> tuple[RequestedChange, ...]:
    """Return the changes in the order of the response.

    Raises FilesAskedError, DeclinedError, and RejectedResponseError with the first fifty reasons.
    """
    changes, reasons = read_response(text)
    reasons.reject()
    return changes


def read_response(text: str) -> tuple[tuple[RequestedChange, ...], Reasons]:
    """Return the changes of the blocks that can be read, and what is wrong with the others.

    Raises FilesAskedError and DeclinedError. What follows fifty reasons is not read, its fences are counted.
    """
    found = _read(text)
    if found.listed_in and (found.changes or found.declined_in):
        found.reject(found.listed_in, "mixed", _MIXED[_LIST])
    elif found.declined_in and found.changes:
        found.reject(found.declined_in, "mixed", _MIXED[_DECLINE])
    elif not found.changes and not found.reasons.kept:
        if found.listed:
            raise FilesAskedError(found.listed, found.listed_in)
        if found.declined_in:
            raise DeclinedError("\n".join(found.declined))
        found.reject(0, "no-block", _NO_BLOCK)
    return tuple(found.changes.values()), found.reasons


def notes_of(text: str) -> str:
    """Return what a response says outside its blocks: the LLM's own words. It may be any text, also a rejected one."""
    cuts = _read(text).cuts
    return _pieces(text, cuts[::2], cuts[1::2]).strip()


def blocks_of(text: str) -> str:
    """Return the blocks of a response alone, as they stand there."""
    cuts = _read(text).cuts
    return _pieces(text, cuts[1::2], cuts[2::2])


def _pieces(text: str, starts: Iterable[int], ends: Iterable[int]) -> str:
    return "".join(text[start:end] for start, end in zip(starts, ends, strict=False))


def _read(text: str) -> _Findings:
    """Read a response to its end, or to the fiftieth reason to reject it."""
    found = _Findings(text)
    thinking = _THINKING.match(text)
    position = thinking.end() if thinking else 0
    if text.startswith("\ufeff", position):
        position += 1
    found.cuts.append(position)
    while position < len(text) and not found.reasons.more:
        opening = _next_fence(text, position, SHORTEST_FENCE)
        found.cuts.append(opening)
        _reject_short_block(found, position, opening)
        position = _reject_indented_fences(found, position, opening)
        if position == opening < len(text):
            if len(found.cuts) > 2 * _MOST_BLOCKS:
                message = f"the response has more than {_MOST_BLOCKS:,} blocks: send each file once"
                found.reject(found.line_at(opening), "too-many-blocks", message)
                break
            position = _read_block(found, opening)
            found.cuts.append(position)
    if found.reasons.more:
        found.reasons.more += text.count(SHORTEST_FENCE, position)
    return found


def _read_block(found: _Findings, opening: int) -> int:
    """Read the block whose opening fence stands at `opening`; return where to go on."""
    text = found.text
    line = found.line_at(opening)
    carets, name, body = _split_fence(text, opening)
    named = _NAMED_WORD.fullmatch(name)
    if not name or name in _INNER or named:
        _reject_stray_fence(found, opening, name, named)
        return _skip_end(text, body, carets) if named else body
    if name == _LIST or _DECLINING.match(name):
        return _read_words(found, name, line, carets, body)
    comment = _COMMENT.search(name)
    path = _canonical(name[: comment.start()] if comment else name)
    if comment:
        message = f"has a comment after the path: write {quoted(path)} alone after the carets"
        found.reject(line, "wrong-format", message, name)
    if not path:
        found.reject(line, "empty-path", f"^^^{quoted(name)} names no file: write the file's path")
    closing = _closing_fence(text, body, carets)
    _, word, after = _split_fence(text, closing)
    if word == "end":
        _add_file(found, FileReplacement(path, text[body:closing], line), carets)
        return after
    if word == "delete" and closing == body:
        found.closed = None
        found.add(FileRemoval(path, line))
        return _skip_end(text, after, carets)
    if word == "find" and closing == body:
        return _read_edits(found, path, line, closing)
    return _reject_inner_fence(found, path, line, carets, closing)


def _read_words(found: _Findings, name: str, line: int, carets: int, body: int) -> int:
    """Read the block, opened in that line, that asks for files or declines the task; return where to go on."""
    closing = _closing_fence(found.text, body, carets)
    _, word, after = _split_fence(found.text, closing)
    found.closed = None
    if word != "end":
        return _reject_inner_fence(found, name if name == _LIST else _DECLINE, line, carets, closing)
    words = found.text[body:closing].strip()
    if name == _LIST:
        if not words:
            found.reject(line, "no-list", "^^^files names no file: write the paths on the lines after it")
        found.listed_in = line
        found.listed += [path.strip() for path in words.split("\n") if path.strip()][:_MOST_LISTED]
        return after
    if name.lower() != _DECLINE or not words:
        message = f"^^^{_DECLINE} stands alone on its line, and the reason on the lines after it"
        found.reject(line, "no-reason", message)
    found.declined_in = line
    found.declined.append(words)
    return after


def _add_file(found: _Findings, block: FileReplacement, carets: int) -> None:
    """Take the file, unless it is edits or a removal between fences of another length than the block's."""
    find = _FIND_LINE.match(block.content)
    if find and not any(match[1] == find[1] for match in _REPLACE_LINE.finditer(block.content)):
        find = None
    if fence := find or _DELETE_ALONE.fullmatch(block.content):
        found.closed = None
        found.reject(block.line + 1, "unclear-edit", _unequal(fence, carets), block.path)
        return
    found.closed = block
    found.add(block)


def _unequal(fence: re.Match[str], carets: int) -> str:
    counts = f"'{quoted(fence[0].strip())}' has {len(fence[1])} carets and the block's path {carets}"
    return f"{counts}: give every fence of the block the same number"


def _read_edits(found: _Findings, path: str, opened: int, position: int) -> int:
    """Read the edits of a block, opened in that line, whose first find fence stands there; return where to go on."""
    text, edits = found.text, []
    carets, word, body = _split_fence(text, position)
    while word == "find":
        line, last = found.line_at(position), None
        position = _closing_fence(text, body, carets)
        find = text[body:position]
        _, word, body = _split_fence(text, position)
        if word == "to":
            position = _closing_fence(text, body, carets)
            last = text[body:position]
            _, word, body = _split_fence(text, position)
        if word != "replace":
            return _reject_inner_fence(found, path, opened, carets, position)
        position = _closing_fence(text, body, carets)
        if short := _SHORT_FIND.search(text, body, position):
            found.reject(found.line_at(short.start()), "unclear-edit", _unequal(short, carets), path)
        if find and last != "":
            edits.append(Edit(find, text[body:position], line, last or ""))
        else:
            part = "last part of the find (after ^^^to)" if find else "find"
            message = f"the {part} is empty: write lines of the file there, and in the replace those that stay"
            found.reject(line, "empty-find", message, path)
        _, word, body = _split_fence(text, position)
    if word != "end":
        return _reject_inner_fence(found, path, opened, carets, position)
    found.closed = EditBlock(path, tuple(edits), opened)
    found.add(found.closed)
    return body


def _reject_inner_fence(found: _Findings, path: str, opened: int, carets: int, position: int) -> int:
    """Reject the fence that stands there in the block of the file, or its missing end; return where to go on."""
    text, fence = found.text, quoted("^" * carets)
    _, word, after = _split_fence(text, position)
    named = _NAMED_WORD.fullmatch(word)
    if named and (named[1] == "end" or _canonical(named[2]) == path):
        message = f"{fence}{named[1]} stands alone on its line: leave '{quoted(named[2])}' out"
        found.reject(found.line_at(position), "fence-in-block", message, path)
        return _skip_end(text, after, carets)
    short = None if word in _INNER else _SHORT_END.search(text, found.counted_to, position)
    if short:
        message = f"'{short[0]}' has 2 carets, the block was opened with {carets}: write {fence}end"
        found.reject(found.line_at(short.start()), "unclosed", message, path)
        return position
    as_text = f"; when line {opened} is text for the reviewer, do not begin it with ^^^" if " " in path else ""
    if position == len(text):
        message = f"the block is not closed: put {fence}end on a line of its own after the file's last line{as_text}"
        found.reject(opened, "unclosed", message, path)
        return position
    end = _outer_end(text, position, carets)
    message = f"the block of {quoted(path)} (line {opened}) holds the line '{fence}{quoted(word)}': "
    if word in ("end", "find", "to", "replace"):
        rule = "unclear-edit"
        message += (
            f"{fence}find stands right after the {fence}PATH line, {fence}replace after the lines to find (of a range "
            f"after its last lines, which follow {fence}to), and after the new lines the next {fence}find or {fence}end"
        )
    else:
        rule = "fence-in-block"
        message += f"close the block with {fence}end before it"
    message += f", or, when it belongs to the file, {_longer_fence(found, path)}{as_text}"
    found.reject(found.line_at(position), rule, message, path)
    return end or position


def _reject_stray_fence(found: _Findings, position: int, name: str, named: re.Match[str] | None) -> None:
    """Tell why the fence there opens no block; of those after a block, which may be lines of its file, the first."""
    line, block = found.line_at(position), found.closed
    if not name:
        found.reject(line, "empty-path", "the fence names no file: write ^^^ and the file's path on one line")
        return
    if named:
        message = f"^^^{named[1]} stands alone on its line: leave '{quoted(named[2])}' out"
        if named[1] == "delete":
            message = f"to delete it, write ^^^{quoted(named[2])} and ^^^delete on the next line"
        found.reject(line, "stray-fence", message)
        return
    if block and block is found.overran:
        return
    found.overran, message = block, f"^^^{name} stands outside a block: it belongs after a ^^^PATH line"
    is_edit = name in ("find", "to", "replace")
    if is_edit:
        message += f", all edits of a file into one block (and a file of this name is ^^^./{name})"
    if block and not (is_edit and isinstance(block, EditBlock)):
        message += f"; when {quoted(block.path)} (line {block.line}) ends here, {_longer_fence(found, block.path)}"
    if short := _SHORT_FENCE.search(found.text, found.cuts[-2], position):
        at = line - found.text.count("\n", short.start(), position)
        message += f"; line {at}, '{quoted(short[0].rstrip())}', has 2 carets: a fence has 3 or more"
    found.reject(line, "stray-fence", message)


def _longer_fence(found: _Findings, path: str) -> str:
    """Say which fence a file needs that holds lines like those of the response, which is looked through once."""
    if not found.unused_carets:
        used = set(islice(_longer_fences(found.text), _MOST_BLOCKS))
        found.unused_carets = next(carets for carets in count(len(SHORTEST_FENCE) + 1) if carets not in used)
    fence = quoted("^" * found.unused_carets)
    return f"open and close the block with {found.unused_carets} carets: {fence}{quoted(path)} and {fence}end"


def _longer_fences(text: str) -> Iterator[int]:
    """Yield the number of carets of each line that begins with more of them than the shortest fence has."""
    longer = f"{SHORTEST_FENCE}^"
    position = _next_fence(text, 0, longer)
    while position < len(text):
        carets, _, after = _split_fence(text, position)
        yield carets
        position = _next_fence(text, after, longer)


def _outer_end(text: str, position: int, carets: int) -> int:
    """Return where a block ends that holds the fence there and whole blocks of its own; 0 if it is never closed."""
    depth, after = 1, 0
    while 0 < depth < _DEEPEST and position < len(text):
        _, word, after = _split_fence(text, position)
        depth += {"end": -1, "delete": -1, "find": 0, "to": 0, "replace": 0}.get(word, 1)
        position = _closing_fence(text, after, carets)
    return 0 if depth else after


def _split_fence(text: str, position: int) -> tuple[int, str, int]:
    """Return the number of carets of the fence line there, what it says, and where the next line begins."""
    end = text.find("\n", position)
    after = len(text) if end < 0 else end + 1
    line = text[position : len(text) if end < 0 else end]
    said = line.lstrip("^")
    return len(line) - len(said), said.removesuffix("\r").strip(" \t"), after


def _next_fence(text: str, position: int, fence: str) -> int:
    """Return where the next line that begins with `fence` starts, from the line start `position` on; else the end."""
    if text.startswith(fence, position):
        return position
    found = text.find(f"\n{fence}", position)
    return len(text) if found < 0 else found + 1


def _closing_fence(text: str, position: int, carets: int) -> int:
    """Return where the next line with exactly that many carets in front starts; else the end of the text."""
    fence = "^" * carets
    position = _next_fence(text, position, fence)
    while text.startswith("^", position + carets):
        line_end = text.find("\n", position)
        position = _next_fence(text, line_end + 1, fence) if line_end >= 0 else len(text)
    return position


def _skip_end(text: str, position: int, carets: int) -> int:
    length, word, after = _split_fence(text, position)
    return after if length == carets and word == "end" else position


def _canonical(name: str) -> str:
    """Drop a leading `./`, inner `/./` and `//`: one file has one spelling."""
    return _REDUNDANT_SLASHES.sub("", name).removeprefix("./")


def _reject_short_block(found: _Findings, start: int, end: int) -> None:
    """Reject a file between fences of two carets, which else would count as words."""
    short = _SHORT_FENCE.search(found.text, start, end)
    if short and _SHORT_END.search(found.text, short.end(), end):
        line = found.text.count("\n", 0, short.start()) + 1  # at most fifty times
        found.reject(line, "short-fence", f"'{quoted(short[0].rstrip())}' has 2 carets: a fence has 3 or more")


def _reject_indented_fences(found: _Findings, start: int, end: int) -> int:
    """Return the end, or where the last reason stands that is told."""
    for match in _INDENTED_FENCE.finditer(found.text, start, end):
        message = f"'{quoted(match[1].strip())}' does not start its line: a fence stands at column 0"
        found.reject(found.line_at(match.start()), "indented-fence", message)
        if found.reasons.more:
            return match.end()
    return end
