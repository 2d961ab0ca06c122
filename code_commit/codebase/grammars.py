"""The grammars: which one reads a file, and the syntax tree that it makes of it.

The extra `outline` brings tree-sitter and the grammars.
"""

import functools
import importlib
import json
import re
import time
import warnings
from typing import TYPE_CHECKING, NamedTuple

from code_commit.codebase.languages import ANY, is_language
from code_commit.codebase.macros import without_macros
from code_commit.regex import regex

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_SUFFIXES = {
    "python": "py pyi",
    "rust": "rs",
    "go": "go",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "java": "java",
    "c": "c",
    "cpp": "h cc cpp cxx hh hpp hxx",
    "ruby": "rb rake",
    "php": "php",
    "c_sharp": "cs",
    "bash": "sh bash",
    "kotlin": "kt kts",
    "swift": "swift",
    "scala": "scala sc",
}
_LANGUAGE_OF = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_GRAMMARS = {"tsx": ("typescript", "language_tsx"), "typescript": ("typescript", "language_typescript")}
_GRAMMARS["php"] = ("php", "language_php")

_OWN_LINE = regex(
    rb"(?P<before>\bclass[ \t]+\w+(?:<[^{}()\n]*>)?)"
    rb"(?P<macro>[ \t]*\n\s*(?:(?:@[\w.]+(?:\([^()\n]*\))?|\w+)\s+)*constructor)(?=\s*\()"
)  # a constructor of Kotlin
_PAGES = {"vue", "svelte", "astro", "html", "htm"}
_PAGE_SCRIPT = regex(r"<script\b[^>]*>(.*?)(?:</script>|\Z)|\A\s*---\n(.*?)^---$", re.DOTALL | re.MULTILINE)
_NO_CODE_OF_PYGMENTS = """
    asc bibtex configs console css data diff dns email gcodelexer html installers json5 ldap markup minecraft procfile
    sgf special srcinfo templates textfmts ul4 xorg
"""
_NO_CODE = frozenset(_NO_CODE_OF_PYGMENTS.split())
_LONGEST_LINE = 10_000  # characters: a grammar can take gigabytes for a longer one
_PIECE, _PARSING_TIME = 65_536, 0.5  # bytes, seconds


class Parsed(NamedTuple):
    """A file's language and source, and the root of its syntax tree, with the places and lines of the source."""

    language: str
    source: bytes
    root: "Node"


def parse(suffix: str, text: str) -> Parsed | None:
    """Return the syntax tree of a file, None where no grammar is there for it.

    Raises ValueError where it takes too long.
    """
    language = _LANGUAGE_OF.get(suffix, "")
    if not language or max(map(len, text.split("\n"))) > _LONGEST_LINE or not (parser := _parser(language)):
        return None
    source = text.encode()
    return Parsed(language, source, _root(parser, _known_syntax(language, source)))


def _root(parser: "Parser", source: bytes) -> "Node":
    """Return the root of the syntax tree. Raises ValueError where it takes too long: some sources take minutes."""
    end = time.thread_time() + _PARSING_TIME
    parser.reset()  # of a source before that took too long
    tree = parser.parse(lambda at, _: source[at : at + _PIECE], progress_callback=lambda *_: time.thread_time() > end)
    return tree.root_node


@functools.cache
def _parser(language: str) -> "Parser | None":
    grammar, function = _GRAMMARS.get(language, (language, "language"))
    try:
        from tree_sitter import Language, Parser

        module = importlib.import_module(f"tree_sitter_{grammar}")
    except ImportError:
        return None
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # Swift's is a number, not a capsule
        return Parser(Language(getattr(module, function)()))


def _known_syntax(language: str, source: bytes) -> bytes:
    """Return a source with blanks for what its grammar does not know, so that each place and line stays.

    These are macros of the C family, and in Kotlin the modifiers of a constructor on a line of its own.
    """
    if language in {"c", "cpp"}:
        return without_macros(source)
    return _OWN_LINE.sub(_commented, source) if language == "kotlin" else source


def _commented(match: re.Match[bytes]) -> bytes:
    lines = match["macro"].count(b"\n")
    return match["before"] + b"/*" + b"\n" * lines + b" " * (len(match["macro"]) - lines - 4) + b"*/"


def code_of(path: str, text: str) -> tuple[str, str]:
    """Return the suffix of a file's language, "" where none is known, and its code.

    The code of a page with scripts is these alone, and that of a notebook its cells, each on its lines.
    """
    name = path.rpartition("/")[2]
    suffix = name.rpartition(".")[2].lower()
    if suffix in _PAGES:
        return "ts", _scripts_of(text)
    if suffix == "ipynb":
        return _cells_of(text)
    begins = name.partition(".")[0].lower()  # Dockerfile.prod
    known = (each for each in (suffix, begins if begins.endswith("file") else "") if is_language(each))
    return next(known, "") or _alike(name, suffix, text), text


def _alike(name: str, suffix: str, text: str) -> str:
    """Return the suffix of other files in the language that a file's name or its first line says."""
    named, interpreters = _known_names()
    program = re.match(r"#![ \t]*\S*?(?:/env(?:[ \t]+-\S+)*[ \t]+(?:\S+/)?)?([a-zA-Z]+)[\d.]*(?=\s|$)", text)
    told = interpreters.get(program[1].lower(), "") if program else ""
    other = ANY if suffix and f"*.{suffix}" in code_languages() else ""
    return told or named.get(name) or named.get(f"*.{suffix}") or other


@functools.cache
def code_languages() -> dict[str, str]:
    """Return the languages that code is written in, by each name that Pygments has for their files."""
    from pygments.lexers import LEXERS  # few files are named so

    lexers = [lexer for lexer in LEXERS.values() if lexer[0].rpartition(".")[2] not in _NO_CODE]
    return {each: language for _, language, _, names, _ in reversed(lexers) for each in names}


@functools.cache
def _known_names() -> tuple[dict[str, str], dict[str, str]]:
    """Return a suffix that patterns read by each name and each interpreter that Pygments has for its language."""
    from pygments.lexers import LEXERS  # few files are named so

    named, interpreters = dict[str, str](), {"node": "js", "deno": "ts", "bun": "ts", "rscript": "r"}
    for _, _, aliases, names, _ in LEXERS.values():
        if found := next((each[2:] for each in names if each[:2] == "*." and is_language(each[2:])), None):
            named |= {each: found for each in names if each not in named}
            interpreters |= {each: found for each in aliases if each not in interpreters}
    return named, interpreters


def _scripts_of(text: str) -> str:
    """Return the scripts of a page, each on its lines."""
    at, pieces = 0, list[str]()
    for match in _PAGE_SCRIPT.finditer(text):
        start, end = match.span(match.lastindex or 0)
        pieces += [re.sub(r"[^\n]", " ", text[at:start]), text[start:end]]
        at = end
    return "".join(pieces)


def _cells_of(text: str) -> tuple[str, str]:
    """Return the language of a notebook, and the code of its cells where each of its lines stands on its own."""
    lines, is_code, is_source = list[str](), False, False
    for line in text.split("\n"):
        if kind := re.search(r'"cell_type": *"(\w+)"', line):
            is_code = kind[1] == "code"
        code = re.fullmatch(r'\s*("(?:[^"\\]|\\.)*"),?\r?', line) if is_source and is_code else None
        lines.append(json.loads(code[1], strict=False).rstrip("\n") if code else "")
        is_source = code is not None or re.search(r'"source": *\[\s*$', line) is not None
    told = re.search(r'"file_extension": *"\.(\w+)"', text)
    return (told[1] if told and is_language(told[1]) else "py"), "\n".join(lines)
