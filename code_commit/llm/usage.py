"""The tokens of a reply by arithmetic: what a count includes is told by the other counts, whoever sent them."""

import re
from itertools import product
from typing import Any, NamedTuple

from code_commit.exchange import Usage
from code_commit.llm.values import count_of, has_count


class Counts(NamedTuple):
    """The counts of a reply as it names them, None where it has none.

    `excludes_cache` and `excludes_reasoning` say what the API's reference says of `input` and `output`. They decide
    only where the counts do not.
    """

    input: int | None = None
    output: int | None = None
    total: int | None = None
    cached: int = 0
    written: int = 0
    reasoning: int = 0
    excludes_cache: bool = False
    excludes_reasoning: bool = False


_OTHER_NAMES = {
    "prompt_token_count": "prompt_tokens",
    "candidates_token_count": "completion_tokens",
    "thoughts_token_count": "reasoning_tokens",
    "cached_content_token_count": "cached_tokens",
    "total_token_count": "total_tokens",
}  # of Google, as a gateway may pass them on


def plain_name(name: str) -> str:
    """Return the name of a count as OpenAI writes it, from another case or of Google."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return _OTHER_NAMES.get(snake, snake)


def with_plain_names(usage: Any) -> Any:
    if not isinstance(usage, dict):
        return usage
    return {plain_name(name): with_plain_names(value) for name, value in usage.items()}


def first_count(usage: Any, *paths: str) -> int:
    """Return the first count that is not 0 at these paths, whose names have dots between them."""
    return next(filter(None, (count_of(usage, *path.split(".")) for path in paths)), 0)


def maybe_count(usage: Any, *names: str) -> int | None:
    return count_of(usage, *names) if has_count(usage, *names) else None


def usage_of(counts: Counts) -> Usage:
    """Return the tokens of a call, with all of the prompt in the input and all of the answer in the output.

    A part that is larger than the whole, or that only the total explains, is beside it.
    """
    cached_beside, written_beside, reasoning_beside = _are_beside(counts)
    cached = counts.cached * cached_beside + counts.written * written_beside
    answer = counts.output + counts.reasoning * reasoning_beside if counts.output is not None else 0
    prompt = counts.input + cached if counts.input is not None else 0
    if counts.input is None and counts.total and answer:
        prompt = max(0, counts.total - answer)
    unexplained = (counts.total or 0) - prompt - answer
    if prompt and unexplained > 0 and not (counts.cached + counts.written >= unexplained):
        answer += unexplained
    return Usage(prompt, counts.cached, counts.written, answer, counts.reasoning)


def _are_beside(counts: Counts) -> tuple[bool, bool, bool]:
    """Tell whether the cached tokens and the written ones are beside the input, and the reasoning beside the output."""
    given, answer = counts.input or 0, counts.output or 0
    is_larger = counts.cached + counts.written > given
    stated = (counts.excludes_cache, counts.excludes_cache, counts.excludes_reasoning)
    if counts.total and counts.input is not None and counts.output is not None:
        ways = product((False, True), repeat=3)
        for way in sorted(ways, key=lambda way: (way != stated, way[0] != way[1])):
            cached, written, reasoning = way
            beside = counts.cached * cached + counts.written * written
            inside = counts.cached + counts.written - beside
            is_possible = inside <= given and (reasoning or counts.reasoning <= answer)
            if is_possible and given + beside + answer + counts.reasoning * reasoning == counts.total:
                return cached, written, reasoning
    is_beside = is_larger or counts.excludes_cache
    return is_beside, is_beside, counts.reasoning > answer or counts.excludes_reasoning
