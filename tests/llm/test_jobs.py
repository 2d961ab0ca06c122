"""Background jobs: the id before the first poll, cancelled when nobody waits any more, never started again and again."""

import errno
import json
import signal
import time
from pathlib import Path

import h11
import pytest
from asking import PROMPT, WAYS, Clock, Listener, ask, open_way
from fake_apis import Answer
from fake_server import FakeServer, Fault

from code_commit.errors import Interrupted, LLMError, LogError

JOBS = ["responses", "interactions"]


class Interrupting(Listener):
    """A listener in whose hands the user's Ctrl-C arrives."""

    def __init__(self, step: str, error: BaseException) -> None:
        super().__init__()
        self._step = step
        self._error = error

    def job_created(self, job_id: str) -> None:
        super().job_created(job_id)
        self._interrupt("job_created")

    def progressed(self, state: str) -> None:
        super().progressed(state)
        self._interrupt("progressed")

    def _interrupt(self, step: str) -> None:
        if step == self._step:
            raise self._error


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("step", ["job_created", "progressed"])
@pytest.mark.parametrize("error", [Interrupted(signal.SIGTERM), KeyboardInterrupt(), OSError("disk full")], ids=repr)
def test_an_interrupted_job_is_cancelled(name, step, error):
    listener = Interrupting(step, error)
    with FakeServer(["x"]) as server:
        with (
            open_way(WAYS[name], server.base_url(WAYS[name].provider), Clock().timing()) as llm,
            pytest.raises(type(error)) as caught,
        ):
            llm.complete(PROMPT, listener)
    assert caught.value is error
    assert server.cancelled == listener.jobs == ["resp_1"]


def test_a_signal_between_two_requests_of_one_connection_cancels_the_job(monkeypatch):
    """httpx takes the connection for idle then, but h11 for one whose request has not ended."""
    next_cycle = h11.Connection.start_next_cycle
    cycles: list[h11.Connection] = []

    def interrupted(connection: h11.Connection) -> None:
        cycles.append(connection)
        if len(cycles) == 2:  # the first is that of the request that makes the job
            raise Interrupted(signal.SIGTERM)
        next_cycle(connection)

    monkeypatch.setattr(h11.Connection, "start_next_cycle", interrupted)
    with (
        FakeServer(["x"], polls=10**6) as server,
        open_way(WAYS["responses"], server.base_url("openai"), Clock().timing()) as llm,
        pytest.raises(Interrupted),
    ):
        llm.complete(PROMPT, Listener())
    assert server.cancelled == ["resp_1"]


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("fault", ["drop", "silence", "garbage", "reset"])
def test_an_interrupt_is_not_held_up_by_a_server_that_does_not_cancel(name, fault):
    begin = time.monotonic()
    with FakeServer(["x"], [Fault(fault, "cancel", times=9)]) as server:
        with open_way(WAYS[name], server.base_url(WAYS[name].provider), Clock().timing(cancel=0.5)) as llm:
            with pytest.raises(KeyboardInterrupt):
                llm.complete(PROMPT, Interrupting("progressed", KeyboardInterrupt()))
    assert time.monotonic() - begin < 8, "another answer is waited for ten seconds"


@pytest.mark.parametrize("name", JOBS)
def test_at_the_deadline_the_job_is_cancelled(name):
    clock = Clock()
    with FakeServer([Answer("x", "stays_queued")], poll_headers={}) as server:
        with open_way(WAYS[name], server.base_url(WAYS[name].provider), clock.timing(), timeout=100) as llm:
            began = clock.now()
            with pytest.raises(
                LLMError, match=r"has not finished the answer within 1 min 40 s \(--llm-timeout\): its job is canceled"
            ):
                llm.complete(PROMPT, Listener())
    assert server.cancelled == ["resp_1"]
    assert clock.ahead <= 100 <= clock.now() - began + 1, "the deadline counts what the machine takes as well"
    polls = [wait for wait in clock.waits if wait > 1e-3]
    assert polls[0] == 0.5
    assert max(polls) <= 15


@pytest.mark.parametrize("name", JOBS)
def test_an_earlier_call_s_job_is_waited_for_no_longer_than_was_said(name):
    clock, waits = Clock(), Fault("status", "poll", 999, body={"id": "resp_1", "status": "queued"})
    with FakeServer([], [waits]) as server:
        with open_way(WAYS[name], server.base_url(WAYS[name].provider), clock.timing(), timeout=1000) as llm:
            with pytest.raises(LLMError, match=r"within 10\.0 s"):
                llm.fetch("resp_1", Listener(), 0.0, 10.0)
    assert clock.ahead <= 10


@pytest.mark.parametrize("name", JOBS)
def test_a_lost_creation_is_repeated_only_so_often(name):
    listener = Listener()
    with FakeServer(["x"], [Fault("drop_mid_body", times=99)]) as server:
        with open_way(WAYS[name], server.base_url(WAYS[name].provider), Clock().timing()) as llm:
            with pytest.raises(
                LLMError, match="gave up after 5 retries: each of the requests may have started an answer"
            ):
                llm.complete(PROMPT, listener)
    assert len(server.jobs) == 6
    assert len(listener.retries) == 5


@pytest.mark.parametrize("name", JOBS)
def test_a_refused_connection_is_no_lost_creation(name):
    with FakeServer(["x"]) as server:
        url = server.base_url(WAYS[name].provider)
    clock, listener = Clock(), Listener()
    with open_way(WAYS[name], url, clock.timing(), timeout=500) as llm:
        with pytest.raises(LLMError, match=r"no connection to .*:\d+ \(Connection refused\); gave up after 4 retries"):
            llm.complete(PROMPT, listener)
    assert sum(clock.waits) == 10
    assert listener.limits == [10, 7.5, 5, 2.5]
    assert listener.steps[0] == "requested"
    assert not listener.replies


def test_a_server_of_ones_own_that_ends_is_not_polled_for_an_hour():
    clock = Clock()
    with FakeServer(["x"], [Fault("drop_mid_body", stage="poll")], polls=1000) as server:

        class Ending(Listener):
            def job_created(self, job_id):
                server.__exit__()

        with open_way(WAYS["responses"], server.base_url("openai"), clock.timing()) as llm:
            with pytest.raises(LLMError, match="start the server there"):
                llm.complete(PROMPT, Ending())
    assert sum(clock.waits) < 12


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("step", ["job_created", "progressed"])
def test_a_job_is_not_cancelled_because_a_file_of_the_log_fails(step, name):
    """Its id stays in the record, whose last state has room on the disk."""
    error = LogError(Path("run.json"), OSError(errno.ENOSPC, "No space left on device"))
    with FakeServer(["x"]) as server:
        with open_way(WAYS[name], server.base_url(WAYS[name].provider), Clock().timing()) as llm:
            with pytest.raises(LogError):
                llm.complete(PROMPT, Interrupting(step, error))
    assert (len(server.jobs), server.cancelled) == (1, [])


@pytest.mark.parametrize("name", WAYS)
def test_a_server_that_comes_up_later_is_reached(name):
    with FakeServer(["x"]) as first:
        port = first.port
    clock = Clock()
    servers = []

    class Starting(Listener):
        def retrying(self, *failed):
            super().retrying(*failed)
            if not servers:
                servers.append(FakeServer(["late"], port=port).__enter__())

    try:
        with open_way(WAYS[name], first.base_url(WAYS[name].provider), clock.timing()) as llm:
            assert llm.complete(PROMPT, Starting()).text == "late"
    finally:
        for server in servers:
            server.__exit__()


@pytest.mark.parametrize("job_id", ["../../admin", "..", "a b", "", "x\n", "a/b?c#d", 7, None, "x" * 2000])
def test_a_job_id_is_one_path_segment(job_id):
    with FakeServer([], [Fault("status", body={"id": job_id, "status": "queued"}, times=9)]) as server:
        with open_way(WAYS["responses"], server.base_url("openai"), Clock().timing()) as llm:
            with pytest.raises(LLMError):
                llm.complete(PROMPT, Listener())
    polled = {request.path for request in server.requests if request.method == "GET"}
    assert all(path.count("/") == len("//") + 1 and "?" not in path for path in polled)


def test_a_reply_without_a_state_is_no_job():
    body = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"message": {"content": "x"}}]}
    with FakeServer(faults=[Fault("status", body=body)]) as server:
        with pytest.raises(
            LLMError, match=r"without an answer \(no status; it contains id, object, choices\)"
        ) as caught:
            ask(WAYS["responses"], server)
    assert (len(server.requests), caught.value.kind) == (1, "refused")
    assert str(caught.value).endswith("if only Chat Completions are served there, name the model chat:gpt-6.2-sol")


def test_failing_jobs_are_not_started_in_a_tight_loop():
    clock = Clock()
    with FakeServer([Answer("", "failed")] * 500) as server:
        with open_way(WAYS["responses"], server.base_url("openai"), clock.timing(), timeout=3600) as llm:
            with pytest.raises(LLMError, match=r"as 'failed' at .*: The job came to nothing; gave up after 5"):
                llm.complete(PROMPT, Listener())
    assert len(server.jobs) == 6
    assert clock.ahead > 30


@pytest.mark.parametrize(
    ("error", "jobs", "kind"),
    [
        ({"code": "backend_failure", "message": "Oops."}, 6, "network"),
        ({"code": "429", "message": "Slow down."}, 6, "quota"),
        ({"code": "data_residency_mismatch", "message": "Not here."}, 1, "refused"),
        ({"code": "server_error", "message": "You exceeded your current quota."}, 1, "quota"),
        ("The prompt is too long", 1, "too_long"),
    ],
)
@pytest.mark.parametrize("name", ["responses", "interactions"])
def test_a_failed_job_is_made_again_by_the_rule_of_all_refusals(name, error, jobs, kind):
    fault = Fault("status", "poll", 9, body={"id": "resp_1", "status": "failed", "error": error})
    with FakeServer(["x"] * 9, [fault]) as server:
        with pytest.raises(LLMError) as caught:
            ask(WAYS[name], server, timeout=3600)
    assert (len(server.jobs), caught.value.kind) == (jobs, kind)


def test_a_failed_job_may_say_why_elsewhere():
    body = {"id": "resp_1", "status": "failed", "status_details": {"error": {"message": "The prompt is too long"}}}
    with FakeServer(["x"], [Fault("status", "poll", body=body)]) as server:
        with pytest.raises(LLMError, match="The prompt is too long; the prompt is too long for"):
            ask(WAYS["responses"], server)


RESPONSE = {"id": "resp_1", "status": "completed", "output": [{"type": "message", "content": "ab"}]}
OUTPUT_TEXT = {"type": "output_text", "text": "ab"}
PARTS = tuple(
    json.dumps(event).encode()
    for event in (
        {"type": "response.output_item.done", "item": RESPONSE["output"][0]},
        {"type": "response.completed", "response": RESPONSE | {"output": []}},
    )
)
FINISHED = {
    "in a list": ("responses", [RESPONSE]),
    "in capitals": ("responses", RESPONSE | {"status": "COMPLETED"}),
    "without a state": ("responses", {"output": RESPONSE["output"]}),
    "as a stream": ("responses", b"event: x\ndata: {}\n\ndata: %s\n\n" % json.dumps({"response": RESPONSE}).encode()),
    "as a stream whose last job has no answer": ("responses", b"data: %s\n\ndata: %s\n\n" % PARTS),
    "with the end of a chat": ("responses", RESPONSE | {"status": "stop"}),
    "succeeded": ("responses", RESPONSE | {"status": "succeeded"}),
    "text as content": ("responses", RESPONSE),
    "contents of type text": (
        "responses",
        RESPONSE | {"output": [{"type": "message", "content": [OUTPUT_TEXT | {"type": "text"}]}]},
    ),
    "output_text alone": ("responses", RESPONSE | {"output": [], "output_text": "ab"}),
    "outputs in place of steps": (
        "interactions",
        {"id": "i", "status": "completed", "outputs": [{"type": "text", "text": "ab"}]},
    ),
}


@pytest.mark.parametrize("form", FINISHED)
def test_a_finished_job_of_a_gateway_is_read_in_its_form(form):
    name, body = FINISHED[form]
    with FakeServer(faults=[Fault("status", body=body)]) as server:
        assert ask(WAYS[name], server)[0].complete_text() == "ab"


def test_a_finished_job_with_the_length_for_its_state_is_cut_off():
    with FakeServer(faults=[Fault("status", body=RESPONSE | {"status": "length"})]) as server:
        assert ask(WAYS["responses"], server)[0].is_cut_off


OVERLOADED = {"error": {"code": "server_is_overloaded", "message": "We are overloaded."}}
BEGUN = {"type": "response.created", "response": {"id": "resp_9", "status": "in_progress", "error": None}}


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("before", [[], [BEGUN]])
def test_an_error_in_a_stream_that_was_not_asked_for_ends_the_job(name, before):
    stream = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in (*before, OVERLOADED))
    with FakeServer(["x"], [Fault("status", body=stream)]) as server:
        assert ask(WAYS[name], server)[0].text == "x"
    assert not [request for request in server.requests if "resp_9" in request.path]


def test_the_error_of_such_a_stream_is_told_by_its_code_alone():
    event = {"type": "error", "code": "context_length_exceeded", "message": ""}
    with FakeServer(["x"], [Fault("status", body=b"data: %s\n\n" % json.dumps(event).encode())]) as server:
        with pytest.raises(LLMError, match=r"context_length_exceeded; .*the prompt is too long") as caught:
            ask(WAYS["responses"], server)
    assert caught.value.kind == "too_long"


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("status", [400, 405, 501])
def test_a_server_that_lets_nobody_ask_for_a_job_is_told_so(name, status):
    fault = Fault("status", "poll", 9, status=status, body={"error": {"message": "Method Not Allowed"}})
    with FakeServer(["x"], [fault]) as server:
        with pytest.raises(LLMError, match=r"Method Not Allowed; .*may not support background jobs") as caught:
            ask(WAYS[name], server)
    assert (len(server.jobs), caught.value.kind) == (1, "refused")


@pytest.mark.parametrize("name", WAYS)
def test_a_real_signal_ends_a_silent_call_at_once(name):
    def interrupt(number, _frame):
        raise Interrupted(number)

    stage = "poll" if WAYS[name].is_background else "call"
    before = signal.signal(signal.SIGALRM, interrupt)
    begin = time.monotonic()
    try:
        with FakeServer(["x"], [Fault("silence", stage)]) as server:
            with open_way(WAYS[name], server.base_url(WAYS[name].provider), Clock().timing(read=30)) as llm:
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                with pytest.raises(Interrupted) as caught:
                    llm.complete(PROMPT, Listener())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught.value.exit_code == 128 + signal.SIGALRM
    assert time.monotonic() - begin < 20, "the call would wait for thirty"
    assert server.cancelled == (["resp_1"] if WAYS[name].is_background else [])


def test_a_server_that_wants_a_key_says_so():
    unauthorized = Fault("status", status=401, body={"error": {"message": "No key."}})
    with FakeServer(["x"], [unauthorized]) as server:
        with pytest.raises(
            LLMError, match=r"answered 401: No key; it requires a key: write one into agent-config/chat-key.txt"
        ):
            ask(WAYS["chat"], server, key=None)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        (
            "responses",
            {"error": {"code": "context_length_exceeded", "message": "Your input exceeds the context window."}},
        ),
        (
            "interactions",
            {"errors": [{"code": "invalid_request", "message": "The input token count (9) exceeds the maximum"}]},
        ),
    ],
)
def test_a_job_that_fails_over_its_length_says_what_to_do(name, body):
    fault = Fault("status", "poll", body={"id": "resp_1", "status": "failed"} | body)
    with FakeServer(["x"], [fault]) as server:
        with pytest.raises(
            LLMError, match=r"the job ended as 'failed' at 127.0.0.1: .*make the prompt smaller"
        ) as caught:
            ask(WAYS[name], server)
    assert str(caught.value).count("exceeds") == 1
