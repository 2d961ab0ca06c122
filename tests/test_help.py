"""The help texts: every command has one, it fits a terminal, and its examples are commands that there are."""

import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from command import Run

from code_commit.commands import COMMANDS, load_command, parse

ROOT = Path(__file__).parents[1]
EXAMPLES = [(name, line) for name in COMMANDS for line in load_command(name).EXAMPLES.split("\n")]


@pytest.mark.parametrize(("name", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_every_example_is_a_command(name, line):
    words = shlex.split(re.split(r" >>?| <", line)[0])
    assert words.pop(0) == "code-commit"
    assert parse(words).command == name


def test_the_help_of_all_fits_a_terminal_too(run_code_commit: Run, tmp_path: Path):
    done = run_code_commit(tmp_path, "--help", env={"COLUMNS": "80"})
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert all(f"\n    {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_what_it_does_its_arguments_and_examples(name, run_code_commit: Run, tmp_path: Path):
    done = run_code_commit(tmp_path, name, "--help", env={"COLUMNS": "80"})
    assert (done.returncode, done.stderr) == (0, "")
    description, examples = load_command(name).DESCRIPTION, load_command(name).EXAMPLES
    places = [done.stdout.index(part) for part in (f"usage: code-commit {name}", description, "options:", "examples:")]
    assert places == sorted(places)
    assert all(f"  {example}\n" in done.stdout for example in examples.split("\n"))
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.fixture(scope="module")
def manual_page(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The page in the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (page,) = (name for name in archive.namelist() if name.endswith(".data/data/share/man/man1/code-commit.1"))
        return archive.read(page)


@pytest.mark.slow
def test_the_manual_page_begins_as_man_and_apropos_read_it(manual_page: bytes):
    head, _, _, name, about, *_ = manual_page.decode().splitlines()
    assert head.startswith('.TH CODE\\-COMMIT 1 "" "code\\-commit ')
    assert (name, about.startswith("code\\-commit \\- ask an LLM")) == (".SH NAME", True)


@pytest.mark.skipif(not shutil.which("groff"), reason="there is no groff here")
def test_the_manual_page_is_shown_without_a_warning_and_whole_in_80_columns(manual_page: bytes):
    command = ["groff", "-man", "-ww", "-rLL=80n", "-Tutf8", "-P-cbou"]
    done = subprocess.run(command, input=manual_page, capture_output=True, check=True)
    assert done.stderr == b""
    lines = done.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80, max(lines, key=len)
    shown = " ".join(" ".join(lines).split())
    for name in COMMANDS:
        module = load_command(name)
        assert " ".join(module.DESCRIPTION.split()) in shown
        assert " ".join(module.EXAMPLES.split()) in shown
