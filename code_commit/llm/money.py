"""The money of one call: its price, what it has cost, and the most that it may cost."""

import math
import time
from typing import NamedTuple

from code_commit.errors import NotSetUpError, TooLittleMoneyError
from code_commit.exchange import Prompt, Usage
from code_commit.llm import command
from code_commit.llm.ledger import ROUNDING
from code_commit.llm.models import VENDORS, find_model
from code_commit.llm.vendor import ModelChoice, max_output, most_tokens
from code_commit.project import AGENT_CONFIG
from code_commit.settings import Price, Settings

LEAST_OUTPUT = 8_000  # tokens of the shortest useful answer, its reasoning included
_MILLION = 1_000_000


def price_of(choice: ModelChoice, settings: Settings, input_tokens: int = 0) -> Price | None:
    """Return today's price for a prompt of so many tokens, from config.toml or else our table; None if unknown."""
    if VENDORS[choice.provider].api is None:
        return None
    stated = settings.prices.get(str(choice)) or settings.prices.get(choice.name)
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


def require_price(choice: ModelChoice, settings: Settings) -> Price:
    """Return the price that `--max-cost` counts by. Raises NotSetUpError if it is unknown."""
    price = price_of(choice, settings)
    if choice.provider == command.VENDOR.name:
        raise NotSetUpError(
            settings.origin("max_cost")[0], " cannot be enforced because the cost of a program is unknown: omit it"
        )
    if price is None:
        table = f'[prices."{choice.name}"] with input and output (US dollars per million tokens)'
        where = f"to {AGENT_CONFIG}/config.toml, for a fleet to the settings of its tasks, or omit the limit"
        message = f" needs a price for {choice.name}: add {table} {where}"
        raise NotSetUpError(settings.origin("max_cost")[0], message)
    return price


def cost_of(choice: ModelChoice, settings: Settings, usage: Usage, most_input: int = 0) -> float | None:
    """Return the cost of the counted tokens in US dollars, None if unknown. `most_input` are uncounted tokens."""
    price = price_of(choice, settings, usage.input or most_input)
    if price is None or not (usage.input or usage.output):
        return None
    cached_price = price.input if price.cached_input is None else price.cached_input
    write_price = price.input if price.cache_write is None else price.cache_write
    plain = max(usage.input - usage.cached_input - usage.cache_write, 0)
    reading = plain * price.input + usage.cached_input * cached_price + usage.cache_write * write_price
    return (reading + usage.output * price.output) / _MILLION


class Bid(NamedTuple):
    """The highest cost of a call: its whole prompt, and an answer of so many tokens; in US dollars."""

    tokens: int
    reading_usd: float
    output: int
    writing_usd: float

    @property
    def usd(self) -> float:
        return self.reading_usd + self.writing_usd

    def unsettled_after(self, usage: Usage) -> float:
        """Return the highest cost of the tokens that a reply with this usage does not count."""
        return (0.0 if usage.input else self.reading_usd) + (0.0 if usage.output else self.writing_usd)

    def __str__(self) -> str:
        return (
            f"the prompt of up to {self.tokens:,} tokens costs up to ${self.reading_usd:.4f}, an answer of "
            f"{self.output:,} tokens up to ${self.writing_usd:.4f}"
        )


def bid_for(
    choice: ModelChoice, settings: Settings, prompt: Prompt, left: float, counted: int | None = None
) -> Bid | None:
    """Return the highest cost of a call, None without a price; `counted` is the prompt's number of tokens.

    Shorten the answer to fit `left`, down to a useful minimum, whose cost may exceed it.
    """
    tokens = most_tokens(prompt.text) if counted is None else counted
    longest = max_output(find_model(choice), settings)
    price = price_of(choice, settings, tokens)
    if price is None:
        return None
    may_cache = prompt.stable or choice.provider == "chat"  # a gateway may write a cache unasked
    caching = price.cache_write if may_cache else None
    reading = tokens * max(price.input, caching or 0.0) / _MILLION
    affordable = (left - reading) * _MILLION / price.output if price.output else math.inf
    output = int(max(min(longest, affordable), min(longest, LEAST_OUTPUT)))
    return Bid(tokens, reading, output, output * price.output / _MILLION)


def price_useful_answer(choice: ModelChoice, settings: Settings) -> float:
    """Return what the shortest useful answer costs in US dollars, without its prompt; 0 if no price is known."""
    price = price_of(choice, settings)
    return price.output * min(max_output(find_model(choice), settings), LEAST_OUTPUT) / _MILLION if price else 0.0


def require_money(choice: ModelChoice, settings: Settings, prompt: Prompt) -> str:
    """Return a note if `--max-cost` pays for the prompt only if the provider counts fewer tokens, else "".

    Raises TooLittleMoneyError if it pays for no useful answer.
    """
    left = math.inf if settings.max_cost is None else settings.max_cost
    api = VENDORS[choice.provider].api
    most = least = bid_for(choice, settings, prompt, left)
    if api and api.counter:
        least = bid_for(choice, settings, prompt, left, counted=0)
    if not most or not least or most.usd <= left + ROUNDING:
        return ""
    if least.usd <= left + ROUNDING:
        return f"{most}: the run asks {choice.provider} to count the prompt before it sends the request"
    needed = math.ceil(least.usd * 10_000) / 10_000
    enough = math.ceil(most.usd * 10_000) / 10_000
    told = f" is too low for {choice}: {most}; ${enough:.4f} is enough"
    raise TooLittleMoneyError(settings.origin("max_cost", f"{left:g}")[0], told, needed_usd=needed)
