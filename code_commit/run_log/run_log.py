"""The whole run's part of the log: run.json, and how a run ends in it."""

import time
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from code_commit.errors import EXIT_INTERNAL_ERROR, LogError
from code_commit.exchange import RequestBody
from code_commit.json_documents import json_document, plain
from code_commit.redaction import Redactor
from code_commit.run_log.attempt_log import AttemptLog
from code_commit.run_log.private_file import create_private
from code_commit.run_record import Attempt, Event, RunListener, RunRecord, Status, sum_attempts, utc_timestamp


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

    def write_request(self, name: str, url: str, headers: Mapping[str, str], body: RequestBody) -> None:
        """Write one request as JSON, redacted: the key is in a header. Its body is the very line that is sent."""
        censored = {header: self.redactor.redact_text(value) for header, value in headers.items()}
        head = json_document({"url": url, "headers": censored}).removesuffix(b"\n}\n")
        document = head + b',\n  "body": ' + body.content + b"\n}\n"
        if self.redactor.spans(document):
            document = self.redactor.redact_json({"url": url, "headers": censored, "body": body})
        with create_private(self.folder / name) as file:
            file.write(document)

    def shown_name(self, name: str) -> str:
        """Return how the user finds a file of the log from the project's root."""
        return f"{self.record.log_dir}/{name}"
