"""What one folder of a project is, and which commands build and test it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MOST_READ = 1 << 20  # bytes; a project's description is far smaller


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of project. `lines` are those of a bash script; none where nothing is known that could be run."""

    name: str
    evidence: str
    lines: tuple[str, ...]
    runs_others: bool = False
    """Whether its commands likely run those of the other kinds too, as a Makefile's do beside a Cargo.toml."""


def first_file(folder: Path, names: Iterable[str]) -> str | None:
    """Return the first of the names, or of what the patterns match, that is a file; None where none is."""
    for name in names:
        matches = sorted(folder.glob(name)) if "*" in name else [folder / name]
        found = next((match for match in matches if match.is_file()), None)
        if found is not None:
            return found.name
    return None


def read_text(path: Path) -> str:
    """Return the beginning of a text file, "" where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_MOST_READ).decode("utf-8", "replace")


def read_object(path: Path) -> dict[str, Any]:
    """Return the members of a JSON file, {} where it holds no object."""
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def members(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else {}."""
    return value if isinstance(value, dict) else {}


def install_once(folder: str, command: str) -> str:
    """Return the line that installs dependencies where their folder is missing."""
    return f"if [ ! -d {folder} ]; then {command}; fi"
