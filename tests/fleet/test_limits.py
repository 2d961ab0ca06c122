"""What a fleet may spend, when it gives up, and how it slows down."""

import pytest

from code_commit.fleet.limits import Budget, Failures, Pace
from code_commit.fleet.results import Result

TOO_DEAR = 3.0


def result(cost: float | None, status: str = "success", message: str = "", needed: float = 0.0) -> Result:
    code = 0 if status == "success" else 3
    return Result("a", "d", status, code, attempts=1, cost_usd=cost, message=message, needed_usd=needed)


def test_tasks_share_what_is_left_and_nothing_of_it_is_given_twice(tmp_path):
    budget = Budget(tmp_path, 8.0)
    parts = [budget.take(str(number), None, 0.0, 4 - number) for number in range(4)]
    assert parts == [2.0, 2.0, 2.0, 2.0]
    assert budget.take("5", None, 0.0, 1) is None

    budget.settle("0", result(0.5))
    budget.settle("1", result(None, "llm_error", "the call was lost"))
    assert budget.take("5", None, 0.0, 1) == 1.5, "of a cost that is not known all counts"
    budget.settle("2", None)
    assert budget.take("6", None, 0.0, 1) is None, "of a task that was lost all counts"


def test_a_limit_of_the_tasks_own_is_its_part(tmp_path):
    budget = Budget(tmp_path, 8.0)
    assert budget.take("0", 3.0, 0.0, 100) == 3.0
    assert budget.take("1", 6.0, 0.0, 100) is None, "it would have less than its own, while others may give back"
    assert budget.settle("0", result(0.0, "llm_error", needed=TOO_DEAR), 3.0) == 0.0, (
        "its own limit kept it from the call"
    )
    assert budget.take("1", 9.0, 0.0, 100) == 8.0


def test_a_part_that_is_too_little_for_the_first_call_is_made_larger(tmp_path):
    budget = Budget(tmp_path, 8.0)
    assert budget.take("0", None, 0.0, 8) == 1.0
    assert budget.take("1", None, 0.0, 7) == 1.0
    need = budget.settle("0", result(0.0, "llm_error", needed=TOO_DEAR))
    assert need == pytest.approx(3.0, abs=0.001)
    assert budget.take("2", None, need, 8) == need
    assert budget.take("3", None, 0.0, 8) == need, "what is not known better counts as dear"
    assert not budget.complaint


def test_what_a_killed_fleet_gave_out_counts_as_spent(tmp_path):
    first = Budget(tmp_path, 8.0)
    first.take("0", None, 0.0, 2)
    first.take("1", None, 0.0, 1)
    first.settle("0", result(0.5))
    with (tmp_path / "spending.jsonl").open("a") as file:
        file.write('\n{"2": 3')
    assert Budget(tmp_path, 8.0).take("3", None, 0.0, 1) == 3.5
    assert Budget(tmp_path, 4.0).take("3", None, 0.0, 1) is None


def test_a_fleet_ends_when_the_rest_is_too_little(tmp_path):
    budget = Budget(tmp_path, 1.0)
    for name in "012":
        assert not budget.complaint
        assert budget.take(name, None, 0.0, 1) == 1.0
        assert budget.settle(name, result(0.0, "llm_error", needed=TOO_DEAR))
    assert budget.complaint == "--max-cost 1 is too little for all: $0.0000 are spent; with more it goes on"


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
    pace = Pace(16)
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
