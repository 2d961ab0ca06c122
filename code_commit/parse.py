r"""The parser: fences of a response -> file changes. Text in, values out; it never looks at the file system.

Grammar, on lines split at `\n` only; a `\r` before it belongs to the line end of fence lines:

    ^^^PATH            at column 0 opens a block; PATH is the rest of the line, outer blanks stripped
    ...                content: every line up to the closing fence, verbatim, each with its line end
    ^^^end             closes it

    ^^^PATH            followed at once by
    ^^^delete          removes the file; a following ^^^end is tolerated

A fence may be longer (`^^^^PATH` ... `^^^^end`): inside it, lines that begin with any other number of carets are
content, so that every file can be sent. Text outside blocks and a leading `<think>...</think>` are ignored.

What cannot be parsed without a guess rejects the response as a whole, with every reason. Whether a path may be
written is not decided here.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from code_commit.changes import FileChange, FileRemoval, FileReplacement, RejectedResponseError, Violation
from code_commit.terminal import shown

SHORTEST_FENCE = "^^^"
_THINKING = re.compile(r"\s*<think>")
_BEHIND_THINKING = re.compile(r"</think>[ \t]*\r?\n?")
_INDENTED_FENCE = re.compile(r"^[ \t>\ufeff\u200b-\u200d\u2060]+(\^{3,}[^\s^].*)", re.MULTILINE)
_REDUNDANT_SLASHES = re.compile(r"/(?:\.?/)+")
_STRETCH = 1 << 12
"""So far behind a caret that is no fence whole fences are looked for; else carets alone, which is 25 times as fast."""


class _Lines:
    """The line numbers of positions, which come in ascending order; counted when the first one is asked for."""

    __slots__ = ("_numbers", "_positions", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._positions = [0]
        self._numbers = [1]

    def mark(self, position: int) -> Callable[[], int]:
        """Return what tells the position's line number, from 1."""
        self._positions.append(position)
        return partial(self._number, len(self._positions) - 1)

    def _number(self, index: int) -> int:
        while len(self._numbers) <= index:
            start, end = self._positions[len(self._numbers) - 1 : len(self._numbers) + 1]
            self._numbers.append(self._numbers[-1] + self._text.count("\n", start, end))
        return self._numbers[index]


@dataclass(slots=True)
class _Findings:
    """What the parser has found so far."""

    text: str
    lines: _Lines
    changes: dict[str, FileChange] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    def reject(self, line: int, rule: str, message: str, path: str = "") -> None:
        self.violations.append(Violation(path, line, rule, message))

    def add(self, change: FileChange) -> None:
        known = self.changes.setdefault(change.path, change)
        if known is not change and _meaning(known) != _meaning(change):
            message = f"the file comes twice, first in line {known.line}: write each file once, whole"
            self.reject(change.line, "duplicate-path", message, change.path)


def parse_response(text: str) -> tuple[FileChange, ...]:
    """Return the changes in the order of the response. Raises RejectedResponseError with every reason."""
    found = _Findings(text, _Lines(text))
    position = _behind_thinking(text)
    if text.startswith("\ufeff", position):
        position += 1
    while position < len(text):
        opening = _next_fence(text, position, SHORTEST_FENCE)
        _reject_indented_fences(found, position, opening)
        if opening == len(text):
            break
        position = _read_block(found, opening)
    _reject_files_that_are_folders(found)
    if not found.changes and not found.violations:
        found.reject(
            0, "no-block", "the response has no ^^^ block: send every file to change between ^^^PATH and ^^^end"
        )
    if found.violations:
        raise RejectedResponseError(found.violations)
    return tuple(found.changes.values())


def render_response(changes: Iterable[FileChange]) -> str:
    """Write changes as a response that parses back to them, with longer fences where a file holds fence lines.

    Raises ValueError for content whose last line has no line end: the fences cannot express it.
    """
    return "".join(_render_change(change) for change in changes)


def _render_change(change: FileChange) -> str:
    if isinstance(change, FileRemoval):
        return f"^^^{change.path}\n^^^delete\n"
    if change.content and not change.content.endswith("\n"):
        raise ValueError(f"{shown(change.path)}: the last line has no line end")
    longest = max(map(len, re.findall(r"^\^{3,}", change.content, re.MULTILINE)), default=2)
    fence = "^" * (longest + 1)
    return f"{fence}{change.path}\n{change.content}{fence}end\n"


def _behind_thinking(text: str) -> int:
    """Return where the response itself begins."""
    thinking = _THINKING.match(text)
    end = text.find("</think>", thinking.end()) if thinking else -1
    behind = _BEHIND_THINKING.match(text, end) if end >= 0 else None
    return behind.end() if behind else 0


def _read_block(found: _Findings, opening: int) -> int:
    """Read the block whose opening fence stands at `opening`; return where to go on."""
    text = found.text
    line = found.lines.mark(opening)
    carets, name, body = _split_fence(text, opening)
    if name in ("end", "delete"):
        found.reject(line(), "stray-fence", f"^^^{name} stands outside a block: it belongs behind a ^^^PATH line")
        return body
    if not name:
        found.reject(line(), "empty-path", "the fence names no file: write ^^^ and the file's path on one line")
        return body
    path = _canonical(name)
    if not path:
        found.reject(line(), "empty-path", f"^^^{shown(name)} names no file: write the file's path")
    closing = _closing_fence(text, body, carets)
    if closing == len(text):
        message = f"the block is not closed: put {'^' * carets}end on a line of its own behind the file's last line"
        found.reject(line(), "unclosed", message, path)
        return len(text)
    _, word, after = _split_fence(text, closing)
    if word == "end":
        found.add(FileReplacement(path, text[body:closing], line))
        return after
    if word == "delete" and closing == body:
        found.add(FileRemoval(path, line))
        return _skip_end(text, after, carets)
    message = (
        f"the block of {shown(path)} (line {line()}) holds the line '{'^' * carets}{shown(word)}': close the block "
        f"with {'^' * carets}end before it, or, when it belongs to the file, open and close the block with more carets"
    )
    found.reject(found.lines.mark(closing)(), "fence-in-block", message, path)
    return closing


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
    fence = "\n" + fence
    stretch = max(_STRETCH, len(fence))
    while True:
        caret = text.find("^", position)
        if caret < 0:
            return len(text)
        if caret > position and text.startswith(fence, caret - 1):
            return caret
        position = caret + stretch
        found = text.find(fence, caret, position + len(fence))
        if found >= 0:
            return found + 1


def _closing_fence(text: str, position: int, carets: int) -> int:
    """Return where the next line with exactly that many carets in front starts; else the end of the text."""
    fence = "^" * carets
    position = _next_fence(text, position, fence)
    while text.startswith("^", position + carets):
        position = _next_fence(text, position + carets, fence)
    return position


def _skip_end(text: str, position: int, carets: int) -> int:
    if text.startswith("^", position):
        length, word, after = _split_fence(text, position)
        if length == carets and word == "end":
            return after
    return position


def _canonical(name: str) -> str:
    """Drop a leading `./`, inner `/./` and `//`: one file has one spelling."""
    if "//" in name or "/./" in name:
        name = _REDUNDANT_SLASHES.sub("/", name)
    return name.removeprefix("./")


def _reject_indented_fences(found: _Findings, start: int, end: int) -> None:
    if found.text.find(SHORTEST_FENCE, start, end) < 0:
        return
    for match in _INDENTED_FENCE.finditer(found.text, start, end):
        message = f"'{shown(match[1].strip())}' does not start its line: a fence stands at column 0"
        found.reject(found.lines.mark(match.start())(), "indented-fence", message)


def _reject_files_that_are_folders(found: _Findings) -> None:
    for path, change in found.changes.items():
        for folder in _folders(path):
            if folder in found.changes:
                message = f"{shown(folder)} (line {found.changes[folder].line}) cannot be a file and a folder"
                found.reject(change.line, "file-and-folder", message, path)


def _folders(path: str) -> Iterator[str]:
    slash = path.find("/", 1)
    while slash > 0:
        yield path[:slash]
        slash = path.find("/", slash + 1)


def _meaning(change: FileChange) -> str | None:
    return change.content if isinstance(change, FileReplacement) else None
