"""docs/models.md: each block of config.toml reaches a server with the vendor's paths, as the vendor's package does."""

import contextlib
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from asking import WAYS, ask
from command import Run
from fake_server import FakeServer

KEY = "test-key-of-the-user-0123"
RIGHT = "^^^ok.txt\nok\n^^^end\n"
PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text()
BEARER, API_KEY = ("authorization", f"Bearer {KEY}"), ("api-key", KEY)
MESSAGES: Any = [{"role": "user", "content": "hello"}]


class Row(NamedTuple):
    """What a block's request is: its path, and the header with the key. `sdk` sends one by the vendor's package."""

    path: str
    key: tuple[str, str] | None = BEARER
    headers: Mapping[str, str] = {}
    sdk: str = ""


RESPONSES, CHAT = "/v1/responses", "/chat/completions"
DEPLOYMENT = "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"
GATEWAY = {"x-team": "platform", "x-token": "tok-of-a-variable", "x-other": "tok-of-a-file"}
VERTEX = "/v1/projects/PROJECT/locations/global/endpoints/openapi"
ROWS = {
    "The vendors' own APIs": Row(RESPONSES, sdk="openai"),
    "The vendors' own APIs, 2": Row(
        RESPONSES, headers={"openai-organization": "org-example", "openai-project": "proj-example"}
    ),
    "Azure OpenAI, v1": Row("/openai/v1/responses", API_KEY, sdk="azure v1"),
    "Azure OpenAI, v1, 2": Row("/openai/v1/responses"),
    "Azure OpenAI, by deployment": Row(DEPLOYMENT, API_KEY, sdk="azure"),
    "Claude in Microsoft Foundry": Row("/anthropic/v1/messages", ("x-api-key", KEY), sdk="foundry"),
    "Claude on Bedrock": Row("/anthropic/v1/messages", sdk="mantle"),
    "Other models on Bedrock": Row("/openai/v1" + CHAT, sdk="chat /openai/v1"),
    "Vertex AI": Row(VERTEX + CHAT, sdk="chat " + VERTEX),
    "OpenRouter": Row("/api/v1" + CHAT, headers={"http-referer": "https://example.org", "x-title": "example"}),
    "Groq": Row("/openai/v1" + CHAT, sdk="chat /openai/v1"),
    "Mistral": Row("/v1" + CHAT),
    "LiteLLM": Row("/v1" + CHAT),
    "A gateway": Row("/v1/responses?tenant=web", API_KEY, GATEWAY),
    "On this machine": Row("/v1" + CHAT, None),
}


def blocks() -> dict[str, str]:
    """Return the blocks of the page by their headings; a second one of a heading has its number."""
    found: dict[str, str] = {}
    for section in PAGE.split("\n## ")[1:]:
        title = section.partition("\n")[0]
        for number, text in enumerate(re.findall(r"```toml\n(.*?)```", section, re.DOTALL), start=1):
            found[title if number == 1 else f"{title}, {number}"] = text
    return found


def test_each_block_of_the_page_has_a_row():
    assert {*blocks()} - {"A program"} == {*ROWS}


@pytest.mark.parametrize("title", ROWS)
def test_the_lines_of_the_page_reach_the_vendors_path(title, project_folder: Path, tmp_path, run_code_commit: Run):
    """The host is the server of the test, and what stands in the home of a user is made; nothing else is changed."""
    row, text, home = ROWS[title], blocks()[title], Path(os.environ["HOME"])
    user = home / ".config" / "code-commit"
    user.mkdir(parents=True, mode=0o700)
    program = tmp_path / "bin" / "key"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho {KEY}\n")
    program.chmod(0o755)
    for name in ("az", "gcloud", "gateway-login"):
        (program.parent / name).symlink_to(program)
    (home / ".config" / "gateway").mkdir()
    (home / ".config" / "gateway" / "token").write_text(GATEWAY["x-other"])
    (home / ".config" / "gateway" / "token").chmod(0o600)
    provider = tomllib.loads(text)["model"].partition(":")[0]
    if row.key and "key_command" not in text:
        (user / f"{provider}-key.txt").write_text(KEY)
        (user / f"{provider}-key.txt").chmod(0o600)
    with FakeServer([RIGHT]) as server:
        moved = re.sub(r'base_url = "https?://[^/"]+', f'base_url = "{server.url}', text)
        moved = re.sub(r"(?m)^client_\w+ = .*\n", "", moved)  # they need TLS: see test_http.py
        if "base_url" not in moved:
            moved = moved.replace("\n", f'\nbase_url = "{server.url}/v1"\n', 1)
        (user / "config.toml").write_text(moved)
        path = f"{program.parent}:{os.environ['PATH']}"
        env = {"PATH": path, "GATEWAY_TOKEN": GATEWAY["x-token"]}
        done = run_code_commit(project_folder, "--sandbox", "off", env=env)
        assert done.returncode == 0, done.stderr
        own = next((request for request in server.requests if request.path == row.path), server.requests[0])
        if row.sdk:
            ask_by_package(row.sdk, server)
    assert own.path == row.path
    assert row.headers.items() <= own.headers.items()
    keys = {name: value for name, value in own.headers.items() if KEY in value}
    assert keys == (dict([row.key]) if row.key else {})
    if row.sdk:
        theirs = server.requests[-1]
        assert (theirs.path, KEY in theirs.headers[next(iter(keys))]) == (own.path, True)
        if "anthropic-version" in own.headers:
            assert theirs.headers["anthropic-version"] == own.headers["anthropic-version"]


def ask_by_package(name: str, server: FakeServer) -> None:
    """Send a request by the vendor's own package; its answer does not matter."""
    import anthropic
    import openai

    kind, _, path = name.partition(" ")
    url, options = server.url, {"api_key": KEY, "max_retries": 0}
    if kind == "gemini":
        from google import genai

        options = {"base_url": url, "api_version": "v1beta"}  # its own default for this call is v1

        with contextlib.suppress(Exception), genai.Client(api_key=KEY, http_options=options) as client:
            client.interactions.create(model="m", input="hello")
        return
    places = {"azure v1": "/openai/v1", "openai": "/v1", "foundry": "/anthropic", "mantle": "/anthropic", "chat": path}
    base_url = url + places.get(name, places.get(kind, ""))
    with contextlib.suppress(openai.APIError, anthropic.APIError):  # the test has no answer left
        if name in ("openai", "azure v1"):
            headers = {"api-key": KEY} if kind == "azure" else {}
            with openai.OpenAI(base_url=base_url, default_headers=headers, **options) as client:
                client.responses.create(model="m", input="hello")
        elif kind == "azure":
            with openai.AzureOpenAI(azure_endpoint=url, api_version="2024-10-21", **options) as azure:
                azure.chat.completions.create(model="my-deployment", messages=MESSAGES, stream=True)
        elif kind == "chat":
            with openai.OpenAI(base_url=base_url, **options) as client:
                client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        else:
            classes: Any = {"foundry": anthropic.AnthropicFoundry, "mantle": anthropic.AnthropicBedrockMantle}
            with classes.get(kind, anthropic.Anthropic)(base_url=base_url, **options) as claude:
                claude.messages.create(model="m", max_tokens=9, messages=MESSAGES)


@pytest.mark.parametrize("name", ["messages", "interactions"])
def test_the_packages_of_anthropic_and_google_send_to_the_same_path(name):
    way = WAYS[name]
    with FakeServer(["hello"]) as server:
        ask(way, server, key=KEY)
        own = server.requests[0]
        ask_by_package(way.provider, server)
        theirs = server.requests[-1]
    assert theirs.path == own.path
    assert {header for header, value in theirs.headers.items() if KEY in value} >= {
        header for header, value in own.headers.items() if KEY in value
    }


def test_the_program_of_the_page_is_found_by_its_name(project_folder: Path, tmp_path, run_code_commit: Run):
    program = tmp_path / "bin" / "llm"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport sys; sys.stdin.read(); print({RIGHT!r})\n")
    program.chmod(0o755)
    user = Path(os.environ["HOME"], ".config", "code-commit")
    user.mkdir(parents=True)
    (user / "config.toml").write_text(blocks()["A program"])
    env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = run_code_commit(project_folder, "--sandbox", "off", env=env)
    assert done.returncode == 0, done.stderr
