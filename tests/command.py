"""How the tests call the command, and git beside it; what they look at afterwards."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from forked_command import ForkedProcess

CODE_COMMIT = [sys.executable, "-P", "-m", "code_commit"]  # as the installed command: not from the folder it runs in

Run = Callable[..., subprocess.CompletedProcess[str]]
"""The fixture `run_code_commit`."""

Start = Callable[..., ForkedProcess]
"""The fixture `start_code_commit`."""


def chess_board(*sides: Iterable[Any]) -> list[Any]:
    """Return every field of a table for `parametrize`: the white ones, which meet each value, run by default."""
    fields = product(*(enumerate(side) for side in sides))
    return [
        pytest.param(*(value for _, value in field), marks=[pytest.mark.sweep] * (sum(place for place, _ in field) % 2))
        for field in fields
    ]


def every_third(rows: Mapping[str, Any]) -> list[Any]:
    """Return the rows of a table for `parametrize`, by their names: every third one runs by default."""
    marks = {True: [], False: [pytest.mark.sweep]}
    return [pytest.param(row, id=name, marks=marks[place % 3 == 0]) for place, (name, row) in enumerate(rows.items())]


def git(folder: Path, *arguments: str) -> str:
    """Run git in the folder and return its output; a failure fails the test."""
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def by_count(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of GIT_CONFIG_COUNT for the values."""
    variables = {"GIT_CONFIG_COUNT": str(len(values))}
    for number, (name, value) in enumerate(values.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def by_parameters(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variable in which `git -c` hands on the values to its hooks and aliases."""
    return {"GIT_CONFIG_PARAMETERS": " ".join(f"'{name}'='{value}'" for name, value in values.items())}


def recorded(root: Path, *answers: str) -> list[str]:
    """Record an LLM's answers in the project; return the options that ask it."""
    folder = root / "agent-config" / "recorded"
    folder.mkdir(exist_ok=True)
    for number, answer in enumerate(answers, start=1):
        (folder / f"{number}-response.txt").write_text(answer, encoding="utf-8")
    return ["--model", "replay:agent-config/recorded"]


def replay(root: Path, *answers: str) -> list[str]:
    """Record the answers, or one that makes the build pass; return the options that ask for them without a sandbox."""
    return [*recorded(root, *(answers or ("^^^ok.txt\nok\n^^^end\n",))), "--sandbox", "off"]


def after_a_run(root: Path, run_code_commit: Run, files: dict[str, str], *answers: str) -> Path:
    """Commit the files too, and run the command, which is answered so and passes; return the project."""
    for name, content in files.items():
        (root / name).write_text(content, newline="")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    done = run_code_commit(root, *recorded(root, *answers), "--sandbox", "off")
    assert done.returncode == 0, done.stderr
    return root


def module(name: str, lines: int) -> str:
    """Return a Python module with one function of about so many lines."""
    body = "".join(f"    total += {number}\n" for number in range(lines))
    return f"import os\n\n\ndef {name}(first, *, second=2):\n    total = 0\n{body}    return total\n"


def the_log(root: Path) -> Path:
    """Return the log folder of the one run."""
    (log,) = (root / "agent-config" / "logs").iterdir()
    return log


def tree(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of all that is in a project, but for git's and our own folder."""
    files = (path for path in root.rglob("*") if not {".git", "agent-config"} & set(path.relative_to(root).parts))
    return {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in files
    }


def wait_for(question: Callable[[], object], seconds: float = 300, pause: float = 0.01) -> object:
    """Return the answer as soon as there is one; ask after each pause, of so many seconds or what the question takes."""
    end = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if answer := question():
            return answer
        answered = time.monotonic()
        assert answered < end, "waited in vain"
        time.sleep(max(pause, min(9 * (answered - asked), 0.1)))
