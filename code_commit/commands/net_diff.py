"""The whole change of a run as one diff: from the originals of its snapshot to the files that it left."""

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from code_commit.apply.snapshot import first_states, left_states, load_contents, load_layers, read_original
from code_commit.changes import AppliedChange
from code_commit.files import open_regular
from code_commit.git import Repository
from code_commit.runs.diff import FileEdit, diff_files, known_text


class NetDiff(NamedTuple):
    """A run's whole change as a diff that `git apply` reads, its numbers, and the files whose content is lost."""

    diff: bytes
    unknown: list[str]
    changes: list[AppliedChange]


def net_diff(folder: Path, root: Path, prefix: str = "", git: Repository | None = None) -> NetDiff:
    """Return the changes of this log folder's run, and of its builds, below `root`. Raises ApplyError.

    `prefix` stands before every path. The diff is of what `git` would store, where that is given.
    """
    edits, unknown = net_edits(folder, root)
    changes, diff = diff_files(edits, git, prefix, lambda: known_text(folder))
    return NetDiff(diff, unknown, changes)


def net_edits(folder: Path, root: Path) -> tuple[list[FileEdit], list[str]]:
    """Return each file that the run changed, before and after, and the files whose content of then is lost.

    The tree may still have a content that the snapshot of an older version's log lacks. Raises ApplyError.
    """
    snapshot = folder / "snapshot"
    layers = load_layers(snapshot)
    left, contents = left_states(snapshot, layers), load_contents(snapshot)
    edits, unknown = [], []
    for path, before in first_states(layers).items():
        after = left[path]
        if before == after:
            continue
        new = contents.get(path, b"") if after else None
        if after and sha256(new or b"").hexdigest() != after.sha256:
            new = _read(root / path)
            if sha256(new).hexdigest() != after.sha256:
                unknown.append(path)
                continue
        old = read_original(snapshot, path, before) if before else None
        modes = (before.mode if before else 0o644, after.mode if after else 0o644)
        edits.append(FileEdit(path, old, new, *modes))
    return edits, unknown


def _read(path: Path) -> bytes:
    """Return a file's content; b"" if it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.readall()
    except (OSError, ValueError):  # a name that no file can have, in a log that was tampered with
        return b""
