"""One call of an LLM: its deadline, its retries, its stream, and what its listener is told."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NoReturn, TypeVar

from code_commit.errors import LLMError
from code_commit.exchange import ExchangeListener
from code_commit.llm.http import (
    Connection,
    Endpoint,
    FailureKind,
    OpenReply,
    PassingFailure,
    Reply,
    Timing,
    json_or_text,
    member,
    parse_json,
    read_events,
    text_of,
    whole_characters,
)
from code_commit.llm.refusals import has_error, refusal_of, unwrapped

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

_SHORTEST_OBEYED = 1.0
"""A server that asks for less again and again is waited for as long as the backoff says."""


class Call:
    """The state of one call. Raises LLMError when the call cannot pass or its time is over."""

    def __init__(
        self,
        connection: Connection,
        endpoint: Endpoint,
        listener: ExchangeListener,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        self.connection = connection
        self.endpoint = endpoint
        self.timing = connection.timing
        self.listener = listener
        self.body = body or {}
        """The request; empty where an earlier one's answer is fetched."""
        self._timeout = endpoint.settings.llm_timeout
        self._last_progress = -_PROGRESS_INTERVAL
        connection.deadline = self.timing.now() + self._timeout

    def retried(self, ask: Callable[[], T], longest_wait: float | None = None) -> T:
        """Return what `ask` returns, asking again after each failure that can pass."""
        past: list[PassingFailure] = []
        while True:
            try:
                return ask()
            except PassingFailure as failure:
                caught = failure
            self._wait_after(caught, past, longest_wait or self.timing.longest_backoff)

    def _wait_after(self, failure: PassingFailure, past: list[PassingFailure], longest: float) -> None:
        """Wait until the question may be asked again, and add its failure to the past ones.

        Raises LLMError when it may not be asked again, or not in time.
        """
        most = MOST_FAILURES.get(failure.kind)
        if most is not None and sum(earlier.kind == failure.kind for earlier in past) >= most:
            self._give_up(failure, f"given up after {most} retries: {_GIVE_UP_WORDS[failure.kind]}")
        usual = backoff(len(past), self.timing, longest, is_overload=failure.is_overload)
        delay = obeyed_delay(failure.delay, usual)
        past.append(failure)
        if delay >= self.connection.remaining:
            is_asked = failure.delay is not None and delay == failure.delay
            asked = f"; it asks to wait {delay:.4g} s" if is_asked else ""
            limit = f"the limit of {self._timeout:.4g} s (--llm-timeout) would be over"
            self._give_up(failure, f"given up{asked}: {limit}")
        self.listener.retrying(self.endpoint.censor(failure.reason), delay)
        self.timing.sleep(delay)

    def _give_up(self, failure: PassingFailure, why: str) -> NoReturn:
        if failure.reply is not None:
            self.replied(failure.reply)
        raise LLMError(f"{failure.reason}; {why}") from None

    def check(self, reply: Reply) -> None:
        """Raise LLMError or PassingFailure unless the reply is a JSON object that tells of no error."""
        body = unwrapped(reply.body)
        if reply.is_success and not has_error(body):
            if isinstance(body, dict):
                return
            raise self.garbage(reply)
        refusal = refusal_of(reply, self.endpoint)
        if isinstance(refusal, LLMError):
            self.replied(reply)
        raise refusal

    def garbage(self, reply: Reply) -> PassingFailure:
        """Return the failure of a reply that no LLM's API sends."""
        return PassingFailure(f"what {self.connection.host} answered is not this API's JSON", "garbage", None, reply)

    def broken(self, missing: str) -> PassingFailure:
        """Return the failure of an answer that ended without the API's word that it is complete."""
        return PassingFailure(f"the stream of {self.connection.host} ended early ({missing})", "broken")

    def streamed(self, path: str, assemble: Callable[["Call", OpenReply], dict[str, Any]]) -> Reply:
        """Send the request and return its streamed answer as one reply, whose body `assemble` makes of the events.

        Some servers send JSON (or a web page) although a stream was asked for. The first character tells: content types
        are set carelessly.
        """
        try:
            with self.connection.open("POST", path, self.body, self.timing.stream_read) as reply:
                if not 200 <= reply.status < 300:
                    self.check(reply.read())
                begin = b""
                while not begin.strip() and (piece := next(reply.pieces, b"")):
                    begin += piece
                if begin.lstrip()[:1] not in (b"{", b"[", b"<"):
                    pieces = self._counted(chain((begin,), reply.pieces))
                    body = assemble(self, OpenReply(reply.status, reply.headers, pieces))
                    return Reply(reply.status, reply.headers, body)
                whole = Reply(reply.status, reply.headers, json_or_text(begin + b"".join(reply.pieces)))
                self.check(whole)
                return whole
        except PassingFailure as failure:
            if failure.kind == "lost":
                failure.kind = "broken"
            raise

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            self.progressed(f"{size / 1000:.1f} kB received")
            yield piece

    def events(self, reply: OpenReply) -> Iterator[tuple[str, Any]]:
        """Yield (type, parsed data) of each event of a stream. Raises LLMError and PassingFailure for an error in it.

        A piece that cannot be read is a piece lost.
        """
        for name, data in read_events(reply.pieces):
            if data.strip() == b"[DONE]":
                return
            try:
                event = parse_json(data)
            except ValueError:  # UnicodeDecodeError too: the bytes are no UTF-8
                raise PassingFailure(f"the stream of {self.connection.host} is damaged", "broken") from None
            kind = text_of(event, "type") or name
            if kind == "error" or member(event, "error"):
                raise self._error_event(Reply(reply.status, reply.headers, event))
            yield kind, event

    def _error_event(self, reply: Reply) -> LLMError | PassingFailure:
        refusal = refusal_of(reply, self.endpoint)
        if isinstance(refusal, LLMError):
            self.replied(reply)
        else:
            refusal.kind = "broken"
        return refusal

    def replied(self, reply: Reply) -> None:
        """Hand the final reply to the listener, as text that can be written."""
        self.listener.replied(reply.status, reply.headers, whole_characters(reply.body))

    def progressed(self, state: str, *, always: bool = False) -> None:
        """Tell the listener how far the call is, but not for every piece of a stream."""
        now = self.timing.now()
        if always or now - self._last_progress >= _PROGRESS_INTERVAL:
            self._last_progress = now
            self.listener.progressed(state)


def backoff(failures: int, timing: Timing, longest: float, *, is_overload: bool) -> float:
    """Return the delay after so many failures, from 0 on, with full jitter: anything up to a limit that doubles."""
    first = timing.first_overload_backoff if is_overload else timing.first_backoff
    return timing.random() * min(longest, first * 2.0 ** min(failures, 16))


def obeyed_delay(asked: float | None, usual: float) -> float:
    """Return what the API asks for, but not less than the usual backoff when it asks for next to nothing."""
    return asked if asked is not None and asked >= _SHORTEST_OBEYED else max(asked or 0.0, usual)
