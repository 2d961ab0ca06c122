"""The command and the environment that start build.sh, and the hardening of this process against it.

Anything that keeps build.sh from starting is a BuildError, since no LLM can fix it. A failure of build.sh itself is a
result.
"""

import contextlib
import ctypes
import os
import resource
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from code_commit.errors import BuildError
from code_commit.files import NotAFileError, open_regular
from code_commit.llm.keys import KEY_VARIABLES, SHORTEST_KEY
from code_commit.project import BUILD_SCRIPT, Project
from code_commit.regex import regex
from code_commit.settings import ATTEMPT_VARIABLE, ENVIRONMENT_PREFIX, RUN_VARIABLE
from code_commit.terminal import shown

HEAD_BYTES = 4096
BINARY_CHECK_BYTES = 80  # bash looks for a NUL in as much of the first line: check_binary_file in its general.c

_SHELL = regex(rb"\b(?!pw)\w*sh\b")  # PowerShell reads any line ends

GET_DUMPABLE, SET_DUMPABLE = 3, 4  # PR_GET_DUMPABLE and PR_SET_DUMPABLE of <linux/prctl.h>


def build_command(project: Project, environment: Mapping[str, str], warn: Callable[[str], object]) -> tuple[str, ...]:
    """Return the command that starts build.sh in the root, through bash where needed. Raises BuildError."""
    head, is_executable = _read_head(project.build_script)
    first_line = head.partition(b"\n")[0]
    if b"\0" in first_line[:BINARY_CHECK_BYTES]:
        raise BuildError(f"{BUILD_SCRIPT} cannot be started: it is binary; put a script there")
    interpreter = first_line[2:].strip(b" \t") if first_line.startswith(b"#!") else b""
    if interpreter:
        _check_interpreter(os.fsdecode(interpreter), project.root, environment)
    if 2 * head.count(b"\r\n") > head.count(b"\n") and (not interpreter or _SHELL.search(interpreter)):
        raise BuildError(
            f"{BUILD_SCRIPT} has Windows line endings, which its shell reads as commands: convert it to LF"
        )
    if is_executable and interpreter:
        return (f"./{BUILD_SCRIPT}",)
    if not is_executable:
        warn(f"{BUILD_SCRIPT} is not executable, so bash runs it: chmod +x {BUILD_SCRIPT}")
    bash = _find("bash", environment)
    if bash is None:
        mend = f"chmod +x {BUILD_SCRIPT}" if interpreter else f"begin {BUILD_SCRIPT} with #!/bin/sh"
        raise BuildError(f"{BUILD_SCRIPT} cannot be started: bash is not on the PATH; install it, or {mend}")
    return (os.path.abspath(bash), f"./{BUILD_SCRIPT}")  # noqa: PTH100 - Path.absolute() would keep a ".." of the PATH


def _read_head(path: Path) -> tuple[bytes, bool]:
    """Return how the script begins and whether we may execute it."""
    try:
        with open_regular(path) as file:
            return file.read(HEAD_BYTES) or b"", os.access(path, os.X_OK)
    except FileNotFoundError as error:
        raise BuildError(f"{BUILD_SCRIPT} is missing: code-commit init writes one") from error
    except NotAFileError as error:
        what = "a link" if path.is_symlink() else "a folder" if path.is_dir() else "a device, a pipe or a socket"
        raise BuildError(f"{BUILD_SCRIPT} is {what}: put the script itself there") from error
    except OSError as error:
        raise BuildError(f"{BUILD_SCRIPT} cannot be read: {error.strerror}") from error


def _check_interpreter(line: str, root: Path, environment: Mapping[str, str]) -> None:
    """Raise BuildError when the program that the `#!` line names is not there: execve(2) would fail."""
    if line.endswith("\r"):
        raise BuildError(
            f"{BUILD_SCRIPT} has Windows line endings, so its first line names no program: convert it to LF"
        )
    begins = f"{BUILD_SCRIPT} begins with #!{shown(line)}"
    words = line.split(maxsplit=1)
    program = root / words[0]
    if not program.is_file():
        raise BuildError(f"{begins}, but {shown(words[0])} does not exist: install it, or name another program")
    if not os.access(program, os.X_OK):
        raise BuildError(f"{begins}, but {shown(words[0])} is not executable: chmod +x it, or name another program")
    if program.name == "env" and len(words) > 1:
        asked = [word for word in words[1].removeprefix("-S").split() if "=" not in word]
        name = asked[0] if asked and not asked[0].startswith("-") else None  # None: options leave it unclear
        if name and _find(name if "/" not in name else str(root / name), environment) is None:
            raise BuildError(f"{begins}, but {shown(name)} is not on the PATH: install it")


def _find(program: str, environment: Mapping[str, str]) -> str | None:
    return shutil.which(program, path=environment.get("PATH"))


def build_environment(environment: Mapping[str, str], keys: Collection[str], attempt: int, run: str) -> dict[str, str]:
    """Return `environment` with the attempt and the run, without the tool's settings and any variable with a key."""
    secrets = [key for key in keys if key]
    secrets += [environment[name] for name in KEY_VARIABLES.values() if len(environment.get(name, "")) >= SHORTEST_KEY]
    cleaned = {
        name: value
        for name, value in environment.items()
        if name not in KEY_VARIABLES.values()
        and not name.startswith(ENVIRONMENT_PREFIX)
        and not any(secret in value or secret in name for secret in secrets)
    }
    return cleaned | {ATTEMPT_VARIABLE: str(attempt), RUN_VARIABLE: run}


def harden_process() -> None:
    """Make this process unreadable through /proc and ptrace(2) (Linux only), and let it write no core file.

    The limit stays as it is where Linux keeps the process from writing one (core(5)): builds get it.
    """
    _prctl(SET_DUMPABLE, 0)
    if sys.platform != "linux" or _prctl(GET_DUMPABLE) != 0:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


@contextlib.contextmanager
def hardened_meanwhile() -> Iterator[None]:
    """Undo on exit the hardening by `harden_process` inside the block."""
    dumpable, limits = _prctl(GET_DUMPABLE), resource.getrlimit(resource.RLIMIT_CORE)
    try:
        yield
    finally:
        _prctl(SET_DUMPABLE, dumpable)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, limits)


def _prctl(option: int, value: int = 0) -> int:
    if sys.platform != "linux":
        return 0
    return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))
