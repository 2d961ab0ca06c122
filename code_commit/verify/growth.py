"""Whether a test file only grew: what it had is there and means what it meant, beside new names alone.

Python is read as a syntax tree. In other languages all lines must stay in their order, but imports and the brackets at
the end. Between them come whole tests and functions alone, and nothing that comes may reach back: by a name that is
used already, or by a statement that runs on loading.
"""

import ast
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

_LARGEST = 300_000
"""Bytes: a syntax tree takes a hundred times as many as its text, and seconds for a million."""

_LANGUAGE = re.compile(
    r".*\.(?:bats|cc?|cljc?|cpp|cr|cs|cxx|dart|erl|exs?|fs|go|groovy|h|hpp|hs|java|jl|[cm]?[jt]sx?|kts?|lua|mm?|nim|php"
    r"|pl|py|rb|robot|rs|scala|sh|sol|swift|t|vb|vue|zig)",
    re.IGNORECASE,
)
"""What else stands in a folder of tests is data: more of it is another expectation."""


def only_adds(path: str, old: bytes, new: bytes) -> bool:
    """Tell whether the new content of a test file does all that the old one did, and adds to it alone."""
    if max(len(old), len(new)) > _LARGEST or not _LANGUAGE.fullmatch(path):
        return False
    had, has = (content.decode("utf-8", "replace").replace("\r\n", "\n") for content in (old, new))
    if not path.endswith(".py"):
        return _text_grows(had, has)
    try:
        with warnings.catch_warnings(action="ignore"):  # of the code, not of ours
            return _module_grows(had, has)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


# Python

_SPECIAL = re.compile(r"__|collect_ignore|load_tests|pytest|(?i:set_?up|tear_?down)|run\Z")
"""What begins a name by which a test runner finds what concerns more than one test."""


class _Statement(NamedTuple):
    """A statement, its lines but blank ones, and of a definition those before its body, and the body."""

    node: ast.stmt
    text: str
    head: str = ""
    body: "Sequence[_Statement]" = ()


def _statements(nodes: Iterable[ast.stmt], rows: Sequence[str]) -> Iterator[_Statement]:
    for node in nodes:
        start, text = _first_row(node), _joined(rows[_first_row(node) : node.end_lineno])
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield _Statement(node, text)
            continue
        first = node.body[0]
        is_one_line = rows[_first_row(first)][: first.col_offset].strip() != ""
        body = [] if is_one_line else list(_statements(node.body, rows))
        yield _Statement(node, text, _joined(rows[start : _first_row(first)]), body)


def _first_row(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1


def _joined(rows: Iterable[str]) -> str:
    return "\n".join(row.rstrip() for row in rows if row.strip())


def _module_grows(had: str, has: str) -> bool:
    old, new = ast.parse(had), ast.parse(has)
    before, after = (set(_imports(tree.body)) for tree in (old, new))
    names = {"*", *_names(old), *_defined(old.body), *(name for *_, name in before)}
    if not before <= after or any(name in names for *_, name in after - before):
        return False
    was, now = (
        [statement for statement in _statements(tree.body, text.split("\n")) if not _is_import(statement.node)]
        for tree, text in ((old, had), (new, has))
    )
    attributes = {node.attr for node in ast.walk(old) if isinstance(node, ast.Attribute)}
    return _grows(was, now, [names], attributes)


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _imports(body: Iterable[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Yield what each import takes, and the name that it gives to it."""
    for node in body:
        if isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            yield from ((f"{source} {alias.name}", alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, alias.asname or alias.name.partition(".")[0]) for alias in node.names)


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module uses: of variables, of fixtures as arguments, in strings."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(name) | ast.arg(name) | ast.Constant(str(name)):
                yield name
            case _:
                pass


def _defined(body: Iterable[ast.stmt]) -> Iterator[str]:
    return (node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef))


def _grows(
    old: Sequence[_Statement], new: Sequence[_Statement], taken: Sequence[Collection[str]], attributes: set[str]
) -> bool:
    """Tell whether the new statements are the old ones in their order, and others that only add names to these."""
    kept = 0
    for statement in new:
        if kept < len(old) and _is_kept(old[kept], statement, attributes):
            kept += 1
        elif not _adds_name(statement, taken):
            return False
    return kept == len(old)


def _is_kept(old: _Statement, new: _Statement, attributes: set[str]) -> bool:
    """Tell whether it is the same statement; a class may have new names in it, a test new statements at its end."""
    if old.text == new.text:
        return True
    if old.head != new.head or not old.body:
        return False
    if isinstance(old.node, ast.ClassDef):
        return _grows(old.body, new.body, [attributes, set(_defined(old.node.body))], attributes)
    begins = [statement.text for statement in new.body[: len(old.body)]] == [statement.text for statement in old.body]
    added = [node for statement in new.body[len(old.body) :] for node in ast.walk(statement.node)]
    is_test = isinstance(old.node, ast.FunctionDef | ast.AsyncFunctionDef) and old.node.name.startswith("test")
    return is_test and begins and not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in added)


def _adds_name(statement: _Statement, taken: Sequence[Collection[str]]) -> bool:
    match statement.node:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name) if "autouse" not in statement.head:
            names = [name]
        case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), value=value):
            names = [name]
            if value and any(isinstance(node, ast.Call) for node in ast.walk(value)):
                return False
        case ast.Expr(ast.Constant()) | ast.Pass():
            names = []
        case _:
            return False
    return not any(_SPECIAL.match(name) or any(name in others for others in taken) for name in names)


# Other languages

_IMPORT = re.compile(r"\s*(?:(?:import|from|use|using)\s+[\w{*\"'\\:@]|#include\b)|\t(?:\w+ )?\"[\w./-]+\"$")
_CLOSING = re.compile(r"\s*(?:[)}\];]+|end)")
_WORD = re.compile(r"[\w$]+")
_QUOTED = re.compile(r"([\"']).*?\1")
_IMPORTED = re.compile(r"(?<![\w$])(?:[\w$]+|\*(?! as\b))(?![\w$]|\s*(?:\.|::|[\\/]))")
_WORDS_OF_IMPORTS = frozenset({"import", "from", "use", "using", "static", "type", "as", "self", "super", "crate"})

_DEFINED = re.compile(
    r"\s*(?:[a-z]+ )*(?:(?:class|def|fn|func|function\*?|fun|module|sub) (?:self\.|\([^)]*\) )?|let!?\(:)([\w$]+)"
    r"|(?:[a-z]+ )*(?:const|let|val|var) ([\w$]+)|([\w$]+)\s*[-+*/|&?:]*=(?![=>~])"
)
"""The name that a line gives: to a function or class anywhere, to a variable in the first column."""

_REACHING = re.compile(
    r"\.only\b|\b(?:fit|fdescribe|fcontext|focus)\b|\b(?:jest|vi|vitest)\.(?:do|un)?[mM]ock\b|\.prototype\b|\brescue\b"
    r"|@(?:Before|After|Rule|Class)|\b(?:before|after)(?:_?(?i:each|all))?(?: do\b|\(|\s*\{)"
    r"|\b(?:setUp|tearDown)\b|(?i:\[(?:one_?time)?(?:set_?up|tear_?down))|\bdef (?:setup|teardown)\b"
    r"|\b(?:setup|teardown)(?: do\b|\((?:function|\(|async))|\bfunc (?:TestMain|init)\(|#\s*(?:define|undef|include \")"
    r"|\b(?:process|os|System)\.[eE]xit\b|\bglobalThis\b"
)
"""What concerns other tests of the file."""

_TEST = (
    r"(?:\w+\.)*(?:describe|context|suite|it|(?:\w+_)?(?:def)?test(?:_\w+)?|\w*test!|specify|scenario|feature)(?!\w)"
)
_RUN_ON_LOADING = re.compile(rf"(?!{_TEST})[a-z$][\w$.]*\s*\(|[\w$]+[.\[][^=(]*=(?![=>~])")
"""A call, or an assignment to a part of something, in the first column."""

_BEGINNING = re.compile(
    rf"\s*(?:{_TEST}|[A-Z_]*TEST\w*\(|(?:[a-z]+ )*(?:class|def|fn|func|function|fun|mod|module|sub)\b"
    r"|(?:public|private|protected|static|void|async) )"
)
_ENDING = re.compile(r"\s*(?:[)}\]](?!.*(?:[({\[]|=>)$)|end\b)")
_MARK = re.compile(r"\s*(?://|/?\*|#\[|@)")
"""A comment, or what is said of the next definition."""


def _text_grows(old: str, new: str) -> bool:
    (had, had_imports), (has, has_imports) = _lines_and_imports(old), _lines_and_imports(new)
    while had and _CLOSING.fullmatch(had[-1]):
        had.pop()
    added = _added(had, has)
    if added is None or not had_imports <= has_imports or not all(map(_is_whole, added[:-1])):
        return False
    words = {word for line in had for word in _WORD.findall(line)}
    imports = has_imports - had_imports
    imported = {word for line in imports for word in _IMPORTED.findall(_QUOTED.sub("", line))} - _WORDS_OF_IMPORTS
    if imported & {*words, "*"}:
        return False
    return not any(_reaches_back(line, words) for lines in (imports, *added) for line in "\n".join(lines).split("\n"))


def _added(had: Sequence[str], has: Iterable[str]) -> list[list[str]] | None:
    """Return the lines that came before each line that was there, and at last those behind; None if one is gone."""
    added: list[list[str]] = [[]]
    for line in has:
        if len(added) <= len(had) and line == had[len(added) - 1]:
            added.append([])
        else:
            added[-1].append(line)
    return added if len(added) > len(had) else None


def _is_whole(lines: Iterable[str]) -> bool:
    """Tell whether the lines are tests and functions, each from its beginning to its end, by their indentation."""
    opened: int | None = None
    for line in lines:
        indentation = len(line) - len(line.lstrip())
        if opened is None:
            if not _BEGINNING.match(line.rpartition("\n")[2]):
                return False
            opened = indentation
        elif indentation <= opened:
            if indentation < opened or line[indentation] not in "(){}[]e":
                return False
            opened = None if _ENDING.match(line) else opened
    return opened is None


def _lines_and_imports(text: str) -> tuple[list[str], set[str]]:
    """Return the lines of code, each with the comments and attributes above it, and those of imports."""
    lines, above, imports = [], [], set()
    for line in (line.rstrip() for line in text.split("\n") if line.strip()):
        if _IMPORT.match(line):
            imports.add(line)
            continue
        above.append(line)
        if not _MARK.match(line):
            lines.append("\n".join(above))
            above = []
    return [*lines, *above], imports


def _reaches_back(line: str, words: set[str]) -> bool:
    defined = _DEFINED.match(line)
    if defined and words.intersection(filter(None, defined.groups())):
        return True
    return _REACHING.search(line) is not None or _RUN_ON_LOADING.match(line) is not None
