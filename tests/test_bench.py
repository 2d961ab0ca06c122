"""The benchmarks can be run, and say what they measured. How fast anything is, no test asserts."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from itertools import chain, repeat
from pathlib import Path

import pytest

from bench import answers, commits
from bench.__main__ import BENCHES
from bench.comparing import SHOWN, Comparison, Unmeasured, compare, compare_tools, growth, in_turns, limit, tables
from bench.environments import Tool, git, tool_at, tool_of
from bench.measuring import Command, CommandFailedError, Cost, UnavailableError
from bench.projects import commit_all, make_repository, write_file

ROOT = Path(__file__).parents[1]
HERE = Tool(Path(sys.prefix))
PYTHON = [sys.executable, "-I", "-S", "-c"]
MEGABYTE = 1_000_000


def bench(*arguments, folder, timeout=120):
    command = [sys.executable, "-m", "bench", *arguments, "--quick", "--folder", folder]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout)


def environment(folder, script):
    """Make what looks like an environment, where this script is the command."""
    write_file(folder / "bin/code-commit", f"#!/bin/sh\n{script}\n").chmod(0o755)
    (folder / "bin/python").symlink_to(sys.executable)
    return folder


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A repository with a commit that changes an existing file, and others beside."""
    root = make_repository(tmp_path_factory.mktemp("history") / "history")
    for number in range(60):
        write_file(root / f"src/module{number}.py", "def run():\n    return 1\n" * 20)
    for number in (1, 2):
        lines = "".join(f"line {line}\n" for line in range(300)).replace("line 7\n", f"line {number}\n")
        write_file(root / "src/a b.txt", lines)
        write_file(root / f"new{number}.txt", "new\n")
        write_file(root / "cut.txt", f"{number}")  # no answer can hold it
        commit_all(root)
    return root


@pytest.mark.sweep
@pytest.mark.parametrize("name", BENCHES)
def test_each_benchmark_measures_something_in_its_smallest_size(name, tmp_path, history, whole):
    if name in {"cached_layout", "codebases", "fleet", "log", "parse", "redaction", "rollup"} and not whole:
        pytest.skip("it takes more than a second; --whole runs it")
    if name == "sandbox" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if name == "tokens" and find_spec("litellm") is None:
        pytest.skip("litellm, which bundles tokenizers, is not installed")
    options = ["--rounds", "1", "--environment", sys.prefix, "--repository", str(history)]
    done = bench(name, *options, "--json", str(tmp_path / "cost.json"), folder=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads((tmp_path / "cost.json").read_text())["rows"]
    assert any(value for row in rows for value in row.get("ours", [{}])[0].values())
    for row in rows:
        assert "error" not in row, row
        assert f"| {row['what']} " in done.stdout


@pytest.mark.sweep
def test_a_tree_and_its_revisions_are_measured_as_compiled_wheels_that_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    source, kept = make_repository(tmp_path / "source"), tmp_path / "kept"
    project = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    project += '[project]\nname = "code-commit"\nversion = "1"\nscripts = {code-commit = "code_commit:main"}\n'
    write_file(source / "pyproject.toml", project)
    write_file(source / "code_commit/__init__.py", "def main() -> int:\n    return 0\n")
    commit_all(source)
    write_file(source / "code_commit/__init__.py", "def main() -> int:\n    return 3\n")
    now, then = tool_of(source, kept), tool_at("HEAD", kept, source)
    made = now.command.stat().st_mtime_ns
    assert [subprocess.run([tool.command], check=False).returncode for tool in (now, then)] == [3, 0]
    assert list(now.folder.glob("lib/*/site-packages/code_commit/__pycache__/__init__.*.pyc"))
    commit_all(source)
    assert tool_at("HEAD", kept, source).folder == now.folder
    assert now.command.stat().st_mtime_ns == made
    with pytest.raises(UnavailableError, match="nowhere"):
        tool_at("nowhere", kept, source)


@pytest.mark.sweep
def test_what_fails_is_an_error_and_what_cannot_be_had_is_skipped(tmp_path):
    failing = bench("startup", "--environment", environment(tmp_path / "fails", "exit 3"), folder=tmp_path)
    assert failing.returncode == 1
    last = failing.stdout.splitlines()[-1]
    assert last.startswith("`--help` | ")
    assert "**ERROR**: CommandFailedError" in last
    lacking = environment(tmp_path / "lacks", "echo there is no bubblewrap; exit 2")
    skipped = bench("sandbox", "--environment", lacking, folder=tmp_path)
    assert skipped.returncode == 0
    assert "skipped: UnavailableError: there is no bubblewrap" in skipped.stdout


@pytest.mark.sweep
def test_what_got_worse_than_another_revision_stands_in_the_last_lines(tmp_path):
    slow = f"{sys.executable} -c 'sum(range(6_000_000))'\nexec {HERE.command} \"$@\""
    options = ["--environment", environment(tmp_path / "slow", slow), "--against", sys.prefix, "--rounds", "1"]
    done = bench("startup", *options, folder=tmp_path)
    assert done.returncode == 1, done.stderr
    title, *worse = done.stdout.splitlines()[-3:]
    assert title == "Worse by more than a tenth:"
    assert [line.split(" | ")[:2] for line in worse] == [["`--version`", sys.prefix], ["`--help`", sys.prefix]]


def test_what_an_older_revision_cannot_do_is_left_out_and_the_row_says_so(tmp_path):
    older = environment(tmp_path / "older", "echo no such setting; exit 2")
    done = bench("startup", "--environment", sys.prefix, "--against", older, "--rounds", "1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| `--help` "))
    assert f"skipped: UnavailableError: {older} cannot do it: " in row
    assert row.rstrip(" |").endswith("ended with 2, not 0: no such setting")


def test_what_seems_worse_by_noise_is_measured_again():
    noisy = chain([Cost(2.0, 2.0)] * 3, repeat(Cost(1.0, 1.0)))
    comparison = Comparison("x", "peer", lambda tool: next(noisy) if tool.name == "now" else Cost(1.0, 1.0), limit(9.0))
    now, then = Tool(ROOT, "now"), Tool(ROOT, "then")
    (row,) = compare_tools(comparison, now, then, 2, by_cpu=True)
    assert (row.against, row.met, len(row.ours)) == ("then", True, 4)
    (row,) = compare_tools(comparison, then, now, 2, by_cpu=True)
    assert (row.met, len(row.ours)) == (True, 2)


def test_on_a_loaded_machine_cpu_time_counts():
    comparison = Comparison("x", "peer", lambda _: Cost(9.0, 1.0), lambda _: Cost(1.0, 1.0), time=2.0)
    assert [compare(comparison, HERE, 1, by_cpu=by_cpu)[0].met for by_cpu in (False, True)] == [False, True]


def test_the_tables_show_medians_ratios_and_verdicts():
    walls = iter([0.1, 0.2, 0.9])
    fast = Comparison("fast", "peer", lambda _: Cost(next(walls), 0.1), limit(0.1), 3, time=2.0, memory=SHOWN)
    slow = growth("slow", limit(30.0), limit(2.0))
    absent = Unmeasured("absent", "other", UnavailableError("there is no registry"))
    rows = [*compare(fast, HERE, 3, by_cpu=False), absent, *compare(slow, HERE, 1, by_cpu=False)]
    lines = tables(rows).split("\n")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2] == ["fast", "peer", "200 ms", "100 ms", "2", "1", "2", "met"]
    assert cells[3] == ["fast, memory", "peer", "0.0 kB", "0.0 kB", "1", "-", "-", ""]
    assert cells[4][-1] == "skipped: UnavailableError: there is no registry"
    assert cells[8] == ["slow", "2 s", "30 s", "15", "15", "12", "**missed**"]


@pytest.mark.sweep
def test_a_command_is_measured_without_the_memory_of_whoever_measures(tmp_path):
    weight = b"x" * (200 * MEGABYTE)
    small = Command([*PYTHON, "pass"], tmp_path).run()
    large = Command([*PYTHON, "b'x' * 60_000_000"], tmp_path).run()
    assert small.peak < 40 * MEGABYTE < 60 * MEGABYTE < large.peak < len(weight)


def test_a_command_gets_no_python_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    Command(
        [*PYTHON, "import os; raise SystemExit(any(name.startswith('PYTHON') for name in os.environ))"], tmp_path
    ).run()


def test_a_command_that_fails_or_hangs_is_no_measurement(tmp_path):
    with pytest.raises(CommandFailedError, match=r"ended with 3, not 0: why"):
        Command([*PYTHON, "print('why'); raise SystemExit(3)"], tmp_path).run()
    with pytest.raises(CommandFailedError, match=r"did not end within 0\.5 s"):
        Command([*PYTHON, "import time; time.sleep(60)"], tmp_path, timeout=0.5).run()
    with pytest.raises(CommandFailedError, match=r"no-such-program could not be started"):
        Command(["no-such-program"], tmp_path).run()


def test_commands_run_in_turns_each_prepared_anew(tmp_path):
    order = []
    commands = (
        Command([*PYTHON, "pass"], tmp_path, prepare=lambda name=name: order.append(name))
        for name in ("ours", "theirs")
    )
    costs = in_turns([lambda command=command: command for command in commands], 2)
    assert order == ["ours", "theirs", "ours", "theirs"]
    assert [len(found) for found in costs] == [2, 2]


@pytest.mark.sweep
def test_a_commit_is_replayed_whole_and_as_edits_and_another_tree_is_seen(history, tmp_path):
    (commit,) = answers.answered_commits(history, 9)
    whole, edits = commit.answers()
    assert len(whole) > 2000
    assert "^^^src/a b.txt\n^^^find\nline 1\nline 8\n^^^replace\nline 2\nline 8\n^^^end\n" in edits
    assert "^^^cut.txt\n2\n^^^end\n" in edits
    root = commits.clone_of(history, tmp_path)
    assert answers.replay(HERE, root, commit) == [answers.SAME_TREE] * 2
    ends = {
        answers.DIFFERENT: {"x": answers.Change(None, "no line end", runs=False)},
        answers.SUSPECTED: {"src/b.txt": answers.Change(None, "# ... existing code ...\n", runs=False)},
        answers.REJECTED: {"build.sh": answers.Change("a\n", "b\n", runs=True)},
    }
    for end, files in ends.items():
        assert answers.replay(HERE, root, commit._replace(files=files)) == [end] * 2
    assert git(root, "rev-parse", "HEAD") == git(history, "rev-parse", "HEAD~")


def test_a_commit_is_taken_apart_into_what_an_answer_can_hold(history):
    (history / "new.sh").write_text("#!/bin/sh\n")
    (history / "cut.txt").write_text("a line end\n")
    (history / "image.png").write_bytes(b"\x89PNG\0")
    (history / "src/a b.txt").unlink()
    (history / "link").symlink_to("new.sh")
    git(history, "add", "-A")
    git(history, "commit", "-qm", "More\n\nAnd why.")
    commit = answers.answered_commits(history, 9)[0]
    assert (commit.message, sorted(commit.files), commit.other_ends) == (
        "More\n\nAnd why.",
        ["new.sh", "src/a b.txt"],
        1,
    )
    assert commit.files["src/a b.txt"].after is None
    assert commit.answers()[0].startswith("More\n\nAnd why.\n\n^^^")


def test_a_renamed_file_with_another_end_is_counted_apart(history):
    (history / "cut.txt").write_text("1\n2\n3\n4")
    git(history, "add", "-A")
    git(history, "commit", "-qm", "cut")
    (history / "cut.txt").rename(history / "whole.txt").write_text("1\n2\n3\n4\n")
    git(history, "add", "-A")
    git(history, "commit", "-qm", "whole")
    commit = answers.answered_commits(history, 9)[0]
    assert (sorted(commit.files), commit.other_ends) == (["cut.txt"], 1)


def test_an_unknown_name_is_named(tmp_path):
    done = bench("nothing", folder=tmp_path)
    assert done.returncode == 2
    assert "no benchmark is called nothing" in done.stderr
