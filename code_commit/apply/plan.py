"""The plan of a transaction: files from one content to another, and the folders that come and go with them."""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from code_commit.apply.failures import ChangedUnderUsError, UnfitPathError
from code_commit.apply.journal import FolderStep, Journal
from code_commit.changes import quoted
from code_commit.errors import ApplyError
from code_commit.files import Tree, folders_of
from code_commit.git import UnansweredError
from code_commit.paths.names import find_path_fault, find_protected, guarded_folders, read_limits
from code_commit.project import Project
from code_commit.runs.diff import FileEdit
from code_commit.terminal import shown


def require_fit(journals: Iterable[Journal], project: Project, *, what: str) -> None:
    """Raise UnfitPathError where a journal, named `what` in the message, names what no answer may change."""
    paths: set[str] = set()
    for journal in journals:
        folders = [*(folder.path for folder in (*journal.made, *journal.removed)), *journal.areas]
        paths.update([step.path for step in journal.files], (f"{folder}/_" for folder in folders))
    require_fit_paths(paths, project, what=what)


def require_fit_paths(paths: Iterable[str], project: Project, *, what: str) -> None:
    """Raise UnfitPathError where one of the paths, as a string, may not be in an answer; ApplyError without git."""
    tracked = cache(lambda: project.index().names())
    try:
        limits, guarded = read_limits(project.root), guarded_folders(project)
        for path in sorted(paths):
            fault = find_path_fault(path, limits, tracked)
            if why := fault[1] if fault else find_protected(path, guarded):
                raise UnfitPathError(f"{what} is refused, nothing was changed: it names {quoted(path)}; {why}")
    except UnansweredError as error:
        raise ApplyError(f"{error}; nothing was changed") from error


def require_no_link(tree: Tree, paths: Iterable[str]) -> None:
    """Raise UnfitPathError where a link is on the way to one of the paths, which have passed the other rules."""
    for folder in sorted(folders_of(paths) - {""}, key=lambda folder: folder.split("/")):
        found = tree.look(folder)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise UnfitPathError(f"{shown(folder)} is a link: move it away; nothing was changed")


class Plan(NamedTuple):
    """The steps of a transaction, folders before their contents. One in both `made` and `removed` gets a new mode."""

    writes: tuple[FileEdit, ...]
    made: tuple[FolderStep, ...]
    removed: tuple[FolderStep, ...]


def make_plan(
    tree: Tree, writes: Iterable[FileEdit], earlier: Mapping[str, FolderStep | None], *, exact: bool = False
) -> Plan:
    """Return the writes with their folders. `earlier` says how folders were before the run (None: not there).

    A missing folder is made as it was earlier; a folder that a deletion empties is removed. With `exact` all folders
    of `earlier` become as they were, and no others are removed. Raises ChangedUnderUsError if a file or a link is in
    the way, ApplyError for a path with `..`.
    """
    known = {path: step for path, step in earlier.items() if step is not None}
    needed = known if exact else {}
    removable = earlier.keys() - known.keys() if exact else None
    ordered = tuple(sorted(writes, key=lambda write: write.path.split("/")))  # a folder before what is in it
    for write in ordered:
        if not {"", ".", ".."}.isdisjoint(write.path.split("/")):
            raise ApplyError(f"{shown(write.path)} is not a path inside the project; every file is as it was before")
    gone = {write.path for write in ordered if write.new is None}
    arriving = folders_of([write.path for write in ordered if write.new is not None] + [f"{path}/" for path in needed])
    arriving.remove("")
    made = {path: known.get(path, FolderStep(path)) for path in sorted(arriving) if _is_missing(tree, path, gone)}
    removed = {folder.path: folder for folder in _emptied(tree, gone, arriving, removable)}
    for path, step in needed.items():
        now = None if path in made else _folder_now(tree, path)
        if now is not None and now.mode != step.mode:
            removed[path], made[path] = now, step
    return Plan(ordered, _sorted(made.values()), _sorted(removed.values()))


def _sorted(folders: Iterable[FolderStep]) -> tuple[FolderStep, ...]:
    return tuple(sorted(folders, key=lambda folder: folder.path.split("/")))


def _is_missing(tree: Tree, path: str, gone: Collection[str]) -> bool:
    found = tree.look(path)
    if found is None or path in gone:
        return True
    if not stat.S_ISDIR(found.st_mode):
        raise ChangedUnderUsError(path, "is no longer a folder, or is a link: make it a folder")
    return False


def _emptied(
    tree: Tree, gone: Collection[str], arriving: Collection[str], removable: Collection[str] | None
) -> list[FolderStep]:
    leaving: dict[str, set[str]] = {}
    for path in gone:
        leaving.setdefault(folder_of(path), set()).add(path.rpartition("/")[2])
    candidates = folders_of(gone) - {""} if removable is None else removable
    removed = []
    for path in sorted(candidates, key=lambda path: path.count("/"), reverse=True):  # a folder may empty the one above
        now = None if path in arriving else _folder_now(tree, path)
        if now and leaving.get(path, set()).issuperset(os.listdir(tree.folder(path))):  # noqa: PTH208 - a descriptor
            removed.append(now)
            leaving.setdefault(folder_of(path), set()).add(path.rpartition("/")[2])
    return removed


def _folder_now(tree: Tree, path: str) -> FolderStep | None:
    found = tree.look(path)
    if found is None or not stat.S_ISDIR(found.st_mode):
        return None
    return FolderStep(path, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid)


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]
