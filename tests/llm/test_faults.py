"""The fault table: every fault at every stage of every API ends in success after a retry, or in the right error."""

import re
import time
import traceback
from dataclasses import dataclass
from typing import Any

from asking import KEY, PROMPT, WAYS, Clock, Listener, open_way
from fake_apis import Answer
from fake_server import QUICK_POLL, FakeServer, Fault

from code_commit.errors import LLMError

TEXT = "^^^a.txt\nhello\n^^^end\n"
STREAMS = ("messages", "chat")
JOBS = ("responses", "interactions")


@dataclass(frozen=True)
class Case:
    """`error` is what the LLMError says; None means success. `waits` are what the retries must have waited."""

    faults: tuple[Fault, ...]
    error: str | None = None
    retried: bool = True
    answers: tuple[Answer, ...] = (Answer(TEXT),)
    ways: tuple[str, ...] = tuple(WAYS)
    timeout: float = 600
    waits: tuple[float, ...] = ()
    silence: float = 0.25


def status(code: int, body: Any = None, headers: dict[str, str] | None = None, **more: Any) -> tuple[Fault, ...]:
    message = {"error": {"message": f"This is a {code}.", "type": "some_error"}}
    return (Fault("status", status=code, body=body or message, headers=headers or {}, **more),)


def error_code(code: str) -> dict[str, Any]:
    return {"error": {"message": "You exceeded something.", "type": code, "code": code}}


def google_error(code: int, name: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {
        "error": {"code": code, "message": "Resource has been exhausted.", "status": name, "details": list(details)}
    }


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
}
ECHO = {"error": {"message": f"Incorrect API key provided: {KEY}. Find yours on our pages.", "code": "invalid_api_key"}}
LONG_ECHO = {"error": {"message": f"{'x' * 577} provided: {KEY} is not yours", "code": "invalid_api_key"}}

CALL_FAULTS = {
    "drop after accept": Case((Fault("drop"),)),
    "reset after accept": Case((Fault("reset"),)),
    "drop three times": Case((Fault("drop", times=3),)),
    "drop in mid body": Case((Fault("drop_mid_body"),)),
    "reset after headers": Case((Fault("reset_after_headers"),)),
    "stall in the body": Case((Fault("stall"),), "llm-timeout", timeout=0.4, retried=False),
    "silence": Case((Fault("silence"),), "llm-timeout", timeout=0.4, retried=False),
    "slow headers for ever": Case((Fault("dribble_headers", times=9),), "llm-timeout", timeout=0.4, retried=False),
    "slow body for ever": Case((Fault("dribble", times=9),), "llm-timeout", timeout=0.4, retried=False),
    "not HTTP": Case((Fault("garbage"),)),
    "a web page": Case((Fault("html"),)),
    "web pages for ever": Case((Fault("html", times=99),), "with this API's JSON.*--base-url"),
    "a web page of 502": Case((Fault("html", status=502),)),
    "content length too long, no end": Case((Fault("wrong_length"),), ways=JOBS),
    "content length too long, after the end": Case((Fault("wrong_length"),), retried=False, ways=STREAMS),
    "content length too short": Case((Fault("short_length"),)),
    "every byte a chunk": Case((Fault("split"),), retried=False),
    "200 with an empty body": Case((Fault("status", status=200, body=b""),)),
    "200 with an unknown error": Case(status(200, {"error": {"message": "Something odd."}})),
    "200 with a status in the error": Case(status(200, {"error": {"message": "Upstream.", "code": 502}})),
    "200 with a string for a status": Case(status(200, {"error": {"message": "Slow down.", "code": "429"}})),
    "200 with a text for an error": Case(status(200, {"error": "Model is loading."})),
    "200 with a lasting error": Case(status(200, error_code("invalid_request_error")), "not accepted", retried=False),
    "200 with a context overflow": Case(
        status(200, {"error": "The number of tokens is greater than the context length."}), "too long", retried=False
    ),
    "200 with JSON of another kind": Case(status(200, [1, 2]), "with this API's JSON; name the address", retried=False),
    "200 with JSON too deep": Case((Fault("status", status=200, body=b"[" * 200_000),)),
    "200 with JSON of 300 levels": Case(
        status(200, b'{"id": ' + b"[" * 300 + b"]" * 300 + b"}"),
        "with this API's JSON|a complete reply without an answer",
        retried=False,
    ),
    "400": Case(status(400), "answered 400: This is a 400; the request was not accepted", retried=False),
    "400 prompt too long": Case(
        status(400, {"error": {"message": "prompt is too long: 1520294 tokens > 1000000 maximum"}}),
        "make the prompt smaller",
        retried=False,
    ),
    "400 by code": Case(status(400, error_code("context_length_exceeded")), "make the prompt smaller", retried=False),
    "400 Google's window": Case(
        status(
            400, {"error": {"message": "The input token count (1200293) exceeds the maximum number of tokens allowed"}}
        ),
        "make the prompt smaller",
        retried=False,
    ),
    "400 Google's bad key": Case(
        status(400, google_error(400, "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"})),
        "the key from agent-config/test-key.txt is refused",
        retried=False,
    ),
    "400 Google's list": Case(status(400, [google_error(400, "INVALID_ARGUMENT")]), "exhausted", retried=False),
    "400 spend limit": Case(
        status(400, {"error": {"message": "You have reached your specified API usage limits."}}),
        "no money",
        retried=False,
    ),
    "400 slow upload": Case(
        status(400, {"error": {"message": "slow", "details": {"error_code": "request_body_timeout"}}}),
    ),
    "400 that may be retried": Case(status(400, headers={"x-should-retry": "true"})),
    "401": Case(status(401), "the key from agent-config/test-key.txt is refused", retried=False),
    "401 that quotes the key": Case(status(401, ECHO), r"provided: \*+5e\. Find", retried=False),
    "401 that quotes the key where it is cut": Case(status(401, LONG_ECHO), r"provided: \*{12}\.\.\.", retried=False),
    "402": Case(status(402), "no money", retried=False),
    "403": Case(status(403), "may not use", retried=False),
    "404": Case(status(404), "check the name of the model", retried=False),
    "408": Case(status(408)),
    "409": Case(status(409)),
    "413": Case(status(413), "too long", retried=False),
    "413 as a page": Case((Fault("html", status=413),), "Bad gateway; the prompt is too long", retried=False),
    "422": Case(status(422), "not accepted", retried=False),
    "429 with a delay": Case(status(429, headers={"retry-after": "7"}), waits=(7.0,)),
    "429 with milliseconds": Case(status(429, headers={"retry-after-ms": "2500", "retry-after": "9"}), waits=(2.5,)),
    "429 with Google's delay": Case(status(429, google_error(429, "RESOURCE_EXHAUSTED", RETRY_INFO)), waits=(34.5,)),
    "429 with no delay": Case(status(429, times=3), waits=(1.0, 2.0, 4.0)),
    "429 with a delay past the end": Case(
        status(429, headers={"retry-after": "86400"}), "asks for a wait of 24 h.*llm-timeout", retried=False
    ),
    "429 no money": Case(status(429, error_code("insufficient_quota")), "no money", retried=False),
    "429 no quota today": Case(
        status(429, google_error(429, "RESOURCE_EXHAUSTED", PER_DAY, RETRY_INFO)), "quota of the day", retried=False
    ),
    "429 for ever": Case(status(429, times=999), "This is a 429; gave up.*llm-timeout"),
    "499": Case(status(499)),
    "500": Case(status(500)),
    "500 that may not be retried": Case(status(500, headers={"x-should-retry": "false"}), "cannot help", retried=False),
    "501": Case(status(501), "not accepted", retried=False),
    "502": Case(status(502)),
    "503": Case(status(503, times=2), waits=(1.0, 2.0)),
    "504": Case(status(504)),
    "520": Case((Fault("html", status=520),)),
    "529": Case(status(529), waits=(1.0,)),
    "302": Case(
        status(302, headers={"location": "http://evil.example/steal?x=1"}),
        r"redirects to http://evil.example/steal\?x=1 \(status 302\)",
        retried=False,
    ),
    "307": Case(status(307, headers={"location": "/elsewhere"}), "redirects to /elsewhere", retried=False),
    "308": Case(status(308, headers={"location": "http://[broken"}), r"redirects to http://\[broken", retried=False),
}

STREAM_FAULTS = {
    "an error in the stream": Case((Fault("error_event"),), ways=STREAMS),
    "errors in the stream for ever": Case(
        (Fault("error_event", times=999),), "gave up after 5 retries: each of the requests", ways=STREAMS
    ),
    "the stream ends early": Case((Fault("early_end"),), ways=STREAMS),
    "the stream ends early for ever": Case(
        (Fault("early_end", times=99),), "ended early.*started an answer that is paid for", ways=STREAMS
    ),
    "half an event": Case((Fault("bad_json"),), ways=STREAMS),
    "events that come twice": Case((Fault("duplicate"),), retried=False, ways=STREAMS),
}

POLL_FAULTS = {
    f"poll: {name}": Case(tuple(Fault(**(vars(fault) | {"stage": "poll"})) for fault in case.faults), ways=JOBS, **more)
    for name, case, more in [
        *(
            (name, CALL_FAULTS[name], {})
            for name in (
                "drop after accept",
                "reset after accept",
                "drop in mid body",
                "reset after headers",
                "stall in the body",
                "silence",
                "not HTTP",
                "a web page",
                "a web page of 502",
                "content length too long, no end",
                "content length too short",
                "200 with an empty body",
                "200 with an unknown error",
                "408",
                "409",
                "429 with a delay",
                "499",
                "500",
                "502",
                "503",
                "504",
                "529",
            )
        ),
        ("dropped twenty times", Case((Fault("drop", times=20),)), {}),
        ("web pages twenty times", Case((Fault("html", times=20),)), {}),
        ("404 at first", Case(status(404, times=5)), {}),
        ("404 for ever", Case(status(404, times=99)), {"error": "may not support background"}),
        ("401", CALL_FAULTS["401"], {"error": "is refused", "retried": False}),
        ("302", CALL_FAULTS["302"], {"error": "redirects to http://evil", "retried": False}),
        (
            "slow for ever",
            Case((Fault("dribble", times=9),)),
            {"error": "llm-timeout", "retried": False, "timeout": 0.9},
        ),
    ]
}

JOB_ENDINGS = {
    "the job stays queued": Case((), "has not finished.*canceled", False, (Answer(TEXT, "stays_queued"),), JOBS),
    "the job fails, the next does not": Case((), None, True, (Answer("", "failed"), Answer(TEXT)), JOBS),
    "the job fails for good": Case((), "refused|ended as 'failed'", False, (Answer("", "failed_for_good"),), JOBS),
    "the job expires": Case(
        (), "does not find the job; gave up after 5 retries: it has expired", True, (Answer(TEXT, "expires"),), JOBS
    ),
}

FAULTS = CALL_FAULTS | STREAM_FAULTS | POLL_FAULTS | JOB_ENDINGS
CASES = {f"{name}: {way}": (way, case) for name, case in FAULTS.items() for way in case.ways}
SAMPLE = {
    f"{name}: {way}": (way, case)
    for row, (name, case) in enumerate(FAULTS.items())
    for column, way in enumerate(case.ways)
    if (row + column) % 2 == 0
}


def pytest_generate_tests(metafunc):
    """Every other cell, as on a chess board, so that each fault and each API is met; with --whole all of them."""
    if "case" in metafunc.fixturenames:
        chosen = CASES if metafunc.config.getoption("--whole") else SAMPLE
        metafunc.parametrize(("way", "case"), chosen.values(), ids=chosen)


def test_the_table_is_large():
    assert len(CASES) >= 340
    assert len(SAMPLE) >= 170


def test_fault(way, case):
    clock, listener, begin = Clock(), Listener(), time.monotonic()
    faults = [Fault(**vars(fault)) for fault in case.faults]
    poll_headers = {} if "stays_queued" in repr(case.answers) else QUICK_POLL
    with FakeServer(case.answers, faults, poll_headers=poll_headers) as server:
        is_silent = any(fault.kind in ("stall", "silence") for fault in faults)
        silence = case.silence if is_silent else 10.0
        timing = clock.timing(read=silence)
        with open_way(WAYS[way], server.base_url(WAYS[way].provider), timing, timeout=case.timeout) as llm:
            outcome = outcome_of(llm, listener)
    assert time.monotonic() - begin < 20
    assert clock.ahead <= case.timeout
    if case.error is None:
        assert outcome == TEXT
        assert listener.steps[-1] == "replied"
    else:
        assert isinstance(outcome, LLMError) or outcome == "refused"
        if outcome != "refused":
            assert re.search(case.error, str(outcome), re.DOTALL), outcome
    assert bool(listener.retries) == case.retried or (case.error and case.retried is False)
    if case.waits:
        assert [delay for _, delay in listener.retries] == list(case.waits)
    assert listener.steps[0] == "requested"
    assert listener.steps.count("requested") == 1
    assert listener.steps.count("replied") <= 1
    assert KEY not in listener.heard.replace(f"provided: {KEY}", "")  # the API's own words: the run's log censors them


def outcome_of(llm, listener):
    """The text, or the error, which must not hold the key in any form that a log or a terminal gets."""
    error = None
    try:
        response = llm.complete(PROMPT, listener)
    except LLMError as caught:
        error = caught
    if error is None:
        return "refused" if (response.incomplete or "").startswith("refused") else response.complete_text()
    assert KEY not in "".join(traceback.format_exception(error))
    assert KEY not in repr(error)
    return error
