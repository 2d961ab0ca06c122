"""The main job as a call, for a supervisor that is written in Python."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from code_commit.commands.run import run_main_job
from code_commit.errors import CodeCommitError
from code_commit.keys import find_secrets
from code_commit.progress import Progress
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.run_record import Event, RunRecord


def run(
    directory: str | os.PathLike[str] = ".",
    *,
    on_step: Callable[[RunRecord, Event], object] | None = None,
    **settings: Any,
) -> RunRecord:
    """Run the main job in a project's folder and return its record, whatever its end; `exit_code` says which.

    `settings` are those of config.toml (`model="openai"`, `max_repairs=1`); they go before the environment and the
    file. `on_step` is called after each step, when run.json has it. Nothing is printed.

    Raises NotSetUpError when the run could not begin (exit code 2): nothing was sent or changed then.
    """
    project = find_project(Path(directory))
    progress = Progress(Redactor(find_secrets(project)), quiet=True)
    progress.on_step = on_step
    try:
        return run_main_job(project, {"quiet": True, **settings}, progress)
    except CodeCommitError:
        if progress.record is None:
            raise
        return progress.record
