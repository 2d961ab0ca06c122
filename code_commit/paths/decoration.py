"""Decorated paths: a language, a comment or quotes around the path. Strings alone are looked at here, no file.

A boundary is a character that stands in few names: no letter, digit or mark, and none of `._-/+~$%`.
"""

import re
import unicodedata
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

from code_commit.regex import regex

_INSIDE = r"\w./+~$%-"
_BOUNDARY = regex(rf"[^{_INSIDE}]")
_MOST_BOUNDARIES = 10  # that are looked at from either end of a path
_NAME = r"[\w.+~$%-]*\w\.[A-Za-z]\w{0,9}"
_PLAIN = rf"(?:[\w.+~$%-]+/)*{_NAME}"  # a path whose name has a suffix
_HAS_SUFFIX = regex(r"\.\w{1,10}\Z")
_BEFORE = regex(rf"(?:[!-/:-@\[-`{{-~]+\s+|PATH\s+|[^\W\d][\w ]*\s?(?::|=\s)\s*)[\"'`*<(\[]*({_PLAIN})[^{_INSIDE}]*")
_AROUND = regex(rf"[^{_INSIDE}]*({_PLAIN})(?![{_INSIDE}])[^/]*")
_TWO = regex(rf"({_PLAIN})\s*(?:[=-]+>|[,;|&\u2192])\s*{_PLAIN}")
_LINK = regex(rf"\[({_PLAIN})\]\(.*\)")
_ENDED = regex(r"(.*\w)[:,;]+")
_FEW_WORDS, _LONGEST_WORD = 3, 20  # more words are a sentence; letters of a word in another script
_SOME_WORDS = "answer code content diff edit file filename main output patch path plaintext response text txt"
_WORDS = frozenset(_SOME_WORDS.split())


class _Languages(NamedTuple):
    names: frozenset[str]
    files: tuple[str, ...]
    suffixes: frozenset[str]


def pieces(path: str) -> Iterator[str]:
    """Yield the parts of a path that have a boundary on both sides, the longest from each place first."""
    marks = [match.start() for match in _BOUNDARY.finditer(path) if not unicodedata.category(match[0]).startswith("M")]
    if len(marks) > 2 * _MOST_BOUNDARIES:
        marks = marks[:_MOST_BOUNDARIES] + marks[-_MOST_BOUNDARIES:]
    for start in (0, *(mark + 1 for mark in marks)):
        yield from (path[start:end] for end in (len(path), *reversed(marks)) if end > start)


def is_plain(path: str) -> bool:
    return _BOUNDARY.search(path) is None


def is_file_path(path: str) -> bool:
    """Tell whether a text is a path alone, its name with a suffix."""
    return re.fullmatch(_PLAIN, path) is not None


def bare_path(path: str) -> str:
    """Return the path of a new file without a label before it or a comment behind it; "" where there is none."""
    forms = [_BEFORE, _TWO, _LINK, _ENDED, *(() if _HAS_SUFFIX.search(path) else (_AROUND,))]
    found = next(filter(None, (form.fullmatch(path) for form in forms)), None)
    return found[1] if found else ""


def is_word(path: str) -> bool:
    """Tell whether a path is no file's name but a language or a word of the answer's format, whatever is around it, or
    a language's suffix.
    """
    if re.search(r"(?:\A|/)\.\w{2,}\Z", path):
        return path[path.rfind(".") :].lower() in _languages().suffixes
    if "/" in path or ("." in path and (" " not in path or _HAS_SUFFIX.search(path))):
        return False
    name = re.sub(r"\A[^\w]+|[^\w+#]+\Z", "", path).lower()
    if name in _WORDS:
        return True
    words = re.split(r"[^\w+#]+", name)
    is_foreign = len(name) <= _LONGEST_WORD and not re.search(r"[a-z0-9]", unicodedata.normalize("NFD", name))
    if len(words) > _FEW_WORDS or is_foreign:
        return True
    known = _languages()
    is_known = name in known.names or all(word in known.names or word in _WORDS for word in words)
    return is_known and not any(fnmatchcase(name, file) for file in known.files)


@cache
def _languages() -> _Languages:
    from pygments.lexers import get_all_lexers  # takes 15 ms, few answers name such a file

    names, files = set(), set()
    for name, aliases, patterns, _ in get_all_lexers(plugins=False):
        names |= {name.lower(), *(alias.lower() for alias in aliases)}
        files |= {pattern.lower() for pattern in patterns}
    suffixes = {file[1:] for file in files if file.startswith("*.")} - files
    return _Languages(frozenset(names), tuple(file for file in files if not file.startswith("*.")), frozenset(suffixes))
