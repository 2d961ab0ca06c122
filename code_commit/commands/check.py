"""`code-commit check`: every preflight check with its verdict; no network, nothing written."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from typing import Any

from code_commit.apply import lock_tree
from code_commit.build import Builder, build_environment, harden_process
from code_commit.codebase.select import find_stale_files
from code_commit.commands.output import answering, print_bytes, print_text, wants_json
from code_commit.commands.run import rolled_up
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_SUCCESS, NotSetUpError
from code_commit.preflight import Check, Findings, Ready, hint_at_init, inspect_project
from code_commit.project import Project
from code_commit.runs.words import count
from code_commit.settings import add_settings
from code_commit.terminal import TAIL_BYTES, coloured, last_lines, shown, terminal_width, wrapped

DESCRIPTION = """\
Makes every check that a run makes before it starts, with the same options, and
prints each with its verdict. No network, nothing written. Exits with 0 when a
run could start, else with 2. With --build it then runs build.sh once, and exits
with 1 when that fails. With --json: {"ready", "checks", "warnings"}."""

EXAMPLES = """\
code-commit check
code-commit check --build
code-commit check --model openai --sandbox strict"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--build", action="store_true", help="then run build.sh once, on the tree as it is")
    add_settings(parser)


def run(options: dict[str, Any]) -> int:
    as_json, build = wants_json(options), options.pop("build", False)
    with answering(as_json=as_json) as project:
        findings, ready = inspect_project(project, options, roll_up=rolled_up(project))
        if ready and ready.settings.rollup == "file":
            findings.warn(*find_stale_files(project, ready.task.codebase))
        if ready and build:
            findings.checks.append(_build(project, ready, findings.warn))
        elif build:
            findings.warn("build: not run, the problems first")
        if as_json:
            print_bytes(findings.redactor.redact_json(_as_json(findings, is_ready=ready is not None)))
        else:
            end = _end(findings, project, is_ready=ready is not None)
            report = "\n".join(shown(line) for line in [*_lines(findings), end])
            rows = findings.redactor.redact_text(report).split("\n")
            print_text("\n".join(map(_with_verdict, rows)))
        if findings.problems:
            return EXIT_BUILD_FAILED if ready else NotSetUpError.exit_code
        return EXIT_SUCCESS


def _end(findings: Findings, project: Project, *, is_ready: bool) -> str:
    if not is_ready:
        return "; ".join([f"{count(len(findings.problems), 'problem')} to solve", *hint_at_init(project)]) + "."
    if findings.problems:
        return "Ready, but the build fails: a run can pass only if that is its task."
    return "Ready: run code-commit."


def _build(project: Project, ready: Ready, warn: Callable[[str], object]) -> Check:
    """Run build.sh, and return how it ended. Raises BuildError where it could not be run."""
    tail = bytearray()

    def keep(piece: bytes) -> None:
        tail.extend(piece)
        del tail[:-TAIL_BYTES]

    harden_process()
    stream = ready.redactor.stream(keep)
    environment = build_environment(os.environ, ready.keys.values(), 1, "check")
    with lock_tree(project), Builder(project, ready.sandbox) as builder:
        timeout = ready.settings.build_timeout
        result = builder.run(stream.write, timeout=timeout, environment=environment, warn=warn)
    stream.close()
    if result.passed:
        return Check("build", None, result.ending)
    return Check(
        "build", "\n".join([f"fails: {result.ending}", *(f"{_OUTPUT_MARK}{line}" for line in last_lines(bytes(tail)))])
    )


_OUTPUT_MARK = "| "


def _as_json(findings: Findings, *, is_ready: bool) -> dict[str, Any]:
    checks = [{"name": check.name, "problem": check.problem, "note": check.note} for check in findings.checks]
    return {"ready": is_ready, "checks": checks, "warnings": list(map(str, findings.warnings))}


def _lines(findings: Findings) -> Iterator[str]:
    width = max(len(check.name) for check in findings.checks)
    for check in findings.checks:
        verdict, said = ("ok     ", check.note) if check.problem is None else ("PROBLEM", check.problem)
        yield from _row(f"{verdict}  {check.name:{width}}", said)
    for warning in dict.fromkeys(findings.warnings):
        yield from _row(f"note     {'':{width}}", str(warning))


def _with_verdict(row: str) -> str:
    """Return a row with its verdict in a colour, on a terminal."""
    verdict = next((verdict for verdict in _COLOURS if row.startswith(verdict)), "")
    return coloured(verdict, _COLOURS.get(verdict, ""), sys.stdout) + row.removeprefix(verdict)


_COLOURS = {"ok": "green", "PROBLEM": "red", "note": "yellow"}


def _row(lead: str, said: str) -> Iterator[str]:
    """Yield what is said, as rows of the terminal where there is one, all of them as far in as the first.

    Of several problems each has a mark.
    """
    lines = said.split("\n")
    mark = "- " if len(lines) > 1 and not lines[1].startswith(_OUTPUT_MARK) else ""
    for line in lines:
        yield from wrapped(f"{lead}  {mark}{line}".rstrip(), terminal_width(), len(lead) + 2 + len(mark))
        lead = " " * len(lead)
