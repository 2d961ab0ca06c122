"""What is known of the LLMs of tasks before one starts: their keys, their prices."""

import pytest
from fleet_tools import make_list, task

from code_commit.api import price_answers
from code_commit.errors import NotSetUpError
from code_commit.fleet.llms import ask_of_each, require_keys, ways_left_out
from code_commit.fleet.tasks import read_tasks


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
    found = ask_of_each(runs, price_answers, is_elsewhere=True)
    assert list(found) == [(4.0, 4), (0.5, 1), (0.0, 4), (0.0, 4), (4.0, 4)]
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-0123456789")
    (here,), (elsewhere,) = (ask_of_each([{}], price_answers, is_elsewhere=each) for each in (False, True))
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
