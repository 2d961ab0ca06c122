"""The workflow of the specification: ask, change, build; up to three repairs. The loop, and its three steps."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from code_commit.apply import apply_changes, count_transactions, find_overwritten, load_originals, note_built
from code_commit.build import Builder, build_environment
from code_commit.changes import (
    DeclinedError,
    FilesAskedError,
    NotApprovedError,
    RejectedResponseError,
    RunWarning,
    VerifiedChanges,
)
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_SUCCESS, ApplyError, BuildError
from code_commit.exchange import Complete, Prompt, Response, Shown
from code_commit.llm.keys import ApiKey
from code_commit.parse import blocks_of, notes_of, parse_response, read_response
from code_commit.project import BUILD_SCRIPT, Project
from code_commit.prompts.layout import Task
from code_commit.prompts.next import Conversation, Refit, next_prompt
from code_commit.runs.list import short_name
from code_commit.runs.log import AttemptLog, RunLog
from code_commit.runs.record import BuildResult, RunRecord
from code_commit.runs.review import TreeState, untracked_before
from code_commit.runs.words import cut_off_in_words, listed
from code_commit.settings import Settings
from code_commit.terminal import shown
from code_commit.verify import Rules, verify_changes


class Job(NamedTuple):
    """A run's project, settings, rules, and who builds. `before` is the tree as git saw it before the run, if it did.

    `approve` is called with the diff of an answer before that is applied, and raises RejectedResponseError where it is
    not wanted. `refit` makes a codebase smaller whose prompt is too long, None where that is not wanted.
    """

    project: Project
    settings: Settings
    rules: Rules
    keys: tuple[ApiKey, ...]
    environment: dict[str, str]
    builder: Builder
    before: TreeState | None
    approve: Callable[[bytes], None] | None = None
    refit: Refit | None = None


def run_workflow(job: Job, task: Task, complete: Complete, log: RunLog) -> RunRecord:
    """Run attempts until the build passes or none is left, and return the finished record.

    Raises RejectedResponseError when the last response, or with `--on-rejected stop` any, was rejected, or the last one
    asks for files, DeclinedError as soon as the LLM says that it cannot, and the errors of the steps.
    """
    conversation = Conversation(job.project, job.settings, log.redactor, task, job.refit)
    changed: set[str] = set()
    for number in range(1, task.attempts + 1):
        attempt, prompt = log.attempt(number), conversation.next_prompt()
        response = attempt.recorded_response() or ask(complete, prompt, attempt)

        try:
            changed |= change_files(job, response, prompt.shows, log, attempt)
        except RejectedResponseError as rejection:
            if attempt.record.cut_off:
                log.add_warning("cut-off", cut_off_in_words(attempt.record, len(response.text)))
            asks = isinstance(rejection, FilesAskedError)
            is_last = (job.settings.on_rejected == "stop" and not asks) or number == task.attempts
            was_told = attempt.record.cut_off and number > 1 and log.record.attempts[number - 2].cut_off
            if is_last or was_told or isinstance(rejection, NotApprovedError):
                raise
            conversation.was_rejected(attempt, response.text, blocks_of(response.text), rejection)
            continue

        build = build_project(job, log, attempt)
        if build.passed:
            return log.finish("success", EXIT_SUCCESS)
        if number < task.attempts:
            originals = load_originals(log.snapshot) if task.diffs else {}
            conversation.build_failed(attempt, blocks_of(response.text), build, changed, originals)
    return log.finish("build_failed", EXIT_BUILD_FAILED)


def run_dry(job: Job, task: Task, complete: Complete, log: RunLog) -> RunRecord:
    """Ask once, verify, and log the diff that would be applied; change nothing. Raises as `verify_response`."""
    attempt, prompt = log.attempt(1), next_prompt(task, ())
    changes = verify_response(job, ask(complete, prompt, attempt), prompt.shows, attempt)
    return end_dry(changes, attempt, log)


def end_dry(changes: VerifiedChanges, attempt: AttemptLog, log: RunLog) -> RunRecord:
    """Log the diff that would be applied, and return the finished record."""
    attempt.applying(changes)
    nothing = "" if attempt.record.changes else ", and the answer would change nothing, every file holds this already"
    return log.finish("success", EXIT_SUCCESS, f"dry run: nothing was changed, nothing was built{nothing}")


def verify_response(job: Job, response: Response, shows: Shown | None, attempt: AttemptLog) -> VerifiedChanges:
    """Parse and verify a response to a prompt that shows these files.

    Raises RejectedResponseError and DeclinedError, when they are in the log.
    """
    try:
        changes, reasons = read_response(response.complete_text())
        return verify_changes(changes, job.project, job.rules, shows, reasons)
    except FilesAskedError as asked:
        attempt.asked(asked.names)
        raise
    except RejectedResponseError as rejection:
        attempt.rejected(rejection)
        raise
    except DeclinedError as declined:
        raise attempt.declined(str(declined)) from None


def change_files(job: Job, response: Response, shows: Shown | None, log: RunLog, attempt: AttemptLog) -> set[str]:
    """Verify a response to a prompt that shows these files, apply all of it and return its paths.

    Raises RejectedResponseError and DeclinedError, when they are in the log, and ApplyError. What a resumed run had
    done already is not done again.
    """
    if attempt.record.verdict == "rejected":
        raise RejectedResponseError(attempt.record.rejections, attempt.record.more_rejections)
    if attempt.record.verdict is None and attempt.record.changes and _is_in_tree(log):
        _note_applied(log, attempt)
    if attempt.record.verdict == "applied":
        return {change.path for change in parse_response(response.text)}
    changes = verify_response(job, response, shows, attempt)
    attempt.applying(changes)
    replaced = [change.path for change in changes.changes if change.original is not None]
    if mixed := untracked_before(job.before, replaced):
        log.add_warning("review", f"git does not track {listed(mixed)}: git diff shows nothing of what stood there")
    if job.approve is not None and attempt.record.changes:
        _wait_for_approval(job.approve, attempt)
    try:
        apply_changes(changes, job.project, log.snapshot)
    except ApplyError:
        attempt.not_applied()
        raise
    _note_applied(log, attempt)
    return {change.path for change in changes.changes}


def _note_applied(log: RunLog, attempt: AttemptLog) -> None:
    """Note that a response is in the tree, and what else than earlier responses it overwrote."""
    with suppress(ApplyError):
        way = f"code-commit undo {short_name(log.record.run)} --attempt {attempt.number}"
        log.add_warnings(
            RunWarning(
                "overwritten",
                f"attempt {attempt.number} overwrote {shown(path)}, which the build or somebody else had changed since"
                f" an earlier attempt: {way} brings that back",
                path,
            )
            for path in find_overwritten(log.snapshot)
        )
    attempt.applied()


def _wait_for_approval(approve: Callable[[bytes], None], attempt: AttemptLog) -> None:
    try:
        approve(attempt.diff_file.read_bytes())
    except BaseException as error:
        attempt.not_applied()
        if isinstance(error, RejectedResponseError):
            attempt.rejected(error)
        raise


def _is_in_tree(log: RunLog) -> bool:
    """Tell whether the response whose apply was interrupted was applied: each that changes a file leaves a layer."""
    return count_transactions(log.snapshot) == sum(bool(attempt.changes) for attempt in log.record.attempts)


def build_project(job: Job, log: RunLog, attempt: AttemptLog) -> BuildResult:
    """Run build.sh and return how it ended, unless it failed in a run that is resumed.

    A recorded pass is of the tree as it was then, and nobody knows all that a build reads: it is built again.
    Raises BuildError, also where build.sh itself says by its exit code that not the code is to blame.
    """
    unfit, recorded = job.settings.infrastructure_exit_codes, attempt.record.build
    if recorded is not None and not recorded.passed and recorded.shell_code not in unfit:
        return recorded
    environment = build_environment(job.environment, job.keys, attempt.number, log.record.run)
    timeout = job.settings.build_timeout
    with attempt.build_log() as build_log:
        try:
            build_log.result = job.builder.run(
                build_log.write, timeout=timeout, environment=environment, warn=partial(log.add_warning, "build")
            )
        finally:
            with suppress(ApplyError, OSError):  # then undo takes what the build wrote for an edit of the user's
                attempt.built(note_built(log.snapshot, job.project))
    if build_log.result.shell_code in unfit:
        raise BuildError(
            f"{BUILD_SCRIPT} ended with exit code {build_log.result.shell_code}, by which it says that the machine"
            " failed, not the code (infrastructure_exit_codes): no repair was asked for; put the machine right, then"
            " build again"
        )
    return build_log.result


def ask(complete: Complete, prompt: Prompt, attempt: AttemptLog) -> Response:
    """Return the response to a prompt. Raises LLMError."""
    attempt.asking(prompt)
    response = complete(prompt, attempt)
    attempt.responded(response, notes_of(response.text))
    return response
