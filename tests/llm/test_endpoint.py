"""Base URLs as the vendors' SDKs take them, checked before a key is sent there."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from command import Run
from fake_server import FakeServer

from code_commit.errors import NotSetUpError
from code_commit.llm.models import check_base_url, choose_model
from code_commit.llm.vendor import ModelChoice
from code_commit.settings import COMMAND_LINE, ENVIRONMENT, FILE, Settings

LOCAL = "http://127.0.0.1:4000"
GOOD = [
    ("openai", "", "https://api.openai.com/v1"),
    ("openai", "https://api.openai.com/v1", "https://api.openai.com/v1"),
    ("openai", "https://api.openai.com/v1/", "https://api.openai.com/v1"),
    ("openai", "https://api.openai.com/v1///", "https://api.openai.com/v1"),
    ("openai", "https://eu.api.openai.com", "https://eu.api.openai.com/v1"),
    ("openai", "HTTPS://API.OpenAI.com/V2", "https://api.openai.com/V2"),
    ("openai", LOCAL + "/llm/openai", LOCAL + "/llm/openai"),
    ("anthropic", "", "https://api.anthropic.com/v1"),
    ("anthropic", "https://api.anthropic.com", "https://api.anthropic.com/v1"),
    ("anthropic", "https://api.anthropic.com/", "https://api.anthropic.com/v1"),
    ("anthropic", "https://api.anthropic.com/v1", "https://api.anthropic.com/v1"),
    ("anthropic", LOCAL + "/anthropic/", LOCAL + "/anthropic/v1"),
    ("gemini", "", "https://generativelanguage.googleapis.com/v1beta"),
    ("gemini", "https://generativelanguage.googleapis.com", "https://generativelanguage.googleapis.com/v1beta"),
    ("gemini", "https://generativelanguage.googleapis.com/v1beta/", "https://generativelanguage.googleapis.com/v1beta"),
    (
        "gemini",
        "https://generativelanguage.googleapis.com/v1alpha",
        "https://generativelanguage.googleapis.com/v1alpha",
    ),
    ("gemini", LOCAL + "/gemini", LOCAL + "/gemini/v1beta"),
    ("chat", "http://localhost:11434/v1", "http://localhost:11434/v1"),
    ("chat", "http://LOCALHOST:11434/v1/", "http://localhost:11434/v1"),
    ("chat", "http://127.9.9.9/v1", "http://127.9.9.9/v1"),
    ("chat", "http://[::1]:8080/v1", "http://[::1]:8080/v1"),
    ("chat", "https://api.deepseek.com", "https://api.deepseek.com"),
    ("chat", "https://h/a%20b/~x/v1", "https://h/a%20b/~x/v1"),
    ("replay", "", ""),
    ("replay", "ftp://ignored", ""),
]
BAD = [
    ("chat", "", "needs --base-url"),
    ("openai", "api.openai.com/v1", "must begin with https:"),
    ("openai", "ftp://api.openai.com", "must be an address"),
    ("openai", "file:///etc/passwd", "must be an address"),
    ("openai", "//host/v1", "must begin with https:"),
    ("openai", "https:///v1", "must be an address"),
    ("openai", "https://:443/v1", "must be an address"),
    ("openai", "https://h:0/v1", "must be an address"),
    ("openai", "https://h:99999/v1", "must be an address"),
    ("openai", "https://h:x/v1", "must be an address"),
    ("openai", "https://[::1/v1", "must be an address"),
    ("openai", "https://user:hunter22@h/v1", "must be an address"),
    ("openai", "https://hunter22@h/v1", "must be an address"),
    ("openai", "https://@h/v1", "must be an address"),
    ("openai", "https://h/v1?key=hunter22", "has key= in its query"),
    ("openai", "https://h/v1?a=1&api_Token=hunter22", "has api_Token= in its query"),
    ("openai", "https://h/v1?sig=hunter22", "has sig= in its query"),
    ("openai", "https://h/v1?api-version=1#hunter22", "must be an address"),
    ("openai", "https://h/v1?", "must be an address"),
    ("openai", "https://h/v1#hunter22", "must be an address"),
    ("openai", "https://h/v 1", "must be an address"),
    ("openai", "https://h\\@evil/v1", "must be an address"),
    ("openai", "https://h/v1\r\nX-Header: 1", "must be an address"),
    ("openai", "https://h/\x07/v1", "must be an address"),
    ("openai", "https://hôst/v1", "must be an address"),
    ("openai", "http://127.0.0.999/v1", "must be an address"),
    ("openai", "https://10.0.0.256/v1", "must be an address"),
    ("openai", "https://[:::]/v1", "must be an address"),
    ("openai", "https://xn--zzzzz-/v1", "must be an address"),
    ("openai", "https://a..b/v1", "must be an address"),
    ("openai", "https://xn--/v1", "must be an address"),
    ("openai", "http://example.com/v1", "unencrypted"),
    ("openai", "http://10.0.0.5/v1", "unencrypted"),
    ("openai", "http://0.0.0.0/v1", "unencrypted"),
    ("openai", "http://localhost.evil.example/v1", "unencrypted"),
    ("openai", "http://127.0.0.1.evil.example/v1", "unencrypted"),
    ("openai", "http://[::ffff:10.0.0.1]/v1", "unencrypted"),
    ("openai", "http://2130706433/v1", "unencrypted"),
    ("openai", "http://127.0.0.1@evil.example/v1", "must be an address"),
    ("openai", "https://h:99999/v1", "A port is 65535 at most"),
    ("openai", "https://h:abc/v1", "A port is 65535 at most"),
]


@pytest.mark.parametrize(("provider", "url", "normalised"), GOOD)
def test_good_base_urls(provider, url, normalised):
    assert check_base_url(ModelChoice(provider, "m"), Settings(base_url=url)) == normalised
    if normalised:
        assert check_base_url(ModelChoice(provider, "m"), Settings(base_url=normalised)) == normalised


@pytest.mark.parametrize(("provider", "url", "complaint"), BAD)
def test_bad_base_urls(provider, url, complaint):
    complaint = complaint.replace("unencrypted", "unencrypted: use https. If you trust the network")
    with pytest.raises(NotSetUpError, match=complaint) as caught:
        check_base_url(ModelChoice(provider, "m"), Settings(base_url=url))
    assert "hunter22" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "model", "is_taken"),
    [(COMMAND_LINE, "chat:m", True), (ENVIRONMENT, "chat:m", False), (COMMAND_LINE, "openai:m", False)],
)
def test_an_option_alone_is_for_a_chat_model_of_another_place(source, model, is_taken):
    settings = Settings(model=model, base_url=LOCAL, sources={FILE: {"model": model}, source: {"base_url": LOCAL}})
    with nullcontext() if is_taken else pytest.raises(NotSetUpError, match="names no provider"):
        assert check_base_url(choose_model(model), settings) == LOCAL


def test_a_bad_address_is_told_with_the_place_that_names_it():
    sources = {FILE: {"base_url": "http://10.0.0.5/v1", "model": "chat:m"}}
    with pytest.raises(NotSetUpError, match=r"^config\.toml's base_url would send your prompts, and any key, to 10"):
        check_base_url(ModelChoice("chat", "m"), Settings(base_url="http://10.0.0.5/v1", sources=sources))


def test_http_elsewhere_only_when_it_is_allowed():
    settings = Settings(base_url="http://10.0.0.5:8000/v1", allow_http=True)
    assert check_base_url(ModelChoice("chat", "m"), settings) == "http://10.0.0.5:8000/v1"


KEYS = {"GEMINI_API_KEY": "test-key-of-gemini-01", "ANTHROPIC_API_KEY": "test-key-of-anthropic-02"}
RIGHT = "^^^ok.txt\nok\n^^^end\n"


@pytest.fixture
def gateway(project_folder: Path) -> Iterator[FakeServer]:
    """Give a server, to which the project's key of openai belongs and no other."""
    key = project_folder / "agent-config" / "openai-key.txt"
    key.write_text("test-key-of-openai-00")
    key.chmod(0o600)
    with FakeServer(answers=[RIGHT]) as server:
        yield server


OPENAI, ANTHROPIC = "openai:gpt-6.2-sol", "anthropic:claude-opus-5-5"
OTHERS = {
    "an option names another": (f'model = "{OPENAI}"\nbase_url = "URL"', ["--model", ANTHROPIC], {}, ["openai", ANTHROPIC]),
    "a variable does": (f'model = "{OPENAI}"\nbase_url = "URL"', [], {"CODE_COMMIT_MODEL": ANTHROPIC}, ["openai", ANTHROPIC]),
    "a bare provider": ('model = "openai"\nbase_url = "URL"', ["--model", "anthropic"], {}, ["openai", ANTHROPIC]),
    "a bare model": ('model = "gpt-6.2-sol"\nbase_url = "URL"', ["--model", "claude-opus-5-5"], {}, ["openai", ANTHROPIC]),
    "a key that appears": ('base_url = "URL"', [], {}, ["base_url", "gemini:"]),
    "a key that appears beside a provider": ('base_url = "openai:URL"', [], {}, ["openai", "gemini:"]),
    "a variable of another model": ('model = "anthropic"', [], {"CODE_COMMIT_BASE_URL": "URL"}, ["CODE_COMMIT_BASE_URL", ANTHROPIC]),
    "an option of another model": ('model = "anthropic"', ["--base-url", "URL"], {}, ["--base-url", ANTHROPIC]),
    "a fallback": (
        f'model = "replay:none"\nfallback_model = "{OPENAI}"\nfallback_base_url = "URL"',
        ["--fallback-model", ANTHROPIC], {}, ["fallback_base_url is for openai", ANTHROPIC],
    ),
    "a fallback that is named elsewhere": (
        'model = "replay:none"\nfallback_base_url = "URL"', ["--fallback-model", ANTHROPIC], {}, ["fallback_base_url", ANTHROPIC],
    ),
    "a fallback of the wrong prefix": (
        f'model = "replay:none"\nfallback_model = "{ANTHROPIC}"\nfallback_base_url = "openai:URL"', [], {}, ["openai", ANTHROPIC],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("config", "options", "variables", "named"), OTHERS.values(), ids=OTHERS)
def test_no_key_goes_to_the_address_of_another_provider(
    config, options, variables, named, gateway: FakeServer, project_folder: Path, run_code_commit: Run
):
    (project_folder / "none").mkdir()
    (project_folder / "agent-config" / "config.toml").write_text(config.replace("URL", gateway.url))
    options = [option.replace("URL", gateway.url) for option in options]
    variables = {name: value.replace("URL", gateway.url) for name, value in variables.items()}
    for command in ("run", "check"):
        done = run_code_commit(project_folder, command, *options, env=KEYS | variables)
        said = " ".join((done.stderr + done.stdout).split())
        assert (done.returncode, gateway.requests) == (2, []), said
        assert [name for name in named if name not in said] == []
    assert re.search("base-url https?://", said), "what to write"


OWN = {
    "of the same source": ('model = "openai"\nbase_url = "URL"', [], {}),
    "of the same provider": ('model = "openai:gpt-6.2-astra"\nbase_url = "URL"', ["--model", OPENAI], {}),
    "with its provider before it": ('base_url = "openai:URL"', ["--model", "openai"], {}),
    "of a variable, so too": ('model = "openai"', [], {"CODE_COMMIT_BASE_URL": "openai:URL"}),
    "of both options": (f'model = "{ANTHROPIC}"\nbase_url = "https://127.0.0.1:1"', ["--model", "openai", "--base-url", "URL"], {}),
}  # fmt: skip


@pytest.mark.parametrize(("config", "options", "variables"), OWN.values(), ids=OWN)
def test_its_own_key_does(config, options, variables, gateway: FakeServer, project_folder: Path, run_code_commit: Run):
    (project_folder / "agent-config" / "config.toml").write_text(config.replace("URL", gateway.url))
    options = [option.replace("URL", gateway.url) for option in options]
    variables = {name: value.replace("URL", gateway.url) for name, value in variables.items()}
    done = run_code_commit(project_folder, *options, "--sandbox", "off", env=KEYS | variables)
    assert done.returncode == 0, done.stderr
    assert all(request.headers["authorization"] == "Bearer test-key-of-openai-00" for request in gateway.requests)
