"""One call of an LLM: its deadline, its retries, its stream."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, NoReturn, TypeVar

from code_commit.errors import LLMError, LLMErrorKind
from code_commit.exchange import RequestBody
from code_commit.llm.endpoint import Endpoint, Reply, Timing
from code_commit.llm.events import LONGEST_BEGIN, begins_stream, read_events
from code_commit.llm.failures import FailureKind, PassingFailure
from code_commit.llm.http import Connection, OpenReply
from code_commit.llm.refusals import RefusedRequestError, can_come, may_be_paid, mend_address, refusal_of
from code_commit.llm.values import json_or_text, members_of, text_of
from code_commit.llm.words import error_message, has_words, is_error, unwrapped
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.words import duration
from code_commit.terminal import shown

T = TypeVar("T")
HasAnswer = Callable[[Any], bool]  # tells whether a body, or an event, holds a part of an answer
Events = Iterator[tuple[str, Any]]  # the type and the parsed data of each event of a stream, as they come

_LIMITS: Mapping[FailureKind, tuple[int, str]] = {
    "refused": (4, "start the server there, or name another address with {address}"),
    "unresolved": (4, "check that name and the network; if a proxy is the only way out, set HTTPS_PROXY"),
    "missing": (5, "it has expired, or this server may not support background jobs: try {model} chat:NAME there"),
}  # the retries of each kind of failure, and the advice after them; busy servers have no limit

_UNREACHED: Mapping[FailureKind, str] = {
    "refused": "start the proxy there, or correct {variable}",
    "unresolved": "check that name in {variable}, and the network",
}  # the advice where a variable names a proxy, which any other address would have too

_LIMIT_OF_PAID = (5, "each of the requests may have started an answer that is paid for")
"""The same limit for failures of any kind that may be billed."""

TOO_MANY_REQUESTS = frozenset({429, 529})  # HTTP statuses

DONE = "[DONE]"  # the finish reason of a stream that ended by its mark alone: `[DONE]`, or `message_stop`

_SHORTEST_OBEYED = 1.0  # in seconds; some servers ask for less again and again


class Call:
    """The state of one call. Its methods raise LLMError when the call cannot succeed or its time is over."""

    def __init__(
        self,
        connection: Connection,
        listener: AttemptLog,
        body: RequestBody | None = None,
        endpoint: Endpoint | None = None,
        timeout: float | None = None,
    ) -> None:
        self.connection = connection
        self.endpoint = endpoint or connection.endpoint
        self.timing = connection.timing
        self.listener = listener
        self.body = body or RequestBody()  # the request; empty if the call fetches an earlier answer
        self.may_be_paid = False  # whether the latest request for an answer may be billed
        self.is_stream = False
        self.is_done = False  # whether the latest answer came as a stream, and that ended by its own mark
        self.has_replied = False
        self.unsettled = 0  # the number of requests for an answer that may be billed and that no reply has counted
        self._timeout = self.endpoint.settings.llm_timeout if timeout is None else timeout
        self._written: list[str] = []
        self._notice: Any = None
        self._was_empty = False
        connection.deadline = self.timing.now() + self._timeout
        connection.limit = duration(self._timeout) + " (--llm-timeout)" * (timeout is None)

    def retry(
        self,
        ask: Callable[[], T],
        longest_wait: float | None = None,
        is_lasting: Callable[[Reply], object] | None = None,
    ) -> T:
        """Return the result of `ask`, and call it again after each failure that can pass.

        `is_lasting` tells of a reply that it refuses the request for good, whatever its status.
        """
        past: list[PassingFailure] = []
        while True:
            try:
                return ask()
            except PassingFailure as caught:
                failure = caught
            if failure.reply and is_lasting and is_lasting(failure.reply):
                raise RefusedRequestError(failure.reason, "it does not accept such requests", "refused", failure.reply)
            past.append(failure)
            delay = self._delay_after(past, longest_wait or self.timing.longest_backoff)
            limit = self.connection.remaining
            if failure.kind in _UNREACHED:
                alike = sum(each.kind == failure.kind for each in past)
                limit = min(limit, delay * (1 + _LIMITS[failure.kind][0] - alike))
            status = failure.status or (failure.reply.status if failure.reply else None)
            self.listener.retrying(failure.reason, status, delay, limit)
            self.timing.sleep(delay)

    def _delay_after(self, past: list[PassingFailure], longest: float) -> float:
        """Return how long to wait after the last failure. Raises LLMError if no further retry is allowed."""
        failure = past[-1]
        alike = [each for each in past if (each.may_be_paid if failure.may_be_paid else each.kind == failure.kind)]
        most, advice = _LIMIT_OF_PAID if failure.may_be_paid else _LIMITS.get(failure.kind, (len(past), ""))
        if len(alike) > most:
            variable = self.connection.proxy_variable
            advice = (variable and _UNREACHED.get(failure.kind, "").format(variable=variable)) or advice
            advice = advice.format(address=self.endpoint.address_option, model=self.endpoint.model_option)
            self._give_up(failure, f"gave up after {most} retries: {advice}")
        delay = backoff(len(past) - 1, self.timing, longest)
        if failure.delay:
            delay = max(failure.delay, _SHORTEST_OBEYED)
        if delay >= self.connection.remaining:
            is_asked = failure.delay and failure.kind not in _UNREACHED  # else it is our own pause
            asked = f" (the server asks for a wait of {duration(delay)})" if is_asked else ""
            limit = f"the next try would exceed the limit of {self.connection.limit}"
            self._give_up(failure, f"gave up{asked}: {limit}")
        return delay

    def _give_up(self, failure: PassingFailure, why: str) -> NoReturn:
        if failure.reply is not None:
            self.replied(failure.reply)
        kind: LLMErrorKind = "refused" if failure.kind == "missing" else "network"
        if failure.status in TOO_MANY_REQUESTS or (failure.delay and 400 <= (failure.status or 0) < 500):
            kind = "quota"
        raise LLMError(f"{failure.reason}; {why}", kind) from None

    def check(self, reply: Reply, has_answer: HasAnswer) -> None:
        """Raise RefusedRequestError or PassingFailure if the reply is a refusal, or no JSON object."""
        body = unwrapped(reply.body)
        if reply.is_success and has_answer(body):
            self.connection.is_proven = True
            return
        if reply.is_success and isinstance(body, dict) and not (has_words(body) or is_error(body)):
            return
        failure = self.refusal(reply)
        if reply.is_success and not isinstance(body, dict) and isinstance(failure, PassingFailure):
            failure = self.garbage(reply)
        raise failure

    @property
    def way_without_jobs(self) -> str:
        """The advice on a server that does not let a job be fetched."""
        return _LIMITS["missing"][1].format(model=self.endpoint.model_option)

    def refusal(self, reply: Reply, where: str = "", errors: Any = None) -> RefusedRequestError | PassingFailure:
        """Return what a refusal comes to; `errors` are the parts of its reply that say why, if not all of it does."""
        judged = reply if errors is None else reply._replace(body={"error": errors})
        failure = refusal_of(judged, self.endpoint, self.timing.wall_clock(), where)
        failure.reply = reply
        return failure

    def garbage(self, reply: Reply) -> RefusedRequestError | PassingFailure:
        """Return what a reply in no form of this API comes to. The API may not be there until it has answered."""
        words = error_message(reply.body, self.endpoint)
        said = f' but with "{words}"' if words else ""
        reason = f"{self.endpoint.host} did not answer with this API's JSON{said}"
        if self.connection.is_proven or can_come(reply.body):
            return PassingFailure(f"{reason}: check {self.endpoint.address_option}", reply=reply)
        way = f"name the address of the API with {self.endpoint.address_option}"
        return RefusedRequestError(reason, way, "refused", reply)

    def broken(
        self, missing: str, reply: Reply | None = None, *, has_form: bool = False
    ) -> RefusedRequestError | PassingFailure:
        """Return the failure of an answer without its end: what the stream said beside its events, else that it ended
        early. A whole reply without an answer would come again, unless the API has answered: some send one at times.
        One that has the form of an answer may be such a one: it passes once.
        """
        if self._notice is not None:
            return self.refusal(Reply(200, {}, self._notice))
        if reply and not self.is_stream:
            held = ", ".join(shown(str(name)) for name in islice(members_of(reply.body), 8))
            why = f"{missing}; it contains {held or 'nothing'}"
            said = f"{self.endpoint.host} sent a complete reply without an answer ({why})"
            if self.connection.is_proven or (has_form and not self._was_empty):
                self._was_empty = True
                return PassingFailure(said, reply=reply)
            way = f"check {self.endpoint.model_option} and {self.endpoint.address_option}, or name another model"
            return RefusedRequestError(said, way + mend_address(self.endpoint), "refused", reply)
        how = "ended without an answer" if self.is_done else "ended early"
        return PassingFailure(f"the stream of {self.endpoint.host} {how} ({missing})")

    def ends_soon(self, *, is_sure: bool) -> None:
        """Wait no more for the rest of a stream than counts take, if it `is_sure` that the answer has ended."""
        remaining = self.connection.remaining
        self.connection.shut_after(min(self.timing.after_end, remaining) if is_sure else remaining)

    def tell_late(self, failure: LLMError | PassingFailure) -> None:
        """Warn of a refusal after the end of a streamed answer; a connection that breaks or stays open there has lost
        nothing.
        """
        if isinstance(failure, RefusedRequestError | PassingFailure) and failure.reply is not None:
            said = failure.said if isinstance(failure, RefusedRequestError) else failure.reason
            self.listener.warned(f"{said} (after the end of its answer, which is used)")

    @contextmanager
    def start(self, path: str) -> Iterator[OpenReply]:
        """Send the request for an answer, yield its reply, and note whether it may be billed."""
        status = None
        try:
            with self.connection.open("POST", path, self.body) as reply:
                status = reply.status
                yield reply
        finally:
            self.may_be_paid = may_be_paid(sent=self.connection.has_sent, status=status)

    def stream(self, path: str, assemble: Callable[["Call", Events], dict[str, Any]], has_answer: HasAnswer) -> Reply:
        """Return a streamed answer as one reply, whose body `assemble` makes. JSON or a web page may come instead.

        A reply that does not begin as a stream is one if it holds events with an answer.
        """
        self.is_stream, self.is_done, self._notice = False, False, None
        with self.start(path) as reply:
            begin = b""
            while len(begin.lstrip()) < LONGEST_BEGIN and (piece := next(reply.pieces, b"")):
                begin += piece
            if reply.is_success and not begin.strip():
                raise PassingFailure(f"{self.endpoint.host} sent an empty reply")
            pieces: Iterable[bytes] = chain((begin,), reply.pieces)
            if not (reply.is_success and begins_stream(begin)):
                data = b"".join(pieces)
                whole = Reply(reply.status, reply.headers, _answer_in(json_or_text(data), has_answer))
                if isinstance(whole.body, list):  # of all events
                    data = b"\n".join(json.dumps(event).encode() for event in whole.body)
                if isinstance(whole.body, dict) or not any(
                    has_answer(json_or_text(text)) for _, text in read_events([data])
                ):
                    self.check(whole, has_answer)
                    return whole
                pieces = [data]
            self.is_stream = True
            try:
                return Reply(reply.status, reply.headers, assemble(self, self._events(pieces, has_answer)))
            except LLMError as error:
                if error.kind != "timeout" or not self.has_notice:
                    raise
                raise LLMError(f"{error}; it said: {error_message(self._notice, self.endpoint)}", error.kind) from None

    @contextmanager
    def keeping_lost_text(self) -> Iterator[None]:
        """Keep in the log what a stream in the block has brought of an answer, if that is lost."""
        self._written = []
        try:
            yield
        except BaseException:
            if (text := "".join(self._written)).strip():
                self.listener.kept(text, is_whole=False)
            raise

    def keep(self, answer: str) -> str:
        """Keep a whole answer that is not used in the log, and return the name of its file."""
        self._written = []
        return self.listener.kept(answer, is_whole=True)

    @property
    def has_text(self) -> bool:
        """Whether the stream has brought any text of an answer."""
        return any(self._written)

    @property
    def has_notice(self) -> bool:
        """Whether the stream said something after its last piece of an answer."""
        return self._notice is not None

    def wrote(self, text: str) -> None:
        """Remember a piece of a streamed answer's text."""
        self._written.append(text)

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        size = 0
        for piece in pieces:
            size += len(piece)
            self.listener.progressed(f"{size / 1000:.1f} kB received")
            yield piece

    def _events(self, pieces: Iterable[bytes], has_answer: HasAnswer) -> Events:
        """Yield each event of a stream that is a JSON object; any other carries nothing.

        Raises RefusedRequestError and PassingFailure for an error in it, or for JSON that is damaged. An event of
        another kind that has words is a notice: it is a refusal only if no answer comes.
        """
        for name, data in read_events(self._counted(pieces)):
            text = data.strip()
            if text.strip(b'"') == b"[DONE]":
                self.is_done = True
                return
            event = json_or_text(text)
            if isinstance(event, str) and text[:1] in (b"{", b"["):
                raise PassingFailure(f"the stream of {self.endpoint.host} is damaged")
            if has_answer(event):
                self._notice, self.connection.is_proven = None, True
            elif text and (name == "error" or is_error(event)):
                raise self.refusal(Reply(200, {}, event))
            elif (isinstance(event, dict) or b" " in text) and has_words(event):
                self._notice = event
            if isinstance(event, dict):
                yield text_of(event, "type") or name, event

    def replied(self, reply: Reply) -> None:
        self.has_replied = True
        self.listener.replied(reply.status, reply.headers, reply.body)


def _answer_in(body: Any, has_answer: HasAnswer) -> Any:
    """Return the part of a body that has the answer, else the body: gateways put it into a list or a member."""
    body = unwrapped(body)
    parts = body.values() if isinstance(body, dict) and not has_answer(body) else ()
    return next(filter(has_answer, parts), body)


def backoff(failures: int, timing: Timing, longest: float) -> float:
    """Return a random delay (full jitter) up to a limit that doubles with each failure; `failures` begins at 0."""
    return timing.random() * min(longest, timing.first_backoff * 2.0 ** min(failures, 16))


def truncated_prompt(call: Call, what: str, estimate: int, answer: str) -> LLMError:
    """Keep an answer to a part of the prompt in the log, and return why it is not used."""
    kept = call.keep(answer)
    return LLMError(
        f"{call.endpoint.host} {what} of a prompt of about {estimate:,}: it cuts off what does not fit into its "
        "window. Make the window larger (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx in the Modelfile); "
        f"`code-commit apply {kept}` applies the answer anyway",
        "too_long",
    )
