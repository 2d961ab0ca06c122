"""Macros of the C family: those that no grammar has a place for, and those that define something."""

import functools
import re
from typing import NamedTuple

from code_commit.regex import regex

_PARTS = (
    (  # class UI_API Panel {
        rb"(?P<before>\b(?:class|struct|union|enum(?:[ \t]+(?:class|struct))?)[ \t]+)",
        rb"(?P<macro>(?!final\b|alignas\b|class\b|struct\b|__)[A-Za-z_]\w*(?:\([^()\n]*\))?[ \t]+)",
        rb"(?=(?!final\b)[A-Za-z_][\w:]*(?:<[^;{}\n]*>)?\s*(?:final\s*)?[:{])",
    ),
    (  # UI_API int count(
        rb"^(?P<before>[ \t]*(?:(?:static|extern|inline|virtual)[ \t]+)*)",
        rb"(?P<macro>[A-Z][A-Z0-9_]{2,}(?:\([^()\n]*\))?[ \t]+)",
        rb"(?=[A-Za-z_][\w:<>,]*[ \t*&]+(?:[\w:<>,]+[ \t*&]+)*[\w:~]+[ \t]*\()",
    ),
    (  # void CALLBACK count(
        rb"^(?P<before>[a-z]\w*[ \t*]+(?:[a-z]\w*[ \t*]+)*(?<!struct )(?<!union )(?<!enum ))",
        rb"(?P<macro>[A-Z][A-Z0-9_]{2,}[ \t]+)",
        rb"(?=\w+[ \t]*\()",
    ),
    (  # UI_API(int) count(
        rb"^(?P<before>[ \t]*)",
        rb"(?P<macro>[A-Z][A-Z0-9_]{2,}\((?P<type>[a-z][\w \t*]*)\))",
        rb"(?=[ \t]+\w+[ \t]*\()",
    ),
    (  # Q_OBJECT
        rb"^(?P<before>[ \t]*)",
        rb"(?P<macro>[A-Z][A-Z0-9_]{2,}(?:\([^()\n]*\))?)",
        rb"(?=[ \t]*\n\s*(?:\w+:|#|/[/*]|[A-Za-z_]\w*[ \t]+[\w*&<]|[A-Z][A-Z0-9_]+\())",
    ),
    (  # TEST_CASE("a count", "[ui]") {
        rb"^(?P<before>[ \t]*[A-Z][A-Z0-9_]{2,}\([ \t]*\w*)",
        rb"(?P<macro>(?:\s*,?\s*\"(?:\\.|[^\"\\\n])*\")+\s*)",
        rb"(?=\)\s*\{)",
    ),
    (  # void count() NOEXCEPT;
        rb"(?P<before>\)[ \t]*(?:const[ \t]*)?)",
        rb"(?P<macro>(?<=[\s)])[A-Z][A-Z0-9_]{2,}(?:\([^()\n]*\))?)",
        rb"(?=[ \t]*[;{])",
    ),
)  # of C and C++, where their syntax has no place for them
_MACROS = [regex(b"".join(parts), re.MULTILINE) for parts in _PARTS]
_OF_MACRO = regex(r"\s*[A-Z][A-Z0-9_]{2,}\((?:\"(?P<text>(?:\\.|[^\"\\])*)\"|(?P<names>\w+(?:, \w+)*))(?P<end>\))?")


class Defined(NamedTuple):
    """A definition by a macro: its line of the outline, and the name that stands in the arguments."""

    text: str
    name: str


def without_macros(source: bytes) -> bytes:
    """Return a source with blanks for the macros that its grammar does not know, so that each place and line stays."""
    return functools.reduce(lambda known, macro: macro.sub(_blanked, known), _MACROS, source)


def _blanked(match: re.Match[bytes]) -> bytes:
    type_of_function = b"int" if "type" in match.re.groupindex else b""
    return match["before"] + type_of_function + re.sub(rb"[^\n]", b" ", match["macro"][len(type_of_function) :])


def without_body(head: str) -> str:
    """Return the head of a definition without a body that was not told from it."""
    depth = 0
    for at, sign in enumerate("" if head.lstrip().startswith("#") else head):
        depth += (sign in "([") - (sign in ")]")
        if sign == "{" and depth <= 0:
            return head[:at].rstrip()
    return head


def defined_by_macro(head: str) -> Defined | None:
    """Return what a head such as `TEST(cart, adds)` or `TEST_CASE("it adds")` defines, None for another one.

    Strings after names are left out: they describe it.
    """
    if not (match := _OF_MACRO.match(head)):
        return None
    name = match["text"] or match["names"].replace(", ", ".")
    return Defined(head if match["end"] else f"{match[0]})", name)
