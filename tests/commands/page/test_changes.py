"""Diffs read back into changes of files."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_commit.commands.page.changes import parse_diff
from code_commit.commands.page.markup import diff_view
from code_commit.runs.diff import FileEdit, diff_files

LINES = st.lists(
    st.sampled_from(["a", "b c", "", "x = 1", "x = 2", "-- a", "++ b", "@@ -1 +1 @@", "\\ x", "é\r"]), max_size=12
)


@pytest.mark.slow
@given(LINES, LINES, st.booleans(), st.booleans())
def test_a_diff_is_read_back_as_it_was_written(old, new, old_ends, new_ends):
    before, after = ("\n".join(lines) + "\n" * ends for lines, ends in ((old, old_ends), (new, new_ends)))
    edit = FileEdit('src/a "b"\té.py', before.encode(), after.encode())
    for file in parse_diff(diff_files([edit])[1]):
        assert file.path == edit.path
        for side, text, start in (("-", before, "old_start"), ("+", after, "new_start")):
            for hunk in file.hunks:
                lines = [line for line in hunk.lines if line.kind in (" ", side)]
                first = max(getattr(hunk, start), 1) - 1
                assert [line.text for line in lines] == text.split("\n")[first : first + len(lines)]
                assert all(line.ended for line in lines[:-1])
        rows = diff_view([file], "", 10**6)[0].rows
        assert len(re.findall(r"<td data-n", rows)) == sum(1 + (line.kind == " ") for line in file.lines)


def test_new_deleted_empty_and_mode_changes_are_told():
    edits = [
        FileEdit("a", None, b""),
        FileEdit("b", None, b"y", mode=0o755),
        FileEdit("c", b"x\n", None),
        FileEdit("d", b"x\n", b"x\n", 0o644, 0o755),
    ]
    files = parse_diff(diff_files(edits)[1])
    assert [(file.path, file.note, len(file.hunks)) for file in files] == [
        ("a", "new", 0),
        ("b", "new, executable", 1),
        ("c", "deleted", 1),
        ("d", "mode 644 is now 755", 0),
    ]


def test_a_rename_is_one_file_with_both_names():
    edits = [
        FileEdit('old "a".txt', b"1\n2\n3\n", None),
        FileEdit("new/b c.txt", None, b"1\n2\n4\n", mode=0o755),
        FileEdit("z", None, b"rename from x\nrename to y\n"),
    ]
    renamed, new = parse_diff(diff_files(edits)[1])
    assert (renamed.path, renamed.renamed_from) == ("new/b c.txt", 'old "a".txt')
    assert renamed.note == 'renamed from old "a".txt, mode 644 is now 755'
    assert (renamed.count("+"), renamed.count("-")) == (1, 1)
    assert (new.path, new.note) == ("z", "new")


def test_a_diff_tells_what_an_edit_tells_but_for_the_size():
    edits = [
        FileEdit("tests/a.py", b"1\n2\n3\n", None),
        FileEdit("helpers.py", None, b"1\n2\n3\n"),
        FileEdit("build.sh", b"a\n", b"b\n"),
        FileEdit("ok.txt", b"a\n", None),
    ]
    changes, diff = diff_files(edits)
    told = {file.path: file.as_change for file in parse_diff(diff)}
    assert told == {change.path: replace(change, bytes=0) for change in changes}
    assert told["helpers.py"].kind == "test"


@given(st.binary(max_size=200), st.integers(0, 400))
def test_a_damaged_diff_is_read_as_far_as_it_goes(noise, cut):
    whole = diff_files(
        [FileEdit("a", b"1\n2\n3\n", b"1\nx\n3\n"), FileEdit("b", None, b"y\n"), FileEdit("c", b"y\n", None)]
    )[1]
    diff_view(parse_diff(whole[:cut] + noise + whole[cut:]), "", 10**6)
