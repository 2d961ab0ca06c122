"""The sum of what all starts of a fleet have cost, by the logs of unfinished tasks and by the results."""

import json
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from command import git, wait_for
from fleet_tools import PRICES, RIGHT, make_list, make_repository, pending, processes_with, results, task
from hypothesis import given, settings
from hypothesis import strategies as st

from code_commit.commands.results import RESULTS, Result
from code_commit.errors import LogError, NotSetUpError
from code_commit.exchange import Cost
from code_commit.fleet.baseline import Baselines
from code_commit.fleet.limits import Budget, Demand, Failures
from code_commit.fleet.page import Pages
from code_commit.fleet.results import TaskOutcome, load_lines, load_results, packed, recorded_cost, reserve_room, unpack
from code_commit.fleet.table import FleetTable
from code_commit.fleet.tasks import FleetTask
from code_commit.fleet.unfinished import STARTS, ResultStore, Unfinished, cost_in_log, latest_log, log_path, starts_file
from code_commit.runs.record import Attempt, FileChoice, RunRecord, load_run_record
from code_commit.status import Status


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_choice_of_files_that_is_pending_as_its_log_is_kept_counts_once(is_killed, cluster, server, tmp_path):
    root = make_repository(tmp_path / "one")
    (root / "long.txt").write_text("too long to go in whole\n" * 4000)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "long")
    line = task("one", root, settings=server.settings | PRICES | {"rollup": "select"})
    server.answer = lambda number: (200, RIGHT if number == 2 + is_killed else "^^^files\nok.txt\n^^^end\n")
    server.hold_from(1)
    words = make_list(tmp_path / "tasks.jsonl", line), "--json", "--max-cost", "2"
    with cluster.start_fleet(*words) as fleet:
        wait_for(lambda: pending(tmp_path / "out"))
        if is_killed:
            fleet.kill()
            fleet.wait()
            wait_for(lambda: not any(processes_with(f"{cluster.root}/{name}/") for name in cluster.workers))
        server.go.set()
        output, _ = ("", "") if is_killed else fleet.communicate(timeout=300)
    if is_killed:
        output = cluster.run_fleet(*words).stdout
    costs = (pytest.approx(0.1), pytest.approx(0.5 if is_killed else 0.0))
    result, totals = results(tmp_path)["one"], json.loads(output)
    assert (result["status"], result["cost_usd"], result["unsettled_usd"]) == ("success", *costs)
    assert (totals["cost_usd"], totals["unsettled_usd"]) == costs


@pytest.mark.parametrize(
    ("kept", "steps", "known", "is_taken"),
    [
        pytest.param(None, 1, "another", True, id="a run that is not known"),
        pytest.param(None, 1, "it", False, id="a run that has a result: --failed begins anew"),
        pytest.param(0, 1, "another", True, id="the same run, further"),
        pytest.param(1, 1, "another", False, id="the same run, as far"),
        pytest.param(2, 1, "another", False, id="the same run, less far"),
        pytest.param(1, 1.5, "another", True, id="the same run, with the job of its next answer"),
        pytest.param(2, 1.5, "another", False, id="the same run, before that job has its answer"),
    ],
)
def test_a_log_that_a_worker_kept_is_taken_up_where_it_tells_more(kept, steps, known, is_taken, tmp_path):
    name = f".a.{'0' * 16}.log"
    if kept is not None:
        (tmp_path / name).write_bytes(packed_run(kept))
    unfinished = Unfinished(tmp_path, [Result("a", "", "build_failed", 1, runs={known: (0.05, 0.0)})])
    before = unfinished.spent.highest
    cost = unfinished.take_up({name: packed_run(steps), f"../{name}": packed_run(9), name.upper(): b"damaged"})
    assert cost == pytest.approx(0.05 if is_taken and steps == 1 else 0.0)
    assert unfinished.spent.highest == pytest.approx(before + cost)
    found = [path.read_bytes() for path in tmp_path.glob(".*")]
    assert found == ([packed_run(steps)] if is_taken else [] if kept is None else [packed_run(kept)])
    assert not (tmp_path.parent / name).exists()


def test_a_damaged_log_is_told_and_one_from_a_worker_is_not_taken(tmp_path):
    name, log = f".a.{'0' * 16}.log", packed_run(1)
    middle = len(log) // 2
    damaged = [log[:place] for place in range(0, len(log) - 60, 7)]
    damaged += [
        log[:middle] + b"\xff" * 9 + log[middle + 9 :],
        b"\x1f\x8b" + bytes(99),
        packed({}, {"run.json": b"[]"}),
    ]
    for content in damaged:
        (tmp_path / name).unlink(missing_ok=True)
        assert Unfinished(tmp_path, []).take_up({name: content}) == 0.0
        (tmp_path / name).write_bytes(content)
        with pytest.raises(NotSetUpError, match="is damaged, so"):
            Unfinished(tmp_path, [])


def packed_run(steps: float) -> bytes:
    return packed({}, {"run.json": json.dumps(asdict(record_of(steps))).encode()})


def record_of(steps: float) -> RunRecord:
    """Return the record of the run `it`, which tells of so many answers, 5 cents each; a job is half one."""
    attempts = [Attempt(number, "repair", finish_reason="stop", cost_usd=0.05) for number in range(1, int(steps) + 1)]
    if steps % 1:
        attempts.append(Attempt(int(steps) + 1, "repair", job_id="resp_1", unsettled_usd=[0.0]))
    return RunRecord("1", "it", "run", "2026-11-21T19:51:35.123Z", "root", "log", 1, attempts=attempts)


BOUND, PRICE = 0.5, 0.05
ENDS = ("ends", "failed", "client", "scheduler", "worker", "disk", "all")


class Start:
    """A start of a task on a simulated worker: its run asks a server, which bills each request that is sent."""

    def __init__(self, folder: Path, name: str, log: bytes, most: float) -> None:
        self.name, self.most, self._folder, self.is_asking, self.answered = name, most, folder, False, 0.0
        self._begun = cost_in_log(log)
        unpack(log, folder)
        known = folder / "run.json"
        self.record = load_run_record(known.read_bytes()) if known.exists() else None

    def step(self) -> float:
        """Send a request, or take its answer; return what the server bills."""
        self.record = self.record or RunRecord("1", f"run of {self.name}", "run", "2026-11-21T19:51:35.123Z", "", "", 1)
        if self.is_asking:
            attempt = self.record.attempts[-1]
            attempt.unsettled_usd.pop()
            attempt.cost_usd, attempt.finish_reason, self.is_asking = (attempt.cost_usd or 0.0) + PRICE, "stop", False
            self.answered += PRICE
        elif self.record.cost.highest + BOUND <= self.most + 1e-9:
            self.record.attempts.append(Attempt(len(self.record.attempts) + 1, "repair", unsettled_usd=[BOUND]))
            self.is_asking = True
            return PRICE
        return 0.0

    def log(self, *, is_over: bool) -> bytes:
        starts = {STARTS: starts_file(self._folder, f"{self.name} {self._begun!r}", is_over=is_over)}
        return packed({}, ({"run.json": json.dumps(asdict(self.record)).encode()} if self.record else {}) | starts)


class Fleet:
    """A client with its OUT, two workers with disks of their own, and a server that bills what it is asked.

    A task that failed begins another run with its next start, as with `--failed`.
    """

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder, self.limit, self.billed, self.answered, self.clients = folder, limit, 0.0, 0.0, 0
        self.task = FleetTask(id="a", repository="https://example.org/x", query="q")
        self.disks: dict[str, bytes] = {}
        self.out = folder / "out"
        self.out.mkdir()
        (self.out / RESULTS).touch()
        self.start_client()

    def start_client(self) -> None:
        self.clients += 1
        results = load_results(self.out)
        self.unfinished = Unfinished(self.out, load_lines(self.out))
        pages, table = Pages(self.out, ["a"], results), FleetTable(1, results.values(), quiet=True)
        self.store = ResultStore(self.unfinished, table, Failures(None), pages, Baselines(self.out, []))
        self.take_up()
        self.budget = Budget(self.limit, self.unfinished.spent.highest)

    def take_up(self) -> None:
        for log in self.disks.values():
            self.store.take_up({log_path(self.out, self.task).name: log})

    def live(self, number: int, own: float, worker: str, steps: int, looks: set[int], end: str) -> None:
        """Start the task on a worker, let its run take so many steps, look at its log after some, and end it."""
        log, continued = self.store.log_of(self.task)
        spent, part = self.store.paid_for(self.task), self.budget.take(number, Demand("", own, answer=own))
        if part is None:
            return
        (self.folder / "kept").write_bytes(self.disks.get(worker, b""))
        fleet, most = f"code-commit-{self.clients}", continued + part
        name = f"{fleet}-{number}"
        start = Start(self.folder / name, name, latest_log(log, self.folder / "kept", fleet), most)
        self.store.begin("a", name, most, continued)
        for step in range(steps):
            self.billed += start.step()
            self.disks[worker] = start.log(is_over=False)
            if step in looks:
                self.store.keep(self.task, self.disks[worker])
        self.answered += start.answered
        if end in ("ends", "failed", "client", "scheduler"):
            self.disks[worker] = start.log(is_over=True) if start.record else self.disks.get(worker, b"")
        if end in ("ends", "failed"):
            self.take(start, Status.BUILD_FAILED if end == "failed" else Status.INTERRUPTED, self.disks[worker])
        elif end in ("worker", "disk", "scheduler"):
            self.store.lose("a", name)
        if end == "disk":
            self.disks.pop(worker, None)
        if end == "scheduler":
            self.take_up()
        self.budget.release(number, self.store.paid_for(self.task) - spent)
        if end in ("client", "all", "failed"):
            self.start_client()

    def take(self, start: Start, status: Status, log: bytes) -> None:
        if start.record:
            cost = recorded_cost(start.record)
            costs = {"cost_usd": cost.settled, "unsettled_usd": cost.unsettled}
            result = replace(self.task.ended(status), run=start.record.run, start=start.name, **costs)
            self.store.count(result, log)
            self.store.take(self.task, TaskOutcome(result, log=log))
        self.store.end("a", start.name)


places = st.sampled_from("ab"), st.integers(0, 5), st.sets(st.integers(0, 4)), st.sampled_from(ENDS)
life = st.tuples(st.sampled_from([0.6, 1.1]), *places)


LIVES = {
    "a scheduler is lost twice": (
        [(1.1, "a", 2, {4}, "scheduler"), (0.6, "b", 4, {0, 2}, "ends"), (1.1, "a", 4, {0, 1, 2, 4}, "scheduler")],
        1.2,
    ),
    "another worker goes on": ([(0.6, "a", 5, {2, 3}, "worker"), (1.1, "b", 4, {0, 1}, "ends")], 1.2),
    "a disk is lost after a worker": (
        [(0.6, "b", 2, {0, 1}, "client"), (0.6, "a", 2, set(), "worker"), (0.6, "b", 3, {0, 3}, "disk")],
        1.2,
    ),
    "starts that ask nothing": (
        [
            (1.1, "b", 3, {2, 3}, "all"),
            (1.1, "a", 0, set(), "ends"),
            (1.1, "a", 0, {3, 4}, "client"),
            (1.1, "b", 1, {2, 3, 4}, "ends"),
            (0.6, "a", 4, {0, 4}, "all"),
        ],
        6.0,
    ),
    "the limit is reached": ([(0.6, "a", 5, {2}, "ends")], 0.6),
    "two starts that are lost wrote the same log": (
        [(0.6, "a", 3, {2}, "all"), (0.6, "b", 0, {1, 2, 3, 4}, "scheduler"), (1.1, "a", 5, {0, 3}, "disk")],
        1.2,
    ),
    "what was pending has cost less": ([(0.6, "a", 2, {0}, "all")], 6.0),
}


@pytest.mark.parametrize(("lives", "limit"), LIVES.values(), ids=LIVES)
def test_what_is_told_covers_the_bill(lives, limit):
    require_truth(lives, limit)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, database=None)
@given(lives=st.lists(life, min_size=1, max_size=6), limit=st.sampled_from([0.6, 1.2, 6.0]))
def test_whatever_is_killed_what_is_told_covers_the_bill_and_keeps_to_the_limit(lives, limit):
    require_truth(lives, limit)


def require_truth(lives, limit) -> None:
    """The settled part is what arrived; with the rest it is never less than the bill, and never more than the limit.

    Only what a lost worker had not told when another went on with the run is not in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), limit)
        for number, each in enumerate(lives):
            fleet.live(number, *each)
        told = fleet.unfinished.spent
        fleet.start_client()
        again = fleet.unfinished.spent
    assert (told.settled or 0.0) <= fleet.answered + 1e-9
    assert fleet.billed <= told.highest + 1e-9
    assert told.highest <= limit + 1e-9
    assert fleet.billed <= again.highest + 1e-9 <= told.highest + 2e-9, "another start knows as much, or more"
    if not {"worker", "disk"} & {end for *_, end in lives}:
        assert again.settled == pytest.approx(fleet.answered)
    if not {"worker", "disk", "all"} & {end for *_, end in lives} and all(steps for _, _, steps, _, _ in lives):
        on_their_way = PRICE * sum(steps % 2 for _, _, steps, _, _ in lives)
        assert (told.settled or 0.0) >= fleet.billed - on_their_way - 1e-9
        assert told.unsettled <= on_their_way * BOUND / PRICE + 1e-9, "nothing is left of starts that are over"


def log_of(run: str = "it", *, steps: float = 1, choice: str = "", **starts: str) -> bytes:
    """Return the packed log of a run that these starts wrote, each with what its line says."""
    record = record_of(steps)
    record.run, record.choice = run, FileChoice(choice) if choice else None
    record.command = "run" if choice or run == "it" else "rollup"
    lines = "\n".join(f"{start} {words}".strip() for start, words in starts.items())
    return packed({}, {"run.json": json.dumps(asdict(record)).encode(), STARTS: lines.encode()})


@pytest.mark.parametrize(
    ("kept", "log", "is_kept"),
    [
        pytest.param(log_of(steps=2, **{"fleet-1": ""}), b"", True, id="of this fleet, before its worker was lost"),
        pytest.param(log_of(steps=2, **{"other-1": ""}), b"", False, id="of another one"),
        pytest.param(log_of(steps=2, s=""), log_of(s=""), True, id="further"),
        pytest.param(log_of(steps=2, s=""), log_of(steps=2, s=""), False, id="as far"),
        pytest.param(log_of(steps=1, s="ended"), log_of(s=""), True, id="with the end of a start"),
        pytest.param(log_of(steps=2, s=""), log_of(s="", t=""), False, id="without a start"),
        pytest.param(log_of("another", steps=2), log_of(), False, id="another run"),
        pytest.param(
            log_of(choice="c", s=""), log_of("c", steps=2, s=""), True, id="the run after its choice of files"
        ),
        pytest.param(log_of("c", steps=2, s=""), log_of(choice="c", s=""), False, id="the choice of files before it"),
    ],
)
def test_the_log_that_tells_more_of_a_run_is_kept(kept, log, is_kept, tmp_path):
    (tmp_path / "kept").write_bytes(kept)
    assert latest_log(log, tmp_path / "kept", "fleet") == (kept if is_kept else log)


def test_each_start_has_one_line_in_the_log_that_it_goes_on_with(tmp_path):
    (tmp_path / STARTS).write_text("s1 0.5 ended\ns2 1.0\n")
    assert starts_file(tmp_path, "s2 1.0", is_over=True) == b"s1 0.5 ended\ns2 1.0 ended"
    assert starts_file(tmp_path, "s3 2.0", is_over=False) == b"s1 0.5 ended\ns2 1.0\ns3 2.0"


def test_what_is_told_of_a_start_by_a_line_or_by_its_log_is_no_longer_lost(tmp_path):
    line = Result("a", "", "build_failed", 1, start="s1", runs={"it": (1.0, 2.0), "s2": (0.0, 4.0)})
    for start in ("s1", "s2", "s3"):
        (tmp_path / f".a.{start}.start").write_text("[32.0, 0.0]")
    unfinished = Unfinished(tmp_path, [line])
    assert unfinished.spent == Cost(1.0, 2.0 + 4.0 + 32.0)
    assert [path.name for path in tmp_path.glob(".*")] == [".a.s3.start"]
    unfinished.end("a", "s3")
    assert (unfinished.spent, [*tmp_path.glob(".*")]) == (Cost(1.0, 6.0), [])


def test_a_log_goes_on_with_its_cost_and_one_of_an_earlier_version_only_where_there_is_none_of_ours(tmp_path):
    task = FleetTask(id="a", repository="https://example.org/x", query="q", label="large")
    unfinished = Unfinished(tmp_path, [])
    assert unfinished.log_of(task) == (b"", 0.0)
    ours, *earlier = (tmp_path / f".a.{digest[:16]}.log" for digest in task.digests)
    for path, steps in ((earlier[-1], 2), (ours, 3)):
        path.write_bytes(packed_run(steps))
        assert log_path(tmp_path, task) == path
        assert unfinished.log_of(task) == (packed_run(steps), pytest.approx(0.05 * steps))


def test_the_cost_of_a_worker_s_log_is_what_was_paid_and_what_may_have_been(tmp_path):
    record = record_of(1)
    record.attempts[0].unsettled_usd = [0.5]
    log = packed({}, {"run.json": json.dumps(asdict(record)).encode()})
    assert Unfinished(tmp_path, []).take_up({f".a.{'0' * 16}.log": log}) == pytest.approx(0.55)


def test_a_result_counts_at_once_and_whatever_is_taken_up_later(tmp_path):
    fleet = Fleet(tmp_path, 6.0)
    fleet.live(0, 1.1, "a", 2, set(), "ends")
    counts = {"run of code-commit-1-0": (0.05, 0.0)}
    for found in (fleet.store._results, load_results(fleet.out)):
        assert [(each.status, each.run, each.runs) for each in found.values()] == [("interrupted", *counts, counts)]
    fleet.store.take_up({f".a.{'0' * 16}.log": log_of("another")})
    counts["another"] = (0.05, 0.0)
    for found in (fleet.store._results, load_results(fleet.out)):
        assert [(each.run, each.cost_usd, each.runs) for each in found.values()] == [(next(iter(counts)), 0.1, counts)]


def test_on_a_full_disk_the_log_is_kept_in_the_room_that_was_reserved(tmp_path, monkeypatch):
    def fail(*_):
        raise LogError(tmp_path, OSError(28, "No space left on device"))

    fleet = Fleet(tmp_path, 6.0)
    reserve_room(fleet.out, {"a": 1})
    monkeypatch.setattr("code_commit.fleet.unfinished.store_result", fail)
    result = replace(fleet.task.ended(Status.BUILD_FAILED), run="it")
    with pytest.raises(LogError):
        fleet.store.take(fleet.task, TaskOutcome(result, log=packed_run(1)))
    assert [path.name for path in fleet.out.glob(".*")] == [log_path(fleet.out, fleet.task).name]
