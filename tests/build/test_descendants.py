"""Build scripts that hold on, get away, flood or fight back: the result comes, early output stays, nothing survives."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from build_watch import alive, alive_after, in_time
from command import chess_board
from measure import least

DRIVER = Path(__file__).with_name("build_driver.py")
PAST_THE_END = 4.0  # seconds, on a busy machine too; a build that is not killed has five more

HOSTILE = {
    # name: (script, seconds until build.sh itself ends, exit code, timeout)
    "a background child holds the pipe": ("sleep 60 & exit 3", 0, 3, 0),
    "a session of its own holds the pipe": ("setsid sleep 60 & exit 3", 0, 3, 0),
    "a daemon that forked twice holds the pipe": ("(setsid sh -c 'sleep 60 & sleep 60' &) ; exit 3", 0, 3, 0),
    "endless output after the end": ("yes & exit 3", 0, 3, 0),
    "endless output of a session after the end": ("setsid yes & exit 3", 0, 3, 0),
    "output through a tee that ends later": ("exec > >(tee log) 2>&1; echo last; exit 3", 0, 3, 0),
    "closed its output and went on": ("exec >&- 2>&-; sleep 0.3; exit 3", 0.3, 3, 0),
    "killed its own group": ("trap '' TERM; kill -TERM 0; exit 3", 0, 3, 0),
    "waits for input": ("read line; cat; exit 3", 0, 3, 0),
    "sleeps beyond the timeout": ("sleep 60", 0, None, 0.3),
    "ignores SIGTERM": ("trap '' TERM; while :; do sleep 60; done", 5, None, 0.3),
    "a deaf session": ("setsid sh -c \"trap '' TERM HUP; while :; do sleep 1; done\" & sleep 60", 5, None, 0.3),
    "forked twice before the timeout": ("(setsid sh -c '(setsid sleep 60 &)' &); sleep 60", 0, None, 0.3),
    "answers SIGTERM with new processes": (
        "trap 'setsid sleep 60 & setsid sleep 60 &' TERM; while :; do sleep 0.1; done",
        5,
        None,
        0.3,
    ),
    "stopped itself": ("kill -STOP $$; exit 3", 0, None, 0.3),
    "stopped its child and waits": ("sleep 60 & kill -STOP $!; wait", 0, None, 0.3),
    "floods beyond the timeout": ("yes", 0, None, 0.3),
    "nohup beyond the timeout": ("nohup sleep 60 >/dev/null 2>&1 & sleep 60", 0, None, 0.3),
    "a hundred sessions": ("for i in $(seq 100); do setsid sleep 60 & done; sleep 60", 0, None, 0.8),
    "exits 0 on SIGTERM": ("trap 'exit 0' TERM; sleep 60 & wait", 0, None, 0.3),
}

SAMPLE = (
    ("guard", "a daemon that forked twice holds the pipe"),
    ("guard", "forked twice before the timeout"),
    ("strict", "output through a tee that ends later"),
    ("strict", "endless output of a session after the end"),
    ("off", "a deaf session"),
)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["off", "guard", "strict"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_build_ends_in_time(build, request, mark, whole, mode, name):
    script, own_time, exit_code, timeout = HOSTILE[name]
    if not whole and (mode, name) not in SAMPLE and (mode != "off" or own_time == 5):
        pytest.skip("part of the long sweep")
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    limit = own_time + timeout + PAST_THE_END
    environment = {**os.environ, "MARK": mark}
    built = in_time(
        limit,
        lambda: build(f"#!/bin/bash\necho early\n{script}\n", mode=mode, timeout=timeout, environment=environment),
    )
    assert built.error is None, built
    assert built.output.startswith("early\n")
    assert built.seconds < limit
    assert built.result.timed_out is (timeout > 0)
    assert not built.result.passed
    if timeout:
        assert alive(mark) == []
    else:
        assert built.result.exit_code == exit_code
    if name == "output through a tee that ends later":
        assert built.output == "early\nlast\n"


def test_a_build_that_kills_its_bubblewrap_is_no_result_and_leaves_nothing(build, needs_bwrap, mark):
    script = "#!/bin/bash\necho early\nsetsid sleep 60 & (setsid setsid sleep 60 &); kill -KILL $PPID; sleep 60\n"
    built = build(script, mode="guard", environment={**os.environ, "MARK": mark}, timeout=10)
    assert "killed its own sandbox" in str(built.error)
    assert built.output == "early\n"
    assert alive_after(mark, 0) == []


@pytest.mark.parametrize("mode", ["off", "guard", "strict"])
def test_an_orphan_that_has_ended_is_gone_at_once(build, request, mode):
    """A build may wait for that: with a group that was killed, and with a daemon that ended, here one after another."""
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    script = """#!/bin/bash
    exec 2> /dev/null
    gone() { for i in {1..100}; do kill -0 $1 2> /dev/null || return 0; sleep 0.01; done; grep State /proc/$1/status; }
    setsid sh -c 'sleep 60 & echo $! > pid; wait' &
    while [ ! -s pid ]; do sleep 0.01; done
    kill -KILL -- -$!
    gone $(cat pid)
    for i in {1..20}; do
        (setsid sh -c 'echo $$ > daemon; exec sleep 0.01' &)
        while [ ! -s daemon ]; do sleep 0.01; done
        gone $(cat daemon)
        rm daemon
    done
    """
    built = build(script, mode=mode)
    assert (built.output, built.result.exit_code) == ("", 0)


def test_a_server_of_an_earlier_build_that_is_stopped_is_gone_at_once(build):
    assert build("#!/bin/bash\nsetsid sleep 60 > /dev/null 2>&1 & echo $! > pid\n").result.passed
    script = (
        "kill $(cat pid); for i in {1..100}; do kill -0 $(cat pid) 2> /dev/null || exit 0; sleep 0.01; done; exit 1"
    )
    assert build(f"#!/bin/bash\n{script}\n").result.passed


@pytest.mark.slow
@pytest.mark.parametrize("where", ["before", "meanwhile"])
def test_no_exit_status_of_a_callers_own_child_is_taken(build, where):
    """Also of those that began a session of their own, and end while the build runs."""
    own = []
    ended = threading.Event()

    def begin():
        own.extend(subprocess.Popen(["sh", "-c", "sleep 0.1; exit 7"], start_new_session=new) for new in (False, True))

    if where == "before":
        begin()
    else:
        thread = threading.Timer(0.2, lambda: (begin(), ended.wait()))
        thread.start()
    built = build("#!/bin/bash\nfor i in {1..20}; do (setsid sleep 0.01 &); sleep 0.04; done; exit 3\n")
    ended.set()
    if where == "meanwhile":
        thread.join()
    assert built.result.exit_code == 3
    assert [process.wait() for process in own] == [7, 7]


LEFT_BEHIND = {
    # name: (command, whether it lives on where no process namespace ends it)
    "nohup": ("nohup sleep 60 >/dev/null 2>&1 &", True),
    "setsid": ("setsid sleep 60 >/dev/null 2>&1 &", True),
    "a double fork": ("(setsid sh -c 'sleep 60 & exit' >/dev/null 2>&1 &)", True),
    "a plain child": ("sleep 60 >/dev/null 2>&1 &", False),
    "a stopped child": ("sleep 60 >/dev/null 2>&1 & kill -STOP $!", False),
}


@pytest.mark.parametrize("mode", ["off", "guard"])
def test_a_nohup_in_the_last_line_has_time_to_become_one(build, request, mark, mode):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    script = "#!/bin/bash\n" + "nohup sleep 60 > /dev/null 2>&1 &\n" * 20
    built = build(script, mode=mode, environment={**os.environ, "MARK": mark})
    assert built.result.passed
    assert built.seconds < 20  # they sleep for sixty
    assert len(alive(mark)) == 20


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["off", "guard", "strict"])
@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_what_a_build_leaves_behind_lives_on_only_if_it_was_meant_to(build, request, mark, mode, name):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    command, lives_on = LEFT_BEHIND[name]
    script = f"#!/bin/bash\n{command}\nsleep 0.2\nexit 0\n"

    def build_alone():
        for pid in alive(mark):
            os.kill(pid, signal.SIGKILL)
        return build(script, mode=mode, environment={**os.environ, "MARK": mark})

    built = in_time(PAST_THE_END, build_alone)
    assert built.result.passed
    assert built.seconds < PAST_THE_END
    expected = 1 if lives_on and mode != "strict" else 0
    assert len(alive_after(mark, 1.0 if expected == 0 else 0.1)) == expected
    assert zombies() == []


def zombies():
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in children]
    return [pid for pid, state in zip(children, states, strict=True) if state == "Z"]


@pytest.fixture
def tool(project_folder, mark):
    """Start a build in a process of its own, as the command does it; (process, its pid)."""
    started = []

    def start(script, mode="off", timeout=0, under=()):
        (project_folder / "ready").unlink(missing_ok=True)
        (project_folder / "build.sh").write_text(f"#!/bin/bash\n{script}\n")
        process = subprocess.Popen(
            [*under, sys.executable, DRIVER, project_folder, mode, str(timeout)],
            env={**os.environ, "MARK": mark, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        process.stdout.readline()
        until = time.monotonic() + 20
        while not (project_folder / "ready").exists() and time.monotonic() < until:
            time.sleep(0.01)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def report_of(process):
    return json.loads(process.communicate(timeout=30)[0])


@pytest.mark.parametrize(
    ("number", "mode"), chess_board([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ["off", "guard", "strict"])
)
def test_a_signal_ends_the_whole_tree_and_keeps_what_was_read(request, tool, mark, mode, number):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")

    def seconds_to_end() -> float:
        process = tool("echo early; setsid sleep 60 & (setsid sleep 60 &) ; sleep 60 & touch ready; wait", mode)
        begun = time.monotonic()
        process.send_signal(number)
        report = report_of(process)
        assert report["interrupted"] == number
        assert report["output"] == "early\n"
        assert alive_after(mark, 0) == []
        return time.monotonic() - begun

    assert least(seconds_to_end, PAST_THE_END) < PAST_THE_END


@pytest.mark.slow
def test_a_build_has_five_seconds_to_clean_up(tool, mark):
    process = tool("trap 'sleep 1; echo cleaned; exit 0' TERM; touch ready; sleep 60 & wait")
    process.send_signal(signal.SIGINT)
    assert report_of(process)["output"] == "cleaned\n"
    assert alive_after(mark, 0) == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: the tool cannot be slowed down")
@pytest.mark.parametrize("mode", ["off", "guard", "strict"])
def test_what_forks_without_end_is_ended_at_once_by_a_tool_that_is_slow(request, tool, mark, mode):
    """It stops at a few thousand processes all the same, for the sake of the machine."""
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    script = "f() { [ ${#1} -lt 11 ] || exit; sleep 20 & sleep 20 & sleep 20 & sleep 0.05; f ${1}x & f ${1}x; }"
    slow = ["strace", "-o", os.devnull, "-e", "trace=kill", "-e", "inject=kill:delay_enter=4000"]  # microseconds
    report = report_of(tool(f"{script}; touch ready; f", mode, timeout=0.2, under=slow))
    assert report["timed_out"]
    assert report["seconds"] < 10  # the sleeps would last for twenty
    assert alive_after(mark, 0) == []


def test_a_second_signal_kills_at_once(tool, mark):
    def seconds_to_end() -> float:
        process = tool("trap '' TERM; touch ready; while :; do sleep 60; done")
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert report_of(process)["interrupted"] == signal.SIGINT
        assert alive_after(mark, 0) == []
        return time.monotonic() - begun

    assert least(seconds_to_end, PAST_THE_END) < PAST_THE_END


@pytest.mark.slow
def test_a_build_in_strict_cannot_stop_the_tool_and_its_deadline(needs_bwrap, tool, mark, project_folder):
    process = tool("touch ready; while [ ! -s pid ]; do sleep 0.01; done; kill -STOP $(cat pid); sleep 60", "strict", 1)
    (project_folder / "pid").write_text(str(process.pid))
    assert report_of(process)["timed_out"]
    assert alive_after(mark, 0) == []


@pytest.mark.parametrize("mode", ["guard", "strict"])
def test_a_killed_tool_takes_the_build_in_its_sandbox_with_it(needs_bwrap, tool, mark, mode):
    session = "setsid sleep 60 & " if mode == "strict" else ""  # in guard it lives on, as a server does
    process = tool(f"nohup sleep 60 & {session}(sleep 60 &); touch ready; sleep 60", mode)
    assert len(alive(mark)) >= 4
    process.kill()
    process.wait()
    assert alive_after(mark, PAST_THE_END) == []


@pytest.mark.slow
def test_signals_at_any_moment_end_in_one_report(tool, mark, project_folder, whole):
    steps = 100 if whole else 4
    delays = [number / steps * 0.3 for number in range(steps)]
    for delay in delays:
        (project_folder / "ready").unlink(missing_ok=True)
        process = tool("touch ready; sleep 0.1")
        time.sleep(delay / 2)
        process.send_signal(signal.SIGTERM)
        text = process.communicate(timeout=30)[0]
        if text:
            report = json.loads(text)
            assert report.get("interrupted") == signal.SIGTERM or report["exit_code"] == 0
        else:  # it came after the build
            assert process.returncode != 0
        assert alive_after(mark, 1) == []
