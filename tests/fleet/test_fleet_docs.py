"""What docs/fleet.md shows is done here: tried without a key (by two tasks), made into branches, on a small cluster."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import git

from code_commit.errors import NotSetUpError
from code_commit.fleet.cluster import connect
from code_commit.fleet.tasks import FleetTask, read_tasks

DOCUMENT = (Path(__file__).parents[2] / "docs" / "fleet.md").read_text("utf-8")
_, LIST, TRY, BRANCHES, CLUSTER, _ = re.findall(r"^```sh\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)


def shell(folder: Path, script: str, scheduler: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script, where a fleet with results goes to this scheduler if there is one."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    there = (
        f'case "$*" in "fleet "*" --out "*) set -- "$@" --scheduler {scheduler} --insecure;; esac\n'
        if scheduler
        else ""
    )
    for name, module in (("code-commit", "code_commit"), ("dask", "dask")):
        (bin_folder / name).write_text(f'#!/bin/sh\n{there}exec {sys.executable} -P -m {module} "$@"\n')
        (bin_folder / name).chmod(0o755)
    folders = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": folders, "TMPDIR": str(folder)}
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_example_is_a_list_of_tasks():
    lines = re.findall(r"^```json\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)[0].splitlines()
    assert [FleetTask.model_validate_json(line).id for line in lines] == ["api-httpx", "web-httpx", "bug-1234"]


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq here")
def test_the_example_of_a_first_line(tmp_path):
    assert shell(tmp_path, LIST).returncode == 0
    (tmp_path / "web").mkdir()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        git(tmp_path / "web", *words)
    with (tmp_path / "many.jsonl").open("a") as file:
        file.write('{"id": "web", "repository": "web", "query": "Raise httpx to 0.28."}')
    (task,) = read_tasks(tmp_path / "many.jsonl")
    assert (task.build, task.setup) == ("make test\n", True)


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq here")
def test_tasks_without_a_key_become_branches(cluster, tmp_path):
    two_tasks = TRY.replace("in one two three;", "in one two;")
    done = shell(tmp_path, two_tasks + BRANCHES, cluster.address)
    assert done.returncode == 0, done.stderr
    assert "2 tasks: no mistake" in done.stdout
    assert "2 of 2 tasks green" in done.stderr
    branches = done.stdout.splitlines()[1:]
    assert [branch.strip(" +") for branch in branches] == ["fleet/one", "fleet/two"]
    for name in ("one", "two"):
        assert git(tmp_path / "branches" / name, "show", "--format=%s").startswith("Slugs must drop punctuation.\n")
        assert git(tmp_path / "branches" / name, "status", "--short") == ""


@pytest.mark.slow
def test_the_smallest_cluster(tmp_path, whole):
    if not whole:
        pytest.skip("it takes ten seconds; --whole runs it")
    three_tasks = TRY.replace("code-commit fleet tasks.jsonl --out results\n", "")
    done = shell(tmp_path, "trap 'kill $(jobs -p); wait' EXIT\n" + three_tasks + CLUSTER)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 tasks green" in done.stderr
    assert (tmp_path / "of-the-cluster" / "one" / "changes.patch").exists()


def test_a_cluster_that_wants_a_certificate_and_gets_none_is_no_bug_of_ours():
    with pytest.raises(NotSetUpError, match="check your TLS configuration"), connect("tls://127.0.0.1:1", None, print):
        pass
