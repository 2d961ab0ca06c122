"""Anthropic by streamed Messages: POST /messages with `stream`. It has no background mode.

Facts and prices: the vendor's reference of 2026-11-21.
"""

import re
from typing import Any, NamedTuple

from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import Prompt, Response, Usage
from code_commit.llm.call import DONE, Call, Events
from code_commit.llm.endpoint import Endpoint, Reply
from code_commit.llm.failures import PassingFailure
from code_commit.llm.usage import Counts, first_count, maybe_count, usage_of
from code_commit.llm.values import count_of, larger_counts, list_of, member, members_of, text_of
from code_commit.llm.vendor import (
    API,
    Model,
    PriceChange,
    TokenCounter,
    Vendor,
    bearer_header,
    cut_off,
    end_of,
    max_output,
)
from code_commit.llm.words import has_error
from code_commit.settings import Price, Settings

_PIECES = frozenset(["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop"])
_WINDOW_FULL = "model_context_window_exceeded"
_KINDS = ("text", "thinking")  # of blocks that come in pieces
_OF_ANSWER = frozenset(["output_tokens", "completion_tokens", "total_tokens"])  # counts that grow with the answer
_CACHE_COUNTS = ("cache_read_input_tokens", "cache_creation_input_tokens")
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
        is_cut_off=end_of(reason) == "cut off" and reason != _WINDOW_FULL,
        thoughts="".join(text_of(block, "thinking") for block in blocks if text_of(block, "type") == "thinking"),
        request_id=reply.headers.get("request-id") or reply.headers.get("x-request-id") or None,
    )


def _incomplete(call: Call, message: Any, reason: str) -> str | None:
    if end_of(reason) == "complete":
        return None
    if reason == _WINDOW_FULL:
        return "cut off at the end of the model's context window"
    if end_of(reason) == "cut off":
        return cut_off(_max_tokens(call.endpoint))
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
    draft = _Draft(call)
    try:
        for kind, event in events:
            if kind == "message_stop":
                call.is_done = True
                break
            draft.add(kind, event)
            if kind == "message_delta" and draft.reason:
                call.ends_soon(is_sure=True)
    except (PassingFailure, LLMError) as failure:
        if not draft.reason:
            raise
        call.tell_late(failure)
    if not draft.reason:
        if not call.is_done or not call.has_text or call.has_notice:
            raise call.broken("no message_stop")
        draft.message["stop_reason"] = DONE
    return draft.whole()


class _Block(NamedTuple):
    start: dict[str, Any]
    pieces: list[str]

    def whole(self) -> dict[str, Any]:
        kind = text_of(self.start, "type")
        return self.start | ({kind: text_of(self.start, kind) + "".join(self.pieces)} if self.pieces else {})


class _Draft:
    """A message of which not all events have come."""

    def __init__(self, call: Call) -> None:
        self.message: dict[str, Any] = {}
        self._call = call
        self._blocks: list[_Block] = []
        self._open: dict[tuple[int, str], _Block] = {}
        """The open blocks by index and kind: gateways give the same index to blocks of two kinds."""

    @property
    def reason(self) -> str:
        return text_of(self.message, "stop_reason")

    def add(self, kind: str, event: Any) -> None:
        index = count_of(event, "index")
        if kind == "message_start":
            self._begin(members_of(event, "message"))
        elif kind == "content_block_start":
            self._open_block(index, members_of(event, "content_block"))
        elif kind == "content_block_delta":
            name = text_of(event, "delta", "type").removesuffix("_delta")
            piece = text_of(event, "delta", name)
            if name in _KINDS and piece:
                (self._open.get((index, name)) or self._open_block(index, {"type": name})).pieces.append(piece)
            if name == "text":
                self._call.wrote(piece)
        elif kind == "content_block_stop":
            self._open = {key: block for key, block in self._open.items() if key[0] != index}
        elif kind == "message_delta":
            self.message |= {name: value for name, value in members_of(event, "delta").items() if value is not None}
            self.message["usage"] = _joined(members_of(self.message, "usage"), members_of(event, "usage"))

    def _begin(self, message: dict[str, Any]) -> None:
        if self._blocks and self.message and text_of(message, "id") != text_of(self.message, "id"):
            raise self._call.broken("a second message_start")
        self.message |= message
        begun = members_of(message, "usage").items()
        self.message["usage"] = {name: count for name, count in begun if name not in _OF_ANSWER}  # of the answer so far

    def _open_block(self, index: int, start: dict[str, Any]) -> _Block:
        key = index, text_of(start, "type")
        if key in self._open and self._open[key].pieces:
            raise self._call.broken("a block that begins twice")
        self._open[key] = block = _Block(start, [])
        self._blocks.append(block)
        return block

    def whole(self) -> dict[str, Any]:
        return self.message | {"content": [block.whole() for block in self._blocks]}


def _joined(before: dict[str, Any], later: dict[str, Any]) -> Any:
    """Return two reports of one usage as one. A gateway may begin with all of the prompt as its input, and say at the
    end how much of that was cached.
    """
    cached = [sum(count_of(usage, name) for name in _CACHE_COUNTS) for usage in (before, later)]
    if cached[1] and not cached[0] and 0 < count_of(later, "input_tokens") < count_of(before, "input_tokens"):
        before = {name: count for name, count in before.items() if name != "input_tokens"}
    return larger_counts(before, later)


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
