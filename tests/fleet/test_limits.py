"""The budget of a fleet, when it gives up, and how it slows down."""

import pytest

from code_commit.fleet.limits import Budget, Failures, RateLimiter
from code_commit.fleet.results import Result


def result(cost: float | None, status: str = "success", message: str = "", error: str = "") -> Result:
    code = 0 if status == "success" else 3
    return Result("a", "d", status, code, attempts=1, cost_usd=cost, message=message, error=error)


def test_the_first_tasks_share_the_money_and_nothing_of_it_is_given_twice():
    budget = Budget(8.0)
    assert [budget.take(number, None, 0.0, 64 - number) for number in range(4)] == [2.0, 1.5, 1.125, 0.84375]
    budget.settle(0, 0.5)
    assert budget.take(4, None, 0.0, 1) == pytest.approx(8.0 - 0.5 - 1.5 - 1.125 - 0.84375)
    assert budget.take(5, None, 0.0, 1) is None


def test_each_later_task_gets_what_the_dearest_cost_so_far_or_waits():
    budget = Budget(8.0, spent=1.0, costs=[2.0, 1.0])
    assert [budget.take(number, None, 0.0, 64) for number in range(4)] == [2.0, 2.0, 2.0, None]
    budget.settle(0, 0.5)
    assert budget.take(4, None, 0.0, 64) == 2.0
    assert budget.take(5, None, 0.0, 64) is None


def test_a_limit_of_the_tasks_own_is_its_part():
    budget = Budget(8.0)
    assert budget.take(0, 3.0, 0.0, 100) == 3.0
    assert budget.take(1, 6.0, 0.0, 100) is None, "it would have less than its own, while others may give back"
    assert not budget.settle(0, 0.0)
    assert budget.take(1, 9.0, 0.0, 100) == 8.0


def test_a_part_that_is_too_little_for_the_next_call_is_made_larger():
    budget = Budget(8.0)
    assert budget.take(0, None, 0.0, 8) == 2.0
    assert budget.take(1, None, 0.0, 7) == 1.5
    assert budget.settle(0, 1.0, needed=3.0), "and what it has paid for is not lost"
    assert budget.take(2, None, 3.0, 8) == 3.0
    assert budget.take(3, None, 0.0, 8) is None, "what is not known better counts as dear"
    assert not budget.is_used_up


def test_a_fleet_ends_when_the_rest_is_too_little():
    budget = Budget(1.0, spent=0.25)
    for number in range(3):
        assert not budget.is_used_up
        assert budget.take(number, None, 0.0, 1) == 0.75
        assert budget.settle(number, 0.0, needed=3.0)
    assert budget.is_used_up
    told = "one more call can cost $3.0000, and $0.2500 count as spent; raise --max-cost to continue"
    assert budget.complaint == f"--max-cost 1 is used up: {told}"


def test_a_fleet_without_money_ends_at_once():
    budget = Budget(1.0, spent=1.25)
    assert budget.take(0, None, 0.0, 1) is None
    assert "$1.2500 count as spent" in budget.complaint


@pytest.mark.parametrize("error", ["key", "quota"])
def test_three_refusals_in_a_row_end_a_fleet_with_green_tasks(error):
    failures = Failures(None)
    refused = result(0, "llm_error", "the key was revoked", error)
    ends = [*[result(1)] * 10, refused, refused, result(1), *[refused] * 3]
    assert [failures.allow_more_after(end) for end in ends] == [True] * 15 + [False]
    assert "the key was revoked" in failures.complaint


def test_a_fleet_that_only_fails_ends_with_the_commonest_reasons():
    failures = Failures(None)
    ends = [result(0, "not_set_up", "no key")] * 15 + [result(0, "build_failed", "build: exit code 1")] * 5
    assert [failures.allow_more_after(end) for end in ends] == [True] * 19 + [False]
    assert failures.complaint.split("\n")[1:] == [
        "15 times not set up: no key",
        "5 times build failed: build: exit code 1",
    ]


@pytest.mark.parametrize(("most", "allowed"), [(None, 30), (3, 2)])
def test_a_fleet_goes_on_after_failures_when_some_tasks_are_green(most, allowed):
    failures = Failures(most)
    ends = [result(0), *[result(0, "not_set_up", "no key")] * 30]
    assert sum(failures.allow_more_after(end) for end in ends) == allowed + 1


def test_answers_429_halve_the_tasks_of_a_provider_and_time_brings_them_back():
    pace = RateLimiter(16)
    pace.running = 16
    pace.slow_down()
    pace.slow_down()  # of the same burst
    pace.running = 7
    assert not pace.is_full
    pace.running = 8
    assert pace.is_full
    for _ in range(9):
        pace.running = 9
        pace.ended()
    assert not pace.is_full
    pace.running = 10
    assert pace.is_full, "slowly"


@pytest.mark.parametrize(("has_answered", "pauses"), [(True, 12), (False, 3)])
def test_a_host_that_fails_three_in_a_row_gets_one_at_a_time_until_it_answers_or_is_given_up(
    monkeypatch, has_answered, pauses
):
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    pace = RateLimiter(32)

    def end(*failures):
        pace.running = len(failures)
        for failure in failures:
            pace.ended(failure, has_answered=has_answered)

    end("", "network", "network", "timeout", "network", "network")
    assert (pace.is_full, pace.pause) == (False, 0.0), "of one kind"
    end(*["network"] * 16)
    assert (pace.is_full, pace.pause) == (True, 5.0), "those that began before count once"
    waited = []
    while not pace.is_given_up:
        waited.append(pace.pause)
        now += pace.pause
        assert not pace.is_full
        pace.running = 1
        assert pace.is_full, "one at a time"
        pace.ended("network")
    assert waited == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, *[600.0] * 5][:pauses]
    end("")
    assert (pace.is_given_up, pace.pause) == (False, 0.0)
