"""API keys: from files and variables, and never quoted."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from code_commit.errors import NotSetUpError
from code_commit.llm.keys import KEY_VARIABLES, ApiKey, Keys, find_secrets, load_keys, require_key
from code_commit.project import Project

KEY = "sk-test-0123456789"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "agent-config").mkdir(mode=0o700)
    return Project(tmp_path)


def write_key(project: Project, data: bytes, mode: int = 0o600) -> None:
    path = project.agent_config / "openai-key.txt"
    path.write_bytes(data)
    path.chmod(mode)


@pytest.mark.parametrize(
    "data", [KEY.encode(), KEY.encode() + b"\n", KEY.encode() + b"\r\n", b"\xef\xbb\xbf" + KEY.encode() + b"\n"]
)
def test_a_key_file_is_one_line(project, data):
    write_key(project, data)
    assert load_keys(project, {"OPENAI_API_KEY": "from-environment"})["openai"].value == KEY


def test_a_key_comes_from_the_environment_where_there_is_no_file(project):
    keys = load_keys(project, {"GEMINI_API_KEY": KEY, "CODE_COMMIT_CHAT_API_KEY": KEY + "2"})
    assert {name: key.source for name, key in keys.items()} == {
        "gemini": "GEMINI_API_KEY",
        "chat": "CODE_COMMIT_CHAT_API_KEY",
    }


UNFIT_KEYS = {
    "two lines": b"sk-test-0123\n456789\n",
    "a blank": b"sk-test 0123456789\n",
    "a leading blank": b" sk-test-0123456789\n",
    "three characters": b"abc\n",
    "a variable's line": b"OPENAI_API_KEY=sk-test-0123456789\n",
    "a shell's line": b"export OPENAI_API_KEY=sk-test-0123456789\n",
    "quotes": b'"sk-test-0123456789"\n',
    "a header's value": b"Bearer sk-test-0123456789\n",
    "empty": b"",
    "not ASCII": "sk-tést-0123456789".encode(),
    "not UTF-8": b"sk-test-\xff\xfe0123456789",
    "NUL": b"sk-test-\0-0123456789",
}


@pytest.mark.parametrize("data", UNFIT_KEYS.values(), ids=UNFIT_KEYS)
def test_an_unfit_key_is_refused_without_being_quoted(project, data):
    write_key(project, data)
    keys = load_keys(project, {"GEMINI_API_KEY": KEY})
    assert set(keys) == {"gemini"}
    with pytest.raises(NotSetUpError, match=r"^agent-config/openai-key\.txt (contains|holds|is empty)") as caught:
        require_key("openai", keys)
    for piece in re.findall(rb"[a-z0-9-]{3,}", data):
        assert piece.decode() not in str(caught.value).removeprefix("agent-config/openai-key.txt")


@pytest.mark.parametrize("data", [b"abcdefgh0123KEY==", b"sk-KEY=0123456789"])
def test_a_key_may_hold_what_base64_does(project, data):
    write_key(project, data)
    assert load_keys(project, {})["openai"].value == data.decode()


@pytest.mark.parametrize(
    "name", ["openai_key.txt", "OPENAI_API_KEY.txt", "openai.key", "openai-key", "openai-key.txt~"]
)
def test_a_misnamed_key_file_is_named_with_its_right_name(project, name):
    (project.agent_config / name).write_text(KEY)
    keys = load_keys(project, {"ANTHROPIC_API_KEY": KEY})
    said = f"agent-config/{name} is not read: rename it to openai-key.txt"
    assert (set(keys), keys.unfit) == ({"anthropic"}, {"openai": said})
    assert "openai" in load_keys(project, {"OPENAI_API_KEY": KEY}), "there is a key all the same"


@pytest.mark.parametrize("name", ["openai-keywords.md", "openai.txt", "key.txt"])
def test_other_files_of_agent_config_are_no_keys(project, name):
    (project.agent_config / name).write_text(KEY)
    (project.agent_config / "openai-key.txt").symlink_to("nowhere")
    assert not load_keys(project, {}).unfit


def test_an_unfit_variable_is_refused_when_its_provider_is_asked(project):
    environment = {"OPENAI_API_KEY": "abc", "GEMINI_API_KEY": KEY}
    keys = load_keys(project, environment)
    assert set(keys) == {"gemini"}
    with pytest.raises(NotSetUpError, match="OPENAI_API_KEY contains only"):
        require_key("openai", keys)
    assert require_key("gemini", keys) == keys["gemini"]


def test_who_needs_a_key_and_has_none_is_told_where_to_put_it(project):
    with pytest.raises(NotSetUpError, match=r"agent-config/anthropic-key\.txt \(mode 600\) or set ANTHROPIC_API_KEY"):
        require_key("anthropic", Keys())
    assert require_key("replay", Keys()) is None
    assert require_key("chat", Keys()) is None


def test_a_key_file_that_others_can_read_is_refused(project):
    write_key(project, KEY.encode(), 0o644)
    assert load_keys(project, {})["openai"].value == KEY  # nobody else can enter the folder
    project.agent_config.chmod(0o755)
    with pytest.raises(NotSetUpError, match=r"can be read by others: chmod 600 agent-config/openai-key\.txt"):
        load_keys(project, {})
    write_key(project, KEY.encode(), 0o600)
    assert load_keys(project, {})["openai"].value == KEY


def test_a_key_shows_in_no_repr(project):
    write_key(project, KEY.encode())
    assert KEY not in repr(load_keys(project, {}))


def test_whatever_may_be_a_key_is_found_to_be_censored(project):
    write_key(project, b"unfit but long enough\nsecond line of it\n", 0o666)
    found = find_secrets(project, {"GEMINI_API_KEY": "also not fit", "OTHER": "x"})
    assert sorted(found) == ["also not fit", "second line of it", "unfit but long enough"]


def test_the_keys_of_a_fleet_are_censored_where_its_pages_are_written(project, tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "openai-key.txt").write_text(f"{KEY}\n")
    assert find_secrets(project, {"CODE_COMMIT_KEYS": str(tmp_path / "keys")}) == [KEY]
    assert find_secrets(project, {"CODE_COMMIT_KEYS": str(tmp_path / "none")}) == []


@pytest.mark.parametrize(
    ("base_url", "key", "is_secret"),
    [
        ("http://localhost:1234/v1", "lm-studio", False),
        ("http://127.0.0.1:11434", "lm-studio", False),
        ("chat:http://127.0.0.1:11434", "lm-studio", False),
        ("http://[::1]/v1", "fifteen-letters", False),
        ("http://localhost:1234/v1", "sixteen--letters", True),
        ("http://localhost:1234/v1", "token-abc123", False),
        ("http://localhost:1234/v1", "k3j9x2mq", True),
        ("http://localhost:1234/v1", "sk-Ab3dE9kXq", True),
        ("https://localhost.example.org/v1", "lm-studio", True),
        ("", "lm-studio", True),
    ],
)
def test_a_dummy_key_for_a_chat_server_on_this_machine_is_no_secret(project, base_url, key, is_secret):
    assert find_secrets(project, {KEY_VARIABLES["chat"]: key}, base_url) == [key] * is_secret
    assert find_secrets(project, {"OPENAI_API_KEY": key}, base_url) == [key]


@pytest.mark.parametrize(
    ("base_url", "key", "refusal"),
    [
        ("http://localhost:8000/v1", "EMPTY", ""),
        ("chat:http://127.0.0.1:8000/v1", "sk-1234", ""),
        ("http://[::1]:8000/v1", "x", ""),
        ("https://llm.example.org/v1", "EMPTY", "contains only 5 characters, too few for an API key"),
        ("http://localhost.example.org/v1", "x", "contains only 1 character, too few for an API key"),
        ("http://localhost:8000/v1", "a b", "contains a space"),
    ],
)
def test_a_chat_server_on_this_machine_takes_a_placeholder_of_any_length(project, base_url, key, refusal):
    keys = load_keys(project, {KEY_VARIABLES["chat"]: key, "OPENAI_API_KEY": "EMPTY"})
    with pytest.raises(NotSetUpError, match=f"^CODE_COMMIT_CHAT_API_KEY {refusal}") if refusal else nullcontext():
        assert require_key("chat", keys, base_url) == ApiKey("chat", key, KEY_VARIABLES["chat"])
    with pytest.raises(NotSetUpError, match="OPENAI_API_KEY contains only 5 characters"):
        require_key("openai", keys, base_url)


def test_check_calls_a_placeholder_what_it_is_on_a_line_that_is_ok(project_folder, run_code_commit):
    options = ("--model", "chat:m", "--base-url", "http://127.0.0.1:1/v1")
    checked = run_code_commit(project_folder, "check", *options, env={KEY_VARIABLES["chat"]: "EMPTY"}).stdout
    assert f"{KEY_VARIABLES['chat']} has a placeholder, for a server on this machine" in " ".join(checked.split())
    assert "too few" not in checked
