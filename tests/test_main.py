"""A signal that comes while modules still load."""

import json
import os
import signal
import subprocess
import sys

import pytest
from command import CODE_COMMIT

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
        timeout=180,
    )


@pytest.mark.parametrize("module", ["code_commit.commands.run", "code_commit.check", "code_commit.workflow"])
def test_a_signal_while_modules_load_ends_the_command_as_any_other(module, project_folder):
    answer = _python(INTERRUPT_AT, ["--model", "replay:responses"], project_folder, INTERRUPT_AT=module)

    assert answer.returncode == 128 + signal.SIGINT
    assert answer.stderr == "code-commit: interrupted by SIGINT; no file is half written\n"


def test_an_interrupt_before_there_are_handlers_ends_the_process_without_a_traceback(project_folder):
    script = INTERRUPT_AT.partition("from code_commit")[0] + "from code_commit.__main__ import command\ncommand()\n"
    answer = _python(script, ["--version"], project_folder, INTERRUPT_AT="argparse")
    assert (answer.returncode, answer.stdout, answer.stderr) == (-signal.SIGINT, "", "")


def test_a_signal_in_a_finalizer_is_not_lost(project_folder):
    (project_folder / "responses").mkdir()
    (project_folder / "responses" / "1-response.txt").write_text("^^^ok.txt\nok\n^^^end\n")
    (project_folder / "build.sh").write_text("#!/bin/sh\nsleep 20\n")

    answer = _python(INTERRUPT_WHERE_PYTHON_DROPS_IT, ["--model", "replay:responses"], project_folder)

    assert answer.returncode == 128 + signal.SIGTERM
    assert "interrupted by SIGTERM; no file is half written" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_signal_while_modules_load_is_told_in_json_too(project_folder):
    arguments = ["--model", "replay:responses", "--json"]
    answer = _python(INTERRUPT_AT, arguments, project_folder, INTERRUPT_AT="code_commit.commands.run")

    assert answer.returncode == 128 + signal.SIGINT
    assert json.loads(answer.stdout)["status"] == "interrupted"


def test_sigchld_that_was_ignored_on_entry_hides_no_failing_build(project_folder):
    (project_folder / "responses").mkdir()
    (project_folder / "responses" / "1-response.txt").write_text("^^^ok.txt\nno\n^^^end\n")
    done = subprocess.run(
        [*CODE_COMMIT, "--model", "replay:responses", "--max-repairs", "0"],
        cwd=project_folder,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        check=False,
    )
    assert done.returncode == 1
