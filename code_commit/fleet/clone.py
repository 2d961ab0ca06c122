"""The process of a task in its clone: it makes the rollup and runs, or continues the run whose log is there.

Its argument is JSON: the pathspecs, the options to continue a run, those to begin one, and whether the base has moved.
The output of each command goes to a file beside the clone: rollup.json, run.json. It makes no call to an LLM once there
is a file DRAIN.
"""

import gc
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from code_commit.cli import main
from code_commit.errors import EXIT_BUILD_FAILED, CodeCommitError, Interrupted, NotSetUpError
from code_commit.interrupts import end_before_calls
from code_commit.project import AGENT_CONFIG

DRAIN = "drain"


def work() -> NoReturn:
    """Do the task, and end the process with the exit code of the last command."""
    gc.set_threshold(100_000)  # imports make many objects and no garbage
    for name in ("httpx._main", "anyio", "trio"):  # httpx's own command with click and rich, and what is not needed
        sys.modules[name] = None  # type: ignore[assignment]
    end_before_calls(Path(os.path.realpath(".."), DRAIN).exists)
    pathspecs, again, anew, is_moved = json.loads(sys.argv[1])
    code = 0
    with suppress(Interrupted):
        code = _go_on(again, is_moved=is_moved)
        if code == NotSetUpError.exit_code:
            code = _command("rollup", "--", *pathspecs) or _command("run", "--quiet", *anew)
    os._exit(code)


def _go_on(options: list[str], *, is_moved: bool) -> int:
    """Resume the run whose log is there, and return its exit code; 2 if there is none, or it cannot be resumed.

    If the base has moved and the build fails, the changes are undone, and the run begins anew.
    """
    logs, code = Path(AGENT_CONFIG, "logs"), NotSetUpError.exit_code
    if not logs.exists():
        return code
    from code_commit.api import list_runs, redo  # with every command; most tasks need two

    if folders := list_runs():
        with suppress(CodeCommitError):
            redo(".", folders[-1])
            code = _command("run", "--quiet", *options, go_on=True)
            if is_moved and code == EXIT_BUILD_FAILED and _command("undo") == 0:
                code = NotSetUpError.exit_code
    if code == NotSetUpError.exit_code:
        shutil.rmtree(logs, ignore_errors=True)
    return code


def _command(name: str, *words: str, go_on: bool = False) -> int:
    """Run a command of ours, whose JSON goes to its file, and return its exit code."""
    file = os.open(f"../{name}.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.dup2(file, sys.stdout.fileno())
    os.close(file)
    return main(["resume" if go_on else name, "--json", *words])
