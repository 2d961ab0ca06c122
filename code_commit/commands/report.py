"""What a command that changes files prints on stdout: the run's record as JSON, or a diff."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from code_commit.changes import RejectedResponseError, shown
from code_commit.config import load_settings
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
    except RejectedResponseError as error:
        if progress.quiet:
            error.add_note(str(error))  # otherwise its step has listed the reasons
        raise
    except NotSetUpError as error:
        if progress.record is None and _wants_json(project, options):
            _print_record(_record_of_no_run(project, command, options, error), progress)
        raise
    finally:
        if progress.record and progress.record.options["json"]:
            _print_record(progress.record, progress)


def _wants_json(project: Project, options: Mapping[str, Any]) -> bool:
    try:
        return load_settings(project, options).json
    except NotSetUpError:
        return bool(options.get("json"))


def _print_record(record: RunRecord, progress: Progress) -> None:
    print_bytes(progress.redactor.redact_json(asdict(record)))


def print_bytes(data: bytes) -> None:
    """Write a result on stdout. Raises NotSetUpError where that fails, BrokenPipeError where nobody reads it."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's own end would fail too
        raise NotSetUpError(f"standard output cannot be written: {error.strerror}") from error


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
        status="not_set_up",
        exit_code=error.exit_code,
        message=str(error),
        options=dict(options),
    )


def show_diff(diff_file: Path) -> None:
    """Print a diff on stdout: byte for byte into a pipe, escaped and in colours on a terminal."""
    diff = diff_file.read_bytes()
    if not sys.stdout.isatty():
        print_bytes(diff)
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
