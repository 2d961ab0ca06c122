"""Ask git, never tell it: read-only questions with an environment that nothing outside can bend."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from code_commit.errors import NotSetUpError

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def find_git() -> str | None:
    """Return the path of the git program, None where there is none: as `shutil.which`, without its start-up time."""
    programs = (Path(folder, "git") for folder in os.get_exec_path())
    return next((str(program) for program in programs if os.access(program, os.X_OK) and program.is_file()), None)


def require_git() -> None:
    """Raise NotSetUpError where there is no git."""
    if find_git() is None:
        raise NotSetUpError("git is not installed, or not on the PATH: code-commit cannot work without it")


def ask_git(arguments: Sequence[str], cwd: Path, stdin: bytes = b"") -> "CompletedProcess[bytes]":
    """Run one read-only git command in `cwd` and return it, whatever its exit code.

    The `GIT_*` environment is cleared, so that a hook's or an alias's `GIT_DIR` does not answer for another
    repository; the user's own configuration stays. No lock is taken and no file system monitor is started.
    Raises FileNotFoundError where git is not installed.
    """
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return subprocess.run(
        ["git", "-c", "core.fsmonitor=false", *arguments],
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        check=False,
    )
