"""Requests: the vendors' own types accept every body, and the prompt is in it byte for byte.

The official SDKs are imported by the tests that need them: all three take seconds.
"""

from itertools import product

import pytest
from asking import CACHED_PROMPT, KEY, PROMPT, WAYS, ask, open_way
from fake_server import FakeServer
from sdk_types import check

from code_commit import __version__
from code_commit.exchange import Prompt


def pairs(*columns):
    return list(product(*columns))


SETTINGS = [
    {},
    {"max_output_tokens": 5000},
    {"reasoning_effort": "high"},
    {"max_output_tokens": 5000, "reasoning_effort": "low"},
]


def body_of(name, prompt=PROMPT, model=None, **settings):
    way = WAYS[name]
    if model:
        way = type(way)(way.provider, model, way.settings)
    with open_way(way, "http://127.0.0.1:9/v1", **settings) as llm:
        return llm._api.request_body(llm._endpoint, prompt)


def check_responses(body):
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    check(ResponseCreateParamsNonStreaming, body)


def check_chat(body):
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    check(CompletionCreateParamsStreaming, body)


def check_messages(body):
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

    check(MessageCreateParamsStreaming, body)


def check_interaction(body):
    from google.genai._gaos.types.interactions.createmodelinteraction import CreateModelInteraction

    CreateModelInteraction.model_validate(body)
    assert set(body) <= set(CreateModelInteraction.model_fields)


CHECKS = {
    "responses": check_responses,
    "chat": check_chat,
    "messages": check_messages,
    "interactions": check_interaction,
}


@pytest.mark.parametrize(("name", "prompt", "settings"), pairs(WAYS, (PROMPT, CACHED_PROMPT), SETTINGS))
def test_the_sdk_accepts_every_body(name, prompt, settings):
    CHECKS[name](body_of(name, prompt, **settings))


@pytest.mark.parametrize("name", CHECKS)
def test_the_check_refuses_what_the_api_would(name):
    if name in ("responses", "chat", "messages"):
        with pytest.raises(ValueError, match="Extra inputs"):
            CHECKS[name](body_of(name) | {"no_such_member": 1})
    else:
        with pytest.raises((ValueError, AssertionError)):
            CHECKS[name](body_of(name) | {"no_such_member": 1})


@pytest.mark.parametrize(("name", "prompt"), pairs(WAYS, (PROMPT, CACHED_PROMPT)))
def test_no_sampling_is_sent_and_no_limit_unless_it_is_asked_for(name, prompt):
    text = repr(body_of(name, prompt)).lower()
    assert "temperature" not in text
    assert "top_p" not in text
    assert "reasoning" not in text
    assert "thinking" not in text
    assert ("max_" in text) == (name == "messages")


def user_texts(name, body):
    if name == "responses":
        return [block["text"] for block in body["input"][0]["content"]]
    if name == "interactions":
        return [block["text"] for block in body["input"]]
    content = body["messages"][-1]["content"]
    return [content] if isinstance(content, str) else [block["text"] for block in content]


def system_text(name, body):
    if name == "responses":
        return body["instructions"]
    if name == "interactions":
        return body["system_instruction"]
    return body["system"][0]["text"] if name == "messages" else body["messages"][0]["content"]


@pytest.mark.parametrize(("name", "prompt"), pairs(WAYS, (PROMPT, CACHED_PROMPT)))
def test_the_prompt_arrives_whole(name, prompt):
    with FakeServer(["x"]) as server:
        ask(WAYS[name], server, prompt)
        body = server.requests[0].body
    assert "".join(user_texts(name, body)) == prompt.user
    assert system_text(name, body) == prompt.system
    assert all(user_texts(name, body))
    if prompt.stable and name != "chat":
        assert user_texts(name, body) == [prompt.stable, prompt.rest]


@pytest.mark.parametrize("name", WAYS)
def test_odd_text_arrives_as_it_is(name):
    odd = Prompt("a\u2028b\x00\x07", "", 'tab\t"quote" \\ back\r\nslash 日本語 😀 \x7f')
    with FakeServer(["x"]) as server:
        ask(WAYS[name], server, odd)
        assert "".join(user_texts(name, server.requests[0].body)) == odd.user
        assert system_text(name, server.requests[0].body) == odd.system


@pytest.mark.parametrize("name", WAYS)
def test_half_a_character_in_the_prompt_is_no_crash(name):
    with FakeServer(["x"]) as server:
        response, _ = ask(WAYS[name], server, Prompt("s", "", "half \ud83d"))
        assert response.text == "x"
        assert "".join(user_texts(name, server.requests[0].body)) == "half ?"


def test_the_specifications_layout_pays_for_no_cache():
    assert body_of("responses")["prompt_cache_options"] == {"mode": "explicit"}
    assert "breakpoint" not in repr(body_of("responses"))
    assert "prompt_cache_key" not in body_of("responses")
    assert "cache" not in repr(body_of("messages"))
    assert "cache" not in repr(body_of("responses", model="gpt-5.5"))


def test_an_exchange_of_messages_goes_as_messages_or_as_one_text():
    turns = [("user", "how?\n"), ("assistant", "so\n"), ("user", "files\n"), ("assistant", "Ok.\n")]
    prompt = Prompt("SYSTEM\n", "[user]\nhow?\n ...", "do it", dialogue=turns)
    sent = body_of("chat", prompt)["messages"]
    assert [tuple(message.values()) for message in sent] == [("system", "SYSTEM\n"), *turns, ("user", "do it")]
    check_chat(body_of("chat", prompt))
    assert "how?" in str(body_of("responses", prompt)["input"])


def test_the_cached_layout_marks_its_boundaries():
    body = body_of("responses", CACHED_PROMPT)
    mark = {"mode": "explicit", "ttl": "30m"}
    assert [block.get("prompt_cache_breakpoint") for block in body["input"][0]["content"]] == [mark, None]
    assert body["prompt_cache_key"] == body_of("responses", CACHED_PROMPT)["prompt_cache_key"]
    assert body["prompt_cache_key"] != body_of("responses", CACHED_PROMPT, model="gpt-6.2-astra")["prompt_cache_key"]
    assert "work tree" not in body["prompt_cache_key"]
    older = body_of("responses", CACHED_PROMPT, model="gpt-5.4")
    assert "prompt_cache_options" not in older
    assert "breakpoint" not in repr(older)
    body = body_of("messages", CACHED_PROMPT)
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert body["system"][0]["cache_control"] == hour
    assert [block.get("cache_control") for block in body["messages"][0]["content"]] == [hour, None]


def test_the_key_stands_in_one_header_alone():
    for name, way in WAYS.items():
        with FakeServer(["x"]) as server:
            _, listener = ask(way, server)
            for request in server.requests:
                assert KEY not in request.path
                assert KEY not in repr(request.body)
                header = "x-goog-api-key" if way.provider == "gemini" else "authorization"
                assert [key for key, value in request.headers.items() if KEY in value] == [header]
                assert request.headers["user-agent"] == f"code-commit/{__version__} (python httpx)"
            sent = {key.lower(): value for key, value in listener.request[1].items()}
            assert sent.items() <= server.requests[0].headers.items(), name
            assert listener.request[0] == server.url + server.requests[0].path
            assert listener.request[2] == server.requests[0].body


def test_a_chat_server_without_a_key_is_asked_without_one():
    with FakeServer(["x"]) as server:
        response, _ = ask(WAYS["chat"], server, key=None)
        assert response.text == "x"
        assert "authorization" not in server.requests[0].headers


def test_anthropics_version_and_output_limit():
    with FakeServer(["x"]) as server:
        ask(WAYS["messages"], server)
        assert server.requests[0].headers["anthropic-version"] == "2026-10-21"
        assert server.requests[0].body["max_tokens"] == 128_000
    assert body_of("messages", model="claude-sonnet-4-5-20250929")["max_tokens"] == 64_000
    assert body_of("messages", model="claude-next")["max_tokens"] == 64_000


def test_the_output_limit_of_chat_has_two_names():
    def limit(base_url):
        with open_way(WAYS["chat"], base_url, max_output_tokens=7) as llm:
            body = llm._api.request_body(llm._endpoint, PROMPT)
        return {name for name in body if name.startswith("max_")}

    assert limit("https://api.openai.com/v1") == {"max_completion_tokens"}
    assert limit("http://127.0.0.1:11434/v1") == {"max_tokens"}
    assert limit("https://notopenai.com/v1") == {"max_tokens"}


def test_chat_at_openai_pays_for_no_cache_either():
    def body(base_url, model, prompt):
        with open_way(type(WAYS["chat"])("chat", model), base_url) as llm:
            return llm._api.request_body(llm._endpoint, prompt)

    at_openai = body("https://api.openai.com/v1", "gpt-6.2-sol", PROMPT)
    check_chat(at_openai)
    assert at_openai["prompt_cache_options"] == {"mode": "explicit"}
    assert "prompt_cache_options" not in body("https://api.openai.com/v1", "gpt-6.2-sol", CACHED_PROMPT)
    assert "prompt_cache_options" not in body("https://api.openai.com/v1", "gpt-4.1", PROMPT)
    assert "prompt_cache_options" not in body("https://openrouter.ai/api/v1", "openai/gpt-6.2-sol", PROMPT)


def test_the_request_that_counts_a_prompt_is_what_the_vendors_types_accept():
    from anthropic.types.message_count_tokens_params import MessageCountTokensParams
    from google.genai import types as google
    from openai.types.responses.input_token_count_params import InputTokenCountParams

    bodies = {}
    for name in ("responses", "messages", "interactions"):
        with open_way(WAYS[name], "http://127.0.0.1:9/v1") as llm:
            bodies[name] = llm._api.counter.request_body(llm._endpoint, CACHED_PROMPT)
    check(InputTokenCountParams, bodies["responses"])
    check(MessageCountTokensParams, bodies["messages"])
    (content,) = bodies["interactions"].pop("contents")
    assert google.Content.model_validate(content).parts[1].text == CACHED_PROMPT.user
    assert bodies["interactions"] == {}
