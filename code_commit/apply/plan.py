"""What a transaction is to do: files from one content to another, and the folders that come and go with them."""

import errno
import heapq
import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from code_commit.apply.record import FolderStep
from code_commit.apply.tree import Tree, folder_of, folders_above, parts


@dataclass(frozen=True, slots=True)
class Write:
    """One file: what it must hold right before (None: not be there), and what it holds after (None: it is gone).

    `owner` is user and group of a file that was not there; one that was keeps its own.
    """

    path: str
    old: bytes | None
    old_mode: int
    new: bytes | None
    new_mode: int
    owner: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All of it. Folders stand before what is in them, files of a folder together."""

    writes: tuple[Write, ...]
    made: tuple[FolderStep, ...]
    removed: tuple[FolderStep, ...]


def make_plan(
    tree: Tree,
    writes: Iterable[Write],
    known: Mapping[str, FolderStep],
    needed: Iterable[str] = (),
    removable: Collection[str] | None = None,
) -> Plan:
    """Add the folders to the writes.

    A missing folder comes back as `known` has it, `needed` ones even when they stay empty. A folder goes when it
    becomes empty by a deletion, or, where `removable` is given, when it is empty then and named there.
    Raises OSError: ENOTDIR where a folder on the way is something else.
    """
    ordered = tuple(sorted(writes, key=lambda write: parts(write.path)))
    gone = {write.path for write in ordered if write.new is None}
    arriving = {folder for write in ordered if write.new is not None for folder in folders_above(write.path)}
    arriving |= {folder for path in needed for folder in (path, *folders_above(path))}
    missing = [path for path in sorted(arriving, key=parts) if _is_missing(tree, path, gone)]
    removed = _emptied(tree, gone, arriving, removable)
    return Plan(ordered, tuple(known.get(path, FolderStep(path)) for path in missing), tuple(removed))


def _is_missing(tree: Tree, path: str, gone: Collection[str]) -> bool:
    found = tree.look(path)
    if found is None or path in gone:
        return True
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return False


def _emptied(
    tree: Tree, gone: Collection[str], arriving: Collection[str], removable: Collection[str] | None
) -> list[FolderStep]:
    leaving: dict[str, set[str]] = {}
    for path in gone:
        leaving.setdefault(folder_of(path), set()).add(path.rpartition("/")[2])
    waiting = [(-len(parts(path)), path) for path in (leaving if removable is None else removable)]
    heapq.heapify(waiting)  # the deepest first: its parent may become empty with it
    removed = []
    while waiting:
        path = heapq.heappop(waiting)[1]
        if not path or path in arriving or not _is_folder(tree, path):
            continue
        folder = tree.folder(path)
        if leaving.get(path, set()).issuperset(os.listdir(folder)):  # noqa: PTH208 - a descriptor
            now = os.fstat(folder)
            removed.append(FolderStep(path, stat.S_IMODE(now.st_mode), now.st_uid, now.st_gid))
            above, _, name = path.rpartition("/")
            if above not in leaving and removable is None:
                heapq.heappush(waiting, (-len(parts(above)), above))
            leaving.setdefault(above, set()).add(name)
    return removed[::-1]


def _is_folder(tree: Tree, path: str) -> bool:
    found = tree.look(path)
    return found is not None and stat.S_ISDIR(found.st_mode)
