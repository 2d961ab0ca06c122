"""Code in colours, diffs and a build's output on the page."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_commit.commands.page.changes import parse_diff
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.commands.page.markup import _changes_within, build_view, diff_view, highlighted, line_html, visible
from code_commit.redaction import Redactor
from code_commit.runs.diff import FileEdit, diff_files
from code_commit.runs.record import RunRecord

KEY = "sk-12345678-abcdefgh"


def output_html(folder: Path, output: str | bytes) -> str:
    """A build's output as the page has it, without line numbers."""
    (folder / "1-build.txt").write_bytes(output if isinstance(output, bytes) else output.encode())
    record = RunRecord("0", "run", "run", "", "/", "", 0)
    view = build_view(LoggedRun(folder, folder, record, "success", Redactor([KEY])), "1-build.txt", 1)
    lines = re.findall(r"<span data-n=\d+(?: class=error)?>(.*?)\n</span>", view.lines, re.DOTALL)
    return "\n".join(lines)


TERMINAL = [
    ("plain <b>&", "plain &lt;b&gt;&amp;"),
    ("\x1b[31mred\x1b[0m plain", "red plain"),
    ("\x1b[38;5mx", "x"),
    ("10%\r100%", "100%"),
    ("abcdef\rxy\x1b[K", "xy"),
    ("ab\bc", "ac"),
    ("a\r\nb\r\n", "a\nb"),
    ("\x1b]0;title\x07x", "x"),
    ("\x1b]8;;javascript:alert(1)\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1bPq#0;2;0;0;0~\x1b\\x\x1b(B\x1b=\x1b[?25l\x1b[2J\x1b[10;10Hy", "xy"),
    ("\x9b31mx\x9b0m\x07\x00y", "xy"),
    ("x\x1b[3", "x"),
    ("a\u202eb", r"a<i>\u202e</i>b"),
    (b"a\xffb", "a\ufffdb"),
    ("\x1b[31msk-1234\x1b[0m5678-abcdefgh", "******************gh"),
]


@pytest.mark.parametrize(("output", "lines"), TERMINAL)
def test_output_is_shown_as_a_terminal_finally_would(output, lines, tmp_path):
    assert output_html(tmp_path, output) == lines


@given(st.text(alphabet=st.sampled_from("\x1b[]8;:mKGP\\\x07\r\b\n0123<&\"'a\u202e\x9b\x9d"), max_size=80))
def test_no_output_makes_markup(tmp_path_factory, output):
    markup = output_html(tmp_path_factory.getbasetemp(), output)
    rest = re.sub("</?i>", "", markup)
    assert not set(rest) & set("<>\"'\x1b\x9b\u202e")


ERRORS = [
    ("ok\n0 errors\nsrc/error.rs ok\n\x1b[31mFAILED\x1b[0m a\nerror: b\nend\n", 4),
    ("cc -Wall -Werror -c a.c\npytest --fail-fast\na.c:13:26: error: no member\n[exit code 2]\n", 3),
    ("--- FAIL: TestAdd (0.00s)\nexit\n", 1),
    ("a\nTypeError: x\n", 2),
    ("a\nb\n", 2),
    ("error\n" + "x\n" * 400, 401),
]


@pytest.mark.parametrize(
    ("output", "line"), ERRORS, ids=["colours", "options of a command", "Go", "Python", "none", "far above"]
)
def test_the_first_of_the_last_lines_that_tells_of_an_error_is_marked(output, line, tmp_path):
    (tmp_path / "1-build.txt").write_text(output)
    record = RunRecord("0", "run", "run", "", "/", "", 0)
    view = build_view(LoggedRun(tmp_path, tmp_path, record, "success", Redactor([])), "1-build.txt", 1)
    assert re.findall(r"data-n=(\d+) class=error", view.lines) == [str(line)]


def test_a_long_output_is_shown_from_its_end_with_its_own_numbers(tmp_path):
    (tmp_path / "1-build.txt").write_text("".join(f"line {number:06}\n" for number in range(1, 60_001)))
    record = RunRecord("0", "run", "run", "", "/", "", 0)
    view = build_view(LoggedRun(tmp_path, tmp_path, record, "success", Redactor([])), "1-build.txt", 1)
    assert view.left_out == 54_000
    assert view.lines.startswith("<span data-n=54001>line 054001")
    assert view.telling.endswith(" class=error>line 060000\n</span>")
    view = build_view(LoggedRun(tmp_path, tmp_path, record, "success", Redactor([])), "1-build.txt", 100)
    first = view.left_out + 1
    assert view.lines.startswith(f"<span data-n={first}>line {first:06}")


MARKS = [
    ("    return f'Hello {name}'", "    return f'Hallo {name}'", "Hello", "Hallo"),
    ("x = 1", "x = 12", "1", "12"),
    ("tr ' ' '-'", "tr -d x | tr ' ' '-'", "", "-d x | tr "),
    ("alpha beta", "gamma delta", "", ""),
    ("total = factor", "total = vat_factor", "factor", "vat_factor"),
]


@pytest.mark.parametrize(("old", "new", "gone", "come"), MARKS)
def test_what_differs_in_two_versions_of_a_line_is_marked_word_by_word(old, new, gone, come):
    before, after = _changes_within(old, new)
    assert (old[slice(*before)], new[slice(*after)]) == (gone, come)


@pytest.mark.parametrize(("old", "columns"), [(None, 1), (b"1\n", 2)])
def test_a_new_file_has_one_column_over_the_whole_width(old, columns):
    (view,) = diff_view(parse_diff(diff_files([FileEdit("a.py", old, b"2\n")])[1]), "1-changes.diff", 10_000)
    assert ("colspan" in view.rows, view.rows.count("<td data-n")) == (columns == 2, columns)


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
