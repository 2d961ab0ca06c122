"""Tokens by arithmetic: what a count includes is told by the other counts."""

import pytest

from code_commit.exchange import Usage
from code_commit.llm.usage import Counts, usage_of
from code_commit.llm.values import larger_counts


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (Counts(), Usage()),
        (Counts(10, 5, 15), Usage(10, 0, 0, 5)),
        (Counts(8900, 20, 8920, cached=8000), Usage(8900, 8000, 0, 20)),
        (Counts(900, 20, 8920, cached=8000), Usage(8900, 8000, 0, 20)),
        (Counts(420, 20, 440, cached=8000), Usage(8420, 8000, 0, 20)),
        (Counts(0, 20, None, cached=8000), Usage(8000, 8000, 0, 20)),
        (Counts(None, 20, None, cached=8000), Usage(0, 8000, 0, 20)),
        (Counts(1000, 20, 1920, reasoning=900), Usage(1000, 0, 0, 920, 900)),
        (Counts(1000, 920, 1920, reasoning=900), Usage(1000, 0, 0, 920, 900)),
        (Counts(1000, 20, None, reasoning=900), Usage(1000, 0, 0, 920, 900)),
        (Counts(1000, 20, 1500), Usage(1000, 0, 0, 500)),
        (Counts(2500, 20, 3020, 2000, 500), Usage(3000, 2000, 500, 20)),
        (Counts(3000, 20, 3020, 2000, 500), Usage(3000, 2000, 500, 20)),
        (Counts(None, 20, 3020), Usage(3000, 0, 0, 20)),
        (Counts(5000, 5, None, 1000, 200, excludes_cache=True), Usage(6200, 1000, 200, 5)),
        (Counts(5000, 5, 5005, 1000, excludes_cache=True), Usage(5000, 1000, 0, 5)),
        (Counts(10, 50, None, reasoning=40, excludes_reasoning=True), Usage(10, 0, 0, 90, 40)),
    ],
)
def test_usage(counts, usage):
    assert usage_of(counts) == usage


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ({"a": 3602, "b": 1}, {"a": 0, "b": 20}, {"a": 3602, "b": 20}),
        ({"a": {"b": "7"}}, {"a": {"b": 5.0}, "c": 1}, {"a": {"b": "7"}, "c": 1}),
        ({"a": 1}, None, {"a": 1}),
        (None, {"a": 1}, {"a": 1}),
        ({"a": "x"}, {"a": "y"}, {"a": "y"}),
    ],
)
def test_the_larger_of_two_counts_holds(one, other, both):
    assert larger_counts(one, other) == both
