"""A failure that the sandbox made is told by the end of the output, and no repair is paid for."""

import json
import shutil
from pathlib import Path

import pytest
from command import Run, recorded, the_log

from code_commit.build.refusals import find_refusal

ROOT = Path("/p")
KEPT = [ROOT / "build.sh", ROOT / ".git/hooks", ROOT / ".git/config", Path("/home/me")]
REFUSED = [
    "chmod: changing permissions of './build.sh': Read-only file system",
    "./build.sh: line 3: .git/hooks/pre-commit: Read-only file system",
    "./build.sh: 3: cannot create .git/hooks/pre-commit: Read-only file system",
    "mv: cannot move 'new.sh' to 'build.sh': Device or resource busy",
    "error: could not write config file /p/.git/config: Device or resource busy",
    "Error: EROFS: read-only file system, open '/home/me/.npmrc'",
    "PermissionError: [Errno 1] Operation not permitted: 'build.sh'",
]
OTHERS = [
    "OSError: [Errno 30] Read-only file system: '/mnt/data/out.csv'",
    "./build.sh: line 3: /mnt/x: Read-only file system",
    "chown /srv/data: Operation not permitted",
    "rebuild.sh: Read-only file system",
    "build.sh.in: Read-only file system",
    "build.sh: line 9: 4 tests failed",
    "curl: (6) Could not resolve host: example.org",
]


@pytest.mark.parametrize("line", REFUSED)
def test_a_kept_path_that_was_refused_is_found(line):
    assert find_refusal(f"first\n{line}\n\nmake: *** Error 1\n".encode(), KEPT, ROOT, network=True) in line


@pytest.mark.parametrize("line", OTHERS)
def test_what_the_code_itself_does_is_none(line):
    assert find_refusal(f"{line}\n".encode(), KEPT, ROOT, network=True) == ""


def test_what_was_refused_long_before_the_end_did_not_end_the_build():
    output = REFUSED[0] + "\nmore" * 20
    assert find_refusal(output.encode(), KEPT, ROOT, network=True) == ""


def test_without_a_network_a_name_that_is_looked_up_is_refused():
    assert find_refusal(OTHERS[-1].encode(), KEPT, ROOT, network=False) == OTHERS[-1]
    assert find_refusal(b"connect to 127.0.0.1: Connection refused\n", KEPT, ROOT, network=False) == ""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_no_repair_is_paid_for_and_resume_builds_again(project_folder: Path, run_code_commit: Run):
    build = project_folder / "build.sh"
    build.write_text("#!/bin/sh\nset -e\ntouch build.sh\ngrep -q '^ok$' ok.txt\n")
    answers = recorded(project_folder, *["^^^ok.txt\nok\n^^^end\n"] * 2)
    done = run_code_commit(project_folder, *answers, "--sandbox", "guard")
    assert done.returncode == 5, done.stderr
    assert "the sandbox made build.sh fail, so no repair was asked for: touch:" in done.stderr
    assert "--sandbox off" in done.stderr
    (attempt,) = json.loads((the_log(project_folder) / "run.json").read_text())["attempts"]
    assert attempt["build"]["refused"].startswith("touch:")
    done = run_code_commit(project_folder, "resume", "--sandbox", "off")
    assert (done.returncode, "attempt 2" in done.stderr) == (0, False), done.stderr


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_build_cannot_hit_the_sandbox_by_the_projects_name(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text('#!/bin/sh\ntr "\\0" " " </proc/$PPID/cmdline\nexit 1\n')
    answers = recorded(project_folder, "^^^ok.txt\nok\n^^^end\n")
    run_code_commit(project_folder, *answers, "--sandbox", "guard", "--max-repairs", "0")
    output = (the_log(project_folder) / "1-build.txt").read_text()
    assert "bwrap" in output
    assert str(project_folder) not in output.partition(" -- ")[0]
