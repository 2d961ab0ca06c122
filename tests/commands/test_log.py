"""`log` on standard output: the table of all runs, and one run attempt by attempt."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, Start, recorded, the_log, wait_for
from forked_command import ForkedCommand
from page_runs import embellish, hostile_run, recorded_run
from terminal import Terminal

from code_commit.commands.log import _build_tail
from code_commit.errors import NotSetUpError
from code_commit.project import Project, find_project
from code_commit.redaction import Redactor
from code_commit.runs.list import (
    find_run_folders,
    name_idle,
    next_run_name,
    pass_over_idle,
    remove_old_runs,
    short_name,
)
from code_commit.runs.log import open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import SCHEMA_VERSION, Attempt
from code_commit.settings import Settings
from code_commit.status import Status

WRONG, RIGHT = "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"


@pytest.fixture
def paid(project_folder: Path, run_code_commit: Run) -> Path:
    """The log folder of a run that failed once and then passed, with the tokens of a real LLM."""
    folder = recorded_run(project_folder, run_code_commit, [WRONG, RIGHT])
    embellish(folder, model="anthropic:claude-opus-5-5")
    return folder


def give(folder: Path, **fields: object) -> None:
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | fields))


ReadLog = Callable[..., subprocess.CompletedProcess[str]]
Table = Callable[[Path], list[list[str]]]


@pytest.fixture
def read_log(forked_command: ForkedCommand) -> ReadLog:
    """Run `log` on records that are not fit to be read by `run_code_commit`."""
    return lambda root, *arguments: forked_command.run(["log", *arguments], root, forked_command.environment)


@pytest.fixture
def table(read_log: ReadLog) -> Table:
    def rows(root: Path) -> list[list[str]]:
        done = read_log(root)
        assert (done.returncode, done.stderr) == (0, "")
        return [re.split(r" {2,}", line.strip()) for line in done.stdout.splitlines()]

    return rows


def test_a_key_that_a_build_prints_in_two_colours_is_not_shown(project_folder: Path, run_code_commit: Run) -> None:
    key = project_folder / "agent-config" / "openai-key.txt"
    key.write_text("sk-0123456789abcdef\n")
    key.chmod(0o600)
    (project_folder / "build.sh").write_text("#!/bin/sh\nprintf 'sk-012345\\033[0m6789abcdef\\n'\nexit 1\n")
    options = [*recorded(project_folder, WRONG), "--sandbox", "off", "--max-repairs", "0"]
    assert run_code_commit(project_folder, *options).returncode == 1
    assert f"    | {'*' * 17}ef\n" in run_code_commit(project_folder, "log", "latest").stdout


def test_a_dry_run_tells_in_the_same_words_everywhere_what_it_would_change(project_folder: Path, run_code_commit: Run):
    assert run_code_commit(project_folder, "apply", "--dry-run", "-", stdin=RIGHT).returncode == 0
    texts = [run_code_commit(project_folder, "log", *words).stdout for words in (["latest"], ["--markdown", "latest"])]
    for text in texts:
        assert text.count("would change 1 file") == 1, text
        assert "files changed" not in text
    assert "### Would change\n" in texts[1]
    assert run_code_commit(project_folder, "apply", "--dry-run", "-", stdin="^^^build.sh\n^^^end\n").returncode == 4
    assert "total     0 files changed in " in run_code_commit(project_folder, "log", "latest").stdout


@pytest.mark.slow
def test_a_status_is_told_in_words_and_a_dry_run_is_told_apart(
    project_folder: Path, run_code_commit: Run, table: Table
):
    root = project_folder
    assert run_code_commit(root, "apply", "--dry-run", "-", stdin=RIGHT).returncode == 0
    assert run_code_commit(root, "apply", "--dry-run", "-", stdin="^^^build.sh\n^^^end\n").returncode == 4
    assert run_code_commit(root, *recorded(root, RIGHT), "--dry-run").returncode == 0
    folder = recorded_run(root, run_code_commit, [WRONG, RIGHT])
    give(folder, status="llm_error", exit_code=3)
    assert [row[1] for row in table(root)[1:]] == ["dry run", "rejected", "dry run", "LLM error"]
    assert "\nstatus    LLM error (exit code 3)\n" in run_code_commit(root, "log", "-1").stdout
    assert "\nstatus    dry run (exit code 0)\n" in run_code_commit(root, "log", "-2").stdout
    assert "  LLM error " in run_code_commit(root, "log", "--stats").stdout
    assert json.loads(run_code_commit(root, "log", "-1", "--json").stdout)["status"] == "llm_error"


def test_the_table_has_what_each_run_was_and_cost(paid: Path, run_code_commit: Run, table: Table):
    root = paid.parents[2]
    assert run_code_commit(root, "undo").returncode == 0
    head, run, undo = table(root)
    assert head == ["RUN (UTC)", "STATUS", "TRIES", "FILES", "COST", "TIME", "TASK"]
    name = paid.name.replace("-committing-code", "")
    assert run == [name, "undone", "2", "1", "$0.19", "77.0 s", "Make ok.txt say ok."]
    assert undo[1:5] + undo[-1:] == ["success", "-", "1", "-", f"(undo of {name})"]


@pytest.mark.slow
def test_a_long_task_is_shortened_and_stands_whole_in_its_run(paid: Path, read_log: ReadLog, table: Table):
    give(paid, query="x" * 200)
    assert table(paid.parents[2])[1][6] == "x" * 49 + "…"
    assert f"task      {'x' * 200}\n" in read_log(paid.parents[2], "-1").stdout


@pytest.mark.slow
def test_runs_are_counted_from_the_end(paid: Path, run_code_commit: Run, read_log: ReadLog):
    root = paid.parents[2]
    assert run_code_commit(root, "undo").returncode == 0
    assert f"run       {paid.name}\n" in read_log(root, "-2").stdout
    undo = read_log(root, "-1").stdout
    assert ("(undo)" in undo, "attempt" not in undo, "  replace ok.txt  +1 -1\n" in undo) == (True, True, True)
    assert read_log(root, "-1").stdout == read_log(root, "latest").stdout
    done = read_log(root, "-3")
    assert (done.returncode, done.stderr) == (2, "code-commit: there is no run -3: the log has 2 of them\n")


@pytest.mark.slow
def test_the_latest_runs_alone(paid: Path, run_code_commit: Run):
    root = paid.parents[2]
    assert run_code_commit(root, "undo").returncode == 0
    last = run_code_commit(root, "log", "-n", "1")
    assert len(last.stdout.splitlines()) == 2
    assert len(json.loads(run_code_commit(root, "log", "--json").stdout)) == 2
    assert len(json.loads(run_code_commit(root, "log", "-n", "1", "--json").stdout)) == 1
    for other in (["latest"], ["--stats"], ["--markdown"]):
        assert "-n limits the list of runs" in run_code_commit(root, "log", "-n", "1", *other).stderr, other


def test_no_run(project_folder: Path, run_code_commit: Run):
    assert run_code_commit(project_folder, "log").stdout == "No run yet.\n"


def test_names_of_runs_sort_in_time_within_a_second_too(tmp_path: Path):
    project, second = Project(tmp_path), datetime(2026, 11, 21, 23, 59, 59, tzinfo=UTC)
    older = ["2026-11-21-23-59-59-committing-code", "2026-11-21-23-59-59-committing-code-2"]
    names = []
    for name in older:
        (project.logs / name).mkdir(parents=True)
    for _ in range(20):
        names.append(next_run_name(project, second))
        (project.logs / names[-1]).mkdir()

    assert names == sorted(names)
    assert [folder.name for folder in find_run_folders(project)] == older + names
    shown = [short_name(name) for name in names]
    assert shown[:8] == [f"2026-11-21-23-59-59-{number}" for number in range(3, 10)] + ["2026-11-22-00-00-00"]
    assert shown[8] == "2026-11-22-00-00-00-2"
    for name, short in zip(older + names, ["2026-11-21-23-59-59", "2026-11-21-23-59-59-2", *shown], strict=True):
        assert [[folder.name for folder in find_run_folders(project, said)] for said in (name, short)] == [[name]] * 2


def test_a_folder_of_another_name_keeps_no_run_from_its_own(tmp_path: Path):
    project = Project(tmp_path)
    for name in ("9999-12-31-23-59-59", "9999-99-99-99-99-99"):
        (project.logs / f"{name}-committing-code-9").mkdir(parents=True)
        assert next_run_name(project, datetime.now(UTC)) == f"{name}-committing-code-10"


@pytest.mark.slow
@pytest.mark.parametrize("numbered", ["{}-2-committing-code", "{}-committing-code-2"])
def test_a_run_is_found_by_its_name_or_a_beginning_that_no_other_has(numbered, paid: Path, read_log: ReadLog):
    stem = paid.name.replace("-committing-code", "")
    second = paid.with_name(numbered.format(stem))
    shutil.copytree(paid, second)
    give(second, run=second.name)
    for name, run in ((stem, paid.name), (paid.name, paid.name), (f"{stem}-2", second.name)):
        assert f"run       {run}\n" in read_log(paid.parents[2], name).stdout
    done = read_log(paid.parents[2], stem[:-1])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"code-commit: 2 runs begin with {stem[:-1]}: name one of them, such as {stem}, {stem}-2\n"


NARROW = {
    80: "RUN (UTC)            STATUS   TRIES  FILES   COST    TIME  TASK",
    40: "RUN (UTC)            STATUS   TRIES  FI…",
}


@pytest.mark.parametrize("columns", NARROW)
@pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")
def test_rows_are_cut_where_the_terminal_ends(columns, paid: Path):
    give(paid, query="Make ok.txt say ok, and nothing else at all.")
    command = " ".join([*CODE_COMMIT, "log"])
    with Terminal(paid.parents[2], command, columns, 10, {}) as pane:
        assert pane.end() == 0
        head, row, *rest = pane.screen()
    assert head == NARROW[columns]
    assert (len(row), row[-1]) == (columns, "…")
    assert rest == ["[exit code 0]"], "no row is wrapped"


@pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")
def test_a_cost_of_two_parts_leaves_room_for_the_task(paid: Path):
    totals = json.loads((paid / "run.json").read_text())["totals"] | {"cost_usd": 12.5, "unsettled_usd": 384.0}
    give(paid, query="Make ok.txt say ok, and nothing else at all.", totals=totals)
    with Terminal(paid.parents[2], " ".join([*CODE_COMMIT, "log"]), 80, 10, {}) as pane:
        assert pane.end() == 0
        _, row, below, *rest = pane.screen()
    assert "  $12.50  " in row
    assert "Make ok.txt" in row
    assert below.split() == ["+", "≤$384.00"]
    assert row.index("$12.50") + len("$12.50") == len(below)
    assert rest == ["[exit code 0]"]


@pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")
def test_what_a_label_leads_goes_on_below_its_beginning(paid: Path):
    give(paid, query=f"Make ok.txt say ok, {'and nothing else ' * 5}at all.")
    with Terminal(paid.parents[2], " ".join([*CODE_COMMIT, "log", "latest"]), 80, 40, {}) as pane:
        assert pane.end() == 0
        task = [row for row in pane.screen() if "nothing else" in row]
    assert [row[:10] for row in task] == ["task      ", " " * 10]
    assert task[1][10] != " "


@pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")
def test_of_an_undone_run_the_end_of_its_name_is_shown(paid: Path, run_code_commit: Run):
    assert run_code_commit(paid.parents[2], "undo").returncode == 0
    with Terminal(paid.parents[2], " ".join([*CODE_COMMIT, "log"]), 80, 10, {}) as pane:
        assert pane.end() == 0
        undo = pane.screen()[2]
    shortened = re.fullmatch(r".*  \(undo of …([-0-9]{8,})\)", undo)
    assert shortened
    assert short_name(paid.name).endswith(shortened[1])
    assert len(undo) == 80


@pytest.mark.slow
def test_many_runs(paid: Path, table: Table):
    for number in range(300):
        folder = paid.parent / f"2026-01-01-{number // 3600:02}-{number // 60 % 60:02}-{number % 60:02}-committing-code"
        folder.mkdir()
        shutil.copy(paid / "run.json", folder)
        give(folder, run=folder.name)
    rows = table(paid.parents[2])
    assert len(rows) == 302
    assert rows[-1][0] == paid.name.replace("-committing-code", "")
    assert [row[0] for row in rows[1:]] == sorted(row[0] for row in rows[1:])


@pytest.mark.slow
def test_a_killed_run_says_so_and_how_it_goes_on(paid: Path, run_code_commit: Run, table: Table):
    root = paid.parents[2]
    give(paid, status="running", exit_code=None, finished=None, pid=2**22 - 3)
    assert table(root)[1][1] == "killed"
    shown = run_code_commit(root, "log", paid.name).stdout
    assert "status    killed\n" in shown
    assert re.search("code-commit resume 2[0-9-]+ continues this run", shown)
    for pid, status in ((os.getpid(), "running"), (2**40, "killed"), (-1, "killed")):
        give(paid, pid=pid, process_start="")  # as before it was noted
        assert table(root)[1][1] == status


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc here")
def test_a_killed_run_whose_process_id_was_used_again_is_killed(
    project_folder: Path, table: Table, start_code_commit: Start
):
    (project_folder / "build.sh").write_text("#!/bin/sh\necho $$ >agent-config/build\nexec sleep 60\n")
    process = start_code_commit(project_folder, *recorded(project_folder, RIGHT), "--sandbox", "off")
    build = project_folder / "agent-config/build"
    wait_for(lambda: build.exists() and build.read_text())
    assert table(project_folder)[1][1] == "running"
    process.kill()
    process.wait(180)
    os.kill(int(build.read_text()), signal.SIGKILL)
    assert table(project_folder)[1][1] == "killed"
    give(the_log(project_folder), pid=os.getpid())
    assert table(project_folder)[1][1] == "killed"


DAMAGES = {
    "a newer schema": ({"schema_version": SCHEMA_VERSION + 1, "version": "9.9.9"}, "code-commit 9.9.9 wrote it"),
    "a newer shape": ({"schema_version": SCHEMA_VERSION + 1, "attempts": 7}, "or a newer code-commit wrote it"),
    "another shape": ({"attempts": "none"}, "its run.json is damaged"),
    "half a file": (None, "its run.json is damaged"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("fields", "said"), DAMAGES.values(), ids=DAMAGES)
def test_a_run_that_cannot_be_read_is_named_beside_the_others(
    fields, said, paid: Path, read_log: ReadLog, table: Table
):
    root = paid.parents[2]
    other = paid.parent / "2026-01-01-00-00-00-committing-code"
    shutil.copytree(paid, other)
    if fields is None:
        (other / "run.json").write_bytes((other / "run.json").read_bytes()[:300])
    else:
        give(other, run=other.name, **fields)
    rows = table(root)
    assert rows[1][:2] == ["2026-01-01-00-00-00", "unreadable"]
    assert rows[2][1] == "success"
    assert said in " ".join(rows[3])
    done = read_log(root, "2026-01-01")
    assert done.returncode == 2
    assert said in done.stderr
    assert f"its files are in agent-config/logs/{other.name}" in done.stderr
    assert "\x1b" not in done.stderr
    assert read_log(root, "--json").returncode == 0


def test_what_is_no_file_is_not_waited_for(paid: Path, table: Table):
    (paid.parent / "2026-01-01-00-00-00-committing-code").mkdir()
    os.mkfifo(paid.parent / "2026-01-01-00-00-00-committing-code" / "run.json")
    rows = table(paid.parents[2])
    assert rows[1][:2] == ["2026-01-01-00-00-00", "unreadable"]
    assert "not a regular file" in rows[-1][-1]


def test_one_run_attempt_by_attempt(project_folder: Path, run_code_commit: Run):
    folder = hostile_run(project_folder, run_code_commit)
    embellish(folder)
    shown = run_code_commit(project_folder, "log", folder.name[:10]).stdout
    parts = shown.split("\n\n")
    assert f"run       {folder.name}\nstatus    success (exit code 0)\n" in parts[0]
    assert "total     3 files changed in 1 min 17 s, 137,000 tokens, $0.1934\n" in parts[0]
    assert parts[1].startswith("attempt 1 (initial): 30.0 s, 41,000 tokens in, 2,100 out")
    assert "  rejected, nothing written: 2 reasons\n" in parts[1]
    assert "    line 1: build.sh is protected: leave its block out, and say outside" in parts[1]
    assert parts[2].startswith("attempt 2 (retry)")
    assert "  replace src/a.py  +" in parts[2]
    assert "  delete  src/old.py  +0 -1" in parts[2]
    assert "  build failed: exit code 1" in parts[2]
    assert "    | error: orange  truecolour" in parts[2], "the build's colours are not shown as their codes"
    assert parts[3].startswith("attempt 3 (repair)")
    assert "build passed" in parts[3]
    assert "|" not in parts[3]
    assert "\x1b" not in shown


def test_a_task_of_a_fleet_is_shown_as_a_run_without_a_next_step(paid: Path, run_code_commit: Run, tmp_path: Path):
    give(paid, status="interrupted", exit_code=130)
    task = tmp_path / "out/web"
    shutil.copytree(paid, task / "log")
    shutil.copy(paid / "run.json", task)
    root = paid.parents[2]
    own, shown = (run_code_commit(root, "log", name).stdout for name in (paid.name, str(task)))
    assert "code-commit " in own.partition("\ntask ")[0]
    assert "code-commit " not in shown.partition("\ntask ")[0]
    assert f"\nlog       {task}/log\n" in shown
    parts = [text.partition("\ntotal ")[2] for text in (own, shown)]
    assert parts[0] == parts[1] != ""


@pytest.mark.slow
def test_an_attempt_that_repeats_another_says_so(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/bin/sh\ncat missing\n")
    wrong = [f"^^^ok.txt\n{word}\n^^^end\n" for word in ("one", "two", "one")]
    assert run_code_commit(project_folder, *recorded(project_folder, *wrong)).returncode == 3
    said = "same change as in attempt 1, same failure as after attempt 1"
    shown = run_code_commit(project_folder, "log", "latest").stdout
    assert f"; {said}\n" in shown.split("\nattempt ")[3]
    assert f"; {said}</span>" in run_code_commit(project_folder, "log", "--html", "-").stdout
    attempts = json.loads(run_code_commit(project_folder, "log", "latest", "--json").stdout)["attempts"]
    assert [attempt["same_change_as"] for attempt in attempts] == [None, None, 1, None]


def test_a_link_in_the_place_of_a_build_log_is_not_followed(paid: Path, run_code_commit: Run):
    (paid / "other.txt").write_text("of somebody else\n")
    (paid / "1-build.txt").unlink()
    (paid / "1-build.txt").symlink_to("other.txt")
    shown = run_code_commit(paid.parents[2], "log", paid.name).stdout
    assert "(the build's log is gone)" in shown
    assert "of somebody else" not in shown


def test_a_build_log_that_is_gone(paid: Path, run_code_commit: Run):
    (paid / "1-build.txt").unlink()
    assert "    | (the build's log is gone)" in run_code_commit(paid.parents[2], "log", paid.name).stdout


@pytest.fixture
def log_of(project_folder: Path) -> Callable[..., Path]:
    """Make the log folder of a run that has ended, with these facts."""
    project, progress = find_project(project_folder), Progress(Redactor([]), quiet=True)

    def make(status: Status = Status.SUCCESS, **facts) -> Path:
        log = open_run_log(project, facts.pop("command", "run"), Settings(), progress)
        for name, value in facts.items():
            setattr(log.record, name, value)
        log.finish(status)
        return log.folder

    return make


def test_a_choice_of_files_is_the_latest_run_where_there_is_no_other(log_of, project_folder: Path):
    project = find_project(project_folder)
    choice = log_of(command="rollup")
    assert find_run_folders(project, "latest") == [choice]
    with pytest.raises(NotSetUpError, match="no run -2: the log has 1"):
        find_run_folders(project, "-2")
    run, unfinished = log_of(), log_of(Status.LLM_ERROR, command="rollup")
    log_of(command="rollup")
    assert [find_run_folders(project, name) for name in ("latest", "-1", "-2")] == [[unfinished], [unfinished], [run]]


def test_runs_that_applied_nothing_are_passed_over_and_named_with_their_ends(log_of, project_folder: Path):
    applied = log_of(attempts=[Attempt(1, "initial", verdict="applied")])
    idle = [log_of(options={"dry_run": True, "quiet": True}), log_of(Status.REJECTED)]
    log_of(command="rollup")
    found = pass_over_idle(find_run_folders(find_project(project_folder)))
    assert found
    assert (found[0], [run.run for run in found[1]]) == (applied, [folder.name for folder in reversed(idle)])
    rejected, dry = (short_name(folder.name) for folder in reversed(idle))
    assert name_idle(found[1]) == f"{rejected} ({Status.REJECTED.words}), {dry} ({Status.DRY_RUN.words})"


def test_an_undo_and_what_it_put_back_stay_as_long_as_each_other(log_of, project_folder: Path):
    """The undo that stays for what it put back later keeps an earlier run in its turn."""
    first = log_of(undone=True)
    second = log_of(command="undo", undoes=first.name, undone=True)
    third = log_of(command="undo", undoes=second.name)
    give(third, finished=None, status="running")
    standing = log_of()
    latest = [log_of(command="undo", undoes=standing.name) for _ in range(2)]
    removal = remove_old_runs(find_project(project_folder), 2, 0)
    assert removal.runs == [standing.name], "no run says that it is undone"
    assert removal.kept == {"did not end": [third.name], "an undo put back": [second.name, first.name]}
    assert sorted(find_run_folders(find_project(project_folder))) == [first, second, third, *latest]


@pytest.mark.parametrize(("lines", "is_cut"), [(12, False), (13, True)])
def test_the_last_lines_of_a_build_name_the_file_with_those_before(lines, is_cut, tmp_path: Path):
    (tmp_path / "2-build.txt").write_text("".join(f"{number}\n" for number in range(lines)))
    above, *_ = shown = [*_build_tail(tmp_path / "2-build.txt", Redactor(()))]
    assert (above == "    | [... the other lines are in 2-build.txt of the log ...]") == is_cut
    assert shown[-12:] == [f"    | {number}" for number in range(lines - 12, lines)]
