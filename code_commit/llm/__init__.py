"""The LLM: a prompt goes out, a response comes back, whichever API is asked.

`open_llm` gives the LLM of a run. Importing this package loads neither httpx nor pydantic.
"""

from types import TracebackType
from typing import Protocol, Self

from code_commit.config import ApiKey, ModelChoice, Settings
from code_commit.exchange import ExchangeListener, Prompt, Response
from code_commit.llm.budget import explain_misfit
from code_commit.llm.endpoint import check_base_url
from code_commit.llm.models import context_window, estimate_tokens
from code_commit.llm.prices import cost_of, price_of
from code_commit.project import Project

__all__ = [
    "LLM",
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


def open_llm(choice: ModelChoice, key: ApiKey | None, settings: Settings, project: Project) -> LLM:
    """Return the LLM that is to be asked; nothing is sent yet. Raises NotSetUpError."""
    if choice.provider == "replay":
        from code_commit.llm.replay import ReplayLLM

        return ReplayLLM(choice, project)
    from code_commit.llm.network import NetworkLLM

    return NetworkLLM(choice, key, settings, project)
