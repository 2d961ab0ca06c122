"""Outlines: a source file's imports and the heads of its classes, functions and types, or a document's headings; and
where in the file these definitions stand.

A syntax tree names them. The lines that look like the head of a definition stand where there is no grammar, and where
one does not know most of a file; without grammars `ast` reads Python.
"""

import functools
import re
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from code_commit.codebase.grammars import code_of
from code_commit.codebase.languages import ANY
from code_commit.codebase.patterns import LONGEST, Entry, headings, heads
from code_commit.codebase.syntax import MADE, Tree, is_function, name_of, read_tree
from code_commit.regex import regex
from code_commit.runs.words import count

if TYPE_CHECKING:
    import ast

_IMPORT = regex(
    r"\s*(?:(?:from|import|package|(?:pub )?use|using(?! \w+ =)|#[ \t]*include)\b|require(?:_relative)?[ (]"
    r"|(?:const|let|var)\s.*\brequire\()"
)
_TEST = (
    r"(?:@?test(?:set)?|[Cc]ontext|[Dd]escribe|feature|group|[Ii]t|scenario|should|specify|subtest|suite)\b[.\w]*[ (]"
    r"|def [\"']"
)
_TEST_OR_IMPORT = regex(
    rf"{_IMPORT.pattern}|\s*(?:@.* )?(?:async )?(?:class|def|fn|func?|function)\s+(?:[Tt]est|Benchmark|Example|Fuzz)"
    rf"|\s*(?:{_TEST})|\s*[A-Z_]*TEST[A-Z_]*\("
)
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_WITHIN = functools.reduce(lambda within, _: rf"(?:[^()\"']|{_QUOTED}|\({within}\))*", range(6), r"[^()]*")
_ANNOTATION = regex(rf"(?<!\S)@[\w.]+(?:\({_WITHIN}\))?(?:\s+|$)")
_DETAIL = regex(
    r"^(\s*from (?:\.+ import .*|\S+)).*|^(\s*use [\w:]+(?=::\{)).*"
    r"|^(\s*[A-Z][A-Z0-9_]{2,}\((?:\w+(?:, \w+)*|\"(?:\\.|[^\"\\])*\")\)).*"
    r"|^(\s*#\s*(?:define \w+(?:\([\w, .]*\))?|include [<\"][^>\"]*[>\"])).*|^(\s*using \w+) =.*"
    r"|^(\s*typedef (?:enum|struct|union)\b[^{]*)\{.*\} *(.*)"
    r"|^(\s*(?:(?:import|use|using|require\w*|package|#)\b|\w+[.\w]*[ (]+[\"'`]).*)"
    r"|(?<=\w)(?:<[^()]*>)?\(.*|(?<!\s)\s*(?:(?<!:):(?!:)|=|->).*"
)  # the text after a definition's name
_MODIFIERS = regex(
    r"^(\s*)(?:(?:abstract|async|constexpr|declare|default|export|final|inline|internal|open|override|private|protected"
    r"|pub(?:\([\w :]+\))?|public|readonly|sealed|static|virtual)\s+)+(?=[^\s=(:])"
)
_PLAIN = rf"[^<>()]|\({_WITHIN}\)"
_PARAMETERS = functools.reduce(
    lambda within, level: rf"(?=(?P<level_{level}>(?:{_PLAIN}|<{within}>)*))(?P=level_{level})",
    range(2),
    rf"(?:{_PLAIN})*",
)  # a lookahead tries no shorter one, as a possessive quantifier would not, which Python matches wrongly up to 3.11.4
_TEMPLATE = regex(
    rf"(?<![\w<])template *<{_PARAMETERS}> *|(?<!\S)(?!TEST)[A-Z][A-Z0-9_]{{2,}}\([^()]*\) (?=\w)"
)  # and a macro that is no definition, before a type or a name
_NUMBERS = regex(r"( L\d+-\d+)$")
_HEAD_WORD = regex(
    r"\s+(?:(?:template *<.*> *)?(?:\w+\s+)*?"
    r"(?:class|def|enum|fn|func?|fun|function|interface|namespace|struct|trait|type)\b"
    rf"|(?:{_TEST})[\"'`])"
)
LONG = 10
"""Lines of a definition that an outline numbers: a shorter one is named, or chosen with what is around it."""


class Definition(NamedTuple):
    """A definition, its first and last line from 1, and its line of the outline, "" where that leaves it out.

    The name of a method has that of its class in front: `Command.run`. An import has none.
    """

    text: str
    name: str
    first: int
    last: int


def outline(path: str, text: str, *, numbered: bool = False, names: Collection[str] | None = None) -> str:
    """Return a file's outline, "" for data, an unknown language or a file that cannot be parsed.

    With `numbered` a long definition is followed by its lines, as in `def f(x): L12-40`. With `names` it has what has
    one of these names, and what that is in.
    """
    entries = _entries(path, text)
    lines = [entry.text for entry in entries]
    if names is not None:
        kept = _kept(entries, names)
        lines = [line if number in kept else "" for number, line in enumerate(lines)]
    for number, end in enumerate(_ends(entries, text) if numbered else ()):
        first = entries[number].first
        lines[number] += f" L{first}-{end}" if lines[number] and end - first >= LONG - 1 else ""
    return "".join(f"{line}\n" for line in lines if line)


def _kept(entries: Sequence[Entry], names: Collection[str]) -> set[int]:
    """Return the numbers of the entries that have one of these names, and of those that they are in.

    A name that stands in several classes counts only in one that has one of the names, too: many have a `get`.
    """
    kept, owners, last = set[int](), list[int](), [_own_name(entry).rpartition(".")[2] for entry in entries]
    found, within = list[tuple[int, list[int]]](), defaultdict[str, set[str]](set)
    for number, entry in enumerate(entries):
        owners = [owner for owner in owners if entries[owner].depth < entry.depth] + [number]
        if not _IMPORT.match(entry.text) and last[number] in names:
            found.append((number, owners))
            within[last[number]].update(last[owner] for owner in owners[-2:-1])
    for number, chain in found:
        if len(within[last[number]]) < 2 or len(chain) == 1 or last[chain[-2]] in names:
            kept.update(chain)
    return kept


def _own_name(entry: Entry) -> str:
    return entry.name or (name_of(entry.node) if entry.node else "")


@functools.lru_cache(maxsize=4)
def read_definitions(path: str, text: str) -> Sequence[Definition]:
    """Return the imports and definitions of a file, [] where it has no outline."""
    found: list[Definition] = []
    owners: list[tuple[int, str]] = []
    entries = _entries(path, text)
    for entry, end in zip(entries, _ends(entries, text), strict=True):
        while owners and owners[-1][0] >= entry.depth:
            owners.pop()
        name = "" if _IMPORT.match(entry.text) else _own_name(entry)
        if name:
            owners.append((entry.depth, name))
            name = ".".join(owner for _, owner in owners)
        found.append(Definition(entry.text, name, entry.first, end))
    return found


def is_import(text: str) -> bool:
    """Tell whether a line of an outline is an import of the whole file."""
    return _IMPORT.match(text) is not None and text[:1].strip() != ""


def _ends(entries: Sequence[Entry], text: str) -> list[int]:
    """Return the last line of each entry: where the parser knows none, it ends before the next that is not within."""
    lines, ends = text.split("\n"), list[int]()
    later: list[tuple[int, int]] = []
    for entry in reversed(entries):
        while later and later[-1][0] > entry.depth:
            later.pop()
        end = entry.last or (later[-1][1] - 1 if later else len(lines))
        while not entry.last and end > entry.first and not lines[end - 1].strip():
            end -= 1
        later.append((entry.depth, entry.first))
        ends.append(max(end, entry.first))
    return ends[::-1]


@functools.lru_cache(maxsize=2)
def _entries(path: str, text: str) -> list[Entry]:
    if (found := headings(path, text)) is not None:
        return found
    suffix, text = code_of(path, text)
    if not suffix:
        return []
    try:
        if tree := read_tree(suffix, text):
            return _with_patterns(tree, suffix, text)
        if suffix in {"py", "pyi"}:
            import ast  # it takes 5 ms, and few commands outline a file

            with warnings.catch_warnings(action="ignore"):  # of the code, not of ours
                return list(_python_lines(ast.parse(text), 0))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return heads(suffix, text) or heads(ANY, text)


def _with_patterns(tree: Tree, suffix: str, text: str) -> list[Entry]:
    """Return the entries of a tree and those that only patterns find in what it leaves unread.

    The whole file counts as unread where the tree has errors, and the patterns' entries stand alone if they are most.
    """
    if not (tree.has_errors or tree.unread):
        return tree.entries
    parsed, plain = tree.entries, heads(suffix, text if tree.has_errors else _only(text, tree.unread))
    names = (entry.name or (name_of(entry.node) if entry.node and entry.text else "") for entry in parsed)
    named = {name.rpartition(".")[2] for name in names}
    at = {(entry.first, word) for entry in parsed for word in re.findall(r"\w+", entry.text)}
    expected = [entry for entry in plain if entry.name and not _is_local(entry.first, parsed)]
    last = [(entry, entry.name.rpartition(".")[2]) for entry in expected]
    missing = [entry for entry, name in last if name not in named and (entry.first, name) not in at]
    if tree.has_errors and 2 * len(missing) > len(expected):
        return plain
    added = list[Entry]()
    for entry in missing:
        depth = max((1 + owner.depth for owner in parsed if owner.first < entry.first <= owner.last), default=0)
        added.append(entry._replace(text="  " * depth + entry.text.lstrip(), depth=depth))
    return sorted([*parsed, *added], key=lambda entry: entry.first)


def _only(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """Return a text with the lines of some ranges alone, each in its place."""
    lines, kept = text.split("\n"), {number for first, last in ranges for number in range(first, last + 1)}
    return "\n".join(line if number in kept else "" for number, line in enumerate(lines, 1))


def _is_local(line: int, parsed: Iterable[Entry]) -> bool:
    """Tell whether a line is within a function that was parsed without an error."""
    return any(entry.first < line <= entry.last and entry.node and is_function(entry.node) for entry in parsed)


def brief(lines: str) -> str:
    """Return an outline with the names of definitions alone, without modifiers, and the modules of imports in Python
    and Rust.
    """
    short: list[str] = []
    for line in lines.splitlines():
        head, *numbers = _NUMBERS.split(line, maxsplit=1)
        head = _MODIFIERS.sub(r"\1", _TEMPLATE.sub("", _ANNOTATION.sub("", head)))
        text = _DETAIL.sub(lambda match: "".join(match.groups("")), head).rstrip()
        if text and text not in short[-1:]:
            short.append("".join([text, *numbers]))
    return "".join(f"{line}\n" for line in short)


def without_fields(lines: str) -> str:
    """Return an outline without what stands in a class and is no function and no class."""
    kept = (line for line in lines.splitlines() if not line[:1].isspace() or "(" in line or _HEAD_WORD.match(line))
    return "".join(f"{line}\n" for line in kept)


def tell_left_out(lines: str, kept: str) -> str:
    """Return the kept lines of an outline, and the number of those left out of each definition and of the file."""
    told, left_out, rest = list[str](), [[-1, 0]], kept.splitlines()[::-1]

    def close(depth: int) -> None:
        while left_out[-1][0] >= depth:
            indent, missing = left_out.pop()
            told.extend([f"{' ' * indent}  ... and {missing:,} more"] if missing else [])

    for line in lines.splitlines() if kept else ():
        close(depth := len(line) - len(line.lstrip()))
        if line == next(reversed(rest), None):
            told.append(rest.pop())
            left_out.append([depth, 0])
        else:
            left_out[-1][1] += 1
    close(0)
    return "".join(f"{line}\n" for line in told) + tell_rest(left_out[0][1])


def tell_rest(missing: int) -> str:
    return f"... and {count(missing, 'definition')} more\n" if missing else ""


def beside(lines: str, *, tests: bool) -> str:
    """Return an outline without imports, and without the tests of a test file."""
    out = _TEST_OR_IMPORT if tests else _IMPORT
    return "".join(f"{line}\n" for line in lines.splitlines() if not out.match(line))


def _python_lines(parent: "ast.AST", depth: int) -> Iterator[Entry]:
    import ast

    for node in ast.iter_child_nodes(parent):
        heads, before, name = getattr(node, "decorator_list", ()), "", ""
        decorators = "".join(f"@{ast.unparse(decorator)} " for decorator in heads)
        text = ""
        match node:
            case ast.Import() | ast.ImportFrom():
                text = ast.unparse(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                word, name = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def", node.name
                result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                before = decorators if len(decorators) <= LONGEST else ""
                text = f"{before}{word} {name}({ast.unparse(node.args)}){result}:"
            case ast.ClassDef():
                bases, name = ", ".join(map(ast.unparse, [*node.bases, *node.keywords])), node.name
                text = f"{decorators}class {name}{f'({bases})' if bases else ''}:"
            case ast.AnnAssign() | ast.Assign():
                name = ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
                is_made = MADE.match(ast.unparse(node).encode()) is not None
                is_shown = depth or is_made or isinstance(node, ast.AnnAssign) or not isinstance(parent, ast.Module)
                text = ast.unparse(node)[:LONGEST] if is_shown else ""
            case ast.If() if "__name__" in ast.unparse(node.test):
                continue
            case ast.If() | ast.Try() | ast.With() | ast.ExceptHandler():
                yield from _python_lines(node, depth)
                continue
            case _:
                continue
        first = min([node.lineno, *(decorator.lineno for decorator in heads)])
        yield Entry(text and "  " * depth + text, depth, first, node.end_lineno or first, name=name)
        if isinstance(node, ast.ClassDef):
            yield from _python_lines(node, depth + 1)
