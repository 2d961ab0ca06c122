"""The log of a run: what it holds on a full disk, and of a run that is resumed."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command import CODE_COMMIT, recorded

from code_commit.changes import AppliedChange
from code_commit.exchange import Cost, Response, Settlement, Usage
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import open_run_log, reopen_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import FileChoice, RewrittenFile, RunEntry, RunError, load_run_record
from code_commit.runs.replies import LoggedReply, read_reply
from code_commit.settings import Settings
from code_commit.status import Status

WITH_A_FULL_LOG = """
mkdir disk && mount -t tmpfs -o size=3m none disk && mv agent-config/logs disk/logs && ln -s ../disk/logs agent-config/ &&
head -c 9m /dev/zero >disk/full 2>/dev/null
truncate -s -{room}k disk/full || exit 99
"$@"
echo "exit $?"
cat ok.txt
"""

ON_A_SMALL_DISK = """
mkdir agent-config/logs && mount -t tmpfs -o size=1m none agent-config/logs || exit 99
"$@"
echo "exit $?"
tail -qn 1 agent-config/logs/*/1-build.txt
cat agent-config/logs/*/run.json
"""

ON_A_FULL_DISK = """
mkdir agent-config/logs && mount -t tmpfs -o size=200k,nr_inodes=9 none agent-config/logs || exit 99
cat /dev/zero >agent-config/logs/full 2>/dev/null
"$@"
echo "exit $?"
ls agent-config/logs
"""

FULL_AT_THE_END = """
mkdir agent-config/logs && mount -t tmpfs -o size=1m none agent-config/logs || exit 99
"$@"
echo "exit $?"
cat agent-config/logs/*/run.json
"""


@pytest.mark.root("mount")
@pytest.mark.parametrize(
    ("answer", "end"), [("ok", (0, "success")), ("no", (1, "build_failed"))], ids=["the build passes", "it fails"]
)
def test_the_end_of_a_run_has_room_on_a_full_disk(answer: str, end: tuple[int, str], project_folder: Path, monkeypatch):
    """The disk is filled while git is asked what the build left, right before the last write."""
    (project_folder / "build.sh").write_text("#!/bin/sh\ntouch built\ngrep -q ok ok.txt\n")
    options = recorded(project_folder, f"^^^ok.txt\n{answer}\n^^^end\n")
    programs, logs = project_folder.parent / "bin", project_folder / "agent-config" / "logs"
    programs.mkdir()
    fill = f'[ ! -e {project_folder}/built ] || for log in {logs}/*/; do cat /dev/zero >"$log/full" 2>/dev/null; done'
    (programs / "git").write_text(f'#!/bin/sh\n{fill}\nexec {shutil.which("git")} "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    command = ["unshare", "-m", "sh", "-c", FULL_AT_THE_END, "sh", *CODE_COMMIT, *options]
    done = subprocess.run(
        [*command, "--json", "--max-repairs", "0"],
        cwd=project_folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    printed, _, rest = done.stdout.partition("exit ")
    code, _, record = rest.partition("\n")
    ends = [(told["exit_code"], told["status"]) for told in map(json.loads, (printed, record))]
    assert (int(code), ends) == (end[0], [end, end]), done.stderr


@pytest.mark.root("mount")
def test_a_build_that_fills_the_disk_is_told_in_log_and_record(project_folder: Path):
    (project_folder / "build.sh").write_text("#!/bin/sh\nyes 'a line of output' | head -c 3000000\n")
    recorded(project_folder, "^^^ok.txt\nok\n^^^end\n")
    command = ["unshare", "-m", "sh", "-c", ON_A_SMALL_DISK, "sh", *CODE_COMMIT]
    done = subprocess.run(
        [*command, "--model", "replay:agent-config/recorded"],
        cwd=project_folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "1-build.txt cannot be used: No space left on device" in done.stderr
    code, ending, record = done.stdout.split("\n", 2)
    assert code == "exit 5"
    assert ending.startswith("[build.sh: no result, the log file ")
    assert json.loads(record)["status"] == "build_error"
    assert json.loads(record)["finished"] is not None


@pytest.mark.root("mount")
def test_a_run_whose_log_cannot_begin_leaves_no_unreadable_one(project_folder: Path):
    recorded(project_folder, "^^^ok.txt\nok\n^^^end\n")
    command = ["unshare", "-m", "sh", "-c", ON_A_FULL_DISK, "sh", *CODE_COMMIT]
    done = subprocess.run(
        [*command, "--model", "replay:agent-config/recorded"],
        cwd=project_folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.stdout == "exit 5\nfull\n", done.stderr
    assert "cannot be used: No space left on device; free some space there\n" in done.stderr


@pytest.mark.root("mount")
@pytest.mark.parametrize("room", [16, 48, 300, 1000])
def test_an_undo_that_put_all_back_says_so_where_its_log_has_no_room(room: int, project_folder: Path):
    """5 would say that files could not be written."""
    old, new = (f"{number}\n" * 30_000 for number in (1, 2))
    (project_folder / "ok.txt").write_text(old)
    subprocess.run(
        [*CODE_COMMIT, "apply", "-"], cwd=project_folder, input=f"^^^ok.txt\n{new}^^^end\n", text=True, check=True
    )
    command = ["unshare", "-m", "sh", "-c", WITH_A_FULL_LOG.replace("{room}", str(room)), "sh", *CODE_COMMIT, "undo"]
    done = subprocess.run(command, cwd=project_folder, capture_output=True, text=True, timeout=180, check=False)
    ending, _, content = done.stdout.partition("\n")
    is_back = content == old
    assert (ending, content in (old, new)) == ("exit 0" if is_back else "exit 5", True), done.stderr
    assert is_back == (room >= 300)
    if room == 300:
        said = "all of it was put back, but not all could be logged: the log file "
        assert "warning: undid " in done.stderr
        assert said in done.stderr, done.stderr
        assert "1-changes.diff cannot be used: No space left on device" in done.stderr


def test_the_time_of_a_resumed_run_counts_its_choice_of_files_once(project_folder: Path):
    project, settings, progress = find_project(project_folder), Settings(), Progress(Redactor([]), quiet=True)
    log = open_run_log(project, "run", settings, progress)
    log.record.choice = FileChoice("the-choice", calls=1, seconds=1000.0)
    log.save("started")
    record = load_run_record((log.folder / "run.json").read_bytes())
    with reopen_run_log(project, RunEntry(log.folder, record), settings, progress) as again:
        assert 1000 <= again.record.totals.seconds < 2000


def test_a_resumed_run_has_the_answer_its_costs_and_the_settings_that_were_recorded(project_folder: Path):
    """The costs are powers of two: a sum says of which of them it is."""
    project, settings, progress = (
        find_project(project_folder),
        Settings(keep_runs=7),
        Progress(Redactor([]), quiet=True),
    )
    log = open_run_log(project, "run", settings, progress)
    attempt, usage = AttemptLog(log, 1), Usage(1, 2, 4, 8, 16)
    attempt.reserved(64.0)
    attempt.reserved(128.0)
    attempt.job_created("a job")
    assert (attempt.record.job_id, attempt.record.job_usd) == ("a job", 128.0)
    response = Response("a\ud800b", "length", "cut off", is_cut_off=True, request_id="r")
    response = response._replace(settlement=Settlement(128.0, usage, 2.0, 16.0))
    attempt.settled(Settlement(64.0, usage, 1.0, 8.0))
    attempt._started -= 5.0
    attempt.replied(200, {}, {"id": "r"})
    attempt.answered(response)
    attempt.responded(response, "")
    AttemptLog(log, 2).answered(Response("", "stop"))
    log.record.error = RunError("network")
    log.finish(Status.LLM_ERROR, "gone", exit_code=5)

    record = load_run_record((log.folder / "run.json").read_bytes())
    assert (record.status, record.exit_code, record.message) == (Status.LLM_ERROR, 5, "gone")
    record = reopen_run_log(project, RunEntry(log.folder, record), Settings(), progress).record
    assert (record.status, record.exit_code, record.message, record.finished) == (Status.RUNNING, None, None, None)
    assert (record.error, record.options["keep_runs"]) == (None, 7)
    call, without_usage = record.attempts
    assert (without_usage.usage, without_usage.cost) == (Usage(), Cost()), "an answer, as a refused call is none"
    assert (call.cost, call.usage, call.job_id, call.request_id) == (Cost(3.0, 24.0), usage + usage, None, "r")
    assert call.seconds
    assert call.seconds >= 5.0
    assert read_reply(log.folder, 1) == LoggedReply({"id": "r"}, pytest.approx(call.seconds, abs=0.001))
    again = AttemptLog(reopen_run_log(project, RunEntry(log.folder, record), settings, progress), 1)
    assert again.recorded_response() == response._replace(request_id=None, settlement=Settlement())


def test_what_an_answer_replaces_is_no_longer_what_a_build_made_of_an_earlier_one(project_folder: Path):
    project, progress = find_project(project_folder), Progress(Redactor([]), quiet=True)
    log = open_run_log(project, "run", Settings(), progress)
    files = [RewrittenFile(path, "replace", 1, 1) for path in ("a", "b", "c")]
    log.record.rewritten = files
    attempt = AttemptLog(log, 1)
    attempt.record.changes = [
        AppliedChange("a", "replace", 1, 1, 1),
        AppliedChange("d", "create", 1, 1, 0, renamed_from="c"),
    ]
    attempt.applied()
    assert load_run_record((log.folder / "run.json").read_bytes()).rewritten == [files[1]]
