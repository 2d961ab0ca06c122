"""New paths whose spelling is likely not meant: they are rejected once, and the path that was meant is named."""

import re
import time
from pathlib import Path

import pytest
from test_content import broken, verify

from code_commit.changes import Edit, EditBlock, FileRemoval, FileReplacement, Reasons, RejectedResponseError
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import capture_rules, verify_changes

HELD = {
    # a new path, and the existing one that stands in it
    "a language": ("src/a.py python", "src/a.py"),
    "a word": ("src/a.py modified", "src/a.py"),
    "a link": ("[src/a.py](src/a.py)", "src/a.py"),
    "a line": ("src/a.py:L10", "src/a.py"),
    "another line": ("src/a.py#L10", "src/a.py"),
    "brackets": ("(src/a.py)", "src/a.py"),
    "full-width brackets": ("\uff08src/a.py\uff09", "src/a.py"),
    "quotes": ("\u300csrc/a.py\u300d", "src/a.py"),
    "a full-width slash": ("src\uff0fa.py", "src/a.py"),
    "a full-width colon": ("\u6587\u4ef6\uff1asrc/a.py", "src/a.py"),
    "a picture": ("\U0001f4c4src/a.py", "src/a.py"),
    "a label": ("path=src/a.py", "src/a.py"),
    "a sentence": ("Here is the file src/a.py with the fix", "src/a.py"),
    "the root": ("README: updated", "README"),
    "blanks in it": ("docs/my notes.md (changed)", "docs/my notes.md"),
    "brackets in it": ("app/[id]/page.tsx typescript", "app/[id]/page.tsx"),
    "accents in it": ("docs/cafe\u0301.md updated", "docs/cafe\u0301.md"),
    "two of them": ("src/a.py -> docs/my notes.md", "docs/my notes.md"),
    "entities": ("src&#47;a.py", "src/a.py"),
    "an entity": ("docs/R&amp;D.md", "docs/R&D.md"),
    "a URL": ("docs/my%20notes.md", "docs/my notes.md"),
    "a new name": ("src/a.py -> src/b.py", "src/a.py"),
    "a blank before the suffix": ("src/a. py", "src/a.py"),
    "a blank within it": ("src/a.p y", "src/a.py"),
}

NEW = {
    # a new path, and the plain one that is likely meant
    "quotes": ('"src/new.py"', "src/new.py"),
    "a label": ("file: src/new.py", "src/new.py"),
    "another label": ("path=src/new.py", "src/new.py"),
    "a word before": ("create src/new.h", "src/new.h"),
    "a comment": ("src/new.py (new file)", "src/new.py"),
    "the word of the instructions": ("PATH new.c", "new.c"),
    "a wide slash": ("src\uff0fnew.py", "src/new.py"),
    "two names": ("a.txt => b.txt", "a.txt"),
    "a folder as in a URL": ("app/%5Bid%5D/new.tsx", "app/[id]/new.tsx"),
    "a new route as in a URL": ("app/%5bslug%5d/new.tsx", "app/[slug]/new.tsx"),
}

ORDINARY = (
    *("src/a.py.orig", "src/a.pyi", "src/a.py.j2", "src/a.py~", "src/a b.py", "docs/my other notes.md", "(src)/a.py"),
    *("My file (1).txt", "notes (draft)", "a # b.txt", "Foo - bar.swift", "v1.2 release/a.txt", "docs/python"),
    *("My Project/src/x.c", "a - b/c.txt", "Read me", "app/[slug]/page.tsx", "icons/src@2x.png", "Makefile"),
    *("src/README changes.md", "docs/R&amp;D more.md", "docs/100%.md", "docs/my%20other.md"),
)


@pytest.fixture
def root(project_folder: Path) -> Path:
    for path in ("src/a.py", "README", "docs/my notes.md", "app/[id]/page.tsx", "docs/cafe\u0301.md", "docs/R&D.md"):
        (project_folder / path).parent.mkdir(parents=True, exist_ok=True)
        (project_folder / path).write_text("x\n")
    return project_folder


def reason(root: Path, change: FileReplacement | FileRemoval | EditBlock) -> tuple[str, str, bool]:
    """Return the rule, the message, and whether the change may be meant."""
    with pytest.raises(RejectedResponseError) as caught:
        verify(root, change)
    (violation,) = caught.value.violations
    return violation.rule, violation.message, violation.may_be_meant


def accepted(root: Path, path: str, rule: str) -> list[str]:
    """Return the kinds of the warnings when the path is sent again."""
    project = find_project(root)
    reasons = Reasons(lambda known: known[:2] == (rule, path))
    rules = capture_rules(project, Settings(), Redactor([]))
    return [
        found.kind for found in verify_changes([FileReplacement(path, "y\n")], project, rules, None, reasons).warnings
    ]


@pytest.mark.parametrize(("path", "existing"), HELD.values(), ids=HELD)
def test_a_new_path_that_holds_an_existing_one_is_rejected_once_and_names_it(path, existing, root):
    rule, message, may_be_meant = reason(root, FileReplacement(path, "y\n", 1))
    assert (rule, may_be_meant) == ("decorated", True)
    assert f"write {existing} alone" in message
    assert accepted(root, path, "decorated") == ["decorated"]


@pytest.mark.parametrize(("path", "meant"), NEW.values(), ids=NEW)
def test_a_new_path_with_something_around_it_makes_no_stray_file(path, meant, root):
    rule, message, may_be_meant = reason(root, FileReplacement(path, "y\n", 1))
    assert (rule, may_be_meant) == ("decorated", True)
    assert f"write {meant} alone" in message


@pytest.mark.parametrize("path", ORDINARY)
def test_a_name_with_blanks_brackets_or_another_suffix_is_a_name(path, root):
    assert verify(root, FileReplacement(path, "y\n")).warnings == ()


@pytest.mark.parametrize("path", ["python", "file", "[file]", "Here are the changes", "\u4f60\u9700\u8981", "src/*.py"])
def test_a_language_or_a_word_of_the_format_is_no_new_file(path, root):
    assert reason(root, FileReplacement(path, "y\n"))[0] == "decorated"
    (root / path).write_text("x\n")
    assert verify(root, FileReplacement(path, "y\n")).warnings == ()


def test_what_cannot_be_taken_literally_is_rejected_for_good(root):
    for change in (FileRemoval("src/a.py (old)", 1), EditBlock("src/a.py (old)", (Edit("x\n", "y\n"),), 1)):
        rule, message, may_be_meant = reason(root, change)
        assert (rule, may_be_meant) == ("decorated", False)
        assert "write src/a.py alone" in message
    assert reason(root, FileReplacement("- src/a.py", "y\n"))[0] == "unclear-path"
    assert reason(root, FileReplacement("- src/a.py", "y\n"))[1].endswith("; write src/a.py")


def test_a_file_may_be_renamed_to_a_name_that_holds_its_own(root):
    assert len(verify(root, FileRemoval("README", 1), FileReplacement("README (old)", "x\n", 3)).changes) == 2


def test_nothing_outside_the_project_is_named(root):
    (root.parent / "outside.txt").write_text("x\n")
    rule, message, _ = reason(root, FileReplacement("(../outside.txt)/", "y\n"))
    assert (rule, "write " in message) == ("unclear-path", False)


def test_many_long_names_take_no_time(root):
    names = [f"src/{number} {'and some more words ' * 10}.txt" for number in range(2_000)]
    began = time.process_time()
    verify(root, *(FileReplacement(name, "x\n") for name in names))
    assert time.process_time() - began < 20


def test_the_folders_of_diffs_and_examples_are_rejected_where_the_project_has_none(project_folder):
    for path in ("a/ok.txt", "b/ok.txt", "path/to/ok.txt", "path/to/new.txt"):
        assert broken(project_folder, FileReplacement(path, "x\n", 7)) == [(path, 7, "wrong-format")]
    assert broken(project_folder, FileRemoval("a/ok.txt", 7)) == [("a/ok.txt", 7, "wrong-format")]
    for path in ("a/new.txt", "b/src/new.txt", "docs/path/to/ok.txt", "c/ok.txt"):
        verify(project_folder, FileReplacement(path, "x\n"))
    verify(project_folder, FileReplacement("a/ok.txt", "x\n"), FileRemoval("ok.txt"))
    (project_folder / "a").mkdir()
    (project_folder / "path").mkdir()
    for path in ("a/ok.txt", "path/to/ok.txt"):
        verify(project_folder, FileReplacement(path, "x\n"))


# One name in two spellings


@pytest.fixture
def spelled(project_folder: Path) -> Path:
    (project_folder / "Src/inner").mkdir(parents=True)
    (project_folder / "Src/A.txt").write_text("x\n")
    (project_folder / "caf\u00c9.txt").write_text("x\n")
    if (project_folder / "src").exists():
        pytest.skip("the file system has no regard to case: there it is rejected")
    return project_folder


CASES = {
    "OK.txt": "ok.txt",
    "src/b.txt": "Src/b.txt",
    "Src/a.txt": "Src/A.txt",
    "Src/INNER/x/y.txt": "Src/inner/x/y.txt",
    "caf\u00e9.txt": "caf\u00c9.txt",
    "cafe\u0301.txt": "caf\u00c9.txt",
    "SRC": "Src",
}


@pytest.mark.parametrize(("path", "meant"), CASES.items())
def test_a_new_name_that_differs_from_another_in_letter_case_alone_is_rejected_once(path, meant, spelled):
    rule, message, may_be_meant = reason(spelled, FileReplacement(path, "y\n", 1))
    assert (rule, may_be_meant) == ("same-file", True)
    assert f"in letter case alone: write {meant};" in message
    assert accepted(spelled, path, "same-file") == ["same-file"]


def test_a_name_that_differs_in_more_than_letter_case_is_new(spelled):
    for path in ("Src/B.txt", "new/OK.txt", "Src/inner/a.txt", "Src/A.TXT.txt"):
        assert verify(spelled, FileReplacement(path, "y\n", 1)).warnings == ()
    assert verify(spelled, FileReplacement("ok.txt", "changed\n", 1)).warnings == ()
    rule, message, may_be_meant = reason(spelled, FileRemoval("OK.txt", 1))
    assert (rule, may_be_meant, "write ok.txt" in message) == ("same-file", False, True)


FORMS = [
    ("docs/caf\u00e9.md", "docs/cafe\u0301.md"),
    ("\uac00.md", "\u1100\u1161.md"),
    ("caf\u00e9/a.md", "cafe\u0301/b.md"),
]


@pytest.mark.parametrize(("one", "other"), [*FORMS, *((b, a) for a, b in FORMS)])
def test_another_unicode_form_of_a_name_is_rejected_with_its_code_points(one, other, project_folder):
    (project_folder / one).parent.mkdir(exist_ok=True)
    (project_folder / one).write_text("x\n")
    if (project_folder / other).exists():
        pytest.skip("the file system takes both forms for one name")
    rule, message, may_be_meant = reason(project_folder, FileReplacement(other, "y\n", 1))
    assert (rule, may_be_meant) == ("same-file", False)
    assert re.search(r"in another Unicode form, which has U\+\w{4}.*, not U\+\w{4}", message)


def test_the_code_points_of_an_accent_are_told(project_folder):
    (project_folder / "cafe\u0301.md").write_text("x\n")
    assert "which has U+0301, not U+00E9" in reason(project_folder, FileReplacement("caf\u00e9.md", "y\n"))[1]
    (project_folder / "cafe\u0301.md").rename(project_folder / "caf\u00e9.md")
    assert "which has U+00E9, not U+0301" in reason(project_folder, FileReplacement("cafe\u0301.md", "y\n"))[1]
