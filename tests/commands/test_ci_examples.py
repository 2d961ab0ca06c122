"""The examples for CI: they are YAML, and their shell steps do in a red repository what they promise."""

import json
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
    for step in workflow["jobs"]["build"]["steps"]:
        runs_code = any(words in step.get("run", "") for words in ("npm ci", "./build.sh", "code-commit repair"))
        assert not runs_code or "env -u GITHUB_ENV" in step["run"], "the project sets no variable of a later step"
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
    github = [read("github-actions.yml")["jobs"]["build"], *read("github-repair.yml")["jobs"].values()]
    for variables in (
        *(read(name)["repair"]["variables"] for name in ("gitlab-ci.yml", "gitlab-repair.yml")),
        *(step.get("env", {}) for job in github for step in job["steps"]),
    ):
        for name in variables:
            if name.startswith("CODE_COMMIT_"):
                assert name.removeprefix("CODE_COMMIT_").lower() in OPTIONS


STUB = """#!/bin/sh
{ printf '%s|' "$(basename "$0")" "$@"; echo; } >>"$STUB_CALLS"
case "$1 $2" in
  "pr list") case "$*" in *"--head repair/"*) exit 0 ;; esac
    while [ "$1" != --jq ]; do shift; done; exec jq -r "$2" "$STUB_PULLS" ;;
  "run view") cat "$STUB_LOG" ;;
esac
"""
CI_LOG = "build\tUNKNOWN STEP\t2026-11-28T01:02:03.1234567Z ok.txt:1: CI says that it is not ok\n"


@pytest.fixture
def branch(root: Path, tmp_path: Path) -> str:
    """A red branch of a repository with a bare origin; return its commit."""
    git(tmp_path, "init", "-q", "--bare", "origin.git")
    git(root, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(root, "push", "-q", "origin", "main")
    git(root, "switch", "-qc", "feature")
    (root / "feature.txt").write_text("feature\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "feature")
    git(root, "push", "-q", "origin", "feature")
    for name in ("gh", "glab"):
        (tmp_path / "bin" / name).write_text(STUB)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "ci-log").write_text(CI_LOG)
    return git(root, "rev-parse", "HEAD").strip()


def stubbed(tmp_path: Path, commit: str, **pull: object) -> dict[str, str]:
    """Return what the runner and the stubs of gh and glab are told; `pull` differs from the pull request as it is."""
    pulls = [{"number": 7, "baseRefName": "main", "headRefOid": commit, "isCrossRepository": False} | pull]
    (tmp_path / "pulls.json").write_text(json.dumps(pulls if pull != {"number": None} else []))
    files = {"STUB_CALLS": "calls", "STUB_PULLS": "pulls.json", "STUB_LOG": "ci-log", "GITHUB_OUTPUT": "outputs"}
    paths = {name: str(tmp_path / file) for name, file in files.items()}
    github = {"BRANCH": "feature", "COMMIT": commit, "RUN": "4711", "NUMBER": "7", "RUNNER_TEMP": str(tmp_path)}
    return {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "CI": "true", **paths, **github}


def outputs(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "outputs"
    return dict(line.split("=", 1) for line in file.read_text().splitlines()) if file.exists() else {}


def steps_of(job: str) -> dict[str, Any]:
    return {step.get("name", step.get("uses")): step for step in read("github-repair.yml")["jobs"][job]["steps"]}


def merge_repairs(root: Path, repairs: int, mark: str) -> None:
    """Merge repairs into the branch: the first one is squashed, of which the title alone is left, the others are not.

    The message of a merge has the title too, and counts for nothing.
    """
    for number in range(repairs):
        title = f"Repair the build of {mark}7"
        if number == 0:
            git(root, "commit", "-q", "--allow-empty", "-m", title)
            continue
        git(root, "switch", "-q", "-c", f"repair/7-{number}")
        git(root, "commit", "-q", "--allow-empty", "-m", "Repair the build", "-m", f"Repair-Of: {number}")
        git(root, "switch", "-q", "-")
        git(root, "merge", "-q", "--no-ff", f"repair/7-{number}", "-m", "Merge", "-m", title)


def forge(patch: Path, name: str) -> None:
    """Add a new file to a repair: what ran beside the tool may write the artifact."""
    mail = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
    patch.write_text(patch.read_text() + mail)


def offered(tmp_path: Path, name: str, commit: str) -> None:
    """Fail unless the origin has the repair on a branch of its own, one commit on top of the red one."""
    origin = tmp_path / "origin.git"
    assert git(origin, "rev-parse", f"{name}^").strip() == commit
    assert git(origin, "show", f"{name}:ok.txt") == "ok\n"
    assert git(origin, "show", f"{name}:new.txt") == "new\n"
    assert git(origin, "log", "-1", "--format=%(trailers:key=Repair-Of,valueonly)", name).strip() == "4711"
    assert git(origin, "rev-parse", "feature").strip() == commit


def must_not_be_offered(artifact: Path, offer: str, runner: dict[str, str], name: str) -> None:
    """Fail unless the job refuses an artifact whose patch changes this file too, and pushes nothing."""
    root, patch = Path(runner["RUNNER_TEMP"], "offering"), artifact / "repair.patch"
    genuine, commit = patch.read_text(), git(root, "rev-parse", "HEAD").strip()
    forge(patch, name)
    done = shell(root, offer, runner)
    assert (done.returncode, f"{name}\0" in done.stdout) == (1, True), done.stderr
    assert "repair/" not in git(root, "ls-remote", "origin")
    patch.write_text(genuine)
    git(root, "checkout", "-qf", commit)
    git(root, "branch", "-qD", "repair/7-4711")


NOT_REPAIRED: dict[str, tuple[dict[str, object], int, str]] = {
    "it has no label": ({"number": None}, 0, "no open pull request with the label repair"),
    "it comes from a fork": ({"isCrossRepository": True}, 0, "no open pull request with the label repair"),
    "it has newer commits": ({"headRefOid": "f" * 40}, 0, "the branch has newer commits"),
    "it has three repairs": ({}, 3, "3 repairs are on the branch: no more of them"),
}


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("name", [*NOT_REPAIRED, "it may be repaired"])
def test_github_repairs_what_asks_for_it(name, root: Path, branch: str, tmp_path: Path):
    pull, repairs, message = NOT_REPAIRED.get(name, ({}, 2, ""))
    merge_repairs(root, repairs, "#")
    commit = git(root, "rev-parse", "HEAD").strip()
    step = steps_of("repair")["Decide"]
    done = shell(root, step["run"], {**stubbed(tmp_path, commit, **pull), "MOST_REPAIRS": step["env"]["MOST_REPAIRS"]})
    assert done.returncode == 0, done.stderr
    assert message in done.stdout
    assert outputs(tmp_path) == ({} if message else {"number": "7"})
    assert "|--head|feature|--label|repair|--state|open|" in (tmp_path / "calls").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "passes"), [(RIGHT, True), (WRONG, False)])
def test_github_offers_a_repair_as_a_pull_request(answer, passes, root: Path, branch: str, tmp_path: Path):
    steps, runner = steps_of("repair"), stubbed(tmp_path, branch)
    assert shell(root, steps["Read the log of CI"]["run"], runner).returncode == 0
    with FakeServer([answer] * 4) as server:
        variables = steps["Repair"]["env"] | read("github-repair.yml")["env"]
        done = shell(root, steps["Repair"]["run"], runner | to(server, variables))
        assert done.returncode == 0, done.stderr
        assert "CI says that it is not ok" in str(server.requests[0].body)
        assert ".github/" in str(server.requests[0].body), "what it must not change"
    assert outputs(tmp_path) == ({"passes": "true"} if passes else {})
    artifact = tmp_path / "repair"
    for path in [*artifact.rglob("*.*"), tmp_path / "summary.md"]:
        assert KEY.encode() not in path.read_bytes()
    assert "<!doctype html>" in (artifact / "run.html").read_text().lower()

    git(tmp_path, "clone", "-q", "origin.git", "offering")
    git(tmp_path / "offering", "checkout", "-q", branch)
    offer = steps_of("offer")
    assert shell(tmp_path / "offering", offer["Comment"]["run"], runner).returncode == 0
    assert f"gh|pr|comment|7|--body-file|{artifact}/summary.md|" in (tmp_path / "calls").read_text()
    assert offer["Offer"]["if"] == "needs.repair.outputs.passes == 'true'"
    if passes:
        runner |= read("github-repair.yml")["env"]
        must_not_be_offered(artifact, offer["Offer"]["run"], runner, ".github/workflows/evil.yml")
        must_not_be_offered(artifact, offer["Offer"]["run"], runner, "src/tests/test_new.py")
        for _ in ("first", "run again"):
            done = shell(tmp_path / "offering", offer["Offer"]["run"], runner)
            assert done.returncode == 0, done.stderr
            offered(tmp_path, "repair/7-4711", branch)
        assert "gh|pr|create|--base|feature|--head|repair/7-4711|" in (tmp_path / "calls").read_text()
        git(root, "fetch", "-q", "origin")
        (tmp_path / "outputs").unlink()
        done = shell(root, steps["Decide"]["run"], runner | {"MOST_REPAIRS": "3"})
        assert (done.returncode, outputs(tmp_path)) == (0, {}), "a run again pays nothing"
        assert "repair/7-4711 is there already" in done.stdout


def test_a_red_machine_is_no_repair_that_failed(root: Path, branch: str, tmp_path: Path):
    runner = stubbed(tmp_path, branch) | {"CODE_COMMIT_MODEL": "openai", "CODE_COMMIT_SANDBOX": "off"}
    (tmp_path / "ci.log").touch()
    done = shell(root, steps_of("repair")["Repair"]["run"], runner)
    assert done.returncode == 2, "there is no key"
    assert "passes" not in outputs(tmp_path)


def test_the_guards_of_github():
    workflow = read("github-repair.yml")
    repair, offer = workflow["jobs"]["repair"], workflow["jobs"]["offer"]
    assert workflow["concurrency"] == {
        "group": "repair-${{ github.event.workflow_run.head_repository.id }}-${{ github.event.workflow_run.head_branch }}"
    }
    assert workflow["permissions"] == {}
    assert "head_repository.full_name == github.repository" in repair["if"]
    assert set(repair["permissions"].values()) == {"read"}, "what runs the branch's code writes nothing"
    assert "REPAIR_TOKEN" not in str(repair)
    assert "OPENAI_API_KEY" not in str(offer)
    assert not any(word in str(offer) for word in ("pip install", "npm ci", "./build.sh"))
    assert [step["name"] for step in repair["steps"] if "secrets." in str(step)] == ["Repair"]
    for job in (repair, offer):
        checkout = job["steps"][0]["with"]
        assert checkout["ref"] == "${{ github.event.workflow_run.head_sha }}"
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "a branch may be called $(anything)"
    assert "env -u GITHUB_ENV -u GITHUB_OUTPUT" in steps_of("repair")["Repair"]["run"], "a build cannot say passes=true"
    assert "env -u GITHUB_ENV -u GITHUB_OUTPUT" in steps_of("repair")["Install"]["run"], "nor a set-up set variables"
    settings = workflow["env"] | steps_of("repair")["Repair"]["env"]
    assert float(settings["CODE_COMMIT_MAX_COST"]) > 0
    assert {"test*/", ".github/"} <= set(settings["CODE_COMMIT_PROTECT"].split(","))


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_no_set_up_of_gitlab_sees_the_key(shell: str, tmp_path: Path):
    (tmp_path / "pip").write_text("#!/bin/sh\necho key: $OPENAI_API_KEY\n")
    (tmp_path / "pip").chmod(0o755)
    script = f"{read('gitlab-repair.yml')['default']['before_script'][0]}\npip install -e ."
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OPENAI_API_KEY": "sk-secret"}
    done = subprocess.run([shell, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "key:\n"


def test_the_guards_of_gitlab():
    jobs = read("gitlab-repair.yml")
    (rule,) = jobs[".repair"]["rules"]
    for guard in (
        '$CI_PIPELINE_SOURCE == "merge_request_event"',
        "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID",
        "$CI_MERGE_REQUEST_LABELS =~ /(^|,)repair(,|$)/",
    ):
        assert guard in rule["if"]
    repair, offer = jobs["repair"], jobs["offer"]
    assert (rule["when"], repair["extends"], offer["extends"]) == ("on_failure", ".repair", ".repair")
    assert repair["resource_group"] == "repair-$CI_MERGE_REQUEST_IID"
    assert [job["environment"]["name"] for job in (repair, offer)] == ["repair", "offer"], "each sees its own secret"
    assert float(repair["variables"]["CODE_COMMIT_MAX_COST"]) > 0
    assert {"test*/", ".gitlab*"} <= set(jobs[".repair"]["variables"]["CODE_COMMIT_PROTECT"].split(","))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "repairs", "code"), [(RIGHT, 2, 0), (WRONG, 0, 1), (RIGHT, 3, 1)], ids=["right", "wrong", "too many"]
)
def test_gitlab_offers_a_repair_as_a_merge_request(answer, repairs, code, root: Path, branch: str, tmp_path: Path):
    merge_repairs(root, repairs, "!")
    git(root, "push", "-q", "origin", "feature")
    commit, jobs = git(root, "rev-parse", "HEAD").strip(), read("gitlab-repair.yml")
    request = {"IID": "7", "TARGET_BRANCH_NAME": "main", "SOURCE_BRANCH_NAME": "feature"}
    runner = {f"CI_MERGE_REQUEST_{name}": value for name, value in request.items()}
    runner |= {"CI_PROJECT_DIR": str(root), "CI_PIPELINE_ID": "4711", "REPAIR_TOKEN": "token", "CI_SERVER_HOST": "host"}
    runner |= jobs[".repair"]["variables"] | stubbed(tmp_path, commit) | {"PUSH_URL": str(tmp_path / "origin.git")}
    assert shell(root, "\n".join(jobs["build"]["script"]), runner).returncode == 1
    assert jobs["build"]["artifacts"]["paths"] == ["agent-config/ci.log"]

    job = jobs["repair"]
    first = next(number for number, line in enumerate(job["script"]) if line.startswith("git config"))
    with FakeServer([answer] * 4) as server:
        variables = {**runner, **job["variables"], **to(server, job["variables"])}
        done = shell(root, "\n".join(job["script"][first:]), variables)
        assert done.returncode == code, done.stderr
        assert len(server.requests) == 0 if repairs == 3 else "not yet" in str(server.requests[0].body)
    git(tmp_path, "clone", "-q", "origin.git", "offering")
    git(tmp_path / "offering", "checkout", "-q", commit)
    artifact, offer = tmp_path / "offering/agent-config/repair", "\n".join(jobs["offer"]["script"])
    if (root / "agent-config/repair").exists():
        shutil.copytree(root / "agent-config/repair", artifact)
    if code == 0:
        must_not_be_offered(artifact, offer, runner, ".gitlab/ci.yml")
        (artifact / "link").symlink_to("/proc/self/environ")
        done = shell(tmp_path / "offering", offer, runner)
        assert (done.returncode, "A link in the artifact" in done.stdout) == (1, True)
        (artifact / "link").unlink()
    for _ in ("first", "run again"):
        done = shell(tmp_path / "offering", offer, runner)
        assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text() if (tmp_path / "calls").exists() else ""
    assert ("glab|mr|note|7|--message|## " in calls) == (repairs < 3)
    if code == 0:
        offered(tmp_path, "repair/7-4711", commit)
        assert "glab|mr|create|--yes|--source-branch|repair/7-4711|--target-branch|feature|" in calls
        done = shell(root, "\n".join(job["script"][first:]), variables)
        assert (done.returncode, "repair/7-4711 is there already" in done.stdout) == (1, True), "and pays nothing"
    else:
        assert "repair/" not in git(tmp_path / "origin.git", "branch", "--list")
