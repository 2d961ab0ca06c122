"""Recovery: put back every file of an interrupted apply, or finish its clean-up; the same in process after an error.

Each step looks first whether it is already done, so it can be killed anywhere and started again. A file that is neither
the old one nor the new one was edited: then nothing is touched.
"""

import errno
import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Literal

from code_commit.apply.failures import EditedSinceError, reason
from code_commit.apply.journal import (
    JOURNAL,
    SETTLED,
    DamagedJournalError,
    FileStep,
    FolderStep,
    Journal,
    Staging,
)
from code_commit.apply.lock import is_locked, locked
from code_commit.apply.plan import folder_of, require_fit, require_no_link
from code_commit.apply.snapshot import LAYER_NAME, remove_layer
from code_commit.errors import ApplyError
from code_commit.files import NotAFileError, Tree, folders_of, sync_folder
from code_commit.ownership import set_mode
from code_commit.project import AGENT_CONFIG, TRANSACTION_FOLDER, Project
from code_commit.regex import regex
from code_commit.runs.words import count

_FOLDER = f"{AGENT_CONFIG}/{TRANSACTION_FOLDER}"
_LAYER = regex(rf"{AGENT_CONFIG}/logs/[\w-]+/(snapshot|rolled-back)/{LAYER_NAME.pattern}")
_FOLDER_STAYS = {errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY, errno.EACCES, errno.EPERM}
HALF_CHANGED = (
    "an interrupted apply left the tree half changed: the next code-commit resume, undo, run, apply or rollup first "
    "puts every file back"
)


def needs_recovery(project: Project) -> bool:
    """Tell whether an interrupted or a running apply left something to repair or clean up."""
    return os.path.lexists(project.agent_config / TRANSACTION_FOLDER)


def is_half_changed(project: Project) -> bool:
    """Tell whether an apply was interrupted between its first change and its last."""
    return os.path.lexists(project.agent_config / TRANSACTION_FOLDER / JOURNAL) and is_locked(project) is None


def recover(project: Project) -> str:
    """Repair an interrupted apply and return in one line what was done; "" when there was nothing.

    Takes the tree's lock unless this thread holds it. Raises EditedSinceError when one of the files was edited since,
    ApplyError when the repair fails, NotSetUpError when the lock is held elsewhere.
    """
    if not needs_recovery(project):
        return ""
    with locked(project):
        if not needs_recovery(project):
            return ""
        try:
            with Staging(project) as staging:
                return _recover(staging, project)
        except DamagedJournalError as error:
            raise ApplyError(
                f"an interrupted apply cannot be repaired because its journal is damaged: {error}; "
                f"{_FOLDER} contains the originals: restore by hand what `git status` shows, then delete that folder"
            ) from error
        except OSError as error:
            message = f"an interrupted apply could not be repaired from {_FOLDER}: {reason(error)}; then rerun"
            raise ApplyError(message) from error


def _recover(staging: Staging, project: Project) -> str:
    journal = staging.read(JOURNAL)
    if journal is None:
        staging.read(SETTLED)
        staging.clean()
        return "removed the leftover files of an interrupted apply; no project file needed a repair"
    require_fit([journal], project, what="the journal of an interrupted apply")
    require_no_link(staging.tree, [f"{step.path}/_" for step in journal.files])
    if _LAYER.fullmatch(journal.layer) is None:
        raise DamagedJournalError("it names something else as its file in the snapshot")
    number = recover_files(staging, journal, range(len(journal.files)))
    staging.commit()
    staging.clean()
    files = count(len(journal.files), "file")
    return f"repaired an interrupted apply: put back {number} of {files}; the others had not changed yet"


def recover_files(staging: Staging, journal: Journal, positions: Iterable[int]) -> int:
    """Put the files at these positions back, durably; return the number of changed ones. Raises EditedSinceError."""
    tree = staging.tree
    tree.forget()
    tree.tell_apart(step.path for step in journal.files)
    folders = {folder.path for folder in (*journal.made, *journal.removed)}
    found = {position: _find(tree, journal.files[position], folders) for position in positions}
    edited = [journal.files[position].path for position, state in found.items() if state == "edited"]
    if edited:
        raise EditedSinceError(edited)
    misplaced = {
        position: journal.files[position]
        for position, state in reversed(found.items())
        if state != ("old" if journal.files[position].before else "absent")
    }
    for position, step in misplaced.items():
        if step.after is not None:
            _put_file_back(staging, step, position)
    tree.forget()
    for folder in reversed(journal.made):
        remove_folder(tree, folder.path)
    for folder in journal.removed:
        _make_missing_folders(tree, folder.path)
        with suppress(FileExistsError):
            make_folder(tree, folder)
        set_folder_mode(tree, folder)
    for position, step in misplaced.items():
        if step.after is None:
            _put_file_back(staging, step, position)
    sync_touched(tree, journal)
    remove_layer(staging.root / journal.layer)
    return len(misplaced)


def _find(tree: Tree, step: FileStep, folders: Collection[str]) -> Literal["old", "new", "absent", "edited"]:
    found = tree.look(step.path)
    if found is None or (step.path in folders and stat.S_ISDIR(found.st_mode)):
        return "absent"  # where it takes a folder's place, or gives way to one, it may be that folder
    try:
        content, now = tree.read(step.path)
    except NotAFileError:
        return "edited"
    digest = sha256(content).hexdigest()
    if step.before and (digest, stat.S_IMODE(now.st_mode)) == (step.before.sha256, step.before.mode):
        return "old"
    return "new" if digest in {state.sha256 for state in (step.before, step.after) if state} else "edited"


def _put_file_back(staging: Staging, step: FileStep, position: int) -> None:
    if step.before is not None:
        _make_missing_folders(staging.tree, step.path)
    folder, name = staging.tree.parent(step.path)
    if step.before is None:
        os.unlink(name, dir_fd=folder)
    else:
        os.rename(f"old-{position}", name, src_dir_fd=staging.area(step.area), dst_dir_fd=folder)


def _make_missing_folders(tree: Tree, path: str) -> None:
    for folder in sorted(folders_of([path]) - {""}):
        if tree.look(folder) is None:
            parent, name = tree.parent(folder)
            os.mkdir(name, dir_fd=parent)


def make_folder(tree: Tree, folder: FolderStep) -> None:
    """Make the folder and give it its mode and owner. Raises FileExistsError."""
    parent, name = tree.parent(folder.path)
    os.mkdir(name, 0o777 if folder.mode is None else folder.mode & 0o777, dir_fd=parent)
    set_folder_mode(tree, folder)


def set_folder_mode(tree: Tree, folder: FolderStep) -> None:
    if folder.mode is not None and folder.uid is not None and folder.gid is not None:
        set_mode(tree.folder(folder.path), folder.mode, (folder.uid, folder.gid))


def remove_folder(tree: Tree, path: str) -> None:
    """Remove the folder if it is there and empty, and nothing holds it."""
    tree.forget()
    try:
        parent, name = tree.parent(path)
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in _FOLDER_STAYS:
            raise


def sync_touched(tree: Tree, journal: Journal) -> None:
    """Make durable every name that the transaction makes, replaces or removes, and the modes of its folders."""
    paths = [step.path for step in journal.files]
    paths += [folder.path for folder in (*journal.made, *journal.removed)]
    paths += [f"{folder.path}/" for folder in journal.removed]  # its mode
    for path in sorted(set(map(folder_of, paths))):
        try:
            folder = tree.folder(path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # it is gone: the folder that it was in covers it
        sync_folder(folder)
