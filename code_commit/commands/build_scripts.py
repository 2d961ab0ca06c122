"""A build.sh that fits the project: the files that tell what kind of project it is, and the lines that test it."""

import re
import shlex
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from code_commit.project import AGENT_CONFIG
from code_commit.terminal import shown

_MOST_READ = 1 << 20  # bytes; a project's description is far smaller
_NOT_SEARCHED = {AGENT_CONFIG, "build", "dist", "docs", "node_modules", "target", "vendor", "venv"}
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def _variants(kinds: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [kind | variant for kind in kinds for variant in kind.get("variants", [{}])]


_KINDS, _LAST_KINDS, _HOOKS = map(_variants, (_TABLE["kinds"], _TABLE["last_kinds"], _TABLE["hooks"]))


def build_script_for(root: Path) -> tuple[str, list[str]] | None:
    """Return a build script and what it builds; None for a project of no known kind."""
    found = _find_all(root, _HOOKS) + (_find_kinds(root, "") or _find_in_folders(root))
    if not found:
        return None
    return "\n".join([_TABLE["head"], *(section for _, section in found)]), [title for title, _ in found]


def _find_in_folders(root: Path) -> list[tuple[str, str]]:
    """Return the kinds of the root's folders, where the root itself has none."""
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    names = [path.name for path in folders if not path.name.startswith(".") and path.name not in _NOT_SEARCHED]
    return [found for name in names if shown(name) == name for found in _find_kinds(root / name, name)]


def _find_kinds(folder: Path, name: str) -> list[tuple[str, str]]:
    """Return the title and the part of the script for every kind of the folder."""
    return _find_all(folder, _KINDS, name) or _find_all(folder, _LAST_KINDS, name)


def _find_all(folder: Path, kinds: Sequence[dict[str, Any]], name: str = "") -> list[tuple[str, str]]:
    """Try the kinds in their order; the first of each name counts."""
    found: dict[str, tuple[str, str]] = {}
    for kind in kinds:
        marker = None if kind["name"] in found else _first_file(folder, kind["markers"])
        if marker is None:
            continue
        if lines := _lines(kind, _read_text(folder / kind.get("reads", marker))):
            title = f"{kind['name']} ({shown(f'{name}/{marker}' if name else marker)})"
            inside = ["(", f"cd {shlex.quote(f'./{name}')}", *lines, ")"] if name else lines
            found[kind["name"]] = title, "\n".join([f"# {title}", *inside, ""])
    return list(found.values())


def _lines(kind: dict[str, Any], text: str) -> list[str]:
    """Return the lines of a kind that fit the text of its file; none if the kind does not fit."""
    if not re.search(kind.get("holds", ""), text, re.MULTILINE):
        return []
    lines = [line for entry in kind["lines"] for line in _TABLE["blocks"].get(str(entry), [entry])]
    pairs = [("", line) if isinstance(line, str) else line for line in lines]
    fit = [line for pattern, line in pairs if re.search(pattern, text, re.MULTILINE)]
    return [line.replace("{install}", kind.get("install", "")).replace("{run}", kind.get("run", "")) for line in fit]


def _first_file(folder: Path, markers: str) -> str | None:
    """Return the first file that a marker names or matches; None without one."""
    matches = (path for marker in markers.split() for path in sorted(folder.glob(marker)))
    return next((str(path.relative_to(folder)) for path in matches if path.is_file()), None)


def _read_text(path: Path) -> str:
    """Return the beginning of a text file, "" where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_MOST_READ).decode("utf-8", "replace")
