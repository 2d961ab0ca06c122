"""The runs in the log folder: found by name, read from their run.json."""

import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from code_commit.errors import LogError, NotSetUpError
from code_commit.files import read_regular_file
from code_commit.project import LOG_FOLDER_SUFFIX, Project
from code_commit.regex import regex
from code_commit.runs.record import SCHEMA_VERSION, RunRecord, load_run_record
from code_commit.status import Status
from code_commit.terminal import shown

# the time, and the number within that second (before the suffix in older logs)
_LOG_FOLDER = regex(rf"(\d{{4}}(?:-\d\d){{5}})(?:-(\d+))?{LOG_FOLDER_SUFFIX}(?:-(\d+))?")
_MOMENT = "%Y-%m-%d-%H-%M-%S"
_MOST_IN_A_SECOND = 9
_DAY, _ASIDE = 24 * 3600, ".removed-"


class UnreadableRun(NamedTuple):
    run: str
    why: str


def find_run_folders(project: Project, name: str = "") -> list[Path]:
    """Return the log folders of all runs, oldest first, or of the run with this name: its beginning, `latest`, or `-1`,
    `-2` ... from the end, not counting choices of files before a run. Raises NotSetUpError unless one run has the name.
    """
    folders = [project.logs / folder for _, folder in _ordered(project.logs)]
    if not name:
        return folders
    if name == "latest" or re.fullmatch(r"-[1-9]\d{0,8}", name):
        back = 1 if name == "latest" else int(name[1:])
        runs = (folder for folder in reversed(folders) if not getattr(read_run(folder), "is_auxiliary", False))
        found = next(islice(runs, back - 1, None), folders[-1] if folders and back == 1 else None)
        if not found:
            none = "there is no run yet: code-commit -m TEXT begins one"
            raise NotSetUpError(f"there is no run {name}: the log has {len(folders)} of them" if folders else none)
        return [found]
    folders = [folder for folder in folders if folder.name.startswith(name) or short_name(folder.name).startswith(name)]
    if not folders:
        hint = "; for the latest run: latest" if name == "last" else ": code-commit log lists the runs"
        raise NotSetUpError(f"there is no run {shown(name)}{hint}")
    exact = [folder for folder in folders if name in (folder.name, short_name(folder.name))]
    if not exact and len(folders) > 1:
        names = ", ".join(short_name(folder.name) for folder in folders[-3:])
        raise NotSetUpError(f"{len(folders)} runs begin with {shown(name)}: name one of them, such as {names}")
    return exact or folders


def short_name(run: str) -> str:
    """Return the name that users type for a run, `2026-11-21-19-51-35` or `2026-11-21-19-51-35-2`."""
    return run.replace(LOG_FOLDER_SUFFIX, "")


def next_run_name(project: Project, started: datetime) -> str:
    """Return the name of a new run's folder: the time in UTC, with a number or the next second to be the latest."""
    moment, number = started.strftime(_MOMENT), 1
    if (runs := _ordered(project.logs)) and runs[-1][0] >= (moment, number):
        moment, number = runs[-1][0][0], runs[-1][0][1] + 1
        with suppress(ValueError, OverflowError):  # the latest's name is no time, or the last one that there is
            if number > _MOST_IN_A_SECOND:
                later = datetime.strptime(f"{moment}+0000", f"{_MOMENT}%z") + timedelta(seconds=1)
                moment, number = later.strftime(_MOMENT), 1
    return f"{moment}{LOG_FOLDER_SUFFIX}{f'-{number}' if number > 1 else ''}"


def argument_of(folder: Path) -> str:
    """Return the argument that names the run of this log folder, "" for the latest."""
    runs = _ordered(folder.parent)
    return f" {short_name(folder.name)}" if runs and runs[-1][1] != folder.name else ""


def is_earlier(name: str, than: str) -> bool:
    return _LOG_FOLDER.fullmatch(name) is not None and _order(name) < _order(than)


def _order(name: str) -> tuple[str, int]:
    match = _LOG_FOLDER.fullmatch(name)
    return (match[1], int(match[2] or match[3] or 1)) if match else ("", 0)


def _ordered(logs: Path) -> list[tuple[tuple[str, int], str]]:
    """Return the names of all log folders, oldest first, each with its time and number."""
    names = [folder.name for folder in logs.glob("*")]
    return sorted((_order(name), name) for name in names if _LOG_FOLDER.fullmatch(name))


def find_run(project: Project, name: str) -> tuple[Path, RunRecord]:
    """Return the named or latest run: its folder and its record. Raises NotSetUpError."""
    folder = find_run_folders(project, name or "latest")[-1]
    run = read_run(folder)
    if isinstance(run, UnreadableRun):
        at = shown(str(folder.relative_to(project.root)))
        raise NotSetUpError(f"{shown(run.run)} cannot be shown: {run.why}; its files are in {at}")
    return folder, run


def read_run(folder: Path) -> RunRecord | UnreadableRun:
    try:
        record = load_run_record(read_regular_file(folder / "run.json"))
    except OSError as error:
        return UnreadableRun(folder.name, f"its run.json cannot be read: {error.strerror}")
    except ValueError:
        return UnreadableRun(folder.name, "its run.json is damaged, or a newer code-commit wrote it")
    if record.schema_version > SCHEMA_VERSION:
        schemas = f"(schema {record.schema_version}, this version reads {SCHEMA_VERSION})"
        return UnreadableRun(folder.name, f"code-commit {shown(record.version)} wrote it {schemas}")
    return record


def status_of(record: RunRecord) -> Status:
    """Return the run's status: `killed` if it ran and its process is gone, `not_approved` if the user said no."""
    rejections = record.attempts[-1].rejections if record.attempts else ()
    if record.status == Status.REJECTED and any(why.rule == "not-approved" for why in rejections):
        return Status.NOT_APPROVED
    is_killed = record.status == Status.RUNNING and not _is_alive(record.pid, record.process_start)
    return Status.KILLED if is_killed else record.status


def _is_alive(pid: int, start: str) -> bool:
    if pid <= 0:  # the id of a process group
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        pass
    except (ProcessLookupError, OverflowError):
        return False
    return not start or process_start(pid) in (start, "")


def process_start(pid: int) -> str:
    """Return the start of a process: the boot and the ticks since; "" without /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return f"{boot} {fields[19].decode()}"  # field 22 in proc_pid_stat(5); the second may hold blanks


def is_standing(folder: Path) -> bool:
    """Tell whether a run is not an undo and was neither undone nor rolled back."""
    run = read_run(folder)
    if isinstance(run, UnreadableRun):
        return changed_files(folder)
    return run.command != "undo" and not run.is_auxiliary and not run.taken_back


def pass_over_idle(folders: Sequence[Path]) -> tuple[Path, list[RunRecord]] | None:
    """Return the latest of these runs but for those that applied nothing (dry, rejected, declined, without an answer),
    and those, the latest first; None where there is no other.
    """
    idle: list[RunRecord] = []
    for folder in reversed(folders):
        run = read_run(folder)
        if changed_files(folder) or isinstance(run, UnreadableRun) or run.applies:
            return folder, idle
        if not run.is_auxiliary:
            idle.append(run)
    return None


def name_idle(idle: Sequence[RunRecord]) -> str:
    """Return the runs that were passed over, with why: `2026-11-21-19-51-35 (rejected)`; "" for none."""
    endings = (Status.DRY_RUN if run.options.get("dry_run") else status_of(run) for run in idle)
    return ", ".join(f"{short_name(run.run)} ({ending.words})" for run, ending in zip(idle, endings, strict=True))


def changed_files(folder: Path) -> bool:
    return (folder / "snapshot" / "changes-1.json").exists()


class Removal(NamedTuple):
    """The removed runs and the bytes of their files, the old runs `kept` by reason, and the failures."""

    runs: list[str]
    size: int
    kept: dict[str, list[str]]
    failures: list[LogError]


def remove_old_runs(project: Project, keep_runs: int, keep_days: int) -> Removal:
    """Remove the runs before the latest `keep_runs`, and those older than `keep_days` (0: none), but not the latest.
    The caller holds the tree's lock; a folder is renamed before it is removed, and interrupted removals are finished.
    """
    folders = find_run_folders(project)
    too_many = len(folders) - keep_runs if keep_runs else 0
    oldest = datetime.fromtimestamp(max(0, time.time() - keep_days * _DAY), UTC).strftime(_MOMENT)
    too_old = sum(folder.name < oldest for folder in folders) if keep_days else 0
    first = max(0, min(max(too_many, too_old), len(folders) - 1))
    going, staying, kept = [*project.logs.glob(f"{_ASIDE}*")], folders[first:], dict[str, list[str]]()
    undoable = (folder for folder in reversed(folders) if changed_files(folder) and is_standing(folder))
    next_undone = next(undoable, None) if first else None
    for folder in reversed(folders[:first]):
        why = "undo takes back next" if folder == next_undone else _why_it_stays(folder, staying)
        (staying if why else going).append(folder)
        if why:
            kept.setdefault(why, []).append(folder.name)
    removed, size, failures = [], 0, []
    for folder in reversed(going):
        aside = folder.with_name(_ASIDE + folder.name.removeprefix(_ASIDE))
        try:
            folder.rename(aside)
            size += _remove(aside)
            removed.append(folder.name.removeprefix(_ASIDE))
        except OSError as error:
            failures.append(LogError(aside if os.path.lexists(aside) else folder, error, "removed"))
    return Removal(removed, size, kept, failures)


def _why_it_stays(folder: Path, later: Sequence[Path]) -> str:
    """Return the reason to keep an old run, "" for a run to remove."""
    run = read_run(folder)
    if isinstance(run, UnreadableRun):
        return "cannot be read"
    if run.finished is None or (run.has_next_step and not run.taken_back):
        return "did not end"
    undos = (read_run(other) for other in later) if run.undone else ()
    return "an undo put back" if any(getattr(undo, "undoes", "") == folder.name for undo in undos) else ""


def _remove(folder: Path) -> int:
    """Remove a folder, its unredacted snapshot first, or a link; return its files' bytes. Raises OSError."""
    if folder.is_symlink():
        folder.unlink()
        return 0
    size = sum(Path(at, name).lstat().st_size for at, _, names in os.walk(folder) for name in names)
    snapshot = folder / "snapshot"
    if snapshot.is_dir() and not snapshot.is_symlink():
        shutil.rmtree(snapshot)
    shutil.rmtree(folder)
    return size
