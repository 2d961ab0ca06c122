"""What a transaction is to do: files from one content to another, and the folders that come and go with them."""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from code_commit.apply.failures import ChangedUnderUsError
from code_commit.apply.journal import FolderStep
from code_commit.errors import ApplyError
from code_commit.files import Tree
from code_commit.runs.diff import FileEdit
from code_commit.terminal import shown


class Plan(NamedTuple):
    """All of it. Folders stand before what is in them, files of a folder together.

    A folder that is in both lists only changes its mode, unless it is empty on the way.
    """

    writes: tuple[FileEdit, ...]
    made: tuple[FolderStep, ...]
    removed: tuple[FolderStep, ...]


def make_plan(
    tree: Tree, writes: Iterable[FileEdit], earlier: Mapping[str, FolderStep | None], *, exact: bool = False
) -> Plan:
    """Add the folders to the writes. `earlier` says how folders were before the run (None: not there).

    A missing folder comes back as it was earlier, and a folder goes when it becomes empty by a deletion. With `exact`
    all folders of `earlier` come back, even when they stay empty, with their mode, and of the others only those go that
    were not there earlier.
    Raises ChangedUnderUsError where a folder on the way is something else, ApplyError on a path with `..`.
    """
    known = {path: step for path, step in earlier.items() if step is not None}
    needed = known if exact else {}
    removable = earlier.keys() - known.keys() if exact else None
    ordered = tuple(sorted(writes, key=lambda write: parts(write.path)))
    for write in ordered:
        if not {"", ".", ".."}.isdisjoint(parts(write.path)):
            raise ApplyError(f"{shown(write.path)} is not a path inside the project; every file is as it was before")
    gone = {write.path for write in ordered if write.new is None}
    arriving = {folder for write in ordered if write.new is not None for folder in folders_above(write.path)}
    arriving |= {folder for path in needed for folder in (path, *folders_above(path))}
    made = {
        path: known.get(path, FolderStep(path)) for path in sorted(arriving, key=parts) if _is_missing(tree, path, gone)
    }
    removed = {folder.path: folder for folder in _emptied(tree, gone, arriving, removable)}
    for path, step in needed.items():
        now = None if path in made else _folder_now(tree, path)
        if now is not None and now.mode != step.mode:
            removed[path], made[path] = now, step
    return Plan(ordered, _sorted(made.values()), _sorted(removed.values()))


def _sorted(folders: Iterable[FolderStep]) -> tuple[FolderStep, ...]:
    return tuple(sorted(folders, key=lambda folder: parts(folder.path)))


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
    candidates = {folder for path in gone for folder in folders_above(path)} if removable is None else removable
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
    """Return the path of the folder that the path is in."""
    return path.rpartition("/")[0]


def folders_above(path: str) -> list[str]:
    """Return every folder that the path lies in, the nearest first, without the root."""
    folders = []
    while path := folder_of(path):
        folders.append(path)
    return folders


def parts(path: str) -> list[str]:
    """Sort key: a folder's files stand together, a folder before what is in it."""
    return path.split("/")
