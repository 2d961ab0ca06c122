"""`code-commit run`: the main job, from the preflight to the end of the workflow."""

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from code_commit import __version__
from code_commit.apply import lock_tree, needs_recovery, recover
from code_commit.errors import NotSetUpError
from code_commit.llm import open_llm
from code_commit.preflight import Readiness, check_project
from code_commit.progress import Progress
from code_commit.project import Project
from code_commit.run_log import open_run_log
from code_commit.run_record import RunRecord, utc_timestamp
from code_commit.verify import capture_rules
from code_commit.workflow import Job, run_workflow


def report_run(project: Project, options: Mapping[str, Any], progress: Progress) -> int:
    """Run the main job, with `--json` print its record on stdout however it ends, and return its exit code."""
    try:
        return run_main_job(project, options, progress).exit_code or 0
    except NotSetUpError as error:
        if options.get("json") and progress.record is None:
            _print_record(_record_of_no_run(project, options, error), progress)
        raise
    finally:
        if progress.record and progress.record.options["json"]:
            _print_record(progress.record, progress)


def _print_record(record: RunRecord, progress: Progress) -> None:
    sys.stdout.buffer.write(progress.redactor.redact_json(asdict(record)))
    sys.stdout.flush()


def _record_of_no_run(project: Project, options: Mapping[str, Any], error: NotSetUpError) -> RunRecord:
    """Return the record of a run that did not begin: a supervisor reads the same shape every time."""
    now = utc_timestamp()
    return RunRecord(
        version=__version__,
        run="",
        started=now,
        finished=now,
        root=str(project.root),
        log_dir="",
        pid=os.getpid(),
        status=error.status,
        exit_code=error.exit_code,
        message=str(error),
        options=dict(options),
    )


def run_main_job(
    project: Project, options: Mapping[str, Any], progress: Progress, environment: Mapping[str, str] = os.environ
) -> RunRecord:
    """Run the whole job in the project and return its record.

    Raises NotSetUpError before anything was sent or changed, and the errors of the steps; the log has the end of
    every run that began.
    """
    repair_interrupted_apply(project, progress)
    ready = check_project(project, options, environment)
    if ready.problems:
        raise NotSetUpError("\n".join(ready.problems))
    with ExitStack() as stack:
        stack.enter_context(lock_tree(project))
        return _run(project, ready, progress, environment, stack)


def repair_interrupted_apply(project: Project, progress: Progress) -> None:
    """Bring the tree to a whole state if a run was killed while it changed files. Raises ApplyError."""
    if needs_recovery(project):
        with lock_tree(project):
            message = recover(project)
        if message:
            progress.say(message)


def _run(
    project: Project, ready: Readiness, progress: Progress, environment: Mapping[str, str], stack: ExitStack
) -> RunRecord:
    settings, choice, task = ready.settings, ready.choice, ready.task
    assert settings is not None and choice is not None and task is not None  # noqa: S101, PT018 - no problem was found
    rules = capture_rules(project, settings, task.codebase, ready.redactor)
    log = open_run_log(project, settings, ready.redactor, progress.step, progress.live)
    log.record.model = str(choice)
    log.record.base_url = ready.base_url
    stack.enter_context(log)
    progress.quiet, progress.verbose = settings.quiet, settings.verbose
    stack.enter_context(progress)
    for warning in ready.warnings:
        log.add_warning(warning)
    llm = stack.enter_context(open_llm(choice, ready.key, settings, project))
    job = Job(project, settings, task, rules, tuple(ready.keys.values()), dict(environment), ready.sandbox)
    return run_workflow(job, llm.complete, log)
