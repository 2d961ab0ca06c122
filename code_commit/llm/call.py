"""One call of an LLM: its deadline, its retries, its stream."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, NoReturn, TypeVar

from code_commit.errors import LLMError, LLMErrorKind
from code_commit.exchange import ExchangeListener, FailedRequest, RequestBody
from code_commit.llm.http import (
    Connection,
    Endpoint,
    FailureKind,
    OpenReply,
    PassingFailure,
    Reply,
    Timing,
    json_or_text,
    read_events,
    text_of,
)
from code_commit.llm.refusals import has_error, may_be_paid, refusal_of, unwrapped
from code_commit.runs.words import duration

T = TypeVar("T")
Events = Iterator[tuple[str, Any]]  # the type and the parsed data of each event of a stream, as they come

_LIMITS: Mapping[FailureKind, tuple[int, str]] = {
    "refused": (4, "start the server there, or name another with --base-url"),
    "missing": (5, "it has expired, or this server may not support background jobs: try --model chat:NAME there"),
}  # the retries of each kind of failure, and the advice after them; busy servers have no limit

_LIMIT_OF_PAID = (5, "each of the requests may have started an answer that is paid for")
"""The same limit for failures of any kind that may be billed."""

TOO_MANY_REQUESTS = frozenset({429, 529})  # HTTP statuses

_SHORTEST_OBEYED = 1.0  # in seconds; some servers ask for less again and again


class Call:
    """The state of one call. Its methods raise LLMError when the call cannot succeed or its time is over."""

    def __init__(
        self,
        connection: Connection,
        listener: ExchangeListener,
        body: RequestBody | None = None,
        endpoint: Endpoint | None = None,
        timeout: float | None = None,
    ) -> None:
        self.connection = connection
        self.endpoint = endpoint or connection.endpoint
        self.timing = connection.timing
        self.listener = listener
        self.body = body or RequestBody()
        """The request; empty if the call fetches an earlier answer."""
        self.may_be_paid = False
        """Whether the latest request for an answer may be billed."""
        self.unsettled = 0
        """The number of requests for an answer that may be billed and that no reply has counted."""
        self._timeout = self.endpoint.settings.llm_timeout if timeout is None else timeout
        connection.deadline = self.timing.now() + self._timeout

    def retry(self, ask: Callable[[], T], longest_wait: float | None = None) -> T:
        """Return the result of `ask`, and call it again after each failure that can pass."""
        past: list[PassingFailure] = []
        while True:
            try:
                return ask()
            except PassingFailure as caught:
                failure = caught
            past.append(failure)
            delay = self._delay_after(past, longest_wait or self.timing.longest_backoff)
            limit = self.connection.remaining
            if failure.kind == "refused":
                refused = sum(each.kind == "refused" for each in past)
                limit = min(limit, delay * (1 + _LIMITS["refused"][0] - refused))
            status = failure.reply.status if failure.reply else None
            self.listener.retrying(FailedRequest(failure.reason, status, delay, limit))
            self.timing.sleep(delay)

    def _delay_after(self, past: list[PassingFailure], longest: float) -> float:
        """Return how long to wait after the last failure. Raises LLMError if no further retry is allowed."""
        failure = past[-1]
        alike = [each for each in past if (each.may_be_paid if failure.may_be_paid else each.kind == failure.kind)]
        most, advice = _LIMIT_OF_PAID if failure.may_be_paid else _LIMITS.get(failure.kind, (len(past), ""))
        if len(alike) > most:
            self._give_up(failure, f"given up after {most} retries: {advice}")
        delay = backoff(len(past) - 1, self.timing, longest)
        if failure.delay:
            delay = max(failure.delay, _SHORTEST_OBEYED)
        if delay >= self.connection.remaining:
            is_asked = failure.delay and failure.kind != "refused"  # a refused connection has no Retry-After
            asked = f"; it asks to wait {duration(delay)}" if is_asked else ""
            limit = f"the next try would pass the limit of {duration(self._timeout)} (--llm-timeout)"
            self._give_up(failure, f"given up{asked}: {limit}")
        return delay

    def _give_up(self, failure: PassingFailure, why: str) -> NoReturn:
        if failure.reply is not None:
            self.replied(failure.reply)
        kind: LLMErrorKind = "refused" if failure.kind == "missing" else "network"
        if failure.reply and failure.reply.status in TOO_MANY_REQUESTS:
            kind = "quota"
        raise LLMError(f"{failure.reason}; {why}", kind) from None

    def check(self, reply: Reply) -> None:
        """Raise LLMError or PassingFailure unless the reply is a JSON object without an error."""
        if reply.is_success and not has_error(reply.body):
            if isinstance(unwrapped(reply.body), dict):
                return
            raise self.garbage(reply)
        refusal = refusal_of(reply, self.endpoint)
        if isinstance(refusal, LLMError):
            self.replied(reply)
        raise refusal

    def garbage(self, reply: Reply) -> PassingFailure:
        return PassingFailure(
            f"{self.endpoint.host} did not answer with this API's JSON: check --base-url", reply=reply
        )

    def broken(self, missing: str) -> PassingFailure:
        return PassingFailure(f"the stream of {self.endpoint.host} ended early ({missing})")

    @contextmanager
    def start(self, path: str, silence: float) -> Iterator[OpenReply]:
        """Send the request for an answer, yield its reply, and note whether it may be billed."""
        status = None
        try:
            with self.connection.open("POST", path, self.body, silence) as reply:
                status = reply.status
                yield reply
        finally:
            self.may_be_paid = may_be_paid(sent=self.connection.has_sent, status=status)

    def stream(self, path: str, assemble: Callable[["Call", Events], dict[str, Any]]) -> Reply:
        """Return a streamed answer as one reply, whose body `assemble` makes. JSON or a web page may come instead."""
        with self.start(path, self.timing.stream_read) as reply:
            begin = b""
            while not begin.strip() and (piece := next(reply.pieces, b"")):
                begin += piece
            pieces = chain((begin,), reply.pieces)
            if reply.status == 200 and begin.lstrip()[:1] not in (b"{", b"[", b"<"):
                return Reply(reply.status, reply.headers, assemble(self, self._events(pieces)))
            whole = Reply(reply.status, reply.headers, json_or_text(b"".join(pieces)))
            self.check(whole)
            return whole

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            self.listener.progressed(f"{size / 1000:.1f} kB received")
            yield piece

    def _events(self, pieces: Iterable[bytes]) -> Events:
        """Yield each event of a stream. Raises LLMError and PassingFailure for an error in it, or a damaged piece."""
        for name, data in read_events(self._counted(pieces)):
            if data.strip() == b"[DONE]":
                return
            event = json_or_text(data)
            if isinstance(event, str):
                raise PassingFailure(f"the stream of {self.endpoint.host} is damaged")
            if has_error(event):
                self.check(Reply(200, {}, event))
            yield text_of(event, "type") or name, event

    def replied(self, reply: Reply) -> None:
        self.listener.replied(reply.status, reply.headers, reply.body)


def backoff(failures: int, timing: Timing, longest: float) -> float:
    """Return a random delay (full jitter) up to a limit that doubles with each failure; `failures` begins at 0."""
    return timing.random() * min(longest, timing.first_backoff * 2.0 ** min(failures, 16))
