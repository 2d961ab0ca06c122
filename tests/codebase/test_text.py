"""What a codebase that somebody else wrote holds: its lines are taken at their word where they fit the project."""

import pytest

from code_commit.codebase.text import (
    LEFT_OUT_LINE,
    NAMES_LINE,
    NOTES_LINE,
    REPLACEMENT,
    Codebase,
    Header,
    Section,
    file_section,
    list_names,
    names_at_end,
    parse_codebase,
    part_of,
    part_section,
    read_header,
    removal_header,
    replacement_header,
)
from code_commit.views import Outline, Part, Unsure, of_kind, whole_of

FILE, OTHER = "--- a.py ---\nx = 1\n\n", "--- b.py ---\ny = 1\n\n"
OUTLINE = "--- b.py (outline) ---\ndef b():\n\n"
NAMES = f"{NAMES_LINE}\nc.py (9 bytes)\n\n"
OWN_LINE = "--- t.py ---\ntext = '''\n--- {} (outline) ---\n'''\n\n"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (FILE + OTHER, None),
        (FILE + OUTLINE, {"a.py"}),
        (FILE + NAMES, {"a.py"}),
        (FILE + OTHER + OWN_LINE.format("gone.py"), None),
        (FILE + OTHER + OWN_LINE.format("b.py"), None),
        ("--- t.md ---\nAs in a rollup:\n--- b.py ---\n\n" + OUTLINE + "--- c.py (outline) ---\nx\n\n", {"t.md"}),
        ("anything at all", None),
        ("", None),
    ],
    ids=["whole", "an outline", "a name", "a line of its own", "of a file", "an outline and a line", "none", "empty"],
)
def test_what_is_whole_in_it(text, whole, tmp_path):
    for name in ("a.py", "b.py", "c.py", "t.py", "t.md"):
        (tmp_path / name).write_text("x")
    sight = parse_codebase(text, tmp_path).shown
    assert (sight.is_partial, sight.basis) == (whole is not None, "read")
    assert whole is None or whole <= {path for path, view in sight.views.items() if view == Unsure()}


def test_a_codebase_of_our_own_knows_what_is_in_it():
    made = Codebase([FILE, OUTLINE], {"a.py": whole_of("x = 1\n"), "b.py": Outline(9)}, "made")
    assert (made.shown.is_partial, made.sizes) == (True, {"a.py": 6})
    assert (made.weight, made.bytes, made.largest) == (len(made.text), len(made.text), [("a.py", 6)])


@pytest.mark.parametrize(
    "name", [f"{'x' * 300} (outline)", f"a.py (lines 1-{9:09999} of 3)", f"a.py (lines 1-2 of {9:09999})"]
)
def test_a_line_that_names_no_part_of_a_file_is_a_line_like_others(name, tmp_path):
    (tmp_path / "a.py").write_text("x")
    codebase = parse_codebase(f"{FILE}--- {name} ---\ny\n\n{NAMES_LINE}\n{'y' * 300} (9 bytes)\n\n", tmp_path)
    assert not of_kind(codebase.views, Part)
    assert not of_kind(codebase.views, Outline)


def test_every_line_that_is_written_before_a_file_is_recognized():
    path, part = "src/a (1).py", part_of("x\n" * 2_000, [(3, 5), (90, 1_999)])
    for text, is_marked in [
        (file_section(path, "x\n"), False),
        (Section(path, 1_234, "x").as_outline("x"), True),
        (part_section(path, part), True),
        (part_section(path, part, REPLACEMENT), True),
        (replacement_header(path, is_diff=False), True),
        (replacement_header(path, is_diff=True), True),
        (removal_header(path), True),
    ]:
        assert read_header(text.partition("\n")[0]) == Header(path, is_marked)
    for line in (NAMES_LINE, LEFT_OUT_LINE, NOTES_LINE):
        assert read_header(line) == Header("", is_marked=True)
    for line in ("---", "--- a.py", " --- a.py ---", "--- a.py ---x", "---- a.py ----"):
        assert read_header(line) is None


def test_the_names_of_a_folder_stand_on_one_line_unless_one_of_them_could_be_misread():
    names = ["README.md", "lib/a.py", "lib/b c.py", "lib/in/e.py", "odd/f, g (1).py", "odd/h.py", "app/(group)/i.ts"]
    listed = list_names(Section(name, 1_234, "") for name in names)
    assert "\nlib/: a.py (1,234), b c.py (1,234)\nlib/in/e.py (1,234 bytes)\nodd/f, g (1).py (1,234 bytes)\n" in listed
    assert names_at_end(f"{NAMES_LINE}\nwhy:\n{listed}and 3 more: lib 3\n\n") == names
    sizes = {"lib/a.py": 12_001, "lib/b c.py": 12_000}
    some = list_names((Section(name, size, "") for name, size in sizes.items()), 12_001)
    assert some == "lib/: a.py (12,001), b c.py\n"
    assert names_at_end(f"{NAMES_LINE}\nwhy:\n{some}\n") == [*sizes]
