"""Anthropic by streamed Messages: the one way that lets a long answer come; it has no background mode."""

from collections.abc import Mapping
from typing import Any

from code_commit.exchange import Prompt, Usage
from code_commit.llm.answers import Answer, cut_off, reply_id
from code_commit.llm.call import Call
from code_commit.llm.connection import OpenReply, Reply
from code_commit.llm.json_values import count_of, list_of, member, text_of
from code_commit.llm.models import required_max_output
from code_commit.llm.server_sent_events import read_events
from code_commit.llm.streams import counted_pieces, json_instead
from code_commit.model_choice import ModelChoice
from code_commit.settings import Settings

_CACHE_MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
"""An hour: a build between two calls may take longer than the five minutes that are the default."""


class MessagesAPI:
    """POST /messages with `stream`."""

    path = "/messages"

    def __init__(self, choice: ModelChoice, settings: Settings) -> None:
        self._model = choice.name
        self._settings = settings
        self._max_tokens = required_max_output(choice, settings)

    def request_body(self, prompt: Prompt) -> dict[str, Any]:
        mark: dict[str, Any] = _CACHE_MARK if prompt.stable else {}
        body: dict[str, Any] = {"model": self._model, "max_tokens": self._max_tokens, "stream": True}
        if prompt.system:
            body["system"] = [{"type": "text", "text": prompt.system, **mark}]
        blocks: tuple[tuple[str, dict[str, Any]], ...] = ((prompt.stable, mark), (prompt.rest, {}))
        content = [{"type": "text", "text": text, **its_mark} for text, its_mark in blocks if text]
        body["messages"] = [{"role": "user", "content": content}]
        if self._settings.reasoning_effort:
            body["output_config"] = {"effort": self._settings.reasoning_effort}
        return body

    def ask(self, call: Call, body: Mapping[str, Any]) -> Answer:
        with call.stream(self.path, body) as reply:
            whole, pieces = json_instead(reply)
            if whole is not None:
                call.check(whole)
                message = whole.body
            else:
                message = _assemble(call, OpenReply(reply.status, reply.headers, pieces))
        if not text_of(message, "stop_reason"):
            raise call.broken("no stop_reason")
        return Answer(
            text=_text(message),
            finish_reason=text_of(message, "stop_reason"),
            incomplete=self._incomplete(message),
            usage=_usage(message),
            status=reply.status,
            headers=reply.headers,
            body=message,
            request_id=reply_id(Reply(reply.status, reply.headers, b""), "request-id", "x-request-id"),
        )

    def _incomplete(self, message: Any) -> str | None:
        reason = text_of(message, "stop_reason")
        if reason in ("end_turn", "stop_sequence"):
            return None
        if reason == "max_tokens":
            return cut_off(self._max_tokens)
        if reason == "model_context_window_exceeded":
            return "cut off at the end of the model's context window"
        if reason == "refusal":
            details = member(message, "stop_details")
            why = ": ".join(filter(None, (text_of(details, "category"), text_of(details, "explanation"))))
            return f"refused ({why})" if why else "refused"
        return f"not finished (stop_reason {reason})"


def _text(message: Any) -> str:
    blocks = list_of(message, "content")
    return "".join(text_of(block, "text") for block in blocks if text_of(block, "type") == "text")


def _usage(message: Any) -> Usage:
    """Read the token counts. The API's `input_tokens` is only what no cache gave or took."""
    cached = count_of(message, "usage", "cache_read_input_tokens")
    written = count_of(message, "usage", "cache_creation_input_tokens")
    return Usage(
        input=count_of(message, "usage", "input_tokens") + cached + written,
        cached_input=cached,
        cache_write=written,
        output=count_of(message, "usage", "output_tokens"),
        reasoning=count_of(message, "usage", "output_tokens_details", "thinking_tokens"),
    )


def _assemble(call: Call, reply: OpenReply) -> dict[str, Any]:
    """Put the message together from its events. Raises PassingFailure unless `message_stop` ends it."""
    message = _Message(call)
    for name, data in read_events(counted_pieces(call, reply.pieces)):
        event = call.event(data)
        kind = text_of(event, "type") or name
        if kind == "error" or member(event, "error"):
            raise call.error_event(reply, data)
        if message.take(kind, event):
            return message.finished()
    raise call.broken("no message_stop")


_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class _Message:
    """The message as far as it has come."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}
        self._closed: set[int] = set()

    def take(self, kind: str, event: Any) -> bool:
        """Add one event; return whether it is the last one. Kinds that nobody knows yet are passed over."""
        if kind == "message_start":
            self._start(member(event, "message"))
        elif kind == "content_block_start":
            self._open_block(event)
        elif kind == "content_block_delta":
            self._add(event)
        elif kind == "content_block_stop":
            self._closed.add(_index(event))
        elif kind == "message_delta":
            delta, usage = member(event, "delta"), member(event, "usage")
            self._message |= {name: value for name, value in _members(delta).items() if value is not None}
            counted = {name: value for name, value in _members(usage).items() if value is not None}
            self._message["usage"] = _members(self._message.get("usage")) | counted
        return kind == "message_stop"

    def _start(self, message: Any) -> None:
        if self._blocks:
            raise self._call.broken("a second message_start")
        self._message = dict(_members(message)) | {"stop_reason": None}

    def _open_block(self, event: Any) -> None:
        index = _index(event)
        if index in self._closed or any(self._parts.get((index, name)) for name in _DELTAS.values()):
            raise self._call.broken("a block that begins twice")
        block = dict(_members(member(event, "content_block")))
        self._blocks[index] = block
        for name in _DELTAS.values():
            if text_of(block, name):
                self._parts[index, name] = [block[name]]

    def _add(self, event: Any) -> None:
        index = _index(event)
        if index not in self._blocks or index in self._closed:
            raise self._call.broken("a piece of a block that is not open")
        name = _DELTAS.get(text_of(event, "delta", "type"))
        if name is not None:
            self._parts.setdefault((index, name), []).append(text_of(event, "delta", name))

    def finished(self) -> dict[str, Any]:
        if self._closed != set(self._blocks):
            raise self._call.broken("a block without its end")
        for (index, name), parts in self._parts.items():
            self._blocks[index][name] = "".join(parts)
        return self._message | {"content": [self._blocks[index] for index in sorted(self._blocks)]}


def _index(event: Any) -> int:
    index = member(event, "index")
    return index if isinstance(index, int) else 0


def _members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
