"""The output of a command: its result on stdout, its end as JSON, its errors on stderr."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from code_commit.apply.recover import HALF_CHANGED, is_half_changed
from code_commit.changes import RejectedResponseError
from code_commit.errors import EXIT_INTERNAL_ERROR, CodeCommitError, Interrupted, OutputError, known_error
from code_commit.interrupts import hold_signals
from code_commit.llm.keys import find_secrets
from code_commit.project import Project, find_project
from code_commit.redaction import Redactor
from code_commit.runs.progress import Progress
from code_commit.runs.record import Command, Event, RunRecord, error_facts, utc_timestamp
from code_commit.settings import ENVIRONMENT_PREFIX, OPTIONS, Options
from code_commit.sources import read_tables
from code_commit.status import Status
from code_commit.terminal import shown, shown_json
from code_commit.version import __version__

_STYLES = {"+++ ": "1", "--- ": "1", "@@ ": "36", "diff ": "1", "+": "32", "-": "31"}


def print_bytes(data: bytes) -> None:
    """Write a result on stdout. Raises OutputError, and BrokenPipeError if nobody reads it."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter's own end would fail too
        raise OutputError(f"standard output cannot be written: {error.strerror}") from error


def print_text(text: str) -> None:
    """Write lines on stdout; characters that no terminal shows, or that its encoding lacks, are escaped."""
    print_bytes(_encoded("\n".join(map(shown, text.split("\n"))) + "\n"))


def print_coloured(rows: Iterable[str]) -> None:
    """Write rows on stdout that `shown` has seen before they were coloured."""
    print_bytes(_encoded("".join(f"{row}\n" for row in rows)))


def print_document(document: bytes) -> bool:
    """Write a text on stdout byte by byte; on a terminal, as `shown`. Tell whether it was changed for that."""
    if not sys.stdout.isatty():
        print_bytes(document)
        return False
    text = document.decode("utf-8", "replace")
    visible = "\n".join(map(_shown_line, text.split("\n")))
    print_bytes(_encoded(visible))
    return visible != text


def print_json(document: str | bytes) -> None:
    """Write JSON on stdout: the same values, and nothing that a terminal would not show."""
    text = document if isinstance(document, str) else document.decode("utf-8", "replace")
    print_bytes(f"{shown_json(text.rstrip())}\n".encode())


def show_end(project: Project, record: RunRecord) -> int:
    """Print the diff of a dry run, unless the record is printed, and return the exit code."""
    if record.options["dry_run"] and record.attempts and not record.options["json"]:
        diff = (project.root / record.log_dir / "1-changes.diff").read_bytes()
        print_bytes(coloured_diff(diff) if diff and sys.stdout.isatty() else diff)
    return record.final_code


def _encoded(text: str) -> bytes:
    return text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")


def _shown_line(line: str) -> str:
    return "\t".join(map(shown, line.split("\t")))


def coloured_diff(diff: bytes) -> bytes:
    """Return a diff for a terminal: in git's colours, with control characters escaped."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "dumb") == "dumb"
    lines = []
    for line in diff.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        style = next((style for start, style in _STYLES.items() if line.startswith(start)), "")
        text = _shown_line(line)
        lines.append(text if plain or not style else f"\x1b[{style}m{text}\x1b[m")
    return _encoded("".join(f"{line}\n" for line in lines))


def complain(message: str, error: BaseException) -> None:
    """Print an error and its notes on stderr."""
    progress = Progress(redactor_of(current_folder()))
    progress.error("\n".join([message, *getattr(error, "__notes__", [])]))


def current_folder() -> Project:
    try:
        return Project(Path.cwd())
    except OSError:
        return Project(Path(os.sep))


def tell_if_half_changed(project: Project) -> None:
    """Warn of a tree that an interrupted apply left half changed, for commands that repair nothing."""
    if is_half_changed(project):
        Progress(redactor_of(project)).say(f"warning: {HALF_CHANGED}")


def redactor_of(project: Project) -> Redactor:
    return Redactor(find_secrets(project))


class Output(NamedTuple):
    """The forms of a command's output: its record as JSON, errors alone, or more than usual."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False


def output_of(options: Options) -> Output:
    """Read the three from options, environment and both config.toml, even beside unfit settings."""
    own, of_project = read_tables(current_folder())
    told = own | of_project
    for name in Output._fields:
        with suppress(KeyError, ValueError):
            told[name] = OPTIONS[name].parse(os.environ[ENVIRONMENT_PREFIX + name.upper()])
    told |= options
    return Output(*(told.get(name) is True for name in Output._fields))


@contextmanager
def answering(*, as_json: bool) -> Iterator[Project]:
    """Yield the project to a command that keeps no record. Print its failure as JSON if `as_json`."""
    try:
        yield find_project()
    except (CodeCommitError, Interrupted) as error:
        if as_json:
            print_failure(error)
        raise


def print_failure(error: BaseException) -> None:
    print_json(redactor_of(current_folder()).redact_json(_end_of(error)))


@dataclass(slots=True)
class Begun:
    """The record of the run that has begun, None before; `note` is told of its steps.

    The success of a choice of files is not that of the run, which begins only then.
    """

    record: RunRecord | None = None

    def note(self, record: RunRecord, _: Event) -> None:
        self.record = None if record.is_auxiliary and record.request.get("for_run") else record


@contextmanager
def recording(command: Command, options: Options) -> Iterator[tuple[Project, Progress]]:
    """Yield the project and the progress to a command that changes files, and with `--json` print its record.

    `options` are the settings of the command line. A run that did not begin gets a record of the same shape. Signals
    wait from the end of the command's work on.
    """
    folder, output, begun = current_folder(), output_of(options), Begun()
    progress = Progress(redactor_of(folder), quiet=output.quiet, verbose=output.verbose, on_step=begun.note)
    try:
        yield find_project(), progress
    except BrokenPipeError:
        raise
    except BaseException as error:
        hold_signals()
        if isinstance(error, RejectedResponseError) and progress.quiet:
            error.add_note(str(error))  # otherwise its step has listed the reasons
        if begun.record is None and output.json:
            _print_record(_record_of_no_run(folder, command, options, error), progress)
        raise
    finally:
        hold_signals()
        if begun.record and output.json:
            _print_record(begun.record, progress)


def _print_record(record: RunRecord, progress: Progress) -> None:
    try:
        print_json(progress.redactor.redact_json(record))
    except OutputError as error:
        if not record.run:
            raise
        done = f"the run had ended with exit code {record.exit_code}: see {record.log_dir}/run.json"
        raise OutputError(f"{error}; {done}") from error


def _record_of_no_run(project: Project, command: Command, options: Options, error: BaseException) -> RunRecord:
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
        options=dict(options),
        **_end_of(error),
    )


def _end_of(error: BaseException) -> dict[str, Any]:
    error = known_error(error)
    if isinstance(error, (CodeCommitError, Interrupted)):
        end = {"status": error.status, "exit_code": error.exit_code, "message": str(error)}
    else:
        message = f"a bug in code-commit: {type(error).__name__}: {error}"
        end = {"status": Status.INTERNAL_ERROR, "exit_code": EXIT_INTERNAL_ERROR, "message": message}
    return end | {"error": error_facts(error)}
