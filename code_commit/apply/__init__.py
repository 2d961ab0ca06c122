"""Apply verified changes to the tree, all of them or none, whatever happens; undo and repair; the tree's lock.

The guarantees and their order of steps are those of `transaction`; the file formats those of `record` and `snapshots`.
"""

from pathlib import Path

from code_commit.apply.carry_out import carry_out
from code_commit.apply.failures import ChangedSinceError, ChangedUnderUsError, EditedSinceError
from code_commit.apply.lock import is_locked, lock_tree, locked
from code_commit.apply.plan import Write
from code_commit.apply.recovery import needs_recovery, recover
from code_commit.apply.restore import RestoredFile, restore
from code_commit.changes import VerifiedChange, VerifiedChanges
from code_commit.project import Project

__all__ = [
    "ChangedSinceError",
    "ChangedUnderUsError",
    "EditedSinceError",
    "RestoredFile",
    "apply_changes",
    "is_locked",
    "lock_tree",
    "needs_recovery",
    "recover",
    "restore",
]


def apply_changes(changes: VerifiedChanges, project: Project, snapshot: Path) -> None:
    """Write all the verified changes, or none. `snapshot` is the run's snapshot folder, made where it is missing.

    It then holds each file as it was before the run touched it first. A file whose content and mode would stay the
    same is left alone. Takes the tree's lock unless this process holds it, and repairs an interrupted apply first.
    Raises ChangedUnderUsError when a file is not as the verification pass saw it, ApplyError for everything else:
    every file is as it was; NotSetUpError when another process holds the lock.
    """
    with locked(project):
        recover(project)
        writes = [_write(change) for change in changes.changes if not _is_idle(change)]
        carry_out(writes, project, snapshot)


def _write(change: VerifiedChange) -> Write:
    original = change.original
    if original is None:
        return Write(change.path, None, 0, change.content, change.mode)
    return Write(change.path, original.content, original.mode, change.content, change.mode)


def _is_idle(change: VerifiedChange) -> bool:
    original = change.original
    return original is not None and (change.content, change.mode) == (original.content, original.mode)
