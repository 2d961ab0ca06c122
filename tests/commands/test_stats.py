"""`log --stats`: what all runs, or those of a fleet, solved and cost, by model."""

import json
import re
import shutil
from pathlib import Path

import pytest
from command import Run, recorded
from page_runs import embellish, hostile_run

from code_commit.changes import Violation
from code_commit.commands.results import _OF_EARLIER_VERSION, Result, _upgraded
from code_commit.commands.stats import Comparison, ModelStats, StatsRun, Sum, collect, stats_table
from code_commit.exchange import Cost, Usage
from code_commit.runs.log import sum_up
from code_commit.runs.record import Attempt, BuildResult, Command, FileChoice, RunRecord
from code_commit.status import Status

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
                         anthropic:claude-opus-5-5  gemini:gemini-4-argon
runs                                             5                      3
  passed at attempt 1                            1                      -
  passed at attempt 2                            -                      -
  passed at attempt 3                            1                      -
  passed at attempt 4                            -                      -
  passed at attempt 5                            -                      -
  passed at attempt 6                            -                      -
  passed at attempt 7                            -                      1
  build failed                                   1                      -
  rejected                                       1                      -
  declined                                       1                      -
  dry run                                        -                      1
  killed                                         -                      1
rejected answers                                 3                      3
  outside                                        3                      3
  protected                                      3                      3
tokens                                     685,000                411,000
  median of a run                          137,000                137,000
time of the LLM                          5 min 3 s              3 min 2 s
  median of a run                            1 min                  1 min
time of the build                       1 min 15 s                 45.0 s
  median of a run                           15.0 s                 15.0 s
cost                                       $0.5799                $0.6104
  median of a run                          $0.1584                $0.3052
answers of unknown cost                          1                      -
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


def test_files_sent_as_edits_are_counted_and_those_that_fit(project_folder: Path, run_code_commit: Run):
    (project_folder / "ok.txt").write_text("a\nb\nb\n")
    model = recorded(
        project_folder,
        "^^^ok.txt\n^^^find\nb\n^^^replace\nc\n^^^find\nz\n^^^replace\n^^^end\n",
        "^^^ok.txt\n^^^find\na\n^^^replace\nok\n^^^end\n^^^new.txt\n^^^end\n",
    )
    run_code_commit(project_folder, *model, "--answer-format", "edits")
    done = run_code_commit(project_folder, "log", "--stats")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[rows.index(["files", "sent", "as", "edits", "2"]) + 1] == ["that", "fit", "1"], done.stdout


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
    assert [line.split() for line in lines if line.startswith("runs")] == [["runs", "4", "2", "2"]]
    assert json.loads(run_code_commit(root, "log", "--stats", "../out", "--json").stdout)["models"][2]["runs"] == 2


def result(task: str, label: str, trial: int, status: str, **more) -> str:
    line = {
        "id": f"{task}.{label}.{trial}",
        "digest": task,
        "task": task,
        "label": label,
        "status": status,
        "exit_code": 0,
        "verified": True,
        "run": "r",
    }
    line |= {} if status == "success" else {"exit_code": 2 if status == "not_set_up" else 1}
    numbers = {"cost_usd": 0.25, "input_tokens": 1000, "output_tokens": 100, "seconds": 30.0, "attempts": 2}
    line |= numbers | more
    return json.dumps({"runs": {"r": [line["cost_usd"], line.get("unsettled_usd", 0.0)]}} | line)


LABELS = """\
                              new          old
a                          2 of 2       0 of 2
b                          1 of 2       0 of 2
c                          0 of 2       2 of 2
d                      not set up            -
solved                     3 of 6       2 of 6
  not verified                  1            -
not set up                      1            -
pass@1                        50%          33%
  95 % interval        13% to 87%    6% to 79%
pass@k                67% (k = 2)  33% (k = 2)
cost               $1.75 + ≤$0.50       ≤$2.00
  for each solved           $0.58            -
tokens in                   6,000        6,000
tokens out                    600          600
time                        3 min        3 min
attempts                       12           12
"""


def test_a_result_of_an_earlier_version_counts_what_its_earlier_runs_may_have_cost_as_paid():
    """Its `cost_usd` had what the last run may have cost in it, its `paid_usd` that of all runs."""
    line = {"run": "r", "cost_usd": 0.75, "unsettled_usd": 0.25, "paid_usd": 2.75}
    runs = {"r": (0.5, 0.25), _OF_EARLIER_VERSION: (2.0, 0.0)}
    assert _upgraded(line) == {**line, "cost_usd": 2.5, "runs": runs}
    unknown = {"cost_usd": None, "paid_usd": 2.0}
    assert _upgraded(unknown) == {**unknown, "runs": {"": (None, 0.0), _OF_EARLIER_VERSION: (2.0, 0.0)}}


def test_of_a_fleet_tasks_against_labels(root: Path, run_code_commit: Run, tmp_path: Path):
    """Wilson's interval of 1 in 3 is in tables: 0.0615 to 0.7923."""
    (run,) = list((root / "agent-config/logs").iterdir())[:1]
    shutil.copytree(run, tmp_path / "out/a.new.1")
    ends = {"new": ("success", "success", "success", "build_failed", "rejected", "not_verified")}
    ends["old"] = ("build_failed", "build_failed", "declined", "llm_error", "success", "success")
    lines = [
        result("abc"[number // 2], label, number % 2 + 1, end)
        for label, each in ends.items()
        for number, end in enumerate(each)
    ]
    lines[0] = lines[0].replace("success", "interrupted").replace("0.25", "7")  # an earlier result of it
    lines += [result("a", "new", 1, "success"), result("d", "new", 1, "not_set_up", attempts=0, unsettled_usd=0.5)]
    lines += [
        "half a li",
        result("c", "old", 2, "build_failed", cost_usd=None, unsettled_usd=2.0),
    ]  # the green one of the same line stays
    (tmp_path / "out/results.jsonl").write_text("\n".join(lines))
    assert run_code_commit(root, "log", "--stats", "../out").stdout.split("\n\n")[-1] == LABELS
    new, old = json.loads(run_code_commit(root, "log", "--stats", "../out", "--json").stdout)["labels"]
    assert new["tasks"] == {"a": ["solved"] * 2, "b": ["solved", "build failed"], "c": ["rejected", "not verified"]} | {
        "d": ["not set up"]
    }
    assert (new["pass_at_1"], new["k"], new["pass_at_k"]) == (0.5, 2, pytest.approx(2 / 3))
    assert new["interval"] == pytest.approx([0.1253, 0.8747], abs=1e-4)
    assert old["interval"] == pytest.approx([0.0615, 0.7923], abs=1e-4)
    assert (new["cost_per_solved"], old["cost_per_solved"]) == (pytest.approx(1.75 / 3), None)


def test_what_was_not_verified_is_no_failed_build(root: Path, run_code_commit: Run, tmp_path: Path):
    """The record beside the log says that the build failed: it has no word for the hidden files."""
    for name, run in zip(("poor", "bad"), sorted((root / "agent-config/logs").iterdir()), strict=False):
        shutil.copytree(run, tmp_path / "out" / name)
        record = json.loads((tmp_path / "out" / name / "run.json").read_text())
        (tmp_path / "out" / name / "run.json").write_text(json.dumps(record | {"status": "build_failed"}))
    ends = {"poor": "not_verified", "bad": "build_failed"}
    lines = [
        json.dumps({"id": name, "digest": "", "status": end, "exit_code": 1, "runs": {}}) for name, end in ends.items()
    ]
    (tmp_path / "out/results.jsonl").write_text("\n".join(lines))
    (stats,) = json.loads(run_code_commit(root, "log", "--stats", "../out", "--json").stdout)["models"]
    assert stats["ended"] == {"build_failed": 1, "not_verified": 1}


def test_damaged_lines_of_a_fleet_count_as_none(root: Path, run_code_commit: Run, tmp_path: Path):
    (run,) = list((root / "agent-config/logs").iterdir())[:1]
    shutil.copytree(run, tmp_path / "out/a.new.1")
    line = result("a", "new", 1, "success")
    damaged = [
        line.replace(old, new) for old, new in (("0.25", "NaN"), ("30.0", "1e999"), ("0.25", '"much"'), ("1000", "[]"))
    ]
    damaged += ["[" * 99_999, "7", '{"id": "b", "exit_code": 0}', '{"id": "b", "exit_code": "x", "status": ""}', "\0"]
    assert line not in damaged
    (tmp_path / "out/results.jsonl").write_text("\n".join([*damaged, line]))
    (labels,) = json.loads(run_code_commit(root, "log", "--stats", "../out", "--json").stdout)["labels"]
    assert (labels["trials"], labels["cost_usd"]) == (1, 0.25)
    assert run_code_commit(root, "log", "--stats", "../out").returncode == 0


def test_numbers_and_names_are_never_cut(root: Path, run_code_commit: Run):
    name = "chat:" + "-".join(["an-organisation-with-a-long-name"] * 4)
    for run in (root / "agent-config/logs").iterdir():
        record = json.loads((run / "run.json").read_text())
        usage = record["totals"]["usage"] | {"input": 152_262_144_000, "output": 0}
        model = name if record["model"] == OPUS else record["model"]
        fields = {"model": model, "totals": record["totals"] | {"usage": usage}}
        (run / "run.json").write_text(json.dumps(record | fields))
    table = run_code_commit(root, "log", "--stats").stdout
    assert table.split("\n")[:2] == [f"A: {name}", f"B: {ARGON}"]
    assert table.split("\n")[2].split() == ["A", "B"]
    assert re.search(r"^tokens +761,310,720,000 +456,786,432,000$", table, re.MULTILINE)


def test_four_labels_fit_a_terminal_and_no_trial_that_was_not_set_up_counts_as_failed():
    ends = {"one": ["success"] * 3, "two": ["not_set_up"] * 3, "three": ["success", "not_set_up", "build_failed"]}
    trials = [
        Result(f"{task}.{n}.{label}", "", end, int(end != "success"), task=task, label=label)
        for label in (f"anthropic:a-long-name-{number}" for number in range(4))
        for task, each in ends.items()
        for n, end in enumerate(each)
    ]
    lines = Comparison.of(trials).table(80).split("\n")
    assert max(map(len, lines)) <= 80
    assert lines[3] == "D: anthropic:a-long-name-3"
    rows = {line.split("  ")[0]: re.split("  +", line)[1:] for line in lines[5:]}
    assert (rows["one"], rows["two"], rows["three"]) == (["3 of 3"] * 4, ["not set up"] * 4, ["1 of 2"] * 4)
    assert rows["green"] == ["4 of 5"] * 4, "no hidden test says that they are solved"


def asked(
    run: str,
    number: int,
    command: Command,
    cost: float | None,
    unsettled: float = 0.0,
    choice: FileChoice | None = None,
) -> StatsRun:
    """Return a run of one answer with this number of seconds, tokens in, and seconds of its build."""
    call = Attempt(
        1, "initial", "m", number, usage=Usage(number, output=64 * number), finish_reason="stop", cost_usd=cost
    )
    call.unsettled_usd = [unsettled] if unsettled else []
    if command == "run":
        call.build = BuildResult(0, None, timed_out=False, seconds=number, output_bytes=0)
    record = RunRecord("1", run, command, "", "/", "", 1, status=Status.SUCCESS, attempts=[call], choice=choice)
    record.totals = sum_up(record, 0.0)
    return StatsRun(record, record.status, record.cost)


def test_each_sum_has_each_run_once_and_each_choice_in_the_run_that_follows_it_or_alone():
    """The numbers are powers of two: a sum says of which of them it is."""
    chosen, followed_by_none = asked("c", 1, "rollup", 1.0), asked("d", 4, "rollup", 4.0, 4.0)
    runs = [chosen, asked("r", 2, "run", 2.0, 2.0, chosen.record.as_choice), followed_by_none]
    runs += [asked("s", 8, "run", None), asked("t", 16, "run", None, 16.0), (last := asked("e", 32, "rollup", None))]
    killed, *_ = asked("k", 64, "run", 64.0, 0.0, last.record.as_choice)
    killed.attempts, killed.first_build = [], killed.attempts[0].build  # before it asked
    free, *_ = asked("f", 1, "run", 0.0)
    free.attempts[0].model = "free"
    (of_free, *others) = collect(
        [*runs, StatsRun(killed, Status.KILLED, killed.cost), StatsRun(free, free.status, free.cost)]
    )
    assert of_free.cost_usd == Sum(total=0.0, median=0.0)
    rows = [re.split("  +", line.strip()) for line in stats_table(others, 80).split("\n")]
    assert ["unsettled, at most", "$22.0000"] in rows
    assert others == [
        ModelStats(
            *("m", 3, {1: 3}, {}, 0, {}, 0, 0),
            tokens=Sum(total=65 * 63, median=65 * 8),
            cost_usd=Sum(total=7.0, median=3.0),
            unknown_costs=2,
            llm_seconds=Sum(total=63, median=8),
            build_seconds=Sum(total=26, median=8),
            unsettled_usd=22.0,
        )
    ]


def test_the_cost_is_that_of_all_runs_of_a_task_and_an_answer_counts_once_for_each_rule():
    record, status, *_ = asked("r", 1, "run", 1.0)
    rules = ["outside", "outside", "protected"]
    record.attempts[0].verdict, record.attempts[0].edits = "rejected", 8
    record.attempts[0].rejections = [Violation("a", 1, rule, "no") for rule in (*rules, "no-match")]
    (stats,) = collect([StatsRun(record, status, Cost(16.0, 32.0), has_more_runs=True)])
    assert (stats.has_more_runs, "\ncost of all runs" in stats_table([stats], 80)) == (True, True)
    assert (stats.cost_usd, stats.unsettled_usd) == (Sum(total=16.0, median=1.0), 32.0)
    assert (stats.rejected, stats.edits_that_fit) == ({"no-match": 1, "outside": 1, "protected": 1}, 7)


def test_a_label_says_where_its_cost_is_of_more_runs_than_its_other_numbers():
    run = Result("a", "d", "success", 0, attempts=1, model="m", run="r", input_tokens=8)
    for runs, more in (({"r": (1.0, 0.0)}, False), ({"r": (1.0, 0.0), "s": (2.0, 0.0)}, True)):
        labels = Comparison.of([run.with_runs(runs)])
        assert (labels.labels[0].has_more_runs, "\ncost of all runs  " in labels.table(80)) == (more, more)


CALL = {"input": 9_000, "cached_input": 0, "cache_write": 0, "output": 1_000, "reasoning": 0}


@pytest.mark.slow
def test_choices_of_files_are_counted_those_that_no_run_followed_too(root: Path, run_code_commit: Run):
    logs = root / "agent-config/logs"
    solved = max(logs.iterdir())
    record = json.loads((solved / "run.json").read_text())
    call = record["attempts"][2] | {"usage": CALL, "cost_usd": 0.25, "seconds": 2.0, "verdict": "chosen", "build": None}
    choice = {"model": ARGON, "calls": 1, "seconds": 2.0, "usage": CALL, "cost_usd": 0.25}
    totals = record["totals"]
    for number in (1, 2):
        folder = logs / f"2026-02-01-00-00-0{number}-committing-code"
        folder.mkdir()
        spent = totals | {"usage": CALL, "cost_usd": 0.25, "llm_seconds": 2.0, "build_seconds": 0.0, "attempts": 1}
        chosen = {"run": folder.name, "command": "rollup", "model": ARGON, "attempts": [call], "totals": spent}
        (folder / "run.json").write_text(json.dumps(record | chosen))
    usage = totals["usage"] | {"input": totals["usage"]["input"] + 9_000, "output": totals["usage"]["output"] + 1_000}
    after = {"choice": choice | {"run": folder.name}, "totals": totals | {"usage": usage, "llm_seconds": 62.7}}
    (solved / "run.json").write_text(json.dumps(record | after))

    opus, argon = json.loads(run_code_commit(root, "log", "--stats", "--json").stdout)
    assert (opus["runs"], argon["runs"]) == (5, 3)
    assert opus["tokens"] == {"total": 695_000, "median": 137_000}
    assert argon["tokens"] == {"total": 421_000, "median": 137_000}
    assert opus["cost_usd"]["total"] == pytest.approx(0.8299, abs=1e-4)
    assert argon["cost_usd"]["total"] == pytest.approx(0.8604, abs=1e-4)
    assert opus["llm_seconds"]["total"] == pytest.approx(305.5, abs=0.5)

    said = f"1 call of {ARGON}, 2.0 s, 9,000 tokens in, 1,000 out, $0.2500"
    assert f"rollup    chosen by {folder.name}: {said}\n" in run_code_commit(root, "log", solved.name).stdout
    assert f"- Choice of files: `{said}`\n" in run_code_commit(root, "log", solved.name, "--markdown").stdout
    page = run_code_commit(root, "log", solved.name, "--html", "-").stdout
    row = page.split(">Choice of files ")[1].split("</tr>")[0]
    assert all(f">{cell}</td>" in row for cell in ("2.0 s", "9,000", "1,000", "$0.2500"))
    assert json.loads(run_code_commit(root, "log", solved.name, "--json").stdout)["choice"]["usage"] == CALL


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--stats", "nowhere"], "nowhere contains no runs: name the folder that a fleet's results are in"),
        (["latest", "--stats"], "--stats covers all runs: use it without RUN or other options"),
        (["--stats", "--markdown"], "--stats covers all runs: use it without RUN or other options"),
        (["latest", "--prune"], "--prune covers all runs: use it without RUN or other options"),
        (["--prune", "--stats"], "--prune covers all runs: use it without RUN or other options"),
    ],
)
def test_what_is_of_all_runs_or_of_none(arguments, said, project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, "log", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_no_run_yet(project_folder: Path, run_code_commit: Run):
    assert run_code_commit(project_folder, "log", "--stats").stdout == "No run yet.\n"
