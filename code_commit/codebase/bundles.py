"""Built bundles: the JavaScript that a bundler or compiler wrote, which nobody changes by hand."""

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
