"""The run's log: one folder per run under agent-config/logs, with the numbered files and run.json.

The number is the LLM call's: 1 is the initial query, 2 and up the repairs. Every byte passes the Redactor on its way
to a file; files are 0600, folders 0700. run.json is rewritten atomically after every step.
"""

import os
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from code_commit.changes import VerifiedChanges, Violation, shown
from code_commit.config import Settings
from code_commit.diff import FileEdit, diff_file, edits_of, join_diffs
from code_commit.errors import EXIT_INTERNAL_ERROR, LogError, NotSetUpError
from code_commit.exchange import Prompt, Response
from code_commit.json_documents import plain
from code_commit.project import LOG_FOLDER_SUFFIX, Project
from code_commit.redaction import Redactor
from code_commit.run_record import (
    Attempt,
    BuildResult,
    Command,
    Event,
    RunListener,
    RunRecord,
    Status,
    sum_attempts,
    utc_timestamp,
)
from code_commit.version import __version__


class RunLog:
    """The log of one run. A context manager: an exception on its way out is recorded as the run's end."""

    def __init__(self, folder: Path, record: RunRecord, redactor: Redactor, listener: RunListener) -> None:
        self.folder = folder
        self.record = record
        self.redactor = redactor
        self.listener = listener
        self._started = time.monotonic() - record.totals.seconds

    @property
    def snapshot(self) -> Path:
        return self.folder / "snapshot"

    def __enter__(self) -> Self:
        self.save("started")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self.record.status != "running":
            return
        status: Status = getattr(error, "status", "internal_error")
        message = str(error)
        if status == "internal_error":
            with suppress(LogError):
                self.write_text("traceback.txt", "".join(traceback.format_exception(error)))
            message = f"{type(error).__name__}; the traceback is in {self.shown_name('traceback.txt')}"
            error.add_note(message)
        else:
            error.add_note(f"Log: {self.record.log_dir}")
        with suppress(LogError):
            self.finish(status, getattr(error, "exit_code", EXIT_INTERNAL_ERROR), message)

    def attempt(self, number: int) -> "AttemptLog":
        """Return the log of an attempt: a new one, or in a run that is resumed the recorded one."""
        if number > len(self.record.attempts):
            self.record.attempts.append(Attempt(number, "initial" if number == 1 else "repair"))
        return AttemptLog(self, self.record.attempts[number - 1])

    def add_warning(self, message: str) -> None:
        """Add a warning to the record, once."""
        self.add_warnings([message])

    def add_warnings(self, messages: Iterable[str]) -> None:
        """Add those of the warnings to the record that it does not have."""
        new = [message for message in dict.fromkeys(messages) if message not in self.record.warnings]
        if new:
            self.record.warnings += new
            self.save("warned")

    def finish(self, status: Status, exit_code: int, message: str | None = None) -> RunRecord:
        """Write the end of the run down and return the record."""
        self.record.status = status
        self.record.exit_code = exit_code
        self.record.message = message
        self.record.finished = utc_timestamp()
        self.save("finished")
        return self.record

    def save(self, event: Event) -> None:
        """Rewrite run.json, then tell the listener what happened."""
        self.record.totals = sum_attempts(self.record.attempts, time.monotonic() - self._started)
        temporary = self.folder / ".run.json.new"
        with create_private(temporary) as file:
            file.write(self.redactor.redact_json(plain(self.record)))
        try:
            temporary.replace(self.folder / "run.json")
        except OSError as error:
            raise LogError(temporary, error) from error
        self.listener.step(self.record, event)

    def write_text(self, name: str, text: str) -> None:
        """Write one file of the log, redacted."""
        self.write_bytes(name, text.encode("utf-8", "surrogatepass"))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write one file of the log, redacted."""
        with create_private(self.folder / name) as file:
            file.write(self.redactor.redact(data))

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write one file of the log as JSON, every string in it redacted."""
        with create_private(self.folder / name) as file:
            file.write(self.redactor.redact_json(value))

    def shown_name(self, name: str) -> str:
        """Return how the user finds a file of the log from the project's root."""
        return f"{self.record.log_dir}/{name}"


class AttemptLog:
    """One attempt's numbered files and its part of the record; listens to its exchange with the LLM."""

    def __init__(self, log: RunLog, attempt: Attempt) -> None:
        self._log = log
        self._attempt = attempt
        self._started = time.monotonic()
        self._responded = self._started

    def asking(self, prompt: Prompt) -> None:
        self._log.write_text(self._name("query.txt"), prompt.text)
        self._started = time.monotonic()
        self._log.save("asking")

    def requested(self, url: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> None:
        # the key is in a header: censored there, it does not send the whole of a large body through the redactor twice
        censored = {name: self._log.redactor.redact_text(value) for name, value in headers.items()}
        self._log.write_json(self._name("query.json"), {"url": url, "headers": censored, "body": body})

    def job_created(self, job_id: str) -> None:
        self._attempt.job_id = job_id
        self._log.save("asking")

    def progressed(self, state: str) -> None:
        self._log.listener.live(state)

    def retrying(self, reason: str, delay: float) -> None:
        self._attempt.retries.append(f"{reason}; again in {delay:.1f} s")
        self._log.save("retrying")

    def replied(self, status: int, headers: Mapping[str, str], body: object) -> None:
        taken = {"totalResponseTime": round((time.monotonic() - self._started) * 1000)}
        reply = body if isinstance(body, dict) else {"status": status, "headers": dict(headers), "body": body}
        self._attempt.seconds = time.monotonic() - self._started
        self._log.write_json(self._name("response.json"), {**reply, **taken})

    def responded(self, response: Response) -> None:
        self._log.write_text(self._name("response.txt"), response.text)
        self._attempt.seconds = time.monotonic() - self._started
        self._attempt.request_id = response.request_id
        self._attempt.finish_reason = response.finish_reason
        self._attempt.incomplete = response.incomplete
        self._attempt.usage = response.usage
        self._attempt.cost_usd = response.cost_usd
        self._responded = time.monotonic()
        self._log.save("responded")

    def recorded_response(self) -> Response | None:
        """Return the response that this attempt had before its run was interrupted, None where it had none."""
        if self._attempt.finish_reason is None:
            return None
        text = (self._log.folder / self._name("response.txt")).read_bytes().decode("utf-8", "surrogatepass")
        return Response(text, self._attempt.finish_reason, self._attempt.incomplete)

    def given(self, response: Response) -> None:
        """Take a response that no LLM was asked for."""
        self._log.write_text(self._name("response.txt"), response.text)
        self._responded = time.monotonic()

    def restored(self, edits: Sequence[FileEdit]) -> None:
        """Take what an undo put back."""
        self._changed(edits)
        self.applied()

    def rejected(self, violations: Sequence[Violation]) -> None:
        self._give_verdict("rejected")
        self._attempt.rejections = list(violations)
        self._log.save("rejected")

    def applying(self, changes: VerifiedChanges) -> None:
        """Take what is about to be applied, or in a dry run would have been; the verdict stays open."""
        self._changed(edits_of(changes))
        self._log.add_warnings(changes.warnings)
        self._log.save("applying")

    def applied(self) -> None:
        """Note that what was about to be applied is in the tree."""
        self._give_verdict("applied")
        self._log.save("applied")

    def not_applied(self) -> None:
        """Note that the tree is as it was."""
        self._attempt.changes = []
        self.diff_file.unlink(missing_ok=True)

    def _changed(self, edits: Sequence[FileEdit]) -> None:
        """Write N-changes.diff and the files' part of the record."""
        diffs = [diff_file(edit) for edit in edits]
        self._attempt.changes = [diff.change for diff in diffs]
        self._log.write_bytes(self._name("changes.diff"), join_diffs(diffs))

    def build_log(self) -> "BuildLog":
        """Open N-build.txt; the build's result, when there is one, is set on it."""
        self._log.save("building")
        return BuildLog(self._log, self._attempt, self.build_file)

    def _give_verdict(self, verdict: Literal["applied", "rejected"]) -> None:
        self._attempt.verdict = verdict
        self._attempt.change_seconds = time.monotonic() - self._responded

    @property
    def record(self) -> Attempt:
        return self._attempt

    @property
    def number(self) -> int:
        return self._attempt.number

    @property
    def diff_file(self) -> Path:
        return self._log.folder / self._name("changes.diff")

    @property
    def build_file(self) -> Path:
        return self._log.folder / self._name("build.txt")

    def shown_build_file(self) -> str:
        return self._log.shown_name(self.build_file.name)

    def _name(self, name: str) -> str:
        return f"{self._attempt.number}-{name}"


class BuildLog:
    """N-build.txt while the build runs: its output as it comes, redacted, and at last a line that says how it ended."""

    def __init__(self, log: RunLog, attempt: Attempt, path: Path) -> None:
        self.result: BuildResult | None = None
        self._log = log
        self._attempt = attempt
        self._file = create_private(path)
        self._stream = log.redactor.stream(self._write)
        self._at_line_start = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if isinstance(error, LogError):
                self._file.take_back(_ROOM_FOR_THE_END)
                self._at_line_start = False
            else:
                self._stream.close()
            ending = self.result.ending if self.result else f"no result, {error or 'it did not run to its end'}"
            self._write(f"{'' if self._at_line_start else chr(10)}[build.sh: {ending}]\n".encode())
        self._attempt.build = self.result
        if self.result:
            self._log.save("built")

    def write(self, piece: bytes) -> None:
        """Take the next piece of the build's output."""
        self._stream.write(piece)

    def _write(self, piece: bytes) -> None:
        self._file.write(piece)
        self._at_line_start = piece.endswith(b"\n")
        tail = piece if len(piece) <= _LIVE_BYTES else b"\n" + piece[-_LIVE_BYTES:]
        self._log.listener.live(tail.decode("utf-8", "replace"))


_ROOM_FOR_THE_END = 64 * 1024
"""Bytes of a build log that filled the disk are given back, so that the run can write down how it ended."""

_LIVE_BYTES = 400
"""Of each piece of output so much is offered to a live display, which shows one line: a longer one begins anew."""


def open_run_log(
    project: Project, command: Command, settings: Settings, redactor: Redactor, listener: RunListener
) -> RunLog:
    """Make the folder of a new run, which no other run shares, and its record. Raises NotSetUpError."""
    started = datetime.now(UTC)
    stem = started.strftime("%Y-%m-%d-%H-%M-%S")
    try:
        project.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = _make_folder(project.logs, stem)
    except OSError as error:
        raise NotSetUpError(f"the log folder {project.logs} cannot be written: {error.strerror}") from error
    record = RunRecord(
        version=__version__,
        run=folder.name,
        command=command,
        started=utc_timestamp(started),
        root=shown(str(project.root)),
        log_dir=str(folder.relative_to(project.root)),
        pid=os.getpid(),
        options=plain(settings),
    )
    return RunLog(folder, record, redactor, listener)


def reopen_run_log(folder: Path, record: RunRecord, redactor: Redactor, listener: RunListener) -> RunLog:
    """Go on with the log of a run that was interrupted."""
    record.status, record.exit_code, record.message, record.finished = "running", None, None, None
    record.pid = os.getpid()
    return RunLog(folder, record, redactor, listener)


def _make_folder(logs: Path, stem: str) -> Path:
    """Make the run's folder; a second run within the same second gets a number behind the time."""
    number = 1
    while True:
        folder = logs / f"{stem}{f'-{number}' if number > 1 else ''}{LOG_FOLDER_SUFFIX}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return folder


def create_private(path: Path) -> "PrivateFile":
    """Create a file that only its owner can read, in the place of whatever has its name. Raises LogError."""
    try:
        path.unlink(missing_ok=True)
        return PrivateFile(
            path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        )
    except OSError as error:
        raise LogError(path, error) from error


class PrivateFile:
    """A file of the log, open for writing; nothing is buffered, so that the file shows what has happened."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self._descriptor)

    def write(self, data: bytes) -> None:
        """Write all of it: one `os.write` may take less without an error, at a file-size limit or a signal."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise LogError(self._path, error) from error

    def take_back(self, count: int) -> None:
        """Drop the last bytes of the file, as far as it has so many."""
        with suppress(OSError):
            os.ftruncate(self._descriptor, max(0, os.fstat(self._descriptor).st_size - count))
            os.lseek(self._descriptor, 0, os.SEEK_END)
