"""A parameter that a server refuses is left out or renamed, and remembered."""

import pytest
from asking import PROMPT, WAYS, Clock, Listener, ask, open_way
from fake_server import FakeServer, Fault

from code_commit.errors import LLMError
from code_commit.settings import Price


def refusal(message, **more):
    return Fault("status", status=400, body={"error": {"message": message, **more}})


def asked(way, faults, **settings):
    """Ask twice, and return the bodies of the requests."""
    with FakeServer(["one", "two"], faults) as server:
        url = server.base_url(WAYS[way].provider)
        with open_way(WAYS[way], url, Clock().timing(), **settings) as llm:
            texts = [llm.complete(PROMPT, Listener()).text for _ in range(2)]
    assert texts == ["one", "two"]
    return [request.body for request in server.requests if request.method == "POST"]


@pytest.mark.parametrize(
    ("way", "refused", "left_out"),
    [
        ("chat", refusal("stream_options: unknown field", param="stream_options"), "stream_options"),
        ("chat", refusal("Your organization must be verified to stream this model.", param="stream"), "stream"),
        ("chat", refusal("include_usage is not supported"), "stream_options"),
        ("chat", refusal("No endpoints found that support stream_options", code=404), "stream_options"),
        ("chat", refusal("only non-streaming requests are allowed"), "stream"),
        ("responses", refusal("Background mode is not supported for organizations without retention."), "background"),
        ("responses", refusal("Unknown parameter: 'prompt_cache_options'."), "prompt_cache_options"),
    ],
)
def test_a_parameter_is_left_out_for_the_rest_of_the_run(way, refused, left_out):
    first, *others = asked(way, [refused])
    assert left_out in first
    assert len(others) == 2
    assert not any(left_out in body for body in others)


def test_a_limit_is_renamed():
    fault = refusal("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens'.")
    bodies = asked("chat", [fault], max_output_tokens=9000)
    assert [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in bodies] == [
        (9000, None),
        *[(None, 9000)] * 2,
    ]


ROLES = {
    "named": refusal("System role not supported"),
    "the others named": refusal("Only user and assistant roles are supported!"),
    "by a template": Fault("status", status=500, body={"error": "Conversation roles must alternate user/assistant"}),
}


@pytest.mark.parametrize("fault", ROLES.values(), ids=ROLES)
def test_without_a_role_for_the_system_its_text_goes_to_the_user(fault):
    _, body, _ = asked("chat", [fault])
    assert body["messages"] == [{"role": "user", "content": PROMPT.system + PROMPT.user}]


@pytest.mark.parametrize(
    "fault",
    [
        refusal("max_tokens: 9000 > 8192, the most that this model writes", param="max_tokens"),
        refusal("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        refusal("The requested model is not supported.", param="model"),
        refusal("reasoning_effort: 'xhigh' is not supported", param="reasoning_effort"),
    ],
)
def test_a_value_of_the_user_is_not_left_out(fault):
    with FakeServer(["x"], [fault]) as server, pytest.raises(LLMError):
        ask(WAYS["chat"], server, max_output_tokens=9000, reasoning_effort="xhigh")
    assert len(server.requests) == 1


def test_a_limit_on_which_money_rests_is_renamed_but_never_left_out():
    faults = [refusal(f"{name} is not supported") for name in ("max_tokens", "max_completion_tokens")]
    settings = {"max_cost": 1.0, "prices": {"some-model": Price(1, 10)}}
    with FakeServer(["x"], faults) as server, pytest.raises(LLMError):
        ask(WAYS["chat"], server, **settings)
    assert [sorted(set(r.body) & {"max_tokens", "max_completion_tokens"}) for r in server.requests] == [
        ["max_tokens"],
        ["max_completion_tokens"],
    ]


@pytest.mark.parametrize(("way", "name"), [("chat", "stream"), ("responses", "background"), ("interactions", "store")])
def test_settings_say_it_beforehand(way, name):
    setting = "stream" if name == "stream" else "background"
    assert not any(name in body for body in asked(way, [], **{setting: False}))
