"""Chat Completions, streamed: POST /chat/completions with `stream`, in the variants of most servers."""

import re
from typing import Any
from urllib.parse import urlsplit

from code_commit.errors import LLMError
from code_commit.exchange import Prompt, Response, Usage
from code_commit.grammar import CLOSING
from code_commit.llm.call import Call, Events
from code_commit.llm.http import Endpoint, PassingFailure, Reply, count_of, list_of, member, members_of, text_of
from code_commit.llm.openai import takes_cache_options
from code_commit.llm.vendor import API, Model, Vendor, cut_off, estimate_tokens
from code_commit.marks import find_marks
from code_commit.settings import Price

_COMPLETE = frozenset(["stop", "eos", "eos_token", "end_turn", "stop_sequence"])
_CUT_OFF = frozenset(["length", "max_tokens", "model_length"])
_FILTERED = frozenset(["content_filter", "safety", "recitation"])
_PASSING = frozenset(["error", "insufficient_system_resource"])
_CLOSING_FENCE = re.compile(rf"\^{{3}}[ \t]*({'|'.join(CLOSING)})?\s*")
_OF_THOUGHTS = re.compile("reason|think|thought")  # a member with the thoughts; servers name it in many ways

_REPEATED, _MOST_REPEATED = "repeated_prompt", 2_000


def request_body(endpoint: Endpoint, prompt: Prompt) -> dict[str, Any]:
    """Return the request. The text of a message is one string, since some servers take no list of blocks."""
    settings = endpoint.settings
    is_openai = re.search(r"(^|\.)openai\.(com|azure\.com)$", urlsplit(endpoint.base_url).hostname or "") is not None
    system = [("system", prompt.system)] if prompt.system else []
    last = prompt.rest if prompt.dialogue else prompt.user
    messages = [{"role": role, "content": text} for role, text in (*system, *prompt.dialogue, ("user", last))]
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if settings.max_output_tokens:
        body["max_completion_tokens" if is_openai else "max_tokens"] = settings.max_output_tokens
    if endpoint.tells_progress:
        body |= {"return_progress": True, "timings_per_token": True}
    if settings.reasoning_effort:
        body["reasoning_effort"] = settings.reasoning_effort
    if is_openai and takes_cache_options(endpoint.model) and not prompt.stable:
        body["prompt_cache_options"] = {"mode": "explicit"}  # without a breakpoint, so no cache is written and billed
    return body


def read(call: Call, reply: Reply) -> Response:
    completion = reply.body
    choice = (list_of(completion, "choices") or [None])[0]
    finish = text_of(choice, "finish_reason")
    if not finish:
        raise call.broken("no finish_reason")
    if finish.lower() in _PASSING:
        raise PassingFailure(f"{call.endpoint.host} broke the answer off (finish_reason {finish})", reply=reply)
    headers, refusal = reply.headers, text_of(choice, "message", "refusal")
    _refuse_truncated_prompt(call, usage(completion).input)
    return Response(
        text=_content(member(choice, "message", "content")),
        finish_reason=finish,
        incomplete=_incomplete(call, finish, refusal),
        is_cut_off=finish.lower() in _CUT_OFF and not refusal,
        request_id=headers.get("x-request-id") or headers.get("x-litellm-call-id") or text_of(completion, "id") or None,
        thoughts=max(_thoughts(member(choice, "message")).values(), key=len, default=""),
    )


def _incomplete(call: Call, finish: str, refusal: str) -> str | None:
    reason = finish.lower()
    if refusal:
        return f"refused: {refusal}"
    if reason in _COMPLETE:
        return None
    if reason in _CUT_OFF:
        return cut_off(call.endpoint.settings.max_output_tokens)
    if reason == _REPEATED:
        return f"stopped: outside of its blocks it repeats {_MOST_REPEATED:,} characters of the prompt"
    if reason in _FILTERED:
        return f"filtered by the provider ({finish})"
    return f"not finished (finish_reason {finish})"


def assemble(call: Call, events: Events) -> dict[str, Any]:
    """Return the completion that the chunks make. A stream that breaks after the finish reason lacks only token counts.

    Stops reading when the answer repeats the prompt.
    """
    prompt, written, checked = "".join(message["content"] for message in call.body["messages"]), 0, 0
    completion: dict[str, Any] = {}
    contents: list[str] = []
    refusals: list[str] = []
    thoughts: dict[str, list[str]] = {}
    finish = ""
    try:
        for _kind, chunk in events:
            _tell_progress(call, chunk)
            completion |= {
                name: value for name, value in members_of(chunk).items() if name != "choices" and value is not None
            }
            for choice in list_of(chunk, "choices"):
                if member(choice, "index") in (0, None):
                    delta = member(choice, "delta") or member(choice, "message")
                    contents.append(_content(member(delta, "content")))
                    refusals.append(text_of(delta, "refusal"))
                    for name, thought in _thoughts(delta).items():
                        thoughts.setdefault(name, []).append(thought)
                    finish = text_of(choice, "finish_reason") or finish
                    written += len(contents[-1])
            if written >= checked * 17 // 16 + _MOST_REPEATED // 4:  # so that these checks cost no more than the answer
                checked = written
                if _repeats("\n" + "".join(contents), prompt):
                    finish = _REPEATED
                    break
    except PassingFailure as failure:
        if not finish or failure.reply is not None:
            raise
    message = {"role": "assistant", "content": "".join(contents), "refusal": "".join(refusals) or None}
    message |= {name: "".join(parts) for name, parts in thoughts.items()}
    choices = [{"index": 0, "message": message, "finish_reason": finish or None}]
    return completion | {"object": "chat.completion", "choices": choices}


def _tell_progress(call: Call, chunk: object) -> None:
    """Show how much of the prompt llama.cpp's server has read, or how fast it writes."""
    read, total = (count_of(chunk, "prompt_progress", name) for name in ("processed", "total"))
    written, speed = count_of(chunk, "timings", "predicted_n"), member(chunk, "timings", "predicted_per_second")
    if total:
        call.listener.progressed(f"{read:,} of {total:,} tokens of the prompt read")
    elif written and isinstance(speed, int | float):
        call.listener.progressed(f"{written:,} tokens written, {speed:.0f} a second")


def _repeats(text: str, prompt: str) -> bool:
    """Tell whether a text ends with many characters of the prompt, outside of any block or thought."""
    fence = text.rfind("\n^^^") + 1
    line, _, outside = text[fence:].partition("\n")
    is_inside = fence and not _CLOSING_FENCE.fullmatch(line)
    if is_inside or "\n^^^^" in text or len(outside) < _MOST_REPEATED or outside[-_MOST_REPEATED:] not in prompt:
        return False
    marks = list(find_marks(text))
    return not (marks and marks[-1].opens)


def _thoughts(message: Any) -> dict[str, str]:
    """Return the members of a message or a piece of one that have thoughts."""
    members = members_of(message).items()
    return {name: value for name, value in members if isinstance(value, str) and value and _OF_THOUGHTS.search(name)}


def _content(content: Any) -> str:
    """Return the text of a content, which some servers send as a list of parts."""
    if isinstance(content, list):
        return "".join(part if isinstance(part, str) else text_of(part, "text") for part in content)
    return content if isinstance(content, str) else ""


def usage(completion: Any) -> Usage:
    """Return the token counts. The input includes the cached part, for which DeepSeek has its own member.

    Some servers leave the reasoning out of the completion's tokens: then it is in the total, or exceeds them.
    """
    details = member(completion, "usage", "prompt_tokens_details")
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    prompt, output, total = (count_of(completion, "usage", name) for name in names)
    reasoning = count_of(completion, "usage", "completion_tokens_details", "reasoning_tokens")
    apart = output + reasoning if reasoning > output else 0
    return Usage(
        input=prompt,
        cached_input=count_of(details, "cached_tokens") or count_of(completion, "usage", "prompt_cache_hit_tokens"),
        cache_write=count_of(details, "cache_write_tokens"),
        output=max(output, apart, total - prompt if prompt else 0),
        reasoning=reasoning,
    )


_SMALLEST_WINDOW = 256
"""Some servers send a constant: no server's window is smaller than this, so a smaller count is not believed."""

_MOST_OVERESTIMATED = 2.5
"""The estimate is never so many times too high: no codebase has eight characters per token."""


def _refuse_truncated_prompt(call: Call, counted: int) -> None:
    """Raise LLMError if the server counted far fewer tokens than the prompt has, since Ollama truncates it."""
    estimate = estimate_tokens("".join(message["content"] for message in call.body["messages"]))
    if counted < _SMALLEST_WINDOW or counted * _MOST_OVERESTIMATED >= estimate:
        return
    raise LLMError(
        f"{call.endpoint.host} read only {counted:,} tokens of a prompt of about {estimate:,}: it cuts off what does "
        "not fit into its window. Make the window larger (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx in the Modelfile)",
        "too_long",
    )


VENDOR = Vendor(
    name="chat",
    key_variable="CODE_COMMIT_CHAT_API_KEY",
    needs_key=False,
    api=API("/chat/completions", request_body, usage, read, assemble),
    models={
        "deepseek-v4-pro": Model(1_000_000, 393_216, Price(1.32, 3.96, 0.044)),
        "deepseek-flash": Model(1_000_000, 393_216, Price(0.30, 1.20, 0.006)),
    },
)
