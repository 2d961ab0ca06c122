"""`log --stats`: what all runs, or those of a fleet, solved and cost, by model."""

import json
import shutil
from pathlib import Path

import pytest
from command import Run
from page_runs import embellish, hostile_run

OPUS, ARGON = "anthropic:claude-opus-5-5", "gemini:gemini-4-argon"


@pytest.fixture
def root(project_folder: Path, run_code_commit: Run) -> Path:
    """A project with runs of two models, made of one that was rejected, failed and passed at its third attempt."""
    solved = hostile_run(project_folder, run_code_commit)
    embellish(solved, model=OPUS)
    record = json.loads((solved / "run.json").read_text())
    record["totals"]["build_seconds"] = 15.0
    for attempt in record["attempts"]:
        attempt["model"] = ""
    (solved / "run.json").write_text(json.dumps(record))
    first = record["attempts"][0]
    more = [
        {"status": "declined", "attempts": [first | {"verdict": "declined", "rejections": []}]},
        {"status": "build_failed", "attempts": [*record["attempts"], record["attempts"][1]]},
        {"attempts": record["attempts"][2:]},
        {
            "attempts": [first | {"cost_usd": None}],
            "totals": record["totals"] | {"cost_usd": None},
            "status": "rejected",
        },
        {"attempts": [*record["attempts"], *record["attempts"], record["attempts"][2] | {"model": ARGON}]},
        {"model": ARGON, "options": record["options"] | {"dry_run": True}},
        {"model": ARGON, "status": "running", "finished": None, "pid": 2**22 - 3, "attempts": []},
        {"model": ARGON, "command": "apply"},
        {"schema_version": 99},
    ]
    for number, fields in enumerate(more, start=1):
        folder = solved.with_name(f"2026-01-01-00-00-0{number}-committing-code")
        folder.mkdir()
        (folder / "run.json").write_text(json.dumps(record | {"run": folder.name} | fields))
    return project_folder


TABLE = """\
                          anthropic:claude-opus-5-5      gemini:gemini-4-argon
runs                                              5                          3
  passed at attempt 1                             1                          -
  passed at attempt 2                             -                          -
  passed at attempt 3                             1                          -
  passed at attempt 4                             -                          -
  passed at attempt 5                             -                          -
  passed at attempt 6                             -                          -
  passed at attempt 7                             -                          1
  build failed                                    1                          -
  rejected                                        1                          -
  declined                                        1                          -
  dry run                                         -                          1
  killed                                          -                          1
rejected answers                                  3                          3
  outside                                         3                          3
  protected                                       3                          3
tokens                                      685,000                    411,000
  median of a run                           137,000                    137,000
time of the LLM                           5 min 3 s                  3 min 2 s
  median of a run                             1 min                      1 min
time of the build                        1 min 15 s                     45.0 s
  median of a run                            15.0 s                     15.0 s
cost                                        $0.5799                    $0.6104
  median of a run                           $0.1584                    $0.3052
answers of unknown cost                           1                          -
"""


def test_the_table_counts_each_run_once_by_its_model(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "log", "--stats")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == TABLE


def test_as_json_it_has_the_same_numbers(root: Path, run_code_commit: Run):
    opus, argon = json.loads(run_code_commit(root, "log", "--stats", "--json").stdout)
    assert [opus["model"], argon["model"]] == [OPUS, ARGON]
    assert [opus["passed"], argon["passed"]] == [{"1": 1, "3": 1}, {"7": 1}]
    assert opus["ended"] == {"build_failed": 1, "declined": 1, "rejected": 1}
    assert opus["rejected"] == {"outside": 3, "protected": 3}
    assert opus["tokens"] == {"total": 685_000, "median": 137_000}
    assert opus["build_seconds"] == {"total": 75.0, "median": 15.0}
    assert opus["unknown_costs"] == 1


def test_of_a_fleet_and_of_many_models(root: Path, run_code_commit: Run, tmp_path: Path):
    for number, run in enumerate(sorted((root / "agent-config/logs").iterdir())):
        task = tmp_path / f"out/task-{number}"
        shutil.copytree(run, task)
        record = json.loads((task / "run.json").read_text())
        model = f"chat:a-model-with-a-long-name-{number % 3}"
        attempts = [attempt | {"model": model} for attempt in record["attempts"]]
        (task / "run.json").write_text(json.dumps(record | {"model": model, "attempts": attempts}))
    shutil.copytree(tmp_path / "out/task-0", tmp_path / "out/.task-0.old")
    (tmp_path / "out/lost").mkdir()
    done = run_code_commit(root, "log", "--stats", "../out")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split() for line in lines if line.startswith("runs")] == [["runs", "4"], ["runs", "2"], ["runs", "2"]]
    assert json.loads(run_code_commit(root, "log", "--stats", "../out", "--json").stdout)[2]["runs"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stats", "nowhere"], "nowhere holds no runs: name the folder that a fleet's results are in"),
        (["latest", "--stats"], "--stats is of all runs: give it alone"),
        (["--stats", "--markdown"], "--stats is of all runs: give it alone"),
        (["latest", "--prune"], "--prune is of all runs: give it alone"),
        (["--prune", "--stats"], "--prune is of all runs: give it alone"),
    ],
)
def test_what_is_of_all_runs_or_of_none(arguments, said, project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, "log", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_no_run_yet(project_folder: Path, run_code_commit: Run):
    assert run_code_commit(project_folder, "log", "--stats").stdout == "No run yet.\n"
