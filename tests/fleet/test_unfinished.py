"""The sum of what all starts of a fleet have cost, by the logs of unfinished tasks and by the results."""

import json

import pytest
from command import git, wait_for
from fleet_tools import PRICES, RIGHT, make_list, make_repository, pending, processes_with, results, task


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
