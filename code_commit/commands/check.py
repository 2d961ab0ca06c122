"""`code-commit check`: every preflight check with its verdict; no network, nothing written."""

from collections.abc import Mapping
from typing import Any

from code_commit.changes import shown
from code_commit.preflight import check_project
from code_commit.project import Project


def check_command(project: Project, options: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the report for stdout, and whether a run could start."""
    ready = check_project(project, options)
    width = max(len(check.name) for check in ready.checks)
    rows = []
    for check in ready.checks:
        verdict = "ok     " if check.problem is None else "PROBLEM"
        said = (check.note if check.problem is None else check.problem).replace("\n", f"\n{' ' * (width + 11)}")
        rows.append(f"{verdict}  {check.name:{width}}  {said}".rstrip())
    rows += [f"note     {'':{width}}  {warning}".rstrip() for warning in ready.warnings]
    problems = len(ready.problems)
    rows.append(f"{problems} problem{'s' if problems > 1 else ''} to mend." if problems else "Ready: run code-commit.")
    report = "\n".join(shown(line) for row in rows for line in row.split("\n"))
    return ready.redactor.redact_text(report), not problems
