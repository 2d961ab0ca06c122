"""The example of a supervisor's loop, run as it stands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import git

SCRIPT = Path(__file__).parents[2] / "agent-config.example" / "supervisor.sh"


@pytest.fixture
def root(project_folder: Path, tmp_path: Path) -> Path:
    shutil.copy(SCRIPT, project_folder / "agent-config")
    (project_folder / "agent-config" / "codeRollup.txt").unlink()
    (project_folder / "agent-config" / "recorded").mkdir()
    (project_folder / "agent-config" / "config.toml").write_text(
        'model = "replay:agent-config/recorded"\nmax_repairs = 0\n'
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "code-commit").write_text(f'#!/bin/sh\nexec {sys.executable} -m code_commit "$@"\n')
    (tmp_path / "bin" / "code-commit").chmod(0o755)
    return project_folder


def supervise(root: Path, answer: str, *task: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{root.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "agent-config/supervisor.sh", *task]
    return subprocess.run(command, cwd=root, env=environment, input=answer, capture_output=True, text=True, check=False)


def answer_with(root: Path, content: str) -> None:
    (root / "agent-config" / "recorded" / "1-response.txt").write_text(f"^^^ok.txt\n{content}\n^^^end\n")


@pytest.mark.slow
def test_what_builds_can_be_committed(root: Path):
    answer_with(root, "ok")
    done = supervise(root, "c\n", "Make ok.txt say ok.")
    assert done.returncode == 0, done.stderr
    assert "+ok" in done.stdout
    assert git(root, "log", "-1", "--format=%s") == "Make ok.txt say ok.\n"
    assert git(root, "status", "--porcelain") == ""
    assert "--- ok.txt ---\nnot yet\n" in (root / "agent-config" / "codeRollup.txt").read_text()


@pytest.mark.slow
def test_what_does_not_build_can_be_undone(root: Path):
    answer_with(root, "wrong")
    done = supervise(root, "u\n")
    assert done.returncode == 1, done.stderr
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.slow
def test_without_an_answer_all_stays(root: Path):
    answer_with(root, "ok")
    assert supervise(root, "").returncode == 0
    assert git(root, "status", "--porcelain") == " M ok.txt\n"


@pytest.mark.slow
def test_a_run_that_ends_early_is_shown_and_can_be_undone(root: Path):
    (root / "agent-config" / "config.toml").write_text('model = "replay:agent-config/recorded"\nmax_repairs = 1\n')
    answer_with(root, "wrong")
    done = supervise(root, "u\n")
    assert done.returncode == 3, done.stderr
    assert "It ended early" in done.stdout
    assert "+wrong" in done.stdout
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.slow
def test_the_exit_code_is_that_of_the_run_when_git_commits_nothing(root: Path):
    answer_with(root, "wrong")
    hook = root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 7\n")
    hook.chmod(0o755)
    done = supervise(root, "c\n")
    assert (done.returncode, "It is not committed." in done.stdout) == (1, True), done.stderr


def test_where_nothing_changed_nothing_is_asked(root: Path):
    answer_with(root, "not yet")
    done = supervise(root, "c\n")
    assert (done.returncode, "Commit it" in done.stdout) == (1, False), done.stderr
    assert "Nothing changed." in done.stdout


def test_another_exit_code_is_handed_on(root: Path):
    answer_with(root, "ok")
    (root / "ok.txt").write_text("edited\n")
    assert supervise(root, "").returncode == 2


def test_a_command_that_is_an_alias_alone_is_told_and_nothing_else(root: Path):
    (root.parent / "bin" / "code-commit").unlink()
    environment = {**os.environ, "PATH": f"{root.parent / 'bin'}:/usr/bin:/bin"}
    if shutil.which("code-commit", path=environment["PATH"]):
        pytest.skip("code-commit is installed for all users")
    command = ["bash", "agent-config/supervisor.sh"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "code-commit is not in a folder of PATH" in done.stderr
    assert "not found" not in done.stderr
