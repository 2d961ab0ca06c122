"""What a file will hold byte for byte, what would lose content, and what is worth a warning."""

import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command import git
from hypothesis import given, settings
from hypothesis import strategies as st

from code_commit.changes import (
    Edit,
    EditBlock,
    FileRemoval,
    FileReplacement,
    Reasons,
    RejectedResponseError,
    VerifiedChanges,
)
from code_commit.codebase.text import part_of
from code_commit.parse import read_response
from code_commit.project import Project, find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import capture_rules, verify_changes
from code_commit.verify.content import read_umask
from code_commit.views import Outline, Sight, Unsure, find_unseen, whole_of

KEY = "sk-proj-0123456789abcdefghij"


def verify(root: Path, *changes, codebase: str | None = None, **options) -> VerifiedChanges:
    project = find_project(root)
    rules = capture_rules(project, Settings(**options), Redactor([KEY]))
    return verify_changes(changes, project, rules, None if codebase is None else Sight({}, codebase))


def broken(root: Path, *changes, **options) -> list[tuple[str, int, str]]:
    with pytest.raises(RejectedResponseError) as caught:
        verify(root, *changes, **options)
    return [(violation.path, violation.line, violation.rule) for violation in caught.value.violations]


def test_git_diff_of_a_crlf_file_shows_only_the_changed_line(project_folder):
    (project_folder / "dos.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    git(project_folder, "add", "-A")
    (change,) = verify(project_folder, FileReplacement("dos.txt", "one\n2\nthree\n", 1)).changes
    (project_folder / "dos.txt").write_bytes(change.content)
    assert git(project_folder, "diff", "--numstat").split() == ["1", "1", "dos.txt"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o400, 0o777, 0o4755, 0o664])
def test_the_mode_of_an_existing_file_is_kept(project_folder, mode):
    (project_folder / "ok.txt").chmod(mode)
    (change,) = verify(project_folder, FileReplacement("ok.txt", "#!/bin/sh\n", 1)).changes
    assert change.mode == mode


def test_a_file_that_another_thread_makes_has_its_mode_meanwhile(tmp_path: Path):
    """To ask umask(2) is to set it."""
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            read_umask()

    before = os.umask(0o022)
    try:
        with ThreadPoolExecutor(2) as threads:
            for _ in range(2):
                threads.submit(ask)
            for number in range(300):
                os.close(os.open(tmp_path / str(number), os.O_CREAT, 0o666))
            done.set()
    finally:
        done.set()
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o644}


@pytest.mark.parametrize(
    ("umask", "content", "mode"),
    [
        (0o022, "x\n", 0o644),
        (0o022, "#!/bin/sh\n", 0o755),
        (0o077, "x\n", 0o600),
        (0o077, "#!/bin/sh\n", 0o700),
        (0, "", 0o666),
    ],
)
def test_a_new_file_gets_the_umasks_mode_and_runs_when_it_is_a_script(project_folder, umask, content, mode):
    before = os.umask(umask)
    try:
        assert read_umask() == umask
        (change,) = verify(project_folder, FileReplacement("new", content, 1)).changes
    finally:
        os.umask(before)
    assert (change.action, change.mode, change.original) == ("create", mode, None)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"caf\xe9\n", b"a\0b", "x\n".encode("utf-16"), b"\x89PNG\r\n\x1a\n\0"]
)
def test_an_existing_file_that_is_no_text_is_not_replaced_but_may_be_removed(project_folder, content):
    (project_folder / "data").write_bytes(content)
    assert broken(project_folder, FileReplacement("data", "text\n", 7)) == [("data", 7, "not-text")]
    (change,) = verify(project_folder, FileRemoval("data", 1)).changes
    assert (change.action, change.content, change.original.content) == ("delete", None, content)


@pytest.mark.parametrize("content", ["a\0b\n", "\ud800\n", "x" * 10_000 + "\0"])
def test_new_content_that_git_cannot_show_is_rejected(project_folder, content):
    assert broken(project_folder, FileReplacement("a.txt", content, 2)) == [("a.txt", 2, "not-text")]


@pytest.mark.parametrize("content", [KEY, f"key = '{KEY}'\n", KEY.encode().hex()])
def test_content_that_holds_the_key_is_rejected_and_the_key_not_quoted(project_folder, content):
    with pytest.raises(RejectedResponseError) as caught:
        verify(project_folder, FileReplacement("src/a.rs", content, 4))
    assert [(violation.line, violation.rule) for violation in caught.value.violations] == [(4, "holds-key")]
    assert KEY not in str(caught.value)


def test_a_path_that_holds_the_key_is_rejected(project_folder):
    assert [row[1:] for row in broken(project_folder, FileReplacement(f"src/{KEY}.rs", "x\n", 4))] == [(4, "holds-key")]


def test_no_piece_of_the_key_stands_where_a_quotation_of_the_response_is_cut(project_folder):
    project, redactor = find_project(project_folder), Redactor([KEY])
    rules = capture_rules(project, Settings(), redactor)
    for before in range(460, 505):
        name = "x" * before + KEY + "y" * 600
        text, reasons = f" ^^^{name}\n^^^{name}\n^^^{name}\nx\n^^^end\n^^^{name}\nx\n^^^end\n", Reasons()
        changes = read_response(text, reasons)
        with pytest.raises(RejectedResponseError) as caught:
            verify_changes(changes, project, rules, None, reasons)
        said = redactor.redact_text(f"{caught.value} {[violation.path for violation in caught.value.violations]}")
        assert KEY[:8] not in said, before


def test_a_file_that_is_sent_empty_is_suspected_and_one_that_an_edit_empties_is_not(project_folder):
    (project_folder / "a.rs").write_text("fn a() {}\nfn b() {}\nfn c() {}\n")
    assert broken(project_folder, FileReplacement("a.rs", "", 10)) == [("a.rs", 11, "omission")]
    edit = EditBlock("a.rs", (Edit("fn a() {}\n", "", 11, "fn c() {}\n"),), 10)
    assert [change.content for change in verify(project_folder, edit, answer_format="edits").changes] == [b""]


def test_a_placeholder_is_told_with_its_own_line_of_the_response(project_folder):
    (project_folder / "a.rs").write_text("fn a() {}\nfn b() {}\n")
    change = FileReplacement("a.rs", "fn a() {}\n// ... existing code ...\n", 10)
    assert broken(project_folder, change) == [("a.rs", 12, "omission")]


def test_a_lost_character_is_suspected_in_a_file_without_one_and_told_of_a_new_file(project_folder):
    for name, text in {"a.txt": "caf\u00e9\nnoir\n", "b.txt": "\ufffd\nx\n"}.items():
        (project_folder / name).write_text(text)
    whole = FileReplacement("a.txt", "x\ncaf\ufffd\n", 5)
    edit = EditBlock("a.txt", (Edit("noir\n", "blanc\n", 6), Edit("caf\u00e9\n", "caf\ufffd\n", 9)), 5)
    assert broken(project_folder, whole) == [("a.txt", 7, "damaged")]
    assert broken(project_folder, edit, answer_format="edits") == [("a.txt", 9, "damaged")]
    for change in (FileReplacement("b.txt", "\ufffd\ufffd\n", 1), FileReplacement("n.py", "'\\ufffd'\n", 1)):
        assert verify(project_folder, change).warnings == ()
    (warning,) = verify(project_folder, FileReplacement("n.txt", "\ufffd\n", 1)).warnings
    assert (warning.kind, warning.path) == ("damaged", "n.txt")
    project, meant = find_project(project_folder), Reasons(lambda known: known[:2] == ("damaged", "a.txt"))
    rules = capture_rules(project, Settings(), Redactor([KEY]))
    verified = verify_changes([whole], project, rules, None, meant)
    assert verified.changes[0].content == whole.content.encode()
    assert [warning.kind for warning in verified.warnings] == ["damaged"]


@pytest.mark.parametrize("content", ["```python\nx = 1\n```\n", "```\nx = 1\n```", "\n~~~python3\nx = 1\n~~~\n\n"])
def test_a_markdown_fence_around_code_is_taken_off_but_where_it_belongs(project_folder, content):
    (change,) = verify(project_folder, FileReplacement("a.py", content, 3)).changes
    assert change.content == b"x = 1\n"
    for name in ("README.md", "docs/notes.txt", "README"):
        assert verify(project_folder, FileReplacement(name, content)).changes[0].content == content.encode()
    (project_folder / "odd.tmpl").write_text("```\nold\n```\n")
    verify(project_folder, FileReplacement("odd.tmpl", content))
    half = FileReplacement("a.py", "```python\nx = 1\n", 3)
    assert broken(project_folder, half) == [("a.py", 3, "wrong-format")]


def test_a_markdown_fence_stays_where_it_may_be_closed_earlier_or_is_no_codes(project_folder):
    (project_folder / "notes.txt").write_text("x\ny\n")
    for path, content in {
        "a.py": "```\nx\n```\ny\n```\nz\n```\n",
        "b.py": "```diff\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n```\n",
        "c.py": "```c++\nx = 1\n```\n",
        "notes.txt": "```\nx\ny\n```\n",
    }.items():
        assert broken(project_folder, FileReplacement(path, content, 3)) in (
            [(path, 3, "wrong-format")],
            [(path, 4, "wrong-format")],
        )


def test_a_placeholder_in_a_markdown_fence_is_told_with_its_own_line(project_folder):
    (project_folder / "a.rs").write_text("fn a() {}\nfn b() {}\n")
    change = FileReplacement("a.rs", "\n```rust\nfn a() {}\n// ... existing code ...\n```\n", 10)
    assert broken(project_folder, change) == [("a.rs", 14, "omission")]


def test_a_comment_of_two_slashes_after_the_path_is_rejected(project_folder):
    (change,) = read_response("^^^./a.h // header\nx\n^^^end\n", Reasons())
    assert broken(project_folder, change) == [("a.h / header", 1, "unclear-path")]


def test_a_removal_of_what_is_not_there_is_rejected(project_folder):
    assert broken(project_folder, FileRemoval("gone/x", 3), FileRemoval("ok.txt", 5)) == [("gone/x", 3, "missing")]


def test_all_violations_are_told_in_the_order_of_the_lines(project_folder):
    changes = [
        FileReplacement("z.txt", "fine\n", 1),
        FileReplacement("a\0", "", 5),
        FileReplacement("build.sh", "", 3),
        FileReplacement("target/x", "", 9),
        FileReplacement("b.txt", "... rest of the file unchanged ...\n", 11),
        FileRemoval("gone", 2),
    ]
    assert [(line, rule) for _, line, rule in broken(project_folder, *changes)] == [
        (2, "missing"),
        (3, "protected"),
        (5, "unclear-path"),
        (9, "protected"),
        (12, "omission"),
    ]


def test_the_same_change_twice_is_one_and_two_changes_of_one_file_are_none(project_folder):
    twice = FileReplacement("a.txt", "x\n", 1)
    assert len(verify(project_folder, twice, twice).changes) == 1
    assert broken(project_folder, twice, FileReplacement("a.txt", "y\n", 4)) == [("a.txt", 4, "same-file")]
    assert broken(project_folder, FileReplacement("ok.txt", "x\n", 1), FileRemoval("ok.txt", 4)) == [
        ("ok.txt", 4, "same-file")
    ]


# Options


@pytest.mark.parametrize(
    ("options", "path", "rule"),
    [
        ({"allow": ("src/",)}, "src/a.rs", None),
        ({"allow": ("src/",)}, "docs/a.md", "not-allowed"),
        ({"allow": ("src",)}, "deep/src/a.rs", None),
        ({"allow": ("/src",)}, "deep/src/a.rs", "not-allowed"),
        ({"allow": ("*.rs", "!main.rs")}, "src/lib.rs", None),
        ({"allow": ("*.rs", "!main.rs")}, "src/main.rs", "not-allowed"),
        ({"allow": ("src/**/*.py",)}, "src/a/b/c.py", None),
        ({"allow": ("SRC/",)}, "src/a.rs", "not-allowed"),
        ({"allow": ("", "# nothing")}, "src/a.rs", "not-allowed"),
        ({"protect": ("tests/",)}, "tests/a.rs", "protected-by-option"),
        ({"protect": ("tests/",)}, "src/a.rs", None),
        ({"protect": ("Tests/",)}, "tests/a.rs", "protected-by-option"),
        ({"protect": ("*.lock",)}, "sub/yarn.lock", "protected-by-option"),
        ({"protect": ("*.md", "!README.md")}, "README.md", None),
        ({"protect": ("\u65e5\u672c/",)}, "\u65e5\u672c/a", "protected-by-option"),
        ({"allow": ("src/",), "protect": ("src/gen/",)}, "src/gen/a.rs", "protected-by-option"),
        ({}, "prod.env", "secret"),
        ({}, "sub/.docker/config.json", "secret"),
        ({}, ".env.example", None),
        ({"allow": ("*",)}, "prod.env", "secret"),
        ({"allow": ("**",)}, ".env", "secret"),
        ({"allow": ("*.*",)}, "prod.env", "secret"),
        ({"allow": ("src/",)}, "src/credentials", "secret"),
        ({"allow": ("/src/**", "*.md")}, "src/.env", "secret"),
        ({"allow": ("src/.env",)}, "src/.env", None),
        ({"allow": ("*.md", "*.env")}, "src/prod.env", None),
        ({"allow": ("*.env", "!prod.env")}, "prod.env", "not-allowed"),
        ({"allow": ("build.sh",)}, "build.sh", "protected"),
        ({"allow": ("target",)}, "target/x", "protected"),
    ],
)
def test_allow_and_protect_have_gitignore_syntax(project_folder, options, path, rule):
    change = FileReplacement(path, "x\n", 1)
    if rule is None:
        assert len(verify(project_folder, change, **options).changes) == 1
    else:
        assert broken(project_folder, change, **options) == [(path, 1, rule)]


BUILD = "#!/bin/sh\nmake\n"


@pytest.mark.parametrize(
    ("content", "is_copy"),
    [
        (BUILD, True),
        (BUILD.removesuffix("\n"), True),
        (BUILD.replace("\n", "\r\n"), True),
        ("", False),
        ("make\n", False),
        (BUILD + "true\n", False),
        (BUILD.replace("make", " make"), False),
    ],
)
@pytest.mark.parametrize(
    ("path", "options", "rule"),
    [
        ("build.sh", {}, "protected"),
        ("tests/a.py", {"protect": ("tests/",)}, "protected-by-option"),
        ("tests/a.py", {"allow": ("ok.txt",)}, "not-allowed"),
    ],
)
def test_a_protected_file_as_it_is_asks_for_no_change(project_folder, path, options, rule, content, is_copy):
    (project_folder / path).parent.mkdir(exist_ok=True)
    (project_folder / path).write_text(BUILD)
    git(project_folder, "add", "-A")
    changes = FileReplacement("ok.txt", "new\n", 1), FileReplacement(path, content, 4)
    if is_copy:
        assert [change.path for change in verify(project_folder, *changes, **options).changes] == ["ok.txt"]
    else:
        assert broken(project_folder, *changes, **options) == [(path, 4, rule)]


@pytest.mark.parametrize("path", ["Build.sh", "linked/build.sh", "agent-config/gone.txt", "agent-config/../../out.txt"])
def test_a_copy_of_what_is_elsewhere_or_nowhere_is_rejected(project_folder, path):
    (project_folder.parent / "out.txt").write_text("x\n")
    (project_folder / "linked").symlink_to(project_folder.parent)
    (project_folder.parent / "build.sh").write_text("x\n")
    assert len(broken(project_folder, FileReplacement(path, "x\n", 1))) == 1


# The codebase


def test_a_change_of_an_unseen_version_is_a_warning_or_strict_a_violation(project_folder):
    (project_folder / "stale.txt").write_text("newer\n")
    (project_folder / "unseen.txt").write_text("never shown\n")
    changes = [
        FileReplacement(name, "changed text\n", line)
        for line, name in enumerate(("ok.txt", "stale.txt", "unseen.txt"), 1)
    ]
    codebase = "--- ok.txt ---\nnot yet\n--- stale.txt ---\nolder\n"
    warnings = verify(project_folder, *changes, codebase=codebase).warnings
    assert [(warning.kind, warning.path) for warning in warnings] == [("unseen", "stale.txt"), ("unseen", "unseen.txt")]
    assert broken(project_folder, *changes, codebase=codebase, strict=True) == [
        ("stale.txt", 2, "stale"),
        ("unseen.txt", 3, "stale"),
    ]
    assert verify(project_folder, *changes).warnings == ()
    removal = FileRemoval("unseen.txt", 5)
    assert len(verify(project_folder, removal, codebase=codebase).warnings) == 1
    assert broken(project_folder, removal, codebase=codebase, strict=True) == [("unseen.txt", 5, "stale")]
    new = FileReplacement("new.txt", "x\n", 1)
    assert verify(project_folder, new, codebase=codebase, strict=True).warnings == ()


def test_what_the_prompt_shows_beside_the_codebase_is_not_stale_whatever_was_verified_since(project_folder):
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(strict=True), Redactor([]))
    (project_folder / "ok.txt").write_text("still not right\n")
    shown = Sight({"ok.txt": whole_of("still not right\n")}, "not yet\n")
    for _ in range(2):  # the first one was not approved
        change = FileReplacement("ok.txt", "ok, it is right\n", 1)
        assert verify_changes([change], project, rules, shown).warnings == ()
    (project_folder / "ok.txt").write_text("formatted by the build\n")
    with pytest.raises(RejectedResponseError, match="rollup"):
        verify_changes([FileReplacement("ok.txt", "again\n", 1)], project, rules, shown)
    shown = Sight({"ok.txt": whole_of("formatted by the build\n")}, "not yet\n")
    assert verify_changes([FileReplacement("ok.txt", "formatted again\n", 1)], project, rules, shown).warnings == ()


SIGHTS = {
    "whole, as it is": (Sight({"ok.txt": whole_of("not yet\n")}, basis="made"), [], []),
    "whole, another text": (Sight({"ok.txt": whole_of("older\n")}, basis="made"), ["stale"], ["stale"]),
    "nothing of it": (Sight({}, "not yet\n", basis="made"), ["stale"], ["stale"]),
    "an outline": (Sight({"ok.txt": Outline(8)}, basis="made", is_partial=True), ["unseen"], ["unseen"]),
    "in part": (Sight({"ok.txt": part_of("not yet\n\n", [(1, 1)])}, basis="made"), ["unseen"], ["stale"]),
    "nobody knows what": (Sight({"ok.txt": Unsure()}, "older\n", basis="guessed"), ["stale"], []),
    "nobody knows, and the rollup has it": (Sight({"ok.txt": Unsure()}, "not yet\n", basis="guessed"), [], []),
    "nobody knows, the rollup outlines it": (Sight({"ok.txt": Outline(8)}, "", (), "guessed", True), ["unseen"], []),
}


@pytest.mark.parametrize(("sight", "of_whole", "of_edit"), SIGHTS.values(), ids=SIGHTS)
def test_what_was_seen_decides_what_strict_rejects(sight, of_whole, of_edit, project_folder):
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(strict=True, answer_format="edits"), Redactor([]))
    edit = EditBlock("ok.txt", (Edit("not yet\n", "ok\n"),), 1)
    for change, expected in ((FileReplacement("ok.txt", "ok\n", 1), of_whole), (edit, of_edit)):
        try:
            verify_changes([change], project, rules, sight)
            broken_rules = []
        except RejectedResponseError as rejection:
            broken_rules = [violation.rule for violation in rejection.violations]
        assert broken_rules == expected, change


def test_line_ends_and_a_bom_make_no_difference_to_the_rollup(project_folder):
    (project_folder / "dos.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    change = FileReplacement("dos.txt", "one\n2\n", 1)
    for codebase in ("dos.txt\none\ntwo\n", "dos.txt\r\none\r\ntwo\r\n", "\ufeffone\ntwo"):
        assert verify(project_folder, change, codebase=codebase).warnings == ()


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.text("ab\n", max_size=12), max_size=20),
    st.text("ab\n", max_size=60),
)
def test_a_file_is_seen_where_its_lines_stand_in_the_rollup(texts, codebase):
    unseen = find_unseen(texts, Sight({}, codebase))
    for path, text in texts.items():
        lines = text.rstrip("\n")
        if not lines:
            assert path not in unseen
        else:
            assert (path in unseen) is (f"\n{lines}" not in f"\n{codebase}")


# Warnings


@pytest.mark.parametrize(
    ("path", "old", "new", "words"),
    [
        ("src/a.rs", "x\n" * 100, "x\n" * 40, ["shrinks"]),
        ("src/a.rs", "x\n" * 100, "x\n" * 60, []),
        ("test_a.py", "x\n" * 2, "", ["shrinks"]),
        ("test_a.py", "x\n", "y\n", []),
        ("src/a.rs", "x\n", None, []),
    ],
)
def test_a_file_that_shrinks_to_under_half_is_a_warning(project_folder, path, old, new, words):
    if old is not None:
        (project_folder / path).parent.mkdir(parents=True, exist_ok=True)
        (project_folder / path).write_text(old)
    change = FileRemoval(path, 1) if new is None else FileReplacement(path, new, 1)
    warnings = verify(project_folder, change).warnings
    assert len(warnings) == len(words)
    assert all(word in warning.message and warning.path == path for word, warning in zip(words, warnings, strict=True))


def test_a_blank_behind_a_path_is_no_part_of_it(project_folder):
    reasons = Reasons()
    changes = read_response("^^^ok.txt \nok\n^^^end\n", reasons)
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(), Redactor([KEY]))
    assert [change.path for change in verify_changes(changes, project, rules, None, reasons).changes] == ["ok.txt"]


# Anything at all


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("arena")
    (root / "src").mkdir()
    (root / "src/a.rs").write_text("fn a() {}\n")
    (root / "link").symlink_to("src")
    return find_project(root)


names = st.one_of(
    st.sampled_from(["src/a.rs", "src", "link/x", "b.txt", "build.sh", "../x", "\ud800", "src/a.rs/b"]), st.text()
)
contents = st.one_of(st.text(st.characters(), max_size=40), st.text(st.characters(categories=["Cs", "Cc"]), max_size=5))
changes = st.one_of(
    st.builds(FileReplacement, names, contents, st.integers(0, 9)), st.builds(FileRemoval, names, st.integers(0, 9))
)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(changes, max_size=6))
def test_nothing_but_a_rejection_is_ever_raised(arena, change_list):
    rules = capture_rules(arena, Settings(allow=("*",)), Redactor([KEY]))
    try:
        verified = verify_changes(change_list, arena, rules, Sight({}, "fn a() {}\n"))
    except RejectedResponseError as error:
        rejection = error
    else:
        rejection = None
    if rejection is not None:
        assert rejection.violations
        assert str(rejection).encode()
        return
    assert {change.path for change in verified.changes} == {change.path for change in change_list}
    for change in verified.changes:
        assert os.path.realpath(arena.root / change.path) == f"{arena.root}/{change.path}"
        assert change.content is None or change.content.decode() is not None


@pytest.mark.sweep
def test_ten_thousand_paths_with_three_hundred_patterns(project_folder):
    (project_folder / ".gitignore").write_text("".join(f"*.x{number}\n/q{number}/\n" for number in range(150)))
    many = [
        FileReplacement(f"d{number % 200}/e{number % 17}/f{number}.py", "x = 1\n", number) for number in range(10_000)
    ]
    start = time.process_time()
    assert len(verify(project_folder, *many, codebase="").changes) == 10_000
    assert time.process_time() - start < 20


@pytest.mark.slow
def test_a_file_of_two_hundred_megabytes_is_taken_as_it_is(project_folder):
    text = "".join(f"line {number} of a long file, nothing else\n" for number in range(1000))
    with (project_folder / "large.txt").open("w") as file:
        for _ in range(1500):
            file.write(text)
    (change,) = verify(project_folder, FileReplacement("large.txt", text[:2000], 1)).changes
    assert change.original is not None
    assert len(change.original.content) == (project_folder / "large.txt").stat().st_size
    subprocess.run(["rm", project_folder / "large.txt"], check=True)
