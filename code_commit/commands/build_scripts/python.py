"""Python: the project's own tool (uv, Poetry, PDM, Pipenv) or its virtual environment; pytest, Django, unittest."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from code_commit.commands.build_scripts.kind import Kind, first_file, members, read_text

_EVIDENCE = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "pytest.ini", "tox.ini")
_TOOLS = (("uv.lock", "uv run"), ("poetry.lock", "poetry run"), ("pdm.lock", "pdm run"), ("Pipfile", "pipenv run"))
_TEST_FOLDERS = ("tests", "test")
_FOR_PYTEST = re.compile(r"(?m)\bpytest\b|^(?:async )?def test")  # unittest would pass over bare functions
_CHOOSE_PYTHON = (
    "# The Python of the virtual environment, where there is one.",
    "python=python3",
    "if [ -x .venv/bin/python ]; then python=.venv/bin/python; fi",
)


def find_python(folder: Path, files: Sequence[str] = _EVIDENCE) -> Kind | None:
    evidence = first_file(folder, files)
    if evidence is None:
        return None
    tool = next((command for name, command in _TOOLS if (folder / name).is_file()), None)
    python, choice = (f"{tool} python", ()) if tool else ('"$python"', _CHOOSE_PYTHON)
    return Kind("Python", evidence, (*choice, *_commands(folder, python, is_installed=tool is not None)))


def find_python_files(folder: Path) -> Kind | None:
    """A folder that is no other kind of project, and has Python files."""
    return find_python(folder, ["*.py"])


def _commands(folder: Path, python: str, *, is_installed: bool) -> tuple[str, ...]:
    tests = next((name for name in _TEST_FOLDERS if first_file(folder / name, ["test*.py", "*/test*.py"])), None)
    source = "" if is_installed or not (folder / "src").is_dir() else "PYTHONPATH=src "
    if _uses_pytest(folder, tests):
        command = f"{'' if _sets_path(folder) else source}{python} -m pytest -q"
        return (command,) if tests else ("# As long as there is no test, pytest fails with exit code 5.", command)
    if (folder / "manage.py").is_file():
        return (f"{python} manage.py test",)
    if tests:
        top = " -t ." if (folder / tests / "__init__.py").is_file() else ""
        return (f"{source}{python} -m unittest discover -s {tests}{top}",)
    if first_file(folder, ["test_*.py"]):
        return (f"{source}{python} -m unittest discover",)
    return (
        "# No tests were found: this says only whether the files are valid Python.",
        rf"{python} -m compileall -q -x '(^|/)(\.[^/]+|venv|node_modules|build|dist)/' .",
    )


def _uses_pytest(folder: Path, tests: str | None) -> bool:
    if first_file(folder, ["pytest.ini", ".pytest.ini", "conftest.py"]):
        return True
    named = ["pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "Pipfile"]
    files = [*(folder / name for name in named), *sorted(folder.glob("requirements*.txt"))]
    for place in [folder, folder / tests] if tests else [folder]:
        files += [path for pattern in ("test*.py", "*_test.py", "conftest.py") for path in sorted(place.glob(pattern))]
    return any(_FOR_PYTEST.search(read_text(path)) for path in files)


def _sets_path(folder: Path) -> bool:
    """Tell whether pytest is told where the modules are."""
    try:
        table: Any = tomllib.loads(read_text(folder / "pyproject.toml"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    for name in ("tool", "pytest", "ini_options"):
        table = members(table.get(name))
    return "pythonpath" in table
