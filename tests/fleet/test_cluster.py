"""A fleet when something dies: two workers with roots of their own, and a repository that only the client
sees."""

import os
import resource
import signal
import subprocess
import sys
import tarfile
import time
from base64 import b64encode
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from command import CODE_COMMIT, wait_for
from fleet_tools import (
    KEY,
    PRICES,
    RIGHT,
    WRONG,
    Cluster,
    descendants_of,
    fleet_words,
    is_running,
    make_answers,
    make_list,
    make_repository,
    pending,
    processes_with,
    results,
    task,
)

from code_commit.fleet.dispatcher import Dispatcher


@pytest.fixture
def marks(tmp_path):
    """A folder in which each build leaves a file named by its process; builds end when there is a file `go`."""
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


@pytest.fixture
def repository(tmp_path, marks):
    build = f"touch {marks}/$$; while ! test -e {marks}/go; do sleep 0.1; done; grep -q '^ok$' ok.txt"
    return make_repository(tmp_path / "repository", build)


def start(cluster, tmp_path, *lines):
    return cluster.start_fleet(make_list(tmp_path / "tasks.jsonl", *lines))


def at_work(cluster):
    """Return the name of the worker that has processes, its own or in its folder, and these."""
    for name, worker in cluster.workers.items():
        if children := {*descendants_of(worker.pid), *processes_with(f"{cluster.root}/{name}/")} - {worker.pid}:
            return name, children
    return None


@pytest.mark.slow
def test_a_task_whose_worker_is_killed_runs_again_twice(cluster, server, tmp_path, marks, repository):
    with start(cluster, tmp_path, task("a", repository, settings=server.settings)) as fleet:
        for number in (1, 2, 3):
            if in_the_call := number == 1:
                server.go.clear()
            wait_for(lambda number=number: len(server.calls) == min(number, 2))
            if not in_the_call:
                server.go.set()
                wait_for(lambda: list(marks.iterdir()) and kept_answers(tmp_path / "out") == 1)
            name, children = at_work(cluster)
            cluster.kill_worker(name)
            wait_for(lambda name=name: not processes_with(f"{cluster.root}/{name}/"))
            wait_for(lambda children=children: not any(map(is_running, children)))
            for mark in marks.iterdir():
                mark.unlink()
            cluster.start_worker(name)
        _, complaint = fleet.communicate(timeout=300)
    assert fleet.returncode == 1, complaint
    assert results(tmp_path)["a"]["status"] == "machine_failed"
    assert len(server.calls) == 2, "the answer that was lost on its way is asked for again, the other is not"


@pytest.mark.slow
def test_a_client_that_ends_stops_its_tasks_and_continues_them_later(cluster, server, tmp_path, marks, repository):
    other = make_repository(tmp_path / "other")
    lines = [task("done", other, settings=server.settings), task("begun", repository, settings=server.settings)]
    for ending, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        with start(cluster, tmp_path, *lines) as fleet:
            wait_for(lambda: list(marks.iterdir()) and "done" in results(tmp_path))
            fleet.send_signal(ending)
            _, complaint = fleet.communicate(timeout=300)
            wait_for(lambda: at_work(cluster) is None)
        assert fleet.returncode == code, complaint
        assert ("rerun the same command to continue" in complaint) == (code == 143)
        assert {name: result["status"] for name, result in results(tmp_path).items()} == {
            "done": "success",
            "begun": "interrupted",
        }
        for mark in marks.iterdir():
            mark.unlink()

    (marks / "go").touch()
    with start(cluster, tmp_path, *lines) as fleet:
        fleet.communicate(timeout=300)
    assert fleet.returncode == 0
    assert len(server.calls) == 2, "what was answered is not asked for again"


@pytest.mark.slow
def test_a_copy_goes_with_the_last_task_of_its_repository(cluster, server, tmp_path, marks, repository):
    lines = [task("held", repository, settings=server.settings)]
    lines += [task(name, make_repository(tmp_path / name), settings=server.settings) for name in ("one", "two")]

    def copies() -> set[Path]:
        return set(cluster.root.glob(f"*/dask-scratch-space/*/*/{'?' * 24}.git"))

    left = copies()  # by workers that were killed
    with start(cluster, tmp_path, *lines) as fleet:
        wait_for(lambda: list(marks.iterdir()) and len(results(tmp_path)) == 2)
        wait_for(lambda: len(copies() - left) == 1)
        (marks / "go").touch()
        fleet.communicate(timeout=300)
    assert fleet.wait() == 0


@pytest.mark.slow
def test_no_key_goes_over_the_wire_into_a_page_or_a_result(cluster, server, tmp_path):
    repository = make_repository(cluster.hidden / "repository", "env; grep -q '^ok$' ok.txt")
    server.answer = lambda number: (200, RIGHT) if number > 1 else (200, WRONG)
    with start(cluster, tmp_path, task("a", repository, settings=server.settings)) as fleet:
        fleet.communicate(timeout=300)
    assert fleet.returncode == 0
    assert server.keys == {f"Bearer {KEY}"}

    said = b"".join(bytes(wire.bytes) for wire in cluster.wires)
    for page in ("info/main/workers.html", "json/identity.json", "json/counts.json", "sysinfo"):
        with suppress(HTTPError), urlopen(f"http://127.0.0.1:{cluster.dashboard}/{page}", timeout=10) as answer:
            said += answer.read()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"Make ok.txt say ok." in said
    assert b"Workers" in said
    assert b"Make ok.txt say ok." in kept
    for form in (KEY, KEY[8:], b64encode(KEY.encode()).decode()[:20]):
        assert form.encode() not in said + kept


@pytest.mark.slow
def test_a_full_disk_ends_the_fleet_and_nothing_half_counts(cluster, server, tmp_path):
    """There is room for the page of all tasks, but not for what may come of a task."""
    repository = make_repository(tmp_path / "repository", "head -c 300000 /dev/urandom | base64; grep -q '^ok$' ok.txt")
    tasks = make_list(tmp_path / "tasks.jsonl", task("a", repository, settings=server.settings))
    with cluster.start_fleet(tasks) as limited:
        resource.prlimit(limited.pid, resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
        _, complaint = limited.communicate(timeout=300)
    assert limited.returncode == 5, complaint
    assert "out cannot be used: File too large" in complaint
    assert results(tmp_path) == {}

    with start(cluster, tmp_path, task("a", repository, settings=server.settings)) as fleet:
        fleet.communicate(timeout=300)
    assert fleet.returncode == 0
    assert (tmp_path / "out" / "a" / "changes.patch").exists()
    assert len(server.calls) == 1, "nothing was paid for that had no place"


@pytest.mark.slow
def test_a_task_that_ended_unseen_is_taken_after_an_interrupt(cluster, server, tmp_path):
    """More tasks than the workers have threads: the client knows of none of the last ones that it began."""
    repository = make_repository(tmp_path / "repository")
    lines = [task(f"t{number}", repository, settings=server.settings) for number in range(6)]
    tasks = make_list(tmp_path / "tasks.jsonl", *lines)
    server.go.clear()
    with cluster.start_fleet(tasks) as fleet:
        wait_for(lambda: len(server.calls) == 4)
        fleet.send_signal(signal.SIGSTOP)
        server.go.set()
        wait_for(lambda: len(server.calls) == 6 and at_work(cluster) is None)
        fleet.send_signal(signal.SIGINT)
        fleet.send_signal(signal.SIGCONT)
        _, complaint = fleet.communicate(timeout=300)
    assert fleet.wait() == 130, complaint
    assert cluster.run_fleet(tasks).returncode == 0
    assert len(server.calls) == 6
    assert all((tmp_path / "out" / line["id"] / "changes.patch").exists() for line in lines)


@pytest.mark.sweep
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_results_that_take_long_to_arrive_are_taken_though_the_client_ends(ending, cluster, server, tmp_path):
    """An interrupt finds the client as it fetches a result; a killed one's tasks may go to the other worker."""
    repository = make_repository(tmp_path / "repository")
    lines = [task(f"t{number}", repository, settings=server.settings | PRICES) for number in range(6)]
    tasks = make_list(tmp_path / "tasks.jsonl", *lines)
    left = {*cluster.root.rglob("*.log")}  # by clients that were killed
    server.go.clear()
    with cluster.start_fleet(tasks) as fleet:
        wait_for(lambda: len(server.calls) == 4)
        with cluster.unreachable_workers():
            server.go.set()
            wait_for(lambda: len(server.calls) == 6 and at_work(cluster) is None)
            fleet.send_signal(ending)
            if ending == signal.SIGINT:
                time.sleep(6)
            else:
                fleet.wait()
        _, complaint = fleet.communicate(timeout=300)
    assert fleet.wait() == (130 if ending == signal.SIGINT else -9), complaint
    done = results(tmp_path)
    assert len(done) == (6 if ending == signal.SIGINT else 0), complaint
    assert cluster.run_fleet(tasks, "--max-cost", "0.8").returncode == 0
    assert len(server.calls) == 6
    assert [line["cost_usd"] for line in results(tmp_path).values()] == [pytest.approx(0.05)] * 6
    wait_for(lambda: {*cluster.root.rglob("*.log")} <= left)


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["worker", "scheduler", "client"])
def test_an_answer_not_yet_fetched_is_found_on_the_worker(killed, forked_fleet, server, tmp_path, marks, repository):
    (tmp_path / "cluster").mkdir()
    tasks = make_list(tmp_path / "tasks.jsonl", task("a", repository, settings=server.settings | PRICES))
    with closing(Cluster(tmp_path / "cluster", forked_fleet, workers="a")) as cluster:
        server.go.clear()
        with cluster.start_fleet(tasks) as fleet:
            wait_for(lambda: pending(tmp_path / "out"))
            fleet.send_signal(signal.SIGSTOP)
            server.go.set()
            wait_for(lambda: list(marks.iterdir()) and kept_answers(tmp_path / "cluster") == 1)
            if killed == "scheduler":
                with cluster.scheduler as scheduler:
                    scheduler.kill()
                with cluster.workers["a"] as worker:
                    worker.wait(timeout=300)
                cluster.start_scheduler()
            elif killed == "worker":
                cluster.kill_worker("a")
            else:
                fleet.kill()
            fleet.send_signal(signal.SIGCONT)
            (marks / "go").touch()
            if killed != "client":
                cluster.start_worker("a")
            _, complaint = fleet.communicate(timeout=300)
        assert fleet.wait() == {"worker": 0, "scheduler": 0, "client": -9}[killed], complaint
        assert killed != "client" or cluster.run_fleet(tasks).returncode == 0
        assert "Traceback" not in complaint
        assert len(server.calls) == 1
        assert results(tmp_path)["a"]["cost_usd"] == pytest.approx(0.05)
        wait_for(lambda: not list((tmp_path / "cluster").rglob("*.log")))


@pytest.mark.sweep
@pytest.mark.parametrize("lost", ["worker", "scheduler"])
def test_a_wait_for_a_worker_or_a_scheduler_has_an_end(lost, forked_fleet, server, tmp_path, marks, repository):
    (tmp_path / "cluster").mkdir()
    tasks = make_list(tmp_path / "tasks.jsonl", task("a", repository, settings=server.settings))
    with closing(Cluster(tmp_path / "cluster", forked_fleet, workers="a")) as cluster:
        with cluster.start_fleet(tasks, "--wait", "5") as fleet:
            wait_for(lambda: list(marks.iterdir()))
            with cluster.scheduler if lost == "scheduler" else cluster.workers["a"] as process:
                process.kill()
            _, complaint = fleet.communicate(timeout=300)
        assert fleet.wait() == 5, complaint
        assert "rerun the same command to continue" in complaint
        assert ("(--wait): start some" in complaint) == (lost == "worker")
        assert "Traceback" not in complaint


@pytest.mark.sweep
def test_workers_of_another_version_are_named(cluster, server, tmp_path):
    tasks = make_list(tmp_path / "tasks.jsonl", task("a", make_repository(tmp_path / "a"), settings=server.settings))
    words = [*fleet_words(tasks), "--scheduler", cluster.address, "--insecure"]
    script = "import code_commit.version as v, sys; v.__version__ = '0'; from code_commit.cli import command; command()"
    fleet = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert fleet.returncode == 2
    assert "2 of 2 workers lack code-commit 0: install it there\n  tcp://" in fleet.stderr


@pytest.mark.root("mount")
def test_answers_are_kept_in_reserved_room_on_a_full_disk(cluster, server, tmp_path, marks):
    build = f"touch {marks}/$$; while ! test -e {marks}/go; do sleep 0.1; done; grep -q '^ok$' ok.txt"
    repository = make_repository(tmp_path / "repository", build)
    lines = [task(f"t{number}", repository, settings=server.settings | PRICES) for number in range(4)]
    tasks = make_list(tmp_path / "tasks.jsonl", *lines)
    out = tmp_path / "out"
    out.mkdir()
    server.go.clear()
    on_a_small_disk = f'mount -t tmpfs -o size=4m none {out} && "$@"; code=$?; cp -a {out} {tmp_path}/kept; exit $code'
    words = [*CODE_COMMIT, *fleet_words(tasks, "--scheduler", cluster.address, "--insecure")]
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-c", on_a_small_disk, "sh", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as shell:
        there = Path(f"/proc/{shell.pid}/root/{out}")
        wait_for(lambda: len(pending(there)) == 4)
        (client,) = (pid for pid in descendants_of(shell.pid) if is_running(pid))
        os.kill(client, signal.SIGSTOP)
        with suppress(OSError), (there / "full").open("wb", buffering=0) as full:
            while True:
                full.write(bytes(1024))
        server.go.set()
        wait_for(lambda: len(list(marks.iterdir())) == 4)
        os.kill(client, signal.SIGCONT)
        _, complaint = shell.communicate(timeout=300)
    assert shell.returncode == 5, complaint
    assert "No space left on device" in complaint
    (marks / "go").touch()
    out.rmdir()
    (tmp_path / "kept").rename(out)
    (out / "full").unlink()
    assert cluster.run_fleet(tasks).returncode == 0
    assert len(server.calls) == 4


class Held:
    """A task whose build is held at one of its four attempts, on a cluster, and its fleet."""

    def __init__(self, stack, cluster, tasks, marks, options):
        self.cluster, self.marks, self._stack = cluster, marks, stack
        self._tasks, self._options = tasks, options
        self.start(*options)

    def start(self, *options):
        self.fleet = self._stack.enter_context(self.cluster.start_fleet(self._tasks, *options))

    def start_again(self):
        self.fleet.communicate(timeout=300)
        wait_for(lambda: at_work(self.cluster) is None)
        self.go()
        self.start(*self._options)

    def go(self):
        (self.marks / "go").touch()

    def run(self):
        """Return the process in which the run is."""
        _, processes = at_work(self.cluster)
        (pid,) = processes & set(processes_with("code_commit.fleet.clone"))
        return pid


def ended(held):
    held.fleet.send_signal(signal.SIGTERM)
    held.start_again()


def interrupted_twice(held):
    held.fleet.send_signal(signal.SIGINT)
    time.sleep(0.3)
    held.fleet.send_signal(signal.SIGINT)
    held.start_again()


def client_killed(held):
    held.fleet.kill()
    held.start_again()


def scheduler_killed(held):
    cluster = held.cluster
    with cluster.scheduler as scheduler:
        scheduler.kill()
    for worker in cluster.workers.values():
        with worker:
            worker.wait(timeout=300)
    wait_for(lambda: at_work(cluster) is None)
    cluster.start_scheduler()
    for name in cluster.workers:
        cluster.start_worker(name)
    held.go()


def worker_killed(held):
    name, _ = at_work(held.cluster)
    held.cluster.kill_worker(name)
    held.go()
    held.cluster.start_worker(name)


def worker_frozen(held):
    worker = held.cluster.workers[at_work(held.cluster)[0]]
    worker.send_signal(signal.SIGSTOP)
    held.go()
    time.sleep(2)
    worker.send_signal(signal.SIGCONT)


def worker_told_to_end(held):
    name, _ = at_work(held.cluster)
    with held.cluster.workers[name] as worker:
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=300)
    held.go()
    held.cluster.start_worker(name)


def worker_has_no_room(held):
    resource.prlimit(held.run(), resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    held.go()


def out_has_no_room(held):
    resource.prlimit(held.fleet.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    held.start_again()


FAULTS = [
    interrupted_twice,
    worker_frozen,
    worker_told_to_end,
    worker_has_no_room,
    out_has_no_room,
]
ALSO_WITH_WHOLE = [ended, client_killed, scheduler_killed, worker_killed]
"""The default cases of the tests of a client that ends, and of an answer not yet fetched."""


@pytest.mark.slow
@pytest.mark.parametrize("max_cost", ["", "0.66"])
@pytest.mark.parametrize("attempt", [1, 4])
@pytest.mark.parametrize("fault", [*FAULTS, *ALSO_WITH_WHOLE])
def test_no_answer_is_paid_for_twice(fault, attempt, max_cost, cluster, server, tmp_path, marks, whole):
    """Each of four answers costs 5 cents, and 50 at most: there is money for none to be lost.

    So a worker that was lost may have spent all of it, and the fleet ends until it has more.
    """
    if not whole and (fault not in FAULTS or (attempt, max_cost) != ((1, ""), (4, "0.66"))[FAULTS.index(fault) % 2]):
        pytest.skip("part of the long sweep")
    build = (
        f"test $CODE_COMMIT_ATTEMPT != {attempt} || while touch {marks}/$$; ! test -e {marks}/go; do sleep 0.1; done"
    )
    repository = make_repository(tmp_path / "repository", f"{build}; grep -q '^ok$' ok.txt")
    server.answer = lambda number: (200, RIGHT if number >= 4 else f"^^^ok.txt\nno {number}\n^^^end\n")
    line = task("a", repository, settings=server.settings | PRICES)
    tasks, options = make_list(tmp_path / "tasks.jsonl", line), ("--max-cost", max_cost) if max_cost else ()
    with ExitStack() as stack:
        held = Held(stack, cluster, tasks, marks, options)
        wait_for(lambda: list(marks.iterdir()) and kept_answers(tmp_path / "out") == attempt)
        fault(held)
        _, complaint = held.fleet.communicate(timeout=300)
        lost = 0.0
        if max_cost and fault in (worker_told_to_end, worker_killed):
            lost = float(max_cost) - 0.05 * attempt
            assert (held.fleet.wait(), len(server.calls)) == (3, attempt), complaint
            assert f"$0.{5 * attempt:02} and at most ${lost:.2f} unsettled" in complaint
            held.start("--max-cost", "6")
            _, complaint = held.fleet.communicate(timeout=300)
    assert held.fleet.wait() == 0, complaint
    assert len(server.calls) == 4
    result = results(tmp_path)["a"]
    assert (result["status"], result["attempts"]) == ("success", 4)
    unsettled = lost if fault is worker_killed else 0.0  # one that is told to end says where its run ended
    assert (result["cost_usd"], result["unsettled_usd"]) == (pytest.approx(0.2), pytest.approx(unsettled))
    assert not list((tmp_path / "out").glob(".*"))


def kept_answers(folder):
    """Return how many answers of a task that runs are kept in the folder, which is OUT or a worker's."""
    for path in folder.rglob("*.log"):
        with suppress(OSError), tarfile.open(path) as tar:
            return sum(name.endswith("-response.txt") for name in tar.getnames())
    return 0


@pytest.mark.slow
def test_a_revoked_key_stops_a_fleet_with_green_tasks_and_another_key_continues_it(cluster, server, tmp_path):
    repository = make_repository(tmp_path / "repository")
    tasks = make_list(
        tmp_path / "tasks.jsonl", *(task(f"t{number}", repository, settings=server.settings) for number in range(5))
    )
    server.answer = lambda number: (200, RIGHT) if number <= 1 else (401, "")
    done = cluster.run_fleet(tasks, "--at-once", "1")
    assert done.returncode == 1
    assert "starting no more (the provider refuses the key" in done.stderr
    assert len(server.calls) == 4
    server.answer = lambda _: (200, RIGHT)
    assert cluster.run_fleet(tasks).returncode == 0
    assert len(server.calls) == 4 + 4, "those that were refused are done too"


@pytest.mark.slow
def test_tasks_at_once_ask_no_more_than_a_minute_s_requests(cluster, server, tmp_path):
    repository = make_repository(tmp_path / "repository")
    paced = server.settings | {"requests_per_minute": 15}
    tasks = make_list(tmp_path / "t.jsonl", *(task(name, repository, settings=paced) for name in "abc"))
    assert cluster.run_fleet(tasks, "--quiet").returncode == 0
    assert len(server.calls) == 3
    assert server.calls[-1] - server.calls[0] > 8 - 4, "the first may have arrived as late as the second was let go"


@pytest.mark.slow
def test_answers_429_cost_no_task_an_attempt(cluster, server, tmp_path):
    repository = make_repository(tmp_path / "repository")
    server.answer = lambda number: (
        (429, "") if number % 2 else (200, RIGHT if number >= 8 else f"^^^ok.txt\n{number}\n^^^end\n")
    )
    done = cluster.run_fleet(make_list(tmp_path / "tasks.jsonl", task("a", repository, settings=server.settings)))
    assert done.returncode == 0, done.stderr
    assert (results(tmp_path)["a"]["attempts"], len(server.calls)) == (4, 8)


@pytest.mark.slow
def test_an_outage_uses_up_no_task(cluster, server, tmp_path):
    """The first answer comes, then none for a while, then all: each task ends green, and one tries at a time."""
    repository = make_repository(tmp_path / "repository")
    settings = server.settings | {"llm_timeout": 1}
    lines = [task(f"t{number}", repository, settings=settings) for number in range(8)]
    server.answer = lambda number: (200, RIGHT) if number == 1 or number > 6 else (503, "")
    done = cluster.run_fleet(make_list(tmp_path / "tasks.jsonl", *lines), "--at-once", "4")
    assert done.returncode == 0, done.stderr
    assert "fails (network): one task tries again in 5.0 s" in done.stderr
    assert "8 of 8 tasks green" in done.stderr


@pytest.mark.slow
def test_a_failing_worker_gets_no_more_tasks_and_they_run_elsewhere(cluster, server, tmp_path):
    repository = make_repository(tmp_path / "repository")
    lines = [task(f"t{number}", repository, settings=server.settings) for number in range(8)]
    resource.prlimit(cluster.workers["a"].pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    try:
        done = cluster.run_fleet(make_list(tmp_path / "tasks.jsonl", *lines))
    finally:
        resource.prlimit(cluster.workers["a"].pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("gets no more tasks because 2 failed there: ") == 1, done.stderr
    told = ("File too large", "could not be cloned")  # the signal of that limit may end git before it can say a word
    assert any(why in done.stderr for why in told), done.stderr
    assert len(server.calls) == 8
    assert len({result["worker"] for result in results(tmp_path).values()}) == 1


@pytest.mark.slow
def test_a_worker_without_the_key_gives_its_tasks_to_others_and_a_clone_that_is_gone_is_one_not_set_up(
    forked_fleet, tmp_path, monkeypatch
):
    repository, model = make_repository(tmp_path / "repository"), make_answers(tmp_path / "answers", RIGHT)
    lines = [task(f"t{number}", repository, model, settings={"fallback_model": "openai"}) for number in range(12)]
    tasks = make_list(tmp_path / "tasks.jsonl", *lines, task("gone", tmp_path / "gone", model))
    (tmp_path / "cluster").mkdir()
    with closing(Cluster(tmp_path / "cluster", forked_fleet, workers="abc")) as cluster:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
        cluster.start_worker("d")
        cluster.wait_for_workers()
        done = cluster.run_fleet(tasks)
    found = results(tmp_path)
    assert (done.returncode, "12 of 13 tasks green, 1 not set up" in done.stderr) == (1, True), done.stderr
    assert len({found[f"t{number}"]["worker"] for number in range(12)}) == 1
    assert (found["gone"]["status"], found["gone"]["message"]) == (
        "not_set_up",
        f"{tmp_path}/gone: No such file or directory",
    )
    assert "gets no more tasks because 2 failed there: the worker has no usable key" in done.stderr


def test_a_lost_scheduler_s_connection_that_does_not_close_is_left(monkeypatch):
    """Dask's client raises RuntimeError where it is closed while it connects anew."""
    made = []

    @contextmanager
    def connect(*_: object, again: bool):
        made.append(again)
        yield SimpleNamespace(client=SimpleNamespace(subscribe_topic=lambda *_: None))
        if not again:
            raise RuntimeError("ConnectionPool is closed")

    monkeypatch.setattr("code_commit.fleet.dispatcher.connect", connect)
    dispatcher = Dispatcher(SimpleNamespace(), SimpleNamespace(say=print), "fleet")
    dispatcher._connect()
    dispatcher._connect(again=True)
    assert made == [False, True]
