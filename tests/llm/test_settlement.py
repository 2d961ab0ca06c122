"""Only a final reply with usage settles a request. Any other end may be billed, unless it was a refusal."""

import json
import re
from contextlib import suppress

import pytest
from asking import PROMPT, WAYS, Clock, Listener, open_way
from fake_apis import Answer
from fake_server import COUNTERS, FakeServer, Fault
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from code_commit.errors import LLMError
from code_commit.settings import Price

MONEY = {"max_output_tokens": 10_000, "context_window": 10**6}
PRICE = Price(1.0, 10.0)
BOUND = 0.1
"""In US dollars: what an answer of 10,000 tokens costs; the prompt's few tokens beside it cost next to nothing."""

USAGES = {
    "responses": {"input_tokens": 1000, "output_tokens": 2000},
    "interactions": {"total_input_tokens": 1000, "total_output_tokens": 2000},
    "messages": {"input_tokens": 1000, "output_tokens": 2000},
    "chat": {"prompt_tokens": 1000, "completion_tokens": 2000},
}
COST = 0.021
JOBS, STREAMS = ["responses", "interactions"], ["messages", "chat"]
ALL = [*JOBS, *STREAMS]


def created(server: FakeServer) -> int:
    """How many answers were asked for."""
    others = rf"/cancel$|{COUNTERS}"
    return sum(each.method == "POST" and not re.search(others, each.path) for each in server.requests)


class Asking:
    """One call with the money of so many answers, and what came of it."""

    def __init__(self, way: str, faults: list[Fault], answers: int = 4, answer: Answer | str = "ok") -> None:
        self.listener, self.clock, self.error, self.response = Listener(), Clock(), None, None
        model = WAYS[way].model
        money = MONEY | {"max_cost": BOUND * answers + 0.001, "prices": {model: PRICE}, "timeout": 600}
        with FakeServer([answer] * 9, faults) as server:
            with open_way(WAYS[way], server.base_url(WAYS[way].provider), self.clock.timing(), **money) as llm:
                try:
                    self.response = llm.complete(PROMPT, self.listener)
                except LLMError as error:
                    self.error = error
        self.created = created(server)
        self.polls = sum(each.method == "GET" for each in server.requests)
        self.cancelled = server.cancelled

    @property
    def unsettled(self) -> float:
        return sum(self.listener.unsettled)

    @property
    def cost(self) -> float:
        return sum(each.cost_usd or 0.0 for each in self.listener.settlements)


def reply(body, stage="call", times=99, status=200):
    return Fault("status", stage, times, status, body=body)


def refusal(status, stage="call", times=99):
    return reply({"error": {"message": f"This is a {status}."}}, stage, times, status)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 503])
@pytest.mark.parametrize("way", JOBS)
def test_a_job_that_was_accepted_keeps_its_reservation_whatever_its_polls_answer(way, status):
    asked = Asking(way, [refusal(status, "poll")])
    assert (asked.created, asked.unsettled) == (1, pytest.approx(BOUND, abs=1e-3))
    assert asked.cancelled == [], "a later call can fetch its answer"


@pytest.mark.parametrize("status", [408, 499, 500, 502, 504, 524])
@pytest.mark.parametrize("way", ALL)
def test_a_status_that_a_gateway_answers_while_the_provider_goes_on_keeps_the_reservation(way, status):
    asked = Asking(way, [refusal(status)], answers=2)
    assert (asked.created, asked.unsettled) == (2, pytest.approx(2 * BOUND, abs=1e-3))
    assert asked.error.kind == "budget"


@pytest.mark.parametrize("status", [307, 400, 401, 404, 409, 413, 429, 503, 529])
@pytest.mark.parametrize("way", ALL)
def test_a_request_that_is_refused_is_free(way, status):
    asked = Asking(way, [refusal(status)], answers=1)
    assert (asked.unsettled, asked.cost) == (0, 0)


@pytest.mark.parametrize("way", ALL)
def test_no_connection_is_free(way):
    with FakeServer() as server:
        url = server.base_url(WAYS[way].provider)
    listener, money = Listener(), MONEY | {"max_cost": 1.0, "prices": {WAYS[way].model: PRICE}}
    with open_way(WAYS[way], url, Clock().timing(), **money) as llm, pytest.raises(LLMError):
        llm.complete(PROMPT, listener)
    assert listener.unsettled == []


NO_ANSWERS = {
    "a web page": Fault("html", times=99),
    "no JSON": reply(b"", times=99),
    "an error with 200": reply({"error": {"message": "The upstream is gone.", "code": 502}}),
    "a lasting error with 200": reply({"error": {"message": "No.", "type": "invalid_request_error"}}),
    "no id": reply({"status": "queued"}),
    "dropped": Fault("drop", times=99),
    "dropped in the body": Fault("drop_mid_body", times=99),
}


@pytest.mark.parametrize("fault", NO_ANSWERS.values(), ids=NO_ANSWERS)
@pytest.mark.parametrize("way", ALL)
def test_a_success_without_an_answer_keeps_the_reservation(way, fault):
    if way in STREAMS and fault.body == {"status": "queued"}:
        pytest.skip("a stream has no id")
    asked = Asking(way, [Fault(**vars(fault))], answers=1)
    assert (asked.created, asked.unsettled) == (1, pytest.approx(BOUND, abs=1e-3))


@pytest.mark.parametrize("way", STREAMS)
def test_an_error_in_the_stream_keeps_the_reservation(way):
    asked = Asking(way, [Fault("error_event", times=99)], answers=2)
    assert (asked.created, asked.unsettled) == (2, pytest.approx(2 * BOUND, abs=1e-3))


def test_a_lasting_error_after_text_keeps_the_reservation():
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
        {"error": {"message": "No.", "type": "invalid_request_error"}},
    ]
    body = b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks)
    asked = Asking("chat", [reply(body)])
    assert (asked.created, asked.unsettled) == (1, pytest.approx(BOUND, abs=1e-3))


def broken_off(usage):
    return reply({"choices": [{"message": {"content": "Hel"}, "finish_reason": "error"}], "usage": usage})


def test_a_broken_answer_is_counted_and_repeated_five_times_at_most():
    asked = Asking("chat", [broken_off(USAGES["chat"])], answers=9)
    assert (asked.created, asked.cost, asked.unsettled) == (6, pytest.approx(6 * COST), 0)
    assert "gave up after 5 retries: each of the requests may have started an answer" in str(asked.error)


def test_without_usage_it_keeps_the_reservation():
    asked = Asking("chat", [broken_off(None)], answers=2)
    assert (asked.created, asked.cost, asked.unsettled) == (2, 0, pytest.approx(2 * BOUND, abs=1e-3))


@pytest.mark.parametrize("state", ["failed", "cancelled", "expired", "requires_action", "budget_exceeded"])
@pytest.mark.parametrize("has_usage", [True, False])
@pytest.mark.parametrize("way", JOBS)
def test_a_job_that_ends_without_an_answer_is_counted(way, has_usage, state):
    final = {"id": "resp_1", "status": state} | ({"usage": USAGES[way]} if has_usage else {})
    asked = Asking(way, [reply(final, "poll")])
    assert (asked.created, asked.error.kind) == (1, "refused")
    assert asked.cost == pytest.approx(COST if has_usage else 0)
    assert asked.unsettled == pytest.approx(0 if has_usage else BOUND, abs=1e-3)


BAD_COUNTS = {
    "missing": None,
    "too many": 10**12 + 1,
    "a text": "two thousand",
    "below 0": -1,
    "a bool": True,
}


@pytest.mark.parametrize("bad", BAD_COUNTS.values(), ids=BAD_COUNTS)
@pytest.mark.parametrize("way", JOBS)
def test_the_half_of_a_usage_that_is_missing_counts_at_its_bound(way, bad):
    first, second = USAGES[way]
    for name, cost, unsettled in [(second, 0.001, BOUND), (first, 0.02, 0.0)]:
        final = {"id": "resp_1", "status": "failed", "usage": USAGES[way] | {name: bad}}
        asked = Asking(way, [reply(final, "poll")])
        assert (asked.cost, asked.unsettled) == (pytest.approx(cost), pytest.approx(unsettled, abs=1e-4))
        assert asked.unsettled > 0


@pytest.mark.parametrize("way", JOBS)
def test_a_fetched_job_costs_no_more_than_was_reserved_for_it(way):
    first, second = USAGES[way]
    final = {"id": "resp_1", "status": "failed", "usage": {first: USAGES[way][first], second: None}}
    listener = Listener()
    with FakeServer([], [reply(final, "poll")]) as server:
        with open_way(WAYS[way], server.base_url(WAYS[way].provider), prices={WAYS[way].model: PRICE}) as llm:
            with pytest.raises(LLMError):
                llm.fetch("resp_1", listener, 0.05)
    (settlement,) = listener.settlements
    assert 0 < settlement.cost_usd < settlement.cost_usd + settlement.unsettled_usd == pytest.approx(0.05)


@pytest.mark.parametrize("way", ALL)
def test_an_answer_of_the_log_is_read_again_whether_or_not_it_is_counted(way):
    listener, prices = Listener(), {WAYS[way].model: PRICE}
    with FakeServer(["ok"]) as server:
        with open_way(WAYS[way], server.base_url(WAYS[way].provider), prices=prices) as llm:
            cost = llm.complete(PROMPT, listener).settlement.cost_usd
            for reserved in (None, 0.5):
                again = llm.read_again(listener.replies[-1][2], PROMPT, Listener(), reserved)
                assert (again.text, again.settlement.cost_usd) == ("ok", cost)
                assert again.settlement.reserved == (reserved or 0.0)


def test_numbers_that_are_no_json_become_null():
    answer = b'{"id": "r", "status": "completed", "a": NaN, "b": [-Infinity, 1e999], "c": 1.5}'
    asked = Asking("responses", [reply(answer)])
    (status, _, body) = asked.listener.replies[0]
    assert (status, body["a"], body["b"], body["c"]) == (200, None, [None, None], 1.5)
    json.dumps(body, allow_nan=False)


BILLED = Answer("ok", input_tokens=20, cached=0, written=0, output_tokens=10_000)
"""As much as the request allows."""
FREE = [refusal(429, times=1), refusal(503, times=1), refusal(400, times=1), refusal(401, times=1)]
PAID = [
    *(refusal(status, times=1) for status in (408, 500, 502, 504)),
    *(Fault(kind) for kind in ("drop", "reset", "html", "drop_mid_body", "early_end", "error_event", "bad_json")),
    reply({"error": {"message": "Upstream."}}, times=1),
    reply(b"", times=1),
]
POLLS = [
    *(refusal(status, "poll", 1) for status in (400, 401, 403, 404, 429, 500, 503)),
    *(Fault(kind, "poll") for kind in ("drop", "html", "drop_mid_body", "bad_json")),
    reply({"id": "resp_1", "status": "failed"}, "poll", 1),
    reply({"id": "resp_1", "status": "cancelled"}, "poll", 1),
]


@pytest.mark.parametrize("way", ALL)
@examples(max_examples=8)
@given(
    st.lists(st.sampled_from(FREE + PAID), max_size=6), st.lists(st.sampled_from(POLLS), max_size=6), st.integers(1, 6)
)
def test_no_bill_exceeds_the_count_and_no_count_the_limit(way, calls, polls, answers):
    """It bills each request that it has not refused, whatever it answers then."""
    limit, model = BOUND * answers + 0.005, WAYS[way].model
    faults = [Fault(**vars(fault)) for fault in calls + (polls if way in JOBS else [])]
    refused = [fault for fault in faults if fault.status in (429, 503, 400, 401) and fault.stage == "call"]
    listener, prompt = Listener(), PROMPT
    with FakeServer([BILLED] * 20, faults) as server:
        money = MONEY | {"max_cost": limit, "prices": {model: PRICE}, "timeout": 900}
        url = server.base_url(WAYS[way].provider)
        with open_way(WAYS[way], url, Clock().timing(), **money) as llm:
            for _ in range(4):
                with suppress(LLMError):
                    llm.complete(prompt, listener)
    billed = (
        (created(server) - sum(not fault.times for fault in refused)) * (20 * PRICE.input + 10_000 * PRICE.output) / 1e6
    )
    counted = sum(each.cost_usd or 0.0 for each in listener.settlements) + sum(listener.unsettled)
    assert billed <= counted + 1e-9 <= limit + 2e-9
