"""OpenAI by the Responses API: POST /responses with `background`, then GET /responses/ID.

Facts and prices: the vendor's reference of 2026-11-21.
"""

import re
from typing import Any

from code_commit.exchange import Prompt, Response, Usage
from code_commit.llm.call import Call
from code_commit.llm.endpoint import Endpoint, Reply
from code_commit.llm.jobs import failure_of, is_job
from code_commit.llm.usage import Counts, maybe_count, usage_of
from code_commit.llm.values import count_of, list_of, member, text_of
from code_commit.llm.vendor import API, Model, PriceChange, TokenCounter, Vendor, cut_off
from code_commit.llm.words import error_message
from code_commit.settings import Price

_CACHE_LIFE = "30m"
_REFUSAL_CODES = frozenset({"invalid_prompt", "bio_policy", "misalignment_policy_violation", "content_filter"})
_LONG_PROMPT, _MAX_OUTPUT = 272_000, 128_000


def request_body(endpoint: Endpoint, prompt: Prompt) -> dict[str, Any]:
    settings, marks = endpoint.settings, takes_cache_options(endpoint.model)
    breakpoint_here = {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": _CACHE_LIFE}} if marks else {}
    blocks = [
        {"type": "input_text", "text": text, **mark}
        for text, mark in ((prompt.stable, breakpoint_here), (prompt.rest, {}))
        if text
    ]
    body: dict[str, Any] = {
        "model": endpoint.model,
        "instructions": prompt.system,
        "input": [{"role": "user", "content": blocks}],
        "background": True,
        "store": True,
    }
    if settings.max_output_tokens:
        body["max_output_tokens"] = settings.max_output_tokens
    if settings.reasoning_effort:
        body["reasoning"] = {"effort": settings.reasoning_effort}
    if prompt.stable:
        import hashlib

        place = f"{endpoint.root}\0{endpoint.model}".encode("utf-8", "surrogateescape")
        body["prompt_cache_key"] = hashlib.sha256(place).hexdigest()[:32]
    if marks:  # without a breakpoint, so the API writes, and bills, no cache
        body["prompt_cache_options"] = {"mode": "explicit"}
    return body


def count_body(endpoint: Endpoint, prompt: Prompt) -> dict[str, Any]:
    body = request_body(endpoint, prompt)
    return {name: body[name] for name in ("model", "instructions", "input")}


def takes_cache_options(name: str) -> bool:
    """Tell whether OpenAI's model knows `prompt_cache_options`: gpt-5.6 and later."""
    version = re.match(r"gpt-(\d{1,9})(?:\.(\d{1,9}))?(?![\d.])", name.rpartition("/")[2])
    return version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 6)


def read(call: Call, reply: Reply) -> Response:
    final = reply.body
    return Response(
        text="".join(text_of(part, "text") for part in _contents(final, "output_text"))
        or text_of(final, "output_text"),
        finish_reason=text_of(final, "incomplete_details", "reason") or text_of(final, "status"),
        incomplete=_incomplete(call, reply),
        is_cut_off=_is_cut_off(final),
        request_id=reply.headers.get("x-request-id") or text_of(final, "id") or None,
        thoughts=_thoughts(final),
    )


def _thoughts(final: Any) -> str:
    items = (item for item in list_of(final, "output") if text_of(item, "type") == "reasoning")
    return "".join(
        text_of(part, "text") for item in items for part in [*list_of(item, "summary"), *list_of(item, "content")]
    )


def _is_cut_off(final: Any) -> bool:
    reason = text_of(final, "incomplete_details", "reason")
    return text_of(final, "status") == "incomplete" and reason in ("max_output_tokens", "max_tokens", "")


def _incomplete(call: Call, reply: Reply) -> str | None:
    final = reply.body
    status, reason = text_of(final, "status"), text_of(final, "incomplete_details", "reason")
    if status == "completed":
        refusals = (text_of(content, "refusal") for content in _contents(final, "refusal"))
        refusal = " ".join(refusals).strip()
        return f"refused: {refusal}" if refusal else None
    if _is_cut_off(final):
        return cut_off(call.endpoint.settings.max_output_tokens)
    if status == "incomplete":
        return f"filtered by the provider ({reason})" if reason == "content_filter" else f"incomplete ({reason})"
    if text_of(final, "error", "code") in _REFUSAL_CODES:
        return f"refused ({error_message(final, call.endpoint)})"
    raise failure_of(call, reply, [member(final, "error")])


def _contents(final: Any, kind: str) -> list[Any]:
    """Return the answer's contents of one kind, without the model's commentary. Gateways write them in other forms."""
    messages = [item for item in list_of(final, "output") if text_of(item, "type") == "message"]
    contents = [
        content
        for item in messages
        if text_of(item, "phase") != "commentary"
        for content in list_of(item, "content") or [{"type": kind, "text": text_of(item, "content")}]
    ]
    return [content for content in contents if text_of(content, "type") in (kind, kind.removeprefix("output_"))]


def usage(final: Any) -> Usage:
    """Return the token counts. The input includes the cached and cache-written parts, the output the reasoning."""
    counted = member(final, "usage")
    return usage_of(
        Counts(
            input=maybe_count(counted, "input_tokens"),
            output=maybe_count(counted, "output_tokens"),
            total=maybe_count(counted, "total_tokens"),
            cached=count_of(counted, "input_tokens_details", "cached_tokens"),
            written=count_of(counted, "input_tokens_details", "cache_write_tokens"),
            reasoning=count_of(counted, "output_tokens_details", "reasoning_tokens"),
        )
    )


def _model(price: Price, max_input: int = 922_000) -> Model:
    """Return a model. OpenAI bills all of a long prompt at twice the price, and its output at one and a half times."""
    cached_input, cache_write = price.cached_input, price.cache_write
    doubled = Price(
        price.input * 2, price.output * 1.5, cached_input and cached_input * 2, cache_write and cache_write * 2
    )
    changes = (PriceChange(doubled, above_tokens=_LONG_PROMPT),) if max_input > _LONG_PROMPT else ()
    return Model(max_input + _MAX_OUTPUT, _MAX_OUTPUT, price, changes, max_input)


VENDOR = Vendor(
    name="openai",
    key_variable="OPENAI_API_KEY",
    base_url="https://api.openai.com/v1",
    adds_version_to_paths=False,
    api=API(
        "/responses",
        request_body,
        usage,
        read,
        is_job,
        counter=TokenCounter(lambda _: "/responses/input_tokens", count_body, "input_tokens"),
    ),
    default_model="gpt-6.2-sol",
    bare_names=r"(gpt-|chatgpt-|o\d).*",
    models={
        "gpt-6.2-sol": _model(Price(2, 10, 0.10, 2.50)),
        "gpt-6.2-astra": _model(Price(8, 40, 0.40, 10)),
        "gpt-6.1-terra": _model(Price(1, 5, 0.05, 1.25)),
        "gpt-6-luna": _model(Price(0.10, 0.50, 0.01, 0.125)),
        "gpt-5.6-sol": _model(Price(4, 20, 0.40, 5)),
        "gpt-5.5": _model(Price(5, 30, 0.50)),
        "gpt-5.4": _model(Price(2.50, 15, 0.25)),
        "gpt-5.2": _model(Price(1.75, 14, 0.175), max_input=272_000),
    },
)
