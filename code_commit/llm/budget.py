"""What a call may cost and how long a prompt may be: both are known before it is sent."""

from code_commit.errors import LLMError
from code_commit.exchange import Prompt
from code_commit.llm.models import context_window, estimate_tokens, required_max_output
from code_commit.llm.prices import MILLION, price_of
from code_commit.model_choice import ModelChoice
from code_commit.settings import Settings


def explain_misfit(choice: ModelChoice, settings: Settings, prompt: Prompt) -> str | None:
    """Say that a prompt is longer than the model reads, with the sizes of its parts; None where it fits.

    Tokens are estimated; where the model's window is not known, everything fits.
    """
    window = context_window(choice, settings)
    tokens = estimate_tokens(prompt.text)
    if not window or tokens <= window:
        return None
    sizes = ", ".join(f"{name} {size:,} bytes" for name, size in prompt.sizes.items())
    return f"the prompt does not fit {choice}: about {tokens:,} tokens, it reads {window:,} ({sizes})"


class Budget:
    """Keeps a run below `--max-cost`: no call is made that could pass it."""

    def __init__(self, choice: ModelChoice, settings: Settings) -> None:
        self._choice = choice
        self._settings = settings
        self._spent = 0.0

    @property
    def has_limit(self) -> bool:
        return self._settings.max_cost is not None

    def check(self, prompt: Prompt, counted: int | None = None) -> None:
        """Raise LLMError when a call with the prompt does not fit the model, or could cost more than is left.

        The most that a call can cost is its whole prompt, written to a cache where that costs more, and the longest
        output that was allowed. `counted` is the provider's own count of the prompt's tokens, where there is one.
        """
        misfit = explain_misfit(self._choice, self._settings, prompt)
        if misfit:
            raise LLMError(f"{misfit}; lower build_output_limit, or roll up less")
        limit = self._settings.max_cost
        if limit is None:
            return
        tokens, output = counted or estimate_tokens(prompt.text), required_max_output(self._choice, self._settings)
        price = price_of(self._choice, self._settings, tokens)
        if price is None:
            raise LLMError(f"--max-cost needs a price for {self._choice.name}: write [prices] into config.toml")
        reading = tokens * max(price.input, price.cache_write or 0.0) / MILLION
        writing = output * price.output / MILLION
        if self._spent + reading + writing > limit:
            length = f"{tokens:,} tokens" if counted else f"about {tokens:,} tokens (estimated)"
            raise LLMError(
                f"the next call could pass --max-cost {limit:g}: ${self._spent:.4f} are spent, the prompt of {length} "
                f"costs up to ${reading:.4f}, {output:,} tokens of output up to ${writing:.4f} "
                "(see --max-output-tokens)"
            )

    def charge(self, cost_usd: float | None) -> None:
        """Add what a call cost."""
        self._spent += cost_usd or 0.0
