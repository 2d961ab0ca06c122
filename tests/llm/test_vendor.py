"""Requests to the vendors' own addresses, which respx answers: nothing is sent."""

import json
import os
import subprocess
import sys
from importlib import import_module

import pytest
import respx
from asking import KEY, PROMPT, ROOT
from fake_server import FakeServer

from code_commit.llm import open_llm
from code_commit.llm.keys import ApiKey
from code_commit.llm.ledger import Ledger
from code_commit.llm.models import VENDORS as VENDORS_OF_THE_TOOL
from code_commit.llm.programs import KeyProgram
from code_commit.llm.vendor import LlmConfig, ModelChoice, is_same_model
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.settings import Settings

VENDORS = {
    "openai": ("gpt-6.2-sol", "https://api.openai.com/v1/responses", "authorization", f"Bearer {KEY}"),
    "anthropic": ("claude-opus-5-5", "https://api.anthropic.com/v1/messages", "authorization", f"Bearer {KEY}"),
    "gemini": (
        "gemini-4-argon",
        "https://generativelanguage.googleapis.com/v1beta/interactions",
        "x-goog-api-key",
        KEY,
    ),
}
ANSWERS = {
    "openai": {"id": "resp_1", "status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "ok"}]}]},
    "anthropic": {"type": "message", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "usage": {}},
    "gemini": {"id": "i", "status": "completed", "steps": [{"type": "model_output", "content": [{"type": "text", "text": "ok"}]}]},
}  # fmt: skip


class Deaf:
    """A listener that does not listen."""

    def __getattr__(self, name):
        return lambda *arguments: None


@pytest.mark.parametrize("provider", VENDORS)
def test_the_vendor_is_asked_at_its_own_address_with_the_key_in_one_header(provider):
    model, url, header, value = VENDORS[provider]
    with respx.mock(using="httpcore") as router:
        route = router.post(url).respond(json=ANSWERS[provider])
        asked = LlmConfig(ModelChoice(provider, model), ApiKey(provider, KEY, "a test"), Settings())
        with open_llm(asked, Project(ROOT), Ledger()) as llm:
            assert llm.complete(PROMPT, Deaf()).text == "ok"
    (call,) = route.calls
    assert call.request.headers[header] == value
    assert KEY not in str(call.request.url)
    assert KEY not in json.dumps(json.loads(call.request.content))
    assert [name for name, text in call.request.headers.items() if KEY in text] == [header]


FIFTH = """
import sys
from code_commit.llm import chat, models
from code_commit.llm.vendor import API, Model, Vendor
from code_commit.settings import Price

models.VENDORS["fifth"] = Vendor(
    name="fifth",
    key_variable="FIFTH_API_KEY",
    headers=lambda key, settings: {"x-fifth-key": key},
    base_url="https://api.fifth.example/v1",
    api=API("/chat/completions", chat.request_body, chat.usage, chat.read, chat.has_answer, chat.assemble),
    default_model="fifth-large",
    bare_names="fifth-.*",
    models={"fifth-large": Model(100_000, 8_000, Price(1000, 1000))},
)

from code_commit.cli import main

sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "key_is_in"),
    [
        ([], "file"),
        (["--model", "fifth"], "variable"),
        (["--model", "fifth-large"], "file"),
        (["--model", "fifth:fifth-large"], "variable"),
    ],
)
def test_a_further_vendor_is_one_value(project_folder, model, key_is_in):
    key_file = project_folder / "agent-config" / "fifth-key.txt"
    environment = {name: os.environ[name] for name in ("PATH", "HOME")}
    if key_is_in == "file":
        key_file.touch(mode=0o600)
        key_file.write_text(KEY)
    else:
        environment["FIFTH_API_KEY"] = KEY
    with FakeServer(["^^^ok.txt\nok\n^^^end\n"]) as server:
        command = [sys.executable, "-c", FIFTH, *model, "--base-url", f"fifth:{server.url}", "--json"]
        done = subprocess.run(
            command, cwd=project_folder, env=environment, capture_output=True, text=True, check=False, timeout=180
        )
        (request,) = server.requests
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["status"], record["model"]) == ("success", "fifth:fifth-large")
    assert record["attempts"][0]["cost_usd"] == pytest.approx(1.04)  # 1000 tokens in, 40 out
    assert (project_folder / "ok.txt").read_text() == "ok\n"
    assert request.path == "/v1/chat/completions"
    assert [name for name, value in request.headers.items() if KEY in value] == ["x-fifth-key"]
    logged = [file.read_bytes() for file in (project_folder / "agent-config" / "logs").rglob("*") if file.is_file()]
    assert logged
    assert not any(KEY.encode() in content for content in logged)


def test_every_vendor_is_registered_by_its_modules_name():
    assert list(VENDORS_OF_THE_TOOL) == ["gemini", "openai", "anthropic", "chat", "command", "replay"]
    for name, vendor in VENDORS_OF_THE_TOOL.items():
        assert import_module(f"code_commit.llm.{name}").VENDOR is vendor


@pytest.mark.parametrize(
    ("asked", "answered", "is_same"),
    [
        ("gpt-5", "gpt-5-2025-08-07", True),
        ("grok-4", "grok-4-0709", True),
        ("openai/gpt-5", "gpt-5", True),
        ("llama3", "llama3:latest", True),
        ("claude-sonnet-4.5", "claude-sonnet-4-5", True),
        ("bedrock/anthropic.claude-sonnet-4-5-v1:0", "claude-sonnet-4-5", True),
        ("deepseek/deepseek-r1:free", "deepseek/deepseek-r1", True),
        ("qwen3-8b", "/models/qwen3-8b-q4_k_m.gguf", True),
        ("openrouter/auto", "maker/anything", True),
        ("gpt-5", "gpt-5.2", False),
        ("claude-sonnet-4", "claude-sonnet-4-5", False),
        ("gpt-5", "gpt-50", False),
        ("o3", "o3-mini", False),
        ("llama3:8b", "llama3", False),
    ],
)
def test_a_maker_a_date_or_a_variant_is_no_other_model(asked, answered, is_same):
    assert is_same_model(asked, answered) == is_same


@pytest.mark.parametrize("own", ["the first", "the fallback"])
def test_the_key_that_a_program_prints_is_censored_for_whichever_model_it_is(own, tmp_path):
    program, redactor = KeyProgram(f"echo {KEY}", tmp_path, lambda _: None), Redactor([])
    choice, key = ModelChoice("openai", "m"), ApiKey("openai", "", "key_command", program=program)
    fallback = LlmConfig(choice, key if own == "the fallback" else None, Settings())
    llm = LlmConfig(choice, key if own == "the first" else None, Settings(), fallback)
    llm.share_keys(redactor)
    assert KEY not in redactor.redact_text(program.key())
