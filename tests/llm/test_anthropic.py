"""Anthropic's stream: what of it may not be missing or come twice, and every word that it can end with."""

import json
from types import SimpleNamespace

import pytest
from asking import WAYS, Clock, ask
from fake_apis import Answer, messages_events, named_events
from fake_server import FakeServer, Fault

from code_commit.llm.anthropic import assemble, usage

EVENTS = messages_events("m", Answer("one two three"))
START, STOP = EVENTS[0], EVENTS[-1]
TEXT_START = EVENTS[5]


def ask_messages(events):
    body = b"".join(named_events(events))
    with FakeServer(["second"], [Fault("status", body=body, headers={"content-type": "text/event-stream"})]) as server:
        return ask(WAYS["messages"], server)


def count_of(events):
    call = SimpleNamespace(is_done=False, ends_soon=dict)
    counted = usage(assemble(call, iter([*events, ("message_stop", {})])))
    return counted.input, counted.output


DISORDER = {
    "a second message": [*EVENTS[:6], {"type": "message_start", "message": {"id": "msg_2"}}, *EVENTS[6:]],
    "all of it once more": [*EVENTS[:7], *EVENTS],
    "neither of its two ends": EVENTS[:-2],
}


@pytest.mark.parametrize("name", DISORDER)
def test_a_stream_out_of_order_is_asked_for_again(name):
    response, listener = ask_messages(DISORDER[name])
    assert response.text == "second"
    assert len(listener.retries) == 1


WHOLE = {
    "no stop_reason": [*EVENTS[:-2], STOP],
    "no message_stop": EVENTS[:-1],
    "a block before the message": [*EVENTS[5:6], START, *EVENTS[6:]],
    "its start twice": [*EVENTS[:6], START, *EVENTS[6:]],
    "a block without its start": [event for event in EVENTS if event is not TEXT_START],
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_stream_with_one_of_its_two_ends_is_done(name):
    response, listener = ask_messages(WHOLE[name])
    assert (response.complete_text(), listener.retries) == ("one two three", [])


def start(index, kind):
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, kind: ""}}


def delta(index, kind, piece):
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", kind: piece}}


THINKING = [start(0, "thinking"), delta(0, "thinking", "hm")]
FIRST_STOP = {"type": "content_block_stop", "index": 0}
BLOCKS = {
    "one index for both": [*THINKING, FIRST_STOP, start(0, "text"), delta(0, "text", "ab")],
    "one index, without a stop": [*THINKING, start(0, "text"), delta(0, "text", "ab")],
    "one index for two texts": [
        start(0, "text"),
        delta(0, "text", "a"),
        FIRST_STOP,
        start(0, "text"),
        delta(0, "text", "b"),
    ],
    "the index of the other block": [*THINKING, FIRST_STOP, start(1, "text"), delta(0, "text", "ab")],
    "thoughts in the block of the text": [start(0, "text"), delta(0, "thinking", "hm"), delta(0, "text", "ab")],
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_gateway_may_number_blocks_in_its_own_way(name):
    response, listener = ask_messages([START, *BLOCKS[name], *EVENTS[-2:]])
    assert (response.complete_text(), listener.retries) == ("ab", [])


def test_a_text_that_begins_anew_in_the_middle_is_asked_for_again():
    response, listener = ask_messages([START, start(0, "text"), delta(0, "text", "a"), start(0, "text"), *EVENTS[-2:]])
    assert (response.text, len(listener.retries)) == ("second", 1)


def test_a_stream_that_stays_open_after_the_stop_reason_has_lost_nothing():
    open_end = Fault("open", body=b"".join(named_events(EVENTS[:-1])))
    with FakeServer(["second"], [open_end]) as server:
        response, listener = ask(WAYS["messages"], server, timing=Clock().timing(after_end=0.2))
    assert (response.complete_text(), listener.retries) == ("one two three", [])


def test_an_error_after_the_end_takes_no_answer_back():
    late = {"type": "error", "error": {"type": "api_error", "message": "No usage today"}}
    response, listener = ask_messages([*EVENTS[:-1], late])
    assert (response.complete_text(), listener.retries) == ("one two three", [])
    assert "No usage today" in listener.warnings[0]


def test_events_that_nobody_knows_yet_are_passed_over():
    news = {"type": "something_new", "index": 1, "delta": {"type": "text_delta", "text": "X"}}
    delta = {"type": "content_block_delta", "index": 1, "delta": {"type": "new_delta", "text": "X"}}
    response, listener = ask_messages([*EVENTS[:7], news, delta, *EVENTS[7:]])
    assert response.complete_text() == "one two three"
    assert not listener.retries


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("stop_sequence", None),
        ("model_context_window_exceeded", "cut off at the end of the model's context window"),
        ("pause_turn", "not finished (stop_reason pause_turn)"),
        ("tool_use", "not finished (stop_reason tool_use)"),
        ("something_new", "not finished (stop_reason something_new)"),
        ("refusal", "refused"),
        ("stop", None),
        ("length", "cut off at the output limit of 128000 tokens (--max-output-tokens)"),
    ],
)
def test_every_stop_reason(reason, words):
    ending = json.loads(json.dumps(EVENTS[-2]))
    ending["delta"]["stop_reason"] = reason
    response, _ = ask_messages([*EVENTS[:-2], ending, STOP])
    assert response.finish_reason == reason
    assert response.incomplete == words


@pytest.mark.parametrize("content", [[{"type": "text", "text": "plain"}], "plain"])
@pytest.mark.parametrize("reason", ["end_turn", None])
def test_a_message_that_was_not_streamed(content, reason):
    message = START["message"] | {"content": content, "stop_reason": reason}
    with FakeServer(faults=[Fault("status", body=message)]) as server:
        assert ask(WAYS["messages"], server)[0].complete_text() == "plain"


def test_text_in_the_start_of_a_block_counts():
    start = {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "zero "}}
    response, _ = ask_messages([start if event is TEXT_START else event for event in EVENTS])
    assert response.text == "zero one two three"


def test_the_tokens_that_a_stream_begins_with_are_no_count_of_the_answer():
    start = {"usage": {"input_tokens": 9, "output_tokens": 1}}
    events = [("message_start", {"message": start}), ("message_delta", {"delta": {"stop_reason": "end_turn"}})]
    assert count_of(events) == (9, 0)


def test_the_whole_prompt_first_and_its_cached_part_at_the_end_count_once():
    last = {"input_tokens": 200, "cache_read_input_tokens": 2800, "output_tokens": 20}
    for first in ({"input_tokens": 3000}, {"input_tokens": 200, "cache_read_input_tokens": 2800}):
        end = {"delta": {"stop_reason": "end_turn"}, "usage": last}
        assert count_of([("message_start", {"message": {"usage": first}}), ("message_delta", end)]) == (3000, 20)


def test_a_gateway_may_count_by_the_names_of_another_api():
    counted = usage({"usage": {"input_tokens": 0, "prompt_tokens": 3000, "completion_tokens": 20}})
    assert (counted.input, counted.output) == (3000, 20)
    parts = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 400}
    assert usage({"usage": {"input_tokens": 500, "cache_creation": parts, "output_tokens": 1}}).input == 1000
