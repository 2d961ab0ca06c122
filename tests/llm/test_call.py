"""How long a call waits before it is made again."""

import socket

import pytest
from asking import PROMPT, WAYS, Clock, Listener, ask, open_way
from fake_server import FakeServer, Fault

from code_commit.errors import LLMError
from code_commit.llm.call import backoff
from code_commit.llm.endpoint import Timing


def test_where_nobody_listens_nobody_asks_to_wait_and_no_wait_is_past_the_limit():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    listener = Listener()
    address = f"http://127.0.0.1:{port}/v1"
    with open_way(WAYS["chat"], address, Clock().timing(), timeout=4) as llm, pytest.raises(LLMError) as caught:
        llm.complete(PROMPT, listener)
    assert "gave up: the next try would exceed the limit of 4.0 s (--llm-timeout)" in str(caught.value)
    assert listener.limits == [pytest.approx(4, abs=0.5)]


def test_the_backoff_doubles_up_to_a_minute_and_is_all_jitter():
    highest = Timing(random=lambda: 1.0)
    assert [backoff(n, highest, 60) for n in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff(10_000, highest, 60) == 60
    assert backoff(3, Timing(random=lambda: 0.0), 60) == 0
    assert backoff(3, Timing(random=lambda: 0.5), 60) == 4


@pytest.mark.parametrize(("asked", "waited"), [("0", 1.0), ("0.2", 1.0), ("2", 2.0)])
def test_an_api_that_asks_for_nothing_is_not_asked_in_a_tight_loop(asked, waited):
    with FakeServer(["x"], [Fault("status", status=429, headers={"retry-after": asked})]) as server:
        _, listener = ask(WAYS["chat"], server)
    assert [delay for _, delay in listener.retries] == [waited]


@pytest.mark.parametrize("name", ["chat", "messages"])
def test_a_stream_that_falls_silent_is_told_with_what_it_said(name):
    said = Fault("open", body=b"data: Number of choices must be greater than 0.\n\n")
    with FakeServer(faults=[said]) as server:
        with open_way(WAYS[name], server.base_url(WAYS[name].provider), Timing(), timeout=0.7) as llm:
            with pytest.raises(LLMError, match=r"llm-timeout\); it said: Number of choices must be") as caught:
                llm.complete(PROMPT, Listener())
    assert caught.value.kind == "timeout"
