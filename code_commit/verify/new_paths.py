"""New paths whose spelling is likely not meant: relations between the names of an answer and those that are there.

wrong-format   the path begins with a folder of diffs or examples that is not there
same-file      it is an existing path but for its Unicode form; a suspicion if it is one but for letter case
decorated      a suspicion: the path of a file stands in it, or it is a language or a word of the format
"""

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from html import unescape
from itertools import accumulate, takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from code_commit.changes import SuspicionRule
from code_commit.paths import decoration
from code_commit.paths.names import Fault
from code_commit.regex import regex
from code_commit.terminal import shown

_ALONE = "alone after the carets"
_ROUTE = regex(r"(?i)%5b[^/]*%5d")  # [id] in a URL: no framework takes that spelling
_MOST_DECORATED = 1_000  # new paths with odd characters that are looked at


class Doubt(NamedTuple):
    """A reason against a new path, with the advice what to send instead; `is_certain` if it cannot be meant."""

    path: str
    rule: SuspicionRule
    fact: str
    advice: str
    is_certain: bool = False


def find_invented_folder(path: str, root: Path, removed: Collection[str]) -> Fault | None:
    """Return the violation of a new path below an `a/`, `b/` or `path/to/` that the project does not have."""
    match = re.fullmatch(r"((path)/to|[ab])/(.+)", path)
    if match is None or os.path.lexists(root / path.split("/", 1)[0]):
        return None
    name = match[3]
    if not match[2] and (name in removed or not os.path.lexists(root / name)):
        return None
    return "wrong-format", f"begins with {match[1]}/, which the project does not have: write {shown(name)}"


def find_misspelled(paths: Iterable[str], removed: Collection[str], root: Path) -> Iterator[Doubt]:
    """Yield each new path that equals an existing one, wholly or at its beginning, but for Unicode form or letter case.

    One that is `removed` in the same answer is renamed.
    """
    spellings: dict[str, dict[str, str]] = {}
    is_there = cache(lambda folder: os.path.lexists(f"{root}/{folder}"))
    for path in paths:
        *folders, _ = parts = path.split("/")
        known = list(takewhile(is_there, accumulate(folders, "{}/{}".format)))
        folder, name = known[-1] if known else "", parts[len(known)]
        if folder not in spellings:
            spellings[folder] = _spellings(root / folder)
        plain = _composed(name)
        other = spellings[folder].get(plain) or spellings[folder].get(plain.casefold())
        meant = "/".join([*parts[: len(known)], other or name, *parts[len(known) + 1 :]])
        if other and meant not in removed:
            existing = shown("/".join([*parts[: len(known)], other]))
            if is_certain := _composed(other) == plain:
                fact = f"is the existing {existing} in another Unicode form, which has {_code_points(other, name)}"
            else:
                fact = f"differs from the existing {existing} in letter case alone"
            yield Doubt(path, "same-file", fact, f"write {shown(meant)}", is_certain)


def _spellings(folder: Path) -> dict[str, str]:
    """Return the names in a folder by their composed form, and by that without case."""
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)  # noqa: PTH208 - the names alone
    return {_composed(name).casefold(): name for name in names} | {_composed(name): name for name in names}


def _composed(name: str) -> str:
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _code_points(existing: str, sent: str) -> str:
    """Return what the names have each for itself, as `U+0301, not U+00E9`."""

    def only(name: str, other: str) -> str:
        odd = [char for char in name if not char.isascii() and char not in other]
        return " ".join(f"U+{ord(char):04X}" for char in odd or name if not char.isascii())

    return f"{only(existing, sent) or 'none'}, not {only(sent, existing) or 'those characters'}"


def find_decorated(paths: Iterable[str], removed: Collection[str], root: Path) -> Iterator[Doubt]:
    """Yield each new path in which that of a file stands, an existing one or one that would be new in its folder.

    An existing one that is `removed` in the same answer is renamed.
    """
    others = []
    for path in paths:
        if path != "PATH" and decoration.is_word(path):  # that is astray
            yield Doubt(path, "decorated", "is a word and hardly a file's name", f"write the file's path {_ALONE}")
        elif not (path.isascii() and decoration.is_plain(path)) or "%" in path:
            others.append(path)
    for path in others[:_MOST_DECORATED]:
        held = find_held_path(path, root)
        if held not in removed and (found := _read_decoration(path, held, root)):
            yield Doubt(path, "decorated", found[0], f"write {found[1]}")


def _read_decoration(path: str, held: str, root: Path) -> tuple[str, str] | None:
    """Return what is wrong with a new path that holds an existing one, if any, and what to write; None for nothing."""
    if held:
        advice = f"{shown(held)} {_ALONE}"
        if re.search("[>\u2192]", path):
            advice += ", and to rename it, delete that path and create the new one"
        return f"is not there, but {shown(held)} is", advice
    if bare := _find_bare_path(path, root):
        return "has something before or after the path", f"{shown(bare)} {_ALONE}"
    spelled = unicodedata.normalize("NFKC", path)
    if spelled.count("/") != path.count("/"):
        return "has a character that looks like a slash", f"{shown(spelled)} {_ALONE}"
    if re.search(r"[*?]", path):
        return "is a pattern and hardly a file's name", f"the file's path {_ALONE}"
    plain = unquote(path)
    is_folders = _has_folder(root, plain) and not _has_folder(root, path)
    if plain != path and plain.isprintable() and (is_folders or _ROUTE.search(path)):
        return "is URL-encoded", f"{shown(plain)} {_ALONE}"
    return None


def find_held_path(path: str, root: Path) -> str:
    """Return the longest path of an existing file in a path, as it is, as HTML or a URL has it, or without its blanks;
    "" for none.
    """
    found = ""
    forms = (unicodedata.normalize(form, path) for form in ("NFC", "NFKC"))
    for spelling in dict.fromkeys((path, *forms, unescape(path), unquote(path), re.sub(r"\s", "", path))):
        for piece in decoration.pieces(spelling):
            if len(piece) > len(found) and _is_file(root, piece):
                found = piece
    return found


def _is_file(root: Path, path: str) -> bool:
    is_inside = os.path.normpath(path) == path and not path.startswith(("/", "../"))
    return is_inside and os.path.isfile(f"{root}/{path}")  # noqa: PTH113 - Path.is_file() raises for a name too long


def _has_folder(root: Path, path: str) -> bool:
    """Tell whether the folder that a path is in is there."""
    return os.path.isdir(f"{root}/{path.rpartition('/')[0]}")  # noqa: PTH112 - the same


def _find_bare_path(path: str, root: Path) -> str:
    """Return the path of a new file that a label, quotes or a comment surround; "" where the path may be plain."""
    path = unicodedata.normalize("NFKC", path)
    bare = decoration.bare_path(path)
    if bare and (path.startswith(bare) or "/" not in path or not _has_folder(root, path)):
        return bare
    if "/" not in path or os.path.lexists(f"{root}/{path.partition('/')[0]}"):
        return ""
    new = (piece for piece in decoration.pieces(path) if "/" in piece and decoration.is_file_path(piece))
    return next((piece for piece in new if _has_folder(root, piece)), "")
