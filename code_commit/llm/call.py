"""One call of an LLM: its deadline, its retries, and what its listener is told."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from code_commit.errors import LLMError
from code_commit.exchange import ExchangeListener
from code_commit.llm.connection import Connection, FailureKind, OpenReply, PassingFailure, Reply
from code_commit.llm.json_values import parse_json, whole_characters
from code_commit.llm.refusals import Subject, has_error, refusal_of, unwrapped
from code_commit.llm.waiting import backoff, obeyed_delay

T = TypeVar("T")

_PROGRESS_INTERVAL = 0.1

MOST_FAILURES: Mapping[FailureKind, int] = {"lost": 3, "broken": 10, "garbage": 4, "early": 5, "gone": 2}
"""Retries of what may have been paid for already, or of what is no LLM's API; the others end with the deadline."""

_GIVE_UP_WORDS: Mapping[FailureKind, str] = {
    "lost": "each of the requests may have started an answer that is paid for",
    "broken": "each of the broken answers may be paid for",
    "garbage": "check --base-url",
    "gone": "it has expired or was deleted; run again",
    "early": "this server may not support background jobs; try its Chat Completions with --model chat:NAME",
}


class Call:
    """The state of one `complete`. Raises LLMError when the call cannot pass or its time is over."""

    def __init__(self, connection: Connection, subject: Subject, listener: ExchangeListener, timeout: float) -> None:
        self.connection = connection
        self.subject = subject
        self.pace = connection.pace
        self.listener = listener
        self._timeout = timeout
        self._last_progress = -_PROGRESS_INTERVAL
        connection.deadline.at = self.pace.now() + timeout

    def retried(self, ask: Callable[[], T], longest_wait: float | None = None) -> T:
        """Return what `ask` returns, asking again after each failure that can pass."""
        past: list[PassingFailure] = []
        while True:
            try:
                return ask()
            except PassingFailure as failure:
                caught = failure
            self._wait_after(caught, past, longest_wait or self.pace.longest_backoff)

    def _wait_after(self, failure: PassingFailure, past: list[PassingFailure], longest: float) -> None:
        """Wait until the question may be asked again, and add its failure to the past ones.

        Raises LLMError when it may not be asked again, or not in time.
        """
        most = MOST_FAILURES.get(failure.kind)
        if most is not None and sum(earlier.kind == failure.kind for earlier in past) >= most:
            self.give_up(failure, f"given up after {most} retries: {_GIVE_UP_WORDS[failure.kind]}")
        usual = backoff(len(past), self.pace, longest, is_overload=failure.is_overload)
        delay = obeyed_delay(failure.delay, usual)
        past.append(failure)
        remaining = self.connection.deadline.remaining
        if delay >= remaining:
            asked = (
                f"; it asks to wait {failure.delay:.4g} s"
                if failure.delay is not None and delay == failure.delay
                else ""
            )
            self.give_up(failure, f"given up{asked}: the limit of {self._timeout:.4g} s (--llm-timeout) would be over")
        self.listener.retrying(self.subject.censor(failure.reason), delay)
        self.pace.sleep(delay)

    def give_up(self, failure: PassingFailure, why: str) -> NoReturn:
        """Raise the LLMError that a failure ends as."""
        if failure.reply is not None:
            self.replied(failure.reply)
        raise LLMError(f"{failure.reason}; {why}") from None

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Reply:
        """Send a short request and return its reply, which is a JSON object without an error."""
        reply = self.connection.send(method, path, body, self.pace.read)
        self.check(reply)
        return reply

    def check(self, reply: Reply) -> None:
        """Raise LLMError or PassingFailure unless the reply is a JSON object that tells of no error."""
        body = unwrapped(reply.body)
        if 200 <= reply.status < 300 and isinstance(body, dict) and not has_error(body):
            return
        if 200 <= reply.status < 300 and not has_error(body):
            raise self.garbage(reply)
        refusal = refusal_of(reply, self.subject, self.pace)
        if isinstance(refusal, LLMError):
            self.replied(reply)
        raise refusal

    def garbage(self, reply: Reply | None = None) -> PassingFailure:
        """Return the failure of a reply that no LLM's API sends."""
        return PassingFailure(f"what {self.connection.host} answered is not this API's JSON", "garbage", None, reply)

    @contextmanager
    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[OpenReply]:
        """Send a request whose answer is streamed; an error status is raised at once."""
        try:
            with self.connection.open("POST", path, body, self.pace.stream_read) as reply:
                if not 200 <= reply.status < 300:
                    self.check(reply.read())
                yield reply
        except PassingFailure as failure:
            if failure.kind == "lost":
                failure.kind = "broken"
            raise

    def error_event(self, stream: OpenReply, data: str) -> LLMError | PassingFailure:
        """Return the exception for an error that came in the middle of a stream."""
        reply = Reply(stream.status, stream.headers, data.encode("utf-8", "replace"))
        refusal = refusal_of(reply, self.subject, self.pace)
        if isinstance(refusal, LLMError):
            self.replied(reply)
        else:
            refusal.kind = "broken"
        return refusal

    def event(self, data: str) -> Any:
        """Return the parsed data of an event. Raises PassingFailure: a piece that cannot be read is a piece lost."""
        try:
            data.encode()
            return parse_json(data)
        except ValueError:  # UnicodeEncodeError too: the bytes were no UTF-8
            raise PassingFailure(f"the stream of {self.connection.host} is damaged", "broken") from None

    def broken(self, missing: str) -> PassingFailure:
        """Return the failure of a stream that ended without the API's word that it is complete."""
        return PassingFailure(f"the stream of {self.connection.host} ended early ({missing})", "broken")

    def replied(self, reply: Reply) -> None:
        """Hand the final reply to the listener."""
        self.finished(reply.status, reply.headers, reply.body)

    def finished(self, status: int, headers: Mapping[str, str], body: object) -> None:
        """Hand what the API sent to the listener, as text that can be written."""
        self.listener.replied(status, headers, whole_characters(body))

    def progressed(self, state: str, *, always: bool = False) -> None:
        """Tell the listener how far the call is, but not for every piece of a stream."""
        now = self.pace.now()
        if always or now - self._last_progress >= _PROGRESS_INTERVAL:
            self._last_progress = now
            self.listener.progressed(state)
