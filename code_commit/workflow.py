"""The workflow of the specification: ask, change, build; up to three repairs. The loop, and its three steps."""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from code_commit.additions import find_additions, show_unseen, without_passed
from code_commit.apply import apply_changes, count_transactions, note_built
from code_commit.build import Builder, build_environment
from code_commit.changes import DeclinedError, NotApprovedError, RejectedResponseError, VerifiedChanges
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_SUCCESS, ApplyError, BuildError, NotSetUpError
from code_commit.exchange import Complete, Prompt, Response
from code_commit.keys import ApiKey
from code_commit.parse import blocks_of, notes_of, parse_response, read_response
from code_commit.project import BUILD_SCRIPT, Project
from code_commit.prompts import (
    FailedBuild,
    Task,
    add_to_history,
    comparable,
    initial_prompt,
    read_build_output,
    read_replacements,
    rejected_prompt,
    repair_prompt,
    tell_attempt,
)
from code_commit.redaction import Redactor
from code_commit.review import TreeState
from code_commit.run_log import AttemptLog, RunLog
from code_commit.run_record import BuildResult, RunRecord
from code_commit.settings import Settings
from code_commit.verify import Rules, verify_changes

Draft = Callable[[Task], Prompt]
"""Makes the next prompt of a task, whatever its codebase is by then."""


class Window(NamedTuple):
    """How many characters a prompt may have, None where nobody knows, and what makes the codebase fit, if it may.

    `fit` writes a codebase of so many characters at most, in which the files that a text names go first. It raises
    NotSetUpError.
    """

    longest: int | None = None
    fit: Callable[[int, str], str] | None = None

    def room(self, prompt: Prompt) -> int:
        """Return how many characters more a prompt may have, below 0 for one that is too long."""
        return sys.maxsize if self.longest is None else self.longest - len(prompt.text)


class Job(NamedTuple):
    """What a run works on and within which rules. `before` is the tree as git saw it before the run, if it did.

    `approve` is called with the diff of an answer before that is applied, and raises RejectedResponseError where it is
    not wanted.
    """

    project: Project
    settings: Settings
    rules: Rules
    keys: tuple[ApiKey, ...]
    environment: dict[str, str]
    builder: Builder
    before: TreeState | None
    approve: Callable[[bytes], None] | None = None
    window: Window = Window()


def run_workflow(job: Job, task: Task, complete: Complete, log: RunLog) -> RunRecord:
    """Run attempts until the build passes or none is left, and return the finished record.

    Raises RejectedResponseError when the last response, or with `--on-rejected stop` any, was rejected, DeclinedError
    as soon as the LLM says that it cannot, and the errors of the steps.
    """
    draft: Draft = initial_prompt
    changed: set[str] = set()
    failed: FailedBuild | None = None
    history: list[str] = []
    first_seen: dict[object, int] = {}
    redact = log.redactor.redact_text
    for number in range(1, task.attempts + 1):
        attempt = log.attempt(number)
        response = attempt.recorded_response()
        if response is None:
            task = _make_room(job, task, draft, failed)
            response = ask(complete, draft(task), attempt)

        try:
            changed |= change_files(job, response, log, attempt)
        except RejectedResponseError as rejection:
            is_last = job.settings.on_rejected == "stop" or number == task.attempts
            if is_last or isinstance(rejection, NotApprovedError):
                raise
            _compare(attempt, response, first_seen)
            add_to_history(history, redact(tell_attempt(attempt.record)))
            text, limit = redact(response.text), job.settings.build_output_limit
            shown_text = text if not limit or len(text) <= limit else ""
            room = job.window.room(draft(task)) - len(shown_text)
            task, reasons = _add_unseen(job, task, rejection, room, log.redactor)
            draft = partial(rejected_prompt, failed=failed, history=history, reasons=reasons, response=shown_text)
            continue

        build = build_project(job, log, attempt)
        if build.passed:
            return log.finish("success", EXIT_SUCCESS)
        if number < task.attempts:
            failed = _read_failed_build(job, task, log, attempt, changed)
            _compare(attempt, response, first_seen, comparable(build, failed.output))
            add_to_history(history, tell_attempt(attempt.record))
            draft = partial(repair_prompt, failed=failed, history=history)
    return log.finish("build_failed", EXIT_BUILD_FAILED)


def _compare(attempt: AttemptLog, response: Response, first_seen: dict[object, int], failure: object = None) -> None:
    """Note which attempt was the first with the same blocks, and which one with the same failure."""
    blocks = blocks_of(response.text)
    keys = ((attempt.record.verdict, blocks) if blocks else None, failure)
    attempt.compared(*(first_seen.setdefault(key, attempt.number) if key else attempt.number for key in keys))


def _make_room(job: Job, task: Task, draft: Draft, failed: FailedBuild | None) -> Task:
    """Return the task with a smaller codebase if its prompt is too long; files that the build named go first in it."""
    longest, fit = job.window
    if longest is None or fit is None:
        return task
    size = max(len(task.codebase) + job.window.room(draft(task)), longest // _LEAST_SHARE)
    if size < len(task.codebase):
        with suppress(NotSetUpError):  # it has no room for a single file: the call says that the prompt does not fit
            task = task._replace(codebase=fit(size, without_passed(failed.output) if failed else ""))
            job.rules.codebase = task.codebase
    return task


_LEAST_SHARE = 10
"""One part in so many is for the codebase in any case: what is kept for the answer gives way then."""


def _add_unseen(
    job: Job, task: Task, rejection: RejectedResponseError, room: int, redactor: Redactor
) -> tuple[Task, list[str]]:
    """Return the task with the files that an answer would have changed unseen, and the reasons of its rejection.

    They take the room that there is, and half of that of a codebase which is made to fit.
    """
    room += len(task.codebase) // 2 if job.window.fit else 0
    unseen, reasons = show_unseen(job.project, rejection, room, redactor)
    job.rules.note_seen(unseen)
    return task._replace(additions=(*task.additions, *unseen)), [redactor.redact_text(reason) for reason in reasons]


def _read_failed_build(job: Job, task: Task, log: RunLog, attempt: AttemptLog, changed: set[str]) -> FailedBuild:
    redact = log.redactor.redact_text
    output = read_build_output(attempt.build_file, job.settings.build_output_limit, attempt.shown_build_file())
    output = redact(output)  # a key may have been whole again when the escapes went
    replacements, additions = read_replacements(job.project.root, changed, redact), []
    if job.settings.codebase_additions:
        known = changed | {file.path for file in task.additions}
        additions = find_additions(job.project, task.codebase, output, known, log.redactor)
    job.rules.seen.clear()  # what an earlier prompt alone has shown, the LLM no longer knows
    job.rules.note_seen([*task.additions, *replacements, *additions])
    return FailedBuild(output, replacements, additions)


def run_dry(job: Job, task: Task, complete: Complete, log: RunLog) -> RunRecord:
    """Ask once, verify, and log the diff that would be applied; change nothing. Raises as `verify_response`."""
    attempt = log.attempt(1)
    changes = verify_response(job, ask(complete, initial_prompt(task), attempt), attempt)
    return end_dry(changes, attempt, log)


def end_dry(changes: VerifiedChanges, attempt: AttemptLog, log: RunLog) -> RunRecord:
    """Log the diff that would be applied, and return the finished record."""
    attempt.applying(changes)
    nothing = "" if attempt.record.changes else ", and the answer would change nothing, every file holds this already"
    return log.finish("success", EXIT_SUCCESS, f"dry run: nothing was changed, nothing was built{nothing}")


def verify_response(job: Job, response: Response, attempt: AttemptLog) -> VerifiedChanges:
    """Parse and verify a response. Raises RejectedResponseError and DeclinedError, when they are in the log."""
    try:
        changes, reasons = read_response(response.complete_text())
        return verify_changes(changes, job.project, job.rules, reasons)
    except RejectedResponseError as rejection:
        attempt.rejected(rejection)
        raise
    except DeclinedError as declined:
        raise attempt.declined(str(declined)) from None


def change_files(job: Job, response: Response, log: RunLog, attempt: AttemptLog) -> set[str]:
    """Verify a response, apply all of it and return its paths.

    Raises RejectedResponseError and DeclinedError, when they are in the log, and ApplyError. What a resumed run had
    done already is not done again.
    """
    if attempt.record.verdict == "rejected":
        raise RejectedResponseError(attempt.record.rejections, attempt.record.more_rejections)
    if attempt.record.verdict is None and attempt.record.changes and _is_in_tree(log):
        attempt.applied()
    if attempt.record.verdict == "applied":
        return {change.path for change in parse_response(response.text)}
    changes = verify_response(job, response, attempt)
    attempt.applying(changes)
    if job.approve is not None and attempt.record.changes:
        _wait_for_approval(job.approve, attempt)
    try:
        apply_changes(changes, job.project, log.snapshot)
    except ApplyError:
        attempt.not_applied()
        raise
    attempt.applied()
    return {change.path for change in changes.changes}


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
    """Run build.sh and return how it ended, unless a resumed run has done so.

    Raises BuildError, also where build.sh itself says by its exit code that not the code is to blame.
    """
    unfit = job.settings.infrastructure_exit_codes
    if attempt.record.build is not None and attempt.record.build.exit_code not in unfit:
        return attempt.record.build
    environment = build_environment(job.environment, job.keys, attempt.number, log.record.run)
    timeout = job.settings.build_timeout
    with attempt.build_log() as build_log:
        try:
            build_log.result = job.builder.run(
                build_log.write, timeout=timeout, environment=environment, warn=log.add_warning
            )
        finally:
            with suppress(ApplyError, OSError):  # then undo takes what the build wrote for an edit of the user's
                note_built(log.snapshot, job.project)
    if build_log.result.exit_code in unfit:
        raise BuildError(
            f"{BUILD_SCRIPT} ended with exit code {build_log.result.exit_code}, by which it says that the machine"
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
