"""`code-commit check`: every preflight check with its verdict; no network, nothing written."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from code_commit.commands.output import answering, print_bytes, print_text, wants_json
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.preflight import Findings, find_stale_files, inspect_project
from code_commit.settings import add_settings
from code_commit.summary import count
from code_commit.terminal import shown

DESCRIPTION = """\
Makes every check that a run makes before it starts, with the same options, and
prints each with its verdict. No network, nothing written. Exits with 0 when a
run could start, else with 2. With --json: {"ready", "checks", "warnings"}."""

EXAMPLES = """\
code-commit check
code-commit check --model openai --sandbox strict"""


def add_arguments(parser: ArgumentParser) -> None:
    add_settings(parser)


def run(options: dict[str, Any]) -> int:
    as_json = wants_json(options)
    with answering(as_json=as_json) as project:
        findings, ready = inspect_project(project, options)
        if ready:
            findings.warnings += find_stale_files(project, ready.task.codebase)
        if as_json:
            print_bytes(findings.redactor.redact_json(_as_json(findings)))
        else:
            report = "\n".join(shown(line) for line in _lines(findings))
            print_text(findings.redactor.redact_text(report))
        return NotSetUpError.exit_code if findings.problems else EXIT_SUCCESS


def _as_json(findings: Findings) -> dict[str, Any]:
    checks = [{"name": check.name, "problem": check.problem, "note": check.note} for check in findings.checks]
    return {"ready": not findings.problems, "checks": checks, "warnings": findings.warnings}


def _lines(findings: Findings) -> Iterator[str]:
    width = max(len(check.name) for check in findings.checks)
    for check in findings.checks:
        verdict, said = ("ok     ", check.note) if check.problem is None else ("PROBLEM", check.problem)
        yield from _row(f"{verdict}  {check.name:{width}}", said)
    for warning in findings.warnings:
        yield from _row(f"note     {'':{width}}", warning)
    problems = len(findings.problems)
    yield f"{count(problems, 'problem')} to solve." if problems else "Ready: run code-commit."


def _row(lead: str, said: str) -> Iterator[str]:
    first, *others = said.split("\n")
    yield f"{lead}  {first}".rstrip()
    yield from (f"{'':{len(lead)}}  {line}" for line in others)
