"""`code-commit apply`: verify and apply a saved response, then with `--build` run build.sh; no LLM."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from code_commit.apply.recover import recover
from code_commit.check import RunInputs, plan_run
from code_commit.codebase.text import REPLACEMENT, parse_codebase, read_codebase
from code_commit.commands.output import recording, show_end
from code_commit.errors import NotSetUpError
from code_commit.exchange import Response
from code_commit.interrupts import interruptible
from code_commit.parse import notes_of
from code_commit.project import Project, read_stream, require_text
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import read_sight
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunRecord
from code_commit.settings import Facet, Options, settings_for
from code_commit.start import Run, start_run
from code_commit.status import Status
from code_commit.terminal import shown
from code_commit.views import Sight
from code_commit.workflow import build_project, change_files, end_dry, verify_response

DESCRIPTION = """\
Verifies a saved response, and applies all of it or nothing, as a run does. No
LLM is asked. Exits with 0 if the response was applied (and, with --build, the
build passed), with 1 if the build failed, and with 4 if the response was
rejected or says that the LLM cannot do the task."""

EXAMPLES = """\
code-commit apply answer.txt
code-commit apply --build - <answer.txt
code-commit apply --dry-run answer.txt
code-commit apply --as-sent answer.txt"""

SETTINGS = settings_for(Facet.APPLY, Facet.OUTPUT)
_LONGEST_TERMINAL_LINE = 1023 if sys.platform == "darwin" else 4095
"""Bytes of a line that a terminal hands on, without its end (MAX_CANON of macOS, N_TTY_BUF_SIZE of Linux)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The name of a response's file, what to do with it, and settings."""

    response: Annotated[str, "FILE", "the saved response; - reads it from standard input", {"flag": ""}]
    build: Annotated[bool, "", "run build.sh afterward"] = False
    as_sent: Annotated[bool, "", "accept what would be rejected only because it looks like a mistake"] = False
    options: Options = field(default_factory=dict)


def run(arguments: Arguments) -> int:
    with recording("apply", arguments.options) as (project, progress):
        return show_end(project, _apply_saved(project, arguments, progress))


def _apply_saved(project: Project, arguments: Arguments, progress: Progress) -> RunRecord:
    progress.say(recover(project))
    inputs = RunInputs(command="apply", builds=arguments.build, as_sent=arguments.as_sent)
    plan = plan_run(project, arguments.options, inputs)
    response = Response(_read_response(arguments.response, progress), finish_reason="")
    codebase = read_codebase(project) if project.codebase_file.exists() else None
    shows = _read_prompt(project, arguments.response) or (
        codebase.shown._replace(basis="guessed") if codebase else None
    )
    with start_run(plan, codebase, progress) as run:
        return interruptible(lambda: _apply(run, response, shows))


def _read_prompt(project: Project, source: str) -> Sight | None:
    """Return what the prompt beside a response in a log shows; None without one. An older log has it in its words."""
    name = re.fullmatch(r"(\d+)-response\.txt", Path(source).name)
    if name and (shows := read_sight(Path(source).parent, f"{name[1]}-query.txt")):
        return shows
    try:
        prompt = Path(source).with_name(f"{name[1]}-query.txt").read_text("utf-8") if name else ""
    except (OSError, UnicodeDecodeError):
        return None
    prompt = prompt.replace(f"\n--- {REPLACEMENT}", "\n--- ")
    shows = parse_codebase(prompt, project.root).shown
    return shows if prompt else None


def _apply(run: Run, response: Response, shows: Sight | None) -> RunRecord:
    log, attempt = run.log, AttemptLog(run.log, 1)
    attempt.given(response, notes_of(response.text))
    if run.plan.settings.dry_run:
        return end_dry(verify_response(run, response, shows, attempt), attempt, log)
    change_files(run, response, shows, attempt)
    if not run.plan.inputs.builds:
        return log.finish(Status.SUCCESS, "applied; nothing was built")
    if build_project(run, attempt).passed:
        return log.finish(Status.SUCCESS)
    return log.finish(Status.BUILD_FAILED)


def _read_response(source: str, progress: Progress) -> str:
    name = "the response on standard input" if source == "-" else shown(source)
    try:
        if source == "-":
            data = _read_standard_input(progress, name)
        else:
            with Path(source).open("rb") as file:
                data = read_stream(file, name)
    except OSError as error:
        advice = "name the file of a saved response, or - for standard input"
        raise NotSetUpError(f"{shown(source)} cannot be read: {error.strerror}; {advice}") from error
    return require_text(data, name, "apply the whole answer of an LLM")


def _read_standard_input(progress: Progress, name: str) -> bytes:
    if not sys.stdin.isatty():
        return read_stream(sys.stdin.buffer, name)
    progress.say("Paste the response, then press Enter and Ctrl-D.")
    data = sys.stdin.buffer.read()
    if max(map(len, data.split(b"\n"))) >= _LONGEST_TERMINAL_LINE:
        raise NotSetUpError(
            "a line is too long to paste, because the terminal cuts it: save the response to a file and apply that"
        )
    return data
