import contextlib
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure import is_linear
from trees import Files

from code_commit.changes import (
    DeclinedError,
    Edit,
    EditBlock,
    FileRemoval,
    FileReplacement,
    FilesAskedError,
    Reasons,
    RejectedResponseError,
    RequestedChange,
)
from code_commit.parse import notes_of, parse_response, read_response

Asked = str | tuple[Edit, ...] | None
"""What is asked for a file: its content, edits, or None to remove it."""


def contents(text: str, *paths: str) -> dict[str, Asked]:
    return {change.path: asked(change) for change in parse_response(text, Files(*paths))}


def asked(change: RequestedChange) -> Asked:
    return change.edits if isinstance(change, EditBlock) else getattr(change, "content", None)


ACCEPTED = {
    "one file": ("^^^a\nx\n^^^end\n", {"a": "x\n"}),
    "last line without line end": ("^^^a\nx\n^^^end", {"a": "x\n"}),
    "empty file": ("^^^a\n^^^end\n", {"a": ""}),
    "blank lines stay": ("^^^a\n\n\n^^^end\n", {"a": "\n\n"}),
    "no final newline is lost": ("^^^a\nx\n\n^^^end\n", {"a": "x\n\n"}),
    "removal": ("^^^a\n^^^delete\n", {"a": None}),
    "removal with an end": ("^^^a\n^^^delete\n^^^end\n", {"a": None}),
    "prose around": ("Sure!\n^^^a\nx\n^^^end\nDone.\n", {"a": "x\n"}),
    "markdown fences around": ("```python\n^^^a\nx\n^^^end\n```\n", {"a": "x\n"}),
    "thoughts in front": ("<think>\n^^^b\n</think>\n^^^a\nx\n^^^end\n", {"a": "x\n"}),
    "byte order mark in front": ("\ufeff^^^a\nx\n^^^end\n", {"a": "x\n"}),
    "byte order mark behind thoughts": ("<think>\n</think>\ufeff^^^a\nx\n^^^end\n", {"a": "x\n"}),
    "blanks around the path": ("^^^ \ta b.txt \t\r\nx\n^^^end \r\n", {"a b.txt": "x\n"}),
    "CRLF": ("^^^a\r\nx\r\ny\r\n^^^end\r\n", {"a": "x\r\ny\r\n"}),
    "other line separators are content": (
        "^^^a\nx\u2028\x0b\x0c\x85^^^end\n^^^end\n",
        {"a": "x\u2028\x0b\x0c\x85^^^end\n"},
    ),
    "longer fence": ("^^^^a\n^^^b\n^^^end\n^^^^end\n", {"a": "^^^b\n^^^end\n"}),
    "underlines of reStructuredText": (
        "^^^a.rst\nTitle\n^^^^^\nTitle!\n^^^^^^\n^^^^^^^^^\n^^^end\n",
        {"a.rst": "Title\n^^^^^\nTitle!\n^^^^^^\n^^^^^^^^^\n"},
    ),
    "indented carets in content": ("^^^a\n    ^^^^ here\n ^^^end\n^^^end\n", {"a": "    ^^^^ here\n ^^^end\n"}),
    "carets of a compiler in prose": ("    let x\n        ^^^ expected\n^^^a\n^^^end\n", {"a": ""}),
    "two carets in prose": ("^^ and\n^^up there\n ^^end\n^^^a\n^^b\n^^end\n^^^end\n", {"a": "^^b\n^^end\n"}),
    "two spellings of one path": ("^^^./a//b/./c\nx\n^^^end\n^^^a/b/c\nx\n^^^end\n", {"a/b/c": "x\n"}),
    "a file named end": ("^^^./end\nx\n^^^end\n", {"end": "x\n"}),
    "files named find, to and replace": (
        "^^^./find\nx\n^^^end\n^^^./to\ny\n^^^end\n^^^src/replace\n^^^end\n^^^src/to\n^^^end\n",
        {"find": "x\n", "to": "y\n", "src/replace": "", "src/to": ""},
    ),
    "edits shown in a file": (
        "^^^^a.md\n^^^b\n^^^find\nx\n^^^replace\n^^^end\n^^^^end\n",
        {"a.md": "^^^b\n^^^find\nx\n^^^replace\n^^^end\n"},
    ),
    "a find without a replacement": (
        "^^^^a\n^^^find\n^^^replaced\n^^replace\n^^^^end\n",
        {"a": "^^^find\n^^^replaced\n^^replace\n"},
    ),
    "edits shown later in a file": ("^^^^a\n\n^^^find\n^^^replace\n^^^^end\n", {"a": "\n^^^find\n^^^replace\n"}),
    "files named delete and end": (
        "^^^./delete it\n^^^end\n^^^end user guide\n^^^end\n",
        {"delete it": "", "end user guide": ""},
    ),
    "files named cannot": (
        "^^^./cannot\nx\n^^^end\n^^^cannot.md\n^^^end\n^^^a/cannot b\n^^^end\n^^^Cannot_x\n^^^end\n",
        {"cannot": "x\n", "cannot.md": "", "a/cannot b": "", "Cannot_x": ""},
    ),
    "files named files": (
        "^^^./files\nx\n^^^end\n^^^./Files\n^^^end\n^^^files.txt\n^^^end\n^^^a/files\n^^^end\n",
        {"files": "x\n", "Files": "", "files.txt": "", "a/files": ""},
    ),
    "lines of carets outside": (
        "import fs\n^^^^^^\n^^^ ^^^\t\r\n^^^a\nx\n^^^end\n^^^\n^^^^\n^^^b\n^^^delete\n^^^",
        {"a": "x\n", "b": None},
    ),
    "bare ends": (
        "^^^a.py\nx\n^^^\n^^^b.c\ny\n^^^ \r\n\n^^^c/d\n\n^^^\n\t\n",
        {"a.py": "x\n", "b.c": "y\n", "c/d": "\n"},
        "c/e",
    ),
    "bare ends before files that are there": (
        "^^^a.py\nx\n^^^\n^^^b c\ny\n^^^\n^^^PATH c/d:\n^^^delete\n",
        {"a.py": "x\n", "b c": "y\n", "c/d": None},
        "b c",
        "c/d",
    ),
    "a bare end of a file that is there, named as a compiler points something out": (
        "^^^ a b\nx\n^^^\n",
        {"a b": "x\n"},
        "a b",
    ),
    "a bare end before a removal": ("^^^a\nx\n^^^\n^^^b.c\n^^^delete\n", {"a": "x\n", "b.c": None}),
    "dots in names": ("^^^src/..rs\n^^^end\n^^^.../a\n^^^end\n", {"src/..rs": "", ".../a": ""}),
}


@pytest.mark.parametrize("row", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(row):
    text, expected, *paths = row
    assert contents(text, *paths) == expected


EDITS = {
    "one": ("^^^a\n^^^find\nx\n^^^replace\ny\n^^^end\n", [("x\n", "y\n", 2)]),
    "some": (
        "Now:\n^^^a\n^^^find\nx\n^^^replace\ny\nz\n^^^find\n\n1\n\n^^^replace\n^^^end\nDone.\n",
        [("x\n", "y\nz\n", 3), ("\n1\n\n", "", 8)],
    ),
    "CRLF": ("^^^a\r\n^^^find\r\nx\r\n^^^replace \r\ny\r\n^^^end\r\n", [("x\r\n", "y\r\n", 2)]),
    "longer fences": (
        "^^^^./a\n^^^^find\n^^^end\n^^^^replace\n^^^find\n^^^^end",
        [("^^^end\n", "^^^find\n", 2)],
    ),
    "twice the same": ("^^^a\n^^^find\nx\n^^^replace\n^^^end\n" * 2, [("x\n", "", 2)]),
    "a range": ("^^^a\n^^^find\nx\n^^^to\ny\nz\n^^^replace\n1\n^^^end\n", [("x\n", "1\n", 2, "y\nz\n")]),
    "a range among others": (
        "^^^a\n^^^find\nx\n^^^replace\ny\n^^^find\n1\n^^^to \r\n\n^^^replace\n^^^find\nz\n^^^replace\n^^^end\n",
        [("x\n", "y\n", 2), ("1\n", "", 6, "\n"), ("z\n", "", 11)],
    ),
    "a range between longer fences": (
        "^^^^a\n^^^^find\n^^^to\n^^^^to\n^^^end\n^^^^replace\n^^^to\n^^^^end\n",
        [("^^^to\n", "^^^to\n", 2, "^^^end\n")],
    ),
}


@pytest.mark.parametrize(("text", "expected"), EDITS.values(), ids=EDITS)
def test_accepts_edits(text, expected):
    (block,) = parse_response(text)
    assert isinstance(block, EditBlock)
    edits = [(edit.find, edit.replacement, edit.line, *([edit.last] if edit.last else [])) for edit in block.edits]
    assert (block.path, edits) == ("a", expected)
    assert not set(notes_of(text)) & set("^xyz1")


SPELLED = {
    # the path after the carets, those of the project, the path of the change
    "the word PATH": ("PATH src/a.py", ["src/a.py"], "src/a.py"),
    "a colon": ("./src//a.py:", ["src/a.py"], "src/a.py"),
    "both": ("PATH ./a b.py:", ["a b.py"], "a b.py"),
    "a new file": ("PATH src/a.py", ["src/b.py"], "PATH src/a.py"),
    "a file of that name": ("PATH a", ["PATH a", "a"], "PATH a"),
    "a name with a colon": ("a:", ["a:", "a"], "a:"),
    "another word": ("FILE a", ["a"], "FILE a"),
    "a word in another case": ("path a", ["a"], "path a"),
    "outside": ("PATH /etc/passwd", ["/etc/passwd"], "PATH /etc/passwd"),
    "a plain path": ("a", ["PATH a", "a:"], "a"),
}


@pytest.mark.parametrize(("name", "paths", "path"), SPELLED.values(), ids=SPELLED)
def test_a_word_or_colon_beside_a_path_is_left_out_where_only_the_path_is_there(name, paths, path):
    for block in (f"^^^{name}\nx\n^^^end\n", f"^^^{name}\n^^^delete\n"):
        assert [change.path for change in parse_response(block, Files(*paths))] == [path]
        assert [change.path for change in parse_response(block)] == [name.removeprefix("./").replace("//", "/")]


TOKENS = (
    "<|im_end|>",
    "</s>",
    "<|eot_id|>\n",
    "<end_of_turn>\n\n",
    " <\uff5cend\u2581of\u2581sentence\uff5c>",
    "</s></s>",
    "<end_of_turn>\n<end_of_turn>\n",
    "<unused49>",
    "<\uff5cDSML\uff5cfunction_calls",
)


@pytest.mark.parametrize("token", TOKENS)
def test_the_tokens_of_a_template_behind_the_end_of_the_answer_are_left_out(token):
    reasons = Reasons()
    assert read_response(f"^^^a\nx\n^^^end\n^^^b\ny\n^^^end{token}", reasons) == (
        FileReplacement("a", "x\n", 1),
        FileReplacement("b", "y\n", 4),
    )
    assert reasons.leniences == {"end-token"}


LENIENCES = {
    # what is read, the names of the forms that the specification does not have
    "those of the specification": ("^^^a\nx\n^^^end\n^^^b\n^^^delete\n", set()),
    "longer fences": ("^^^^a\nx\n^^^^end\n", {"longer-fence"}),
    "longer fences of edits": ("^^^^a\n^^^^find\nx\n^^^^replace\n^^^^end\n", {"longer-fence"}),
    "bare ends": ("^^^a\nx\n^^^\n", {"bare-end"}),
    "a byte order mark": ("\ufeff^^^a\nx\n^^^end\n", {"byte-order-mark"}),
    "a word beside the path": ("^^^PATH a\nx\n^^^end\n", {"decorated-path"}),
    "a list of removals": ("^^^delete\na\n^^^end\n", {"listed-removals"}),
    "thoughts": ("<think>\n^^^b\n</think>\n^^^a\nx\n^^^end\n", {"thoughts-dropped"}),
}


@pytest.mark.parametrize(("text", "names"), LENIENCES.values(), ids=LENIENCES)
def test_each_form_beside_those_of_the_specification_is_named(text, names):
    reasons = Reasons()
    assert read_response(text, reasons, Files("a"))
    assert reasons.leniences == names


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        ("^^^delete\na.py\n^^^delete\n", ["a.py"]),
        ("Both go:\n\n^^^delete\na.py\n\nb.py\n^^^delete\n^^^end\nDone.\n", ["a.py", "b.py"]),
        ("a.py\n^^^delete\na.py\n^^^delete\n", ["a.py"]),
        ("^^^delete\na.py\n^^^delete\nb.py\n", []),
        ("a.py\n\n^^^delete\nb.py\n^^^delete\n", []),
        ("^^^delete\nc.py\n^^^delete\n", []),
        ("^^^delete\na.py\n^^^^delete\n", []),
        ("^^^delete\na.py\n^^^b.py\n^^^delete\n", ["b.py"]),
    ],
)
def test_a_list_of_removals_may_end_with_its_own_fence_if_no_path_beside_it_is_of_another_list(text, removed):
    reasons = Reasons()
    assert read_response(text, reasons, Files("a.py", "b.py")) == tuple(map(FileRemoval, removed))
    assert bool(reasons.kept) == (removed in ([], ["b.py"]))


@given(st.lists(st.sampled_from(["^^^delete", "a.py", "b.py", "c.py", "", "Done."]), max_size=9))
def test_no_list_of_removals_is_read_in_part(lines):
    reasons = Reasons()
    removed = {change.path for change in read_response("\n".join(lines), reasons, Files("a.py", "b.py"))}
    said = [line for line in lines if line]
    beside = {line for two in pairwise(said) if "^^^delete" in two for line in two}
    assert reasons.kept or removed == beside & {"a.py", "b.py"}


ROLES = (
    "<|im_start|>assistant",
    "<start_of_turn>model",
    "<\uff5cAssistant\uff5c>",
    "<|start_header_id|>assistant<|end_header_id|>",
    "\n[gMASK]<sop><|assistant|> ",
)


@pytest.mark.parametrize("role", ROLES)
def test_the_tokens_of_a_template_before_the_first_fence_are_left_out(role):
    reasons = Reasons()
    assert [change.path for change in read_response(f"{role}^^^a\nx\n^^^end\n", reasons)] == ["a"]
    assert reasons.leniences == {"start-token"}
    with pytest.raises(RejectedResponseError):
        parse_response(f"Well, {role}^^^a\nx\n^^^end\n")


@pytest.mark.parametrize("line", ["^^^end<|im_end|>\n^^^end", "^^^end<b>\nmore", "^^^end</s> and more", "^^^ends</s>"])
def test_a_token_elsewhere_ends_no_block(line):
    with pytest.raises(RejectedResponseError):
        parse_response(f"^^^a\nx\n{line}\n")


@pytest.mark.parametrize("content", ["delete\n", " delete\r\n", "\ndelete\n\n"])
@pytest.mark.parametrize("end", ["^^^end\n", "^^^end", "^^^\n"])
def test_the_word_delete_alone_removes_a_file_that_is_there_in_the_short_layout(content, end):
    text, reasons = f"^^^a.py\n{content}{end}", Reasons()
    assert read_response(text, reasons, Files("a.py"), is_short=True) == (FileRemoval("a.py", 1),)
    assert "delete-word" in reasons.leniences
    assert read_response(text, Reasons(), Files("b.py"), is_short=True) == (FileReplacement("a.py", content, 1),)
    longer = text.replace("^^^", "^^^^")
    if not end.endswith("^^^\n"):
        assert read_response(longer, Reasons(), Files("a.py"), is_short=True) == (FileReplacement("a.py", content, 1),)


def test_elsewhere_the_word_delete_alone_is_text_once_it_is_sent_again():
    text = "^^^a.py\ndelete\n^^^end\n"
    with pytest.raises(RejectedResponseError) as caught:
        parse_response(text, Files("a.py"))
    assert caught.value.may_be_meant
    assert caught.value.reasons == [
        (
            "line 2: a.py: its only word is 'delete': to remove the file, write ^^^delete in place of the word and of"
            " ^^^end; if you mean it so, send it again unchanged"
        )
    ]
    known = Reasons(lambda known: known[:2] == ("delete-word", "a.py"))
    assert read_response(text, known, Files("a.py")) == (FileReplacement("a.py", "delete\n", 1),)
    assert [warning.kind for warning in known.warnings] == ["delete-word"]
    assert parse_response(text, Files("b.py")) == parse_response(text.replace("^^^", "^^^^"), Files("a.py"))


@pytest.mark.parametrize("content", ["Delete\n", "DELETE", "`delete`\n", "[deleted]\n", "delete.\n"])
@pytest.mark.parametrize("is_short", [False, True])
def test_the_word_in_another_dress_is_suspected_in_every_layout(content, is_short):
    reasons = Reasons()
    changes = read_response(f"^^^a.py\n{content}\n^^^end\n", reasons, Files("a.py"), is_short=is_short)
    assert [each.rule for each in reasons.kept] == ["delete-word"]
    assert changes == (FileReplacement("a.py", f"{content}\n", 1),)


@pytest.mark.parametrize("content", ["delete a.py\n", "delete\ndelete\n", "# delete\n", "delete()\n"])
def test_a_file_that_holds_more_than_the_word_delete_is_a_file(content):
    for is_short in (False, True):
        reasons = Reasons()
        changes = read_response(f"^^^a.py\n{content}^^^end\n", reasons, Files("a.py"), is_short=is_short)
        assert (changes, reasons.kept) == ((FileReplacement("a.py", content, 1),), [])


@pytest.mark.parametrize("fence", ["^^^", "^^^^"])
def test_a_line_of_carets_that_the_file_has_is_a_part_of_it(fence):
    files = Files(**{"a.py": f"API\n{fence}\nx\n"})
    content = f"foo\n{fence}\ny\n{fence} \r\n"
    assert parse_response(f"{fence}a.py\n{content}{fence}end\n", files) == (FileReplacement("a.py", content, 1),)
    (block,) = parse_response(f"{fence}a.py\n{fence}find\nAPI\n{fence}\n{fence}replace\n{content}{fence}end\n", files)
    assert block.edits == (Edit(f"API\n{fence}\n", content),)
    for text in (f"{fence}a.py\nfoo\n{fence}\n", f"{fence}a.py\nfoo\n{fence}\n{fence}b.py\nx\n{fence}end\n"):
        with pytest.raises(RejectedResponseError):
            parse_response(text, files)


def test_a_bare_end_beside_the_end_of_edits_is_suspected_too():
    reasons = Reasons()
    read_response("^^^a.py\n^^^find\nx\n^^^replace\ny\n^^^end\n^^^b.py\nz\n^^^\n", reasons, Files("a.py", "b.py"))
    assert [(each.path, each.rule) for each in reasons.kept] == [("b.py", "bare-end")]


def test_a_bare_end_beside_other_ends_is_accepted_once_it_is_sent_again():
    text = "^^^a.py\nx\n^^^end\n^^^b.py\ny\n^^^\n"
    reasons, known = Reasons(), Reasons(lambda known: known[:2] == ("bare-end", "b.py"))
    read_response(text, reasons)
    assert [(reason.path, reason.line, reason.rule, reason.may_be_meant) for reason in reasons.kept] == [
        ("b.py", 4, "bare-end", True)
    ]
    assert [change.path for change in read_response(text, known)] == ["a.py", "b.py"]
    assert not known.kept
    assert contents("^^^a.py\n^^^delete\n^^^b.py\ny\n^^^\n") == {"a.py": None, "b.py": "y\n"}


def test_paths_that_are_there_between_delete_and_end_are_removed():
    text = "I remove both.\n\n^^^delete\na.py\n./docs//b c.md\r\n\n^^^end\nNobody uses them.\n\n^^^c.py\nx\n^^^end\n"
    paths = ["a.py", "docs/b c.md", "c.py"]
    removed = FileRemoval("a.py", 3), FileRemoval("docs/b c.md", 3)
    assert parse_response(text, Files(*paths)) == (*removed, FileReplacement("c.py", "x\n", 9))
    assert notes_of(text) == "I remove both.\n\nNobody uses them."


@pytest.mark.parametrize(
    "text",
    [
        "^^^delete\na.py\nb.py\n^^^end\n",  # b.py is not there
        "^^^delete\na.py\n",  # not closed
        "^^^delete\na.py\n^^^^end\n",
        "^^^delete\n^^^end\n",
        "^^^delete\na.py and what belongs to it\n^^^end\n",
    ],
)
def test_any_other_delete_outside_a_block_is_rejected(text):
    with pytest.raises(RejectedResponseError, match=r"\^\^\^delete stands outside a block"):
        parse_response(text, Files("a.py"))


def test_two_spellings_of_one_path_are_one_file():
    with pytest.raises(RejectedResponseError, match="the file comes twice"):
        parse_response("^^^PATH a\nx\n^^^end\n^^^a\ny\n^^^end\n", Files("a"))


_LINES = ["^^^a.py", "^^^b.rst", "^^^c/d", "^^^^e", "^^^end", "^^^^end", "^^^delete", "^^^", "^^^^", "^^", "x", "", " "]


@given(st.lists(st.sampled_from(_LINES), min_size=1, max_size=14), st.booleans())
def test_what_a_strict_reader_reads_is_read_the_same(lines, ends):
    read = read_strictly(lines)
    if read is not None:
        assert contents("\n".join(lines) + "\n" * ends) == read


def read_strictly(lines: list[str]) -> dict[str, str | None] | None:
    """Return the files between fences in the forms of the specification alone, None where anything else stands."""
    read: dict[str, str | None] = {}
    path, carets, content = "", 0, list[str]()
    for line in lines:
        fence = len(line) - len(line.lstrip("^"))
        word = line[fence:]
        if not path and fence >= 3 and word not in ("", "end", "delete"):
            path, carets, content = word, fence, []
        elif path and fence == carets and (word == "end" or (word == "delete" and not content)):
            text = "".join(f"{each}\n" for each in content) if word == "end" else None
            if read.setdefault(path, text) != text:
                return None
            path = ""
        elif fence in (carets, 2) or (not path and fence):
            return None
        elif path:
            content.append(line)
    return None if path else read or None


NOTES = {
    "around blocks": ("First.\n^^^a\nx\n^^^end\nThen.\n^^^b\n^^^delete\n^^^end\nLast.\n", "First.\nThen.\nLast."),
    "no block": ("I cannot do that.\n", "I cannot do that."),
    "thoughts are not said": ("<think>hm</think>\nDone.\n^^^a\n^^^end\n", "Done."),
    "drafts are not said": ("Hm.\n^^^a\nx\n^^^end\nNo.\n</think>\nDone.\n^^^b\n^^^end\n", "Done."),
    "content with fences": ("^^^^a\n^^^b\nx\n^^^end\n^^^^end\nDone.", "Done."),
    "an unclosed block": ("Here:\n^^^a\nx\n", "Here:"),
    "stray fences": ("A\n^^^end\nB\n^^^delete\nD", "A\nB\nD"),
    "lines of carets": ("A\n^^^\n^^^a\nx\n^^^\ny\n^^^end\n^^^^", "A\n^^^\n^^^^"),
    "bare ends": ("A\n^^^a\nx\n^^^\n^^^b\ny\n^^^\n", "A"),
    "a quotation": ("A\n^^^^^ expected ;\nB\n^^^a\n^^^end\n", "A\nB"),
    "edits": ("A\n^^^a\n^^^find\nx\n^^^replace\ny\n^^^find\nx\n^^^replace\n^^^end\nB", "A\nB"),
    "a range": ("A\n^^^a\n^^^find\nx\n^^^to\ny\n^^^replace\n^^^end\nB", "A\nB"),
    "unclosed edits": ("A\n^^^a\n^^^find\nx\n^^^replace\ny\n", "A"),
    "a list": ("A\n^^^files\nx\n^^^end\nB", "A\nB"),
    "a reason": ("A\n^^^cannot\nx\n^^^end\nB", "A\nB"),
    "a block in a block": ("A\n^^^a\nx\n^^^b\ny\n^^^end\nB", "A\nB"),
}


@pytest.mark.parametrize(("text", "notes"), NOTES.values(), ids=NOTES)
def test_notes_are_what_stands_outside_the_blocks(text, notes):
    assert notes_of(text) == notes


def test_fences_of_any_length_and_content_full_of_carets():
    fence = "^" * 10_000
    content = "".join("^" * count + "\n" for count in range(0, 12_000, 7) if count != len(fence)) + "x\n^^^end\n"
    text = f"^^^^^\n ^ ^\n{fence}a\n{content}{fence}end\n^^^b\n^^^end\n"
    assert contents(text.partition("\n")[2]) == {"a": content, "b": ""}


@given(st.lists(st.sampled_from(["^", "^^", "x", "\n", "y" * 4090, "^" * 4090, "z" * 10]), max_size=12))
def test_a_fence_is_found_wherever_it_stands(pieces):
    content = "".join(pieces).replace("\n^", "\n ^").lstrip("^") + "\n"
    assert contents(f"^^^a\n{content}^^^end\n^^^b\n^^^end\n") == {"a": content, "b": ""}


REJECTED = {
    "nothing": ("", ["no-block"]),
    "prose alone": ("I cannot do that.\n", ["no-block"]),
    "unclosed thoughts": ("<think>\nwell", ["thoughts"]),
    "unclosed": ("^^^a\nx\n", ["unclosed"]),
    "cut off after the path": ("^^^a", ["unclosed"]),
    "cut off inside the end": ("^^^a\nx\n^^^en", ["fence-in-block", "unclosed"]),
    "forgotten end": ("^^^a\nx\n^^^b\ny\n^^^end\n", ["fence-in-block"]),
    "forgotten end before a removal": ("^^^a\nx\n^^^delete\n", ["fence-in-block"]),
    "blocks in a block": (
        "^^^a.md\nSo:\n^^^b\nx\n^^^end\nor:\n^^^c\n^^^delete\n^^^../d\ny\n^^^end\n^^^end\n^^^end\n",
        ["fence-in-block", "stray-fence"],
    ),
    "ends in a block": ("^^^a.md\nIt ends with\n^^^end\nor\n^^^end\nor\n^^^delete\n.\n^^^end\n", ["stray-fence"]),
    "end with a name": ("^^^a\nx\n^^^end a\n^^^end\n", ["fence-in-block"]),
    "a bare end of an empty file, or a removal that was cut off": ("^^^a\n^^^", ["fence-in-block"]),
    "a bare end before words": ("^^^a\nx\n^^^\nDone.\n", ["fence-in-block"]),
    "a bare end before an indented fence": (
        "^^^a\nx\n^^^\n  ^^^b\ny\n^^^end\n",
        ["fence-in-block", "indented-fence", "stray-fence"],
    ),
    "a bare end before an end": ("^^^a\nx\n^^^\n^^^end\n", ["fence-in-block", "stray-fence"]),
    "a bare end of four carets": ("^^^^a\nx\n^^^^\n^^^b\n^^^end\n", ["fence-in-block"]),
    "an underlined heading": ("^^^a.RST\nABC\n^^^\n^^^b.c\n^^^end\n", ["fence-in-block"]),
    "carets that point at something": ("^^^a.out\nx\n^^^\n^^^ expected y.z\nz\n^^^end\n", ["fence-in-block"]),
    "a bare end before a folder that is not there": ("^^^a.py\nx\n^^^\n^^^b/c.py\n^^^end\n", ["fence-in-block"]),
    "carets that point at something, in a word": ("^^^a.out\nx\n^^^\n^^^here\nz\n^^^end\n", ["fence-in-block"]),
    "edits with a bare end": ("^^^a\n^^^find\nx\n^^^replace\ny\n^^^", ["fence-in-block"]),
    "stray end": ("^^^a\n^^^end\n^^^end\n", ["stray-fence"]),
    "stray delete": ("^^^delete\n^^^a\n^^^end\n", ["stray-fence"]),
    "indented": ("^^^a\n^^^end\n  ^^^b\nx\n  ^^^end\n", ["indented-fence", "indented-fence"]),
    "quoted": ("> ^^^b\n> x\n> ^^^end\n", ["indented-fence", "indented-fence"]),
    "after a zero-width space": ("\u200b^^^b\nx\n^^^end\n", ["indented-fence", "stray-fence"]),
    "no path": ("^^^\nx\n^^^end\n", ["stray-fence"]),
    "carets that are quoted": ("int a = b\n^^^^ expected ;\n^^^a\nx\n^^^end\n", ["quoted-carets"]),
    "carets and a path with a word": ("^^^ expected ;\n^^^a.b\nx\n^^^end\n", ["quoted-carets"]),
    "carets and other signs": ("^^^~~~~\nDone.\n^^^^ undefined\n^^^a\nx\n^^^end\n", ["quoted-carets"] * 2),
    "carets that are quoted, at the end": ("^^^a\nx\n^^^end\nint a\n^^^ expected ;\n^^^\n", ["quoted-carets"]),
    "path of slashes": ("^^^./\nx\n^^^end\n", ["empty-path"]),
    "twice": ("^^^a\nx\n^^^end\n^^^a\ny\n^^^end\n", ["duplicate-path"]),
    "replaced and removed": ("^^^a\n^^^end\n^^^./a\n^^^delete\n", ["duplicate-path"]),
    "shorter end": ("^^^^a\nx\n^^^end\n", ["unclosed"]),
    "an edit without a replacement": ("^^^a\n^^^find\nx\n^^^end\n", ["unclear-edit"]),
    "two replacements": ("^^^a\n^^^find\nx\n^^^replace\n^^^replace\n^^^end\n", ["unclear-edit"]),
    "two finds": ("^^^a\n^^^find\nx\n^^^find\ny\n^^^replace\n^^^end\n", ["unclear-edit"]),
    "a replacement first": ("^^^a\n^^^replace\nx\n^^^end\n", ["unclear-edit"]),
    "lines before the find": ("^^^a\nx\n^^^find\nx\n^^^replace\n^^^end\n", ["unclear-edit"]),
    "an empty find": ("^^^a\n^^^find\n^^^replace\nx\n^^^end\n", ["empty-find"]),
    "unclosed edits": ("^^^a\n^^^find\nx\n^^^replace\n", ["unclosed"]),
    "cut off in a find": ("^^^a\n^^^find\nx", ["unclosed"]),
    "a range without a replacement": ("^^^a\n^^^find\nx\n^^^to\ny\n^^^end\n", ["unclear-edit"]),
    "a range of three": ("^^^a\n^^^find\nx\n^^^to\ny\n^^^to\nz\n^^^replace\n^^^end\n", ["unclear-edit"]),
    "a range after the replacement": ("^^^a\n^^^find\nx\n^^^replace\n^^^to\ny\n^^^end\n", ["unclear-edit"]),
    "a range that begins nowhere": ("^^^a\n^^^find\n^^^to\ny\n^^^replace\n^^^end\n", ["empty-find"]),
    "a range that ends nowhere": ("^^^a\n^^^find\nx\n^^^to\n^^^replace\n^^^end\n", ["empty-find"]),
    "a range without a find": ("^^^a\n^^^to\ny\n^^^replace\n^^^end\n", ["unclear-edit"]),
    "a range outside": ("^^^to\ny\n", ["stray-fence"]),
    "cut off in a range": ("^^^a\n^^^find\nx\n^^^to\ny", ["unclosed"]),
    "a removal in edits": ("^^^a\n^^^find\nx\n^^^replace\n^^^delete\n^^^end\n", ["fence-in-block", "stray-fence"]),
    "forgotten end of edits": (
        "^^^a\n^^^find\nx\n^^^replace\n^^^b\n^^^find\nx\n^^^replace\n^^^end\n",
        ["fence-in-block"],
    ),
    "edits after the end": ("^^^a\n^^^find\nx\n^^^replace\n^^^end\n^^^find\ny\n^^^replace\n^^^end\n", ["stray-fence"]),
    "edits without a path": ("^^^find\ny\n^^^replace\n^^^end\n", ["stray-fence"] * 3),
    "edits and the whole file": ("^^^a\nx\n^^^end\n^^^a\n^^^find\nx\n^^^replace\n^^^end\n", ["duplicate-path"]),
    "edits in a block": (
        "^^^a.md\nSo:\n^^^b\n^^^find\nx\n^^^replace\ny\n^^^end\nor\n^^^end\n",
        ["fence-in-block"],
    ),
    "edits in longer fences": ("^^^a\n^^^^find\nx\n^^^^replace\ny\n^^^end\n", ["unclear-edit"]),
    "edits in shorter fences": ("^^^^a\n^^^find \r\nx\n^^^replace\r\ny\n^^^end\n^^^^end\n", ["unclear-edit"]),
    "edits in two carets": ("^^^a\n^^find\nx\n^^replace\ny\n^^end\n^^^end\n", ["unclear-edit"]),
    "a second edit in two carets": (
        "^^^a\n^^^find\nx\n^^^replace\ny\n^^find\nz\n^^replace\nw\n^^^end\n",
        ["unclear-edit"],
    ),
    "a removal in shorter fences": ("^^^^a\n^^^delete\r\n^^^^end\n", ["unclear-edit"]),
    "a removal in two carets": ("^^^a\n^^delete\n^^^end\n", ["unclear-edit"]),
    "declined beside a file": ("^^^a\n^^^end\n^^^cannot\nx\n^^^end\n", ["mixed"]),
    "declined beside a fault": ("^^^end\n^^^cannot\nx\n^^^end\n", ["stray-fence"]),
    "declined without a reason": ("^^^cannot\n \n^^^end\n", ["no-reason"]),
    "a reason beside the fence": ("^^^cannot: no gcc\n^^^end\n^^^cannot do it\nx\n^^^end\n", ["no-reason"] * 2),
    "a reason after a comma": ("^^^Cannot, because:\nno gcc\n^^^end\n^^^cannot.\nx\n^^^end\n", ["no-reason"] * 2),
    "declined and unclosed": ("^^^cannot\nno gcc\n", ["unclosed"]),
    "declined and unclosed before a file": ("^^^cannot\nno gcc\n^^^a\nx\n^^^end\n", ["fence-in-block"]),
    "a list beside a file": ("^^^a\n^^^end\n^^^files\nx\n^^^end\n", ["mixed"]),
    "a list beside a reason": ("^^^cannot\nx\n^^^end\n^^^files\nx\n^^^end\n", ["mixed"]),
    "a list beside a fault": ("^^^end\n^^^files\nx\n^^^end\n", ["stray-fence"]),
    "an empty list": ("^^^files\n \n^^^end\n", ["no-list"]),
    "an unclosed list": ("^^^files\nx\n", ["unclosed"]),
    "a forgotten end of a list": ("^^^files\nx\n^^^a\nx\n^^^end\n", ["fence-in-block"]),
    "an indented list": (" ^^^files\nx\n^^^end\n", ["indented-fence", "stray-fence"]),
    "all reasons at once": (
        " ^^^z\n^^^end\n^^^a\n^^^end\n^^^a\nx\n^^^end\n^^^b\n",
        ["indented-fence", "stray-fence", "duplicate-path", "unclosed"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("So:\n^^^cannot\n\n  no gcc\nnor cc\n^^^end\nSorry.\n", "no gcc\nnor cc"),
        ("^^^^ cannot \r\nthe file\n^^^a\n^^^end\n^^^^end", "the file\n^^^a\n^^^end"),
        ("^^^CANNOT\none\n^^^end\n^^^cannot\ntwo\n^^^end\n", "one\ntwo"),
    ],
)
def test_a_reason_alone_declines_the_task(text, reason):
    with pytest.raises(DeclinedError) as caught:
        parse_response(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("First:\n^^^files\n\n a b.txt\r\n \n- ./c\n^^^end\nThen.\n", ["a b.txt", "- ./c"]),
        ("^^^^files\n^^^a\n^^^^end\n^^^files\nb\n^^^end", ["^^^a", "b"]),
        ("^^^FILES\na\n^^^end\n^^^Files: \nb\n^^^end\n", ["a", "b"]),
        ("^^^files\n" + "a\n" * 10_000 + "^^^end\n", ["a"] * 200),
    ],
)
def test_a_list_alone_asks_for_files(text, names):
    with pytest.raises(FilesAskedError) as caught:
        parse_response(text)
    assert caught.value.names == names


def test_a_file_that_is_there_is_that_file_whatever_its_name():
    text = "^^^FILES\na\n^^^end\n^^^Cannot\nx\n^^^end\n"
    assert contents(text, "FILES", "Cannot") == {"FILES": "a\n", "Cannot": "x\n"}
    with pytest.raises(FilesAskedError):
        parse_response("^^^files\na\n^^^end\n", Files("files/a"))  # a folder


@pytest.mark.parametrize(("text", "rules"), REJECTED.values(), ids=REJECTED)
def test_rejects_the_whole_response(text, rules):
    with pytest.raises(RejectedResponseError) as caught:
        parse_response(text)
    assert [violation.rule for violation in caught.value.violations] == rules
    assert all(" " in violation.message for violation in caught.value.violations), "it is told in words"


def test_a_violation_names_its_line_and_says_what_to_do():
    with pytest.raises(RejectedResponseError) as caught:
        parse_response("Here:\n^^^a\nx\n^^^b\ny\n^^^end\n")
    assert str(caught.value).startswith(
        "line 4: a: the block of a (line 2) holds the line '^^^b': close the block with ^^^end"
    )


TOLD = {
    # a response, and all that is said of it
    "edits in shorter fences": (
        "^^^^README.md\n^^^find\nx\n^^^replace\ny\n^^^^end\n",
        "line 2: README.md: '^^^find' has 3 carets and the block's path 4: give every fence of the block the same number",
    ),
    "a removal on one line": (
        "^^^delete src/a.h\n^^^end\n^^^b\nx\n^^^end\n",
        "line 1: to delete it, write ^^^src/a.h and ^^^delete on the next line",
    ),
    "a removal with the path again": (
        "^^^src/a.h\n^^^delete src/a.h\n^^^end\n",
        "line 2: src/a.h: ^^^delete must stand alone on its line: leave 'src/a.h' out",
    ),
    "an end with a path": (
        "^^^^src/a.h\nx\n^^^^end src/a.h\nDone.\n^^^b\n^^^end\n",
        "line 3: src/a.h: ^^^^end must stand alone on its line: leave 'src/a.h' out",
    ),
    "an end with a path outside": ("^^^end src/a.h\n", "line 1: ^^^end must stand alone on its line: leave 'src/a.h' out"),
    "a note": (
        "^^^ sign is the fence.\n",
        (
            "line 1: a line of your text begins with ^^^: indent what you quote, by four blanks (if it opens a block,"
            " end that with ^^^end)"
        ),
    ),
    "a short opening": (
        "^^^b\n^^^end\nNow:\n^^shop/cli.py\nx\n^^^end\n",
        ("line 6: ^^^end stands outside a block: it belongs after a ^^^PATH line; if b (line 1) goes on to here, open and close "
        "the block with 4 carets: ^^^^b and ^^^^end; line 4, '^^shop/cli.py', has 2 carets: a fence needs 3 or more"),
    ),
    "a whole block of two carets": (
        "^^^b\n^^^end\n ^^a\n^^shop/cli.py\nx\n^^end \r\n^^^c\n^^^end\n",
        "line 4: '^^shop/cli.py' has 2 carets: a fence needs 3 or more",
    ),
    "an end of a range that is empty": (
        "^^^a\n^^^find\nx\n^^^to\n^^^replace\n^^^end\n",
        ("line 2: a: the last part of the find (after ^^^to) is empty: write lines of the file there, and in the replace "
        "those that stay"),
    ),
    "two carets alone": ("^^a\nx\n^^end", "line 1: '^^a' has 2 carets: a fence needs 3 or more"),
    "a short end": (
        "^^^a\nx\n^^end\n^^^b\nx\n^^^end\n",
        "line 3: a: '^^end' has 2 carets, the block was opened with 3: write ^^^end",
    ),
    "a short end at the end": (
        "^^^a\n^^^find\nx\n^^^replace\n^^end\n",
        "line 5: a: '^^end' has 2 carets, the block was opened with 3: write ^^^end",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "told"), TOLD.values(), ids=TOLD)
def test_what_is_said_is_the_one_thing_to_mend(text, told):
    with pytest.raises(RejectedResponseError) as caught:
        parse_response(text)
    assert caught.value.reasons == [told]


@pytest.mark.parametrize(
    ("content", "carets"), [("^^^b\nx\n^^^end\n", 4), ("^^^b\n^^^^\n^^^^^\n^^^end\n", 6), ("^^^end\n", 4)]
)
def test_a_file_that_holds_fences_is_told_how_many_carets_it_needs(content, carets):
    with pytest.raises(RejectedResponseError) as caught:
        parse_response(f"^^^a.md\n{content}^^^end\n")
    (reason,) = caught.value.reasons
    fence = "^" * carets
    assert f"open and close the block with {carets} carets: {fence}a.md and {fence}end" in reason
    assert contents(f"{fence}a.md\n{content}{fence}end\n") == {"a.md": content}


def test_what_could_be_read_is_there_beside_the_reasons():
    text = "^^^a\nx\n^^^end\n^^^b\n^^^c\ny\n^^^end\n^^^end\n^^^d\n^^^delete\n^^^e\nx\n"
    reasons = Reasons()
    changes = read_response(text, reasons)
    assert [change.path for change in changes] == ["a", "d"]
    assert [(reason.path, reason.line, reason.rule) for reason in reasons.kept] == [
        ("b", 5, "fence-in-block"),
        ("e", 11, "unclosed"),
    ]


FLOODS = {
    # a line, how many of it, the rule that all of them break, how many reasons there are
    "forgotten ends": ("^^^a\n", 20_000, {"fence-in-block"}, 20_000),
    "stray ends": ("^^^end\n", 20_000, {"stray-fence"}, 20_000),
    "no names": ("^^^\n", 20_000, {"no-block"}, 1),
    "quotations": ("^^^ expected ;\n", 20_000, {"quoted-carets"}, 20_000),
    "indented fences": (" ^^^a\n", 20_000, {"indented-fence"}, 20_000),
    "line ends": ("\n", 1_000_000, {"no-block"}, 1),
    "blanks": (" ", 1_000_000, {"no-block"}, 1),
}


@pytest.mark.parametrize(("line", "count", "rules", "reasons"), FLOODS.values(), ids=FLOODS)
def test_fifty_reasons_are_told_and_the_rest_is_counted(line, count, rules, reasons):
    with pytest.raises(RejectedResponseError) as caught:
        parse_response(line * count)
    assert {violation.rule for violation in caught.value.violations} == rules
    assert len(caught.value.violations) == min(50, reasons)
    assert caught.value.more == max(0, reasons - 50)
    assert [violation.line for violation in caught.value.violations[:3]] in ([0], [1, 2, 3], [2, 3, 4])


@pytest.mark.slow
@pytest.mark.parametrize("line", ["^^^a\n^^^end\n", "^^^a\n^^^delete\n"])
def test_more_blocks_than_any_llm_writes_are_not_read(line):
    assert len(parse_response(line * 50_000)) == 1
    with pytest.raises(RejectedResponseError, match=r"line 100001: .* more than 50,000 blocks"):
        parse_response(line * 4_000_000)


def test_fifty_wrong_blocks_do_not_hide_that_the_rest_is_right():
    with pytest.raises(RejectedResponseError) as caught:
        parse_response("^^^end\n" * 50 + "".join(f"^^^{number}\n^^^end\n" for number in range(1000)))
    assert caught.value.more == 0


@pytest.mark.parametrize(
    "path", ["/" * 1_000_000, "a/" * 500_000 + "b", "./" * 500_000, "x" * 1_000_000, "^" * 100_000]
)
def test_what_is_said_of_a_huge_path_is_short(path):
    with pytest.raises(RejectedResponseError) as caught:
        parse_response(f"^^^{path}\nx\n^^^{path}\n")
    assert len(str(caught.value)) < 5_000
    assert sum(len(violation.path) for violation in caught.value.violations) < 5_000


@pytest.mark.parametrize(
    "piece",
    [" ", " \n", "^", "^^ ", "^^ find ", "^^ end\t", " ^^", " ^^^", " ^^^ ", "\t>\ufeff", "^^^^ delete ", "^^^a\n^^ find\n", "^^^to\n", "^^^files\na\n^^^end\n", "/", "./", "^^^\n", "^^^^ ^^^", "<think>\n", "<think>", "x </think> ", "</think>^^^a\n", "<a:", "<|channel|>final", "<x>\n", "```\n</think>\n"],
    ids=ascii,
)  # fmt: skip
def test_the_time_is_linear_in_the_size(piece, whole):
    def read(size: int) -> None:
        for before in ("", "^^^", "^^^a\n", "^^^a\n^^", "^^^a\n^^^find\nx\n^^^replace\n"):
            for after in ("x", "\n^^^end\n"):
                with contextlib.suppress(RejectedResponseError):
                    parse_response(f"{before}{piece * (size // len(piece))}{after}")

    assert is_linear(read, 100_000 if whole else 25_000)


names = st.from_regex(r"[a-z]{1,3}(/[a-z]{1,3}){0,2}", fullmatch=True)
lines = st.one_of(
    st.sampled_from(["^^^end", "^^^a", "^^^^b", "^^^delete", "^^^to", "^^^^^^", " ^^^end", "^^", "", "\r", "<think>"]),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8),
)
file_contents = st.lists(lines, max_size=6).map(lambda parts: "".join(part + "\n" for part in parts))


passages = file_contents.filter(bool)
edits = st.builds(Edit, passages, file_contents, last=st.one_of(st.just(""), passages))
edit_lists = st.lists(edits, min_size=1, max_size=3).map(tuple)


@st.composite
def responses(draw: st.DrawFn) -> list[RequestedChange]:
    paths = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    paths = [path for path in paths if not any(other.startswith(path + "/") for other in paths)]
    wholes, edits = (st.builds(kind, st.just(""), values) for kind, values in _KINDS)
    changes = st.one_of(wholes, wholes, edits, st.builds(FileRemoval, st.just("")))
    return [replace(draw(changes), path=path) for path in paths if path not in ("end", "delete", "to")]


# a file that says nothing but `^^^delete` is taken for a removal between unequal fences
_KINDS = (
    (FileReplacement, file_contents.filter(lambda content: not re.fullmatch(r"\^{2,}[ \t]*delete\s*", content))),
    (EditBlock, edit_lists),
)


def written(changes: list[RequestedChange]) -> dict[str, Asked]:
    return {change.path: asked(change) for change in changes}


def rendered(changes: list[RequestedChange]) -> str:
    return "".join(map(render_change, changes))


def render_change(change: RequestedChange) -> str:
    if isinstance(change, FileRemoval):
        return f"^^^{change.path}\n^^^delete\n"
    parts = [change.content] if isinstance(change, FileReplacement) else _parts(change.edits)
    longest = max((len(match) for part in parts for match in re.findall(r"^\^{3,}", part, re.MULTILINE)), default=2)
    fence = "^" * (longest + 1)
    if isinstance(change, EditBlock):
        names = [name for edit in change.edits for name in ("find", *["to"] * bool(edit.last), "replace")]
        parts = [f"{fence}{name}\n{part}" for name, part in zip(names, parts, strict=True)]
    return f"{fence}{change.path}\n{''.join(parts)}{fence}end\n"


def _parts(edits: tuple[Edit, ...]) -> list[str]:
    return [part for edit in edits for part in (edit.find, *[edit.last] * bool(edit.last), edit.replacement)]


@pytest.mark.slow
@given(responses())
def test_what_is_rendered_parses_back(changes):
    text = rendered(changes)
    if text:
        assert contents(text) == written(changes)


@pytest.mark.slow
@given(st.lists(names, min_size=1, max_size=4), responses(), st.booleans())
def test_a_list_asks_for_its_files_alone_and_for_nothing_beside_other_blocks(paths, changes, after):
    asked, others = "".join(f"{path}\n" for path in paths), rendered(changes)
    parts = [f"^^^files\n{asked}^^^end\n", others]
    with pytest.raises(RejectedResponseError) as caught:
        parse_response("".join(reversed(parts) if after else parts))
    if others:
        assert [violation.rule for violation in caught.value.violations] == ["mixed"]
    else:
        assert isinstance(caught.value, FilesAskedError)
        assert caught.value.names == paths


@pytest.mark.slow
@given(responses(), st.data())
def test_a_damaged_response_is_rejected_or_holds_whole_files(changes, data):
    text = rendered(changes)
    rows = re.findall(r"[^\n]*\n", text)
    if not rows:
        return
    at = data.draw(st.integers(0, len(rows) - 1))
    damage = data.draw(st.sampled_from(["cut", "drop", "double", "indent"]))
    content_rows = _rows_of_content(text)
    if damage == "cut":
        text = text[: data.draw(st.integers(0, len(text)))]
    elif at in content_rows:
        return  # a line of a file is the LLM's own business: no grammar can tell that one is missing
    elif damage in ("drop", "indent") and rows[at].strip("^") == "to\n":
        return  # the ends of a range are one find then, which stands in no file or takes no more than its own lines
    elif damage == "drop":
        text = "".join(rows[:at] + rows[at + 1 :])
    elif damage == "double":
        text = "".join(rows[: at + 1] + rows[at:])
    else:
        text = "".join([*rows[:at], "  ", *rows[at:]])
    try:
        parsed = contents(text)
    except RejectedResponseError:
        return
    assert parsed.items() <= written(changes).items()


def _rows_of_content(text: str) -> set[int]:
    """The rows between the fences, found without the parser: a fence row has as many carets as the row that opened."""
    inside, fence = set(), ""
    for number, row in enumerate(re.findall(r"[^\n]*\n", text)):
        carets = re.match(r"\^*", row)[0]
        if not fence and len(carets) >= 3 and row.strip() not in ("^^^delete", "^^^end"):
            fence = carets
        elif fence and row in (f"{fence}end\n", f"{fence}delete\n"):
            fence = ""
        elif fence and row not in (f"{fence}find\n", f"{fence}to\n", f"{fence}replace\n"):
            inside.add(number)
    return inside
