"""The files of a project's folders, and the facts that are read in them."""

import configparser
import json
import os
import re
import tomllib
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from code_commit.project import AGENT_CONFIG
from code_commit.terminal import shown
from code_commit.trust import find_top

_MOST_READ = 1 << 20  # bytes; a project's description is far smaller
_MOST_FILES = 20_000
_MOST_PATTERNS = 100  # for places: a list of more is written out, not matched
_NOT_SEARCHED = {AGENT_CONFIG, "build", "dist", "fixtures", "node_modules", "target", "testdata", "vendor", "venv"}


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder and the paths of the files below it, without installed packages and what builds make."""

    path: Path
    files: Collection[str]  # in their order; a dict, which is quick to ask for one
    depth: int = 0

    def find(self, patterns: str) -> Iterator[str]:
        """Yield the regular files that match a pattern; the patterns are tried in their order."""
        for pattern in patterns.split():
            matches = _pattern(pattern).fullmatch
            yield from (name for name in self.files if matches(name) and (self.path / name).is_file())

    def find_in(self, places: Collection[str], patterns: str) -> Iterator[str]:
        """Yield the files of the folders at these places that match a pattern of names."""
        is_place = cache(Places(places).have)
        found = self.find(" ".join(f"**/{pattern}" for pattern in patterns.split()))
        yield from (name for name in found if is_place(name.rpartition("/")[0]))

    def has(self, patterns: str) -> bool:
        return any(True for _ in self.find(patterns))

    def below(self, name: str) -> "Folder":
        lead = f"{name}/"
        files = dict.fromkeys(file.removeprefix(lead) for file in self.files if file.startswith(lead))
        return Folder(self.path / name, files)

    def without(self, markers: str) -> "Folder":
        """Return the folder without the parts of it that have one of these files."""
        parts = {name.rpartition("/")[0] for name in self.find(" ".join(f"**/{name}" for name in markers.split()))}
        inner = tuple(f"{part}/" for part in parts if part)
        return Folder(self.path, dict.fromkeys(name for name in self.files if not name.startswith(inner)), self.depth)

    def outward(self) -> Iterator[Path]:
        """Yield the folder and those that it lies in, as far as the top of the project and of its repository."""
        folder = Path(os.path.realpath(self.path))
        inmost = len(Path(find_top(str(folder))).parts)
        yield folder
        for number, outer in enumerate(folder.parents):
            if number >= self.depth and len(outer.parts) < inmost:
                break
            yield outer

    def text(self, name: str) -> str:
        """Return the beginning of a text file, "" where none can be read."""
        path = self.path / name
        if name in self.files and path.is_file():
            with suppress(OSError), path.open("rb") as file:
                return file.read(_MOST_READ).decode("utf-8-sig", "replace")
        return ""

    def json(self, name: str) -> dict[str, Any]:
        return self._parsed(name, json.loads)

    def toml(self, name: str) -> dict[str, Any]:
        return self._parsed(name, tomllib.loads)

    def _parsed(self, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        try:
            return mapping(parse(self.text(name)))
        except (ValueError, RecursionError):
            return {}

    def ini(self, name: str) -> dict[str, dict[str, str | None]]:
        """Return the sections of an INI file."""
        parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
        with suppress(configparser.Error):
            parser.read_string(self.text(name))
        return {section: dict(parser[section]) for section in parser.sections()}


class Places:
    """The folders that a description names, by their paths or by patterns, whose `**/` stands for any depth."""

    def __init__(self, listed: Collection[str]) -> None:
        self._named = frozenset(listed)
        self._patterns = [place for place in listed if re.search(r"[*?[]", place)][:_MOST_PATTERNS]

    def have(self, path: str) -> bool:
        return path in self._named or any(_fits(path, pattern) for pattern in self._patterns)


def _fits(path: str, pattern: str) -> bool:
    if "**" in pattern:
        ways = ((path, pattern), (f"{path}/", pattern), (path, pattern.replace("**/", "")))
        return any(fnmatchcase(*way) for way in ways)
    return path.count("/") == pattern.count("/") and fnmatchcase(path, pattern)


@dataclass(slots=True)
class Facts:
    """The facts of a folder: words that hold, and values that stand in lines."""

    words: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)

    def hold(self, condition: str) -> bool:
        return (condition.removeprefix("!") in self.words) != condition.startswith("!")

    def add(self, **words: object) -> None:
        self.words |= {word.replace("_", "-") for word, holds in words.items() if holds}


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*)", pattern)
    return re.compile(
        "".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts), re.DOTALL
    )


def look_into(root: Path) -> Folder:
    """Return the root with its files, top down."""
    files: list[str] = []
    for path, folders, names in os.walk(root):
        searched = (name for name in folders if name == ".mvn" or not (name[:1] == "." or name in _NOT_SEARCHED))
        folders[:] = sorted(
            name for name in searched if shown(name) == name and not (Path(path) / name / "pyvenv.cfg").exists()
        )
        lead = "" if path == str(root) else f"{Path(path).relative_to(root).as_posix()}/"
        files += (f"{lead}{name}" for name in sorted(names))
        if len(files) > _MOST_FILES:
            break
    return Folder(root, dict.fromkeys(files))


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def paths_of(value: Any) -> list[str]:
    """Return the paths of a list in a description, which may hold anything."""
    paths = value if isinstance(value, list) else []
    named = (path.removeprefix("./").rstrip("/") for path in paths if isinstance(path, str))
    return [*filter(None, named)]


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from strings([*value, *value.values()])
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
