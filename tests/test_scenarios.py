"""Whole runs as data: each folder of tests/scenarios is one run with recorded responses.

scenario.toml    what happens in a sentence, arguments, config.toml, which files the rollup lacks, exit code,
                 what stderr says, what prompts hold or lack
project/         the tree before (the usual .gitignore, query and rollup are added where it has none)
responses/       N-response.txt, what the LLM answers to call N
expected/        the tree after, whole
"""

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command import Run, git

SCENARIOS = sorted((Path(__file__).parent / "scenarios").iterdir())
OWN_FILES = {".gitignore"}


def lay_out(scenario: Path, root: Path, wanted: dict[str, Any]) -> None:
    shutil.copytree(scenario / "project", root)
    config = root / "agent-config"
    config.mkdir(mode=0o700)
    shutil.copytree(scenario / "responses", config / "recorded")
    (config / "query.txt").write_text("The query of the scenario.\n")
    if "config" in wanted:
        (config / "config.toml").write_text(wanted["config"])
    held = {name: content for name, content in tree(root).items() if name not in wanted.get("rollup_lacks", [])}
    rollup = "".join(f"--- {name} ---\n{content.decode()}\n" for name, content in held.items())
    (config / "codeRollup.txt").write_text(rollup)
    (root / ".gitignore").write_text("/agent-config\n/target\n")
    (root / "build.sh").chmod(0o755)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")


def tree(root: Path) -> dict[str, bytes]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    names = {str(path.relative_to(root)): path.read_bytes() for path in files}
    return {
        name: content
        for name, content in names.items()
        if not name.startswith(("agent-config/", ".git/")) and name not in OWN_FILES
    }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.name)
def test_scenario(scenario: Path, tmp_path: Path, run_code_commit: Run):
    wanted = tomllib.loads((scenario / "scenario.toml").read_text())
    root = tmp_path / "project"
    lay_out(scenario, root, wanted)

    done = run_code_commit(root, "--model", "replay:agent-config/recorded", *wanted.get("arguments", []))

    assert done.returncode == wanted["exit_code"], done.stderr
    assert tree(root) == tree(scenario / "expected")
    for said in wanted.get("stderr", []):
        assert said in done.stderr
    (log,) = (root / "agent-config" / "logs").iterdir()
    prompts = sorted(log.glob("*-query.txt"))
    assert len(prompts) == wanted["calls"]
    for number, holds in wanted.get("prompt_holds", {}).items():
        for text in holds:
            assert text in (log / f"{number}-query.txt").read_text()
    for number, lacks in wanted.get("prompt_lacks", {}).items():
        for text in lacks:
            assert text not in (log / f"{number}-query.txt").read_text()
    assert git(root, "log", "--oneline").count("\n") == 1
