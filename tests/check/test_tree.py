"""The tree that a run begins in."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Run, git, replay


def missing_tree(root: Path) -> None:
    """After it `git status` ends with 128 and tells nothing."""
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
