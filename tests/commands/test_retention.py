"""What `keep_runs` and `keep_days` no longer keep of the log, and what stays all the same."""

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, recorded
from page_runs import recorded_run

STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(STRACE is None, reason="strace is not installed")

SUFFIX = "-committing-code"
RIGHT, REJECTED = "^^^ok.txt\nok\n^^^end\n", "I cannot."


def configure(root: Path, text: str) -> None:
    (root / "agent-config/config.toml").write_text(text)


def names(root: Path) -> list[str]:
    return sorted(folder.name.replace(SUFFIX, "") for folder in (root / "agent-config/logs").iterdir())


@pytest.fixture
def latest(project_folder: Path, run_code_commit: Run) -> Path:
    """The log folder of a run that changed a file."""
    return recorded_run(project_folder, run_code_commit, [RIGHT])


def older(latest: Path, name: str, **fields: object) -> Path:
    """Make a run of the log that began before."""
    folder = latest.with_name(name + SUFFIX)
    shutil.copytree(latest, folder)
    record = json.loads((folder / "run.json").read_text()) | {"run": folder.name} | fields
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


KINDS = {
    "2026-01-01-00-00-00": ({}, ""),
    "2026-01-01-00-00-00-2": ({"status": "rejected"}, ""),
    "2026-01-02-00-00-00": ({"status": "llm_error"}, "did not end"),
    "2026-01-03-00-00-00": ({"status": "interrupted"}, "did not end"),
    "2026-01-04-00-00-00": ({"status": "interrupted", "rolled_back": True}, ""),
    "2026-01-05-00-00-00": ({"status": "running", "finished": None, "pid": 2**22 - 3}, "did not end"),
    "2026-01-06-00-00-00": ({"command": "undo", "status": "running", "finished": None}, "did not end"),
    "2026-01-07-00-00-00": ({"schema_version": 99}, "cannot be read"),
    "2026-01-08-00-00-00": ({"undone": True}, "an undo put back"),
    "2026-01-08-12-00-00": ({"undone": True}, ""),
    "2026-01-09-00-00-00": ({}, "undo takes back next"),
    "2026-01-10-00-00-00": ({"command": "undo", "undoes": f"2026-01-08-12-00-00{SUFFIX}"}, ""),
}  # fmt: skip
"""By its name a run of the log, from the oldest on, and why it stays."""


def test_prune_removes_what_ended_and_is_needed_by_nothing(latest: Path, run_code_commit: Run):
    root = latest.parents[2]
    folders = {name: older(latest, name, **fields) for name, (fields, _) in KINDS.items()}
    older(latest, "2026-01-11-00-00-00", command="undo", undoes=f"2026-01-08-00-00-00{SUFFIX}")
    shutil.rmtree(latest / "snapshot")  # as that of a run whose every answer was rejected
    going = [name for name, (_, why) in KINDS.items() if not why]
    unfinished = [name for name, (_, why) in KINDS.items() if why == "did not end"]
    size = sum(size_of(folders[name]) for name in going)
    before = names(root)

    assert run_code_commit(root, "log", "--prune").stderr.startswith("code-commit: all runs are kept: set keep_runs or")
    assert names(root) == before
    configure(root, "keep_runs = 2\n")
    first = run_code_commit(root, "log", "--prune")
    assert (first.returncode, first.stderr) == (0, "")
    assert names(root) == sorted(set(before) - set(going))
    said, *kept = first.stdout.splitlines()
    assert said == f"removed 5 runs, {size:,} bytes: {', '.join(going)}"
    assert sorted(kept) == [
        "kept 1 older run that an undo put back: 2026-01-08-00-00-00",
        "kept 1 older run that cannot be read: 2026-01-07-00-00-00",
        "kept 1 older run that undo takes back next: 2026-01-09-00-00-00",
        f"kept 4 older runs that did not end: {', '.join(unfinished)}",
    ]
    assert run_code_commit(root, "log", "--prune").stdout.startswith("removed 0 runs, 0 bytes\nkept ")


def test_what_is_older_than_keep_days_goes_but_for_the_latest(latest: Path, run_code_commit: Run):
    root = latest.parents[2]
    now = datetime.now(UTC)
    week, day, gone = ((now - timedelta(days=days)).strftime("%Y-%m-%d-%H-%M-%S") for days in (6.9, 1.1, 7.1))
    for name in (week, day, gone):
        older(latest, name)
    shutil.copytree(latest.with_name(gone + SUFFIX), latest.with_name(f"{gone}{SUFFIX}-2"))
    configure(root, "keep_days = 7\n")
    done = run_code_commit(root, "log", "--prune")
    assert done.stdout.splitlines()[0].endswith(f" bytes: {gone}, {gone}-2")
    assert sorted(names(root)) == [week, day, latest.name.replace(SUFFIX, "")]
    configure(root, "keep_days = 1\nkeep_runs = 100\n")
    run_code_commit(root, "log", "--prune")
    assert names(root) == [latest.name.replace(SUFFIX, "")]
    latest.rename(latest.with_name("2020-01-01-00-00-00" + SUFFIX))
    run_code_commit(root, "log", "--prune")
    assert names(root) == ["2020-01-01-00-00-00"]


@pytest.mark.slow
def test_a_run_that_begins_removes_older_ones_and_undo_goes_on(latest: Path, run_code_commit: Run):
    root = latest.parents[2]
    older(latest, "2026-01-01-00-00-00")
    configure(root, "keep_runs = 1\n")
    for _ in range(2):
        options = [*recorded(root, REJECTED), "--on-rejected", "stop", "--sandbox", "off"]
        assert run_code_commit(root, *options).returncode == 4
        assert len(names(root)) == 2, "itself, and the one that changed a file"
    assert run_code_commit(root, "undo", latest.name).returncode == 0
    assert (root / "ok.txt").read_text() == "not yet\n"


def test_no_link_is_followed(latest: Path, run_code_commit: Run, tmp_path: Path):
    root = latest.parents[2]
    elsewhere = older(latest, "2026-01-01-00-00-00").rename(tmp_path / "elsewhere")
    (latest.parent / f"2026-01-01-00-00-00{SUFFIX}").symlink_to(elsewhere)
    (older(latest, "2026-01-02-00-00-00") / "snapshot/elsewhere").symlink_to(elsewhere)
    whole = size_of(elsewhere)
    configure(root, "keep_runs = 1\n")
    assert run_code_commit(root, "log", "--prune").stdout.startswith("removed 2 runs, ")
    assert names(root) == [latest.name.replace(SUFFIX, "")]
    assert size_of(elsewhere) == whole


@pytest.mark.slow
@needs_strace
def test_killed_half_way_it_leaves_no_half_run_and_the_next_removes_the_rest(latest: Path, run_code_commit: Run):
    root = latest.parents[2]
    for day in range(1, 6):
        older(latest, f"2026-01-0{day}-00-00-00")
    configure(root, "keep_runs = 1\n")
    kill = [STRACE, "-f", "-qq", "-o", "/dev/null", "-e", "inject=unlinkat:signal=KILL:when=15"]
    subprocess.run([*kill, *CODE_COMMIT, "log", "--prune"], cwd=root, capture_output=True, timeout=180, check=False)
    half = [name for name in names(root) if name.startswith(".")]
    assert len(half) == 1
    shown = run_code_commit(root, "log")
    assert "unreadable" not in shown.stdout
    assert len(shown.stdout.splitlines()) == len(names(root))  # a row for each but the half one, and the head
    assert run_code_commit(root, "log", "--prune").returncode == 0
    assert names(root) == [latest.name.replace(SUFFIX, "")]


@pytest.mark.slow
@needs_strace
def test_the_snapshot_which_may_hold_a_key_goes_first(latest: Path, run_code_commit: Run):
    root = latest.parents[2]
    old = older(latest, "2026-01-01-00-00-00")
    assert {path.stat().st_mode & 0o777 for path in (old / "snapshot/originals").iterdir()} == {0o600}
    configure(root, "keep_runs = 1\n")
    removals = len([old, *(old / "snapshot").rglob("*")])
    kill = [STRACE, "-f", "-qq", "-o", "/dev/null", "-e", f"inject=unlinkat,rmdir:signal=KILL:when={removals}"]
    subprocess.run([*kill, *CODE_COMMIT, "log", "--prune"], cwd=root, capture_output=True, timeout=180, check=False)
    (half,) = root.glob("agent-config/logs/.removed-*")
    left, whole = ({path.relative_to(folder) for path in folder.rglob("*")} for folder in (half, latest))
    assert whole - left == {path for path in whole if "snapshot" in path.parts}


@pytest.mark.slow
@needs_strace
def test_what_cannot_be_removed_is_named_and_the_run_goes_on(latest: Path, run_code_commit: Run):
    root = latest.parents[2]
    older(latest, "2026-01-01-00-00-00")
    configure(root, "keep_runs = 1\n")
    refuse = [STRACE, "-f", "-qq", "-o", "/dev/null", "-e", "inject=unlinkat:error=EACCES"]
    options = [*recorded(root, REJECTED), "--on-rejected", "stop", "--sandbox", "off"]
    for arguments, code in ((["log", "--prune"], 5), (options, 4)):
        command = [*refuse, *CODE_COMMIT, *arguments]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == code, done.stderr
        assert f".removed-2026-01-01-00-00-00{SUFFIX} cannot be removed: " in done.stderr
        assert "Permission denied" in done.stderr
