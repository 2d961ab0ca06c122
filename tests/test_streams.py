"""Closed, full and broken standard streams change nothing of what a command does."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from command import CODE_COMMIT, recorded

RESPONSE = "^^^ok.txt\nok\n^^^end\n"


@pytest.fixture
def root(project_folder: Path) -> Path:
    recorded(project_folder, RESPONSE)
    return project_folder


def in_shell(root: Path, redirection: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command with a redirection of the shell; the shell's own exit code is the command's."""
    program = f'"$@" {redirection}'
    command = ["bash", "-o", "pipefail", "-c", program, "bash", *CODE_COMMIT, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=180, check=False)


def status(root: Path) -> str:
    (log,) = (root / "agent-config" / "logs").iterdir()
    return json.loads((log / "run.json").read_text())["status"]


@pytest.mark.parametrize(
    "redirection", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-", "2>/dev/full", "2> >(exec 0<&-; sleep 1)"]
)
def test_a_run_ends_as_it_would_have(redirection, root: Path):
    done = in_shell(root, redirection, "--model", "replay:agent-config/recorded")
    assert done.returncode == 0, done.stderr
    assert (root / "ok.txt").read_text() == "ok\n"
    assert status(root) == "success"


@pytest.mark.parametrize("redirection", ["2>&-", ">&-", "<&-"])
@pytest.mark.parametrize("command", ["log", "check", "--help"])
def test_no_command_breaks_over_a_closed_stream(command, redirection, root: Path):
    done = in_shell(root, redirection, command)
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2> >(head -1)", "2> >(exec 0<&-; sleep 1)"])
def test_a_full_or_closed_standard_error_changes_no_exit_code(redirection, root: Path):
    for command, code in (
        (["apply", "agent-config/recorded/1-response.txt", "--build", "--sandbox", "off"], 0),
        (["undo"], 0),
        (["undo", "nowhere"], 2),
        (["check", "--model", "replay:agent-config/recorded"], 0),
        (["check", "--model", "nowhere:"], 2),
        (["--sandbx"], 2),
        (["--version"], 0),
    ):
        assert in_shell(root, redirection, *command).returncode == code, command


@pytest.mark.parametrize(
    "words", [["log"], ["log", "--schema"], ["check"], ["prompt"], ["--help"], ["log", "--help"], ["--version"]]
)
def test_a_full_standard_output_is_told(words, root: Path):
    done = in_shell(root, ">/dev/full", *words)
    assert done.returncode == 5
    assert b"standard output cannot be written: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_record_that_cannot_be_printed_does_not_hide_that_the_run_changed_files(root: Path):
    done = in_shell(root, ">/dev/full", "--json", "--model", "replay:agent-config/recorded")
    assert done.returncode == 5
    assert b"the run had ended with exit code 0: see agent-config/logs/" in done.stderr
    assert (root / "ok.txt").read_text() == "ok\n"
    assert status(root) == "success"


def test_a_reader_that_goes_away_is_no_bug(root: Path):
    done = in_shell(root, "| head -c 1", "log", "--schema")
    assert done.returncode in (0, 141)
    assert done.stderr == b""


@pytest.mark.parametrize("name", ["config.toml", "openai-key.txt", "query.txt", "codeRollup.txt"])
def test_a_fifo_in_agent_config_is_refused_not_waited_for(name, root: Path):
    path = root / "agent-config" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o600)
    done = subprocess.run([*CODE_COMMIT, "check"], cwd=root, capture_output=True, timeout=180, check=False)
    assert done.returncode == 2
    assert b"it is not a regular file" in done.stdout


@pytest.mark.parametrize("setting", ["environment", "file"])
def test_json_and_quiet_hold_wherever_they_were_set(setting, root: Path):
    environment = (
        {**os.environ, "CODE_COMMIT_JSON": "1", "CODE_COMMIT_QUIET": "1"} if setting == "environment" else None
    )
    if setting == "file":
        (root / "agent-config" / "config.toml").write_text("json = true\nquiet = true\n")
    command = [*CODE_COMMIT, "apply", "-"]
    done = subprocess.run(
        command, cwd=root, env=environment, input=b"^^^build.sh\n^^^end\n", capture_output=True, check=False
    )
    assert done.returncode == 4
    assert b"build.sh is protected" in done.stderr or b"build.sh: is protected" in done.stderr
    assert json.loads(done.stdout)["status"] == "rejected"
    (root / "build.sh").unlink()
    done = subprocess.run(
        [*CODE_COMMIT, "--model", "replay:x"], cwd=root, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["status"] == "not_set_up"
