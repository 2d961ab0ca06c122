"""What a call costs: by the prices of config.toml, else by our table."""

import time

from code_commit.exchange import Usage
from code_commit.llm.models import find_model
from code_commit.model_choice import ModelChoice
from code_commit.settings import Price, Settings

MILLION = 1_000_000


def price_of(choice: ModelChoice, settings: Settings, input_tokens: int = 0) -> Price | None:
    """Return what a prompt of so many tokens is charged at today, None where nobody knows."""
    stated = settings.prices.get(choice.name) or settings.prices.get(str(choice))
    if stated is not None:
        return stated
    model = find_model(choice)
    if model is None:
        return None
    price, today = model.price, time.strftime("%Y-%m-%d", time.gmtime())
    for change in model.changes:
        if today >= change.from_day and (not change.above_tokens or input_tokens > change.above_tokens):
            price = change.price
    return price


def cost_of(choice: ModelChoice, settings: Settings, usage: Usage) -> float | None:
    """Return what a call cost in US dollars, None where the price is not known or nothing was counted."""
    if not usage.input and not usage.output:
        return None
    price = price_of(choice, settings, usage.input)
    return None if price is None else _charge(price, usage)


def _charge(price: Price, usage: Usage) -> float:
    cached_price = price.input if price.cached_input is None else price.cached_input
    write_price = price.input if price.cache_write is None else price.cache_write
    plain = max(usage.input - usage.cached_input - usage.cache_write, 0)
    dollars = (
        plain * price.input
        + usage.cached_input * cached_price
        + usage.cache_write * write_price
        + usage.output * price.output
    )
    return dollars / MILLION
