"""What a command that changes files prints on stdout: the run's record as JSON, or a diff."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from code_commit.changes import shown
from code_commit.errors import NotSetUpError
from code_commit.progress import Progress
from code_commit.project import Project
from code_commit.run_record import Command, RunRecord, utc_timestamp
from code_commit.version import __version__


@contextmanager
def reported(project: Project, command: Command, options: Mapping[str, Any], progress: Progress) -> Iterator[None]:
    """With `--json` print the record on stdout however the run ends; one that did not begin has the same shape."""
    try:
        yield
    except NotSetUpError as error:
        if options.get("json") and progress.record is None:
            _print_record(_record_of_no_run(project, command, options, error), progress)
        raise
    finally:
        if progress.record and progress.record.options["json"]:
            _print_record(progress.record, progress)


def _print_record(record: RunRecord, progress: Progress) -> None:
    sys.stdout.buffer.write(progress.redactor.redact_json(asdict(record)))
    sys.stdout.flush()


def _record_of_no_run(
    project: Project, command: Command, options: Mapping[str, Any], error: NotSetUpError
) -> RunRecord:
    now = utc_timestamp()
    return RunRecord(
        version=__version__,
        run="",
        command=command,
        started=now,
        finished=now,
        root=str(project.root),
        log_dir="",
        pid=os.getpid(),
        status=error.status,
        exit_code=error.exit_code,
        message=str(error),
        options=dict(options),
    )


def show_diff(diff_file: Path) -> None:
    """Print a diff on stdout: byte for byte into a pipe, escaped and in colours on a terminal."""
    diff = diff_file.read_bytes()
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(diff)
        sys.stdout.flush()
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for line in diff.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        text = Text(shown(line.replace("\t", "    ")), style=_style(line))
        console.print(text, soft_wrap=True)


_STYLES = {"+++": "bold", "---": "bold", "@@ ": "cyan", "diff": "bold"}


def _style(line: str) -> str:
    for start, style in _STYLES.items():
        if line.startswith(start):
            return style
    return {"+": "green", "-": "red"}.get(line[:1], "")
