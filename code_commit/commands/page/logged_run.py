"""One run as its log has it."""

from dataclasses import dataclass
from pathlib import Path

from code_commit.redaction import Redactor
from code_commit.run_record import RunRecord


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """A run's record and where its log is.

    `status` is the record's, `killed` where it was running and its process is gone. What is read from the log folder,
    the snapshot and the project at `root` goes through the redactor before it is shown.
    """

    folder: Path
    root: Path
    record: RunRecord
    status: str
    redactor: Redactor
