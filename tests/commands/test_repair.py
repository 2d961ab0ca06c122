"""`repair`: a red build is the task. A green one costs nothing, and needs no key."""

import json
import re
import signal
from pathlib import Path

import pytest
from command import Run, Start, git, module, recorded, replay, the_log, wait_for
from fake_server import FakeServer

from code_commit import NotSetUpError, repair
from code_commit.api import render_page
from code_commit.check import repair_inputs_of
from code_commit.project import find_project
from code_commit.prompts.layout import load_system_prompts, split_closing

WRONG, RIGHT = "^^^ok.txt\nwrong\n^^^end\n", "It says ok.\n^^^ok.txt\nok\n^^^end\n"
LABEL, ELSEWHERE = "\n[build.sh output]\n", "Output of a build that failed elsewhere:\n"


@pytest.fixture
def root(project_folder: Path) -> Path:
    """A project without a query and a rollup, whose build counts its runs beside it and fails."""
    for name in ("query.txt", "codeRollup.txt"):
        (project_folder / "agent-config" / name).unlink()
    script = "#!/bin/sh\necho build >>../builds\n[ -e ../hold ] && sleep 60\ncat ok.txt\ngrep -qx ok ok.txt\n"
    (project_folder / "build.sh").write_text(script)
    git(project_folder, "commit", "-qam", "build")
    return project_folder


def builds(root: Path) -> int:
    return (root.parent / "builds").read_text().count("build")


def record(root: Path) -> dict:
    return json.loads((the_log(root) / "run.json").read_text())


def prompt(root: Path, number: int = 1) -> str:
    return (the_log(root) / f"{number}-query.txt").read_text()


def pass_already(root: Path) -> None:
    (root / "ok.txt").write_text("ok\n")
    git(root, "commit", "-qam", "passes")


@pytest.mark.parametrize("layout", ["spec", "cached", "short"])
def test_a_red_build_is_repaired(layout, root: Path, run_code_commit: Run):
    done = run_code_commit(root, "repair", "--prompt-layout", layout, *replay(root, WRONG, RIGHT), "--json")
    assert done.returncode == 0, done.stderr
    assert "The build passes after 2 attempts (it failed before the run): 1 file changed" in done.stderr
    run = json.loads(done.stdout)
    assert (run["command"], run["first_build"]["exit_code"], run["query"]) == ("repair", 1, "Make the build pass.")
    assert [attempt["kind"] for attempt in run["attempts"]] == ["repair", "repair"]
    assert builds(root) == 3
    first, second = prompt(root), prompt(root, 2)
    assert first.count("not yet\n[build.sh: exit code 1") == 1
    assert "--- ok.txt ---\nnot yet\n" in first
    assert "wrong\n[build.sh: exit code 1" in second
    if layout != "short":
        prompts = load_system_prompts(find_project(root).system_prompts)
        assert split_closing(prompts.first_repair_query)[0] in first
        assert split_closing(prompts.repair_query)[0] in second
        assert "[file replacements]\n" not in first.partition(LABEL)[2]
        assert "[build.sh output]: what the build printed, if it failed\n" in first
        assert [asked.rpartition("[answer]\n")[2].count("Make the build pass") for asked in (first, second)] == [1, 1]
        assert "[file replacements]\n--- FILE REPLACEMENT ok.txt ---\nwrong\n" in second
    else:
        assert first.count("The script fails:\n\nnot yet") == 1
    assert run_code_commit(root, "undo").returncode == 0
    assert git(root, "status", "--porcelain") == ""


@pytest.mark.parametrize("rollup", ["file", "fit", "select"])
def test_a_green_build_needs_no_key_and_no_model(rollup, root: Path, run_code_commit: Run):
    pass_already(root)
    done = run_code_commit(root, "repair", "--rollup", rollup, "--json")
    assert done.returncode == 0, done.stderr
    assert "Nothing to repair: build.sh passes." in done.stderr
    run = json.loads(done.stdout)
    assert (run["command"], run["status"], run["attempts"]) == ("repair", "success", [])
    assert run["message"] == "nothing to repair: build.sh passes"
    assert run == record(root)
    assert "nothing to repair: build.sh passes" in run_code_commit(root, "log", "latest").stdout
    assert "Nothing to repair: the build passes" in run_code_commit(root, "log", "--markdown").stdout
    assert "(repair) Make the build pass." in run_code_commit(root, "log").stdout
    assert run_code_commit(root, "resume").returncode == 2


def test_green_builds_leave_no_more_logs_than_are_kept(root: Path, run_code_commit: Run):
    pass_already(root)
    (root / "agent-config/config.toml").write_text("keep_runs = 2\n")
    for _ in range(4):
        assert run_code_commit(root, "repair").returncode == 0
    assert len(list((root / "agent-config/logs").iterdir())) == 2


def test_a_red_build_without_a_key_sends_nothing(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "repair")
    assert done.returncode == 2, done.stderr
    assert re.search(r"the build failed before the run: .*\n  \| not yet\ncode-commit: no API key: ", done.stderr)
    assert (record(root)["status"], record(root)["attempts"]) == ("not_set_up", [])


def test_other_problems_are_told_before_the_build(root: Path, run_code_commit: Run):
    for options in (["--model", "nobody:x"], ["-m", " "], ["--output", "gone.txt"], ["--allow", "/etc/x"]):
        done = run_code_commit(root, "repair", *options)
        assert done.returncode == 2, done.stderr
    assert not (root.parent / "builds").exists()


def test_it_can_stay_red(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "repair", "--max-repairs", "1", *replay(root, WRONG, WRONG))
    assert done.returncode == 1, done.stderr
    assert "The build still fails after 2 attempts (it failed before the run)" in done.stderr


def test_a_build_that_fails_in_the_same_way_is_told_to_gain_nothing(root: Path, run_code_commit: Run):
    other = "^^^more.txt\nmore\n^^^end\n"
    done = run_code_commit(root, "repair", "--max-repairs", "1", *replay(root, other, other.replace("more\n", "x\n")))
    assert "The build still fails after 2 attempts (just as before the run): 1 file changed" in done.stderr
    assert [attempt["same_failure_as"] for attempt in record(root)["attempts"]] == [None, 0]


def test_words_are_the_query_and_query_txt_is_not_read(root: Path, run_code_commit: Run):
    (root / "agent-config/query.txt").write_text("Another task.\n")
    done = run_code_commit(root, "repair", "-m", "It has to say ok.", "-m", "Nothing else.", *replay(root, RIGHT))
    assert done.returncode == 0, done.stderr
    assert "[query]\nIt has to say ok.\n\nNothing else.\n" in prompt(root)
    assert "Another task." not in prompt(root)


def test_a_failure_from_elsewhere_stands_behind_our_own(root: Path, run_code_commit: Run):
    (root.parent / "ci.log").write_text("ok.txt:1: CI says no\n")
    done = run_code_commit(root, "repair", "--output", "../ci.log", *replay(root, WRONG, RIGHT))
    assert done.returncode == 0, done.stderr
    assert "does not occur here" not in done.stderr
    for number, own in enumerate(("not yet", "wrong"), start=1):
        output = prompt(root, number).partition(LABEL)[2].partition("[query]")[0]
        assert output.index(own) < output.index(f"{ELSEWHERE}ok.txt:1: CI says no\n")
    assert (the_log(root) / "given-build.txt").read_text() == "ok.txt:1: CI says no\n"
    assert f"the given build output, 21 bytes: agent-config/logs/{the_log(root).name}/given-build.txt\n" in done.stderr


@pytest.mark.parametrize("layout", ["cached", "short"])
def test_a_failure_that_is_not_seen_here_is_mended_and_said_to_be_so(layout, root: Path, run_code_commit: Run):
    pass_already(root)
    words = ["repair", "--output", "-", "--prompt-layout", layout]
    done = run_code_commit(
        root, *words, *replay(root, "^^^new.txt\nnew\n^^^end\n"), stdin="\x1b[31mnew.txt is missing\x1b[m\n"
    )
    assert done.returncode == 0, done.stderr
    assert "warning: the given failure does not occur here: build.sh passes before any change" in done.stderr
    assert "The build passes after 1 attempt (it passed before the run)" in done.stderr
    assert f"build.sh passes here.\n\n{ELSEWHERE}new.txt is missing\n" in prompt(root)
    assert "does not occur here" in run_code_commit(root, "log", "--markdown").stdout


@pytest.mark.parametrize(("name", "is_tracked"), [("ci [1].log", False), ("expected.log", True)])
def test_the_file_of_a_given_output_is_no_file_of_the_project(name, is_tracked, root: Path, run_code_commit: Run):
    (root / name).write_text("CI says no\n")
    if is_tracked:
        git(root, "add", name)
        git(root, "commit", "-qm", "more")
    done = run_code_commit(root, "repair", "--output", name, *replay(root, RIGHT))
    assert done.returncode == 0, done.stderr
    assert f"{ELSEWHERE}CI says no\n" in prompt(root)
    assert (f"--- {name} ---" in prompt(root)) == is_tracked


def test_what_passed_before_does_not_still_fail(root: Path, run_code_commit: Run):
    pass_already(root)
    words = ["repair", "--output", "-", "--max-repairs", "0"]
    done = run_code_commit(root, *words, *replay(root, WRONG), stdin="CI says no\n")
    assert done.returncode == 1, done.stderr
    assert "The build fails after 1 attempt (it passed before the run)" in done.stderr
    assert "## ✗ code-commit: The build fails\n" in run_code_commit(root, "log", "--markdown").stdout


def test_what_cannot_be_read_as_an_output_is_told(root: Path, run_code_commit: Run):
    assert "is empty" in run_code_commit(root, "repair", "--output", "-", stdin=" \n").stderr
    assert "both read standard input" in run_code_commit(root, "repair", "--output", "-", "-m", "-").stderr
    assert "cannot be read" in run_code_commit(root, "repair", "--output", "gone").stderr
    assert "--output is empty" in run_code_commit(root, "repair", "--output", "").stderr


def test_of_an_output_larger_than_memory_the_ends_are_read(root: Path, tmp_path: Path, run_code_commit: Run):
    with (tmp_path / "ci.log").open("wb") as file:
        file.write(b"first\n")
        file.seek(1 << 40)
        file.write(b"\nlast\n")
    given = repair_inputs_of(find_project(root), None, str(tmp_path / "ci.log")).given
    assert given == f"first\n[{(1 << 40) - 5:,} bytes are left out here]\nlast\n".encode()
    lines = "CI says no\n" * 4_000_000
    done = run_code_commit(root, "repair", "--output", "-", "--dry-run", *replay(root, RIGHT), stdin=lines)
    assert done.returncode == 0, done.stderr
    kept = (the_log(root) / "given-build.txt").read_text()
    middle = next(line for line in kept.split("\n") if "bytes are left out here" in line)
    assert len(kept) - len(middle) - 1 + int(re.sub(r"\D", "", middle)) == len(lines)
    assert set(kept.split("\n")) == {"CI says no", middle, ""}


def test_an_output_without_an_end_is_refused(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "repair", "--output", "/dev/zero")
    assert (done.returncode, "the build output still has no end after 1,0" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("around", [" ", "", "\n"])
def test_no_piece_of_a_key_is_left_where_a_large_output_is_cut(around, root: Path, tmp_path: Path):
    part, key = 16 << 20, "test-key-0123456789abcdef"
    log = tmp_path / "ci.log"
    text = "a" * (part - 4_010) + around + "b" * 4_000 + key
    log.write_text(f"{text}{'c' * 100}{text[::-1].replace(key[::-1], key)}")
    given = repair_inputs_of(find_project(root), None, str(log)).given
    assert given is not None
    pieces = re.findall(rb"test-|abcdef|key-0", given)
    assert (pieces, len(given) > part) == ([], around != ""), given[-99:]


def test_a_key_in_a_given_output_is_censored(root: Path, run_code_commit: Run):
    key = "test-key-0123456789abcdef"
    (root / "agent-config/openai-key.txt").write_text(key)
    (root / "agent-config/openai-key.txt").chmod(0o600)
    done = run_code_commit(root, "repair", "--output", "-", *replay(root, RIGHT), stdin=f"auth {key} refused\n")
    assert done.returncode == 0, done.stderr
    for path in the_log(root).rglob("*"):
        assert not path.is_file() or key[:-2].encode() not in path.read_bytes(), path


def test_a_dry_run_shows_the_diff(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "repair", "--dry-run", *replay(root, RIGHT))
    assert done.returncode == 0, done.stderr
    assert "-not yet\n+ok\n" in done.stdout
    assert (root / "ok.txt").read_text() == "not yet\n"
    assert builds(root) == 1
    pass_already(root)
    assert run_code_commit(root, "repair", "--dry-run").returncode == 0


@pytest.mark.parametrize("said", ["src/part_31.py:4: in part_31: AssertionError\n", "FAIL\n"])
def test_without_words_the_output_alone_ranks_the_files(said, root: Path, run_code_commit: Run):
    (root / "src").mkdir()
    for number in range(60):
        (root / f"src/part_{number:02}.py").write_text(module(f"part_{number:02}", 200))
    (root / "src/make.py").write_text(module("make_the_build_pass", 200))
    (root / "build.sh").write_text("#!/bin/sh\ncat ../said\ngrep -qx ok ok.txt\n")
    (root.parent / "said").write_text(said)
    git(root, "add", "-A")
    done = run_code_commit(root, "repair", "--rollup", "select", *replay(root, "^^^files\nok.txt\n^^^end\n", RIGHT))
    assert done.returncode == 0, done.stderr
    asked = (min((root / "agent-config/logs").iterdir()) / "1-query.txt").read_text()
    assert "[query]\nMake the build pass.\n" in asked
    assert "make_the_build_pass():" not in asked.partition("[mentions]\n")[2], "that are words of ours"
    assert ("--- src/part_31.py (outline" in asked) or "part_31" not in said
    assert ("src/part_31.py:4:def part_31" in asked) == ("part_31" in said)


def test_a_choice_of_files_is_part_of_a_repair(root: Path, run_code_commit: Run):
    (root / "src").mkdir()
    for number in range(40):
        (root / f"src/part_{number:02}.py").write_text(module(f"part_{number:02}", 200))
    git(root, "add", "-A")
    answers = replay(root, "^^^files\nok.txt\n^^^end\n", RIGHT)
    done = run_code_commit(root, "repair", "--rollup", "select", "--output", "-", *answers, stdin="CI says no\n")
    assert done.returncode == 0, done.stderr
    assert builds(root) == 2
    logs = sorted((root / "agent-config/logs").iterdir())
    assert [json.loads((log / "run.json").read_text())["command"] for log in logs] == ["rollup", "repair"]
    for log in logs:
        assert f"{ELSEWHERE}CI says no\n" in (log / "1-query.txt").read_text()
        assert {"0-build.txt", "given-build.txt"} <= {path.name for path in log.iterdir()}


@pytest.mark.slow
def test_killed_in_its_first_build_it_is_resumed(root: Path, run_code_commit: Run, start_code_commit: Start):
    (root.parent / "hold").touch()
    (root.parent / "ci.log").write_text("CI says no\n")
    with FakeServer(answers=[RIGHT]) as server:
        (root / "agent-config/openai-key.txt").write_text("test-key-0123456789")
        (root / "agent-config/openai-key.txt").chmod(0o600)
        words = ["--model", "openai", "--base-url", server.base_url("openai"), "--sandbox", "off"]
        process = start_code_commit(root, "repair", "-m", "Say ok.", "--output", "../ci.log", *words)
        wait_for((root.parent / "builds").exists)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=180)
        (root.parent / "hold").unlink()
        (root.parent / "ci.log").unlink()
        done = run_code_commit(root, "resume")
        assert done.returncode == 0, done.stderr
    assert (record(root)["command"], builds(root)) == ("repair", 3)
    assert [attempt["kind"] for attempt in record(root)["attempts"]] == ["repair"]
    assert f"{ELSEWHERE}CI says no\n" in prompt(root)
    assert "[query]\nSay ok.\n" in prompt(root)


@pytest.mark.parametrize("step", ["built", "asking", "applied"])
def test_killed_later_it_goes_on_as_a_repair(step, root: Path, run_code_commit: Run, start_code_commit: Start):
    program = (
        "import os; from code_commit.runs.progress import Progress\n"
        "def step(self, record, event):\n"
        f"    if event == {step!r}: os.kill(os.getpid(), 9)\n"
        "Progress.step = step\n"
    )
    start_code_commit(root, "repair", *replay(root, WRONG, RIGHT), before=program).wait(timeout=180)
    assert builds(root) == 1
    done = run_code_commit(root, "resume")
    assert done.returncode == 0, done.stderr
    assert builds(root) == 3
    assert [attempt["kind"] for attempt in record(root)["attempts"]] == ["repair", "repair"]
    assert "The build fails before any change" in prompt(root)


def test_the_same_from_python(root: Path):
    recorded(root, RIGHT)
    done = repair(root, query="Say ok.", output="CI says no\n", model="replay:agent-config/recorded", sandbox="off")
    assert (done.command, done.exit_code, len(done.attempts)) == ("repair", 0, 1)
    assert f"{ELSEWHERE}CI says no\n" in prompt(root)
    again = repair(root)
    assert (again.exit_code, again.attempts) == (0, [])
    assert b"Nothing to repair: the build passes" in render_page(again, root)
    with pytest.raises(TypeError, match="output"):
        repair(root, output=3)  # type: ignore[arg-type]
    with pytest.raises(NotSetUpError, match="empty"):
        repair(root, output="")


def test_a_repair_counts_among_the_statistics_and_a_green_build_does_not(root: Path, run_code_commit: Run):
    run_code_commit(root, "repair", *replay(root, WRONG, RIGHT))
    run_code_commit(root, "repair", *replay(root))
    (model,) = json.loads(run_code_commit(root, "log", "--stats", "--json").stdout)
    assert (model["runs"], model["passed"]) == (1, {"2": 1})
