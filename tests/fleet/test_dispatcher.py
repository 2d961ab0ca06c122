"""The end of a fleet that its user interrupts, once, twice, three times; and what it lets a run cost."""

import os
import signal
import subprocess
import time
from collections import Counter
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest
from command import CODE_COMMIT, wait_for
from distributed import CancelledError
from fleet_tools import (
    KEY,
    PRICES,
    RIGHT,
    WRONG,
    descendants_of,
    fleet_words,
    is_running,
    make_answers,
    make_list,
    make_repository,
    processes_with,
    results,
    task,
)

from code_commit.fleet.cluster import Cluster
from code_commit.fleet.dispatcher import Dispatcher, _QueuedTask
from code_commit.fleet.limits import Budget, Demand
from code_commit.fleet.results import TaskOutcome
from code_commit.fleet.tasks import FleetTask
from code_commit.status import Status


def start_here(tasks, *arguments):
    """Start a fleet on this machine, with a folder of workers and a process group of its own, as at a terminal."""
    own = os.environ | {"TMPDIR": str(tasks.parent), "CODE_COMMIT_CHAT_API_KEY": KEY}
    words = [*CODE_COMMIT, *fleet_words(tasks, *arguments)]
    return subprocess.Popen(
        words,
        cwd=tasks.parent,
        env=own,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def workers_of(fleet: int) -> list[int]:
    """Return the processes of the workers of a fleet on this machine."""
    spawned = processes_with("--multiprocessing-fork")
    return [pid for pid in descendants_of(fleet) if pid in spawned and is_running(pid)]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["on a cluster", "here"])
def test_the_first_interrupt_lets_a_call_and_a_build_end_and_nothing_is_paid_for_twice(
    where, cluster, server, tmp_path
):
    """One task is in its build, one in its call, one waits; the whole process group has the signal."""
    (marks := tmp_path / "marks").mkdir()
    build = f"touch {marks}/$$; while ! test -e {marks}/go; do sleep 0.1; done; grep -q '^ok$' ok.txt"
    repository = make_repository(tmp_path / "repository", build)
    lines = [task(name, repository, settings=server.settings | PRICES) for name in ("one", "two", "waits")]
    tasks = make_list(tmp_path / "tasks.jsonl", *lines)
    start = start_here if where == "here" else cluster.start_fleet
    server.answer = lambda number: (200, WRONG if number <= 2 else RIGHT)
    server.hold_from(2)
    with start(tasks, "--at-once", "2", "--max-cost", "9") as fleet:
        wait_for(lambda: list(marks.iterdir()) and len(server.calls) == 2)
        os.killpg(fleet.pid, signal.SIGINT) if where == "here" else fleet.send_signal(signal.SIGINT)
        time.sleep(2)
        assert is_running(fleet.pid)
        (marks / "go").touch()
        server.go.set()
        _, complaint = fleet.communicate(timeout=300)
    assert fleet.returncode == 130, complaint
    assert "2 running tasks may finish the current call and build; a second interrupt ends everything now" in complaint
    assert "rerun the same command to continue" in complaint
    assert len(server.calls) == 2, "no further call"
    found = results(tmp_path)
    assert {name: line["status"] for name, line in found.items()} == {"one": "interrupted", "two": "interrupted"}
    assert [(line["cost_usd"], line["unsettled_usd"]) for line in found.values()] == [(pytest.approx(0.05), 0.0)] * 2

    with start(tasks, "--max-cost", "9") as fleet:
        fleet.communicate(timeout=300)
    assert fleet.returncode == 0
    assert len(server.calls) == 2 + 2 + 1
    costs = {name: line["cost_usd"] for name, line in results(tmp_path).items()}
    assert costs == {"one": pytest.approx(0.1), "two": pytest.approx(0.1), "waits": pytest.approx(0.05)}


@pytest.mark.slow
def test_a_fleet_that_is_interrupted_as_it_builds_its_baselines_asks_nothing(cluster, server, tmp_path):
    build = f"touch {tmp_path}/built; while ! test -e {tmp_path}/go; do sleep 0.1; done; exit 1"
    tasks = make_list(
        tmp_path / "tasks.jsonl", task("a", make_repository(tmp_path / "one", build), settings=server.settings)
    )
    with cluster.start_fleet(tasks, str(tasks), "--out", str(tmp_path / "out"), listed=False) as fleet:
        wait_for((tmp_path / "built").exists)
        fleet.send_signal(signal.SIGINT)
        (tmp_path / "go").touch()
        _, complaint = fleet.communicate(timeout=300)
    assert (fleet.returncode, server.calls) == (130, []), complaint
    assert (tmp_path / "out" / "baselines.jsonl").read_text().count("\n") == 1, "what was built is known"


@pytest.mark.slow
def test_a_call_that_waits_for_its_turn_or_for_another_try_is_not_made(cluster, server, tmp_path):
    repository = make_repository(tmp_path / "repository")
    paced = server.settings | {"requests_per_minute": 1}
    lines = [task(name, repository, settings=paced) for name in "ab"]
    lines.append(task("c", repository, settings=server.settings | {"model": "chat:other"}))
    server.answer = lambda number: (429, "") if number > 1 else (200, WRONG)
    with cluster.start_fleet(make_list(tmp_path / "tasks.jsonl", *lines)) as fleet:
        wait_for(lambda: len(server.calls) == 3)
        fleet.send_signal(signal.SIGINT)
        _, complaint = fleet.communicate(timeout=30)
    assert fleet.returncode == 130, complaint
    assert len(server.calls) <= 4, complaint


@pytest.mark.slow
def test_the_second_interrupt_ends_what_runs_the_third_leaves_and_still_nothing_runs_on(tmp_path):
    """The whole process group has it, as from a terminal; the build takes five seconds to end."""
    repository = make_repository(tmp_path / "repository", f"trap '' TERM; touch {tmp_path}/built; sleep 666; sleep 666")
    answers = make_answers(tmp_path / "answers", RIGHT)
    with start_here(make_list(tmp_path / "tasks.jsonl", task("a", repository, answers)), "--at-once", "1") as fleet:
        wait_for((tmp_path / "built").exists)
        for told in (
            "1 running task may finish the current call and build; a second interrupt ends everything now\n",
            "ending 1 running task; an interrupt exits without waiting\n",
        ):
            os.killpg(fleet.pid, signal.SIGINT)
            assert fleet.stderr.readline() == told
        begun = time.monotonic()
        os.killpg(fleet.pid, signal.SIGINT)
        assert fleet.wait(timeout=300) == 130
        assert time.monotonic() - begun < 3 or processes_with(str(tmp_path)), "it does not wait for the build's end"
        assert fleet.stderr.read() == ""
    assert results(tmp_path) == {}
    wait_for(lambda: not processes_with(str(tmp_path)), pause=0.2)


@pytest.mark.slow
def test_a_worker_that_starts_anew_does_not_get_the_terminals_interrupt_and_its_builds_get_their_own(tmp_path):
    build = (
        f"touch {tmp_path}/built-$$; trap 'touch {tmp_path}/trapped' INT; kill -INT $$; sleep 1; test -e {tmp_path}/go"
    )
    answers = make_answers(tmp_path / "answers", RIGHT)
    line = task("a", make_repository(tmp_path / "repository", build), answers, settings={"sandbox": "off"})
    with start_here(make_list(tmp_path / "tasks.jsonl", line), "--at-once", "1") as fleet:
        wait_for((tmp_path / "trapped").exists)
        (worker,) = workers_of(fleet.pid)
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: workers_of(fleet.pid) not in ([], [worker]))
        os.killpg(fleet.pid, signal.SIGINT)
        _, complaint = fleet.communicate(timeout=300)
    assert fleet.returncode == 130, complaint
    assert "Traceback" not in complaint


@pytest.mark.parametrize(("log", "limit"), [((b"", 0.0), 0.3), ((b"a log", 0.2), 0.5)], ids=["anew", "continued"])
def test_a_run_may_cost_its_grant_and_what_it_has_cost_itself(log, limit):
    """The other runs of the task, which were lost, have cost 55 cents: they count already."""
    sent, dispatcher = [], Dispatcher(SimpleNamespace(), SimpleNamespace(), "fleet")
    dispatcher._client = SimpleNamespace(submit=lambda _, *arguments, **__: sent.append(arguments) or Future())
    dispatcher._cluster = Cluster(dispatcher._client, "fleet", 1, is_local=True, wait=1.0, say=print)
    dispatcher._store = SimpleNamespace(log_of=lambda _: log, paid_for=lambda _: 0.55 + log[1])
    dispatcher._send(1, _QueuedTask(FleetTask(**task("a", "https://example.org/x"))), 0.3)
    assert sent[0][2] == pytest.approx(limit)


@pytest.fixture
def dispatcher() -> Dispatcher:
    """A dispatcher whose store knows of a task that its run has cost 4 dollars, and all of its runs 8; one at a time.

    `told` has what it is told; the dollars are powers of two, so that a sum says of which of them it is.
    """
    told: list[tuple[object, ...]] = []

    def tells(name: str):
        return lambda *given: told.append((name, *given)) or 0.0

    names = ("begin", "end", "lose", "note", "count", "take", "keep", "require_room")
    store = {name: tells(name) for name in names}
    made = Dispatcher(SimpleNamespace(), SimpleNamespace(), "fleet")
    made.told, made._is_drained, made._goes_on = told, False, True
    made._store = SimpleNamespace(**store, log_of=lambda _: (b"log", 4.0), paid_for=lambda _: 8.0)
    made._budget = Budget(64.0)
    submitted = Future()
    made._table = SimpleNamespace()
    made._client = SimpleNamespace(
        submit=lambda _, *given, **__: told.append(("submit", given[2], given[3])) or submitted,
        sync=lambda *_, **__: None,
        scheduler=SimpleNamespace(event_clear=None),
        status="running",
    )
    made._cluster = Cluster(made._client, "fleet", 1, is_local=True, wait=1.0, say=print)
    made._left = Counter({"https://example.org/x": 1})
    return made


def queued(**facts) -> _QueuedTask:
    return _QueuedTask(FleetTask(**task("a", "https://example.org/x", settings={"max_cost": 32.0})), **facts)


def test_what_a_start_may_cost_is_told_before_it_costs_it(dispatcher):
    sent = queued()
    dispatcher._waiting[""].extend([sent, queued()])
    dispatcher._send_more()
    assert dispatcher.told == [("submit", 4.0 + 0.01, b"log")], "one at a time, as dear as the least grant"
    dispatcher._attend("begun", 1, "worker")
    dispatcher._attend("done", 2, "")
    assert dispatcher.told[1:] == [("begin", "a", f"{dispatcher._fleet}-1", 4.0 + 0.01, 4.0)]
    assert (sent.spent, sent.continued, dispatcher._limiters[""].running) == (8.0, 4.0, 1)
    assert sent.needs(Budget(1.0, answers={"a": (2.0, 3)})) == Demand("", 28.0, 4.0, 0.0, 2.0, 3)


def test_each_log_that_has_grown_is_fetched_and_kept_once_there_is_room(dispatcher):
    answers = [Future() for _ in range(4)]
    asked = iter(answers)
    dispatcher._cluster = SimpleNamespace(ask=lambda *_: next(asked))
    dispatcher._sent[1] = sent = queued()
    for _ in answers:
        dispatcher._attend("logged", 1, "worker")
    answers[1].set_result({1: (7.5, b"a later log"), 2: (7.6, b"of a task that has ended")})
    answers[0].set_result({1: (7.4, b"a log that was overtaken")})
    answers[2].set_exception(OSError("the worker is lost"))
    answers[3].cancel()
    for _ in answers:
        dispatcher._attend(*dispatcher._inbox.get_nowait())
    assert dispatcher.told == [("require_room",)] * 4 + [("keep", sent.task, b"a later log")]


def test_what_a_task_has_cost_is_neither_counted_twice_nor_lost(dispatcher):
    """It had cost 2 dollars as it was sent, and its run 1; of the 16 that it was granted 6 were spent."""
    for outcome, continued, left in ((TaskOutcome(queued().task.ended(Status.SUCCESS)), 7.0, 58.0), (None, 4.0, 52.0)):
        sent = queued(spent=2.0, continued=1.0)
        dispatcher._budget.take(7, Demand("", call=16.0))
        assert not dispatcher._settle(7, sent, outcome)
        assert (sent.spent, sent.continued) == (8.0, continued)
        assert dispatcher._budget.take(8, Demand("", call=100.0)) == left
        dispatcher._budget.release(8, 0.0)


def test_a_lost_scheduler_gives_the_rest_of_each_grant_back_and_counts_each_start_as_lost(dispatcher):
    for number, sent in ((1, queued(spent=2.0, start="s1")), (2, queued(spent=8.0))):
        dispatcher._budget.take(number, Demand("", call=16.0))
        dispatcher._sent[number] = sent
    waiting, dispatcher._last = queued(), 2
    dispatcher._waiting[""].append(waiting)
    assert dispatcher._give_up() == [queued().task] * 3
    assert dispatcher.told == [("lose", "a", "s1")]
    assert dispatcher._budget.take(3, Demand("", call=100.0)) == 64.0 - 6.0
    assert (dispatcher._sent, dispatcher._waiting) == ({}, {})


ENDS = {
    # what comes back, whether it waits again and in which place, what is noted and counted
    "a result": (Status.SUCCESS, 0.0, None, ["count", "take", "end"]),
    "one that could go on with more money": (Status.LLM_ERROR, 32.0, 1, ["count", "note", "end"]),
    "none, its worker is lost": (None, 0.0, 0, ["lose"]),
}


@pytest.mark.parametrize(("status", "needed", "place", "told"), ENDS.values(), ids=ENDS)
def test_what_comes_back_is_handed_over_once_or_waits_again(status, needed, place, told, dispatcher):
    sent, other = queued(start="s1"), queued()
    dispatcher._budget.take(1, Demand("", call=16.0))
    dispatcher._sent[1], dispatcher._limiters[""].running = sent, 1
    dispatcher._waiting[""].append(other)
    dispatcher._cluster.bundles["https://example.org/x"] = b"bundle"
    sent.future = Future()
    if status:
        sent.future.set_result(TaskOutcome(replace(sent.task.ended(status, "why"), needed_usd=needed, start="s1")))
    else:
        sent.future.set_exception(CancelledError())
    dispatcher._accept_result(1, sent)
    waiting = [*dispatcher._waiting[""]]
    assert [each is sent for each in waiting] == [number == place for number in range(1 + (place is not None))]
    assert [name for name, *_ in dispatcher.told] == told
    assert (sent.start, bool(dispatcher._left["https://example.org/x"])) == ("", place is not None)
    assert ("https://example.org/x" in dispatcher._cluster.bundles) == bool(status and place is not None)
