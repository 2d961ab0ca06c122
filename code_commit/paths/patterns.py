"""Patterns in .gitignore syntax that match nothing: those that never can, and those that no path of the project meets.

A pattern counts from the project's root. `/src` is `src` in the root, so an absolute path is told by what is there: its
first folder is in the file system's root, and not in the project's.
"""

import difflib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from code_commit.errors import Message, Named, NotSetUpError
from code_commit.git import compile_pattern, plain_pattern
from code_commit.regex import regex
from code_commit.terminal import shown

_ELSEWHERE = regex(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]|\\\\\w")  # a drive, a URL, a share of Windows
_WILD = regex(r"[*?[\\]")
_FROM_ROOT = "; patterns start at the project's root, such as src/main.rs"
_WHOLE_PROJECT = "**"
_LETTERS_MORE = 2  # or less, in a name that resembles another
_ALIKE = 0.7  # as difflib counts


def explain_patterns(setting: str | Named, patterns: Iterable[str], root: Path | None = None) -> dict[str, Message]:
    """Return the patterns of a setting that can match no path, or cannot be read, each with a message."""
    patterns = [*patterns]
    problems = dict[str, Message]()
    if patterns and all(pattern.startswith("!") for pattern in patterns):
        only = f"it only takes back what a pattern before it matches: write {_WHOLE_PROJECT} before it"
        problems[patterns[0]] = (setting, f" {shown(patterns[0])} can match nothing: {only}")
    for pattern in patterns:
        try:
            if why := _explain(pattern, root):
                problems[pattern] = setting, f" {shown(pattern)} can match nothing: {why}"
        except NotSetUpError as error:
            problems[pattern] = setting, f" {shown(pattern)}: {error}"
    return problems


def _explain(pattern: str, root: Path | None) -> str | None:
    """Return why a pattern can match no path of any project, or of that at `root`, and what to write; None if it can.

    Raises NotSetUpError for one that cannot be read.
    """
    sign, body = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    matches = compile_pattern(pattern)
    if matches is None and not body.strip("./ "):
        return f"it names the project itself: write {sign}{_WHOLE_PROJECT} for all of it"
    if matches is None:
        is_comment = pattern.startswith("#")
        return "it is a comment: write a backslash before its #" if is_comment else "it is not a .gitignore pattern"
    if ".." in body.split("/"):
        place = os.path.normpath(f"{root or ''}{os.sep if root else ''}{body.lstrip('/')}")
        return f"it contains '..'{_relative(sign, place, body, root)}"
    if root is not None and (place := _absolute(body, root)):
        return f"it is an absolute path{_relative(sign, place, body, root)}"
    if _ELSEWHERE.match(body):
        return f"it is an absolute path{_FROM_ROOT}"
    return None


def _absolute(pattern: str, root: Path) -> str:
    """Return the place that a pattern names as an absolute path, "" where it is none."""
    first, *others = pattern.lstrip("/").split("/")
    if not others or _WILD.search(first) or os.path.lexists(root / first):
        return ""
    if first == "~":
        return os.path.expanduser(pattern)  # noqa: PTH111 - a pattern, and there may be no home
    return pattern if pattern.startswith("/") and os.path.lexists(f"/{first}") else ""


def _relative(sign: str, place: str, pattern: str, root: Path | None) -> str:
    """Return the advice to write a place as a pattern from the root, where it is inside the project."""
    wild = _WILD.search(place)
    folder = place[: wild.start()].rpartition("/")[0] if wild else place
    if root is not None:
        place = os.path.relpath(os.path.realpath(folder) + place[len(folder) :], root)
    if place.split("/")[0] == "..":
        return f" and leads out of the project{_FROM_ROOT}"
    form = _WHOLE_PROJECT if place == "." else place if "/" in place else f"/{place}"
    return f": write {shown(sign + form + ('/' if pattern.endswith('/') and place != '.' else ''))}"


def find_unmatched(
    patterns: Iterable[str],
    paths: Iterable[str],
    others: Callable[[], Iterable[str]] = tuple,
    *,
    any_case: bool = False,
) -> Iterator[tuple[str, str]]:
    """Yield each pattern that matches none of the paths, and a pattern of a path that resembles it, or "".

    `others` gives more paths; it is asked once, where a pattern matches none of the first.
    """
    known = _Paths(paths)
    unmatched = [pattern for pattern in patterns if not known.has_match(pattern, any_case=any_case)]
    if not unmatched:
        return
    more = _Paths(others())
    every = _Paths([*known.paths, *more.paths]) if more.paths else known
    for pattern in unmatched:
        if not more.has_match(pattern, any_case=any_case):
            yield pattern, _nearest(pattern, every)


class _Paths:
    """Many paths as one text: in it a word is looked for in a hundredth of the time that a pattern takes for each."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = list(paths)
        self._text = "\0".join(["", *self.paths, ""])

    def has_match(self, pattern: str, *, any_case: bool = False) -> bool:
        pattern, text = (pattern.lower(), self._text.lower()) if any_case else (pattern, self._text)
        longest = max(re.split(r"\[.*\]|[*?/]|\\.", pattern.removeprefix("!").rstrip()), key=len)
        if (matches := compile_pattern(pattern)) is None or (longest not in text and pattern.isascii()):
            return False
        paths = text.split("\0") if any_case else self.paths
        return any(matches(path) for path in paths if longest in path or not pattern.isascii())

    def find_name(self, name: str, folder: str | None = None) -> str:
        """Return the name of a file or folder, in this folder or anywhere, that resembles this one most, or ""."""
        letter, place = name[0].lower() + name[0].upper(), "[/\0]" if folder is None else f"\0{re.escape(folder)}"
        fewest, most = max(len(name) - _LETTERS_MORE, 1) - 1, len(name) + _LETTERS_MORE - 1
        near = rf"{place}([{re.escape(letter)}][^/\0]{{{fewest},{most}}})(?=[/\0])"
        known: set[str] = set(re.findall(near, self._text))
        if name in known:
            return name
        same = [other for other in known if other.casefold() == name.casefold()]
        return (same or difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE) or [""])[0]

    def ending_in(self, name: str) -> list[str]:
        """Return the paths of the files with this name."""
        return [path for path in self.paths if f"/{path}".endswith(f"/{name}")] if name in self._text else []


def _nearest(pattern: str, paths: _Paths) -> str:
    """Return a pattern that some path matches, and that resembles this one; "" where there is none."""
    sign, body = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    body = plain_pattern(body.replace("\\", "/"))
    same = paths.ending_in(body.rpartition("/")[2]) if not body.endswith("/") else []
    for candidate in (body, _with_near_names(body, paths), same[0] if len(same) == 1 else ""):
        if candidate and paths.has_match(candidate):
            return sign + candidate
    return ""


def _with_near_names(pattern: str, paths: _Paths) -> str:
    """Return the pattern with each name that is not there, down to the first wildcard, as one beside it is spelled."""
    start, end = "/" * pattern.startswith("/"), "/" * pattern.endswith("/")
    names = pattern.strip("/").split("/")
    for place, name in enumerate(names):
        if _WILD.search(name) or not name:
            break
        is_anywhere = not start and len(names) == 1
        names[place] = paths.find_name(name, None if is_anywhere else "".join(f"{above}/" for above in names[:place]))
        if not names[place]:
            return ""
    return start + "/".join(names) + end
