"""`code-commit undo`: put back what the latest or the named run changed; itself a run that can be undone.

The latest is the latest of those that are not undone: an undo is passed over, and so is what it undid. Each undo notes
which run it puts back before it does.
"""

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from code_commit.apply import lock_tree, recover, restore
from code_commit.commands.output import recording
from code_commit.diff import FileEdit
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.project import Project
from code_commit.run_log import open_run_log
from code_commit.run_record import RunRecord
from code_commit.runs import UnreadableRun, add_run_argument, find_run_folders, read_run
from code_commit.settings import add_settings, load_settings
from code_commit.summary import done_by_build
from code_commit.terminal import shown

_Runs = Mapping[str, RunRecord | UnreadableRun]
"""Every run by its name, oldest first."""

DESCRIPTION = """\
Puts back what the latest run that is not undone changed, or the named one: byte
for byte, mode for mode. If one of its files changed since, nothing is put back,
and it exits with 1. If the latest run changed no file, it names the one before
and exits with 2. An undo is a run itself: name it, and it is undone."""

EXAMPLES = """\
code-commit undo
code-commit undo 2026-11-21-19-51
code-commit undo --force"""


def add_arguments(parser: ArgumentParser) -> None:
    add_run_argument(parser, "undo this run")
    parser.add_argument("--force", action="store_true", help="restore files that changed since, too")
    add_settings(parser, ["json", "quiet", "verbose"])


def run(options: dict[str, Any]) -> int:
    name, force = options.pop("run", ""), options.pop("force", False)
    with recording("undo", options) as (project, progress):
        if message := recover(project):
            progress.say(message)
        settings = load_settings(project, options)
        progress.quiet = settings.quiet
        runs = {folder.name: read_run(folder) for folder in find_run_folders(project)}
        target = _find_named(project, name) if name else project.logs / _find_latest(project, runs)
        with lock_tree(project):
            log = open_run_log(project, "undo", settings, progress.redactor, progress)
            log.record.undoes = target.name
            with log:
                restored = restore(target / "snapshot", project, log.snapshot, force=force)
                if restored:
                    log.attempt(1).restored([FileEdit(file.path, file.old, file.new) for file in restored])
                log.finish("success", EXIT_SUCCESS, _say_what_was_done(target.name, runs, len(restored)))
    return EXIT_SUCCESS


def _find_named(project: Project, name: str) -> Path:
    folder = find_run_folders(project, name)[-1]
    if not _changed_files(folder):
        raise NotSetUpError(f"{shown(folder.name)} changed no file: there is nothing to undo")
    return folder


def _find_latest(project: Project, runs: _Runs) -> str:
    """Return the latest run that is not undone. One that changed no file is not passed over: NotSetUpError.

    An undo that was killed when it had put the files back is made once more, to its end.
    """
    changed = [name for name in runs if _changed_files(project.logs / name)]
    undos = _undos(runs)
    for name in list(runs)[-1:]:
        if name in undos and undos[name].status != "success" and undos[name].undoes and name in changed:
            return undos[name].undoes
    undone = _find_undone({name: undo for name, undo in undos.items() if undo.status == "success" or name in changed})
    undone |= {name for name, run in runs.items() if isinstance(run, RunRecord) and run.rolled_back}
    readable = {name for name, run in runs.items() if isinstance(run, RunRecord)}
    standing = [name for name in runs if name not in undone | undos.keys() and name in readable.union(changed)]
    known = [name for name in standing if name in readable.intersection(changed)]
    if not known:
        raise NotSetUpError("there is no run that changed a file and is not undone: code-commit log lists the runs")
    if known[-1] != standing[-1]:
        latest, before = shown(standing[-1]), shown(known[-1])
        why = "cannot be read" if standing[-1] in changed else "changed no file"
        raise NotSetUpError(f"the latest run, {latest}, {why}: code-commit undo {before} undoes the one before")
    return known[-1]


def _changed_files(folder: Path) -> bool:
    return (folder / "snapshot" / "changes-1.json").exists()


def _undos(runs: _Runs) -> dict[str, RunRecord]:
    return {name: run for name, run in runs.items() if isinstance(run, RunRecord) and run.command == "undo"}


def _find_undone(undos: Mapping[str, RunRecord]) -> set[str]:
    """Return the names of the runs, undos among them, that one of these put back and that are not in the tree again."""
    undone: set[str] = set()
    for name in undos:
        chain = list(_chain(name, undos))
        undone = undone.union(chain[::2]).difference(chain[1::2])
    return undone


def _chain(name: str, undos: Mapping[str, RunRecord]) -> Iterator[str]:
    """Yield which run this undo put back, then which one that run put back if it was an undo itself, and so on."""
    while name in undos:
        name = undos[name].undoes or (undos[name].message or "").removeprefix("undid ")  # as an older version had it
        yield name


def _say_what_was_done(target: str, runs: _Runs, files: int) -> str:
    if not files:
        return f"nothing to put back: every file is as it was before {target}"
    chain = list(_chain(target, _undos(runs)))
    if not chain:
        run = runs[target]
        left = "" if isinstance(run, UnreadableRun) else done_by_build(run)
        return f"undid {target}" + (f"; left alone, for the build did it: {left}" if left else "")
    now = "in the tree again" if len(chain) % 2 else "no longer in the tree"
    return f"undid {target}: the changes of {chain[-1]} are {now}"
