"""Replies: text, usage, cost, request id; complete only if the API says so."""

import json
from itertools import product

import fake_apis
import pytest
from asking import PROMPT, WAYS, Clock, Listener, ask, open_way
from fake_apis import Answer
from fake_server import FakeServer, Fault

from code_commit.changes import RejectedResponseError
from code_commit.errors import LLMError
from code_commit.exchange import Usage
from code_commit.redaction import Redactor
from code_commit.settings import Price

TEXT = "日本語\n^^^src/日本語.rs\nlet a = '😀';\r\n\n^^^end\n"
FLAWS = {
    "cut_off": "cut off at the output limit",
    "refused": "refused|filtered",
    "filtered": "filtered|refused",
    "empty": "only thoughts, 15 tokens of them",
}


@pytest.mark.parametrize("name", WAYS)
def test_a_complete_answer(name):
    with FakeServer([Answer(TEXT, pieces=7)]) as server:
        response, listener = ask(WAYS[name], server)
    assert response.text == TEXT
    assert response.complete_text() == TEXT
    written = 0 if WAYS[name].provider == "gemini" else 50
    assert response.settlement.usage == Usage(
        input=1000, cached_input=100, cache_write=written, output=40, reasoning=15
    )
    assert response.request_id
    status, headers, body = listener.replies[0]
    assert status == 200
    assert headers["content-type"]
    assert "日本語" in "".join(strings_in(body))
    order = [step for step in listener.steps if step != "progressed"]
    assert order == (["requested", "job_created", "replied"] if WAYS[name].is_background else ["requested", "replied"])
    assert listener.states


def strings_in(value):
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings_in(inner)


ENDINGS = [pair for pair in product(WAYS, FLAWS) if pair != ("interactions", "filtered")]  # its word is `refused`


@pytest.mark.parametrize(("name", "ending"), ENDINGS)
def test_only_the_apis_own_word_makes_it_complete(name, ending):
    with FakeServer([Answer(TEXT, ending)]) as server:
        response, listener = ask(WAYS[name], server)
    assert response.incomplete is not None
    with pytest.raises(RejectedResponseError, match=f"the response is ({FLAWS[ending]})"):
        response.complete_text()
    assert listener.replies
    assert not listener.retries
    assert len([request for request in server.requests if request.method == "POST"]) == 1


def test_the_output_limit_is_named():
    for name in WAYS:
        with FakeServer([Answer(TEXT, "cut_off")]) as server:
            response, _ = ask(WAYS[name], server, max_output_tokens=64000)
        assert response.incomplete == "cut off at the output limit of 64000 tokens (--max-output-tokens)"


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(("reasoning", "told"), [(0, "empty"), (1_500, "only thoughts, 1,500 tokens of them")])
def test_blank_text_is_empty_or_only_thoughts(name, reasoning, told):
    with FakeServer([Answer(" \n\t", reasoning=reasoning)]) as server:
        response, _ = ask(WAYS[name], server)
    has_thoughts = name == "messages"  # its server thinks in each answer
    assert response.incomplete == ("only thoughts, 40 tokens of them" if has_thoughts and not reasoning else told)


@pytest.mark.parametrize("name", ["messages", "chat"])
def test_a_character_that_is_split_over_two_pieces_is_whole(name):
    with FakeServer([Answer("a\ud83d\ude00b", pieces=4)]) as server:
        response, listener = ask(WAYS[name], server)
    assert response.text == "a😀b"
    assert response.incomplete is None
    assert "😀".encode() in Redactor([]).redact_json(listener.replies[0][2])


@pytest.mark.parametrize("name", WAYS)
def test_half_a_character_is_damage(name):
    with FakeServer(["a\ud83db"]) as server:
        response, _ = ask(WAYS[name], server)
    assert response.incomplete == "damaged: it contains half of a character"
    assert response.text == "a\ufffdb"


@pytest.mark.parametrize("name", WAYS)
def test_a_large_answer_comes_whole(name):
    text = "".join(f"line {number}: the quick brown fox\n" for number in range(40_000))
    with FakeServer([Answer(text, pieces=5_000)]) as server:
        response, _ = ask(WAYS[name], server, timeout=60, timing=Clock().timing(read=30))
    assert response.text == text


@pytest.mark.parametrize("name", WAYS)
def test_calls_of_one_run_share_the_client(name):
    with FakeServer(["one", "two", "three"]) as server:
        with open_way(WAYS[name], server.base_url(WAYS[name].provider), Clock().timing()) as llm:
            texts = [llm.complete(PROMPT, Listener()).text for _ in range(3)]
    assert texts == ["one", "two", "three"]


def test_the_cost_is_by_the_price_of_config_toml_first():
    prices = {"gpt-6.2-sol": Price(10, 20, 1, 100)}
    with FakeServer(["x"]) as server:
        response, _ = ask(WAYS["responses"], server, prices=prices)
    assert response.settlement.cost_usd == pytest.approx((850 * 10 + 100 * 1 + 50 * 100 + 40 * 20) / 1e6)


def test_the_cost_of_a_known_model():
    with FakeServer(["x"]) as server:
        assert ask(WAYS["responses"], server)[0].settlement.cost_usd == pytest.approx(
            (850 * 2 + 100 * 0.1 + 50 * 2.5 + 40 * 10) / 1e6
        )
    with FakeServer(["x"]) as server:
        assert ask(WAYS["messages"], server)[0].settlement.cost_usd == pytest.approx(
            (850 * 4 + 100 * 0.2 + 50 * 8 + 40 * 20) / 1e6
        )
    with FakeServer(["x"]) as server:
        assert ask(WAYS["chat"], server)[0].settlement.cost_usd is None


@pytest.mark.parametrize("status", ["something_new", 7, None])
def test_a_state_that_nobody_knows_is_waited_for(status):
    with FakeServer(
        ["x"], [Fault("status", "poll", body={"id": "resp_1", "status": "being_prepared"}, times=3)]
    ) as server:
        assert ask(WAYS["responses"], server)[0].text == "x"
    with FakeServer(["x"], [Fault("status", "poll", body={"id": "resp_1", "status": status})]) as server:
        assert ask(WAYS["interactions"], server)[0].text == "x"


@pytest.mark.parametrize("status", ["cancelled", "expired", "budget_exceeded", "requires_action"])
def test_a_job_that_ends_as_something_else_is_an_error(status):
    with FakeServer(["x"], [Fault("status", "poll", body={"id": "resp_1", "status": status})]) as server:
        with pytest.raises(LLMError, match=f"the job ended as '{status}' at 127.0.0.1"):
            ask(WAYS["interactions"], server)


def test_a_job_that_is_finished_at_once_is_not_polled():
    body = fake_apis.openai_response("resp_9", "gpt-6.2-sol", "completed", Answer("at once"))
    with FakeServer(faults=[Fault("status", body=body)]) as server:
        response, listener = ask(WAYS["responses"], server)
    assert response.text == "at once"
    assert len(server.requests) == 1
    assert not listener.jobs


STREAMS = {
    "messages": lambda answer: fake_apis.named_events(fake_apis.messages_events("m", answer)),
    "chat": lambda answer: fake_apis.data_events(fake_apis.chat_chunks("m", answer), done=True),
}
EVENT_STREAM = {"content-type": "text/event-stream"}


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_is_cut_anywhere_is_never_taken_for_the_whole(name, whole):
    stream = b"".join(STREAMS[name](Answer(TEXT, pieces=4)))
    clock = Clock()
    for end in range(0, len(stream), 1 if whole else 23):
        with FakeServer([TEXT], [Fault("status", body=stream[:end], headers=EVENT_STREAM)]) as server:
            assert ask(WAYS[name], server, clock=clock)[0].complete_text() == TEXT


@pytest.mark.parametrize("name", STREAMS)
def test_bytes_that_are_no_text_break_a_stream(name):
    stream = b"".join(STREAMS[name](Answer("abcdefgh"))).replace(b"def", b"d\xfff")
    with FakeServer(["second"], [Fault("status", body=stream, headers=EVENT_STREAM)]) as server:
        response, listener = ask(WAYS[name], server)
    assert response.text == "second"
    assert "is damaged" in listener.retries[0][0]


HOSTILE = [None, 1, "text", [], {}, [[]], {"a": 1}, True, [None], -5, 1e400]


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_members_of_any_type_crash_nothing(value):
    bodies = {
        "responses": [
            {
                "id": "r",
                "status": "completed",
                "output": value,
                "usage": value,
                "error": None,
                "incomplete_details": value,
            },
            {
                "id": "r",
                "status": "completed",
                "output": [value, {"type": "message", "content": value}],
                "usage": {"input_tokens": value},
            },
        ],
        "interactions": [
            {"id": "r", "status": "completed", "steps": value, "usage": value, "errors": value},
            {"id": "r", "status": "completed", "steps": [value, {"type": "model_output", "content": [value]}]},
        ],
        "chat": [
            {"choices": [{"message": value, "finish_reason": "stop"}], "usage": value},
            {
                "choices": [{"message": {"content": value, "refusal": None}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": value},
            },
        ],
        "messages": [
            {"stop_reason": "end_turn", "content": value, "usage": value},
            {"stop_reason": "refusal", "stop_details": value, "content": [value, {"type": "text", "text": value}]},
        ],
    }
    for name, replies in bodies.items():
        for body in replies:
            with FakeServer(faults=[Fault("status", body=body)]) as server:
                response, _ = ask(WAYS[name], server)
                assert response.incomplete is not None or response.text == "text"


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_stream_events_of_any_type_crash_nothing(value):
    events = [
        value,
        {"type": value},
        {"type": "message_start", "message": value},
        {"choices": value},
        {"choices": [value]},
    ]
    events += [{"type": "content_block_start", "index": value, "content_block": value}]
    events += [
        {"type": "content_block_delta", "index": value, "delta": value},
    ]
    events += [{"type": "message_delta", "delta": value, "usage": value}, {"type": "message_stop"}]
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    for name in ("messages", "chat"):
        with FakeServer(["x"], [Fault("status", body=data, headers={"content-type": "text/event-stream"})]) as server:
            assert ask(WAYS[name], server)[0].text == "x"
