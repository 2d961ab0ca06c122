"""The wait that a refusal asks for."""

from pathlib import Path

import pytest

from code_commit.llm.http import Endpoint, Reply
from code_commit.llm.refusals import asked_delay, refusal_of
from code_commit.settings import Settings


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
    assert asked_delay(headers, body) == seconds


@pytest.mark.parametrize(
    ("path", "end"),
    [
        ("", "(http://127.0.0.1:9); try http://127.0.0.1:9/v1"),
        ("/v1", "(http://127.0.0.1:9/v1)"),
        ("/v1/chat/completions", "(http://127.0.0.1:9/v1/chat/completions); leave /chat/completions out of it"),
    ],
)
def test_an_address_that_is_not_there_is_mended(path, end):
    endpoint = Endpoint("m", f"http://127.0.0.1:9{path}", Settings(), Path(), "", str)
    assert str(refusal_of(Reply(404, {}, "not found"), endpoint)).endswith(end)
