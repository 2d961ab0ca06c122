"""`code-commit run`: the main job, from the preflight to the end of the workflow."""

import os
import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from code_commit.apply import lock_tree, recover, restore
from code_commit.build import Builder, harden_process
from code_commit.codebase.select import find_stale_files
from code_commit.commands import add_main_job
from code_commit.commands.approve import approval_of
from code_commit.commands.asking import asking
from code_commit.commands.chooser import FileChooser
from code_commit.commands.output import recording, show_end
from code_commit.errors import ApplyError, NotSetUpError
from code_commit.files import ending_signals_held, read_regular_file
from code_commit.job import Job, Window
from code_commit.llm.models import longest_prompt
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN
from code_commit.preflight import Ready, ReadyTree, RollUp, inspect_project, require_ready
from code_commit.project import AGENT_CONFIG, Project, read_codebase, read_text
from code_commit.redaction import Redactor
from code_commit.runs.list import remove_old_runs
from code_commit.runs.log import RunLog, open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunRecord, Status
from code_commit.runs.review import review_changes
from code_commit.settings import Settings
from code_commit.verify import capture_rules
from code_commit.verify.ignored import dump_ignore_files, load_ignore_files
from code_commit.workflow import run_dry, run_workflow

_IGNORE_FILES = "ignore-files.json"
"""The file of a run's log with the ignore rules of before the run."""

DESCRIPTION = """\
The main job, the same as no command. Asks the LLM once for the change that
agent-config/query.txt describes, or -m, verifies the whole answer, applies all
of it or nothing, and runs build.sh. While the build fails it asks for a repair,
three times at most. Nothing is committed. With -m it writes codeRollup.txt anew
first, as code-commit rollup does, and makes agent-config/ where it is missing."""

EXAMPLES = """\
code-commit
code-commit -m 'make the slug drop punctuation'
code-commit run --model anthropic:claude-opus-5-5 --max-cost 2
code-commit run --model chat:qwen3-coder --base-url http://127.0.0.1:11434/v1
code-commit run --allow 'src/' --allow 'tests/' --rollback
code-commit run --dry-run >proposed.diff"""


def add_arguments(parser: ArgumentParser) -> None:
    add_main_job(parser)


def run(options: dict[str, Any]) -> int:
    task, file = options.pop("task", None), options.pop("query", None)
    with recording("run", options) as (project, progress):
        query = read_text(Path(file), "write the task into it", file) if file else task
        return show_end(
            project, run_main_job(project, options, progress, task=GivenTask(query, fresh=task is not None))
        )


class GivenTask(NamedTuple):
    """The task of a run, None for that of query.txt. `fresh` wants codeRollup.txt written anew, as settings may too.

    `choice` is a choice of files for it that was interrupted, to go on with.
    """

    query: str | None = None
    fresh: bool = False
    choice: tuple[Path, RunRecord] | None = None


TASK_OF_FILES = GivenTask()


def rolled_up(project: Project, task: GivenTask = TASK_OF_FILES, chooser: FileChooser | None = None) -> RollUp:
    """Return what makes the codebase of a run anew.

    It makes agent-config where it is missing, and writes codeRollup.txt; without a `chooser` it writes and asks
    nothing.
    """

    def make(settings: Settings, redactor: Redactor) -> str:
        from code_commit.commands.rollup import ALL_THAT_IS_LEFT, FileSelection, codebase_of, roll_up

        fit, select = ALL_THAT_IS_LEFT if settings.rollup == "fit" else None, settings.rollup == "select"
        files = FileSelection(fit=fit, select=select, query=task.query, for_run=True)
        if chooser is None:
            return codebase_of(project, settings, redactor, files)
        progress = chooser.progress
        progress.redactor, progress.quiet, progress.verbose = redactor, settings.quiet, settings.verbose
        if not project.agent_config.exists():
            progress.say(f"making {AGENT_CONFIG}/, which is missing")
        roll_up(project, settings, files, progress, chooser)
        return read_codebase(project)

    return RollUp(make, task.fresh)


def run_main_job(
    project: Project,
    options: Mapping[str, Any],
    progress: Progress,
    environment: Mapping[str, str] = os.environ,
    *,
    task: GivenTask = TASK_OF_FILES,
) -> RunRecord:
    """Run the whole job in the project and return its record.

    Raises NotSetUpError before anything was sent or changed, and the errors of the steps; the log has the end of
    every run that began.
    """
    if message := recover(project):
        progress.say(message)
    chooser = FileChooser(project, progress, environment, task.choice)
    roll_up = rolled_up(project, task, chooser)
    ready = require_ready(project, *inspect_project(project, options, environment, task.query, roll_up))
    with begun(project, ready, progress, lambda: _open_log(ready, task.query, chooser)) as log:
        log.add_warnings(ready.warnings)
        log.add_warning("codebase", *find_stale_files(project, ready.task.codebase))
        return make_attempts(project, ready, log, progress, environment)


def make_attempts(
    project: Project, ready: Ready, log: RunLog, progress: Progress, environment: Mapping[str, str] = os.environ
) -> RunRecord:
    """Make the attempts of a run that has begun, those that are left of one that goes on, and return its record."""
    applied = [attempt.number for attempt in log.record.attempts if attempt.verdict == "applied"]
    answers = ((log.folder / f"{number}-response.txt").read_text("utf-8", "replace") for number in applied)
    known = "".join([ready.task.codebase, *answers])
    with (
        job_of(project, ready, known, environment, approval_of(ready, log, progress)) as job,
        asking(ready.llm, project, log, ready.fallback) as complete,
    ):
        _hold_ignore_files(job, log)
        if job.settings.dry_run:
            return run_dry(job, ready.task, complete, log)
        prepare_end(job, log)
        return run_workflow(job._replace(window=window_of(project, ready, log)), ready.task, complete, log)


def _hold_ignore_files(job: Job, log: RunLog) -> None:
    """Let the ignore rules of before the run hold in all of it: its builds may change them. Raises NotSetUpError."""
    try:
        job.rules.ignore_files.update(load_ignore_files(read_regular_file(log.folder / _IGNORE_FILES)))
    except FileNotFoundError:
        log.write_json(_IGNORE_FILES, dump_ignore_files(job.rules.ignore_files))
    except (OSError, ValueError) as error:
        raise NotSetUpError(f"{log.shown_name(_IGNORE_FILES)} cannot be read, start a new run: {error}") from error


QUERY_OF_RUN = "query.txt"
"""The file of a run's log that holds its task, where that is not agent-config/query.txt."""
CODEBASE_OF_RUN = "codebase.txt"
"""The file of a run's log that holds its codebase, where a repair did not fit with that of codeRollup.txt."""


def _open_log(ready: Ready, query: str | None, chooser: FileChooser) -> RunLog:
    log = open_run_log(chooser.project, "run", ready.settings, ready.redactor, chooser.progress)
    if query is not None:
        log.write_text(QUERY_OF_RUN, query)
    log.record.model, log.record.base_url = str(ready.llm.choice), ready.base_url
    log.record.query = ready.task.query.strip().split("\n")[0]
    chooser.note_in(log.record)
    return log


@contextmanager
def begun(project: Project, ready: ReadyTree, progress: Progress, open_log: Callable[[], RunLog]) -> Iterator[RunLog]:
    """Begin a run that is ready: its lock, its log, its lines on the terminal."""
    harden_process()
    progress.quiet, progress.verbose = ready.settings.quiet, ready.settings.verbose
    with ExitStack() as stack:
        stack.enter_context(lock_tree(project))
        log = stack.enter_context(open_log())
        stack.enter_context(progress)
        if ready.settings.keep_runs or ready.settings.keep_days:
            removal = remove_old_runs(project, ready.settings.keep_runs, ready.settings.keep_days)
            log.add_warning("log", *map(str, removal.failures))
        yield log


@contextmanager
def job_of(
    project: Project,
    ready: ReadyTree,
    codebase: str | None,
    environment: Mapping[str, str] = os.environ,
    approve: Callable[[bytes], None] | None = None,
) -> Iterator[Job]:
    """Give the rules of a run that is ready, as they are before anything is changed.

    `codebase` is what the LLM knows of the project, None where nobody can tell; `approve` is asked before each answer
    is applied.
    """
    rules = capture_rules(project, ready.settings, codebase, ready.redactor)
    with Builder(project, ready.sandbox) as builder:
        keys = tuple(ready.keys.values())
        yield Job(project, ready.settings, rules, keys, dict(environment), builder, ready.tree, approve)


def window_of(project: Project, ready: Ready, log: RunLog) -> Window:
    """Return how long a prompt may be, and what makes a shorter codebase of a repair, if the settings want it."""
    tokens = longest_prompt(ready.llm.choice, ready.settings)
    longest = int(tokens * CHARACTERS_PER_TOKEN) if tokens else None
    if ready.settings.rollup not in ("fit", "select"):
        return Window(longest)
    whole = re.findall(r"^--- (.+)(?<! \(outline\)) ---$", ready.task.codebase, re.MULTILINE)
    chosen = "\n".join(whole) if ready.settings.rollup == "select" else ""
    from code_commit.commands.rollup import FileSelection, codebase_of

    def fit(characters: int, mentions: str) -> str:
        tokens = max(int(characters / CHARACTERS_PER_TOKEN), 1)
        mentions = mentions.replace(f"{project.root}/", " ")
        files = FileSelection(fit=tokens, query=ready.task.query, mentions=f"{chosen}\n{mentions}")
        codebase = codebase_of(project, ready.settings, ready.redactor, files)
        log.write_text(CODEBASE_OF_RUN, codebase)
        log.add_warning("codebase", f"a prompt did not fit: its codebase was made to fit into {tokens:,} tokens")
        return codebase

    return Window(longest, fit)


def prepare_end(job: Job, log: RunLog) -> None:
    """Before its end is written down: roll back what failed, if `--rollback` wants it, and look at what builds did."""

    def end(status: Status) -> None:
        with ending_signals_held():
            if job.settings.rollback and status != "success" and log.snapshot.is_dir():
                _roll_back(job.project, log)
            if job.before is not None and any(log.folder.glob("*-build.txt")):
                log.add_warning("review", *review_changes(job.project, job.before, log.record))

    log.before_end = end


def _roll_back(project: Project, log: RunLog) -> None:
    """Put every file back; what a build made of one of them is kept in the log, and `undo` could bring it back."""
    try:
        restored = restore(log.snapshot, project, log.folder / "rolled-back", force=True)
    except ApplyError as error:
        log.add_warning("rollback", f"not rolled back: {error}")
    else:
        log.record.rolled_back = True
        done = f"what answers changed is as it was before the run ({len(restored)} put back)"
        log.add_warning("rollback", f"rolled back: {done}")
