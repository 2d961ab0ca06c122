"""Apply verified changes to the tree, all of them or none, whatever happens; undo and repair; the tree's lock.

The guarantees and their order of steps are those of `transaction`; the file formats those of `record` and `snapshots`.
What only an apply or an undo needs is imported there: most commands ask for the lock alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from code_commit.apply.failures import ChangedSinceError, ChangedUnderUsError, EditedSinceError
from code_commit.apply.lock import is_locked, lock_tree, locked
from code_commit.apply.recovery import needs_recovery, recover
from code_commit.changes import VerifiedChanges
from code_commit.project import Project

if TYPE_CHECKING:
    from code_commit.apply.restoring import RestoredFile

__all__ = [
    "ChangedSinceError",
    "ChangedUnderUsError",
    "EditedSinceError",
    "apply_changes",
    "changed_since",
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
    from code_commit.apply.carry_out import carry_out, writes_of

    with locked(project):
        recover(project)
        carry_out(writes_of(changes), project, snapshot)


def changed_since(snapshot: Path, project: Project) -> list[str]:
    """Return the files that are not as the run with this snapshot left them. Raises ApplyError."""
    from code_commit.apply.restoring import find_changed_since

    return find_changed_since(snapshot, project)


def restore(
    snapshots: Sequence[Path], project: Project, snapshot: Path, *, force: bool = False
) -> "tuple[RestoredFile, ...]":
    """Put back every file as it was before the runs whose snapshot folders these are, oldest run first.

    All or nothing, by the same transaction as an apply; `snapshot` is the undo's own snapshot folder, from which the
    undo can be undone. Files and folders that are as before already are left alone. Returns what was put back, by path.

    Takes the tree's lock unless this process holds it, and repairs an interrupted apply first. Raises
    ChangedSinceError, naming all of them, when files are not as the runs left them, unless `force`; ApplyError when a
    snapshot is missing or damaged or the files cannot be written; NotSetUpError when another process holds the lock.
    Nothing was restored then.

    Extended attributes of a file that the run deleted do not come back.
    """
    from code_commit.apply.restoring import restore_snapshots

    with locked(project):
        recover(project)
        return restore_snapshots(snapshots, project, snapshot, force=force)
