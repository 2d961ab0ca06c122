"""Asks the LLM of a run within its log: what was paid for before counts, and is not asked for again."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from code_commit.errors import LLMError, NotSetUpError, OverBudgetError
from code_commit.exchange import Complete, ExchangeListener, Prompt, Response
from code_commit.llm import LLM, open_llm
from code_commit.llm.addresses import remember_address
from code_commit.llm.ledger import Ledger
from code_commit.llm.vendor import Asked
from code_commit.project import Project
from code_commit.runs.log import RunLog


@contextmanager
def asking(llm: Asked, project: Project, log: RunLog) -> Iterator[Complete]:
    """Give what asks the LLM for the run of this log, which may have been interrupted. Raises NotSetUpError.

    When it cannot be asked, for another reason than the cost, the fallback takes over for good. Recorded responses that
    the run's choice of files took are not taken again, unless that was asked of another model.
    """
    fallback = llm.fallback
    remember_address(llm, project)
    if fallback:
        remember_address(fallback, project, "fallback")
    if fallback and llm.choice != fallback.choice and log.record.asked_model == str(fallback.choice):
        llm, fallback = fallback, None
    ledger = Ledger(llm.settings.max_cost, log.record.spent_usd)
    with ExitStack() as stack:
        current, spare = _fetching_first(_open(llm, project, log, ledger, stack), log, ledger), fallback

        def complete(prompt: Prompt, listener: ExchangeListener) -> Response:
            nonlocal current, spare
            try:
                return current(prompt, listener)
            except LLMError as error:
                if spare is None or isinstance(error, OverBudgetError):
                    raise
                log.fall_back(str(spare.choice), str(error))
            try:
                current, spare = _open(spare, project, log, ledger, stack).complete, None
            except NotSetUpError as error:  # it is too late for that: the run has begun
                raise LLMError(str(error)) from error
            return current(prompt, listener)

        yield complete


def _open(asked: Asked, project: Project, log: RunLog, ledger: Ledger, stack: ExitStack) -> LLM:
    """Return the LLM; the stack closes it."""
    answered = sum(attempt.finish_reason is not None for attempt in log.record.attempts)
    if log.record.choice and asked.settings.select_model in ("", str(asked.choice)):
        answered += log.record.choice.calls
    llm = open_llm(asked, project, ledger, answered)
    stack.enter_context(llm)
    return llm


def _fetching_first(llm: LLM, log: RunLog, ledger: Ledger) -> Complete:
    """Return what asks the LLM, but fetches the answer of a background job that an interrupted call had created.

    What was reserved for that call counts as spent, until the answer says what it cost.
    """
    last = log.record.attempts[-1] if log.record.attempts else None
    pending = last.job_id if last and last.finish_reason is None else None
    reserved = sum(last.unsettled_usd[-1:]) if last and pending else 0.0
    ledger.settle(-reserved, -reserved)

    def complete(prompt: Prompt, listener: ExchangeListener) -> Response:
        nonlocal pending
        job, pending = pending, None
        if job is not None:
            try:
                return llm.fetch(job, listener, reserved)
            except LLMError as error:
                ledger.settle(reserved, reserved)
                log.add_warning("fallback", f"the answer that was on its way cannot be fetched, asking again: {error}")
        return llm.complete(prompt, listener)

    return complete
