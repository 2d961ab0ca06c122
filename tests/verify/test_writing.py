"""What becomes of line ends and of the last newline, by whole files; `test_edits.py` has the edits."""

import time

import pytest
from command import git
from hypothesis import given
from hypothesis import strategies as st

from code_commit.changes import Edit, EditBlock, FileRemoval, FileReplacement, Reasons, VerifiedChange
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import capture_rules, verify_changes
from code_commit.verify.edits import edit_text
from code_commit.verify.writing import put_in, read_lines, whole_text

WHOLE = {
    # the file, what is sent, what is written
    "a new file": (None, "a\nb\n", "a\nb\n"),
    "a new file, CRLF in the answer": (None, "a\r\nb\r\n", "a\nb\n"),
    "a new file with a CR in a line": (None, "a\rb\n", "a\rb\n"),
    "LF": ("x\ny\n", "a\nb\n", "a\nb\n"),
    "LF, CRLF in the answer": ("x\ny\n", "a\r\ny\r\n", "a\ny\n"),
    "LF, several CR in the answer": ("x\n", "a\r\r\n", "a\n"),
    "LF, no last newline in the answer": ("x\ny\n", "a\nb", "a\nb\n"),
    "CRLF": ("x\r\ny\r\n", "a\nb\n", "a\r\nb\r\n"),
    "CRLF, both in the answer": ("x\r\ny\r\n", "a\r\nb\n", "a\r\nb\r\n"),
    "CRLF, no last newline": ("x\r\ny", "a\nb\nc\n", "a\r\nb\r\nc"),
    "no last newline": ("1.2.3", "1.2.4\n", "1.2.4"),
    "no last newline, fewer lines": ("a\nb", "a\n", "a"),
    "no last newline, one line more": ("a\nb\nc", "a\nb\nc\nd\n", "a\nb\nc\nd"),
    "CR alone": ("x\ry\r", "a\ny\n", "a\ry\r"),
    "CR alone, no last newline": ("x\ry", "x\ny\nz\n", "x\ry\rz"),
    "CR alone in both": ("x\ry\r", "x\rz\r", "x\rz\r"),
    "mostly CR alone": ("a\rb\rc\rd\n", "a\nB\nc\nd\n", "a\rB\rc\rd\n"),
    "a CR in a line of LF": ("a\rb\nc\n", "a\rb\nC\n", "a\rb\nC\n"),
    "mixed, a line changed": ("a\r\nb\r\nc\nd\r\n", "a\nB\nc\nd\n", "a\r\nB\r\nc\nd\r\n"),
    "mixed, lines added": ("a\nb\r\n", "a\nA\nb\nB\n", "a\nA\nb\r\nB\r\n"),
    "mixed, a first line added": ("a\r\nb\n", "0\na\nb\n", "0\r\na\r\nb\n"),
    "mixed, lines removed": ("a\r\nb\nc\r\nd\n", "a\nd\n", "a\r\nd\n"),
    "mixed, a line moved": ("a\r\nb\nc\nd\r\n", "b\nc\na\nd\n", "b\nc\na\nd\r\n"),
    "mixed, the same lines again": ("}\r\n\n}\n\r\nx\n", "}\n\n}\n\ny\n", "}\r\n\n}\n\r\ny\r\n"),
    "mixed, no last newline": ("a\r\nb\nc", "a\nb\nc\nd\n", "a\r\nb\nc\nd"),
    "CR CR LF": ("a\r\r\nb\r\r\n", "a\nc\n", "a\r\r\nc\r\r\n"),
    "an empty file": ("", "a\r\nb\n", "a\nb\n"),
    "to an empty file": ("x\r\n", "", ""),
    "BOM": ("\ufeffx\n", "a\n", "\ufeffa\n"),
    "BOM in both": ("\ufeffx\n", "\ufeffa\n", "\ufeffa\n"),
    "BOM in the answer": ("x\n", "\ufeffa\n", "\ufeffa\n"),
    "BOM, CRLF, no last newline": ("\ufeffclass A\r\n{\r\n}", "class B\n{\n}\n", "\ufeffclass B\r\n{\r\n}"),
    "BOM, mixed": ("\ufeffa\r\nb\n", "A\nb\n", "\ufeffA\r\nb\n"),
    "to an empty file with a BOM": ("\ufeffx\n", "", ""),
    "other separators": ("x\n", "\u65e5\u672c\u2028\x0c\x85\n", "\u65e5\u672c\u2028\x0c\x85\n"),
}


@pytest.mark.parametrize(("old", "sent", "written"), WHOLE.values(), ids=WHOLE)
def test_line_ends_and_the_last_newline_belong_to_the_file(old, sent, written):
    assert whole_text(sent, old) == written


lines = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "c"]), st.sampled_from(["\n", "\r\n", "\r", "\r\r\n"])), max_size=12
)
texts = st.builds(lambda rows, last: "".join(map("".join, rows)) + last, lines, st.sampled_from(["", "z"]))


@given(texts)
def test_a_file_is_the_lines_that_are_read_of_it(text):
    assert put_in(read_lines(text), []) == text


@given(texts, st.sampled_from(["\n", "\r\n"]))
def test_a_file_that_is_sent_with_other_ends_stays_as_it_is(text, end):
    sent = "".join(line + end for line in read_lines(text).lines)
    assert whole_text(sent, text) == text


@given(st.lists(st.sampled_from(["\n", "\r\n"]), max_size=9), st.sampled_from(["", "z"]), st.data())
def test_whole_files_and_edits_are_written_alike(ends, last, data):
    text = "".join(f"{number}{end}" for number, end in enumerate(ends)) + last
    old = read_lines(text).lines
    at = data.draw(st.integers(0, len(old)))
    sent = "".join(f"{line}\n" for line in [*old[:at], "new", *old[at:]])
    assert whole_text(sent, text) == put_in(read_lines(text), [(at, at, ["new"])]) or not text


def test_a_large_file_of_two_ends_takes_no_longer_than_its_lines_need():
    old = "".join(f"line {number % 5000} of it{chr(13) * (number % 3 == 0)}\n" for number in range(400_000))
    sent = old.replace("\r", "").replace("line 7 ", "line seven ")
    start = time.process_time()
    written = whole_text(sent, old)
    assert time.process_time() - start < 5
    assert len(written) > len(sent)


def verified(root, *changes, meant=(), **settings) -> tuple[list[VerifiedChange], list[str], tuple[str, ...]]:
    """Return the changes, the warnings about line ends, and the files that stay as they are."""
    project = find_project(root)
    rules = capture_rules(project, Settings(**settings), Redactor([]))
    reasons = Reasons({("line-ends", path, "") for path in meant}.__contains__)
    done = verify_changes(changes, project, rules, None, reasons)
    return [*done.changes], [str(each) for each in done.warnings if each.kind == "line-ends"], done.ends_alone


ENDS = {
    # the file, the change, the file if it is meant
    "no last newline": (b"a\nb", FileReplacement("f", "a\nb\n"), b"a\nb\n"),
    "CRLF": (b"a\r\nb\r\n", FileReplacement("f", "a\nb\n"), b"a\nb\n"),
    "LF": (b"a\nb\n", FileReplacement("f", "a\r\nb\r\n"), b"a\r\nb\r\n"),
    "mixed": (b"a\r\nb\n", FileReplacement("f", "a\nb\n"), b"a\nb\n"),
    "BOM": (b"\xef\xbb\xbfa\r\n", FileReplacement("f", "a\n"), b"\xef\xbb\xbfa\n"),
    "an edit of the last line": (b"a\nb", EditBlock("f", (Edit("b\n", "b\n"),)), b"a\nb\n"),
    "an edit of one line of CRLF": (b"a\r\nb\r\nc\r\n", EditBlock("f", (Edit("b\n", "b\n"),)), b"a\r\nb\nc\r\n"),
    "an edit with CRLF": (b"a\nb\n", EditBlock("f", (Edit("b\n", "b\r\n"),)), b"a\nb\r\n"),
}


@pytest.mark.parametrize(("old", "change", "meant"), ENDS.values(), ids=ENDS)
def test_ends_alone_change_nothing_and_are_written_when_they_come_again(old, change, meant, project_folder):
    (project_folder / "f").write_bytes(old)
    (done,), (warning,), left = verified(project_folder, change, answer_format="edits")
    assert (done.content, left) == (old, ("f",))
    assert warning == "f: the answer differs from it in line ends or the last newline alone; left as it is"
    (done,), (warning,), left = verified(project_folder, change, meant=["f"], answer_format="edits")
    assert (done.content, left) == (meant, ())
    assert warning.endswith("accepted as sent")


@pytest.mark.parametrize(
    ("old", "change"),
    [
        (b"a\nb\n", FileReplacement("f", "a\nb\n")),
        (b"a\nb", FileReplacement("f", "a\nc\n")),
        (b"a\r\nb\r\n", FileReplacement("f", "a\n")),
        (b"a\r\nb\r\n", EditBlock("f", (Edit("b\n", "c\n"),))),
        (b"a\nb\n", EditBlock("f", (Edit("b\n", "b\n"),))),
    ],
)
def test_any_other_change_has_nothing_to_do_with_ends(old, change, project_folder):
    (project_folder / "f").write_bytes(old)
    first = verified(project_folder, change, answer_format="edits")
    assert first[1:] == ([], ())
    assert verified(project_folder, change, meant=["f"], answer_format="edits") == first


ATTRIBUTES = {
    "*.bat text eol=crlf\n": ["a.bat", "sub/a.bat"],
    "*.bat eol=crlf\n": ["a.bat", "sub/a.bat"],
    "* text=auto eol=crlf\n*.txt eol=lf\n": ["a.bat", "sub/a.bat"],
    "*.bat -text eol=crlf\n": [],
    "*.bat text\n": [],
    "/a.bat text eol=crlf\n": ["a.bat"],
}


@pytest.mark.parametrize("place", [".gitattributes", ".git/info/attributes", "../elsewhere"])
@pytest.mark.parametrize(("text", "with_crlf"), ATTRIBUTES.items())
def test_a_new_file_has_the_line_ends_that_gits_attributes_ask_for(text, with_crlf, place, project_folder):
    (project_folder / place).parent.mkdir(exist_ok=True)
    (project_folder / place).write_text(text)
    git(project_folder, "config", "core.attributesFile", str(project_folder.parent / "elsewhere"))
    paths = ["a.bat", "sub/a.bat", "a.txt"]
    done, *_ = verified(project_folder, *(FileReplacement(path, "x\ny\n") for path in paths))
    assert [change.path for change in done if change.content == b"x\r\ny\r\n"] == with_crlf
    assert all(change.content in (b"x\ny\n", b"x\r\ny\r\n") for change in done)


def test_attributes_of_a_folder_count_below_it_and_above_the_project(project_folder):
    (project_folder / "sub/deep").mkdir(parents=True)
    (project_folder / "sub/.gitattributes").write_text("*.bat text eol=crlf\n")
    done, *_ = verified(project_folder, FileReplacement("a.bat", "x\n"), FileReplacement("sub/deep/er/a.bat", "x\n"))
    assert [change.content for change in done] == [b"x\n", b"x\r\n"]
    (project_folder / "sub/agent-config").mkdir()
    done, *_ = verified(project_folder / "sub/", FileReplacement("a.bat", "x\n"))
    assert [change.content for change in done] == [b"x\r\n"]


TWELVE = "".join(f"line {number}\n" for number in range(12))


@pytest.mark.parametrize("attributes", ["", "* text eol=crlf\n"])
def test_a_rename_keeps_mode_bom_and_line_ends_whatever_a_new_file_would_have(attributes, project_folder):
    (project_folder / ".gitattributes").write_text(attributes)
    old = project_folder / "tools/run"
    old.parent.mkdir()
    old.write_bytes(b"\xef\xbb\xbf" + TWELVE.replace("\n", "\r\n").rstrip().encode())
    old.chmod(0o750)
    sent = TWELVE.replace("line 5\n", "line five\nand a half\n")
    new, gone = FileReplacement("bin/run", sent), FileRemoval("tools/run")
    for changes in ([new, gone], [gone, new]):
        done = {change.path: change for change in verified(project_folder, *changes)[0]}
        moved = done["bin/run"]
        assert moved.content == b"\xef\xbb\xbf" + sent.replace("\n", "\r\n").rstrip().encode()
        assert (moved.mode, moved.renamed_from, moved.action) == (0o750, "tools/run", "create")
        assert done["tools/run"].content is None


def test_what_is_another_file_keeps_nothing(project_folder):
    old = project_folder / "run"
    old.write_text(TWELVE)
    old.chmod(0o755)
    sent = "".join(TWELVE.splitlines(keepends=True)[:6])
    (new, _), *_ = verified(project_folder, FileReplacement("other", sent + "x\n" * 3), FileRemoval("run"))
    assert (new.mode & 0o111, new.renamed_from) == (0, "")


def test_a_file_becomes_a_folder_and_only_where_it_is_deleted(project_folder):
    (project_folder / "bin").write_text(TWELVE)
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "bin")
    project = find_project(project_folder)
    rules = capture_rules(project, Settings(), Redactor([]))
    changes = [FileReplacement("bin/tool", TWELVE), FileRemoval("bin")]
    done = verify_changes(changes, project, rules, None)
    assert [(change.path, change.renamed_from) for change in done.changes] == [("bin/tool", "bin"), ("bin", "")]
    assert [str(warning) for warning in done.warnings] == [
        "bin/tool: git status shows it once git add has taken bin, which was a file; code-commit diff shows it now"
    ]


def test_edit_text_as_sent_gives_the_ends_of_the_answer_to_its_lines_alone():
    assert edit_text("a\r\nb\r\nc", [Edit("b\n", "b\nB\n")], as_sent=True) == ("a\r\nb\nB\nc", [])
