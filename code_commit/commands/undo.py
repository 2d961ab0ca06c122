"""`code-commit undo`: put back the changes of the latest run that is not undone, or the named one, as a new run."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from code_commit.apply.failures import ChangedSinceError
from code_commit.apply.lock import is_locked, lock_tree
from code_commit.apply.recover import recover
from code_commit.apply.restore import (
    UndoScope,
    changed_since,
    find_changed,
    find_unchanged,
    ownership_warnings,
    plan_undo,
    restore,
)
from code_commit.commands import HOW_NAMED, RUN
from code_commit.commands.output import recording
from code_commit.errors import EXIT_SUCCESS, ApplyError, LogError, NotSetUpError
from code_commit.git import match_patterns
from code_commit.interrupts import hold_signals
from code_commit.paths.patterns import find_unmatched
from code_commit.project import Project
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.diff import FileEdit
from code_commit.runs.list import (
    changed_files,
    find_run_folders,
    is_earlier,
    is_standing,
    name_idle,
    pass_over_idle,
    read_run,
    short_name,
)
from code_commit.runs.log import RunLog, open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunEntry, RunRecord
from code_commit.runs.words import done_by_build, listed
from code_commit.settings import POSITIVE_NUMBER, Facet, Options, settings_for
from code_commit.sources import load_settings
from code_commit.status import Status
from code_commit.terminal import shown

DESCRIPTION = """\
Restores the files that a run changed, byte for byte and with their modes: the
named run, or else the latest one that has not been undone. If one of its files
has changed since the run, nothing is restored, and the exit code is 1. Runs
that applied nothing (a dry run, a rejected answer) are skipped. If the answers
of the latest run changed no file in the end, undo names the run before it, and
exits with 2. An undo is a run too; to undo it, name it."""

EXAMPLES = """\
code-commit undo
code-commit undo 2026-11-21-19-51
code-commit undo --path 'docs/' --path '*.lock'
code-commit undo --attempt 2
code-commit undo --force"""
SETTINGS = settings_for(Facet.OUTPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of the command; `options` are the settings among them."""

    run: Annotated[str, "RUN", f"undo this run: {HOW_NAMED}", RUN] = ""
    path: Annotated[tuple[str, ...], "GLOB", "restore only these files (.gitignore syntax, repeatable)"] = ()
    attempt: Annotated[int, "N", "restore only what attempt N and later ones changed", POSITIVE_NUMBER] = 1
    force: Annotated[bool, "", "also restore files that changed since the run"] = False
    options: Options = field(default_factory=dict)


def run(arguments: Arguments) -> int:
    with recording("undo", arguments.options) as (project, progress):
        hold_signals()
        undo_run(project, arguments, progress)
    return EXIT_SUCCESS


def undo_run(project: Project, arguments: Arguments, progress: Progress) -> RunRecord:
    """Put back the changes of a run and return the record of that. Raises NotSetUpError, ApplyError and LogError."""
    progress.say(recover(project))
    settings, attempt = load_settings(project, arguments.options), arguments.attempt
    prepare = partial(_prepare, project, arguments)
    if is_locked(project) is None:
        prepare()  # an undo that is refused is no run, and writes nothing, no lock either
    with lock_tree(project):
        target, scope, idle = prepare()
        if idle:
            passed = f"skipped (nothing applied): {name_idle(idle)}"
            progress.say(f"{short_name(target.name)} is the latest run to undo; {passed}")
        chain = _chain(target) if scope == UndoScope() else []
        log = open_run_log(project, "undo", settings, progress)
        log.record.undoes = target.name
        with log:
            restored = restore(target / "snapshot", project, log.snapshot, force=arguments.force, scope=scope)
            if not restored:
                since = f"attempt {attempt} of " if scope.since else ""
                which = "every file that --path names" if scope.paths else "every file"
                done = f"nothing to put back: {which} is as it was before {since}{target.name}"
            elif scope == UndoScope():
                done = _say_what_was_done(target.name, chain)
            else:
                later = [f"attempt {attempt} and later"] * bool(scope.since)
                what = " from ".join(["the files that --path names"] * bool(scope.paths) + later)
                done = f"put back {what} of {target.name}"
            if failure := _note(log, restored, done, chain):
                progress.say(f"warning: {done}; all of it was put back, but not all could be logged: {failure}")
        return log.record


def _prepare(project: Project, arguments: Arguments) -> tuple[Path, UndoScope, list[RunRecord]]:
    """Return the run to undo, the part of it, and the later runs that applied nothing.

    Raises as `restore`, and NotSetUpError where nothing is to undo.
    """
    found = (find_run_folders(project, arguments.run)[-1], []) if arguments.run else _find_latest(project, arguments)
    target, idle = found
    if not changed_files(target):
        undoable = _latest_that_changed(find_run_folders(project))
        way = (
            f"; code-commit undo {undoable} undoes the latest run that did"
            if undoable
            else ": there is nothing to undo"
        )
        raise NotSetUpError(f"{shown(target.name)} changed no file{way}")
    since = _transactions_before(arguments.attempt, target)
    scope = UndoScope(_matching(arguments.path, target, since) if arguments.path else None, since)
    try:
        plan_undo(target / "snapshot", project, scope, force=arguments.force)
    except ChangedSinceError as error:
        later = _find_later(project, target, error.paths)
        raise ChangedSinceError(short_name(target.name), error.paths, later) from error
    return target, scope, idle


def _find_later(project: Project, target: Path, paths: Sequence[str]) -> str:
    """Return the name of the latest run after this one that left any of the paths as it is now, else ""."""
    for folder in reversed(find_run_folders(project)):
        if is_earlier(target.name, folder.name) and changed_files(folder) and is_standing(folder):
            with suppress(ApplyError):  # its log is damaged
                snapshot = folder / "snapshot"
                if set(paths).intersection(find_changed(snapshot)).difference(changed_since(snapshot, project)):
                    return short_name(folder.name)
    return ""


def _note(log: RunLog, restored: Sequence[FileEdit], done: str, chain: Sequence[tuple[Path, RunRecord]]) -> str:
    """Record the restored files. Return why that failed, or ""; the files are put back anyway."""
    failures = []
    steps: list[Callable[[], object]] = [lambda: log.finish(Status.SUCCESS, done), lambda: _mark(chain, log)]
    if restored:
        steps.insert(0, lambda: log.add_warnings(ownership_warnings(log.snapshot)))
        steps.insert(0, lambda: AttemptLog(log, 1).restored(restored))
    for step in steps:
        try:
            step()
        except LogError as error:
            failures.append(str(error))
    return failures[0] if failures else ""


def _transactions_before(attempt: int, target: Path) -> int:
    """Count the earlier attempts that changed files. Raises NotSetUpError if this attempt changed none."""
    if attempt == 1:
        return 0
    attempts = record.attempts if isinstance(record := read_run(target), RunRecord) else []
    applied = [done.number for done in attempts if done.verdict == "applied" and done.changes]
    if attempt not in applied:
        those = f"attempt{'s' if len(applied) > 1 else ''} {', '.join(map(str, applied))}" if applied else "no attempt"
        raise NotSetUpError(f"attempt {attempt} of {shown(target.name)} changed no file: {those} did")
    return applied.index(attempt)


def _matching(patterns: Sequence[str], target: Path, since: int) -> set[str]:
    """Return the files of the run that the patterns match. Raises NotSetUpError where one matches none."""
    changed = find_changed(target / "snapshot", since)
    for pattern, _ in find_unmatched(patterns, changed):
        told = f"--path {shown(pattern)} matches none of the files that {shown(target.name)} changed"
        raise NotSetUpError(f"{told}: {listed(changed)}")
    return match_patterns(patterns, changed)


def _find_latest(project: Project, arguments: Arguments) -> tuple[Path, list[RunRecord]]:
    """Return the latest run that applied something and is not undone, and the later ones, which applied nothing.

    Raises NotSetUpError where none did, and where it left every file as it was.
    """
    standing = [folder for folder in find_run_folders(project) if is_standing(folder)]
    found = pass_over_idle(standing)
    if not found:
        raise NotSetUpError("nothing to undo: no run changed a file, or all are undone; code-commit log lists the runs")
    latest, _ = found
    if changed_files(latest) and (arguments.path or arguments.attempt > 1 or not _ended_as_it_began(latest)):
        return found
    before = _latest_that_changed(standing)
    way = f"to undo the run before it, run code-commit undo {before}" if before else "there is nothing to undo"
    end = " in the end" if changed_files(latest) else ""
    raise NotSetUpError(f"{shown(latest.name)}, the latest run that applied an answer, changed no file{end}; {way}")


def _ended_as_it_began(folder: Path) -> bool:
    """Tell whether the last of a run's answers took back what the others had changed. A damaged log does not tell."""
    with suppress(ApplyError):
        return set(find_changed(folder / "snapshot")) == set(find_unchanged(folder / "snapshot"))
    return False


def _latest_that_changed(folders: Sequence[Path]) -> str:
    """Return the name of the latest of these runs that changed a file in the end and is not undone, "" for none."""
    found = (each for each in reversed(folders) if changed_files(each) and is_standing(each))
    return next((shown(each.name) for each in found if not _ended_as_it_began(each)), "")


def _chain(folder: Path) -> list[tuple[Path, RunRecord]]:
    """Follow a run through the undos it names, and return the chain. Raises NotSetUpError if one names a later run."""
    chain = []
    while isinstance(run := read_run(folder), RunRecord):
        chain.append((folder, run))
        if not run.undoes:
            break
        if not is_earlier(run.undoes, folder.name):
            said = f"it says that it undid {shown(run.undoes)}, which is no earlier run"
            raise NotSetUpError(f"the run.json of {shown(folder.name)} is refused, nothing was changed: {said}")
        folder = folder.with_name(run.undoes)
    return chain


def _say_what_was_done(target: str, chain: Sequence[tuple[Path, RunRecord]]) -> str:
    if len(chain) > 1:
        done, now = ("brought", "no longer in the tree") if len(chain) % 2 else ("took", "in the tree again")
        return f"undid {target}, an undo: the changes of {chain[-1][0].name} that it {done} back are {now}"
    parts = [f"undid {target}"]
    for _, record in chain:
        if edited := [file.path for file in record.rewritten if file.action != "reformat"]:
            went = f"this also undid what the build, or you, did to {listed(edited)} after the answer"
            parts.append(f"{went} (code-commit undo latest brings that back)")
        if left := done_by_build(record):
            parts.append(f"the build's own changes stay: it {left}")
    return "; ".join(parts)


def _mark(chain: Sequence[tuple[Path, RunRecord]], log: RunLog) -> None:
    """Note in the records whether the runs are undone now; last of all, so that a killed undo is repeated."""
    for number, (folder, run) in reversed(list(enumerate(chain))):
        run.undone = number % 2 == 0
        RunLog(RunEntry(folder, run), log.listener).write_json("run.json", run)
