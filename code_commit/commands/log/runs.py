"""The runs that the log folder holds, read from their run.json."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from code_commit.errors import NotSetUpError
from code_commit.files import read_regular_file
from code_commit.project import AGENT_CONFIG, Project, log_folders
from code_commit.run_record import SCHEMA_VERSION, RunRecord, load_run_record
from code_commit.terminal import shown


@dataclass(frozen=True, slots=True)
class UnreadableRun:
    """A log folder without a run.json that this version reads; `why` says what is the matter with it."""

    run: str
    why: str


def read_runs(project: Project) -> list[RunRecord | UnreadableRun]:
    """Return all runs, oldest first."""
    return [_read(folder) for folder in log_folders(project)]


def list_runs(project: Project) -> list[RunRecord]:
    """Return the records of all runs that can be read, oldest first."""
    return [run for run in read_runs(project) if isinstance(run, RunRecord)]


def find_run(project: Project, name: str) -> RunRecord:
    """Return the record of the run whose name begins with `name`, the latest of several. Raises NotSetUpError."""
    runs = [run for folder in log_folders(project) if (run := _read(folder)).run.startswith(name)]
    if not runs:
        raise NotSetUpError(
            f"there is no run {shown(name)}: code-commit log lists them" if name else "there is no run yet"
        )
    if isinstance(runs[-1], UnreadableRun):
        at = f"{AGENT_CONFIG}/{project.logs.name}/{shown(runs[-1].run)}"
        raise NotSetUpError(f"{shown(runs[-1].run)} cannot be shown: {runs[-1].why}; its files are in {at}")
    return runs[-1]


def status_of(record: RunRecord) -> str:
    """Return the run's status, `killed` where it was running and its process is gone."""
    return "killed" if record.status == "running" and not _is_alive(record.pid) else record.status


def _read(folder: Path) -> RunRecord | UnreadableRun:
    try:
        content = read_regular_file(folder / "run.json")
    except OSError as error:
        return UnreadableRun(folder.name, f"its run.json cannot be read: {error.strerror}")
    try:
        record = load_run_record(content)
    except ValueError:
        return UnreadableRun(folder.name, _explain(content))
    if record.schema_version > SCHEMA_VERSION:
        return UnreadableRun(folder.name, _explain(content))
    return record


def _explain(content: bytes) -> str:
    try:
        found = json.loads(content)
        schema, version = found["schema_version"], found["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "its run.json is damaged"
    if isinstance(schema, int) and schema > SCHEMA_VERSION:
        return f"code-commit {shown(str(version))} wrote it (schema {schema}, this version reads {SCHEMA_VERSION})"
    return "its run.json is damaged"


def _is_alive(pid: int) -> bool:
    if pid <= 0:  # a process group's name, not a process's
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
