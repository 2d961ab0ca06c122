"""The log of a run: what it holds on a full disk, and of a run that is resumed."""

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command import CODE_COMMIT, recorded

from code_commit.changes import AppliedChange, RejectedResponseError, RunWarning, VerifiedChanges, Violation
from code_commit.errors import Interrupted
from code_commit.exchange import Cost, Prompt, Response, Settlement, Usage
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.diff import FileEdit
from code_commit.runs.list import process_start
from code_commit.runs.log import RunLog, open_run_log, reopen_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import (
    BUILT_DIFF,
    SCHEMA_VERSION,
    BuildResult,
    FileChoice,
    RewrittenFile,
    RunEntry,
    RunError,
    load_run_record,
)
from code_commit.runs.replies import LoggedReply, read_reply
from code_commit.settings import Settings
from code_commit.status import Status
from code_commit.views import Name, Sight

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


@pytest.fixture
def log(project_folder: Path) -> RunLog:
    return open_run_log(find_project(project_folder), "run", Settings(), Progress(Redactor([]), quiet=True))


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
    now = settings._replace(max_repairs=9)
    record = reopen_run_log(project, RunEntry(log.folder, record), now, progress).record
    assert (record.status, record.exit_code, record.message, record.finished) == (Status.RUNNING, None, None, None)
    assert (record.error, record.options["keep_runs"], record.options["max_repairs"]) == (None, 7, 9)
    call, without_usage = record.attempts
    assert (without_usage.usage, without_usage.cost) == (Usage(), Cost()), "an answer, as a refused call is none"
    assert (call.cost, call.usage, call.job_id, call.request_id) == (Cost(3.0, 24.0), usage + usage, None, "r")
    assert call.seconds
    assert call.seconds >= 5.0
    assert read_reply(log.folder, 1) == LoggedReply({"id": "r"}, pytest.approx(call.seconds, abs=0.001))
    record.pid, record.process_start, record.schema_version = 1, "another", 1
    reopened = reopen_run_log(project, RunEntry(log.folder, record), settings, progress, lambda *end: ends.append(end))
    assert (record.pid, record.process_start) == (os.getpid(), process_start(os.getpid()))
    assert (record.schema_version, reopened.git) == (SCHEMA_VERSION, project.git)
    assert AttemptLog(reopened, 1).recorded_response() == response._replace(request_id=None, settlement=Settlement())
    ends = []
    reopened.finish(Status.SUCCESS)
    assert ends == [(reopened, Status.SUCCESS)]


def test_an_attempt_counts_its_own_times_and_asks_its_own_model(log: RunLog):
    """An hour in it is that of another step, or of the attempt as it was recorded before."""
    log.record.model = "first"
    attempt = AttemptLog(log, 1)
    attempt.record.model = "fallback"
    attempt.reserved(1.0)
    attempt.job_created("a job")
    assert attempt.record.job_model == "fallback"
    attempt._started -= 3600
    attempt.asking(Prompt("", "", "Do it."))
    attempt.replied(200, {}, {})
    attempt._responded -= 3600
    attempt.given(Response("", "stop"), "")
    attempt.rejected(RejectedResponseError([Violation("", 0, "no-block", "no")], 2))
    assert attempt.record.reasons == ["no", "and 2 more"]
    assert attempt.record.model == "fallback", "which goes on"
    assert attempt.record.seconds is not None
    assert attempt.record.change_seconds is not None
    assert max(attempt.record.seconds, attempt.record.change_seconds) < 3600
    attempt.record.change_seconds = 7.0
    attempt.chose(["a", "b"])
    assert (log.record.chosen, attempt.record.verdict, attempt.record.change_seconds) == (["a", "b"], "rejected", 7.0)


def test_what_is_cut_for_the_record_holds_no_piece_of_a_key(log: RunLog):
    key = "test-key-0123456789"
    log.redactor = Redactor([key])
    attempt, cut = AttemptLog(log, 1), f"{'x' * 19_990}{key}"
    attempt.given(Response("", "stop"), cut)
    attempt.asked([f"{'x' * 490}{key}"])
    told = [attempt.record.notes, *attempt.record.asked, str(attempt.declined(cut))]
    assert [key[:8] in text for text in told] == [False] * 3
    assert [len(text) > 480 for text in told] == [True] * 3


def test_the_files_that_an_answer_left_and_those_that_its_build_renamed_are_recorded_as_they_are(log: RunLog):
    attempt, old = AttemptLog(log, 1), b"".join(b"line %d\n" % n for n in range(20))
    attempt.applying(VerifiedChanges(log.folder, (), (RunWarning("other", "w"),), ("crlf.txt",)))
    assert (attempt.record.ends_alone, [each.message for each in log.record.warnings]) == (["crlf.txt"], ["w"])
    moved = [FileEdit("a.txt", old, None), FileEdit("b.txt", None, old)]
    attempt.built(moved)
    assert [(file.path, file.action) for file in log.record.rewritten] == [("a.txt", "delete"), ("b.txt", "create")]
    assert (log.folder / BUILT_DIFF).exists()
    attempt.built([])
    assert (log.record.rewritten, (log.folder / BUILT_DIFF).exists()) == ([], False), "nothing of an earlier build"


KINDS = {
    # the command, the verdicts of the attempts; their kinds
    "run": ("run", ["rejected", "chosen", "applied", "applied"], ["initial", "retry", "retry", "repair"]),
    "repair": ("repair", ["applied", "rejected", "applied"], ["repair", "repair", "retry"]),
}


@pytest.mark.parametrize(("command", "verdicts", "kinds"), KINDS.values(), ids=KINDS)
def test_an_attempt_is_what_the_one_before_it_makes_it(command, verdicts, kinds, log: RunLog):
    log.record.command = command
    for number, verdict in enumerate(verdicts, start=1):
        AttemptLog(log, number).record.verdict = verdict
    assert [attempt.kind for attempt in log.record.attempts] == kinds


def test_what_a_log_does_not_say_a_prompt_showed_is_taken_from_the_one_that_is_made_again(log: RunLog):
    attempt, views = AttemptLog(log, 1), {"a": Name(1)}
    made_again = Sight({"b": Name(2)}, "codebase", ["beside"])
    assert attempt.sight(made_again) == made_again
    sent = Sight(views, "as it was", ["then"], "made", is_partial=True)
    attempt.asking(Prompt("", "", "", shows=sent))
    assert attempt.sight(sent) is sent
    assert AttemptLog(log, 1).sight(made_again) == Sight(views, "codebase", ["beside"], "made", is_partial=True)


@pytest.mark.parametrize("pending", ["reply", "job", ""])
def test_an_answer_that_may_still_come_is_to_the_prompt_of_the_log(pending, log: RunLog):
    """What an interrupted run showed is not what a prompt made now shows: the user may have edited a file since."""
    query, first = log.folder / "1-query.txt", AttemptLog(log, 1)
    first.asking(Prompt("", "", "then", shows=Sight({"a": Name(1)}, "")))
    if pending == "reply":
        first.replied(200, {}, {"id": "r"})
    elif pending == "job":
        first.job_created("a job")
    again, now = AttemptLog(log, 1), Prompt("", "", "now", shows=Sight({"a": Name(2)}, ""))
    again.asking(now)
    assert query.read_text() == ("then" if pending else "now")
    assert again.sight(now.shows).views == {"a": Name(1 if pending else 2)}
    again.prompted(now)  # nothing has come
    assert (query.read_text(), again.sight(now.shows)) == ("now", now.shows)


def test_a_run_tells_each_warning_and_each_build_that_ended_once(log: RunLog):
    steps: list[str] = []
    log.listener = cast("Any", SimpleNamespace(step=lambda _, event: steps.append(event), output=lambda _: None))
    log.add_warning("build", "a", "a", "b")
    log.add_warning("build", "b", "a")
    assert [each.message for each in log.record.warnings] == ["a", "b"]
    with log.build_log("1-build.txt", lambda _: None):
        pass
    with log.build_log("2-build.txt", lambda _: None) as build:
        build.result = BuildResult(0, None, timed_out=False, seconds=1.0, output_bytes=0)
    assert steps == ["warned", "building", "building", "built"]


def test_the_end_by_an_error_has_its_code_may_have_been_paid_for_and_leaves_no_room(log: RunLog):
    AttemptLog(log, 1).record.unsettled_usd = [0.5]
    log.replies.make_room(1, 4096)
    with suppress(Interrupted), log:
        raise Interrupted(signal.SIGTERM)
    assert (log.record.error, log.record.exit_code) == (RunError("interrupted", may_be_paid=True), 143)
    assert [path.name for path in log.folder.glob(".*")] == []


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


def test_an_answer_of_unknown_price_leaves_the_lost_request_before_it_that_cost_nothing(project_folder: Path):
    log = open_run_log(find_project(project_folder), "run", Settings(), Progress(Redactor([]), quiet=True))
    attempt = AttemptLog(log, 1)
    attempt.reserved(0.0)
    attempt.reserved(None)
    attempt.answered(Response("", "stop", settlement=Settlement(usage=Usage(1))))
    assert attempt.record.unpriced == 0
    log.finish(Status.SUCCESS, "", exit_code=0)
