"""A real project as the patient: this very package, whose build runs a part of its tests."""

import shutil
import sys
from pathlib import Path

import pytest
from command import Run, git

SOURCE = Path(__file__).parents[1]
COPIED = ["code_commit", "system_prompts", "tests/parse", "tests/prompts", "tests/measure.py", "pyproject.toml"]
NOT_COPIED = shutil.ignore_patterns("__pycache__", "test_next.py", "test_output.py")  # they ask for projects of tests
ANY_MACHINE = """\
import hypothesis

hypothesis.settings.register_profile("any", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("any")
"""


def make_patient(root: Path) -> None:
    root.mkdir()
    for name in COPIED:
        if (SOURCE / name).is_dir():
            shutil.copytree(SOURCE / name, root / name, ignore=NOT_COPIED)
        else:
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(SOURCE / name, root / name)
    (root / "tests" / "conftest.py").write_text(ANY_MACHINE)
    (root / ".gitignore").write_text("/agent-config\n__pycache__\n.hypothesis\n")
    own = root.parent / "of-the-build"  # else it removes what earlier tests left, which may take minutes
    python = f'{sys.executable} -m pytest -q -p no:cacheprovider --basetemp={own} -o addopts= --maxfail=3 -k "accepts or rejects or prompt" tests'
    (root / "build.sh").write_text(f"#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH=. exec {python}\n")
    (root / "build.sh").chmod(0o755)
    (root / "agent-config" / "recorded").mkdir(mode=0o700, parents=True)
    (root / "agent-config" / "query.txt").write_text("Let the parser accept ^^^stop as well as ^^^end.\n")
    (root / "agent-config" / "codeRollup.txt").write_text((root / "code_commit" / "parse" / "__init__.py").read_text())
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")


@pytest.mark.slow
def test_a_real_project_is_broken_and_repaired(tmp_path: Path, run_code_commit: Run):
    root = tmp_path / "patient"
    make_patient(root)
    path = "code_commit/parse/__init__.py"
    good = (root / path).read_text()
    closes = '    if word == "end" or is_bare:\n'
    stops_too = closes.replace('word == "end"', 'word in ("end", "stop")')
    better = good.replace(closes, stops_too, 1)
    broken = better.replace(stops_too, f"{stops_too}        return len(found.text)\n")
    assert len({good, better, broken}) == 3
    for number, content in enumerate([broken, better], start=1):
        response = f"Attempt {number}.\n\n^^^{path}\n{content}^^^end\n"
        (root / "agent-config" / "recorded" / f"{number}-response.txt").write_text(response)

    done = run_code_commit(root, "--model", "replay:agent-config/recorded", timeout=120)

    assert done.returncode == 0, done.stderr
    assert (root / path).read_text() == better
    assert git(root, "diff", "--stat").splitlines()[-1] == " 1 file changed, 1 insertion(+), 1 deletion(-)"
    (log,) = (root / "agent-config" / "logs").iterdir()
    prompt = (log / "2-query.txt").read_text()
    assert "FAILED tests/parse/test_parse.py" in prompt
    assert "no-block" in prompt
    assert f"--- FILE REPLACEMENT {path} ---\n{broken}" in prompt
