"""Fence lines of a response: where they stand, what they say, and the messages about those that cannot be read."""

import re
from dataclasses import dataclass, field
from itertools import count, islice
from typing import NamedTuple, Protocol

from code_commit.changes import EditBlock, FileReplacement, Reasons, RequestedChange, quoted
from code_commit.grammar import CLOSING, EDITING, INNER, SHORTEST_FENCE
from code_commit.regex import regex

_LONGER_FENCE = regex(r"\n(\^{4,})")
_INDENTED_FENCE = regex(r"^[ \t>\ufeff\u200b-\u200d\u2060]+(\^{3,}[^\s^].*)", re.MULTILINE)
_SHORT_END = regex(r"^\^\^[ \t]*end(?=[ \t\r]*$)", re.MULTILINE)
_SHORT_FENCE = regex(r"^\^\^[^\s^].*", re.MULTILINE)
_DECORATED = regex(r"(?:PATH[ \t]+)?([^/].*?):?")
BARE_END = regex(r"\^{3}[ \t\r]*(?:\n[ \t\r]*)*(?:\Z|(?<=\n)\^{3,}[ \t]*([^\s^].*)$)", re.MULTILINE)
_CARETS_ALONE = regex(r"\^+(?:[ \t]+\^+)*[ \t\r]*(?:\n|\Z)")
_POINTED_OUT = regex(r"\^+(?:[ \t]+(?:\S+[ \t]+\S|[^\s./]+[ \t\r]*$)|[~|=-])", re.MULTILINE)
_UNDERLINED = (".rst", ".md", ".txt")
_REDUNDANT_SLASHES = regex(r"(?<=/)\.?/")
_TOKENS = r"(?:<[^<>\n]{1,40}(?:>\s*|\Z))+"
"""Tokens by which a template ends an answer, or begins what follows it, and which a server sent as text."""
_END_AND_TOKENS = regex(rf"end[ \t]*{_TOKENS}\Z")
ENDS_WITH_TOKENS = regex(rf"^\^{{3,}}[ \t]*end[ \t]*{_TOKENS}\Z", re.MULTILINE)
LONGEST_TOKENS = 500  # characters
BEGINS_WITH_TOKENS = regex(r"\s*(?:(?:<[^<>\s]{1,40}>|\[/?[A-Za-z]{1,12}\])(?:assistant|model)?[ \t]*)+(?=\^{3})")
NAMED_WORD = regex(rf"({'|'.join(CLOSING)})[ \t]+(\S+)")
_DEPTHS = {**dict.fromkeys(CLOSING, -1), **dict.fromkeys(EDITING, 0)}  # any other fence opens a block
_DEEPEST = 10  # so many fences, one inside the other, are forgotten ends
_LONGEST_LIST = 10_000  # characters of paths to be removed
MOST_BLOCKS = 50_000  # no LLM's response has room for so many: the text after them is not read


class TreeView(Protocol):
    """The questions of the parser about the project, which it never looks at itself."""

    def has(self, path: str) -> bool: ...
    def has_folder(self, path: str) -> bool: ...

    def has_line(self, path: str, line: str) -> bool | None:
        """Tell whether a file has this line, blanks at its end left out of account; None if it may have had it."""


class Block(NamedTuple):
    path: str
    line: int
    carets: int

    @property
    def fence(self) -> str:
        return quoted("^" * self.carets)


@dataclass(slots=True)
class Findings:
    """The results of the parser so far. Lines are counted from 1, for positions that come in ascending order.

    `cuts` are, in turn, the starts of the text outside blocks and of the blocks; a stray fence counts as a block.
    `alone` has the line and the text of each block that stands alone, by its word. `bare_ends` are the files whose
    blocks `^^^` alone closes; `has_end` says that `^^^end` closes one.
    Every path of an answer is there if the `tree` is unknown.
    """

    text: str
    reasons: Reasons
    tree: TreeView | None = None
    is_short: bool = False
    are_all_thoughts: bool = False
    changes: dict[str, RequestedChange] = field(default_factory=dict)
    line: int = 1
    counted_to: int = 0
    closed: FileReplacement | EditBlock | None = None
    overran: FileReplacement | EditBlock | None = None
    unused_carets: int = 0
    cuts: list[int] = field(default_factory=list)
    alone: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    bare_ends: list[tuple[str, int]] = field(default_factory=list)
    has_end: bool = False
    _lines: dict[tuple[str, int], bool | None] = field(default_factory=dict)

    def has(self, path: str) -> bool:
        return self.tree is None or self.tree.has(path)

    def has_file(self, path: str) -> bool:
        """Tell whether a path is there, and no folder; never in an unknown tree."""
        return self.tree is not None and self.tree.has(path) and not self.tree.has_folder(path)

    def has_place(self, path: str) -> bool:
        """Tell whether a path is there or could be a new file of a folder that is there."""
        if self.has(path):
            return True
        is_file_name = "." in path or "/" in path  # a word alone may be what a line of carets points out
        return is_file_name and not re.search(r"\s", path) and self._has_folder(path.rpartition("/")[0])

    def _has_folder(self, path: str) -> bool:
        return not path or self.tree is None or self.tree.has_folder(path)

    def is_content(self, position: int, path: str, carets: int) -> bool:
        """Tell whether a line of carets alone is the file's own: the file has it, or may have it and no block ends."""
        key = path, carets
        if key not in self._lines:
            self._lines[key] = self.tree.has_line(path, "^" * carets) if self.tree else None
        is_own = self._lines[key]
        return not is_bare_end(self, position, path) if is_own is None else is_own

    def note_end(self, block: Block, *, is_bare: bool = False) -> None:
        """Note how a block ends, and that its fences are longer than those of the specification."""
        if is_bare:
            self.bare_ends.append((block.path, block.line))
            self.reasons.leniences.add("bare-end")
        else:
            self.has_end = True
        if block.carets > len(SHORTEST_FENCE):
            self.reasons.leniences.add("longer-fence")

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


def split_fence(text: str, position: int) -> tuple[int, str, int]:
    """Return the number of carets of the fence line there, the text after them, and where the next line begins."""
    end = text.find("\n", position)
    after = len(text) if end < 0 else end + 1
    line = text[position : len(text) if end < 0 else end]
    said = line.lstrip("^")
    word = said.removesuffix("\r").strip(" \t")
    may_end = len(text) - after < LONGEST_TOKENS and word.startswith("end") and "<" in word
    if may_end and _END_AND_TOKENS.match(f"{word}\n{text[after:]}".rstrip()):
        word = "end"
    return len(line) - len(said), word, after


def next_fence(text: str, position: int, fence: str) -> int:
    """Return where the next line that begins with `fence` starts, from the line start `position` on; else the end."""
    if text.startswith(fence, position):
        return position
    found = text.find(f"\n{fence}", position)
    return len(text) if found < 0 else found + 1


def closing_fence(text: str, position: int, carets: int) -> int:
    """Return where the next line with exactly that many carets in front starts; else the end of the text."""
    fence = "^" * carets
    position = next_fence(text, position, fence)
    while text.startswith("^", position + carets):
        line_end = text.find("\n", position)
        position = next_fence(text, line_end + 1, fence) if line_end >= 0 else len(text)
    return position


def closing_of(found: Findings, path: str, position: int, carets: int) -> tuple[int, str, int]:
    """Return where the next fence of a file's block stands, past lines of carets that the file has itself, what it says
    and where the next line begins.
    """
    closing = closing_fence(found.text, position, carets)
    _, word, after = split_fence(found.text, closing)
    while not word and closing < len(found.text) and found.is_content(closing, path, carets):
        closing = closing_fence(found.text, after, carets)
        _, word, after = split_fence(found.text, closing)
    return closing, word, after


def next_opening(text: str, position: int) -> int:
    """Return where the next fence line starts that is not of carets and blanks alone; else the end."""
    position = next_fence(text, position, SHORTEST_FENCE)
    while alone := _CARETS_ALONE.match(text, position):
        position = next_fence(text, alone.end(), SHORTEST_FENCE)
    return position


def is_inner(name: str) -> bool:
    """Tell whether a fence with these words opens no block."""
    return name in INNER or (name.startswith(CLOSING) and NAMED_WORD.fullmatch(name) is not None)


def opens_block(text: str) -> bool:
    """Tell whether a fence of the text may open a block."""
    position = next_opening(text, 0)
    while position < len(text):
        _, name, after = split_fence(text, position)
        if not is_inner(name):
            return True
        position = next_opening(text, after)
    return False


def skip_end(text: str, position: int, carets: int) -> int:
    length, word, after = split_fence(text, position)
    return after if length == carets and word == "end" else position


def canonical(name: str) -> str:
    """Drop a leading `./`, inner `/./` and `//`: one file has one spelling."""
    return (_REDUNDANT_SLASHES.sub("", name) if "//" in name or "/./" in name else name).removeprefix("./")


def path_of(name: str, found: Findings) -> str:
    """Return the path that a fence names: of `PATH x` or `x:` x where only that is there."""
    path = canonical(name)
    if not path.startswith("PATH") and not path.endswith(":"):
        return path
    match = _DECORATED.fullmatch(path)
    plain = canonical(match[1]) if match else path
    if plain == path or found.has(path) or not found.has(plain):
        return path
    found.reasons.leniences.add("decorated-path")
    return plain


def is_bare_end(found: Findings, position: int, path: str) -> bool:
    """Tell whether `^^^` alone stands there at the end of the answer or before a block, and underlines no heading."""
    match = BARE_END.match(found.text, position)
    if match is None or path.rstrip(":").lower().endswith(_UNDERLINED):
        return False
    name = (match[1] or "").removesuffix("\r").strip(" \t")
    return not name or not (name.split()[0] in INNER or not found.has_place(path_of(name, found)))


def is_pointed_out(text: str, position: int) -> bool:
    """Tell whether words follow the carets there as in what a compiler prints below a line of code."""
    return _POINTED_OUT.match(text, position) is not None


def listed_removals(found: Findings, opening: int, start: int, carets: int) -> tuple[list[str], int]:
    """Return the paths below the `^^^delete` there, where there is nothing else up to `^^^end` or the next `^^^delete`
    and each is there, and where to continue.

    Paths beside two `^^^delete` would be of another list: each of these could belong to the line before it.
    """
    text = found.text
    end = closing_fence(text, start, carets)
    _, word, after = split_fence(text, end)
    if end - start > _LONGEST_LIST or word not in CLOSING:
        return [], start
    paths = [canonical(line.strip()) for line in text[start:end].split("\n") if line.strip()]
    before = text[found.cuts[-2] : opening].rstrip().rpartition("\n")[2]
    behind = text[after : next_fence(text, after, SHORTEST_FENCE)].lstrip().partition("\n")[0]
    beside = {canonical(line.strip()) for line in (before, behind)} - {*paths}
    if not all(map(found.has, paths)) or (word == "delete" and any(map(found.has_file, beside))):
        return [], start
    return paths, skip_end(text, after, carets)


def _outer_end(text: str, position: int, carets: int) -> int:
    """Return where a block ends that holds the fence there and whole blocks of its own; 0 if it is never closed."""
    depth, after = 1, 0
    while 0 < depth < _DEEPEST and position < len(text):
        _, word, after = split_fence(text, position)
        depth += _DEPTHS.get(word, 1)
        position = closing_fence(text, after, carets)
    return 0 if depth else after


def reject_inner_fence(found: Findings, block: Block, position: int) -> int:
    """Reject the fence that stands there in the block, or its missing end; return where to continue."""
    text = found.text
    _, word, after = split_fence(text, position)
    named = NAMED_WORD.fullmatch(word)
    if named and (named[1] == "end" or canonical(named[2]) == block.path):
        message = f"{block.fence}{named[1]} must stand alone on its line: leave '{quoted(named[2])}' out"
        found.reject(found.line_at(position), "fence-in-block", message, block.path)
        return skip_end(text, after, block.carets)
    short = None if word in INNER else _SHORT_END.search(text, found.counted_to, position)
    if short:
        said = f"'{short[0]}' has 2 carets, the block was opened with {block.carets}: write {block.fence}end"
        found.reject(found.line_at(short.start()), "unclosed", said, block.path)
    elif position == len(text):
        said = f"the answer ends inside this block: send the file to its last line, then {block.fence}end on its own"
        found.reject(block.line, "unclosed", said + _about_prose(block), block.path)
    else:
        _reject_fence_of_content(found, block, position, word)
        return _outer_end(text, position, block.carets) or position
    return position


def _reject_fence_of_content(found: Findings, block: Block, position: int, word: str) -> None:
    fence, rule = block.fence, "unclear-edit" if word == "end" or word in EDITING else "fence-in-block"
    order = (
        f"the order is {fence}PATH, {fence}find, the lines to find (of a range its first lines, {fence}to, its last "
        f"lines), {fence}replace, the new lines, then the next {fence}find or {fence}end"
    )
    message = f"the block of {quoted(block.path)} (line {block.line}) holds the line '{fence}{quoted(word)}': "
    message += order if rule == "unclear-edit" else f"close the block with {fence}end before it"
    message += f"; or, if that line belongs to the file, {_longer_fence(found, block.path)}{_about_prose(block)}"
    found.reject(found.line_at(position), rule, message, block.path)


def _about_prose(block: Block) -> str:
    return f"; if line {block.line} is text for the reviewer, do not begin it with ^^^" if " " in block.path else ""


def reject_stray_fence(found: Findings, position: int, name: str, named: re.Match[str] | None) -> None:
    """Reject a fence that opens no block. After a block reject only the first: the others may be lines of its file."""
    line, block = found.line_at(position), found.closed
    if named:
        message = f"^^^{named[1]} must stand alone on its line: leave '{quoted(named[2])}' out"
        if named[1] == "delete":
            message = f"to delete it, write ^^^{quoted(named[2])} and ^^^delete on the next line"
        found.reject(line, "stray-fence", message)
        return
    if block and block is found.overran:
        return
    found.overran, message = block, f"^^^{name} stands outside a block: it belongs after a ^^^PATH line"
    is_edit = name in EDITING
    if is_edit:
        message += f", with all edits of a file in one block (a file of this name is ^^^./{name})"
    if block and not (is_edit and isinstance(block, EditBlock)):
        goes_on = f"if {quoted(block.path)} (line {block.line}) goes on to here"
        message += f"; {goes_on}, {_longer_fence(found, block.path)}"
    if short := _SHORT_FENCE.search(found.text, found.cuts[-2], position):
        at = line - found.text.count("\n", short.start(), position)
        message += f"; line {at}, '{quoted(short[0].rstrip())}', has 2 carets: a fence needs 3 or more"
    found.reject(line, "stray-fence", message)


def _longer_fence(found: Findings, path: str) -> str:
    if not found.unused_carets:
        text, used = found.text, {split_fence(found.text, 0)[0]}
        if (first := text.find("\n^^^^")) >= 0:  # much faster than the pattern
            used |= {len(match[1]) for match in islice(_LONGER_FENCE.finditer(text, first), MOST_BLOCKS)}
        found.unused_carets = next(carets for carets in count(len(SHORTEST_FENCE) + 1) if carets not in used)
    fence = quoted("^" * found.unused_carets)
    return f"open and close the block with {found.unused_carets} carets: {fence}{quoted(path)} and {fence}end"


def unequal_carets(fence: re.Match[str], carets: int) -> str:
    counts = f"'{quoted(fence[0].strip())}' has {len(fence[1])} carets and the block's path {carets}"
    return f"{counts}: give every fence of the block the same number"


def reject_short_block(found: Findings, start: int, end: int) -> None:
    """Reject a file between fences of two carets, which would otherwise be ignored as text."""
    short = _SHORT_FENCE.search(found.text, start, end)
    if short and _SHORT_END.search(found.text, short.end(), end):
        line = found.text.count("\n", 0, short.start()) + 1  # at most fifty times
        found.reject(line, "short-fence", f"'{quoted(short[0].rstrip())}' has 2 carets: a fence needs 3 or more")


def reject_indented_fences(found: Findings, start: int, end: int) -> int:
    """Reject fences that do not start their line; return the end, or the place of the last reason that is kept."""
    for match in _INDENTED_FENCE.finditer(found.text, start, end):
        message = f"'{quoted(match[1].strip())}' does not start its line: a fence must start at column 0"
        found.reject(found.line_at(match.start()), "indented-fence", message)
        if found.reasons.more:
            return match.end()
    return end
