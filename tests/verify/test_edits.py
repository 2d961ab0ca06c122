"""What a file holds after edits, byte for byte, and what the LLM is told where they do not fit."""

import random
import re
from pathlib import Path

import pytest
from command import every_third, git
from hypothesis import given
from hypothesis import strategies as st
from measure import cpu_seconds, least

from bench.encoder import encode, encode_edits
from code_commit.changes import Edit, EditBlock, FileReplacement, Reasons, RejectedResponseError, VerifiedChanges
from code_commit.codebase.text import part_of
from code_commit.parse import parse_response, read_response
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import capture_rules, verify_changes
from code_commit.verify.edits import VisibleLines, edit_text, find_repetition, find_shown
from code_commit.views import Part, Passage, Sight

POEM = "one\ntwo\nthree\n\nfour\ntwo\n"

FITTING = {
    # the file, the pairs, the file afterwards
    "a line": (POEM, [("one\n", "1\n")], "1\ntwo\nthree\n\nfour\ntwo\n"),
    "lines for a line": (POEM, [("three\n", "3\n\n3\n")], "one\ntwo\n3\n\n3\n\nfour\ntwo\n"),
    "a line for lines": (POEM, [("one\ntwo\n", "12\n")], "12\nthree\n\nfour\ntwo\n"),
    "lines away": (POEM, [("two\nthree\n", "")], "one\n\nfour\ntwo\n"),
    "the blank line counts": (POEM, [("three\n\n", "")], "one\ntwo\nfour\ntwo\n"),
    "all lines away": ("a\nb\n", [("a\nb\n", "")], ""),
    "in any order": (POEM, [("four\n", "4\n"), ("one\n", "1\n")], "1\ntwo\nthree\n\n4\ntwo\n"),
    "side by side": ("a\nb\nc\n", [("a\n", ""), ("b\n", "B\n"), ("c\n", "")], "B\n"),
    "what another edit puts in is not found": ("a\nb\n", [("a\n", "b\n"), ("b\n", "a\n")], "b\na\n"),
    "never a part of a line": ("xa\na\nax\n", [("a\n", "A\n")], "xa\nA\nax\n"),
    "exactly before nearly": ("a  \na\n", [("a\n", "A\n")], "a  \nA\n"),
    "blanks at line ends": ("a \t\nb\n", [("a\nb  \n", "x\n")], "x\n"),
    "blanks of a line that stays": ("a  \nb\nc \n", [("a\nb\nc\n", "a\nB\nc\n")], "a  \nB\nc \n"),
    "CRLF": ("a\r\nb\r\nc\r\n", [("b\n", "x\ny\n")], "a\r\nx\r\ny\r\nc\r\n"),
    "CRLF in the answer": ("a\nb\nc\n", [("b\r\n", "x\r\ny\r\n")], "a\nx\ny\nc\n"),
    "CRLF in both": ("a\r\nb\r\n", [("b\r\n", "x\r\n")], "a\r\nx\r\n"),
    "both line ends": ("a\r\nb\nc\r\n", [("a\nb\nc\n", "a\nB\nc\n")], "a\r\nB\r\nc\r\n"),
    "both line ends in lines that stay": ("a\nb\r\nc\nd\r\n", [("b\nc\n", "b\nc\nC\n")], "a\nb\r\nc\nC\nd\r\n"),
    "a new first line": ("a\r\nb\n", [("a\n", "x\ny\n")], "x\r\ny\r\nb\n"),
    "CR alone": ("a\rb\rc\r", [("b\n", "B\nB2\n")], "a\rB\rB2\rc\r"),
    "CR alone, a range, none at the end": ("a\rb\rc", [("a\n", "x\n", "b\n")], "x\rc"),
    "CR alone in the answer": ("a\rb\rc\r", [("a\rb\n", "x\ry\rz\n")], "x\ry\rz\rc\r"),
    "mostly CR alone": ("a\rb\rx\rc\r\nd\n", [("b\n", "B\n"), ("d\n", "D\n")], "a\rB\rx\rc\r\nD\r\n"),
    "a CR that ends no line": ("a\rb\nc\n", [("a\rb\n", "x\ry\n")], "x\ry\nc\n"),
    "BOM": ("\ufeffa\nb\n", [("a\n", "x\n")], "\ufeffx\nb\n"),
    "BOM as shown": ("\ufeffa\nb\n", [("\ufeffa\n", "\ufeffx\n")], "\ufeffx\nb\n"),
    "no newline at the end": ("a\nb", [("b\n", "x\ny\n")], "a\nx\ny"),
    "no newline at the end of CRLF": ("a\r\nb", [("b\n", "b\nc\n")], "a\r\nb\r\nc"),
    "the line without newline away": ("a\nb", [("b\n", "")], "a"),
    "before the line without newline": ("a\nb", [("a\n", "")], "b"),
    "one line without newline": ("a", [("a\n", "b\n")], "b"),
    "a range": (POEM, [("two\nthree\n", "", "four\n")], "one\ntwo\n"),
    "a range with new lines": ("a\nb\nc\nd\n", [("a\n", "1\n2\n", "c\n")], "1\n2\nd\n"),
    "a range of all": ("a\nb\nc\n", [("a\n", "", "c\n")], ""),
    "a range with nothing between": ("a\nb\nc\n", [("a\n", "x\n", "b\n")], "x\nc\n"),
    "a range whose ends stay": ("a  \nb\nc \n", [("a\n", "a\nB\nc\n", "c\n")], "a  \nB\nc \n"),
    "a range between others": (
        "a\nb\nc\nd\ne\n",
        [("e\n", "E\n"), ("b\n", "", "d\n"), ("a\n", "A\n")],
        "A\nE\n",
    ),
    "a range of CRLF without newline at the end": ("a\r\nb\r\nc", [("b\n", "x\n", "c\n")], "a\r\nx"),
    "a range that holds its ends' lines": ("a\nb\nx\nb\nc\n", [("a\nb\n", "", "b\nc\n")], ""),
    "other line separators": ("a\u2028b\x0c\nc\n", [("a\u2028b\x0c\n", "x\x85\n")], "x\x85\nc\n"),
}


def pairs(rows) -> list[Edit]:
    return [Edit(find, new, 10 * number, *last) for number, (find, new, *last) in enumerate(rows, start=1)]


@pytest.mark.parametrize(("text", "rows", "expected"), FITTING.values(), ids=FITTING)
def test_the_rest_of_the_file_stays_as_it_was(text, rows, expected):
    assert edit_text(text, pairs(rows)) == (expected, [])


UNFIT = {
    # the file, the pairs, rules with lines of the response, what the LLM is told
    "nowhere": (POEM, [("five\n", "")], [(10, "no-match")], "nor any shown ones like them"),
    "an empty file": ("", [("one\n", "")], [(10, "no-match")], "nor any shown ones like them"),
    "nearly": (
        "def f(x):\n    return x\n\ndef g(x):\n    y = x\n    return y\n",
        [("def g(x):\n    y = x+1\n    return y\n", "")],
        [(10, "no-match")],
        "nearest is lines 4 to 6 of the file, where line 5 says '    y = x' and not '    y = x+1'",
    ),
    "numbers of lines": (
        "a\nb\nc\n",
        [("2: b\n3: c\n", "")],
        [(10, "no-match")],
        "where line 2 says 'b' and not '2: b': leave the line numbers out",
    ),
    "numbers of lines behind blanks": (
        "a\nb\nc\n",
        [("     2\tb\n     3\tc\n", "")],
        [(10, "no-match")],
        ": leave the line numbers out",
    ),
    "another indentation": (
        "if x:\n    call(first)\n",
        [("call(first)\n", "")],
        [(10, "no-match")],
        "nearest is line 2 of the file: it says '    call(first)' and not 'call(first)'",
    ),
    "alike but for an accent": ("caf\u0065\u0301\nb\n", [("caf\u00e9\n", "")], [(10, "no-match")], "(the file has U+0301 COMBINING ACUTE ACCENT; your line has U+00E9 "),
    "an escape": ("\x1b[1m\nb\n", [("\\x1b[1m\n", "")], [(10, "no-match")], "(the file has U+001B): a backslash stands here for a single character"),
    "an invisible blank": ("a\u200b b\nc\n", [("a b\n", "")], [(10, "no-match")], "(the file has U+200B ZERO WIDTH SPACE): a backslash stands here for a single character"),
    "another script": ("a один\nb\n", [("a три\n", "")], [(10, "no-match")], "and not 'a три': copy"),
    "beyond the end": ("a b c\n", [("a b c\nd\n", "")], [(10, "no-match")], "goes on after the file's last line, 1: leave its last line ('d') out"),
    "a blank line beyond the end": ("a b\nc\n", [("c\n\n", "")], [(10, "no-match")], "last line, 2: leave its last line ('') out"),
    "lines beyond the end": ("a b\nc\n", [("c\nd\ne\n", "")], [(10, "no-match")], "leave its last 2 lines out"),
    "across the end": ("a b\nc\n", [("b a\nc\nd\n", "")], [(10, "no-match")], "lines 1 to 2 of the file, where line 1 says 'a b'"),
    "nearest the last line": ("a b\nc\n", [("c d\n\n", "")], [(10, "no-match")], "line 2 of the file, which says 'c' and not 'c d'"),
    "twice": (POEM, [("two\n", "")], [(10, "ambiguous")], "more than once, starting at lines 2, 6 of the file:"),
    "overlapping itself": ("a\na\na\n", [("a\na\n", "")], [(10, "ambiguous")], "starting at lines 1, 2 of the file:"),
    "nearly twice": ("a \na\t\n", [("a\n", "")], [(10, "ambiguous")], "starting at lines 1, 2 of the file:"),
    "everywhere": ("a\n" * 99, [("a\n", "")], [(10, "ambiguous")], "starting at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more of the file:"),
    "two in one": (
        POEM,
        [("three\n\n", "x\n"), ("one\ntwo\nthree\n", "y\n")],
        [(10, "overlap")],
        "line 3 of the file is in this edit and the one at line 20",
    ),
    "the same twice": (POEM, [("one\n", "x\n"), ("one\n", "x\n")], [(20, "overlap")], "line 1 of the file"),
    "a range without a beginning": (POEM, [("five\n", "", "four\n")], [(10, "no-match")], "the lines to find are not in the file, nor any shown ones like them"),
    "a range without an end": (POEM, [("one\n", "", "five\n")], [(10, "no-match")], "of the last lines (^^^to): the lines to find are not in the file, nor any shown ones like them"),
    "a range nearly": (
        "if x:\n    call(first)\n",
        [("if x:\n", "", "call(first)\n")],
        [(10, "no-match")],
        "of the last lines (^^^to): the lines to find are not in the file; nearest is line 2 of the file: it says '    call(first)'",
    ),
    "a range with two ends": (POEM, [("one\n", "", "two\n")], [(10, "ambiguous")], "of the last lines (^^^to): the lines to find are there more than once, starting at lines 2, 6 of"),
    "a range with two beginnings": (POEM, [("two\n", "", "four\n")], [(10, "ambiguous")], "the lines to find are there more than once"),
    "a range upside down": (
        POEM,
        [("three\n", "", "one\n")],
        [(10, "order")],
        "the lines after ^^^to start at line 1 of the file, those after ^^^find end at line 3: the last lines must lie below the first",
    ),
    "a range in one line": (POEM, [("one\ntwo\n", "", "two\nthree\n")], [(10, "order")], "start at line 2 of the file, those after ^^^find end at line 2"),
    "an edit inside a range": (
        POEM,
        [("three\n", "3\n"), ("one\n", "", "four\n")],
        [(10, "overlap")],
        "line 3 of the file is in this edit and the one at line 20",
    ),
    "ranges that cross": (
        "a\nb\nc\nd\n", [("a\n", "", "c\n"), ("b\n", "", "d\n")], [(20, "overlap")], "line 2 of the file is in this edit",
    ),
    "all at once": (POEM, [("five\n", ""), ("one\n", ""), ("two\n", "")], [(10, "no-match"), (30, "ambiguous")], ""),
}  # fmt: skip


SUM = """def total(items):
    \"\"\"The sum of all (price, count) pairs.\"\"\"
    result = 0
    for price, count in items:
        result += price
    return result
"""


@pytest.mark.parametrize(
    ("find", "line"),
    [
        ("xresult += price", 5),
        ("results += price", 5),
        ("result += prices", 5),
        ("total += price", 5),
        ("retrn result", 6),
    ],
)
def test_of_lines_with_the_same_words_the_most_alike_is_told(find, line):
    _, (fault,) = edit_text(SUM, pairs([(f"        {find}\n", "")]))
    assert f"nearest is line {line}" in fault.message


def test_among_repeated_words_whole_lines_tell_the_nearest_place():
    text = "".join(f"    total = total + {number % 9}\n    check(total)\n" for number in range(300))
    text += "    total = check(total)\n    total = check(total) + 1\n" + text
    find = "    total = check(total)\n    total = check(total) + 2\n"
    _, (fault,) = edit_text(text, pairs([(find, "")]))
    assert "nearest is lines 601 to 602 of the file, where line 602 says" in fault.message


@pytest.mark.parametrize(("text", "rows", "rules", "told"), UNFIT.values(), ids=UNFIT)
def test_what_does_not_fit_is_told_so_that_the_next_answer_can(text, rows, rules, told):
    content, faults = edit_text(text, pairs(rows))
    assert content == text
    assert [(fault.line, fault.rule) for fault in faults] == rules
    assert told in faults[0].message


# As one of the rules of the verification pass


def verify(root: Path, answer: str, **options) -> VerifiedChanges:
    project, codebase = find_project(root), options.pop("codebase", None)
    settings = Settings(**{"answer_format": "edits"} | options)
    rules = capture_rules(project, settings, Redactor(["sk-0123456789abcdef"]))
    reasons = Reasons()
    changes = read_response(answer, reasons)
    return verify_changes(changes, project, rules, codebase and Sight({}, codebase), reasons)


def broken(root: Path, answer: str, **options) -> list[tuple[str, int, str]]:
    with pytest.raises(RejectedResponseError) as caught:
        verify(root, answer, **options)
    return [(violation.path, violation.line, violation.rule) for violation in caught.value.violations]


def edit_of(path: str, find: str, replacement: str) -> str:
    return f"^^^{path}\n^^^find\n{find}^^^replace\n{replacement}^^^end\n"


def test_an_edit_is_a_replacement_when_it_is_verified(project_folder):
    (project_folder / "run.sh").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    (project_folder / "run.sh").chmod(0o755)
    (change,) = verify(project_folder, edit_of("run.sh", "one\n", "1\n1\n")).changes
    assert change.change == FileReplacement("run.sh", "\ufeff1\r\n1\r\ntwo")
    assert (change.action, change.content, change.mode) == ("replace", b"\xef\xbb\xbf1\r\n1\r\ntwo", 0o755)


def test_git_sees_no_more_than_the_edit(project_folder):
    content = b"".join(b"line %d%s" % (number, b"\r\n" if number % 2 else b" \n") for number in range(50))
    (project_folder / "odd.txt").write_bytes(content)
    git(project_folder, "add", "-A")
    (change,) = verify(project_folder, edit_of("odd.txt", "line 30\nline 31\n", "line 30\n31\n")).changes
    (project_folder / "odd.txt").write_bytes(change.content)
    assert git(project_folder, "diff", "--numstat").split()[:2] == ["1", "1"]


ANSWERS = {
    "whole files alone": (edit_of("ok.txt", "not yet\n", "ok\n"), {"answer_format": "files"}, [("ok.txt", 1, "whole-file")]),
    "no such file": (edit_of("no.txt", "a\n", "b\n"), {}, [("no.txt", 1, "missing")]),
    "no text": (edit_of("data", "a\n", "b\n"), {}, [("data", 1, "not-text")]),
    "an empty find": (edit_of("ok.txt", "", "x\n"), {}, [("ok.txt", 2, "empty-find")]),
    "protected": (edit_of("build.sh", "#!/bin/sh\n", ""), {}, [("build.sh", 1, "protected")]),
    "beside other faults": (
        edit_of("ok.txt", "no\n", "") + edit_of("../x", "a\n", "") + "^^^gone.txt\n^^^delete\n",
        {},
        [("ok.txt", 2, "no-match"), ("../x", 6, "outside"), ("gone.txt", 11, "missing")],
    ),
    "a placeholder": (
        "^^^src/a.rs\n^^^find\nfn b() {}\n^^^replace\nfn b() { }\n^^^find\nfn a() {}\n^^^replace\n// ... existing code ...\n^^^end\n",
        {},
        [("src/a.rs", 6, "omission")],
    ),
    "a key": (edit_of("ok.txt", "not yet\n", "sk-0123456789abcdef\n"), {}, [("ok.txt", 1, "holds-key")]),
    "a diff": (edit_of("src/a.rs", "fn a() {}\n", "-fn a() {}\n+fn c() {}\n"), {}, [("src/a.rs", 2, "wrong-format")]),
    "not as in the rollup": (
        edit_of("ok.txt", "not yet\n", "ok\n"),
        {"strict": True, "codebase": "--- ok.txt ---\nolder\n"},
        [("ok.txt", 1, "stale")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "options", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_the_other_rules_hold_for_edits(project_folder, answer, options, expected):
    (project_folder / "data").write_bytes(b"\xff\n")
    (project_folder / "src").mkdir()
    (project_folder / "src/a.rs").write_text("fn a() {}\nfn b() {}\n")
    assert broken(project_folder, answer, **options) == expected


def part(lines: int, *passages: tuple[int, str]) -> Part:
    return Part(tuple(Passage(*each) for each in passages), lines)


PART = part(11, (2, "two\nthree\n"), (8, "two\nfour\n"), (10, "five\n"))
NUMBERS = "two\ntwo\nthree  \nfive\nfour\nfour\nfive\ntwo\nfour\nfive\nsix\n"

IN_PART = {
    "once, though elsewhere too": ([("three\n", "3\n")], NUMBERS.replace("three  ", "3")),
    "over two passages that meet": ([("four\nfive\n", "")], NUMBERS.replace("two\nfour\nfive\n", "two\n")),
    "a range in a passage": ([("two\nfour\n", "", "five\n")], NUMBERS.replace("two\nfour\nfive\n", "")),
    "a range over a gap": ([("three\n", "", "four\n")], "unseen"),
    "not shown": ([("six\n", "6\n")], "unseen"),
    "nowhere": ([("seven\n", "")], "no-match"),
    "nowhere, and another not shown": ([("seven\n", ""), ("six\n", "")], "unseen"),
    "half of it shown": ([("five\nsix\n", "")], "unseen"),
    "two places that are shown": ([("two\n", "")], "ambiguous"),
}


@pytest.mark.parametrize(("rows", "expected"), IN_PART.values(), ids=IN_PART)
def test_only_shown_lines_of_a_part_are_searched(rows, expected):
    shown = find_shown(NUMBERS, PART)
    assert shown == [(1, 3), (7, 10)]
    text, faults = edit_text(NUMBERS, pairs(rows), VisibleLines(tuple(shown)))
    assert (text, faults) == (expected, []) if not faults else [fault.rule for fault in faults] == [expected]


TRIP = "def trip():\n    prepare()\n    print_status()\n\n    travel()\n    finish()\n"
BELOW = "    print_status()\n\n    travel()\n"

REPEATING_NEIGHBORS = {
    "those below": ([("    prepare()\n", f"    ready()\n{BELOW}")], "below"),
    "behind the line of the find": ([("    prepare()\n", f"    prepare()\n    ready()\n{BELOW}")], "below"),
    "those above": ([("    finish()\n", f"{BELOW}    end()\n")], "above"),
    "nothing else": ([("    prepare()\n", f"    prepare()\n{BELOW}")], "below"),
    "of a range": ([("def trip():\n", f"def trip():\n    ready()\n{BELOW}", "    prepare()\n")], "below"),
    "with other edits": ([("    finish()\n", ""), ("    prepare()\n", f"    ready()\n{BELOW}")], "below"),
    "behind a line of the find": (
        [("def trip():\n", "def go():\n    go()\n\n\ndef trip():\n    prepare()\n")],
        "below",
    ),
    "before a line of the find": ([("    finish()\n", "    travel()\n    finish()\n    end()\n")], "above"),
    "a blank line behind a find": ([("    print_status()\n", "    say()\n    print_status()\n\n")], ""),
    "that another edit moves": ([("    prepare()\n", f"{BELOW}    prepare()\n"), (BELOW, "")], ""),
    "that another edit changes": ([("    prepare()\n", BELOW), ("    print_status()\n", "    say()\n")], ""),
    "taken into the find": ([(f"    prepare()\n{BELOW}", f"    ready()\n{BELOW}")], ""),
    "one line": ([("    prepare()\n", "    ready()\n    print_status()\n")], ""),
    "not up to the end": ([("    prepare()\n", f"    ready()\n{BELOW}    wait()\n")], ""),
    "not found": ([("    pack()\n", BELOW)], ""),
    "none": ([("    prepare()\n", "")], ""),
}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize(("rows", "side"), REPEATING_NEIGHBORS.values(), ids=REPEATING_NEIGHBORS)
def test_lines_that_an_edit_puts_beside_the_same_lines_are_suspected(rows, side, end):
    found = find_repetition(EditBlock("a.gd", tuple(pairs(rows)), 1), TRIP.replace("\n", end))
    assert (found is not None and f"right {side} " in found.fact) == bool(side)
    assert found is None or found.rule == "repeated"


def test_in_a_file_shown_in_part_the_shown_place_counts_for_lines_that_come_twice():
    rows, size = [("    prepare()\n", f"    ready()\n{BELOW}")], TRIP.count("\n")
    for shown in ((0, size), (size, 2 * size)):
        assert find_repetition(EditBlock("a.gd", tuple(pairs(rows)), 1), TRIP * 2, VisibleLines((shown,)))
    assert find_repetition(EditBlock("a.gd", tuple(pairs(rows)), 1), TRIP * 2) is None


def test_edits_that_come_again_are_told_by_their_lines_in_the_answer():
    for line in (3, 7):
        edits = [Edit("x\n", "y\n", line), Edit("a\n", "x\n", line + 4)]
        assert [fault.line for fault in edit_text("a\nb\n", edits)[1]] == [line]
        assert find_repetition(EditBlock("a.gd", tuple(edits), 1), "a\nx\n") is None


def test_an_edit_repeats_lines_and_a_whole_file_does_not(project_folder):
    (project_folder / "a.gd").write_text(TRIP)
    edit = f"^^^a.gd\n^^^find\n    prepare()\n^^^replace\n    ready()\n{BELOW}^^^end\n"
    assert broken(project_folder, edit) == [("a.gd", 2, "repeated")]
    assert len(verify(project_folder, f"^^^a.gd\n{TRIP * 2}^^^end\n", answer_format="auto").changes) == 1


@pytest.mark.parametrize("passage", [(1, "a\nc\n"), (2, "a\n"), (0, "a\n"), (3, "a\n")])
def test_a_file_that_has_changed_since_its_lines_were_shown_is_stale(passage):
    assert find_shown("a\nb\n", part(2, (1, "a\n"))) == [(0, 1)]
    assert find_shown("a\nb\n", part(2, (1, "a\n"), passage)) is None


def test_a_part_of_a_file_of_other_length_is_stale():
    assert find_shown("a\nb\n", part(3, (1, "a\n"))) is None
    assert find_shown("a\nb\n", part(0, (1, "a\n"), (2, ""))) == [(0, 1)]
    assert find_shown("\ufeffa \r\nb", part(2, (1, "\ufeffa\nb\n"))) == [(0, 2)]
    (fault,) = edit_text("a\n", pairs([("a\n", "b\n")]), VisibleLines(()))[1]
    assert fault.rule == "unseen"


def test_what_shrinks_is_warned_of(project_folder):
    (project_folder / "long.txt").write_text("".join(f"line {number}\n" for number in range(99)))
    lines = "".join(f"line {number}\n" for number in range(5, 95))
    assert verify(project_folder, edit_of("long.txt", lines, "")).warnings[0].kind == "shrunk"


def range_of(path: str, first: str, last: str, replacement: str) -> str:
    return f"^^^{path}\n^^^find\n{first}^^^to\n{last}^^^replace\n{replacement}^^^end\n"


def test_a_range_of_more_than_half_a_file_is_warned_of(project_folder):
    (project_folder / "long.txt").write_text("".join(f"line {number}\n" for number in range(100)))
    new = "".join(f"new {number}\n" for number in range(60))
    half, more = (range_of("long.txt", "line 10\n", f"line {last}\n", new) for last in (59, 60))
    assert [warning.kind for warning in verify(project_folder, half).warnings] == []
    (warning,) = verify(project_folder, more).warnings
    told = "long.txt: ranges replace 51 of its 100 lines: check what they take away"
    assert (warning.kind, warning.path, str(warning)) == ("shrunk", "long.txt", told)
    edit = "^^^find\nline 99\n^^^replace\n^^^find\nline 0\n^^^replace\na\nb\n^^^end\n"
    (warning,) = verify(project_folder, more.removesuffix("^^^end\n") + edit).warnings
    assert str(warning) == told


def test_a_mixed_answer(project_folder):
    (project_folder / "old.txt").write_text("old\n")
    answer = edit_of("ok.txt", "not yet\n", "ok\n") + "^^^new.txt\nnew\n^^^end\n^^^old.txt\n^^^delete\n"
    assert [(change.path, change.content) for change in verify(project_folder, answer).changes] == [
        ("ok.txt", b"ok\n"),
        ("new.txt", b"new\n"),
        ("old.txt", None),
    ]


# Any file, any edit


lines = st.lists(
    st.sampled_from(["a", "b", "}", "", "  x = 1", "^^^end", "^^^find", "y ", "\u2028", "\x0c"]), max_size=14
)
line_ends = st.sampled_from(["\n", "\n", "\r\n"])


@st.composite
def versions(draw: st.DrawFn) -> tuple[str, str]:
    """Two versions of a file, with the same line ends and the same end."""
    old, new, end = draw(lines), draw(lines), draw(line_ends)
    if draw(st.booleans()):
        at = draw(st.integers(0, len(old)))
        new = [*old[:at], *draw(lines)[:2], *old[at + draw(st.integers(0, 2)) :]]
    is_cut, bom = draw(st.booleans()), draw(st.sampled_from(["", "\ufeff"]))
    texts = [bom + "".join(line + end for line in rows) for rows in (old, new)]
    return tuple(text.removesuffix(end) if is_cut else text for text in texts)


@given(versions())
def test_what_is_encoded_parses_and_gives_the_new_file(texts):
    old, new = texts
    if answer := encode_edits("src/a b.txt", old, new):
        (block,) = parse_response(answer)
        assert edit_text(old, block.edits) == (new, [])
    (change,) = parse_response(encode("src/a b.txt", old, new))
    if isinstance(change, FileReplacement):
        assert change.content == (new if new.endswith("\n") or not new else new + "\n")


def places(text: str, find: str) -> list[int]:
    """Where the lines stand, looked for in the simplest way."""
    if text and not text.endswith("\n"):
        text += "\r\n" if "\r\n" in text else "\n"
    rows, wanted = (part.removeprefix("\ufeff").split("\n")[:-1] for part in (text, find))
    plain = [[line.rstrip(" \t\r") for line in part] for part in (rows, wanted)]
    found = [
        [at for at in range(len(there)) if there[at : at + len(lines)] == lines]
        for there, lines in ((rows, wanted), plain)
    ]
    return found[0] or found[1]


@given(versions(), st.data())
def test_a_damaged_find_is_found_nowhere_but_where_its_lines_stand(texts, data):
    old, new = texts
    if not (answer := encode_edits("a", old, new)):
        return
    edits = list(parse_response(answer)[0].edits)
    at = data.draw(st.integers(0, len(edits) - 1))
    find = edits[at].find
    cut = data.draw(st.integers(0, len(find) - 1))
    damaged = find[:cut] + data.draw(st.sampled_from(["", "z", "\n", "a", " "])) + find[cut + 1 :]
    if not damaged.endswith("\n"):
        return
    edits[at] = Edit(damaged, edits[at].replacement, 99)
    text, faults = edit_text(old, edits)
    rules = {fault.rule for fault in faults if fault.line == 99} - {"overlap"}
    assert rules == {0: {"no-match"}, 1: set()}.get(len(places(old, damaged)), {"ambiguous"})
    assert not faults or text == old


spans = st.lists(st.tuples(st.integers(1, 24), st.integers(1, 24)), max_size=3)


@given(versions(), spans, st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3), st.booleans(), lines), max_size=3))
def test_an_edit_of_a_part_lands_in_what_was_shown_and_all_else_is_byte_exact(texts, ranges, places_and_lines):
    """Finds are taken from anywhere in the file: those that are not shown, or not whole, or twice, change nothing."""
    old, _ = texts
    part = part_of(old, ranges)
    rows = old.removeprefix("\ufeff").split("\n")
    edits = [
        Edit(
            "\n".join(rows[at : at + size]) + "\n", text_of(new), 1, f"{rows[at * 3 % len(rows)]}\n" if is_range else ""
        )
        for at, size, is_range, new in places_and_lines
    ]
    shown = find_shown(old, part)
    assert shown is not None
    text, faults = edit_text(old, edits, VisibleLines(tuple(shown)))
    gaps, at = [], 0
    kept = (old if old.endswith("\n") else f"{old}\n").split("\n")[:-1]
    for first, last in shown:
        gaps.append("".join(f"{row}\n" for row in kept[at:first]))
        at = last
    rest = "".join(f"{row}\n" for row in kept[at:])
    if faults:
        assert text == old
    elif edits:
        there = text if text.endswith("\n") or not text else f"{text}\n"
        pattern = "(?s:.*)".join([*(re.escape(gap) for gap in gaps), re.escape(rest)])
        assert re.fullmatch(pattern, there) or not shown


@given(versions(), spans)
def test_a_part_counts_for_its_own_version_of_a_file_alone(texts, ranges):
    old, new = texts
    part = part_of(old, ranges)
    shown = find_shown(new, part)
    if shown is not None and part.passages:
        rows = [
            row.rstrip(" \t\r")
            for row in (new if new.endswith("\n") else f"{new}\n").removeprefix("\ufeff").split("\n")[:-1]
        ]
        assert len(rows) == part.lines
        for (first, last), (_, passage) in zip(part.ranges, part.passages, strict=True):
            there = passage.removeprefix("\ufeff").split("\n")[:-1]
            assert rows[first - 1 : last] == [row.rstrip(" \t\r") for row in there]


def text_of(rows: list[str]) -> str:
    return "".join(f"{row}\n" for row in rows)


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12),
    st.data(),
    st.lists(st.sampled_from("xya"), max_size=3),
)
def test_a_range_takes_all_from_its_first_line_to_its_last_or_nothing(rows, data, new):
    first, last = (data.draw(st.sampled_from("abcdefgh")) for _ in range(2))
    old, put = ("".join(f"{row}\n" for row in part) for part in (rows, new))
    text, faults = edit_text(old, [Edit(f"{first}\n", put, 1, f"{last}\n")])
    start, end = (rows.index(row) if row in rows else -1 for row in (first, last))
    if rows.count(first) == rows.count(last) == 1 and start < end:
        assert (text, faults) == ("".join(f"{row}\n" for row in [*rows[:start], *new, *rows[end + 1 :]]), [])
    else:
        assert (text, bool(faults)) == (old, True)


repeated = st.lists(st.sampled_from(["a\n", "b\n", "a \n"]), min_size=1, max_size=30).map("".join)


@pytest.mark.slow
@given(repeated, st.lists(repeated.map(lambda text: text[:7].rpartition("\n")[0] + "\n"), min_size=1, max_size=20))
def test_each_of_many_overlapping_finds_is_found_where_it_stands(text, finds):
    expected = {number: places(text, find) for number, find in enumerate(finds)}
    _, faults = edit_text(text, [Edit(find, "", number) for number, find in enumerate(finds)])
    told = {fault.line: fault for fault in faults if fault.rule != "overlap"}
    assert {number for number, fault in told.items() if fault.rule == "no-match"} == {
        number for number, found in expected.items() if not found
    }
    for number, found in expected.items():
        if len(found) > 1:
            numbers = ", ".join(str(place + 1) for place in found[:10])
            assert (
                f"starting at lines {numbers}{' and more' if len(found) > 10 else ''} of the file:"
                in told[number].message
            )
        assert len(found) != 1 or number not in told


# However much


def timed(text: str, edits: list[Edit], limit: float) -> list[str]:
    rules: list[str] = []

    def edit() -> None:
        rules[:] = [fault.rule for fault in edit_text(text, edits)[1]]

    assert least(lambda: cpu_seconds(edit), limit) < limit
    return rules


@pytest.mark.sweep
def test_ten_thousand_finds_in_ten_megabytes():
    text = "".join(f"    value_{number} = compute({number % 7})\n" for number in range(280_000))
    finds = [f"    value_{number} = compute({number % 7})\n" for number in range(0, 280_000, 28)]
    assert timed(text, [Edit(find, find * 2) for find in finds], 4) == []
    assert timed(text, [Edit(find.replace("=", "=="), "") for find in finds], 8) == ["no-match"] * 10_000


@pytest.mark.parametrize("count", [1, 50_000])
def test_a_find_in_a_hundred_thousand_equal_lines(count):
    assert timed("    }\n" * 100_000, [Edit("    }\n" * count, "")], 4) == ["ambiguous"]


def growing(line: str, size: int, last: str = "") -> list[str]:
    """Finds of one such line, of two, of three ... and the last line, of so many characters in all."""
    finds: list[str] = []
    while size > 0:
        finds.append(line * (len(finds) + 1) + last)
        size -= len(finds[-1])
    return finds


def either(count: int) -> str:
    return "".join(random.Random(count).choices(["a\n", "b\n"], k=count))


REPEATING = {
    # of a file of 600 kB and an answer of 200 kB: the file, the finds
    "a line, one time more each": lambda: ("}\n" * 300_000, growing("}\n", 200_000)),
    "a line, one time more each, and its end": lambda: ("}\n" * 300_000 + "x\n", growing("}\n", 200_000, "x\n")),
    "a pair, one time more each": lambda: ("a\nb\n" * 150_000, growing("a\nb\n", 200_000, "b\n")),
    "with other blanks": lambda: ("a \nb\n" * 120_000, growing("a\nb \n", 200_000, "b\n")),
    "a line, many finds": lambda: ("a\n" * 300_000, ["a\n"] * 100_000),
    "a line, and another end": lambda: ("a\n" * 300_000 + "b\n", ["a\n" * 300_000 + "b\n"]),
    "a line, and another start": lambda: (("b\n" + "a\n" * 99) * 3_000, ["b\n" + "a\n" * 300_000]),
    "a line, and another middle": lambda: (("b\n" + "a\n" * 50) * 6_000, ["a\n" * n + "b\n" + "a\n" * 500 for n in range(100)]),
    "a thousand equal lines each": lambda: ("a\n" * 300_000, ["a\n" * 1000 + f"{number}\n" for number in range(100)]),
    "hardly different": lambda: (("a\n" * 99 + "b\n") * 3_000, ["a\n" * 98 + "b\nb\n"] * 3_000),
    "either of two lines": lambda: (either(300_000), [either(40 + number % 2) for number in range(2_500)]),
    "either of two lines, long": lambda: (either(300_000), [either(2000 + number) for number in range(40)]),
    "either of two lines, few": lambda: (either(300_000), [either(20_000 + number) for number in range(5)]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("make", every_third(REPEATING))
def test_the_time_is_linear_in_file_and_answer_whatever_they_repeat(make):
    text, finds = make()
    timed(text, [Edit(find, "") for find in finds], 4)
