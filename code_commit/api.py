"""The main job, and the rollup before it, as calls for a supervisor that is written in Python.

The process that calls is afterwards as it was before.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from code_commit.build import hardened_meanwhile
from code_commit.check import RunInputs
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.commands.rollup import make_rollup
from code_commit.commands.run import run_main_job
from code_commit.errors import CodeCommitError, NotSetUpError
from code_commit.llm.keys import find_secrets
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.runs.progress import Progress
from code_commit.runs.record import Event, RunRecord
from code_commit.settings import SETTINGS, validate_settings

__all__ = ["NotSetUpError", "rollup", "run"]


def rollup(
    directory: str | os.PathLike[str] = ".",
    pathspecs: Sequence[str] = (),
    *,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    select: bool = False,
    **settings: Any,
) -> Codebase:
    """Write codeRollup.txt as `code-commit rollup` does, and return what is in it and what was left out, and why.

    Raises NotSetUpError; with `select` also LLMError and RejectedResponseError. Nothing is printed.
    """
    project = find_project(Path(directory))
    lists = {"pathspecs": pathspecs, "exclude": exclude, "include": include}
    validate_settings(lists | settings, SETTINGS | dict.fromkeys(lists, SETTINGS["rollup_exclude"]))
    files = CodebaseRequest(pathspecs, exclude, include, select=select)
    with hardened_meanwhile():
        return make_rollup(project, {"quiet": True, **settings}, files, Progress(Redactor(find_secrets(project))))


def run(
    directory: str | os.PathLike[str] = ".",
    *,
    query: str | None = None,
    on_step: Callable[[RunRecord, Event], object] | None = None,
    **settings: Any,
) -> RunRecord:
    """Run the main job in a project's folder and return its record, whatever its end; `exit_code` says which.

    `query` is the task, in place of agent-config/query.txt. `settings` are those of config.toml (`model="openai"`,
    `max_repairs=1`); they go before the environment and the file. `on_step` is called after each step, when run.json
    has it. Nothing is printed.

    Raises NotSetUpError when the run could not begin (exit code 2): nothing was sent or changed then.
    """
    project = find_project(Path(directory))
    progress = Progress(Redactor(find_secrets(project)), quiet=True, on_step=on_step)
    options = {"quiet": True, **settings}
    try:
        with hardened_meanwhile():
            return run_main_job(project, options, progress, RunInputs(query=query))
    except CodeCommitError:
        if progress.record is None:
            raise
        return progress.record
