"""`replay:FOLDER`: recorded responses in place of an LLM. The Nth call of a run gets N-response.txt."""

from collections.abc import Mapping
from typing import Any, Self

from code_commit.errors import LLMError
from code_commit.exchange import ExchangeListener, Prompt, RequestBody, Response, Settlement
from code_commit.llm.vendor import ModelChoice, Vendor
from code_commit.project import Project
from code_commit.terminal import shown

VENDOR = Vendor(name="replay", names="a folder of recorded responses", sample="replay:FOLDER")


class ReplayLLM:
    """Answers from a folder, relative to the project's root. No network, no cost."""

    def __init__(self, choice: ModelChoice, project: Project, answered: int = 0) -> None:
        self._folder = project.root / choice.name
        self._calls = answered

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: nothing is open."""

    def fetch(self, *_: object) -> Response:
        """Raise LLMError: no background job is recorded."""
        raise LLMError("recorded responses have no background jobs", "replay")

    def read_again(
        self, body: Mapping[str, Any], _prompt: Prompt, _listener: ExchangeListener, reserved: float | None
    ) -> Response | None:
        """Return the counted answer in the body of a logged reply; None otherwise, as its folder still has it."""
        text = body.get("text")
        return _answer(text) if reserved is None and isinstance(text, str) else None

    def complete(self, prompt: Prompt, listener: ExchangeListener) -> Response:
        """Return the next recorded response. Raises LLMError with the file's name if it cannot be read."""
        self._calls += 1
        path = self._folder / f"{self._calls}-response.txt"
        listener.requested(path.as_uri(), {}, RequestBody(system=prompt.system, user=prompt.user))
        try:
            text = path.read_bytes().decode("utf-8")
        except OSError as error:
            name = shown(str(path))
            raise LLMError(
                f"there is no recorded response {name}: {error.strerror}; put one there", "replay"
            ) from error
        except UnicodeDecodeError as error:
            raise LLMError(f"the recorded response {shown(str(path))} is not UTF-8 text", "replay") from error
        listener.replied(200, {}, {"text": text})
        response = _answer(text)
        listener.answered(response)
        return response


def _answer(text: str) -> Response:
    incomplete = None if text.strip() else "empty"
    return Response(text, finish_reason="replayed", incomplete=incomplete, settlement=Settlement(cost_usd=0.0))
