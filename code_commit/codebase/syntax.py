"""Syntax trees: the imports of a file and the heads of its classes, functions and types."""

import functools
import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from code_commit.codebase.grammars import parse
from code_commit.codebase.macros import defined_by_macro, without_body
from code_commit.codebase.patterns import LONGEST, Entry
from code_commit.regex import regex

if TYPE_CHECKING:
    from tree_sitter import Node

_KINDS = {
    "import": r"(import|future_import|package_(clause|decl|head)|preproc_include|use_decl|using_d|namespace_use"
    r"|extern_crate).*",
    "wrapper": r"export_statement|ambient_declaration|decorated_definition|template_declaration|lexical_declaration"
    r"|variable_declaration|expression_statement|type_declaration",
    "group": r"preproc_(if|el).*|linkage_specification|declaration_list|enum_body_declarations"
    r"|(if|try|with)_statement|(elif|else|else_if|except|finally)_clause|(statement_)?block|compound_statement|object|ERROR"
    r"|(parenthesized|unary)_expression"
    r"|if|unless|then|else|elsif|begin|rescue",
    "whole": r"(alias|annotation_type_element|associatedtype|protocol_property)_declaration|concept_definition"
    r"|type_(alias.*|definition|item)"
    r"|typealias_declaration|associated_type|type_elem|(const|constant|event|event_field|field|property)_declaration|(const|static)_item|enumerator|(property|index)_signature"
    r"|property_identifier|enum_(assignment|constant|entry|variant|case.*|member_declaration)|(val|var)_(definition|declaration)",
    "nest": r"(abstract_class|annotation_type|class|enum|extension|(file_scoped_)?namespace|foreign_mod|given|impl"
    r"|interface|mod|module|object|protocol|record|struct|trait|type|union)_(declaration|definition|item|spec|specifier)"
    r"|class|module|internal_module|package_object|singleton_class|companion_object",
    "head": r".*(constructor|destructor|function|macro|method|operator|delegate|indexer|init|subscript)[a-z_]*"
    r"_(declaration|definition|def|elem|item|signature)|(function|method)_signature|method|singleton_method|secondary_constructor",
    "variable": r"variable_declarator|assignment_expression|(public_)?field_definition|pair",
    "prototype": r"declaration",
    "assignment": r"assignment|preproc_def",
    "call": r"call|call_expression|command",
}  # regular expressions over the node types of the grammars, by the kind of node

_BODY = regex(r".*_body|block|field_declaration_list|interface_type")
_FUNCTION_VALUE = regex(r"(arrow_function|function_expression|generator_function)")
_TEST = regex(
    rb"(?:[A-Z]\w*\.)?(?:(?P<group>describe|context|feature|suite|shared_(?:context|examples)\w*)"
    rb"|scenario|test|it|specify|should)\b[.\w]*"
)
_SUBJECT = regex(rb"[ (]+(?:(?P<quote>[\"'`])(?P<text>.*?)(?P=quote)|(?P<constant>[A-Z][\w:.]*\b(?!\()))", re.DOTALL)
_IS_SCRIPT = regex(rb"if \(?__name__\b")
_EXPORT = regex(rb"(?:export|declare)\b")
_LOAD = regex(
    rb"(require|require_relative|load|source|\.)[ (]+\S[^\n]*|attr_\w+ [^\n]*|\w+[!?]?[ (]+(?::\w|\w+: +:)[^\n{]*"
)
MADE = regex(rb"\w+ *= *lambda\b|_*[A-Z]\w*?[a-z]\w* *= *[\w.]+\(")  # a function, a type: Point = namedtuple(..)
_COMMENT = regex(r"(?<=\S)[ \t]+(?:#(?!\[)|//).*|(?<=\n)[ \t]*(?:#(?!\[)|//).*")  # to the end of a line
_LONG_COMMENT = regex(r"/\*(?:[^*]|\*(?!/))*\n(?s:.*?)\*/")
_NAME_FIELDS = ("bound_identifier", "name", "declarator", "left", "type")
_NAMES = regex("identifier|_name|_element")
_IMPLEMENTED = regex(r"impl_item|generic_type")  # of Rust: the block has the name of its type
_NOT_OF_NAME = regex(r"<[^<>]*>|\(.*|.*\s(?=\w+::)", re.DOTALL)  # the last: a macro and a type, taken for a scope
_LONGEST_HEAD = 2000  # characters; longer decorators are left out


class Tree(NamedTuple):
    """The entries of a parsed file; `has_errors` if its grammar does not know the syntax of more than bodies.

    `unread` has the lines of what may hold definitions, but is no kind of node that is read: a macro, a loop.
    """

    entries: list[Entry]
    has_errors: bool
    unread: list[tuple[int, int]]


def read_tree(suffix: str, text: str) -> Tree | None:
    """Return what a file defines, None where no grammar is there for it.

    Raises ValueError or RecursionError where it takes too long or nests too deeply.
    """
    if (parsed := parse(suffix, text)) is None:
        return None
    language, source, root = parsed
    found = [entry for node in root.named_children for entry in _lines(source, node, node.start_byte, 0)]
    unread = [(entry.first, entry.last) for entry in found if _is_unread(entry)]
    entries = [entry for entry in found if not _is_unread(entry)]
    if language in {"c", "cpp"}:
        entries = list(map(_of_c, entries))
    return Tree(entries, _has_errors(root), unread)


def _is_unread(entry: Entry) -> bool:
    return not entry.text and entry.node is not None and not _kind(entry.node.type)


def _of_c(entry: Entry) -> Entry:
    """Return a head of C without a body; what a macro defines has the name in its arguments."""
    kind = _kind(entry.node.type) if entry.node else ""
    if kind not in {"head", "nest"}:
        return entry
    text = without_body(entry.text)
    defined = defined_by_macro(text) if kind == "head" else None
    return entry._replace(text=defined.text, name=defined.name) if defined else entry._replace(text=text)


def _has_errors(node: "Node") -> bool:
    """Tell whether a tree has an error that can hide a definition: one outside of functions, or that swallows more."""
    for child in node.children if node.has_error else ():
        body = _body(child) if child.has_error and _kind(child.type) == "head" else None
        if body is not None and any(_kind(within.type) in {"head", "nest"} for within in body.named_children):
            return True
        if child.is_error or child.is_missing or (body is None and _has_errors(child)):
            return True
    return False


def is_function(node: "Node") -> bool:
    """Tell whether a node is a function, or a variable that holds one, without an error in it."""
    return _kind(node.type) in {"head", "variable"} and not node.has_error


def name_of(node: "Node") -> str:
    """Return the name that a declaration gives, "" where it has none; a method of Go has that of its receiver."""
    fields = () if "qualified" in node.type else _NAME_FIELDS[: None if _IMPLEMENTED.match(node.type) else -1]
    inner = next((child for field in fields if (child := node.child_by_field_name(field))), None)
    if inner is None and _kind(node.type):
        inner = next((child for child in node.named_children if _NAMES.search(child.type)), None)
    receiver = re.search(rb"(\w+)[^\w]*$", node.text or b"") if node.type == "parameter_list" else None
    if inner is not None:
        owner = node.child_by_field_name("receiver")
        return f"{name_of(owner)}.{name_of(inner)}" if owner is not None else name_of(inner)
    text = receiver[1] if receiver else node.text or b""
    name = _NOT_OF_NAME.sub("", text[:LONGEST].decode("utf-8", "replace")).strip("\"'`~*& ")
    return "" if node.named_child_count and _kind(node.type) else re.sub(r"::|->|#", ".", name)


@functools.cache
def _kind(node_type: str) -> str:
    return next((kind for kind, pattern in _KINDS.items() if re.fullmatch(pattern, node_type)), "")


def _entry(source: bytes, node: "Node", start: int, depth: int, text: str) -> Entry:
    (row, _), (last, column) = node.start_point, node.end_point
    first = row + 1 - source.count(b"\n", start, node.start_byte)
    return Entry(text, depth, first, max(first, last + (column > 0)), node)


def _lines(source: bytes, node: "Node", start: int, depth: int) -> Iterator[Entry]:
    """Yield the outline of a declaration, indented; its text begins at `start`, with its decorators or its `export`."""
    kind, body = _kind(node.type), _body(node)
    match kind:
        case "wrapper" | "group":
            is_one = kind == "wrapper" and (node.type != "type_declaration" or node.named_child_count == 1)
            for child in () if _is_script(source, node) else node.named_children:
                has_short_start = is_one and child.start_byte - start <= LONGEST
                found = _lines(source, child, start if has_short_start else child.start_byte, depth)
                yield from _begun(
                    found, source.count(b"\n", start, child.start_byte) if is_one and not has_short_start else 0
                )
        case "nest" | "head":
            longest = LONGEST if node.type == "preproc_function_def" else _LONGEST_HEAD
            head = _shown(source[start : _end_of_head(node, body)], depth, longest)
            yield _entry(source, node, start, depth, head)
            is_open = body is not None and kind == "nest" and not head.endswith("mod tests")
            for child in _members(node, body) if body is not None and is_open else ():
                yield from _lines(source, child, child.start_byte, depth + 1)
        case "variable":
            yield from _variable(source, node, start, depth)
        case "call":
            yield from _call(source, node, depth)
        case "prototype" | "assignment" | "" if _is_hidden(node, depth):
            yield _entry(source, node, start, depth, "")
        case "assignment" if (made := node.child_by_field_name("right")) is not None and made.type == "call":
            yield from _made(source, node, made, depth)
        case str(shown) if shown:
            yield from _whole(source, node, start, depth)
        case _:
            pass


def _with_name(source: bytes, node: "Node", start: int) -> bytes:
    """Return a declaration; of a long typedef of C its beginning, and the name at its end."""
    made = node.child_by_field_name("type") if node.type == "type_definition" else None
    body = made.child_by_field_name("body") if made is not None else None
    if body is None or node.end_byte - start <= LONGEST:
        return source[start : node.end_byte]
    end = source[body.end_byte : node.end_byte]
    return b" ".join(source[start : body.end_byte - 1].split())[: LONGEST - len(end) - 9] + b" ... }" + end


def _begun(entries: Iterator[Entry], lines: int) -> Iterator[Entry]:
    """Yield entries of which the first one begins so many lines before: it has long decorators."""
    for number, entry in enumerate(entries):
        yield entry if number else entry._replace(first=entry.first - lines)


def _is_script(source: bytes, node: "Node") -> bool:
    """Tell whether a statement is the `if` under which a module of Python is run."""
    return node.type == "if_statement" and _IS_SCRIPT.match(source, node.start_byte) is not None


def _made(source: bytes, node: "Node", call: "Node", depth: int) -> Iterator[Entry]:
    """Yield an assignment of what a call makes, with what its block defines: `Point = Struct.new(:x) do .. end`."""
    block = call.child_by_field_name("block")
    end = block.start_byte if block is not None else node.end_byte
    yield _entry(source, node, node.start_byte, depth, _shown(source[node.start_byte : end], depth, LONGEST))
    for child in block.named_children[-1].named_children if block is not None and block.named_children else ():
        yield from _lines(source, child, child.start_byte, depth + 1)


def _whole(source: bytes, node: "Node", start: int, depth: int) -> Iterator[Entry]:
    """Yield the text of a declaration, of Go's constants and variables in parentheses that of each."""
    within = next((child for child in node.named_children if child.type == "var_spec_list"), node)
    specs = [child for child in within.named_children if child.type in {"const_spec", "var_spec"}]
    for each in specs if len(specs) > 1 else [node]:
        first = start if each is node else each.start_byte
        yield _entry(source, each, first, depth, _shown(_with_name(source, each, first), depth, LONGEST))


def _is_hidden(node: "Node", depth: int) -> bool:
    """Tell whether an outline leaves out the line of a declaration, or of what is no known kind but no comment."""
    return not _has_signature(node, in_class=depth > 0) if _kind(node.type) else "comment" not in node.type


def _has_signature(node: "Node", *, in_class: bool) -> bool:
    """Tell a prototype from a C variable, and a field, a typed constant or a flag under `if` from other variables.

    A macro is a constant if it has a value. A variable of Python that holds a function or a type is no other.
    """
    if node.type == "preproc_def":
        return node.child_by_field_name("value") is not None
    if node.type == "assignment":
        left, owner = node.child_by_field_name("left"), node.parent and node.parent.parent
        is_constant = left is not None and left.type == "constant"
        is_flag = owner is not None and owner.type == "block"  # no block of a function is read
        is_made = MADE.match(node.text or b"") is not None
        return in_class or is_constant or is_flag or is_made or node.child_by_field_name("type") is not None
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator is not None


def _body(node: "Node") -> "Node | None":
    """Return the node that ends the head of a declaration: its field `body`, or its last child."""
    body = node.child_by_field_name("body")
    if (
        body is not None and body.type == "ordered_field_declaration_list"
    ):  # of a tuple in Rust: it has no names to nest
        return None
    if body is None and (children := node.named_children):
        last = children[-1]
        return last if _BODY.fullmatch(last.type) else _body(last) if last.type == "struct_type" else None
    return body


def _members(node: "Node", body: "Node") -> "list[Node]":
    """Return what a body holds; an extension of Scala has several bodies, each of them a function."""
    return node.children_by_field_name("body") if _kind(body.type) == "head" else body.named_children


def _end_of_head(node: "Node", body: "Node | None") -> int:
    if body is None:
        return node.end_byte
    if body.type == "interface_type":  # Go's, which begins with the word itself
        return body.start_byte + len("interface")
    before = body.prev_sibling
    while before is not None and "comment" in before.type:
        before = before.prev_sibling
    return before.end_byte if before is not None else body.start_byte


def _variable(source: bytes, node: "Node", start: int, depth: int) -> Iterator[Entry]:
    """Yield a variable or property; with its text if it holds a function or module, is exported, or of a class."""
    value: Node | None = node
    while value is not None and _kind(value.type) == "variable":
        value = value.child_by_field_name("value") or value.child_by_field_name("right")
    text, call = "", value.child_by_field_name("arguments") if value is not None else None
    if value is not None and _FUNCTION_VALUE.match(value.type):
        text = _shown(source[start : _end_of_head(node, _body(value))], depth, _LONGEST_HEAD)
    elif node.type.endswith("definition") or (
        value is not None and source[value.start_byte : value.end_byte].startswith(b"require(")
    ):
        text = _shown(source[start : node.end_byte], depth, LONGEST)
    elif _EXPORT.match(source, start, node.end_byte) or (depth == 0 and _is_given_function(call)):
        is_long = call is not None and b"\n" in (call.text or b"")
        text = _shown(source[start : call.start_byte if call and is_long else node.end_byte], depth, LONGEST)
    inner = list[Entry]()
    if value is not None and value.type == "object":
        inner += _lines(source, value, value.start_byte, depth + 1)
        if node.type == "variable_declarator" and not text and any(entry.text for entry in inner):
            text = _shown(source[start : value.start_byte], depth, LONGEST)
    yield _entry(source, node, start, depth, text)
    yield from inner


def _is_given_function(call: "Node | None") -> bool:
    """Tell whether the arguments of a call have a function, as those of `forwardRef((props) => ..)`."""
    return call is not None and any(_FUNCTION_VALUE.match(argument.type) for argument in call.named_children)


def _call(source: bytes, node: "Node", depth: int) -> Iterator[Entry]:
    """Yield a call that names a test, with its content, or that loads another file."""
    test = _TEST.match(source, node.start_byte, node.end_byte)
    table = node.child_by_field_name("function")
    places = [test.end(), *([table.end_byte] if table is not None else [])] if test else []
    subjects = (_SUBJECT.match(source, place, node.end_byte) for place in places)
    match = next((match for match in subjects if match and (match["quote"] or (test and test["group"]))), None)
    if test and match:
        head = _shown(test[0] + match[0] + (b")" if b"(" in match[0] else b""), depth, LONGEST)
        name = (match["text"] or match["constant"] or b"").decode("utf-8", "replace")
        yield _entry(source, node, node.start_byte, depth, head)._replace(name=name)
        within = node.child_by_field_name("block") or node.child_by_field_name("arguments")
        last = within.named_children[-1] if test["group"] and within and within.named_children else None
        for child in (_body(last) or last).named_children if last else ():
            yield from _lines(source, child, child.start_byte, depth + 1)
    elif match := _LOAD.match(source, node.start_byte, node.end_byte):
        yield _entry(source, node, node.start_byte, depth, _shown(match[0], depth, LONGEST))
        block = node.child_by_field_name("block")
        for child in block.named_children[-1].named_children if block is not None and block.named_children else ():
            if _kind(child.type) in {"head", "nest"} or child.child_by_field_name("block") is not None:
                yield from _lines(source, child, child.start_byte, depth + 1)
    else:
        yield from _within_call(source, node, depth)


def _within_call(source: bytes, node: "Node", depth: int) -> Iterator[Entry]:
    """Yield what is defined for a call: `private def f`, `export default f({ g() {} })`, `(() => { .. })()`."""
    function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    while function is not None and function.type == "parenthesized_expression":
        function = function.named_child(0)
    yield from _within_block(source, node, depth)
    for child in [*([function] if function else ()), *(arguments.named_children if arguments else ())]:
        if depth == 0 and _FUNCTION_VALUE.match(child.type) and (body := _body(child)):
            for statement in body.named_children:
                yield from _lines(source, statement, statement.start_byte, depth)
        elif child.type == "object":
            yield from _lines(source, child, child.start_byte, depth)
        elif _kind(child.type) == "head" and not _FUNCTION_VALUE.match(child.type):
            yield from _lines(source, child, node.start_byte, depth)


def _within_block(source: bytes, node: "Node", depth: int) -> Iterator[Entry]:
    """Yield a call of Ruby and what its block defines, if that is more than variables: `class_methods do .. end`."""
    block = node.child_by_field_name("block")
    if block is not None and block.named_children:
        body = block.named_children[-1]
        lines = (_lines(source, child, child.start_byte, depth + 1) for child in body.named_children)
        found = [*itertools.chain.from_iterable(lines)]
        if any(entry.name or (entry.node and _kind(entry.node.type) in {"head", "nest"}) for entry in found):
            head = _shown(source[node.start_byte : body.start_byte], depth, LONGEST)
            yield _entry(source, node, node.start_byte, depth, head)._replace(node=None)
            yield from found


def _shown(piece: bytes, depth: int, longest: int) -> str:
    """Return source text on one line, without the comments of lines."""
    text = piece.decode("utf-8", "replace").rstrip("; \n")
    for sign in ("=>", "=", "{"):
        text = text.removesuffix(sign).rstrip()
    if "\n" in text:
        text = _COMMENT.sub("", _LONG_COMMENT.sub(" ", text))
    text = " ".join(text.split())
    return "  " * depth + (text if len(text) <= longest else f"{text[:longest]} ...")
