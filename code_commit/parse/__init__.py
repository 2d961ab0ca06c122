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
content, so that every file can be sent. Read as well: `^^^PATH x` and `^^^x:` where only x is there; as removals
`delete` as the only word of a block whose file is there, and `^^^delete`, paths that are there, one a line, `^^^end`;
`^^^` as the end of a whole file where the answer ends or the next line opens a block of a path with a dot or a slash,
but in .rst, .md and .txt. Text outside blocks and a leading `<think>...</think>` are ignored.

A response that cannot be parsed without a guess is rejected as a whole, with every reason. This package does not decide
whether a path may be written.
"""

import re
from itertools import pairwise

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
from code_commit.parse import fences
from code_commit.parse.fences import Block, Findings, IsThere

_THINKING = re.compile(r"\s*<think>.*?</think>[ \t]*\r?\n?", re.DOTALL)
_DECLINE = "cannot"  # opens the block of a reason, in any case; a file of this name is sent as `./cannot`
_DECLINING = re.compile(rf"(?i:{_DECLINE})(?![\w/-]|\.\S)")
_LIST = "files"  # opens a list of files to be seen whole; a file of this name is sent as `./files`

_MIXED = {
    _DECLINE: "^^^cannot stands beside blocks of files: send it alone, or the files without it",
    _LIST: "^^^files stands beside other blocks: send it alone, or them without it (a file of this name: ^^^./files)",
}

_NO_BLOCK = (
    "the response has no ^^^ block: send every file to change between ^^^PATH and ^^^end; when nothing has to change,"
    " one short file as it is; to see files first, ^^^files, their paths on the lines after it, and ^^^end; when no"
    " change of the project can do the task, ^^^cannot, the reason on the lines after it, and ^^^end"
)

_FIND_LINE = re.compile(r"(\^{2,})[ \t]*find[ \t\r]*$", re.MULTILINE)
_REPLACE_LINE = re.compile(r"^(\^{2,})[ \t]*replace[ \t\r]*$", re.MULTILINE)
_WORD_DELETE = re.compile(r"\s*delete\s*")
_DELETE_ALONE = re.compile(r"(\^{2,})[ \t]*delete\s*")
_SHORT_FIND = re.compile(r"^(\^\^)[ \t]*find(?=[ \t\r]*$)", re.MULTILINE)
_MOST_LISTED = 200  # files of a list that are read
_NOTHING = frozenset[str]().__contains__


def parse_response(text: str, is_there: IsThere = _NOTHING) -> tuple[RequestedChange, ...]:
    """Return the changes of a response in order. Raises FilesAskedError, DeclinedError and RejectedResponseError."""
    reasons = Reasons()
    changes = read_response(text, reasons, is_there)
    reasons.reject()
    return changes


def read_response(text: str, reasons: Reasons, is_there: IsThere = _NOTHING) -> tuple[RequestedChange, ...]:
    """Return the readable changes, and add the reasons to reject. Raises FilesAskedError and DeclinedError."""
    found = _read(text, is_there, reasons)
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
    return tuple(found.changes.values())


def notes_of(text: str) -> str:
    """Return the text of a response outside its blocks, also of a rejected one: the LLM's own words."""
    return "".join(_pieces(text)[::2]).strip()


def blocks_of(text: str) -> str:
    return "".join(_pieces(text)[1::2])


def _pieces(text: str) -> list[str]:
    """Return, in turn, the texts outside blocks and the blocks."""
    reading = _read(text, is_there=bool)  # a list of removals is a block, whatever is there
    return [text[start:end] for start, end in pairwise(reading.cuts)]


def _read(text: str, is_there: IsThere, reasons: Reasons | None = None) -> Findings:
    found = Findings(text, is_there, reasons or Reasons())
    thinking = _THINKING.match(text)
    position = thinking.end() if thinking else 0
    if text.startswith("\ufeff", position):
        position += 1
    found.cuts.append(position)
    while position < len(text) and not found.reasons.more:
        opening = fences.next_fence(text, position, fences.SHORTEST_FENCE)
        found.cuts.append(opening)
        fences.reject_short_block(found, position, opening)
        position = fences.reject_indented_fences(found, position, opening)
        if position == opening < len(text):
            if len(found.cuts) > 2 * fences.MOST_BLOCKS:
                message = f"the response has more than {fences.MOST_BLOCKS:,} blocks: send each file once"
                found.reject(found.line_at(opening), "too-many-blocks", message)
                break
            position = _read_block(found, opening)
            found.cuts.append(position)
    if found.reasons.more:
        found.reasons.more += text.count(fences.SHORTEST_FENCE, position)
    return found


def _read_block(found: Findings, opening: int) -> int:
    """Read the block whose opening fence stands at `opening`; return where to continue."""
    text = found.text
    line = found.line_at(opening)
    carets, name, body = fences.split_fence(text, opening)
    named = fences.NAMED_WORD.fullmatch(name)
    if not name or name in fences.INNER or named:
        return _read_stray_fence(found, opening, named)
    if name == _LIST or _DECLINING.match(name):
        return _read_words(found, name, line, carets, body)
    path = fences.spelled(fences.canonical(name), found.is_there)
    if not path:
        found.reject(line, "empty-path", f"^^^{quoted(name)} names no file: write the file's path")
    closing = fences.closing_fence(text, body, carets)
    _, word, after = fences.split_fence(text, closing)
    if word == "end" or (closing > body and fences.is_bare_end(text, closing, path)):
        _add_file(found, FileReplacement(path, text[body:closing], line), carets)
        return after
    if word == "delete" and closing == body:
        found.closed = None
        found.add(FileRemoval(path, line))
        return fences.skip_end(text, after, carets)
    if word == "find" and closing == body:
        return _read_edits(found, Block(path, line, carets), closing)
    return fences.reject_inner_fence(found, Block(path, line, carets), closing)


def _read_stray_fence(found: Findings, opening: int, named: re.Match[str] | None) -> int:
    """Read `^^^delete` with a list of files, else reject the fence, which opens no block; return where to continue."""
    carets, name, body = fences.split_fence(found.text, opening)
    if name != "delete" or not (paths := fences.listed_removals(found, body, carets)):
        fences.reject_stray_fence(found, opening, name, named)
        return fences.skip_end(found.text, body, carets) if named else body
    line, found.closed = found.line_at(opening), None
    for path in paths:
        found.add(FileRemoval(path, line))
    return fences.skip_end(found.text, fences.closing_fence(found.text, body, carets), carets)


def _read_words(found: Findings, name: str, line: int, carets: int, body: int) -> int:
    """Read the block, opened in that line, that asks for files or declines the task; return where to continue."""
    closing = fences.closing_fence(found.text, body, carets)
    _, word, after = fences.split_fence(found.text, closing)
    found.closed = None
    if word != "end" and not fences.is_bare_end(found.text, closing, name):
        return fences.reject_inner_fence(found, Block(name if name == _LIST else _DECLINE, line, carets), closing)
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


def _add_file(found: Findings, block: FileReplacement, carets: int) -> None:
    """Add the file or its removal, unless its content is edits or `^^^delete` with other carets than the block's."""
    if _WORD_DELETE.fullmatch(block.content) and found.is_there(block.path):
        found.closed = None
        found.add(FileRemoval(block.path, block.line))
        return
    find = _FIND_LINE.match(block.content)
    if find and not any(match[1] == find[1] for match in _REPLACE_LINE.finditer(block.content)):
        find = None
    if fence := find or _DELETE_ALONE.fullmatch(block.content):
        found.closed = None
        found.reject(block.line + 1, "unclear-edit", fences.unequal_carets(fence, carets), block.path)
        return
    found.closed = block
    found.add(block)


def _read_edits(found: Findings, block: Block, position: int) -> int:
    """Read the edits of a block from its first find fence on; return where to continue."""
    text, edits = found.text, []
    carets, word, body = fences.split_fence(text, position)
    while word == "find":
        line, last = found.line_at(position), None
        position = fences.closing_fence(text, body, carets)
        find = text[body:position]
        _, word, body = fences.split_fence(text, position)
        if word == "to":
            position = fences.closing_fence(text, body, carets)
            last = text[body:position]
            _, word, body = fences.split_fence(text, position)
        if word != "replace":
            return fences.reject_inner_fence(found, block, position)
        position = fences.closing_fence(text, body, carets)
        if short := _SHORT_FIND.search(text, body, position):
            found.reject(found.line_at(short.start()), "unclear-edit", fences.unequal_carets(short, carets), block.path)
        if find and last != "":
            edits.append(Edit(find, text[body:position], line, last or ""))
        else:
            part = "last part of the find (after ^^^to)" if find else "find"
            message = f"the {part} is empty: write lines of the file there, and in the replace those that stay"
            found.reject(line, "empty-find", message, block.path)
        _, word, body = fences.split_fence(text, position)
    if word != "end":
        return fences.reject_inner_fence(found, block, position)
    found.closed = EditBlock(block.path, tuple(edits), block.line)
    found.add(found.closed)
    return body
