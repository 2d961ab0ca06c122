"""The run's log: one folder per run under agent-config/logs, with the numbered files and run.json.

The number is the LLM call's: 1 is the initial query, 2 and up the repairs. Every byte passes the Redactor on its way to
a file; files are 0600, folders 0700. run.json is rewritten atomically after every step.
"""

import os
import shutil
import time
import traceback
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from code_commit.changes import RejectedResponseError, RunWarning, WarningKind
from code_commit.errors import LogError, NotSetUpError, known_error
from code_commit.exchange import Usage
from code_commit.files import KeptRoom, read_regular_file, replacing
from code_commit.git import Repository
from code_commit.interrupts import hold_signals, signals_blocked
from code_commit.project import Project
from code_commit.runs import record as records
from code_commit.runs.build_log import BuildLog
from code_commit.runs.diff import applied_changes, presence
from code_commit.runs.list import argument_of, next_run_name, process_start
from code_commit.runs.progress import Progress
from code_commit.runs.record import Attempt, BuildResult, Command, Event, FileChoice, RunEntry, RunRecord, Totals
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
    """Return the log of a run that is resumed; its record gets the settings that it goes on with."""
    record = run.record
    record.options |= settings.as_record()
    record.status = Status.RUNNING
    record.exit_code, record.message, record.finished, record.error = None, None, None, None
    record.schema_version = records.SCHEMA_VERSION
    record.pid, record.process_start = os.getpid(), process_start(os.getpid())
    return RunLog(run, listener, project.git, before_end)


def read_sight(folder: Path, name: str) -> Sight | None:
    """Return what a prompt or a codebase in a log shows of files; None where the log does not say so."""
    try:
        text, data = (read_regular_file(folder / each) for each in (name, shows_of(name)))
        return load_sight(data, text.decode("utf-8", "surrogatepass"))
    except (OSError, ValueError):
        return None


def shows_of(name: str) -> str:
    """Return the name of the file that says what the prompt, or the codebase, of this name shows."""
    of_query = name.removesuffix("query.txt")
    return f"{of_query}{_SHOWS}" if of_query != name else f"{name.removesuffix('.txt')}-{_SHOWS}"


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
            error.add_note(f"{self.record.log_dir} is gone: no command can continue or undo this run.")

    def build_log(self, name: str, note: Callable[[BuildResult | None], object]) -> BuildLog:
        """Open the log of a build; `note` puts the result, None for none, into the record."""

        def end(result: BuildResult | None) -> None:
            note(result)
            if result:
                self.save("built")

        self.save("building")
        return BuildLog(self.folder / name, self.redactor, self.listener.output, end)

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
        message = f"{attempt.model} cannot be called, so {model} takes over: {why}"
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
        self.record.totals = sum_up(self.record, time.monotonic() - self._started)
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
        self.write_json(shows_of(name), dump_sight(sight))
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


def sum_up(record: RunRecord, seconds: float) -> Totals:
    attempts, choice = record.attempts, record.choice or FileChoice("")
    usages = [*(attempt.usage for attempt in attempts if attempt.usage), choice.usage]
    answered = [attempt for attempt in attempts if attempt.finish_reason is not None] + [choice] * bool(choice.calls)
    first_seconds = record.first_build.seconds if record.first_build else 0.0
    has_unknown = any(call.cost_usd is None and not call.unsettled_usd for call in answered)
    return Totals(
        seconds=seconds + record.seconds_before,
        llm_seconds=sum(attempt.seconds or 0.0 for attempt in attempts) + choice.seconds,
        build_seconds=sum((attempt.build.seconds for attempt in attempts if attempt.build), first_seconds),
        attempts=len(attempts),
        usage=sum(usages, Usage()),
        cost_usd=None if has_unknown else record.cost.settled,
        unsettled_usd=record.cost.unsettled,
        unpriced=record.cost.unpriced,
        files_changed=0 if record.rolled_back else _count_changed(attempts, record.unchanged),
    )


def _count_changed(attempts: Iterable[Attempt], unchanged: Collection[str]) -> int:
    """Return how many files differ in the end, a renamed one once."""
    there, old_names = presence(attempts), dict[str, str]()
    for change in applied_changes(attempts):
        if old := change.renamed_from:
            old_names[change.path] = old_names.pop(old, old)
    differing = there.keys() - set(unchanged)
    here = {new: old for new, old in old_names.items() if new in differing and there[new][1]}
    return len(differing - {old for old in here.values() if there[old] == (True, False)})
