"""The record of a command that changes files, as JSON on stdout, whatever the command's end."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from code_commit.changes import RejectedResponseError
from code_commit.commands.standard_output import print_bytes, wants_json
from code_commit.errors import EXIT_INTERNAL_ERROR, CodeCommitError, Interrupted, NotSetUpError, OutputError
from code_commit.json_documents import plain
from code_commit.progress import Progress
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.run_record import Command, RunRecord, Status, utc_timestamp
from code_commit.version import __version__


@contextmanager
def reported(project: Project, command: Command, options: Mapping[str, Any], progress: Progress) -> Iterator[None]:
    """With `--json` print the record on stdout however the run ends; one that did not begin has the same shape."""
    try:
        yield
    except BrokenPipeError:
        raise
    except BaseException as error:
        if isinstance(error, RejectedResponseError) and progress.quiet:
            error.add_note(str(error))  # otherwise its step has listed the reasons
        if progress.record is None and wants_json(project, options):
            _print_record(_record_of_no_run(project, command, options, error), progress)
        raise
    finally:
        if progress.record and progress.record.options["json"]:
            _print_record(progress.record, progress)


def print_failure(error: BaseException, redactor: Redactor) -> None:
    """Print in JSON what became of a command that has no record: the members that a record has for it."""
    status, exit_code, message = _end_of(error)
    print_bytes(redactor.redact_json({"status": status, "exit_code": exit_code, "message": message}))


def _print_record(record: RunRecord, progress: Progress) -> None:
    try:
        print_bytes(progress.redactor.redact_json(plain(record)))
    except NotSetUpError as error:
        if not record.run:
            raise
        done = f"the run had ended with exit code {record.exit_code}: see {record.log_dir}/run.json"
        raise OutputError(f"{error}; {done}") from error


def _record_of_no_run(
    project: Project, command: Command, options: Mapping[str, Any], error: BaseException
) -> RunRecord:
    now = utc_timestamp()
    status, exit_code, message = _end_of(error)
    return RunRecord(
        version=__version__,
        run="",
        command=command,
        started=now,
        finished=now,
        root=str(project.root),
        log_dir="",
        pid=os.getpid(),
        status=status,
        exit_code=exit_code,
        message=message,
        options=dict(options),
    )


def _end_of(error: BaseException) -> tuple[Status, int, str]:
    if isinstance(error, (CodeCommitError, Interrupted)):
        return cast(Status, error.status), error.exit_code, str(error)
    return "internal_error", EXIT_INTERNAL_ERROR, f"a bug in code-commit: {type(error).__name__}: {error}"
