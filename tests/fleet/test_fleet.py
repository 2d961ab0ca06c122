"""A fleet on this machine: what becomes of its tasks, and which of them run again."""

import json

from command import git, tree
from fleet_tools import RIGHT, WRONG, make_answers, make_list, make_repository, results, run_fleet, task

from code_commit.run_record import load_run_record


def test_three_tasks_of_three_repositories(tmp_path):
    repositories = [make_repository(tmp_path / name) for name in ("one", "two", "three")]
    before = [tree(root) for root in repositories]
    answers = make_answers(tmp_path / "answers", WRONG, RIGHT)
    lines = [task(root.name, root, answers) for root in repositories]
    lines[2]["settings"]["max_repairs"] = 0
    tasks = make_list(tmp_path / "tasks.jsonl", *lines)

    done = run_fleet(tasks, "--json", "--at-once", "2")

    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["statuses"] == {"success": 2, "build_failed": 1}
    assert {name: result["exit_code"] for name, result in results(tmp_path).items()} == {"one": 0, "two": 0, "three": 1}
    assert [tree(root) for root in repositories] == before
    for root in repositories:
        folder = tmp_path / "out" / root.name
        record = load_run_record((folder / "run.json").read_bytes())
        assert record.query == "Make ok.txt say ok."
        assert (folder / "log" / "1-query.txt").is_file()
        git(root, "status")
    git(repositories[0], "apply", str(tmp_path / "out" / "one" / "changes.patch"))
    assert (repositories[0] / "ok.txt").read_text() == "ok\n"

    again = run_fleet(tasks)
    assert again.returncode == 1
    assert "2 of 3 tasks green, 1 build failed" in again.stderr
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 3, "nothing ran again"
