"""What every API's answer is brought to, whatever its own shape."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from code_commit.exchange import Prompt, Usage
from code_commit.llm.call import Call
from code_commit.llm.connection import Reply
from code_commit.llm.json_values import has_half_characters, whole_characters


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API sent. `incomplete` is None when it said itself that this is all."""

    text: str
    finish_reason: str
    incomplete: str | None
    usage: Usage
    status: int
    headers: Mapping[str, str]
    body: Any = field(repr=False)
    request_id: str | None = None

    @property
    def whole_text(self) -> str:
        """The text, with the halves of UTF-16 pairs that came in different pieces joined."""
        return str(whole_characters(self.text))

    @property
    def flaw(self) -> str | None:
        """Why the text cannot be used, in words that follow "the response is", None when it can."""
        if self.incomplete is not None:
            return self.incomplete
        if not self.text.strip():
            return "empty"
        if has_half_characters(self.text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")):
            return "damaged: it holds half of a character"
        return None


class API(Protocol):
    """One way to ask an LLM over HTTP."""

    @property
    def path(self) -> str:
        """Where the request goes, below the base URL."""

    def request_body(self, prompt: Prompt) -> dict[str, Any]:
        """Return the request as the vendor's reference defines it."""

    def ask(self, call: Call, body: Mapping[str, Any]) -> Answer:
        """Make the request once. Raises LLMError, and PassingFailure where it can be made again."""


@runtime_checkable
class JobAPI(API, Protocol):
    """One that works in the background: an answer can be fetched later."""

    def fetch(self, call: Call, job_id: str) -> Answer:
        """Wait for the job's answer. Raises LLMError, and PassingFailure where it failed in a way that can pass."""


def cut_off(limit: int | None) -> str:
    """Say that the output limit was reached."""
    return f"cut off at the output limit of {limit} tokens" if limit else "cut off at the output limit"


def reply_id(reply: Reply, *names: str) -> str | None:
    """Return the request's id from the first of the headers that is there."""
    return next((reply.headers[name] for name in names if reply.headers.get(name)), None)
