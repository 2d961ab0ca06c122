"""The diff of a file on the page."""

import pytest

from code_commit.commands.page.diff_markup import _changes_within

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
