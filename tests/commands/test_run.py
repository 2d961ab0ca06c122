"""The task on the command line: `-m` does all in one command, `--query` is for supervisors; query.txt stays."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from command import Run, Start, git, recorded, the_log, wait_for
from fake_server import FakeServer

from code_commit.apply.lock import lock_tree
from code_commit.project import Project

KEY = "test-key/0123+456789abcdef"
RIGHT = "^^^ok.txt\nok\n^^^end\n"
TASK = "Make ok.txt say ok, $HOME `and` nothing else."


def test_the_task_is_an_option_and_the_rollup_anew(project_folder: Path, run_code_commit: Run):
    (project_folder / "other.txt").write_text("new since the last rollup\n")
    done = run_code_commit(project_folder, "-m", f"{TASK}\nSecond line.", *recorded(project_folder, RIGHT))
    assert done.returncode == 0, done.stderr
    assert (project_folder / "agent-config/query.txt").read_text() == "Make ok.txt say ok.\n"
    prompt = (the_log(project_folder) / "1-query.txt").read_text()
    assert f"[query]\n{TASK}\nSecond line.\n\n" in prompt
    assert "--- other.txt ---\nnew since the last rollup\n" in prompt
    assert json.loads((the_log(project_folder) / "run.json").read_text())["query"] == TASK
    assert "git does not track 1 of them: other.txt" in done.stderr


def test_several_texts_are_the_paragraphs_of_one_task(project_folder: Path, run_code_commit: Run):
    options = recorded(project_folder, RIGHT)
    done = run_code_commit(project_folder, "-m", TASK, "-m", "No more.", *options)
    assert done.returncode == 0, done.stderr
    assert (the_log(project_folder) / "query.txt").read_text() == f"{TASK}\n\nNo more."


def test_what_the_projects_own_script_rolled_up_stays_as_it_is(project_folder: Path, run_code_commit: Run):
    (project_folder / "codeRollup.sh").write_text("#!/bin/sh\ntouch ran\n")
    rollup = project_folder / "agent-config" / "codeRollup.txt"
    rollup.write_text("--- ok.txt ---\nnot yet\n\nof its own\n")
    done = run_code_commit(project_folder, "-m", TASK, *recorded(project_folder, RIGHT))
    assert done.returncode == 0, done.stderr
    assert "codeRollup.txt stays as it is: codeRollup.sh writes it, not -m" in done.stderr
    assert rollup.read_text().endswith("of its own\n")
    assert "of its own\n" in (the_log(project_folder) / "1-query.txt").read_text()
    assert not (project_folder / "ran").exists()
    rollup.unlink()
    (project_folder / "ok.txt").write_text("not yet\n")
    done = run_code_commit(project_folder, "-m", TASK, *recorded(project_folder, RIGHT))
    assert (done.returncode, rollup.exists()) == (0, True), done.stderr


def test_the_task_is_a_file_and_the_rollup_as_it_is(project_folder: Path, run_code_commit: Run):
    (project_folder.parent / "task.txt").write_text(TASK)
    options = recorded(project_folder, RIGHT)
    done = run_code_commit(project_folder, "run", "--query", "../task.txt", *options)
    assert done.returncode == 0, done.stderr
    prompt = (the_log(project_folder) / "1-query.txt").read_text()
    assert f"[query]\n{TASK}\n\n[codebase]\n--- ok.txt ---\nnot yet\n" in prompt


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-m", " \n"], "the task is empty: describe it with -m TEXT"),
        (["repair", "-m", ""], "the task is empty: omit it, or describe it with -m TEXT"),
        (["-m", b"\xff"], "not valid UTF-8"),
        (["--query", "no/such"], "no/such is missing"),
        (["--query", "../empty"], "../empty is empty: write the task into it"),
        (["-m", "x", "--query", "ok.txt"], "not allowed with argument -m"),
        (["-m", f"use {KEY}"], "the prompt would contain an API key"),
    ],
)
def test_a_task_that_is_none_is_refused(arguments, told, project_folder: Path, run_code_commit: Run):
    (project_folder.parent / "empty").touch()
    done = run_code_commit(project_folder, *arguments, *recorded(project_folder, RIGHT), env={"OPENAI_API_KEY": KEY})
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert KEY not in done.stderr
    assert (project_folder / "ok.txt").read_text() == "not yet\n"
    assert not (project_folder / "agent-config/logs").exists()


def clone_of(project: Path, name: str = "clone") -> Path:
    """Return a fresh clone of the project, which has no agent-config; build.sh is in it."""
    git(project.parent, "clone", "-q", str(project), name)
    return project.parent / name


def test_a_fresh_clone_needs_nothing_but_a_key(project_folder: Path, run_code_commit: Run):
    clone = clone_of(project_folder)
    with FakeServer(answers=[RIGHT]) as server:
        environment = {"OPENAI_API_KEY": KEY, "CODE_COMMIT_BASE_URL": f"openai:{server.url}"}
        done = run_code_commit(clone, "-m", TASK, env=environment)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((clone / "agent-config").stat().st_mode) == 0o700
    assert git(clone, "status", "--porcelain") == " M ok.txt\n"
    assert KEY not in "".join(path.read_text() for path in (clone / "agent-config").rglob("*") if path.is_file())


@pytest.mark.parametrize("ignored", ["/target\n", None, "/agent-config\n!/agent-config\n"])
def test_a_clone_that_would_commit_agent_config_gets_none(ignored, project_folder: Path, run_code_commit: Run):
    clone = clone_of(project_folder)
    (clone / ".gitignore").unlink() if ignored is None else (clone / ".gitignore").write_text(ignored)
    done = run_code_commit(clone, "-m", TASK, env={"OPENAI_API_KEY": KEY})
    assert (done.returncode, ".gitignore" in done.stderr) == (2, True), done.stderr
    assert not (clone / "agent-config").exists()


MULTI_GITTER = """
set -e
for repository in "$@"; do
    git clone -q --depth 1 "file://$repository" work
    (cd work && git checkout -q -b change && eval "$COMMAND" && git add . && git commit -qm x && git push -q origin change)
    rm -rf work
done
"""


@pytest.mark.slow
def test_a_tool_that_changes_many_repositories_runs_it_as_it_stands(project_folder: Path, tmp_path: Path):
    bares = [tmp_path / f"{name}.git" for name in ("one", "two")]
    for bare in bares:
        git(tmp_path, "clone", "-q", "--bare", str(project_folder), str(bare))
    with FakeServer(answers=[RIGHT, RIGHT]) as server:
        environment = os.environ | {
            "COMMAND": f"{sys.executable} -m code_commit -m 'Make ok.txt say ok.'",
            "ANTHROPIC_API_KEY": KEY,
            "CODE_COMMIT_BASE_URL": f"anthropic:{server.url}",
        }
        command = ["bash", "-c", MULTI_GITTER, "multi-gitter", *map(str, bares)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for bare in bares:
        assert git(bare, "diff", "--stat", "main", "change").split() == [
            "ok.txt",
            "|",
            "2",
            "+-",
            "1",
            "file",
            "changed,",
            "1",
            "insertion(+),",
            "1",
            "deletion(-)",
        ]


def test_a_run_that_was_killed_is_resumed_with_its_own_task(
    project_folder: Path, run_code_commit: Run, start_code_commit: Start
):
    (project_folder / "build.sh").write_text("#!/bin/sh\n[ -e go ] || { touch started; sleep 60; }; false\n")
    options = recorded(project_folder, "^^^ok.txt\nno\n^^^end\n", RIGHT)
    running = start_code_commit(project_folder, "-m", TASK, "--max-repairs", "1", *options)
    wait_for((project_folder / "started").exists)
    running.send_signal(signal.SIGTERM)
    assert running.wait() == 128 + signal.SIGTERM
    (project_folder / "go").touch()
    assert run_code_commit(project_folder, "resume").returncode == 1
    assert f"[query]\n{TASK}\n" in (the_log(project_folder) / "2-query.txt").read_text()


def test_files_that_changed_since_the_rollup_are_named(project_folder: Path, run_code_commit: Run):
    options = recorded(project_folder, RIGHT, RIGHT)
    warning = "changed since codeRollup.txt was written (the LLM sees the old text): "
    (project_folder / "ok.txt").touch()
    assert warning not in run_code_commit(project_folder, "check", *options).stdout
    for name in "abcdef":
        (project_folder / name).write_text(f"old {name}\n")
    assert run_code_commit(project_folder, "rollup").returncode == 0
    assert warning not in run_code_commit(project_folder, "check", *options).stdout
    (project_folder / "a").write_text("old a\nand more\n")
    assert f"{warning}a: run code-commit rollup" in run_code_commit(project_folder, "check", *options).stdout
    for name in "abcdef":
        (project_folder / name).write_text("new\n")
    done = run_code_commit(project_folder, *options)
    assert f"warning: {warning}a, b, c, d, e, f: run code-commit rollup\n" in done.stderr
    assert warning not in run_code_commit(project_folder, "-m", TASK, *options).stderr


def give_key(root: Path) -> None:
    (root / "agent-config" / "openai-key.txt").write_text("test-key-0123456789\n")
    (root / "agent-config" / "openai-key.txt").chmod(0o600)


@pytest.mark.slow
def test_a_run_that_is_refused_leaves_the_rollup_of_another(project_folder: Path, run_code_commit: Run):
    rollup = project_folder / "agent-config/codeRollup.txt"
    rollup.write_text("another's\n")
    options = recorded(project_folder, RIGHT)
    priced = ["--model", "openai:gpt-6.2-sol", "--base-url", "http://127.0.0.1:9/v1", "--max-cost", "0.01"]
    give_key(project_folder)
    for arguments in (
        ["-m", " ", *options],
        ["-m", TASK, "--model", "anthropic"],
        ["-m", TASK, "--model", "replay:no"],
        ["-m", TASK, *priced],
        ["--rollup", "fit", *priced],
    ):
        assert run_code_commit(project_folder, *arguments).returncode == 2
    (project_folder / "agent-config" / "logs").write_text("no folder\n")
    assert run_code_commit(project_folder, "-m", TASK, *options).returncode == 2
    (project_folder / "agent-config" / "logs").unlink()
    with lock_tree(Project(project_folder)):
        done = run_code_commit(project_folder, "-m", TASK, *options)
        assert (done.returncode, "another code-commit is running here" in done.stderr) == (2, True), done.stderr
    assert rollup.read_text() == "another's\n"
    assert run_code_commit(project_folder, "-m", TASK, *options).returncode == 0
    assert rollup.read_text() != "another's\n"
