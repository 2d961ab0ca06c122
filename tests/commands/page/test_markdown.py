"""A run as Markdown."""

import re

import pytest

from code_commit.commands.page.markdown import code


@pytest.mark.parametrize("text", ["", " ", "`", "a``b", "`a", "a\nb", "x|y", "<b>", "\u202e", "``` ```"])
def test_a_code_span_is_one_span_on_one_line(text):
    span = code(text)
    ticks = re.match("`+", span)[0]
    inner = span[len(ticks) : -len(ticks)]
    assert "\n" not in span
    assert ticks not in re.findall("`+", inner)
    assert inner.strip("` ") in span
