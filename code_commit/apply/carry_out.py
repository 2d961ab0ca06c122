"""Plan the writes, run the transaction, and say what went wrong; a second try stages the files beside their targets."""

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path

from code_commit.apply.failures import apply_failure
from code_commit.apply.plan import Plan, Write, make_plan
from code_commit.apply.record import FolderStep, Record
from code_commit.apply.recovery import TRANSACTION_FOLDER
from code_commit.apply.snapshots import first_folders, load_layers
from code_commit.apply.staging import Staging
from code_commit.apply.transaction import Transaction
from code_commit.changes import VerifiedChange, VerifiedChanges
from code_commit.files import Tree
from code_commit.project import AGENT_CONFIG, Project


def writes_of(changes: VerifiedChanges) -> list[Write]:
    """Return what the changes write, without the files whose content and mode would stay the same."""
    return [_write(change) for change in changes.changes if not _is_idle(change)]


def _write(change: VerifiedChange) -> Write:
    original = change.original
    if original is None:
        return Write(change.path, None, 0, change.content, change.mode)
    return Write(change.path, original.content, original.mode, change.content, change.mode)


def _is_idle(change: VerifiedChange) -> bool:
    original = change.original
    return original is not None and (change.content, change.mode) == (original.content, original.mode)


def carry_out(
    writes: Sequence[Write],
    project: Project,
    snapshot: Path,
    folders: Mapping[str, FolderStep | None] | None = None,
) -> None:
    """Do all the writes or none, under the lock that the caller holds. Raises ApplyError.

    `folders` says how the folders were that are to be restored (None: not there); without it, folders that become
    empty go, and those that the run removed earlier come back with their mode where a file needs them.
    """
    layers = load_layers(snapshot)
    at = writes[0].path if writes else str(snapshot)
    try:
        plan = _plan(writes, project, layers, folders)
        if not (plan.writes or plan.made or plan.removed):
            return
        at = f"{AGENT_CONFIG}/{TRANSACTION_FOLDER}"
        for beside in (False, True):
            with Staging(project) as staging:
                transaction = Transaction(staging, plan, snapshot, layers, beside=beside)
                try:
                    transaction.run()
                except OSError as error:
                    if error.errno != errno.EXDEV or beside:
                        raise
                    continue
                finally:
                    at = transaction.at
            return
    except (OSError, UnicodeError) as error:
        raise apply_failure(error, at) from error


def _plan(
    writes: Sequence[Write],
    project: Project,
    layers: Sequence[Record],
    folders: Mapping[str, FolderStep | None] | None,
) -> Plan:
    with Tree(project.root) as tree:
        if folders is None:
            earlier = first_folders(layers)
            return make_plan(tree, writes, {path: step for path, step in earlier.items() if step is not None})
        needed = {path: step for path, step in folders.items() if step is not None}
        removable = [path for path, step in folders.items() if step is None]
        return make_plan(tree, writes, needed, needed, removable)
