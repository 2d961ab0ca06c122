"""Standard output: where the result of a command goes, and in which form."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from code_commit.config import ENVIRONMENT_PREFIX, load_settings
from code_commit.errors import NotSetUpError
from code_commit.files import read_regular_file
from code_commit.options import OPTIONS
from code_commit.project import Project
from code_commit.terminal import shown


def wants_json(project: Project, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether JSON is asked for, also where other settings are not fit for use."""
    if "json" in options:
        return bool(options["json"])
    try:
        return load_settings(project, {}, environment).json
    except NotSetUpError:
        with suppress(KeyError, ValueError):
            return bool(OPTIONS["json"].parse(environment[f"{ENVIRONMENT_PREFIX}JSON"]))
        with suppress(OSError, ValueError):
            import tomllib

            return tomllib.loads(read_regular_file(project.config_file).decode()).get("json") is True
        return False


def print_bytes(data: bytes) -> None:
    """Write a result on stdout. Raises NotSetUpError where that fails, BrokenPipeError where nobody reads it."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's own end would fail too
        raise NotSetUpError(f"standard output cannot be written: {error.strerror}") from error


def show_diff(diff_file: Path) -> None:
    """Print a diff on stdout: byte for byte into a pipe, escaped and in colours on a terminal."""
    diff = diff_file.read_bytes()
    if not sys.stdout.isatty():
        print_bytes(diff)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for line in diff.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        text = Text(shown(line.replace("\t", "    ")), style=_style(line))
        console.print(text, soft_wrap=True)


_STYLES = {"+++": "bold", "---": "bold", "@@ ": "cyan", "diff": "bold"}


def _style(line: str) -> str:
    for start, style in _STYLES.items():
        if line.startswith(start):
            return style
    return {"+": "green", "-": "red"}.get(line[:1], "")
