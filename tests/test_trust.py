"""Nothing that lies inside the project runs outside the sandbox: what an answer or a build put there, and honest shapes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import Run, recorded

from code_commit.keys import KEY_VARIABLES
from code_commit.trust import find_program

PASSES, FAILS = "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nno\n^^^end\n"
SHELL = f"#!{Path('/bin/sh')}\n"
REAL_PATH = os.environ["PATH"]


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """Outside the project: what runs that must not makes this file."""
    return tmp_path / "ran"


def program(ran: Path, name: str = "git") -> str:
    return f'#!/bin/sh\necho "$0 $*" >>{ran}\nexec {find_program(name, "/dev/null")} "$@"\n'


@pytest.mark.parametrize("place", ["bin", "./bin", "", "{root}/bin", "{root}/../link/bin", "{root}/../to-bin"])
def test_no_program_that_an_answer_wrote_is_run(place, project_folder: Path, ran: Path, run_code_commit: Run):
    (project_folder.parent / "link").symlink_to("project")
    (project_folder.parent / "to-bin").symlink_to("project/bin")
    folder = "bin/" if place else ""
    answer = "".join(f"^^^{folder}{name}\n{program(ran, name)}^^^end\n" for name in ("git", "true", "nsenter", "sh"))
    options = recorded(project_folder, answer + FAILS, PASSES)
    path = f"{place.format(root=project_folder)}:{REAL_PATH}"
    for _ in range(2):
        done = run_code_commit(project_folder, *options, "--sandbox", "off", env={"PATH": path})
        assert done.returncode == 0, done.stderr
    assert os.access(project_folder / f"{folder}git", os.X_OK)
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("mode", ["off", "guard", "strict"])
def test_no_program_that_a_build_wrote_is_run(mode, project_folder: Path, ran: Path, run_code_commit: Run):
    """It lies in the work tree, above the project, and is reached through a folder outside."""
    root = project_folder / "inner"
    (root / "agent-config").mkdir(parents=True)
    for name in ("build.sh", ".gitignore", "agent-config/query.txt", "agent-config/codeRollup.txt"):
        (project_folder / name).rename(root / name)
    outside = project_folder.parent / "programs"
    outside.mkdir()
    wanted = root / "bin" if mode == "strict" else project_folder / "bin"
    (outside / "git").symlink_to(wanted / "git")
    script = (
        f"mkdir -p {wanted}\ncat >{wanted}/git <<'!'\n{program(ran)}!\nchmod +x {wanted}/git\ngrep -q '^ok' ok.txt\n"
    )
    (root / "build.sh").write_text(f"#!/bin/sh\n{script}")
    done = run_code_commit(
        root, *recorded(root, FAILS, PASSES), "--sandbox", mode, env={"PATH": f"{outside}:{wanted}:{REAL_PATH}"}
    )
    assert (done.returncode, (wanted / "git").exists()) == (0, True), done.stderr
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("setting", ["", ".", "src", "{root}/src", "{root}/../link"])
def test_no_module_that_an_answer_wrote_is_imported(setting, project_folder: Path, ran: Path, run_code_commit: Run):
    """`python -m code_commit` alone puts the current folder in front."""
    (project_folder.parent / "link").symlink_to("project")
    folder = "src/" if "src" in setting else ""
    names = {*sys.stdlib_module_names, "httpx", "pydantic", "jinja2", "rich", "pathspec", "genai_prices"} - {
        "antigravity"
    }
    spy = f"open({str(ran)!r}, 'a').write(__name__ + chr(10))\n"
    answer = "".join(f"^^^{folder}{name}.py\n{spy}^^^end\n" for name in sorted(names) if "aux" not in name)
    options = [*recorded(project_folder, answer + FAILS, PASSES), "--sandbox", "off"]
    env = {"PYTHONPATH": setting.format(root=project_folder)} if setting else {}
    done = run_code_commit(project_folder, *options, env=env)
    assert done.returncode == 0, done.stderr
    assert not ran.exists(), ran.read_text()
    for name in python_has_loaded():
        (project_folder / f"{folder}{name}.py").unlink(missing_ok=True)
    assert run_code_commit(project_folder, *options, env=env).returncode == 0
    assert not ran.exists(), ran.read_text()


def python_has_loaded() -> set[str]:
    """Return what Python itself imports from the current folder before it comes to anything of ours."""
    script = "import runpy, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_python_that_calls_the_tool_keeps_its_own_path(project_folder: Path):
    script = "import sys; sys.path.insert(0, ''); before = list(sys.path); import code_commit; code_commit.run"
    script += "; sys.exit(sys.path != before)"
    assert subprocess.run([sys.executable, "-c", script], cwd=project_folder, check=False).returncode == 0


def test_git_gets_no_key_and_no_way_into_the_project(project_folder: Path, run_code_commit: Run):
    outside = project_folder.parent / "programs"
    outside.mkdir()
    seen = project_folder.parent / "seen"
    (outside / "git").write_text(f'#!/bin/sh\nenv >>{seen}\nexec {find_program("git", "/dev/null")} "$@"\n')
    (outside / "git").chmod(0o755)
    keys = {name: f"sk-secret-of-{name.lower()}" for name in KEY_VARIABLES.values()}
    paths = dict.fromkeys(("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"), f"lib:{project_folder}/lib:/no/such/lib")
    env = keys | paths | {"PATH": f"{outside}:{project_folder}/bin:{REAL_PATH}", "CODE_COMMIT_MAX_COST": "7.25"}
    done = run_code_commit(project_folder, *recorded(project_folder, PASSES), "--sandbox", "off", env=env)
    assert done.returncode == 0, done.stderr
    lines = set(seen.read_text().splitlines())
    assert {f"PATH={outside}:{REAL_PATH}", "LD_LIBRARY_PATH=/no/such/lib", f"HOME={os.environ['HOME']}"} <= lines
    assert not [line for line in lines if "sk-secret" in line or "7.25" in line or f"{project_folder}/" in line]
