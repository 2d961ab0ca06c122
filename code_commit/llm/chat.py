"""Chat Completions, streamed: POST /chat/completions with `stream`, in the variants of most servers."""

import re
from typing import Any
from urllib.parse import urlsplit

from code_commit.errors import LLMError
from code_commit.exchange import Prompt, Response, Usage
from code_commit.llm.call import DONE, Call, Events, truncated_prompt
from code_commit.llm.endpoint import Endpoint, Reply
from code_commit.llm.failures import PassingFailure
from code_commit.llm.openai import takes_cache_options
from code_commit.llm.usage import Counts, first_count, maybe_count, plain_name, usage_of, with_plain_names
from code_commit.llm.values import count_of, has_count, larger_counts, list_of, member, members_of, text_of
from code_commit.llm.vendor import API, Model, Vendor, cut_off, end_of, estimate_tokens, has_open_block
from code_commit.llm.words import has_error
from code_commit.marks import find_marks
from code_commit.regex import regex
from code_commit.settings import Price

_OF_THOUGHTS = regex("reason|think|thought")  # a member with the thoughts; servers name it in many ways

_RENAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_OF_ANSWER = frozenset(["completion_tokens", "output_tokens", "total_tokens"])  # counts that grow with the answer
_REPEATED, _MOST_REPEATED = "repeated_prompt", 2_000
_DEEPEST = 5  # of the parts of a content
_MANY_SUMS = 4  # pieces of which each begins with the one before: no text comes so


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


def has_answer(body: Any) -> bool:
    """Tell whether a completion, or a chunk of one, has a piece of an answer or its end."""
    choices = list_of(body, "choices")
    pieces = [piece for choice in choices for piece in (member(choice, "delta"), member(choice, "message"))]
    if any(_content(member(piece, "content")) or text_of(piece, "refusal") or _thoughts(piece) for piece in pieces):
        return True
    ends = map(_finish_of, choices)
    return not has_error(body) and any(end and end_of(end) != "broken" for end in ends)


def _finish_of(choice: Any) -> str:
    """Return the finish reason, also by Google's name; OpenRouter's of the provider behind it where that broke off."""
    native = text_of(choice, "native_finish_reason")
    return native if end_of(native) == "broken" else text_of(choice, "finish_reason") or text_of(choice, "finishReason")


def read(call: Call, reply: Reply) -> Response:
    completion = reply.body
    choice = (list_of(completion, "choices") or [None])[0]
    text = _content(member(choice, "message", "content"))
    finish = _finish_of(choice) or (DONE if text and not call.is_stream else "")
    if not finish:
        has_form = "choices" in members_of(completion)
        absent = "an empty list of choices" if has_form else "no choices"
        raise call.broken("no finish_reason" if choice else absent, reply, has_form=has_form)
    if end_of(finish) == "broken":
        errors = [member(choice, "error"), member(completion, "error")]
        raise call.refusal(reply, f"{call.endpoint.host} cut the answer off (finish_reason {finish})", errors)
    headers, refusal = reply.headers, text_of(choice, "message", "refusal")
    _refuse_truncated_prompt(call, completion, text)
    return Response(
        text=text,
        finish_reason=finish,
        incomplete=_incomplete(call, finish, refusal),
        is_cut_off=end_of(finish) == "cut off" and not refusal,
        request_id=headers.get("x-request-id") or headers.get("x-litellm-call-id") or text_of(completion, "id") or None,
        thoughts=max(_thoughts(member(choice, "message")).values(), key=len, default=""),
    )


def _incomplete(call: Call, finish: str, refusal: str) -> str | None:
    end = end_of(finish)
    if refusal:
        return f"refused: {refusal}"
    if finish == _REPEATED:
        return f"stopped: outside of its blocks it repeats {_MOST_REPEATED:,} characters of the prompt"
    if end == "complete":
        return None
    if end == "cut off":
        return cut_off(call.endpoint.settings.max_output_tokens)
    if end == "filtered":
        return f"filtered by the provider ({finish})"
    return f"not finished (finish_reason {finish})"


def assemble(call: Call, events: Events) -> dict[str, Any]:
    """Return the completion that the chunks make. A stream that breaks, or stays open, after the finish reason lacks
    only token counts.

    Stops reading when the answer repeats the prompt.
    """
    prompt, checked = "".join(message["content"] for message in call.body["messages"]), 0
    draft = _Draft()
    try:
        for _kind, chunk in events:
            _tell_progress(call, chunk)
            had_finish, text = draft.finish, draft.add(chunk)
            call.wrote(text)
            if draft.finish and (text or not had_finish):  # some servers send it with each piece
                call.ends_soon(is_sure=not had_finish)
            if draft.size >= checked * 17 // 16 + _MOST_REPEATED // 4:  # so that this costs no more than the answer
                checked = draft.size
                if _repeats("\n" + "".join(draft.contents), prompt):
                    draft.finish = _REPEATED
                    break
    except (PassingFailure, LLMError) as failure:
        if not draft.finish or end_of(draft.finish) == "broken":
            raise
        call.tell_late(failure)
    if call.is_done and call.has_text and not call.has_notice:
        draft.finish = draft.finish or DONE
    return draft.whole()


class _Draft:
    """A completion of which not all chunks have come."""

    def __init__(self) -> None:
        self.contents: list[str] = []
        self.size = 0
        self.finish = ""
        self._completion: dict[str, Any] = {}
        self._is_counted = False
        self._sum, self._sums = "", 0  # the last of the pieces that each begin with the one before, and their number
        self._refusals: list[str] = []
        self._thoughts: dict[str, list[str]] = {}

    def add(self, chunk: Any) -> str:
        """Add a chunk, and return the text in it. Moonshot counts the tokens in the choice, Groq in its own member."""
        counted = [member(part, "usage") for part in (*list_of(chunk, "choices"), member(chunk, "x_groq"))]
        if not members_of(chunk, "usage") and any(counted):
            chunk = {**chunk, "usage": next(filter(None, counted))}
        for name, value in members_of(chunk).items():
            if name != "choices" and value is not None:
                is_usage = name == "usage"
                self._completion[name] = larger_counts(self._completion.get(name), value) if is_usage else value
        choices = [choice for choice in list_of(chunk, "choices") if count_of(choice, "index") == 0]
        text = "".join(map(self._add_choice, choices))
        if members_of(chunk, "usage") and (self.finish or not text):
            self._is_counted = True
        elif text and not self.finish:
            self._is_counted = False
        return text

    def _add_choice(self, choice: Any) -> str:
        delta, message = member(choice, "delta"), member(choice, "message")
        if not self.size and not has_answer({"choices": [{"delta": delta}]}):
            delta = message or delta  # after pieces it is their sum
        text = self._new_in(_content(member(delta, "content")))
        self.contents.append(text)
        self.size += len(text)
        self._refusals.append(text_of(delta, "refusal"))
        for name, thought in _thoughts(delta).items():
            self._thoughts.setdefault(name, []).append(thought)
        self.finish = _finish_of(choice) or self.finish
        if error := member(choice, "error"):
            self._completion["error"] = error
        return text

    def _new_in(self, piece: str) -> str:
        """Return what a piece adds: some servers send all of the text so far each time."""
        if not piece or self._sums < 0:
            return piece
        if not piece.startswith(self._sum) or (piece == self._sum and self._sums < _MANY_SUMS):
            self._sums = -1
            return piece
        before, self._sum, self._sums = self._sum, piece, self._sums + 1
        if self._sums == _MANY_SUMS:
            self.contents = [before]
        return piece[len(before) :] if self._sums >= _MANY_SUMS else piece

    def whole(self) -> dict[str, Any]:
        """Return the completion, without counts of the answer that came before its end: the last ones are missing."""
        if not self._is_counted and (so_far := members_of(self._completion, "usage")):
            self._completion["usage"] = {
                name: count for name, count in so_far.items() if plain_name(name) not in _OF_ANSWER
            }
        message = {"role": "assistant", "content": "".join(self.contents), "refusal": "".join(self._refusals) or None}
        message |= {name: "".join(parts) for name, parts in self._thoughts.items()}
        choices = [{"index": 0, "message": message, "finish_reason": self.finish or None}] if self.contents else []
        return self._completion | {"object": "chat.completion", "choices": choices}


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
    outside = text[text.rfind("\n^^^") + 1 :].partition("\n")[2]
    if "\n^^^^" in text or len(outside) < _MOST_REPEATED or outside[-_MOST_REPEATED:] not in prompt:
        return False
    if has_open_block(text):
        return False
    marks = list(find_marks(text))
    return not (marks and marks[-1].opens)


def _thoughts(message: Any) -> dict[str, str]:
    """Return the members of a message or a piece of one that have thoughts; `thinking` has those in parts."""
    members = members_of(message).items()
    found = {name: value for name, value in members if isinstance(value, str) and value and _OF_THOUGHTS.search(name)}
    parts = [part for part in list_of(message, "content") if _is_thought(part)] or list_of(message, "reasoning_details")
    if thought := "".join(_content([member(part, "thinking"), member(part, "text")]) for part in parts):
        found.setdefault("thinking", thought)
    return found


def _is_thought(part: Any) -> bool:
    return _OF_THOUGHTS.search(text_of(part, "type")) is not None


def _content(content: Any, depth: int = 0) -> str:
    """Return the text of a content, which some servers send in parts; thoughts among them are no text."""
    if isinstance(content, list) and depth < _DEEPEST:
        return "".join(_content(part, depth + 1) for part in content)
    if isinstance(content, dict) and depth < _DEEPEST and not _is_thought(content):
        parts = (_content(member(content, name), depth + 1) for name in ("text", "value", "content"))
        return next(filter(None, parts), "")
    return content if isinstance(content, str) else ""


def usage(completion: Any) -> Usage:
    """Return the token counts, by the names of OpenAI, DeepSeek and Anthropic, whose models gateways offer here too."""
    return usage_of(_counts(member(completion, "usage")))


def _counts(counted: Any) -> Counts:
    usage = with_plain_names(counted)
    names = [("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens")]
    read, written = (next((name for name in both if has_count(usage, name)), both[0]) for both in names)
    return Counts(
        input=maybe_count(usage, read),
        output=maybe_count(usage, written),
        total=maybe_count(usage, "total_tokens"),
        cached=first_count(usage, *_CACHED),
        written=first_count(usage, *_WRITTEN),
        reasoning=first_count(usage, *_REASONING),
    )


_CACHED = (
    *("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
    *("prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens"),
)
_WRITTEN = ("prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens")
_REASONING = (
    *("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"),
    "reasoning_tokens",
)

_SMALLEST_WINDOW = 256
"""Some servers send a constant: no server's window is smaller than this, so a smaller count is not believed."""

_MOST_OVERESTIMATED, _OVERESTIMATED_AT_WINDOW = 2.5, 1.5
"""The estimate is never so many times too high: no codebase has eight characters per token. With fewer than that, but
more than 4.8, a count that is a window's size tells what was read."""


def _is_window(tokens: int) -> bool:
    """Tell whether a count is a power of two, a few tokens more or less: Ollama keeps half of a window and two more."""
    size, rest = divmod(tokens + 2, 1024)
    return rest <= 6 and size & (size - 1) == 0


def _refuse_truncated_prompt(call: Call, completion: Any, answer: str) -> None:
    """Raise LLMError if the server read far fewer tokens than the prompt has, by any reading of its counts.

    Ollama cuts the prompt off. The answer is kept in the log.
    """
    estimate = estimate_tokens("".join(message["content"] for message in call.body["messages"]))
    counts, used = _counts(member(completion, "usage")), usage(completion)
    most = max(used.input, (counts.input or 0) + counts.cached + counts.written, (counts.total or 0) - used.output)
    overestimated = _OVERESTIMATED_AT_WINDOW if _is_window(most) else _MOST_OVERESTIMATED
    if most < _SMALLEST_WINDOW or most * overestimated >= estimate:
        return
    raise truncated_prompt(call, f"read only {most:,} tokens", estimate, answer)


VENDOR = Vendor(
    name="chat",
    key_variable="CODE_COMMIT_CHAT_API_KEY",
    needs_key=False,
    api=API("/chat/completions", request_body, usage, read, has_answer, assemble, renames=_RENAMES),
    models={
        "deepseek-v4-pro": Model(1_000_000, 393_216, Price(1.32, 3.96, 0.044)),
        "deepseek-flash": Model(1_000_000, 393_216, Price(0.30, 1.20, 0.006)),
    },
)
