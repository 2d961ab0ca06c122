"""The folder OUT: results are whole or not there at all, and nothing of the user's is touched."""

import io
import json
import resource
import signal
import stat
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from fleet_out import RECORD as RECORD_OF_A_RUN
from fleet_out import store

from code_commit.commands.results import Result
from code_commit.errors import LogError, NotSetUpError
from code_commit.exchange import Cost
from code_commit.fleet.page import write_pages
from code_commit.fleet.results import (
    FleetTotals,
    TaskOutcome,
    _packed_file,
    load_results,
    packed,
    recorded_cost,
    results_folder,
    store_result,
)
from code_commit.fleet.unfinished import Unfinished
from code_commit.runs.record import Attempt, FileChoice, RunError, RunRecord

RECORD, PATCH = b'{"run": "r"}', b"diff --git a/a b/a\n"
GREEN = Result("a", "d1", "success", 0, attempts=2, cost_usd=0.5, seconds=3.5, files_changed=1, query="Do it.")


@pytest.fixture
def out(tmp_path):
    with results_folder(tmp_path / "out"):
        yield tmp_path / "out"


@pytest.fixture
def log(tmp_path):
    folder = tmp_path / "2026-11-22-10-00-00-logs"
    (folder / "snapshot" / "originals").mkdir(parents=True)
    (folder / "1-query.txt").write_text("asked\n")
    (folder / "snapshot" / "originals" / "x").write_text("old\n")
    return packed({"": folder})


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def archive_of(*members: tarfile.TarInfo) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for member in members:
            member.size = 5 if member.isreg() else 0
            tar.addfile(member, io.BytesIO(b"outer"))
    return archive.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_a_result_lands_with_its_files_for_its_owner_alone(out, log):
    store(out, GREEN, RECORD, PATCH, log)
    assert load_results(out) == {"a": GREEN}
    kept = {"run.json": RECORD, "changes.patch": PATCH, "log/1-query.txt": b"asked\n"}
    assert tree(out / "a") == {**kept, "log/snapshot/originals/x": b"old\n"}
    for path in [out, *out.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_green_result_is_never_removed_by_a_red_one(out, log):
    """For the same line it still counts, with the cost of the red one; for another line it is kept."""
    store(out, GREEN, RECORD, PATCH, log)
    for number in range(2):
        store(
            out, Result("a", "d1", "build_failed", 1, cost_usd=0.25, runs={"r": (0.75 + number, 0.5)}), b"{}", b"", b""
        )
    assert load_results(out)["a"] == GREEN.with_runs({"r": (1.75, 0.5)})
    assert (out / "a" / "changes.patch").read_bytes() == PATCH
    assert tree(out / "a" / "red") == {"run.json": b"{}"}

    other = Result("a", "d2", "build_failed", 1)
    store(out, other, b"{}", b"", b"")
    assert load_results(out)["a"] == other
    assert not (out / "a" / "changes.patch").exists()
    assert (out / "a" / "green" / "changes.patch").read_bytes() == PATCH


def test_the_latest_result_of_a_task_counts_and_replaces_its_folder(out, log):
    store(out, replace(GREEN, status="build_failed", exit_code=1), RECORD, PATCH, log)
    store(out, Result("b", "d", "not_set_up", 2, message="cannot be cloned"), b"", b"", b"")
    again = Result("a", "d2", "llm_error", 3)
    store(out, again, b"{}", b"", b"")
    assert load_results(out)["a"] == again
    assert set(load_results(out)) == {"a", "b"}
    assert tree(out / "a") == {"run.json": b"{}"}


def test_a_green_result_takes_the_place_of_a_green_one_of_the_same_line(out, log):
    """Its verification, say, was repeated."""
    for record in (RECORD, b"{}"):
        store(out, GREEN, record, PATCH, log)
    assert (out / "a" / "run.json").read_bytes() == b"{}"
    assert not (out / "a" / "red").exists()


def test_of_a_log_that_grows_only_what_is_new_is_packed(tmp_path, monkeypatch):
    made, real = [], _packed_file
    monkeypatch.setattr("code_commit.fleet.results._packed_file", lambda name, _: made.append(name) or real(name, _))
    (tmp_path / "a").write_text("a")
    (tmp_path / "run.json").write_text("of the run")
    kept = {}
    archives = [packed({"": tmp_path}, {"run.json": b"first"}, kept) for _ in range(2)]
    (tmp_path / "b").write_text("b")
    packed({"": tmp_path}, {"run.json": b"first"}, kept)
    assert (made, archives[0] == archives[1]) == (["run.json", "a", "run.json", "run.json", "b"], True)


@pytest.mark.parametrize(
    "hostile",
    [
        member("/tmp/code-commit-escaped"),
        member("../escaped"),
        member("below/../../escaped"),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("hard", tarfile.LNKTYPE, "plain"),
        member("fifo", tarfile.FIFOTYPE),
        member("device", tarfile.CHRTYPE),
    ],
    ids=lambda info: info.name,
)
def test_an_archive_brings_plain_files_of_its_own_folder_alone(out, hostile):
    store(out, GREEN, RECORD, PATCH, archive_of(member("plain"), hostile, member("last")))
    assert tree(out / "a" / "log") == {"plain": b"outer", "last": b"outer"}
    assert len(list((out / "a" / "log").iterdir())) == 2
    assert not Path("/tmp/code-commit-escaped").exists()
    assert tree(out).keys() == {"results.jsonl", "a/run.json", "a/changes.patch", "a/log/plain", "a/log/last"}


def test_half_a_line_of_results_counts_as_none(out, log):
    store(out, GREEN, RECORD, PATCH, log)
    results = out / "results.jsonl"
    results.write_bytes(results.read_bytes() + results.read_bytes().replace(b'"a"', b'"b"')[:40])
    assert set(load_results(out)) == {"a"}
    whole = json.dumps(asdict(Result("b", "d", "success", 0, cost_usd=0.25)))
    for number in ("NaN", "-Infinity", "1e999", "[" * 99_999):
        with results.open("a") as file:
            file.write(f"\n{whole.replace('0.25', number)}\n")
    assert set(load_results(out)) == {"a"}
    store(out, Result("c", "d", "success", 0), RECORD, b"", b"")
    assert set(load_results(out)) == {"a", "c"}


@pytest.mark.parametrize("new_is_there", [False, True])
def test_a_fleet_that_was_killed_between_two_renames_has_lost_nothing(tmp_path, log, new_is_there):
    out = tmp_path / "out"
    with results_folder(out):
        store(out, GREEN, RECORD, PATCH, log)
    (out / "a").rename(out / ".a.old")
    if new_is_there:
        (out / "a").mkdir()
        (out / "a" / "run.json").write_text("new")
    (out / ".b.new").mkdir()
    with results_folder(out):
        assert {path.name for path in out.iterdir()} == {"a", "results.jsonl"}
        assert (out / "a" / "run.json").read_bytes() == (b"new" if new_is_there else RECORD)


KILLED = """
import os, sys
from pathlib import Path
from code_commit.commands.results import Result
from code_commit.fleet.results import TaskOutcome, load_results, store_result

left = int(sys.argv[2])

def kill(event, _):
    global left
    left -= event in ("os.rename", "os.remove", "os.rmdir")
    if left == 0:
        os._exit(9)

out = Path(sys.argv[1])
results = load_results(out)
sys.addaudithook(kill)
store_result(out, TaskOutcome(Result("a", "d2", "build_failed", 1), b"{}"), results)
"""


@pytest.mark.slow
def test_a_green_result_is_there_wherever_the_landing_of_a_red_one_is_killed(tmp_path, log):
    for step in range(1, 20):
        out = tmp_path / str(step)
        with results_folder(out):
            store(out, GREEN, RECORD, PATCH, log)
        end = subprocess.run([sys.executable, "-c", KILLED, str(out), str(step)], check=False).returncode
        with results_folder(out):
            kept = [out / "a" / "changes.patch", out / "a" / "green" / "changes.patch"]
            assert [path.read_bytes() for path in kept if path.exists()] == [PATCH], f"killed at step {step}"
            assert {path.name for path in out.iterdir()} == {"a", "results.jsonl"}
        if end == 0:
            break
    assert step > 3, "it was killed at every step, then not at all"
    assert end == 0


def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(NotSetUpError, match="has no results of a fleet"), results_folder(tmp_path):
        pass
    assert tree(tmp_path) == {"thesis.txt": b"mine"}
    (tmp_path / "results.jsonl").write_text('{"accuracy": 1}\n')
    with pytest.raises(NotSetUpError, match="was not written by a fleet"), results_folder(tmp_path):
        pass
    assert tree(tmp_path) == {"thesis.txt": b"mine", "results.jsonl": b'{"accuracy": 1}\n'}
    with pytest.raises(NotSetUpError, match="cannot be used: File exists"), results_folder(tmp_path / "thesis.txt"):
        pass


def test_no_link_in_the_place_of_a_file_is_followed(out, log):
    store(out, GREEN, RECORD, PATCH, log)
    victim = out.parent / "victim"
    victim.write_text('{"a": 1}\n')
    for name in ("results.jsonl", "index.html", "a/index.html"):
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(victim)
    with pytest.raises(LogError):
        store_result(out, TaskOutcome(GREEN, RECORD, PATCH, log), {})
    (out / f".a.{'0' * 16}.log").symlink_to(victim)
    with pytest.raises(NotSetUpError, match="is damaged"):
        Unfinished(out, [])
    (out / "results.jsonl").unlink()
    (out / "results.jsonl").touch()
    write_pages(out, "a", load_results(out))
    assert victim.read_text() == '{"a": 1}\n'
    assert not (out / "index.html").is_symlink()


def test_no_page_is_written_through_a_link_for_a_folder(out):
    elsewhere = out.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "run.json").write_bytes(RECORD_OF_A_RUN)
    store(out, GREEN, b"", b"", b"")
    (out / "a").rename(out / "b")
    (out / "a").symlink_to(elsewhere)
    write_pages(out, "a", load_results(out))
    assert [path.name for path in elsewhere.iterdir()] == ["run.json"]


@pytest.mark.parametrize("name", ["../x", "/x", ".", "..", "a/b", "", "Index.html", "a\n"])
def test_a_result_whose_id_is_no_name_of_a_folder_is_not_taken(out, name):
    store(out, GREEN, RECORD, PATCH, b"")
    line = (out / "results.jsonl").read_text()
    (out / "results.jsonl").write_text(line.replace('"id": "a"', f'"id": {json.dumps(name)}') + line)
    assert load_results(out) == {"a": GREEN}


def test_two_fleets_do_not_write_to_one_folder(out):
    with pytest.raises(NotSetUpError, match="another fleet is using"), results_folder(out):
        pass


ON_A_SMALL_DISK = 'mount -t tmpfs -o size=256k none "$1" && shift && exec "$@"'
FILL = """
import sys
from pathlib import Path
from code_commit.errors import LogError
from code_commit.commands.results import Result
from code_commit.fleet.results import TaskOutcome, load_results, store_result, results_folder
out = Path(sys.argv[1])
with results_folder(out):
    for number in range(100):
        try:
            store_result(out, TaskOutcome(Result(str(number), "d", "success", 0), b"r", b"p" * 20_000), {})
        except LogError as error:
            print(number, error.exit_code, error, sep=" | ")
            break
    print(sorted(map(int, load_results(out))) == list(range(number)))
    print(sorted(int(path.name) for path in out.iterdir() if path.is_dir()) == list(range(number)))
"""


@pytest.mark.root("mount")
def test_on_a_full_disk_what_has_landed_stays_and_nothing_half_counts(tmp_path):
    command = ["unshare", "-m", "sh", "-c", ON_A_SMALL_DISK, "sh", tmp_path, sys.executable, "-c", FILL, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    failure, *checks = done.stdout.splitlines()
    number, exit_code, message = failure.split(" | ")
    assert int(number) > 3
    assert exit_code == "5"
    assert "No space left on device" in message
    assert checks == ["True", "True"]


def test_a_line_that_no_longer_fits_the_disk_is_taken_back_whole(out, log):
    store(out, GREEN, RECORD, PATCH, log)
    before = (out / "results.jsonl").read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limit[1]))
    try:
        with pytest.raises(LogError):
            store(out, Result("b", "d", "success", 0), b"", b"", b"")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert (out / "results.jsonl").read_bytes() == before


def test_a_lost_answer_stands_at_its_bound_beside_what_was_settled():
    record = RunRecord(
        "", "", "run", "", "", "", 1, attempts=[Attempt(1, "initial", cost_usd=0.25), Attempt(2, "retry")]
    )
    record.finished, record.error = "now", RunError("network")
    assert recorded_cost(record) == Cost(0.25)
    record.error = RunError("network", may_be_paid=True)
    assert recorded_cost(record).settled is None
    record.attempts[1].unsettled_usd = [0.5, 0.5]
    assert recorded_cost(record) == Cost(0.25, 1.0)
    record.finished = record.error = None
    record.attempts[1].unsettled_usd = []
    assert recorded_cost(record).settled is None
    record.finished, record.error = "now", RunError("network")
    for begun in ({"job_id": "resp_1"}, {"finish_reason": "stop"}):
        record.attempts[1] = Attempt(2, "retry", **begun)
        assert recorded_cost(record).settled is None


def test_the_choice_of_files_counts_where_it_has_a_price():
    attempts = [Attempt(1, "initial", cost_usd=0.25)]
    record = RunRecord("", "", "run", "", "", "", 1, finished="now", attempts=attempts)
    for calls, usd, unsettled, cost in (
        (1, 0.5, 0.0, Cost(0.75)),
        (1, None, 0.0, Cost(None)),
        (1, None, 2.0, Cost(0.25, 2.0)),
        (0, None, 0.0, Cost(0.25)),
    ):
        record.choice = FileChoice("a choice", calls=calls, cost_usd=usd, unsettled_usd=unsettled)
        assert recorded_cost(record) == cost


def test_each_sum_of_a_fleet_has_each_result_once():
    """The numbers are powers of two: a sum says of which of them it is."""
    results = [
        Result("a", "d", "success", 0, attempts=1, build_changes=("x",)).with_runs({"r": (1.0, 2.0), "s": (4.0, 0.0)}),
        Result("b", "d", "build_failed", 1, attempts=2).with_runs({"r": (8.0, 16.0), "lost": (32.0, None)}),
        Result("c", "d", "build_failed", 1, attempts=4).with_runs({"r": (None, 64.0), "s": (128.0, 256.0)}),
        Result("d", "d", "not_set_up", 2),
    ]
    costs = [Cost(5.0, 2.0), Cost(40.0, 16.0), Cost(None, 320.0), Cost()]
    assert [(each.cost, each.is_cost_known) for each in results] == list(
        zip(costs, [True, False, False, True], strict=True)
    )
    totals = FleetTotals(8)
    for result in results:
        totals.add(result)
    ends = Counter({"success": 1, "build_failed": 2, "not_set_up": 1})
    sums = {"cost_usd": 45.0, "unsettled_usd": 338.0, "unknown_costs": 2, "built": 1, "has_more_runs": True}
    assert totals == FleetTotals(8, 4, 1, ends, 7, **sums)
    assert totals.known == Cost(45.0, 338.0)
    totals.set_cost(Cost(1.0, 2.0))
    assert totals.known == Cost(1.0, 2.0)


RED = Result("a", "d", "build_failed", 1)
OF_A_RESULT = {
    # a result; whether the same command continues it, and whether labels are summed up
    "red": (RED, False, False),
    "interrupted": (replace(RED, status="interrupted"), True, False),
    "without a key": (replace(RED, error="key"), True, False),
    "without a quota": (replace(RED, error="quota"), True, False),
    "without money": (replace(RED, needed_usd=0.5), True, False),
    "another error": (replace(RED, error="network"), False, False),
    "a variant": (replace(RED, label="m"), False, True),
    "verified": (replace(RED, verified=False), False, True),
    "a trial": (replace(RED, task="b"), False, True),
    "of itself": (replace(RED, task="a"), False, False),
}


@pytest.mark.parametrize(("result", "is_open", "is_compared"), OF_A_RESULT.values(), ids=OF_A_RESULT)
def test_what_a_result_is_taken_for(result, is_open, is_compared):
    assert (result.is_open, result.is_compared) == (is_open, is_compared)
