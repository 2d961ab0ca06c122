"""A fleet as its user calls it: what becomes of its tasks, and which of them run again."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import CODE_COMMIT, git, tree, wait_for
from fleet_tools import (
    PRICES,
    RIGHT,
    WRONG,
    fleet_words,
    make_answers,
    make_list,
    make_repository,
    processes_with,
    results,
    task,
)

from code_commit.commands import parse
from code_commit.commands.results import Result
from code_commit.errors import NotSetUpError
from code_commit.fleet import FleetOptions, in_fleet_words, run
from code_commit.fleet.command import is_wanted
from code_commit.fleet.tasks import FleetTask
from code_commit.fleet.unfinished import log_path
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.runs.record import load_run_record


def command_elsewhere(current: Path) -> str:
    """Return a script that is the command, as pip writes it, and lay a module into the current folder."""
    script = current / "bin" / "code-commit"
    script.parent.mkdir()
    script.write_text("if __name__ == '__main__':\n    from code_commit.__main__ import command\n    command()\n")
    (current / "multiprocessing.py").write_text(f"open({str(current / 'imported')!r}, 'w')\n")
    return str(script)


@pytest.mark.slow
def test_three_tasks_of_three_repositories(forked_fleet, tmp_path):
    build = "env | grep -E 'NUM_THREADS|SAFEPATH' && exit 1; test $PYTHONPATH = . && grep -q '^ok$' ok.txt"
    repositories = [make_repository(tmp_path / name, build) for name in ("one", "two", "three")]
    before = [tree(root) for root in repositories]
    answers = make_answers(tmp_path / "answers", WRONG, RIGHT)
    lines = [task(root.name, root, answers) for root in repositories]
    lines[2]["settings"]["max_repairs"] = 0
    tasks = make_list(tmp_path / "tasks.jsonl", *lines)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to("elsewhere")

    done = subprocess.run(
        [sys.executable, command_elsewhere(tmp_path), "fleet", str(tasks), "--out", "out", "--json", "--at-once", "2"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )

    assert not (tmp_path / "imported").exists(), "nothing in the current folder is"
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["statuses"] == {"success": 2, "build_failed": 1}
    assert {name: result["exit_code"] for name, result in results(tmp_path).items()} == {"one": 0, "two": 0, "three": 1}
    assert [tree(root) for root in repositories] == before
    for root in repositories:
        folder = tmp_path / "out" / root.name
        assert load_run_record((folder / "run.json").read_bytes()).query == "Make ok.txt say ok."
        assert (folder / "log" / "1-query.txt").is_file()
    git(repositories[0], "apply", str(tmp_path / "out" / "one" / "changes.patch"))
    assert (repositories[0] / "ok.txt").read_text() == "ok\n"

    again = forked_fleet.run(fleet_words(tasks), tmp_path, os.environ)
    assert again.returncode == 1
    assert "2 of 3 tasks green, 1 build failed" in again.stderr
    assert "3 tasks kept, none ran" in again.stderr
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) == 3, "nothing ran again"
    checked = forked_fleet.run([*fleet_words(tasks), "--check", "--failed"], tmp_path, os.environ)
    assert checked.stdout == "3 tasks: no mistakes\n2 kept, 0 would continue, 1 would start\n"


def test_a_key_that_is_missing_here_is_told_once_before_anything_is_cloned(forked_fleet, tmp_path):
    repository, answers = make_repository(tmp_path / "repository"), make_answers(tmp_path / "answers", RIGHT)
    lines = [task(name, repository, "openai") for name in "ab"]
    lines += [task("c", repository, answers, settings={"fallback_model": "anthropic"}), task("d", repository)]
    tasks = make_list(tmp_path / "tasks.jsonl", *lines)
    done = forked_fleet.run(fleet_words(tasks), tmp_path, os.environ)
    assert (done.returncode, (tmp_path / "out").exists()) == (2, False)
    way = "set {}, or CODE_COMMIT_KEYS to a folder with {}-key.txt"
    checked = forked_fleet.run([*fleet_words(tasks), "--check"], tmp_path, os.environ)
    assert (checked.returncode, checked.stdout, checked.stderr) == (2, "", done.stderr)
    assert done.stderr.split("\n") == [
        f"code-commit: no key for openai (2 tasks): {way.format('OPENAI_API_KEY', 'openai')}",
        f"  no key for anthropic (1 task): {way.format('ANTHROPIC_API_KEY', 'anthropic')}",
        f"  no key for any provider (1 task): {way.format(' or '.join(KEY_VARIABLES.values()), 'PROVIDER')}",
        "",
    ]


def run_choosing(cluster, tmp_path, **settings):
    """Run a fleet of a task whose LLM chooses the files first, in a repository that is too long to go in whole."""
    root = make_repository(tmp_path / "one")
    (root / "long.txt").write_text("too long to go in whole\n" * 4000)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "long")
    answers = make_answers(tmp_path / "answers", "^^^files\nok.txt\n^^^end\n", RIGHT)
    line = task("one", root, answers, settings={"rollup": "select", **settings})
    return cluster.run_fleet(make_list(tmp_path / "tasks.jsonl", line))


@pytest.mark.slow
def test_an_llm_that_chooses_the_files_first_is_of_the_task_too(cluster, tmp_path):
    done = run_choosing(cluster, tmp_path)
    assert done.returncode == 0, done.stderr
    record = load_run_record((tmp_path / "out/one/run.json").read_bytes())
    assert (record.command, record.choice.cost_usd) == ("run", 0.0)
    log = tmp_path / "out/one/log"
    assert "^^^files" in (log / "choice/1-response.txt").read_text()
    assert load_run_record((log / "choice/run.json").read_bytes()).chosen == ["ok.txt"]


@pytest.mark.slow
def test_files_chosen_for_a_run_that_cannot_begin_are_no_green_task(cluster, tmp_path):
    done = run_choosing(cluster, tmp_path, context_window=3_000)
    assert done.returncode == 1, done.stderr
    assert results(tmp_path)["one"]["status"] == "llm_error"
    assert "does not fit" in results(tmp_path)["one"]["message"]


@pytest.mark.slow
def test_one_task_for_many_repositories_that_lack_build_and_ignore_line(forked_fleet, tmp_path):
    for name in ("one", "two"):
        root = make_repository(tmp_path / name)
        git(root, "rm", "-q", "build.sh", ".gitignore")
        git(root, "commit", "-qm", "bare")
    (tmp_path / "build").write_text("grep -q '^ok$' ok.txt")
    (tmp_path / "list").write_text("one\n\ntwo\n")
    answers = make_answers(tmp_path / "answers", RIGHT)
    words = ["fleet", "-m", "Make ok.txt say ok.", "-m", "No more.", "--repositories", "list", "--build", "build"]
    words += ["--out", "out", "--at-once", "1", "--no-baseline"]
    done = forked_fleet.run(words, tmp_path, os.environ | {"CODE_COMMIT_MODEL": answers})
    assert done.returncode == 0, done.stderr
    for name in ("one", "two"):
        git(tmp_path / name, "am", "-q", "-3", str(tmp_path / "out" / name / "changes.patch"))
        assert git(tmp_path / name, "show", "--format=%s", "--name-only").split("\n\n") == [
            "Make ok.txt say ok.",
            "ok.txt\n",
        ]
        (query,) = (tmp_path / "out" / name).glob("log/query.txt")
        assert query.read_text() == "Make ok.txt say ok.\n\nNo more."
    lines = map(json.loads, (tmp_path / "out" / "results.jsonl").read_text().splitlines())
    assert [line["is_build_supplied"] for line in lines] == [True, True]
    words = ["fleet", "-m", "Do it.", "--repositories", "-", "--check"]
    piped = forked_fleet.run(words, tmp_path, os.environ, b"one\nthree\n")
    assert piped.returncode == 2
    assert "-:2: repository: three is not a git repository" in piped.stderr


@pytest.mark.slow
def test_a_build_is_supplied_where_there_is_none_and_another_one_asks_no_llm_again(tmp_path, cluster, server):
    """Green tasks are built again without the LLM, the others run again, but for those that have a build of their own."""
    make_repository(tmp_path / "own", "echo its own; exit 1")
    bare = make_repository(tmp_path / "bare")
    git(bare, "rm", "-q", "build.sh")
    git(bare, "commit", "-qm", "no build")
    (tmp_path / "list").write_text("own\nbare\n")
    (tmp_path / "build").write_text("#!/bin/sh\ngrep ok ok.txt\n")
    defaults = [f"--setting={name}={value}" for name, value in server.settings.items()]
    words = ["fleet", "-m", "Make ok.txt say ok.", "--repositories", str(tmp_path / "list"), *defaults]
    words += ["--setting=max_repairs=0", "--no-baseline", "--out", str(tmp_path / "out")]

    def run_with(*more):
        server.calls.clear()
        done = cluster.run_fleet(tmp_path, *words[1:], *more, listed=False)
        lines = {line["repository"]: line for line in results(tmp_path).values()}
        return {name: line["exit_code"] for name, line in lines.items()}, len(server.calls), done.stderr

    build = str(tmp_path / "build")
    assert run_with("--build", build)[:2] == ({"own": 1, "bare": 0}, 2)
    before = {line["id"]: line for line in results(tmp_path).values()}
    (tmp_path / "build").write_text("#!/bin/sh\n# a comment\ngrep ok ok.txt && echo again\n")
    checked = cluster.run_fleet(tmp_path, *words[1:], "--build", build, "--check", listed=False)
    assert checked.stdout.endswith("1 kept, 0 would continue, 1 would be built again, 0 would start\n")
    ends, calls, told = run_with("--build", build)
    assert (ends, calls) == ({"own": 1, "bare": 0}, 0), told
    bare = next(line for line in results(tmp_path).values() if line["repository"] == "bare")
    assert (bare["cost_usd"], bare["patch"]) == (before[bare["id"]]["cost_usd"], before[bare["id"]]["patch"])
    assert "again" in (tmp_path / "out" / bare["id"] / "log" / "1-build.txt").read_text()
    assert run_with("--build", build)[1] == 0, "the same lines"
    ends, calls, told = run_with("--build-instead", build)
    assert (ends, calls) == ({"own": 0, "bare": 0}, 1), told


@pytest.mark.parametrize(
    ("options", "done"),
    [
        ({}, ["new", "changed"]),
        ({"only": ["green"]}, ["new", "changed", "green", "red"]),
        ({"failed": True}, ["new", "changed", "red"]),
    ],
)
def test_what_runs_again(options, done):
    """Tasks with a result run again if their line changed, if they are named, and with --failed if they failed."""
    tasks = {name: FleetTask(**task(name, "https://example.org/x")) for name in ("new", "changed", "green", "red")}
    earlier = {name: Result(name, tasks[name].digest, "success", 0) for name in ("changed", "green")}
    earlier["red"] = Result("red", tasks["red"].digest, "build_failed", 1)
    tasks["changed"] = tasks["changed"].model_copy(update={"query": "Another."})
    assert {name for name in tasks if is_wanted(tasks[name], earlier.get(name), FleetOptions(**options))} == set(done)


def test_what_a_run_prints_and_how_its_build_ends_are_no_other_question():
    plain = FleetTask(**task("a", "https://example.org/x"))
    same = {"json": True, "quiet": True, "verbose": True, "sandbox": "off", "build_timeout": 1, "max_cost": 1}
    assert FleetTask(**task("a", "https://example.org/x", settings=same)).identity == plain.identity
    assert (
        FleetTask(**task("a", "https://example.org/x", settings={"answer_format": "edits"})).identity != plain.identity
    )


def test_a_result_and_a_log_of_an_earlier_version_are_those_of_the_task(tmp_path):
    """Its digest depended on the label."""
    pairs = {"settings": {"max_repairs": 1, "answer_format": "edits", "max_cost": 2}, "label": "edits"}
    line = FleetTask(**task("a", "https://example.org/x", overlay={"b.txt": "b\n", "a.txt": None}, **pairs))
    earlier = "f80aecf6ff6c88e7666c39d1255340ac56df21c6fa38e4844ec8bd7887c7cc1a"
    assert not is_wanted(line, Result("a", earlier, "success", 0), FleetOptions())
    assert log_path(tmp_path, line).name == f".a.{line.digest[:16]}.log"
    (tmp_path / f".a.{earlier[:16]}.log").touch()
    assert log_path(tmp_path, line).name == f".a.{earlier[:16]}.log"


@pytest.mark.slow
def test_the_money_of_all_is_not_passed(tmp_path, cluster, server):
    """A call costs 50 cents, at most 55: while one is made the other waits, and then there is too little for it."""
    repository = make_repository(tmp_path / "repository")
    prices = {"prices": {"fake": {"input": 0.0, "output": 5000.0}}, "max_output_tokens": 110, "max_cost": 0.6}
    lines = [task(name, repository, settings=server.settings | prices) for name in ("a", "b")]
    done = cluster.run_fleet(make_list(tmp_path / "tasks.jsonl", *lines), "--max-cost", "1", "--at-once", "2")
    assert done.returncode == 3, done.stderr
    told = "up to $0.5000 was spent, and one more call can cost $0.5500; raise it to continue"
    assert f"--max-cost 1 is too low to go on: {told}" in done.stderr
    assert len(server.calls) == 1
    assert [result["cost_usd"] for result in results(tmp_path).values()] == [0.5]


@pytest.mark.slow
def test_models_and_trials_side_by_side(tmp_path, cluster):
    repository = make_repository(tmp_path / "repository")
    good, poor = make_answers(tmp_path / "good", RIGHT), make_answers(tmp_path / "poor", WRONG)
    tasks = make_list(tmp_path / "tasks.jsonl", task("a", repository))
    words = ("--model", good, "--model", poor, "--setting", "max_repairs=0", "--trials", "2")
    done = cluster.run_fleet(tasks, *words)
    assert "2 of 4 tasks green" in done.stderr
    found = results(tmp_path).values()
    assert {(line["task"], line["label"], line["exit_code"]) for line in found} == {
        ("a", good, 0),
        ("a", poor, 1),
    }
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()} == {line["id"] for line in found}
    again = cluster.run_fleet(tasks, *words, "--json")
    assert len((tmp_path / "out/results.jsonl").read_text().splitlines()) == 4, again.stderr
    for stderr in (done.stderr, again.stderr):
        rows = re.findall(r"^(?:a|green) +(. of 2) +(. of 2)$", stderr, re.MULTILINE)
        assert rows == [("2 of 2", "0 of 2")] * 2, stderr
    assert [label["pass_at_1"] for label in json.loads(again.stdout)["labels"]] == [1.0, 0.0]
    assert (
        '<tr><th scope="row">green</th><td>2 of 2</td><td>0 of 2</td></tr>' in (tmp_path / "out/index.html").read_text()
    )


@pytest.mark.slow
def test_the_page_is_there_while_the_fleet_runs_and_after_a_kill(tmp_path, cluster, server):
    repository = make_repository(tmp_path / "repository", "echo wrong >&2; exit 1")
    lines = [task("runs", repository, settings=server.settings)]
    lines.append(task("ends", repository, make_answers(tmp_path / "answers", WRONG), settings={"max_repairs": 0}))
    server.go.clear()
    page = tmp_path / "out/index.html"
    with cluster.start_fleet(make_list(tmp_path / "tasks.jsonl", *lines)) as fleet:
        wait_for(lambda: page.exists() and "0 of 2 tasks green" in page.read_text())
        wait_for(lambda: "1 not done" in page.read_text())
        fleet.kill()
        server.go.set()
    assert "exit code 1 after" in page.read_text()
    assert results(tmp_path)["ends"]["message"].endswith(": wrong")


@pytest.mark.slow
def test_a_task_that_waits_for_money_holds_up_none_of_another_provider(tmp_path, cluster, server):
    repository = make_repository(tmp_path / "repository")
    prices = {"prices": {"fake": {"input": 0.0, "output": 5000.0}}, "max_output_tokens": 110, "max_cost": 0.6}
    lines = [task(name, repository, settings=server.settings | prices) for name in ("runs", "waits")]
    lines.append(task("other", repository, make_answers(tmp_path / "answers", RIGHT), settings={"max_cost": 0.2}))
    server.go.clear()
    with cluster.start_fleet(make_list(tmp_path / "tasks.jsonl", *lines), "--max-cost", "1", "--at-once", "3") as fleet:
        wait_for((tmp_path / "out/other").exists)
        assert not (tmp_path / "out/runs").exists()
        server.go.set()
        fleet.communicate(timeout=300)
    assert {name: result["exit_code"] for name, result in results(tmp_path).items()} == {"other": 0, "runs": 0}


@pytest.mark.slow
@pytest.mark.usefixtures("needs_bwrap")
def test_a_build_cannot_read_the_hidden_tests_in_the_list(tmp_path, cluster):
    tasks = tmp_path / "tasks.jsonl"
    build = f"test -e {tasks} && ! grep . {tasks} && if test -e check.sh; then sh check.sh; fi"
    line = task("a", make_repository(tmp_path / "one", build), make_answers(tmp_path / "answers", RIGHT))
    line |= {"verify": {"check.sh": "grep -q ok ok.txt\n"}, "settings": line["settings"] | {"sandbox": "guard"}}
    done = cluster.run_fleet(make_list(tasks, line))
    assert (done.returncode, results(tmp_path)["a"]["verified"]) == (0, True), done.stderr


def test_the_workers_folder_is_nobody_elses(forked_fleet, tmp_path):
    tasks = make_list(tmp_path / "tasks.jsonl", task("a", make_repository(tmp_path / "repository"), "replay:x"))
    folder = tmp_path / f"code-commit-fleet-{os.geteuid()}"
    folder.symlink_to(tmp_path / "repository")
    done = forked_fleet.run(fleet_words(tasks), tmp_path, os.environ | {"TMPDIR": str(tmp_path)})
    assert done.returncode == 2
    assert f"{folder} must be your own folder with mode 700" in done.stderr


@pytest.mark.slow
def test_a_call_that_had_just_begun_counts_though_the_fleet_is_killed(tmp_path, server):
    """Nobody has seen it in the log by then; it can have cost 50 cents, and the same again costs 5."""
    repository = make_repository(tmp_path / "repository")
    tasks = make_list(tmp_path / "tasks.jsonl", task("a", repository, settings=server.settings | PRICES))
    own = os.environ | {"TMPDIR": str(tmp_path)}  # where no other fleet removes what this one leaves
    words = [*CODE_COMMIT, *fleet_words(tasks, "--quiet", "--at-once", "1")]
    server.go.clear()
    with subprocess.Popen(words, cwd=tmp_path, env=own) as fleet:
        wait_for(lambda: server.calls, pause=0.001)
        fleet.kill()
    wait_for(lambda: not processes_with(f"{tmp_path}/code-commit-fleet"), pause=0.2)
    server.go.set()
    assert subprocess.run(words, cwd=tmp_path, env=own, check=False).returncode == 0
    assert len(server.calls) == 2
    result = results(tmp_path)["a"]
    assert (result["cost_usd"], result["unsettled_usd"]) == (pytest.approx(0.05), pytest.approx(0.5))
    assert not list(tmp_path.glob("code-commit-fleet-*/*/*-*")), "nothing of either is left"


def test_what_only_looks_at_the_list_does_without_dask(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for name in ("code_commit.fleet.cluster", "code_commit.fleet.dispatcher"):
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.delattr(name, raising=False)
    tasks = str(make_list(tmp_path / "tasks.jsonl", task("a", make_repository(tmp_path / "repository"), "replay:x")))

    def told(*words):
        try:
            parse(["fleet", *words]).run()
        except NotSetUpError as error:
            return str(error)
        return capsys.readouterr().out

    assert told(tasks, "--check") == "1 task: no mistakes\n"
    assert json.loads(told("--schema"))["required"] == ["id", "repository", "query"]
    either, named = "name either a list of tasks (", ("--repositories", "x")
    for words in (
        ["--out", "out"],
        ["-m", "Do it."],
        ["-m", "", *named],
        [tasks, *named],
        [tasks, "-m", "Do it.", *named],
    ):
        assert told(*words, "--check").startswith(either), words
    assert told(tasks, "--only", "b") == "--only b names no task; the tasks are a"
    matrix = ("--setting", "max_repairs=0", "--setting", "max_repairs=1", "--only", "a")
    assert told(tasks, *matrix) == "--only a names no task; the tasks are a.max_repairs-0, a.max_repairs-1"
    assert told(tasks, "--exclude", "a", "--exclude", "b*", "--check") == "--exclude b* matches no task"
    assert told(tasks, "--group", "x", "--branch", "y") == "--group, --branch: only with --land"
    assert told(tasks, "--validate", "--limit", "2", "--check") == "--limit, --validate: only with --from-history"
    both = "--group: only with --land\n--limit: only with --from-history"
    assert told(tasks, "--group", "x", "--limit", "2") == both
    assert told(tasks).startswith("name the folder")
    assert "in the clone of code-commit, pip install '.[fleet]'" in told(tasks, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    monkeypatch.setenv("CODE_COMMIT_KEYS", str(tmp_path))
    assert told(tasks, "--check") == "1 task: no mistakes\n"
    monkeypatch.setenv("CODE_COMMIT_KEY", str(tmp_path))
    hint = "did you mean 'CODE_COMMIT_KEYS'?"
    assert told(tasks, "--check") == f"environment variable CODE_COMMIT_KEY names no option; {hint}"


@pytest.mark.parametrize(
    ("command", "taken"),
    [
        ("--land", ["--only", "a", "--group", "x", "--branch", "y", "--author", "A <a@example.org>", "--quiet"]),
        ("--from-history", ["--tests", "t", "--validate", "--limit", "2", "--scheduler", "tcp://x", "--insecure"]),
    ],
)
def test_what_a_command_would_ignore_is_refused_all_at_once(command, taken, tmp_path):
    words = ["--trials", "2", "--out", "o", "--max-cost", "3", "--moved", "--model", "x", "-m", "Do it.", "--check"]
    with pytest.raises(NotSetUpError) as told:
        parse(["fleet", "tasks.jsonl", command, str(tmp_path), *taken, *words]).run()
    ignored = "TASKS, -m, --model, --trials, --out, --max-cost, --moved, --check"
    assert (told.value.exit_code, str(told.value)) == (2, f"{ignored}: not with {command}")


def test_what_is_wrong_with_the_options_is_no_mistake_of_a_line_of_repositories(tmp_path):
    make_repository(tmp_path / "one")
    (tmp_path / "list").write_text("one\nnone\n")
    order = FleetOptions(task=["Do it."], repositories=str(tmp_path / "list"), check=True)

    def told(model):
        with pytest.raises(NotSetUpError) as refused:
            run(order._replace(model=[model]))
        return str(refused.value).split("\n")

    assert told("chat:tiny") == [
        "2 mistakes in the list of tasks:",
        "--setting: model = chat: needs base_url, such as http://127.0.0.1:11434/v1",
        f"{tmp_path}/list:2: repository: none is not a git repository",
    ]
    assert "use model = chat:tiny with base_url, or" in told("nosuch:tiny")[0]


def test_a_check_makes_the_checks_of_a_run_in_all_lines(tmp_path, monkeypatch):
    """Address, model and price of each LLM are looked at without asking anybody; a price is missed with a limit alone."""
    repository, url = make_repository(tmp_path / "repository"), "http://127.0.0.1:9/v1"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    lines = [
        task("fine", repository, "openai"),
        task(
            "own",
            repository,
            settings={"model": "chat:own", "base_url": url, "prices": {"own": {"input": 1, "output": 2}}},
        ),
        task("dear", repository, settings={"model": "chat:dear", "base_url": url}),
        task("nowhere", repository, "chat:x"),
        task("odd", repository, settings={"model": "chat:x", "base_url": "127.0.0.1:9"}),
        task("gone", tmp_path / "gone", f"replay:{tmp_path}/no-such"),
        task("second", repository, settings={"model": "openai", "fallback_model": "chat:y"}),
    ]
    order = FleetOptions(tasks=str(make_list(tmp_path / "tasks.jsonl", *lines)), check=True)

    def told(**options):
        with pytest.raises(NotSetUpError) as refused:
            run(order._replace(**options))
        return [line.partition(".jsonl:")[2] for line in str(refused.value).split("\n")[1:]]

    second = "7: fallback_model = chat: needs fallback_base_url, such as http://127.0.0.1:11434/v1"
    odd, gone = (
        "5: base_url must begin with https:// or http://",
        f"6: repository: {tmp_path}/gone is not a git repository",
    )
    assert told() == ["4: model = chat: needs base_url, such as http://127.0.0.1:11434/v1", odd, gone, second]
    of_price = [line.partition(":")[::2] for line in told(max_cost=1.0) if "max_cost needs a price for" in line]
    assert [(line, what.split()[5]) for line, what in of_price] == [
        ("3", "dear:"),
        ("4", "x:"),
        ("5", "x:"),
        ("7", "y:"),
    ]
    assert all("for a fleet to the settings of its tasks" in what for _, what in of_price)
    assert told(max_cost=1.0) == told(max_cost=1.0, scheduler="tls://127.0.0.1:9")
    in_both_ways = told(model=["openai", "gemini"])
    assert [line[:28] for line in in_both_ways[:4:2]] == [
        "2: base_url is for chat, but",
        "3: base_url is for chat, but",
    ]
    assert in_both_ways[4:] == [odd, gone, second], "each once"


STRICT, OFF = {"sandbox": "strict"}, {"sandbox": "off"}


@pytest.mark.parametrize(
    ("address", "settings", "told"),
    [
        ("tcp://10.0.0.5:8786", [STRICT, {}], "tcp://10.0.0.5:8786 is not encrypted: whoever reaches"),
        ("10.0.0.5:8786", [{}], "10.0.0.5:8786 is not encrypted"),
        ("tcp://10.0.0.5:8786", [STRICT | {"sandbox_network": True}], '"strict" without sandbox_network'),
        ("tls://10.0.0.5:8786", [{}, OFF], "can read the TLS key: whoever reaches the scheduler, such"),
        ("tcp://10.0.0.5:8786", [STRICT, STRICT], "name the folder"),
        ("tls://10.0.0.5:8786", [{}, STRICT], "name the folder"),
    ],
)
def test_a_cluster_that_builds_could_command_is_refused_unless_that_is_asked_for(address, settings, told, tmp_path):
    repository = make_repository(tmp_path / "repository")
    lines = [task(f"t{number}", repository, settings=one) for number, one in enumerate(settings)]
    order = FleetOptions(tasks=str(make_list(tmp_path / "tasks.jsonl", *lines)), scheduler=address)
    with pytest.raises(NotSetUpError) as refused:
        run(order)
    assert told in str(refused.value)
    with pytest.raises(NotSetUpError, match="name the folder"):
        run(order._replace(insecure=True))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("use a longer --build-timeout", "use a longer --setting build_timeout=S"),
        ("smaller (--rollup select or fit)", "smaller (--setting rollup=select or fit)"),
        ("set --model chat:NAME and --base-url URL", "set --model chat:NAME and --setting base_url=URL"),
        ("--allow does not name it", "--setting allow=GLOB does not name it"),
        ("allow_http = true in config.toml permits", "--setting allow_http=true permits"),
        ("set context_window in config.toml, or", "set --setting context_window=VALUE, or"),
        ("config.toml's allow /etc/x can match nothing", "the setting allow /etc/x can match nothing"),
        ("write it in config.toml", "write it in config.toml"),
        ("--no-baseline, --max-cost 2, git log --stat", "--no-baseline, --max-cost 2, git log --stat"),
    ],
)
def test_the_options_of_a_fleet_stay_and_others_become_settings(message: str, told: str):
    assert in_fleet_words(message) == told
