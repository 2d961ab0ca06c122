"""Keys and prices are known before anything is paid for, and each build runs once; one that cannot run asks no LLM."""

import json
from pathlib import Path

import pytest
from command import git
from fleet_tools import make_list, make_repository, results, task

from code_commit.api import price_answers
from code_commit.errors import NotSetUpError
from code_commit.fleet.baseline import ask_of_each, require_keys, ways_left_out
from code_commit.fleet.tasks import read_tasks


def run_fleet(cluster, tasks, *words):
    return cluster.run_fleet(tasks, str(tasks), "--out", str(tasks.parent / "out"), *words, listed=False)


@pytest.mark.slow
def test_a_baseline_is_built_once_and_what_cannot_run_asks_no_llm(tmp_path, cluster, server):
    """Two trials of each of four repositories; a red build is no reason not to ask."""
    builds = {"green": "grep ok ok.txt || true", "red": "grep -q '^ok$' ok.txt", "none": "echo first; no-such-tool"}
    roots = {name: make_repository(tmp_path / name, build) for name, build in builds.items()}
    lines = [task(name, root, settings=server.settings | {"max_repairs": 0}) for name, root in roots.items()]
    empty = tmp_path / "empty"
    git(tmp_path, "init", "-q", "empty")
    tasks = make_list(tmp_path / "tasks.jsonl", *lines, task("empty", empty, settings=server.settings))
    done = run_fleet(cluster, tasks, "--trials", "2")
    assert "baseline: build.sh cannot run in 2 of 4, passes in 1, fails in 1, before any change" in done.stderr, (
        done.stderr
    )
    found = results(tmp_path)
    ends = {"green": ("success", "green"), "red": ("success", "red")}
    ends |= dict.fromkeys(("none", "empty"), ("not_set_up", "cannot run"))
    assert {name: (line["status"], line["baseline"]) for name, line in found.items()} == {
        f"{name}{trial}": end for name, end in ends.items() for trial in ("", ".2")
    }
    assert len(server.calls) == 4
    assert found["none"]["message"].startswith("the build cannot run here (--no-baseline calls the LLM anyway):")
    assert "no-such-tool: " in found["none"]["message"]
    assert found["empty"]["message"].startswith("git bundle of ")
    lines = [json.loads(line) for line in (tmp_path / "out/baselines.jsonl").read_text().splitlines()]
    assert sorted(line["state"] for line in lines) == ["cannot run", "cannot run", "green", "red"]

    asked = run_fleet(cluster, tasks, "--trials", "2", "--only", "none", "--only", "red")
    assert "baseline: build.sh cannot run in 1 of 1, before any change" in asked.stderr, "red is known"
    skipped = run_fleet(cluster, tasks, "--trials", "3", "--skip-red", "--only", "red.3", "--only", "green.3")
    assert "1 task skipped: the baseline build fails (--skip-red)" in skipped.stderr
    assert "1 of 2 tasks green, 1 not done" in skipped.stderr
    again = cluster.run_fleet(tasks, "--trials", "2", "--only", "none")
    assert results(tmp_path)["none"]["status"] == "build_error", again.stderr


@pytest.mark.slow
def test_a_build_that_passes_as_the_baseline_is_the_first_build_too(tmp_path, cluster, server):
    """Its output would be in no prompt; that of a build that fails is in that of each task."""
    built = tmp_path / "built"
    count = f"echo $CODE_COMMIT_ATTEMPT >>{built}-$(head -n 1 name); "
    roots = [
        make_repository(tmp_path / name, f"{count}{build}")
        for name, build in (("green", "true"), ("red", "grep -q '^ok$' ok.txt"))
    ]
    for root in roots:
        (root / "name").write_text(root.name)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "name")
    settings = server.settings | {"build_first": True, "sandbox": "off"}
    tasks = make_list(tmp_path / "tasks.jsonl", *(task(root.name, root, settings=settings) for root in roots))
    done = run_fleet(cluster, tasks, "--trials", "2")
    assert done.returncode == 0, done.stderr
    builds = {name: sorted(Path(f"{built}-{name}").read_text().split()) for name in ("green", "red")}
    assert builds == {"green": ["1", "1", "1"], "red": ["1", "1", "1"]}, "one of each is the baseline"
    prompts = {name: (tmp_path / "out" / name / "log" / "1-query.txt").read_text() for name in ("green", "red")}
    assert {name: "build.sh fails already" in prompt for name, prompt in prompts.items()} == {
        "green": False,
        "red": True,
    }


@pytest.mark.slow
def test_a_baseline_that_hangs_ends_its_tasks_at_the_build_timeout_and_nothing_is_paid(tmp_path, cluster, server):
    root = make_repository(tmp_path / "hangs", "echo begun; sleep 600")
    settings = server.settings | {"build_first": True, "build_timeout": 1, "sandbox": "off"}
    tasks = make_list(tmp_path / "tasks.jsonl", task("hangs", root, settings=settings))
    run_fleet(cluster, tasks, "--trials", "2")
    for line in results(tmp_path).values():
        assert (line["status"], line["exit_code"], line["cost_usd"]) == ("build_error", 5, 0), line
        assert "build.sh did not end within" in line["message"]
    assert not server.calls


def test_the_folder_of_the_keys_is_named_and_one_key_is_enough_for_all(tmp_path, monkeypatch):
    lines = [task(name, "x", "openai") for name in "ab"]
    lines += [task("c", "x", "anthropic"), task("d", "x")]
    tasks = make_list(tmp_path / "tasks.jsonl", *lines)
    monkeypatch.setenv("CODE_COMMIT_KEYS", str(tmp_path / "keys"))
    with pytest.raises(NotSetUpError, match=r"CODE_COMMIT_KEYS names .*/keys, which is not a folder"):
        require_keys(read_tasks(tasks))
    (tmp_path / "keys").mkdir()
    with pytest.raises(NotSetUpError, match=r"OPENAI_API_KEY, or write it into .*/keys/openai-key.txt"):
        require_keys(read_tasks(tasks))
    (tmp_path / "keys" / "openai-key.txt").write_text("sk-test-0123456789")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    require_keys(read_tasks(tasks))


def test_an_answer_s_cost_is_known_by_the_model_the_settings_and_the_key_that_is_here(monkeypatch):
    priced = {"model": "chat:fake", "prices": {"fake": {"input": 0.0, "output": 500.0}}}
    runs = [priced, priced | {"max_output_tokens": 1000, "max_repairs": 0}, {"model": "replay:x"}, {}, priced]
    found = ask_of_each(enumerate(runs), price_answers, is_elsewhere=True)
    assert list(found) == [*enumerate([(4.0, 4), (0.5, 1), (0.0, 4), (0.0, 4), (4.0, 4)])]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    (here,), (elsewhere,) = (ask_of_each([("", {})], price_answers, is_elsewhere=each) for each in (False, True))
    here, elsewhere = here[1], elsewhere[1]
    assert here[0] > elsewhere[0] == 0.0, "the model of the key that is found, where none is named"


def test_what_is_left_out_of_the_user_s_way_to_an_address_is_named(tmp_path, monkeypatch):
    def told(tasks, **own):
        return ways_left_out(tasks, own).partition(": put headers")[0]

    lines = [task("a", "x", "openai"), task("b", "x", "openai", settings={"headers": {"X": "y"}})]
    plain, with_headers = read_tasks(make_list(tmp_path / "tasks.jsonl", *lines))
    headers = {"X": "z"}
    assert (
        told([plain], headers=headers, model="openai")
        == "the tasks of a fleet do not use headers from your own settings"
    )
    assert (
        told([plain, with_headers], headers=headers) == "the tasks of a fleet do not use headers from your own settings"
    )
    assert told([with_headers], headers=headers) == ""
    assert told([plain], key_command="cat x") == "the tasks of a fleet do not use key_command from your own settings"
    monkeypatch.setenv("CODE_COMMIT_KEY_COMMAND", "cat x")
    assert told([plain], key_command="cat x") == ""
    assert told([plain], model="openai", max_repairs=1) == ""
