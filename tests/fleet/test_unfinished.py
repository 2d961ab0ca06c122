"""The sum of what all starts of a fleet have cost, by the logs of unfinished tasks and by the results."""

import json
from dataclasses import asdict

import pytest
from command import git, wait_for
from fleet_tools import PRICES, RIGHT, make_list, make_repository, pending, processes_with, results, task

from code_commit.errors import NotSetUpError
from code_commit.fleet.results import Result, packed
from code_commit.fleet.unfinished import Unfinished
from code_commit.runs.record import Attempt, RunRecord


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_choice_of_files_that_is_pending_as_its_log_is_kept_counts_once(is_killed, cluster, server, tmp_path):
    root = make_repository(tmp_path / "one")
    (root / "long.txt").write_text("too long to go in whole\n" * 4000)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "long")
    line = task("one", root, settings=server.settings | PRICES | {"rollup": "select"})
    server.answer = lambda number: (200, RIGHT if number == 2 + is_killed else "^^^files\nok.txt\n^^^end\n")
    server.hold_from(1)
    words = make_list(tmp_path / "tasks.jsonl", line), "--json", "--max-cost", "2"
    with cluster.start_fleet(*words) as fleet:
        wait_for(lambda: pending(tmp_path / "out"))
        if is_killed:
            fleet.kill()
            fleet.wait()
            wait_for(lambda: not any(processes_with(f"{cluster.root}/{name}/") for name in cluster.workers))
        server.go.set()
        output, _ = ("", "") if is_killed else fleet.communicate(timeout=300)
    if is_killed:
        output = cluster.run_fleet(*words).stdout
    cost = pytest.approx(0.6 if is_killed else 0.1)
    result = results(tmp_path)["one"]
    assert (result["status"], result["cost_usd"], result["paid_usd"]) == ("success", cost, cost)
    assert json.loads(output)["cost_usd"] == cost


@pytest.mark.parametrize(
    ("kept", "steps", "known", "is_taken"),
    [
        pytest.param(None, 1, "another", True, id="a run that is not known"),
        pytest.param(None, 1, "it", False, id="a run that has a result: --failed begins anew"),
        pytest.param(0, 1, "another", True, id="the same run, further"),
        pytest.param(1, 1, "another", False, id="the same run, as far"),
        pytest.param(2, 1, "another", False, id="the same run, less far"),
        pytest.param(1, 1.5, "another", True, id="the same run, with the job of its next answer"),
        pytest.param(2, 1.5, "another", False, id="the same run, before that job has its answer"),
    ],
)
def test_a_log_that_a_worker_kept_is_taken_up_where_it_tells_more(kept, steps, known, is_taken, tmp_path):
    name = f".a.{'0' * 16}.log"
    if kept is not None:
        (tmp_path / name).write_bytes(packed_run(kept))
    unfinished = Unfinished(tmp_path, [Result("a", "", "build_failed", 1, run=known, cost_usd=0.05)])
    before = unfinished.spent
    cost = unfinished.take_up({name: packed_run(steps), f"../{name}": packed_run(9), name.upper(): b"damaged"})
    assert cost == pytest.approx(0.05 if is_taken and steps == 1 else 0.0)
    assert unfinished.spent == pytest.approx(before + cost)
    found = [path.read_bytes() for path in tmp_path.glob(".*")]
    assert found == ([packed_run(steps)] if is_taken else [] if kept is None else [packed_run(kept)])
    assert not (tmp_path.parent / name).exists()


def test_a_damaged_log_is_told_and_one_from_a_worker_is_not_taken(tmp_path):
    name, log = f".a.{'0' * 16}.log", packed_run(1)
    middle = len(log) // 2
    damaged = [log[:place] for place in range(0, len(log) - 60, 7)]
    damaged += [
        log[:middle] + b"\xff" * 9 + log[middle + 9 :],
        b"\x1f\x8b" + bytes(99),
        packed({}, {"run.json": b"[]"}),
    ]
    for content in damaged:
        (tmp_path / name).unlink(missing_ok=True)
        assert Unfinished(tmp_path, []).take_up({name: content}) == 0.0
        (tmp_path / name).write_bytes(content)
        with pytest.raises(NotSetUpError, match="is damaged, so"):
            Unfinished(tmp_path, [])


def packed_run(steps: float) -> bytes:
    """Return the packed log of the run `it`, whose record tells of so many answers, 5 cents each; a job is half one."""
    attempts = [Attempt(number, "repair", finish_reason="stop", cost_usd=0.05) for number in range(1, int(steps) + 1)]
    if steps % 1:
        attempts.append(Attempt(int(steps) + 1, "repair", job_id="resp_1"))
    record = RunRecord("1", "it", "run", "2026-11-21T19:51:35.123Z", "root", "log", 1, attempts=attempts)
    return packed({}, {"run.json": json.dumps(asdict(record)).encode()})
