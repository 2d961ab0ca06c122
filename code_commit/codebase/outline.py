"""Outlines: a source file's imports and the heads of its classes, functions and types, or a document's headings; and
where in the file these definitions stand.

The extra `outline` brings tree-sitter and the grammars. Without it `ast` reads Python, and of other languages the lines
are taken that look like the head of a definition.
"""

import functools
import importlib
import re
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ast

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
_OTHER_CODE = re.compile(r"cljs?|dart|elm|erl|exs?|fsi?|groovy|hs|jl|lua|mli?|mm?|nim|p[lm]|proto|r|vb|zig")
_GRAMMARS = {"tsx": ("typescript", "language_tsx"), "typescript": ("typescript", "language_typescript")}
_GRAMMARS["php"] = ("php", "language_php")

_KINDS = {
    "import": r"(import|future_import|package_(clause|decl|head)|preproc_include|use_decl|using_d|namespace_use"
    r"|extern_crate).*",
    "wrapper": r"export_statement|ambient_declaration|decorated_definition|template_declaration|lexical_declaration"
    r"|variable_declaration|expression_statement|type_declaration",
    "group": r"preproc_(if|el).*|linkage_specification|declaration_list|enum_body_declarations"
    r"|if_statement|try_statement|block|ERROR",
    "whole": r"alias_declaration|type_(alias.*|definition|item)|typealias_declaration|associated_type"
    r"|type_elem|(const|event|event_field|field|property)_declaration|const_item|enumerator|(property|index)_signature"
    r"|property_identifier|enum_(assignment|constant|entry|variant|case.*|member_declaration)|(val|var)_(definition|declaration)",
    "nest": r"(abstract_class|annotation_type|class|enum|extension|(file_scoped_)?namespace|foreign_mod|given|impl"
    r"|interface|mod|object|protocol|record|struct|trait|type|union)_(declaration|definition|item|spec|specifier)"
    r"|class|module|internal_module|singleton_class|companion_object",
    "head": r".*(constructor|destructor|function|macro|method|operator|delegate|indexer|init|subscript)[a-z_]*"
    r"_(declaration|definition|def|elem|item|signature)|(function|method)_signature|method|singleton_method|secondary_constructor",
    "variable": r"variable_declarator|assignment_expression|(public_)?field_definition",
    "prototype": r"declaration",
    "assignment": r"assignment|preproc_def",
    "call": r"call|call_expression|command",
}  # regular expressions over the node types of the grammars, by the kind of node

_BODY = re.compile(r".*_body|block|field_declaration_list|interface_type")
_FUNCTION_VALUE = re.compile(r"(arrow_function|function_expression|generator_function)")
_TEST = re.compile(rb"(?:(describe|context|feature|suite)|scenario|test|it|specify|should)\b[.\w]*[ (]+([\"'`])(.*?)\2")
_LOAD = re.compile(rb"(require|require_relative|load|source|\.)[ (]+\S[^\n]*|attr_\w+ [^\n]*")
_COMMENT = re.compile(r"(?<=\S)[ \t]+(?:#(?!\[)|//).*|(?<=\n)[ \t]*(?:#(?!\[)|//).*")  # to the end of a line
_NAME_FIELDS = ("name", "declarator", "left", "type")
_NAMES = re.compile("identifier|_name|_element")
_IMPLEMENTED = re.compile(r"impl_item|generic_type")  # of Rust: the block has the name of its type
_NOT_OF_NAME = re.compile(r"<[^<>]*>|\(.*", re.DOTALL)
_LONGEST_HEAD, _LONGEST = 2000, 200  # characters; longer decorators are left out

_DEFINITION = re.compile(
    r"^[ \t]*(?:(?:import|from|use|using|require|include|package|open|alias)\b[ (\"'<{].*"
    r"|(?:(?:abstract|async|const|data|default|export|final|inline|internal|local|open|override|partial|private"
    r"|protected|pub|public|pub\([^)]*\)|sealed|static|unsafe|virtual)[ \t]+)*"
    r"(?:class|def|defmodule|defp|enum|extension|fn|fun|func|function|impl|interface|message|module|namespace|object"
    r"|proc|protocol|record|rpc|service|struct|sub|trait|type|typedef|union)\b[ \t]+"
    r"(?=[\w(*<])(?:\([^)\n]*\)[ \t]*)?([\w.:]*).*)$",
    re.MULTILINE,
)
_MARKDOWN = re.compile(r"^(?:(?P<fence>```|~~~)(?s:.*?)^(?P=fence)|(#{1,6}[ \t].*))", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\S.{2,})\n(={3,}|-{3,}|~{3,}|\^{3,})[ \t]*$", re.MULTILINE)
_IMPORT = re.compile(r"\s*(?:(?:from|import|package|(?:pub )?use|using|#include)\b|(?:const|let|var)\s.*\brequire\()")
_TEST_OR_IMPORT = re.compile(
    rf"{_IMPORT.pattern}|\s*(?:@.* )?(?:async )?(?:class|def|fn|func?|function)\s+(?:[Tt]est|Benchmark|Example|Fuzz)"
    r"|\s*(?:context|describe|feature|it|scenario|should|specify|suite|test)\b[.\w]*[ (]"
)
_ANNOTATION = re.compile(r"(?<!\S)@[\w.]+(?:\((?:[^()]|\([^()]*\))*\))?(?:\s+|$)")
_DETAIL = re.compile(
    r"^(\s*from (?:\.+ import .*|\S+)).*|^(\s*(?:pub )?use [\w:]+(?=::\{)).*"
    r"|^(\s*(?:(?:import|use|using|require\w*|package|#)\b|\w+[.\w]*[ (]+[\"'`]).*)"
    r"|(?<=\w)(?<!\bpub)(?:<[^()]*>)?\(.*|(?<!\s)\s*(?:(?<!:):(?!:)|=|->).*"
)  # the text after a definition's name
_NUMBERS = re.compile(r"( L\d+-\d+)$")
_LONGEST_LINE = 10_000  # characters: a grammar can take gigabytes for a longer one
_PIECE, _PARSING_TIME = 65_536, 0.5  # bytes, seconds
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


class _Entry(NamedTuple):
    """A definition as its parser gives it: `last` is 0 where that does not know its end."""

    text: str
    depth: int
    first: int
    last: int = 0
    node: "Node | None" = None
    name: str = ""


def outline(path: str, text: str, *, numbered: bool = False) -> str:
    """Return a file's outline, "" for data, an unknown language or a file that cannot be parsed.

    With `numbered` a long definition is followed by its lines, as in `def f(x): L12-40`.
    """
    entries = _entries(path, text)
    lines = [entry.text for entry in entries]
    for number, end in enumerate(_ends(entries, text) if numbered else ()):
        first = entries[number].first
        lines[number] += f" L{first}-{end}" if lines[number] and end - first >= LONG - 1 else ""
    return "".join(f"{line}\n" for line in lines if line)


@functools.lru_cache(maxsize=4)
def read_definitions(path: str, text: str) -> Sequence[Definition]:
    """Return the imports and definitions of a file, [] where it has no outline."""
    found: list[Definition] = []
    owners: list[tuple[int, str]] = []
    entries = _entries(path, text)
    for entry, end in zip(entries, _ends(entries, text), strict=True):
        while owners and owners[-1][0] >= entry.depth:
            owners.pop()
        name = "" if _IMPORT.match(entry.text) else entry.name or (_name_of(entry.node) if entry.node else "")
        if name:
            owners.append((entry.depth, name))
            name = ".".join(owner for _, owner in owners)
        found.append(Definition(entry.text, name, entry.first, end))
    return found


def is_import(text: str) -> bool:
    """Tell whether a line of an outline is an import of the whole file."""
    return _IMPORT.match(text) is not None and text[:1].strip() != ""


def _ends(entries: Sequence[_Entry], text: str) -> list[int]:
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


def _name_of(node: "Node") -> str:
    """Return the name that a declaration gives, "" where it has none; a method of Go has that of its receiver."""
    fields = () if "qualified" in node.type else _NAME_FIELDS[: None if _IMPLEMENTED.match(node.type) else -1]
    inner = next((child for field in fields if (child := node.child_by_field_name(field))), None)
    if inner is None and _kind(node.type):
        inner = next((child for child in node.named_children if _NAMES.search(child.type)), None)
    receiver = re.search(rb"(\w+)[^\w]*$", node.text or b"") if node.type == "parameter_list" else None
    if inner is not None:
        owner = node.child_by_field_name("receiver")
        return f"{_name_of(owner)}.{_name_of(inner)}" if owner is not None else _name_of(inner)
    text = receiver[1] if receiver else node.text or b""
    name = _NOT_OF_NAME.sub("", text[:_LONGEST].decode("utf-8", "replace")).strip("\"'`~*& ")
    return "" if node.named_child_count and _kind(node.type) else re.sub(r"::|->|#", ".", name)


def _entries(path: str, text: str) -> list[_Entry]:
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    language = _LANGUAGE_OF.get(suffix, "")
    try:
        if suffix in {"md", "markdown"}:
            return list(_of_text(text, (match for match in _MARKDOWN.finditer(text) if match[2])))
        if suffix == "rst":
            return list(_of_text(text, _UNDERLINED.finditer(text)))
        if language and max(map(len, text.split("\n"))) <= _LONGEST_LINE and (parser := _parser(language)):
            source = text.encode()
            root = _parsed(parser, source)
            return [entry for node in root.named_children for entry in _lines(source, node, node.start_byte, 0)]
        if language == "python":
            import ast  # it takes 5 ms, and few commands outline a file

            with warnings.catch_warnings(action="ignore"):  # of the code, not of ours
                return list(_python_lines(ast.parse(text), 0))
        if language or _OTHER_CODE.fullmatch(suffix):
            return list(_of_text(text, _DEFINITION.finditer(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return []


def _of_text(text: str, matches: Iterable[re.Match[str]]) -> Iterator[_Entry]:
    """Yield what patterns find: headings, and lines that look like the head of a definition."""
    line, counted, ranks = 1, 0, list[str]()
    for match in matches:
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        if match.re is _MARKDOWN:
            yield _Entry(match[2], len(match[2]) - len(match[2].lstrip("#")), line, name=match[2].strip("# \t\r"))
        elif match.re is _UNDERLINED:
            ranks += [sign for sign in match[2][:1] if sign not in ranks]
            yield _Entry(match[1], ranks.index(match[2][:1]), line, name=match[1].strip())
        else:
            head = match[0].rstrip(" \t\r{")[:_LONGEST]
            yield _Entry(head, len(head) - len(head.lstrip()), line, name=(match[1] or "").replace("::", "."))


def brief(lines: str) -> str:
    """Return an outline with only the names of definitions, and only the modules of imports in Python and Rust."""
    short: list[str] = []
    for line in lines.splitlines():
        head, *numbers = _NUMBERS.split(line, maxsplit=1)
        text = _DETAIL.sub(lambda match: "".join(match.groups("")), _ANNOTATION.sub("", head)).rstrip()
        if text and text not in short[-1:]:
            short.append("".join([text, *numbers]))
    return "".join(f"{line}\n" for line in short)


def beside(lines: str, *, tests: bool) -> str:
    """Return an outline without imports, and without the tests of a test file."""
    out = _TEST_OR_IMPORT if tests else _IMPORT
    return "".join(f"{line}\n" for line in lines.splitlines() if not out.match(line))


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


def _parsed(parser: "Parser", source: bytes) -> "Node":
    """Return the root of the syntax tree. Raises ValueError where it takes too long: some sources take minutes."""
    end = time.thread_time() + _PARSING_TIME
    parser.reset()  # of a source before that took too long
    tree = parser.parse(lambda at, _: source[at : at + _PIECE], progress_callback=lambda *_: time.thread_time() > end)
    return tree.root_node


@functools.cache
def _kind(node_type: str) -> str:
    return next((kind for kind, pattern in _KINDS.items() if re.fullmatch(pattern, node_type)), "")


def _entry(source: bytes, node: "Node", start: int, depth: int, text: str) -> _Entry:
    (row, _), (last, column) = node.start_point, node.end_point
    first = row + 1 - source.count(b"\n", start, node.start_byte)
    return _Entry(text, depth, first, max(first, last + (column > 0)), node)


def _lines(source: bytes, node: "Node", start: int, depth: int) -> Iterator[_Entry]:
    """Yield the outline of a declaration, indented; its text begins at `start`, with its decorators or its `export`."""
    kind, body = _kind(node.type), _body(node)
    match kind:
        case "wrapper" | "group":
            is_one = kind == "wrapper" and (node.type != "type_declaration" or node.named_child_count == 1)
            for child in node.named_children:
                has_short_start = is_one and child.start_byte - start <= _LONGEST
                yield from _lines(source, child, start if has_short_start else child.start_byte, depth)
        case "nest" | "head":
            head = _shown(source[start : _end_of_head(node, body)], depth, _LONGEST_HEAD)
            yield _entry(source, node, start, depth, head)
            for child in body.named_children if body and kind == "nest" and not head.endswith("mod tests") else ():
                yield from _lines(source, child, child.start_byte, depth + 1)
        case "variable":
            yield from _variable(source, node, start, depth)
        case "call":
            yield from _call(source, node, depth)
        case "prototype" | "assignment" if not _has_signature(node, in_class=depth > 0):
            yield _entry(source, node, start, depth, "")
        case str(shown) if shown:
            yield _entry(source, node, start, depth, _shown(source[start : node.end_byte], depth, _LONGEST))
        case _:
            pass


def _has_signature(node: "Node", *, in_class: bool) -> bool:
    """Tell a prototype from a C variable, and a field or typed constant from an untyped one."""
    if node.type == "assignment":
        return in_class or node.child_by_field_name("type") is not None
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator is not None


def _body(node: "Node") -> "Node | None":
    """Return the node that ends the head of a declaration: its field `body`, or its last child."""
    body = node.child_by_field_name("body")
    if body is None and (children := node.named_children):
        last = children[-1]
        return last if _BODY.fullmatch(last.type) else _body(last) if last.type == "struct_type" else None
    return body


def _end_of_head(node: "Node", body: "Node | None") -> int:
    if body is None:
        return node.end_byte
    if body.type == "interface_type":  # Go's, which begins with the word itself
        return body.start_byte + len("interface")
    before = body.prev_sibling
    while before is not None and "comment" in before.type:
        before = before.prev_sibling
    return before.end_byte if before is not None else body.start_byte


def _variable(source: bytes, node: "Node", start: int, depth: int) -> Iterator[_Entry]:
    """Yield a variable or property; with its text if it holds a function or module, or is a field of a class."""
    text = ""
    value: Node | None = node
    while value is not None and _kind(value.type) == "variable":
        value = value.child_by_field_name("value") or value.child_by_field_name("right")
    if value is not None and _FUNCTION_VALUE.match(value.type):
        text = _shown(source[start : _end_of_head(node, _body(value))], depth, _LONGEST_HEAD)
    elif node.type.endswith("definition") or (
        value is not None and source[value.start_byte : value.end_byte].startswith(b"require(")
    ):
        text = _shown(source[start : node.end_byte], depth, _LONGEST)
    yield _entry(source, node, start, depth, text)


def _call(source: bytes, node: "Node", depth: int) -> Iterator[_Entry]:
    """Yield a call that names a test, with its content, or that loads another file."""
    if match := _TEST.match(source, node.start_byte, node.end_byte):
        head = _shown(match[0] + (b")" if b"(" in match[0] else b""), depth, _LONGEST)
        yield _entry(source, node, node.start_byte, depth, head)._replace(name=match[3].decode("utf-8", "replace"))
        within = node.child_by_field_name("block") or node.child_by_field_name("arguments")
        last = within.named_children[-1] if match[1] and within and within.named_children else None
        for child in (_body(last) or last).named_children if last else ():
            yield from _lines(source, child, child.start_byte, depth + 1)
    elif match := _LOAD.match(source, node.start_byte, node.end_byte):
        yield _entry(source, node, node.start_byte, depth, _shown(match[0], depth, _LONGEST))


def _shown(piece: bytes, depth: int, longest: int) -> str:
    """Return source text on one line, without the comments of lines."""
    text = piece.decode("utf-8", "replace").rstrip("; \n")
    for sign in ("=>", "=", "{"):
        text = text.removesuffix(sign).rstrip()
    if "\n" in text:
        text = _COMMENT.sub("", text)
    text = " ".join(text.split())
    return "  " * depth + (text if len(text) <= longest else f"{text[:longest]} ...")


def _python_lines(parent: "ast.AST", depth: int) -> Iterator[_Entry]:
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
                before = decorators if len(decorators) <= _LONGEST else ""
                text = f"{before}{word} {name}({ast.unparse(node.args)}){result}:"
            case ast.ClassDef():
                bases, name = ", ".join(map(ast.unparse, [*node.bases, *node.keywords])), node.name
                text = f"{decorators}class {name}{f'({bases})' if bases else ''}:"
            case ast.AnnAssign() | ast.Assign():
                name = ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
                text = ast.unparse(node)[:_LONGEST] if depth or isinstance(node, ast.AnnAssign) else ""
            case ast.If() | ast.Try():
                yield from _python_lines(node, depth)
                continue
            case _:
                continue
        first = min([node.lineno, *(decorator.lineno for decorator in heads)])
        yield _Entry(text and "  " * depth + text, depth, first, node.end_lineno or first, name=name)
        if isinstance(node, ast.ClassDef):
            yield from _python_lines(node, depth + 1)
