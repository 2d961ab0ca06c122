"""With `--json` standard output holds one object whatever the end: nobody has to guess from an empty stream."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, git, recorded
from terminal import on_a_terminal

from code_commit.apply.lock import lock_tree
from code_commit.project import Project
from code_commit.runs.record import load_run_record
from code_commit.terminal import shown

REPLAY = ["--model", "replay:agent-config/recorded"]
Spoil = Callable[[Path], object]


@pytest.fixture
def root(project_folder: Path) -> Iterator[Path]:
    recorded(project_folder, "^^^ok.txt\nok\n^^^end\n")
    yield project_folder
    os.chown(project_folder, os.geteuid(), -1)


def write(name: str, text: str) -> Spoil:
    return lambda root: (root / name).write_text(text)


def remove(name: str) -> Spoil:
    return lambda root: (root / name).unlink()


def track(root: Path) -> None:
    git(root, "add", "-f", "agent-config/query.txt")


def give_away(root: Path) -> None:
    os.chown(root, 65534, -1)


def close_logs(root: Path) -> None:
    (root / "agent-config" / "logs").write_text("not a folder")


NOTHING: Spoil = lambda _: None  # noqa: E731 - reads as the table's word

LONG = "x" * 300

RUNS: dict[str, tuple[Spoil, list[str], int, str]] = {
    "a folder that git refuses": (give_away, REPLAY, 2, "dubious ownership"),
    "a bad config.toml": (write("agent-config/config.toml", "max_repairs =\n"), REPLAY, 2, "not valid TOML"),
    "an unknown setting": (write("agent-config/config.toml", "max_repair = 1\n"), REPLAY, 2, "did you mean 'max_repairs'"),
    "a setting of another type": (write("agent-config/config.toml", "max_repairs = 'x'\n"), REPLAY, 2, "max_repairs"),
    "an option's value": (NOTHING, [*REPLAY, "--max-repairs", "x"], 2, "must be a whole number"),
    "an option out of range": (NOTHING, [*REPLAY, "--max-repairs", "-1"], 2, "argument --max-repairs: must be 0 or more"),
    "an unknown option": (NOTHING, [*REPLAY, "--max-repair", "1"], 2, "unrecognized arguments: --max-repair"),
    "an unknown command": (NOTHING, ["rum"], 2, "there is no command 'rum'; did you mean 'run'?"),
    "not ignored": (write(".gitignore", "/target\n"), REPLAY, 2, ".gitignore lacks the line /agent-config"),
    "tracked": (track, REPLAY, 2, "git tracks agent-config/query.txt"),
    "no query": (remove("agent-config/query.txt"), REPLAY, 2, "agent-config/query.txt is missing"),
    "no rollup": (remove("agent-config/codeRollup.txt"), REPLAY, 2, "agent-config/codeRollup.txt is missing"),
    "no build.sh": (remove("build.sh"), REPLAY, 2, "build.sh is missing"),
    "no key": (NOTHING, [], 2, "no API key"),
    "no such model": (NOTHING, ["--model", "x"], 2, "unknown model 'x'"),
    "no log folder": (close_logs, REPLAY, 2, "agent-config/logs"),
    "a tree that is not clean": (write("ok.txt", "mine\n"), [*REPLAY, "--require-clean"], 2, "not clean"),
    "nothing to resume": (NOTHING, ["resume"], 2, "there is no interrupted run to resume"),
    "an attempt that is no number": (NOTHING, ["undo", "--attempt", "x"], 2, "argument --attempt: must be a whole number"),
    "no run yet": (NOTHING, ["log", "latest"], 2, "there is no run yet"),
    "nothing to undo": (NOTHING, ["undo"], 2, "nothing to undo"),
    "no response to apply": (NOTHING, ["apply", "nowhere.txt"], 2, "nowhere.txt cannot be read: No such file or directory; name the file of a saved response"),
    "apply without a file": (NOTHING, ["apply"], 2, "required: FILE"),
    "apply with a bad config.toml": (write("agent-config/config.toml", "x = 1\n"), ["apply", "-"], 2, "no setting 'x'"),
    "a rejected response": (write("agent-config/recorded/1-response.txt", "no block"), [*REPLAY, "--on-rejected", "stop"], 4, ""),
    "no answer": (remove("agent-config/recorded/1-response.txt"), REPLAY, 3, "1-response.txt"),
    "a failing build": (write("build.sh", "#!/bin/sh\nexit 1\n"), [*REPLAY, "--max-repairs", "0"], 1, ""),
    "a passing build": (NOTHING, REPLAY, 0, ""),
    "rollup of nothing": (NOTHING, ["rollup", "nowhere"], 2, "nowhere matches no file, or only ignored ones"),
    "rollup in a folder that git refuses": (give_away, ["rollup"], 2, "dubious ownership"),
    "rollup with a bad config.toml": (write("agent-config/config.toml", "x = 1\n"), ["rollup"], 2, "no setting 'x'"),
    "check in a folder that git refuses": (give_away, ["check"], 2, "dubious ownership"),
    "a prompt without a task": (write("agent-config/query.txt", ""), ["prompt"], 2, "query.txt is empty"),
    "log of a last run": (NOTHING, ["log", "last"], 2, "there is no run last; for the latest run: latest"),
    "a replay that no folder can be": (NOTHING, ["--model", f"replay:{LONG}"], 2, "there is no folder x"),
    "log of a run that no folder can be": (NOTHING, ["log", LONG], 2, "there is no run x"),
    "statistics of what no folder can be": (NOTHING, ["log", "--stats", LONG], 2, "contains no runs"),
    "log of no run": (NOTHING, ["log", "2020"], 2, "there is no run 2020"),
    "log in a folder that git refuses": (give_away, ["log"], 2, "dubious ownership"),
}  # fmt: skip


def needs(spoil: Spoil) -> list[pytest.MarkDecorator]:
    return [pytest.mark.root] if spoil is give_away else []


@pytest.mark.parametrize(
    ("spoil", "arguments", "code", "said"),
    [pytest.param(*row, id=name, marks=needs(row[0])) for name, row in RUNS.items()],
)
def test_every_end_is_an_object_on_standard_output(spoil, arguments, code, said, root: Path, run_code_commit: Run):
    spoil(root)
    done = run_code_commit(root, *arguments, "--json")
    assert done.returncode == code, done.stderr
    end = json.loads(done.stdout)
    assert end["exit_code"] == code
    assert end["status"] == {0: "success", 1: "build_failed", 2: "not_set_up", 3: "llm_error", 4: "rejected"}[code]
    if said:
        assert said in end["message"]
        assert said in done.stderr
    if "schema_version" in end:
        load_run_record(done.stdout)


@pytest.mark.parametrize("setting", ["variable", "file"])
@pytest.mark.parametrize("line", ["max_repair = 1", "max_repairs = -1"])
def test_json_is_heeded_where_another_setting_is_wrong(setting, line, root: Path, run_code_commit: Run):
    (root / "agent-config" / "config.toml").write_text(f"{line}\n" + ("json = true\n" if setting == "file" else ""))
    done = run_code_commit(root, *REPLAY, env={"CODE_COMMIT_JSON": "1"} if setting == "variable" else {})
    assert (done.returncode, json.loads(done.stdout)["status"]) == (2, "not_set_up")


@pytest.mark.parametrize("way", ["option", "variable", "file"])
def test_quiet_is_heeded_from_the_first_message(way: str, root: Path, run_code_commit: Run):
    (root / "codeRollup.sh").write_text("#!/bin/sh\n")
    (root / "agent-config" / "config.toml").write_text("quiet = true\n" * (way == "file"))
    variables = {"CODE_COMMIT_QUIET": "1"} if way == "variable" else {}
    done = run_code_commit(root, *REPLAY, "-m", "x", *["--quiet"] * (way == "option"), env=variables)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_json_nothing_is_printed_there(root: Path, run_code_commit: Run):
    for arguments in (["--max-repair", "1"], ["rollup", "nowhere"], ["log", "2020"], ["undo"]):
        done = run_code_commit(root, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), arguments
        assert done.stderr.count("code-commit: ") == 1


def test_a_lock_that_is_held(root: Path, run_code_commit: Run):
    with ExitStack() as stack:
        stack.enter_context(lock_tree(Project(root)))
        for arguments in (REPLAY, ["apply", "agent-config/recorded/1-response.txt"]):
            done = run_code_commit(root, *arguments, "--json")
            end = json.loads(done.stdout)
            assert (done.returncode, end["status"]) == (2, "not_set_up")
            assert f"another code-commit is running here (process {os.getpid()})" in end["message"]


def test_a_folder_that_is_gone(root: Path):
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    command = ["sh", "-c", script, "sh", *CODE_COMMIT, "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "the current directory cannot be used" in json.loads(done.stdout)["message"]


def test_an_interrupt(root: Path):
    (root / "build.sh").write_text("#!/bin/sh\ntouch agent-config/../started; sleep 100\n")
    command = [*CODE_COMMIT, *REPLAY, "--json"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while not (root / "started").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 143
    assert (json.loads(output)["status"], json.loads(output)["exit_code"]) == ("interrupted", 143)


def test_a_tree_that_cannot_be_repaired(root: Path, run_code_commit: Run):
    (root / "agent-config" / ".txn").mkdir()
    (root / "agent-config" / ".txn" / "journal.json").write_text("{")
    for arguments in (REPLAY, ["undo"], ["rollup"]):
        done = run_code_commit(root, *arguments, "--json")
        end = json.loads(done.stdout)
        assert (done.returncode, end["exit_code"], end["status"]) == (5, 5, "build_error")
        assert "its journal is damaged" in end["message"]


def test_check_as_json(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "check", *REPLAY, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ready"]) == (0, True)
    assert {"name": "query.txt", "problem": None, "note": "20 bytes"} in found["checks"]
    shutil.rmtree(root / "agent-config")
    done = run_code_commit(root, "check", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ready"]) == (2, False)
    problems = {check["name"]: check["problem"] for check in found["checks"] if check["problem"]}
    assert "agent-config/query.txt is missing" in problems["query.txt"]


HIDDEN = "".join(map(chr, (0x1B, 0x7F, 0x85, 0x9B, 0xA0, 0xAD, 0x200B, 0x2028, 0x202E, 0x2066, 0xFEFF, 0xE0001)))
ODD_TASK = f"Make ok.txt say {HIDDEN}ok, naïvely 日本語 🎉"


@pytest.mark.slow
def test_no_json_holds_what_a_terminal_would_not_show(root: Path, run_code_commit: Run):
    """A build's message and an answer can hold any character: U+009B begins an escape sequence, U+202E turns a line."""
    content = f"{HIDDEN[1:]} naïve 日本語 🎉\n"
    (root / "ok.txt").write_text(f"not yet{HIDDEN}\n")
    recorded(root, f"{HIDDEN[1:]}\n\n^^^ok.txt\n{content}^^^end\n")
    (root / "build.sh").write_text(f"#!/bin/sh\nprintf '%s' '{HIDDEN}'\n")
    (root / "naïve.py").write_text(f"# {content}")
    diffs = []
    for words in (
        ["-m", ODD_TASK, *REPLAY, "--sandbox", "off"],
        ["diff"],
        ["log"],
        ["log", "latest"],
        ["log", "--stats"],
        ["undo"],
        ["rollup"],
        ["rollup", f"nowhere{HIDDEN}"],
        ["check", *REPLAY, "--protect", f"{HIDDEN}/"],
    ):
        printed = run_code_commit(root, *words, "--json").stdout
        assert printed.endswith("\n"), words
        assert all(line == shown(line) for line in printed.split("\n")), words
        value = json.loads(printed)
        diffs += [value["diff"]] if "diff" in value else []
        assert "naïve" in printed or words[0] in ("rollup", "undo", "check") or "--stats" in words, words
    assert [f"+{content}" in diff for diff in diffs] == [True]


@pytest.mark.parametrize(
    "words", [["prompt", *REPLAY], ["log", "--html", "-"], ["log", "--markdown"], ["log", "latest"]]
)
def test_a_terminal_gets_escapes_and_a_pipe_each_byte(words, root: Path, run_code_commit: Run):
    assert run_code_commit(root, "-m", ODD_TASK, *REPLAY, "--sandbox", "off").returncode == 0
    (root / "agent-config/query.txt").write_text(ODD_TASK)
    (root / "agent-config/codeRollup.txt").write_text(f"--- ok.txt ---\n\t{HIDDEN}\n")
    on_terminal, in_pipe = on_a_terminal(root, *words), run_code_commit(root, *words).stdout
    assert "".join(set(on_terminal) - set("\n\t")) == shown("".join(set(on_terminal) - set("\n\t")))
    assert "naïve" in on_terminal or "html" in words
    if words[0] == "prompt":
        assert in_pipe.count(HIDDEN) == on_terminal.count(shown(HIDDEN)) > 1


def test_a_key_on_the_command_line_is_not_repeated(root: Path, run_code_commit: Run):
    key = "sk-test-0123456789abcdef"
    done = run_code_commit(root, "--max-repairs", key, "--json", env={"OPENAI_API_KEY": key})
    assert done.returncode == 2
    assert key not in done.stdout + done.stderr
