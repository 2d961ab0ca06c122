"""A run that has started: everything that must be closed again is opened here."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from code_commit.apply.lock import lock_tree
from code_commit.apply.restore import ownership_warnings, restore
from code_commit.build import Builder, harden_process
from code_commit.check import RunPlan
from code_commit.check.codebase import codebase_for, codebase_warnings
from code_commit.codebase.make import make_codebase, summary_of, write_parts
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.errors import ApplyError, CodeCommitError, LLMError, NotSetUpError
from code_commit.exchange import CHARACTERS_PER_TOKEN, Prompt, Response
from code_commit.files import read_regular_file
from code_commit.interrupts import hold_signals
from code_commit.llm.asking import asking
from code_commit.llm.models import check_base_url
from code_commit.llm.vendor import LlmConfig
from code_commit.project import Project
from code_commit.prompts.layout import Task
from code_commit.prompts.next import Room
from code_commit.runs.attempt_log import AttemptLog, Complete
from code_commit.runs.list import remove_old_runs
from code_commit.runs.log import QUERY_OF_RUN, RunLog, open_run_log, reopen_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import FIRST_BUILD, GIVEN_BUILD, Attempt, Command, RunRecord
from code_commit.runs.review import review_changes
from code_commit.status import Status
from code_commit.verify import Rules, capture_rules
from code_commit.verify.ignored import dump_ignore_files, load_ignore_files

_IGNORE_FILES = "ignore-files.json"  # the file of a run's log with the ignore rules from before the run


class Before(NamedTuple):
    """The steps before a run: the record of its choice of files, and the log of its first build.

    With such a log the caller has locked the tree, and records an error as its end. A choice of files takes it over.
    """

    choice: RunRecord | None = None
    log: RunLog | None = None

    @property
    def own_log(self) -> RunLog | None:
        """The log of the first build, if it is that of the run."""
        return self.log if self.log and self.log.record is not self.choice else None


NOTHING_BEFORE = Before()
Approve = Callable[[bytes, Attempt, bool], None]
"""Asks whether to apply an answer. Raises NotApprovedError, or RejectedResponseError with words for the LLM."""


class Run(NamedTuple):
    """A run that has started. `codebase` is None if it is unknown which files the LLM saw."""

    plan: RunPlan
    codebase: Codebase | None
    log: RunLog
    rules: Rules
    builder: Builder
    complete: Complete | None = None
    approve: Approve | None = None

    @property
    def task(self) -> Task:
        """The task of the run's prompts. Raises NotSetUpError."""
        return self.plan.task(self.codebase or codebase_for(self.plan))

    @property
    def room(self) -> Room:
        fits = self.plan.settings.rollup in ("fit", "select")
        return Room(self.plan.longest_prompt, self.shrink if fits else None)

    def shrink(self, characters: int, mentions: str) -> Codebase:
        """Return a codebase of at most so many characters, with the mentioned files first. Raises NotSetUpError."""
        plan, log = self.plan, self.log
        tokens = max(int(characters / CHARACTERS_PER_TOKEN), 1)
        mentions = mentions.replace(f"{plan.project.root}/", " ")
        if plan.settings.rollup == "select" and self.codebase:
            mentions = "\n".join([*self.codebase.sizes, mentions])
        edits = plan.settings.answer_format != "files"
        request = CodebaseRequest(fit=tokens, query=plan.ranking_query, mentions=mentions, edits=edits)
        made = make_codebase(plan.project, plan.settings.rollup_exclude, request, plan.redactor)
        log.write_codebase(made.shown, len(log.record.attempts))
        log.add_warning("codebase", f"a prompt did not fit: its codebase was made to fit into {tokens:,} tokens")
        return made


@contextmanager
def after_choice(choice: RunRecord | None) -> Iterator[None]:
    """Raise LLMError for a run that cannot begin, if its files are chosen: what is paid for is resumed."""
    try:
        yield
    except NotSetUpError as error:
        if choice is None:
            raise
        raise LLMError(f"{error}\nThe files are already chosen: fix that, then code-commit resume") from error


@contextmanager
def start_run(
    plan: RunPlan,
    codebase: Codebase | None,
    progress: Progress,
    *,
    approve: Approve | None = None,
    before: Before = NOTHING_BEFORE,
) -> Iterator[Run]:
    """Open everything that a run needs, yield the Run, and close it all afterward. Raises NotSetUpError.

    The order is: lock, rules, log folder, codeRollup.txt, run.json, builder, LLM. From now on signals wait, except in
    the caller's `interruptible` work.
    """
    project, settings = plan.project, plan.settings
    hold_signals()
    harden_process()
    progress.redactor = plan.redactor
    project.agent_config.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as stack:
        with after_choice(before.choice):
            if before.log is None:
                stack.enter_context(lock_tree(project))
            rules = capture_rules(project, settings, plan.redactor, plan.query)
            log = before.own_log or open_log(plan, progress)
            if codebase is not None and plan.inputs.is_main and plan.inputs.codebase is None:
                log.write_codebase(codebase.shown)
            if before.choice:
                _note_choice(before.choice, log, project)
            if plan.request is not None and codebase is not None:
                _write_codebase(codebase, log, plan, progress, is_new=before.own_log is None)
        if before.own_log is None:
            stack.enter_context(log)
        stack.enter_context(progress)
        keep_latest_runs(plan, log)
        log.add_warnings(plan.warnings)
        builder = stack.enter_context(Builder(project, plan.sandbox))
        run = Run(plan=plan, codebase=codebase, log=log, rules=rules, builder=builder, approve=approve)
        if plan.inputs.is_main:
            if codebase is not None:
                log.add_warnings(codebase_warnings(plan, codebase))
            complete = stack.enter_context(asking(plan.llm, project, log))
            run = run._replace(complete=guarded(complete, plan.llm, builder, log))
            _keep_ignore_files(rules, log)
        yield run


def _asks_program(llm: LlmConfig | None) -> bool:
    """Tell whether a program may be asked, which can go anywhere."""
    return llm is not None and "command" in [each.choice.provider for each in (llm, llm.fallback) if each]


def guarded(complete: Complete, llm: LlmConfig, builder: Builder, log: RunLog) -> Complete:
    """Return the function that asks; where that may be a program, it raises BuildError for a changed protected file."""

    def ask(prompt: Prompt, listener: AttemptLog) -> Response:
        with builder.guarding("the program that is the LLM", partial(log.add_warning, "build")):
            return complete(prompt, listener)

    return ask if _asks_program(llm) else complete


def keep_latest_runs(plan: RunPlan, log: RunLog) -> None:
    """Remove the runs that the settings no longer keep, now that there is a new one."""
    settings = plan.settings
    if settings.keep_runs or settings.keep_days:
        removal = remove_old_runs(plan.project, settings.keep_runs, settings.keep_days)
        log.add_warning("log", *map(str, removal.failures))


def open_log(plan: RunPlan, progress: Progress) -> RunLog:
    """Return the log of a run, a new one or that of the resumed run. Raises NotSetUpError."""
    project, before_end, resumed = plan.project, partial(_before_end, plan), plan.inputs.resumed
    if resumed and resumed.record.is_main:
        if plan.asked:
            resumed.record.base_url = check_base_url(plan.llm.choice, plan.settings)
        return reopen_run_log(project, resumed, plan.settings, progress, before_end)
    command: Command = plan.inputs.command if plan.inputs.command in ("run", "repair") else "apply"
    log = open_run_log(project, command, plan.settings, progress, before_end)
    log.record.tree = plan.tree.before if plan.tree else None
    if plan.asked and plan.inputs.is_main:
        log.record.model = str(plan.llm.choice)
        log.record.base_url = check_base_url(plan.llm.choice, plan.settings)
    if plan.inputs.is_main:
        log.write_text(QUERY_OF_RUN, plan.query)
        log.record.query = plan.query.strip().split("\n")[0]
    if plan.builds_first:
        log.record.request = {"fresh": plan.inputs.fresh}
    return log


def _note_choice(choice: RunRecord, log: RunLog, project: Project) -> None:
    """Take the choice of files, and the first build before it, into the run's log."""
    log.record.choice, log.record.chosen = choice.as_choice, choice.chosen
    if choice.first_build:
        log.record.first_build, log.record.build_changes = choice.first_build, choice.build_changes
        for file in (project.root / choice.log_dir / name for name in (FIRST_BUILD, GIVEN_BUILD)):
            if file.exists():
                shutil.copy2(file, log.folder)


def _write_codebase(codebase: Codebase, log: RunLog, plan: RunPlan, progress: Progress, *, is_new: bool) -> None:
    """Write codeRollup.txt and print its summary. Raises as `write_parts`, after removing a new log."""
    try:
        write_parts(plan.project, codebase.parts)
    except CodeCommitError:
        if is_new:
            shutil.rmtree(log.folder, ignore_errors=True)
        raise
    for line in summary_of(codebase, verbose=progress.verbose):
        progress.say(line)


def _keep_ignore_files(rules: Rules, log: RunLog) -> None:
    """Keep the ignore rules from before the run for all of it, since builds may change them. Raises NotSetUpError."""
    try:
        rules.ignore_files.update(load_ignore_files(read_regular_file(log.folder / _IGNORE_FILES)))
    except FileNotFoundError:
        log.write_json(_IGNORE_FILES, dump_ignore_files(rules.ignore_files))
    except (OSError, ValueError) as error:
        raise NotSetUpError(f"{log.shown_name(_IGNORE_FILES)} cannot be read ({error}): start a new run") from error


def _before_end(plan: RunPlan, log: RunLog, status: Status) -> None:
    """Roll back a failed run if `--rollback` is set, and review what builds, or a program that is the LLM, changed."""
    if plan.settings.rollback and status != Status.SUCCESS and log.snapshot.is_dir():
        _roll_back(plan, log)
    if plan.tree is not None and (_asks_program(plan.asked) or any(log.folder.glob("*-build.txt"))):
        log.add_warning("review", *review_changes(plan.project, plan.tree, log.record))


def _roll_back(plan: RunPlan, log: RunLog) -> None:
    """Put every file back. The log keeps a build's version of such a file, for `undo`."""
    try:
        restored = restore(log.snapshot, plan.project, log.folder / "rolled-back", force=True)
    except ApplyError as error:
        log.add_warning("rollback", f"not rolled back: {error}")
    else:
        log.record.rolled_back = True
        log.add_warnings(ownership_warnings(log.folder / "rolled-back"))
        done = f"the changed files are as they were before the run ({len(restored)} put back)"
        log.add_warning("rollback", f"rolled back: {done}")
