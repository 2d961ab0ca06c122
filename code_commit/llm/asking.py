"""The LLM of a run, with the run's log: no paid answer is requested again.

A reply in the log, whatever run.json says of it, comes before the job of an earlier call, and that before a new call.
A fleet may let no new call begin.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from code_commit.errors import LLMError, NotSetUpError, OverBudgetError, in_words
from code_commit.exchange import Prompt, Response
from code_commit.interrupts import begin_call
from code_commit.llm import LLM, open_llm
from code_commit.llm.addresses import remember_address
from code_commit.llm.endpoint import Timing
from code_commit.llm.ledger import Ledger
from code_commit.llm.refusals import RefusedRequestError
from code_commit.llm.vendor import LlmConfig
from code_commit.project import Project
from code_commit.runs.attempt_log import AttemptLog, Complete
from code_commit.runs.log import RunLog
from code_commit.runs.replies import read_reply

_LAST_LOOK = 10.0  # in seconds: the wait for a job of the first model before the fallback is asked


@contextmanager
def asking(llm: LlmConfig, project: Project, log: RunLog, timing: Timing | None = None) -> Iterator[Complete]:
    """Yield the function that asks the LLM of a run, or its fallback once that has taken over. Raises NotSetUpError."""
    told = [remember_address(llm, project), llm.fallback and remember_address(llm.fallback, project, "fallback")]
    for each in filter(None, told):
        log.listener.say(each)
    with ExitStack() as stack:
        asker = _Asker(llm, project, log, stack, timing)
        asker.open(asker.current)  # raises before anything is sent
        yield asker.complete


class _Asker:
    """Asks the LLM of a run, then its fallback, and first fetches the job of an earlier call."""

    def __init__(self, llm: LlmConfig, project: Project, log: RunLog, stack: ExitStack, timing: Timing | None) -> None:
        self._first, self._fallback = llm, llm.fallback
        self._project, self._log, self._stack, self._timing = project, log, stack, timing
        cost, limit = log.record.cost, llm.settings.max_cost
        named = in_words(llm.settings.origin("max_cost", f"{limit:g}")[:1]) if limit else ""
        self._ledger = Ledger(limit, cost.settled or 0.0, cost.unsettled, named)
        self._opened: list[tuple[LlmConfig, LLM]] = []
        self.current = llm
        if llm.fallback and llm.choice != llm.fallback.choice and log.record.asked_model == str(llm.fallback.choice):
            self.current = llm.fallback

    def complete(self, prompt: Prompt, listener: AttemptLog) -> Response:
        if answer := self._find_in_log(prompt, listener):
            return answer
        try:
            return self._fetch(listener) or self._ask(prompt, listener)
        except LLMError as error:
            if self._fallback is None or self.current is self._fallback or isinstance(error, OverBudgetError):
                raise
            failure = error
        if answer := self._fetch(listener, _LAST_LOOK):
            return answer
        self._log.fall_back(str(self._fallback.choice), str(failure))
        self.current = self._fallback
        try:
            return self._ask(prompt, listener)
        except NotSetUpError as error:  # the run has begun, so this is no set-up problem any more
            raise LLMError(str(error)) from error

    def _ask(self, prompt: Prompt, listener: AttemptLog) -> Response:
        begin_call()
        listener.prompted(prompt)
        return self.open(self.current).complete(prompt, listener)

    def _find_in_log(self, prompt: Prompt, listener: AttemptLog) -> Response | None:
        """Return the answer of the latest attempt's reply in the log, None without one, and count it if need be."""
        attempt = self._log.record.attempts[-1]
        reply = read_reply(self._log.folder, attempt.number)
        if reply is None:
            return None
        is_of_job = attempt.job_id is not None and reply.body.get("id") == attempt.job_id
        owner = self._owner(attempt.job_model if is_of_job else attempt.model)
        reserved = None
        if attempt.finish_reason is None:
            reserved = attempt.job_usd if is_of_job else (attempt.unsettled_usd or [0.0])[-1]
        response = self.open(owner).read_again(reply.body, prompt, listener, reserved)
        if response and reserved is not None:
            attempt.model, attempt.seconds = str(owner.choice), reply.seconds
            settlement = response.settlement
            self._ledger.settle((settlement.reserved or 0.0) - settlement.unsettled_usd, settlement.cost_usd or 0.0)
            listener.answered(response)
        return response

    def _owner(self, model: str) -> LlmConfig:
        configs = (self._first, self._fallback)
        return next((each for each in configs if each and str(each.choice) == model), self._first)

    def _fetch(self, listener: AttemptLog, timeout: float | None = None) -> Response | None:
        """Return the answer of the latest attempt's job, None without one. Raises LLMError if it may still come."""
        attempt = self._log.record.attempts[-1]
        if attempt.job_id is None or attempt.finish_reason is not None:
            return None
        owner = self._owner(attempt.job_model)
        try:
            response = self.open(owner).fetch(attempt.job_id, listener, attempt.job_usd, timeout)
        except LLMError as error:
            if error.kind != "refused" and owner is self.current and timeout is None:
                raise
            why = error.said if isinstance(error, RefusedRequestError) else error  # its advice is for an end of the run
            self._log.add_warning("fallback", f"the pending answer cannot be fetched, asking again: {why}")
            return None
        self.current, attempt.model = owner, str(owner.choice)
        return response

    def open(self, config: LlmConfig) -> LLM:
        """Open the LLM of this config once, and return it; `replay:` skips used answers. Raises NotSetUpError."""
        for known, llm in self._opened:
            if known is config:
                return llm
        answered = sum(attempt.finish_reason is not None for attempt in self._log.record.attempts)
        if self._log.record.choice and config.settings.select_model in ("", str(config.choice)):
            answered += self._log.record.choice.calls
        llm = open_llm(config, self._project, self._ledger, answered, self._timing)
        self._stack.enter_context(llm)
        self._opened.append((config, llm))
        return llm
