"""The budget of a fleet, when it gives up, and how it slows down."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from code_commit.commands.results import Result
from code_commit.fleet.limits import Budget, Demand, Failures, RateLimiter


def result(cost: float | None, status: str = "success", message: str = "", error: str = "") -> Result:
    code = 0 if status == "success" else 3
    return Result("a", "d", status, code, attempts=1, cost_usd=cost, message=message, error=error)


ONE = Demand("one", answer=0.08, attempts=4)
"""A task whose shortest useful answer costs 8 cents; it may ask for four."""


def test_a_task_gets_what_its_useful_answers_cost_until_another_tells_what_it_costs():
    budget = Budget(1.0)
    assert [budget.take(number, ONE) for number in range(4)] == [0.32, 0.32, 0.32, None]
    budget.settle(0, 0.02)
    assert budget.take(4, ONE) == 0.08, "a useful answer, though the task cost less"
    budget.settle(1, 0.3)
    budget.settle(2, 0.0)
    assert budget.take(5, ONE) == 0.3, "the dearest task so far"
    assert Budget(1.0, spent=0.5, dearest={"one": 0.2}).take(0, ONE) == 0.2


def test_a_kill_takes_no_more_than_a_task_can_use_and_tells_no_task_s_cost():
    budget = Budget(1.0)
    budget.take(0, ONE)
    budget.settle(0, 0.02)
    for number in range(1, 11):
        assert budget.take(number, ONE) == pytest.approx(0.08)
        budget.release(number, 0.08)


def test_a_host_s_tasks_neither_wait_for_those_of_another_nor_cost_as_much():
    budget, other = Budget(1.0, dearest={"dear": 0.75}), Demand("dear", answer=0.01)
    assert budget.take(0, other) == 0.75
    assert budget.take(1, other) is None
    assert budget.take(2, ONE._replace(attempts=1)) == 0.08
    budget.settle(2, 0.0)
    for number in range(3, 6):
        budget.release(number - 1, 0.0)
        budget.release(0, 0.0)
        budget.take(number, other)
        assert budget.settle(number, 0.0, call=2.0)
    assert (budget.is_used_up, budget.is_used_up_for("dear"), budget.is_used_up_for("one")) == (True, True, False)
    assert "one more call can cost $2.0000" in budget.complaint


def test_a_limit_of_the_tasks_own_is_the_most_that_it_gets():
    budget = Budget(8.0)
    assert budget.take(0, ONE._replace(limit=0.1)) == 0.1
    assert not budget.settle(0, 0.05, call=0.3), "more money of the fleet would not help"
    assert budget.take(1, ONE._replace(limit=3.0)) == 0.08


def test_a_grant_that_is_too_little_for_the_next_call_is_made_larger():
    budget = Budget(8.0, dearest={"one": 0.02})
    assert budget.take(0, ONE) == 0.08
    assert budget.settle(0, 0.0, call=0.5), "of its prompt nothing was known"
    assert budget.take(1, ONE) == 0.5, "what is not known better counts as dear"
    assert budget.settle(1, 0.4, call=0.5), "and what it has paid for is not lost"
    assert budget.take(2, ONE._replace(call=0.5, spent=0.4)) == 0.9, "the call, and as much again as it has spent"
    assert budget.settle(2, 0.4, call=0.5)
    assert budget.take(3, ONE._replace(call=0.1, spent=0.08)) == pytest.approx(0.42), "or what its answers may cost"
    assert not budget.is_used_up


def test_what_a_host_s_tasks_cost_and_need_is_kept_whatever_the_latest_one_tells():
    budget = Budget(64.0, dearest={"one": 2.0})
    for number, (spent, cost, dearest) in enumerate([(1.0, 2.0, 3.0), (0.0, 1.0, 3.0), (4.0, 1.0, 5.0)]):
        budget.take(number, ONE._replace(spent=spent))
        assert not budget.settle(number, cost)
        assert budget.take(9, ONE) == dearest, "the run that it continued counts too"
        budget.release(9, 0.0)
    for number, call in enumerate([16.0, 8.0, 32.0], start=3):
        budget.take(number, ONE)
        assert budget.settle(number, 0.0, call=call)
    assert budget.take(9, ONE) == 8.0, "the least call that was too dear may be the next one's"
    assert budget.take(10, ONE._replace(call=8.0)) == 8.0, "a call before which nothing was spent needs no more"


def test_a_host_is_given_up_after_three_in_a_row_for_which_all_the_rest_was_too_little():
    budget = Budget(1.0)
    for number in range(3):
        budget.take(number, ONE)
    for number in range(3):
        budget.settle(number, 0.0, call=3.0)
    assert not budget.is_used_up, "but for the last of them others could give money back"
    counted = []
    for number, call in enumerate([3.0, 0.0, 3.0, 3.0, 3.0]):
        budget.take(number, ONE)
        budget.settle(number, 0.0, call=call)
        counted.append(budget.is_used_up_for("one"))
    assert counted == [False] * 4 + [True], "one of them had enough"


def test_what_a_host_needs_that_is_not_given_up_is_not_told():
    budget, other = Budget(1.0), Demand("other", answer=0.01)
    budget.take(0, other)
    budget.settle(0, 0.0, call=2.0)
    for number in range(1, 4):
        budget.take(number, ONE)
        budget.settle(number, 0.0, call=3.0)
    assert "one more call can cost $3.0000" in budget.complaint


def test_without_a_price_here_a_run_tells_what_it_needs():
    budget = Budget(1.0)
    assert budget.take(0, Demand("")) == 0.01
    assert budget.settle(0, 0.0, call=0.25)
    assert budget.take(1, Demand("")) == 0.25


def test_a_fleet_ends_when_the_rest_is_too_little():
    budget = Budget(1.0, spent=0.25)
    for number in range(3):
        assert not budget.is_used_up
        assert budget.take(number, ONE._replace(call=3.0 * bool(number))) == (0.75 if number else 0.32)
        assert budget.settle(number, 0.0, call=3.0)
    assert budget.is_used_up
    told = "up to $0.2500 was spent, and one more call can cost $3.0000; raise it to continue"
    assert budget.complaint == f"--max-cost 1 is too low to go on: {told}"


def test_a_fleet_without_money_ends_at_once():
    budget = Budget(1.0, spent=1.25)
    assert budget.take(0, ONE) is None
    assert "up to $1.2500 was spent" in budget.complaint


amounts = st.floats(0.0, 2.0)
needs = st.builds(
    Demand,
    st.sampled_from(["one", "two"]),
    st.none() | st.floats(0.001, 2.0),
    spent=amounts,
    call=amounts,
    answer=amounts,
    attempts=st.integers(1, 4),
)
ends = st.sampled_from(["ended", "came back", "lost"])


@settings(max_examples=200, deadline=None, database=None)
@given(limit=st.floats(0.1, 5.0), history=st.lists(st.tuples(needs, st.integers(0, 3), ends, st.floats(0.0, 1.0))))
def test_whatever_ends_and_is_lost_no_more_is_granted_and_spent_than_the_limit(limit, history):
    budget, granted, spent = Budget(limit), dict[int, float](), 0.0
    for number, (need, which, end, part) in enumerate(history):
        grant = budget.take(number, need)
        is_waiting = grant is None
        assert not is_waiting or granted or spent >= limit - 1e-6, "it waits only for others"
        if grant is not None:
            granted[number] = grant
            useful = min(need.answer, need.limit or need.answer)
            assert grant >= useful - 1e-9 or sum(granted.values()) + spent >= limit - 1e-6, "or it is all the rest"
        assert sum(granted.values()) + spent <= limit + 1e-6
        if granted and (one := [*granted][which % len(granted)]) is not None:
            cost = granted.pop(one) * part
            spent += cost
            if end == "lost":
                budget.release(one, cost)
            else:
                budget.settle(one, cost, call=need.answer if end == "came back" else 0.0)


@pytest.mark.parametrize("error", ["key", "quota"])
def test_three_refusals_in_a_row_end_a_fleet_with_green_tasks(error):
    failures = Failures(None)
    refused = result(0, "llm_error", "the key was revoked", error)
    ends = [*[result(1)] * 10, refused, refused, result(1), *[refused] * 3]
    assert [failures.allow_more_after(end) for end in ends] == [True] * 15 + [False]
    told = "starting no more (the provider refuses the key, or its account has no money left):\n5 tasks: LLM error: the key was revoked"
    assert told in failures.complaint


def test_a_fleet_that_only_fails_ends_with_the_commonest_reasons():
    failures = Failures(None)
    ends = [result(0, "not_set_up", "no key")] * 15 + [result(0, "build_failed", "build: exit code 1")] * 5
    assert [failures.allow_more_after(end) for end in ends] == [True] * 19 + [False]
    assert failures.complaint.split("\n")[1:] == [
        "15 tasks: not set up: no key",
        "5 tasks: build failed: build: exit code 1",
    ]


@pytest.mark.parametrize(("most", "allowed"), [(None, 30), (3, 2)])
def test_a_fleet_goes_on_after_failures_when_some_tasks_are_green(most, allowed):
    failures = Failures(most)
    ends = [result(0), *[result(0, "not_set_up", "no key")] * 30]
    assert sum(failures.allow_more_after(end) for end in ends) == allowed + 1


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
    assert (pace.is_given_up, pace.pause, pace.is_full) == (False, 0.0, False)
