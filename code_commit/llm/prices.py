"""What a call costs: by the prices of config.toml, else by genai-prices where it is installed, else by our table."""

import time

from code_commit.config import Price, Settings
from code_commit.exchange import Usage
from code_commit.keys import Provider
from code_commit.llm.models import find_model
from code_commit.model_choice import ModelChoice

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
    if choice.name not in settings.prices and str(choice) not in settings.prices:
        counted = _genai_cost(choice, usage)
        if counted is not None:
            return counted
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


_GENAI_PROVIDERS: dict[Provider, str] = {"openai": "openai", "anthropic": "anthropic", "gemini": "google"}


def _genai_cost(choice: ModelChoice, usage: Usage) -> float | None:
    """Ask genai-prices, an optional package: its newest release knows prices that are younger than ours."""
    if choice.provider not in _GENAI_PROVIDERS:
        return None
    try:
        import genai_prices
    except ImportError:
        return None
    from datetime import UTC, datetime

    writes = {"cache_write_tokens": usage.cache_write}
    if choice.provider == "anthropic":
        writes["cache_write_1h_tokens"] = usage.cache_write
    try:
        price = genai_prices.calc_price(
            genai_prices.Usage(
                input_tokens=usage.input,
                cache_read_tokens=usage.cached_input,
                output_tokens=usage.output,
                **writes,
            ),
            choice.name,
            provider_id=_GENAI_PROVIDERS[choice.provider],
            genai_request_timestamp=datetime.now(UTC),
        )
    except (LookupError, ValueError):
        return None
    return float(price.total_price)
