"""The installed command against a real server on this machine: what is sent, what is logged, what is told."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import CODE_COMMIT, Run, git, recorded, the_log, wait_for
from fake_server import FakeServer, Fault

from code_commit.changes import (
    AppliedChange,
    FileReplacement,
    FilesAskedError,
    NotApprovedError,
    OriginalFile,
    RejectedResponseError,
    VerifiedChange,
    VerifiedChanges,
    Violation,
)
from code_commit.check.plan import RunInputs
from code_commit.codebase.text import Codebase
from code_commit.errors import ApplyError, BuildError
from code_commit.exchange import Response
from code_commit.llm.models import choose_model
from code_commit.project import find_project
from code_commit.prompts.next import Answer
from code_commit.redaction import Redactor
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import Attempt, BuildResult, RunEntry, TreeBefore, load_run_record
from code_commit.settings import Settings
from code_commit.start import Run as StartedRun
from code_commit.start import _note_choice, open_log
from code_commit.status import Status
from code_commit.workflow import (
    _ends_run,
    _wait_for_approval,
    applied_paths,
    attempt_loop,
    build_project,
    change_files,
    is_meant,
)

KEY = "test-key/0123+456789abcdef"
PROVIDERS = {
    "openai": ("openai:gpt-6.2-sol", "openai-key.txt", "authorization"),
    "anthropic": ("anthropic:claude-opus-5-5", "anthropic-key.txt", "authorization"),
    "gemini": ("gemini:gemini-4-argon", "gemini-key.txt", "x-goog-api-key"),
    "chat": ("chat:some-model", "chat-key.txt", "authorization"),
}
WRONG, RIGHT = "Try:\n^^^ok.txt\nwrong\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"


def give_key(root: Path, name: str) -> None:
    (root / "agent-config" / name).write_text(KEY + "\n")
    (root / "agent-config" / name).chmod(0o600)


def without_key(root: Path, *texts: str) -> None:
    """Fail if the key, or all of it but its last two characters, stands in a file of the tree or in a text."""
    files = [path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-key.txt")]
    for content in [*(path.read_bytes() for path in files), *(text.encode() for text in texts)]:
        assert KEY[:-2].encode() not in content


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_wrong_then_a_right_answer(provider, project_folder: Path, run_code_commit: Run):
    model, key_file, header = PROVIDERS[provider]
    give_key(project_folder, key_file)
    (project_folder / "build.sh").write_text("#!/bin/sh\necho building; cat ok.txt >&2; grep -qx ok ok.txt\n")
    git(project_folder, "commit", "-qam", "noisy build")
    with FakeServer(answers=[WRONG, RIGHT]) as server:
        done = run_code_commit(project_folder, "--model", model, "--base-url", server.base_url(provider), "--json")

    assert done.returncode == 0, done.stderr
    assert (project_folder / "ok.txt").read_text() == "ok\n"
    assert git(project_folder, "status", "--porcelain") == " M ok.txt\n"
    assert any(KEY in request.headers.get(header, "") for request in server.requests)
    assert not any(KEY in request.path for request in server.requests)

    log = the_log(project_folder)
    numbered = {"query.txt", "shows.json", "query.json", "response.txt", "response.json", "changes.diff", "build.txt"}
    assert {path.name for path in log.iterdir()} == {
        *(f"{number}-{name}" for number in (1, 2) for name in numbered),
        "run.json",
        "query.txt",
        "codebase.txt",
        "codebase-shows.json",
        "ignore-files.json",
        "snapshot",
    }
    assert (log / "1-response.txt").read_text() == WRONG
    assert re.fullmatch(
        r"building\nwrong\n\[build\.sh: exit code 1 after \d+\.\d s\]\n", (log / "1-build.txt").read_text()
    )
    request = json.loads((log / "1-query.json").read_text())
    assert request["url"].startswith(server.base_url(provider))
    assert {name.lower(): value for name, value in request["headers"].items()}[header].endswith("***ef")
    assert json.loads((log / "2-response.json").read_text())["totalResponseTime"] >= 0
    assert "[build.sh output]\nbuilding\nwrong\n" in (log / "2-query.txt").read_text()
    git(project_folder, "apply", "--reverse", "--check", str(log / "2-changes.diff"))

    record = load_run_record((log / "run.json").read_bytes())
    assert json.loads(done.stdout) == json.loads((log / "run.json").read_text())
    assert (record.status, record.exit_code, record.model) == ("success", 0, model)
    assert [(attempt.kind, attempt.verdict) for attempt in record.attempts] == [
        ("initial", "applied"),
        ("repair", "applied"),
    ]
    assert [attempt.build.exit_code for attempt in record.attempts if attempt.build] == [1, 0]
    assert record.attempts[0].usage
    assert record.attempts[0].finish_reason
    without_key(project_folder, done.stdout, done.stderr)


@pytest.mark.slow
def test_what_a_build_leaves_running_cannot_make_the_next_one_pass(project_folder: Path, run_code_commit: Run):
    """It rewrites build.sh while the LLM is asked for the repair."""
    give_key(project_folder, "openai-key.txt")
    later = "touch started; until ls agent-config/logs/*/2-query.txt; do sleep 0.01; done; echo exit 0 > build.sh"
    waits = (
        "until [ -e started ]; do sleep 0.01; done"  # before it has a session of its own, the end of build.sh ends it
    )
    (project_folder / "build.sh").write_text(f"#!/bin/sh\nsetsid sh -c '{later}' > /dev/null 2>&1 &\n{waits}\nexit 1\n")
    git(project_folder, "commit", "-qam", "hostile build")
    script = (project_folder / "build.sh").read_text()
    with FakeServer(answers=[WRONG, WRONG], polls=100) as server:
        url = server.base_url("openai")
        done = run_code_commit(project_folder, "--model", "openai", "--base-url", url, "--sandbox", "off")
    assert done.returncode == 5, done.stderr
    assert "changed protected files; it was put back: build.sh (changed)" in done.stderr
    assert (project_folder / "build.sh").read_text() == script


def test_logs_are_for_their_owner_alone(project_folder: Path, run_code_commit: Run):
    run_code_commit(project_folder, *recorded(project_folder, RIGHT))
    log = the_log(project_folder)
    for path in [log.parent, log, *log.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_two_runs_in_one_second_have_logs_of_their_own(project_folder: Path, run_code_commit: Run):
    recorded(project_folder, RIGHT)
    for _ in range(4):
        assert run_code_commit(project_folder, "--model", "replay:agent-config/recorded").returncode == 0
    logs = list((project_folder / "agent-config" / "logs").iterdir())
    assert len(logs) == 4
    assert all(re.fullmatch(r"\d{4}(-\d\d){5}-committing-code(-\d)?", log.name) for log in logs)


@pytest.mark.slow
def test_the_key_that_a_build_prints_reaches_neither_log_nor_prompt(project_folder: Path, run_code_commit: Run):
    give_key(project_folder, "openai-key.txt")
    (project_folder / "build.sh").write_text(
        f"#!/bin/sh\nprintf 'test-key/0123'; sleep 0.3; echo '+456789abcdef'\necho '{KEY}' | base64\nenv\nexit 1\n"
    )
    git(project_folder, "commit", "-qam", "leaky build")
    with FakeServer(answers=[WRONG, RIGHT]) as server:
        done = run_code_commit(
            project_folder, "--model", "openai", "--base-url", server.base_url("openai"), "--max-repairs", "1",
            env={"OPENAI_API_KEY": KEY, "FOO": KEY, "CODE_COMMIT_QUIET": "0"},
        )  # fmt: skip
    assert done.returncode == 1
    sent = json.dumps([request.body for request in server.requests])
    assert KEY[:-2] not in sent
    log = the_log(project_folder)
    output = (log / "1-build.txt").read_text()
    assert output.startswith("*" * (len(KEY) - 2) + "ef\n")
    assert "OPENAI_API_KEY" not in output
    assert "FOO" not in output
    assert "CODE_COMMIT_ATTEMPT=1" in output
    assert f"CODE_COMMIT_RUN={log.name}" in output
    assert "CODE_COMMIT_QUIET" not in output
    (project_folder / "build.sh").unlink()  # it holds the key by its author's own hand
    (log / "1-changes.diff").unlink()
    without_key(project_folder, done.stderr, sent)


def completion(finish: str = "stop", **members: object) -> dict:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": RIGHT}}
    return {"id": "c", "object": "chat.completion", "choices": [choice], **members}


HALF = "x\ud800"
ODD_REPLIES = {
    "half a character in the id": (completion(id=HALF), 0),
    "half a character in the reason": (completion(HALF), 4),
    "half a character in names": (completion(**{HALF: {HALF: [HALF]}}), 0),
    "half a character in an error": ({"error": {"message": HALF, "code": HALF, "type": "invalid_request_error"}}, 3),
    "counts that no float holds": (completion(usage={"prompt_tokens": 10**400, "completion_tokens": 10**400}), 0),
    "counts that are none": (completion(usage={"prompt_tokens": float("nan"), "completion_tokens": float("inf")}), 0),
    "negative counts": (completion(usage={"prompt_tokens": -1, "completion_tokens": -1e308}), 0),
    "counts of other kinds": (completion(usage={"prompt_tokens": "5", "completion_tokens": [{}], HALF: True}), 0),
    "usage of another kind": (completion(usage=[HALF, 10**400]), 0),
}


@pytest.mark.parametrize(("body", "code"), ODD_REPLIES.values(), ids=ODD_REPLIES)
def test_an_odd_reply_damages_no_record(body, code, project_folder: Path, run_code_commit: Run):
    from fake_server import Fault

    prices = "[prices.some-model]\ninput = 1e3\noutput = 1e3\n"
    (project_folder / "agent-config" / "config.toml").write_text(prices)
    options = ["--model", "chat:some-model", "--max-repairs", "0", "--json"]
    with FakeServer(faults=[Fault("status", status=200, body=body)]) as server:
        done = run_code_commit(project_folder, *options, "--base-url", server.base_url("chat"))
    assert done.returncode == code, done.stderr
    load_run_record(done.stdout)
    (run,) = json.loads(run_code_commit(project_folder, "log", "--json").stdout)
    assert run["exit_code"] == code
    for file in the_log(project_folder).glob("*.json"):
        json.dumps(json.loads(file.read_bytes()), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY[:6]}****{KEY[-4:]}", "code": "invalid_api_key"}}, "key"),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, "quota"),
        (404, {"error": {"message": "The model does not exist", "code": "model_not_found"}}, "model"),
    ],
)  # fmt: skip
def test_an_unreachable_llm_ends_with_3_and_its_own_words(status, body, said, project_folder, run_code_commit: Run):
    from fake_server import Fault

    give_key(project_folder, "openai-key.txt")
    before = (project_folder / "ok.txt").read_bytes()
    with FakeServer(answers=[RIGHT], faults=[Fault("status", status=status, body=body)]) as server:
        done = run_code_commit(project_folder, "--model", "openai", "--base-url", server.base_url("openai"))
    assert done.returncode == 3
    assert said in done.stderr
    assert (project_folder / "ok.txt").read_bytes() == before
    log = the_log(project_folder)
    assert json.loads((log / "1-response.json").read_text())["error"]["code"] == body["error"]["code"]
    assert load_run_record((log / "run.json").read_bytes()).status == "llm_error"
    assert KEY[-4:] not in done.stderr + (log / "1-response.json").read_text()
    without_key(project_folder, done.stdout, done.stderr)


@pytest.mark.slow
def test_each_retry_is_told_also_where_it_is_the_same(project_folder: Path, run_code_commit: Run):
    from fake_server import Fault

    give_key(project_folder, "openai-key.txt")
    busy = Fault("status", status=429, headers={"retry-after": "1"}, times=3)
    with FakeServer(answers=[RIGHT], faults=[busy]) as server:
        limit = ["--llm-timeout", "1e12"]  # no line says until when: all are the same
        done = run_code_commit(project_folder, "--model", "openai", "--base-url", server.base_url("openai"), *limit)
    assert done.returncode == 0
    assert done.stderr.count("answered 429") == done.stderr.count("; retrying in 1.0 s\n") == 3


@pytest.mark.parametrize(
    ("provider", "layout", "is_told"), [("chat", "cached", True), ("chat", "short", False), ("openai", "spec", False)]
)
def test_a_model_that_sends_no_block_is_offered_the_short_layout(
    *, provider: str, layout: str, is_told: bool, project_folder: Path, run_code_commit: Run
):
    give_key(project_folder, "openai-key.txt")
    with FakeServer(answers=["```\nok\n```\n"] * 2) as server:
        where = ["--model", f"{provider}:m", "--base-url", server.base_url(provider), "--prompt-layout", layout]
        done = run_code_commit(project_folder, *where, "--max-repairs", "1")
    assert (done.returncode, "with --prompt-layout short.\n" in done.stderr) == (4, is_told), done.stderr


def test_a_response_that_was_cut_off_is_never_applied(project_folder: Path, run_code_commit: Run):
    from fake_apis import Answer

    give_key(project_folder, "openai-key.txt")
    with FakeServer(answers=[Answer(RIGHT, ending="cut_off"), RIGHT]) as server:
        done = run_code_commit(
            project_folder, "--model", "openai", "--base-url", server.base_url("openai"), "--on-rejected", "stop"
        )
    assert done.returncode == 4, done.stderr
    assert (project_folder / "ok.txt").read_text() == "not yet\n"
    assert "cut off" in done.stderr


@pytest.mark.slow
def test_an_answer_that_was_cut_off_is_asked_for_once_more_and_shorter(project_folder: Path, run_code_commit: Run):
    """The prompt of a third call would be that of the second, and each costs an answer of the greatest length."""
    from fake_apis import Answer

    give_key(project_folder, "openai-key.txt")
    cut, again = Answer("^^^ok.txt\nok\n" * 9, ending="cut_off"), ["--answer-format", "edits"]
    for answers, code, calls in (([cut, RIGHT], 0, 2), ([cut] * 4, 4, 2), ([cut, "no block", cut, RIGHT], 0, 4)):
        (project_folder / "ok.txt").write_text("not yet\n")
        shutil.rmtree(project_folder / "agent-config/logs", ignore_errors=True)
        with FakeServer(answers=answers) as server:
            done = run_code_commit(project_folder, "--model", "openai", "--base-url", server.base_url("openai"), *again)
        assert done.returncode == code, done.stderr
        log = the_log(project_folder)
        assert len(list(log.glob("*-query.txt"))) == calls
        size = r"warning: the answer of attempt 1 was cut off after 40 tokens, \d+ of them thoughts, 117 characters: "
        assert re.search(size, done.stderr), done.stderr
        assert "raise --max-output-tokens" in done.stderr
        prompt = (log / "2-query.txt").read_text()
        assert "- the response is cut off at the output limit" in prompt
        assert ": send a shorter one, with no file that need not change, with edits" in prompt
        assert "The rejected answer, from its line 1 on" not in prompt
        attempt = json.loads((log / "run.json").read_text())["attempts"][0]
        assert (attempt["cut_off"], [each["rule"] for each in attempt["rejections"]]) == (True, ["cut-off"])


def test_two_empty_answers_in_a_row_end_the_run_and_are_paid_for(project_folder: Path, run_code_commit: Run):
    from fake_apis import Answer

    give_key(project_folder, "openai-key.txt")
    with FakeServer(answers=["no block", *[Answer(ending="empty")] * 3]) as server:
        done = run_code_commit(project_folder, "--model", "openai", "--base-url", server.base_url("openai"))
    assert (done.returncode, len(server.jobs)) == (4, 3), done.stderr
    assert "only thoughts, 15 tokens of them" in done.stderr
    record = load_run_record((the_log(project_folder) / "run.json").read_bytes())
    assert record.totals.usage.output == 3 * Answer().output_tokens


THOUGHTS = "<think>only thoughts</think>"


@pytest.mark.parametrize("first", [THOUGHTS, "", "<think>some that never end"])
@pytest.mark.parametrize("second", [THOUGHTS, ""])
def test_two_answers_without_more_than_thoughts_end_the_run(first, second, project_folder: Path, run_code_commit: Run):
    recorded(project_folder, "no block", first, second, RIGHT)
    done = run_code_commit(project_folder, "--model", "replay:agent-config/recorded")
    assert (done.returncode, len(list(the_log(project_folder).glob("*-query.txt")))) == (4, 3), done.stderr


def test_thoughts_with_words_after_them_are_an_answer_to_repair(project_folder: Path, run_code_commit: Run):
    recorded(project_folder, THOUGHTS, f"{THOUGHTS}\nDone.", THOUGHTS, RIGHT)
    assert run_code_commit(project_folder, "--model", "replay:agent-config/recorded").returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_build_and_the_run(number, code, project_folder: Path):
    recorded(project_folder, RIGHT)
    (project_folder / "build.sh").write_text("#!/bin/sh\necho started\nsleep 61 & sleep 62\n")
    command = [*CODE_COMMIT, "--model", "replay:agent-config/recorded"]
    process = subprocess.Popen(command, cwd=project_folder, stderr=subprocess.PIPE, text=True)
    log = wait_for(lambda: next((project_folder / "agent-config" / "logs").glob("*/1-build.txt"), None))
    wait_for(lambda: "started" in log.read_text())
    process.send_signal(number)
    _, said = process.communicate(timeout=180)
    assert process.returncode == code
    assert "interrupted" in said
    record = load_run_record((log.parent / "run.json").read_bytes())
    assert (record.status, record.exit_code) == ("interrupted", code)
    assert log.read_text().startswith("started\n")
    assert (project_folder / "ok.txt").read_text() == "ok\n"  # whole: the response was applied before the build


def test_a_build_script_without_a_run_bit_is_warned_of_once(project_folder: Path, run_code_commit: Run):
    recorded(project_folder, RIGHT)
    (project_folder / "build.sh").chmod(0o644)
    done = run_code_commit(project_folder, "--model", "replay:agent-config/recorded")
    assert (done.returncode, done.stderr.count("build.sh is not executable")) == (0, 1), done.stderr


def test_signals_in_a_row_end_the_run_and_its_record_says_so(project_folder: Path):
    """As when a parent of many threads is killed: each of them that ends sends one."""
    recorded(project_folder, RIGHT)
    (project_folder / "build.sh").write_text("#!/bin/sh\nsleep 61\n")
    command = [*CODE_COMMIT, "--model", "replay:agent-config/recorded"]
    process = subprocess.Popen(command, cwd=project_folder, stderr=subprocess.DEVNULL)
    log = wait_for(lambda: next((project_folder / "agent-config" / "logs").glob("*/1-build.txt"), None))
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    record = load_run_record((log.parent / "run.json").read_bytes())
    assert (record.status, record.exit_code) == ("interrupted", 143)


def test_a_signal_after_the_end_changes_it_no_more(project_folder: Path, monkeypatch):
    """It comes while what the build left is looked at, when the build has passed."""
    recorded(project_folder, RIGHT)
    (project_folder / "build.sh").write_text("#!/bin/sh\ntouch built\n")
    programs, git = project_folder.parent / "bin", shutil.which("git")
    programs.mkdir()
    script = f'#!/bin/sh\n[ ! -e {project_folder}/built ] || case "$*" in *status*) kill -TERM $PPID ;; esac\nexec {git} "$@"\n'
    (programs / "git").write_text(script)
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    command = [*CODE_COMMIT, "--model", "replay:agent-config/recorded"]
    done = subprocess.run(command, cwd=project_folder, capture_output=True, text=True, check=False)
    record = load_run_record((the_log(project_folder) / "run.json").read_bytes())
    assert (done.returncode, record.status, record.exit_code) == (0, "success", 0), done.stderr


SIGNALLED = """
import os, signal, sys
from code_commit.cli import main

left = int(sys.argv[1])

def trace(frame, event, _):
    global left
    frame.f_trace_opcodes, frame.f_trace_lines = True, False
    if event == "opcode":
        left -= 1
        if left == 0:
            sys.settrace(None)
            os.kill(os.getpid(), signal.SIGTERM)
    return trace

def of_the_end(frame, event, _):
    code = frame.f_code
    if code.co_name == "finish" and code.co_filename.endswith("runs/log.py"):
        sys.settrace(trace)
        return trace(frame, event, _)

sys.settrace(of_the_end)
sys.exit(main(["--quiet", "--sandbox", "off", "--max-repairs", "0", "--model", "replay:agent-config/recorded"]))
"""
"""A run that gets SIGTERM at so many opcodes after it began to write its end down."""


@pytest.mark.slow
@pytest.mark.parametrize("opcodes", [1, 8, *range(14, 82, 4), 200, 1_000])
def test_a_signal_at_the_end_makes_no_failed_build_a_success(opcodes, project_folder: Path):
    recorded(project_folder, WRONG)
    command = [sys.executable, "-c", SIGNALLED, str(opcodes)]
    done = subprocess.run(command, cwd=project_folder, stderr=subprocess.PIPE, text=True, check=False)
    record = load_run_record((the_log(project_folder) / "run.json").read_bytes())
    ends = [(1, "build_failed", 1), (143, "interrupted", 143)]
    assert (done.returncode, record.status, record.exit_code) in ends, done.stderr


def test_a_bug_ends_with_70_and_a_traceback_in_the_log(project_folder: Path):
    """The bug is made by an LLM that answers with something that is no text."""
    recorded(project_folder, RIGHT)
    program = (
        "import sys; from code_commit.llm import replay; from code_commit.cli import main\n"
        "replay.ReplayLLM.complete = lambda *arguments: 1 / 0\n"
        "sys.exit(main(['--model', 'replay:agent-config/recorded']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project_folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 70
    traceback = the_log(project_folder) / "traceback.txt"
    assert "ZeroDivisionError" in traceback.read_text()
    assert f"agent-config/logs/{traceback.parent.name}/traceback.txt" in done.stderr
    assert load_run_record((traceback.parent / "run.json").read_bytes()).status == "internal_error"


def test_json_of_a_run_that_did_not_begin_has_the_same_shape(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").unlink()
    done = run_code_commit(project_folder, "--model", "replay:nowhere", "--json")
    assert done.returncode == 2
    record = load_run_record(done.stdout)
    assert (record.status, record.exit_code, record.attempts) == ("not_set_up", 2, [])
    assert "build.sh is missing" in (record.message or "")


def test_quiet_prints_nothing_but_errors(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, *recorded(project_folder, RIGHT), "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = run_code_commit(project_folder, "--model", "replay:agent-config/gone", env={"CODE_COMMIT_QUIET": "1"})
    assert done.returncode == 2
    assert "no folder agent-config/gone" in done.stderr
    done = run_code_commit(project_folder, *recorded(project_folder, "Sorry.\n"), "--quiet", "--on-rejected", "stop")
    assert done.returncode == 4
    assert "Log: agent-config/logs/" in done.stderr, "where a run that is not quiet has said so at its start"


def test_every_warning_of_a_step_is_printed(project_folder: Path, run_code_commit: Run):
    for name in ("test_a.py", "test_b.py"):
        (project_folder / name).write_text("assert True\n" * 9)
    answer = project_folder / "agent-config" / "answer.txt"
    answer.write_text("^^^test_a.py\npass\n^^^end\n^^^test_b.py\npass\n^^^end\n")
    done = run_code_commit(project_folder, "apply", str(answer))
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    reasons = ("shrinks to under half", "the code rollup lacks it or shows another version")
    assert [reason for line in warned for reason in reasons if reason in line] == [
        reason for reason in reasons for _ in range(2)
    ]


def test_names_with_orders_for_the_terminal_are_printed_escaped(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(
        project_folder, *recorded(project_folder, "^^^a\x1b]0;title\x07b\nx\n^^^end\n"), "--on-rejected", "stop"
    )
    assert done.returncode == 4
    assert "\x1b" not in done.stderr
    assert "a\\x1b]0;title\\x07b" in done.stderr


def test_a_key_with_an_escape_in_it_is_not_whole_again_in_the_prompt(project_folder: Path, run_code_commit: Run):
    give_key(project_folder, "openai-key.txt")
    half, rest = KEY[:9], KEY[9:]
    lines = [f"{half}\\033(B\\033[m{rest}", f"{half}\\033[38:5:1m{rest}", f"{half}\\017{rest}", f"{half}X\\b{rest}"]
    prints = "".join(f"printf '{line}\\n'\n" for line in lines)
    (project_folder / "build.sh").write_text(f"#!/bin/sh\n{prints}exit 1\n")
    git(project_folder, "commit", "-qam", "leaky build")
    with FakeServer(answers=[WRONG, RIGHT]) as server:
        base = ["--model", "openai", "--base-url", server.base_url("openai"), "--max-repairs", "1"]
        assert run_code_commit(project_folder, *base).returncode == 1
    assert KEY[:-2] not in json.dumps([request.body for request in server.requests]).replace("\\/", "/")
    prompt = (the_log(project_folder) / "2-query.txt").read_text()
    assert prompt.count("*" * (len(KEY) - 2) + "ef\n") == len(lines)


@pytest.mark.slow
def test_what_the_llm_says_is_shown_and_recorded(project_folder: Path, run_code_commit: Run):
    give_key(project_folder, "openai-key.txt")
    words = "\n".join(f"Point {number}: {KEY} \x1b[31m" + "and so on " * 9 for number in range(30))
    with FakeServer(answers=[f"I made a start.\n{WRONG}\nIt is not done.\n", f"{words}\n{RIGHT}"]) as server:
        done = run_code_commit(project_folder, "--model", "openai", "--base-url", server.base_url("openai"))
    assert done.returncode == 0, done.stderr
    first, second = done.stderr.split("attempt 2 of 4", 1)
    assert "\n  I made a start.\n  Try:\n  It is not done.\nattempt 1 of 4: 1 file changed" in first
    shown_lines = [line for line in second.splitlines() if line.startswith("  ")]
    assert len(shown_lines) == 13
    assert shown_lines[-1] == "  ... (code-commit log latest shows all of it)"
    assert all(len(line) <= 80 for line in shown_lines)
    assert "\\x1b[31mand so on" in second

    record = load_run_record((the_log(project_folder) / "run.json").read_bytes())
    assert record.attempts[0].notes == "I made a start.\nTry:\n\nIt is not done."
    assert record.attempts[1].notes.count("Point") == 30
    log = run_code_commit(project_folder, "log", "latest").stdout
    assert log.count("  > Point") == 30
    assert "  > It is not done." in log
    assert "Point 29" in run_code_commit(project_folder, "log", "--markdown").stdout
    without_key(project_folder, done.stderr, log)


def test_only_the_same_suspicion_is_accepted_when_it_comes_again(project_folder: Path, run_code_commit: Run):
    """Another placeholder in the file is rejected as the first one was."""
    lines = [f"value_{number} = {number}\n" for number in range(60)]
    (project_folder / "a.py").write_text("".join(lines))
    git(project_folder, "add", "-A")
    answers = [f"^^^a.py\n{''.join(lines[:at])}# the rest as before\n^^^end\n{RIGHT}" for at in (40, 20, 20)]
    done = run_code_commit(project_folder, *recorded(project_folder, *answers))
    assert done.returncode == 0, done.stderr
    assert "attempt 2 of 4: response rejected" in done.stderr
    assert "'# the rest as before' stands for lines 21 to 60 of the file; accepted as sent" in done.stderr
    record = load_run_record((the_log(project_folder) / "run.json").read_bytes())
    assert [each.verdict for each in record.attempts] == ["rejected", "rejected", "applied"]
    assert record.attempts[1].rejections[0].fact == "'# the rest as before' stands for lines 21 to 60 of the file"


def test_a_suspicion_that_was_told_is_accepted_whatever_was_answered_in_between(
    project_folder: Path, run_code_commit: Run
):
    lines = [f"value_{number} = {number}\n" for number in range(60)]
    (project_folder / "a.py").write_text("".join(lines))
    git(project_folder, "add", "-A")
    answer = f"^^^a.py\n{''.join(lines[:20])}# the rest as before\n^^^end\n{RIGHT}"
    done = run_code_commit(project_folder, *recorded(project_folder, answer, "Sorry, here it is.\n", answer))
    assert done.returncode == 0, done.stderr
    record = load_run_record((the_log(project_folder) / "run.json").read_bytes())
    assert [each.verdict for each in record.attempts] == ["rejected", "rejected", "applied"]


@pytest.mark.parametrize(("layout", "verdicts"), [("short", ["applied"]), ("cached", ["rejected", "applied"])])
def test_the_word_delete_alone_removes_a_file_in_the_layout_that_may_lead_to_it(
    layout, verdicts, project_folder: Path, run_code_commit: Run
):
    (project_folder / "a.txt").write_text("x\n")
    git(project_folder, "add", "-A")
    options = [*recorded(project_folder, f"^^^a.txt\ndelete\n^^^end\n{RIGHT}", RIGHT), "--prompt-layout", layout]
    done = run_code_commit(project_folder, *options)
    assert done.returncode == 0, done.stderr
    record = load_run_record((the_log(project_folder) / "run.json").read_bytes())
    assert [each.verdict for each in record.attempts] == verdicts
    assert (project_folder / "a.txt").exists() == (layout != "short")


def test_a_refusal_is_told_once(project_folder: Path, run_code_commit: Run):
    done = run_code_commit(project_folder, *recorded(project_folder, *["Sorry, I cannot do that.\n"] * 4))
    assert done.returncode == 4
    assert done.stderr.count("  Sorry, I cannot do that.\n") == 1
    reason = "the response has no ^^^ block"
    assert done.stderr.count(reason) == 2
    assert f"code-commit: no usable response, rejected again for this reason: {reason}\n" in done.stderr
    again = "response rejected, nothing written, for the same reasons as in attempt 1"
    assert [f"attempt {number} of 4: {again}" in done.stderr for number in (1, 2, 3, 4)] == [False, True, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("rollback", [False, True])
def test_the_reason_of_an_llm_that_declines_stands_first_in_every_sink(rollback, project_folder, run_code_commit: Run):
    give_key(project_folder, "openai-key.txt")
    reason = f"gcc is missing, and {KEY}.\n" + "".join(f"Line {number}.\n" for number in range(2, 21))
    options = ["--quiet", "--json", *(["--rollback"] if rollback else [])]
    answers = recorded(project_folder, WRONG, f"^^^cannot\n{reason}^^^end\n")
    done = run_code_commit(project_folder, *answers, *options)
    assert done.returncode == 4
    assert done.stderr.startswith("code-commit: the LLM says that it cannot do this: gcc is missing, and ***")
    assert "\n  Line 20.\n  Fix that" in done.stderr
    record = load_run_record(done.stdout)
    assert (record.status, record.attempts[1].verdict, record.attempts[1].changes) == ("declined", "declined", [])
    assert record.message.startswith("gcc is missing, and ***")
    assert record.message.endswith("\nLine 20.")
    assert (record.rolled_back, record.totals.files_changed) == (rollback, 0 if rollback else 1)
    assert ((project_folder / "ok.txt").read_text() == "not yet\n") == rollback
    assert ("1 file changed so far" in done.stderr) != rollback

    log = run_code_commit(project_folder, "log", "latest").stdout
    assert log.split("\n")[1:3] == ["status    declined (exit code 4)", f"          {record.message.split(chr(10))[0]}"]
    assert log.count("Line 20.") == 1
    markdown = run_code_commit(project_folder, "log", "--markdown").stdout
    assert markdown.index("## ✗ code-commit: The LLM says that it cannot do this") < markdown.index("gcc is missing")
    assert markdown.index("Line 20.") < markdown.index("Run: ")
    page = run_code_commit(project_folder, "log", "--html", "-").stdout
    assert page.index("The LLM says that it cannot do this") < page.index("gcc is missing") < page.index("The task")
    assert run_code_commit(project_folder, "diff").returncode == 0
    assert "nothing to resume" in run_code_commit(project_folder, "resume", record.run).stderr
    without_key(project_folder / "agent-config/logs", done.stderr, done.stdout, log, markdown, page)


def test_a_rejected_answer_is_shown_to_the_llm_without_the_key(project_folder: Path, run_code_commit: Run):
    give_key(project_folder, "openai-key.txt")
    leaky = f"I read {KEY}.\n^^^ok.txt\n{KEY}\n^^^end\n^^^x/{KEY}/y\n^^^end\n"
    with FakeServer(answers=[leaky, leaky, RIGHT]) as server:
        url = server.base_url("openai")
        done = run_code_commit(project_folder, "--model", "openai", "--base-url", url, "--json")
    assert done.returncode == 0, done.stderr
    sent = [json.dumps(request.body) for request in server.requests if request.body]
    assert sum("The rejected answer, from its line 1 on:" in body for body in sent) == 2
    without_key(project_folder, *sent, done.stdout, done.stderr)
    (project_folder / "agent-config/config.toml").write_text("build_output_limit = 10\n")
    git(project_folder, "checkout", "-q", ".")
    assert run_code_commit(project_folder, *recorded(project_folder, leaky, RIGHT)).returncode == 0
    log = max((project_folder / "agent-config/logs").iterdir())
    assert "The rejected answer" not in (log / "2-query.txt").read_text()


@pytest.mark.parametrize("fresh", [True, False])
def test_the_record_of_a_run_begins_with_its_task_its_model_and_its_tree(fresh, project_folder):
    llm, tree = (
        SimpleNamespace(choice=choose_model("chat:m")),
        SimpleNamespace(before=TreeBefore("a commit", clean=False)),
    )
    plan: Any = SimpleNamespace(
        project=find_project(project_folder),
        settings=Settings(base_url="http://127.0.0.1:1/v1"),
        inputs=RunInputs(command="repair", fresh=fresh),
        query="\n Say ok.\nNow.\n",
        builds_first=True,
        tree=tree,
        llm=llm,
        asked=llm,
    )
    log = open_log(plan, Progress(Redactor([]), quiet=True))
    record = log.record
    assert (record.command, record.query, record.request) == ("repair", "Say ok.", {"fresh": fresh})
    assert (record.model, record.base_url, record.tree) == ("chat:m", "http://127.0.0.1:1/v1", tree.before)
    assert (log.folder / "query.txt").read_text() == plan.query
    plan.settings, plan.inputs = (
        Settings(base_url="http://127.0.0.1:2/v1"),
        RunInputs(resumed=RunEntry(log.folder, record)),
    )
    again = open_log(plan, Progress(Redactor([]), quiet=True))
    assert (again.folder, again.record.base_url) == (log.folder, "http://127.0.0.1:2/v1"), "where the server has moved"
    assert (again.record.command, again.record.model) == ("repair", "chat:m")


def test_a_run_takes_over_its_choice_of_files_and_the_build_before_it(project_folder):
    project, progress = find_project(project_folder), Progress(Redactor([]), quiet=True)
    before, log = (open_run_log(project, command, Settings(), progress) for command in ("rollup", "run"))
    choice = before.record
    choice.attempts, choice.chosen = [Attempt(1, "initial", finish_reason="stop", cost_usd=0.5)], ["a"]
    choice.first_build, choice.build_changes = BuildResult(1, None, timed_out=False, seconds=2.0, output_bytes=1), ["b"]
    before.save("built")
    for name in ("0-build.txt", "given-build.txt", "1-query.txt"):
        (before.folder / name).write_text(name)
    _note_choice(choice, log, project)
    record = log.record
    assert (record.choice, record.chosen) == (choice.as_choice, ["a"])
    assert (record.first_build, record.build_changes) == (choice.first_build, ["b"])
    assert {path.name for path in log.folder.iterdir()} >= {"0-build.txt", "given-build.txt"}
    assert not (log.folder / "1-query.txt").exists()


@pytest.mark.parametrize(("answer_format", "edits"), [("auto", True), ("edits", True), ("files", False)])
def test_a_smaller_codebase_shows_parts_of_files_wherever_answers_may_be_edits(
    answer_format, edits, project_folder, monkeypatch
):
    project, redactor, requests = find_project(project_folder), Redactor([]), []
    settings = Settings(answer_format=answer_format, rollup="fit")
    plan = SimpleNamespace(project=project, settings=settings, ranking_query="Do it.", redactor=redactor)

    def make(_project, _exclude, request, _redactor) -> Codebase:
        requests.append((request.edits, request.fit, request.query, request.mentions))
        return Codebase([""])

    monkeypatch.setattr("code_commit.start.make_codebase", make)
    with open_run_log(project, "run", settings, Progress(redactor, quiet=True)) as log:
        StartedRun(plan, None, log, None, None).shrink(320, f"{project.root}/a.py:1: wrong")
    assert requests == [(edits, 100, "Do it.", " a.py:1: wrong")]


@pytest.mark.parametrize(
    ("on_rejected", "number", "back"), [("retry", 3, True), ("retry", 4, False), ("stop", 1, False)]
)
def test_a_refusal_goes_back_where_another_answer_is_wanted_and_leaves_no_change(
    on_rejected, number, back, project_folder
):
    settings, asked = Settings(on_rejected=on_rejected), []

    def refuse(diff, record, goes_back):
        asked.append((diff, len(record.changes), goes_back))
        raise RejectedResponseError([Violation("", 0, "words", "no")], 2)

    log = open_run_log(find_project(project_folder), "run", settings, Progress(Redactor([]), quiet=True))
    for earlier in range(1, number):
        AttemptLog(log, earlier)
    attempt = AttemptLog(log, number)
    attempt.record.changes, attempt.record.ends_alone = [AppliedChange("a", "delete", 0, 0, 1)], ["b"]
    attempt.diff_file.write_bytes(b"-a")
    with pytest.raises(RejectedResponseError):
        _wait_for_approval(refuse, settings, attempt)
    assert asked == [(b"-a", 1, back)]
    assert (attempt.record.changes, attempt.record.ends_alone, attempt.diff_file.exists()) == ([], [], False)
    assert (attempt.record.verdict, attempt.record.reasons) == ("rejected", ["no", "and 2 more"])


ENDS = {
    # which of the rejected answers were not whole, why the latest is rejected, settings; whether the run ends
    "the first": ([False], RejectedResponseError(()), {}, False),
    "cut off": ([True], RejectedResponseError(()), {}, False),
    "cut off twice": ([True, True], RejectedResponseError(()), {}, True),
    "cut off, then without a word": ([True, "empty"], RejectedResponseError(()), {}, True),
    "cut off after another reason": ([False, True], RejectedResponseError(()), {}, False),
    "cut off, not at once after the first such": ([True, False, True], RejectedResponseError(()), {}, False),
    "another reason after a cut": ([True, False], RejectedResponseError(()), {}, False),
    "the last": ([False] * 4, RejectedResponseError(()), {}, True),
    "the last but one": ([False] * 3, RejectedResponseError(()), {}, False),
    "the only one": ([False], RejectedResponseError(()), {"max_repairs": 0}, True),
    "the first where the run is to stop": ([False], RejectedResponseError(()), {"on_rejected": "stop"}, True),
    "files asked for where the run is to stop": ([False], FilesAskedError(["a"], 1), {"on_rejected": "stop"}, False),
    "files asked for at last": ([False] * 4, FilesAskedError(["a"], 1), {}, True),
    "not approved": ([False], NotApprovedError(""), {}, True),
}


@pytest.mark.parametrize(("cuts", "rejection", "settings", "ends"), ENDS.values(), ids=ENDS)
def test_a_rejection_ends_the_run_where_another_answer_is_not_wanted(cuts, rejection, settings, ends):
    why = [Violation("", 0, "no-block", "no")]
    attempts = [
        Attempt(number, "retry", incomplete=str(cut) if cut else None, rejections=why)
        for number, cut in enumerate(cuts, start=1)
    ]
    log, plan = (
        SimpleNamespace(record=SimpleNamespace(attempts=attempts)),
        SimpleNamespace(settings=Settings(**settings)),
    )
    run: Any = SimpleNamespace(plan=plan, log=log)
    assert _ends_run(run, attempts[-1], rejection) == ends
    names_reason = ends and len(cuts) > 1 and not isinstance(rejection, FilesAskedError)
    assert rejection.complaint.startswith("no usable response, rejected again for this reason: no") == names_reason


def test_a_suspicion_is_known_where_it_was_told_of_an_earlier_answer_or_of_a_file_that_such_a_one_left():
    suspicion, certain = (Violation("a", 1, "r", "no", is_suspicion, "x") for is_suspicion in (True, False))
    told = ("r", "a", "x")
    for attempt, known in (
        (Attempt(1, "initial", rejections=[suspicion]), {told}),
        (Attempt(1, "initial", rejections=[certain]), set()),
        (Attempt(1, "initial", ends_alone=["b"]), {("line-ends", "b", "")}),
    ):
        attempts = [attempt, Attempt(2, "retry"), attempt]
        plan, log = SimpleNamespace(inputs=RunInputs()), SimpleNamespace(record=SimpleNamespace(attempts=attempts))
        run: Any = SimpleNamespace(plan=plan, log=log)
        asked = {told, ("line-ends", "b", ""), ("r", "b", "x"), ("r", "a", "y")}
        assert set(filter(is_meant(run, 3), asked)) == known
        assert not any(map(is_meant(run, 1), asked)), "nothing was told before the first answer"
        plan.inputs = RunInputs(as_sent=True)
        assert all(map(is_meant(run, 1), asked))


def test_each_attempt_goes_on_with_what_the_ones_before_it_left(monkeypatch):
    """The first answer is in the log, the second is rejected, the third build is refused, the fourth is the last."""
    steps: list[object] = []
    first = BuildResult(7, None, timed_out=False, seconds=1.0, output_bytes=0)

    class Attempt:
        def __init__(self, _, number):
            self.number, self.record = number, SimpleNamespace(cut_off=False)

        def recorded_response(self):
            return Response("answer 1", "stop") if self.number == 1 else None

        def sight(self, made_now):
            return f"sight of {made_now}"

    class Conversation:
        def __init__(self, *given):
            steps.append(given)

        def next_prompt(self):
            return SimpleNamespace(shows=f"sight {len(steps)}")

        def __getattr__(self, name):
            return lambda attempt, *given: steps.append(
                (name, attempt.number, *(copy(each) if isinstance(each, set) else each for each in given))
            )

    def change(_, response, shows, attempt):
        steps.append((response.text, shows))
        if attempt.number == 2:
            raise rejection
        return {f"file {attempt.number}"}

    rejection = RejectedResponseError([Violation("", 0, "no-block", "no")])
    for name, stand_in in {
        "AttemptLog": Attempt,
        "Conversation": Conversation,
        "ask": lambda _complete, _prompt, attempt: Response(f"answer {attempt.number}", "stop"),
        "change_files": change,
        "build_project": lambda _, attempt: replace(first, exit_code=attempt.number),
        "load_originals": lambda folder: {folder: b"before"},
        "_ends_run": lambda *_: False,
    }.items():
        monkeypatch.setattr(f"code_commit.workflow.{name}", stand_in)
    log = SimpleNamespace(
        redactor="redactor", record=SimpleNamespace(first_build=first), snapshot="snapshot", finish=lambda end: end
    )
    settings, task = SimpleNamespace(dry_run=False), SimpleNamespace(attempts=4)
    plan = SimpleNamespace(project="project", settings=settings)
    run: Any = SimpleNamespace(log=log, plan=plan, task=task, room="room", complete=None)
    assert attempt_loop(run) == Status.BUILD_FAILED
    builds = [replace(first, exit_code=number) for number in range(5)]
    originals = {"snapshot": b"before"}
    assert steps == [
        ("project", settings, "redactor", task, "room"),
        ("answer 1", "sight of sight 1"),
        ("build_failed", 1, Answer("answer 1", ""), builds[1], {"file 1"}, originals),
        ("answer 2", "sight of sight 3"),
        ("was_rejected", 2, Answer("answer 2", ""), rejection),
        ("answer 3", "sight of sight 5"),
        ("build_failed", 3, Answer("answer 3", ""), builds[3], {"file 1", "file 3"}, originals),
        ("answer 4", "sight of sight 7"),
        ("last_build_failed", 4, builds[4], first),
    ]


BUILDS = {
    # whether a build came before, whether the record has a refused build; whether a refusal ends the run, builds made
    "the first": (False, False, True, 1),
    "the first, again": (False, True, True, 1),
    "after one that the code made fail": (True, False, False, 1),
    "after one, and recorded": (True, True, False, 0),
}


@pytest.mark.parametrize(("is_later", "is_recorded", "ends", "made"), BUILDS.values(), ids=BUILDS)
def test_the_sandbox_is_to_blame_for_a_refusal_of_the_first_build_alone(
    is_later, is_recorded, ends, made, project_folder, monkeypatch
):
    monkeypatch.setattr("code_commit.workflow.note_built", lambda *_: [])
    refused, asked = BuildResult(1, None, timed_out=False, seconds=1.0, output_bytes=0, refused="network"), []

    def build(_, timeout, environment, warn):
        asked.append((timeout, environment["CODE_COMMIT_ATTEMPT"], environment["CODE_COMMIT_RUN"], warn))
        return refused

    project, settings = find_project(project_folder), Settings(build_timeout=7.0, llm_timeout=9.0)
    log = open_run_log(project, "run", settings, Progress(Redactor([]), quiet=True))
    log.record.first_build = replace(refused, refused="") if is_later else None
    AttemptLog(log, 1)
    attempt = AttemptLog(log, 2)
    attempt.record.build = refused if is_recorded else None
    keys, inputs = SimpleNamespace(texts=()), RunInputs(environment={})
    plan = SimpleNamespace(project=project, settings=settings, keys=keys, inputs=inputs)
    run: Any = SimpleNamespace(plan=plan, log=log, builder=SimpleNamespace(run=build))
    with pytest.raises(BuildError, match="network") if ends else nullcontext():
        assert build_project(run, attempt) == refused
    assert [each[:3] for each in asked] == [(7.0, "2", log.record.run)] * made
    assert attempt.record.build == refused


@pytest.mark.parametrize("is_told", [True, False])
def test_an_answer_that_could_not_be_written_is_recorded_as_none(is_told, project_folder, monkeypatch):
    """Of files of earlier answers nobody needs to be told that git does not track them."""

    def fail(*_):
        raise ApplyError("no room")

    changes = (
        VerifiedChange(FileReplacement("new.txt", "a\n"), "replace", b"a\n", 0o644, OriginalFile(b"b\n", 0o644)),
    )
    verified = VerifiedChanges(project_folder, changes, (), ("crlf.txt",))
    monkeypatch.setattr("code_commit.workflow.verify_response", lambda *_: verified)
    monkeypatch.setattr("code_commit.workflow.apply_changes", fail)
    project = find_project(project_folder)
    log = open_run_log(project, "run", Settings(), Progress(Redactor([]), quiet=True))
    before = AttemptLog(log, 1)
    before.record.changes = [AppliedChange("new.txt", "replace" if is_told else "create", 1, 1, 0)]
    before.record.verdict = "applied"
    attempt = AttemptLog(log, 2)
    tree = SimpleNamespace(listed={"new.txt": "??"})
    plan = SimpleNamespace(project=project, settings=Settings(), tree=tree)
    run: Any = SimpleNamespace(plan=plan, log=log, approve=None)
    with pytest.raises(ApplyError):
        change_files(run, Response("", "stop"), None, attempt)
    assert (attempt.record.changes, attempt.record.ends_alone, attempt.diff_file.exists()) == ([], [], False)
    assert [warning.kind for warning in log.record.warnings] == ["review"] * is_told


def test_the_paths_of_an_earlier_answer_are_those_that_were_applied(project_folder):
    (project_folder / "same.py").write_text("x\n")
    attempt = Attempt(1, "initial", changes=[AppliedChange("gone.py", "delete", 0, 0, 1)])
    text = "^^^PATH gone.py\n^^^delete\n^^^same.py:\nx\n^^^end\n"
    assert applied_paths(find_project(project_folder), attempt, text) == ["gone.py", "same.py"]


def test_the_copy_of_a_protected_file_is_no_path_of_an_earlier_answer(project_folder):
    attempt = Attempt(1, "initial", changes=[AppliedChange("ok.txt", "replace", 0, 0, 1)])
    text = "^^^ok.txt\nx\n^^^end\n^^^build.sh\nexit 0\n^^^end\n"
    assert applied_paths(find_project(project_folder), attempt, text) == ["ok.txt", "build.sh"], "it was no copy"
    attempt.leniences = ["protected-copy"]
    assert applied_paths(find_project(project_folder), attempt, text) == ["ok.txt"]
    attempt.changes.append(AppliedChange("build.sh", "replace", 0, 0, 4))
    assert applied_paths(find_project(project_folder), attempt, text) == ["ok.txt", "build.sh"]


def test_an_earlier_answer_that_was_applied_is_read_as_it_was_then(project_folder):
    """What the parser asked about the files was true before the changes, and suspicions were accepted."""
    changes = [AppliedChange(path, "replace", 0, 0, 1) for path in ("a.txt", "b.txt")]
    (project_folder / "a.txt").write_text("API\n")
    (project_folder / "b.txt").write_text("delete\n")
    edits = "^^^a.txt\n^^^find\nAPI\n^^^\n^^^replace\nAPI\n^^^end\n"
    draft, removal = "^^^ok.txt\nDRAFT\n^^^end\n</think>\n", "^^^b.txt\ndelete\n^^^end\n"
    bare = "^^^c.py\nx\n^^^\n"
    attempt = Attempt(1, "initial", changes=changes)
    paths = applied_paths(find_project(project_folder), attempt, draft + edits + removal + bare)
    assert paths == ["a.txt", "b.txt", "c.py"]


THOUGHTS = "Perhaps:\n^^^ok.txt\nDRAFT\n^^^end\n^^^new.txt\nDRAFT\n^^^end\nNo.\n"


def test_drafts_in_thoughts_that_come_apart_and_again_do_not_count(project_folder: Path, run_code_commit: Run):
    reply = {
        "index": 0,
        "message": {"content": THOUGHTS + RIGHT, "reasoning_content": THOUGHTS},
        "finish_reason": "stop",
    }
    body = json.dumps({"choices": [reply], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
    with FakeServer(faults=[Fault("status", status=200, body=body)]) as server:
        done = run_code_commit(project_folder, "--model", "chat:m", "--base-url", server.base_url("chat"))
    assert done.returncode == 0, done.stderr
    assert (project_folder / "ok.txt").read_text() == "ok\n"
    assert not (project_folder / "new.txt").exists()
    assert "warning: 2 blocks in the model's thoughts do not count" in done.stderr
    log = the_log(project_folder)
    record = json.loads((log / "run.json").read_text())
    assert "thoughts" in [warning["kind"] for warning in record["warnings"]]
    assert (record["attempts"][0]["leniences"], record["attempts"][0]["notes"]) == (["thoughts-dropped"], "")
    assert json.loads((log / "1-response.json").read_text())["choices"][0]["message"]["content"] == THOUGHTS + RIGHT
    (project_folder / "ok.txt").write_text("not yet\n")
    again = run_code_commit(project_folder, "apply", str(log / "1-response.txt"))
    assert again.returncode == 0, again.stderr
    assert (project_folder / "ok.txt").read_text() == "ok\n"


def test_blocks_in_thoughts_are_told_of_an_answer_that_changes_nothing_too(project_folder: Path, run_code_commit: Run):
    first, then = (f"<think>\n{RIGHT * drafts}</think>\n" for drafts in (1, 2))
    answers = first + "^^^files\nok.txt\n^^^end\n", then + "^^^cannot\nno gcc\n^^^end\n"
    done = run_code_commit(project_folder, *recorded(project_folder, *answers))
    assert done.returncode == 4
    told = [line for line in done.stderr.splitlines() if "thoughts" in line]
    counts = ["1 block in the model's thoughts does", "2 blocks in the model's thoughts do"]
    assert told == [f"warning: {count} not count" for count in counts]
    assert (project_folder / "ok.txt").read_text() == "not yet\n"
