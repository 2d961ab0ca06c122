"""Files that tools wrote, which nobody changes by hand: built bundles of JavaScript, and what its own header calls
generated.
"""

import re

from code_commit.regex import regex

SUFFIXES = (".js", ".mjs", ".cjs")
_BEGINNING, _END = 4_000, 400  # characters that tell: source of such a tool names these further within
_BUILT = regex(
    r"^/\*{6}/|\bfunction __webpack_require__\(|\b__webpack_modules__ ="
    r"|^(?:var|let|const) __(?:defProp|create|commonJS|esm) ="
    r"|\bparcelRequire\b|^\(function \(global, factory\) \{\n\s*typeof exports === ['\"]object['\"] &&"
    r"|^\(function ?\(\) ?\{ ?function r\(e, ?n, ?t\)|\ASystem\.register\(",
    re.MULTILINE,
)
_MAPPED = regex(r"^//# sourceMappingURL=(?!data:)\S+\s*\Z", re.MULTILINE)
_LEADING = regex(r"\s+|//[^\n]*|/\*(?s:.*?)\*/|[\"']use strict[\"'];?")
_BEGINS_WRAPPED = regex(
    r"(?:(?:var|let|const|window\.|globalThis\.)\s*[\w$.]+\s*=\s*)?"
    r"[!;+]?\s*\(\s*(?:async\s+)?(?:function\b|\([\w$, ]*\)\s*=>)"
)
_ENDS_WRAPPED = regex(r"\}\)?\s*\([^()]*\)\s*\)?;?\s*\Z")

_COMMENT = r"[ \t]*(?://|#|/?\*|--|;|<!--|%|!|\{-|\(\*|\"\"\"|dnl\b|REM\b)"
_MADE = r"\b(?:auto-?)?(?:re)?generated\b"
_LEAVE_IT = (
    r"(?:\b(?:do not|don't|never|not (?:be|make|meant to be))\b[^\n=]{0,16}\b(?:chang|edit|modif)"
    r"|\binstead of editing\b|\b(?:will|be) (?:lost|overwritten)\b)"
)
_GENERATED = regex(
    rf"(?im)^{_COMMENT}.*(?:@generated\b|<auto-?generated|{_MADE}.*(?:\n[^\n=]*){{0,3}}?{_LEAVE_IT}"
    rf"|{_LEAVE_IT}.*(?:\n[^\n=]*){{0,3}}?{_MADE})"
)
_VALUE = regex(  # a text that code has, as a here-document
    r"(?ms)[=(,+:]\s*(`|\"\"\"|\'\'\').*?(?:\1|\Z)|<<[-~]?([\"']?)(\w+)\2$.*?(?:^\s*\3$|\Z)"
)
_OF_ITSELF = regex(r"(?i)(?<!\bby )(?<!\bfrom )(?<!\bwith )\bthis\b|\bcode generated\b|@generated\b|<auto-?generated")
_OF_OTHERS = regex(r"(?i)\bfiles\b|\bthem\b|^.*?(?P<path>[\w.*-]+/[\w.*/-]*|[\w*-]+\.\w+)(?=.*generated)")
_HEADER = 1000  # characters


def is_built(text: str) -> bool:
    """Tell whether a file of JavaScript begins or ends as the tools write that build it of others."""
    return _BUILT.search(text[:_BEGINNING]) is not None or _MAPPED.search(text[-_END:]) is not None


def is_wrapped(path: str, text: str) -> bool:
    """Tell whether a file of JavaScript is one function that is called at once, as bundles are, and some sources."""
    is_one = path.endswith(SUFFIXES) and _ENDS_WRAPPED.search(text[-_END:]) is not None
    start = 0
    while is_one and (leading := _LEADING.match(text, start)):
        start = leading.end()
    return is_one and _BEGINS_WRAPPED.match(text, start) is not None


def is_generated(name: str, text: str) -> bool:
    """Tell whether a header says that its file is generated, and not that others are: `The files in gen/ are ..`."""
    header = text[:_HEADER]
    header = _VALUE.sub("", header) if "generated" in header.lower() else ""
    for match in _GENERATED.finditer(header):
        said = header[match.start() : header.find("\n", match.end()) % (len(header) + 1)]
        other = None if _OF_ITSELF.search(said) else _OF_OTHERS.search(said)
        if not other or (other["path"] or "*").rpartition("/")[2] == name.rpartition("/")[2]:
            return True
    return False
