"""Anthropic by streamed Messages: POST /messages with `stream`. It has no background mode.

Facts and prices: the vendor's reference of 2026-11-21.
"""

import re
from typing import Any

from code_commit.errors import NotSetUpError
from code_commit.exchange import Prompt, Response, Usage
from code_commit.llm.call import DONE, Call, Events
from code_commit.llm.http import Endpoint, PassingFailure, Reply
from code_commit.llm.refusals import RefusedRequestError
from code_commit.llm.usage import Counts, first_count, maybe_count, usage_of
from code_commit.llm.values import count_of, larger_counts, list_of, member, members_of, text_of
from code_commit.llm.vendor import API, Model, PriceChange, TokenCounter, Vendor, bearer_header, cut_off, max_output
from code_commit.llm.words import has_error
from code_commit.settings import Price, Settings

_PIECES = frozenset(["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"])
_OF_ANSWER = frozenset(["output_tokens", "completion_tokens", "total_tokens"])  # counts that grow with the answer
Pieces = dict[tuple[int, str], list[str]]  # of each member of each block
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


def has_answer(body: Any) -> bool:
    """Tell whether a message, or an event of one, has a piece of an answer or its end."""
    if text_of(body, "type") in _PIECES:
        return True
    return not has_error(body) and bool(member(body, "content") or text_of(body, "stop_reason"))


def read(call: Call, reply: Reply) -> Response:
    message = reply.body
    blocks = list_of(message, "content") or [{"type": "text", "text": text_of(message, "content")}]
    text = "".join(text_of(block, "text") for block in blocks if text_of(block, "type") == "text")
    reason = text_of(message, "stop_reason") or (DONE if text and not call.is_stream else "")
    if not reason:
        raise call.broken("no stop_reason", reply)
    return Response(
        text=text,
        finish_reason=reason,
        incomplete=_incomplete(call, message, reason),
        is_cut_off=reason == "max_tokens",
        thoughts="".join(text_of(block, "thinking") for block in blocks if text_of(block, "type") == "thinking"),
        request_id=reply.headers.get("request-id") or reply.headers.get("x-request-id") or None,
    )


def _incomplete(call: Call, message: Any, reason: str) -> str | None:
    if reason in ("end_turn", "stop_sequence", DONE):
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
    counted = member(message, "usage")
    return usage_of(
        Counts(
            input=first_count(counted, "prompt_tokens") or maybe_count(counted, "input_tokens"),  # as some gateways
            output=first_count(counted, "completion_tokens") or maybe_count(counted, "output_tokens"),
            total=maybe_count(counted, "total_tokens"),
            cached=count_of(counted, "cache_read_input_tokens"),
            written=count_of(counted, "cache_creation_input_tokens")
            or sum(count_of(counted, "cache_creation", name) for name in members_of(counted, "cache_creation")),
            reasoning=count_of(counted, "output_tokens_details", "thinking_tokens"),
            excludes_cache=True,
        )
    )


def assemble(call: Call, events: Events) -> dict[str, Any]:
    """Return the message that the events make. Raises PassingFailure if neither of its two ends is there."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    pieces: Pieces = {}
    try:
        for kind, event in events:
            if kind == "message_stop":
                call.is_done = True
                break
            _add(call, event, kind, message, (blocks, pieces))
    except (PassingFailure, RefusedRequestError) as failure:
        if not text_of(message, "stop_reason"):
            raise
        call.tell_late(failure)
    if not text_of(message, "stop_reason"):
        if not call.is_done or not call.has_text or call.has_notice:
            raise call.broken("no message_stop")
        message["stop_reason"] = DONE
    for (index, name), parts in pieces.items():
        blocks[index][name] = text_of(blocks[index], name) + "".join(parts)
    return message | {"content": [blocks[index] for index in sorted(blocks)]}


def _add(
    call: Call, event: Any, kind: str, message: dict[str, Any], content: tuple[dict[int, dict[str, Any]], Pieces]
) -> None:
    """Add an event to the message, and to the blocks of its content."""
    blocks, pieces = content
    index = count_of(event, "index")
    if kind == "message_start":
        if blocks and message and text_of(event, "message", "id") != text_of(message, "id"):
            raise call.broken("a second message_start")
        message |= members_of(event, "message")
        begun = members_of(message, "usage").items()
        message["usage"] = {name: count for name, count in begun if name not in _OF_ANSWER}  # of the answer so far
    elif kind == "content_block_start":
        if any(number == index for number, _ in pieces):
            raise call.broken("a block that begins twice")
        blocks[index] = dict(members_of(event, "content_block"))
    elif kind == "content_block_delta":
        name = text_of(event, "delta", "type").removesuffix("_delta")
        piece = text_of(event, "delta", name)
        blocks.setdefault(index, {"type": name})  # some gateways leave its start out
        pieces.setdefault((index, name), []).append(piece)
        if name == "text":
            call.wrote(piece)
    elif kind == "message_delta":
        message |= {name: value for name, value in members_of(event, "delta").items() if value is not None}
        message["usage"] = larger_counts(members_of(message, "usage"), members_of(event, "usage"))


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
        has_answer,
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
