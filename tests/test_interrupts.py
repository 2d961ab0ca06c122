"""Signals, one or many, at any moment: the exit code of the process and the record of its run say the same."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from command import CODE_COMMIT, recorded, the_log, wait_for

from code_commit.errors import Interrupted
from code_commit.interrupts import (
    ENDING_SIGNALS,
    DeferredSignals,
    begin_call,
    end_before_calls,
    first_interrupt,
    interruptible,
    on_signal,
    signals_blocked,
)
from code_commit.runs.record import load_run_record

RIGHT = "^^^ok.txt\nok\n^^^end\n"
WRONG = "^^^ok.txt\nno\n^^^end\n"
ENDS = {0: "success", 1: "build_failed", 3: "llm_error", 130: "interrupted", 143: "interrupted"}


def check_end(process_code: int, printed: str, said: str, root: Path) -> None:
    """Check that exit code, run.json and what --json prints say the same, and that no traceback was printed."""
    record = load_run_record((the_log(root) / "run.json").read_bytes())
    told = json.loads(printed)
    ends = {(process_code, ENDS[process_code]), (record.exit_code, record.status), (told["exit_code"], told["status"])}
    assert len(ends) == 1, (ends, said)
    assert "Traceback" not in said, said


HOLDING = {"blocked": signals_blocked, "deferred": DeferredSignals}


@pytest.mark.parametrize("held", HOLDING.values(), ids=HOLDING)
@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_signal_waits_until_the_end(number: signal.Signals, held: Callable[[], AbstractContextManager[object]]):
    arrived: list[int] = []
    before = signal.signal(number, lambda received, _: arrived.append(received))
    try:
        with held():
            signal.raise_signal(number)
            assert not arrived
        assert arrived == [number]
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", ENDING_SIGNALS)
def test_a_process_that_waits_for_its_end_exits_at_the_next_signal(number: signal.Signals):
    script = "import sys, time; from code_commit.interrupts import exit_at_next_signal; exit_at_next_signal()"
    script += "; print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(60) == 128 + number


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_burst_of_signals_at_a_random_moment_has_one_end(seed: int, project_folder: Path):
    chance = random.Random(seed)
    options = recorded(project_folder, WRONG, RIGHT)
    command = ["nice", "-n", str(chance.choice([0, 19])), *CODE_COMMIT, *options, "--json"]
    process = subprocess.Popen(
        command, cwd=project_folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    logs = project_folder / "agent-config" / "logs"
    wait_for(lambda: next(logs.glob("*/run.json"), None) or process.poll() is not None, pause=0.001)
    time.sleep(chance.uniform(0, 0.4))
    for number in chance.choices([signal.SIGTERM, signal.SIGINT], k=chance.randint(3, 6)):
        if process.poll() is None:
            process.send_signal(number)
        time.sleep(chance.choice([0, 0, 0.001, 0.01]))
    printed, said = process.communicate(timeout=180)
    check_end(process.returncode, printed, said, project_folder)


SIGNALLED = """
import os, signal, sys
from code_commit.cli import main

first, answers = int(sys.argv[1]), sys.argv[2:]
opcodes, is_traced = 0, False

def trace(frame, event, _):
    global opcodes
    frame.f_trace_opcodes, frame.f_trace_lines = True, False
    if event == "opcode":
        opcodes += 1
        if opcodes in (first, first + 5, first + 60, first + 700):
            os.kill(os.getpid(), signal.SIGINT if opcodes == first + 5 else signal.SIGTERM)
    return trace

def of_the_end(frame, event, _):
    global is_traced
    code = frame.f_code
    if is_traced or (code.co_name in ("finish", "__exit__") and code.co_filename.endswith("runs/log.py")):
        is_traced = True
        for outer in iter(lambda: frame.f_back, None):
            frame = outer
            frame.f_trace = trace
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace

sys.settrace(of_the_end)
code = main(["--json", "--sandbox", "off", "--max-repairs", "0", "--model", *answers])
sys.stdout.flush()
os._exit(code)
"""
"""A run that gets four signals, the first at so many opcodes after it began to write its end down."""


@pytest.mark.slow
@pytest.mark.parametrize("first", [1, 8, *range(14, 82, 12), 200, 700, 5_000])
@pytest.mark.parametrize("ends_by_error", [False, True])
def test_whenever_signals_come_at_the_end_all_say_the_same(first: int, ends_by_error, project_folder: Path):
    answers = recorded(project_folder, WRONG)[1:]
    if ends_by_error:
        (project_folder / "agent-config" / "recorded" / "1-response.txt").unlink()
    command = [sys.executable, "-c", SIGNALLED, str(first), *answers]
    done = subprocess.run(command, cwd=project_folder, capture_output=True, text=True, timeout=180, check=False)
    check_end(done.returncode, done.stdout, done.stderr, project_folder)


def test_a_second_signal_kills_a_build_that_does_not_end(project_folder: Path):
    options = recorded(project_folder, RIGHT)
    (project_folder / "build.sh").write_text("#!/bin/sh\ntrap '' TERM\necho started\nsleep 61\nsleep 62\n")
    process = subprocess.Popen(
        [*CODE_COMMIT, *options, "--json"],
        cwd=project_folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    logs = project_folder / "agent-config" / "logs"
    wait_for(lambda: any("started" in log.read_text() for log in logs.glob("*/1-build.txt")))
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    printed, said = process.communicate(timeout=180)
    assert time.monotonic() - started < 4.5  # the grace is 5 seconds
    assert process.returncode == 130
    check_end(130, printed, said, project_folder)


def test_a_signal_while_a_class_names_its_attributes_is_an_interruption():
    class Named:
        def __set_name__(self, *_: object) -> None:
            on_signal(signal.SIGTERM)

    with pytest.raises(Interrupted) as caught:
        interruptible(lambda: type("Owner", (), {"attribute": Named()}))
    assert caught.value.signal_number == signal.SIGTERM


def test_the_first_interrupt_has_an_answer_and_the_next_its_own_effect():
    answers: list[str] = []
    former = signal.signal(signal.SIGINT, lambda *_: answers.append("own"))
    try:
        with first_interrupt(lambda: answers.append("first")):
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
        assert answers == ["first", "own", "own"]
        with first_interrupt(lambda: answers.append("first")):
            pass
        signal.raise_signal(signal.SIGINT)
        assert answers[3:] == ["own"], "and after the block"
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with first_interrupt(lambda: answers.append("first")):
            signal.raise_signal(signal.SIGINT)
        assert answers[4:] == [], "as by nohup"
    finally:
        signal.signal(signal.SIGINT, former)


def test_no_call_begins_once_that_is_over():
    over: list[bool] = []
    end_before_calls(lambda: bool(over))
    try:
        begin_call()
        over.append(True)
        with pytest.raises(Interrupted):
            begin_call()
    finally:
        end_before_calls(lambda: False)
