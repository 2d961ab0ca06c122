"""Which LLM is asked: what `--model` names, or the default of the first provider that has a key."""

import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass

from code_commit.errors import NotSetUpError
from code_commit.keys import KEY_VARIABLES, ApiKey, Provider
from code_commit.project import AGENT_CONFIG
from code_commit.terminal import shown

DEFAULT_MODELS: Mapping[Provider, str] = {
    "gemini": "gemini-4-argon",
    "openai": "gpt-6.2-sol",
    "anthropic": "claude-opus-5-5",
}
"""In the order in which keys are looked for when no model is named. Source: the vendors' model lists, 2026-11-21."""

BARE_NAMES: tuple[tuple[str, Provider], ...] = (
    (r"(gpt-|chatgpt-|o\d).*", "openai"),
    (r"claude-.*", "anthropic"),
    (r"gemini-.*", "gemini"),
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which LLM is asked: `name` is the vendor's model id, for `replay` the folder of recorded responses."""

    provider: Provider
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


def choose_model(model: str, keys: Mapping[Provider, ApiKey]) -> ModelChoice:
    """Return the LLM that the `model` setting names, or the default one of the first provider that has a key.

    Raises NotSetUpError for a name that belongs to no provider, and where nothing is said and no key is there.
    """
    if not model:
        provider = next((provider for provider in DEFAULT_MODELS if provider in keys), None)
        if provider is None:
            variables = ", ".join(KEY_VARIABLES[provider] for provider in DEFAULT_MODELS)
            raise NotSetUpError(
                f"no API key: put one into {AGENT_CONFIG}/PROVIDER-key.txt ({', '.join(DEFAULT_MODELS)}; mode 600) "
                f"or a variable ({variables}), or name a --model"
            )
        return ModelChoice(provider, DEFAULT_MODELS[provider])
    prefix, colon, name = model.partition(":")
    if colon and prefix in typing.get_args(Provider):
        return _named_choice(typing.cast(Provider, prefix), name)
    if model in typing.get_args(Provider):
        return _named_choice(typing.cast(Provider, model), DEFAULT_MODELS.get(typing.cast(Provider, model), ""))
    for pattern, provider in BARE_NAMES:
        if re.fullmatch(pattern, model):
            return ModelChoice(provider, model)
    names = ", ".join(f"{provider}:" for provider in typing.get_args(Provider))
    raise NotSetUpError(f"unknown model '{shown(model)}': put its provider before it, one of {names}")


def _named_choice(provider: Provider, name: str) -> ModelChoice:
    if not name:
        what = "a folder of recorded responses" if provider == "replay" else "the model's name"
        raise NotSetUpError(f"--model {provider}: needs {what} behind the colon")
    return ModelChoice(provider, name)
