"""The LLM: a prompt goes out, a response comes back. Importing this package loads neither httpx nor pydantic."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import Prompt, RequestBody, Response, Settlement, Usage
from code_commit.interrupts import begin_call, signals_blocked
from code_commit.llm.addresses import state_folder
from code_commit.llm.call import DONE, Call
from code_commit.llm.command import VENDOR as COMMAND
from code_commit.llm.command import CommandLLM
from code_commit.llm.endpoint import Endpoint, Reply, Timing, at
from code_commit.llm.failures import PassingFailure
from code_commit.llm.http import Connection
from code_commit.llm.jobs import fetch_job, run_job
from code_commit.llm.ledger import ROUNDING, Ledger
from code_commit.llm.local import loaded_window
from code_commit.llm.models import UNLIMITED, VENDORS, check_base_url, explain_misfit, longest_answer
from code_commit.llm.money import Bid, bid_for, cost_of
from code_commit.llm.pace import Pace
from code_commit.llm.parameters import OF_TEMPLATE, adapted, first_dialect
from code_commit.llm.programs import KeyProgram
from code_commit.llm.reach import reach_of, with_headers
from code_commit.llm.refusals import RefusedRequestError
from code_commit.llm.replay import ReplayLLM
from code_commit.llm.values import count_of, text_of
from code_commit.llm.vendor import LlmConfig, estimate_tokens, has_open_block, is_same_model
from code_commit.project import Project
from code_commit.redaction import Redactor, whole_characters
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.words import count
from code_commit.settings import SERVER
from code_commit.terminal import shown
from code_commit.version import __version__

_COUNT_MARGIN = 1.02  # providers call their count of tokens an estimate; multiply it by this
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": f"code-commit/{__version__} (python httpx)",
}


class NetworkLLM:
    """Asks an API over HTTP: one client for a whole run, one `Call` for each `complete`."""

    def __init__(self, config: LlmConfig, project: Project, ledger: Ledger, timing: Timing | None = None) -> None:
        choice, key, settings = config.choice, config.key, config.settings
        vendor, reach = VENDORS[choice.provider], reach_of(choice, settings)
        value, self._reach = key.current() if key else "", reach
        assert vendor.api is not None, vendor.name  # noqa: S101 - a caller's mistake
        self._ledger, self._choice, self._api = ledger, choice, vendor.api
        self._endpoint = Endpoint(
            model=choice.name,
            base_url=check_base_url(choice, settings),
            settings=settings,
            root=project.root,
            key_source=key.source if key else "",
            censor=(key.program.censor if key and key.program else Redactor([value])).redact_cut,
            tells_progress=config.tells_progress,
            role=config.role,
            path=vendor.api.path,
            is_vendors=check_base_url(choice, settings) == vendor.base_url,
        )

        def headers(value: str) -> dict[str, str]:
            return with_headers(_HEADERS, reach.request_headers(vendor, value, settings))

        renew = _renewal(key.program, headers) if key and key.program else None
        self._connection = Connection(self._endpoint, headers(value), timing or Timing(), reach.certificate, renew)
        self._dialect = first_dialect(settings)
        self._has_window = False
        self._pace = Pace(self._endpoint, state_folder(project), self._connection.timing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def complete(self, prompt: Prompt, listener: AttemptLog) -> Response:
        """Return the answer, and retry failures that can pass. Raises LLMError, whose message never holds the key.

        Each request that may start an answer reserves its highest cost. If the money left pays only for a shorter
        answer, the request asks for a shorter one. Raises MachineError if the pace of requests cannot be kept, or if
        the disk has no room for the answer.
        """
        settings, left = self._endpoint.settings, self._ledger.left
        if misfit := explain_misfit(self._choice, settings, prompt):
            raise LLMError(f"{misfit}, in a new run", "too_long")
        listener.make_room(longest_answer(self._choice, settings))
        bid = bid_for(self._choice, settings, prompt, left)
        least = bid_for(self._choice, settings, prompt, left, counted=0)
        if bid and least and least.usd <= left + ROUNDING < bid.usd and (tokens := self._count_tokens(prompt)):
            bid = bid_for(self._choice, settings, prompt, left, min(tokens, bid.tokens))
        if bid and left < math.inf:
            settings = settings._replace(max_output_tokens=bid.output)
        endpoint = self._endpoint._replace(settings=settings)
        call = Call(self._connection, listener, endpoint=endpoint)
        with _last_reply_logged(call):
            response = self._ask_in_its_dialect(call, prompt, bid)
        self._doubt(call, prompt, response)
        return response

    def _ask_in_its_dialect(self, call: Call, prompt: Prompt, bid: Bid | None) -> Response:
        """Return the answer. A request is sent again at once without the parameter that the server refuses."""
        tokens = estimate_tokens(prompt.text)
        while True:
            body = self._make_request(call, prompt)
            settings = self._endpoint.settings
            adapt = partial(adapted, self._dialect, body, settings=settings, renames=self._api.renames)
            try:
                return call.retry(
                    lambda: self._ask(call, self._affordable(call, prompt, bid), tokens), is_lasting=adapt
                )
            except RefusedRequestError as refusal:
                way = adapt(refusal.reply)
                if way is None or (call.unsettled and refusal.reply.status != OF_TEMPLATE):
                    raise
                self._dialect, how = way
                reason = f"{refusal.said}; asked once more {how}"
                call.listener.retrying(reason, refusal.reply.status, 0.0, self._connection.remaining)

    def _make_request(self, call: Call, prompt: Prompt) -> Mapping[str, Any]:
        """Make the request of a call, log it and return its body."""
        body = self._dialect.body(self._api.request_body(call.endpoint, self._dialect.prompt(prompt)))
        call.body = RequestBody(body)
        headers = self._reach.shown(self._connection.headers)
        call.listener.requested(at(call.endpoint.base_url, self._api.path), headers, call.body)
        return body

    def _affordable(self, call: Call, prompt: Prompt, bid: Bid | None) -> Bid | None:
        """Return the bid, or one for a shorter answer, which the request then asks for, if only that is covered."""
        left = self._ledger.left
        if bid is None or bid.usd <= left + ROUNDING:
            return bid
        shorter = bid_for(self._choice, call.endpoint.settings, prompt, left, bid.tokens)
        if shorter is None or shorter.usd > left + ROUNDING:
            return bid
        settings = call.endpoint.settings._replace(max_output_tokens=shorter.output)
        call.endpoint = call.endpoint._replace(settings=settings)
        self._make_request(call, prompt)
        return shorter

    def _doubt(self, call: Call, prompt: Prompt, response: Response) -> None:
        """Warn of an answer by another model, of one that may be cut off, and of a window that is too small."""
        asked, host = self._endpoint.model, self._endpoint.host
        if response.model and not is_same_model(asked, response.model):
            call.listener.warned(f"{host} answered with the model {shown(response.model[:200])}, not {asked}")
        if call.is_stream and not (call.is_done and response.finish_reason != DONE) and has_open_block(response.text):
            call.listener.warned(
                f"the stream of {host} ended without all of its end marks, and the answer ended in an open block"
            )
        if self._choice.provider != "chat" or self._has_window:
            return
        self._has_window, settings = True, self._endpoint.settings
        window = loaded_window(self._endpoint, self._connection.headers)
        if window and window < (settings.context_window or window + 1):
            sources = {**settings.sources, SERVER: {"context_window": window}}
            settings = settings._replace(context_window=window, sources=sources)
            self._endpoint = self._endpoint._replace(settings=settings)
        if window and (tokens := estimate_tokens(prompt.text)) > window:
            call.listener.warned(
                f"{host} has loaded {asked} with a window of {window:,} tokens, and the prompt has about {tokens:,}: "
                "it may have read only a part (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx in the Modelfile)"
            )

    def _count_tokens(self, prompt: Prompt) -> int:
        """Return how many tokens the provider counts in a prompt, 0 if it does not say."""
        if (counter := self._api.counter) is None:
            return 0
        path, body = counter.path(self._endpoint.model), RequestBody(counter.request_body(self._endpoint, prompt))
        timing, timeout = self._connection.timing, self._endpoint.settings.llm_timeout
        self._connection.deadline = timing.now() + timeout
        try:
            reply = self._connection.send("POST", path, body, timing.read)
        except (PassingFailure, LLMError):
            return 0
        return math.ceil(count_of(reply.body, counter.member) * _COUNT_MARGIN) if reply.is_success else 0

    def _ask(self, call: Call, bid: Bid | None, tokens: int) -> Response:
        """Send the request and return the answer. The reservation stays until the provider counts the tokens.

        The wait for its turn, as a prompt of about so many tokens, is no part of the call's time.
        """
        reserved = bid.usd if bid else None
        path, assemble, begun = self._api.path, self._api.assemble, call.timing.now()
        self._pace.wait(tokens, call.listener.progressed)
        begin_call()
        self._connection.deadline += call.timing.now() - begun
        if bid:
            self._ledger.reserve(bid.usd, str(bid))
        call.may_be_paid = False
        call.unsettled += 1
        call.listener.reserved(reserved)
        try:
            with call.keeping_lost_text():
                reply = call.stream(path, assemble, self._api.has_answer) if assemble else run_job(call, path)
                response = self._read(call, reply, bid, reserved or 0.0)
        except BaseException as failure:
            if isinstance(failure, PassingFailure):
                failure.may_be_paid = call.may_be_paid
            if not call.may_be_paid:
                call.unsettled -= 1
                self._ledger.settle(reserved or 0.0, 0.0)
                call.listener.released(reserved)
            raise
        usage = response.settlement.usage
        self._pace.add(max(0, usage.input - tokens) + usage.output)
        return response

    def fetch(self, job_id: str, listener: AttemptLog, reserved: float, timeout: float | None = None) -> Response:
        """Return the answer of an earlier call's job. Raises LLMError, of the kind `refused` if there is none."""
        listener.make_room(longest_answer(self._choice, self._endpoint.settings))
        call = Call(self._connection, listener, timeout=timeout)
        with _last_reply_logged(call):
            try:
                reply = fetch_job(call, self._api.path, job_id)
                return self._read(call, reply, Bid(UNLIMITED, reserved, 0, reserved), reserved)
            except PassingFailure as failure:
                raise LLMError(failure.reason, "refused") from None

    def read_again(
        self, body: Mapping[str, Any], prompt: Prompt, listener: AttemptLog, reserved: float | None
    ) -> Response | None:
        """Return the answer in the body of a logged reply, None if it has none. Nothing is sent, counted or logged.

        `reserved` is the highest cost of its request, by the record; None where its cost is counted already.
        """
        endpoint = self._endpoint
        call = Call(self._connection, listener, RequestBody(self._api.request_body(endpoint, prompt)))
        bid, reply = bid_for(self._choice, endpoint.settings, prompt, math.inf), Reply(200, {}, body)
        try:
            response = self._understand(call, reply, self._price(reply, bid, reserved or 0.0 if bid else 0.0))
        except (PassingFailure, LLMError):
            return None
        return response if response.finish_reason else None

    def _read(self, call: Call, reply: Reply, bid: Bid | None, reserved: float) -> Response:
        """Return the answer of a final reply, once it is on disk. Raises LLMError or PassingFailure if it has none.

        Either way the cost of the reply is counted, but not before the reply is on disk: until then a later call may
        still fetch it.
        """
        settlement = self._price(reply, bid, reserved)
        with signals_blocked():
            self._ledger.settle(reserved - settlement.unsettled_usd, settlement.cost_usd or 0.0)
            call.unsettled -= bool(settlement.usage.input and settlement.usage.output)
            try:
                response = self._understand(call, reply, settlement)
            except (PassingFailure, LLMError) as failure:
                if isinstance(failure, LLMError) and not call.has_replied:
                    call.replied(reply)
                call.listener.settled(settlement)
                raise
            call.replied(reply)
            call.listener.answered(response)
        return response

    def _price(self, reply: Reply, bid: Bid | None, reserved: float) -> Settlement:
        usage = self._api.usage(reply.body)
        if bid is None:  # no price is known
            return Settlement(usage=usage)
        cost = cost_of(self._choice, self._endpoint.settings, usage, bid.tokens)
        is_known = bid.usd <= reserved + ROUNDING  # which part of the reservation is the answer's
        most = reserved if is_known else max(0.0, reserved - (cost or 0.0))
        return Settlement(reserved, usage, cost, min(bid.unsettled_after(usage), most))

    def _understand(self, call: Call, reply: Reply, settlement: Settlement) -> Response:
        """Return the answer in a reply. Raises LLMError or PassingFailure if it has none."""
        response = self._api.read(call, reply)
        text = whole_characters(response.text)
        incomplete = _explain_unusable(response, text, settlement.usage)
        model = text_of(reply.body, "model")
        return response._replace(text=text, incomplete=incomplete, settlement=settlement, model=model)


@contextmanager
def _last_reply_logged(call: Call) -> Iterator[None]:
    """Log the refusal that ends a call."""
    try:
        yield
    except RefusedRequestError as error:
        if not call.has_replied:
            call.replied(error.reply)
        raise


def _renewal(program: KeyProgram, headers: Callable[[str], Mapping[str, str]]) -> Callable[[], Mapping[str, str]]:
    """Return the function that makes the headers with a new key of the program. It raises LLMError."""

    def renew() -> Mapping[str, str]:
        try:
            return headers(program.renew())
        except NotSetUpError as error:
            raise LLMError(str(error), "key") from error

    return renew


def _explain_unusable(response: Response, text: str, usage: Usage) -> str | None:
    """Return why the response cannot be used, in words that follow "the response is", None when it can."""
    if response.incomplete is not None:
        return response.incomplete
    if not text.strip():
        tokens = usage.reasoning or (response.thoughts and (usage.output or estimate_tokens(response.thoughts)))
        return f"only thoughts, {count(tokens, 'token')} of them" if tokens else "empty"
    if text.count("\ufffd") > response.text.count("\ufffd"):
        return "damaged: it contains half of a character"
    return None


LLM = NetworkLLM | CommandLLM | ReplayLLM  # a context manager; leaving it closes the connection


def open_llm(
    config: LlmConfig, project: Project, ledger: Ledger, answered: int = 0, timing: Timing | None = None
) -> LLM:
    """Return the LLM, past so many recorded responses; nothing is sent yet. Raises NotSetUpError."""
    if VENDORS[config.choice.provider].api is None:
        is_program = config.choice.provider == COMMAND.name
        return CommandLLM(config, project) if is_program else ReplayLLM(config.choice, project, answered)
    return NetworkLLM(config, project, ledger, timing)
