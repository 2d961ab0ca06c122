"""Code in colours."""

import time

import pytest

from code_commit.commands.page.highlight import highlighted, line_html, visible


@pytest.mark.parametrize(
    "name", ["x", "a.py", "a.html", "a.js", "a.php", "a.rs", "Makefile", "a.md", "a.toml", "a.json", "a.diff"]
)
def test_coloured_code_stays_the_text_that_it_is(name):
    lines = ["def f(): # <b>", "    '''x", "\r\x0b''' ; return 1", "", "<?php '</script>' ?>", "```{ x: [1] }```"]
    lines += ["\t'\"`${", "é\u2028\U0001f600", "fn main() {}"]
    assert ["".join(text for _, text in line) for line in highlighted(name, lines)][: len(lines)] == lines


def test_code_is_coloured():
    (line,) = highlighted("src/a.py", ["def f(): # <b>"])[:1]
    assert line_html(line) == "<span class=k>def</span> <span class=f>f</span>(): <span class=c># &lt;b&gt;</span>"


def test_what_would_take_a_lexer_long_is_not_coloured():
    line = "x = " + "(" * 50_000
    started = time.process_time()
    assert highlighted("a.hs", [line] * 7)[0] == [("", line)]
    assert time.process_time() - started < 2


def test_marks_and_colours_lie_over_each_other():
    markup = line_html([("k", "def"), ("", " <ab>")], (2, 6))
    assert markup == "<span class=k>de</span><mark><span class=k>f</span></mark><mark> &lt;a</mark>b&gt;"


def test_what_cannot_be_seen_is_shown_as_its_escape():
    assert visible("a\u202eb\x1b\u200b\ud800\tc") == r"a<i>\u202e</i>b<i>\x1b\u200b\ud800</i>" + "\tc"
