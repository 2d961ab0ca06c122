"""Google Gemini by the Interactions API: POST /interactions with `background`, then GET /interactions/ID.

Facts and prices: the vendor's reference of 2026-11-21.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from code_commit.exchange import Prompt, Response, Usage
from code_commit.llm.call import Call
from code_commit.llm.endpoint import Endpoint, Reply
from code_commit.llm.jobs import failure_of, is_job
from code_commit.llm.usage import Counts, maybe_count, usage_of
from code_commit.llm.values import count_of, list_of, member, text_of
from code_commit.llm.vendor import API, Model, PriceChange, TokenCounter, Vendor, cut_off
from code_commit.llm.words import error_message
from code_commit.settings import Price

_CUT_OFF = ("incomplete", "requires_continuation")
_ARGON_LATER = PriceChange(Price(4, 20, 0.20), from_day="2026-12-01")
_FLASH_LATER = PriceChange(Price(1.50, 7.50, 0.15), from_day="2027-01-01")


def request_body(endpoint: Endpoint, prompt: Prompt) -> dict[str, Any]:
    """Return the request. The API's cache is implicit: it needs no marks, and writing it is free."""
    body: dict[str, Any] = {
        "model": endpoint.model,
        "system_instruction": prompt.system,
        "input": [{"type": "text", "text": text} for text in (prompt.stable, prompt.rest) if text],
        "background": True,
        "store": True,
    }
    generation: dict[str, Any] = {}
    if endpoint.settings.max_output_tokens:
        generation["max_output_tokens"] = endpoint.settings.max_output_tokens
    if endpoint.settings.reasoning_effort:
        generation["thinking_level"] = endpoint.settings.reasoning_effort
    return body | ({"generation_config": generation} if generation else {})


def count_body(_: Endpoint, prompt: Prompt) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text} for text in (prompt.system, prompt.user) if text]}]}


def read(call: Call, reply: Reply) -> Response:
    final = reply.body
    return Response(
        text=_output_text(final),
        finish_reason=text_of(final, "status"),
        incomplete=_incomplete(call, reply),
        is_cut_off=text_of(final, "status") in _CUT_OFF,
        request_id=text_of(final, "id") or None,
        thoughts="".join(text_of(part, "text") for step in _thoughts(final) for part in step),
    )


def _incomplete(call: Call, reply: Reply) -> str | None:
    final, status = reply.body, text_of(reply.body, "status")
    if status in _CUT_OFF:
        return cut_off(call.endpoint.settings.max_output_tokens)
    errors = [*list_of(final, "errors"), member(final, "error")]
    if status == "completed":
        errors = [member(step, "error") for step in list_of(final, "steps")]
    codes = {text_of(error, "code").lower() for error in errors}
    if status == "completed" or any("safety" in code or "prohibited" in code for code in codes):
        reasons = [error_message({"error": error}, call.endpoint) or "no reason given" for error in errors if error]
        return f"filtered by the provider ({'; '.join(reasons)})" if reasons else None
    raise failure_of(call, reply, errors)


def _thoughts(final: Any) -> Iterator[list[Any]]:
    """Yield the summaries of the model's thoughts."""
    for step in list_of(final, "steps"):
        if text_of(step, "type") == "thought":
            yield list_of(step, "summary")


def _output_text(final: Any) -> str:
    """Return the text of all the model's steps, since a long answer has several; else of an older reply's outputs."""
    steps = [list_of(step, "content") for step in list_of(final, "steps") if text_of(step, "type") == "model_output"]
    contents = [content for step in steps for content in step] or list_of(final, "outputs")
    return "".join(text_of(content, "text") for content in contents if text_of(content, "type") == "text")


def usage(final: Any) -> Usage:
    """Return the token counts. The API counts thoughts separately from the output."""
    counted = member(final, "usage")
    return usage_of(
        Counts(
            input=maybe_count(counted, "total_input_tokens"),
            output=maybe_count(counted, "total_output_tokens"),
            total=maybe_count(counted, "total_tokens"),
            cached=count_of(counted, "total_cached_tokens"),
            reasoning=count_of(counted, "total_thought_tokens"),
            excludes_reasoning=True,
        )
    )


def _model(price: Price, *changes: PriceChange) -> Model:
    return Model(1_048_576, 65_536, price, changes)


VENDOR = Vendor(
    name="gemini",
    key_variable="GEMINI_API_KEY",
    headers=lambda key, _: {"x-goog-api-key": key},
    base_url="https://generativelanguage.googleapis.com/v1beta",
    api=API(
        *("/interactions", request_body, usage, read, is_job),
        # the Interactions API has no counter of its own
        counter=TokenCounter(lambda model: f"/models/{quote(model, safe='')}:countTokens", count_body, "totalTokens"),
    ),
    default_model="gemini-4-argon",
    bare_names=r"gemini-.*",
    models={
        "gemini-4-argon": _model(Price(2, 10, 0.10), _ARGON_LATER),
        "gemini-4-carbon": _model(Price(2, 10, 0.10), _ARGON_LATER),
        "gemini-4-hydrogen": _model(Price(1.50, 7.50)),
        "gemini-3.8-flash": _model(Price(0.75, 3.75, 0.075), _FLASH_LATER),
        "gemini-flash-latest": _model(Price(0.75, 3.75, 0.075), _FLASH_LATER),
        "gemini-3.1-pro-preview": _model(Price(2, 12, 0.20), PriceChange(Price(4, 18, 0.40), above_tokens=200_000)),
        "gemini-2.5-pro": _model(Price(1.25, 10, 0.125), PriceChange(Price(2.50, 15, 0.25), above_tokens=200_000)),
    },
)
