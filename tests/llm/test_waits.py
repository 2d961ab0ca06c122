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
        ({}, retry_info({"seconds": 3}), 3),
        ({}, retry_info({"seconds": "3", "nanos": 500_000_000}), 3.5),
        ({}, retry_info({"seconds": [3]}), None),
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
        ({"ratelimit": '"default";r=0;t=25'}, 25),
        ({"ratelimit": "limit=100, remaining=4, reset=25"}, None),
        ({"x-ms-retry-after-ms": "2500", "x-retry-after": "9"}, 2.5),
        ({"x-ratelimit-retry-after": "25"}, 25),
        ({"retry-after": "5, 5"}, 5),
        ({"retry-after": '"1m30s"'}, 90),
        ({"retry-after": f"{NOW + 40:.0f}"}, 40),
        ({"retry-after": "Fri Jan 15 08:00:40 2027"}, 40),
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
        ("Try again in about an hour", 3600),
        ("Please wait 30 more seconds", 30),
        ("Retry after: 12s", 12),
        ("rate limited, retry_after=12", 12),
        ("Quota will be replenished in 1.02:00:03.", 93_603),
        ("Your limit will reset at 2027-01-15 09:00:00", 3600),
        ("You will regain access on 2027-02-01 at 00:00 UTC.", 1_440_000),
        ("limited until 1800000600", 600),
        ("请在 30 秒后重试", 30),
        ("您的限额将在 2027-01-15 09:00:00 重置。", 3600),
        ("try again in a moment", None),
        ("the model thinks in 5 minutes", None),
        ("request timed out after 600 seconds", None),
        ("no answer of the upstream within 60 seconds. Try again.", None),
    ],
)
def test_words(words, seconds):
    assert asked_wait({}, None, words, NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": "Model x is currently loading", "estimated_time": 20.0}, 20),
        ({"error": {"resets_at": NOW + 600}}, 600),
        ({"error": {"resets_in_seconds": 600}}, 600),
        ({"error": {"retryAfterMs": 1500}}, 1.5),
        ({"error": {"details": [{"metadata": {"quotaResetDelay": "3h15m2s"}}]}}, 11_702),
        ({"limits": [{"remaining": 4, "reset": 9}, {"remaining": 0, "reset": 60}]}, 60),
        ({"metadata": {"headers": {"X-RateLimit-Remaining": "7", "X-RateLimit-Reset": "30"}}}, None),
        ({"error": {"retry_after": True, "reset_url": "https://a.example"}}, None),
    ],
)
def test_members(body, seconds):
    assert asked_wait({}, body, "", NOW) == seconds


def test_the_headers_of_another_reply_in_the_body():
    body = {"error": {"metadata": {"headers": {"X-RateLimit-Reset": f"{(NOW + 9) * 1000:.0f}"}}}}
    assert asked_wait({}, body, "", NOW) == pytest.approx(9)
