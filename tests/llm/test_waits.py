"""The wait that a refusal asks for."""

from email.utils import formatdate

import pytest

from code_commit.llm.waits import asked_wait

NOW = 1_800_000_000.0


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
        ({}, retry_info("soon"), None),
        ({}, retry_info({"seconds": 3}), None),
        ({"retry-after": "2"}, retry_info("34s"), 2),
        ({}, {"error": {"details": "none"}}, None),
        ({}, "text", None),
    ],
)
def test_the_delay_that_an_api_asks_for(headers, body, seconds):
    assert asked_wait(headers, body, "", NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": formatdate(NOW + 5, usegmt=True)}, 5),
        ({"retry-after": formatdate(NOW + 5, usegmt=True), "date": formatdate(NOW - 100, usegmt=True)}, 105),
        ({"retry-after": formatdate(NOW - 5, usegmt=True)}, 0),
        ({"x-ratelimit-reset": f"{NOW + 60:.0f}"}, 60),
        ({"x-ratelimit-reset": f"{(NOW + 60) * 1000:.0f}", "x-ratelimit-remaining": "0"}, 60),
        ({"x-ratelimit-reset": "30", "x-ratelimit-remaining": "7"}, None),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "0"}, 360),
        ({"anthropic-ratelimit-tokens-reset": "2027-01-15T08:00:10Z"}, 10),
        ({"ratelimit-reset": "12"}, 12),
    ],
)
def test_headers(headers, seconds):
    assert asked_wait(headers, None, "", NOW) == seconds


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 40m19s.", 2419),
        ("Please try again in 2.4s.", 2.4),
        ("Please retry after 20 seconds", 20),
        ("try again in 500ms", 0.5),
        ("Try again in 1 hour 3 minutes", 3780),
        ("try again in a moment", None),
        ("the model thinks in 5 minutes", None),
    ],
)
def test_words(words, seconds):
    assert asked_wait({}, None, words, NOW) == (None if seconds is None else pytest.approx(seconds))


def test_the_headers_of_another_reply_in_the_body():
    body = {"error": {"metadata": {"headers": {"X-RateLimit-Reset": f"{(NOW + 9) * 1000:.0f}"}}}}
    assert asked_wait({}, body, "", NOW) == pytest.approx(9)
