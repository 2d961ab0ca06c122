"""`--build-first`: build.sh runs before anything is sent. What the LLM sees of it, and what is not paid for."""

import json
import shutil
import signal
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import Run, Start, git, module, recorded, replay, the_log, wait_for
from fake_server import FakeServer

from code_commit.check.plan import TASK_OF_REPAIR, RunInputs, RunPlan
from code_commit.codebase.select import CodebaseRequest
from code_commit.first_build import _build, building_first, with_first_output
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.runs.log import open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import BuildResult, RunRecord
from code_commit.runs.words import awaited
from code_commit.settings import Settings

KEY = "test-key-0123456789"
WRONG, RIGHT = "^^^ok.txt\nwrong\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"
COUNTED = "#!/bin/sh\necho build >>../builds\n{}\ngrep -qx ok ok.txt\n"
FAILS, LABEL = "build.sh fails already", "[build.sh output]\n"


def build_with(root: Path, command: str = "echo 'ok.txt:1: it must say ok'; cat ok.txt") -> None:
    """Write a build.sh that counts its runs beside the project, runs the command and passes where ok.txt says ok."""
    (root / "build.sh").write_text(COUNTED.format(command))
    git(root, "commit", "-qam", "build", "--allow-empty")


def builds(root: Path) -> int:
    counted = root.parent / "builds"
    return counted.read_text().count("build") if counted.exists() else 0


def record(root: Path) -> dict:
    return json.loads((the_log(root) / "run.json").read_text())


def runs(root: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(root.glob("agent-config/logs/*/run.json"))]


def asking(root: Path, server: FakeServer) -> list[str]:
    (root / "agent-config/openai-key.txt").write_text(KEY)
    (root / "agent-config/openai-key.txt").chmod(0o600)
    return ["--model", "openai:gpt-6.2-sol", "--base-url", server.base_url("openai"), "--sandbox", "off"]


@pytest.mark.parametrize("layout", ["spec", "cached"])
def test_the_llm_sees_why_the_build_fails(layout, project_folder: Path, run_code_commit: Run):
    build_with(project_folder)
    answers = replay(project_folder, "no block\n", WRONG, RIGHT)
    done = run_code_commit(project_folder, "--build-first", "--prompt-layout", layout, *answers)
    assert done.returncode == 0, done.stderr
    assert "the build failed before the run: exit code 1" in done.stderr
    assert "The build passes after 3 attempts (it failed before the run): 1 file changed" in done.stderr
    assert builds(project_folder) == 3
    log, run = the_log(project_folder), record(project_folder)
    first, rejected, repair = ((log / f"{number}-query.txt").read_text() for number in (1, 2, 3))
    assert first.count("it must say ok\nnot yet\n") == 1
    assert "it must say ok\nnot yet\n" in rejected
    assert "it must say ok\nwrong\n" in repair
    assert FAILS in first
    assert FAILS in rejected
    assert FAILS not in repair
    assert "not yet" not in repair.partition(LABEL)[2].partition("[build.sh:")[0], "the last failure alone"
    assert (first.index(LABEL) < first.index("[query]\n")) == (layout == "spec")
    assert (log / "0-build.txt").read_text().startswith("ok.txt:1: it must say ok\nnot yet\n[build.sh: exit code 1")
    assert (run["first_build"]["exit_code"], run["attempts"][-1]["build"]["exit_code"]) == (1, 0)
    assert run["totals"]["build_seconds"] >= run["first_build"]["seconds"] > 0


@pytest.mark.parametrize("named", ["ok.txt", "far.txt"])
def test_a_small_model_sees_it_where_it_names_a_file_that_the_codebase_has_not(
    named, project_folder: Path, run_code_commit: Run
):
    (project_folder / "far.txt").write_text("far\n")
    git(project_folder, "add", "-A")
    build_with(project_folder, f"echo '{named}:1: it must say ok'")
    (project_folder / "agent-config/config.toml").write_text("codebase_additions = true\n")
    answers = replay(project_folder, "no block\n", WRONG, RIGHT)
    done = run_code_commit(project_folder, "--build-first", "--prompt-layout", "short", *answers)
    assert done.returncode == 0, done.stderr
    assert "The build passes after 3 attempts (it failed before the run): 1 file changed" in done.stderr
    prompts = [(the_log(project_folder) / f"{number}-query.txt").read_text() for number in (1, 2, 3)]
    is_seen = named == "far.txt"
    assert ["The script fails already, before any change:" in prompt for prompt in prompts] == [is_seen] * 3
    assert f"The script fails:\n\n{named}:1: it must say ok\n" in prompts[-1]


def test_a_build_that_passes_says_so_and_is_in_no_prompt(project_folder: Path, run_code_commit: Run):
    (project_folder / "ok.txt").write_text("ok\n")
    done = run_code_commit(project_folder, "--build-first", *replay(project_folder, "^^^new.txt\nnew\n^^^end\n"))
    assert done.returncode == 0, done.stderr
    assert "the build passed before the run: exit code 0" in done.stderr
    assert "The build passes after 1 attempt (it passed before the run):" in done.stderr
    prompt = (the_log(project_folder) / "1-query.txt").read_text()
    assert f"\n{LABEL}" not in prompt
    assert FAILS not in prompt


def test_it_is_off_without_a_config_and_on_in_that_of_init(project_folder: Path, run_code_commit: Run):
    assert run_code_commit(project_folder, *replay(project_folder)).returncode == 0
    assert record(project_folder)["first_build"] is None
    assert not (the_log(project_folder) / "0-build.txt").exists()
    run_code_commit(project_folder, "init")
    assert tomllib.loads((project_folder / "agent-config/config.toml").read_text())["build_first"] is True


NOT_THE_CODE = {
    "the machine": (
        "exit 75",
        (),
        "so nothing was sent: this means that the machine failed, not the code (infrastructure_exit_codes)",
    ),
    "a hang": ("sleep 60", ("--build-timeout", "0.3"), "did not end within 0.3 s, so nothing was sent"),
    "a protected file": ("echo x >>.gitignore", (), "changed protected files; it was put back: .gitignore"),
}


@pytest.mark.parametrize("name", NOT_THE_CODE)
def test_a_build_that_cannot_tell_is_not_paid_for(name, project_folder: Path, run_code_commit: Run):
    command, options, message = NOT_THE_CODE[name]
    build_with(project_folder, f"[ -e ../mended ] || {command}")
    with FakeServer(answers=[RIGHT]) as server:
        done = run_code_commit(project_folder, "--build-first", *options, *asking(project_folder, server))
        assert done.returncode == 5, done.stderr
        assert message in done.stderr
        assert server.requests == []
        assert record(project_folder)["attempts"] == []
        assert record(project_folder)["totals"]["unsettled_usd"] == 0
        (project_folder.parent / "mended").touch()
        resumed = run_code_commit(project_folder, "resume")
        assert resumed.returncode == 0, resumed.stderr
    assert "it failed before the run" in resumed.stderr
    assert builds(project_folder) == 3


@pytest.mark.usefixtures("needs_bwrap")
@pytest.mark.parametrize(("words", "attempts"), [(["--build-first"], 0), ([], 1)])
def test_what_the_sandbox_refuses_is_not_paid_for(words, attempts, project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/bin/sh\nset -e\n[ -e made ] || touch build.sh\ngrep -qx ok ok.txt\n")
    done = run_code_commit(project_folder, *words, *recorded(project_folder, RIGHT), "--sandbox", "guard")
    assert done.returncode == 5, done.stderr
    said = "no repair was asked for" if attempts else "nothing was sent"
    assert f"the sandbox made build.sh fail, so {said}: " in done.stderr
    assert "--sandbox off" in done.stderr
    assert len(record(project_folder)["attempts"]) == attempts
    (project_folder / "made").touch()
    assert run_code_commit(project_folder, "resume").returncode == 0
    (attempt,) = record(project_folder)["attempts"]
    build = attempt["build"] if attempts else record(project_folder)["first_build"]
    assert build["refused"] == "", "it was built once more"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_in_the_first_build_it_builds_again_when_resumed(
    number, project_folder: Path, run_code_commit: Run, start_code_commit: Start
):
    build_with(project_folder, "[ -e ../hold ] && sleep 60")
    (project_folder.parent / "hold").touch()
    (project_folder / "agent-config/query.txt").unlink()
    with FakeServer(answers=[RIGHT]) as server:
        words = ["-m", "Make ok.txt say ok.", "--build-first", *asking(project_folder, server)]
        process = start_code_commit(project_folder, *words)
        wait_for(lambda: builds(project_folder))
        process.send_signal(number)
        process.wait(timeout=180)
        assert server.requests == []
        (project_folder.parent / "hold").unlink()
        done = run_code_commit(project_folder, "resume")
        assert done.returncode == 0, done.stderr
    assert builds(project_folder) == 3
    assert "Make ok.txt say ok." in (the_log(project_folder) / "1-query.txt").read_text()
    assert record(project_folder)["status"] == "success"


@pytest.mark.parametrize("step", ["built", "asking", "applied"])
def test_killed_later_it_does_not_build_first_again(
    step, project_folder: Path, run_code_commit: Run, start_code_commit: Start
):
    build_with(project_folder)
    program = (
        "import os; from code_commit.runs.progress import Progress\n"
        "def step(self, record, event):\n"
        f"    if event == {step!r}: os.kill(os.getpid(), 9)\n"
        "Progress.step = step\n"
    )
    answers = replay(project_folder, RIGHT)
    start_code_commit(project_folder, "-m", "Do it.", "--build-first", *answers, before=program).wait(timeout=180)
    before = builds(project_folder)
    assert before == 1
    done = run_code_commit(project_folder, "resume")
    assert done.returncode == 0, done.stderr
    assert builds(project_folder) == 2
    prompt = (the_log(project_folder) / "1-query.txt").read_text()
    assert "it must say ok\nnot yet\n" in prompt
    assert "--- ok.txt ---\nnot yet\n" in prompt


def test_files_that_the_first_build_writes_are_named_and_not_taken_for_the_llm_s(
    project_folder: Path, run_code_commit: Run
):
    (project_folder / "other.txt").write_text("other\n")
    git(project_folder, "add", "-A")
    build_with(project_folder, "echo built >>other.txt; echo built >>ok.txt; echo new >made.txt")
    answer = f"{RIGHT}^^^other.txt\nother\nbuilt\n^^^end\n"
    (project_folder / "build.sh").write_text((project_folder / "build.sh").read_text() + "true\n")
    git(project_folder, "commit", "-qam", "passes")
    done = run_code_commit(project_folder, "-m", "Do it.", "--build-first", *replay(project_folder, answer))
    assert done.returncode == 0, done.stderr
    assert "a build (or you) had changed ok.txt before the answer did" in done.stderr
    assert "The build also changed other.txt and left 1 new file: made.txt" in done.stderr
    assert "--- ok.txt ---\nnot yet\nbuilt\n" in (the_log(project_folder) / "1-query.txt").read_text()
    diff = (the_log(project_folder) / "1-changes.diff").read_text()
    assert "-not yet\n-built\n+ok\n" in diff
    assert "other.txt" not in diff, "it holds that already"
    assert run_code_commit(project_folder, "undo", "--force").returncode == 0
    assert (project_folder / "ok.txt").read_text() == "not yet\nbuilt\n"
    assert (project_folder / "made.txt").exists()


CHOICE = "It says what fails.\n^^^files\nok.txt\n^^^end\n"


def test_a_choice_of_files_comes_after_it_and_knows_its_output(project_folder: Path, run_code_commit: Run):
    (project_folder / "src").mkdir()
    for number in range(60):
        (project_folder / f"src/part_{number:02}.py").write_text(module(f"part_{number:02}", 200))
    git(project_folder, "add", "-A")
    (project_folder.parent / "said").write_text("src/part_53.py:7: in part_53 ok.txt is not ok\n")
    build_with(project_folder, "cat ../said")
    answers = replay(project_folder, CHOICE, RIGHT)
    done = run_code_commit(project_folder, "--build-first", "--rollup", "select", *answers)
    assert done.returncode == 0, done.stderr
    assert builds(project_folder) == 2
    choice, run = runs(project_folder)
    assert (choice["command"], run["command"]) == ("rollup", "run")
    assert choice["first_build"] == run["first_build"]
    assert run["choice"]["run"] == choice["run"]
    logs = [project_folder / each["log_dir"] for each in (choice, run)]
    assert all((log / "0-build.txt").exists() for log in logs)
    asked, told = ((log / "1-query.txt").read_text() for log in logs)
    for prompt in (asked, told):
        assert FAILS in prompt
        assert "in part_53 ok.txt is not ok" in prompt.partition(LABEL)[2]
    assert "--- src/part_53.py (outline" in asked, "the file that the output names"
    assert "src/part_53.py:4:def part_53" in asked, "and the name that it writes"
    assert "Make ok.txt say ok." in (logs[0] / "query.txt").read_text()


@pytest.mark.parametrize("step", ["asking", "chosen", "finished"])
def test_a_choice_of_files_that_was_killed_goes_on_without_another_first_build(
    step, project_folder: Path, run_code_commit: Run, start_code_commit: Start
):
    for number in range(60):
        (project_folder / f"part_{number:02}.py").write_text(module(f"part_{number:02}", 200))
    git(project_folder, "add", "-A")
    build_with(project_folder)
    program = (
        "import os; from code_commit.runs.progress import Progress\n"
        "def step(self, record, event):\n"
        f"    if event == {step!r}: os.kill(os.getpid(), 9)\n"
        "Progress.step = step\n"
    )
    words = ["--build-first", "--rollup", "select", *replay(project_folder, CHOICE, RIGHT)]
    start_code_commit(project_folder, *words, before=program).wait(timeout=180)
    assert builds(project_folder) == 1
    done = run_code_commit(project_folder, "resume")
    assert done.returncode == 0, done.stderr
    assert builds(project_folder) == 2
    choice, run = runs(project_folder)
    assert choice["first_build"] == run["first_build"]
    assert "it must say ok\nnot yet\n" in (project_folder / run["log_dir"] / "1-query.txt").read_text()


def test_where_nothing_has_to_be_chosen_there_is_one_run(project_folder: Path, run_code_commit: Run):
    build_with(project_folder)
    done = run_code_commit(project_folder, "--build-first", "--rollup", "select", *replay(project_folder))
    assert done.returncode == 0, done.stderr
    assert (record(project_folder)["command"], builds(project_folder)) == ("run", 2)


def test_what_fits_begins_with_what_the_output_names(project_folder: Path, run_code_commit: Run):
    (project_folder / "src").mkdir()
    for number in range(30):
        (project_folder / f"src/part_{number:02}.py").write_text(module(f"part_{number:02}", 120))
    git(project_folder, "add", "-A")
    (project_folder.parent / "said").write_text("src/part_27.py:3: wrong\n")
    build_with(project_folder, "cat ../said")
    config = "context_window = 12000\nmax_output_tokens = 2000\nmax_repairs = 0\n"
    (project_folder / "agent-config/config.toml").write_text(config)
    for options, is_whole in (([], False), (["--build-first"], True)):
        shutil.rmtree(project_folder / "agent-config/logs", ignore_errors=True)
        (project_folder / "ok.txt").write_text("not yet\n")
        done = run_code_commit(project_folder, "--rollup", "fit", *options, *replay(project_folder))
        assert done.returncode == 0, done.stderr
        assert ("--- src/part_27.py ---\n" in (the_log(project_folder) / "1-query.txt").read_text()) == is_whole


def test_the_limit_of_money_counts_the_output(project_folder: Path, run_code_commit: Run):
    build_with(project_folder, "seq 1 60000")
    config = '[prices."some-model"]\ninput = 1.0\noutput = 1.0\n'
    (project_folder / "agent-config/config.toml").write_text(config)
    with FakeServer(answers=[RIGHT]) as server:
        chat = ["--model", "chat:some-model", "--base-url", server.base_url("chat"), "--sandbox", "off"]
        words = [*chat, "--max-cost", "0.1"]
        done = run_code_commit(project_folder, "--build-first", *words)
        assert done.returncode == 2, done.stderr
        assert server.requests == []
        assert record(project_folder)["status"] == "not_set_up"
        assert builds(project_folder) == 1
        too_little = [*words[:-1], "0.000001"]
        done = run_code_commit(project_folder, "--build-first", *too_little)
        assert done.returncode == 2, done.stderr
        assert builds(project_folder) == 1, "what is too little without an output ends before the build"
        assert server.requests == []


def test_a_dry_run_builds_first_and_changes_nothing(project_folder: Path, run_code_commit: Run):
    build_with(project_folder)
    done = run_code_commit(project_folder, "--build-first", "--dry-run", *replay(project_folder))
    assert done.returncode == 0, done.stderr
    assert "nothing was changed or built after the answer" in done.stderr
    assert "it must say ok\nnot yet\n" in (the_log(project_folder) / "1-query.txt").read_text()
    assert (project_folder / "ok.txt").read_text() == "not yet\n"


def test_page_log_and_summary_show_it(project_folder: Path, run_code_commit: Run):
    build_with(project_folder)
    run_code_commit(project_folder, "--build-first", *replay(project_folder))
    told = run_code_commit(project_folder, "log", "latest").stdout
    assert "before the run: build failed: exit code 1" in told
    assert "    | ok.txt:1: it must say ok\n" in told
    assert "Before the run: build failed: exit code 1" in run_code_commit(project_folder, "log", "--markdown").stdout
    run_code_commit(project_folder, "log", "--html", str(project_folder / "page.html"))
    page = (project_folder / "page.html").read_text()
    assert '<h2 id="before">Before the run</h2>' in page
    assert "it must say ok" in page.partition('id="first-build"')[2]
    assert "0-build.txt" in page


def test_what_a_run_waits_for_is_its_first_build():
    waits = RunRecord("", "run", "repair", "2026-11-28T02:00:00Z", "", "", 1)
    assert awaited(waits) == "running build.sh"
    waits.first_build = BuildResult(1, None, timed_out=False, seconds=1, output_bytes=1)
    assert awaited(waits) == ""
    waits.first_build, waits.command = None, "run"
    assert awaited(waits) == ""
    waits.options["build_first"] = True
    assert awaited(waits) == "running build.sh"


def test_a_key_with_an_escape_in_it_is_not_whole_again_in_the_prompt(project_folder: Path, run_code_commit: Run):
    build_with(project_folder, f"printf '{KEY[:9]}\\033[m{KEY[9:]}\\n'")
    with FakeServer(answers=[RIGHT]) as server:
        done = run_code_commit(project_folder, "--build-first", *asking(project_folder, server))
    assert done.returncode == 0, done.stderr
    prompt = (the_log(project_folder) / "1-query.txt").read_text()
    assert f"{'*' * (len(KEY) - 2)}{KEY[-2:]}\n" in prompt
    assert KEY not in json.dumps([request.body for request in server.requests])


def test_the_build_knows_that_it_is_the_first(project_folder: Path, run_code_commit: Run):
    build_with(project_folder, 'echo "attempt $CODE_COMMIT_ATTEMPT"')
    run_code_commit(project_folder, "--build-first", *replay(project_folder))
    assert (the_log(project_folder) / "0-build.txt").read_text().startswith("attempt 0\n")
    assert (the_log(project_folder) / "1-build.txt").read_text().startswith("attempt 1\n")


@pytest.mark.parametrize(("layout", "label"), [("spec", "[codebase additions]"), ("short", "were not shown so far:\n")])
def test_files_that_the_output_names_are_added(layout, label, project_folder: Path, run_code_commit: Run):
    (project_folder / "far.txt").write_text("a line that says what is expected\n")
    git(project_folder, "add", "-A")
    build_with(project_folder, "echo far.txt:1: not so")
    (project_folder / "agent-config/config.toml").write_text("codebase_additions = true\n")
    options = ["--build-first", "--prompt-layout", layout, "--strict"]
    answers = replay(project_folder, f"{RIGHT}^^^far.txt\nanother line that says what is expected\n^^^end\n")
    done = run_code_commit(project_folder, *options, *answers)
    assert done.returncode == 0, done.stderr
    prompt = (the_log(project_folder) / "1-query.txt").read_text()
    assert f"{label}\n--- far.txt ---\na line that says what is expected\n" in prompt


def test_no_command_is_promised_for_a_run_whose_log_the_build_removed(project_folder: Path, run_code_commit: Run):
    build_with(project_folder, "rm -rf agent-config/logs")
    done = run_code_commit(project_folder, "--build-first", *replay(project_folder))
    said = " ".join(done.stderr.split())
    assert (done.returncode, "agent-config/logs (removed, and cannot be put back" in said) == (5, True), said
    assert "is gone: no command can continue or undo this run." in said
    assert "code-commit resume" not in said


def test_a_build_that_was_made_on_this_tree_is_not_made_again_nor_by_resume(project_folder: Path, run_code_commit: Run):
    """A fleet makes it once for all tasks of a tree; a run that ends before its first answer has it in its log."""
    build_with(project_folder)
    checked = run_code_commit(project_folder, "check", "--build", "--json", *recorded(project_folder))
    assert (checked.returncode, builds(project_folder)) == (1, 1), checked.stdout
    (project_folder.parent / "built.json").write_text(checked.stdout)
    options = [*recorded(project_folder), "--build-first", "--built", "../built.json"]
    assert run_code_commit(project_folder, "run", *options).returncode == 3
    assert builds(project_folder) == 1
    recorded(project_folder, RIGHT)
    done = run_code_commit(project_folder, "resume")
    assert (done.returncode, builds(project_folder)) == (0, 2), done.stderr
    assert "it must say ok" in (the_log(project_folder) / "1-query.txt").read_text()


FIRST = {
    # the exit code, the given output, the command, the task; what the codebase is ranked by
    "it fails": (1, None, "run", "Do it.", ("Do it.", "own\n")),
    "it fails, and elsewhere": (1, b"given\n", "repair", TASK_OF_REPAIR, ("", "own\n")),
    "it passes": (0, None, "run", "Do it.", None),
    "it passes here": (0, b"given\n", "repair", "Do it.", ("Do it.", "build.sh passes here.\n\nOutput of a build")),
}


@pytest.mark.parametrize(("code", "given", "command", "query", "ranked"), FIRST.values(), ids=FIRST)
def test_the_plan_goes_on_with_what_the_first_build_said(code, given, command, query, ranked, tmp_path):
    """A key that an escape divides is whole again in what is read."""
    key = "test-key-0123456789"
    (tmp_path / "0-build.txt").write_text(f"own\n{key[:9]}\033[m{key[9:]}\n")
    if given is not None:
        (tmp_path / "given-build.txt").write_bytes(given)
    record = RunRecord("", "r", command, "", "", "logs/r", 1)
    nothing = dict.fromkeys(RunPlan._fields) | RunPlan._field_defaults
    plan = RunPlan(**nothing | {"inputs": RunInputs(command=command), "settings": Settings(), "query": query})
    plan = plan._replace(redactor=Redactor([key]), request=CodebaseRequest(query="as it was"))
    assert with_first_output(plan, tmp_path, record) == plan, "nothing was built"
    record.first_build = BuildResult(code, None, timed_out=False, seconds=1.0, output_bytes=1)
    after = with_first_output(plan, tmp_path, record)
    assert (after.passing.startswith("own\n"), key in after.passing) == (code == 0, False)
    if ranked is None:
        assert after._replace(passing="") == plan
        return
    assert after.request.query == ranked[0]
    assert after.request.output.startswith(ranked[1])
    assert after.request.output == after.first.output + after.first.given
    assert ("given\n" in after.first.given, key in after.first.output) == (given is not None, False)


PREFLIGHT = {
    "run": ("run", CodebaseRequest(), 1),
    "choice of files": ("run", CodebaseRequest(select=True), 0),
    "repair": ("repair", CodebaseRequest(), 0),
    "no codebase to make": ("run", None, 0),
}


@pytest.mark.parametrize(("command", "request_of_it", "checks"), PREFLIGHT.values(), ids=PREFLIGHT)
def test_before_the_first_build_the_prompt_is_checked_where_it_is_known(command, request_of_it, checks, monkeypatch):
    class EnoughError(Exception):
        pass

    def enough() -> None:
        raise EnoughError

    checked = []
    for name, stand_in in {
        "codebase_for": lambda _: "codebase",
        "require_sendable": lambda *given: checked.append(given),
        "hold_signals": enough,
    }.items():
        monkeypatch.setattr(f"code_commit.first_build.{name}", stand_in)
    plan = SimpleNamespace(inputs=RunInputs(command=command), builds_first=True, request=request_of_it)
    with pytest.raises(EnoughError), building_first(plan, SimpleNamespace()):
        pass
    assert checked == [(plan, "codebase")] * checks


@pytest.mark.parametrize(("code", "has_given"), [(0, True), (0, False), (1, True)])
def test_a_given_failure_that_is_not_seen_here_is_told(code, has_given, project_folder):
    log = open_run_log(find_project(project_folder), "repair", Settings(), Progress(Redactor([]), quiet=True))
    if has_given:
        log.write_bytes("given-build.txt", b"wrong\n")
    result = BuildResult(code, None, timed_out=False, seconds=1.0, output_bytes=0)
    plan = SimpleNamespace(
        tree=None, settings=Settings(), keys=SimpleNamespace(texts=()), inputs=RunInputs(environment={})
    )
    _build(plan, log, SimpleNamespace(run=lambda *_, **__: result))
    assert log.record.first_build == result
    told = ["the given failure does not occur here" in warning.message for warning in log.record.warnings]
    assert told == [True] * (has_given and code == 0)
