"""What the command line says when a command ends with an error, with whatever may be a key censored."""

from __future__ import annotations  # types cost no time at start-up

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from code_commit.errors import CodeCommitError
    from code_commit.project import Project
    from code_commit.redaction import Redactor


def complain(message: str, error: BaseException) -> None:
    """Print what went wrong, with whatever may be a key censored."""
    from code_commit.progress import Progress

    Progress(redactor_of(unknown_project())).error("\n".join([message, *getattr(error, "__notes__", [])]))


def fail(error: CodeCommitError, *, as_json: bool) -> int:
    """Return the exit code of a command that ends with an error and has no record; print it in JSON if asked to."""
    if as_json:
        from code_commit.commands.report import print_failure

        print_failure(error, redactor_of(unknown_project()))
    return error.exit_code


def redactor_of(project: Project) -> Redactor:
    from code_commit.keys import find_secrets
    from code_commit.redaction import Redactor

    return Redactor(find_secrets(project))


def unknown_project() -> Project:
    """Return the current folder as a project of which nothing is known yet."""
    from code_commit.project import Project

    return Project(root=_current_folder())


def _current_folder() -> Path:
    from pathlib import Path

    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)
