"""Google Gemini by streamed generateContent: for gateways without the Interactions API (setting `gemini_api`)."""

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from code_commit.config import Settings
from code_commit.exchange import Prompt, Usage
from code_commit.llm.answers import Answer, cut_off
from code_commit.llm.call import Call
from code_commit.llm.connection import OpenReply, PassingFailure, Reply
from code_commit.llm.json_values import count_of, list_of, member, text_of
from code_commit.llm.refusals import has_error
from code_commit.llm.server_sent_events import read_events
from code_commit.llm.streams import counted_pieces, json_instead
from code_commit.model_choice import ModelChoice

_LONGEST_DECODE = 64
"""Hops of one answer; a model's window holds 16 of them."""


class GenerateContentAPI:
    """POST /models/NAME:streamGenerateContent, again with the token of the last hop while there is one."""

    def __init__(self, choice: ModelChoice, settings: Settings) -> None:
        self._settings = settings
        self.path = f"/models/{quote(choice.name.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"

    def request_body(self, prompt: Prompt) -> dict[str, Any]:
        parts = [{"text": text} for text in (prompt.stable, prompt.rest) if text]
        body: dict[str, Any] = {"contents": [{"role": "user", "parts": parts}]}
        if prompt.system:
            body["systemInstruction"] = {"parts": [{"text": prompt.system}]}
        generation: dict[str, Any] = {}
        if self._settings.max_output_tokens:
            generation["maxOutputTokens"] = self._settings.max_output_tokens
        if self._settings.reasoning_effort:
            generation["thinkingConfig"] = {"thinkingLevel": self._settings.reasoning_effort}
        return body | ({"generationConfig": generation} if generation else {})

    def ask(self, call: Call, body: Mapping[str, Any]) -> Answer:
        hops: list[_Hop] = []
        request = dict(body)
        while True:
            hop = call.retried(partial(self._hop, call, request))
            hops.append(hop)
            token = hop.continuation_token
            if hop.finish_reason != "CONTINUATION" or not token or len(hops) >= _LONGEST_DECODE:
                break
            if token == request.get("continuationToken"):
                break
            request = dict(body) | {"continuationToken": token}
        return self._answer(hops)

    def _hop(self, call: Call, body: Mapping[str, Any]) -> "_Hop":
        with call.stream(self.path, body) as reply:
            whole, pieces = json_instead(reply)
            hop = _Hop(reply)
            if whole is not None:
                hop.take_all(call, _chunks(call, whole))
            else:
                hop.take_stream(call, pieces)
        if not hop.finish_reason and not hop.block_reason:
            raise call.broken("no finishReason")
        return hop

    def _answer(self, hops: list["_Hop"]) -> Answer:
        last = hops[-1]
        return Answer(
            text="".join(hop.text for hop in hops),
            finish_reason=last.finish_reason or last.block_reason,
            incomplete=self._incomplete(last),
            usage=Usage(
                input=sum(hop.usage.input for hop in hops),
                cached_input=sum(hop.usage.cached_input for hop in hops),
                output=sum(hop.usage.output for hop in hops),
                reasoning=sum(hop.usage.reasoning for hop in hops),
            ),
            status=last.reply.status,
            headers=last.reply.headers,
            body=last.assembled() if len(hops) == 1 else [hop.assembled() for hop in hops],
            request_id=text_of(last.chunk, "responseId") or None,
        )

    def _incomplete(self, last: "_Hop") -> str | None:
        if last.block_reason:
            return f"refused: the prompt is blocked ({last.block_reason})"
        if last.finish_reason == "STOP":
            return None
        if last.finish_reason in ("MAX_TOKENS", "CONTINUATION"):
            return cut_off(self._settings.max_output_tokens)
        return f"filtered by the provider ({last.finish_reason})"


class _Hop:
    """One request's part of the answer, as far as it has come."""

    def __init__(self, reply: OpenReply) -> None:
        self.reply = reply
        self.chunk: dict[str, Any] = {}
        self.finish_reason = ""
        self.block_reason = ""
        self.continuation_token = ""
        self._parts: list[str] = []

    def take_stream(self, call: Call, pieces: Iterable[bytes]) -> None:
        """Add the chunks of a stream. A connection that breaks behind the finish reason has lost no text."""
        events = read_events(counted_pieces(call, pieces))
        try:
            self.take_all(call, (call.event(data) for _, data in events if data != "[DONE]"))
        except PassingFailure as failure:
            if not self.finish_reason or failure.reply is not None:
                raise

    def take_all(self, call: Call, chunks: Iterable[Any]) -> None:
        """Add the chunks of a reply. Raises what an error among them amounts to."""
        for chunk in chunks:
            if has_error(chunk):
                raise call.error_event(self.reply, json.dumps(chunk))
            self._take(chunk)

    def _take(self, chunk: Any) -> None:
        if isinstance(chunk, dict):
            self.chunk |= chunk
        self.block_reason = text_of(chunk, "promptFeedback", "blockReason") or self.block_reason
        for candidate in list_of(chunk, "candidates")[:1]:
            self.finish_reason = text_of(candidate, "finishReason") or self.finish_reason
            self.continuation_token = text_of(candidate, "continuationToken") or self.continuation_token
            for part in list_of(candidate, "content", "parts"):
                if member(part, "thought") is not True:
                    self._parts.append(text_of(part, "text"))

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def usage(self) -> Usage:
        """The API counts thoughts apart from the output; each chunk's numbers are those so far."""
        counts = member(self.chunk, "usageMetadata")
        reasoning = count_of(counts, "thoughtsTokenCount")
        return Usage(
            input=count_of(counts, "promptTokenCount"),
            cached_input=count_of(counts, "cachedContentTokenCount"),
            output=count_of(counts, "candidatesTokenCount") + reasoning,
            reasoning=reasoning,
        )

    def assembled(self) -> dict[str, Any]:
        """Return the reply as it would be without streaming."""
        if not self.finish_reason:
            return self.chunk
        content = {"role": "model", "parts": [{"text": self.text}]}
        return self.chunk | {"candidates": [{"content": content, "finishReason": self.finish_reason, "index": 0}]}


def _chunks(call: Call, reply: Reply) -> list[Any]:
    """Return the chunks of a reply that came as JSON: one object, or all of them in a list."""
    body = reply.body
    if isinstance(body, list) and len(body) > 1:
        return body
    call.check(reply)
    return [body[0] if isinstance(body, list) else body]
