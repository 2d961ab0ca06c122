"""Outlines: a source file's imports and the heads of its classes, functions and types, or a document's headings.

The extra `outline` brings tree-sitter and the grammars. Without it `ast` reads Python, and of other languages the lines
are taken that look like the head of a definition.
"""

import ast
import functools
import importlib
import re
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

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
    "assignment": r"assignment",
    "call": r"call|call_expression|command",
}  # regular expressions over the node types of the grammars, by the kind of node

_BODY = re.compile(r".*_body|block|field_declaration_list|interface_type")
_FUNCTION_VALUE = re.compile(r"(arrow_function|function_expression|generator_function)")
_TEST = re.compile(rb"(?:(describe|context|feature|suite)|scenario|test|it|specify|should)\b[.\w]*[ (]+([\"'`]).*?\2")
_LOAD = re.compile(rb"(require|require_relative|load|source|\.)[ (]+\S[^\n]*|attr_\w+ [^\n]*")
_COMMENT = re.compile(r"#|//|/\*|--")
_LONGEST_HEAD, _LONGEST = 2000, 200  # characters; longer decorators are left out

_DEFINITION = re.compile(
    r"^[ \t]*(?:(?:import|from|use|using|require|include|package|open|alias)\b[ (\"'<{].*"
    r"|(?:(?:abstract|async|const|data|default|export|final|inline|internal|local|open|override|partial|private"
    r"|protected|pub|public|pub\([^)]*\)|sealed|static|unsafe|virtual)[ \t]+)*"
    r"(?:class|def|defmodule|defp|enum|extension|fn|fun|func|function|impl|interface|message|module|namespace|object"
    r"|proc|protocol|record|rpc|service|struct|sub|trait|type|typedef|union)\b[ \t]+[\w(*<].*)$",
    re.MULTILINE,
)
_MARKDOWN = re.compile(r"^(?:(?P<fence>```|~~~)(?s:.*?)^(?P=fence)|(#{1,6}[ \t].*))", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\S.{2,})\n(?:={3,}|-{3,}|~{3,}|\^{3,})[ \t]*$", re.MULTILINE)
_IMPORT = re.compile(r"\s*(?:from|import|package|(?:pub )?use|using|#include)\b")
_TEST_OR_IMPORT = re.compile(
    rf"{_IMPORT.pattern}|\s*(?:@.* )?(?:async )?(?:class|def|fn|func?|function)\s+(?:[Tt]est|Benchmark|Example|Fuzz)"
    r"|\s*(?:context|describe|feature|it|scenario|should|specify|suite|test)\b[.\w]*[ (]"
)
_ANNOTATION = re.compile(r"(?<!\S)@[\w.]+(?:\((?:[^()]|\([^()]*\))*\))?\s+")
_DETAIL = re.compile(
    r"^(\s*from (?:\.+ import .*|\S+)).*|^(\s*(?:pub )?use [\w:]+(?=::\{)).*"
    r"|^(\s*(?:(?:import|use|using|require\w*|package|#)\b|\w+[.\w]*[ (]+[\"'`]).*)"
    r"|(?<=\w)(?<!\bpub)(?:<[^()]*>)?\(.*|(?<!\s)\s*(?:(?<!:):(?!:)|=|->).*"
)  # the text after a definition's name
_LONGEST_LINE = 10_000  # characters: a grammar can take gigabytes for a longer one
_PIECE, _PARSING_TIME = 65_536, 0.5  # bytes, seconds


def outline(path: str, text: str) -> str:
    """Return a file's outline, "" for data, an unknown language or a file that cannot be parsed."""
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    language = _LANGUAGE_OF.get(suffix, "")
    try:
        if suffix in {"md", "markdown"}:
            lines = [match[2] for match in _MARKDOWN.finditer(text) if match[2]]
        elif suffix == "rst":
            lines = _UNDERLINED.findall(text)
        elif language and max(map(len, text.split("\n"))) <= _LONGEST_LINE and (parser := _parser(language)):
            source = text.encode()
            root = _parsed(parser, source)
            lines = [line for node in root.named_children for line in _lines(source, node, node.start_byte, 0)]
        elif language == "python":
            with warnings.catch_warnings(action="ignore"):  # of the code, not of ours
                lines = list(_python_lines(ast.parse(text), 0))
        elif language or _OTHER_CODE.fullmatch(suffix):
            lines = [match[0].rstrip(" \t\r{")[:_LONGEST] for match in _DEFINITION.finditer(text)]
        else:
            lines = []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    return "".join(f"{line}\n" for line in lines)


def brief(lines: str) -> str:
    """Return an outline with only the names of definitions, and only the modules of imports in Python and Rust."""
    short: list[str] = []
    for line in lines.splitlines():
        text = _DETAIL.sub(lambda match: "".join(match.groups("")), _ANNOTATION.sub("", line)).rstrip()
        if text and text not in short[-1:]:
            short.append(text)
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


def _lines(source: bytes, node: "Node", start: int, depth: int) -> Iterator[str]:
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
            yield head
            for child in body.named_children if body and kind == "nest" and not head.endswith("mod tests") else ():
                yield from _lines(source, child, child.start_byte, depth + 1)
        case "variable":
            yield from _variable(source, node, start, depth)
        case "call":
            yield from _call(source, node, depth)
        case "prototype" | "assignment" if not _has_signature(node, in_class=depth > 0):
            pass
        case str(shown) if shown:
            yield _shown(source[start : node.end_byte], depth, _LONGEST)
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


def _variable(source: bytes, node: "Node", start: int, depth: int) -> Iterator[str]:
    """Yield a variable or property that holds a function or module, or a field of a class."""
    value: Node | None = node
    while value is not None and _kind(value.type) == "variable":
        value = value.child_by_field_name("value") or value.child_by_field_name("right")
    if value is not None and _FUNCTION_VALUE.match(value.type):
        yield _shown(source[start : _end_of_head(node, _body(value))], depth, _LONGEST_HEAD)
    elif node.type.endswith("definition") or (
        value is not None and source[value.start_byte : value.end_byte].startswith(b"require(")
    ):
        yield _shown(source[start : node.end_byte], depth, _LONGEST)


def _call(source: bytes, node: "Node", depth: int) -> Iterator[str]:
    """Yield a call that names a test, with its content, or that loads another file."""
    if match := _TEST.match(source, node.start_byte, node.end_byte):
        yield _shown(match[0] + (b")" if b"(" in match[0] else b""), depth, _LONGEST)
        within = node.child_by_field_name("block") or node.child_by_field_name("arguments")
        last = within.named_children[-1] if match[1] and within and within.named_children else None
        for child in (_body(last) or last).named_children if last else ():
            yield from _lines(source, child, child.start_byte, depth + 1)
    elif match := _LOAD.match(source, node.start_byte, node.end_byte):
        yield _shown(match[0], depth, _LONGEST)


def _shown(piece: bytes, depth: int, longest: int) -> str:
    """Return source text on one line, but with its line ends if a comment in it would swallow the rest."""
    text = piece.decode("utf-8", "replace").rstrip("; \n")
    for sign in ("=>", "=", "{"):
        text = text.removesuffix(sign).rstrip()
    if not _COMMENT.search(text):
        text = " ".join(text.split())
    return "  " * depth + (text if len(text) <= longest else f"{text[:longest]} ...")


def _python_lines(parent: ast.AST, depth: int) -> Iterator[str]:
    for node in ast.iter_child_nodes(parent):
        decorators = "".join(f"@{ast.unparse(decorator)} " for decorator in getattr(node, "decorator_list", ()))
        match node:
            case ast.Import() | ast.ImportFrom():
                yield "  " * depth + ast.unparse(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
                result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
                heads = decorators if len(decorators) <= _LONGEST else ""
                yield f"{'  ' * depth}{heads}{word} {node.name}({ast.unparse(node.args)}){result}:"
            case ast.ClassDef():
                bases = ", ".join(map(ast.unparse, [*node.bases, *node.keywords]))
                yield f"{'  ' * depth}{decorators}class {node.name}{f'({bases})' if bases else ''}:"
                yield from _python_lines(node, depth + 1)
            case ast.AnnAssign() | ast.Assign() if depth or isinstance(node, ast.AnnAssign):
                yield "  " * depth + ast.unparse(node)[:_LONGEST]
            case ast.If() | ast.Try():
                yield from _python_lines(node, depth)
            case _:
                pass
