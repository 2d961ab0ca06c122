"""What a codebase that the tool makes shows of a project beside the files that a task needs: what judges it, what is next
to it, the heads of change logs, and no more.
"""

import json
import time
from pathlib import Path

import pytest
from command import Run, chess_board, git, module, recorded, the_log

from code_commit.codebase.change_logs import heads_of_logs
from code_commit.codebase.fit import find_near
from code_commit.codebase.mentions import show_mentions
from code_commit.codebase.outline import brief
from code_commit.codebase.rank import rank, survey_files
from code_commit.codebase.text import Section, file_section, part_of, part_section

ROLLUP = "agent-config/codeRollup.txt"
BUILD = "#!/bin/sh\n# not lib/beside.py\n: checks/judge.py --ignore far/part_09.py --deselect=far/part_09.py::a\ngrep -qx ok ok.txt\n"
LOG = "Changes\n=======\n\n" + "".join(f"-   Entry {number} of it.\n" for number in range(200))
RELEASED = f"1.2.0 (2024-01-02)\n-----\n\n{LOG}1.1.0 (2023-01-02)\n-----\n\n- old\n"
IDLE = {
    "README.md": "# The project\n\nWords on it.\n",
    ".github/FUNDING.yml": "github: someone\n",
    ".github/dependabot.yml": "version: 2\n",
    "far/__init__.py": "",
    "CHANGES.rst": LOG,
    "LICENSE": "Do as you like.\n",
}
CHOICE = "^^^files\nlib/core.py\n^^^end\n"


@pytest.fixture
def root(project_folder: Path) -> Path:
    """A project of 25,000 tokens: lib/core.py imports lib/deep/used.py, app.py imports it, tests/test_core.py tests it."""
    files = {f"far/part_{number:02}.py": module(f"part_{number:02}", 90) for number in range(45)}
    files |= {"lib/core.py": "from lib.deep import used\n" + module("core", 90), "lib/deep/used.py": module("used", 9)}
    files |= {"app.py": "from lib.core import core\n" + module("app", 9), "lib/beside.py": module("beside", 9)}
    files |= {
        "tests/test_core.py": module("make_core", 9) + "\n\ndef test_it():\n    pass\n",
        "checks/judge.py": module("judge", 9),
        **IDLE,
    }
    for name, text in {**files, "build.sh": BUILD}.items():
        (project_folder / name).parent.mkdir(parents=True, exist_ok=True)
        (project_folder / name).write_text(text)
    (project_folder / "agent-config/query.txt").write_text("Let it be quicker.\n")
    (project_folder / "agent-config/config.toml").write_text('answer_format = "auto"\nsandbox = "off"\n')
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "more")
    return project_folder


def rolled_up(run: Run, root: Path, *arguments: str) -> str:
    done = run(root, "rollup", *arguments)
    assert done.returncode == 0, done.stderr
    return (root / ROLLUP).read_text()


def asked(root: Path) -> str:
    return (the_log(root) / "1-query.txt").read_text()


def outlined(root: Path, name: str) -> str:
    return f"\n--- {name} (outline, {(root / name).stat().st_size:,} bytes) ---\n"


def test_build_sh_and_what_it_names_are_whole_in_every_codebase(root: Path, run_code_commit: Run):
    git(root, "rm", "-q", "--cached", "build.sh")
    (root / ".git/info/exclude").write_text("build.sh\n")
    select = ["--select", *recorded(root, CHOICE)]
    texts = {
        "fresh": rolled_up(run_code_commit, root),
        "a pathspec": rolled_up(run_code_commit, root, "lib"),
        "fit": rolled_up(run_code_commit, root, "--fit", "3000"),
        "select": rolled_up(run_code_commit, root, *select),
        "the choice": asked(root),
    }
    for what, text in texts.items():
        assert f"--- build.sh ---\n{BUILD}" in text, what
        assert ("--- far/part_09.py ---\n" in text) == (what == "fresh"), "it is named as what the build leaves out"
        assert (f"--- checks/judge.py ---\n{module('judge', 9)}" in text) == (what != "a pathspec"), what


def test_of_what_is_next_to_the_chosen_files_what_they_name_has_an_outline(root: Path, run_code_commit: Run):
    used = root / "lib/deep/used.py"
    used.write_text(
        f"class Wanted:\n    def used(self): ...\n    def other_method(self): ...\n\n\n{used.read_text()}" * 2
    )
    (root / "lib/core.py").write_text(f"{(root / 'lib/core.py').read_text()}\n\nWanted().used(used(1))\n")
    (root / "lib/__init__.py").write_text("from lib.core import core\n")
    git(root, "add", "-A")
    text = rolled_up(run_code_commit, root, "--select", *recorded(root, CHOICE))
    outline = outlined(root, "lib/deep/used.py")
    assert f"{outline}class Wanted:\n  def used(self):\n  ... and 1 more\ndef used(first, *, second=2):\n" in text
    assert "other_method" not in text
    assert "--- lib/__init__.py ---\nfrom lib.core import core\n" in text, "what is short and imports it is whole"
    assert "--- lib/beside.py ---" not in text, "what only stands beside it"
    for name in ("app.py", "tests/test_core.py", "far/part_07.py"):
        assert f"{name} (outline" not in text, "what only imports it, or what it does not name"
    end = text.partition("\n--- FILES WITH NEITHER TEXT NOR OUTLINE HERE ---\n")[2]
    assert ("far/part_07.py" in end, " more: far 46, " in end) == (False, True), end
    assert asked(root).count(" (outline, ") == 40 + 1, "and its explanation"


def test_outlines_beside_the_choice_are_limited_and_the_rest_is_counted(root: Path, run_code_commit: Run):
    (root / "many").mkdir()
    for number in range(400):
        text = f"def a_long_name_{number}({', '.join(f'argument_{n}' for n in range(30))}): pass\n"
        (root / f"many/one_of_them_{number}.py").write_text(f"{text}{'    ' * 200}\n")
    imports = "".join(f"from many.one_of_them_{number} import a_long_name_{number}\n" for number in range(300))
    uses = "".join(f"a_long_name_{number}()\n" for number in range(300))
    (root / "lib/core.py").write_text(imports + module("core", 90) + uses)
    text = rolled_up(run_code_commit, root, "--select", *recorded(root, CHOICE))
    beside = sum(len(section) for section in text.split("\n--- ") if " (outline, " in section)
    assert 7_000 < beside < 9_700
    end = text.partition("\n--- FILES WITH NEITHER TEXT NOR OUTLINE HERE ---\n")[2]
    assert len(end) < 12_000
    assert " many " in end.partition("\nand ")[2]
    (root / "lib/core.py").write_text(module("core", 90))
    assert len(rolled_up(run_code_commit, root, "--select", "--fit", "4000", *recorded(root, CHOICE))) <= 4000 * 3.2


def test_the_tests_of_the_build_are_shown_by_name_and_those_of_the_task_whole(root: Path, run_code_commit: Run):
    cases = "@cases(\n" + "    'one',\n" * 30 + ")\n"
    tests = f"import os\n\n\n{cases}def test_queue_becomes_quick(case):\n    assert quick(case)\n\n\n"
    tests += "".join(
        f"def test_other_{number}():\n{'    check()' + chr(10)}" + "    x = 1\n" * 12 for number in range(40)
    )
    (root / "checks/judge.py").write_text(tests)
    (root / "agent-config/query.txt").write_text("fix(core): let the queue be quick\n")
    options = "--protect", "checks/", "--rollup", "select", *recorded(root, CHOICE, "^^^cannot\nNo.\n^^^end\n")
    run_code_commit(root, *options)
    choice, change = ((log / "1-query.txt").read_text() for log in sorted((root / "agent-config/logs").iterdir()))
    for text in (choice, change):
        shown = text.partition("--- checks/judge.py (lines ")[2].partition("\n--- ")[0]
        assert f"{cases}def test_queue_becomes_quick(case):\n    assert quick(case)\n" in shown
        assert "not shown here: test_other_0, test_other_1, " in shown
    (root / "agent-config/query.txt").write_text("Let it be\n")
    run_code_commit(root, *options)
    for log in sorted((root / "agent-config/logs").iterdir())[2:]:
        assert "def test_other_0 L" in (log / "1-query.txt").read_text(), "its names with lines"


def test_what_a_choice_was_shown_of_a_file_stays_with_other_parts_of_it(root: Path, run_code_commit: Run):
    tests = "def test_queue_becomes_quick():\n    assert quick()\n\n\n"
    tests += "".join(f"def test_other_{number}():\n{'    x = 1' + chr(10)}" * 12 for number in range(40))
    (root / "checks/judge.py").write_text(tests)
    (root / "AGENTS.md").write_text("Rule.\n" * 1_300)
    (root / "agent-config/query.txt").write_text("Let the queue be quick.\n")
    git(root, "add", "-A")
    parts = "checks/judge.py: 400-402\nAGENTS.md: 300-301\nCHANGES.rst: 150-151\n"
    text = rolled_up(run_code_commit, root, "--select", *recorded(root, CHOICE.replace("lib/core.py\n", parts)))
    assert "--- checks/judge.py (lines 1-" in asked(root)
    judge = text.partition("--- checks/judge.py (lines ")[2].partition("\n--- ")[0]
    assert (judge.startswith("1-2, 400-402 of "), "    assert quick()\n" in judge) == (True, True), judge[:200]
    assert f"--- AGENTS.md ---\n{'Rule.' + chr(10)}" in text, "what the choice was shown whole"
    assert "--- CHANGES.rst (lines 1-60, 150-151 of " in text, "what it was told comes by itself"
    parts = CHOICE.replace("lib/core.py\n", "CHANGES.rst: 30-31\n")
    text = rolled_up(run_code_commit, root, "--select", *recorded(root, parts))
    assert "--- CHANGES.rst (lines 1-1, 30-31 of " in text, "lines of it were chosen"


def test_many_short_files_and_copies_are_counted_in_a_choice_but_not_in_a_folder_that_is_asked_for(
    root: Path, run_code_commit: Run
):
    (root / "data").mkdir()
    for name in ("one", "two", "three", "four", "five", "quicker"):
        (root / f"data/{name}.json").write_text("{}\n")
    for number in range(4):
        (root / f"packs/{number}").mkdir(parents=True)
        (root / f"packs/{number}/terms.csv").write_text("x" * 500)
        (root / f"packs/{number}/own.csv").write_text("x" * (500 + number))
    git(root, "add", "-A")
    again = "^^^files\ndata/\nlib/core.py\n^^^end\n"
    rolled_up(run_code_commit, root, "--select", *recorded(root, again, CHOICE))
    first, second = ((the_log(root) / f"{number}-query.txt").read_text() for number in (1, 2))
    assert "data/quicker.json (3 bytes)" in first
    assert ("two.json" in first, "\ndata/: five.json, four.json, " in second) == (False, True)
    assert " data 5" in first
    assert ("packs/3/own.csv" in first, "terms.csv" in first, "packs/3 1" in first) == (True, False, True)


def test_what_serves_no_task_is_whole_only_where_the_task_names_it(root: Path, run_code_commit: Run):
    options = "--select", *recorded(root, CHOICE)
    for text in (rolled_up(run_code_commit, root, *options), rolled_up(run_code_commit, root, "--fit", "20000")):
        assert not [name for name in set(IDLE) - {"LICENSE"} if f"--- {name} ---\n" in text]
    assert "\nfar/__init__.py (0 bytes)\n" in text
    (root / "agent-config/query.txt").write_text("Say in README and CHANGES.rst that it is quick.\n")
    text = rolled_up(run_code_commit, root, "--fit", "20000")
    assert f"--- README.md ---\n{IDLE['README.md']}" in text
    assert f"--- CHANGES.rst ---\n{LOG}" in text


def edit(path: str, find: str, new: str) -> str:
    return f"^^^{path}\n^^^find\n{find}\n^^^replace\n{new}\n{find}\n^^^end\n"


def ranged(find: str, last: str, new: str) -> str:
    return f"^^^CHANGES.rst\n^^^find\n{find}\n^^^to\n{last}\n^^^replace\n{new}\n^^^end\n"


TO_A_CHANGE_LOG = {
    "an edit in it": (edit("CHANGES.rst", "-   Entry 0 of it.", "-   It is quick."), True),
    "half a line": (edit("CHANGES.rst", "Entry 0 of it.", "-   It is quick."), False),
    "an edit below": (edit("CHANGES.rst", "-   Entry 199 of it.", "-   It is quick."), False),
    "blanks": (edit("CHANGES.rst", "-   Entry 5 of it.   ", "-   It is quick."), True),
    "a range": (ranged("-   Entry 5 of it.", "-   Entry 9 of it.", "-   It is quick."), True),
    "a range beyond it": (ranged("-   Entry 5 of it.", "-   Entry 199 of it.", "-   It is quick."), False),
    "deleted": ("^^^CHANGES.rst\n^^^delete\n", False),
    "whole": (f"^^^CHANGES.rst\n{LOG}-   It is quick.\n^^^end\n", False),
}
"""Answers, and whether each is taken."""


@pytest.mark.parametrize(("rollup", "name"), chess_board(["select", "file"], TO_A_CHANGE_LOG))
def test_a_change_log_is_edited_where_its_head_is_shown(rollup: str, name: str, root: Path, run_code_commit: Run):
    answer, is_taken = TO_A_CHANGE_LOG[name]
    head = "".join(LOG.splitlines(keepends=True)[:60])
    if rollup == "file":
        rolled_up(run_code_commit, root, "--select", *recorded(root, CHOICE))
    answers = [answer + "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"]
    options = recorded(root, *([CHOICE] if rollup == "select" else []), *answers)
    done = run_code_commit(root, "--rollup", rollup, *options)
    assert done.returncode == 0, done.stderr
    log = max((root / "agent-config/logs").iterdir())
    assert f"\n--- CHANGES.rst (lines 1-60 of {LOG.count(chr(10))}) ---\n{head}\n" in (log / "1-query.txt").read_text()
    assert "you see these lines alone" in (log / "1-query.txt").read_text()
    assert ("It is quick." in (root / "CHANGES.rst").read_text()) == is_taken
    record = json.loads((log / "run.json").read_text())
    verdicts = [
        (attempt["verdict"], [reason["rule"] for reason in attempt["rejections"]]) for attempt in record["attempts"]
    ]
    rule = "no-match" if "\nEntry 0" in answer else "unseen"
    assert verdicts == ([("applied", [])] if is_taken else [("rejected", [rule]), ("applied", [])])
    if not is_taken and rule == "unseen":
        assert f"[codebase additions]\n--- CHANGES.rst ---\n{LOG}" in (log / "2-query.txt").read_text()


def test_the_head_of_a_change_log_that_was_chosen_goes_before_what_is_near(root: Path, run_code_commit: Run):
    (root / "sites/www").mkdir(parents=True)
    (root / "sites/www/changelog.rst").write_text(LOG)
    for number in range(60):
        (root / f"lib/near_{number}.py").write_text(module(f"near_{number}", 9) + f"def {'x' * 900}_{number}(): ...\n")
    git(root, "add", "-A")
    text = rolled_up(
        run_code_commit, root, "--select", *recorded(root, CHOICE.replace("^^^end", "sites/www/changelog.rst\n^^^end"))
    )
    assert f"--- sites/www/changelog.rst (lines 1-60 of {LOG.count(chr(10))}) ---" in text


@pytest.mark.parametrize(
    ("log", "is_promised"), [(LOG, False), (RELEASED, False), (f"Unreleased\n---\n\n{RELEASED}", True)]
)
def test_the_section_of_a_change_log_is_promised_to_a_choice_where_it_may_want_an_entry(
    log: str, *, is_promised: bool, root: Path, run_code_commit: Run
):
    (root / "CHANGES.rst").write_text(log)
    made = rolled_up(run_code_commit, root, "--select", *recorded(root, CHOICE))
    promise = "The newest section of\nCHANGES.rst comes by itself: do not name it.\n"
    assert (promise in asked(root), "\n--- CHANGES.rst (lines 1-" in made) == (is_promised, True)


def test_lines_that_are_another_by_now_were_not_shown(root: Path, run_code_commit: Run):
    rolled_up(run_code_commit, root, "--select", *recorded(root, CHOICE))
    (root / "CHANGES.rst").write_text(LOG.replace("Entry 2 of", "Entry two of"))
    options = recorded(root, edit("CHANGES.rst", "-   Entry 0 of it.", "-   It is quick."))
    done = run_code_commit(root, "--rollup", "file", "--on-rejected", "stop", *options)
    assert (done.returncode, "CHANGES.rst" in done.stderr, "quick" in (root / "CHANGES.rst").read_text()) == (
        4,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("shown", "below", "answer", "expected"),
    [
        (
            "-   Twice.   ",
            "-   Twice.",
            edit("CHANGES.rst", "-   Twice.", "-   It is quick."),
            "-   It is quick.\n-   Twice.   ",
        ),
        (
            "-   Twice.",
            "-   Twice.",
            edit("CHANGES.rst", "-   Twice.", "-   It is quick."),
            "-   It is quick.\n-   Twice.",
        ),
        (
            "-   Twice.   ",
            "-   Twice.",
            ranged("-   Entry 2 of it.", "-   Twice.", "-   It is quick."),
            "-   It is quick.",
        ),
    ],
    ids=["blanks", "the same", "a range"],
)
def test_a_find_that_is_shown_changes_nothing_that_is_not_shown(
    shown: str, below: str, answer: str, expected: str, root: Path, run_code_commit: Run
):
    log = LOG.replace("-   Entry 5 of it.", shown).replace("-   Entry 150 of it.", below)
    (root / "CHANGES.rst").write_text(log)
    answer += "^^^ok.txt\nok\n^^^end\n"
    done = run_code_commit(root, "--rollup", "select", "--on-rejected", "stop", *recorded(root, CHOICE, answer))
    assert done.returncode == 0, done.stderr
    gone = log[log.index("-   Entry 2 of it.") : log.index(shown)] if "^^^to" in answer else ""
    assert (root / "CHANGES.rst").read_text() == log.replace(f"{gone}{shown}", expected, 1)


def test_where_answers_are_whole_files_a_change_log_can_be_chosen_whole(root: Path, run_code_commit: Run):
    options = recorded(root, "^^^files\nlib/core.py\nCHANGES.rst\n^^^end\n")
    assert f"--- CHANGES.rst ---\n{LOG}" not in rolled_up(run_code_commit, root, "--select", *options)
    (root / "agent-config/config.toml").write_text('sandbox = "off"\n')
    assert f"--- CHANGES.rst ---\n{LOG}" in rolled_up(run_code_commit, root, "--select", *options)


@pytest.mark.parametrize("answer_format", ["edits", "files"])
def test_a_repair_shows_lines_of_a_large_file_around_the_error(answer_format: str, root: Path, run_code_commit: Run):
    large = "".join(f"x_{number} = 1\n" for number in range(1, 2001))
    (root / "large.py").write_text(large)
    (root / "build.sh").write_text(
        "#!/bin/sh\ngrep -q '^ok' ok.txt && grep -qx 'x_500 = 2' large.py && exit\n"
        "echo '  File \"large.py\", line 500, in f'; echo large.py:510: error; echo large.py:1500: error; exit 1\n"
    )
    (root / ROLLUP).write_text("--- ok.txt ---\nnot yet\n\n")
    (root / "agent-config/config.toml").write_text(
        f'codebase_additions = true\nsandbox = "off"\nanswer_format = "{answer_format}"\nmax_repairs = 3\n'
    )
    wrong = "^^^large.py\n^^^find\nx_900 = 1\n^^^replace\nx_900 = 2\n^^^end\n"
    right = "^^^large.py\n^^^find\nx_500 = 1\n^^^replace\nx_500 = 2\n^^^end\n"
    done = run_code_commit(root, *recorded(root, "^^^ok.txt\nok\n^^^end\n", wrong, right))
    prompt = (the_log(root) / "2-query.txt").read_text()
    part = "--- large.py (lines 470-540, 1470-1530 of 2,000) ---\nx_470 = 1\n"
    gap = "x_540 = 1\n[... lines 541-1469 are not shown here: x_541, x_542, "
    if answer_format == "files":
        assert not any(text in prompt for text in (part, gap))
        return
    assert done.returncode == 0, done.stderr
    assert all(text in prompt for text in (part, gap))
    assert "x_541 = 1" not in prompt
    attempts = json.loads((the_log(root) / "run.json").read_text())["attempts"]
    assert [reason["rule"] for attempt in attempts for reason in attempt["rejections"]] == ["unseen"]
    assert (root / "large.py").read_text() == large.replace("x_500 = 1", "x_500 = 2")


def test_a_repair_shows_the_failed_test_whole_and_the_next_ones_that_use_what_was_changed(
    root: Path, run_code_commit: Run
):
    check = "    check()\n" * 12
    tests = "import lib\n\n\n" + "".join(
        f"@cases(1)\ndef test_{number}():\n{check}    lib.{'quick' if number % 4 == 0 else 'slow'}()\n{check * 6}\n\n"
        for number in range(40)
    )
    line = tests.count("\n", 0, tests.index("def test_3():")) + 15
    (root / "tests/test_large.py").write_text(tests)
    (root / "lib/quick.py").write_text("def slow():\n    return 1\n\n\ndef quick():\n    return 1\n")
    (root / "build.sh").write_text(
        f"#!/bin/sh\ngrep -q 9 lib/quick.py && exit\necho 'tests/test_large.py:{line}: AssertionError'\nexit 1\n"
    )
    (root / ROLLUP).write_text("--- lib/quick.py ---\n" + (root / "lib/quick.py").read_text() + "\n")
    (root / "agent-config/config.toml").write_text(
        'codebase_additions = true\nsandbox = "off"\nanswer_format = "auto"\n'
    )
    answers = (
        f"^^^lib/quick.py\ndef slow():\n    return 1\n\n\ndef quick():\n    return {n}\n^^^end\n" for n in (2, 9)
    )
    done = run_code_commit(root, *recorded(root, *answers))
    assert done.returncode == 0, done.stderr
    prompt = (the_log(root) / "2-query.txt").read_text()
    shown = prompt.partition("--- tests/test_large.py (lines ")[2].partition("\n[file replacements]")[0]
    whole = [n for n in range(40) if f"@cases(1)\ndef test_{n}():\n{check}" in shown]
    assert (3 in whole, 4 in whole, 6 in whole, 8 in whole) == (True, True, False, True)
    assert len(shown) < 9_000


LARGE = "import os\n\n\n" + "".join(
    f"def f_{number}():\n    return {number}\n# {'-' * 80}\n\n" for number in range(500)
)
HIDDEN = ", ".join(f"f_{number}" for number in range(20))
PART = (
    "--- {}large.py (lines 1-1, 84-85{} of {:,}) ---\nimport os\n[... lines 2-83 are not shown here: "
    + HIDDEN
    + " ...]\n"
)


@pytest.fixture
def with_large(root: Path) -> Path:
    """The project with a long file, of which the codebase shows nothing, and a build that checks three lines of it."""
    (root / "large.py").write_text(LARGE)
    (root / "build.sh").write_text(
        "#!/bin/sh\ngrep -qx '    return 10 + 10' large.py && grep -qx '    return 9' large.py && exit\n"
        "echo large.py:44: not nine; exit 1\n"
    )
    (root / ROLLUP).write_text("--- ok.txt ---\nnot yet\n\n")
    (root / ".env").write_text("TOKEN=abc\n")
    (root / "agent-config/config.toml").write_text(
        'codebase_additions = true\nsandbox = "off"\nanswer_format = "auto"\n'
        'file_replacements = "diff"\nprompt_layout = "cached"\n'
    )
    return root


def prompts_and_rules(root: Path) -> tuple[list[str], list[list[str]]]:
    log = the_log(root)
    attempts = json.loads((log / "run.json").read_text())["attempts"]
    prompts = [(log / f"{number}-query.txt").read_text() for number in range(1, len(attempts) + 1)]
    return prompts, [[reason["rule"] for reason in attempt["rejections"]] for attempt in attempts]


def change(path: str, old: str, new: str) -> str:
    return f"^^^{path}\n^^^find\n{old}\n^^^replace\n{new}\n^^^end\n"


def test_parts_are_asked_for_changed_and_shown_as_they_are_in_the_repair(with_large: Path, run_code_commit: Run):
    answers = [
        "^^^files\nlarge.py: f_20, f_2O\n.env: TOKEN\nlarge.py:9000-9001\n^^^end\n",
        change("large.py", "    return 20", "    value = 20\n    return value"),
        change("large.py", "    value = 20\n    return value", "    return 10 + 10"),
    ]
    broken = LARGE.replace("return 10\n", "return 9.5\n")
    (with_large / "large.py").write_text(broken.replace("    return 9\n", "    return 9  # nine\n"))
    answers[2] = answers[2].replace("^^^end\n", "^^^find\n    return 9  # nine\n^^^replace\n    return 9\n^^^end\n")
    done = run_code_commit(with_large, *recorded(with_large, *answers))
    prompts, rules = prompts_and_rules(with_large)
    assert (done.returncode, rules) == (0, [[], [], []]), done.stderr
    assert (
        f"[codebase additions]\n{PART.format('', '', 2003)}def f_20():\n    return 20\n[... lines 86-2003 "
        in prompts[1]
    )
    told = "shown in part: large.py (lines 1-1, 84-85); not shown: .env (looks like a secret), large.py: f_2O: no definition"
    assert f"{told} of it; nearest: f_2, f_" in prompts[1]
    assert "large.py: lines 9000-9001: the file has 2,003\n" in prompts[1]
    assert "TOKEN=abc" not in "".join(prompts)
    replaced = prompts[2][prompts[2].index("\n[file replacements]\n") :]
    assert "--- FILE REPLACEMENT large.py (lines 1-1, 14-74, 84-86 of 2,004) ---\n" in replaced
    assert "    return 9  # nine\n" in replaced
    assert (with_large / "large.py").read_text() == broken.replace("    return 20\n", "    return 10 + 10\n")


def test_a_part_of_a_file_that_is_shown_by_its_difference_is_shown_whole(with_large: Path, run_code_commit: Run):
    (with_large / ROLLUP).write_text(f"--- large.py ---\n{LARGE}\n")
    answers = [
        change("large.py", "    return 20", "    return 21"),
        "^^^files\nlarge.py: f_3\n^^^end\n",
        change("large.py", "    return 10", "    return 10 + 10"),
    ]
    done = run_code_commit(with_large, *recorded(with_large, *answers))
    prompts, _ = prompts_and_rules(with_large)
    assert done.returncode == 0, done.stderr
    assert ["--- FILE REPLACEMENT large.py (diff) ---\n" in prompt for prompt in prompts] == [False, True, False]
    assert f"--- FILE REPLACEMENT large.py ---\n{LARGE.replace('return 20', 'return 21', 1)[:900]}" in prompts[2]


def test_lines_that_are_not_shown_cannot_be_changed_and_are_asked_for(with_large: Path, run_code_commit: Run):
    ask = "^^^files\nlarge.py: f_10\n^^^end\n"
    both = change("large.py", "    return 10", "    return 10 + 10") + "^^^ok.txt\nok\n^^^end\n"
    unseen = both.replace("^^^end\n", "^^^find\n    return 20\n^^^replace\n    return 2\n^^^end\n", 1)
    long = LARGE + "#" * 30_000
    (with_large / "large.py").write_text(long)
    done = run_code_commit(with_large, *recorded(with_large, ask, unseen, "^^^large.py\nx = 1\n^^^end\n", both))
    prompts, rules = prompts_and_rules(with_large)
    assert (done.returncode, rules) == (0, [[], ["unseen"], ["unseen"], []]), done.stderr
    assert not any("def f_20" in prompt for prompt in prompts), "a long file is not shown whole for it"
    assert (with_large / "large.py").read_text() == long.replace("    return 10\n", "    return 10 + 10\n")


def test_a_file_that_changed_since_its_part_was_shown_is_stale_and_shown_anew(with_large: Path, run_code_commit: Run):
    part = part_of(LARGE, [(1, 1), (84, 85)])
    (with_large / ROLLUP).write_text(f"--- ok.txt ---\nnot yet\n\n{part_section('large.py', part)}")
    changed = f"# new\n{LARGE}".replace("return 10\n", "return 10 + 10\n")
    (with_large / "large.py").write_text(changed)
    answer = change("large.py", "    return 20", "    return 21")
    done = run_code_commit(with_large, *recorded(with_large, answer, answer))
    prompts, rules = prompts_and_rules(with_large)
    assert (done.returncode, rules) == (0, [["stale"], []]), done.stderr
    assert PART.format("", "", 2003).replace(f": {HIDDEN}", "") in prompts[0]
    anew = "[codebase additions]\n--- large.py (lines 2-2, 85-86 of 2,004) ---\nimport os\n"
    assert anew in prompts[1]
    assert "they are shown again: redo the change" in prompts[1]
    assert (with_large / "large.py").read_text() == changed.replace("return 20\n", "return 21\n")


@pytest.mark.parametrize("size", ["long", "too large for a codebase"])
def test_a_repair_shows_only_the_lines_that_the_codebase_lacks(size: str, with_large: Path, run_code_commit: Run):
    text = LARGE + ("" if size == "long" else f"{'#' * 90}\n" * 3000)
    (with_large / "large.py").write_text(text)
    part = part_of(text, [(1, 1), (60, 61), (84, 85)])
    (with_large / ROLLUP).write_text(f"--- ok.txt ---\nnot yet\n\n{part_section('large.py', part)}")
    answers = [
        "^^^ok.txt\nok\n^^^end\n",
        change("large.py", "    return 20", "    return 21"),
        change("large.py", "    return 10", "    return 10 + 10"),
    ]
    done = run_code_commit(with_large, *recorded(with_large, *answers))
    prompts, rules = prompts_and_rules(with_large)
    assert (done.returncode, rules) == (0, [[], [], []]), done.stderr
    added = prompts[1].partition("\n[codebase additions]\n")[2].partition("\n[build.sh output]")[0]
    assert added.startswith(f"--- large.py (lines 14-59, 62-74 of {text.count(chr(10)):,}) ---\n"), added[:200]
    assert "def f_10():\n    return 10\n" in added
    assert "def f_14():" not in added
    assert "def f_20():" not in added
    now = prompts[2].partition("\n[file replacements]\n")[2]
    assert "def f_20():\n    return 21\n" in now, "the codebase no longer has these lines as they are"


@pytest.mark.slow
def test_a_file_too_large_to_be_shown_is_its_outline(with_large: Path, run_code_commit: Run):
    large = LARGE + "".join(f"x_{number} = {'1' * 90}\n" for number in range(3000))
    (with_large / "large.py").write_text(large)
    answers = ["^^^files\nlarge.py\n^^^end\n", "^^^files\nlarge.py:84-85\nlarge.py: f_10\n^^^end\n"]
    done = run_code_commit(
        with_large, *recorded(with_large, *answers, change("large.py", "    return 10", "    return 10 + 10"))
    )
    prompts, _ = prompts_and_rules(with_large)
    assert done.returncode == 0, done.stderr
    assert f"--- large.py (outline, {len(large):,} bytes) ---\nimport os\ndef f_0\ndef f_1\n" in prompts[1]
    assert "--- large.py (lines 1-1, 44-45, 84-85 of 5,003) ---\n" in prompts[2]


def test_where_answers_are_whole_files_nothing_is_shown_in_part(with_large: Path, run_code_commit: Run):
    (with_large / "agent-config/config.toml").write_text('sandbox = "off"\n')
    answers = ["^^^files\nlarge.py: f_20\n^^^end\n", "^^^cannot\nNo.\n^^^end\n"]
    run_code_commit(with_large, *recorded(with_large, *answers))
    prompts, _ = prompts_and_rules(with_large)
    assert f"--- large.py ---\n{LARGE}" in prompts[1]


def test_the_choice_is_told_what_may_change_and_where_names_stand(root: Path, run_code_commit: Run):
    (root / "agent-config/query.txt").write_text(
        "fix(second): let `part_07` and lib.used take no total\n\nTotal is `xyzzy`.\n\nCo-authored-by: A <first.of@example.org>\n"
    )
    options = "--protect", "tests/", "--allow", "lib/", "--rollup", "select"
    run_code_commit(root, *options, *recorded(root, CHOICE, "^^^cannot\nNo.\n^^^end\n"))
    prompt = (min((root / "agent-config/logs").iterdir()) / "1-query.txt").read_text()
    assert "one of these patterns (.gitignore syntax) may change: lib/\n" in prompt
    assert "match one of these are protected as well: tests/\n" in prompt
    codebase, query, mentions = (prompt.find(f"\n[{label}]\n") for label in ("codebase", "query", "mentions"))
    assert 0 < codebase < query < mentions, "what is long stands before the task"
    mentions = prompt[mentions:]
    assert "part_07: 1 line\nfar/part_07.py:4:def part_07(first, *, second=2):\n" in mentions
    assert (
        "used: 2 lines\nlib/deep/used.py:4:def used(first, *, second=2):\nlib/core.py:1:from lib.deep import used\n"
        in mentions
    )
    assert not {"xyzzy", "second:", "first:"} & set(mentions.split())
    assert len(mentions) < 4_100


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (
            "Let it be quicker to a teacher.",
            "quicker: 1 line\nlib/core.py:1:def quicker(): ...\nteacher: 3 lines, 1 shown\nlib/core.py:2:class teacher:\n",
        ),
        ("Mind `usual` things", "usual: 51 lines, 1 shown\nb.py:1:def usual():\n"),
        ("Mind `other` things", "other: 9 lines, 8 shown\na.py:1:other\nb.py:3:other\na.py:2:other\n"),
        ("Mind `usually` things", f"usually: 50 lines\na.py: {', '.join(map(str, range(59, 79)))}\n"),
        ("Mind `always_so` things", ""),
        ("Mind a garden", ""),
    ],
)
def test_mentions_of_a_name_are_those_that_tell_most(query: str, told: str):
    texts = {"a.py": "other\n" * 8 + "usual\n" * 50 + "usually\n" * 50, "b.py": "def usual():\n\nother\n"}
    texts |= {"c.py": "always_so\n" * 101, "lib/core.py": "def quicker(): ...\nclass teacher:\nteacher\nteacher\n"}
    texts["README.md"] = "Here is no garden.\n"
    files = [Section(name, 9, file_section(name, text)) for name, text in texts.items()]
    mentions = show_mentions(survey_files(files, query).mentions)
    assert mentions.startswith(told)
    assert told or not mentions


@pytest.mark.parametrize("chosen", ["core.py: core", "core.py"])
def test_lines_that_use_what_was_chosen_are_told_where_their_files_are_not_shown(
    chosen: str, root: Path, run_code_commit: Run
):
    answer = CHOICE.replace("core.py", chosen)
    made = rolled_up(run_code_commit, root, "--select", *recorded(root, answer))
    told = "what was chosen, in files not shown:\n  core: 1 line\n  app.py:1:from lib.core import core\n"
    assert ("--- lib/core.py ---\n" in made, told in made) == (True, True)


def test_it_is_told_truly_what_becomes_of_a_file_that_was_not_chosen(root: Path, run_code_commit: Run):
    rolled_up(run_code_commit, root, "--select", *recorded(root, CHOICE))
    words = " ".join(asked(root).split())
    assert "cannot be changed:" not in words
    assert (
        "One that is missing has to be asked for before it can be changed, which uses up one of few attempts" in words
    )


def test_pages_of_our_own_are_left_out(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, "^^^ok.txt\nok\n^^^end\n")).returncode == 0
    assert run_code_commit(root, "log", "--html", "page.html").returncode == 0
    (root / "other.html").write_text("<!doctype html>\n<title>Mine</title>\n")
    text = rolled_up(run_code_commit, root)
    assert "--- page.html ---" not in text
    assert "\npage of code-commit: page.html\n" in text
    assert "--- other.html ---" in text


@pytest.mark.parametrize(
    "heads", [("def {}(a):", "x.py"), ("pub fn {}(a: u8) {{", "x.rs"), ("func (r *R) {}() {{", "x.go")]
)
def test_a_definition_that_the_task_names_goes_before_files_that_share_words(heads, root: Path, run_code_commit: Run):
    head, name = heads
    words = "# make it accept a flag, as click does: accept the flag that click makes\n" * 30
    for number in range(8):
        (root / f"flags_{number}.py").write_text(f"{words}click.echo(1)\n")
    (root / name).write_text(f"{head.format('echo')}\n" + "    return 1\n" * 300)
    (root / "agent-config/query.txt").write_text("Make click.echo accept a flag\n")
    text = rolled_up(run_code_commit, root, "--fit", "3000")
    assert f"--- {name} ---\n" in text


def test_a_fifth_is_kept_for_outlines_and_licences_come_last(root: Path, run_code_commit: Run):
    (root / "huge.py").write_text("".join(f"def make_{number}(accept, flag): pass\n" for number in range(2000)))
    (root / "LICENSE").write_text("make it accept a flag\n" * 600)
    (root / "agent-config/query.txt").write_text("Make it accept a flag\n")
    text = rolled_up(run_code_commit, root, "--fit", "8000")
    for number in range(38):
        assert f"--- far/part_{number:02}.py " in text, "a long outline takes a tenth of the room"
    assert "--- LICENSE ---" not in text


@pytest.mark.slow
def test_nothing_that_a_query_or_a_file_says_takes_minutes():
    """What took from 5 to 157 seconds each, where patterns tried again at every character."""
    files = [Section(f"{number}.py", 9, file_section(f"{number}.py", "import x\n")) for number in range(100)]
    files.append(Section("a.py", 9, file_section("a.py", "func (" * 16_000)))
    many = [Section(f"{number}/x.py", 9, file_section(f"{number}/x.py", "import x\n")) for number in range(3_000)]
    began = time.process_time()
    for query in (
        "- \n" * 40_000,
        "A" * 80_000,
        "A-by" * 20_000,
        "." * 20_000,
        "x" * 80_000,
        "`name` " + "a@" * 40_000,
    ):
        show_mentions((survey := survey_files(files, query)).mentions)
        rank(survey)
    survey_files(files, "`name`")
    for text in ("name(" * 16_000 + ";", "a name({" * 9_000 + ";", "image/" * 16_000, "// " * 30_000 + "x\n})();\n"):
        survey_files([Section("a.js", 9, file_section("a.js", text)), *files], "`name` of `x`")
    for text in ("<!--" * 40_000, "# 1.2 " * 20_000, "```\n" * 30_001, "1.2 " * 30_000, "**a" * 30_000):
        heads_of_logs([Section("NEWS", 9, file_section("NEWS", text))])
    brief("# x" + " " * 80_000 + "y")
    find_near(many, ["1/x.py"])
    assert time.process_time() - began < 20
