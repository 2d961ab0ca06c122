"""`code-commit resume`: continue an interrupted run at its next step; only a cut-off stream is paid for twice.

The log has the answers, or their replies, and the failed builds; background jobs are fetched, and applied changes
stay. A passed build is repeated, as the tree may have changed.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from code_commit.apply.plan import require_fit_paths
from code_commit.apply.recover import recover
from code_commit.apply.restore import changed_since
from code_commit.check import RunInputs, plan_run
from code_commit.check.plan import logged_in
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase, parse_codebase
from code_commit.commands import HOW_NAMED, RUN
from code_commit.commands.approve import approval_of
from code_commit.commands.output import Output, recording, show_end
from code_commit.commands.rollup import make_rollup
from code_commit.commands.run import run_main_job
from code_commit.errors import EXIT_SUCCESS, CodeCommitError, NotSetUpError
from code_commit.files import open_regular, read_regular_file
from code_commit.first_build import with_first_output
from code_commit.interrupts import interruptible
from code_commit.llm.keys import key_of, load_keys
from code_commit.llm.models import check_base_url, choose_model
from code_commit.llm.vendor import LlmConfig
from code_commit.project import Project
from code_commit.regex import regex
from code_commit.runs.list import (
    UnreadableRun,
    argument_of,
    changed_files,
    find_run_folders,
    is_standing,
    read_run,
    status_of,
)
from code_commit.runs.log import CODEBASE_OF_RUN, QUERY_OF_RUN, read_sight
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunEntry, RunRecord
from code_commit.runs.replies import read_reply
from code_commit.runs.words import headline_of
from code_commit.settings import Facet, Options, settings_for
from code_commit.sources import load_settings, validate_settings
from code_commit.start import start_run
from code_commit.terminal import shown
from code_commit.workflow import applied_paths, attempt_loop

DESCRIPTION = """\
Continues the latest interrupted run, or the named one, at its next step. Runs
that cannot continue and left no changes in the tree are skipped. An answer that
is in the log, or that the API still has, is not requested again. A failed build
is not repeated; a passed build is. The run keeps its model and its settings,
whatever config.toml says now; options given here override them."""

EXAMPLES = """\
code-commit resume
code-commit resume 2026-11-21-19-51 --max-cost 5"""
SETTINGS = settings_for(Facet.RESUME, Facet.OUTPUT)
_NUMBERED = regex(rf"(\d+)-{re.escape(CODEBASE_OF_RUN)}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of the command; `options` are the settings among them."""

    run: Annotated[str, "RUN", f"resume this run: {HOW_NAMED}", RUN] = ""
    options: Options = field(default_factory=dict)


def run(arguments: Arguments) -> int:
    options = {**Output()._asdict(), **arguments.options}  # this command line decides what is printed
    with recording("run", options) as (project, progress):
        return _resume(project, arguments.run, options, progress)


def _resume(project: Project, name: str, options: Options, progress: Progress) -> int:
    progress.say(recover(project))
    found, passed_over = _find_resumable(project, name)
    record = found.record
    for why in passed_over:
        progress.say(f"skipped: {why}")
    progress.say(f"resuming {record.run}")
    if record.command == "rollup":
        return _continue_choice(project, found, options, progress)
    _tell_kept_llm(project, record, options, progress)
    inputs = _inputs_of(found, project)
    if inputs.codebase is None and record.request and not record.attempts:  # killed in its first build, or soon after
        return show_end(project, run_main_job(project, options, progress, inputs))
    plan = plan_run(project, options, inputs)
    if plan.lack:
        raise plan.lack
    if plan.codebase is None:
        raise NotSetUpError(f"{record.run} cannot be resumed because its log has no {CODEBASE_OF_RUN}: start a new run")
    plan = with_first_output(plan, *found)
    approve = approval_of(plan.settings, progress)
    with start_run(plan, plan.codebase, progress, approve=approve) as run:
        return interruptible(lambda: attempt_loop(run)).final_code


def _continue_choice(project: Project, found: RunEntry, options: Options, progress: Progress) -> int:
    inputs = _inputs_of(found, project)
    if found.record.request.get("for_run"):
        return show_end(project, run_main_job(project, options, progress, inputs))
    request = _request_of(found.record)
    make_rollup(project, options, request._replace(query=inputs.query or ""), progress, found)
    return EXIT_SUCCESS


def _find_resumable(project: Project, name: str) -> tuple[RunEntry, list[str]]:
    """Return the named run, or the latest one that can go on, and why later ones were passed over.

    Raises NotSetUpError where there is none, where a run that ended followed, and for a run that cannot go on but
    whose changes are in the tree.
    """
    later, unfit = "", list[NotSetUpError]()
    for folder in reversed(find_run_folders(project, name)):
        record = read_run(folder)
        if isinstance(record, UnreadableRun):
            continue
        ended, is_dry = f"{record.run} ({record.command}: {_end_of(record)})", bool(record.options.get("dry_run"))
        has_run = record.is_auxiliary and not argument_of(folder) and record.request.get("for_run")
        goes_on = record.has_next_step or has_run
        if goes_on and later:
            raise NotSetUpError(
                f"{record.run} is unfinished ({_end_of(record)}), but {later} ran later;"
                f" to continue the unfinished run: code-commit resume {record.run}"
            )
        if goes_on:
            try:
                _require_fit(folder, record, project)
            except NotSetUpError as error:
                unfit.append(error)
                if name or (changed_files(folder) and is_standing(folder)):
                    raise NotSetUpError(f"{error}; start a new run") from error
                continue
            return RunEntry(folder, record), list(map(str, unfit))
        if name:
            why = "start the dry run again" if is_dry else "nothing to resume"
            raise NotSetUpError(f"{ended} has no next step: {why}")
        is_idle = not (record.attempts or changed_files(folder))  # nothing was asked, and nothing changed
        later = later or ("" if record.command == "undo" or record.is_auxiliary or is_dry or is_idle else ended)
    if unfit:
        raise NotSetUpError(f"{unfit[0]}; start a new run") from unfit[0]
    which = f"no run {shown(name)}" if name else "no interrupted run"
    raise NotSetUpError(f"there is {which} to resume: code-commit log lists the runs")


def _end_of(record: RunRecord) -> str:
    """Return how a run ended, such as `the LLM could not be called`."""
    headline = headline_of(record, status_of(record))
    return headline[0].lower() + headline[1:]


def _require_fit(folder: Path, record: RunRecord, project: Project) -> None:
    """Raise NotSetUpError unless the run's settings and model are known and all that its next step needs is there."""
    _check_tree(folder, record, project)
    try:
        validate_settings(logged_in(record))
    except NotSetUpError as error:
        raise NotSetUpError(f"{record.run} cannot be resumed: its settings are from another version") from error
    try:
        if record.model:
            choose_model(record.model)
    except NotSetUpError as error:
        told = f"its model {shown(record.model)} is unknown to this version"
        raise NotSetUpError(f"{record.run} cannot be resumed: {told}") from error
    _inputs_of(RunEntry(folder, record), project)


def _inputs_of(found: RunEntry, project: Project) -> RunInputs:
    """Return the run's task, its codebase unless it is a choice of files, and itself. Raises NotSetUpError."""
    folder, record = found
    query = _text_of(folder, QUERY_OF_RUN)
    if record.command == "rollup":
        request = _request_of(record)
        return RunInputs(command=_command_of(record), query=query or request.query or None, resumed=found)
    fresh, codebase = record.request.get("fresh") is True, _codebase_of(folder, project)
    return RunInputs(command=_command_of(record), query=query, codebase=codebase, fresh=fresh, resumed=found)


def _check_tree(folder: Path, record: RunRecord, project: Project) -> None:
    """Raise NotSetUpError unless the run's changes are still in the tree: its next step builds on them."""
    if record.taken_back:
        raise NotSetUpError(f"{record.run} was {record.taken_back}: there is nothing to resume")
    changed = changed_since(folder / "snapshot", project)
    if changed:
        names = ", ".join(map(shown, changed))
        raise NotSetUpError(f"{record.run} cannot be resumed because its files have changed since: {names}")
    require_fit_paths(_answered(folder, record, project), project, what=f"the log of {shown(folder.name)}")


def _answered(folder: Path, record: RunRecord, project: Project) -> Iterator[str]:
    """Yield the paths of the applied answers. Raises NotSetUpError where the next prompt needs an unreadable file."""
    for attempt in record.attempts:
        text_file = f"{attempt.number}-response.txt"
        is_in_reply = (
            attempt is record.attempts[-1]
            and not (folder / text_file).exists()
            and read_reply(folder, attempt.number) is not None
        )
        if attempt.verdict == "applied" or (attempt.finish_reason is not None and not is_in_reply):
            with _needed(folder, text_file) as file:
                text = read_regular_file(file).decode("utf-8", "surrogatepass")
                yield from applied_paths(project, attempt, text) if attempt.verdict == "applied" else ()
        if attempt.build is not None:
            with _needed(folder, f"{attempt.number}-build.txt") as file:
                open_regular(file, follow_link=True).close()


@contextmanager
def _needed(folder: Path, name: str) -> Iterator[Path]:
    """Give a file of the log to be read. Raises NotSetUpError where that fails."""
    try:
        yield folder / name
    except (OSError, ValueError, CodeCommitError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise NotSetUpError(
            f"{shown(folder.name)} cannot be resumed because its {name} cannot be read: {why}"
        ) from error


def _command_of(record: RunRecord) -> Literal["run", "repair"]:
    """Return the command that a run, or the one that a choice of files was for, continues."""
    return "repair" if record.command == "repair" or record.request.get("repairs") else "run"


def _request_of(record: RunRecord) -> CodebaseRequest:
    """Return what the choice of files was asked for. Raises NotSetUpError."""
    from pydantic import TypeAdapter, ValidationError  # `--help` does without

    kept = {name: value for name, value in record.request.items() if name in CodebaseRequest._fields}
    try:
        return TypeAdapter(CodebaseRequest).validate_python(kept)
    except ValidationError as error:
        raise NotSetUpError(
            f"{record.run} cannot be resumed: its run.json does not say which codebase to make"
        ) from error


def _llm_of(project: Project, options: Options, logged: Options | None = None) -> LlmConfig:
    settings, keys = load_settings(project, options, logged=logged), load_keys(project)
    llm = LlmConfig(choose_model(settings.model, keys, keys.unfit), None, settings)
    with suppress(NotSetUpError):  # the plan says it
        return llm._replace(key=key_of(llm, keys, project.root))
    return llm


def _tell_kept_llm(project: Project, record: RunRecord, options: Options, progress: Progress) -> None:
    """Say which model and address the run keeps, where a new run would take others."""
    with suppress(NotSetUpError):
        own, new = _llm_of(project, options, logged_in(record)), _llm_of(project, options)
        address = check_base_url(own.choice, own.settings)
        if (own.choice, address) != (new.choice, check_base_url(new.choice, new.settings)):
            ways = "--base-url changes the address; for another model start a new run with --model NAME"
            progress.say(f"the run keeps {own.choice}{address and f' at {address}'}: {ways}")


def _text_of(folder: Path, name: str) -> str | None:
    """Return a text of the run's own; None where it took that of agent-config."""
    with _needed(folder, name) as file, suppress(FileNotFoundError):
        return read_regular_file(file).decode("utf-8")
    return None


def _codebase_of(folder: Path, project: Project) -> Codebase | None:
    """Return the codebase of the run's latest prompt, None where an older version kept none."""
    numbers = [found[1] for path in folder.iterdir() if (found := _NUMBERED.fullmatch(path.name))]
    names = [f"{number}-{CODEBASE_OF_RUN}" for number in sorted(numbers, key=int, reverse=True)]
    texts = ((name, _text_of(folder, name)) for name in (*names, CODEBASE_OF_RUN))
    name, text = next((found for found in texts if found[1] is not None), ("", None))
    if text is None:
        return None
    sight = read_sight(folder, name)
    return Codebase([text], sight.views, sight.basis) if sight else parse_codebase(text, project.root)
