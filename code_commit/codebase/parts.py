"""Parts of files: the lines of a list that name files, definitions and lines, and where in a file these stand.

A line is a path for the whole file, `PATH: NAME, NAME` for definitions, or `PATH:120-180` for lines. A definition is
named as the outline names it, a method also with its class: `Command.run`.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from code_commit.codebase.text import part_of, path_of
from code_commit.regex import regex
from code_commit.runs.diff import hunks_between
from code_commit.runs.words import listed
from code_commit.views import Part, lines_of

if TYPE_CHECKING:
    from code_commit.codebase.outline import Definition

_LONGEST_LINE, _LONGEST_NAME = 2_000, 200
_MOST_OF_A_LIST, _MOST_OF_A_NAME, _MOST_HINTS, _MOST_NEAREST = 200, 5, 5, 3
_MOST_IMPORTS, _LONGEST_HEAD, _MOST_COLONS = 100, 12, 8  # lines, lines; of a line that are tried
_SHORT, _MOST_USED = 3, 30  # lines of a constant, and of all that stand with a part
_CONSTANT = regex(r"\s*#[ \t]*define\b|[^=(]*=")
_WORD = regex(r"[A-Za-z_]\w{2,}")
_HEADER = regex(r"\s+\(lines ([\d, -]+?)(?: of [\d,]+)?\)(?:\s+---)?\s*$")  # of a part in a prompt
_IMPLEMENTS = regex(r"\s*(?:unsafe[ \t]+)?(?:impl\b.*\sfor\s|extension\s+[\w.]+\s*:)")
_RANGE = regex(r"(?:lines?\s*|L)?(\d{1,9})(?:\s*(?:-|\u2013|to)\s*L?(\d{1,9}))?", re.IGNORECASE)
_HUNK = regex(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@", re.MULTILINE)
_ARGUMENTS = regex(r"\([^()]*\)|<[^<>()]*>")
_TEST = regex(r"\b\w[\w.]*[ (]+([\"'`])([^\"'`,]*)\1\)?")  # as an outline has it: `it('is sent')`
_ABOVE = regex(r"\s*(?://|/?\*|--|;;|@|#(?!\s*(?:define|el|if|import|include|pragma|undef)))")


class FileRequest(NamedTuple):
    """Request one file: the named definitions and ranges of lines, or all of it if none are given."""

    path: str
    names: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()

    @property
    def is_whole(self) -> bool:
        return not self.names and not self.ranges


class FoundPart(NamedTuple):
    """The requested lines of a file, None if it has none of them, and a phrase for each item that the file lacks."""

    part: Part | None
    missing: Sequence[str]


def read_requests(lines: Iterable[str], paths: Collection[str]) -> dict[str, FileRequest]:
    """Return the requests of a list by path, one a file. A path that is not in `paths` is as the list spells it."""
    requests: dict[str, FileRequest] = {}
    for line in lines:
        path, names, ranges = _read_request(line.strip()[:_LONGEST_LINE], paths)
        known = requests.get(path)
        if known and (known.is_whole or not (names or ranges)):
            names = ranges = ()
        elif known:
            names, ranges = (*known.names, *names), (*known.ranges, *ranges)
        requests[path] = FileRequest(path, names[:_MOST_OF_A_LIST], ranges[:_MOST_OF_A_LIST])
    return requests


def _read_request(line: str, paths: Collection[str]) -> FileRequest:
    path = path_of(line, paths)
    if path in paths:
        return FileRequest(path)
    line = _HEADER.sub(r":\1", line)
    marks = islice(re.finditer(":+|#", line), _MOST_COLONS)
    heads = [(path_of(line[: mark.start()], paths), line[mark.end() :]) for mark in marks]
    path, items = next((head for head in heads if head[0] in paths), heads[0] if heads else (path, ""))
    names, ranges = dict[str, None](), list[tuple[int, int]]()
    for item in _without_arguments(_TEST.sub(r"\2", items)).split(","):
        text = " ".join(item.split()).strip(" `'\"*;.")
        if match := _RANGE.fullmatch(text):
            first, last = int(match[1]), int(match[2] or match[1])
            ranges.append((min(first, last), max(first, last)))
        elif text:
            names[text[:_LONGEST_NAME]] = None
    return FileRequest(path, tuple(names), tuple(ranges))


def find_part(path: str, text: str, request: FileRequest) -> FoundPart:
    """Return the lines that a request names, the comments above a definition, and the first line of what it is in.

    The file's first line and its imports stand with them, and the constants that they use.
    """
    lines, missing, found = lines_of(text), list[str](), list[tuple[int, int]]()
    for first, last in request.ranges:
        if max(first, 1) <= len(lines):
            found.append((first, last))
        else:
            missing.append(f"lines {first}-{last}: the file has {len(lines):,}")
    from code_commit.codebase.outline import read_definitions  # its patterns take 8 ms, and few runs need it

    definitions = read_definitions(path, text)
    for name in request.names:
        there = _named(definitions, name)
        if len(there) > _MOST_OF_A_NAME:  # of a type the definition, and not what it implements
            there = [each for each in there if not _IMPLEMENTS.match(each.text)] or there
        if there and (len(there) <= _MOST_OF_A_NAME or len({each.name for each in there}) == 1):
            found += [(_with_comments(lines, each.first), each.last) for each in there]
        else:
            missing.append(_explain_missing(name, there or definitions, is_known=bool(there), number=len(missing)))
    beside = [(1, 1), *_heads_of_owners(definitions, found, lines), *_imports(definitions)] if found else []
    beside += _constants(definitions, found, lines)
    return FoundPart(part_of(text, [*found, *beside]) if found else None, missing)


def _without_arguments(text: str) -> str:
    """Return a list of names without what stands in parentheses or is a type's argument, however it nests."""
    while (less := _ARGUMENTS.sub("", text)) != text:
        text = less
    return text


def _named(definitions: "Collection[Definition]", name: str) -> "list[Definition]":
    """Return the definitions with a name, or else those whose name ends with its words, or has all of its last ones.

    So `A::b`, `A#b` and `module/b` name what the outline calls `A.b` or `b`.
    """
    if found := [each for each in definitions if f".{each.name}".endswith(f".{name}")]:
        return [each for each in found if each.name == name] or found
    for wanted in (_words(name), _words(name.rsplit(maxsplit=1)[-1])):
        own = ((each, _words(each.name)) for each in definitions if wanted and wanted[-1] in each.name)
        sizes = [(min(len(words), len(wanted)), each, words) for each, words in own]
        alike = [(size, each) for size, each, words in sizes if size and words[-size:] == wanted[-size:]]
        if most := max((size for size, _ in alike), default=0):
            return [each for size, each in alike if size == most]
    return []


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W\d]\w*", _without_arguments(name))


def _explain_missing(name: str, others: "Sequence[Definition]", *, is_known: bool, number: int) -> str:
    if not any(each.name for each in others):
        return f"{name}: the definitions of this file cannot be found: name lines instead"
    if is_known:
        return (
            f"{name}: {len(others)} definitions have this name: {listed([each.name for each in others], _MOST_NEAREST)}"
        )
    from difflib import get_close_matches  # few lists need it

    spellings = {spelling: each.name for each in others for spelling in (each.name, each.name.rpartition(".")[2])}
    tried = (".".join(words), *words[-1:]) if (words := _words(name)) and number < _MOST_HINTS else ()
    near = next(filter(None, (get_close_matches(each, spellings, _MOST_NEAREST) for each in tried)), ())
    nearest = dict.fromkeys(spellings[spelling] for spelling in near)
    return f"{name}: no definition of it{'; nearest: ' if nearest else ''}{', '.join(nearest)}"


def _with_comments(lines: Sequence[str], first: int) -> int:
    if first > 2 and not lines[first - 2].strip() and lines[first - 3].endswith("*/"):
        first -= 1
    while first > 1 and _ABOVE.match(lines[first - 2]):
        first -= 1
    return first


def _heads_of_owners(
    definitions: "Iterable[Definition]", found: Sequence[tuple[int, int]], lines: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield the first lines, up to that with the name, of each definition that lines lie in."""
    for each in definitions:
        if each.name and any(each.first < first and last <= each.last for first, last in found):
            own = each.name.rpartition(".")[2]
            near = range(each.first, min(each.first + _LONGEST_HEAD, len(lines) + 1))
            yield each.first, next((line for line in near if own in lines[line - 1]), each.first)


def _imports(definitions: "Iterable[Definition]") -> Iterator[tuple[int, int]]:
    from code_commit.codebase.outline import is_import

    room = _MOST_IMPORTS
    for each in definitions:
        if is_import(each.text) and (room := room - (each.last - each.first + 1)) >= 0:
            yield each.first, each.last


def _constants(
    definitions: "Iterable[Definition]", found: Iterable[tuple[int, int]], lines: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield the constants of the file that lines use: short definitions with a value, and macros."""
    words, room = {word for first, last in found for word in _WORD.findall(_joined(lines, first, last))}, _MOST_USED
    for each in definitions:
        size = each.last - each.first + 1
        is_used = "." not in each.name and not words.isdisjoint(_WORD.findall(each.name))
        is_constant = size <= _SHORT and _CONSTANT.match(_joined(lines, each.first, each.last))
        if is_used and is_constant and (room := room - size) >= 0:
            yield each.first, each.last


def _joined(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(lines[first - 1 : last])


def carried_ranges(part: Part, before: str | None, now: str) -> list[tuple[int, int]]:
    """Return where the lines of a part stand now, with those put in among them; `before` is the file of the part."""
    if before is None:
        return [_find_passage(first, text, now) for first, text in part.passages]
    ranges = []
    hunks = [[int(number or 1) for number in found] for found in _HUNK.findall(hunks_between(before, now, 0))]
    for first, last in part.ranges:
        start, end = first, last
        for line, gone, new in hunks:
            if line + max(gone - 1, 0) < first - (gone == 0):
                start, end = start + new - gone, end + new - gone
            elif line <= last:
                end += new - gone
        ranges.append((start, end))
    return ranges


def _find_passage(first: int, text: str, now: str) -> tuple[int, int]:
    """Return the lines where a passage stands, as they were where it stands nowhere or in several places."""
    if now.count(text) == 1:
        first = now.count("\n", 0, now.index(text)) + 1
    return first, first + text.count("\n") - 1
