"""The demo: a repair in a folder of its own."""

from pathlib import Path

from command import Run


def test_the_demo_shows_a_repair_and_says_that_its_folder_may_go(tmp_path: Path, run_code_commit: Run):
    done = run_code_commit(tmp_path, "demo", env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "attempt 1 of 4: build failed" in done.stderr
    assert "The build passes after 2 attempts" in done.stderr
    (folder,) = tmp_path.iterdir()
    assert done.stdout.endswith(f"Nothing else needs the folder; when you have looked:\n  rm -r {folder}\n")
