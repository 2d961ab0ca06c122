"""One attempt's part of the log: its numbered files, and what run.json says of it."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from code_commit.changes import RejectedResponseError, VerifiedChanges
from code_commit.diff import FileEdit, diff_files, edits_of
from code_commit.exchange import Prompt, RequestBody, Response
from code_commit.run_log.build_log import BuildLog
from code_commit.run_record import Attempt

if TYPE_CHECKING:
    from code_commit.run_log.run_log import RunLog


class AttemptLog:
    """One attempt's numbered files and its part of the record; listens to its exchange with the LLM."""

    def __init__(self, log: "RunLog", attempt: Attempt) -> None:
        self._log = log
        self._attempt = attempt
        self._started = time.monotonic()
        self._responded = self._started

    def asking(self, prompt: Prompt) -> None:
        self._log.write_text(self._name("query.txt"), prompt.text)
        self._started = time.monotonic()
        self._log.save("asking")

    def requested(self, url: str, headers: Mapping[str, str], body: RequestBody) -> None:
        self._log.write_request(self._name("query.json"), url, headers, body)

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

    def rejected(self, rejection: RejectedResponseError) -> None:
        self._give_verdict("rejected")
        self._attempt.rejections = list(rejection.violations)
        self._attempt.more_rejections = rejection.more
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
        self._attempt.changes, diff = diff_files(edits)
        self._log.write_bytes(self._name("changes.diff"), diff)

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
