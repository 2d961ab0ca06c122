import json
import re

import pytest

from code_commit.changes import Violation
from code_commit.runs.record import Attempt, BuildResult, RunError, RunRecord
from code_commit.runs.words import duration, ending_of, ways_on
from code_commit.status import Status
from code_commit.terminal import render, shown, shown_json

SETTLED = {
    "plain": (b"a\nb\n", "a\nb\n"),
    "colours": (b"\x1b[1;31merror\x1b[0m: x\n", "error: x\n"),
    "link and title": (b"\x1b]8;;http://x\x07text\x1b]8;;\x1b\\\n\x1b]0;title\x07ok\n", "text\nok\n"),
    "unfinished escape": (b"a\x1b[31\nb\x1b", "a\nb"),
    "progress bar": (b"10%\r50%\r100%\ndone\n", "100%\ndone\n"),
    "shorter rewrite": (b"downloading\rdone\n", "doneloading\n"),
    "erased rewrite": (b"downloading\r\x1b[Kdone\n", "done\n"),
    "erased line": (b"downloading\x1b[2K\rdone\n", "done\n"),
    "bar that ends in a return": (b"50%\r100%\r\ndone\n", "100%\ndone\n"),
    "line ends of Windows": (b"a\r\nb\r\n", "a\nb\n"),
    "backspaces": (b"abc\b\bX\n", "aXc\n"),
    "broken UTF-8": (b"\xff\xfe x\xc3\n", "\ufffd\ufffd x\ufffd\n"),
    "control characters": (b"a\x00b\x07c\x0c\n", "abc\n"),
    "8-bit sequences": ("a\x9b31mb\x9d0;title\x9cc\n".encode(), "abc\n"),
    "tabs stay": (b"a\tb\n", "a\tb\n"),
    "two bars": (b"out 1\n\rin 1\x1b[A\rout 2\n\rin 2\x1b[A\rout 3\n\n", "out 3\nin 2\n"),
    "a list that is drawn anew": (b"x\na 1\nb 1\n\x1b[2F\x1b[2Ka 9\n\x1b[2Kb\ndone\n", "x\na 9\nb\ndone\n"),
    "erased lines": (b"one\ntwo\n\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[Gend\n", "end\n"),
    "a shorter list": (b"longer\nb\x1b[1A\r\x1b[Ja\n", "a\nb"),
    "the end above": (b"a\nb\nc\x1b[A\rd", "a\nd\nc"),
    "marks of our own": (b"x\na\x19\x19b\x199\x19c\x1b[1A\x19\x192\n", "x   2\nab9c"),
    "above the top": (b"a\x1b[9999A\rb\x1b[99999A\x1b[9;9Ac\n", "bc\n"),
    "a failure within what is drawn anew": (
        b"a 1\nb 1\nx.c:3: error: y\n\x1b[2A\x1b[2Ka 2\n\x1b[2Kb 2\n",
        "a 1\nb 1\nx.c:3: error: y\na 2\nb 2\n",
    ),
    "a failure where the cursor goes up": (b"a\nb FAILED\x1b[A\rc\n", "a\nb FAILED\nc\n"),
    "no failure": (b"0 failed, errors: 0\n\x1b[A\r0 failed, errors: 0, 1 ok\n", "0 failed, errors: 0, 1 ok\n"),
    "no final newline": (b"a\r\x1b[Kb", "b"),
}


@pytest.mark.parametrize(("output", "text"), SETTLED.values(), ids=SETTLED)
def test_output_is_shown_as_a_terminal_would_finally_show_it(output, text):
    assert render(output) == text


def test_only_what_a_person_can_read_is_printed_as_it_is():
    assert shown("naïve 日本語 🎉.txt") == "naïve 日本語 🎉.txt"
    assert shown("a\x1b[2J\n\u202e\ud800\u00a0b") == "a\\x1b[2J\\n\\u202e\\ud800\\xa0b"


def test_json_escapes_what_no_terminal_shows_and_keeps_its_values():
    """Every third character of the first plane, and some beyond: a tag, a private and an unassigned one among them."""
    for number in (*range(0, 0x10000, 3), 0x7F, 0x9B, 0x2028, 0x202E, 0x1F389, 0xE0001, 0xF0000, 0x10FFFF):
        value = {f"x{chr(number)}": [f"a {chr(number)} b"]}
        document = json.dumps(value, ensure_ascii=False, indent=1)
        printed = shown_json(document)
        assert all(line == shown(line) for line in printed.split("\n")), hex(number)
        assert json.loads(printed) == value, hex(number)
        assert (printed == document) == (document == "\n".join(map(shown, document.split("\n")))), hex(number)
    assert shown_json('"naïve 日本語 🎉"') == '"naïve 日本語 🎉"'
    assert shown_json('"\x7f\x9b\u202e\U000e0001"\n') == '"\\u007f\\u009b\\u202e\\udb40\\udc01"\n'


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (59.94, "59.9 s"),
        (60, "1 min"),
        (65.9, "1 min 5 s"),
        (3600.02, "1 h"),
        (7525, "2 h 5 min"),
        (86400, "24 h"),
    ],
)
def test_a_time_as_it_is_read(seconds, words):
    assert duration(seconds) == words


def test_a_build_that_timed_out_names_the_option():
    assert ending_of(BuildResult(None, None, True, 9e4, 0)) == "timed out after 25 h (--build-timeout)"


@pytest.mark.parametrize(
    ("kind", "model", "told"),
    [
        ("timeout", "chat:m", "add --llm-timeout S to wait longer"),
        ("network", "chat:m", "add --base-url URL"),
        ("network", "openai:m", "add --fallback-base-url URL"),  # which took over
        ("network", "command:x", "continues this run[.]"),
    ],
)
def test_the_way_on_names_the_option_that_the_error_asks_for(kind, model, told):
    record = RunRecord("0", "run", "run", "", "/", "", 0, model="chat:m")
    record.attempts, record.error = [Attempt(1, "initial", model=model)], RunError(kind, "")
    assert re.search(told, " ".join(ways_on(record, "")))


@pytest.mark.parametrize(
    ("chooser", "asked", "told"),
    [
        ("chat:small", "chat:small", "add --base-url URL"),
        ("chat:m", "openai:x", "add --fallback-base-url URL"),
        ("gemini:x", "gemini:x", "continues this run[.]"),  # it has its vendor's address alone
    ],
)
def test_the_way_on_from_a_choice_names_no_address_that_the_chooser_cannot_have(chooser, asked, told):
    record = RunRecord("0", "run", "rollup", "", "/", "", 0, model=chooser, options={"model": "chat:m"})
    record.attempts, record.error = [Attempt(1, "initial", model=asked)], RunError("network", "")
    assert re.search(told, " ".join(ways_on(record, "")))


@pytest.mark.parametrize(
    ("files", "told"), [(1, "1 file changed so far; .* takes it back"), (2, "2 files .* takes them")]
)
def test_several_files_are_taken_back_in_the_plural(files, told):
    record = RunRecord("0", "run", "run", "", "/", "", 0)
    record.totals.files_changed = files
    assert re.search(told, " ".join(ways_on(record, "")))


@pytest.mark.parametrize(
    ("rules", "model", "layout", "told"),
    [
        (["protected"], "chat:m", "spec", "Describe the task in more detail .-m., or use another --model"),
        (["no-block"], "openai:m", "spec", "Describe the task in more detail"),
        (["no-block"], "chat:m", "cached", "--prompt-layout short"),
        (["no-block"], "chat:m", "short", "Describe the task in more detail"),
        (["no-block", "protected"], "chat:m", "spec", "Describe the task in more detail"),
        (["not-allowed", "protected-by-option"], "chat:m", "spec", "^To accept .* another --allow and --protect[.]$"),
        (["not-allowed", "protected"], "chat:m", "spec", "Describe the task in more detail"),
        (["cut-off"], "chat:m", "spec", "^$"),  # its warning names the ways
        (["stale"], "chat:m", "spec", "^$"),  # with --strict: a warning names code-commit rollup
        (["asked"], "chat:m", "spec", "^$"),
        (["not-approved"], "chat:m", "spec", "^$"),
    ],
)
def test_a_rejected_run_names_what_may_bring_another_answer(rules, model, layout, told):
    record = RunRecord("0", "run", "run", "", "/", "", 0, options={"prompt_layout": layout}, status=Status.REJECTED)
    whys = [Violation("build.sh", 1, rule, "no") for rule in rules]
    record.attempts = [Attempt(1, "initial", model=model, rejections=whys)]  # which the fallback may have answered
    assert re.search(told, " ".join(ways_on(record, "")))
