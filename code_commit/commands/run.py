"""`code-commit run`: the main job, from the preflight to the end of the workflow."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from code_commit.apply import lock_tree, recover, restore
from code_commit.build import Builder, harden_process
from code_commit.check import (
    NOTHING_GIVEN,
    Checked,
    CheckedTree,
    Given,
    check_run,
    request_of,
    require_fit,
    stale_warnings,
    take_task,
)
from code_commit.codebase.make import make_codebase
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.commands import add_main_job
from code_commit.commands.approve import approval_of
from code_commit.commands.asking import asking
from code_commit.commands.output import recording, show_end
from code_commit.errors import ApplyError, NotSetUpError
from code_commit.files import read_regular_file
from code_commit.llm.models import check_base_url
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN
from code_commit.project import AGENT_CONFIG, ROLLUP_SCRIPT, Project
from code_commit.prompts.next import Refit
from code_commit.runs.list import remove_old_runs
from code_commit.runs.log import CODEBASE_OF_RUN, QUERY_OF_RUN, RunLog, open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunRecord, Status
from code_commit.runs.review import review_changes
from code_commit.verify import capture_rules
from code_commit.verify.ignored import dump_ignore_files, load_ignore_files
from code_commit.workflow import Job, run_dry, run_workflow

_IGNORE_FILES = "ignore-files.json"
"""The file of a run's log with the ignore rules of before the run."""

DESCRIPTION = """\
The main job, the same as no command. Asks the LLM once for the change that
agent-config/query.txt describes, or -m, verifies the whole answer, applies all
of it or nothing, and runs build.sh. While the build fails it asks for a repair,
three times at most. Nothing is committed. With -m it writes a new
codeRollup.txt first, as code-commit rollup does, unless the project has a
codeRollup.sh that wrote it, and makes agent-config/ where it is missing."""

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
    task: dict[str, Any] = {name: options.pop(name) for name in ("task", "query") if name in options}
    with recording("run", options) as (project, progress):
        given = take_task(dict(task), project)
        if "task" in task and not given.fresh:
            progress.say(f"codeRollup.txt stays as {ROLLUP_SCRIPT} wrote it: -m does not write it anew")
        return show_end(project, run_main_job(project, options, progress, given))


def run_main_job(
    project: Project,
    options: Mapping[str, Any],
    progress: Progress,
    given: Given = NOTHING_GIVEN,
    choice: tuple[Path, RunRecord] | None = None,
) -> RunRecord:
    """Run the whole job in the project and return its record; `choice` is one of files that was interrupted.

    Raises NotSetUpError before anything was sent or changed, and the errors of the steps; the log has the end of
    every run that began.
    """
    if message := recover(project):
        progress.say(message)
    checked, codebase = check_run(project, options, given)
    chooser = None
    if codebase is None:
        codebase, chooser = _make_first(project, checked, progress, given, choice)
    else:
        checked.warnings.extend(stale_warnings(project, codebase))
    with begun(project, checked, progress, lambda: _open_log(project, checked, codebase, progress, chooser)) as log:
        log.add_warnings(checked.warnings)
        return make_attempts(project, checked, codebase, log, progress)


def _make_first(
    project: Project, checked: Checked, progress: Progress, given: Given, choice: tuple[Path, RunRecord] | None
) -> tuple[Codebase, RunRecord | None]:
    """Write codeRollup.txt and return what is in it; and the record of the choice of files, if an LLM made one."""
    from code_commit.commands.choosing import FileChooser
    from code_commit.commands.rollup import roll_up, with_room

    progress.redactor, progress.quiet = checked.redactor, checked.settings.quiet
    progress.verbose = checked.settings.verbose
    if not project.agent_config.exists():
        progress.say(f"making {AGENT_CONFIG}/, which is missing")
    request = request_of(checked.settings, checked.query, fresh=given.fresh) or CodebaseRequest()
    request = with_room(project, checked.settings, request)
    with FileChooser(project, checked, progress, for_run=True, interrupted=choice) as chooser:
        codebase = roll_up(project, checked.settings, request, progress, chooser.choose)
    require_fit(project, checked, codebase, begun=chooser.record is not None)
    return codebase, chooser.record


def make_attempts(project: Project, checked: Checked, codebase: Codebase, log: RunLog, progress: Progress) -> RunRecord:
    """Make the attempts of a run that has begun, those that are left of one that goes on, and return its record."""
    task = checked.task(project, codebase)
    with (
        job_of(project, checked, approval_of(checked, task.attempts, log, progress)) as job,
        asking(checked.llm, project, log, checked.fallback) as complete,
    ):
        _hold_ignore_files(job, log)
        if job.settings.dry_run:
            return run_dry(job, task, complete, log)
        prepare_end(job, log)
        return run_workflow(job._replace(refit=_refit_of(project, checked, codebase, log)), task, complete, log)


def _hold_ignore_files(job: Job, log: RunLog) -> None:
    """Let the ignore rules of before the run hold in all of it: its builds may change them. Raises NotSetUpError."""
    try:
        job.rules.ignore_files.update(load_ignore_files(read_regular_file(log.folder / _IGNORE_FILES)))
    except FileNotFoundError:
        log.write_json(_IGNORE_FILES, dump_ignore_files(job.rules.ignore_files))
    except (OSError, ValueError) as error:
        raise NotSetUpError(f"{log.shown_name(_IGNORE_FILES)} cannot be read, start a new run: {error}") from error


def _open_log(
    project: Project, checked: Checked, codebase: Codebase, progress: Progress, chooser: RunRecord | None
) -> RunLog:
    log = open_run_log(project, "run", checked.settings, checked.redactor, progress)
    log.write_text(QUERY_OF_RUN, checked.query)
    log.write_text(CODEBASE_OF_RUN, codebase.text)
    log.record.model = str(checked.llm.choice)
    log.record.base_url = check_base_url(checked.llm.choice, checked.settings)
    log.record.query = checked.query.strip().split("\n")[0]
    log.record.tree = checked.before
    if chooser:
        log.record.choice, log.record.chosen = chooser.as_choice, chooser.chosen
    return log


@contextmanager
def begun(
    project: Project, checked: CheckedTree, progress: Progress, open_log: Callable[[], RunLog]
) -> Iterator[RunLog]:
    """Begin a run that is checked: its lock, its log, its lines on the terminal."""
    harden_process()
    progress.quiet, progress.verbose = checked.settings.quiet, checked.settings.verbose
    with ExitStack() as stack:
        stack.enter_context(lock_tree(project))
        log = stack.enter_context(open_log())
        stack.enter_context(progress)
        if checked.settings.keep_runs or checked.settings.keep_days:
            removal = remove_old_runs(project, checked.settings.keep_runs, checked.settings.keep_days)
            log.add_warning("log", *map(str, removal.failures))
        yield log


@contextmanager
def job_of(project: Project, checked: CheckedTree, approve: Callable[[bytes], None] | None = None) -> Iterator[Job]:
    """Give the rules of a run that is checked, as they are before anything is changed.

    `approve` is asked before each answer is applied.
    """
    rules = capture_rules(project, checked.settings, checked.redactor)
    with Builder(project, checked.sandbox) as builder:
        keys = tuple(checked.keys.values())
        yield Job(project, checked.settings, rules, keys, dict(checked.environment), builder, checked.tree, approve)


def _refit_of(project: Project, checked: Checked, codebase: Codebase, log: RunLog) -> Refit | None:
    """Return what makes a shorter codebase of a repair, if the settings want it."""
    if checked.settings.rollup not in ("fit", "select"):
        return None
    edits = checked.settings.answer_format != "files"
    chosen = "\n".join(codebase.sizes) if checked.settings.rollup == "select" else ""

    def refit(characters: int, mentions: str) -> Codebase:
        tokens = max(int(characters / CHARACTERS_PER_TOKEN), 1)
        mentions = mentions.replace(f"{project.root}/", " ")
        request = CodebaseRequest(fit=tokens, query=checked.query, mentions=f"{chosen}\n{mentions}", edits=edits)
        made = make_codebase(project, checked.settings.rollup_exclude, request, checked.redactor)
        log.write_text(f"{len(log.record.attempts)}-{CODEBASE_OF_RUN}", made.text)
        log.add_warning("codebase", f"a prompt did not fit: its codebase was made to fit into {tokens:,} tokens")
        return made

    return refit


def prepare_end(job: Job, log: RunLog) -> None:
    """Before its end is written down: roll back what failed, if `--rollback` wants it, and look at what builds did."""

    def end(status: Status) -> None:
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
