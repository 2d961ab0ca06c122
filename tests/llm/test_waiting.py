"""How long is waited: Retry-After in all its spellings, and a backoff with full jitter."""

import time
from email.utils import formatdate

import pytest

from code_commit.llm.call import backoff, obeyed_delay
from code_commit.llm.http import Timing
from code_commit.llm.refusals import asked_delay

NOW = 1_795_000_000.0


def retry_info(delay):
    return {
        "error": {
            "details": [{"@type": "x"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
        }
    }


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({}, None, None),
        ({"retry-after": "3"}, None, 3),
        ({"retry-after": " 3.25 "}, None, 3.25),
        ({"retry-after": "0"}, None, 0),
        ({"retry-after-ms": "1500", "retry-after": "60"}, None, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "60"}, None, 60),
        ({"retry-after": formatdate(NOW + 90, usegmt=True)}, None, 90),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, None, 0),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, None, None),
        ({"retry-after": "tomorrow"}, None, None),
        ({"retry-after": "-5"}, None, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "inf"}, None, None),
        ({"retry-after": "1e400"}, None, None),
        ({"retry-after": "9" * 400}, None, None),
        ({"retry-after": "٣"}, None, None),
        ({}, retry_info("34s"), 34),
        ({}, retry_info("0.5s"), 0.5),
        ({}, retry_info("34.07s"), 34.07),
        ({}, retry_info("34"), None),
        ({}, retry_info({"seconds": 3}), None),
        ({"retry-after": "2"}, retry_info("34s"), 2),
        ({}, {"error": {"details": "none"}}, None),
        ({}, "text", None),
    ],
)
def test_the_delay_that_an_api_asks_for(headers, body, seconds, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW)
    assert asked_delay(headers, body) == seconds


def test_the_backoff_doubles_up_to_a_minute_and_is_all_jitter():
    highest = Timing(random=lambda: 1.0)
    assert [backoff(n, highest, 60, is_overload=False) for n in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [backoff(n, highest, 60, is_overload=True) for n in range(5)] == [4, 8, 16, 32, 60]
    assert backoff(10_000, highest, 60, is_overload=False) == 60
    assert backoff(3, Timing(random=lambda: 0.0), 60, is_overload=False) == 0
    assert backoff(3, Timing(random=lambda: 0.5), 60, is_overload=False) == 4


def test_an_api_that_asks_for_nothing_is_not_asked_in_a_tight_loop():
    assert obeyed_delay(0.0, 8.0) == 8.0
    assert obeyed_delay(0.2, 0.1) == 0.2
    assert obeyed_delay(2.0, 60.0) == 2.0
    assert obeyed_delay(None, 5.0) == 5.0
