"""What a fleet does when something dies: two workers with roots of their own, and a repository that only the client
sees."""

import resource
import signal
from base64 import b64encode
from contextlib import suppress
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from command import wait_for
from fleet_tools import (
    KEY,
    RIGHT,
    WRONG,
    Cluster,
    descendants_of,
    is_running,
    make_list,
    make_repository,
    processes_with,
    results,
    task,
)


@pytest.fixture
def marks(tmp_path):
    """Where each build leaves a file named by its process; it ends when there is a file `go`."""
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


def test_a_task_runs_again_twice_when_its_worker_is_killed_with_all_its_processes(
    cluster, server, tmp_path, marks, repository
):
    with start(cluster, tmp_path, task("a", repository, settings=server.settings)) as fleet:
        for number in (1, 2, 3):
            if in_the_call := number != 2:
                server.go.clear()
            wait_for(lambda number=number: len(server.calls) == number)
            if not in_the_call:
                server.go.set()
                wait_for(lambda: list(marks.iterdir()))
            name, children = at_work(cluster)
            cluster.kill_worker(name)
            wait_for(lambda name=name: not processes_with(f"{cluster.root}/{name}/"))
            wait_for(lambda children=children: not any(map(is_running, children)))
            cluster.start_worker(name)
        _, complaint = fleet.communicate(timeout=60)
    assert fleet.returncode == 1, complaint
    assert results(tmp_path)["a"]["status"] == "machine_failed"
    assert len(server.calls) == 3


def test_a_client_that_ends_ends_what_runs_and_goes_on_when_it_is_started_again(
    cluster, server, tmp_path, marks, repository
):
    other = make_repository(tmp_path / "other")
    lines = [task("done", other, settings=server.settings), task("begun", repository, settings=server.settings)]
    for ending, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        with start(cluster, tmp_path, *lines) as fleet:
            wait_for(lambda: list(marks.iterdir()) and "done" in results(tmp_path))
            fleet.send_signal(ending)
            _, complaint = fleet.communicate(timeout=30)
            wait_for(lambda: at_work(cluster) is None)
        assert fleet.returncode == code, complaint
        assert list(results(tmp_path)) == ["done"]
        for mark in marks.iterdir():
            mark.unlink()

    (marks / "go").touch()
    with start(cluster, tmp_path, *lines) as fleet:
        fleet.communicate(timeout=60)
    assert fleet.returncode == 0
    assert len(server.calls) == 4


def test_a_lost_scheduler_ends_the_fleet_with_a_message(forked_fleet, tmp_path, server, marks, repository):
    (tmp_path / "cluster").mkdir()
    cluster = Cluster(tmp_path / "cluster", forked_fleet, workers="a")
    try:
        with start(cluster, tmp_path, task("a", repository, settings=server.settings)) as fleet:
            wait_for(lambda: list(marks.iterdir()))
            cluster.scheduler.kill()
            _, complaint = fleet.communicate(timeout=60)
            wait_for(lambda: at_work(cluster) is None)
    finally:
        cluster.close()

    assert fleet.returncode == 5
    assert "the scheduler is lost: what had ended is kept; the same command goes on" in complaint
    assert "Traceback" not in complaint


def test_no_key_goes_over_the_wire_into_a_page_or_a_result(cluster, server, tmp_path):
    repository = make_repository(cluster.hidden / "repository", "env; grep -q '^ok$' ok.txt")
    server.answer = lambda number: (200, RIGHT) if number > 1 else (200, WRONG)
    with start(cluster, tmp_path, task("a", repository, settings=server.settings)) as fleet:
        fleet.communicate(timeout=60)
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


def test_a_full_disk_ends_the_fleet_and_nothing_half_counts(cluster, server, tmp_path):
    """No file can be larger than the page of all tasks: what the client keeps does not fit."""
    repository = make_repository(tmp_path / "repository", "head -c 300000 /dev/urandom | base64; grep -q '^ok$' ok.txt")
    tasks = make_list(tmp_path / "tasks.jsonl", task("a", repository, settings=server.settings))
    with cluster.start_fleet(tasks) as limited:
        resource.prlimit(limited.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        _, complaint = limited.communicate(timeout=60)
    assert limited.returncode == 5, complaint
    assert "out/a cannot be used: File too large" in complaint
    assert results(tmp_path) == {}

    with start(cluster, tmp_path, task("a", repository, settings=server.settings)) as fleet:
        fleet.communicate(timeout=60)
    assert fleet.returncode == 0
    assert (tmp_path / "out" / "a" / "changes.patch").exists()
