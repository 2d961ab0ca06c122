"""The benchmarks can be run, and say what they measured. How fast anything is, no test asserts."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import answers
from bench.answers import Commit
from bench.measuring import Command, CommandFailedError, Cost, in_turns
from bench.projects import commit_all, make_repository, write_file
from bench.rows import Row, Skipped, Target, as_lines, limited

ROOT = Path(__file__).parents[1]
MODULES = sorted(path.stem for path in (ROOT / "bench").glob("*.py"))
PYTHON = [sys.executable, "-I", "-S", "-c"]
MEGABYTE = 1_000_000


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported(name):
    importlib.import_module(f"bench.{name}")


def test_the_table_shows_medians_ratios_and_verdicts():
    rows = [
        Row("fast", "peer", [0.1, 0.2, 0.9], [0.1, 0.1, 0.1], target=Target(2.0)),
        Row("slow", "peer", [3.0], [1.0], target=Target(2.0)),
        Row("flat", "peer", [9e6], [2e6], unit="bytes", target=Target(8e6, of="difference")),
        limited("short", "5 s", [Cost(1.0, 1.0, 0, ""), Cost(2.0, 2.0, 0, "")], 5.0),
        Skipped("absent", "other", "there is no registry"),
    ]
    lines = as_lines(rows)
    assert len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2] == ["fast", "peer", "200 ms", "100 ms", "2 (1.5 to 5.5)", "-", "<= 2", "met"]
    assert cells[3][-3:] == ["-", "<= 2", "MISSED"]
    assert cells[4][2:] == ["9.0 MB", "2.0 MB", "4.5 (4.5 to 4.5)", "-", "<= +8.0 MB", "met"]
    assert cells[5][1:] == ["5 s", "1.5 s", "5 s", "0.3 (0.25 to 0.35)", "0.3", "<= 1", "met"]
    assert cells[6][-1] == "skipped: there is no registry"


def test_a_command_is_measured_without_the_memory_of_whoever_measures(tmp_path):
    weight = b"x" * (200 * MEGABYTE)
    small = Command([*PYTHON, "pass"], tmp_path).run()
    large = Command([*PYTHON, "b'x' * 60_000_000"], tmp_path).run()
    assert small.peak < 40 * MEGABYTE < 60 * MEGABYTE < large.peak < len(weight)


def test_a_command_that_fails_or_hangs_is_no_measurement(tmp_path):
    with pytest.raises(CommandFailedError, match=r"ended with 3, not 0: why"):
        Command([*PYTHON, "print('why'); raise SystemExit(3)"], tmp_path).run()
    with pytest.raises(CommandFailedError, match=r"did not end within 0\.5 s"):
        Command([*PYTHON, "import time; time.sleep(60)"], tmp_path, timeout=0.5).run()
    with pytest.raises(CommandFailedError, match=r"no-such-program could not be started"):
        Command(["no-such-program"], tmp_path).run()


def test_commands_run_in_turns_each_prepared_anew(tmp_path):
    order = []
    commands = {
        name: Command([*PYTHON, "print('done')"], tmp_path, prepare=lambda name=name: order.append(name))
        for name in ("ours", "theirs")
    }
    costs = in_turns(commands, 2, warm_up=False)
    assert order == ["ours", "theirs", "ours", "theirs"]
    assert [cost.output for cost in costs["ours"]] == ["done\n", "done\n"]


def test_a_commit_is_replayed_whole_and_as_edits_and_another_tree_is_seen(tmp_path):
    make_repository(tmp_path / "history")
    for number in (1, 2):
        lines = "".join(f"line {line}\n" for line in range(300)).replace("line 7\n", f"line {number}\n")
        write_file(tmp_path / "history/src/a b.txt", lines)
        write_file(tmp_path / f"history/new{number}.txt", "new\n")
        write_file(tmp_path / "history/cut.txt", f"{number}")  # no answer can hold it
        commit_all(tmp_path / "history")
    (commit,) = answers.commits_of(tmp_path / "history")
    whole, edits = commit.answers(existing=True)
    assert len(whole) > 2000
    assert edits == "^^^src/a b.txt\n^^^find\nline 1\nline 8\n^^^replace\nline 2\nline 8\n^^^end\n"
    command, root = Path(sys.executable).with_name("code-commit"), tmp_path / "project"
    make_repository(root)
    assert answers.replay(command, root, commit) == [answers.SAME_TREE] * 2
    unlike = Commit("unlike", commit.before | {"x": None}, commit.after | {"x": b"no line end"})
    assert answers.replay(command, root, unlike) == [answers.DIFFERENT] * 2
    rejected = Commit("rejected", {"build.sh": b"a\n"}, {"build.sh": b"b\n"})
    assert answers.replay(command, root, rejected) == [answers.REJECTED] * 2


def test_the_smallest_run_prints_a_table_and_writes_json(tmp_path):
    options = ["--quick", "--json", str(tmp_path / "cost.json"), "--folder", str(tmp_path)]
    command = [sys.executable, "-m", "bench", "parse", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    assert "parse of a response of 10 MB" in done.stdout
    figures = json.loads((tmp_path / "cost.json").read_text())
    assert len(figures["rows"]) == 2
    assert all(row["ours"] and row["theirs"] for row in figures["rows"])


def test_an_unknown_name_is_named(tmp_path):
    command = [sys.executable, "-m", "bench", "nothing"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "no benchmark is called nothing" in done.stderr
