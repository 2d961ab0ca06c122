"""The list of tasks: every mistake is told with its line, before anything starts."""

import json
import re
from pathlib import Path

import pytest
from fleet_tools import make_list, make_repository, task

from code_commit.errors import NotSetUpError
from code_commit.fleet.repositories import find_unfit, list_repositories
from code_commit.fleet.tasks import FleetTask, make_matrix, read_tasks
from code_commit.status import Status

MISTAKES = [
    ({"id": "../a"}, "id: must be up to 100 letters"),
    ({"id": ".a"}, "id: must be up to 100 letters"),
    ({"id": "A"}, "id: A is the id of more than one task"),
    ({"id": "Results.jsonl"}, "id: Results.jsonl is the name of one of the fleet's own files: choose another"),
    ({"repository": "nowhere"}, "repository: nowhere is not a git repository"),
    ({"repository": "--upload-pack=x"}, "repository: must not be empty, begin with '-'"),
    ({"repository": "fd::17"}, "repository: names a program or an open file of a worker"),
    ({"repository": "ext::sh -c id"}, "repository: names a program or an open file of a worker"),
    ({"repository": "https://me:secret@example.org/x"}, "repository: contains a password"),
    ({"repository": f"HTTPS://ghp_secret{'a' * 30}@example.org/x"}, "repository: contains a password"),
    ({"commit": "nosuch"}, "has no nosuch"),
    ({"commit": "--all"}, "commit: must not be empty, begin with '-'"),
    ({"query": " \n"}, "query: must not be empty"),
    ({"settings": {"modle": "x"}}, "settings: there is no setting 'modle'; did you mean 'model'?"),
    ({"settings": {"model": "gpr"}}, "settings: unknown model 'gpr'"),
    ({"settings": {"key_command": "cat x"}}, "only your own config.toml may set key_command"),
    ({"settings": {"headers": {"X": {"env": "Y"}}}}, "only your own config.toml may set [headers] X"),
    ({"settings": {"fallback_model": "gpr"}}, "settings: unknown model 'gpr'"),
    ({"settings": {"approve": True}}, "settings: approve needs a terminal"),
    ({"settings": {"dry_run": True}}, "settings: dry_run changes nothing"),
    ({"rollup": ["src"], "settings": {"rollup": "select"}}, "settings: rollup = fresh takes all files"),
    ({"settings": {"max_cost": -1}}, "settings: max_cost must be more than 0"),
    (
        {"settings": {"max_cost": "2", "strict": 1}},
        "settings: max_cost must be a number of US dollars: leave the quotes out; strict must be true or false",
    ),
    ({"timeout": 0}, "timeout: must be more than 0"),
    ({"rolup": ["src"]}, "rolup: not a field of a task; did you mean 'rollup'?"),
    ({"overlay": {"../x": ""}}, "overlay: ../x is not the path of a file in the project"),
    ({"overlay": {"a/.git/config": ""}}, "overlay: a/.git/config is not the path of a file in the project"),
    ({"overlay": {"/x": ""}}, "overlay: /x is not the path of a file in the project"),
    ({"id": None}, "id: must be a string"),
    ({"rollup": "src"}, "rollup: must be a list"),
    ({"overlay": "x"}, "overlay: must be an object"),
    (
        {"settings": {"strct": True, "model": "gpr", "approve": True}},
        "there is no setting 'strct'; did you mean 'strict'?; unknown model 'gpr': put its provider in front of it (one of",
    ),
    (
        {"settings": {"model": "gpr", "approve": True}},
        "anthropic:, chat:, command:, replay:); approve needs a terminal, and a task has none",
    ),
]


def test_every_mistake_is_told_with_its_line(tmp_path):
    good = task("a", make_repository(tmp_path / "repository"))
    lines = [good, *({**good, "id": f"t{number}", **more} for number, (more, _) in enumerate(MISTAKES))]
    path = make_list(tmp_path / "tasks.jsonl", *lines)
    path.write_text(path.read_text() + "# no JSON\n{no JSON\n")
    with pytest.raises(NotSetUpError) as caught:
        read_tasks(path, find_unfit)
    told = str(caught.value).split("\n")

    assert told[0] == f"{len(MISTAKES) + 2} mistakes in the list of tasks:"
    for number, (_, words) in enumerate(MISTAKES, start=2):
        (line,) = (line for line in told if line.startswith(f"{path}:{number}: "))
        assert words in line
    path.write_text(path.read_text() + json.dumps({**good, "commit": 1}) + "\n")
    with pytest.raises(NotSetUpError, match=rf"{path}:{len(MISTAKES) + 4}: id: a is the id of more than one task"):
        read_tasks(path)
    assert f"{path}:1: id: a is the id of more than one task (letter case does not count)" in told
    assert f"{path}:{len(MISTAKES) + 3}: not JSON" in told[-1]
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe"])
def test_a_list_without_tasks_is_refused(tmp_path, content):
    path = tmp_path / "tasks.jsonl"
    with pytest.raises(NotSetUpError, match="is missing"):
        read_tasks(path)
    path.write_bytes(content)
    with pytest.raises(NotSetUpError, match=r"is empty|is not UTF-8"):
        read_tasks(path)


def test_a_whole_number_of_dollars_is_a_number():
    tasks = [FleetTask(**task("a", "https://example.org/x", settings={"max_cost": cost})) for cost in (2, 2.0)]
    assert tasks[0].digest == tasks[1].digest


def test_a_task_is_another_when_its_line_changed():
    line = task("a", "https://example.org/x", query="Do it.")
    digests = {FleetTask(**line).digest, FleetTask(**json.loads(json.dumps(line))).digest}
    assert len(digests) == 1
    changes = ({"query": "Do that."}, {"commit": "main"}, {"settings": {"max_repairs": 1}}, {"rollup": ["src"]})
    assert len({FleetTask(**{**line, **change}).digest for change in changes} | digests) == 5


def test_build_hidden_files_and_limits_are_nothing_that_the_llm_is_asked():
    line = task("a", "https://example.org/x", settings={"max_repairs": 1})
    same = [{"build": "make\n"}, {"setup": True}, {"overlay": {"build.sh": "make\n"}}, {"verify": {"x": ""}}]
    same += [{"settings": line["settings"] | more} for more in ({"sandbox": "off"}, {"max_cost": 1})]
    others = [{"query": "Do that."}, {"commit": "main"}, {"overlay": {"a.txt": ""}}, {"settings": {"max_repairs": 2}}]
    assert {FleetTask(**line | each).identity for each in same} == {FleetTask(**line).identity}
    assert len({FleetTask(**line | each).identity for each in [{}, *others]}) == 1 + len(others)


def test_the_order_of_settings_and_files_makes_no_other_task():
    settings, files = {"max_repairs": 1, "answer_format": "edits"}, {"b.txt": "b\n", "a.txt": None}
    values = [{"settings": settings, "overlay": files, "verify": files}]
    values.append({name: dict(reversed(pairs.items())) for name, pairs in values[0].items()})
    assert len({FleetTask(**task("a", "https://example.org/x") | each).digest for each in values}) == 1


def test_a_first_line_holds_for_all_and_paths_count_from_the_list(tmp_path, monkeypatch):
    make_repository(tmp_path / "one")
    (tmp_path / "lists").mkdir()
    defaults = {"query": "Do it.", "settings": {"max_repairs": 1, "strict": True}, "build": "true\n"}
    own = {"settings": {"max_repairs": 0}, "build": ""}
    lines = [{"defaults": defaults}, {"id": "1", "repository": "../one"}, {"id": "b", "repository": "../one", **own}]
    path = make_list(tmp_path / "lists" / "tasks.jsonl", *lines)
    a, b = read_tasks(path)
    monkeypatch.chdir(tmp_path / "lists")
    assert [task.digest for task in read_tasks(Path("tasks.jsonl"))] == [a.digest, b.digest], "from anywhere"
    assert (a.query, a.commit, a.path) == ("Do it.", "HEAD", tmp_path / "one")
    assert (a.settings, b.settings) == (defaults["settings"], {"max_repairs": 0, "strict": True})
    assert (a.build, b.build) == ("true\n", "")


def test_a_mistake_in_the_defaults_is_told_once(tmp_path):
    with pytest.raises(NotSetUpError, match="has a line of defaults, but no tasks"):
        read_tasks(make_list(tmp_path / "none.jsonl", {"defaults": {}}))
    lines = [{"defaults": {"qery": "Do it."}}, *({"id": f"t{n}", "repository": "."} for n in range(9))]
    with pytest.raises(NotSetUpError) as caught:
        read_tasks(make_list(tmp_path / "tasks.jsonl", *lines))
    assert str(caught.value).split("\n")[1:] == [
        f"{tmp_path}/tasks.jsonl:1: qery: not a field of a task; did you mean 'query'?"
    ]


@pytest.mark.parametrize(
    "content",
    ["id,repository\na,../api\n", '[[tasks]]\nid = "a"\n', '[\n  {\n    "id": "a",\n    "rollup": []\n  }\n]\n'],
    ids=["CSV", "TOML", "pretty JSON"],
)
def test_a_list_of_another_kind_is_told_in_one_line(tmp_path, content):
    (tmp_path / "tasks").write_text(content)
    with pytest.raises(NotSetUpError, match=r"^\S+/tasks is not JSON Lines; write a task per line: {.*}$"):
        read_tasks(tmp_path / "tasks")


def test_each_task_is_done_in_each_way_so_many_times(tmp_path):
    lines = [{**task(name, "https://example.org/x"), "settings": {"max_repairs": 1}} for name in "ab"]
    tasks = read_tasks(make_list(tmp_path / "tasks.jsonl", *lines))
    long = f"replay:{'x' * 60}"
    made = make_matrix(tasks, ["model=openai", f"model={long}", "strict=true", "max_repairs=0", "max_repairs=3"], 2)
    assert len({task.id for task in made}) == len(made) == 2 * 2 * 2 * 2
    one, again, two, *_ = made
    assert (one.id, again.id) == ("a.openai-strict-true-max_repairs-0", "a.openai-strict-true-max_repairs-0.2")
    assert (one.task, one.label, again.label) == ("a", "openai,max_repairs=0", one.label)
    assert one.settings == {"max_repairs": 0, "model": "openai", "strict": True}
    assert two.settings["max_repairs"] == 3
    assert {task.label.split(",")[0] for task in made} == {"openai", long}
    assert [task.id for task in make_matrix(tasks, [], 2)] == ["a", "a.2", "b", "b.2"]
    for setting, told in {
        "modle=x": "there is no setting 'modle'; did you mean 'model'?",
        "strict=x": "strict must be",
        "strict": "--setting strict: write NAME=VALUE",
    }.items():
        with pytest.raises(NotSetUpError, match=re.escape(told)):
            make_matrix(tasks, [setting], 1)
    with pytest.raises(NotSetUpError, match=r"id: a\.replay-x-y is the id of more than one task"):
        make_matrix(tasks, ["model=replay:x/y", "model=replay:x:y"], 1)
    with pytest.raises(NotSetUpError, match="unknown model 'gpr'"):
        make_matrix(tasks, ["model=gpr"], 1)


def test_one_way_is_in_no_name_and_prices_are_a_setting(tmp_path):
    tasks = read_tasks(make_list(tmp_path / "tasks.jsonl", task("web", "https://example.org/x")))
    prices = 'prices={"fake" = {input = 1, output = 2.5}}'
    settings = ["model=chat:fake", "base_url=http://127.0.0.1:1/v1", prices]
    (made,) = make_matrix(tasks, settings, 1)
    assert (made.id, made.task, made.label) == ("web", "", "")
    assert made.settings["prices"] == {"fake": {"input": 1, "output": 2.5}}
    assert [task.id for task in make_matrix(tasks, settings, 2)] == ["web", "web.2"]
    for text in ("{", "3", ""):
        with pytest.raises(NotSetUpError, match="--setting: prices must be a table"):
            make_matrix(tasks, [f"prices={text}"], 1)


def test_a_list_of_repositories_names_its_tasks_after_them(tmp_path):
    (tmp_path / "api").mkdir()
    lines = [
        "https://example.org/team/sub/web.git",
        "git@example.org:team/web",
        " # a comment",
        "../api",
        "team/api.git/",
        " ./api ",
        ".././api/",
    ]
    found = [
        json.loads(line) if line else {} for line in list_repositories(lines, tmp_path / "api", {"query": "Do it."})
    ]
    names = ["team-sub-web", "team-web", None, "api", "api-2", "api-3", None]
    assert [line.get("id") for line in found] == names
    assert found[3] == {"id": "api", "repository": "../api", "query": "Do it."}


def test_a_repository_in_two_spellings_is_one(tmp_path):
    for name in ("api", "web"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("api")
    same = [
        [
            "https://git.example.org/team/web.git",
            "https://me@GIT.example.org:443/team/web/",
            "git@git.example.org:team/web",
        ],
        ["ssh://git@example.org:22/team/web.git/", "git@example.org:team/web.git", "example.org:/team/web"],
        ["http://127.0.0.1:8080/web", "http://127.0.0.1:8080/web.git"],
        ["http://127.0.0.1:8081/web"],
        ["https://example.org/Team/web"],
        ["api", "./api/", str(tmp_path / "api"), "link", "web/../api/.git", f"file://{tmp_path}/api"],
        ["web"],
    ]
    lines = list_repositories([each for spellings in same for each in spellings], tmp_path, {})
    assert [json.loads(line)["repository"] for line in lines if line] == [spellings[0] for spellings in same]


def test_a_base_url_stays_with_the_provider_of_its_own_line_or_list(tmp_path):
    url = "http://127.0.0.1:1/v1"
    lines = [
        {"defaults": {"settings": {"model": "openai:gpt-5", "base_url": url}}},
        task("a", make_repository(tmp_path / "repository"), settings={"model": "anthropic"}),
    ]
    (mixed,) = read_tasks(make_list(tmp_path / "tasks.jsonl", *lines))
    assert mixed.settings["base_url"] == f"openai:{url}"
    lines[1]["settings"] = {}
    (made,) = make_matrix(read_tasks(make_list(tmp_path / "tasks.jsonl", *lines)), ["model=anthropic"], 1)
    assert (made.settings["model"], made.settings["base_url"]) == ("anthropic", f"openai:{url}")


@pytest.mark.parametrize(("model", "told"), [("openai:x", "openai:x"), ("replay:a/b", "replay:a/b"), ("", "")])
def test_what_no_run_began_for_stands_under_the_model_that_was_asked_for(model, told):
    settings = {"model": model} if model else {}
    one = FleetTask(id="a", repository="x", query="q", settings=settings)
    assert one.ended(Status.NOT_SET_UP, "no clone").model == told
    assert one.ended(Status.SUCCESS, model="chat:fallback").model == "chat:fallback"
