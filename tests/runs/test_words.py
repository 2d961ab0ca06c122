"""What a run says of itself in words, wherever it says it."""

import json
from pathlib import Path

import pytest
from command import Run, git, recorded, the_log
from fake_server import FakeServer

from code_commit.changes import AppliedChange, Violation
from code_commit.exchange import Cost, Usage
from code_commit.runs.log import sum_up
from code_commit.runs.record import Attempt, FileChoice, RunRecord
from code_commit.runs.words import (
    change_rows,
    check_lines,
    cost_in_cell,
    cost_in_words,
    done_in_all,
    rejection_of,
    summary_of,
)

BEFORE = {
    "tests/test_a.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        assert f() == 1\n",
    "tests/test_gone.py": "a\nb\n",
    ".github/workflows/ci.yml": "a\nb\n",
    "Makefile": "all:\n",
}
ANSWER = (
    "^^^ok.txt\nok\n^^^end\n^^^tests/test_new.py\nx = 1\n^^^end\n^^^tests/test_gone.py\n^^^delete\n"
    "^^^.github/workflows/ci.yml\na\n^^^end\n^^^Makefile\nall:\n\ttrue\n^^^end\n"
)
LINES = [
    "tests/test_a.py is a test: only added, 1 line",
    "tests/test_gone.py is a test: deleted, 2 lines",
    ".github/workflows/ci.yml is a CI file: 0 lines added, 1 removed",
    "Makefile is a build file: only added, 1 line",
    "tests/test_new.py is a test: new, 1 line",
]


@pytest.fixture
def root(project_folder: Path) -> Path:
    for name, content in BEFORE.items():
        path = project_folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "more")
    return project_folder


@pytest.mark.slow
def test_each_changed_test_ci_and_build_file_is_named(root: Path, run_code_commit: Run):
    test = f"^^^tests/test_a.py\nimport lib.patches_unittest\n{BEFORE['tests/test_a.py']}^^^end\n"
    done = run_code_commit(root, *recorded(root, test + ANSWER), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    told = "attempt 1 of 4: the answer changes tests, CI files or build files:\n  " + "\n  ".join(LINES) + "\n"
    assert told in done.stderr
    changes = {
        change["path"]: change
        for change in json.loads((the_log(root) / "run.json").read_text())["attempts"][0]["changes"]
    }
    assert {path: change["kind"] for path, change in changes.items()} == {
        "ok.txt": "",
        "tests/test_a.py": "test",
        "tests/test_new.py": "test",
        "tests/test_gone.py": "test",
        ".github/workflows/ci.yml": "ci",
        "Makefile": "build",
    }
    diff = run_code_commit(root, "diff")
    assert diff.stderr.splitlines() == LINES
    as_json = json.loads(run_code_commit(root, "diff", "--json").stdout)
    assert sorted(change["path"] for change in as_json["changes"]) == sorted(changes)
    assert [change for change in as_json["changes"] if change["path"] == "Makefile"] == [changes["Makefile"]]
    assert "  replace tests/test_a.py  +1 -0  (a test)\n" in run_code_commit(root, "log", "-1").stdout
    page, markdown = (run_code_commit(root, "log", *form).stdout for form in (("--html", "-"), ("--markdown",)))
    assert page.count('id="checks"') == 1
    assert page.index('id="checks"') < page.index('id="changes"')
    for line in LINES:
        assert f"<li>{line}</li>" in page
        assert f"- `{line}`\n" in markdown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class A:\n    x = 1\n", "class A:\n    x = 1\n    import os; os._exit(0)\n"),
        ("def test_a():\n    assert f()\n", "def test_a():\n    assert f()\n\n\ndef test_b(x=patch()):\n    pass\n"),
        ("def test_a():\n    assert f()\n", "def test_a():\n    assert f()\n\n\n@patch()\ndef test_b():\n    pass\n"),
        ("def test_a():\n    assert f()\n", "def test_a():\n    assert f()\n\n\ndef test_b() -> patch():\n    pass\n"),
    ],
    ids=["code in a class body", "a default argument", "a decorator", "an annotation"],
)
def test_no_form_of_a_change_to_a_test_goes_unsaid(old: str, new: str, project_folder: Path, run_code_commit: Run):
    (project_folder / "test_a.py").write_text(old)
    done = run_code_commit(project_folder, "apply", "-", "--dry-run", stdin=f"^^^test_a.py\n{new}^^^end\n")
    added = new.count("\n") - old.count("\n")
    assert f"\n  test_a.py is a test: only added, {added} line{'' if added == 1 else 's'}\n" in done.stderr


def test_new_files_come_after_changed_ones_and_every_file_has_a_line():
    new = [AppliedChange(f"tests/{number}.py", "create", 9, 1, 0, "test") for number in range(1_000)]
    lines = check_lines(
        [*new, AppliedChange("Makefile", "replace", 9, 1_000, 2_000, "build"), AppliedChange("a", "create", 9, 1, 0)]
    )
    assert lines[0] == "Makefile is a build file: 1,000 lines added, 2,000 removed"
    assert lines[-1] == "tests/999.py is a test: new, 1 line"
    assert len(lines) == 1_001


REJECTIONS = {
    "the fact without its advice": (
        [Violation("build.sh", 4, "protected", "is protected: leave its block out, and say what it needs")],
        "build.sh: is protected",
    ),
    "nothing of what was looked for": (
        [Violation("a.py", 2, "no-match", "of the last lines (^^^to): the lines to find are not in the file; nearest")],
        "a.py: the lines to replace are not in the file",
    ),
    "a part of the answer's own words": (
        [Violation("", 0, "incomplete", "the response is refused: I cannot; ask another")],
        "the response is refused: I cannot; ask another",
    ),
    "the others by their number": (
        [Violation("a.py", 1, "not-allowed", "only these may be changed: b.py; make the change there")] * 3,
        "a.py: --allow does not name it, and 5 more reasons",
    ),
}


@pytest.mark.parametrize(("reasons", "told"), REJECTIONS.values(), ids=REJECTIONS)
def test_a_rejection_for_people_is_one_short_sentence(reasons, told):
    more = 3 if len(reasons) > 1 else 0
    attempt = Attempt(
        1, "initial", rejections=reasons, more_rejections=more, incomplete="refused: I cannot; ask another"
    )
    assert rejection_of(attempt) == told


def test_an_answer_that_could_not_be_written_is_not_unusable():
    assert summary_of(Attempt(1, "initial", finish_reason="stop")) == "answered, nothing written"
    assert summary_of(Attempt(1, "initial")) == "no usable answer"


LOST = "1 unused answer that may have been charged at an unknown price"
COSTS = [
    (Cost(0.21, 0.6621), "$0.21 and at most $0.66 unsettled", "$0.21 + ≤$0.66"),
    (Cost(0.21), "$0.21", "$0.21"),
    (Cost(None, 0.6621), "at most $0.66 unsettled", "≤$0.66"),
    (Cost(0.0, 0.6621), "at most $0.66 unsettled", "≤$0.66"),
    (Cost(0.0), "$0.00", "$0.00"),
    (Cost(), "", "-"),
    (Cost(None, 0.0, 1), LOST, "?"),
    (Cost(0.0, 0.0, 1), LOST, "?"),
    (Cost(0.21, 0.6621, 1), f"$0.21 and at most $0.66 unsettled and {LOST}", "$0.21 + ≤$0.66 + ?"),
]


@pytest.mark.parametrize(("cost", "sentence", "cell"), COSTS)
def test_what_may_have_been_paid_is_never_added_to_what_was(cost, sentence, cell):
    assert (cost_in_words(cost, short=True), cost_in_cell(cost, short=True)) == (sentence, cell)


def test_the_parts_of_a_cost_are_added_apart():
    assert Cost(0.25, 1.0) + Cost(None, 0.5, 1) + Cost() == Cost(0.25, 1.5, 1)
    assert Cost(None, 0.5) + Cost(0.25) == Cost(0.25, 0.5)
    usage = Usage(input=10, output=1)
    attempts = [Attempt(1, "initial", cost_usd=0.25, unsettled_usd=[0.5, 0.5], usage=usage, finish_reason="stop")]
    record = RunRecord("1", "r", "run", "", "/", "", 1, attempts=attempts)
    record.choice = FileChoice("c", calls=1, usage=usage, cost_usd=0.125, unsettled_usd=2.0)
    record.totals = sum_up(record, 1.0)
    assert record.cost == record.totals.cost == Cost(0.375, 3.0)
    assert record.cost.highest == 3.375
    assert done_in_all(record).endswith(
        "22 tokens, $0.3750 and at most $3.0000 unsettled"
        " ($0.1250 and at most $2.0000 unsettled of it for the choice of files)"
    )


CHAT_KEY = {"CODE_COMMIT_CHAT_API_KEY": "sk-test-4f9a8b7c6d5e"}


def test_an_answer_that_was_stopped_says_why_wherever_it_is_shown(project_folder: Path, run_code_commit: Run):
    text = "".join(f"line {number} of the file\n" for number in range(200))
    (project_folder / "agent-config/codeRollup.txt").write_text(f"--- long.txt ---\n{text}")
    with FakeServer(answers=[text]) as server:
        options = ["--model", "chat:m", "--base-url", server.base_url("chat"), "--on-rejected", "stop"]
        done = run_code_commit(project_folder, *options, env=CHAT_KEY)
    why = "the response is stopped: outside of its blocks it repeats 2,000 characters of the prompt"
    assert done.returncode == 4
    assert f"attempt 1 of 4: response rejected, nothing written: {why}\n" in done.stderr
    record = json.loads((the_log(project_folder) / "run.json").read_text())
    assert record["attempts"][0]["incomplete"] in why
    shown = [run_code_commit(project_folder, "log", *words).stdout for words in (["latest"], ["--markdown"])]
    assert all(why in text for text in shown)


def test_the_files_of_a_run_are_counted_alike_wherever_they_are(project_folder: Path, run_code_commit: Run):
    """Two new ones, one edited, one removed; a fifth came in the first attempt and went in the second."""
    (project_folder / "gone.txt").write_text("x\n")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "more")
    first = "^^^new.txt\na\n^^^end\n^^^draft.txt\nx\n^^^end\n^^^ok.txt\nno\n^^^end\n"
    second = "^^^src/new.txt\nb\n^^^end\n^^^ok.txt\nok\n^^^end\n^^^gone.txt\n^^^delete\n^^^draft.txt\n^^^delete\n"
    done = run_code_commit(project_folder, *recorded(project_folder, first, second), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    assert "attempt 1 of 4: 3 files changed, +3 -1: draft.txt, new.txt, ok.txt\n" in done.stderr
    assert "attempt 2 of 4: 4 files changed, +2 -3: draft.txt, gone.txt, ok.txt and 1 more\n" in done.stderr
    assert "The build passes after 2 attempts: 4 files changed in " in done.stderr
    assert len(git(project_folder, "status", "--short", "-uall").splitlines()) == 4
    row = run_code_commit(project_folder, "log").stdout.splitlines()[1]
    assert row.split()[1:4] == ["success", "2", "4"]
    assert "2 attempts · 4 files +3 \N{MINUS SIGN}2 · " in run_code_commit(project_folder, "log", "--markdown").stdout
    assert json.loads((the_log(project_folder) / "run.json").read_text())["totals"]["files_changed"] == 4


def test_a_test_that_was_renamed_is_told_with_both_names_also_where_it_is_none_any_more():
    changes = [
        AppliedChange("tests/b.py", "create", 9, 1, 2, "test", "tests/a.py"),
        AppliedChange("old/a.py", "create", 9, 0, 0, "test", "tests/test_a.py"),
        AppliedChange("src/b.py", "create", 9, 0, 0, "", "src/a.py"),
    ]
    assert check_lines(changes) == [
        "tests/b.py is a test: renamed from tests/a.py, 1 line added, 2 removed",
        "tests/test_a.py is a test: renamed to old/a.py, 0 lines added, 0 removed",
    ]
    assert change_rows(changes[:1]) == ["rename  tests/a.py -> tests/b.py  +1 -2  (a test)"]


BACK, EXTRA = "^^^ok.txt\nnot yet\n^^^end\n", "^^^extra.txt\nx\n^^^end\n"


@pytest.mark.parametrize(
    ("answers", "build", "files"),
    {
        "restored, and another added": (["^^^ok.txt\nno\n^^^end\n", BACK + EXTRA], "test -e extra.txt", 1),
        "restored": (["^^^ok.txt\nno\n^^^end\n", BACK], "grep -q yet ok.txt", 0),
        "restored by the build": (["^^^ok.txt\nno\n^^^end\n"], "echo not yet >ok.txt", 0),
        "renamed, and removed by the build": (
            ["^^^new.txt\nnot yet\n^^^end\n^^^ok.txt\n^^^delete\n"],
            "rm new.txt",
            1,
        ),
        "removed, and made again by the build": (
            ["^^^new.txt\nx\n^^^end\n", "^^^new.txt\n^^^delete\n"],
            "if test -e new.txt; then exit 1; fi; echo y >new.txt",
            1,
        ),
    }.values(),
)
def test_a_file_that_is_as_before_again_is_not_a_changed_one(answers, build, files, project_folder, run_code_commit):
    (project_folder / "build.sh").write_text(f"#!/bin/sh\n{build}\n")
    done = run_code_commit(project_folder, *recorded(project_folder, *answers), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    assert f": {files} file{'' if files == 1 else 's'} changed in " in done.stderr
    assert len(run_code_commit(project_folder, "diff", "--stat").stdout.splitlines()) == files
    assert run_code_commit(project_folder, "log").stdout.splitlines()[1].split()[3] == str(files)
    assert ("Undo: code-commit undo" in done.stderr) == bool(files)
