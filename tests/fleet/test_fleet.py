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


def test_an_llm_that_chooses_the_files_first_is_of_the_task_too(tmp_path):
    root = make_repository(tmp_path / "one")
    (root / "long.txt").write_text("too long to go in whole\n" * 4000)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "long")
    line = task("one", root, make_answers(tmp_path / "answers", "^^^files\nok.txt\n^^^end\n", RIGHT))
    line["settings"]["rollup"] = "select"
    done = run_fleet(make_list(tmp_path / "tasks.jsonl", line))
    assert done.returncode == 0, done.stderr
    record = load_run_record((tmp_path / "out/one/run.json").read_bytes())
    assert (record.command, record.rollup_costs) == ("run", [0.0])
