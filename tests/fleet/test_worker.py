"""One task as a worker does it, without a cluster."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command import git, tree, wait_for
from fake_server import FakeServer, Fault
from fleet_tools import (
    KEY,
    PRICES,
    RIGHT,
    WRONG,
    add_submodule,
    make_answers,
    make_repository,
    processes_with,
    task,
)

from code_commit.changes import AppliedChange
from code_commit.errors import NotSetUpError
from code_commit.fleet.builds import Source, WorkerError, put_files
from code_commit.fleet.patches import Patches, digest_of
from code_commit.fleet.results import TaskOutcome, packed
from code_commit.fleet.tasks import FleetTask
from code_commit.fleet.worker import TaskSupervision, _Run, run_task
from code_commit.runs.log import sum_up
from code_commit.runs.record import Attempt, FileChoice, RewrittenFile, RunRecord, load_run_record
from code_commit.status import Status

UNWATCHED = TaskSupervision()
UNVERIFIED = "green, but not verified by the build with the hidden files: "


@pytest.fixture
def marks(tmp_path):
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def do(line: dict, tmp_path, supervision: TaskSupervision = UNWATCHED, max_cost=None, log=b"") -> TaskOutcome:
    return run_task(FleetTask(**line), Source(line["repository"]), tmp_path / "place", max_cost, supervision, log)


def unpacked(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def left_in(tmp_path) -> set[str]:
    """Return what a worker has beside the copies of repositories."""
    return {path.name for path in (tmp_path / "place").iterdir() if path.suffix != ".git"}


def test_a_task_has_its_own_settings_and_leaves_nothing_but_the_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("CODE_COMMIT_MAX_REPAIRS", "0")
    repository = make_repository(tmp_path / "repository")
    answers = make_answers(tmp_path / "answers", WRONG, RIGHT)
    settings = {"max_repairs": 1, "allow": ["*.txt"], "prices": {"größe\n": {"input": 1.5, "output": 2}}}
    outcome = do(task("a", repository, answers, settings=settings), tmp_path)

    assert outcome.result.is_green
    assert outcome.result.attempts == 2
    options = json.loads(outcome.record)["options"]
    assert (options["max_repairs"], options["allow"]) == (1, ["*.txt"])
    assert options["prices"]["größe\n"]["input"] == 1.5
    assert {"run.json", "2-response.txt"} <= set(unpacked(outcome.log))
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize("setting", [".", "x:", "code_commit/.."])
def test_no_module_of_the_repository_is_imported(setting, tmp_path, monkeypatch):
    """It brings a package by the tool's own name, and what Python looks for as it starts."""
    repository, ran = make_repository(tmp_path / "repository"), tmp_path / "ran"
    (repository / "code_commit").mkdir()
    for module in ("code_commit/__init__", "code_commit/__main__", "sitecustomize", "json"):
        (repository / f"{module}.py").write_text(f"open({str(ran)!r}, 'a').write(__name__)\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "more")
    monkeypatch.setenv("PYTHONPATH", setting)
    outcome = do(task("a", repository, make_answers(tmp_path / "answers", RIGHT)), tmp_path)
    assert outcome.result.is_green, outcome.result
    assert not ran.exists(), ran.read_text()


def test_many_tasks_of_a_repository_clone_it_once(tmp_path, monkeypatch):
    calls, real = tmp_path / "calls", shutil.which("git")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(f'#!/bin/sh\necho "$*" >>{calls}\nexec {real} "$@"\n')
    (tmp_path / "bin" / "git").chmod(0o755)
    repository = make_repository(tmp_path / "repository")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda name: do(task(name, repository, rollup=["none"]), tmp_path), "abcd"))

    assert {outcome.result.message for outcome in outcomes} == {"none matches no file, or only ignored ones"}
    clones = [line for line in calls.read_text().splitlines() if " clone " in f" {line} "]
    assert sum("--mirror" in line for line in clones) == 1
    assert sum("--shared" in line for line in clones) == 4


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda root: shutil.rmtree(root / ".git"), "git clone of"),
        (lambda root: (root / "build.sh").unlink(), 'build.sh is missing: supply it as "build" of the task'),
        (lambda root: (root / ".gitignore").unlink(), ".gitignore is missing"),
        (
            lambda root: (root / "agent-config").symlink_to(root.parent / "elsewhere"),
            "the commit contains agent-config",
        ),
    ],
    ids=["no repository", "no build.sh", "no .gitignore", "agent-config in git"],
)
def test_a_repository_that_is_not_ready_is_told(tmp_path, spoil, message):
    (tmp_path / "elsewhere").mkdir()
    repository = make_repository(tmp_path / "repository")
    spoil(repository)
    if (repository / ".git").exists():
        git(repository, "add", "-Af")
        git(repository, "commit", "-qm", "spoilt")
    outcome = do(task("a", repository, make_answers(tmp_path / "answers", RIGHT)), tmp_path)

    assert (outcome.result.status, outcome.result.exit_code) == ("not_set_up", 2)
    assert message in outcome.result.message
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_option_that_a_message_names_is_a_setting_of_the_fleet(tmp_path):
    repository = make_repository(tmp_path / "repository", build="#!/bin/sh\nno-such-tool\n")
    line = task("a", repository, make_answers(tmp_path / "answers", RIGHT), settings={"build_first": True})
    told = do(line, tmp_path).result.message
    assert told.endswith("If only the sandbox hides it, use --setting sandbox=off.")


def test_a_key_that_a_worker_lacks_is_told_and_can_be_supplied(tmp_path):
    result = do(task("a", make_repository(tmp_path / "repository"), "openai"), tmp_path).result
    told = "the worker has no usable key for the model: set the key's variable there, or CODE_COMMIT_KEYS"
    assert (result.status, result.message, result.is_open) == ("not_set_up", told, True)


def test_a_refusal_tells_of_the_way_that_is_left_out(tmp_path, server, monkeypatch):
    own = tmp_path / "own" / "code-commit"
    own.mkdir(parents=True)
    (own / "config.toml").write_text(
        'model = "chat:m"\nbase_url = "https://llm.test/v1"\nkey_command = "echo k"\n[headers]\nX-Team = "a"\n'
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(own.parent))
    monkeypatch.delenv("CODE_COMMIT_USER_SETTINGS", raising=False)
    server.answer = lambda _: (401, "")
    repository = make_repository(tmp_path / "repository")
    told = "the tasks of a fleet do not use {} from your own settings: put"
    for names, settings in (("key_command and headers", {}), ("key_command", {"headers": {"X-Team": "b"}})):
        line = task("a", repository, settings=server.settings | settings)
        message = do(line, tmp_path).result.message
        assert told.format(names) in message, message
    (own / "config.toml").unlink()
    assert "your own settings" not in do(task("a", repository, settings=server.settings), tmp_path).result.message


def test_a_key_that_is_refused_is_mended_where_the_worker_has_it(tmp_path, server, monkeypatch):
    server.answer = lambda _: (401, "")
    line = task("a", make_repository(tmp_path / "repository"), settings=server.settings)
    where = "$CODE_COMMIT_KEYS/chat-key.txt"
    lacking = do(line, tmp_path).result
    assert lacking.message.endswith(f"write one into {where} (mode 600), or set CODE_COMMIT_CHAT_API_KEY")
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "keys/chat-key.txt").write_text(KEY)
    (tmp_path / "keys/chat-key.txt").chmod(0o600)
    monkeypatch.setenv("CODE_COMMIT_KEYS", str(tmp_path / "keys"))
    refused = do(line, tmp_path).result
    assert refused.message.endswith(f"the key from {where} is refused: put a valid one there")
    assert (lacking.is_open, refused.is_open) == (True, True)


@pytest.mark.slow
def test_the_address_of_a_task_gets_the_worker_s_key(tmp_path, monkeypatch):
    """Nothing listens at the proxy, and nothing else is contacted: exit code 3 says that the key would have gone."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    settings = {"base_url": "https://elsewhere.example", "llm_timeout": 1}
    outcome = do(task("a", make_repository(tmp_path / "repository"), "openai", settings=settings), tmp_path)
    record = load_run_record(outcome.record)
    assert (record.exit_code, record.base_url) == (3, "https://elsewhere.example/v1")


@pytest.mark.slow
def test_submodules_are_refused_before_anything_is_paid_or_left_empty_on_request(tmp_path, server):
    repository = make_repository(tmp_path / "repository", "test ! -e lib/build.sh; grep -q '^ok$' ok.txt")
    add_submodule(repository)
    server.answer = lambda number: (200, RIGHT if number > 1 else f"^^^lib/new.txt\nnew\n^^^end\n{RIGHT}")
    line = task("a", repository, settings=server.settings)
    refused = do(line, tmp_path).result
    assert (refused.status, refused.exit_code) == ("not_set_up", 2)
    assert 'to run without them: "overlay": {".gitmodules": null}' in refused.message
    assert server.calls == []

    outcome = do({**line, "overlay": {".gitmodules": None}}, tmp_path)
    assert (outcome.result.is_green, outcome.result.attempts) == (True, 2)
    assert b"lib is a submodule" in outcome.record
    (tmp_path / "patch").write_bytes(outcome.patch)
    git(repository, "apply", "--index", str(tmp_path / "patch"))
    assert b"gitmodules" not in outcome.patch


def test_no_room_on_a_worker_is_told_as_such(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\necho fatal: write error: No space left on device >&2; exit 128\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    repository = make_repository(tmp_path / "repository")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(WorkerError, match=r"git clone of .*: fatal: write error: No space"):
        do(task("a", repository), tmp_path)


ON_A_SMALL_DISK = """
import json, sys
from pathlib import Path
from code_commit.fleet.tasks import FleetTask
from code_commit.fleet.builds import Source
from code_commit.fleet.worker import TaskSupervision, run_task
line = json.load(sys.stdin)
try:
    print(run_task(FleetTask(**line), Source(line["repository"]), Path("place").absolute(), None, TaskSupervision()).result)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.root("mount")
@pytest.mark.parametrize(
    ("overlay", "told"),
    [({}, "WorkerError git checkout of "), ({"other.txt": "0" * 3_000_000}, "OSError [Errno 28]")],
    ids=["checkout", "overlay"],
)
def test_a_disk_that_is_full_as_the_clone_is_made_is_the_workers_fault(tmp_path, overlay, told):
    repository = make_repository(tmp_path / "repository")
    if not overlay:
        (repository / "big.txt").write_text("0" * 3_000_000)
        git(repository, "add", "-A")
        git(repository, "commit", "-qm", "big")
    (tmp_path / "place").mkdir()
    line = json.dumps(task("a", repository, overlay=overlay))
    words = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=1m none place && exec "$@"', "sh"]
    words += [sys.executable, "-c", ON_A_SMALL_DISK]
    done = subprocess.run(words, cwd=tmp_path, input=line, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(told), done.stdout + done.stderr


def test_a_task_anywhere_but_in_its_own_clone_does_nothing(tmp_path, monkeypatch):
    """Were a clone to fail unseen, git would find the repository around the worker's folder."""
    around = make_repository(tmp_path / "around")
    answers = make_answers(tmp_path / "answers", RIGHT)
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    fake = f'#!/bin/sh\ncase "$*" in *--shared*) for last; do :; done; mkdir "$last";; *) exec {real} "$@";; esac\n'
    (tmp_path / "bin" / "git").write_text(fake)
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (around / "ok.txt").write_text("mine\n")
    before, head = tree(around), git(around, "symbolic-ref", "HEAD")
    line = FleetTask(**task("a", around, answers))
    outcome = run_task(line, Source(str(around)), around / "target" / "place", None, UNWATCHED)
    shutil.rmtree(around / "target")

    assert "is not the clone that was made for the task" in outcome.result.message
    assert tree(around) == before
    assert git(around, "symbolic-ref", "HEAD") == head


@pytest.mark.slow
@pytest.mark.usefixtures("needs_bwrap")
def test_git_works_in_the_build_in_the_strictest_sandbox_too(tmp_path):
    repository = make_repository(tmp_path / "repository", "git log -1 --format=%s && grep -q '^ok$' ok.txt")
    answers = make_answers(tmp_path / "answers", RIGHT)
    outcome = do(task("a", repository, answers, settings={"sandbox": "strict"}), tmp_path)

    assert outcome.result.is_green, unpacked(outcome.log)["1-build.txt"]


@pytest.mark.usefixtures("needs_bwrap")
def test_a_build_cannot_read_the_key_by_which_a_worker_is_of_the_cluster(tmp_path):
    key = tmp_path / "tls.pem"
    key.write_text("-----BEGIN PRIVATE KEY-----\n")
    repository = make_repository(tmp_path / "repository", f"test -e {key} && ! grep . {key} && grep -q '^ok$' ok.txt")
    line = task("a", repository, make_answers(tmp_path / "answers", RIGHT), settings={"sandbox": "guard"})
    outcome = do(line, tmp_path, TaskSupervision(hidden=[key]))
    assert outcome.result.is_green, unpacked(outcome.log)["1-build.txt"]


HIDDEN = """#!/bin/sh
echo hidden-output
test ! -e left && grep -q fine ok.txt && grep -q fine lock.txt && ! cat agent-config/config.toml
"""
CHECKED = "if test -e check.sh; then ./check.sh; else echo fine >lock.txt; touch left; ! grep bad ok.txt; fi"


@pytest.mark.slow
@pytest.mark.usefixtures("needs_bwrap")
@pytest.mark.parametrize(("answer", "word"), [("fine", "solved"), ("poor", "not verified"), ("bad", "build failed")])
def test_a_green_result_is_built_again_with_hidden_files(tmp_path, answer, word):
    repository = make_repository(tmp_path / "repository", CHECKED)
    (repository / "lock.txt").write_text("old\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "lock")
    answers = make_answers(tmp_path / "answers", f"^^^ok.txt\n{answer}\n^^^end\n")
    line = task(
        "a",
        repository,
        answers,
        verify={"check.sh": HIDDEN},
        sealed=True,
        settings={"max_repairs": 0, "sandbox": "guard"},
    )
    outcome = do(line, tmp_path)
    files = unpacked(outcome.log)

    assert outcome.result.word == word, outcome.result
    assert outcome.result.is_green == (word == "solved")
    assert outcome.result.verified == {"solved": True, "not verified": False}.get(word)
    assert "1-build.txt" in files
    assert not any(b"hidden-output" in content for name, content in files.items() if name != "verify.txt")
    if word == "not verified":
        assert outcome.result.message.startswith(f"{UNVERIFIED}fails: exit code 1 after ")
        told = json.loads(outcome.record)
        assert (told["status"], told["exit_code"], told["message"]) == ("build_failed", 1, outcome.result.message)
        assert "| hidden-output" in files["verify.txt"].decode().splitlines()
    assert left_in(tmp_path) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        ("#!/bin/sh\necho x >>.gitignore\n", f"{UNVERIFIED}the build changed protected files"),
        ("#!/bin/sh\nkill -KILL $(ps -o ppid= -p $PPID)\n", f"{UNVERIFIED}code-commit check --build was killed"),
    ],
    ids=["protected file", "killed"],
)
def test_a_verification_build_that_ends_by_an_error_leaves_record_and_patch(tmp_path, hidden, message):
    repository = make_repository(tmp_path / "repository", "if test -e check.sh; then ./check.sh; fi")
    settings = {"sandbox": "off"}
    line = task(
        "a", repository, make_answers(tmp_path / "answers", RIGHT), verify={"check.sh": hidden}, settings=settings
    )
    outcome = do(line, tmp_path)
    assert (outcome.result.status, outcome.result.exit_code, outcome.result.verified) == ("not_verified", 1, False)
    assert outcome.result.message.startswith(message)
    assert b"+ok" in outcome.patch
    assert json.loads(outcome.record)["status"] == "build_failed"
    assert unpacked(outcome.log)["verify.txt"].decode().startswith(message.removeprefix(UNVERIFIED))


def test_nothing_is_supplied_through_a_link(tmp_path):
    root = make_repository(tmp_path / "repository")
    (tmp_path / "elsewhere").mkdir()
    config = (root / ".git/config").read_bytes()
    for name, target in (("conf", ".git"), ("link", tmp_path / "elsewhere")):
        (root / name).symlink_to(target)
        with pytest.raises(NotSetUpError, match=f"{name}/config is behind a symbolic link: name its real path"):
            put_files(root, {f"{name}/config": "[core]\n"})
    assert list((tmp_path / "elsewhere").iterdir()) == []
    put_files(root, {"a/b/c.txt": "c\n"})
    assert (root / ".git/config").read_bytes() == config
    assert (root / "a/b/c.txt").read_text() == "c\n"


@pytest.mark.parametrize("sealed", [True, False])
def test_a_sealed_clone_ends_at_the_commit(tmp_path, sealed):
    with (Path.home() / ".gitconfig").open("a") as config:
        config.write("[protocol]\n\tversion = 0\n")
    repository = make_repository(tmp_path / "repository", "git log --all --format=%s; git cat-file -t $(cat ok.txt)")
    git(repository, "commit", "-q", "--allow-empty", "-m", "the parent")
    git(repository, "commit", "-q", "--allow-empty", "-m", "the solution")
    later = git(repository, "rev-parse", "HEAD").strip()
    git(repository, "tag", "later")
    answers = make_answers(tmp_path / "answers", f"^^^ok.txt\n{later}\n^^^end\n")
    line = task("a", repository, answers, commit="HEAD^", sealed=sealed, settings={"max_repairs": 0})
    outcome = do(line, tmp_path)
    built = unpacked(outcome.log)["1-build.txt"].decode()
    assert "the parent\nstart" in built
    assert ("the solution" in built, outcome.result.is_green) == (not sealed, not sealed)


@pytest.mark.slow
def test_a_task_beyond_its_time_is_ended_and_keeps_its_log(tmp_path):
    repository = make_repository(tmp_path / "repository", "echo begun; sleep 66; :")
    answers = make_answers(tmp_path / "answers", RIGHT)
    outcome = do(task("a", repository, answers, timeout=5), tmp_path)

    assert outcome.result.status == "timed_out"
    assert outcome.result.message == "timed out after 5.0 s"
    assert b"\ndiff --git a/ok.txt" in outcome.patch
    assert json.loads(outcome.record)["status"] == "interrupted"
    assert not processes_with(str(tmp_path))
    assert left_in(tmp_path) == set()


@pytest.mark.slow
@pytest.mark.parametrize("attempt", [1, 2, 4])
@pytest.mark.parametrize("step", ["call", "build"])
def test_an_unwanted_task_comes_back_and_goes_on_elsewhere(attempt, step, tmp_path, server, marks, whole):
    """An answered call is not asked again, and no process is left."""
    if not whole and (attempt, step) not in ((1, "call"), (4, "build")):
        pytest.skip("part of the long sweep")
    last = 4 + (step == "call")  # the answer that was on its way is lost
    server.answer = lambda number: (
        200,
        RIGHT if number >= last else f"^^^ok.txt\nno {number}\n^^^end\n^^^new.txt\n^^^end\n",
    )
    build = f"echo >>{marks}/$CODE_COMMIT_ATTEMPT; while test -e {marks}/hold$CODE_COMMIT_ATTEMPT; do sleep 0.1; done"
    repository = make_repository(tmp_path / "repository", f"{build}; grep -q '^ok$' ok.txt")
    line, wanted = task("a", repository, settings=server.settings | PRICES), threading.Event()
    wanted.set()
    logs = []
    (marks / f"hold{attempt}").touch()
    with ThreadPoolExecutor(1) as pool:
        if step == "call":
            (marks / f"hold{attempt}").unlink()
            server.hold_from(attempt)
        watching = TaskSupervision(is_wanted=wanted.is_set, logged=logs.append)
        done = pool.submit(do, line, tmp_path, watching)
        wait_for(lambda: len(server.calls) == attempt)
        if step == "build":
            wait_for((marks / str(attempt)).exists)
        wait_for(lambda: logs and len(json.loads(unpacked(logs[-1])["run.json"])["attempts"]) == attempt)
        wanted.clear()
        interrupted = done.result(timeout=300)
    server.go.set()
    assert not processes_with(str(tmp_path))
    assert (interrupted.result.status, interrupted.result.exit_code) == ("interrupted", 143)
    answered = attempt - (step == "call")
    worst = 0.5 if step == "call" else 0.0
    costs = (interrupted.result.cost_usd, interrupted.result.unsettled_usd)
    assert costs == (pytest.approx(0.05 * answered), worst)

    (marks / f"hold{attempt}").unlink(missing_ok=True)
    shutil.rmtree(tmp_path / "place")
    again = do(line, tmp_path, log=interrupted.log, max_cost=10.0)
    assert again.result.is_green, again.result
    assert (again.result.attempts, again.result.run) == (4, interrupted.result.run)
    assert len(server.calls) == last
    assert (again.result.cost_usd, again.result.unsettled_usd) == (pytest.approx(0.2), worst)
    assert b"new.txt" in again.patch


def job_in(log: bytes) -> str | None:
    """Return the job of the latest attempt in a packed log."""
    attempts = json.loads(unpacked(log)["run.json"])["attempts"]
    return attempts[-1]["job_id"] if attempts else None


@pytest.mark.slow
def test_a_job_whose_worker_is_gone_is_fetched_elsewhere(tmp_path, monkeypatch):
    """The log is passed on again as soon as it has the job's id."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    logs, wanted = [], threading.Event()
    wanted.set()
    with FakeServer([RIGHT], [Fault("pause")], polls=10**6) as openai, ThreadPoolExecutor(1) as pool:
        settings = {"base_url": openai.base_url("openai")}
        line = task("a", make_repository(tmp_path / "repository"), "openai:gpt-6.2-sol", settings=settings)
        done = pool.submit(do, line, tmp_path, TaskSupervision(is_wanted=wanted.is_set, logged=logs.append))
        try:
            wait_for(lambda: logs and json.loads(unpacked(logs[-1])["run.json"])["attempts"], seconds=60)
            openai.resumed.set()
            wait_for(lambda: job_in(logs[-1]), seconds=60)
        finally:
            wanted.clear()
        done.result(timeout=300)
        shutil.rmtree(tmp_path / "place")
        openai.polls = 1
        again = do(line, tmp_path, log=next(filter(job_in, logs)))
    assert (again.result.is_green, len(openai.jobs)) == (True, 1), again.result


@pytest.mark.slow
def test_a_task_interrupted_in_its_verification_is_verified_again(tmp_path, server, marks):
    hidden = (
        f"#!/bin/sh\ntouch {marks}/begun; while test -e {marks}/hold; do sleep 0.1; done; grep -q '^new$' lock.txt\n"
    )
    repository = make_repository(
        tmp_path / "repository", "if test -e check.sh; then ./check.sh; else echo new >lock.txt; fi"
    )
    (repository / "lock.txt").write_text("old\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "lock")
    line = task("a", repository, settings=server.settings, verify={"check.sh": hidden})
    (marks / "hold").touch()
    watching = TaskSupervision(is_wanted=lambda: not (marks / "begun").exists())
    interrupted = do(line, tmp_path, watching)
    assert (interrupted.result.status, interrupted.result.is_open) == ("interrupted", True)
    (marks / "hold").unlink()
    again = do(line, tmp_path, log=interrupted.log)
    assert (again.result.word, again.result.run) == ("solved", interrupted.result.run)
    assert b"+new" in again.build_patch
    assert len(server.calls) == 1


def test_the_time_of_a_task_that_is_continued_is_that_of_all_its_starts(tmp_path):
    line = task("a", make_repository(tmp_path / "repository"), make_answers(tmp_path / "answers", RIGHT))
    files = unpacked(do(line, tmp_path).log)
    earlier = b"2026-01-02-03-04-05-committing-code"  # a run that begins in the same second would have its name
    record = json.loads(files["run.json"].replace(json.loads(files["run.json"])["run"].encode(), earlier))
    record["totals"]["seconds"] = 5_000.0
    log = packed({}, files | {"run.json": json.dumps(record).encode()})
    again = do(line, tmp_path, log=log)
    assert again.result.run == record["run"]
    assert again.result.seconds > json.loads(again.record)["totals"]["seconds"] > 5_000
    (tmp_path / "repository/ok.txt").write_text("other\n")
    git(tmp_path / "repository", "commit", "-qam", "another base, on which it begins anew")
    shutil.rmtree(tmp_path / "place")
    anew = do(line, tmp_path, log=log).result
    assert (anew.run != record["run"], anew.seconds < 5_000) == (True, True)


@pytest.mark.parametrize("log", [b"no archive", packed({}), packed({}, {"run.json": b"{}"})], ids=len)
def test_a_task_whose_log_is_none_begins_anew(log, tmp_path):
    line = task("a", make_repository(tmp_path / "repository"), make_answers(tmp_path / "answers", RIGHT))
    assert do(line, tmp_path, log=log).result.is_green


@pytest.mark.slow
def test_the_limits_of_a_task_that_goes_on_are_those_of_now(tmp_path, server):
    line = task("a", make_repository(tmp_path / "repository"), settings=server.settings | PRICES | {"max_cost": 0.6})
    server.answer = lambda number: (200, RIGHT if number == 4 else WRONG)
    first = do(line, tmp_path)
    assert (len(server.calls), first.result.error, first.result.is_open) == (3, "budget", True)
    line["settings"]["max_cost"] = 5.0
    assert do(line, tmp_path, log=first.log).result.is_green
    assert len(server.calls) == 4


@pytest.mark.slow
def test_the_key_comes_from_the_workers_folder_alone_(tmp_path, monkeypatch, server):
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "chat-key.txt").write_text(KEY)
    monkeypatch.setenv("CODE_COMMIT_KEYS", str(keys))
    repository = make_repository(tmp_path / "repository", "env; cat agent-config/*; cat ok.txt")
    line = task("a", repository, settings=server.settings)
    outcome = do(line, tmp_path)

    assert server.keys == {f"Bearer {KEY}"}
    log = b"".join(unpacked(outcome.log).values())
    assert outcome.result.is_green
    assert b"b/ok.txt" in log
    assert KEY.encode() not in log + outcome.record + outcome.patch


def test_a_key_that_a_build_prints_in_two_colours_is_in_no_result(tmp_path, monkeypatch, server):
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "chat-key.txt").write_text(KEY)
    monkeypatch.setenv("CODE_COMMIT_KEYS", str(keys))
    build = f"printf 'Error: {KEY[:5]}\\033[0m{KEY[5:]}\\n'; exit 1"
    line = task("a", make_repository(tmp_path / "repository", build), settings=server.settings | {"max_repairs": 0})
    message = do(line, tmp_path).result.message
    assert message == f"build: exit code 1 after {message.split()[5]} s: Error: {'*' * (len(KEY) - 2)}{KEY[-2:]}"


def test_what_a_call_cost_that_was_not_made_or_has_no_answer(tmp_path, server):
    prices = {"prices": {"fake": {"input": 10.0, "output": 100.0}}}
    line = task("a", make_repository(tmp_path / "repository"), settings=server.settings | prices)
    not_made = do(line, tmp_path, max_cost=0.01).result
    assert "--max-cost 0.01 is too low" in not_made.message
    assert (not_made.cost_usd, not_made.exit_code, not_made.needed_usd) == (0.0, 2, pytest.approx(0.1593, abs=0.001))


@pytest.mark.slow
@pytest.mark.parametrize(("moved", "calls"), [("other.txt", 0), ("ok.txt", 1)])
def test_a_run_goes_on_where_its_base_moved_unless_a_file_that_it_changed_did(tmp_path, server, moved, calls):
    """Else what the base changed in that file would be lost without a word."""
    repository = make_repository(tmp_path / "repository")
    line = task("a", repository, settings=server.settings)
    outcome = do(line, tmp_path / "first")
    (repository / moved).write_text("moved\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "moved")
    server.calls.clear()
    again = do(line, tmp_path / "second", log=outcome.log)
    assert (again.result.is_green, len(server.calls)) == (True, calls)
    assert again.result.commit == git(repository, "rev-parse", "HEAD").strip()
    assert (b"\n-moved\n" in again.patch) == (moved == "ok.txt")


@pytest.mark.slow
def test_a_run_whose_build_fails_on_a_moved_base_begins_anew(tmp_path, server):
    """Its LLM has not seen what moved, and would write over it."""
    build = "grep -q '^ok$' ok.txt && { test ! -e other.txt || grep -q both ok.txt; }"
    repository = make_repository(tmp_path / "repository", build)
    line = task("a", repository, settings=server.settings | PRICES)
    outcome = do(line, tmp_path / "first", max_cost=5.0)
    (repository / "other.txt").write_text("moved\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "moved")
    server.calls.clear()
    server.answer = lambda _: (200, "^^^ok.txt\nok\nboth\n^^^end\n")
    again = do(line, tmp_path / "second", log=outcome.log, max_cost=5.0)
    assert (again.result.is_green, again.result.attempts, len(server.calls)) == (True, 1, 1), again.result
    paid = outcome.result.cost_usd
    limit = json.loads(unpacked(again.log)["run.json"])["options"]["max_cost"]
    assert (paid > 0, limit) == (True, pytest.approx(5.0 - paid)), (
        "the run that begins anew has what the first one left"
    )
    assert "moved" in unpacked(again.log)["codebase.txt"].decode() + unpacked(again.log)["1-query.txt"].decode()
    assert b"+both" in again.patch


@pytest.fixture
def run_here(tmp_path, monkeypatch) -> _Run:
    """A task whose clone is there, with a key and the log of a run in it, and whose patches hold the key."""
    root = make_repository(tmp_path / "clone")
    (root / "agent-config").mkdir()
    (root / "agent-config" / "chat-key.txt").write_text(KEY)
    run = _Run(FleetTask(**task("a", "https://example.org/x"), timeout=60), root, TaskSupervision(start="s1 0.5"))
    run._repository, run._commit = cast("Any", "the repository"), "the commit"
    patches = Patches(f"answers {KEY}".encode(), f"build {KEY}".encode(), "tree", 2, 4)
    monkeypatch.setattr("code_commit.fleet.worker.make_patches", lambda *_: patches)
    return run


def log_in(run: _Run, **facts) -> Path:
    """Write the log of a run with a choice of files in the clone; its numbers are powers of two."""
    logs = run._root / "agent-config" / "logs"
    folder, choice = (logs / f"2026-11-2{day}-10-00-00-committing-code" for day in (2, 1))
    for place in (folder, choice):
        place.mkdir(parents=True, exist_ok=True)
        (place / "1-query.txt").write_text(place.name)
    call = Attempt(1, "initial", "m", finish_reason="stop", cost_usd=1.0, unsettled_usd=[2.0], verdict="applied")
    rewritten = [RewrittenFile("formatted", "reformat", 1, 1)]
    record = RunRecord("1", folder.name, "run", "2026-11-22T10:00:00.000Z", "", "", 1, attempts=[call], exit_code=0)
    record.choice = FileChoice(choice.name, calls=1, cost_usd=4.0, unsettled_usd=8.0)
    record.status, record.build_changes, record.rewritten = Status.SUCCESS, ["built"], rewritten
    for name, value in facts.items():
        setattr(record, name, value)
    record.totals = sum_up(record, 0.0)
    (folder / "run.json").write_text(json.dumps(asdict(record)))
    return folder


def test_the_outcome_of_a_run_has_each_of_its_parts_without_the_key(run_here):
    folder = log_in(run_here)
    content = (folder / "run.json").read_bytes()
    result, told, patch, log, build_patch = run_here.outcome()
    assert (told, [text.split()[0] for text in (patch, build_patch)]) == (content, [b"answers", b"build"])
    assert KEY.encode() not in patch + build_patch
    assert result.patch == digest_of(f"answers {KEY}".encode())
    assert (result.lines_added, result.lines_removed, result.build_changes, result.rewritten) == (
        *(2, 4),
        *(("built",), ("formatted",)),
    )
    assert (result.run, result.cost_usd, result.unsettled_usd) == ("2026-11-21-10-00-00-committing-code", 5.0, 10.0)
    assert (result.model, result.commit, result.status, result.attempts) == ("m", "the commit", "success", 1)
    assert unpacked(log) == {
        "run.json": content,
        "base-commit.txt": b"the commit",
        "starts.txt": b"s1 0.5 ended",
        "1-query.txt": folder.name.encode(),
        "choice/1-query.txt": b"2026-11-21-10-00-00-committing-code",
    }


@pytest.mark.parametrize("part", ["changes", "build"])
def test_what_only_a_patch_holds_is_not_told_without_it(part, run_here, monkeypatch):
    monkeypatch.setattr("code_commit.fleet.worker.make_patches", lambda *_: Patches(**{part: b"diff"}))
    log_in(run_here)
    result = run_here.outcome().result
    assert (result.build_changes, result.rewritten) == (
        ("built",) * (part == "build"),
        ("formatted",) * (part != "build"),
    )


def test_what_the_tests_that_the_llm_did_not_see_say_is_told_in_record_and_result(run_here):
    log_in(run_here)
    built = []
    run_here._task = run_here._task.model_copy(update={"verify": {"t": "hidden"}, "overlay": {"o": "supplied"}})
    stand_in = SimpleNamespace(
        supplies_build=False,
        build=lambda _, *given: built.append(given) or SimpleNamespace(why="it fails"),
        git=lambda _, *words: built.append(words[-5:]) or "a commit",
        set_timeout=built.append,
        is_late=False,
    )
    run_here._workshop = run_here._processes = cast("Any", stand_in)
    result, told, *_ = run_here.outcome()
    assert built == [
        *(None, 60, ("tree", "-p", "the commit", "-m", "The result")),
        ("a commit", {"o": "supplied", "t": "hidden"}),
    ]
    record = load_run_record(told)
    assert (result.status, result.verified, result.exit_code) == ("not_verified", False, 1)
    assert (record.status, record.exit_code, record.message) == (Status.BUILD_FAILED, 1, result.message)
    assert result.message.endswith("it fails")


def test_a_log_is_reported_with_each_step_but_not_while_an_answer_may_be_half_applied(run_here):
    reported = []
    run_here._supervision = TaskSupervision(start="s1", logged=reported.append)
    folder = log_in(run_here)
    for verdict, asked, count in (("applied", [2.0], 1), ("applied", [2.0], 1), (None, [2.0], 1), (None, [], 2)):
        call = Attempt(1, "initial", verdict=verdict, unsettled_usd=asked)
        call.changes = [AppliedChange("a", "create", 1, 1, 0)] if asked else []
        log_in(run_here, attempts=[call])
        run_here._pass_on(folder, (folder / "run.json").read_bytes())
        assert len(reported) == count
    assert unpacked(reported[0])["starts.txt"] == b"s1"


@pytest.mark.parametrize("is_as_before", [True, False])
def test_a_run_goes_on_with_the_limits_of_now_and_its_own_cost(is_as_before, run_here, monkeypatch):
    """Where the base has moved, its last build is all that is repeated; a new run gets the rest of the money."""
    calls = [Attempt(1, "initial", cost_usd=1.0, unsettled_usd=[2.0]), Attempt(2, "repair")]
    folder = log_in(run_here, attempts=calls, choice=None, options={"max_cost": 5, "prompt_layout": "short"})
    log = packed({"": folder}, {"base-commit.txt": b"another"})
    shutil.rmtree(folder.parent)
    lost = [] if is_as_before else ["a"]
    monkeypatch.setattr("code_commit.fleet.worker.read_changes", lambda *_: ([], lost))
    run_here._take_up(log)
    assert folder.exists() == is_as_before
    if is_as_before:
        record = load_run_record((folder / "run.json").read_bytes())
        assert (record.status, record.options) == (Status.INTERRUPTED, {"prompt_layout": "short", "max_repairs": 1})
    asked = []
    done = SimpleNamespace(stderr=b"why\n")
    run_here._processes = cast("Any", SimpleNamespace(command=lambda words, _: asked.append(words[-1]) or done))
    run_here._roll_up_and_run(16.0)
    rollup = run_here._task.rollup
    assert json.loads(asked[0]) == [rollup, ["--max-cost", "16.0"], ["--max-cost", "13.0"], True]
