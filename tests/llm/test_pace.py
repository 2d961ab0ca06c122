"""The pace of requests: what is a minute's share of one run is none of another's."""

import multiprocessing
import time

import pytest
from asking import ROOT, WAYS, Clock, ask
from fake_server import FakeServer

from code_commit.errors import MachineError
from code_commit.llm.endpoint import Endpoint, Timing
from code_commit.llm.pace import Pace
from code_commit.settings import Settings

UNCHANGED = Timing()


def pace(folder, timing=UNCHANGED, model="m", **settings: int) -> Pace:
    return Pace(Endpoint(model, "http://127.0.0.1:1/v1", Settings(**settings), ROOT, "", str), folder, timing)


def begin(each: Pace, clock: Clock, tokens: int = 0) -> float:
    """Return how long a request waits."""
    before = clock.ahead
    each.wait(tokens, lambda _: None)
    return round(clock.ahead - before)


def test_the_requests_of_a_minute_go_one_by_one_and_each_model_has_its_own(tmp_path):
    clock = Clock()
    one, two = (pace(tmp_path, clock.timing(), requests_per_minute=6) for _ in range(2))
    assert [begin(each, clock) for each in (one, two, one)] == [0, 10, 10]
    assert begin(pace(tmp_path, clock.timing(), "another", requests_per_minute=6), clock) == 0
    assert begin(pace(tmp_path, clock.timing()), clock) == 0, "one without a limit"


def test_a_prompt_takes_its_share_of_the_tokens_and_so_does_the_answer(tmp_path):
    clock = Clock()
    each = pace(tmp_path, clock.timing(), tokens_per_minute=6_000, requests_per_minute=600)
    assert begin(each, clock, 1_000) == 0
    assert begin(each, clock, 2_000) == 10
    each.add(500)
    assert begin(each, clock, 100) == 25


def test_a_clock_that_was_set_back_holds_up_nobody(tmp_path):
    clock = Clock()
    each = pace(tmp_path, clock.timing(), requests_per_minute=1)
    begin(each, clock)
    clock.ahead -= 3_600
    assert begin(each, clock) == 0


DAMAGED = {
    "binary": bytes(range(128, 192)),
    "half a number": b"1800000000.0 18e",
    "infinity": b"0 inf",
    "infinite times": b"-inf inf",
    "NaN": b"nan nan",
    "no time": b"1800000000.0",
    "one time too many": b"1800000000.0 1800000060.0 1800000060.0",
    "without its point": b"1800000000.0 18000000600",
    "words": b"not a pace",
    "zeros": bytes(40),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_holds_up_nobody_and_is_written_anew(content, tmp_path):
    clock = Clock()
    each = pace(tmp_path, clock.timing(), requests_per_minute=1, tokens_per_minute=30_000)
    begin(each, clock)
    (file,) = (path for path in tmp_path.iterdir() if path.suffix != ".queue")
    file.write_bytes(content)
    assert [begin(each, clock), begin(each, clock)] == [0, 60]
    file.write_bytes(content)
    each.add(30_000)
    assert begin(each, clock) == 60


def test_a_slow_pace_may_take_days(tmp_path):
    clock = Clock()
    each = pace(tmp_path, clock.timing(), tokens_per_minute=100)
    begin(each, clock, 1_000_000)

    def stop(state: str) -> None:
        raise RuntimeError(state)

    with pytest.raises(RuntimeError, match="its turn, 600000 s"):
        each.wait(1, stop)


def _ask_on_and_on(folder, times) -> None:
    each = pace(folder, requests_per_minute=600)
    while True:
        each.wait(0, lambda _: None)
        times.put(time.time())


def test_processes_share_it_and_one_that_is_killed_as_it_waits_holds_up_no_other(tmp_path):
    context = multiprocessing.get_context("spawn")
    times = context.Queue()
    processes = [context.Process(target=_ask_on_and_on, args=[tmp_path, times], daemon=True) for _ in range(3)]
    for process in processes:
        process.start()
    begun = sorted(times.get(timeout=60) for _ in range(9))
    for process in processes:
        process.kill()
        process.join()
    assert begun[-1] - begun[0] > 0.1 * (len(begun) - 1) - 0.05
    before = time.monotonic()
    pace(tmp_path, requests_per_minute=600).wait(0, lambda _: None)
    assert time.monotonic() - before < 20


def test_each_request_for_an_answer_waits_and_not_at_the_cost_of_its_time(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    clock, settings = Clock(), {"tokens_per_minute": 1_000_000, "requests_per_minute": 1, "timeout": 30}
    with FakeServer(["one", "two"]) as server:
        for _ in range(2):
            response, listener = ask(WAYS["chat"], server, timing=clock.timing(), **settings)
    assert response.text == "two"
    assert 55 < clock.ahead < 62
    assert listener.states[0].startswith("waiting for its turn, 60 s (requests_per_minute")


def test_a_pace_that_cannot_be_kept_says_so_before_anything_is_sent(monkeypatch, tmp_path):
    (tmp_path / "code-commit").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with FakeServer() as server:
        with pytest.raises(
            MachineError, match=r"cannot be enforced: .*/code-commit: File exists; name another folder with XDG"
        ):
            ask(WAYS["chat"], server, requests_per_minute=1)
    assert not server.requests
