"""Google Gemini by the Interactions API in background mode: a job that is created and polled."""

from collections.abc import Mapping
from typing import Any

from code_commit.errors import LLMError
from code_commit.exchange import Prompt, Usage
from code_commit.llm.answers import Answer, cut_off
from code_commit.llm.background import JobPaths, fetch_job, run_job
from code_commit.llm.call import Call
from code_commit.llm.connection import PassingFailure, Reply
from code_commit.llm.json_values import count_of, list_of, member, text_of
from code_commit.llm.refusals import error_message, explain_failure
from code_commit.model_choice import ModelChoice
from code_commit.settings import Settings

_RETRIED_CODES = frozenset(
    {"rate_limit_exceeded", "internal", "internal_error", "unavailable", "server_error", "500", "503"}
)


class InteractionsAPI:
    """POST /interactions with `background`, then GET /interactions/ID."""

    path = "/interactions"

    def __init__(self, choice: ModelChoice, settings: Settings) -> None:
        self._model = choice.name
        self._settings = settings

    def request_body(self, prompt: Prompt) -> dict[str, Any]:
        """The API's cache is implicit: nothing marks its boundaries, and writing it is free."""
        body: dict[str, Any] = {
            "model": self._model,
            "system_instruction": prompt.system,
            "input": [{"type": "text", "text": text} for text in (prompt.stable, prompt.rest) if text],
            "background": True,
            "store": True,
        }
        generation: dict[str, Any] = {}
        if self._settings.max_output_tokens:
            generation["max_output_tokens"] = self._settings.max_output_tokens
        if self._settings.reasoning_effort:
            generation["thinking_level"] = self._settings.reasoning_effort
        return body | ({"generation_config": generation} if generation else {})

    def ask(self, call: Call, body: Mapping[str, Any]) -> Answer:
        return self._read(call, run_job(call, JobPaths(self.path), body))

    def fetch(self, call: Call, job_id: str) -> Answer:
        return self._read(call, fetch_job(call, JobPaths(self.path), job_id))

    def _read(self, call: Call, reply: Reply) -> Answer:
        final = reply.body
        if text_of(final, "status") == "failed" and error_codes(final) & _RETRIED_CODES:
            raise PassingFailure(f"the job failed: {_complaint(final)}", "broken", None, reply)
        return Answer(
            text=output_text(final),
            finish_reason=text_of(final, "status"),
            incomplete=self._incomplete(call, reply),
            usage=usage_of(final),
            status=reply.status,
            headers=reply.headers,
            body=final,
            request_id=text_of(final, "id") or None,
        )

    def _incomplete(self, call: Call, reply: Reply) -> str | None:
        final, status = reply.body, text_of(reply.body, "status")
        if status == "completed":
            error = next((step["error"] for step in list_of(final, "steps") if member(step, "error")), None)
            return f"filtered by the provider ({_said(error)})" if error else None
        if status in ("incomplete", "requires_continuation"):
            return cut_off(self._settings.max_output_tokens)
        if status == "failed" and any("safety" in code or "prohibited" in code for code in error_codes(final)):
            return f"filtered by the provider ({_complaint(final)})"
        call.replied(reply)
        complaint = "; ".join(filter(None, (explain_failure(error, call.subject) for error in _errors(final))))
        raise LLMError(f"the job ended as '{status}' at {call.connection.host}: {complaint}".rstrip(": "))


def output_text(final: Any) -> str:
    """Join the texts of all the model's steps: a long answer comes in several."""
    return "".join(
        text_of(content, "text")
        for step in list_of(final, "steps")
        if text_of(step, "type") == "model_output"
        for content in list_of(step, "content")
        if text_of(content, "type") == "text"
    )


def usage_of(final: Any) -> Usage:
    """Read the token counts; the API counts thoughts apart from the output."""
    reasoning = count_of(final, "usage", "total_thought_tokens")
    return Usage(
        input=count_of(final, "usage", "total_input_tokens"),
        cached_input=count_of(final, "usage", "total_cached_tokens"),
        output=count_of(final, "usage", "total_output_tokens") + reasoning,
        reasoning=reasoning,
    )


def _errors(final: Any) -> list[Any]:
    return [error for error in (*list_of(final, "errors"), member(final, "error")) if error]


def error_codes(final: Any) -> set[str]:
    """Return the codes of a failed job, in lower case."""
    return {str(member(error, "code")).lower() for error in _errors(final)}


def _complaint(final: Any) -> str:
    return "; ".join(filter(None, map(_said, _errors(final))))


def _said(error: Any) -> str:
    return error_message({"error": error}) or "no reason given"
