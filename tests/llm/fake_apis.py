"""The bodies and event streams of the vendors' APIs. test_fake_server.py checks them with the SDKs' types."""

import json
from dataclasses import dataclass
from typing import Any, Literal

Ending = Literal[
    "complete", "cut_off", "refused", "filtered", "empty", "failed", "failed_for_good", "stays_queued", "expires"
]


@dataclass(frozen=True)
class Answer:
    """The answer to one call, and how it ends."""

    text: str = ""
    ending: Ending = "complete"
    pieces: int = 3
    input_tokens: int = 1000
    cached: int = 100
    written: int = 50
    output_tokens: int = 40
    reasoning: int = 15

    def split(self) -> list[str]:
        size = max(1, -(-len(self.text) // self.pieces))
        return [self.text[start : start + size] for start in range(0, len(self.text), size)]


def openai_usage(answer: Answer) -> dict[str, Any]:
    return {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": answer.cached, "cache_write_tokens": answer.written},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": answer.reasoning},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def openai_response(job_id: str, model: str, status: str, answer: Answer) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": job_id,
        "object": "response",
        "created_at": 1795000000,
        "status": status,
        "background": True,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
    }
    if status in ("queued", "in_progress", "cancelled"):
        return body
    if status == "failed":
        code = "server_error" if answer.ending == "failed" else "invalid_prompt"
        return body | {"error": {"code": code, "message": "The job came to nothing."}}
    content: list[dict[str, Any]] = [{"type": "output_text", "text": answer.text, "annotations": []}]
    if answer.ending == "refused":
        content = [{"type": "refusal", "refusal": "I can't help with that."}]
    if answer.ending == "empty":
        content = []
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    thoughts = {"type": "reasoning", "id": "rs_1", "summary": []}
    aside = message | {
        "id": "msg_0",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "Hm.", "annotations": []}],
    }
    reason = {"cut_off": "max_output_tokens", "filtered": "content_filter"}.get(answer.ending)
    return body | {
        "output": [thoughts, aside, message],
        "usage": openai_usage(answer),
        "incomplete_details": {"reason": reason} if reason else None,
    }


OPENAI_STATUS = {"cut_off": "incomplete", "filtered": "incomplete", "failed": "failed", "failed_for_good": "failed"}


def interaction(job_id: str, model: str, status: str, answer: Answer) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": job_id,
        "object": "interaction",
        "created": "2026-11-21T12:00:00Z",
        "updated": "2026-11-21T12:00:00Z",
        "model": model,
        "status": status,
    }
    if status in ("queued", "in_progress", "cancelled"):
        return body
    if status == "failed":
        code = "unavailable" if answer.ending == "failed" else "invalid_request"
        return body | {"errors": [{"code": code, "message": "The job came to nothing."}]}
    steps: list[dict[str, Any]] = [
        {"type": "user_input", "content": [{"type": "text", "text": "the prompt"}]},
        {"type": "thought", "signature": "c2ln"},
    ]
    if answer.ending not in ("refused", "empty"):
        steps += [{"type": "model_output", "content": [{"type": "text", "text": piece}]} for piece in answer.split()]
    if answer.ending == "refused":
        steps.append({"type": "model_output", "error": {"code": 3, "message": "Not this."}})
    return body | {
        "steps": steps,
        "usage": {
            "total_input_tokens": answer.input_tokens,
            "total_cached_tokens": answer.cached,
            "total_output_tokens": answer.output_tokens - answer.reasoning,
            "total_thought_tokens": answer.reasoning,
            "total_tokens": answer.input_tokens + answer.output_tokens,
        },
    }


GEMINI_STATUS = {"cut_off": "incomplete", "filtered": "completed", "failed": "failed", "failed_for_good": "failed"}


def messages_events(model: str, answer: Answer) -> list[dict[str, Any]]:
    """The events of a streamed Message: a thinking block, then a text block."""
    stop = {"cut_off": "max_tokens", "refused": "refusal", "filtered": "refusal"}.get(answer.ending, "end_turn")
    details = {"type": "refusal", "category": "cyber", "explanation": "Not this."} if stop == "refusal" else None
    usage = {
        "input_tokens": answer.input_tokens - answer.cached - answer.written,
        "cache_creation_input_tokens": answer.written,
        "cache_read_input_tokens": answer.cached,
        "output_tokens": 1,
    }
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    text = [] if answer.ending == "empty" else answer.split()
    final_usage = {
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"thinking_tokens": answer.reasoning},
    }
    return [
        {"type": "message_start", "message": message},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece}}
            for piece in text
        ),
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None, "stop_details": details},
            "usage": final_usage,
        },
        {"type": "message_stop"},
    ]


def chat_chunks(model: str, answer: Answer) -> list[dict[str, Any]]:
    """The chunks of a streamed chat completion; the last holds the usage."""
    finish = {"cut_off": "length", "filtered": "content_filter"}.get(answer.ending, "stop")
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1795000000, "model": model}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    text = [] if answer.ending in ("empty", "refused") else answer.split()
    chunks = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in text)]
    if answer.ending == "refused":
        chunks.append(chunk({"refusal": "I can't help with that."}))
    return [*chunks, chunk({}, finish), head | {"choices": [], "usage": chat_usage(answer)}]


def chat_usage(answer: Answer) -> dict[str, Any]:
    return {
        "prompt_tokens": answer.input_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached, "cache_write_tokens": answer.written},
        "completion_tokens": answer.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def chat_completion(model: str, answer: Answer) -> dict[str, Any]:
    """A complete chat completion in one piece, as a client gets it that does not ask for a stream."""
    message = {"role": "assistant", "content": answer.text}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1795000000, "model": model}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return head | {"choices": [choice], "usage": chat_usage(answer)}


def named_events(events: list[dict[str, Any]]) -> list[bytes]:
    """Events as Anthropic sends them: named, with pings and comments among them."""
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    return [lines[0], ping, *lines[1:]]


def data_events(chunks: list[dict[str, Any]], *, done: bool) -> list[bytes]:
    """Events as OpenAI and Google send them: data alone."""
    return [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + ([b"data: [DONE]\n\n"] if done else [])
