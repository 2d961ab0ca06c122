"""The errors of writing files, as messages to the user: where, why, what to do."""

import errno
from collections.abc import Sequence

from code_commit.errors import ApplyError
from code_commit.status import Status
from code_commit.terminal import shown

_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EFBIG: "the file is larger than the limit for files (see `ulimit -f`): raise it",
    errno.EACCES: "permission denied: make the file and its folder writable for you",
    errno.EPERM: "not permitted: look for an immutable flag (`lsattr`) and at the owner of the file and its folder",
    errno.EROFS: "the file system is read-only: make it writable",
    errno.EIO: "input/output error: check the disk and the system log",
}


class ChangedUnderUsError(ApplyError):
    """A file is not as the verification pass saw it; nothing was changed."""

    def __init__(self, path: str, how: str = "changed on disk while the changes were being applied: run again") -> None:
        super().__init__(f"{shown(path)} {how}; every file is as it was before")


class ChangedSinceError(ApplyError):
    """Files changed after the run that is to be undone; nothing was restored."""

    status = Status.REFUSED
    exit_code = 1

    def __init__(self, run: str, paths: Sequence[str], later: str = "") -> None:
        """`later` is the latest run after this `run` that changed any of them."""
        self.paths = tuple(paths)
        names = ", ".join(map(shown, self.paths))
        first = f"the run {later} did that: undo it first with code-commit undo {later}; " if later else ""
        super().__init__(
            f"{names} changed after {run}, so nothing was restored; {first}--force restores anyway"
            " (after that, code-commit undo latest brings these edits back)"
        )


class UnfitPathError(ApplyError):
    """A path that the rules for answers, or a link, forbid to write. Nothing was changed."""

    status = Status.REFUSED
    exit_code = status.exit_code


class EditedSinceError(ApplyError):
    """An interrupted apply cannot be repaired without the loss of an edit."""

    def __init__(self, paths: Sequence[str]) -> None:
        names = ", ".join(map(shown, paths))
        super().__init__(
            f"an interrupted apply cannot be repaired, because this was edited since: {names}; move it away and run "
            "code-commit again to restore the old files, or delete agent-config/.txn to keep everything as it is now"
        )


def reason(error: BaseException) -> str:
    """Return the cause and what to do about it, without a full stop."""
    if isinstance(error, OSError) and error.errno:
        return _ADVICE.get(error.errno, error.strerror or str(error))
    return str(error) or type(error).__name__
