"""`apply`, `undo`, `--dry-run`, `--rollback`: what they change, put back and print, through the command itself."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, Start, git, recorded, tree, wait_for
from measure import least

from code_commit.apply.restore import UndoScope
from code_commit.changes import AppliedChange
from code_commit.commands import undo
from code_commit.commands.undo import _transactions_before as transactions_before
from code_commit.errors import NotSetUpError
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.runs.list import short_name
from code_commit.runs.log import RunLog, open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import Attempt, RunRecord, load_run_record
from code_commit.settings import Settings
from code_commit.status import Status

RESPONSE = "^^^ok.txt\nok\n^^^end\n^^^new/deep/file.sh\n#!/bin/sh\n^^^end\n^^^old.txt\n^^^delete\n"
WRONG = "^^^ok.txt\nwrong\n^^^end\n^^^new.txt\n^^^end\n"


@pytest.fixture
def root(project_folder: Path) -> Path:
    (project_folder / "old.txt").write_bytes(b"old\r\nbytes\r\n")
    (project_folder / "old.txt").chmod(0o640)
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "more")
    return project_folder


def latest(root: Path) -> dict:
    records = [json.loads((log / "run.json").read_text()) for log in (root / "agent-config" / "logs").iterdir()]
    return max(records, key=lambda record: record["started"])


def test_apply_from_a_file_and_from_standard_input(root: Path, run_code_commit: Run, tmp_path: Path):
    (tmp_path / "answer").write_text(RESPONSE)
    assert run_code_commit(root, "apply", str(tmp_path / "answer")).returncode == 0
    once = tree(root)
    assert (root / "ok.txt").read_text() == "ok\n"
    assert not (root / "old.txt").exists()
    assert os.access(root / "new/deep/file.sh", os.X_OK)
    assert run_code_commit(root, "undo").returncode == 0
    assert run_code_commit(root, "apply", "-", stdin=RESPONSE).returncode == 0
    assert "\nthe saved response\n" in run_code_commit(root, "log", "latest").stdout
    assert tree(root) == once


def test_apply_looks_edits_up_in_what_the_prompt_beside_the_answer_shows(
    root: Path, run_code_commit: Run, tmp_path: Path
):
    text = "".join(f"{number}\n" for number in (*range(1, 301), *range(1, 301)))
    (root / "ok.txt").write_text(text)
    shown = "[codebase]\n--- ok.txt (lines 300-320 of 600) ---\n{}\n\n[query]\nDo it.\n"
    lines = "".join(f"{number}\n" for number in (300, *range(1, 21)))
    (tmp_path / "1-query.txt").write_text(shown.format(lines))
    (tmp_path / "2-query.txt").write_text(
        shown.format(lines.replace("7\n", "8\n")).replace("ok.txt", "FILE REPLACEMENT ok.txt")
    )
    rules = []
    for name, find in (("1", "25"), ("2", "7"), ("3", "7"), ("1", "7")):
        answer = tmp_path / f"{name}-response.txt"
        answer.write_text(f"^^^ok.txt\n^^^find\n{find}\n^^^replace\nseven\n^^^end\n")
        done = run_code_commit(root, "apply", "--answer-format", "edits", str(answer))
        rules += [[reason["rule"] for reason in latest(root)["attempts"][0]["rejections"]]]
    assert (done.returncode, rules) == (0, [["unseen"], ["stale"], ["ambiguous"], []]), done.stderr
    assert (root / "ok.txt").read_text() == text[: text.rindex("7\n8\n")] + "seven\n" + text[
        text.rindex("7\n8\n") + 2 :
    ]


@pytest.mark.parametrize("log", ["as it is", "of an older version", "damaged"])
def test_apply_asks_the_log_what_the_prompt_beside_the_answer_showed(log: str, root: Path, run_code_commit: Run):
    """The file begins by now as a line of another one does, for which the prompt alone would be taken at its word."""
    (root / "other.txt").write_text("almost\n")
    answer = "^^^ok.txt\nok\n^^^end\n"
    assert run_code_commit(root, "--rollup", "fresh", "--dry-run", *recorded(root, answer)).returncode == 0
    folder = root / latest(root)["log_dir"]
    views = {entry["path"]: entry["kind"] for entry in json.loads((folder / "1-shows.json").read_text())["files"]}
    assert (views["ok.txt"], views["other.txt"]) == ("whole", "whole")
    (root / "ok.txt").write_text("al\n")
    if log == "of an older version":
        (folder / "1-shows.json").unlink()
    elif log == "damaged":
        (folder / "1-shows.json").write_text("{")
    done = run_code_commit(root, "apply", "--strict", str(folder / "1-response.txt"))
    rules = [reason["rule"] for reason in latest(root)["attempts"][0]["rejections"]]
    assert (done.returncode, rules) == ((4, ["stale"]) if log == "as it is" else (0, [])), done.stderr


def test_a_suspicion_rejects_a_saved_answer_unless_it_is_to_be_applied_as_sent(root: Path, run_code_commit: Run):
    lines = "".join(f"line {number}\n" for number in range(12))
    (root / "ok.txt").write_text(lines)
    answer = f"^^^src/ok.txt\n{lines}more\n^^^end\n"
    done = run_code_commit(root, "apply", "-", stdin=answer)
    record = latest(root)
    assert (done.returncode, (root / "src").exists()) == (4, False)
    (reason,) = record["attempts"][0]["rejections"]
    assert (reason["rule"], reason["may_be_meant"]) == ("astray", True)
    kept = f"{record['log_dir']}/1-response.txt"
    assert f"If the answer is meant that way: code-commit apply --as-sent {kept}" in done.stderr
    done = run_code_commit(root, "apply", "--as-sent", kept)
    assert (done.returncode, (root / "src/ok.txt").read_text()) == (0, f"{lines}more\n")
    assert ("astray", "src/ok.txt") in [(warning["kind"], warning["path"]) for warning in latest(root)["warnings"]]
    certain = run_code_commit(root, "apply", "--as-sent", "-", stdin="^^^build.sh\ntrue\n^^^end\n")
    assert (certain.returncode, "--as-sent" in certain.stderr) == (4, False)


@pytest.mark.parametrize("rollup", ["fresh", "fit", "select"])
def test_apply_makes_no_codebase_whatever_a_run_would_make(rollup, root: Path, run_code_commit: Run):
    (root / "agent-config/config.toml").write_text(f'rollup = "{rollup}"\n')
    (root / "agent-config/codeRollup.txt").write_text("--- ok.txt ---\nolder\n")
    done = run_code_commit(root, "apply", "-", stdin="^^^ok.txt\nok\n^^^end\n")
    assert (done.returncode, (root / "ok.txt").read_text()) == (0, "ok\n"), done.stderr
    assert (root / "agent-config/codeRollup.txt").read_text() == "--- ok.txt ---\nolder\n"


def test_apply_needs_no_agent_config(root: Path, run_code_commit: Run):
    import shutil

    shutil.rmtree(root / "agent-config")
    assert run_code_commit(root, "apply", "-", stdin=RESPONSE).returncode == 0
    assert (root / "agent-config").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("response", "code", "status"), [(RESPONSE, 0, "success"), (WRONG, 1, "build_failed")])
def test_apply_with_a_build_ends_as_the_build(response, code, status, root: Path, run_code_commit: Run):
    done = run_code_commit(root, "apply", "--build", "-", "--json", stdin=response)
    assert done.returncode == code, done.stderr
    record = json.loads(done.stdout)
    assert (record["command"], record["status"], record["exit_code"]) == ("apply", status, code)
    assert "\nThe build passes: 3 files" in done.stderr or "\nThe build fails: 2 files" in done.stderr
    assert record["attempts"][0]["build"]["exit_code"] == code


def test_apply_of_a_rejected_response_ends_with_4(root: Path, run_code_commit: Run):
    before = tree(root)
    done = run_code_commit(root, "apply", "-", stdin=RESPONSE + "^^^build.sh\nexit 0\n^^^end\n")
    assert done.returncode == 4
    assert "build.sh" in done.stderr
    assert tree(root) == before


def test_a_rejection_is_told_briefly_and_in_full_by_the_log(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "apply", "-", "--json", stdin="no blocks here\n")
    assert "\nresponse rejected, nothing written: the response has no ^^^ block\n" in f"\n{done.stderr}", done.stderr
    record = json.loads(done.stdout)
    assert record["message"] == "the response has no ^^^ block"
    (reason,) = record["attempts"][0]["rejections"]
    assert len(reason["message"]) > 100
    assert reason["message"] in run_code_commit(root, "log", "latest").stdout
    assert reason["message"] in run_code_commit(root, "apply", "-", "--verbose", stdin="no blocks here\n").stderr


@pytest.mark.parametrize("line", ["^^^a\n", "^^^../a\n^^^end\n", " ^^^a\n", ".\n"], ids=ascii)
def test_what_a_rejection_costs_is_in_proportion_to_the_response(line, root: Path, run_code_commit: Run):
    done = run_code_commit(root, "apply", "-", stdin=line * (200_000 // len(line)), timeout=60)
    assert done.returncode == 4
    assert len(done.stderr) < 2_000
    (log,) = (root / "agent-config/logs").iterdir()
    (attempt,) = json.loads((log / "run.json").read_text())["attempts"]
    assert len(attempt["rejections"]) == (1 if line in (".\n", "^^^../a\n^^^end\n") else 50)
    assert attempt["more_rejections"] == (0 if len(attempt["rejections"]) == 1 else 200_000 // len(line) - 50)
    assert sum(file.stat().st_size for file in log.iterdir() if file.is_file()) < 250_000


HUGE = {
    "a new file of line ends": ("^^^new.txt\n", "\n", "^^^end\n", 0),
    "an old file of line ends": ("^^^ok.txt\n", "\r\n", "^^^end\n", 0),
    "a path of slashes": ("^^^new", "/", "new.txt\nx\n^^^end\n", 0),
    "a path of parents": ("^^^new", "/..", "\nx\n^^^end\n", 4),
    "dots": ("^^^new.txt\n", "...\n", "^^^end\n", 0),
    "other lines": ("^^^ok.txt\n", "# the other one\n", "^^^end\n", 0),
    "open blocks": ("", "^^^a\n", "", 4),
    "carets": ("^^^new.txt\n", "^\n", "^^^end\n", 0),
    "a reason": ("^^^cannot\n", "No.\n", "^^^end\n", 4),
    "reasons": ("", "^^^cannot\nNo.\n^^^end\n", "", 4),
    "thoughts": ("^^^new.txt\nThese:\n", "<think>\u2028", "\n^^^end\n", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize(("begin", "unit", "end", "code"), HUGE.values(), ids=HUGE)
def test_what_a_huge_answer_costs_is_in_proportion_to_it(begin, unit, end, code, root: Path, tmp_path: Path, whole):
    size = 20_000_000 if whole else 2_000_000

    def apply(size: int) -> tuple[subprocess.CompletedProcess[str], float]:
        (tmp_path / "answer").write_text(begin + unit * (size // len(unit.encode())) + end, newline="")
        shutil.rmtree(root / "agent-config/logs", ignore_errors=True)
        (root / "new.txt").unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        limits = f'ulimit -d {60_000 + size // 58} && exec "$@"'
        command = ["sh", "-c", limits, "sh", *CODE_COMMIT, "apply", str(tmp_path / "answer")]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        return done, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    def ratio() -> float:
        _, seconds_of_a_quarter = apply(size // 4)
        done, seconds = apply(size)
        assert done.returncode == code, done.stderr
        assert len(done.stderr) < 40_000
        return (seconds - 0.5) / seconds_of_a_quarter

    assert least(ratio, 6) < 6
    (log,) = (root / "agent-config/logs").iterdir()
    assert sum(file.stat().st_size for file in log.iterdir() if file.is_file()) < 3.1 * size


@pytest.mark.parametrize(("data", "said"), [(b"\xff", "not UTF-8"), (b" \n", "is empty"), (None, "cannot be read")])
def test_apply_of_what_is_no_text_ends_with_2(data, said, root: Path, run_code_commit: Run, tmp_path: Path):
    if data:
        (tmp_path / "answer").write_bytes(data)
    done = run_code_commit(root, "apply", str(tmp_path / "answer"))
    assert done.returncode == 2
    assert said in done.stderr
    endless = run_code_commit(root, "apply", "/dev/zero")
    assert (endless.returncode, "has more than 268,435,456 bytes" in endless.stderr) == (2, True), endless.stderr


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--build"]])
def test_apply_of_a_text_that_declines_says_so_and_ends_with_4(options, root: Path, run_code_commit: Run):
    before = tree(root)
    done = run_code_commit(root, "apply", *options, "-", stdin="^^^cannot\nno gcc\n^^^end\n")
    assert (done.returncode, tree(root)) == (4, before)
    assert "the LLM says that it cannot do this: no gcc\n" in done.stderr
    assert (latest(root)["status"], latest(root)["message"]) == ("declined", "no gcc")


@pytest.mark.slow
def test_undo_is_exact_and_can_be_undone(root: Path, run_code_commit: Run):
    before = tree(root)
    assert run_code_commit(root, *recorded(root, WRONG, RESPONSE)).returncode == 0
    after = tree(root)
    assert after != before
    run = latest(root)["run"]
    assert run_code_commit(root, "undo").returncode == 0
    assert tree(root) == before
    assert git(root, "status", "--porcelain") == ""
    undo = latest(root)
    assert (undo["command"], undo["undoes"]) == ("undo", run)
    for state, said in ((after, "took back are in the tree again"), (before, "brought back are no longer in the tree")):
        done = run_code_commit(root, "undo", latest(root)["run"])
        assert (done.returncode, tree(root)) == (0, state), done.stderr
        assert f", an undo: the changes of {run} that it {said}" in done.stderr


ODD_NAMES = ("src/aux.c", "-x", ":x", "~", "%a%", "$lib/a.ts", "c:x", "x~1", "a\\b", "q.", "[python]")


@pytest.mark.slow
def test_files_that_git_tracks_are_changed_and_deleted_and_put_back_whatever_they_are_called(
    root: Path, run_code_commit: Run
):
    for name in ODD_NAMES:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("one\ntwo\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "odd names")
    before = tree(root)
    answers = {
        "deleted": ("^^^{}\n^^^delete\n", None),
        "edited": ("^^^{}\n^^^find\ntwo\n^^^replace\n2\n^^^end\n", "one\n2\n"),
        "sent whole": ("^^^{}\nthree\n^^^end\n", "three\n"),
    }
    for block, after in answers.values():
        done = run_code_commit(
            root, "apply", "--answer-format", "auto", "-", stdin="".join(map(block.format, ODD_NAMES))
        )
        assert done.returncode == 0, done.stderr
        assert [(root / name).read_text() if (root / name).exists() else None for name in ODD_NAMES] == [after] * len(
            ODD_NAMES
        )
        done = run_code_commit(root, "undo")
        assert (done.returncode, tree(root)) == (0, before), done.stderr


@pytest.mark.slow
def test_undo_without_a_name_goes_back_run_by_run(root: Path, run_code_commit: Run):
    runs = [apply(root, run_code_commit, name) for name in ("a.txt", "b.txt", "c.txt")]
    assert run_code_commit(root, "undo").returncode == 0
    assert run_code_commit(root, "undo", latest(root)["run"]).returncode == 0
    assert (root / "c.txt").exists()
    for left in (["a.txt", "b.txt"], ["a.txt"]):
        assert run_code_commit(root, "undo").returncode == 0
        assert sorted(path.name for path in root.glob("[abc].txt")) == left
    done = run_code_commit(root, "undo", runs[1].name)
    assert done.returncode == 0
    assert f"nothing to put back: every file is as it was before {runs[1].name}" in done.stderr.replace("N", "n")
    assert run_code_commit(root, "undo").returncode == 0
    assert not (root / "a.txt").exists()
    done = run_code_commit(root, "undo")
    assert (done.returncode, "nothing to undo" in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed: kill points cannot be set")
def test_an_undo_that_was_killed_and_is_repeated_undoes_the_same_run(root: Path, run_code_commit: Run, tmp_path: Path):
    apply(root, run_code_commit, "a.txt")
    with_a = tree(root)
    apply(root, run_code_commit, "b.txt")
    killed = 0
    for number in range(1, 40):
        copy = tmp_path / f"copy-{number}" / "project"
        shutil.copytree(root, copy, symlinks=True)
        kill = [
            "strace",
            "-f",
            "-o",
            "/dev/null",
            "-e",
            "trace=rename",
            "-e",
            f"inject=rename:signal=KILL:when={number}",
        ]
        done = subprocess.run([*kill, *CODE_COMMIT, "undo"], cwd=copy, capture_output=True, check=False)
        assert run_code_commit(copy, "undo").returncode == 0
        if done.returncode == 0:
            break
        killed += 1
        assert tree(copy) == with_a
    assert killed >= 4


@pytest.mark.slow
def test_undo_refuses_what_changed_since_unless_forced(root: Path, run_code_commit: Run):
    before = tree(root)
    assert run_code_commit(root, "apply", "-", stdin=RESPONSE).returncode == 0
    (root / "ok.txt").write_text("edited since\n")
    edited = tree(root)
    done = run_code_commit(root, "undo")
    assert done.returncode == 1
    assert "ok.txt" in done.stderr
    assert "--force" in done.stderr
    end = json.loads(run_code_commit(root, "undo", "--json").stdout)
    assert (end["status"], end["exit_code"]) == ("refused", 1)
    assert tree(root) == edited
    assert latest(root)["command"] == "apply", "an undo that is refused is no run"
    assert run_code_commit(root, "undo", "--force").returncode == 0
    assert tree(root) == before


def test_undo_names_the_later_run_that_changed_the_file(root: Path, run_code_commit: Run):
    for text in ("one", "two", "three"):
        assert run_code_commit(root, "apply", "-", stdin=f"^^^a.txt\n{text}\n^^^end\n").returncode == 0
    assert run_code_commit(root, "undo").returncode == 0
    first, second, _, _ = sorted(path.name for path in (root / "agent-config/logs").iterdir())
    done = run_code_commit(root, "undo", first)
    assert done.returncode == 1
    assert f"undo it first with code-commit undo {short_name(second)}; --force" in done.stderr


def test_undo_blames_no_run_for_what_it_did_not_leave(root: Path, run_code_commit: Run):
    for text in ("one", "two"):
        assert run_code_commit(root, "apply", "-", stdin=f"^^^a.txt\n{text}\n^^^end\n").returncode == 0
    (root / "a.txt").write_text("mine\n")
    done = run_code_commit(root, "undo", "-2")
    assert (done.returncode, "so nothing was restored; --force" in done.stderr) == (1, True), done.stderr


def test_undo_of_a_named_run(root: Path, run_code_commit: Run):
    before = tree(root)
    assert run_code_commit(root, "apply", "-", stdin="^^^a.txt\na\n^^^end\n").returncode == 0
    first = latest(root)["run"]
    assert run_code_commit(root, "apply", "-", stdin="^^^b.txt\nb\n^^^end\n").returncode == 0
    assert run_code_commit(root, "undo", first).returncode == 0
    assert not (root / "a.txt").exists()
    (root / "b.txt").unlink()
    assert tree(root) == before


@pytest.mark.slow
def test_undo_of_some_files_leaves_the_others_and_the_rest_can_be_undone_later(root: Path, run_code_commit: Run):
    before = tree(root)
    response = f"{RESPONSE}^^^new/deep/other.txt\nother\n^^^end\n^^^gone/x.txt\nx\n^^^end\n"
    assert run_code_commit(root, "apply", "-", stdin=response).returncode == 0
    after = tree(root)
    done = run_code_commit(root, "undo", "--path", "old.txt", "--path", "none/")
    assert "--path none/ matches none of the files that " in done.stderr
    assert (done.returncode, "gone/x.txt, new/deep/file.sh, new/deep/other.txt, ok.txt" in done.stderr) == (2, True)
    done = run_code_commit(root, "undo", "--path", "old.txt", "--path", "*.sh", "--path", "gone/")
    assert (done.returncode, "Put back the files that --path names of" in done.stderr) == (0, True), done.stderr
    again = run_code_commit(root, "undo", latest(root)["undoes"], "--path", "old.txt")
    told = f"Nothing to put back: every file that --path names is as it was before {latest(root)['undoes']}."
    assert (again.returncode, told in again.stderr) == (0, True), again.stderr
    kept = {"ok.txt", "new", "new/deep", "new/deep/other.txt"}
    assert tree(root) == {name: after[name] for name in after if name in kept or name in before} | {
        "old.txt": before["old.txt"]
    }
    assert run_code_commit(root, "undo").returncode == 0
    assert tree(root) == before


def test_nothing_to_undo_ends_with_2(root: Path, run_code_commit: Run):
    done = run_code_commit(root, "undo")
    assert done.returncode == 2
    assert "nothing to undo" in done.stderr


def test_the_latest_of_many_runs_in_one_second_is_undone(root: Path, run_code_commit: Run):
    for number in range(3):
        assert run_code_commit(root, "apply", "-", stdin=f"^^^f{number}.txt\nx\n^^^end\n").returncode == 0
    assert run_code_commit(root, "undo").returncode == 0
    assert sorted(path.name for path in root.glob("f*.txt")) == ["f0.txt", "f1.txt"]


def apply(root: Path, run_code_commit: Run, name: str) -> Path:
    """Apply an answer that makes a file; return the log of it."""
    before = set((root / "agent-config/logs").glob("*"))
    assert run_code_commit(root, "apply", "-", stdin=f"^^^{name}\nx\n^^^end\n").returncode == 0
    (log,) = set((root / "agent-config/logs").iterdir()) - before
    return log


@pytest.mark.slow
@pytest.mark.parametrize("later", ["2126-11-22-10-00-00-committing-code", "2126-11-22-10-00-00-committing-code-9"])
def test_the_latest_run_is_undone_when_the_clock_went_back(later, root: Path, run_code_commit: Run):
    log = apply(root, run_code_commit, "a.txt")
    log.rename(log.with_name(later))
    for odd in ("9999 notes of mine", "2999-01-01-committing-code"):
        log.with_name(odd).mkdir()
    names = [apply(root, run_code_commit, name).name for name in ("b.txt", "c.txt")]
    next_names = ("00-committing-code-2", "00-committing-code-3")
    if later.endswith("-9"):
        next_names = ("01-committing-code", "01-committing-code-2")
    assert names == [f"2126-11-22-10-00-{name}" for name in next_names]
    rows = [line.split()[0] for line in run_code_commit(root, "log").stdout.splitlines()]
    assert rows[2:] == [name.replace("-committing-code", "") for name in names]
    assert not json.loads((log.with_name(names[1]) / "run.json").read_text())["started"].startswith("2126")
    assert run_code_commit(root, "undo").returncode == 0
    assert sorted(path.name for path in root.glob("[abc].txt")) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("command", ["run", "apply"])
def test_a_dry_run_changes_nothing_and_prints_a_diff_that_git_applies(command, root: Path, run_code_commit: Run):
    before = tree(root)
    arguments = recorded(root, RESPONSE) if command == "run" else ["apply", "-"]
    done = run_code_commit(root, *arguments, "--dry-run", stdin=RESPONSE if command == "apply" else "")
    assert done.returncode == 0, done.stderr
    assert tree(root) == before
    assert latest(root)["totals"]["files_changed"] == 0
    subprocess.run(["git", "apply", "-"], input=done.stdout.encode(), cwd=root, check=True)
    assert (root / "ok.txt").read_text() == "ok\n"
    assert not (root / "old.txt").exists()
    assert (root / "new/deep/file.sh").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        (RESPONSE, []),
        ("^^^ok.txt\n^^^find\nnot yet\n^^^replace\nok\n^^^end\n", ["--answer-format", "auto"]),
    ],
)
def test_what_a_dry_run_would_apply_is_applied_by_the_command_that_it_names(
    answer, options, root: Path, run_code_commit: Run
):
    done = run_code_commit(root, *recorded(root, answer), "--dry-run", *options)
    (command,) = re.findall("^ *To apply it: code-commit (.*)$", done.stderr, re.MULTILINE)
    done = run_code_commit(root, *command.split())
    assert (done.returncode, (root / "ok.txt").read_text()) == (0, "ok\n"), done.stderr


def test_an_undo_of_a_dry_run_names_the_run_that_can_be_undone(root: Path, run_code_commit: Run):
    answer = "^^^ok.txt\nok\n^^^end\n"
    for more in (["--dry-run"], [], ["--dry-run"]):
        assert run_code_commit(root, *recorded(root, answer), *more).returncode == 0
    first, second, _ = sorted(path.name for path in (root / "agent-config/logs").iterdir())
    for name, told in {"-1": f"; code-commit undo {second} undoes the latest run that did\n", first: "undoes"}.items():
        done = run_code_commit(root, "undo", name)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert run_code_commit(root, "undo").returncode == 0
    done = run_code_commit(root, "undo", "-2")
    assert (done.returncode, done.stderr.endswith(" changed no file: there is nothing to undo\n")) == (2, True)


def test_a_dry_run_asks_once(root: Path, run_code_commit: Run):
    done = run_code_commit(root, *recorded(root, "no blocks", RESPONSE), "--dry-run")
    assert done.returncode == 4
    assert done.stdout == ""
    assert "rejected\n  See: code-commit log --open.\n" in done.stderr


@pytest.mark.parametrize("command", ["run", "apply"])
def test_a_dry_run_says_that_the_answer_changes_nothing(command, root: Path, run_code_commit: Run):
    same = f"^^^ok.txt\n{(root / 'ok.txt').read_text()}^^^end\n"
    arguments = recorded(root, same) if command == "run" else ["apply", "-"]
    done = run_code_commit(root, *arguments, "--dry-run", stdin=same if command == "apply" else "")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "the answer would change nothing" in done.stderr


def test_a_dry_run_on_a_terminal_is_coloured_and_escaped(root: Path):
    import pty

    arguments = [*CODE_COMMIT, "apply", "--dry-run", "--as-sent", str(root / "agent-config" / "answer")]
    (root / "agent-config" / "answer").write_text("^^^ok.txt\nok \x1b]0;title\x07\n^^^end\n")
    terminal, inner = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(arguments, cwd=root, stdout=inner, stderr=subprocess.DEVNULL, env=environment)
    os.close(inner)
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # Linux says so that the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(terminal)
    assert process.wait() == 0
    assert b"\x1b[32m" in shown
    assert b"\x1b]0;" not in shown
    assert b"\\x1b]0;title\\x07" in shown


@pytest.mark.parametrize(
    ("answers", "code"), [([WRONG, WRONG, WRONG, WRONG], 1), ([WRONG, "no blocks", "no", "no"], 4), ([WRONG], 3)]
)
def test_rollback_restores_files_when_no_build_passed(answers, code, root: Path, run_code_commit: Run):
    before = tree(root)
    done = run_code_commit(root, *recorded(root, *answers), "--rollback")
    assert done.returncode == code, done.stderr
    assert tree(root) == before
    assert "rolled back" in done.stderr
    assert "Review" not in done.stderr
    assert code != 1 or done.stderr.index("rolled back") < done.stderr.index("The build still fails")
    record = latest(root)
    assert (record["rolled_back"], record["totals"]["files_changed"]) == (True, 0)


def test_an_answer_that_changes_nothing_counts_for_nothing(root: Path, run_code_commit: Run):
    (root / "build.sh").write_text("#!/bin/sh\ntrue\n")
    (root / "ok.txt").write_text("ok\r\n")
    before = tree(root)
    done = run_code_commit(root, *recorded(root, "^^^ok.txt\nok\n^^^end\n"))
    assert (done.returncode, tree(root)) == (0, before), done.stderr
    assert "the answer changes nothing" in done.stderr
    assert ": 0 files changed in" in done.stderr
    assert "Review" not in done.stderr
    record = latest(root)
    assert (record["attempts"][0]["changes"], record["totals"]["files_changed"]) == ([], 0)
    assert "the answer changes nothing" in run_code_commit(root, "log", record["run"]).stdout


def test_rollback_keeps_what_built(root: Path, run_code_commit: Run):
    assert run_code_commit(root, *recorded(root, WRONG, RESPONSE), "--rollback").returncode == 0
    assert (root / "ok.txt").read_text() == "ok\n"
    assert latest(root)["rolled_back"] is False


def test_a_second_run_in_a_tree_names_the_first(root: Path, run_code_commit: Run, start_code_commit: Start):
    (root / "build.sh").write_text("#!/bin/sh\necho started\nsleep 300\n")
    process = start_code_commit(root, *recorded(root, RESPONSE))
    wait_for(lambda: list((root / "agent-config" / "logs").glob("*/1-build.txt")))
    for arguments in (["--model", "replay:agent-config/recorded"], ["apply", "-"], ["undo"]):
        done = run_code_commit(root, *arguments, stdin=RESPONSE)
        assert done.returncode == 2
        assert str(process.pid) in done.stderr
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=180) == 128 + signal.SIGTERM


def test_rollback_puts_back_what_the_build_has_changed_too(root: Path, run_code_commit: Run):
    (root / "build.sh").write_text("#!/bin/sh\nchmod +x new.txt; echo formatted >> ok.txt; exit 1\n")
    git(root, "commit", "-qam", "a build that formats")
    before = tree(root)
    done = run_code_commit(root, *recorded(root, WRONG), "--rollback", "--max-repairs", "0")
    assert done.returncode == 1
    assert tree(root) == before


def test_undo_passes_over_a_run_that_was_rolled_back(root: Path, run_code_commit: Run):
    assert run_code_commit(root, "apply", "-", stdin="^^^kept.txt\nx\n^^^end\n").returncode == 0
    assert run_code_commit(root, *recorded(root, WRONG), "--rollback", "--max-repairs", "0").returncode == 1
    assert run_code_commit(root, "undo").returncode == 0
    assert not (root / "kept.txt").exists()


@pytest.mark.slow
def test_undo_and_diff_pass_over_runs_that_applied_nothing(root: Path, run_code_commit: Run):
    apply(root, run_code_commit, "kept.txt")
    assert run_code_commit(root, "apply", "-", stdin="no blocks").returncode == 4
    rejected = latest(root)["run"]
    assert run_code_commit(root, "apply", "-", "--dry-run", stdin="^^^kept.txt\ny\n^^^end\n").returncode == 0
    dry = latest(root)["run"]
    shown = run_code_commit(root, "diff")
    assert (shown.returncode, "+++ b/kept.txt" in shown.stdout) == (0, True)
    assert run_code_commit(root, *recorded(root, WRONG), "--rollback", "--max-repairs", "0").returncode == 1
    done = run_code_commit(root, "undo")
    assert (done.returncode, (root / "kept.txt").exists()) == (0, False), done.stderr
    short = [name.replace("-committing-code", "") for name in (dry, rejected)]
    passed = f"skipped (nothing applied): {short[0]} (dry run), "
    assert passed in shown.stderr
    assert passed in done.stderr
    assert f"{short[1]} (rejected)" in done.stderr


@pytest.mark.slow
def test_undo_refuses_an_answer_that_changed_nothing_and_names_the_run_before(root: Path, run_code_commit: Run):
    apply(root, run_code_commit, "kept.txt")
    before = latest(root)["run"]
    text = (root / "kept.txt").read_text()
    assert run_code_commit(root, "apply", "-", stdin=f"^^^kept.txt\n{text}^^^end\n").returncode == 0
    done = run_code_commit(root, "undo")
    assert (done.returncode, (root / "kept.txt").exists()) == (2, True)
    assert (
        f"{latest(root)['run']}, the latest run that applied an answer, changed no file; "
        f"to undo the run before it, run code-commit undo {before}" in done.stderr
    )


def test_undo_refuses_answers_that_took_one_another_back_and_names_the_run_before(root: Path, run_code_commit: Run):
    apply(root, run_code_commit, "kept.txt")
    before, content = latest(root)["run"], (root / "ok.txt").read_text()
    git(root, "add", "-A")
    git(root, "commit", "-qm", "kept")
    answers = [f"^^^ok.txt\n{text}^^^end\n" for text in ("no\n", "nor\n", content)]
    ended = run_code_commit(root, *recorded(root, *answers), "--max-repairs", "2")
    assert (ended.returncode, latest(root)["totals"]["files_changed"]) == (1, 0)
    assert "git diff does not show" not in ended.stderr, "there is nothing to show"
    run, found = latest(root)["run"], tree(root)
    for _ in range(2):
        done = run_code_commit(root, "undo")
        told = f"{run}, the latest run that applied an answer, changed no file in the end; to undo the run before it, "
        assert (done.returncode, f"{told}run code-commit undo {before}" in done.stderr) == (2, True), done.stderr
        assert tree(root) == found
    assert run_code_commit(root, "undo", "--attempt", "3").returncode == 0
    assert (root / "ok.txt").read_text() == "nor\n"


def test_undo_beside_a_process_that_has_not_changed_anything_names_the_process(root: Path, run_code_commit: Run):
    from code_commit.apply.lock import lock_tree
    from code_commit.project import find_project

    with lock_tree(find_project(root)):
        done = run_code_commit(root, "undo")
    assert done.returncode == 2
    assert f"process {os.getpid()} is running code-commit in this tree" in done.stderr


@pytest.mark.parametrize("exit_code", [1, 2])
def test_an_undo_that_is_refused_writes_nothing(exit_code: int, root: Path, run_code_commit: Run):
    folder = root / "agent-config"
    if exit_code == 1:
        apply(root, run_code_commit, "kept.txt")
        (root / "kept.txt").write_text("changed since\n")
        (folder / ".lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}
    assert run_code_commit(root, "undo").returncode == exit_code
    assert {path: path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))} == before


def test_a_project_whose_path_is_not_utf_8_has_a_log(root: Path, run_code_commit: Run):
    odd = root.rename(os.fsdecode(os.fsencode(root) + b"\xff"))
    assert run_code_commit(odd, "apply", "-", stdin=RESPONSE).returncode == 0
    assert "success" in run_code_commit(odd, "log").stdout


A, AGAIN = "^^^a.txt\none\n^^^end\n^^^b.txt\none\n^^^end\n", "^^^a.txt\ntwo\n^^^end\n^^^ok.txt\nok\n^^^end\n"


def edited_during_the_build(root: Path, edit: str) -> list[str]:
    """Let the first build of the project wait for the user's edit, or make it itself."""
    (root / "build.sh").write_text(f"#!/bin/sh\ngrep -qx ok ok.txt && exit\n{edit}\nexit 1\n")
    git(root, "commit", "-qam", "a build")
    return [*recorded(root, A, AGAIN), "--sandbox", "off"]


@pytest.mark.slow
@pytest.mark.parametrize("who", ["build", "user"])
def test_an_edit_that_the_next_answer_overwrites_is_named_and_can_be_brought_back(
    who: str, root: Path, run_code_commit: Run
):
    before = tree(root)
    wait = "while ! [ -e edited ]; do sleep 0.05; done; rm edited"
    options = edited_during_the_build(root, "echo mine > a.txt" if who == "build" else f"touch building; {wait}")
    if who == "user":
        process = subprocess.Popen([*CODE_COMMIT, *options], cwd=root, stderr=subprocess.PIPE, text=True)
        wait_for((root / "building").exists)
        (root / "a.txt").write_text("mine\n")
        (root / "building").unlink()
        (root / "edited").touch()
        said = process.communicate(timeout=180)[1]
    else:
        said = run_code_commit(root, *options).stderr
    run = latest(root)["run"].replace("-committing-code", "")
    assert "warning: attempt 2 overwrote a.txt, which had been changed after an earlier attempt (by the build" in said
    assert f"code-commit undo {run} --attempt 2 brings that back" in said
    (warning,) = (warning for warning in latest(root)["warnings"] if warning["kind"] == "overwritten")
    assert warning["path"] == "a.txt"
    after = tree(root)

    done = run_code_commit(root, "undo", run, "--attempt", "2")
    assert (done.returncode, "Put back attempt 2 and later of" in done.stderr) == (0, True), done.stderr
    assert [(root / name).read_text() for name in ("a.txt", "b.txt", "ok.txt")] == ["mine\n", "one\n", "not yet\n"]
    assert run_code_commit(root, "undo", latest(root)["run"]).returncode == 0
    assert tree(root) == after
    done = run_code_commit(root, "undo", run, "--attempt", "2", "--path", "a.txt")
    assert (done.returncode, (root / "a.txt").read_text(), (root / "ok.txt").read_text()) == (0, "mine\n", "ok\n")
    assert run_code_commit(root, "undo", latest(root)["run"]).returncode == 0
    assert run_code_commit(root, "undo", run).returncode == 0
    assert tree(root) == before | {"build.sh": tree(root)["build.sh"]}


@pytest.mark.slow
def test_what_an_earlier_attempt_left_can_be_had_again(root: Path, run_code_commit: Run):
    """No edit came between: what the first answer wrote is no original of the project."""
    words = edited_during_the_build(root, "sed -i 's/$/ /' a.txt")
    assert run_code_commit(root, *words).returncode == 0
    kinds = {warning["kind"] for warning in latest(root)["warnings"]}
    assert "overwritten" not in kinds, "a formatter's white space is nobody's work"
    assert run_code_commit(root, "undo", "--attempt", "2").returncode == 0
    assert [(root / name).read_text() for name in ("a.txt", "b.txt", "ok.txt")] == ["one \n", "one\n", "not yet\n"]
    (root / "a.txt").write_text("mine\n")
    assert run_code_commit(root, "undo", "-2").returncode == 1
    (root / "a.txt").write_text("one \n")
    done = run_code_commit(root, "undo", "-2")
    assert (done.returncode, (root / "a.txt").exists()) == (0, False), done.stderr
    done = run_code_commit(root, "undo", "-3", "--attempt", "3")
    assert (done.returncode, "changed no file: attempts 1, 2 did" in done.stderr) == (2, True), done.stderr


def test_an_answer_that_changed_nothing_left_no_transaction_to_undo(tmp_path: Path):
    changes = [[AppliedChange("a", "create", 1, 1, 0)], [], [AppliedChange("a", "replace", 2, 1, 1)]]
    attempts = [Attempt(n, "initial", verdict="applied", changes=each) for n, each in enumerate(changes, start=1)]
    record = RunRecord("1", "r", "run", "2026-11-21T19:51:35Z", "/", "", 1, attempts=attempts)
    (tmp_path / "run.json").write_bytes(Redactor(()).redact_json(record))
    assert [transactions_before(number, tmp_path) for number in (1, 3)] == [0, 1]
    with pytest.raises(NotSetUpError, match=r"attempt 2 of .* changed no file: attempts 1, 3 did"):
        transactions_before(2, tmp_path)


@pytest.fixture
def runs(project_folder: Path) -> Iterator[Callable[..., RunLog]]:
    """Make the log of a run, the latest, whose record has these facts; the runs of a test have changed the file `a`."""
    project, progress = find_project(project_folder), Progress(Redactor(()), quiet=True)

    def make(**facts) -> RunLog:
        log = open_run_log(project, "undo" if facts.get("undoes") else "run", Settings(), progress)
        for name, value in facts.items():
            setattr(log.record, name, value)
        (log.snapshot / "changes-1.json").parent.mkdir()
        (log.snapshot / "changes-1.json").touch()
        log.finish(Status.SUCCESS)
        return log

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(undo, "find_changed", lambda _, since=0: [["a", "b"], ["b"]][since])
        patch.setattr(undo, "changed_since", lambda *_: ["a"])
        yield make


def test_an_undo_is_of_the_attempts_and_files_that_are_named(runs, monkeypatch, project_folder: Path):
    change, done = AppliedChange("a", "replace", 1, 1, 1), []
    attempts = [Attempt(n, "initial", verdict="applied", changes=[change]) for n in (1, 2)]
    target = runs(attempts=attempts)
    for name in ("plan_undo", "restore"):
        monkeypatch.setattr(undo, name, lambda *words, _name=name, **more: done.append((_name, *words, more)) or [])
    project, progress, since = find_project(project_folder), Progress(Redactor(()), quiet=True), UndoScope({"b"}, 1)
    record = undo.undo_run(project, undo.Arguments(path=("b",), attempt=2, force=True), progress)
    here, log = target.folder / "snapshot", project_folder / record.log_dir / "snapshot"
    assert done == [
        *[("plan_undo", here, project, since, {"force": True})] * 2,
        ("restore", here, project, log, {"force": True, "scope": since}),
    ]
    told = f"nothing to put back: every file that --path names is as it was before attempt 2 of {target.folder.name}"
    assert (record.message, record.undoes) == (told, target.folder.name)
    assert not load_run_record((target.folder / "run.json").read_bytes()).undone, "a part of it"
    with pytest.raises(NotSetUpError, match=r"matches none of the files that .* changed: b$"):
        undo.undo_run(project, undo.Arguments(run=target.folder.name, path=("a",), attempt=2), progress)


def test_each_run_of_a_chain_of_undos_is_undone_or_in_the_tree_again(runs):
    first = runs()
    second = runs(undoes=first.folder.name)
    third = runs(undoes=second.folder.name)
    for chain, undone, said in (
        ([second, first], [True, False], "took back are in the tree again"),
        ([third, second, first], [True, False, True], "brought back are no longer in the tree"),
    ):
        found = undo._chain(chain[0].folder)
        assert [folder for folder, _ in found] == [log.folder for log in chain]
        undo._mark(found, chain[0])
        records = [load_run_record((log.folder / "run.json").read_bytes()) for log in chain]
        assert [record.undone for record in records] == undone
        told = f"undid {chain[0].folder.name}, an undo: the changes of {first.folder.name} that it {said}"
        assert undo._say_what_was_done(chain[0].folder.name, found) == told


@pytest.mark.parametrize(
    ("facts", "path", "is_named"), [({}, "b", True), ({}, "a", False), ({}, "c", False), ({"undone": True}, "b", False)]
)
def test_the_run_that_changed_a_file_later_is_named_where_it_stands(facts, path, is_named, runs, project_folder: Path):
    _, target, later = runs(), runs(), runs(**facts)
    named = undo._find_later(find_project(project_folder), target.folder, [path])
    assert named == (short_name(later.folder.name) if is_named else "")
