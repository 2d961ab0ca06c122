"""How a command asks the LLM within a run's log: what was paid for before counts, and is not asked for again."""

from collections.abc import Iterator
from contextlib import contextmanager

from code_commit.errors import LLMError
from code_commit.exchange import Complete, ExchangeListener, Prompt, Response
from code_commit.keys import ApiKey
from code_commit.llm import LLM, open_llm
from code_commit.llm.vendor import ModelChoice
from code_commit.project import Project
from code_commit.run_log import RunLog
from code_commit.settings import Settings


@contextmanager
def asking(
    choice: ModelChoice, key: ApiKey | None, settings: Settings, project: Project, log: RunLog
) -> Iterator[Complete]:
    """Give what asks the LLM for the run of this log, which may have been interrupted. Raises NotSetUpError.

    Recorded responses that its choice of files took are not taken again, unless that was asked of another model.
    """
    record = log.record
    costs = [attempt.cost_usd or 0.0 for attempt in record.attempts if attempt.finish_reason is not None]
    if choice.provider != "replay" or settings.select_model in ("", str(choice)):
        costs += record.rollup_costs
    with open_llm(choice, key, settings, project, costs) as llm:
        yield _fetching_first(llm, log)


def _fetching_first(llm: LLM, log: RunLog) -> Complete:
    """Return what asks the LLM, but fetches the answer of a background job that an interrupted call had created."""
    attempts = log.record.attempts
    pending = attempts[-1].job_id if attempts and attempts[-1].finish_reason is None else None

    def complete(prompt: Prompt, listener: ExchangeListener) -> Response:
        nonlocal pending
        job, pending = pending, None
        if job is not None:
            try:
                return llm.fetch(job, listener)
            except LLMError as error:
                log.add_warning(f"the answer that was on its way cannot be fetched, asking again: {error}")
        return llm.complete(prompt, listener)

    return complete
