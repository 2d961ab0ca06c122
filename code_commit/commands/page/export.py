"""`code-commit log` in the forms that are handed on: JSON, Markdown, a page."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_commit.commands.page import render_page, write_page
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.commands.page.step_summary import markdown_summary
from code_commit.errors import NotSetUpError
from code_commit.keys import find_secrets
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.run_record import RunRecord
from code_commit.runs import find_run, find_run_folders, read_run, status_of
from code_commit.terminal import shown
from code_commit.trust import outside_environment

PAGE = "page.html"
"""What the page is named in the run's log folder, where no other file was asked for."""


def export_log(project: Project, options: Mapping[str, Any]) -> bytes:
    """Return what `log` with `--json`, `--markdown`, `--html` or `--open` prints; the latter two write a file too.

    Raises NotSetUpError where there is no such run, the file cannot be written, or no browser started.
    """
    if options.get("open") and (options.keys() & {"json", "markdown"} or options.get("html") == "-"):
        raise NotSetUpError("--open opens a page: give it alone, or with --html FILE")
    redactor = Redactor(find_secrets(project))
    run = options.get("run") or ""
    if options.get("json") and not run:
        runs = map(read_run, find_run_folders(project))
        return redactor.redact_json([record for record in runs if isinstance(record, RunRecord)])
    folder, record = find_run(project, run)
    logged = LoggedRun(folder, project.root, record, status_of(record), redactor)
    if options.get("json"):
        return redactor.redact_json(logged.record)
    if options.get("markdown"):
        return f"{markdown_summary(logged)}\n".encode("utf-8", "replace")
    return _page(logged, options)


def _page(logged: LoggedRun, options: Mapping[str, Any]) -> bytes:
    target = options.get("html") or str(logged.folder / PAGE)
    if target == "-":
        return render_page(logged, Path.cwd())
    start = Path(os.path.realpath(target)).parent
    path = write_page(Path(target), render_page(logged, start))
    if options.get("open"):
        _open(path)
    return shown(str(path)).encode("utf-8", "replace") + b"\n"


def _open(path: Path) -> None:
    import webbrowser

    os.environ |= outside_environment(Path.cwd())
    if not webbrowser.open(path.as_uri()):
        raise NotSetUpError(f"no browser could be started: open {path} yourself")
