"""The tasks for a small model tell right from wrong, and the benchmark tells what became of them."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_apis import Answer
from fake_server import FakeServer

from bench.measuring import UnavailableError, plain_environment
from bench.projects import write_file
from bench.proxy import read_call, without_accidents
from bench.small_model import GREEN, PROGRAMS, RED, SAME, TASKS, Task, select_tasks

ROOT = Path(__file__).parents[1]
NAMES = sorted(folder.name for folder in TASKS.iterdir())
WRONG = "^^^slugs.py\ndef slug(title):\n    return title\n^^^end\n"
NOTHING = "I cannot see what to do.\n"
RIGHT = (TASKS / "python-change-slug/answer.txt").read_text()
LIKE_AIDER = """
import json, os, pathlib, subprocess, sys, urllib.error, urllib.request
assert "--read" in sys.argv and sys.argv[-1] == "slugs.py", sys.argv
for _ in range(4):
    body = json.dumps({"model": "m", "stream": False, "messages": [{"role": "user", "content": "go"}]}).encode()
    url = os.environ["OPENAI_API_BASE"] + "/chat/completions"
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    try:
        reply = urllib.request.urlopen(request, timeout=20).read().decode()
    except urllib.error.HTTPError:
        sys.exit(0)
    text = json.loads(reply)["choices"][0]["message"]["content"]
    pathlib.Path("slugs.py").write_text(text.split("^^^")[1].partition("\\n")[2])
    if subprocess.run(["./build.sh"]).returncode == 0:
        break
"""


def small_model(server, *options, timeout=120):
    command = [sys.executable, "-m", "bench", "small_model", "--server", server.url, "--environment", sys.prefix]
    command += ["--tasks", "python-change-slug", *map(str, options)]
    return subprocess.run(
        command, cwd=ROOT, env=plain_environment(), capture_output=True, text=True, check=False, timeout=timeout
    )


def rows(done):
    """Return the cells of both tables by the first of their line."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if line]
    return {cells[0]: cells[1:] for cells in lines}


def apply(run_code_commit, root, answer):
    return run_code_commit(root, "apply", str(answer), "--build", "--sandbox", "off")


def test_there_are_tasks_of_each_language_and_shape():
    languages, shapes = zip(*(name.split("-")[:2] for name in NAMES), strict=True)
    assert len(NAMES) >= 24
    assert set(languages) == {"c", "javascript", "json", "markdown", "python", "shell", "toml"}
    assert set(shapes) == {"change", "create", "delete", "rename", "repair"}
    assert all(Path(TASKS, name, "first.txt").exists() == ("-repair-" in name) for name in NAMES)


def one_of_each() -> Iterator[Any]:
    """Give the names to `parametrize`: the first of each language and of each shape runs by default."""
    seen: set[str] = set()
    for name in NAMES:
        words = set(name.split("-")[:2])
        yield pytest.param(name, marks=[] if words - seen else pytest.mark.sweep)
        seen |= words


@pytest.mark.sweep
@pytest.mark.parametrize("name", list(one_of_each()))
def test_a_task_is_red_before_and_green_after_its_answer(name, tmp_path, run_code_commit):
    if not shutil.which(PROGRAMS.get(name.partition("-")[0], "sh")):
        pytest.skip("the language is not installed")
    task = Task(TASKS / name)
    root = task.lay_out(tmp_path)
    assert task.judge(root) == SAME
    write_file(root / "unrelated.txt", "a change\n")
    assert task.judge(root) == RED
    (root / "unrelated.txt").unlink()
    if "-repair-" in name:
        assert apply(run_code_commit, root, task.folder / "first.txt").returncode == 1
        assert task.judge(root) == RED
    done = apply(run_code_commit, root, task.folder / "answer.txt")
    assert done.returncode == 0, done.stderr
    assert task.judge(root) == GREEN


def test_a_tree_is_judged_by_the_tests_that_it_was_given(tmp_path):
    task = Task(TASKS / "python-change-pages")
    root = task.lay_out(tmp_path)
    write_file(root / "build.sh", "#!/bin/sh\n")
    write_file(root / "tests/test_pages.py", "")
    assert task.judge(root) == RED


@pytest.mark.sweep
def test_a_first_answer_that_is_green_and_what_the_server_is_asked(tmp_path):
    with FakeServer([RIGHT, RIGHT]) as server:
        done = small_model(server, "--seeds", "2", "--json", tmp_path / "results")
        again = small_model(server, "--seeds", "2", "--json", tmp_path / "results")
    assert (done.returncode, again.returncode) == (0, 0), done.stderr
    assert again.stdout == done.stdout
    asked = [request.body for request in server.requests if request.method == "POST"]
    assert [(body["temperature"], body["seed"], body["max_tokens"]) for body in asked] == [(0.2, 1, 900), (0.2, 2, 900)]
    assert "underscore" in str(asked[0])
    table = rows(done)
    assert table["first answers that could be applied"] == ["2 of 2"]
    assert table["green without repairs"] == table["green"] == table["calls"] == ["2"]
    assert table["python-change-slug"] == ["green; green"]


@pytest.mark.sweep
def test_repairs_that_helped_and_the_rules_of_what_was_rejected(tmp_path):
    answers = [Answer(text, input_tokens=3_000) for text in (NOTHING, WRONG, RIGHT)]
    with FakeServer(answers) as server:
        done = small_model(server, "--json", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    assert server.requests[-1].body["temperature"] == 0
    table = rows(done)
    assert table["first answers that could be applied"] == ["0 of 1"]
    assert table["green without repairs"] == ["0"]
    assert table["green"] == ["1"]
    assert table["turned green by repairs"] == ["1 of 1"]
    (result,) = map(json.loads, (tmp_path / "results").read_text().splitlines())
    assert result["states"] == ["same", "red", "green"]
    assert result["logged"] == [["rejected", "no-block"], ["applied"], ["applied"]]
    assert [call["text"] for call in result["calls"]] == [NOTHING, WRONG, RIGHT]


@pytest.mark.sweep
def test_no_repairs_are_asked_for_where_none_are_wanted():
    with FakeServer([WRONG, RIGHT]) as server:
        done = small_model(server, "--repairs", "0")
    assert done.returncode == 0, done.stderr
    assert rows(done)["python-change-slug"] == ["red"]


@pytest.mark.sweep
@pytest.mark.parametrize(("repairs", "states"), [(3, "red green"), (0, "red")])
def test_another_agent_has_the_same_server_and_as_many_calls(tmp_path, repairs, states):
    agent = write_file(tmp_path / "aider", f"#!{sys.executable}\n{LIKE_AIDER}")
    agent.chmod(0o755)
    ours = [WRONG, RIGHT][: 1 if repairs == 0 else 2]
    with FakeServer([*ours, *ours]) as server:
        done = small_model(server, "--repairs", repairs, "--aider", agent)
    assert done.returncode == 0, done.stderr
    assert rows(done)["python-change-slug"] == [states, states]


@pytest.mark.sweep
def test_a_server_that_fails_is_an_error_and_asked_again_the_next_time(tmp_path):
    with FakeServer([]) as server:
        done = small_model(server, "--json", tmp_path / "results")
        assert done.returncode == 1
        assert re.search(r"HTTP 400: .*no answer left", done.stderr)
        assert rows(done)["errors"] == ["1"]
        server.answers = [Answer(RIGHT)]
        assert small_model(server, "--json", tmp_path / "results").returncode == 0


@pytest.mark.sweep
def test_two_revisions_have_a_column_each_and_the_same_wheel_is_asked_once():
    with FakeServer([RIGHT]) as server:
        done = small_model(server, "--against", sys.prefix)
    assert done.returncode == 0, done.stderr
    assert rows(done)["python-change-slug"] == ["green", "green"]
    assert rows(done)[""] == ["this tree", sys.prefix]


def test_tasks_whose_language_is_not_installed_are_no_failures_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"node cannot be found; install that, or choose other --tasks"):
        select_tasks("javascript-*")


@pytest.mark.sweep
def test_nothing_is_measured_without_a_server_or_a_task():
    with FakeServer([]) as server:
        assert "no task matches none" in small_model(server, "--tasks", "none").stderr
    done = small_model(server)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing was measured" in done.stderr


def test_a_call_tells_what_the_cache_gave():
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}}
    chunks = [{"choices": [{"delta": {"content": "a"}}]}, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, {"choices": [], "usage": usage}])
    call = read_call(f"{text}data: [DONE]\n\n".encode(), 1.0)
    assert (call.input, call.cached, call.output, call.finish, call.text) == (9, 7, 2, "stop", "a")


def test_a_prompt_is_the_same_in_each_run():
    printed = "File '{}/{}/a.py', version 1.25\nRan 3 tests in 0.00{} s\n[build.sh: exit code 1 after {}.4 s]"
    one, other = (printed.format(tempfile.gettempdir(), *them) for them in (("tmp1", 1, 1), ("tmp.2_x", 9, 21)))
    (message,) = without_accidents([{"role": "user", "content": one}])
    assert without_accidents([{"role": "user", "content": other}]) == [message]
    assert message["role"] == "user"
    assert "version 1.25" in message["content"]
    assert "/a.py'" in message["content"]
