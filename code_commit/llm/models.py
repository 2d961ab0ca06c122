"""What is known of the models: window, longest output, prices. Data; the vendors' lists of 2026-11-21.

A model that is not here is asked all the same: it has no price, and its window is the setting's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from code_commit.model_choice import ModelChoice
from code_commit.settings import Price, Settings

CHARACTERS_PER_TOKEN = 3.2
"""Of source code, in the tokenizers of today; an estimate on the safe side."""


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Prices that take the place of the first ones: from a day on (UTC), or for prompts above so many tokens."""

    price: Price
    from_day: str = ""
    above_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """One model. `context_window` is the most tokens of a prompt, `max_output` the most that it can generate."""

    context_window: int
    max_output: int
    price: Price | None = None
    changes: tuple[PriceChange, ...] = ()


_OPENAI_LONG_PROMPT = 272_000
_OPENAI_MAX_INPUT = 922_000


def _openai(price: Price, max_input: int = _OPENAI_MAX_INPUT) -> Model:
    """OpenAI charges the whole of a long prompt twice, and its output one and a half times."""
    doubled = Price(
        price.input * 2,
        price.output * 1.5,
        None if price.cached_input is None else price.cached_input * 2,
        None if price.cache_write is None else price.cache_write * 2,
    )
    changes = () if max_input <= _OPENAI_LONG_PROMPT else (PriceChange(doubled, above_tokens=_OPENAI_LONG_PROMPT),)
    return Model(max_input, 128_000, price, changes)


def _anthropic(price: Price, *changes: PriceChange, window: int = 1_000_000, max_output: int = 128_000) -> Model:
    return Model(window, max_output, price, changes)


def _gemini(price: Price | None, *changes: PriceChange) -> Model:
    return Model(1_048_576, 65_536, price, changes)


_ARGON_LATER = PriceChange(Price(4, 20, 0.20), from_day="2026-12-01")
_FLASH_LATER = PriceChange(Price(1.50, 7.50, 0.15), from_day="2027-01-01")

MODELS: Mapping[str, Model] = {
    "gpt-6.2-sol": _openai(Price(2, 10, 0.10, 2.50)),
    "gpt-6.2-astra": _openai(Price(8, 40, 0.40, 10)),
    "gpt-6.1-terra": _openai(Price(1, 5, 0.05, 1.25)),
    "gpt-6-luna": _openai(Price(0.10, 0.50, 0.01, 0.125)),
    "gpt-5.6-sol": _openai(Price(4, 20, 0.40, 5)),
    "gpt-5.5": _openai(Price(5, 30, 0.50)),
    "gpt-5.4": _openai(Price(2.50, 15, 0.25)),
    "gpt-5.2": _openai(Price(1.75, 14, 0.175), max_input=272_000),
    "claude-opus-5-5": _anthropic(Price(4, 20, 0.20, 8)),
    "claude-fable-5-2": _anthropic(Price(8, 40, 0.20, 16)),
    "claude-sonnet-5-5": _anthropic(Price(2, 10, 0.10, 4)),
    "claude-haiku-5-5": _anthropic(
        Price(0.10, 0.50, 0.01, 0.20), PriceChange(Price(0.50, 2.50, 0.05, 1), above_tokens=100_000)
    ),
    "claude-sonnet-4-5": _anthropic(Price(3, 15, 0.30, 6), window=200_000, max_output=64_000),
    "gemini-4-argon": _gemini(Price(2, 10, 0.10), _ARGON_LATER),
    "gemini-4-carbon": _gemini(Price(2, 10, 0.10), _ARGON_LATER),
    "gemini-4-hydrogen": _gemini(Price(1.50, 7.50)),
    "gemini-3.8-flash": _gemini(Price(0.75, 3.75, 0.075), _FLASH_LATER),
    "gemini-flash-latest": _gemini(Price(0.75, 3.75, 0.075), _FLASH_LATER),
    "gemini-3.1-pro-preview": _gemini(Price(2, 12, 0.20), PriceChange(Price(4, 18, 0.40), above_tokens=200_000)),
    "gemini-2.5-pro": _gemini(Price(1.25, 10, 0.125), PriceChange(Price(2.50, 15, 0.25), above_tokens=200_000)),
    "deepseek-v4-pro": Model(1_000_000, 393_216, Price(1.32, 3.96, 0.044)),
    "deepseek-flash": Model(1_000_000, 393_216, Price(0.30, 1.20, 0.006)),
}
"""Prices per million tokens. A cache write of Anthropic's is that of the hour which we ask for."""


def find_model(choice: ModelChoice) -> Model | None:
    """Return what is known of the model. A dated name (`claude-sonnet-4-5-20250929`) is that of its model."""
    name = choice.name.rpartition("/")[2]
    return MODELS.get(name) or MODELS.get(re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2})$", "", name))


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text is, where no provider counted it."""
    return round(len(text) / CHARACTERS_PER_TOKEN)


def context_window(choice: ModelChoice, settings: Settings) -> int | None:
    """Return the most tokens that a prompt may have: the setting's, else the known model's; None where unknown."""
    model = find_model(choice)
    return settings.context_window or (model.context_window if model else None)


def required_max_output(choice: ModelChoice, settings: Settings) -> int:
    """Return the output limit for an API that demands one: the setting's, else the most that the model takes."""
    model = find_model(choice)
    return settings.max_output_tokens or (model.max_output if model else _unknown_max_output(choice.name))


def _unknown_max_output(name: str) -> int:
    for pattern, limit in _OLDER_CLAUDES:
        if re.search(pattern, name):
            return limit
    return 64_000


_OLDER_CLAUDES = (
    (r"claude-3-7", 64_000),
    (r"claude-3-5", 8_192),
    (r"claude-3-", 4_096),
    (r"claude-opus-4(-[01])?(-\d{8})?$", 32_000),
)
"""What the API of an older model refuses to exceed (400)."""


def takes_cache_options(name: str) -> bool:
    """Tell whether OpenAI's model knows `prompt_cache_options`: gpt-5.6 and later."""
    version = re.match(r"gpt-(\d+)(?:\.(\d+))?(?![\d.])", name.rpartition("/")[2])
    return version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 6)
