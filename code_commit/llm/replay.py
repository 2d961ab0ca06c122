"""`replay:FOLDER`: recorded responses in place of an LLM. The Nth call of a run gets N-response.txt."""

import os
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import quote

from code_commit.errors import LLMError
from code_commit.exchange import Prompt, RequestBody, Response, Settlement
from code_commit.llm.vendor import ModelChoice, Vendor
from code_commit.project import Project
from code_commit.runs.attempt_log import AttemptLog
from code_commit.terminal import shown

VENDOR = Vendor(name="replay", names="a folder of recorded responses", sample="replay:FOLDER")


class LLMWithoutAPI:
    """Has nothing open between two calls, no retries and no background jobs."""

    finish_reason: str
    cost_usd: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def fetch(self, *_: object) -> Response:
        raise LLMError("an LLM without an API has no background jobs", "refused")

    def read_again(
        self, body: Mapping[str, Any], _prompt: Prompt, _listener: AttemptLog, _reserved: float | None
    ) -> Response | None:
        """Return the answer in the body of a logged reply, None where it has none."""
        text = body.get("text")
        return self._answer(text) if isinstance(text, str) else None

    def _answer(self, text: str) -> Response:
        incomplete = None if text.strip() else "empty"
        return Response(text, self.finish_reason, incomplete, settlement=Settlement(cost_usd=self.cost_usd))

    def tell(self, text: str, listener: AttemptLog) -> Response:
        """Log an answer, and return it."""
        listener.replied(200, {}, {"text": text})
        response = self._answer(text)
        listener.answered(response)
        return response


class ReplayLLM(LLMWithoutAPI):
    """Answers from a folder, relative to the project's root. No network, no cost."""

    finish_reason = "replayed"
    cost_usd = 0.0

    def __init__(self, choice: ModelChoice, project: Project, answered: int = 0) -> None:
        self._folder = project.root / choice.name
        self._calls = answered

    def read_again(
        self, body: Mapping[str, Any], prompt: Prompt, listener: AttemptLog, reserved: float | None
    ) -> Response | None:
        """Return the counted answer in the body of a logged reply; None otherwise, as its folder still has it."""
        return super().read_again(body, prompt, listener, reserved) if reserved is None else None

    def complete(self, prompt: Prompt, listener: AttemptLog) -> Response:
        """Return the next recorded response. Raises LLMError with the file's name if it cannot be read."""
        self._calls += 1
        path = self._folder / f"{self._calls}-response.txt"
        listener.requested(
            f"file://{quote(os.fsencode(path))}", {}, RequestBody(system=prompt.system, user=prompt.user)
        )
        try:
            text = path.read_bytes().decode("utf-8")
        except OSError as error:
            name = shown(str(path))
            raise LLMError(
                f"there is no recorded response {name}: {error.strerror}; put one there", "replay"
            ) from error
        except UnicodeDecodeError as error:
            raise LLMError(f"the recorded response {shown(str(path))} is not UTF-8 text", "replay") from error
        return self.tell(text, listener)
