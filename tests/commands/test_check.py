"""The command check: what it prints, and its build."""

import shlex
import shutil
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, replay
from terminal import Terminal


@pytest.mark.parametrize("as_json", [False, True])
def test_check_can_build_once(*, as_json: bool, project_folder: Path, run_code_commit: Run):
    options = [*replay(project_folder), *(["--json"] if as_json else [])]
    key = "sk-" + "k9" * 20
    (project_folder / "build.sh").write_text(f"#!/bin/sh\nseq 20\necho {key}\ngrep -qx ok ok.txt\n")
    done = run_code_commit(project_folder, "check", "--build", *options, env={"OPENAI_API_KEY": key})
    assert (done.returncode, "fails: exit code 1 after" in done.stdout) == (1, True), done.stdout
    assert "| 10" in done.stdout
    assert "| 9" not in done.stdout
    assert key not in done.stdout
    (project_folder / "ok.txt").write_text("ok\n")
    done = run_code_commit(project_folder, "check", "--build", *options)
    assert (done.returncode, "build           exit code 0 after" in done.stdout) == (0, not as_json), done.stdout
    if not as_json:
        assert done.stderr == ""
        (project_folder / "build.sh").write_text("#!/bin/sh\necho one; printf two\n")
        assert run_code_commit(project_folder, "check", "--build", "--verbose", *options).stderr == "  | one\n  | two\n"
    (project_folder / "build.sh").write_text("#!/bin/sh\necho >>.gitignore\n")
    assert run_code_commit(project_folder, "check", "--build", *options).returncode == 5
    (project_folder / "build.sh").write_text("#!/bin/sh\nexit 75\n")
    done = run_code_commit(project_folder, "check", "--build", *options)
    said = "Ready, but build.sh says that the machine failed, not the code"
    assert (done.returncode, said in done.stdout) == (1, not as_json), done.stdout
    (project_folder / "agent-config/query.txt").unlink()
    (project_folder / ".gitignore").unlink()
    done = run_code_commit(project_folder, "check", "--build", *options)
    assert (done.returncode, "exit code" in done.stdout) == (2, False), done.stdout
    assert "build: not run; solve the problems first" in done.stdout


@pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")
def test_the_output_of_a_failed_build_has_the_width_of_the_terminal(project_folder: Path):
    rule = "=" * 70
    (project_folder / "build.sh").write_text(f"#!/bin/sh\necho {rule}\nexit 1\n")
    command = shlex.join([*CODE_COMMIT, "check", "--build", *replay(project_folder)])
    with Terminal(project_folder, command, 80, 40, {}) as pane:
        assert pane.end() == 1
        rows = pane.screen()
        assert rows == pane.lines(), "the terminal has to wrap nothing"
    assert f"  | {rule}" in rows
    assert rows[-3].startswith("Ready, but the build fails: ")


@pytest.mark.parametrize(("script", "said"), {"exit 0": "ok       build", "exit 3": "PROBLEM  build"}.items())
def test_check_builds_although_no_task_and_no_key_is_there(
    script: str, said: str, project_folder: Path, run_code_commit: Run
):
    (project_folder / "agent-config/query.txt").write_text("")
    (project_folder / "build.sh").write_text(f"#!/bin/sh\ntouch built\n{script}\n")
    done = run_code_commit(project_folder, "check", "--build", "--sandbox", "off")
    assert (done.returncode, said in done.stdout) == (2, True), done.stdout
    assert "PROBLEM  query.txt" in done.stdout
    assert (project_folder / "built").exists()


def test_check_notes_a_build_that_goes_on_after_a_failure(project_folder: Path, run_code_commit: Run):
    options, note = replay(project_folder), "has no set -e"
    for script, is_noted in {"make\nmake test\n": True, "set -e\nmake\nmake test\n": False}.items():
        (project_folder / "build.sh").write_text(f"#!/bin/sh\n{script}")
        done = run_code_commit(project_folder, "check", *options)
        assert (done.returncode, note in done.stdout) == (0, is_noted), done.stdout


def test_check_names_what_a_run_would_stumble_over(project_folder: Path, run_code_commit: Run):
    options = replay(project_folder)
    (project_folder / "build.sh").chmod(0o644)
    (project_folder / "agent-config/openai-key.txt").write_text("short")
    (project_folder / "agent-config/openai-key.txt").chmod(0o600)
    done = run_code_commit(project_folder, "check", *options)
    assert done.returncode == 0, done.stdout
    assert "note" in done.stdout
    assert "build.sh is not executable" in done.stdout
    assert "ok       sandbox         none\n" in done.stdout
    assert "ok       keys            none; agent-config/openai-key.txt contains only 5 characters" in done.stdout
    done = run_code_commit(project_folder, "check", "--sandbox", "off", env={"ANTHROPIC_API_KEY": "k" * 20})
    assert (done.returncode, done.stdout.count("PROBLEM")) == (2, 1), done.stdout
    assert "PROBLEM  model           agent-config/openai-key.txt contains only 5 characters" in done.stdout
    done = run_code_commit(project_folder, "check", "--sandbox", "off")
    assert "PROBLEM  model           agent-config/openai-key.txt contains only 5 characters" in done.stdout, (
        "without another key"
    )
    done = run_code_commit(project_folder, "check", "--sandbox", "off", "--model", "openai")
    assert (done.returncode, done.stdout.count("PROBLEM")) == (2, 1), done.stdout
    assert "PROBLEM  key             agent-config/openai-key.txt contains only 5 characters" in done.stdout


def test_check_quiet_prints_problems_alone(project_folder: Path, run_code_commit: Run):
    options = [*replay(project_folder), "--sandbox", "off"]
    assert run_code_commit(project_folder, "check", "--quiet", *options).stdout == ""
    (project_folder / "build.sh").chmod(0o644)
    done = run_code_commit(project_folder, "check", *options, env={"CODE_COMMIT_QUIET": "1"})
    assert (done.returncode, done.stdout) == (0, "")
    (project_folder / "agent-config/query.txt").unlink()
    done = run_code_commit(project_folder, "check", "--quiet", *options)
    verdicts = [line.split()[0] for line in done.stdout.splitlines()]
    assert (done.returncode, verdicts) == (2, ["PROBLEM", "1"]), done.stdout


def test_check_calls_no_keys_well_where_the_lack_of_one_is_a_problem(project_folder: Path, run_code_commit: Run):
    for model in ([], ["--model", "openai"]):
        done = run_code_commit(project_folder, "check", *model)
        assert (done.returncode, "ok       keys" in done.stdout) == (2, False), done.stdout
    assert "ok       keys            none\n" in run_code_commit(project_folder, "check", *replay(project_folder)).stdout


def test_a_fault_is_told_once(project_folder: Path, run_code_commit: Run):
    options = ["--model", "chat:m", "--base-url", "https://llm.test/v1?api-key=x"]
    done = run_code_commit(project_folder, "check", *options)
    told = done.stdout.count("has api-key= in its query")
    assert (told, "1 problem to solve." in done.stdout) == (1, True), done.stdout + done.stderr


def test_problems_come_first_and_the_codebase_is_left_until_they_are_solved(project_folder: Path, run_code_commit: Run):
    options = [*replay(project_folder), "--rollup", "fresh"]
    (project_folder / "build.sh").unlink()
    done = run_code_commit(project_folder, "check", *options)
    rows = done.stdout.splitlines()
    assert (done.returncode, rows[0].split()[:2], rows[1][:2]) == (2, ["PROBLEM", "build.sh"], "ok"), done.stdout
    assert "codebase: not checked; solve the problems first" in done.stdout
    assert "rewritten by each run" not in done.stdout
    (project_folder / "build.sh").write_text("#!/bin/sh\ntrue\n")
    assert "rewritten by each run" in run_code_commit(project_folder, "check", *options).stdout


def test_what_is_not_known_is_not_called_well(project_folder: Path, run_code_commit: Run):
    server = ["--model", "chat:m", "--base-url", "http://127.0.0.1:9/v1"]
    done = run_code_commit(project_folder, "check", *server)
    assert "ok       prompt fits" not in done.stdout
    assert "the context window of chat:m is unknown, so the prompt may not fit" in done.stdout
    assert "none; the server may require one\n" in done.stdout
    assert "127.0.0.1:9 does not answer (Connection refused): start the server\n" in done.stdout
    (project_folder / "agent-config/config.toml").write_text("context_window = 100000\n")
    assert "ok       prompt fits" in run_code_commit(project_folder, "check", *server).stdout


@pytest.mark.parametrize(
    ("lacks", "written"),
    [([], ""), ([".gitignore"], ".gitignore and "), ([".gitignore", "build.sh"], ".gitignore, build.sh and ")],
)
def test_init_is_said_to_write_what_is_missing_alone(
    lacks: list[str], written: str, project_folder: Path, run_code_commit: Run
):
    shutil.rmtree(project_folder / "agent-config")
    for name in lacks:
        (project_folder / name).unlink()
    done = run_code_commit(project_folder, "check", "-m", "Write ok.")
    assert f" to solve; code-commit init writes {written}agent-config/.\n" in done.stdout, done.stdout


def test_an_address_without_a_model_is_told_before_keys(project_folder: Path, run_code_commit: Run):
    address = ["--base-url", "http://127.0.0.1:9/v1"]
    done = run_code_commit(project_folder, "check", *address)
    assert "--base-url is set without a model: set both, such as --model chat:NAME" in done.stdout
    (project_folder / "agent-config/config.toml").write_text('base_url = "http://127.0.0.1:9/v1"\n')
    done = run_code_commit(project_folder, "check")
    assert "config.toml's base_url is set without a model" in done.stdout


def test_the_name_of_a_model_that_chooses_files_is_checked_and_its_key_where_it_is_asked(
    project_folder: Path, run_code_commit: Run
):
    options = [*replay(project_folder), "--select-model"]
    unknown = run_code_commit(project_folder, "check", *options, "nobody:x")
    assert unknown.stdout.startswith(
        "PROBLEM  select model    there is no provider 'nobody': use --select-model chat:x "
    )
    unused = run_code_commit(project_folder, "check", *options, "openai:gpt-6.2-sol")
    assert (unused.returncode, "openai:gpt-6.2-sol, only for --rollup select" in unused.stdout) == (0, True), (
        unused.stdout
    )
    used = run_code_commit(project_folder, "check", *options, "openai:gpt-6.2-sol", "--rollup", "select")
    assert used.stdout.startswith("PROBLEM  select model    no key for openai: "), used.stdout
