"""The tree that a run begins in."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Run, git, replay

from code_commit.check.tree import loses_failures


def missing_tree(root: Path) -> None:
    """After it `git status` ends with 128 and tells nothing."""
    (root / "new.txt").touch()
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a tree that is in no pack")
    name = git(root, "rev-parse", "HEAD^{tree}").strip()
    (root / ".git" / "objects" / name[:2] / name[2:]).unlink()


def no_repository(root: Path) -> None:
    shutil.rmtree(root / ".git")


@pytest.mark.parametrize(
    ("build", "told"), [(missing_tree, "git status failed"), (no_repository, "not a git repository")]
)
def test_a_tree_that_git_cannot_judge_is_not_clean(
    project_folder: Path, run_code_commit: Run, build: Callable[[Path], None], told: str
):
    build(project_folder)
    options = replay(project_folder)
    done = run_code_commit(project_folder, *options, "--require-clean")
    assert (done.returncode, told in done.stderr, "--require-clean" in done.stderr) == (2, True, True), done.stderr
    assert (project_folder / "ok.txt").read_text() == "not yet\n"
    done = run_code_commit(project_folder, *options)
    assert (done.returncode, told in done.stderr) == (0, True), done.stderr


def test_a_clean_tree_may_be_required(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, *replay(project_folder), "--require-clean")
    assert done.returncode == 0, done.stderr


LOSING = [
    "#!/bin/sh\nnpm ci\nnpm test\n",
    "make\nmake test",
    "#!/usr/bin/env bash\nset -u\nmake; echo done\n",
    "#!/bin/bash\nmake test\nexit 0\n",
    "#!/bin/sh\nif [ -d web ]; then npm test; fi\ncargo test\n",
    "#!/bin/sh\n# set -e\nmake && make test\nmake lint\n",
    "#!/bin/sh\nall() {\n  make\n  make test\n}\nall\n",
    "#!/bin/sh\necho 'set -e'\nmake\nmake test\n",
]
KEEPING = [
    "#!/bin/sh\nmake\n",
    "#!/bin/sh -e\nmake\nmake test\n",
    "#!/usr/bin/env bash\nset -euo pipefail\nmake\nmake test\n",
    "#!/bin/sh\nset -o errexit\nmake\nmake test\n",
    "#!/bin/bash\nset -Eeuo pipefail; make; make test\n",
    "#!/bin/bash\ntrap 'exit 1' ERR\nmake\nmake test\n",
    '#!/bin/sh\ncd src\nexport CI=true\nA=1\necho "now; the\nbuild" # it\'s\nmake \\\n  test\n',
    "#!/bin/sh\nmake &&\n  make test\n",
    "#!/bin/sh\nmake || exit 1\nmake test || exit\n",
    "#!/bin/sh\nmake\nstatus=$?\nrm -rf x || true\nexit $status\n",
    "#!/bin/sh\nif [ -f a ]; then make a; else make b; fi\n",
    "#!/bin/sh\npython3 - <<'END'\nimport a\na.run()\nEND\n",
    "#!/usr/bin/env python3\nimport a\na.run()\n",
]


@pytest.mark.parametrize("script", LOSING)
def test_a_script_that_goes_on_after_a_failure_loses_it(script: str):
    assert loses_failures(script)


@pytest.mark.parametrize("script", KEEPING)
def test_a_script_that_ends_at_a_failure_keeps_it(script: str):
    assert not loses_failures(script)


@pytest.mark.parametrize(
    ("command", "end"),
    [("prompt", "write the task into it, or give it with -m TEXT"), ("rollup", "write the task into it")],
)
def test_a_missing_task_is_given_by_options_that_the_command_has(
    command: str, end: str, project_folder: Path, run_code_commit: Run
):
    (project_folder / "agent-config" / "query.txt").write_text("")
    done = run_code_commit(project_folder, command, *(["--fit", "500"] if command == "rollup" else []))
    assert (done.returncode, done.stderr) == (2, f"code-commit: agent-config/query.txt is empty: {end}\n")
