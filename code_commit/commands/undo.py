"""`code-commit undo`: put back what the latest or the named run changed; itself a run that can be undone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_commit.apply import lock_tree, restore
from code_commit.commands.run import repair_interrupted_apply
from code_commit.config import load_settings
from code_commit.diff import FileEdit
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.progress import Progress
from code_commit.project import Project, log_folders
from code_commit.run_log import open_run_log
from code_commit.run_record import RunRecord, load_run_record
from code_commit.terminal import shown


def report_undo(project: Project, run: str, options: Mapping[str, Any], progress: Progress, *, force: bool) -> int:
    """Undo a run, report it, and return the exit code."""
    return undo_run(project, run, options, progress, force=force).exit_code or 0


def undo_run(project: Project, run: str, options: Mapping[str, Any], progress: Progress, *, force: bool) -> RunRecord:
    """Put back every file as it was before the run whose name begins with `run` ("": the latest that changed files).

    Raises NotSetUpError where there is no such run, ChangedSinceError (exit code 1) when files changed since, unless
    `force`, and ApplyError.
    """
    repair_interrupted_apply(project, progress)
    settings = load_settings(project, options)
    progress.quiet = settings.quiet
    target = _find_changed(project, run)
    with (
        lock_tree(project),
        open_run_log(project, "undo", settings, progress.redactor, progress) as log,
    ):
        attempt = log.attempt(1)
        restored = restore([target / "snapshot"], project, log.snapshot, force=force)
        attempt.restored([FileEdit(file.path, file.old, file.new) for file in restored])
        return log.finish("success", EXIT_SUCCESS, f"undid {target.name}")


def _find_changed(project: Project, run: str) -> Path:
    folders = [folder for folder in log_folders(project) if folder.name.startswith(run)]
    changed = [folder for folder in folders if (folder / "snapshot" / "changes-1.json").exists()]
    if not run:
        changed = [folder for folder in changed if not _was_rolled_back(folder)]
    if not changed:
        which = f"no run {shown(run)} that changed a file" if run else "no run that changed a file"
        raise NotSetUpError(f"there is {which}: code-commit log lists the runs")
    return changed[-1]


def _was_rolled_back(folder: Path) -> bool:
    try:
        return load_run_record((folder / "run.json").read_bytes()).rolled_back
    except (OSError, ValueError):
        return False
