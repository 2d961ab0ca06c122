"""The ignore rules where git is not installed: pathspec reads the patterns one by one, git's order is kept here.

Each folder is asked before what lies in it, the deepest .gitignore first, the last matching line decides; nothing lifts
what lies in an excluded folder. Names are compared as bytes. When in doubt the answer is "ignored":

* a pattern that pathspec reads otherwise than git, or not at all, ignores everything in its folder that begins like
  it, up to its first special character: POSIX classes, escapes, slashes, a leading `]` or odd ranges inside brackets,
  an unclosed bracket, a backslash at the end or before a slash, three or more asterisks, doubled slashes, `x**/` and
  `/x**` (which git before 2.52 reads otherwise);
* such a pattern behind `!` lifts nothing, nor does one with brackets.

So "free" is never said where git says "ignored", except that a `core.excludesFile` in another place than
`~/.config/git/ignore` is not known without git.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from code_commit.verify.ignore_files import IgnoreFiles, numbered_lines

_SIMPLE_BRACKET = r"\[!?(?:[0-9A-Za-z_. ~#$%&+=,@-](?:(?<=[0-9])-[0-9]|(?<=[a-z])-[a-z]|(?<=[A-Z])-[A-Z])?)+\]"
_READABLE = re.compile(rf"(?:[^\\\[*/]|\\[^/]|\*\*?(?!\*)|/(?!/)|{_SIMPLE_BRACKET})+")
_STARS_AGAINST_GIT = re.compile(r"[^/]\*\*(?:/|\Z)")
_REVERSED = re.compile(r"([0-9A-Za-z])-([0-9A-Za-z])")
_PRIVATE = 0xE000


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line. `matches` gets the name alone where the line has no inner slash, else the path from its folder."""

    ignores: bool
    folders_only: bool
    names_only: bool
    matches: Callable[[str], object]


def find_ignored(paths: Iterable[bytes], files: IgnoreFiles, *, any_case: bool) -> set[bytes]:
    """Return those of the paths that the rules ignore; a path with a slash at its end is a folder.

    With `any_case` both answers count: that with regard to case and that without.
    """
    paths = list(paths)
    found = _Rules(files, 0).find(paths)
    return found | _Rules(files, re.IGNORECASE).find(paths) if any_case else found


class _Rules:
    """All patterns, compiled, with the folders that were asked already."""

    def __init__(self, files: IgnoreFiles, flags: int) -> None:
        self._by_folder = {folder: _read_patterns(content, flags) for folder, content in files.by_folder.items()}
        self._everywhere = [_read_patterns(files.info_exclude, flags), _read_patterns(files.excludes_file, flags)]
        self._excluded: dict[bytes, bool] = {b"": False}

    def find(self, paths: Iterable[bytes]) -> set[bytes]:
        return {path for path in paths if self._is_ignored(path)}

    def _is_ignored(self, path: bytes) -> bool:
        if path.endswith(b"/"):
            return self._is_excluded_folder(path.rstrip(b"/"))
        parent = path.rpartition(b"/")[0]
        return self._is_excluded_folder(parent) or self._verdict(path, is_folder=False)

    def _is_excluded_folder(self, folder: bytes) -> bool:
        known = self._excluded.get(folder)
        if known is None:
            parents = [folder]
            while (parent := parents[-1].rpartition(b"/")[0]) not in self._excluded:
                parents.append(parent)
            for step in reversed(parents):
                above = self._excluded[step.rpartition(b"/")[0]]
                self._excluded[step] = above or self._verdict(step, is_folder=True)
            known = self._excluded[folder]
        return known

    def _verdict(self, path: bytes, *, is_folder: bool) -> bool:
        name = _characters(path.rpartition(b"/")[2])
        folder = path
        while folder:
            folder = folder.rpartition(b"/")[0]
            patterns = self._by_folder.get(folder)
            if patterns:
                relative = _characters(path[len(folder) + 1 :] if folder else path)
                verdict = _last_word(patterns, name, relative, is_folder=is_folder)
                if verdict is not None:
                    return verdict
        whole = _characters(path)
        verdicts = (_last_word(patterns, name, whole, is_folder=is_folder) for patterns in self._everywhere)
        return next((verdict for verdict in verdicts if verdict is not None), False)


def _last_word(patterns: Sequence[_Pattern], name: str, relative: str, *, is_folder: bool) -> bool | None:
    for pattern in patterns:
        if pattern.folders_only and not is_folder:
            continue
        if pattern.matches(name if pattern.names_only else relative):
            return pattern.ignores
    return None


def _read_patterns(content: bytes, flags: int) -> list[_Pattern]:
    """Return the file's patterns, the last line first."""
    patterns = [_read_pattern(_characters(line), flags) for _, line in numbered_lines(content)]
    return [pattern for pattern in reversed(patterns) if pattern]


def _read_pattern(line: str, flags: int) -> _Pattern | None:
    ignores = not line.startswith("!")
    text = line if ignores else line[1:]
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    names_only = "/" not in text
    matches = _matcher(text, flags) if is_readable(text) else None
    if not ignores and (matches is None or "[" in text):
        return None
    if matches is None:
        return _Pattern(ignores=True, folders_only=False, names_only=names_only, matches=_beginning(text, flags))
    return _Pattern(ignores, folders_only, names_only, matches)


def is_readable(text: str) -> bool:
    """Tell whether pathspec reads the pattern (without `!` and the slash at its end) as git does."""
    if text.endswith("/") or not _READABLE.fullmatch(text) or ("/" in text and _STARS_AGAINST_GIT.search(text)):
        return False
    return "[" not in text or all(low <= high for low, high in _REVERSED.findall(text))


def _beginning(text: str, flags: int) -> Callable[[str], object]:
    """Return what tells whether a path begins with the literal characters that the pattern begins with."""
    literal = re.split(r"[*?\[\\]|//", text.removeprefix("/"), maxsplit=1)[0]
    return re.compile(re.escape(literal), flags).match


def _matcher(text: str, flags: int) -> Callable[[str], object] | None:
    """Return what tells whether exactly this path matches, not one below it; None for what pathspec cannot read."""
    from pathspec.patterns.gitignore.base import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    escaped = "\\" + text if text.startswith(("#", "!")) else text
    try:
        expression, _ = GitIgnoreSpecPattern.pattern_to_regex(escaped)
        if expression is None:
            return None
        pattern = re.compile(expression, flags | re.DOTALL)
    except (GitIgnorePatternError, re.error):
        return None
    if not expression.startswith("^"):  # pathspec's own forms for `*`, `**`, `**/*` and `**/*/**`
        return pattern.search
    return pattern.match if text.endswith("/**") else pattern.fullmatch


def _characters(name: bytes) -> str:
    """Return one character per byte, those beyond visible ASCII as private ones that mean nothing to pathspec."""
    if name.isascii() and name.decode().isprintable():
        return name.decode()
    return "".join(chr(code) if 0x20 <= code < 0x7F else chr(_PRIVATE + code) for code in name)
