"""The tokens of a reply by arithmetic: what a count includes is told by the other counts, whoever sent them."""

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


def first_count(usage: Any, *paths: str) -> int:
    """Return the first count that is not 0 at these paths, whose names have dots between them."""
    return next(filter(None, (count_of(usage, *path.split(".")) for path in paths)), 0)


def maybe_count(usage: Any, *names: str) -> int | None:
    return count_of(usage, *names) if has_count(usage, *names) else None


def usage_of(counts: Counts) -> Usage:
    """Return the tokens of a call, with all of the prompt in the input and all of the answer in the output.

    A part that is larger than the whole, or that only the total explains, is beside it.
    """
    cached, reasoning = counts.cached + counts.written, counts.reasoning
    input_beside, output_beside = _are_beside(counts)
    prompt = counts.input + (cached if input_beside else 0) if counts.input is not None else 0
    answer = counts.output + (reasoning if output_beside else 0) if counts.output is not None else 0
    unexplained = (counts.total or 0) - prompt - answer
    if prompt and unexplained > 0 and not (cached and unexplained <= cached):
        answer += unexplained
    return Usage(prompt, counts.cached, counts.written, answer, reasoning)


def _are_beside(counts: Counts) -> tuple[bool, bool]:
    """Tell whether the cached tokens are beside the input, and the reasoning beside the output."""
    given, answer = counts.input or 0, counts.output or 0
    cached, reasoning = counts.cached + counts.written, counts.reasoning
    larger = (cached > given, reasoning > answer)
    if counts.total and counts.input is not None and counts.output is not None:
        ways = [(False, False), (True, False), (False, True), (True, True)]
        ways.sort(key=lambda way: way != (counts.excludes_cache, counts.excludes_reasoning))
        for way in ways:
            whole = given + cached * way[0] + answer + reasoning * way[1]
            if whole == counts.total and way[0] >= larger[0] and way[1] >= larger[1]:
                return way
    return larger[0] or counts.excludes_cache, larger[1] or counts.excludes_reasoning
