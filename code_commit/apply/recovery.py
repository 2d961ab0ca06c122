"""Repair what an interrupted apply left: every file as it was before, or only the clean-up that was left to do."""

import os
from typing import TYPE_CHECKING

from code_commit.apply.failures import reason
from code_commit.apply.lock import locked
from code_commit.errors import ApplyError
from code_commit.project import AGENT_CONFIG, Project

if TYPE_CHECKING:
    from code_commit.apply.staging import Staging

TRANSACTION_FOLDER = ".txn"

_FOLDER = f"{AGENT_CONFIG}/{TRANSACTION_FOLDER}"


def needs_recovery(project: Project) -> bool:
    """Tell whether an interrupted apply left something to repair or clean up (or one is running: see `is_locked`)."""
    return os.path.lexists(project.agent_config / TRANSACTION_FOLDER)


def recover(project: Project) -> str | None:
    """Repair an interrupted apply and say in one line what was done; None when there was nothing.

    Takes the tree's lock unless this process holds it. Can be killed anywhere and started again.
    Raises EditedSinceError when somebody edited one of the files since, ApplyError when the repair fails, NotSetUpError
    when another process holds the lock.
    """
    if not needs_recovery(project):
        return None
    from code_commit.apply.record import DamagedRecordError
    from code_commit.apply.staging import Staging

    with locked(project):
        if not needs_recovery(project):
            return None
        try:
            with Staging(project) as staging:
                return _recover(staging)
        except DamagedRecordError as error:
            raise ApplyError(
                f"an interrupted apply cannot be repaired, its journal is damaged: {error}; "
                f"{_FOLDER} holds the originals: put back by hand what `git status` shows, then delete that folder"
            ) from error
        except (OSError, UnicodeError) as error:
            message = f"an interrupted apply could not be repaired from {_FOLDER}: {reason(error)}; run again then"
            raise ApplyError(message) from error


def _recover(staging: "Staging") -> str:
    from code_commit.apply.put_back import put_back
    from code_commit.apply.snapshots import remove_layer
    from code_commit.apply.staging import JOURNAL, SETTLED

    journal = staging.read(JOURNAL)
    if journal is None:
        staging.read(SETTLED)
        staging.clean()
        return "removed the left-over files of an interrupted apply; no file of the project needed a repair"
    count = put_back(staging, journal, range(len(journal.files)))
    remove_layer(staging.root / journal.layer)
    staging.settle()
    staging.clean()
    return (
        f"repaired an interrupted apply: put back {count} of {len(journal.files)} files, the others had not changed yet"
    )
