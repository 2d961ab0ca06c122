"""The examples for CI: they are YAML, and their shell steps do in a red repository what they promise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import git
from fake_server import FakeServer

from code_commit.settings import OPTIONS

EXAMPLES = Path(__file__).parents[2] / "docs" / "ci-examples"
KEY = "sk-test-0123456789abcdef"
RIGHT, WRONG = "^^^ok.txt\nok\n^^^end\n^^^new.txt\nnew\n^^^end\n", "^^^ok.txt\nno\n^^^end\n"


def read(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text())


@pytest.fixture
def root(project_folder: Path, tmp_path: Path) -> Path:
    """A fresh checkout whose build is red: nothing is in it but what git tracks."""
    shutil.rmtree(project_folder / "agent-config")
    (project_folder / "build.sh").write_text("#!/bin/sh\nprintf 'caf\\351: '; cat ok.txt; grep -qx ok ok.txt\n")
    git(project_folder, "commit", "-qam", "red")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "code-commit").write_text(f'#!/bin/sh\nexec {sys.executable} -m code_commit "$@"\n')
    (tmp_path / "bin" / "code-commit").chmod(0o755)
    return project_folder


def shell(root: Path, script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step as the runners do: bash that ends at the first command that fails, and at one in a pipe."""
    environment = {**os.environ, "PATH": f"{root.parent / 'bin'}{os.pathsep}{os.environ['PATH']}", **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, errors="replace", timeout=180, check=False
    )


def to(server: FakeServer, variables: dict[str, str]) -> dict[str, str]:
    """Return the variables as the runner gives them, the secret filled in, the API on this machine."""
    secret = {"OPENAI_API_KEY": KEY, "CODE_COMMIT_BASE_URL": f"openai:{server.url}"}
    return {name: value for name, value in variables.items() if name.startswith("CODE_COMMIT_")} | secret


def patch_applies_to_a_clean_checkout(root: Path, patch: Path) -> None:
    git(root, "reset", "-q", "--hard")
    git(root, "clean", "-fdq")
    git(root, "apply", str(patch))
    assert (root / "ok.txt").read_text() == "ok\n"
    assert (root / "new.txt").read_text() == "new\n"


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code", "headline"), [(RIGHT, 0, "passes"), (WRONG, 1, "fails")])
def test_the_workflow_of_github_actions(answer, code, headline, root: Path, tmp_path: Path):
    steps = {step.get("name", step.get("uses")): step for step in read("github-actions.yml")["jobs"]["build"]["steps"]}
    runner = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "RUNNER_TEMP": str(tmp_path), "CI": "true"}
    assert shell(root, steps["Install what the project needs"]["run"], runner).returncode == 0
    red = shell(root, steps["Build"]["run"], runner)
    assert red.returncode == 1, "the exit code is that of build.sh"

    with FakeServer([answer] * 4) as server:
        done = shell(root, steps["Repair"]["run"], runner | to(server, steps["Repair"]["env"]))
        assert done.returncode == code, done.stderr
        assert "not yet" in str(server.requests[0].body), "the LLM is told how the build failed"
    report = shell(root, steps["Report"]["run"], runner)
    assert report.returncode == 0, report.stderr
    assert headline in (tmp_path / "summary.md").read_text().splitlines()[0]
    artifact = tmp_path / "repair"
    assert steps["actions/upload-artifact@v6"]["with"]["path"] == "${{ runner.temp }}/repair"
    assert "<!doctype html>" in (artifact / "run.html").read_text().lower()
    assert len(list(artifact.glob("logs/*/run.json"))) == 1
    for path in [*artifact.rglob("*.*"), tmp_path / "summary.md"]:
        assert KEY.encode() not in path.read_bytes()
    if code == 0:
        patch_applies_to_a_clean_checkout(root, artifact / "repair.patch")


def test_what_follows_the_build_runs_when_it_is_red_only():
    workflow = read("github-actions.yml")
    for step in workflow["jobs"]["build"]["steps"]:
        is_before = step.get("name") in ("Build", "Install what the project needs") or step.get("uses", "").startswith(
            ("actions/checkout", "actions/setup")
        )
        assert is_before or step["if"].startswith("failure() && "), step
    secrets = [step for step in workflow["jobs"]["build"]["steps"] if "secrets." in str(step)]
    assert [step["name"] for step in secrets] == ["Repair"], "no other step, and no pull request, sees the key"
    assert workflow[True] == "push"  # YAML reads the key `on` so
    assert workflow["permissions"] == {"contents": "read"}


SETUPS = {"a build that passes again": ("true\n", 0), "no sandbox as it is wanted": ("exit 1\n", 2)}


@pytest.mark.parametrize(("build", "code"), SETUPS.values(), ids=SETUPS)
def test_nothing_is_paid_for_unless_the_build_fails_here_too(build, code, root: Path, tmp_path: Path):
    steps = {step.get("name"): step for step in read("github-actions.yml")["jobs"]["build"]["steps"]}
    runner = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "RUNNER_TEMP": str(tmp_path), "CI": "true"}
    shell(root, steps["Build"]["run"], runner)
    (root / "build.sh").write_text(build)
    with FakeServer([RIGHT]) as server:
        variables = to(server, steps["Repair"]["env"]) | ({"CODE_COMMIT_SANDBOX": "no-such"} if code else {})
        done = shell(root, steps["Repair"]["run"], runner | variables)
        assert done.returncode == code, done.stderr
        assert server.requests == []
    assert shell(root, steps["Report"]["run"], runner).returncode == 0


def test_what_is_not_said_to_be_installed_is_not_guessed(root: Path, tmp_path: Path):
    steps = {step.get("name"): step for step in read("github-actions.yml")["jobs"]["build"]["steps"]}
    scripts = steps["Install code-commit"]["run"], "\n".join(read("gitlab-ci.yml")["repair"]["script"])
    for script in scripts:
        done = shell(root, script, {"PACKAGE": "", "RUNNER_TEMP": str(tmp_path), "CI_PROJECT_DIR": str(root)})
        assert done.returncode == 1
        assert "Set the" in done.stdout
        assert "variable CODE_COMMIT_PACKAGE" in done.stdout
    assert "PACKAGE: ${{ vars.CODE_COMMIT_PACKAGE }}" in (EXAMPLES / "github-actions.yml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "code"), [(RIGHT, 0), (WRONG, 1)])
def test_the_jobs_of_gitlab(answer, code, root: Path):
    jobs = read("gitlab-ci.yml")
    variables = {"CI": "true", "CI_PROJECT_DIR": str(root)}
    assert shell(root, "\n".join(jobs["default"]["before_script"]), variables).returncode == 0
    assert shell(root, "\n".join(jobs["build"]["script"]), variables).returncode == 1
    assert jobs["build"]["artifacts"]["paths"] == ["agent-config/red-build.txt"]

    job = jobs["repair"]
    assert (job["when"], jobs["stages"]) == ("on_failure", ["build", "repair"])
    first = next(number for number, line in enumerate(job["script"]) if line.startswith("git config"))
    script = job["script"][first:]  # what is before it installs code-commit, which is here
    with FakeServer([answer] * 4) as server:
        done = shell(root, "\n".join(script), variables | to(server, job["variables"]))
        assert done.returncode == code, done.stderr
        assert "not yet" in str(server.requests[0].body)
    report = shell(root, "\n".join(job["after_script"]), variables)
    assert report.returncode == 0, report.stderr
    for path in job["artifacts"]["paths"]:
        assert (root / path).exists(), path
    if code == 0:
        shutil.copy(root / "agent-config" / "repair.patch", root.parent)
        patch_applies_to_a_clean_checkout(root, root.parent / "repair.patch")


def test_the_examples_name_only_settings_that_there_are():
    for variables in (
        read("gitlab-ci.yml")["repair"]["variables"],
        *(step.get("env", {}) for step in read("github-actions.yml")["jobs"]["build"]["steps"]),
    ):
        for name in variables:
            if name.startswith("CODE_COMMIT_"):
                assert name.removeprefix("CODE_COMMIT_").lower() in OPTIONS
