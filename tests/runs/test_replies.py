"""An answer that arrived is not paid for again: whatever kills the run, or fills its disk, `resume` takes it."""

import json
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
from command import CODE_COMMIT, Run, Start, the_log, wait_for
from fake_apis import Answer
from fake_server import FakeServer, Fault
from forked_command import ForkedProcess
from kill_points import CALL, STRACE, TRACED, Call, changing, needs_strace, sample

WRONG, RIGHT = "^^^ok.txt\nwrong\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"
MODELS = {
    "chat": "chat:deepseek-flash",
    "anthropic": "anthropic:claude-opus-5-5",
    "openai": "openai:gpt-6.2-sol",
    "gemini": "gemini:gemini-4-argon",
}
STREAMED = ("chat", "anthropic")
COST = {"chat": 0.0003186, "anthropic": 0.00462, "openai": 0.002235, "gemini": 0.00221}
"""Of one answer of the fake server."""


@pytest.fixture
def root(project_folder: Path) -> Path:
    for provider in MODELS:
        file = project_folder / "agent-config" / f"{provider}-key.txt"
        file.write_text(f"test-key-of-{provider}")
        file.chmod(0o600)
    return project_folder


def record(root: Path) -> dict[str, Any]:
    return json.loads((the_log(root) / "run.json").read_text())


def asked(provider: str, server: FakeServer, *more: str) -> list[str]:
    return ["--model", MODELS[provider], "--base-url", server.base_url(provider), "--sandbox", "off", *more]


def billed(server: FakeServer) -> int:
    """Return how many answers were begun."""
    return sum(each.method == "POST" and not each.path.endswith("/cancel") for each in server.requests)


@contextmanager
def waiting(provider: str, start: Start, root: Path, *answers: str) -> Iterator[tuple[ForkedProcess, FakeServer]]:
    """Start a run, and give it and its server while the first answer is on its way; `arrive` lets it come."""
    streams = provider in STREAMED
    faults = [Fault("pause")] if streams else []
    with FakeServer(answers or (RIGHT, RIGHT), faults, polls=1 if streams else 10**6) as server:
        process = start(root, *asked(provider, server))
        wait_for(lambda: server.delivered if streams else any(each.method == "GET" for each in server.requests))
        yield process, server


def arrive(server: FakeServer) -> None:
    server.polls = 1
    server.resumed.set()


@contextmanager
def straced(process: ForkedProcess, *options: str) -> Iterator[None]:
    """Attach strace to a process, whose calls are counted from here on."""
    words = [str(STRACE), *options, "-p", str(process.pid)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as strace:
        assert "attached" in strace.stderr.readline()
        yield
        process.wait(60)
        strace.stderr.read()


def calls_until_saved(provider: str, start: Start, root: Path, log: Path) -> list[Call]:
    """Return the file-changing calls from the arrival of an answer until run.json has it."""
    with (
        waiting(provider, start, root) as (process, server),
        straced(process, "-y", "-s", "200", "-o", str(log), "-e", f"trace={TRACED}"),
    ):
        arrive(server)
    assert process.wait() == 0, process.communicate()
    counts: Counter[str] = Counter()
    calls = []
    for match in filter(None, map(CALL.match, log.read_text().splitlines())):
        counts[match[1]] += 1
        calls.append(Call(match[1], counts[match[1]], match[2]))
    answered = next(place for place, call in enumerate(calls) if is_rename(call, "/1-response.txt"))
    saved = next(place for place, call in enumerate(calls) if place > answered and is_rename(call, "/run.json"))
    return changing(calls[: saved + 2])


def is_rename(call: Call, target: str) -> bool:
    return call.name.startswith("rename") and f'{target}"' in call.text.rpartition(", ")[2]


@needs_strace
@pytest.mark.root  # a process that holds a key can be traced by nobody else
@pytest.mark.slow
@pytest.mark.parametrize("injected", ["signal=KILL", "error=ENOSPC"])
@pytest.mark.parametrize("provider", MODELS)
def test_whatever_call_is_the_last_one(
    provider, injected, root: Path, start_code_commit: Start, run_code_commit: Run, tmp_path: Path, whole
):
    """A stream is lost only if it could not be written at all, for which its room is kept."""
    first = shutil.copytree(root, tmp_path / "traced" / "project", symlinks=True)
    points = calls_until_saved(provider, start_code_commit, first, tmp_path / "trace")
    assert len(points) > 8
    for number, call in enumerate(sample(points, 5, whole=whole)):
        copy = shutil.copytree(root, tmp_path / str(number) / "project", symlinks=True)
        point = ["-e", f"trace={call.name}", "-e", f"inject={call.name}:{injected}:when={call.number}"]
        with waiting(provider, start_code_commit, copy) as (process, server):
            with straced(process, "-o", "/dev/null", *point):
                arrive(server)
            is_kept = provider not in STREAMED or (the_log(copy) / "1-response.json").exists()
            assert is_kept or ".1-response.json.room" in call.text, call
            if process.wait() != 0:
                assert process.wait() == (-signal.SIGKILL if "KILL" in injected else 5), process.communicate()
                done = run_code_commit(copy, "resume")
                assert done.returncode == 0, (call, done.stderr)
            assert billed(server) == (1 if is_kept else 2), call
        (attempt,) = record(copy)["attempts"]
        assert (attempt["usage"]["input"], attempt["job_id"]) == (1000, None), call
        if is_kept:
            assert (attempt["unsettled_usd"], attempt["cost_usd"]) == ([], pytest.approx(COST[provider])), call
        assert (copy / "ok.txt").read_text() == "ok\n"


@pytest.fixture
def kill_before(root: Path, start_code_commit: Start) -> Callable[..., None]:
    """Run the command, and kill it before the file of that name gets its place."""

    def kill(name: str, *arguments: str) -> None:
        program = (
            "import os, sys\n"
            "def look(event, arguments):\n"
            f"    if event == 'os.rename' and str(arguments[1]).endswith('/{name}'): os.kill(os.getpid(), 9)\n"
            "sys.addaudithook(look)\n"
        )
        process = start_code_commit(root, *arguments, before=program)
        assert process.wait(180) == -signal.SIGKILL, process.communicate()

    return kill


@pytest.mark.parametrize("provider", STREAMED)
def test_a_reply_alone_is_an_answer_and_a_text_alone_is_none(
    provider, kill_before, root: Path, run_code_commit: Run, tmp_path: Path
):
    with FakeServer([RIGHT] * 2) as server:
        kill_before("1-response.txt", *asked(provider, server))
        reply = the_log(root) / "1-response.json"
        other = shutil.copytree(root, tmp_path / "other" / "project", symlinks=True)
        (the_log(other) / "1-response.json").rename(the_log(other) / "1-response.txt")
        took = json.loads(reply.read_bytes())["totalResponseTime"]
        done = run_code_commit(root, "resume")
        assert (done.returncode, billed(server)) == (0, 1), done.stderr
        (attempt,) = record(root)["attempts"]
        assert (attempt["cost_usd"], attempt["unsettled_usd"]) == (pytest.approx(COST[provider]), [])
        assert (attempt["seconds"], attempt["usage"]["output"]) == (took / 1000, 40)
        assert (run_code_commit(other, "resume").returncode, billed(server)) == (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["cut_off", "refused", "empty"])
@pytest.mark.parametrize("provider", MODELS)
def test_it_is_read_as_its_vendor_reads_it(
    provider, ending, kill_before, root: Path, run_code_commit: Run, tmp_path: Path
):
    """The attempts are those of a run that nothing disturbs."""
    undisturbed = shutil.copytree(root, tmp_path / "undisturbed" / "project", symlinks=True)
    answers = [Answer("no block", ending), Answer(RIGHT)]
    with FakeServer(answers) as first, FakeServer(answers) as second:
        assert run_code_commit(undisturbed, *asked(provider, first)).returncode == 0
        kill_before("1-response.txt", *asked(provider, second))
        assert run_code_commit(root, "resume").returncode == 0
    assert billed(second) == 2
    names = ("model", "finish_reason", "incomplete", "cut_off", "usage", "cost_usd", "unsettled_usd", "verdict")
    facts = [[[each[name] for name in names] for each in record(of)["attempts"]] for of in (root, undisturbed)]
    assert facts[0] == facts[1]


@pytest.mark.slow
def test_the_reply_of_a_refusal_is_no_answer(root: Path, run_code_commit: Run):
    body = {"error": {"message": "No.", "code": "invalid_prompt"}}
    for provider in MODELS:
        with FakeServer([RIGHT], [Fault("status", status=400, body=body)]) as server:
            assert run_code_commit(root, *asked(provider, server)).returncode == 3
            assert json.loads((the_log(root) / "1-response.json").read_bytes())["error"]
            done = run_code_commit(root, "resume")
            assert (done.returncode, billed(server)) == (0, 2), done.stderr
        shutil.rmtree(the_log(root))
        (root / "ok.txt").write_text("not yet\n")


FILES = "^^^files\nmore.txt\n^^^end\n"
CHOICE = "^^^files\npart_7.py\n^^^end\n"
WAYS = {
    "a choice of files before a run": ("1", [CHOICE, RIGHT], ["--rollup", "select"], {}),
    "a choice of files alone": ("1", [CHOICE], ["rollup", "--select"], {}),
    "an answer that asks to see files": ("1", [FILES, RIGHT], [], {}),
    "the answer after it": ("2", [FILES, RIGHT], [], {}),
    "a rejected answer": ("1", ["no block", RIGHT], [], {}),
    "a repair": ("2", [WRONG, RIGHT], [], {}),
    "an exchange of messages": ("2", [WRONG, RIGHT], [], {"prompt_layout": "short"}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("number", "answers", "words", "settings"), WAYS.values(), ids=WAYS)
def test_it_is_kept_whatever_was_asked(number, answers, words, settings, kill_before, root: Path, run_code_commit: Run):
    (root / "more.txt").write_text("more\n")
    for part in range(40):
        (root / f"part_{part}.py").write_text("".join(f"value_{line} = {line}\n" for line in range(200)))
    config = root / "agent-config" / "config.toml"
    config.write_text("".join(f'{name} = "{value}"\n' for name, value in settings.items()))
    with FakeServer([Answer(answer, input_tokens=20_000) for answer in answers]) as server:
        options = asked("chat", server)[: 4 if words[:1] == ["rollup"] else None]
        kill_before(f"{number}-response.txt", *words, *options)
        done = run_code_commit(root, "resume")
    assert (done.returncode, billed(server)) == (0, len(answers)), done.stderr
    (*_, last) = sorted((root / "agent-config" / "logs").iterdir())
    totals = json.loads((last / "run.json").read_bytes())["totals"]
    assert totals["usage"]["input"] == 20_000 * len(answers)
    assert totals["unsettled_usd"] == 0


def test_the_answer_of_a_fallback_is_kept(kill_before, root: Path, run_code_commit: Run):
    """What the first model may cost stays apart."""
    lost = Fault("status", "poll", 999, 403, body={"error": {"message": "No."}})
    with FakeServer([RIGHT], [lost]) as first, FakeServer([RIGHT] * 2) as second:
        more = ["--fallback-model", MODELS["chat"], "--fallback-base-url", second.base_url("chat")]
        kill_before("1-response.txt", *asked("openai", first, *more))
        done = run_code_commit(root, "resume")
    assert (done.returncode, billed(first), billed(second)) == (0, 1, 1), done.stderr
    (attempt,) = record(root)["attempts"]
    assert (attempt["model"], attempt["cost_usd"]) == (MODELS["chat"], pytest.approx(COST["chat"]))
    assert len(attempt["unsettled_usd"]) == 1


class SmallDisk:
    """A log folder of three megabytes, in a name space of its own; what is left at its end is gone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        mount = (
            "mkdir -p agent-config/logs && mount -t tmpfs -o size=3m none agent-config/logs && echo && exec sleep 600"
        )
        self._holder = subprocess.Popen(["unshare", "-m", "sh", "-c", mount], cwd=root, stdout=subprocess.PIPE)
        assert self._holder.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.kill()
        self._holder.communicate()

    def start(self, *words: str) -> subprocess.Popen[str]:
        enter = ["nsenter", "-t", str(self._holder.pid), "-m", "sh", "-c", 'cd "$0" && exec "$@"', str(self._root)]
        return subprocess.Popen([*enter, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        output, complaint = process.communicate(timeout=180)
        return process.returncode, output + complaint

    def fill(self, left: int = 0) -> None:
        """Fill it, but for so many kilobytes."""
        full = "agent-config/logs/full"
        self.run("sh", "-c", f"cat /dev/zero >{full} 2>/dev/null; truncate -s -{left}k {full}")

    def clear(self) -> None:
        self.run("rm", "agent-config/logs/full")


@pytest.mark.root("mount")
def test_without_room_for_an_answer_none_is_asked_for(root: Path):
    with SmallDisk(root) as disk, FakeServer([RIGHT]) as server:
        disk.fill(left=500)
        code, said = disk.run(*CODE_COMMIT, *asked("chat", server))
        assert (code, server.requests) == (5, []), said
        assert "1-response.json cannot be made large enough for an answer, so none was requested: No space left" in said
        assert "code-commit resume continues this run" in said
        _, log = disk.run("sh", "-c", "cat agent-config/logs/2*/run.json; ls -A agent-config/logs/2*")
        assert '"unsettled_usd": []' in log
        assert ".room" not in log
        disk.clear()
        code, said = disk.run(*CODE_COMMIT, "resume")
        assert (code, billed(server)) == (0, 1), said


@pytest.mark.root("mount")
@pytest.mark.slow
def test_what_was_not_sent_is_not_told_as_spent_whichever_file_has_no_room(root: Path, whole):
    """The last of them is run.json, with what the request may cost."""
    ends = set()
    for left in range(1080, 1180, 4) if whole else (1080, 1112, 1120, 1160):
        with SmallDisk(root) as disk, FakeServer([RIGHT]) as server:
            disk.fill(left=left)
            code, said = disk.run(*CODE_COMMIT, *asked("chat", server))
            _, log = disk.run("sh", "-c", "cat agent-config/logs/2*/run.json")
            ends.add((code, billed(server)))
        if not server.requests:
            ended = json.loads(log)
            assert (ended["totals"]["unsettled_usd"], ended["error"]["may_be_paid"]) == (0, False), said
        (root / "ok.txt").write_text("not yet\n")
    assert (5, 0) in ends
    assert any(count for _, count in ends)


@pytest.mark.root("mount")
@pytest.mark.parametrize("provider", ["chat", "anthropic"])
def test_a_disk_that_fills_up_while_an_answer_comes_loses_none(provider, root: Path):
    answer = "words " * 20_000 + "\n" + RIGHT
    with SmallDisk(root) as disk, FakeServer([answer] * 2, [Fault("pause")]) as server:
        process = disk.start(*CODE_COMMIT, *asked(provider, server))
        wait_for(lambda: server.delivered)
        disk.fill()
        arrive(server)
        process.communicate(timeout=180)
        disk.clear()
        if process.returncode:
            assert process.returncode == 5
            assert disk.run(*CODE_COMMIT, "resume")[0] == 0
        assert billed(server) == 1
    assert (root / "ok.txt").read_text() == "ok\n"


def as_if_killed(log: Path, *, answered: bool) -> None:
    """Let a run's log end behind the reply of its only attempt, or behind the record of its answer."""
    run = json.loads((log / "run.json").read_text())
    run |= {"status": "running", "exit_code": None, "message": None, "finished": None, "pid": 1, "process_start": ""}
    attempt = run["attempts"][0]
    attempt |= {"verdict": None, "changes": [], "build": None}
    if not answered:
        attempt |= {"finish_reason": None, "usage": None, "cost_usd": None, "unsettled_usd": [0.5]}
    (log / "run.json").write_text(json.dumps(run))
    for name in ("1-response.txt", "1-changes.diff", "1-build.txt"):
        (log / name).unlink()
    shutil.rmtree(log / "snapshot")


def with_time(time: object, reply: bytes) -> bytes:
    return json.dumps({**json.loads(reply), "totalResponseTime": time}).encode()


@pytest.mark.parametrize("time", [10**400, -5, "soon", [1], None], ids=["huge", "negative", "word", "list", "null"])
def test_a_time_that_is_none_keeps_no_reply_from_being_taken(time, root: Path, run_code_commit: Run):
    with FakeServer([RIGHT, RIGHT]) as server:
        run_code_commit(root, *asked("openai", server))
        as_if_killed(the_log(root), answered=False)
        reply = the_log(root) / "1-response.json"
        reply.write_bytes(with_time(time, reply.read_bytes()))
        (root / "ok.txt").write_text("not yet\n")
        done = run_code_commit(root, "resume")
    assert (done.returncode, billed(server)) == (0, 1), done.stderr
    assert record(root)["attempts"][0]["seconds"] == 0


@pytest.mark.parametrize("damage", [b"", b"\0" * 99, b'{"id": "resp_1", "out'])
def test_an_answer_that_was_counted_is_not_asked_for_again_where_the_log_lost_it(
    damage, root: Path, run_code_commit: Run
):
    with FakeServer([RIGHT, RIGHT]) as server:
        run_code_commit(root, *asked("openai", server))
        as_if_killed(the_log(root), answered=True)
        (the_log(root) / "1-response.json").write_bytes(damage)
        (root / "ok.txt").write_text("not yet\n")
        done = run_code_commit(root, "resume")
    assert (done.returncode, billed(server)) == (2, 1), done.stderr
    assert "cannot be resumed because its 1-response.txt cannot be read" in done.stderr


def test_a_reply_that_is_no_regular_file_is_not_waited_for(root: Path, run_code_commit: Run):
    with FakeServer([RIGHT, RIGHT]) as server:
        run_code_commit(root, *asked("openai", server))
        as_if_killed(the_log(root), answered=False)
        (the_log(root) / "1-response.json").unlink()
        os.mkfifo(the_log(root) / "1-response.json")
        (root / "ok.txt").write_text("not yet\n")
        done = run_code_commit(root, "resume")
    assert (done.returncode, billed(server)) == (5, 1), done.stderr
    assert "1-response.json cannot be read: it is not a regular file" in done.stderr
