"""An answer that arrived is not paid for again: whatever kills the run, or fills its disk, `resume` takes it."""

import json
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import Run, Start, the_log, wait_for
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
