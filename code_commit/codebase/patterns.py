"""Plain patterns: the headings of a document, and the lines that look like the head of a definition.

They read the languages that have no grammar, and stand in for a grammar that is absent or fails on a file.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from code_commit.codebase.languages import CLOSERS, TAGGED_CLOSERS, compiled, has_own_row
from code_commit.regex import regex

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 200
"""Characters of a line of an outline, but for heads with parameters."""
_MOST_ENDLESS = 20  # ends of comments and strings that a text lacks, before no more are looked for


class Entry(NamedTuple):
    """A definition as its reader gives it: `last` is 0 where that does not know its end."""

    text: str
    depth: int
    first: int
    last: int = 0
    node: "Node | None" = None
    name: str = ""


_CONTROL = "begin|case|catch|do|else|elseif|elsif|elif|end|except|finally|for|foreach|if|let|loop|match|rem|repeat"
_HEAD = regex(
    rf"(?i)\s*(?!(?:{_CONTROL}|return|select|switch|then|try|unless|until|when|while|with)\b)[\w@$][^=(\[{{<'\"#:,;]*"
)
_BINDS = regex(r"\s+(?:let|and|var|const)\b(?!.*\b(?:class|enum|error|module|object|opaque|struct|union)\b)")
_RUNS = regex(
    r"\s*(?:[\w@]+\s+)*?(?:let|and|def|fn|fun|func|function|iterator|macro|member|method|override|proc|sub|template)\b"
    r"|.*[-=]>\s*\Z"
)
_BEHIND_NAME = regex(r"\b(?:as|does|do|extends|for|from|if|implements|is|of|returns?|where|with)\b|\.\s*\Z")
_OPENS = regex(r"\s*(?:\{|begin\b)", re.IGNORECASE)
_SAYS_NOTHING = regex(r"\s*(?:[#%;!*]|//|--|\Z)")
"""The beginning of a head up to its first sign, what follows a name in it, a line that opens a block, and a comment."""
_TITLE = r"(?P<title>.*)$"
_HEADINGS = {
    ("md", "mdc", "mdx", "markdown"): rf"\A---\n(?s:.*?)^---$|^(?P<fence>```|~~~)(?s:.*?)^(?P=fence)"
    rf"|^(?P<mark>#{{1,6}})[ \t]{_TITLE}|^(?![-*+>|#<]|\d+\.)(?P<over>\S.*)\n(?P<line>={{2,}}|-{{2,}})[ \t]*$",
    ("rst",): r"^(?P<over>\S.{2,})\n(?P<line>={3,}|-{3,}|~{3,}|\^{3,})[ \t]*$",
    ("adoc", "asciidoc"): rf"^(?P<fence>-{{4,}}|\.{{4,}})$(?s:.*?)^(?P=fence)$|^(?P<mark>={{1,6}})[ \t]{_TITLE}",
    ("org",): rf"^#\+(?i:begin)(?s:.*?)(?:^#\+(?i:end)|\Z)|^(?P<mark>\*+)[ \t]{_TITLE}",
    (
        "tex",
        "ltx",
    ): r"^[ \t]*\\(?P<mark>part|chapter|(?:sub)*section|(?:sub)?paragraph)\*?(?:\[.*?\])?\{(?P<title>.*)\}",
}
"""How the headings of documents look, by suffixes: a mark before a title, or a line below one."""


def headings(path: str, text: str) -> list[Entry] | None:
    """Return the headings of a document, None if the file is none."""
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    looks = next((pattern for suffixes, pattern in _HEADINGS.items() if suffix in suffixes), None)
    if looks is None:
        return None
    ranks, entries = list[str](), list[Entry]()
    for line, match in _numbered(text, re.finditer(looks, text, re.MULTILINE)):
        found = match.groupdict("")
        mark, title = found.get("mark", ""), found.get("title") or found.get("over", "")
        if not (sign := mark or found.get("line", "")[:1]):
            continue  # a block of something else
        ranks += [sign] if sign not in ranks else []
        depth = 1 + ranks.index(sign) if sign.isalpha() or not mark else len(mark)
        heading, name = (title, title) if found.get("over") else (match[0].strip(), title.rstrip(" \t\r#="))
        entries.append(Entry(heading.rstrip()[:LONGEST], depth, line, name=name.strip()))
    return entries


def heads(suffix: str, text: str) -> list[Entry]:
    """Return the lines of code that look like the head of a definition, in no comment and no string of many lines."""
    skipped, head = compiled(suffix)
    code = "".join(_blanked(text, skipped))
    entries = list[Entry]()
    for line, match in _numbered(code, head.finditer(code)):
        name = next(filter(None, match.groups()), "").rstrip(":.").replace("::", ".")
        entries.append(_entry(match[0], line, name))
    return _without_locals(entries, text, code) if has_own_row(suffix) else _with_shapes(entries, code)


def _without_locals(entries: list[Entry], text: str, code: str) -> list[Entry]:
    """Return the entries without the values that are bound within a function, by the indentation of its lines.

    A line of the code that begins within a comment or string of the text has none.
    """
    bound = {entry.first for entry in entries if _BINDS.match(entry.text)}
    above, local = [(-1, False)], set[int]()
    lines = zip(text.split("\n"), code.split("\n"), strict=True) if bound else ()
    for number, (whole, line) in enumerate(lines, 1):
        if line.strip() and (depth := _indent(line)) == _indent(whole):
            while above[-1][0] >= depth:
                above.pop()
            is_local = above[-1][1]
            local.update([number] if is_local and number in bound else ())
            above.append((depth, is_local or _RUNS.match(line) is not None))
    return [entry for entry in entries if entry.first not in local]


def _shapes(text: str) -> list[Entry]:
    """Return the heads of code in a language of which nothing is known: the lines of the outermost two levels under
    which others are indented.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if not _SAYS_NOTHING.match(line)]
    found = list[Entry]()
    for (number, line), (_, below) in pairwise(lines):
        head = _HEAD.match(line)
        if head and (line.rstrip()[-1] == "{" or _OPENS.match(below) or _indent(below) > _indent(line)):
            *_, name = _BEHIND_NAME.split(head[0])[0].split() or [""]
            found.append(_entry(line, number, name))
    levels = sorted({entry.depth for entry in found})[:2]
    return [entry for entry in found if entry.depth in levels]


def _with_shapes(entries: list[Entry], code: str) -> list[Entry]:
    told = {entry.first for entry in entries}
    more = (entry for entry in _shapes(code) if entry.first not in told)
    return sorted([*entries, *more], key=lambda entry: entry.first)


def _entry(line: str, number: int, name: str) -> Entry:
    shown = line.rstrip(" \t\r{")[:LONGEST]
    return Entry(shown, _indent(shown), number, name=name)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _blanked(text: str, skipped: re.Pattern[str]) -> Iterator[str]:
    """Yield a text with only the ends of lines of its comments and long strings; a string of one line stays.

    A comment that nothing ends is none. Its end is looked for once, and few such ends are, or each beginning would read
    the whole text.
    """
    start, endless = 0, set[str]()
    while match := skipped.search(text, start):
        end, closer = match.end(), _closer(match)
        is_endless = closer in endless or (closer != "" and len(endless) >= _MOST_ENDLESS)
        closed = None if is_endless else re.compile(closer, re.MULTILINE).search(text, end)
        yield text[start : match.start()]
        if closed is None:
            endless.add(closer)
            yield match[0]
        else:
            end = closed.end()
            lines = text.count("\n", match.start(), end)
            yield match[0] if match[0][0] in "\"'`@" and not lines else "\n" * lines or " "
        start = end
    yield text[start:]


def _closer(match: re.Match[str]) -> str:
    """Return the pattern of what ends a comment or string, of which a match has the beginning alone; else ""."""
    tag = match.lastgroup
    return TAGGED_CLOSERS[tag].format(re.escape(match[tag])) if tag else CLOSERS.get(match[0], "")


def _numbered(text: str, matches: Iterable[re.Match[str]]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield what patterns found, each with its line from 1."""
    line, counted = 1, 0
    for match in matches:
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        yield line, match
