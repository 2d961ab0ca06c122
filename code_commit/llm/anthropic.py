"""Anthropic by streamed Messages: POST /messages with `stream`. It has no background mode.

Facts and prices: the vendor's reference of 2026-11-21.
"""

import re
from typing import Any

from code_commit.errors import NotSetUpError
from code_commit.exchange import Prompt, Response, Usage
from code_commit.llm.call import Call, Events
from code_commit.llm.http import Endpoint, Reply, count_of, has_count, list_of, member, members_of, text_of
from code_commit.llm.vendor import API, Model, PriceChange, TokenCounter, Vendor, bearer_header, cut_off, max_output
from code_commit.settings import Price, Settings

_CACHE_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
"""A build between two calls may exceed the default of five minutes."""


def request_body(endpoint: Endpoint, prompt: Prompt) -> dict[str, Any]:
    mark: dict[str, Any] = _CACHE_MARK if prompt.stable else {}
    body: dict[str, Any] = {"model": endpoint.model, "max_tokens": _max_tokens(endpoint), "stream": True}
    if prompt.system:
        body["system"] = [{"type": "text", "text": prompt.system, **mark}]
    blocks: tuple[tuple[str, dict[str, Any]], ...] = ((prompt.stable, mark), (prompt.rest, {}))
    content = [{"type": "text", "text": text, **its_mark} for text, its_mark in blocks if text]
    body["messages"] = [{"role": "user", "content": content}]
    if endpoint.settings.reasoning_effort:
        body["output_config"] = {"effort": endpoint.settings.reasoning_effort}
    return body


def count_body(endpoint: Endpoint, prompt: Prompt) -> dict[str, Any]:
    body = request_body(endpoint, prompt)
    return {name: body[name] for name in ("model", "system", "messages") if name in body}


def _max_tokens(endpoint: Endpoint) -> int:
    return max_output(VENDOR.find_model(endpoint.model), endpoint.settings)


def headers(key: str, settings: Settings) -> dict[str, str]:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", settings.anthropic_version):
        raise NotSetUpError("anthropic_version must be a day such as 2026-10-21")
    return {"anthropic-version": settings.anthropic_version} | bearer_header(key, settings)


def read(call: Call, reply: Reply) -> Response:
    message = reply.body
    if not text_of(message, "stop_reason"):
        raise call.broken("no stop_reason")
    blocks = list_of(message, "content")
    return Response(
        text="".join(text_of(block, "text") for block in blocks if text_of(block, "type") == "text"),
        finish_reason=text_of(message, "stop_reason"),
        incomplete=_incomplete(call, message),
        is_cut_off=text_of(message, "stop_reason") == "max_tokens",
        request_id=reply.headers.get("request-id") or reply.headers.get("x-request-id") or None,
    )


def _incomplete(call: Call, message: Any) -> str | None:
    reason = text_of(message, "stop_reason")
    if reason in ("end_turn", "stop_sequence"):
        return None
    if reason == "max_tokens":
        return cut_off(_max_tokens(call.endpoint))
    if reason == "model_context_window_exceeded":
        return "cut off at the end of the model's context window"
    if reason == "refusal":
        details = member(message, "stop_details")
        why = ": ".join(filter(None, (text_of(details, "category"), text_of(details, "explanation"))))
        return f"refused ({why})" if why else "refused"
    return f"not finished (stop_reason {reason})"


def usage(message: Any) -> Usage:
    """Return the token counts. The API's `input_tokens` excludes tokens read from or written to a cache."""
    cached = count_of(message, "usage", "cache_read_input_tokens")
    written = count_of(message, "usage", "cache_creation_input_tokens")
    is_counted = has_count(message, "usage", "input_tokens")
    return Usage(
        input=count_of(message, "usage", "input_tokens") + cached + written if is_counted else 0,
        cached_input=cached,
        cache_write=written,
        output=count_of(message, "usage", "output_tokens"),
        reasoning=count_of(message, "usage", "output_tokens_details", "thinking_tokens"),
    )


def assemble(call: Call, events: Events) -> dict[str, Any]:
    """Return the message that the events make. Raises PassingFailure if `message_stop` is missing."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    pieces: dict[tuple[int, str], list[str]] = {}
    for kind, event in events:
        index = count_of(event, "index")
        if kind == "message_start":
            if blocks:
                raise call.broken("a second message_start")
            message = dict(members_of(event, "message"))
            begun = members_of(message, "usage").items()
            message["usage"] = {name: count for name, count in begun if name != "output_tokens"}  # of the answer so far
        elif kind == "content_block_start":
            blocks[index] = dict(members_of(event, "content_block"))
        elif kind == "content_block_delta":
            if index not in blocks:
                raise call.broken("a piece of a block that did not begin")
            name = text_of(event, "delta", "type").removesuffix("_delta")
            pieces.setdefault((index, name), []).append(text_of(event, "delta", name))
        elif kind == "message_delta":
            message |= members_of(event, "delta")
            counted = {name: value for name, value in members_of(event, "usage").items() if value is not None}
            message["usage"] = members_of(message, "usage") | counted
        elif kind == "message_stop":
            for (index, name), parts in pieces.items():
                blocks[index][name] = text_of(blocks[index], name) + "".join(parts)
            return message | {"content": [blocks[index] for index in sorted(blocks)]}
    raise call.broken("no message_stop")


def _model(price: Price, *changes: PriceChange, window: int = 1_000_000, most: int = 128_000) -> Model:
    return Model(window, most, price, changes)


VENDOR = Vendor(
    name="anthropic",
    key_variable="ANTHROPIC_API_KEY",
    headers=headers,
    base_url="https://api.anthropic.com/v1",
    api=API(
        "/messages",
        request_body,
        usage,
        read,
        assemble,
        TokenCounter(lambda _: "/messages/count_tokens", count_body, "input_tokens"),
    ),
    default_model="claude-opus-5-5",
    bare_names=r"claude-.*",
    models={  # cache writes are priced for the hour that we request
        "claude-opus-5-5": _model(Price(4, 20, 0.20, 8)),
        "claude-fable-5-2": _model(Price(8, 40, 0.20, 16)),
        "claude-sonnet-5-5": _model(Price(2, 10, 0.10, 4)),
        "claude-haiku-5-5": _model(
            Price(0.10, 0.50, 0.01, 0.20), PriceChange(Price(0.50, 2.50, 0.05, 1), above_tokens=100_000)
        ),
        "claude-sonnet-4-5": _model(Price(3, 15, 0.30, 6), window=200_000, most=64_000),
    },
)
