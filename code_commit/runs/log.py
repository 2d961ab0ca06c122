"""The run's log: one folder per run under agent-config/logs, with the numbered files and run.json.

The number is the LLM call's: 1 is the initial query, 2 and up the repairs. Every byte passes the Redactor on its way to
a file; files are 0600, folders 0700. run.json is rewritten atomically after every step.
"""

import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from code_commit.changes import DeclinedError, RejectedResponseError, RunWarning, VerifiedChanges, WarningKind
from code_commit.errors import LogError, NotSetUpError, known_error
from code_commit.exchange import FailedRequest, Prompt, RequestBody, Response, Settlement, Usage
from code_commit.files import KeptRoom, read_regular_file, replacing
from code_commit.git import Repository
from code_commit.interrupts import hold_signals, signals_blocked
from code_commit.project import Project
from code_commit.runs import record as records
from code_commit.runs.build_log import BuildLog, rewritten_files
from code_commit.runs.diff import FileEdit, diff_files, edits_of, known_text
from code_commit.runs.list import argument_of, next_run_name, process_start
from code_commit.runs.progress import Progress
from code_commit.runs.record import Attempt, BuildResult, Command, Event, RunEntry, RunRecord
from code_commit.runs.replies import Replies
from code_commit.runs.words import rejection_of, ways_on
from code_commit.settings import Settings
from code_commit.status import Status
from code_commit.terminal import shown
from code_commit.version import __version__
from code_commit.views import Sight, dump_sight, load_sight

BeforeEnd = Callable[["RunLog", Status], object]  # called with the run's status before its end is written
# the inputs of the run; N-codebase.txt is the codebase of attempt N
QUERY_OF_RUN, CODEBASE_OF_RUN = "query.txt", "codebase.txt"
_SHOWS = "shows.json"  # what N-query.txt, or a codebase.txt, shows of files
_LONGEST_NAME = 500
_MOST_NOTES = 20_000  # characters in run.json; N-response.txt has all of them


def open_run_log(
    project: Project, command: Command, settings: Settings, listener: Progress, before_end: BeforeEnd | None = None
) -> "RunLog":
    """Create a run's folder and return its log; run.json is written on entering it. Raises NotSetUpError."""
    started = datetime.now(UTC)
    try:
        project.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = project.logs / next_run_name(project, started)
        folder.mkdir(mode=0o700)
    except OSError as error:
        advice = f"; make it writable: chmod u+w {project.logs}" if isinstance(error, PermissionError) else ""
        raise NotSetUpError(f"the log folder {project.logs} cannot be written: {error.strerror}{advice}") from error
    record = RunRecord(
        version=__version__,
        run=folder.name,
        command=command,
        started=records.utc_timestamp(started),
        root=shown(str(project.root)),
        log_dir=str(folder.relative_to(project.root)),
        pid=os.getpid(),
        process_start=process_start(os.getpid()),
        options=settings.as_record(),
    )
    return RunLog(RunEntry(folder, record), listener, project.git, before_end)


def reopen_run_log(
    project: Project, run: RunEntry, settings: Settings, listener: Progress, before_end: BeforeEnd | None = None
) -> "RunLog":
    """Return the log of a run that is resumed; its record gets the settings that it lacks."""
    record = run.record
    record.options = settings.as_record() | record.options
    record.status = Status.RUNNING
    record.exit_code, record.message, record.finished, record.error = None, None, None, None
    record.schema_version = records.SCHEMA_VERSION
    record.pid, record.process_start = os.getpid(), process_start(os.getpid())
    return RunLog(run, listener, project.git, before_end)


def read_sight(folder: Path, name: str) -> Sight | None:
    """Return what a prompt or a codebase in a log shows of files; None where the log does not say so."""
    try:
        text, data = (read_regular_file(folder / each) for each in (name, _shows_of(name)))
        return load_sight(data, text.decode("utf-8", "surrogatepass"))
    except (OSError, ValueError):
        return None


def _shows_of(name: str) -> str:
    """Return the name of the file that says what the prompt, or the codebase, of this name shows."""
    return (
        name.removesuffix("query.txt") + _SHOWS
        if name.endswith("query.txt")
        else f"{name.removesuffix('.txt')}-{_SHOWS}"
    )


class RunLog:
    """The log of one run, with diffs for the repository `git`. A context manager: records an exception as the end."""

    def __init__(
        self, run: RunEntry, listener: Progress, git: Repository | None = None, before_end: BeforeEnd | None = None
    ) -> None:
        self.folder, self.record = run
        self.redactor = listener.redactor
        self.listener = listener
        self.git = git
        self._before_end = before_end
        self._is_ended = False
        self._end = KeptRoom(self.folder / "run.json")
        self.replies = Replies(self.folder, self.redactor)
        self._started = time.monotonic() - (run.record.totals.seconds - run.record.seconds_before)

    @property
    def snapshot(self) -> Path:
        return self.folder / "snapshot"

    def __enter__(self) -> Self:
        self.save("started")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not self._is_ended:
            with signals_blocked():  # of a caller's own handlers
                self._end_by(error)

    def _end_by(self, error: BaseException) -> None:
        known = known_error(error)
        status: Status = getattr(known, "status", Status.INTERNAL_ERROR)
        message = str(known)
        if isinstance(known, RejectedResponseError) and self.record.attempts and self.record.attempts[-1].rejections:
            message = rejection_of(self.record.attempts[-1])
        if status == Status.INTERNAL_ERROR:
            with suppress(LogError):
                self.write_text("traceback.txt", "".join(traceback.format_exception(error)))
            message = f"{type(error).__name__}; the traceback is in {self.shown_name('traceback.txt')}"
            error.add_note(message)
        elif not self.record.asks or self.record.options["quiet"]:  # else its start has said so
            error.add_note(f"Log: {self.record.log_dir}")
        self.record.error = records.error_facts(known, self.record.attempts)
        with suppress(LogError):
            self.finish(status, message, exit_code=getattr(known, "exit_code", None))
        if (self.folder / "run.json").is_file():
            for line in ways_on(self.record, argument_of(self.folder)):
                error.add_note(line)
        else:  # a build without a sandbox can remove it
            error.add_note(f"{self.record.log_dir} is gone: no command can continue this run or take it back.")

    def first_build_log(self) -> BuildLog:
        """Open 0-build.txt, for the build before anything is sent; the caller sets the build's result on it."""
        self.save("building")
        return BuildLog(self.folder / records.FIRST_BUILD, self.redactor, self.listener.output, self._first_build_ended)

    def _first_build_ended(self, result: BuildResult | None) -> None:
        self.record.first_build = result
        if result:
            self.save("built")

    def attempt(self, number: int) -> "AttemptLog":
        """Return the log of an attempt, a new one or the recorded one of a resumed run."""
        if number > len(self.record.attempts):
            before = self.record.attempts[-1].verdict if self.record.attempts else None
            first: Literal["initial", "repair"] = "repair" if self.record.command == "repair" else "initial"
            again: Literal["retry", "repair"] = "retry" if before in ("rejected", "chosen") else "repair"
            self.record.attempts.append(Attempt(number, first if number == 1 else again))
        return AttemptLog(self, self.record.attempts[number - 1])

    def add_warning(self, kind: WarningKind, *messages: str) -> None:
        self.add_warnings(RunWarning(kind, message) for message in messages)

    def add_warnings(self, warnings: Iterable[RunWarning]) -> None:
        """Add the warnings that the record does not have."""
        new = [warning for warning in dict.fromkeys(warnings) if warning not in self.record.warnings]
        if new:
            self.record.warnings += new
            self.save("warned")

    def fall_back(self, model: str, why: str) -> None:
        attempt = self.record.attempts[-1]
        message = f"{attempt.model} cannot be asked, {model} takes over: {why}"
        attempt.model = model
        self.add_warning("fallback", message)
        self.save("asking")

    def finish(self, status: Status, message: str | None = None, *, exit_code: int | None = None) -> RunRecord:
        """Record the end of the run, which no later signal changes, and return the record. Raises LogError.

        `exit_code` is given where an error has another one than its status.
        """
        hold_signals()
        with signals_blocked():  # of a caller's own handlers
            self.replies.release()
            if self._before_end:
                self._before_end(self, status)
            self.record.status = status
            self.record.exit_code = status.exit_code if exit_code is None else exit_code
            self.record.message = message
            self.record.finished = records.utc_timestamp()
            self.write_record()
            self._is_ended = True
        self.listener.step(self.record, "finished")
        return self.record

    def save(self, event: Event) -> None:
        """Rewrite run.json, then call the listener."""
        self.write_record()
        self.listener.step(self.record, event)

    def write_record(self) -> None:
        """Rewrite run.json, and reserve disk space for its last state."""
        self.record.totals = records.sum_up(self.record, time.monotonic() - self._started)
        data = self.redactor.redact_json(self.record)
        try:
            if self.record.status != Status.RUNNING:
                self._end.write(data)
                return
            self._end.keep(2 * len(data))
        except OSError as error:
            raise self._failed(self.folder / "run.json", error) from error
        self._write("run.json", data)

    def write_text(self, name: str, text: str, *, sync: bool = False) -> None:
        self._write(name, self.redactor.redact(text.encode("utf-8", "surrogatepass")), sync=sync)

    def write_bytes(self, name: str, data: bytes) -> None:
        self._write(name, self.redactor.redact(data))

    def write_codebase(self, sight: Sight, number: int | None = None) -> None:
        """Keep the codebase that the run began with, or that an attempt made to fit, and what it shows of each file."""
        name = CODEBASE_OF_RUN if number is None else f"{number}-{CODEBASE_OF_RUN}"
        self.write_json(_shows_of(name), dump_sight(sight))
        self.write_text(name, sight.codebase)

    def write_json(self, name: str, value: Any) -> None:
        self._write(name, self.redactor.redact_json(value))

    def _write(self, name: str, data: bytes, *, sync: bool = False) -> None:
        path = self.folder / name
        try:
            with replacing(path, sync=sync) as file:
                file.write(data)
        except OSError as error:
            raise self._failed(path, error) from error

    def _failed(self, path: Path, error: OSError) -> LogError:
        """Return the error of a file that cannot be written; a log that could not even begin is removed."""
        if not os.path.lexists(self.folder / "run.json"):
            shutil.rmtree(self.folder, ignore_errors=True)
        return LogError(path, error)

    def shown_name(self, name: str) -> str:
        return f"{self.record.log_dir}/{name}"


class AttemptLog:
    """The numbered files and the record of an attempt; the listener of its exchange with the LLM."""

    def __init__(self, log: RunLog, attempt: Attempt) -> None:
        self._log = log
        self.record = attempt
        self._started = time.monotonic()
        self._responded = self._started

    def asking(self, prompt: Prompt) -> None:
        self._log.write_json(self._name(_SHOWS), dump_sight(prompt.shows))
        self._log.write_text(self._name("query.txt"), prompt.text)
        self.record.model = self._log.record.asked_model
        self._started = time.monotonic()
        self._log.save("asking")

    def make_room(self, size: int) -> None:
        self._log.replies.make_room(self.record.number, size)

    def requested(self, url: str, headers: Mapping[str, str], body: RequestBody) -> None:
        self._log.write_json(self._name("query.json"), {"url": url, "headers": dict(headers), "body": body})

    def job_created(self, job_id: str) -> None:
        self.record.job_id, self.record.job_model = job_id, self.record.model
        self.record.job_usd = self.record.unsettled_usd[-1] if self.record.unsettled_usd else 0.0
        self._log.write_record()

    def progressed(self, state: str) -> None:
        self._log.listener.live(state)

    def reserved(self, usd: float) -> None:
        self.record.unsettled_usd.append(usd)
        try:
            self._log.write_record()
        except LogError:  # so nothing is sent
            self.released(usd)
            raise

    def settled(self, settlement: Settlement) -> None:
        """Add the cost of a final reply; the next recorded step has it."""
        self.released(settlement.reserved)
        if settlement.unsettled_usd:
            self.record.unsettled_usd.append(settlement.unsettled_usd)
        if settlement.cost_usd is not None:
            self.record.cost_usd = (self.record.cost_usd or 0.0) + settlement.cost_usd
        if settlement.usage != Usage():
            self.record.usage = (self.record.usage or Usage()) + settlement.usage
        self.record.job_id = None

    def released(self, reserved: float) -> None:
        if reserved in self.record.unsettled_usd:
            self.record.unsettled_usd.remove(reserved)

    def warned(self, message: str) -> None:
        self._log.add_warning("server", message)

    def kept(self, text: str, *, is_whole: bool) -> str:
        name = self._name("response.txt" if is_whole else "response.part.txt")
        self._log.write_text(name, text)
        return self._log.shown_name(name)

    def retrying(self, retry: FailedRequest) -> None:
        self.record.retries.append(
            records.Retry(retry.reason, retry.status, retry.delay, records.utc_after(retry.limit))
        )
        self._log.save("retrying")

    def replied(self, status: int, headers: Mapping[str, str], body: object) -> None:
        self.record.seconds = time.monotonic() - self._started
        reply = body if isinstance(body, dict) else {"status": status, "headers": dict(headers), "body": body}
        self._log.replies.write(self.record.number, reply, self.record.seconds)

    def answered(self, response: Response) -> None:
        """Record an answer, and its cost."""
        self.settled(response.settlement)
        self.record.request_id = response.request_id
        self.record.finish_reason = response.finish_reason
        self.record.incomplete = response.incomplete
        self.record.cut_off = response.is_cut_off
        self.record.usage = self.record.usage or Usage()

    def responded(self, response: Response, notes: str) -> None:
        self.given(response, notes)
        self._log.save("responded")

    def given(self, response: Response, notes: str) -> None:
        """Record a response that nobody was asked for."""
        self._log.write_text(self._name("response.txt"), response.text, sync=True)
        self.record.notes = self._log.redactor.redact_cut(notes[:_MOST_NOTES])
        self._responded = time.monotonic()

    def recorded_response(self) -> Response | None:
        """Return the response of this attempt of an interrupted run, None if there was none, or only its reply."""
        if self.record.finish_reason is None:
            return None
        try:
            text = (self._log.folder / self._name("response.txt")).read_bytes().decode("utf-8", "surrogatepass")
        except FileNotFoundError:
            return None
        return Response(text, self.record.finish_reason, self.record.incomplete, self.record.cut_off)

    def recorded_sight(self, made_again: Sight) -> Sight:
        """Return what the prompt of this attempt of an interrupted run showed, as far as the log of an older version
        has it. The texts are those of the prompt that was made again.
        """
        kept = read_sight(self._log.folder, self._name("query.txt"))
        return kept._replace(codebase=made_again.codebase, beside=made_again.beside) if kept else made_again

    def restored(self, edits: Sequence[FileEdit]) -> None:
        self._changed(edits)
        self.applied()

    def rejected(self, rejection: RejectedResponseError) -> None:
        self._give_verdict("rejected")
        self.record.rejections = list(rejection.violations)
        self.record.more_rejections = rejection.more
        self._log.save("rejected")

    def asked(self, names: Sequence[str]) -> None:
        self._give_verdict("chosen")
        self.record.asked = [self._log.redactor.redact_cut(name[:_LONGEST_NAME]) for name in names]
        self._log.save("chosen")

    def declined(self, reason: str) -> DeclinedError:
        """Record that the LLM declines; return the error with a bounded part of its reason."""
        self._give_verdict("declined")
        self._log.save("declined")
        return DeclinedError(self._log.redactor.redact_cut(reason[:_MOST_NOTES]))

    def chose(self, files: Sequence[str]) -> None:
        if self.record.verdict is None:
            self._give_verdict("chosen")
        self._log.record.chosen = list(files)
        self._log.save("chosen")

    def applying(self, changes: VerifiedChanges) -> None:
        """Record the changes about to be applied, or proposed in a dry run, without a verdict."""
        self._changed(edits_of(changes))
        self.record.ends_alone = list(changes.ends_alone)
        self._log.add_warnings(changes.warnings)
        self._log.save("applying")

    def applied(self) -> None:
        self._give_verdict("applied")
        now = {path for change in self.record.changes for path in change.paths}
        self._log.record.rewritten = [file for file in self._log.record.rewritten if file.path not in now]
        self._log.save("applied")

    def not_applied(self) -> None:
        self.record.changes, self.record.ends_alone = [], []
        self.diff_file.unlink(missing_ok=True)

    def known_text(self) -> str:
        return known_text(self._log.folder)

    def _changed(self, edits: Sequence[FileEdit]) -> None:
        """Write N-changes.diff and the record of the files."""
        self.record.changes, diff = diff_files(edits, self._log.git, known=self.known_text)
        self._log.write_bytes(self._name("changes.diff"), diff)

    def built(self, edits: Sequence[FileEdit]) -> None:
        """Record the changes that the build made to files of the answers."""
        changes, diff = diff_files(edits, self._log.git, known=self.known_text, renames=False)
        self._log.record.rewritten = rewritten_files(changes, edits)
        (self._log.folder / records.BUILT_DIFF).unlink(missing_ok=True)
        if diff:
            self._log.write_bytes(records.BUILT_DIFF, diff)

    def compared(self, change: int | None, failure: int | None) -> None:
        """Record the first attempts with the same change and the same failure, None for none."""
        if (change, failure) != (self.record.same_change_as, self.record.same_failure_as):
            self.record.same_change_as, self.record.same_failure_as = change, failure
            self._log.save("repeated")

    def build_log(self) -> BuildLog:
        """Open N-build.txt; the caller sets the build's result on it."""
        self._log.save("building")
        return BuildLog(self.build_file, self._log.redactor, self._log.listener.output, self._build_ended)

    def _build_ended(self, result: BuildResult | None) -> None:
        self.record.build = result
        if result:
            self._log.save("built")

    def _give_verdict(self, verdict: records.Verdict) -> None:
        self.record.verdict = verdict
        self.record.change_seconds = time.monotonic() - self._responded

    @property
    def number(self) -> int:
        return self.record.number

    @property
    def diff_file(self) -> Path:
        return self._log.folder / self._name("changes.diff")

    @property
    def build_file(self) -> Path:
        return self._log.folder / self._name("build.txt")

    def shown_build_file(self) -> str:
        return self._log.shown_name(self.build_file.name)

    def shown_response_file(self) -> str:
        return self._log.shown_name(self._name("response.txt"))

    def _name(self, name: str) -> str:
        return f"{self.record.number}-{name}"
