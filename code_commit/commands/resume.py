"""`code-commit resume`: go on with an interrupted run at its next step; nothing is paid for twice.

The log says what was done: a response that is there is not asked for again, a background job whose id is there is
fetched, applied changes are not applied again, a finished build is not repeated.
"""

import dataclasses
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from code_commit.apply import changed_since, lock_tree
from code_commit.commands.run import job_of, load_ahead, repair_interrupted_apply, rolled_back
from code_commit.config import Settings
from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import Complete, ExchangeListener, Prompt, Response
from code_commit.llm import LLM, Earlier, open_llm
from code_commit.preflight import check_project
from code_commit.progress import Progress
from code_commit.project import Project, log_folders
from code_commit.run_log import RunLog, reopen_run_log
from code_commit.run_record import RunRecord, Status, load_run_record
from code_commit.terminal import shown
from code_commit.workflow import run_workflow

RESUMABLE: frozenset[Status] = frozenset({"running", "interrupted", "llm_error", "build_error", "internal_error"})
"""How a run ends that has a next step; the others came to their end."""


def report_resume(project: Project, run: str, options: Mapping[str, Any], progress: Progress) -> int:
    """Resume a run, report it, and return the exit code."""
    return resume_run(project, run, options, progress).exit_code or 0


def resume_run(project: Project, run: str, options: Mapping[str, Any], progress: Progress) -> RunRecord:
    """Go on with the run whose name begins with `run` ("": the latest) and return its record.

    Its own settings hold, but for the options given now. Raises NotSetUpError where there is nothing to resume, and the
    errors of the steps.
    """
    repair_interrupted_apply(project, progress)
    folder, record = _find_resumable(project, run)
    _check_tree(folder, record, project)
    ready = check_project(project, _options_of(record) | dict(options), chosen=load_ahead)
    if ready.problems:
        raise NotSetUpError("\n".join(ready.problems))
    choice, task, settings = ready.choice, ready.task, ready.settings
    assert choice is not None and task is not None and settings is not None  # noqa: S101, PT018 - no problem was found
    progress.quiet, progress.verbose = settings.quiet, settings.verbose
    with ExitStack() as stack:
        stack.enter_context(lock_tree(project))
        log = stack.enter_context(reopen_run_log(folder, record, ready.redactor, progress))
        stack.enter_context(progress)
        llm = stack.enter_context(open_llm(choice, ready.key, settings, project, _earlier(record)))
        stack.enter_context(rolled_back(project, log, wanted=settings.rollback))
        job = job_of(project, ready, os.environ, _answers(log))
        return run_workflow(job, task, _fetching_first(llm, log), log)


def _find_resumable(project: Project, run: str) -> tuple[Path, RunRecord]:
    folders = [folder for folder in log_folders(project) if folder.name.startswith(run)]
    for folder in reversed(folders):
        try:
            record = load_run_record((folder / "run.json").read_bytes())
        except (OSError, ValueError):
            continue
        if record.command != "run" or record.options.get("dry_run"):
            continue
        if record.status in RESUMABLE:
            return folder, record
        raise NotSetUpError(f"{record.run} has come to its end ({record.status}): there is nothing to resume")
    which = f"no run {shown(run)}" if run else "no run"
    raise NotSetUpError(f"there is {which} to resume: code-commit log lists the runs")


def _check_tree(folder: Path, record: RunRecord, project: Project) -> None:
    """Raise NotSetUpError unless what the run has applied is still in the tree: its next step builds on it."""
    if record.rolled_back:
        raise NotSetUpError(f"{record.run} was rolled back: there is nothing to resume, start a new run")
    changed = changed_since(folder / "snapshot", project)
    if changed:
        names = ", ".join(map(shown, changed))
        raise NotSetUpError(f"{record.run} cannot be resumed, its files changed since: {names}; start a new run")


def _options_of(record: RunRecord) -> dict[str, Any]:
    """Return the settings that the run had, and its model: a default may have changed since.

    A setting of an older version that is no longer one is left out.
    """
    from pydantic import TypeAdapter, ValidationError

    known = {field.name for field in dataclasses.fields(Settings)}
    options = {name: value for name, value in record.options.items() if name in known}
    try:
        settings = TypeAdapter(Settings).validate_python(options)
    except ValidationError as error:
        raise NotSetUpError(f"{record.run} cannot be resumed: its settings are those of another version") from error
    return {name: getattr(settings, name) for name in options} | {"model": record.model}


def _answers(log: RunLog) -> str:
    applied = [attempt.number for attempt in log.record.attempts if attempt.verdict == "applied"]
    return "".join((log.folder / f"{number}-response.txt").read_text("utf-8", "replace") for number in applied)


def _earlier(record: RunRecord) -> Earlier:
    answered = [attempt for attempt in record.attempts if attempt.finish_reason is not None]
    return Earlier(len(answered), sum(attempt.cost_usd or 0.0 for attempt in answered))


def _fetching_first(llm: LLM, log: RunLog) -> Complete:
    """Return what asks the LLM, but fetches the answer of a background job that an interrupted call had created."""
    attempts = log.record.attempts
    pending = attempts[-1].job_id if attempts and attempts[-1].finish_reason is None else None

    def complete(prompt: Prompt, listener: ExchangeListener) -> Response:
        nonlocal pending
        job, pending = pending, None
        if job is not None:
            try:
                return llm.fetch(job, listener)
            except LLMError as error:
                log.add_warning(f"the answer that was on its way cannot be fetched, asking again: {error}")
        return llm.complete(prompt, listener)

    return complete
