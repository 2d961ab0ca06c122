"""The LLM: a prompt goes out, a response comes back, whichever API is asked.

`open_llm` gives the LLM of a run. Importing this package loads neither httpx nor pydantic.
"""

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from code_commit.exchange import ExchangeListener, Prompt, Response
from code_commit.keys import ApiKey
from code_commit.llm.budget import explain_misfit
from code_commit.llm.endpoint import check_base_url
from code_commit.llm.models import context_window, estimate_tokens
from code_commit.llm.prices import cost_of, price_of
from code_commit.model_choice import ModelChoice
from code_commit.project import Project
from code_commit.settings import Settings

__all__ = [
    "LLM",
    "Earlier",
    "check_base_url",
    "context_window",
    "cost_of",
    "estimate_tokens",
    "explain_misfit",
    "open_llm",
    "price_of",
]


class LLM(Protocol):
    """What a run asks. Use it as a context manager: the end closes its connection."""

    base_url: str
    """Where the API is; "" for recorded responses."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def complete(self, prompt: Prompt, listener: ExchangeListener) -> Response:
        """Ask once. Raises LLMError when the LLM could not be asked.

        A response that the API does not call complete comes back with `incomplete` set.
        """

    def fetch(self, job_id: str, listener: ExchangeListener) -> Response:
        """Wait for the answer of a background job that an earlier run created. Raises LLMError."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a run that is resumed has behind it: the calls that were answered, and what they cost in US dollars."""

    answered: int = 0
    cost_usd: float = 0.0


def open_llm(
    choice: ModelChoice, key: ApiKey | None, settings: Settings, project: Project, earlier: Earlier | None = None
) -> LLM:
    """Return the LLM that is to be asked; nothing is sent yet. Raises NotSetUpError."""
    earlier = earlier or Earlier()
    if choice.provider == "replay":
        from code_commit.llm.replay import ReplayLLM

        return ReplayLLM(choice, project, earlier.answered)
    from code_commit.llm.network import NetworkLLM

    llm = NetworkLLM(choice, key, settings, project)
    llm.budget.charge(earlier.cost_usd)
    return llm
