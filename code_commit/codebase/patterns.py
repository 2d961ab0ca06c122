"""Plain patterns: the headings of a document, and the lines that look like the head of a definition.

They read the languages that have no grammar, and stand in for a grammar that is absent or fails on a file.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from code_commit.codebase.languages import compiled

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 200
"""Characters of a line of an outline, but for heads with parameters."""


class Entry(NamedTuple):
    """A definition as its reader gives it: `last` is 0 where that does not know its end."""

    text: str
    depth: int
    first: int
    last: int = 0
    node: "Node | None" = None
    name: str = ""


_MARKDOWN = re.compile(r"^(?:(?P<fence>```|~~~)(?s:.*?)^(?P=fence)|(#{1,6}[ \t].*))", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\S.{2,})\n(={3,}|-{3,}|~{3,}|\^{3,})[ \t]*$", re.MULTILINE)


def headings(suffix: str, text: str) -> list[Entry] | None:
    """Return the headings of a document, None if the file is none."""
    ranks = list[str]()
    if suffix in {"md", "mdc", "mdx", "markdown"}:
        found = (match for match in _MARKDOWN.finditer(text) if match[2])
        return [
            Entry(match[2], len(match[2]) - len(match[2].lstrip("#")), line, name=match[2].strip("# \t\r"))
            for line, match in _numbered(text, found)
        ]
    if suffix != "rst":
        return None
    entries = list[Entry]()
    for line, match in _numbered(text, _UNDERLINED.finditer(text)):
        ranks += [sign for sign in match[2][:1] if sign not in ranks]
        entries.append(Entry(match[1], ranks.index(match[2][:1]), line, name=match[1].strip()))
    return entries


def heads(suffix: str, text: str) -> list[Entry]:
    """Return the lines of code that look like the head of a definition, in no comment and no string of many lines."""
    skipped, head = compiled(suffix)
    code = skipped.sub(_blanked, text)
    entries = list[Entry]()
    for line, match in _numbered(code, head.finditer(code)):
        shown = match[0].rstrip(" \t\r{")[:LONGEST]
        name = next(filter(None, match.groups()), "").rstrip(":.").replace("::", ".")
        entries.append(Entry(shown, len(shown) - len(shown.lstrip()), line, name=name))
    return entries


def _blanked(match: re.Match[str]) -> str:
    """Return the ends of lines of a comment or long string; a string of one line stays."""
    lines = match[0].count("\n")
    return match[0] if match[0][0] in "\"'`" and not lines else "\n" * lines or " "


def _numbered(text: str, matches: Iterable[re.Match[str]]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield what patterns found, each with its line from 1."""
    line, counted = 1, 0
    for match in matches:
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        yield line, match
