"""The fake server speaks as the vendors do: the official SDKs' types and clients accept what it sends.

The SDKs are imported by the tests that need them: all three take seconds.
"""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import fake_apis as apis
import fake_server
import pytest
from fake_apis import Answer
from fake_server import FakeServer
from pydantic import TypeAdapter

ENDINGS = ["complete", "cut_off", "refused", "filtered", "empty"]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [*ENDINGS, "failed", "failed_for_good"])
def test_responses_are_openai_responses(ending):
    from openai.types.responses import Response

    answer = Answer("hello", ending)
    status = apis.OPENAI_STATUS.get(ending, "completed")
    for state in ("queued", "in_progress", "cancelled", status):
        body = apis.openai_response("resp_1", "gpt-6.2-sol", state, answer)
        response = Response.model_validate(body, strict=True)
        assert response.status == state
    if ending == "complete":
        assert "hello" in response.output_text


@pytest.mark.sweep
@pytest.mark.parametrize("ending", [*ENDINGS, "failed", "failed_for_good"])
def test_interactions_are_google_interactions(ending):
    from google.genai._gaos.types.interactions.interaction import Interaction

    answer = Answer("hello world", ending)
    for state in ("queued", "in_progress", "cancelled", apis.GEMINI_STATUS.get(ending, "completed")):
        interaction = Interaction.model_validate(apis.interaction("i1", "gemini-4-argon", state, answer))
        assert interaction.status == state
    if ending == "complete":
        assert interaction.output_text == "hello world"


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_message_events_are_anthropic_events(ending):
    from anthropic.types import RawMessageStreamEvent

    adapter = TypeAdapter(RawMessageStreamEvent)
    for event in apis.messages_events("claude-opus-5-5", Answer("hello", ending)):
        assert adapter.validate_python(event).type == event["type"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_chat_chunks_are_openai_chunks(ending):
    from openai.types.chat import ChatCompletionChunk

    for chunk in apis.chat_chunks("m", Answer("hello", ending)):
        ChatCompletionChunk.model_validate(chunk, strict=True)


@pytest.mark.slow
def test_the_openai_sdk_understands_the_server():
    import openai

    with (
        FakeServer(["first", "second", "third"]) as server,
        openai.OpenAI(base_url=server.url + "/v1", api_key="x", max_retries=0) as client,
    ):
        job = client.responses.create(model="m", input="p", background=True)
        states = [client.responses.retrieve(job.id).status, (last := client.responses.retrieve(job.id)).status]
        assert [job.status, *states] == ["queued", "in_progress", "completed"]
        assert "first" in last.output_text
        assert client.responses.cancel(job.id).status == "cancelled"
        with client.chat.completions.create(model="m", messages=[], stream=True) as stream:
            chunks = list(stream)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "second"
        assert chunks[-1].usage.prompt_tokens == 1000
        whole = client.chat.completions.create(model="m", messages=[])
        assert whole.choices[0].message.content == "third"


def test_the_anthropic_sdk_understands_the_server():
    import anthropic
    from anthropic.types import Message

    with (
        FakeServer(["hello"]) as server,
        anthropic.Anthropic(base_url=server.url, api_key="x", max_retries=0) as client,
    ):
        with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "p"}]) as stream:
            message = stream.get_final_message()
        assert isinstance(message, Message)
        assert message.content[-1].text == "hello"
        assert message.usage.output_tokens == 40


def test_the_server_can_be_started_from_a_shell(tmp_path):
    (tmp_path / "1-response.txt").write_text("one")
    (tmp_path / "2-response.txt").write_text("two")
    command = [sys.executable, fake_server.__file__, "--port", "0", "--answers", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path("/")) as process:
        try:
            url = process.stdout.readline().strip()
            for text in ("one", "two"):
                body = json.dumps({"model": "m", "messages": []}).encode()
                with urllib.request.urlopen(url + "/v1/chat/completions", body, timeout=10) as reply:
                    assert text[:1].encode() in reply.read()
        finally:
            process.kill()
