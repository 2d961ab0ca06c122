"""The diff of a file on the page."""

import pytest

from code_commit.commands.page.changes import parse_diff
from code_commit.commands.page.diff_markup import _changes_within, diff_view
from code_commit.runs.diff import FileEdit, diff_files

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
