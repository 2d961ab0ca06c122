"""`code-commit apply`: verify and apply a saved response, then with `--build` run build.sh; no LLM."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_commit.commands.run import begun, job_of, repair_interrupted_apply, rolled_back
from code_commit.commands.standard_output import show_diff
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_SUCCESS, NotSetUpError
from code_commit.exchange import Response
from code_commit.preflight import check_tree
from code_commit.progress import Progress
from code_commit.project import Project
from code_commit.run_record import RunRecord
from code_commit.terminal import shown
from code_commit.workflow import DRY_RUN, build_project, change_files, verify_response


def report_apply(project: Project, source: str, options: Mapping[str, Any], progress: Progress, *, build: bool) -> int:
    """Apply the response in a file, or on standard input for `-`, report it, and return the exit code."""
    record = apply_saved(project, source, options, progress, build=build)
    if record.options["dry_run"] and not record.options["json"]:
        show_diff(project.root / record.log_dir / "1-changes.diff")
    return record.exit_code or 0


def apply_saved(
    project: Project, source: str, options: Mapping[str, Any], progress: Progress, *, build: bool
) -> RunRecord:
    """Apply a saved response and return the record. Raises NotSetUpError, RejectedResponseError and ApplyError."""
    repair_interrupted_apply(project, progress)
    ready = check_tree(project, options, build=build)
    if ready.problems:
        raise NotSetUpError("\n".join(ready.problems))
    text = _read_response(source, progress)
    project.agent_config.mkdir(mode=0o700, exist_ok=True)
    with begun(project, "apply", ready, progress) as log:
        job = job_of(project, ready, os.environ)
        attempt = log.attempt(1)
        response = Response(text, finish_reason="")
        attempt.given(response)
        if job.settings.dry_run:
            attempt.applying(verify_response(job, response, attempt))
            return log.finish("success", EXIT_SUCCESS, DRY_RUN)
        with rolled_back(project, log, wanted=job.settings.rollback):
            change_files(job, response, log, attempt)
            if not build:
                return log.finish("success", EXIT_SUCCESS, "applied; nothing was built")
            if build_project(job, log, attempt).passed:
                return log.finish("success", EXIT_SUCCESS)
            return log.finish("build_failed", EXIT_BUILD_FAILED)


def _read_response(source: str, progress: Progress) -> str:
    try:
        data = _read_standard_input(progress) if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise NotSetUpError(f"{shown(source)} cannot be read: {error.strerror}") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        name = "the response on standard input" if source == "-" else shown(source)
        raise NotSetUpError(f"{name} is not UTF-8 text (byte {error.start}): convert it") from error


def _read_standard_input(progress: Progress) -> bytes:
    if not sys.stdin.isatty():
        return sys.stdin.buffer.read()
    progress.say("Paste the response, then press Enter and Ctrl-D.")
    data = sys.stdin.buffer.read()
    if max(map(len, data.split(b"\n"))) >= _LONGEST_TERMINAL_LINE:
        raise NotSetUpError(
            "a line is too long to be pasted, the terminal cuts it: save the response to a file, apply that"
        )
    return data


_LONGEST_TERMINAL_LINE = 1023 if sys.platform == "darwin" else 4095
"""Bytes of a line that a terminal hands on (MAX_CANON of macOS, N_TTY_BUF_SIZE of Linux), its end not counted."""
