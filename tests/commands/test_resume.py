"""`resume` after a kill at each step: nothing is asked twice, applied twice or built twice, and the end is the same."""

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import CODE_COMMIT, Run, Start, chess_board, git, recorded, the_log, wait_for
from fake_server import FakeServer, Fault
from forked_command import ForkedProcess

from code_commit.commands.resume import _answered, _find_resumable, _inputs_of, _resume
from code_commit.errors import NotSetUpError
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunEntry
from code_commit.settings import Settings
from code_commit.status import Status
from code_commit.views import Name, Sight

WRONG, RIGHT = "^^^ok.txt\nwrong\n^^^end\n^^^gone.txt\n^^^delete\n", "^^^ok.txt\nok\n^^^end\n"
EDITED = "^^^ok.txt\n^^^find\nnot yet\n^^^replace\nwrong\n^^^end\n^^^gone.txt\n^^^delete\n"
KEY = "test-key-0123456789"


@pytest.fixture
def root(project_folder: Path) -> Path:
    (project_folder / "gone.txt").write_text("to be deleted\n")
    (project_folder / "agent-config" / "config.toml").write_text('answer_format = "edits"\n')
    (project_folder / "agent-config" / "openai-key.txt").write_text(KEY)
    (project_folder / "agent-config" / "openai-key.txt").chmod(0o600)
    (project_folder / "build.sh").write_text(
        "#!/bin/sh\necho build >> agent-config-builds\n[ -e hold ] && sleep 60\ngrep -qx ok ok.txt\n"
    )
    return project_folder


def record(root: Path) -> dict:
    return json.loads((the_log(root) / "run.json").read_text())


@pytest.fixture
def start(root: Path, start_code_commit: Start) -> Callable[[FakeServer], ForkedProcess]:
    options = ("--model", "openai", "--sandbox", "off")
    return lambda server: start_code_commit(root, *options, "--base-url", server.base_url("openai"))


def end(process: ForkedProcess, number: int) -> None:
    process.send_signal(number)
    process.wait(timeout=180)


def builds(root: Path) -> int:
    return (root / "agent-config-builds").read_text().count("build")


def created(server: FakeServer) -> int:
    return sum(request.method == "POST" and request.path.endswith("/responses") for request in server.requests)


def resume(root: Path, run_code_commit: Run, *arguments: str):
    return run_code_commit(root, "resume", *arguments)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_during_the_build(number, start, root: Path, run_code_commit: Run):
    (root / "hold").touch()
    with FakeServer(answers=[WRONG, RIGHT]) as server:
        process = start(server)
        wait_for((root / "agent-config-builds").exists)
        end(process, number)
        (root / "hold").unlink()
        done = resume(root, run_code_commit)
        assert done.returncode == 0, done.stderr
        assert "git status is not clean" not in done.stderr, "the run itself has changed it"
        assert created(server) == 2
    assert builds(root) == 3  # the first one was cut short
    assert not (root / "gone.txt").exists()
    assert (root / "ok.txt").read_text() == "ok\n"
    after = record(root)
    assert [attempt["verdict"] for attempt in after["attempts"]] == ["applied", "applied"]
    assert [attempt["build"]["exit_code"] for attempt in after["attempts"]] == [1, 0]
    assert after["totals"]["usage"]["input"] == 2000


def test_a_job_whose_id_is_on_disk_is_fetched(start, root: Path, run_code_commit: Run):
    with FakeServer(answers=[RIGHT], polls=10**6) as server:
        process = start(server)
        wait_for(lambda: any("/responses/" in request.path for request in server.requests))
        end(process, signal.SIGKILL)
        server.polls = 1
        done = resume(root, run_code_commit)
        assert done.returncode == 0, done.stderr
        assert created(server) == 1
    assert (root / "ok.txt").read_text() == "ok\n"


def test_whoever_resumes_says_what_is_printed(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, "no block\n"), "--json").returncode == 3
    recorded(root, "no block\n", RIGHT)
    done = resume(root, run_code_commit)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


GONE = {
    "expired": Fault("status", "poll", status=410, body={"error": {"message": "the job has expired"}}),
    "the job ended as 'cancelled' at 127.0.0.1": Fault(
        "status", "poll", body={"id": "resp_1", "status": "cancelled", "output": []}
    ),
}


@pytest.mark.parametrize(("why", "gone"), GONE.items())
def test_a_job_that_is_gone_is_asked_for_again(why, gone, start, root: Path, run_code_commit: Run):
    with FakeServer(answers=[RIGHT, RIGHT], polls=10**6) as server:
        process = start(server)
        wait_for(lambda: any("/responses/" in request.path for request in server.requests))
        end(process, signal.SIGKILL)
        server.polls = 1
        server.faults = [gone]
        done = resume(root, run_code_commit)
        assert done.returncode == 0, done.stderr
        warned = done.stderr.split("the pending answer cannot be fetched, asking again: ")[1]
        assert (why in warned, "code-commit resume" in warned) == (True, False), "the run does what it would advise"
        assert created(server) == 2


REPLAY = ("--model", "replay:agent-config/recorded", "--sandbox", "off")


@pytest.fixture
def kill_behind(root: Path, start_code_commit: Start) -> Callable[[str], None]:
    def kill(step: str) -> None:
        program = (
            "import os; from code_commit.runs.progress import Progress\n"
            "def step(self, record, event):\n"
            f"    if event == {step!r}: os.kill(os.getpid(), 9)\n"
            "Progress.step = step\n"
        )
        assert start_code_commit(root, *REPLAY, before=program).wait(180) == -signal.SIGKILL

    return kill


STEPS = ["responded", "applying", "applied", "building", "built", "rejected"]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "answer"), chess_board(STEPS, [WRONG, EDITED]))
def test_killed_right_behind_each_step(step, answer, kill_behind, root: Path, run_code_commit: Run):
    """A listener of the run's log kills the process as soon as run.json has the step."""
    recorded(root, "no block\n" if step == "rejected" else answer, RIGHT)
    kill_behind(step)
    assert "killed" in run_code_commit(root, "log").stdout

    done = resume(root, run_code_commit)

    assert done.returncode == 0, done.stderr
    after = record(root)
    assert after["status"] == "success"
    assert [attempt["verdict"] for attempt in after["attempts"]] == [
        "rejected" if step == "rejected" else "applied",
        "applied",
    ]
    assert (root / "ok.txt").read_text() == "ok\n"
    assert (root / "gone.txt").exists() == (step == "rejected")
    assert builds(root) == {"rejected": 1}.get(step, 2)
    if step != "rejected":
        assert after["attempts"][0]["changes"][1]["action"] == "delete"


@pytest.mark.parametrize("breaks", [True, False])
def test_a_pass_is_of_the_tree_that_was_built(breaks, kill_behind, root: Path, run_code_commit: Run):
    """Of a build that passed before the kill nobody knows what it read: it is built again."""
    with (root / "build.sh").open("a") as script:
        script.write("[ $? = 0 ] && [ ! -e broken ]\n")
    recorded(root, RIGHT)
    kill_behind("built")
    assert record(root)["attempts"][0]["build"]["exit_code"] == 0
    if breaks:
        (root / "broken").touch()
    done = resume(root, run_code_commit, "--max-repairs", "0")
    assert done.returncode == (1 if breaks else 0), done.stderr
    assert (builds(root), record(root)["attempts"][0]["build"]["exit_code"]) == (2, done.returncode)


@pytest.mark.parametrize("answer", [WRONG, EDITED])
def test_killed_between_the_apply_and_its_note_in_the_log(
    answer, root: Path, run_code_commit: Run, start_code_commit: Start
):
    """What an edit looks for is no longer there: the snapshot says that the answer is in the tree."""
    recorded(root, answer, RIGHT)
    program = (
        "import os; from code_commit.runs import attempt_log\n"
        "attempt_log.AttemptLog.applied = lambda self: os.kill(os.getpid(), 9)\n"
    )
    assert start_code_commit(root, *REPLAY, before=program).wait(180) == -signal.SIGKILL
    assert not (root / "gone.txt").exists()
    done = resume(root, run_code_commit)
    assert done.returncode == 0, done.stderr
    assert [attempt["verdict"] for attempt in record(root)["attempts"]] == ["applied", "applied"]


NESTED = "^^^sub/hidden.txt\nx\n^^^end\n"


@pytest.mark.slow
@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("rule", ["ignored", "protected-by-option", "not-allowed"])
def test_the_rules_of_before_the_run_hold(rule, resumed, root: Path, run_code_commit: Run):
    """A path that the one run rejects is rejected after a `resume` too."""
    (root / "sub").mkdir()
    if rule == "ignored":
        (root / "sub/.gitignore").write_bytes(b"h\xc3\xafdden*\n/hidden.txt\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    (root / "build.sh").write_text("#!/bin/sh\nrm -f sub/.gitignore\ngrep -qx ok ok.txt\n")
    options = {"ignored": [], "protected-by-option": ["--protect", "sub/"], "not-allowed": ["--allow", "*ok.txt"]}[rule]
    first = "^^^ok.txt\nwrong\n^^^end\n"
    done = run_code_commit(root, *recorded(root, first, *([] if resumed else [NESTED, RIGHT])), *options)
    if resumed:
        assert done.returncode == 3  # there is no second response yet
        recorded(root, first, NESTED, RIGHT)
        done = resume(root, run_code_commit)
    assert done.returncode == 0, done.stderr
    assert [attempt["verdict"] for attempt in record(root)["attempts"]] == ["applied", "rejected", "applied"]
    assert [reason["rule"] for reason in record(root)["attempts"][1]["rejections"]] == [rule]
    assert not (root / "sub/hidden.txt").exists()


def test_a_run_that_wanted_a_clean_tree_is_resumed(root: Path, run_code_commit: Run):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    assert run_code_commit(root, *recorded(root, WRONG), "--require-clean").returncode == 3
    recorded(root, WRONG, RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "rules",
    ["{", "[]", "7", '{".gitignore": 7}', '{".gitignore": ["*"]}', '{".gitignore": "\\u4e2d"}', "[" * 99_999],
    ids=str.__len__,
)
def test_rules_that_are_damaged_are_not_taken_for_none(rules, root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, WRONG)).returncode == 3
    (the_log(root) / "ignore-files.json").write_text(rules)
    recorded(root, WRONG, RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 2
    assert re.search(r"ignore-files.json cannot be read \(.*\): start a new run", done.stderr)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: kill points cannot be set")
def test_a_tree_that_is_half_changed_is_told_and_repaired(root: Path, run_code_commit: Run, tmp_path: Path):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    options = recorded(root, "^^^a.txt\nx\n^^^end\n^^^ok.txt\nok\n^^^end\n")
    kill = ["strace", "-f", "-o", "/dev/null", "-e", "trace=renameat", "-e", "inject=renameat:signal=KILL:when=3"]
    subprocess.run([*kill, *CODE_COMMIT, *options], cwd=root, capture_output=True, check=False)
    assert (root / "a.txt").exists()  # and ok.txt is as it was
    said = (
        "left the tree half changed: the next code-commit resume, undo, run, apply or rollup first puts every file back"
    )
    for command in (["log"], ["log", "--json"], ["log", the_log(root).name], ["prompt"], ["diff"]):
        done = run_code_commit(root, *command)
        assert (done.returncode, said in done.stderr) == (0, True), command
    done = run_code_commit(root, "check", *options)
    assert (done.returncode, said in done.stdout) == (2, True)
    assert (root / "a.txt").exists()
    for command in (["resume"], ["undo"], ["rollup"], ["apply", "no such file"], options):
        copy = tmp_path / command[0] / "project"
        shutil.copytree(root, copy)
        done = run_code_commit(copy, *command)
        assert "repaired an interrupted apply: put back 1 of 2 files" in done.stderr, command
        assert "half changed" not in run_code_commit(copy, "log").stderr
        assert (copy / "a.txt").exists() == (command in (["resume"], options))


WAYS_ON = "code-commit resume continues this run"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_with_the_ways_on(number, root: Path, start_code_commit: Start):
    (root / "hold").touch()
    process = start_code_commit(root, *recorded(root, RIGHT), "--sandbox", "off")
    wait_for((root / "agent-config-builds").exists)
    process.send_signal(number)
    said = process.communicate(timeout=180)[1]
    assert WAYS_ON in said
    assert "1 file changed so far; code-commit undo takes it back" in said


@pytest.mark.parametrize(
    ("answers", "options", "code", "said"),
    [
        (["^^^ok.txt\nno\n^^^end\n"], [], 3, [WAYS_ON, "1 file changed so far"]),
        ([], [], 3, [WAYS_ON]),
        (["^^^ok.txt\nno\n^^^end\n", "no blocks"], ["--max-repairs", "1"], 4, ["1 file changed so far"]),
        (["^^^ok.txt\nno\n^^^end\n"], ["--rollback"], 3, []),
        ([], ["--dry-run"], 3, []),
    ],
)
def test_a_run_that_ends_early_says_what_can_be_done(answers, options, code, said, root: Path, run_code_commit: Run):
    done = run_code_commit(root, *recorded(root, *answers), *options)
    assert done.returncode == code
    for words in (WAYS_ON, "1 file changed so far"):
        assert (words in done.stderr) == (words in said)
    shown = run_code_commit(root, "log", the_log(root).name).stdout
    name = the_log(root).name.replace("-committing-code", "")
    assert (f"code-commit resume {name} continues this run" in shown) == (WAYS_ON in said)


def test_what_the_llm_wrote_before_is_not_stale_to_it(root: Path, run_code_commit: Run):
    wrong = "^^^ok.txt\nwrong\n^^^end\n"
    assert run_code_commit(root, *recorded(root, wrong), "--strict").returncode == 3  # there is no second response yet
    recorded(root, wrong, RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 0, done.stderr
    assert len(record(root)["attempts"]) == 2


def test_a_file_that_the_run_created_is_not_told_as_untracked_before(root: Path, run_code_commit: Run):
    wrong = "^^^new.txt\nx\n^^^end\n^^^ok.txt\nwrong\n^^^end\n"
    assert run_code_commit(root, *recorded(root, wrong)).returncode == 3
    recorded(root, wrong, RIGHT + "^^^new.txt\ny\n^^^end\n")
    done = resume(root, run_code_commit)
    assert (done.returncode, "does not track" in done.stderr) == (0, False), done.stderr


def test_a_run_that_has_ended_is_not_resumed(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, RIGHT)).returncode == 0
    done = resume(root, run_code_commit)
    assert done.returncode == 2
    assert "no interrupted run to resume" in done.stderr
    done = resume(root, run_code_commit, the_log(root).name)
    assert done.returncode == 2
    assert " (run: the build passes) has no next step: nothing to resume" in done.stderr
    assert run_code_commit(root, "undo").returncode == 0
    done = resume(root, run_code_commit, "latest")
    assert " (undo: undone) has no next step: nothing to resume" in done.stderr
    assert "no run 1999" in resume(root, run_code_commit, "1999").stderr


def test_a_resumed_run_knows_what_its_codebase_shows(root: Path, run_code_commit: Run):
    """An answer that the interrupted run had is verified by what its prompt showed, whatever the tree holds now."""
    (root / "agent-config/config.toml").write_text('rollup = "fresh"\nstrict = true\nsandbox = "off"\n')
    (root / "other.txt").write_text("almost\n")
    assert run_code_commit(root, *recorded(root, "no block")).returncode == 3
    folder = the_log(root)
    state = json.loads((folder / "run.json").read_text())
    state["attempts"][0] |= {"verdict": None, "rejections": []}
    del state["attempts"][1:]
    (folder / "run.json").write_text(json.dumps(state))
    (folder / "1-response.txt").write_text("^^^ok.txt\nok\n^^^end\n")
    (root / "ok.txt").write_text("al\n")
    done = resume(root, run_code_commit)
    assert done.returncode == 3, done.stderr
    assert [reason["rule"] for reason in record(root)["attempts"][0]["rejections"]] == ["stale"]
    assert '"basis": "made"' in (folder / "2-shows.json").read_text()


def test_a_resumed_run_knows_what_its_prompt_showed_beside_the_codebase(root: Path, run_code_commit: Run):
    """An edit between the kill and the resume is not overwritten by an answer that was given before it."""
    (root / "agent-config/config.toml").write_text('strict = true\nsandbox = "off"\n')
    (root / "other.txt").write_text("as it was shown\n")
    options = recorded(root, "^^^files\nother.txt\n^^^end\n", "no block")
    assert run_code_commit(root, *options).returncode == 3
    asked, answered, *_ = record(root)["attempts"]
    rewrite_record(root, attempts=[asked, answered | {"verdict": None, "rejections": []}])
    (the_log(root) / "2-response.txt").write_text("^^^other.txt\nof the LLM\n^^^end\n")
    (root / "other.txt").write_text("edited since\n")
    done = resume(root, run_code_commit)
    assert [reason["rule"] for reason in record(root)["attempts"][1]["rejections"]] == ["stale"], done.stderr
    assert (root / "other.txt").read_text() == "edited since\n"


def test_a_file_beside_the_codebases_of_a_log_is_none_of_them(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, WRONG)).returncode == 3
    (the_log(root) / "old-codebase.txt").write_text("--- other.txt ---\n")
    recorded(root, WRONG, RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 0, done.stderr
    assert "other.txt" not in (the_log(root) / "2-query.txt").read_text()


def test_a_resumed_run_goes_on_with_the_codebase_of_its_latest_prompt(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, WRONG)).returncode == 3
    for number in (9, 10):
        (the_log(root) / f"{number}-codebase.txt").write_text(f"--- of-attempt-{number}.txt ---\n")
    recorded(root, WRONG, RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 0, done.stderr
    query = (the_log(root) / "2-query.txt").read_text()
    assert "of-attempt-10.txt" in query
    assert "of-attempt-9.txt" not in query


@pytest.mark.parametrize(
    ("answer", "name", "content"),
    [
        ("no block", "1-response.*", None),
        ("no block", "1-response.txt", b"\xff\n"),
        (WRONG, "1-build.txt", None),
        (WRONG, "query.txt", b"\xff\n"),
        (WRONG, "codebase.txt", b"\xff\n"),
    ],
)
def test_what_the_next_step_lacks_is_named(answer, name, content, root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, answer)).returncode == 3
    before = (the_log(root) / "run.json").read_bytes()
    for file in the_log(root).glob(name):
        file.unlink() if content is None else file.write_bytes(content)
    recorded(root, answer, RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 2, done.stderr
    assert (
        f"{the_log(root).name} cannot be resumed because its {name.replace('*', 'txt')} cannot be read: " in done.stderr
    )
    assert (the_log(root) / "run.json").read_bytes() == before


def test_no_run_to_resume(root: Path, run_code_commit: Run):
    done = resume(root, run_code_commit)
    assert done.returncode == 2
    assert "no interrupted run to resume" in done.stderr


def test_it_says_that_it_keeps_its_model_and_address_where_others_are_set_now(root: Path, run_code_commit: Run):
    config = root / "agent-config/config.toml"
    with FakeServer(faults=[Fault("status", times=9, status=401)], answers=[RIGHT]) as server:
        url = server.base_url("openai")
        config.write_text(f'model = "openai:gpt-6.2-sol"\nbase_url = "{url}"\n')
        assert run_code_commit(root, "--sandbox", "off").returncode == 3
        assert "the run keeps" not in resume(root, run_code_commit).stderr
        config.write_text('model = "anthropic"\n')
        told = (
            "the run keeps openai:gpt-6.2-sol at {}: --base-url changes the address; for another model start a new run"
        )
        assert told.format(url) in resume(root, run_code_commit).stderr


@pytest.mark.parametrize(("body", "can_resume"), [("prompt is too long: 2 tokens > 1", False), ("bad", True)])
def test_a_prompt_that_is_too_long_needs_a_new_run(body, can_resume, start, root: Path):
    body = {"error": {"message": body, "type": "invalid_request_error"}}
    with FakeServer(faults=[Fault("status", status=400, body=body)]) as server:
        said = start(server).communicate(timeout=60)[1]
    assert (WAYS_ON in said, "Then start a new run: resume would send" in said) == (can_resume, not can_resume), said


@pytest.mark.slow
def test_an_older_interrupted_run_is_resumed_by_its_name_only(root: Path, run_code_commit: Run):
    first = "^^^first.txt\nx\n^^^end\n"
    assert run_code_commit(root, *recorded(root, first)).returncode == 3
    interrupted = the_log(root)
    (root / "ok.txt").write_text("ok\n")
    assert run_code_commit(root, *recorded(root, "^^^more.txt\nx\n^^^end\n")).returncode == 0
    (later,) = set((root / "agent-config/logs").iterdir()) - {interrupted}
    done = resume(root, run_code_commit, interrupted.name)
    run = interrupted.name.replace("-committing-code", "")
    assert (done.returncode, f"code-commit resume {run} continues this run" in done.stderr) == (3, True), done.stderr
    assert f"1 file changed so far; code-commit undo {run} takes it back" in done.stderr
    recorded(root, first, RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 2
    assert (
        f"{interrupted.name} is unfinished (the LLM could not be called), but {later.name} (run: the build passes) "
        in done.stderr
    )
    assert json.loads((interrupted / "run.json").read_text())["status"] == "llm_error"
    done = resume(root, run_code_commit, interrupted.name)
    assert done.returncode == 0, done.stderr
    assert f"resuming {interrupted.name}" in done.stderr
    assert json.loads((interrupted / "run.json").read_text())["status"] == "success"


@pytest.mark.slow
def test_a_dry_run_changes_nothing_also_of_what_can_be_resumed(root: Path, run_code_commit: Run):
    first = "^^^first.txt\nx\n^^^end\n"
    assert run_code_commit(root, *recorded(root, first)).returncode == 3
    interrupted = the_log(root)
    (root / "agent-config/recorded/1-response.txt").unlink()
    assert run_code_commit(root, *recorded(root), "--dry-run").returncode == 3
    done = resume(root, run_code_commit, "-1")
    assert (done.returncode, "has no next step: start the dry run again" in done.stderr) == (2, True), done.stderr
    recorded(root, first, RIGHT)
    done = resume(root, run_code_commit)
    assert (done.returncode, f"resuming {interrupted.name}" in done.stderr) == (0, True), done.stderr


@pytest.mark.parametrize("build", ["exit 0", "exit 1"])
def test_a_repair_that_asked_for_nothing_hides_no_interrupted_run(build, root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root)).returncode == 3
    first, script = [*(root / "agent-config/logs").iterdir()], (root / "build.sh").read_text()
    (root / "build.sh").write_text(f"#!/bin/sh\n{build}\n")
    repaired = run_code_commit(root, "repair", "--model", "gemini", env={"GEMINI_API_KEY": ""})
    assert repaired.returncode == (0 if build == "exit 0" else 2), repaired.stderr
    assert len([*(root / "agent-config/logs").iterdir()]) == 2
    (root / "build.sh").write_text(script)
    recorded(root, RIGHT)
    done = resume(root, run_code_commit)
    assert (done.returncode, f"resuming {first[0].name}" in done.stderr) == (0, True), done.stderr


def test_a_dry_run_does_not_hide_the_run_that_ended_after_it(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, "no block")).returncode == 3
    for more in (["--dry-run"], []):
        assert run_code_commit(root, *recorded(root, RIGHT), *more).returncode == 0
    done = resume(root, run_code_commit)
    assert (done.returncode, " (run: the build passes) ran later; " in done.stderr) == (2, True), done.stderr


def later_run(root: Path, run_code_commit: Run, answer: str = "no block") -> Path:
    """Make another interrupted run and return its log folder."""
    before = set((root / "agent-config/logs").iterdir())
    assert run_code_commit(root, *recorded(root, answer)).returncode == 3
    (folder,) = set((root / "agent-config/logs").iterdir()) - before
    return folder


@pytest.mark.parametrize(
    ("lacks", "why"),
    [
        ("model", "cannot be resumed: its model gone:model is unknown to this version"),
        ("codebase", "cannot be resumed because its codebase.txt cannot be read: "),
        ("undone", "was undone: there is nothing to resume"),
    ],
)
def test_a_run_that_cannot_go_on_is_passed_over(lacks, why, root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, "no block")).returncode == 3
    first = the_log(root)
    later = later_run(root, run_code_commit)
    if lacks == "codebase":
        (later / "codebase.txt").write_bytes(b"\xff\n")
    else:
        changed = {"model": "gone:model"} if lacks == "model" else {"undone": True}
        state = json.loads((later / "run.json").read_text())
        (later / "run.json").write_text(json.dumps(state | changed))
    named = resume(root, run_code_commit, later.name)
    assert (named.returncode, f"{later.name} {why}" in named.stderr) == (2, True), named.stderr
    assert named.stderr.endswith("start a new run\n")
    recorded(root, "no block", RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 0, done.stderr
    assert f"skipped: {later.name} {why}" in done.stderr
    assert f"resuming {first.name}\n" in done.stderr


def test_a_run_that_cannot_go_on_is_not_passed_over_where_its_changes_are(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, "no block")).returncode == 3
    later = later_run(root, run_code_commit, WRONG)
    (root / "ok.txt").write_text("mine\n")
    done = resume(root, run_code_commit)
    said = f"{later.name} cannot be resumed because its files have changed since: ok.txt; start a new run"
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_after_the_llm_could_not_be_asked(root: Path, run_code_commit: Run):
    with FakeServer(answers=[RIGHT]) as server:
        base = ["--model", "openai", "--base-url", server.base_url("openai")]
        server.faults.append(fault(401))
        assert run_code_commit(root, *base).returncode == 3
        done = resume(root, run_code_commit)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_where_the_server_has_moved(root: Path, run_code_commit: Run):
    with FakeServer(faults=[Fault("status", status=400, body={"error": {"code": "insufficient_quota"}})]) as server:
        base = ["--model", "openai", "--base-url", server.base_url("openai")]
        assert run_code_commit(root, *base).returncode == 3
    with FakeServer(answers=[RIGHT]) as moved:
        url = moved.base_url("openai")
        for owner in ("anthropic:", "gemini:"):
            done = resume(root, run_code_commit, "--base-url", owner + url)
            assert (done.returncode, f"is for {owner}"[:-1] in done.stderr) == (2, True), done.stderr
        assert moved.requests == []
        assert resume(root, run_code_commit, "--base-url", url).returncode == 0
        assert created(moved) == 1
        assert record(root)["base_url"] == url


def fault(status: int):
    from fake_server import Fault

    return Fault("status", status=status, body={"error": {"message": "Incorrect API key", "code": "invalid_api_key"}})


def interrupted_in_build(root: Path, process: ForkedProcess) -> None:
    wait_for((root / "agent-config-builds").exists)
    end(process, signal.SIGTERM)
    (root / "hold").unlink()


def test_what_was_undone_is_not_built_on(start, root: Path, run_code_commit: Run):
    with FakeServer(answers=[RIGHT]) as server:
        (root / "hold").touch()
        interrupted_in_build(root, start(server))
        assert run_code_commit(root, "undo").returncode == 0
        done = resume(root, run_code_commit)
    assert done.returncode == 2
    assert "was undone: there is nothing to resume" in done.stderr
    assert (root / "ok.txt").read_text() == "not yet\n"


FORMATTING = "#!/bin/sh\nsed -i s/x=1/x\\ =\\ 1/ a.txt; rm -f scratch.txt\ngrep -qx ok ok.txt\n"
ANSWER = "^^^a.txt\nx=1\n^^^end\n^^^scratch.txt\n^^^end\n^^^ok.txt\n{}\n^^^end\n"


def formatted(root: Path, run_code_commit: Run, *answers: str) -> subprocess.CompletedProcess[str]:
    """Run in a project whose build formats the files and removes one, as hooks do."""
    (root / "build.sh").write_text(FORMATTING)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "formatting")
    done = run_code_commit(root, *recorded(root, *map(ANSWER.format, answers)))
    assert (root / "a.txt").read_text() == "x = 1\n"
    return done


@pytest.mark.parametrize("answers", [["ok"], ["wrong", "ok"], ["wrong"]])
def test_what_the_build_formats_is_of_the_run_for_undo_and_diff(answers, root: Path, run_code_commit: Run):
    assert formatted(root, run_code_commit, *answers).returncode == (0 if answers[-1] == "ok" else 3)
    assert "+x = 1" in run_code_commit(root, "diff").stdout
    done = run_code_commit(root, "undo")
    assert done.returncode == 0, done.stderr
    assert git(root, "status", "--porcelain") == ""


def test_what_the_build_formats_is_of_the_run_for_resume(root: Path, run_code_commit: Run):
    assert formatted(root, run_code_commit, "wrong").returncode == 3
    recorded(root, ANSWER.format("wrong"), RIGHT)
    done = resume(root, run_code_commit)
    assert done.returncode == 0, done.stderr
    assert run_code_commit(root, "undo").returncode == 0
    assert git(root, "status", "--porcelain") == ""


def test_what_an_interrupted_build_formats_is_of_the_run_too(start, root: Path, run_code_commit: Run):
    (root / "build.sh").write_text("#!/bin/sh\necho 'x = 1' >a.txt\necho build >agent-config-builds\nsleep 60\n")
    with FakeServer(answers=["^^^a.txt\nx=1\n^^^end\n"]) as server:
        process = start(server)
        wait_for((root / "agent-config-builds").exists)
        end(process, signal.SIGTERM)
    done = run_code_commit(root, "undo")
    assert done.returncode == 0, done.stderr
    assert not (root / "a.txt").exists()


def test_what_two_builds_of_one_answer_changed_is_of_the_run(root: Path, run_code_commit: Run):
    """The first failed for the machine's sake and was made again."""
    (root / "build.sh").write_text("#!/bin/sh\n[ -e well ] && echo x >>b.txt || { echo x >>a.txt; exit 75; }\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "builds")
    assert run_code_commit(root, *recorded(root, "^^^a.txt\n^^^end\n^^^b.txt\n^^^end\n")).returncode == 5
    (root / "well").touch()
    done = resume(root, run_code_commit)
    assert (done.returncode, "The build also rewrote a.txt, b.txt" in done.stderr) == (0, True), done.stderr
    assert run_code_commit(root, "undo").returncode == 0
    assert git(root, "status", "--porcelain") == "?? well\n"


def test_what_the_user_edits_after_the_build_is_not_of_the_run(root: Path, run_code_commit: Run):
    formatted(root, run_code_commit, "wrong")
    (root / "a.txt").write_text("mine\n")
    assert "its files have changed since: a.txt" in resume(root, run_code_commit).stderr
    assert run_code_commit(root, "undo").returncode == 1
    assert (root / "a.txt").read_text() == "mine\n"


def test_a_run_that_was_rolled_back_is_not_resumed(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, WRONG), "--rollback").returncode == 3
    done = resume(root, run_code_commit)
    assert done.returncode == 2
    assert "was rolled back" in done.stderr


@pytest.mark.parametrize("mode", ["off", "auto"])
def test_a_signal_may_say_too_that_the_machine_failed(mode, root: Path, run_code_commit: Run):
    with (root / "build.sh").open("a") as script:
        script.write("[ -e machine-is-well ] || kill -KILL $$\n")
    done = run_code_commit(root, *recorded(root, RIGHT), "--infrastructure-exit-codes", "137", "--sandbox", mode)
    assert (done.returncode, len(record(root)["attempts"])) == (5, 1), done.stderr
    assert record(root)["attempts"][0]["build"]["signal"] == 9
    (root / "machine-is-well").touch()
    assert resume(root, run_code_commit).returncode == 0
    assert builds(root) == 2


@pytest.mark.parametrize(("code", "arguments"), [(75, []), (99, ["--infrastructure-exit-codes", "99"])])
def test_a_machine_that_failed_costs_no_repair_and_is_built_on_again(code, arguments, root: Path, run_code_commit: Run):
    with (root / "build.sh").open("a") as script:
        script.write(f"[ -e machine-is-well ] || exit {code}\n")
    done = run_code_commit(root, *recorded(root, RIGHT), *arguments)
    assert done.returncode == 5, done.stderr
    assert (
        f"build.sh ended with exit code {code}, so no repair was asked for: this means that the machine failed, not the code"
        in done.stderr
    )
    assert "; fix the machine first\n  code-commit resume continues this run." in done.stderr
    assert (record(root)["status"], len(record(root)["attempts"])) == ("build_error", 1)
    assert record(root)["attempts"][0]["build"]["exit_code"] == code
    assert (root / "ok.txt").read_text() == "ok\n"
    (root / "machine-is-well").touch()
    assert resume(root, run_code_commit).returncode == 0
    assert (builds(root), len(record(root)["attempts"])) == (2, 1)


def test_a_call_that_was_killed_counts_for_max_cost_when_the_run_is_resumed(start, root: Path, run_code_commit: Run):
    """Nobody knows what it cost: four calls were made for the money of one and a half."""
    prices = 'max_output_tokens = 10000\n[prices."gpt-6.2-sol"]\ninput = 0.0\noutput = 10.0\n'
    (root / "agent-config" / "config.toml").write_text(f"max_cost = 0.15\n{prices}")
    with FakeServer(answers=[RIGHT] * 4, faults=[Fault("silence", times=9)]) as server:
        process = start(server)
        wait_for(lambda: server.requests)
        end(process, signal.SIGKILL)
        assert record(root)["attempts"][0]["unsettled_usd"] == [0.1]
        done = resume(root, run_code_commit)
        assert (done.returncode, len(server.requests)) == (3, 1), done.stderr
        assert "could exceed --max-cost 0.15: at most $0.1000 unsettled so far" in done.stderr
        assert "continues this run; add --max-cost USD to allow more, else the limit stays.\n" in done.stderr
        assert record(root)["error"]["needed_usd"] == pytest.approx(0.08)
        assert record(root)["totals"]["unsettled_usd"] == 0.1
        server.faults.clear()
        more = resume(root, run_code_commit, "--max-cost", "0.3")
    assert (more.returncode, created(server)) == (0, 2), more.stderr


def test_it_continues_with_the_task_codebase_and_settings_of_the_run(start, root: Path, run_code_commit: Run):
    """Whatever stands in agent-config, and in the environment, by then."""
    config = root / "agent-config"
    (config / "config.toml").write_text('max_repairs = 1\nprotect = ["kept.txt"]\n')
    kept = "^^^kept.txt\nx\n^^^end\n"
    (root / "hold").touch()
    with FakeServer(answers=[WRONG, kept + RIGHT]) as server:
        process = start(server)
        wait_for((root / "agent-config-builds").exists)
        end(process, signal.SIGKILL)
        (root / "hold").unlink()
        (config / "query.txt").write_text("Another task.\n")
        (config / "codeRollup.txt").write_text("--- other.txt ---\nanother codebase\n")
        (config / "config.toml").write_text("max_repairs = 9\nno such setting = [")
        done = run_code_commit(root, "resume", env={"CODE_COMMIT_MAX_REPAIRS": "7"})
    assert done.returncode == 4, done.stderr
    assert "attempt 2 of 2: response rejected" in done.stderr
    prompt = (the_log(root) / "2-query.txt").read_text()
    assert "[query]\nMake ok.txt say ok.\n" in prompt
    assert "[codebase]\n--- ok.txt ---\nnot yet\n" in prompt
    assert "Another task" not in prompt
    assert "another codebase" not in prompt


def test_the_record_names_its_commit_and_a_repeated_question(root: Path, run_code_commit: Run):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    recorded(root, "no block", WRONG, RIGHT)
    done = run_code_commit(root, "--model", "replay:agent-config/recorded", "--json")
    record = json.loads(done.stdout)
    assert record["tree"] == {"commit": git(root, "rev-parse", "HEAD").strip(), "clean": True}
    assert [attempt["kind"] for attempt in record["attempts"]] == ["initial", "retry", "repair"]


def rewrite_record(root: Path, **fields: object) -> None:
    record = json.loads((the_log(root) / "run.json").read_text())
    (the_log(root) / "run.json").write_text(json.dumps(record | fields))


@pytest.mark.parametrize("wanted", [{"fit": "much"}, {"pathspecs": 7}, {"exclude": "*"}, {"query": ["x"]}])
def test_a_choice_of_files_whose_request_is_damaged_is_not_continued(wanted, root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root)).returncode == 3
    rewrite_record(root, command="rollup", request=wanted)
    done = resume(root, run_code_commit)
    assert (done.returncode, "cannot be resumed: its run.json does not say which codebase to make" in done.stderr) == (
        2,
        True,
    )


REQUEST = {"query": "Of the request.", "for_run": True}
RESUMED = {
    # the command of the run, its request; the command that goes on, its task where the log has one, and without
    "run": ("run", {}, "run", None),
    "repair": ("repair", {}, "repair", None),
    "run that makes its codebase anew": ("run", {"fresh": True}, "run", None),
    "choice for a run": ("rollup", REQUEST, "run", "Of the request."),
    "choice for a repair": ("rollup", REQUEST | {"repairs": True}, "repair", "Of the request."),
    "choice for no run": ("rollup", {}, "run", None),
}


@pytest.mark.parametrize(("command", "request_of_it", "going_on", "asked"), RESUMED.values(), ids=RESUMED)
def test_what_a_run_began_with_is_what_it_goes_on_with(command, request_of_it, going_on, asked, root: Path):
    project, options = find_project(root), Settings(keep_runs=7)
    log = open_run_log(project, command, options, Progress(Redactor([]), quiet=True))
    log.record.request, log.record.model = request_of_it, "chat:m"
    found = RunEntry(log.folder, log.record)
    assert _inputs_of(found, project).query == asked
    log.write_text("query.txt", "Do it.\n")
    sights = [Sight({"ok.txt": Name(number)}, f"{number}\n", (), "made", is_partial=True) for number in range(3)]
    for number, sight in enumerate(sights):
        log.write_codebase(sight, number or None)
    inputs, is_choice = _inputs_of(found, project), command == "rollup"
    fresh = request_of_it.get("fresh") is True
    assert (inputs.command, inputs.query, inputs.resumed, inputs.fresh) == (going_on, "Do it.\n", found, fresh)
    assert (inputs.codebase.shown if inputs.codebase else None) == (None if is_choice else sights[-1])
    kept = inputs.logged
    assert (kept["keep_runs"], kept.get("model")) == (7, "" if is_choice else "chat:m")


def test_settings_that_a_record_lacks_are_those_of_now(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, WRONG)).returncode == 3
    rewrite_record(root, options={"a": 1})
    recorded(root, WRONG, RIGHT)
    done = resume(root, run_code_commit, "--build-timeout", "77")
    assert done.returncode == 0, done.stderr
    options = json.loads((the_log(root) / "run.json").read_text())["options"]
    assert (options["max_repairs"], options["build_timeout"]) == (3, 77), "and it says what the run went on with"


LATER = {
    # the command, the status and other facts of a run after one that is interrupted; which of them is resumed, if any
    "another interrupted one": ("run", Status.LLM_ERROR, {}, 1),
    "one that ended": ("run", Status.SUCCESS, {}, None),
    "a dry run": ("run", Status.SUCCESS, {"options": {"dry_run": True}}, 0),
    "a dry run that failed": ("run", Status.LLM_ERROR, {"options": {"dry_run": True}}, 0),
    "an undo": ("undo", Status.SUCCESS, {}, 0),
    "a choice of files for no run": ("rollup", Status.SUCCESS, {"request": {}}, 0),
    "a choice of files for a run": ("rollup", Status.SUCCESS, {"request": {"for_run": True}}, 1),
    "one that was undone": ("run", Status.LLM_ERROR, {"undone": True}, 0),
    "one that was rolled back": ("run", Status.LLM_ERROR, {"rolled_back": True}, 0),
}


@pytest.mark.parametrize(("command", "status", "facts", "which"), LATER.values(), ids=LATER)
def test_the_latest_run_that_can_go_on_does_unless_another_ended_after_it(
    command, status, facts, which, root: Path, monkeypatch
):
    monkeypatch.setattr("code_commit.commands.resume.changed_since", lambda *_: [])
    project, progress, logs = find_project(root), Progress(Redactor([]), quiet=True), []
    for of_what, end, more in (("run", Status.LLM_ERROR, {}), (command, status, facts)):
        log = open_run_log(project, of_what, Settings(), progress)
        for name, value in more.items():
            setattr(log.record, name, value)
        (log.snapshot / "changes-1.json").parent.mkdir()
        (log.snapshot / "changes-1.json").touch()
        log.finish(end)
        logs.append(log.folder)
    with pytest.raises(NotSetUpError, match=r"is unfinished .* ran later; ") if which is None else nullcontext():
        assert _find_resumable(project, "")[0].folder == logs[which]
    (logs[0] / "run.json").unlink()
    log = open_run_log(project, "run", Settings(), progress)
    log.finish(Status.LLM_ERROR)
    assert _find_resumable(project, "")[0].folder == log.folder, "whatever was before"


def test_a_choice_of_files_goes_on_unless_its_run_followed(root: Path):
    project, progress = find_project(root), Progress(Redactor([]), quiet=True)
    choice = open_run_log(project, "rollup", Settings(), progress)
    choice.record.request = {"for_run": True}
    choice.finish(Status.SUCCESS)
    assert _find_resumable(project, "")[0].folder == choice.folder
    open_run_log(project, "run", Settings(), progress).finish(Status.BUILD_FAILED)
    with pytest.raises(NotSetUpError, match="there is no interrupted run to resume"):
        _find_resumable(project, "")


@pytest.mark.parametrize(("lacking", "is_needed"), [(1, True), (2, False)])
def test_an_answer_may_be_in_its_reply_alone_where_it_is_the_latest(lacking, is_needed, root: Path):
    log = open_run_log(find_project(root), "run", Settings(), Progress(Redactor([]), quiet=True))
    for number in (1, 2):
        attempt = AttemptLog(log, number)
        attempt.record.finish_reason = "stop"
        attempt.replied(200, {}, {"id": "r"})
        if number != lacking:
            log.write_text(f"{number}-response.txt", RIGHT)
    with pytest.raises(NotSetUpError, match=r"its 1-response.txt cannot be read") if is_needed else nullcontext():
        assert list(_answered(log.folder, log.record, find_project(root))) == []


def test_a_resumed_run_goes_on_with_its_settings_but_for_those_that_are_named_now(root: Path, monkeypatch):
    """It goes on with the plan that has the output of its first build, and asks for approval as that plan says."""

    class EnoughError(Exception):
        pass

    def start(*given, **more):
        steps.append((given, more))
        raise EnoughError

    project, progress, steps = find_project(root), Progress(Redactor([]), quiet=True), []
    log = open_run_log(project, "run", Settings(keep_runs=7, max_repairs=2), progress)
    log.write_codebase(Sight({}, "codebase"))
    log.finish(Status.LLM_ERROR)
    plan = SimpleNamespace(lack=None, codebase="a codebase", settings="settings")
    after = SimpleNamespace(codebase="a codebase", settings="settings of the plan with it")
    for name, stand_in in {
        "plan_run": lambda _, options, inputs: steps.append((options, inputs.logged, inputs.resumed.folder)) or plan,
        "with_first_output": lambda *given: steps.append((given[0], given[1])) or after,
        "approval_of": lambda *given: ("approval", *given),
        "start_run": start,
    }.items():
        monkeypatch.setattr(f"code_commit.commands.resume.{name}", stand_in)
    with pytest.raises(EnoughError):
        _resume(project, "", {"max_repairs": 1, "quiet": True}, progress)
    (options, logged, folder), *others = steps
    assert (logged["keep_runs"], logged["max_repairs"], folder) == (7, 2, log.folder)
    assert options == {"max_repairs": 1, "quiet": True}
    approve = ("approval", "settings of the plan with it", progress)
    assert others == [(plan, log.folder), ((after, "a codebase", progress), {"approve": approve})]
