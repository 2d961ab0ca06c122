"""The beginning of a run's log: a folder of its own, which no other run shares; or going on with one."""

import os
from datetime import UTC, datetime
from pathlib import Path

from code_commit.errors import NotSetUpError
from code_commit.json_documents import plain
from code_commit.project import LOG_FOLDER_SUFFIX, Project
from code_commit.redaction import Redactor
from code_commit.run_log.run_log import RunLog
from code_commit.run_record import Command, RunListener, RunRecord, utc_timestamp
from code_commit.settings import Settings
from code_commit.terminal import shown
from code_commit.version import __version__


def open_run_log(
    project: Project, command: Command, settings: Settings, redactor: Redactor, listener: RunListener
) -> RunLog:
    """Make the folder of a new run, which no other run shares, and its record. Raises NotSetUpError."""
    started = datetime.now(UTC)
    stem = started.strftime("%Y-%m-%d-%H-%M-%S")
    try:
        project.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = _make_folder(project.logs, stem)
    except OSError as error:
        raise NotSetUpError(f"the log folder {project.logs} cannot be written: {error.strerror}") from error
    record = RunRecord(
        version=__version__,
        run=folder.name,
        command=command,
        started=utc_timestamp(started),
        root=shown(str(project.root)),
        log_dir=str(folder.relative_to(project.root)),
        pid=os.getpid(),
        options=plain(settings._asdict()),
    )
    return RunLog(folder, record, redactor, listener)


def reopen_run_log(folder: Path, record: RunRecord, redactor: Redactor, listener: RunListener) -> RunLog:
    """Go on with the log of a run that was interrupted."""
    record.status, record.exit_code, record.message, record.finished = "running", None, None, None
    record.pid = os.getpid()
    return RunLog(folder, record, redactor, listener)


def _make_folder(logs: Path, stem: str) -> Path:
    """Make the run's folder; a second run within the same second gets a number behind the time."""
    number = 1
    while True:
        folder = logs / f"{stem}{f'-{number}' if number > 1 else ''}{LOG_FOLDER_SUFFIX}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            number += 1
        else:
            return folder
