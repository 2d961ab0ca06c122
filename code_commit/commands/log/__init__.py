"""`code-commit log`: the runs as a table, or one run attempt by attempt, from their run.json."""

import json

from code_commit.commands.log.description import describe
from code_commit.commands.log.runs import find_run, read_runs
from code_commit.commands.log.table import table
from code_commit.project import Project
from code_commit.run_record import run_record_schema
from code_commit.terminal import terminal_width


def log_command(project: Project, run: str | None, *, schema: bool) -> str:
    """Return what the command prints. Raises NotSetUpError for a run that is not there."""
    if schema:
        return json.dumps(run_record_schema(), indent=2)
    return describe(project, find_run(project, run)) if run else table(read_runs(project), terminal_width())
