"""`code-commit undo`: put back what the latest or the named run changed; itself a run that can be undone."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from code_commit.apply import lock_tree, recover, restore
from code_commit.commands.output import recording
from code_commit.diff import FileEdit
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.project import Project
from code_commit.run_log import open_run_log
from code_commit.runs import UnreadableRun, find_run_folders, read_run
from code_commit.settings import add_settings, load_settings
from code_commit.terminal import shown

DESCRIPTION = """\
Puts back what the latest run that changed files changed, or the named one: byte
for byte, mode for mode. If one of its files changed since, nothing is put back,
and it exits with 1. It is a run itself: undo again, and it is undone."""

EXAMPLES = """\
code-commit undo
code-commit undo 2026-11-21-19-51
code-commit undo --force"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run", nargs="?", metavar="RUN", help="undo this run; a beginning that no other run has will do"
    )
    parser.add_argument("--force", action="store_true", help="restore files that changed since, too")
    add_settings(parser, ["json", "quiet", "verbose"])


def run(options: dict[str, Any]) -> int:
    name, force = options.pop("run", ""), options.pop("force", False)
    with recording("undo", options) as (project, progress):
        if message := recover(project):
            progress.say(message)
        settings = load_settings(project, options)
        progress.quiet = settings.quiet
        target = _find_changed(project, name)
        with lock_tree(project), open_run_log(project, "undo", settings, progress.redactor, progress) as log:
            restored = restore(target / "snapshot", project, log.snapshot, force=force)
            log.attempt(1).restored([FileEdit(file.path, file.old, file.new) for file in restored])
            log.finish("success", EXIT_SUCCESS, f"undid {target.name}")
    return EXIT_SUCCESS


def _find_changed(project: Project, name: str) -> Path:
    """Return the latest run that changed files, of those whose names begin with `name`. Raises NotSetUpError."""
    folders = find_run_folders(project, name)
    changed = [folder for folder in folders if (folder / "snapshot" / "changes-1.json").exists()]
    if not name:
        changed = [folder for folder in changed if not _was_rolled_back(folder)]
    if not changed:
        which = f"no run {shown(name)} that changed a file" if name else "no run that changed a file"
        raise NotSetUpError(f"there is {which}: code-commit log lists the runs")
    return changed[-1]


def _was_rolled_back(folder: Path) -> bool:
    run = read_run(folder)
    return not isinstance(run, UnreadableRun) and run.rolled_back
