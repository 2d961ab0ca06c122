"""The demo: a repair in a folder of its own."""

from pathlib import Path

from command import Run, git, tree


def test_the_demo_shows_a_repair_and_says_that_its_folder_may_go(tmp_path: Path, run_code_commit: Run):
    done = run_code_commit(tmp_path, "demo", env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "attempt 1 of 4: build failed" in done.stderr
    assert "The build passes after 2 attempts" in done.stderr
    (folder,) = tmp_path.iterdir()
    assert done.stdout.endswith(f"Nothing else needs this folder. To delete it:\n  rm -r {folder}\n")


def test_the_demo_leaves_the_repository_of_a_hook_alone(project_folder: Path, tmp_path: Path, run_code_commit: Run):
    variables = {"GIT_DIR": ".git", "GIT_WORK_TREE": ".", "GIT_INDEX_FILE": ".git/index"}
    variables = {name: str(project_folder / value) for name, value in variables.items()}
    before = tree(project_folder), git(project_folder, "log", "--format=%H"), git(project_folder, "status", "--short")
    done = run_code_commit(tmp_path, "demo", env={"TMPDIR": str(tmp_path)} | variables)
    assert (done.returncode, "diff --git " in done.stdout) == (0, True), done.stderr
    after = tree(project_folder), git(project_folder, "log", "--format=%H"), git(project_folder, "status", "--short")
    assert after == before
