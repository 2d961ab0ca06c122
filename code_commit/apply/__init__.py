"""Apply verified changes to the tree, all or none; undo and repair them; hold the tree's lock."""

from code_commit.apply.failures import ChangedSinceError, ChangedUnderUsError
from code_commit.apply.lock import is_locked, lock_tree
from code_commit.apply.plan import require_fit_paths
from code_commit.apply.recover import HALF_CHANGED, is_half_changed, needs_recovery, recover
from code_commit.apply.restore import (
    UndoScope,
    changed_since,
    check_restorable,
    find_changed,
    find_overwritten,
    note_built,
    redo,
    restore,
)
from code_commit.apply.snapshot import load_layers, load_originals
from code_commit.apply.transaction import apply_changes

__all__ = [
    "HALF_CHANGED",
    "ChangedSinceError",
    "ChangedUnderUsError",
    "UndoScope",
    "apply_changes",
    "changed_since",
    "check_restorable",
    "find_changed",
    "find_overwritten",
    "is_half_changed",
    "is_locked",
    "load_layers",
    "load_originals",
    "lock_tree",
    "needs_recovery",
    "note_built",
    "recover",
    "redo",
    "require_fit_paths",
    "restore",
]
