"""What a command that changes files prints on stdout: the run's record as JSON, or a diff."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from code_commit.changes import RejectedResponseError, shown
from code_commit.config import ENVIRONMENT_PREFIX, load_settings
from code_commit.errors import EXIT_INTERNAL_ERROR, CodeCommitError, Interrupted, NotSetUpError
from code_commit.json_documents import plain
from code_commit.options import OPTIONS
from code_commit.progress import Progress
from code_commit.project import Project, read_regular_file
from code_commit.redaction import Redactor
from code_commit.run_record import Command, RunRecord, Status, utc_timestamp
from code_commit.version import __version__


@contextmanager
def reported(project: Project, command: Command, options: Mapping[str, Any], progress: Progress) -> Iterator[None]:
    """With `--json` print the record on stdout however the run ends; one that did not begin has the same shape."""
    try:
        yield
    except BrokenPipeError:
        raise
    except BaseException as error:
        if isinstance(error, RejectedResponseError) and progress.quiet:
            error.add_note(str(error))  # otherwise its step has listed the reasons
        if progress.record is None and wants_json(project, options):
            _print_record(_record_of_no_run(project, command, options, error), progress)
        raise
    finally:
        if progress.record and progress.record.options["json"]:
            _print_record(progress.record, progress)


def print_failure(error: BaseException, redactor: Redactor) -> None:
    """Print in JSON what became of a command that has no record: the members that a record has for it."""
    status, exit_code, message = _end_of(error)
    print_bytes(redactor.redact_json({"status": status, "exit_code": exit_code, "message": message}))


def wants_json(project: Project, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether JSON is asked for, also where other settings are not fit for use."""
    if "json" in options:
        return bool(options["json"])
    try:
        return load_settings(project, {}, environment).json
    except NotSetUpError:
        with suppress(KeyError, ValueError):
            return bool(OPTIONS["json"].parse(environment[f"{ENVIRONMENT_PREFIX}JSON"]))
        with suppress(OSError, ValueError):
            import tomllib

            return tomllib.loads(read_regular_file(project.config_file).decode()).get("json") is True
        return False


def _print_record(record: RunRecord, progress: Progress) -> None:
    print_bytes(progress.redactor.redact_json(plain(record)))


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


def terminal_width() -> int | None:
    """Return the columns of the terminal on standard output; None where there is none."""
    with suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    return None


def _record_of_no_run(
    project: Project, command: Command, options: Mapping[str, Any], error: BaseException
) -> RunRecord:
    now = utc_timestamp()
    status, exit_code, message = _end_of(error)
    return RunRecord(
        version=__version__,
        run="",
        command=command,
        started=now,
        finished=now,
        root=str(project.root),
        log_dir="",
        pid=os.getpid(),
        status=status,
        exit_code=exit_code,
        message=message,
        options=dict(options),
    )


def _end_of(error: BaseException) -> tuple[Status, int, str]:
    if isinstance(error, (CodeCommitError, Interrupted)):
        return cast(Status, error.status), error.exit_code, str(error)
    return "internal_error", EXIT_INTERNAL_ERROR, f"a bug in code-commit: {type(error).__name__}: {error}"


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
