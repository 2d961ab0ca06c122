"""A build.sh that fits the project: what is found in its root, else in its folders, built and tested."""

from collections.abc import Callable, Sequence
from pathlib import Path

from code_commit.commands.build_scripts.hooks import find_pre_commit
from code_commit.commands.build_scripts.kind import Kind
from code_commit.commands.build_scripts.native import find_autotools, find_cmake, find_just, find_make, find_meson
from code_commit.commands.build_scripts.node import find_deno, find_node
from code_commit.commands.build_scripts.others import (
    find_dart,
    find_dotnet,
    find_go,
    find_gradle,
    find_maven,
    find_php,
    find_ruby,
    find_simple,
    quoted_folder,
)
from code_commit.commands.build_scripts.python import find_python, find_python_files
from code_commit.project import AGENT_CONFIG
from code_commit.terminal import shown

_FINDERS: tuple[Callable[[Path], Kind | None], ...] = (
    find_python,
    find_node,
    find_deno,
    find_go,
    find_maven,
    find_gradle,
    find_dotnet,
    find_ruby,
    find_php,
    find_dart,
    find_cmake,
    find_meson,
    find_autotools,
    find_make,
    find_just,
)
_NOT_SEARCHED = {AGENT_CONFIG, "build", "dist", "docs", "node_modules", "target", "vendor", "venv"}

_HEAD = """\
#!/usr/bin/env bash
# The build: code-commit counts it as passing if and only if this script exits with 0.
# It runs in the project's root, with no standard input. `code-commit init` wrote it from what it found there:
# read it, run it once, and change what does not fit.
set -euo pipefail
"""


def find_kinds(folder: Path) -> list[Kind]:
    """Return every kind of project that the folder itself is."""
    found = [*find_simple(folder), *(finder(folder) for finder in _FINDERS)]
    kinds = [kind for kind in found if kind is not None]
    loose = None if kinds else find_python_files(folder)
    return [loose] if loose else kinds


def build_script_for(root: Path) -> tuple[str, list[str]] | None:
    """Return a build script and what it builds, None where nothing is recognised that can be built."""
    kinds = find_kinds(root)
    sections = [("", kinds)] if kinds else _in_folders(root)
    hooks = find_pre_commit(root)
    sections = [("", [hooks]), *sections] if hooks else sections
    runnable = [kind for _, kinds in sections for kind in kinds if kind.lines]
    if not runnable:
        return None
    parts = [_section(folder, kind, kinds) for folder, kinds in sections for kind in kinds]
    names = [
        f"{kind.name} ({shown(f'{folder}/{kind.evidence}' if folder else kind.evidence)})"
        for folder, kinds in sections
        for kind in kinds
        if kind.lines
    ]
    return "\n".join([_HEAD, *parts]), names


def _in_folders(root: Path) -> list[tuple[str, list[Kind]]]:
    """Return the kinds of the root's folders, where the root itself is none."""
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    names = [path.name for path in folders if not path.name.startswith(".") and path.name not in _NOT_SEARCHED]
    found = [(name, find_kinds(root / name)) for name in names if quoted_folder(name)]
    return [(name, kinds) for name, kinds in found if kinds]


def _section(folder: str, kind: Kind, beside: Sequence[Kind]) -> str:
    where = shown(f"{folder}/{kind.evidence}" if folder else kind.evidence)
    title = f"# {kind.name} ({where})"
    if not kind.lines:
        return f"{title}: nothing was found in it that builds or tests.\n"
    if kind.runs_others and any(other.lines and not other.runs_others for other in beside):
        lines = [f"{title}: left out, it likely does the same as the commands above; if not:"]
        return "\n".join([*lines, *(f"# {line}" for line in kind.lines if not line.startswith("#"))]) + "\n"
    if not folder:
        return "\n".join([title, *kind.lines]) + "\n"
    return "\n".join([title, "(", f"cd {quoted_folder(folder)}", *kind.lines, ")"]) + "\n"
