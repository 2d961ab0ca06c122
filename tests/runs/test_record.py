"""A log that an older version has written (see older_log/README.md) is shown, undone and resumed by this one."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command import Run, git, tree

from code_commit.changes import AppliedChange, RejectedResponseError, Violation
from code_commit.errors import LogError, NotSetUpError, OverBudgetError
from code_commit.exchange import Response, Usage
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import sum_up
from code_commit.runs.record import (
    Attempt,
    BuildResult,
    FileChoice,
    RunError,
    RunRecord,
    Totals,
    error_facts,
    load_run_record,
)
from code_commit.status import Status
from code_commit.workflow import change_files

DATA = Path(__file__).parents[1] / "older_log"
RUNS = sorted(path.name for path in (DATA / "project/agent-config/logs").iterdir())
REPAIRED, APPLIED, UNDONE, KILLED_BEFORE_APPLYING, KILLED_IN_BUILD = RUNS
EXECUTABLE = {"build.sh", "bin/slug"}
GROUP_READABLE = {"notes.txt"}


def lay_out(source: Path, root: Path) -> None:
    """Copy a recorded tree, with the modes that it had: a checkout keeps but one bit of them."""
    root.mkdir(exist_ok=True)
    (root / ".gitignore").write_text("/agent-config\n")
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source).as_posix()
        private = name.startswith("agent-config")
        if path.is_dir():
            (root / name).mkdir()
            (root / name).chmod(0o700 if private else 0o755)
        else:
            (root / name).write_bytes(path.read_bytes())
            mode = 0o755 if name in EXECUTABLE else 0o640 if name in GROUP_READABLE else 0o644
            (root / name).chmod(0o600 if private else mode)


def changed(*answers: list[AppliedChange], unchanged: str = "") -> int:
    attempts = [
        Attempt(number, "repair", verdict="applied", changes=changes) for number, changes in enumerate(answers, 1)
    ]
    record = RunRecord("1", "r", "run", "", "/", "", 1, attempts=attempts, unchanged=[*unchanged])
    return sum_up(record, 0.0).files_changed


def test_a_file_counts_once_under_its_last_name_and_not_at_all_if_it_is_as_before():
    created, deleted = AppliedChange("a", "create", 1, 1, 0), AppliedChange("a", "delete", 0, 0, 1)
    renamed, again = (
        AppliedChange(name, "create", 1, 0, 0, renamed_from=old) for name, old in (("b", "a"), ("c", "b"))
    )
    edited = AppliedChange("b", "replace", 1, 1, 1)
    assert [changed([each]) for each in (created, deleted, renamed, edited)] == [1, 1, 1, 1]
    assert changed([created], [deleted], unchanged="a") == 0
    assert changed([deleted], [created]) == 1
    assert changed([created], [renamed, AppliedChange("ok.txt", "replace", 1, 1, 1)], unchanged="a") == 2
    assert changed([renamed], [again], unchanged="b") == changed([renamed], [edited]) == 1
    assert changed([edited], [again]) == 1
    assert changed([renamed], [created]) == 2


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The project as the older version left it, in a git repository that has what was there before the first run."""
    root = tmp_path / "words"
    lay_out(DATA / "before", root)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    for name in tree(root):
        if (root / name).is_file() and name != ".gitignore":
            (root / name).unlink()
    (root / "old").rmdir()
    lay_out(DATA / "project", root)
    return root


@pytest.fixture
def before(tmp_path: Path) -> dict:
    lay_out(DATA / "before", tmp_path / "before")
    return tree(tmp_path / "before")


def record(root: Path, run: str) -> dict:
    return json.loads((root / "agent-config/logs" / run / "run.json").read_text())


def test_the_runs_are_listed(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "log")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[:2] for row in rows] == [
        [run.replace("-committing-code", ""), status]
        for run, status in zip(RUNS, ["success", "success", "success", "killed", "killed"], strict=True)
    ]


def test_one_run_is_shown(root: Path, run_code_commit: Run):
    shown = run_code_commit(root, "log", REPAIRED).stdout
    parts = ["openai:gpt-6.2-sol", "attempt 1 (initial)", "delete  old/legacy.txt", "create  bin/slug"]
    parts += ["build failed: exit code 1", "| a slug has letters and dashes only", "attempt 2 (repair)", "build passed"]
    places = [shown.index(part) for part in parts]
    assert places[0] == min(places)
    assert places[-2:] == sorted(places[-2:])


def test_every_run_is_shown_as_json(root: Path, run_code_commit: Run):
    for run in RUNS:
        done = run_code_commit(root, "log", run, "--json")
        assert done.returncode == 0, done.stderr
        assert record(root, run)["totals"].items() <= json.loads(done.stdout)["totals"].items()


@pytest.mark.parametrize(
    ("run", "parts"), [(REPAIRED, ("slug.sh", "old/legacy.txt")), (KILLED_IN_BUILD, ("list.txt",))]
)
def test_a_run_is_shown_as_a_page_and_as_a_summary(run, parts, root: Path, run_code_commit: Run, tmp_path: Path):
    done = run_code_commit(root, "log", run, "--html", str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    summary = run_code_commit(root, "log", run, "--markdown").stdout
    assert all(part in page and part in summary for part in parts)


def test_a_run_is_undone_byte_for_byte(root: Path, before: dict, run_code_commit: Run):
    after = tree(root)
    done = run_code_commit(root, "undo", REPAIRED)
    assert done.returncode == 0, done.stderr
    assert tree(root) == before | {"list.txt": after["list.txt"]}  # a later run changed that one
    (undo,) = {path.name for path in (root / "agent-config/logs").iterdir()} - set(RUNS)
    assert run_code_commit(root, "undo", undo).returncode == 0
    assert tree(root) == after


def test_an_undo_is_undone(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "undo", UNDONE)
    assert done.returncode == 0, done.stderr
    assert (root / "title.txt").read_text() == "All the words\n"
    assert (root / "more.txt").read_text() == "more\n"


def test_undo_without_a_name_goes_back_run_by_run(root: Path, run_code_commit: Run):
    assert run_code_commit(root, "undo").returncode == 0
    assert record(root, max(path.name for path in (root / "agent-config/logs").iterdir()))["undoes"] == KILLED_IN_BUILD
    done = run_code_commit(root, "undo")
    assert done.returncode == 0, done.stderr
    assert f"(nothing applied): {KILLED_BEFORE_APPLYING.replace('-committing-code', '')} (killed)" in done.stderr
    assert record(root, max(path.name for path in (root / "agent-config/logs").iterdir()))["undoes"] == APPLIED


def test_a_tree_with_the_changes_of_an_interrupted_run_is_told_before_anything_is_paid(
    root: Path, run_code_commit: Run
):
    name = KILLED_IN_BUILD.replace("-committing-code", "")
    told = f"the tree contains changes from {name}, which did not finish: code-commit resume {name} continues it"
    assert told in " ".join(run_code_commit(root, "check").stdout.split())
    assert run_code_commit(root, "undo", KILLED_IN_BUILD).returncode == 0
    assert "did not end" not in run_code_commit(root, "check").stdout


def test_what_was_killed_in_the_build_is_resumed_and_undone(root: Path, before: dict, run_code_commit: Run):
    done = run_code_commit(root, "resume")
    assert done.returncode == 0, done.stderr
    resumed = record(root, KILLED_IN_BUILD)
    assert [attempt["verdict"] for attempt in resumed["attempts"]] == ["applied", "applied"]
    assert [attempt["build"]["exit_code"] for attempt in resumed["attempts"]] == [1, 0]
    assert (root / "count.txt").read_text() == "3\n"
    done = run_code_commit(root, "undo", KILLED_IN_BUILD)
    assert done.returncode == 0, done.stderr
    assert {name: tree(root)[name] for name in ("list.txt", "count.txt")} == {
        name: before[name] for name in ("list.txt", "count.txt")
    }


def test_what_was_killed_before_it_applied_is_resumed(root: Path, run_code_commit: Run):
    (root / "list.txt").write_bytes((DATA / "before/list.txt").read_bytes())  # the later run is not resumed here
    done = run_code_commit(root, "resume", KILLED_BEFORE_APPLYING)
    assert done.returncode == 0, done.stderr
    resumed = record(root, KILLED_BEFORE_APPLYING)
    assert [(attempt["verdict"], attempt["build"]["exit_code"]) for attempt in resumed["attempts"]] == [("applied", 0)]
    assert (root / "greeting.sh").read_text() == "#!/bin/sh\necho hallo\n"


def test_a_run_of_1_0_0_is_shown_counted_resumed_and_undone(root: Path, before: dict, run_code_commit: Run):
    logs = root / "agent-config/logs"
    shutil.rmtree(logs)
    (run,) = (path.name for path in (DATA / "of-1.0.0").iterdir())
    shutil.copytree(DATA / "of-1.0.0", logs)
    assert f"{run.replace('-committing-code', '')}  killed" in run_code_commit(root, "log").stdout
    assert "attempt 1 (initial)" in run_code_commit(root, "log", run).stdout
    done = run_code_commit(root, "resume")
    assert done.returncode == 0, done.stderr
    assert [attempt["build"]["exit_code"] for attempt in record(root, run)["attempts"]] == [1, 0]
    (counted,) = json.loads(run_code_commit(root, "log", "--stats", "--json").stdout)
    assert (counted["runs"], counted["passed"]) == (1, {"2": 1})
    assert run_code_commit(root, "undo").returncode == 0
    assert tree(root)["list.txt"] == before["list.txt"]


PAID = {"finish_reason": "stop", "seconds": 1.0, "cost_usd": 0.25}
COSTS = {
    "all are known": ([PAID, PAID], 0.5),
    "a refused call costs nothing": ([PAID, {"seconds": 0.1}], 0.25),
    "a billed job that failed has no answer": ([{"cost_usd": 0.5}, PAID], 0.75),
    "nobody knows the price of an answer": ([PAID, {"finish_reason": "stop", "seconds": 1.0}], None),
    "an answer that was lost stands apart": ([PAID, {"seconds": 1.0, "unsettled_usd": [0.5]}], 0.25),
    "an answer of which no reply tells the cost stands apart": (
        [PAID, {"finish_reason": "stop", "unsettled_usd": [0.5]}],
        0.25,
    ),
    "nothing was asked": ([], None),
}


@pytest.mark.parametrize(("attempts", "cost"), COSTS.values(), ids=COSTS)
def test_the_sum_of_what_calls_cost(attempts, cost):
    calls = [Attempt(number, "initial", **fields) for number, fields in enumerate(attempts, start=1)]
    record = RunRecord("1", "r", "run", "", "/", "", 1, attempts=calls)
    assert sum_up(record, 0.0).cost_usd == cost
    record.choice = FileChoice("c", calls=1, cost_usd=0.5)
    assert sum_up(record, 0.0).cost_usd == (None if attempts and cost is None else (cost or 0.0) + 0.5)


def test_each_sum_has_each_call_and_each_build_once():
    """The numbers are powers of two: a sum says of which of them it is."""
    builds = [BuildResult(1, None, timed_out=False, seconds=seconds, output_bytes=0) for seconds in (1.0, 2.0, 4.0)]
    calls = [
        Attempt(number, "repair", seconds=8.0 * number, finish_reason="stop", build=builds[number], cost_usd=number)
        for number in (1, 2)
    ]
    calls[0].usage, calls[0].unsettled_usd = Usage(1, 2, 4, 8, 16), [16.0, 32.0]
    calls[1].usage, calls[1].unsettled_usd = Usage(32, 64, 128, 256, 512), [64.0]
    record = RunRecord("1", "r", "run", "", "/", "", 1, model="m", first_build=builds[0], attempts=calls)
    usage = Usage(33, 66, 132, 264, 528)
    record.totals = sum_up(record, 64.0)
    assert record.totals == Totals(64.0, 24.0, 7.0, 2, usage, 3.0, 112.0)
    assert record.as_choice == FileChoice("r", "m", 2, 24.0, usage, 3.0, 112.0)
    after = RunRecord(
        "1", "s", "run", "", "/", "", 1, first_build=builds[0], attempts=calls[1:], choice=record.as_choice
    )
    usage += calls[1].usage or Usage()
    assert sum_up(after, 128.0) == Totals(128.0 + 24.0 + 1.0, 40.0, 5.0, 1, usage, 5.0, 176.0)


@pytest.mark.parametrize(("unsettled", "may_be_paid"), [([[0.5], []], False), ([[], [0.5]], True), ([], False)])
def test_an_error_may_have_been_paid_for_where_the_last_call_may(unsettled, may_be_paid):
    attempts = [Attempt(number, "initial", unsettled_usd=usd) for number, usd in enumerate(unsettled, start=1)]
    assert error_facts(NotSetUpError("no key"), attempts) == RunError("not_set_up", may_be_paid=may_be_paid)


def test_a_record_tells_of_its_latest_attempt_and_of_the_first_build_before_any():
    builds = [BuildResult(number, None, timed_out=False, seconds=1.0, output_bytes=0) for number in range(3)]
    attempts = [Attempt(1, "initial", "first", build=builds[1]), Attempt(2, "repair", "fallback", build=builds[2])]
    record = RunRecord("1", "r", "rollup", "", "/", "", 1, model="first", first_build=builds[0])
    assert (record.last_build, record.asked_model, record.as_choice.model) == (builds[0], "first", "first")
    record.attempts = [*attempts, Attempt(3, "retry")]
    assert (record.last_build, record.asked_model, record.as_choice.model) == (None, "fallback", "fallback")
    assert [record.is_auxiliary, record.has_next_step] == [False, True]
    record.status = Status.SUCCESS
    assert [record.is_auxiliary, record.has_next_step] == [True, False]
    record.status, record.options = Status.LLM_ERROR, {"dry_run": True}
    assert not record.has_next_step
    assert not BuildResult(0, None, timed_out=True, seconds=1.0, output_bytes=0).passed
    assert error_facts(OverBudgetError("", 1.0, 2.0)) == RunError("budget", needed_usd=1.0, left_usd=2.0)


def test_a_choice_whose_price_is_not_known_makes_the_sum_unknown():
    record = RunRecord("1", "r", "run", "", "/", "", 1, attempts=[Attempt(1, "initial", **PAID)])
    record.choice = FileChoice("c", calls=1)
    assert sum_up(record, 0.0).cost_usd is None


def test_the_costs_of_a_choice_of_schema_1_are_added_up():
    older = {**json.loads(RECORD), "schema_version": 1, "rollup_run": "c", "rollup_costs": [0.25, 0.5]}
    older |= {"command": "rollup", "options": {"query": "Do it.", "keep_runs": 7}}
    record = load_run_record(json.dumps(older))
    assert record.choice == FileChoice("c", calls=2, cost_usd=0.75)
    assert (record.request, record.options) == ({"query": "Do it."}, {"keep_runs": 7})


COUNTED = {
    "applied": (["applied"], 1),
    "of a dry run, or not written yet": ([None], 0),
    "one of them applied": ([None, "applied"], 1),
    "twice": (["applied", "applied"], 1),
}


@pytest.mark.parametrize(("verdicts", "files"), COUNTED.values(), ids=COUNTED)
def test_only_what_was_applied_counts_as_a_changed_file(verdicts, files):
    change = AppliedChange("a", "replace", 1, 1, 1)
    attempts = [Attempt(n, "initial", verdict=verdict, changes=[change]) for n, verdict in enumerate(verdicts, 1)]
    record = RunRecord("1", "r", "run", "", "/", "", 1, attempts=attempts)
    assert sum_up(record, 0.0).files_changed == files


RECORD = json.dumps(
    {"version": "1", "run": "r", "command": "run", "started": "2026-11-21T19:51:35.123Z", "root": "/", "log_dir": "", "pid": 1}
)  # fmt: skip
UNREADABLE = {
    "empty": "",
    "binary": "\0\x01",
    "another value": "[7]",
    "nested too deep": "[" * 100_000,
    "a number with many digits": RECORD.replace('"pid": 1', '"pid": ' + "9" * 5000),
    "a start that is no time": RECORD.replace("19:51", "99:51"),
    "no start": RECORD.replace("2026-11-21T19:51:35.123Z", ""),
    "a start in the year 1": RECORD.replace("2026-11-21T19:51:35.123Z", "0001-01-01"),
    "a retry until no time": RECORD[:-1]
    + ', "schema_version": 2, "attempts": [{"number": 1, "kind": "initial", "retries": [{"reason": "r", "until": "x"}]}]}',
    **{
        f"{seconds} seconds": f'{RECORD[:-1]}, "totals": {{"seconds": {seconds}}}}}'
        for seconds in ("NaN", "1e999", "1e308")
    },
    **{f"options of {number}": f'{RECORD[:-1]}, "options": {{"x": [{number}]}}}}' for number in ("Infinity", "-1e999")},
    **{
        f"an older one whose {name} is {value}": f'{RECORD[:-1]}, "schema_version": 1, "{name}": {value}}}'
        for name, value in {
            "attempts": 7,
            "warnings": "7",
            "rollup_costs": '["x"], "rollup_run": "r"',
            "options": "[]",
        }.items()
    },
    "a file that none can be": RECORD[:-1]
    + ', "schema_version": 2, "rewritten": [{"path": "a\\u0000b", "action": "mode", "lines_added": 0, "lines_removed": 0}]}',
    "an older one with a word for an attempt": f'{RECORD[:-1]}, "schema_version": 1, "attempts": ["x"]}}',
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_whatever_is_no_record_is_a_value_error(text):
    assert load_run_record(RECORD).pid == 1
    with pytest.raises(ValueError):
        load_run_record(text)


def test_a_resumed_run_tells_again_how_many_reasons_a_rejection_had():
    attempt = Attempt(1, "initial", verdict="rejected", rejections=[Violation("a", 1, "r", "no")], more_rejections=7)
    run: Any = SimpleNamespace(log=None)
    with pytest.raises(RejectedResponseError) as caught:
        change_files(run, Response("", "stop"), None, cast("Any", SimpleNamespace(record=attempt)))
    assert caught.value.reasons == attempt.reasons == ["line 1: a: no", "and 7 more"]


def test_a_retry_is_recorded_with_the_time_at_which_it_is_given_up():
    attempt = Attempt(1, "initial")
    log = cast("Any", SimpleNamespace(save=lambda _: None, record=SimpleNamespace(attempts=[attempt])))
    AttemptLog(log, 1).retrying("busy", 429, 2.0, 7200.0)
    (retry,) = attempt.retries
    left = datetime.fromisoformat(retry.until) - datetime.now(UTC)
    assert (retry.delay, round(left.total_seconds(), -2)) == (2.0, 7200)


def test_a_request_that_cannot_be_recorded_is_not_sent_and_costs_nothing():
    def write_record() -> None:
        raise LogError(Path("run.json"), OSError(28, "No space left on device"))

    attempt = Attempt(1, "initial", unsettled_usd=[1.0])
    log = cast("Any", SimpleNamespace(write_record=write_record, record=SimpleNamespace(attempts=[attempt])))
    with pytest.raises(LogError):
        AttemptLog(log, 1).reserved(2.0)
    assert attempt.unsettled_usd == [1.0]


def test_a_file_of_which_several_edits_do_not_fit_is_one_misfit():
    rules = [("a", "no-match"), ("a", "ambiguous"), ("b", "omission"), ("a", "no-match")]
    attempt = Attempt(1, "initial", rejections=[Violation(path, 1, rule, "no") for path, rule in rules])
    assert list(attempt.misfits) == ["a"]
