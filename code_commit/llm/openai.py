"""OpenAI by the Responses API in background mode: a job that is created and polled."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_commit.errors import LLMError
from code_commit.exchange import Prompt, Usage
from code_commit.llm.answers import Answer, cut_off, reply_id
from code_commit.llm.background import JobPaths, fetch_job, run_job
from code_commit.llm.call import Call
from code_commit.llm.connection import PassingFailure, Reply
from code_commit.llm.json_values import count_of, list_of, member, text_of
from code_commit.llm.models import takes_cache_options
from code_commit.llm.refusals import error_message, explain_failure
from code_commit.model_choice import ModelChoice
from code_commit.settings import Settings

_CACHE_LIFE = "30m"
_RETRIED_CODES = frozenset({"server_error", "rate_limit_exceeded"})
_REFUSAL_CODES = frozenset({"invalid_prompt", "bio_policy", "misalignment_policy_violation", "content_filter"})


class ResponsesAPI:
    """POST /responses with `background`, then GET /responses/ID."""

    path = "/responses"

    def __init__(self, choice: ModelChoice, settings: Settings, root: Path) -> None:
        self._model = choice.name
        self._settings = settings
        self._root = root

    def request_body(self, prompt: Prompt) -> dict[str, Any]:
        marks = takes_cache_options(self._model)
        breakpoint_here = {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": _CACHE_LIFE}} if marks else {}
        blocks = [
            {"type": "input_text", "text": text, **mark}
            for text, mark in ((prompt.stable, breakpoint_here), (prompt.rest, {}))
            if text
        ]
        body: dict[str, Any] = {
            "model": self._model,
            "instructions": prompt.system,
            "input": [{"role": "user", "content": blocks}],
            "background": True,
            "store": True,
        }
        if self._settings.max_output_tokens:
            body["max_output_tokens"] = self._settings.max_output_tokens
        if self._settings.reasoning_effort:
            body["reasoning"] = {"effort": self._settings.reasoning_effort}
        if prompt.stable:
            body["prompt_cache_key"] = self._cache_key()
        if marks:  # without a breakpoint this is what keeps the API from writing, and charging for, a cache
            body["prompt_cache_options"] = {"mode": "explicit"}
        return body

    def _cache_key(self) -> str:
        return hashlib.sha256(f"{self._root}\0{self._model}".encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def ask(self, call: Call, body: Mapping[str, Any]) -> Answer:
        return self._read(call, run_job(call, JobPaths(self.path), body))

    def fetch(self, call: Call, job_id: str) -> Answer:
        return self._read(call, fetch_job(call, JobPaths(self.path), job_id))

    def _read(self, call: Call, reply: Reply) -> Answer:
        final = reply.body
        status = text_of(final, "status")
        if status == "failed" and text_of(final, "error", "code") in _RETRIED_CODES:
            raise PassingFailure(f"the job failed: {error_message(final)}", "broken", None, reply)
        incomplete = self._incomplete(call, reply)
        return Answer(
            text=output_text(final),
            finish_reason=text_of(final, "incomplete_details", "reason") or status,
            incomplete=incomplete,
            usage=usage_of(final),
            status=reply.status,
            headers=reply.headers,
            body=final,
            request_id=reply_id(reply, "x-request-id") or text_of(final, "id") or None,
        )

    def _incomplete(self, call: Call, reply: Reply) -> str | None:
        final = reply.body
        status, reason = text_of(final, "status"), text_of(final, "incomplete_details", "reason")
        if status == "completed":
            refusal = refusal_text(final)
            return f"refused: {refusal}" if refusal else None
        if status == "incomplete":
            if reason in ("max_output_tokens", "max_tokens", ""):
                return cut_off(self._settings.max_output_tokens)
            return f"filtered by the provider ({reason})" if reason == "content_filter" else f"incomplete ({reason})"
        code = text_of(final, "error", "code")
        if status == "failed" and code in _REFUSAL_CODES:
            return f"refused ({code}: {error_message(final)})"
        call.replied(reply)
        complaint = explain_failure(member(final, "error"), call.subject)
        raise LLMError(f"the job ended as '{status}' at {call.connection.host}: {code} {complaint}".rstrip(": "))


def output_text(final: Any) -> str:
    """Join the texts of the answer, without what the model says on the way."""
    return "".join(
        text_of(content, "text") for content in _contents(final) if text_of(content, "type") == "output_text"
    )


def refusal_text(final: Any) -> str:
    """Return the words in which the model refuses, "" when it does not."""
    refusals = (text_of(content, "refusal") for content in _contents(final) if text_of(content, "type") == "refusal")
    return " ".join(refusals).strip()


def _contents(final: Any) -> list[Any]:
    return [
        content
        for item in list_of(final, "output")
        if text_of(item, "type") == "message" and text_of(item, "phase") != "commentary"
        for content in list_of(item, "content")
    ]


def usage_of(final: Any) -> Usage:
    """Read the token counts. The input includes what the cache gave and took, the output the reasoning."""
    return Usage(
        input=count_of(final, "usage", "input_tokens"),
        cached_input=count_of(final, "usage", "input_tokens_details", "cached_tokens"),
        cache_write=count_of(final, "usage", "input_tokens_details", "cache_write_tokens"),
        output=count_of(final, "usage", "output_tokens"),
        reasoning=count_of(final, "usage", "output_tokens_details", "reasoning_tokens"),
    )
