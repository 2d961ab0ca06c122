import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from code_commit.runs.diff import FileEdit, diff_files

change = FileEdit


def applied_by_git(folder: Path, changes: list[FileEdit]) -> dict[str, bytes]:
    """Lay out the old files, let git apply the diff, and return the files."""
    for each in changes:
        if each.old is not None:
            path = folder / each.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(each.old)
            path.chmod(each.old_mode)
    diff = diff_files(changes)[1]
    if diff:
        subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], input=diff, cwd=folder, check=True, capture_output=True
        )
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def expected(changes: list[FileEdit]) -> dict[str, bytes]:
    return {each.path: each.new for each in changes if each.new is not None}


CASES = {
    "replace": [change("a.txt", b"a\nb\nc\n", b"a\nB\nc\n")],
    "create": [change("new/file.txt", None, b"x\n")],
    "create empty": [change("empty", None, b"")],
    "create executable": [change("run", None, b"#!/bin/sh\n", mode=0o755)],
    "delete": [change("gone.txt", b"x\ny\n", None)],
    "delete empty": [change("gone", b"", None)],
    "no final newline before": [change("a", b"a\nb", b"a\nc\n")],
    "no final newline after": [change("a", b"a\nb\n", b"a\nb")],
    "no final newline at all": [change("a", b"a\nb", b"a\nc")],
    "CRLF": [change("a", b"a\r\nb\r\n", b"a\r\nc\r\n")],
    "carriage returns, form feeds, NUL-free oddities": [change("a", b"a\rb\x0c\x0b\nq\n", b"a\rb\x0c\x0b\nr\n")],
    "blanks in the name": [change("a b/c d.txt", b"1\n", b"2\n"), change("n w", None, b"1\n"), change("g n", b"1\n", None)],
    "quotes, backslash, tab, line end in the name": [change('q"\\\t\n.txt', b"1\n", b"2\n")],
    "every script in the name": [change("src/日本語-é.rs", b"1\n", b"2\n"), change("🎉.md", None, b"x\n")],
    "lines like headers": [change("a", b"--- a/x\n+++ b/x\n", b"--- a/y\n+++ b/x\n@@ -1 +1 @@\n")],
    "far apart": [change("a", b"".join(b"%d\n" % n for n in range(100)), b"".join(b"%d\n" % n for n in range(100) if n % 20))],
    "several files": [change("b", b"1\n", b"2\n"), change("a/c", None, b"1\n"), change("z", b"1\n", None)],
}  # fmt: skip


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_git_applies_it(changes, tmp_path):
    assert applied_by_git(tmp_path, changes) == expected(changes)


def test_a_change_of_the_mode_alone_is_in_it(tmp_path):
    applied_by_git(tmp_path, [change("run", b"x\n", b"x\n", 0o644, 0o755)])
    assert (tmp_path / "run").stat().st_mode & 0o111


def test_modes_are_in_it(tmp_path):
    applied_by_git(tmp_path, [change("run", None, b"#!/bin/sh\n", mode=0o755), change("plain", None, b"x\n")])
    assert (tmp_path / "run").stat().st_mode & 0o111
    assert not (tmp_path / "plain").stat().st_mode & 0o111


def test_equal_content_is_no_change():
    (counted,), diff = diff_files([change("a", b"x\n", b"x\n")])
    assert (counted.lines_added, counted.lines_removed, diff) == (0, 0, b"")


def test_counts_lines_as_git_does(tmp_path):
    old, new = b"a\nb\nc\nd\n", b"a\nX\nY\nd\ne"
    (counted,), _ = diff_files([change("f", old, new)])
    (tmp_path / "old").write_bytes(old)
    (tmp_path / "new").write_bytes(new)
    command = ["git", "diff", "--no-index", "--numstat", "old", "new"]
    numbers = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout.split()
    assert [str(counted.lines_added), str(counted.lines_removed)] == numbers[:2]
    assert counted.bytes == len(new)


FUNCTIONS = [
    (b"class A:\n    def f(self):\n" + b"        x\n" * 5, b" def f(self):"),
    ("int grüße(void)\n{\n".encode() + b"  x;\n" * 5, " int grüße(void)".encode()),
    (b"  x;\n" * 5, b""),
]


@pytest.mark.parametrize(("start", "function"), FUNCTIONS, ids=["method", "like git", "none"])
def test_a_hunk_says_in_which_function_it_is(start, function, tmp_path):
    changes = [change("f", start + b"        y\n", start + b"        z\n")]
    assert re.findall(rb"^@@ .* @@(.*)$", diff_files(changes)[1], re.MULTILINE) == [function]
    assert applied_by_git(tmp_path, changes) == expected(changes)


def test_two_large_files_without_a_common_line_take_no_search(tmp_path):
    old = b"".join(b"old %d\n" % number for number in range(20_000))
    new = b"".join(b"new %d\n" % number for number in range(20_000))
    changes = [change("big", b"same\n" + old + b"end\n", b"same\n" + new + b"end\n")]
    assert applied_by_git(tmp_path, changes) == expected(changes)
    assert diff_files(changes)[0][0].lines_removed == 20_000


SHAPES = {
    "one line over and over": (b"x\n" * 3000, b"x\ny\n" * 1500),
    "two lines in turn": (b"a\nb\n" * 3000, b"b\na\nc\n" * 2000),
    "the reverse order": (b"".join(b"%d\n" % n for n in range(4000)), b"".join(b"%d\n" % n for n in range(4000, 0, -1))),
    "one line in three gone": (b"".join(b"%d\n" % n for n in range(9000)), b"".join(b"%d\n" % n for n in range(9000) if n % 3)),
    "more lines than are compared": (b"old\n\nx\n" * 50_000 + b"end", b"old\n\ny\n" * 60_000),
    "unique only between others": (b"".join(b"%d\n" % abs(n) for n in range(-900, 900)), b"".join(b"%d\n" % abs(n) for n in range(-890, 910))),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_git_applies_a_diff_of_every_shape(shape, tmp_path):
    old, new = SHAPES[shape]
    changes = [change("big", old, new)]
    assert applied_by_git(tmp_path, changes) == expected(changes)


def test_what_a_large_file_keeps_is_not_in_its_diff(tmp_path):
    lines = [b"def f%d():\n    return %d\n\n" % (n, n) for n in range(3000)]
    moved = [*lines[:500], b"new\n", *lines[700:2000], *lines[2500:]]
    (counted,), _ = diff_files([change("f", b"".join(lines), b"".join(moved))])
    assert (counted.lines_added, counted.lines_removed) == (1, 3 * (200 + 500))


texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"x", b"\r\n"]), max_size=30).map(b"".join)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.none(), texts), st.one_of(st.none(), texts))
def test_git_applies_any_pair_of_texts(tmp_path_factory, old, new):
    if old is None and new is None:
        return
    changes = [change("some/file", old, new)]
    assert applied_by_git(tmp_path_factory.mktemp("tree"), changes) == expected(changes)
