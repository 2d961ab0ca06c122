"""An attempt in the run's log: its numbered files, and its part of run.json."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from code_commit.changes import DeclinedError, RejectedResponseError, VerifiedChanges
from code_commit.exchange import Prompt, RequestBody, Response, Settlement, Usage
from code_commit.runs import record as records
from code_commit.runs.build_log import BuildLog, rewritten_files
from code_commit.runs.diff import FileEdit, diff_files, edits_of, known_text
from code_commit.runs.log import RunLog, read_sight, shows_of
from code_commit.runs.record import Attempt, RunRecord
from code_commit.runs.replies import read_reply
from code_commit.runs.words import utc_after
from code_commit.views import Sight, dump_sight

_LONGEST_NAME = 500
_MOST_NOTES = 20_000  # characters in run.json; N-response.txt has all of them


class AttemptLog:
    """The numbered files and the record of an attempt, a new one or the recorded one of a resumed run.

    It hears of each step of a call: `make_room` and `requested`, then for each request `reserved` and any of
    `job_created`, `progressed`, `kept`, `settled`, `released` and `retrying`, then `replied`, and `answered` if that is
    an answer. Files that are to be there before a step are on disk on return.
    """

    def __init__(self, log: RunLog, number: int) -> None:
        attempts = log.record.attempts
        if number > len(attempts):
            attempts.append(Attempt(number, _kind_of(number, log.record)))
        self._log, self.record = log, attempts[number - 1]
        self._started = time.monotonic()
        self._responded = self._started
        self._sent: Prompt | None = None

    def asking(self, prompt: Prompt) -> None:
        """Begin a call. Log the prompt, unless the answer to that of the log is there or may still come."""
        if self.record.job_id is None and read_reply(self._log.folder, self.number) is None:
            self.prompted(prompt)
        self.record.model = self._log.record.asked_model
        self._started = time.monotonic()
        self._log.save("asking")

    def prompted(self, prompt: Prompt) -> None:
        """Log a prompt that is sent now, once."""
        if self._sent is not prompt:
            query, self._sent = self._name("query.txt"), prompt
            self._log.write_json(shows_of(query), dump_sight(prompt.shows))
            self._log.write_text(query, prompt.text)

    def make_room(self, size: int) -> None:
        """Keep room on the disk for the longest answer, of so many bytes, before anything is sent."""
        self._log.replies.make_room(self.record.number, size)

    def requested(self, url: str, headers: Mapping[str, str], body: RequestBody) -> None:
        """Log a request before it is sent. Values of headers include the key."""
        self._log.write_json(self._name("query.json"), {"url": url, "headers": dict(headers), "body": body})

    def job_created(self, job_id: str) -> None:
        """Log a background job before its first poll."""
        self.record.job_id, self.record.job_model = job_id, self.record.model
        self.record.job_usd = self.record.unsettled_usd[-1] if self.record.unsettled_usd else 0.0
        self._log.write_record()

    def progressed(self, state: str) -> None:
        """Show a few words on a live line: `queued`, `12.3 kB received`."""
        self._log.listener.live(state)

    def reserved(self, usd: float | None) -> None:
        """Log the highest cost of a request that may start an answer, None without a price, before it is sent."""
        if usd is None:
            self.record.unpriced += 1
        else:
            self.record.unsettled_usd.append(usd)
        try:
            self._log.write_record()
        except BaseException:  # so nothing is sent
            self.released(usd)
            raise

    def settled(self, settlement: Settlement) -> None:
        """Add the cost of a final reply without an answer, which at no known price stays one that is lost.

        The next recorded step has it.
        """
        if settlement.reserved in self.record.unsettled_usd:
            self.released(settlement.reserved)
        self._add(settlement)

    def _add(self, settlement: Settlement) -> None:
        if settlement.unsettled_usd:
            self.record.unsettled_usd.append(settlement.unsettled_usd)
        if settlement.cost_usd is not None:
            self.record.cost_usd = (self.record.cost_usd or 0.0) + settlement.cost_usd
        if settlement.usage != Usage():
            self.record.usage = (self.record.usage or Usage()) + settlement.usage
        self.record.job_id = None

    def released(self, reserved: float | None) -> None:
        """Take back a reservation that is not spent: no answer can have begun. It is None without a price."""
        if reserved in self.record.unsettled_usd:
            self.record.unsettled_usd.remove(reserved)
        elif not reserved and self.record.unpriced:
            self.record.unpriced -= 1

    def warned(self, message: str) -> None:
        self._log.add_warning("server", message)

    def kept(self, text: str, *, is_whole: bool) -> str:
        """Keep the text of an answer that is not used, and return the name of its file in the log."""
        name = self._name("response.txt" if is_whole else "response.part.txt")
        self._log.write_text(name, text)
        return self._log.shown_name(name)

    def retrying(self, reason: str, status: int | None, delay: float, limit: float) -> None:
        """Record a failed request, made again in `delay` seconds and given up after `limit`."""
        self.record.retries.append(records.Retry(reason, status, delay, utc_after(limit)))
        self._log.save("retrying")

    def replied(self, status: int, headers: Mapping[str, str], body: object) -> None:
        """Log the API's final reply, an error reply too: parsed JSON, or text."""
        self.record.seconds = time.monotonic() - self._started
        reply = body if isinstance(body, dict) else {"status": status, "headers": dict(headers), "body": body}
        self._log.replies.write(self.record.number, reply, self.record.seconds)

    def answered(self, response: Response) -> None:
        self.released(response.settlement.reserved)
        self._add(response.settlement)
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

    def sight(self, made_now: Sight) -> Sight:
        """Return what the prompt that was answered showed.

        It is the one made now if that was sent. Else the interrupted run sent it: as far as the log of an older version
        has it, and with the texts of the prompt made now.
        """
        if self._sent and self._sent.shows is made_now:
            return made_now
        kept = read_sight(self._log.folder, self._name("query.txt"))
        return kept._replace(codebase=made_now.codebase, beside=made_now.beside) if kept else made_now

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
        return self._log.build_log(self.build_file.name, partial(setattr, self.record, "build"))

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


Complete = Callable[[Prompt, AttemptLog], Response]
"""The LLM of the workflow. Raises LLMError when it could not be called."""


def _kind_of(number: int, record: RunRecord) -> Literal["initial", "retry", "repair"]:
    if number == 1:
        return "repair" if record.command == "repair" else "initial"
    return "retry" if record.attempts[-1].verdict in ("rejected", "chosen") else "repair"
