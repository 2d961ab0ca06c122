"""What a command loads before it answers, and what a signal meets that comes that early."""

import json
import os
import signal
import subprocess
import sys

import pytest

SLOW_TO_LOAD = {
    "asyncio",
    "ctypes",
    "dataclasses",
    "email",
    "h11",
    "http",
    "httpcore",
    "httpx",
    "importlib.metadata",
    "inspect",
    "jinja2",
    "json",
    "logging",
    "pathlib",
    "pathspec",
    "pydantic",
    "pygments",
    "rich",
    "shutil",
    "ssl",
    "subprocess",
    "threading",
    "typing",
    "unittest",
}
FOR_THE_NETWORK = {"asyncio", "h11", "httpcore", "httpx", "ssl"}
FOR_PAGES = {"jinja2", "pygments", "rich"}
FOR_VALIDATION = {"pathspec", "pydantic"}

MUST_NOT_LOAD = {
    "--version": SLOW_TO_LOAD,
    "--help": SLOW_TO_LOAD,
    "log --help": SLOW_TO_LOAD,
    "run --help": SLOW_TO_LOAD,
    "check": FOR_THE_NETWORK | FOR_PAGES | FOR_VALIDATION,
    "log": FOR_THE_NETWORK | FOR_PAGES | FOR_VALIDATION,
    "rollup": FOR_THE_NETWORK | FOR_PAGES | FOR_VALIDATION,
    "prompt": FOR_THE_NETWORK | FOR_PAGES | FOR_VALIDATION,
    "undo": FOR_THE_NETWORK | FOR_PAGES | FOR_VALIDATION,
    "apply answer.txt": FOR_THE_NETWORK | FOR_PAGES | FOR_VALIDATION,
    "--model replay:responses": FOR_THE_NETWORK | FOR_PAGES | FOR_VALIDATION,
}

LIST_MODULES = """
import sys
before = set(sys.modules)
from code_commit.cli import main
try:
    main(sys.argv[1:])
finally:
    print(*(set(sys.modules) - before), file=sys.stderr)
"""

INTERRUPT_AT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from code_commit.cli import main
sys.exit(main(sys.argv[1:]))
"""

INTERRUPT_WHERE_PYTHON_DROPS_IT = """
import os, signal, sys

class Dying:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "code_commit.workflow":
            Dying()

sys.meta_path.insert(0, Interrupting())
from code_commit.cli import main
sys.exit(main(sys.argv[1:]))
"""


def _python(script, arguments, root, **variables):
    # -I: what the environment loads (coverage, say) is not the command's
    return subprocess.run(
        [sys.executable, "-I", "-c", script, *arguments],
        cwd=root,
        env=os.environ | variables,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("arguments", MUST_NOT_LOAD)
def test_a_command_loads_nothing_that_only_others_need(arguments, project_folder):
    (project_folder / "answer.txt").write_text("^^^a.txt\nnew\n^^^end\n")
    (project_folder / "responses").mkdir()
    (project_folder / "responses" / "1-response.txt").write_text("^^^a.txt\nnew\n^^^end\n")

    answer = _python(LIST_MODULES, arguments.split(), project_folder)

    loaded = set(answer.stderr.splitlines()[-1].split())
    assert "code_commit" in loaded
    assert not loaded & MUST_NOT_LOAD[arguments]


@pytest.mark.parametrize(
    "module",
    [
        "code_commit.arguments",
        "code_commit.options",
        "code_commit.commands.run",
        "code_commit.config",
        "code_commit.workflow",
    ],
)
def test_a_signal_while_modules_load_ends_the_command_as_any_other(module, project_folder):
    answer = _python(INTERRUPT_AT, ["--model", "replay:responses"], project_folder, INTERRUPT_AT=module)

    assert answer.returncode == 128 + signal.SIGINT
    assert answer.stderr == "code-commit: interrupted by SIGINT; every file is whole\n"


def test_a_signal_in_a_finalizer_is_not_lost(project_folder):
    (project_folder / "responses").mkdir()
    (project_folder / "responses" / "1-response.txt").write_text("^^^ok.txt\nok\n^^^end\n")
    (project_folder / "build.sh").write_text("#!/bin/sh\nsleep 20\n")

    answer = _python(INTERRUPT_WHERE_PYTHON_DROPS_IT, ["--model", "replay:responses"], project_folder)

    assert answer.returncode == 128 + signal.SIGTERM
    assert "interrupted by SIGTERM; every file is whole" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_signal_while_modules_load_is_told_in_json_too(project_folder):
    arguments = ["--model", "replay:responses", "--json"]
    answer = _python(INTERRUPT_AT, arguments, project_folder, INTERRUPT_AT="code_commit.commands.run")

    assert answer.returncode == 128 + signal.SIGINT
    assert json.loads(answer.stdout)["status"] == "interrupted"
