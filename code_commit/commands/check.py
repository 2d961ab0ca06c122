"""`code-commit check`: every preflight check with its verdict; no network, nothing written."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from code_commit.commands.standard_output import print_bytes
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.preflight import Readiness, check_project
from code_commit.project import Project
from code_commit.terminal import shown, terminal_width


def report_check(project: Project, options: Mapping[str, Any], *, as_json: bool) -> int:
    """Print every check, as a table or as JSON, and return 0 when a run could start, else 2."""
    ready = check_project(project, options)
    if as_json:
        print_bytes(ready.redactor.redact_json(_as_json(ready)))
    else:
        report = "".join(f"{shown(line)}\n" for line in _lines(ready, terminal_width()))
        print_bytes(ready.redactor.redact_text(report).encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
    return NotSetUpError.exit_code if ready.problems else EXIT_SUCCESS


def _as_json(ready: Readiness) -> dict[str, Any]:
    checks = [{"name": check.name, "problem": check.problem, "note": check.note} for check in ready.checks]
    return {"ready": not ready.problems, "checks": checks, "warnings": ready.warnings}


def _lines(ready: Readiness, columns: int | None) -> Iterator[str]:
    width = max(len(check.name) for check in ready.checks)
    for check in ready.checks:
        verdict, said = ("ok     ", check.note) if check.problem is None else ("PROBLEM", check.problem)
        yield from _row(f"{verdict}  {check.name:{width}}  ", said, columns)
    for warning in ready.warnings:
        yield from _row(f"note     {'':{width}}  ", warning, columns)
    problems = len(ready.problems)
    yield f"{problems} problem{'s' if problems > 1 else ''} to mend." if problems else "Ready: run code-commit."


def _row(lead: str, said: str, columns: int | None) -> Iterator[str]:
    """Yield what is said behind its lead, further lines of it below each other."""
    lines = said.split("\n")
    if columns is not None:
        import textwrap

        width = max(columns - len(lead) - 1, 20)
        lines = [part for line in lines for part in textwrap.wrap(line, width, break_on_hyphens=False) or [""]]
    yield (lead + lines[0]).rstrip()
    yield from (" " * len(lead) + line for line in lines[1:])
