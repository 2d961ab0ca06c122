"""The parameters that a server refuses: left out, or sent by another name, for the rest of the run.

Such a refusal costs nothing. The model, the texts and the user's own settings are never left out; a limit of the
answer only if it has no other name and no limit of money rests on it.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from code_commit.exchange import Prompt
from code_commit.llm.endpoint import Reply
from code_commit.llm.words import named_parameters, said_by
from code_commit.regex import regex
from code_commit.settings import Settings

_REFUSING_STATUSES = frozenset({400, 404, 422})
OF_TEMPLATE = 500  # the status of llama.cpp's server for a chat template that refuses a role
_NEEDED = frozenset(["model", "messages", "input", "instructions", "system", "system_instruction"])
_OF_USER = frozenset(["reasoning_effort", "reasoning", "output_config", "generation_config"])
_INSIDE = frozenset(["prompt_cache_breakpoint", "cache_control"])  # members of the blocks of a text
_LIMITS = frozenset(["max_tokens", "max_completion_tokens", "max_output_tokens"])
_GO_TOGETHER = {"stream": ("stream_options",), "background": ("store",)}
_REFUSES = regex(
    r"(?i)\bnot\b|n['’]t\b|\bun(supported|known|recogni[sz]ed|expected|available)|\bextra\b|\bforbidden\b|\binvalid\b"  # noqa: RUF001
    r"|\bno\b|\bonly\b|\bdisabled\b|\bmust\b|\brequires?\b"
)
_OF_VALUE = regex(
    r"(?i)\b(range|between|at (most|least)|less than|exceeds?|maximum|minimum|too (large|high|small|low))\b"
)
_SYSTEM = regex(r"(?i)\broles?\b|\b(system|developer)\W.{0,40}?\b(message|instruction|prompt)s?\b")


class Dialect(NamedTuple):
    """The form of a request that a server takes: without some parameters, others by another name."""

    left_out: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = {}
    has_system: bool = True

    def prompt(self, prompt: Prompt) -> Prompt:
        """Return the prompt, with the system's text before the user's first where there is no role for it."""
        if self.has_system or not prompt.system:
            return prompt
        dialogue = list(prompt.dialogue)
        if dialogue:
            role, text = dialogue[0]
            dialogue[0] = (role, prompt.system + text)
        elif not prompt.stable:
            return prompt._replace(system="", rest=prompt.system + prompt.rest)
        return prompt._replace(system="", stable=prompt.system + prompt.stable, dialogue=dialogue)

    def body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request in this dialect."""
        kept = {self.renamed.get(name, name): value for name, value in body.items() if name not in self.left_out}
        inside = self.left_out & _INSIDE
        return {name: _without(value, inside) for name, value in kept.items()} if inside else kept


def first_dialect(settings: Settings) -> Dialect:
    """Return what the settings say of a server beforehand."""
    named = [name for name in ("stream", "background") if not getattr(settings, name)]
    return Dialect(frozenset(part for name in named for part in (name, *_GO_TOGETHER[name])))


def adapted(
    dialect: Dialect, body: Mapping[str, Any], reply: Reply, settings: Settings, renames: Mapping[str, str]
) -> tuple[Dialect, str] | None:
    """Return the dialect that does without what a refusal names, and what that is; None if it names nothing such."""
    words = said_by(reply.body)
    if reply.status not in _REFUSING_STATUSES | {OF_TEMPLATE}:
        return None
    sent = [name for name in body if name not in _NEEDED | _OF_USER] + [name for name in _INSIDE if _holds(body, name)]
    names = _named(sent, named_parameters(reply.body), words)
    if names and reply.status != OF_TEMPLATE:
        value = rf"(?<!\d){re.escape(str(body.get(names[0])))}(?!\d)"
        is_of_value = re.search(value, words.replace(",", "")) is not None or _OF_VALUE.search(words) is not None
        return _without_parameter(dialect, names[0], settings, renames, is_of_value=is_of_value)
    if dialect.has_system and _SYSTEM.search(words) and _REFUSES.search(words):
        return dialect._replace(has_system=False), "with the system prompt in the user's message"
    return None


def _without_parameter(
    dialect: Dialect, name: str, settings: Settings, renames: Mapping[str, str], *, is_of_value: bool
) -> tuple[Dialect, str] | None:
    """Return the dialect without a parameter, or with its other name; None if it is the value that is refused."""
    if name not in _LIMITS:
        others = _GO_TOGETHER["stream"] if name == "stream" else ()
        return dialect._replace(left_out=dialect.left_out | {name, *others}), f"without {name}"
    if is_of_value or name not in renames:
        return None
    if name not in dialect.renamed.values():
        return dialect._replace(renamed={**dialect.renamed, name: renames[name]}), f"with {renames[name]} for {name}"
    if settings.max_cost is not None:
        return None
    original = next(old for old, new in dialect.renamed.items() if new == name)
    return dialect._replace(left_out=dialect.left_out | {original}), f"without {name}"


def _named(sent: Collection[str], parameters: Collection[str], words: str) -> list[str]:
    """Return the parameters that a refusal names: in a member of their own, else in words that refuse something."""
    parts = {part for parameter in parameters for part in re.split(r"[.\[\]]+", parameter)}
    if found := [name for name in sent if name in parts]:
        return found
    if not _REFUSES.search(words):
        return []
    inner = {"stream_options": "|include_usage"}
    spelt = {name: rf"(?i)(?<![\w-])(non-)?({name}(ing)?{inner.get(name, '')})(?![\w-])" for name in sent}
    return [name for name in sent if re.search(spelt[name], words)]


def _holds(value: Any, name: str) -> bool:
    if isinstance(value, list):
        return any(_holds(part, name) for part in value)
    return isinstance(value, dict) and (name in value or any(_holds(part, name) for part in value.values()))


def _without(value: Any, names: Collection[str]) -> Any:
    if isinstance(value, list):
        return [_without(part, names) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: _without(part, names) for name, part in value.items() if name not in names}
