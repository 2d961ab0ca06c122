"""The workflow of the specification: ask, change, build; up to three repairs."""

from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from code_commit.apply.restore import find_overwritten, find_unchanged, note_built, ownership_warnings
from code_commit.apply.snapshot import load_layers, load_originals
from code_commit.apply.transaction import apply_changes
from code_commit.changes import (
    DeclinedError,
    EditBlock,
    FilesAskedError,
    IsMeant,
    NotApprovedError,
    Reasons,
    RejectedResponseError,
    RunWarning,
    VerifiedChanges,
    quoted,
)
from code_commit.codebase.parts import read_requests
from code_commit.errors import ApplyError, Named, NotSetUpError
from code_commit.exchange import Prompt, Response
from code_commit.first_build import require_no_refusal, require_result_of_code, run_build
from code_commit.parse import blocks_of, end_thoughts, notes_of, read_notes, read_response
from code_commit.paths.names import find_protected
from code_commit.project import Project
from code_commit.prompts.layout import most_attempts
from code_commit.prompts.next import Answer, Conversation, next_prompt
from code_commit.runs.attempt_log import AttemptLog, Complete
from code_commit.runs.diff import presence
from code_commit.runs.list import short_name
from code_commit.runs.log import RunLog
from code_commit.runs.record import Attempt, BuildResult, RunRecord
from code_commit.runs.review import untracked_before
from code_commit.runs.words import cut_off_in_words, listed, rejection_of, unchanged
from code_commit.settings import Settings
from code_commit.start import Approve, Run
from code_commit.status import Status
from code_commit.terminal import shown
from code_commit.verify import verify_changes
from code_commit.verify.notes import suspect_notes
from code_commit.views import Sight, Whole


def attempt_loop(run: Run) -> RunRecord:
    """Run attempts until the build passes or none is left, and return the finished record.

    Raises RejectedResponseError if the last response (with `--on-rejected stop`: any) is rejected or asks for files,
    DeclinedError as soon as the LLM declines, and the errors of the steps.
    """
    log, settings, task = run.log, run.plan.settings, run.task
    if settings.dry_run:
        attempt, prompt = AttemptLog(log, 1), next_prompt(task, ())
        response = ask(run.complete, prompt, attempt)
        return end_dry(verify_response(run, response, prompt.shows, attempt), attempt, log)
    conversation = Conversation(run.plan.project, settings, log.redactor, task, run.room)
    changed: set[str] = set()
    for number in range(1, task.attempts + 1):
        attempt, prompt = AttemptLog(log, number), conversation.next_prompt()
        response = attempt.recorded_response() or ask(run.complete, prompt, attempt)

        try:
            changed |= change_files(run, response, attempt.sight(prompt.shows), attempt)
        except RejectedResponseError as rejection:
            if attempt.record.cut_off:
                log.add_warning("cut-off", cut_off_in_words(attempt.record, len(response.text)))
            if _ends_run(run, attempt.record, rejection):
                raise
            conversation.was_rejected(attempt, Answer(response.text, blocks_of(response.text)), rejection)
            continue

        build = build_project(run, attempt)
        if build.passed:
            return log.finish(Status.SUCCESS)
        if number < task.attempts:
            answer = Answer(response.text, blocks_of(response.text))
            conversation.build_failed(attempt, answer, build, changed, load_originals(log.snapshot))
        else:
            conversation.last_build_failed(attempt, build, log.record.first_build)
    return log.finish(Status.BUILD_FAILED)


def _ends_run(run: Run, attempt: Attempt, rejection: RejectedResponseError) -> bool:
    """Tell whether the run ends with this rejection. Let it name a reason that was shown for an earlier attempt alone.

    It does after the last attempt, with `--on-rejected stop`, without approval, and if a second answer is not whole.
    """
    settings, earlier = run.plan.settings, run.log.record.attempts[: attempt.number - 1]
    asks = isinstance(rejection, FilesAskedError)
    is_last = attempt.number == most_attempts(settings) or (settings.on_rejected == "stop" and not asks)
    was_told = bool(earlier) and _is_not_whole(attempt) and _is_not_whole(earlier[-1])
    ends = bool(is_last or was_told or isinstance(rejection, NotApprovedError))
    if ends and not asks and attempt.reasons in [done.reasons for done in earlier]:
        rejection.name_reason(rejection_of(attempt))
    return ends


def _is_not_whole(attempt: Attempt) -> bool:
    """Tell whether the API called an answer incomplete, or all of it is thoughts, which is the fault of no line."""
    return bool(attempt.incomplete) or any(each.rule == "thoughts" and not each.line for each in attempt.rejections)


def end_dry(changes: VerifiedChanges, attempt: AttemptLog, log: RunLog) -> RunRecord:
    """Log the diff that would be applied and return the finished record."""
    attempt.applying(changes)
    done = "dry run: nothing was changed or built"
    if log.record.first_build:
        done += " after the answer"
    if not attempt.record.changes:
        done += f", and the answer would change nothing: {unchanged(log.record, attempt.record)}"
    return log.finish(Status.SUCCESS, done)


def verify_response(run: Run, response: Response, shows: Sight | None, attempt: AttemptLog) -> VerifiedChanges:
    """Return the verified changes. Logs and raises RejectedResponseError and DeclinedError."""
    reasons, is_short = Reasons(is_meant(run, attempt.number)), run.plan.settings.prompt_layout == "short"
    try:
        changes = read_response(response.complete_text(), reasons, run.plan.project, is_short=is_short)
        attempt.record.edits = sum(isinstance(change, EditBlock) for change in changes)
        attempt.record.leniences = sorted(reasons.leniences)
        suspect_notes(read_notes(response.text), changes, run.plan.project, run.rules, reasons)
        verified = verify_changes(changes, run.plan.project, run.rules, shows, reasons)
    except FilesAskedError as asked:
        run.log.add_warnings(reasons.warnings)
        attempt.asked(asked.names)
        paths, views = [*read_requests(asked.names, ())], shows.views if shows else {}
        if all(isinstance(views.get(path), Whole) for path in paths):
            asked.tell_shown()
        asked.name_missing([path for path in paths if not run.plan.project.has(path)])
        raise
    except RejectedResponseError as rejection:
        if rejection.may_be_meant:
            rejection.name_way(attempt.shown_response_file())
        attempt.rejected(rejection)
        raise
    except DeclinedError as declined:
        run.log.add_warnings(reasons.warnings)
        raise attempt.declined(str(declined)) from None
    attempt.record.leniences = sorted(reasons.leniences)
    return verified


def is_meant(run: Run, number: int) -> IsMeant:
    """Return what tells the suspicions that attempt `number` knows, since they were told of an earlier answer."""
    if run.plan.inputs.as_sent:
        return lambda _: True
    earlier = run.log.record.attempts[: number - 1]
    rejected = {(each.rule, each.path, each.fact) for done in earlier for each in done.rejections if each.may_be_meant}
    left = {("line-ends", quoted(path), "") for done in earlier for path in done.ends_alone}
    return (rejected | left).__contains__


def change_files(run: Run, response: Response, shows: Sight | None, attempt: AttemptLog) -> set[str]:
    """Verify a response to a prompt that shows these files, apply all of it and return its paths.

    Logs and raises RejectedResponseError and DeclinedError; raises ApplyError. A resumed run does not apply its
    response again.
    """
    log = run.log
    if attempt.record.verdict == "rejected":
        raise RejectedResponseError(attempt.record.rejections, attempt.record.more_rejections)
    if attempt.record.verdict is None and attempt.record.changes and _is_in_tree(log):
        _note_applied(log, attempt)
    if attempt.record.verdict == "applied":
        return set(applied_paths(run.plan.project, attempt.record, response.text))
    changes = verify_response(run, response, shows, attempt)
    attempt.applying(changes)
    ours = {path for path, (was_there, _) in presence(log.record.attempts).items() if not was_there}
    changed = (each for each in changes.changes if each.original and each.content != each.original.content)
    replaced = [change.path for change in changed if change.path not in ours]
    if mixed := untracked_before(run.plan.tree, replaced):
        log.add_warning("review", f"git does not track {listed(mixed)}: git diff cannot show what was there")
    _warn_of_first_build(log, [change.path for change in attempt.record.changes])
    if run.approve is not None and attempt.record.changes:
        _wait_for_approval(run.approve, run.plan.settings, attempt)
    try:
        apply_changes(changes, run.plan.project, log.snapshot)
    except ApplyError:
        attempt.not_applied()
        raise
    _note_applied(log, attempt)
    return {change.path for change in changes.changes}


def _warn_of_first_build(log: RunLog, changed: Collection[str]) -> None:
    """Warn of files of an answer that the build before the run had changed."""
    if both := set(log.record.build_changes).intersection(map(shown, changed)) if log.record.first_build else ():
        log.add_warning(
            "review",
            f"a build (or you) had changed {listed(both)} before the answer did: git diff shows both changes,"
            " code-commit diff and undo cover only the answer's",
        )


def applied_paths(project: Project, attempt: Attempt, text: str) -> list[str]:
    """Return the paths of an earlier attempt's applied answer, including files that it removed.

    Raises RejectedResponseError if the text has no block.
    """
    changed = {path for change in attempt.changes for path in change.paths}
    tree, reasons = _TreeBefore(project, changed), Reasons()
    changes = read_response(text, reasons, tree)
    if not changes:  # another reason was none when the answer was applied
        reasons.reject()
    copies = {path for each in changes if (path := each.path) not in changed and find_protected(path, ())}
    left_out = copies if "protected-copy" in attempt.leniences else set()
    return [each.path for each in changes if each.path not in left_out]


class _TreeBefore(NamedTuple):
    """The project as the parser saw it before the changes of an answer."""

    project: Project
    changed: Collection[str]

    def has(self, path: str) -> bool:
        return path in self.changed or self.project.has(path)

    def has_folder(self, path: str) -> bool:
        return self.project.has_folder(path)

    def has_line(self, path: str, line: str) -> bool | None:
        return None if path in self.changed else self.project.has_line(path, line)


def _note_applied(log: RunLog, attempt: AttemptLog) -> None:
    """Log that a response is applied, and which changes of others it overwrote."""
    with suppress(ApplyError):
        log.record.unchanged = find_unchanged(log.snapshot)
        log.add_warnings(ownership_warnings(log.snapshot) if attempt.record.changes else ())
        way = f"code-commit undo {short_name(log.record.run)} --attempt {attempt.number}"
        log.add_warnings(
            RunWarning(
                "overwritten",
                f"attempt {attempt.number} overwrote {shown(path)}, which had been changed after an earlier attempt"
                f" (by the build or by someone else): {way} brings that back",
                path,
            )
            for path in find_overwritten(log.snapshot)
        )
    attempt.applied()


def _wait_for_approval(approve: Approve, settings: Settings, attempt: AttemptLog) -> None:
    goes_back = settings.on_rejected == "retry" and attempt.number < most_attempts(settings)
    try:
        approve(attempt.diff_file.read_bytes(), attempt.record, goes_back)
    except BaseException as error:
        attempt.not_applied()
        if isinstance(error, RejectedResponseError):
            attempt.rejected(error)
        raise


def _is_in_tree(log: RunLog) -> bool:
    """Tell whether an interrupted apply finished: each response that changes a file leaves a layer."""
    return len(load_layers(log.snapshot)) == sum(bool(attempt.changes) for attempt in log.record.attempts)


def build_project(run: Run, attempt: AttemptLog) -> BuildResult:
    """Run build.sh and return its result, or a resumed run's recorded failure.

    A recorded pass is built again, since the tree may differ. Raises BuildError, also for an infrastructure failure.
    """
    plan, log = run.plan, run.log
    unfit, recorded = plan.settings.infrastructure_exit_codes, attempt.record.build
    earlier = [log.record.first_build, *(done.build for done in log.record.attempts[: attempt.number - 1])]
    is_first = not any(earlier)
    is_machine = recorded is not None and (recorded.shell_code in unfit or (is_first and recorded.is_of_set_up))
    if recorded is not None and not recorded.passed and not is_machine:
        return recorded
    with attempt.build_log() as build_log:
        try:
            build_log.result = run_build(plan, log, run.builder, build_log, attempt.number)
        finally:
            with suppress(ApplyError, OSError):  # without the note undo takes the build's writes for the user's
                attempt.built(note_built(log.snapshot, plan.project))
                log.record.unchanged = find_unchanged(log.snapshot)
    require_result_of_code(plan, build_log.result, "no repair was asked for")
    if is_first:
        require_no_refusal(build_log.result, "no repair was asked for")
    return build_log.result


def ask(complete: Complete | None, prompt: Prompt, attempt: AttemptLog) -> Response:
    """Return the response to a prompt. Raises LLMError, or NotSetUpError without an LLM."""
    if complete is None:
        raise NotSetUpError("no LLM can be called: name a ", Named("model"))
    attempt.asking(prompt)
    response = complete(prompt, attempt)
    response = response._replace(text=end_thoughts(response.text, response.thoughts))
    attempt.responded(response, notes_of(response.text))
    return response
