"""`rollup --select`: an LLM chooses which files are whole. What it is asked, what is made of its answer, what it costs,
and that nothing of it is paid for twice.
"""

import json
import signal
import time
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import Run, Start, git, module, recorded, wait_for
from fake_server import FakeServer, Fault

from code_commit import NotSetUpError, rollup
from code_commit.api import run
from code_commit.check.plan import RunInputs
from code_commit.codebase.chooser import Shape, _read_list
from code_commit.codebase.select import CodebaseRequest
from code_commit.commands.choosing import FileChooser
from code_commit.errors import LLMError
from code_commit.exchange import Response
from code_commit.llm.models import choose_model
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.runs.log import open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunEntry, TreeBefore
from code_commit.settings import Settings

ROLLUP = "agent-config/codeRollup.txt"
KEY = "test-key-0123456789"
RIGHT = "Said ok.\n^^^ok.txt\nok\n^^^end\n"
CHOICE = "ok.txt is read by build.sh.\n^^^files\nok.txt\nsrc/part_07.py\n^^^end\n"
LONG = "not yet\n" + "".join(f"{number}\n" for number in range(100))


@pytest.fixture
def root(project_folder: Path) -> Path:
    """A project of 25,000 tokens; ok.txt is no longer so small that it would be whole in any case."""
    (project_folder / "src").mkdir()
    for number in range(40):
        (project_folder / f"src/part_{number:02}.py").write_text(module(f"part_{number:02}", 105))
    (project_folder / "AGENTS.md").write_text("Use tabs.\n")
    (project_folder / "ok.txt").write_text(LONG)
    (project_folder / "secret.pem").write_text("x\n")
    (project_folder / "agent-config/openai-key.txt").write_text(KEY)
    (project_folder / "agent-config/openai-key.txt").chmod(0o600)
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "parts")
    return project_folder


def records(root: Path) -> list[dict]:
    return [json.loads(file.read_text()) for file in sorted((root / "agent-config/logs").glob("*/run.json"))]


def of(root: Path, record: dict, name: str) -> str:
    return (root / record["log_dir"] / name).read_text()


def test_the_chosen_files_are_whole_the_others_outlines(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "rollup", "--select", "--json", *recorded(root, CHOICE))
    assert done.returncode == 0, done.stderr
    text, result = (root / ROLLUP).read_text(), json.loads(done.stdout)
    for name in ("ok.txt", "src/part_07.py", "AGENTS.md"):
        assert f"--- {name} ---\n{(root / name).read_text()}" in text
    size = f"{(root / 'src/part_08.py').stat().st_size:,}"
    assert "src/part_08.py (outline" not in text, "nothing that was chosen imports it"
    assert f" part_08.py ({size}), " in text.partition("\nsrc/: ")[2]
    assert "\nwhy these files were chosen:\n  ok.txt is read by build.sh.\n" in text
    assert (result["files"], len(result["outlines"])) == (
        4,
        0,
    )  # with AGENTS.md and build.sh
    assert "  ok.txt is read by build.sh.\n2 files chosen: ok.txt, src/part_07.py\n" in done.stderr
    (record,) = records(root)
    assert (record["command"], record["status"], record["chosen"]) == (
        "rollup",
        "success",
        ["ok.txt", "src/part_07.py"],
    )
    asked = of(root, record, "1-query.txt")
    assert "[codebase]\n--- AGENTS.md ---\nUse tabs.\n" in asked
    assert "\n\n[query]\nMake ok.txt say ok.\n\n[answer]\nChoose the files for the task in [query] now" in asked
    assert asked.endswith(
        "do the task:\n\nMake ok.txt say ok.\n\nSay why in a few sentences, then send the list: one file a line, its"
        " path\nspelled as in [codebase], between a line ^^^files and a line ^^^end.\n\n"
    )
    assert "src/core.py: Command.get_help" not in asked, "answers are whole files"
    assert f"--- src/part_07.py (outline, {size} bytes) ---\ndef part_07\n\n" in asked
    assert "looks like a secret: secret.pem" in asked
    assert "total" not in asked


@pytest.mark.slow
def test_a_run_asks_first_and_takes_the_next_recorded_response(root: Path, run_code_commit: Run):
    options = ["--rollup", "select", *recorded(root, CHOICE, RIGHT)]
    (root / ROLLUP).unlink()
    (root / "agent-config/system-prompts").mkdir()
    (root / "agent-config/system-prompts/file_selection.txt").write_text("Choose.\n")
    done = run_code_commit(root, "-m", "Make ok.txt say ok, for short.", *options)
    assert done.returncode == 0, done.stderr
    choice, made = records(root)
    assert (made["command"], made["choice"]["run"], made["choice"]["cost_usd"]) == ("run", choice["run"], 0.0)
    assert made["chosen"] == choice["chosen"] == ["ok.txt", "src/part_07.py"]
    assert (choice["query"], made["query"]) == ("Make ok.txt say ok, for short.",) * 2
    assert f"[codebase]\n{(root / ROLLUP).read_text()}" in of(root, made, "1-query.txt")
    assert of(root, choice, "1-query.txt").startswith("Choose.\n[codebase]\n")
    listed = run_code_commit(root, "log").stdout
    assert "(rollup) Make ok.txt say ok" in listed
    called = f"chosen by {choice['run']}: 1 call of {made['choice']['model']}"
    assert called in run_code_commit(root, "log", "latest").stdout
    shown = run_code_commit(root, "log", choice["run"]).stdout
    assert "> ok.txt is read by build.sh." in shown
    assert "2 files chosen: ok.txt, src/part_07.py" in shown
    for form in ("--markdown", "--html=-"):
        page = run_code_commit(root, "log", choice["run"], form).stdout
        assert "Files chosen" in page
        assert "src/part_07.py" in page


@pytest.mark.slow
def test_a_choice_is_passed_over_as_one_that_changed_nothing(root: Path, run_code_commit: Run):
    options = recorded(root, RIGHT)
    assert run_code_commit(root, *options).returncode == 0
    recorded(root, CHOICE)
    assert run_code_commit(root, "rollup", "--select", *options).returncode == 0
    made, choice = records(root)
    assert (made["command"], choice["command"]) == ("run", "rollup")
    assert f"run       {made['run']}" in run_code_commit(root, "log", "-1").stdout
    assert "+ok\n" in run_code_commit(root, "diff").stdout
    assert run_code_commit(root, "log", "-2").returncode == 2
    assert json.loads(run_code_commit(root, "log", "-1", "--json").stdout)["run"] == made["run"]
    assert run_code_commit(root, "undo").returncode == 0
    assert (root / "ok.txt").read_text() == LONG


TIDY = ["ok.txt", "src/part_07.py"]


def shape(files: Collection[str]) -> Shape:
    return Shape(files, lambda _: "", lambda _: ())


@pytest.mark.parametrize(
    "text",
    [
        "^^^files\nok.txt\nsrc/part_07.py\n^^^end\n",
        "Why.\n\n  ^^^ files \n\n- ./ok.txt\n* `src/part_07.py`\n  ok.txt\n\n^^^end\nAnd so on.",
        '^^^files\r\n1. ok.txt,\r\n2) "src/part_07.py"\r\n^^^end',
        "<think>\n^^^files\nAGENTS.md\n^^^end\n</think>\n^^^files\n--- ok.txt ---\n--- src/part_07.py (outline, 9,876 bytes) ---\n^^^end\n",
        "Perhaps\n^^^files\nAGENTS.md\n^^^end\n</Thinking>\n^^^FILES:\nok.txt\nsrc/part_07.py\n^^^end\n",
        "<think>\nok.txt\n</think>^^^files\nok.txt\nsrc/part_07.py\n^^^end\nAs `</think>` says.\n",
        "^^^files\nok.txt\n^^^end\nand\n^^^^files\nsrc/part_07.py\n^^^^end\n",
    ],
)
def test_a_list_may_be_dressed(text: str):
    answer = _read_list(Response(text, "stop"), shape(["ok.txt", "src/part_07.py", "- odd"]))
    assert (list(answer.requests), answer.reasons, answer.folders) == (TIDY, [], [])


@pytest.mark.parametrize(
    ("text", "incomplete", "rule"),
    [
        ("ok.txt", None, "no-list"),
        ("^^^files\nok.txt\n", None, "no-list"),
        ("^^^files\nok.txt\n^^^end\n", "cut off at the output limit of 10 tokens", "incomplete"),
    ],
)
def test_what_is_no_list(text: str, incomplete: str | None, rule: str):
    answer = _read_list(Response(text, "stop", incomplete), shape(["ok.txt"]))
    (reason,) = answer.reasons
    assert (answer.requests, answer.has_list, reason.rule) == ({}, False, rule)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["^^^files\n", " ", "^^^files\n- x\n^^^end\n", "a - b (outline) "])
def test_an_llm_that_repeats_itself_costs_time_in_proportion(text: str, whole: bool):  # noqa: FBT001 - a fixture
    part = 1 if whole else 5
    numbers = range(2500 // part)
    files = {f"src/{word}/part_{number}.py" for number in numbers for word in ("one", "two", "three", "four")}
    begun = time.process_time()
    _read_list(Response("^^^files\n" + text * (1_000_000 // part // len(text)) + "\n^^^end\n", "stop"), shape(files))
    unknown = "".join(f"src/one/prt_{number}.py\n" for number in range(20_000 // part))
    assert len(_read_list(Response(f"^^^files\n{unknown}^^^end\n", "stop"), shape(files)).reasons) == 20
    assert time.process_time() - begun < 10 / part


WRONG = "^^^files\nok.txt\npart_07.py\nsrc/part_4.py\nsrc/\n^^^end\n"


def test_files_that_are_not_there_are_told_once_then_the_others_are_taken(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "rollup", "--select", *recorded(root, WRONG, CHOICE))
    assert done.returncode == 0, done.stderr
    (record,) = records(root)
    second = of(root, record, "2-query.txt")
    assert "(outline, " in second.partition("[codebase]\n")[2], "the folder is shown"
    told = second.partition("[rejected response]\n")[2]
    assert "- part_07.py: no file of [codebase] that can be chosen; did you mean 'src/part_07.py'?\n" in told
    assert "- src/part_4.py: no file of [codebase] that can be chosen; did you mean 'src/part_" in told
    assert "Taken from your last list: ok.txt." in told
    assert [attempt["verdict"] for attempt in record["attempts"]] == ["rejected", "chosen"]
    recorded(root, WRONG, WRONG)
    done = run_code_commit(root, "rollup", "--select", *recorded(root, WRONG, WRONG))
    assert done.returncode == 0, done.stderr
    assert "warning: ignored, not in the codebase: part_07.py, src, src/part_4.py\n1 file chosen: ok.txt" in (
        done.stderr
    )
    assert [attempt["verdict"] for attempt in records(root)[-1]["attempts"]] == ["rejected", "chosen"]


@pytest.mark.slow
def test_definitions_folders_and_excluded_files_can_be_chosen(root: Path, run_code_commit: Run):
    text = "import os\n\n" + "".join(f"def f_{number}(x):\n    return x + {number}\n\n" for number in range(9000))
    (root / "large.py").write_text(text)
    (root / "notes").mkdir()
    (root / "notes/aim.md").write_text("Be short.\n" * 50)
    (root / "notes/key.md").write_text(f"AKIA{'Q7' * 8}\n")
    (root / "agent-config/config.toml").write_text('answer_format = "auto"\nrollup_exclude = ["notes/"]\n')
    git(root, "add", "-A")
    first = "Why.\n^^^files\nlarge.py: f_8\nlarge.py: f_9999\nnotes/aim.md\nnotes/key.md\nsrc/\n^^^end\n"
    done = run_code_commit(root, "rollup", "--select", *recorded(root, first, "^^^files\nsrc/part_07.py\n^^^end\n"))
    assert done.returncode == 0, done.stderr
    (record,) = records(root)
    first, second = (of(root, record, f"{number}-query.txt") for number in (1, 2))
    assert "src/core.py: Command.get_help" in first, "answers may be edits"
    assert "--- large.py (outline, " in first
    assert "\n- large.py: f_9999: no definition of it; nearest: f_9" in second
    assert second.count(" (outline, ") == 41, "the folder's files, and what an outline is"
    made = (root / ROLLUP).read_text()
    assert f"--- large.py (lines 1-1, 27-28 of {text.count(chr(10)):,}) ---\nimport os\n" in made
    assert f"--- notes/aim.md ---\n{'Be short.' + chr(10)}" in made
    assert ("AKIA" in made, "--- src/part_07.py ---\n" in made) == (False, True)
    assert record["chosen"] == ["large.py", "notes/aim.md", "notes/key.md", "src/part_07.py"]


def test_conventions_are_whole_if_they_are_short_else_their_headings(root: Path, run_code_commit: Run):
    (root / ".cursor/rules").mkdir(parents=True)
    (root / ".cursor/rules/style.md").write_text("# Style\n\nShort names.\n")
    (root / "CLAUDE.md").write_text("# Rules\n\n" + "Write less.\n" * 800)
    git(root, "add", "-A")
    assert run_code_commit(root, "rollup", "--select", *recorded(root, CHOICE)).returncode == 0
    for text in ((root / ROLLUP).read_text(), of(root, records(root)[0], "1-query.txt")):
        assert "--- .cursor/rules/style.md ---\n# Style\n\nShort names.\n" in text
        assert "--- CLAUDE.md (outline, 9,609 bytes) ---\n# Rules\n" in text


def test_a_choice_is_shown_no_more_than_its_tokens(root: Path, run_code_commit: Run):
    (root / "agent-config/config.toml").write_text("choice_tokens = 1_500\n")
    sizes = []
    for copies in (1, 10):
        for name in PARTS:
            for copy in range(copies):
                (root / f"src/{copy}").mkdir(exist_ok=True)
                (root / f"src/{copy}/{Path(name).name}").write_text((root / name).read_text())
        assert run_code_commit(root, "rollup", "--select", *recorded(root, CHOICE)).returncode == 0
        asked = of(root, records(root)[-1], "1-query.txt")
        sizes.append(len(asked.partition("[codebase]\n")[2]))
        assert " more: src" in asked
    assert all(3_000 < size < 1_500 * 3.2 for size in sizes), sizes


def test_tests_that_may_not_change_stand_by_name(root: Path, run_code_commit: Run):
    (root / "tests").mkdir()
    (root / "tests/test_it.py").write_text(module("test_it", 30))
    options = ["--rollup", "select", "--protect", "tests/", *recorded(root, CHOICE, RIGHT)]
    assert run_code_commit(root, *options).returncode == 0
    asked = of(root, records(root)[0], "1-query.txt")
    assert ("tests/test_it.py (outline" in asked, "\ntests/test_it.py (" in asked) == (False, True)


@pytest.mark.parametrize("second", ["none", "^^^files\nno.txt\n^^^end\n"])
def test_an_answer_without_a_list_is_told_once_then_it_is_over(second: str, root: Path, run_code_commit: Run):
    (root / ROLLUP).write_text("old")
    done = run_code_commit(root, "--rollup", "select", *recorded(root, "I cannot.", second, RIGHT))
    assert done.returncode == 4, done.stderr
    assert "try another --select-model, or code-commit rollup --fit without one" in done.stderr
    (record,) = records(root)
    assert (record["status"], (root / ROLLUP).read_text()) == ("rejected", "old")
    done = run_code_commit(root, "rollup", "--select", *recorded(root, WRONG, "none"))
    taken = "warning: the last answer has no list: the files of the one before it are taken\n1 file chosen: ok.txt\n"
    assert (done.returncode, taken in done.stderr) == (0, True), done.stderr


def test_nothing_need_be_chosen(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "rollup", "--select", *recorded(root, "All new.\n^^^files\n\n^^^end\n"))
    assert (done.returncode, "0 files chosen\n" in done.stderr) == (0, True), done.stderr
    assert "--- AGENTS.md ---" in (root / ROLLUP).read_text()


def test_a_small_codebase_is_whole_and_nobody_is_asked(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, "--rollup", "select", *recorded(project_folder, RIGHT))
    assert done.returncode == 0, done.stderr
    assert "a small codebase (about 24 tokens): all of it is included, and no LLM has to choose" in done.stderr
    assert [record["command"] for record in records(project_folder)] == ["run"]


@pytest.mark.slow
def test_what_was_chosen_is_made_to_fit_too(root: Path, run_code_commit: Run):
    names = [f"src/part_{number:02}.py" for number in range(40)]
    answer = "\n".join(["^^^files", *names, "^^^end\n"])
    done = run_code_commit(root, "rollup", "--select", "--fit", "6000", *recorded(root, answer))
    assert done.returncode == 0, done.stderr
    text = (root / ROLLUP).read_text()
    assert 0.75 * 6000 < len(text) / 3.2 <= 6000
    assert "--- ok.txt ---" in text, "build.sh names it"
    (root / "agent-config/config.toml").write_text("context_window = 9000\n")
    assert run_code_commit(root, "rollup", "--select", *recorded(root, answer)).returncode == 0
    assert len((root / ROLLUP).read_text()) / 3.2 < 4500


def test_what_does_not_fit_of_the_outlines_is_named(root: Path, run_code_commit: Run):
    (root / "agent-config/config.toml").write_text("context_window = 4500\n")
    for number in range(40):
        (root / f"src/part_{number:02}.py").write_text("".join(module(f"{number}_{part}", 9) for part in range(10)))
    assert run_code_commit(root, "rollup", "--select", *recorded(root, CHOICE)).returncode == 0
    asked = of(root, records(root)[0], "1-query.txt")
    assert len(asked) / 3.2 < 4500
    assert "\nsrc/: part_" in asked
    assert " more: src " in asked


def test_a_file_that_was_not_chosen_cannot_be_changed_unseen(root: Path, run_code_commit: Run):
    options = ["--rollup", "select", "--max-repairs", "0"]
    done = run_code_commit(root, *options, *recorded(root, CHOICE, "^^^src/part_08.py\nx = 1\n^^^end\n"))
    assert (done.returncode, "at most an outline of it" in done.stderr) == (4, True), done.stderr
    assert (root / "src/part_08.py").read_text() == module("part_08", 105)


def test_a_repair_that_does_not_fit_keeps_of_the_chosen_files_what_it_can(root: Path, run_code_commit: Run):
    (root / "agent-config/config.toml").write_text('rollup = "select"\ncontext_window = 30_000\n')
    (root / "build.sh").write_text(
        "#!/bin/sh\ngrep -qx ok ok.txt && exit\nfor n in $(seq 2400); do echo line $n of it; done\nfalse\n"
    )
    chosen = ["ok.txt", *(f"src/part_{number:02}.py" for number in range(3, 36, 4))]
    wrong = "^^^ok.txt\nno\n^^^end\n"
    answers = "\n".join(["^^^files", *chosen, "^^^end"]), wrong, RIGHT
    done = run_code_commit(root, *recorded(root, *answers))
    assert done.returncode == 0, done.stderr
    assert "a prompt did not fit: its codebase was made to fit into" in done.stderr
    prompts = [of(root, records(root)[-1], f"{number}-query.txt") for number in (1, 2)]
    first, second = ([name for name in PARTS if f"--- {name} ---\n" in prompt] for prompt in prompts)
    assert first == chosen[1:]
    assert set() < set(second) < set(chosen)


PARTS = [f"src/part_{number:02}.py" for number in range(40)]


@pytest.mark.parametrize("command", [["--rollup", "select"], ["rollup", "--select"]])
def test_nothing_is_sent_before_all_is_there(command: list[str], root: Path, run_code_commit: Run):
    with FakeServer(answers=[CHOICE, RIGHT]) as server:
        base = ["--model", "openai", "--base-url", server.base_url("openai")]
        (root / "build.sh").rename(root / "build")
        done = run_code_commit(root, *command, *base)
        assert (done.returncode, "build.sh is missing" in done.stderr) == (2, True), done.stderr
        (root / "build").rename(root / "build.sh")
        done = run_code_commit(root, *command, *base, "--select-model", "anthropic")
        assert (done.returncode, "no key for anthropic" in done.stderr) == (2, True), done.stderr
        (root / "agent-config/query.txt").write_text(f"Use {KEY}.\n")
        done = run_code_commit(root, *command, *base)
        assert (done.returncode, "the prompt would contain an API key" in done.stderr) == (2, True), done.stderr
        (root / "agent-config/openai-key.txt").unlink()
        done = run_code_commit(root, *command, *base)
        assert (done.returncode, "no key for openai" in done.stderr) == (2, True), done.stderr
        assert server.requests == []
    assert not (root / "agent-config/logs").exists()


@pytest.mark.parametrize("command", [["--rollup", "select"], ["rollup", "--select"]])
def test_a_key_that_is_refused_and_a_cap_end_it_as_a_run(command: list[str], root: Path, run_code_commit: Run):
    body = {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}
    with FakeServer(answers=[CHOICE], faults=[Fault("status", status=401, body=body)]) as server:
        base = ["--model", "openai:gpt-6.2-sol", "--base-url", server.base_url("openai")]
        done = run_code_commit(root, *command, *base)
        assert (done.returncode, "Incorrect API key" in done.stderr) == (3, True), done.stderr
        done = run_code_commit(root, *command, *base, "--max-cost", "0.0001")
        assert (done.returncode, "--max-cost 0.0001 is too low for" in done.stderr) == (2, True), done.stderr
        assert len(server.requests) == 1
    assert [record["status"] for record in records(root)] == ["llm_error"]


@pytest.mark.slow
def test_a_busy_server_is_asked_again_and_the_cost_counts_in_the_run(root: Path, run_code_commit: Run):
    (root / "agent-config/config.toml").write_text(
        'rollup = "select"\nmax_output_tokens = 100\n[prices."gpt-6.2-sol"]\ninput = 10.0\noutput = 100.0\n'
    )
    busy = Fault("status", status=429, headers={"retry-after-ms": "10"}, body={"error": {"message": "slow down"}})
    with FakeServer(answers=[CHOICE, RIGHT], faults=[busy]) as server:
        base = ["--model", "openai:gpt-6.2-sol", "--base-url", server.base_url("openai")]
        done = run_code_commit(root, *base)
        assert done.returncode == 0, done.stderr
    choice, made = records(root)
    assert len(choice["attempts"][0]["retries"]) == 1
    own = made["attempts"][0]["cost_usd"]
    assert made["choice"]["cost_usd"] == choice["totals"]["cost_usd"]
    assert made["totals"]["cost_usd"] == pytest.approx(own + choice["totals"]["cost_usd"])
    totals, calls = made["totals"], [made["attempts"][0]["seconds"], made["choice"]["seconds"]]
    assert (totals["llm_seconds"], totals["seconds"] >= sum(calls) > calls[0]) == (pytest.approx(sum(calls)), True)
    cost = choice["totals"]["cost_usd"]
    assert f"${own + cost:.4f} (${cost:.4f} of it for the choice of files)." in done.stderr
    (stats,) = json.loads(run_code_commit(root, "log", "--stats", "--json").stdout)
    assert stats["cost_usd"]["total"] == pytest.approx(2 * cost)
    git(root, "checkout", "-q", ".")
    prompts = [len(of(root, record, "1-query.txt").encode()) * 10 / 1e6 + 100 * 100 / 1e6 for record in (choice, made)]
    limit = max(prompts) + cost / 2  # enough for each of the calls, not for the second after the first
    with FakeServer(answers=[CHOICE, RIGHT]) as server:
        base[-1] = server.base_url("openai")
        done = run_code_commit(root, *base, "--max-cost", str(limit))
        assert (done.returncode, f"${cost:.4f} so far" in done.stderr) == (3, True), done.stderr
        done = run_code_commit(root, "resume", "--max-cost", str(limit))
        assert (done.returncode, f"${cost:.4f} so far" in done.stderr) == (3, True), done.stderr


@pytest.mark.slow
def test_another_model_chooses(root: Path, run_code_commit: Run):
    (root / "agent-config/anthropic-key.txt").write_text(KEY)
    (root / "agent-config/anthropic-key.txt").chmod(0o600)
    other = root / "agent-config/other"
    other.mkdir()
    (other / "1-response.txt").write_text(CHOICE)
    options = ["--rollup", "select", "--select-model", "replay:agent-config/other", *recorded(root, RIGHT)]
    done = run_code_commit(root, *options)
    assert done.returncode == 0, done.stderr
    assert [record["model"] for record in records(root)] == [
        "replay:agent-config/other",
        "replay:agent-config/recorded",
    ]
    assert "select model" in run_code_commit(root, "check", *options).stdout
    done = run_code_commit(root, "check", *options, "--select-model", "nobody:x")
    assert (done.returncode, "there is no provider 'nobody'" in done.stdout) == (2, True), done.stdout


STEPS = ["started", "asking", "responded", "rejected", "chosen", "finished", "begun"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["--rollup", "select", "-m", "Make ok.txt say ok, I say."], ["rollup", "--select"]]
)
@pytest.mark.parametrize("step", STEPS)
def test_killed_after_each_step_it_is_resumed_and_nothing_is_asked_twice(
    step: str,
    command: list[str],
    root: Path,
    run_code_commit: Run,
    start_code_commit: Start,
    whole: bool,  # noqa: FBT001 - a fixture
):
    if step == "begun" and command[0] == "rollup":
        pytest.skip("no run follows")
    if step in {"started", "asking", "rejected", "chosen"} and command[0] == "rollup" and not whole:
        pytest.skip("the run's choice is killed there; --whole kills that of rollup too")
    with FakeServer(answers=[WRONG, CHOICE, RIGHT]) as server:
        program = (
            "import os; from code_commit.runs.progress import Progress\n"
            "def step(self, record, event):\n"
            "    event = 'begun' if (record.command, event) == ('run', 'started') else event\n"
            f"    if event == {step!r}: os.kill(os.getpid(), 9)\n"
            "Progress.step = step\n"
        )
        base = ["--model", "openai", "--base-url", server.base_url("openai")]
        assert start_code_commit(root, *command, *base, before=program).wait(180) == -signal.SIGKILL
        done = run_code_commit(root, "resume")
        is_over = command[0] == "rollup" and step == "finished"
        assert done.returncode == (2 if is_over else 0), done.stderr
        asked = [request for request in server.requests if request.method == "POST"]
        assert len(asked) == (2 if command[0] == "rollup" else 3)
    assert "--- src/part_07.py ---\n" in (root / ROLLUP).read_text()
    last = records(root)[-1]
    if command[0] != "rollup":
        assert (root / "ok.txt").read_text() == "ok\n"
        assert "[query]\nMake ok.txt say ok, I say.\n" in of(root, last, "1-query.txt")
        assert last["choice"]["calls"] == 2


@pytest.mark.slow
def test_a_job_that_is_on_its_way_is_fetched(root: Path, run_code_commit: Run, start_code_commit: Start):
    with FakeServer(answers=[CHOICE, RIGHT], polls=10**6) as server:
        base = ["--model", "openai", "--base-url", server.base_url("openai"), "--rollup", "select"]
        process = start_code_commit(root, *base)
        wait_for(lambda: any("/responses/" in request.path for request in server.requests))
        process.send_signal(signal.SIGTERM)
        assert process.wait(180) == 128 + signal.SIGTERM
        server.polls = 1
        done = run_code_commit(root, "resume")
        assert done.returncode == 0, done.stderr
        created = sum(request.method == "POST" and request.path.endswith("/responses") for request in server.requests)
        assert created == 2


def test_python_may_call_it(root: Path, monkeypatch: pytest.MonkeyPatch):
    options = recorded(root, CHOICE, RIGHT)
    assert list(rollup(root, select=True, model=options[1]).sizes)[-1] == "src/part_07.py"
    record = run(root, rollup="select", model=options[1])
    assert (record.exit_code, record.choice is not None) == (0, True)
    with pytest.raises(LLMError, match="no recorded response"):
        rollup(root, select=True, model=recorded(root, "nothing")[1].replace("recorded", "logs"))
    with pytest.raises(NotSetUpError, match="there is no folder"):
        rollup(root, select=True, model="replay:none")


def test_a_clone_needs_nothing_but_the_variables(root: Path, run_code_commit: Run):
    folder = recorded(root, CHOICE, RIGHT)[1].replace("agent-config", str(root / "agent-config"))
    git(root.parent, "clone", "-q", str(root), "clone")
    environment = {"CODE_COMMIT_ROLLUP": "select", "CODE_COMMIT_MODEL": folder}
    done = run_code_commit(root.parent / "clone", "-m", "Make ok.txt say ok.", env=environment)
    assert done.returncode == 0, done.stderr
    assert (root.parent / "clone/agent-config").stat().st_mode & 0o777 == 0o700


def test_two_at_once_pay_once(root: Path, run_code_commit: Run, start_code_commit: Start):
    with FakeServer(answers=[CHOICE, RIGHT], polls=10**6) as server:
        base = ["--model", "openai", "--base-url", server.base_url("openai"), "--rollup", "select"]
        process = start_code_commit(root, *base)
        wait_for(lambda: any("/responses/" in request.path for request in server.requests))
        done = run_code_commit(root, *base)
        assert (done.returncode, "another code-commit is running here" in done.stderr) == (2, True), done.stderr
        server.polls = 1
        assert process.wait(180) == 0


@pytest.mark.slow
def test_a_choice_before_a_run_that_cannot_begin_is_no_success(root: Path, run_code_commit: Run):
    (root / "agent-config/system-prompts").mkdir()
    own = root / "agent-config/system-prompts/initial_query.txt"
    own.write_text(f"My key is {KEY}.\n")
    with FakeServer(answers=[CHOICE, CHOICE, RIGHT]) as server:
        base = ["--model", "openai", "--base-url", server.base_url("openai"), "--rollup", "select"]
        done = run_code_commit(root, "--json", *base)
        printed = json.loads(done.stdout)
        assert (done.returncode, printed["exit_code"], printed["status"], printed["run"]) == (3, 3, "llm_error", "")
        assert "API key" in printed["message"]
        assert "The files are already chosen: fix that, then code-commit resume" in done.stderr
        with pytest.raises(LLMError, match="API key"):
            run(root, model="openai", base_url=server.base_url("openai"), rollup="select")
        own.unlink()
        posts = len(server.requests)
        done = run_code_commit(root, "resume", "--json")
        assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (0, 0), done.stderr
        assert sum(request.method == "POST" for request in server.requests[posts:]) == 1


@pytest.mark.parametrize(("command", "is_main"), [("run", True), ("repair", True), ("rollup", False)])
@pytest.mark.parametrize("has_begun", [False, True])
def test_the_log_of_a_choice_has_all_that_goes_on_with_it(command, is_main, has_begun, project_folder):
    project, progress = find_project(project_folder), Progress(Redactor([]), quiet=True)
    begun = open_run_log(project, "run", Settings(), progress) if has_begun else None
    of_run, chooser = (SimpleNamespace(choice=choose_model(name)) for name in ("chat:m", "chat:chooser"))
    tree, inputs = SimpleNamespace(before=TreeBefore("c", clean=True)), RunInputs(command=command)
    plan = SimpleNamespace(
        project=project, settings=Settings(keep_runs=7), inputs=inputs, query="\nDo it.\nNow.", tree=tree, llm=of_run
    )
    request = CodebaseRequest(pathspecs=("src",), select=True, query="Do it.", output="printed")
    log = FileChooser(plan, progress, begun=begun)._open_log(chooser, request)
    assert (log is begun, log.record.command, log.record.model) == (has_begun, "rollup", "chat:chooser")
    assert (log.record.query, log.record.tree, log.record.options["model"]) == ("Do it.", tree.before, "chat:m")
    kept = request._replace(query="", output="")._asdict()
    assert log.record.request == kept | {"for_run": is_main, "repairs": command == "repair"}
    assert (log.record.options["keep_runs"], (log.folder / "query.txt").read_text()) == (7, "\nDo it.\nNow.")
    plan.inputs = RunInputs(resumed=RunEntry(log.folder, log.record))
    assert FileChooser(plan, progress)._open_log(chooser, request).record is log.record
