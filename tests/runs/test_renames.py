"""Which deleted file a new one renames."""

import subprocess
import time

import pytest

from code_commit.runs.diff import FileEdit, diff_files
from code_commit.runs.renames import find_renames

TEN = b"".join(b"line %d\n" % number for number in range(10))
LICENSE = b"".join(b"# you may %d\n" % number for number in range(4))


def changed(content: bytes, lines: int) -> bytes:
    rows = content.split(b"\n")
    return b"\n".join([*(b"x%d" % number for number in range(lines)), *rows[lines:]])


CASES = {
    # deleted, created, what renames what
    "the same": ({"a": TEN}, {"b": TEN}, {"b": "a"}),
    "most lines": ({"a": TEN}, {"b": changed(TEN, 4)}, {"b": "a"}),
    "half of the lines": ({"a": TEN}, {"b": changed(TEN, 5)}, {}),
    "twice as long": ({"a": TEN}, {"b": TEN + changed(TEN, 9)}, {}),
    "other line ends, a BOM": ({"a": b"\xef\xbb\xbf" + TEN.replace(b"\n", b"\r\n")}, {"b": TEN.rstrip()}, {"b": "a"}),
    "blank lines alone in common": ({"a": b"\n\n\n\na\n"}, {"b": b"\n\n\n\nb\n"}, {}),
    "empty files": ({"a": b""}, {"b": b""}, {}),
    "blank files": ({"a": b"\n"}, {"b": b"\n"}, {}),
    "a license in common": ({"a": LICENSE + TEN}, {"b": LICENSE + b"x\ny\nz\n"}, {}),
    "lines of another order": ({"a": TEN}, {"b": b"".join(reversed(TEN.splitlines(keepends=True)))}, {"b": "a"}),
    "one line again and again": ({"a": b"}\n" * 10}, {"b": b"}\n" * 3 + changed(TEN, 3)}, {}),
    "the best one": ({"a": changed(TEN, 3), "b": changed(TEN, 1)}, {"c": TEN}, {"c": "b"}),
    "each file once": ({"a": TEN}, {"b": changed(TEN, 1), "c": changed(TEN, 2)}, {"b": "a"}),
    "two of two": ({"a": TEN, "b": TEN + b"b\n"}, {"d": TEN + b"b\n", "c": TEN}, {"c": "a", "d": "b"}),
    "equal ones by their names": ({"x/a": TEN, "x/b": TEN}, {"y/b": TEN, "y/a": TEN}, {"y/a": "x/a", "y/b": "x/b"}),
    "nothing new": ({"a": TEN}, {}, {}),
    "nothing deleted": ({}, {"a": TEN}, {}),
}


@pytest.mark.parametrize(("deleted", "created", "expected"), CASES.values(), ids=CASES)
def test_a_new_file_renames_the_deleted_one_of_which_it_has_most_lines(deleted, created, expected):
    assert find_renames(deleted, created) == expected


def test_many_files_and_long_ones_are_compared_within_bounds():
    lines = [b"".join(b"%d of %d\n" % (row, number) for row in range(60)) for number in range(1000)]
    deleted = {f"old/{number}/index.js": text for number, text in enumerate(lines)}
    created = {f"new/{number}/index.js": text + b"more\n" for number, text in enumerate(lines)}
    long = b"".join(b"line %d of a long file\n" % row for row in range(300_000))
    start = time.process_time()
    find_renames(deleted, created)
    assert find_renames({"a": long}, {"b": long + b"more\n"}) == {"b": "a"}
    assert time.process_time() - start < 10


@pytest.mark.parametrize(("old", "new"), [("a b.txt", 'c "d".txt'), ("bin", "bin/tool"), ("x/Foo.py", "x/foo.py")])
@pytest.mark.parametrize("content", [TEN, changed(TEN, 2), TEN.rstrip()])
def test_git_applies_the_diff_of_a_rename(old, new, content, tmp_path):
    path = tmp_path / old
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(TEN)
    edits = [FileEdit(new, None, content, mode=0o755), FileEdit(old, TEN, None)]
    (change,), diff = diff_files(edits)
    assert (change.path, change.renamed_from, change.action, change.paths) == (new, old, "create", (old, new))
    assert (change.lines_added, change.lines_removed) == {TEN: (0, 0), TEN.rstrip(): (1, 1)}.get(content, (2, 2))
    assert b"\nrename from " in diff
    subprocess.run(["git", "apply", "-"], input=diff, cwd=tmp_path, check=True, capture_output=True)
    assert {str(file.relative_to(tmp_path)): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == {
        new: content
    }
    assert (tmp_path / new).stat().st_mode & 0o111


def test_a_renamed_secret_is_not_shown_and_a_renamed_test_is_told():
    old, new = b"KEY=a-b-c-d-e\n" * 9, b"KEY=a-b-c-d-e\n" * 9 + b"B=1\n"
    (change,), diff = diff_files([FileEdit(".env", old, None), FileEdit("env.txt", None, new)])
    assert diff == b"# .env (a secret, not shown)\n# env.txt (a secret, not shown)\n"
    assert change.renamed_from == ".env"
    (change,), _ = diff_files([FileEdit("tests/test_a.py", TEN, None), FileEdit("a.py", None, TEN)])
    assert change.kind == "test"
