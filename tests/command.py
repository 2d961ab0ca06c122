"""How the tests call the command, and git beside it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

CODE_COMMIT = [sys.executable, "-m", "code_commit"]

Run = Callable[..., subprocess.CompletedProcess[str]]
"""The fixture `run_code_commit`."""


def git(folder: Path, *arguments: str) -> str:
    """Run git in the folder and return its output; a failure fails the test."""
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout
