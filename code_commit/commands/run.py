"""`code-commit run`: the main job, from the preflight to the end of the workflow."""

import importlib
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from code_commit.apply import lock_tree, needs_recovery, recover, restore
from code_commit.commands.standard_output import show_diff
from code_commit.errors import ApplyError, NotSetUpError
from code_commit.files import ending_signals_held
from code_commit.llm import open_llm
from code_commit.model_choice import ModelChoice
from code_commit.preflight import Readiness, check_project
from code_commit.progress import Progress
from code_commit.project import Project, read_codebase
from code_commit.run_log import RunLog, open_run_log
from code_commit.run_record import Command, RunRecord
from code_commit.verify import capture_rules
from code_commit.workflow import Job, run_dry, run_workflow


def report_run(project: Project, options: Mapping[str, Any], progress: Progress) -> int:
    """Run the main job, report it as its options say, and return its exit code."""
    record = run_main_job(project, options, progress)
    if record.options["dry_run"] and not record.options["json"]:
        show_diff(project.root / record.log_dir / "1-changes.diff")
    return record.exit_code or 0


def run_main_job(
    project: Project, options: Mapping[str, Any], progress: Progress, environment: Mapping[str, str] = os.environ
) -> RunRecord:
    """Run the whole job in the project and return its record.

    Raises NotSetUpError before anything was sent or changed, and the errors of the steps; the log has the end of
    every run that began.
    """
    repair_interrupted_apply(project, progress)
    ready = check_project(project, options, environment, load_ahead)
    if ready.problems:
        hint = [] if project.agent_config.exists() else ["code-commit init writes what is missing"]
        raise NotSetUpError("\n".join(ready.problems + hint))
    choice, task = ready.choice, ready.task
    assert choice is not None and task is not None  # noqa: S101, PT018 - no problem was found
    with begun(project, "run", ready, progress) as log:
        job = job_of(project, ready, environment)
        with open_llm(choice, ready.key, job.settings, project) as llm:
            if job.settings.dry_run:
                return run_dry(job, task, llm.complete, log)
            with rolled_back(project, log, wanted=job.settings.rollback):
                return run_workflow(job, task, llm.complete, log)


def load_ahead(choice: ModelChoice) -> None:
    """Load the modules of the later steps on a thread: half of a short run's time, while git and the sandbox answer."""
    needed = ["code_commit.llm.network"] if choice.provider != "replay" else []
    needed += ["code_commit.apply.carry_out"]
    threading.Thread(target=_load, args=(needed,)).start()


def _load(names: list[str]) -> None:
    with suppress(ImportError):  # who needs the module will say so
        for name in names:
            importlib.import_module(name)


def repair_interrupted_apply(project: Project, progress: Progress) -> None:
    """Bring the tree to a whole state if a run was killed while it changed files. Raises ApplyError."""
    if needs_recovery(project):
        with lock_tree(project):
            message = recover(project)
        if message:
            progress.say(message)


@contextmanager
def begun(project: Project, command: Command, ready: Readiness, progress: Progress) -> Iterator[RunLog]:
    """Begin a run that is ready: its lock, its log, its lines on the terminal, its first warnings."""
    settings = ready.settings
    assert settings is not None  # noqa: S101 - no problem was found
    progress.quiet, progress.verbose = settings.quiet, settings.verbose
    with ExitStack() as stack:
        if ready.sandbox and ready.sandbox.namespace is not None:
            stack.callback(os.close, ready.sandbox.namespace)  # a supervisor may run many in one process
        stack.enter_context(lock_tree(project))
        log = open_run_log(project, command, settings, ready.redactor, progress)
        log.record.model, log.record.base_url = str(ready.choice or ""), ready.base_url
        stack.enter_context(log)
        stack.enter_context(progress)
        log.add_warnings(ready.warnings)
        yield log


def job_of(project: Project, ready: Readiness, environment: Mapping[str, str], answers: str = "") -> Job:
    """Return the rules of a run that is ready, as they are before anything is changed.

    `answers` are the LLM's own earlier responses in a run that is resumed: it knows what they hold.
    """
    settings = ready.settings
    assert settings is not None  # noqa: S101 - no problem was found
    has_codebase = ready.task is None and project.codebase_file.exists()
    codebase = ready.task.codebase if ready.task else read_codebase(project) if has_codebase else None
    rules = capture_rules(project, settings, codebase and codebase + answers, ready.redactor)
    return Job(project, settings, rules, tuple(ready.keys.values()), dict(environment), ready.sandbox)


@contextmanager
def rolled_back(project: Project, log: RunLog, *, wanted: bool) -> Iterator[None]:
    """Put every file back if the run ends in here without a passing build, and `--rollback` wants it."""
    try:
        yield
    finally:
        if wanted and log.record.status != "success" and log.snapshot.is_dir():
            with ending_signals_held():
                _roll_back(project, log)


def _roll_back(project: Project, log: RunLog) -> None:
    """Put every file back; what a build made of one of them is kept in the log, and `undo` could bring it back."""
    try:
        restored = restore([log.snapshot], project, log.folder / "rolled-back", force=True)
    except ApplyError as error:
        log.add_warning(f"not rolled back: {error}")
    else:
        log.record.rolled_back = True
        log.add_warning(f"rolled back: every file is as it was before the run ({len(restored)} put back)")
