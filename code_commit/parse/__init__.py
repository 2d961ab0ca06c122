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
content, so that every file can be sent. Carets alone in a line are content where the file has that line. Text outside
blocks is ignored, with lines of nothing but carets in it, and so are the model's thoughts with all blocks in them.

Read as well, each as a `Lenience`: `^^^PATH x` and `^^^x:` where only x is there; in the short layout `delete` as the
only word of a block whose file is there; `^^^delete`, paths that are there, one a line, `^^^end`, or `^^^delete` again
if no path beside the two is of another list; `^^^` as the end of a whole file where the answer ends or the next line
opens a block whose path is there or in a folder that is there, but in .rst, .md and .txt.

A response that cannot be parsed without a guess is rejected as a whole, with every reason. This package does not decide
whether a path may be written.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from code_commit.changes import (
    DeclinedError,
    Edit,
    EditBlock,
    FileRemoval,
    FileReplacement,
    FilesAskedError,
    Note,
    Reasons,
    RequestedChange,
    quoted,
)
from code_commit.grammar import ALONE, CANNOT, FENCES, FILES, OPENING_ALONE, SHORTEST_FENCE
from code_commit.parse import fences
from code_commit.parse.fences import Block, Findings, TreeView
from code_commit.parse.thoughts import end_thoughts, find_thoughts, report_thoughts, suspect_tagged_blocks
from code_commit.regex import regex

__all__ = ["TreeView", "blocks_of", "end_thoughts", "notes_of", "parse_response", "read_response"]

_NO_BLOCK = (
    "the response has no ^^^ block: send every file to change between ^^^PATH and ^^^end; when nothing has to change,"
    " one short file as it is; to see files first, ^^^files, their paths on the lines after it, and ^^^end; when no"
    " change of the project can do the task, ^^^cannot, the reason on the lines after it, and ^^^end"
)

_ONLY_THOUGHTS = "the response is only thoughts, {:,} characters of them: send the answer after their end"
_REMOVE = "to remove the file, write ^^^delete in place of the word and of ^^^end"
_BARE = "^^^ alone ends its block, where ^^^end ends other blocks of the answer"
_END = "end it with ^^^end, after all the lines of the file"
_QUOTED = (
    "a line of your text begins with ^^^: indent what you quote, by four blanks (if it opens a block, end that with"
    " ^^^end)"
)

_FIND_LINE = regex(r"(\^{2,})[ \t]*find[ \t\r]*$", re.MULTILINE)
_REPLACE_LINE = regex(r"^(\^{2,})[ \t]*replace[ \t\r]*$", re.MULTILINE)
_WORD_DELETE = regex(r"(?i)[\s`'\"(\[*]*deleted?[\s`'\")\].*]*")
_DELETE_ALONE = regex(r"(\^{2,})[ \t]*delete\s*")
_SHORT_FIND = regex(r"^(\^\^)[ \t]*find(?=[ \t\r]*$)", re.MULTILINE)
_MOST_LISTED = 200  # files of a list that are read


class _NoTree:
    """A project of which nothing is known to be there but the root."""

    def has(self, _: str) -> bool:
        return False

    def has_folder(self, _: str) -> bool:
        return False

    def has_line(self, _path: str, _line: str) -> bool:
        return False


_NO_TREE = _NoTree()


def parse_response(text: str, tree: TreeView = _NO_TREE) -> tuple[RequestedChange, ...]:
    """Return the changes of a response in order. Raises FilesAskedError, DeclinedError and RejectedResponseError."""
    reasons = Reasons()
    changes = read_response(text, reasons, tree)
    reasons.reject()
    return changes


def read_response(
    text: str, reasons: Reasons, tree: TreeView = _NO_TREE, *, is_short: bool = False
) -> tuple[RequestedChange, ...]:
    """Return the readable changes, and add the reasons to reject, warnings and leniences. `is_short` says that the
    prompt had the short layout. Raises FilesAskedError and DeclinedError.
    """
    found = _read(text, Findings(text, reasons, tree, is_short=is_short))
    suspect_tagged_blocks(text, found.cuts, reasons)
    for path, line in found.bare_ends if found.has_end else ():
        reasons.suspect(path, line, "bare-end", _BARE, _END)
    alone = [word for word in ALONE if word in found.alone]
    if len(alone) + bool(found.changes) > 1:
        last, _ = found.alone[alone[0]][-1]
        found.reject(last, "mixed", FENCES[alone[0]].mixed)
    elif not found.changes and not found.reasons.kept:
        if blocks := found.alone.get(FILES.word):
            raise FilesAskedError(_listed_paths(text for _, text in blocks), blocks[-1][0])
        if blocks := found.alone.get(CANNOT.word):
            raise DeclinedError("\n".join(text for _, text in blocks))
        if found.are_all_thoughts:
            found.reject(0, "thoughts", _ONLY_THOUGHTS.format(len(text.strip())))
        else:
            found.reject(0, "no-block", _NO_BLOCK)
    return tuple(found.changes.values())


def notes_of(text: str) -> str:
    """Return the text of a response outside its blocks, also of a rejected one: the LLM's own words."""
    return "".join(_pieces(text)[::2]).strip()


def read_notes(text: str) -> list[Note]:
    """Return the texts outside the blocks in order, each with the line where it begins."""
    notes, line, counted_to = list[Note](), 1, 0
    for start, end in list(pairwise(_cuts(text)))[::2]:
        line += text.count("\n", counted_to, start)
        counted_to = start
        notes.append(Note(line, text[start:end]))
    return notes


def blocks_of(text: str) -> str:
    return "".join(_pieces(text)[1::2])


def _pieces(text: str) -> list[str]:
    """Return, in turn, the texts outside blocks and the blocks."""
    return [text[start:end] for start, end in pairwise(_cuts(text))]


@functools.lru_cache(maxsize=1)
def _cuts(text: str) -> Sequence[int]:
    """Return where, in turn, a text outside blocks and a block begin; a list of removals is one, whatever is there."""
    return _read(text, Findings(text, Reasons())).cuts


def _read(text: str, found: Findings) -> Findings:
    thoughts = find_thoughts(text)
    report_thoughts(text, thoughts, found.reasons)
    position, found.are_all_thoughts = thoughts.end, thoughts.are_all
    if text.startswith("\ufeff", position):
        found.reasons.leniences.add("byte-order-mark")
        position += 1
    last = text[-fences.LONGEST_TOKENS :].rstrip()
    if "<" in last and fences.ENDS_WITH_TOKENS.search(last):
        found.reasons.leniences.add("end-token")
    if begun := fences.BEGINS_WITH_TOKENS.match(text, position):
        found.reasons.leniences.add("start-token")
        position = begun.end()
    found.cuts.append(position)
    while position < len(text) and not found.reasons.more:
        opening = fences.next_opening(text, position)
        found.cuts.append(opening)
        if position < opening:
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
        found.reasons.more += text.count(SHORTEST_FENCE, position)
    return found


def _read_block(found: Findings, opening: int) -> int:
    """Read the block whose opening fence stands at `opening`; return where to continue."""
    text = found.text
    line = found.line_at(opening)
    carets, name, body = fences.split_fence(text, opening)
    if fences.is_inner(name):
        return _read_stray_fence(found, opening)
    if (alone := OPENING_ALONE.match(name)) and not found.has_file(name):
        return _read_words(found, Block(alone.lastgroup or "", line, carets), name, body)
    path = fences.path_of(name, found)
    if not path:
        found.reject(line, "empty-path", f"^^^{quoted(name)} names no file: write the file's path")
    return _read_changes(found, Block(path, line, carets), opening, body)


def _read_changes(found: Findings, block: Block, opening: int, body: int) -> int:
    """Read the block of a file, whose content begins at `body`; return where to continue."""
    closing, word, after = fences.closing_of(found, block.path, body, block.carets)
    is_pointed_out = word != "end" and fences.is_pointed_out(found.text, opening) and not found.has_file(block.path)
    is_bare = not word and closing > body and not is_pointed_out and fences.is_bare_end(found, closing, block.path)
    if word == "end" or is_bare:
        found.note_end(block, is_bare=is_bare)
        _add_file(found, FileReplacement(block.path, found.text[body:closing], block.line), block.carets)
        return after
    if word == "delete" and closing == body:
        found.closed = None
        found.add(FileRemoval(block.path, block.line))
        return fences.skip_end(found.text, after, block.carets)
    if word == "find" and closing == body:
        return _read_edits(found, block, closing)
    if is_pointed_out:
        found.reject(block.line, "quoted-carets", _QUOTED)
        return body
    return fences.reject_inner_fence(found, block, closing)


def _read_stray_fence(found: Findings, opening: int) -> int:
    """Read `^^^delete` with a list of files, else reject the fence, which opens no block; return where to continue."""
    carets, name, body = fences.split_fence(found.text, opening)
    paths, after = fences.listed_removals(found, opening, body, carets) if name == "delete" else ([], body)
    if not paths:
        named = fences.NAMED_WORD.fullmatch(name)
        fences.reject_stray_fence(found, opening, name, named)
        return fences.skip_end(found.text, body, carets) if named else body
    line, found.closed = found.line_at(opening), None
    found.reasons.leniences.add("listed-removals")
    for path in paths:
        found.add(FileRemoval(path, line))
    return after


def _read_words(found: Findings, block: Block, name: str, body: int) -> int:
    """Read a block that stands alone; return where to continue."""
    closing = fences.closing_fence(found.text, body, block.carets)
    _, word, after = fences.split_fence(found.text, closing)
    found.closed = None
    if word != "end" and not fences.is_bare_end(found, closing, name):
        return fences.reject_inner_fence(found, block, closing)
    fence, words = FENCES[block.path], found.text[body:closing].strip()
    if not words or not re.fullmatch(fence.spelling, name):
        found.reject(block.line, fence.empty_rule, fence.empty)
    found.alone.setdefault(fence.word, []).append((block.line, words))
    return after


def _listed_paths(texts: Iterable[str]) -> list[str]:
    lists = ([path.strip() for path in text.split("\n") if path.strip()] for text in texts)
    return [path for paths in lists for path in paths[:_MOST_LISTED]]


def _add_file(found: Findings, block: FileReplacement, carets: int) -> None:
    """Add the file or its removal, unless its content is edits or `^^^delete` with other carets than the block's."""
    if carets == len(SHORTEST_FENCE) and _WORD_DELETE.fullmatch(block.content) and found.has(block.path):
        word = block.content.strip()
        if found.is_short and word == "delete":
            found.reasons.leniences.add("delete-word")
            found.closed = None
            found.add(FileRemoval(block.path, block.line))
            return
        found.reasons.suspect(block.path, block.line + 1, "delete-word", f"its only word is '{quoted(word)}'", _REMOVE)
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
        line, last, start = found.line_at(position), None, body
        position, word, body = fences.closing_of(found, block.path, start, carets)
        find = text[start:position]
        if word == "to":
            start = body
            position, word, body = fences.closing_of(found, block.path, start, carets)
            last = text[start:position]
        if word != "replace":
            return fences.reject_inner_fence(found, block, position)
        start = body
        position, word, body = fences.closing_of(found, block.path, start, carets)
        if short := _SHORT_FIND.search(text, start, position):
            found.reject(found.line_at(short.start()), "unclear-edit", fences.unequal_carets(short, carets), block.path)
        if find and last != "":
            edits.append(Edit(find, text[start:position], line, last or ""))
        else:
            part = "last part of the find (after ^^^to)" if find else "find"
            message = f"the {part} is empty: write lines of the file there, and in the replace those that stay"
            found.reject(line, "empty-find", message, block.path)
    if word != "end":
        return fences.reject_inner_fence(found, block, position)
    found.note_end(block)
    found.closed = EditBlock(block.path, tuple(edits), block.line)
    found.add(found.closed)
    return body
