"""Put every file of a half-done transaction back as it was: after an error in process, and after a crash.

Each step looks first whether it is already done, so it can be killed anywhere and started again. A file that is
neither the old one nor the new one was edited by somebody: then nothing is touched.
"""

import errno
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from code_commit.apply.durable import digest_of, set_owner_and_mode
from code_commit.apply.failures import EditedSinceError
from code_commit.apply.plan import folder_of, folders_above
from code_commit.apply.record import DamagedRecordError, FileStep, FolderStep, Record
from code_commit.apply.staging import Staging, old_name
from code_commit.files import NotAFileError, Tree, open_regular, sync_folder

_FOLDER_STAYS = {errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.EACCES, errno.EPERM}

Found = Literal["old", "new", "absent", "edited"]


@dataclass(frozen=True, slots=True)
class _Work:
    position: int
    step: FileStep
    found: Found


def put_back(staging: Staging, record: Record, positions: Iterable[int]) -> int:
    """Undo the steps at these positions and return how many files were put back; all of it is durable then.

    Raises EditedSinceError or DamagedRecordError before anything is touched, OSError on the way.
    """
    staging.tree.forget()
    folders = {folder.path for folder in (*record.made, *record.removed)}
    work = []
    for position in positions:
        step = record.files[position]
        work.append(_Work(position, step, _find(staging.tree, step, folders)))
    edited = [item.step.path for item in work if item.found == "edited"]
    if edited:
        raise EditedSinceError(edited)
    misplaced = [item for item in work if item.found != ("old" if item.step.before else "absent")]
    for item in misplaced:
        _check_kept(staging, item)
    for item in reversed(misplaced):
        if item.step.after is not None:
            _put_file_back(staging, item)
    staging.tree.forget()
    for folder in reversed(record.made):
        remove_folder(staging.tree, folder.path)
    for folder in record.removed:
        make_missing_folders(staging.tree, folder.path)
        with suppress(FileExistsError):
            make_folder(staging.tree, folder)
        set_folder_mode(staging.tree, folder)
    for item in reversed(misplaced):
        if item.step.after is None:
            _put_file_back(staging, item)
    sync_touched(staging.tree, touched_folders(record))
    return len(misplaced)


def _find(tree: Tree, step: FileStep, folders: Collection[str]) -> Found:
    if tree.look(step.path) is None:
        return "absent"
    if step.path in folders and tree.is_folder(step.path):
        return "absent"  # it takes a folder's place, or gives way to one
    try:
        with tree.open_file(step.path) as file:
            mode = os.fstat(file.fileno()).st_mode & 0o7777
            digest = digest_of(file)
    except NotAFileError:
        return "edited"
    if step.before and (digest, mode) == (step.before.sha256, step.before.mode):
        return "old"
    return "new" if digest in {state.sha256 for state in (step.before, step.after) if state} else "edited"


def _check_kept(staging: Staging, item: _Work) -> None:
    if item.step.before is None:
        return
    try:
        with open_regular(old_name(item.position), folder=staging.area(item.step.area)) as file:
            if digest_of(file) != item.step.before.sha256:
                raise DamagedRecordError(f"the original of {item.step.path} is damaged in it")
    except (FileNotFoundError, NotAFileError) as error:
        raise DamagedRecordError(f"the original of {item.step.path} is missing in it") from error


def _put_file_back(staging: Staging, item: _Work) -> None:
    path = item.step.path
    if item.step.before is None:
        folder, name = staging.tree.parent(path)
        os.unlink(name, dir_fd=folder)
        return
    make_missing_folders(staging.tree, path)
    area = staging.area(item.step.area)
    folder, name = staging.tree.parent(path)
    os.rename(old_name(item.position), name, src_dir_fd=area, dst_dir_fd=folder)


def make_missing_folders(tree: Tree, path: str) -> None:
    """Make the folders that the path lies in where somebody removed them."""
    missing = [folder for folder in folders_above(path) if tree.look(folder) is None]
    for folder in reversed(missing):
        parent, name = tree.parent(folder)
        os.mkdir(name, dir_fd=parent)


def make_folder(tree: Tree, folder: FolderStep) -> None:
    """Make the folder and give it its mode and owner. Raises FileExistsError."""
    parent, name = tree.parent(folder.path)
    os.mkdir(name, 0o777 if folder.mode is None else folder.mode & 0o777, dir_fd=parent)
    set_folder_mode(tree, folder)


def set_folder_mode(tree: Tree, folder: FolderStep) -> None:
    """Give the folder the mode and owner that are noted for it."""
    if folder.mode is None or folder.uid is None or folder.gid is None:
        return
    made = tree.folder(folder.path)
    set_owner_and_mode(made, folder.uid, folder.gid, folder.mode)


def remove_folder(tree: Tree, path: str) -> None:
    """Remove the folder if it is there and empty, and nothing holds it."""
    tree.forget()
    try:
        parent, name = tree.parent(path)
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in _FOLDER_STAYS:
            raise


def touched_folders(record: Record) -> list[str]:
    """Return every folder in which a transaction makes, replaces or removes a name."""
    paths = [step.path for step in record.files]
    paths += [folder.path for folder in (*record.made, *record.removed)]
    paths += [f"{folder.path}/" for folder in record.removed]  # its mode
    return sorted({folder_of(path) for path in paths})


def sync_touched(tree: Tree, folders: Iterable[str]) -> None:
    """Make the names in the folders durable; a folder that is gone is covered by the one it was in."""
    for path in folders:
        try:
            folder = tree.folder(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        sync_folder(folder)
