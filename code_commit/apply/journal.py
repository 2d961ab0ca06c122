"""What one transaction does, as a value and as the JSON file that is its journal, and later its part of a snapshot.

The journal stands in `agent-config/.txn`, with the new files and the old ones: that folder is on the tree's file
system, where renames are atomic, and git does not see it. Where a rename cannot cross over (agent-config or a part of
the tree is a mount of its own), the copies stand in a folder of this module's own beside their targets, hidden from git
by a `.gitignore` of its own.

`journal.json` is there exactly while files may be half changed, `settled.json` while only cleaning up is left.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from code_commit.files import FOLDER, NewFiles, Tree, open_regular, sync_folder
from code_commit.project import TRANSACTION_FOLDER, Project

FORMAT = 1
"""Grows whenever a reader of the older one would misread it. Older versions also wrote a checksum; it is not read."""

BESIDE_FOLDER = ".code-commit-txn"
JOURNAL = "journal.json"
SETTLED = "settled.json"


class DamagedJournalError(ValueError):
    """The bytes are not a journal that this version reads."""


class FileState(NamedTuple):
    """A regular file: its content by SHA-256 and length, its permission bits, its owner."""

    sha256: str
    size: int
    mode: int
    uid: int
    gid: int

    def same_file(self, other: "FileState | None") -> bool:
        """Tell whether content and mode are the same; a different owner alone makes no difference."""
        return other is not None and (self.sha256, self.mode) == (other.sha256, other.mode)


class FileStep(NamedTuple):
    """One file before and after (None: not there). `area` is the index of the staging folder with its two copies."""

    path: str
    before: FileState | None
    after: FileState | None
    area: int = 0


class FolderStep(NamedTuple):
    """A folder that is made or removed, with its permission bits and owner (None: the umask and the system decide)."""

    path: str
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None


class Journal(NamedTuple):
    """One transaction. Folders stand before what is in them.

    `areas` are the staging folders beside their targets (index 1 and up; 0 is agent-config/.txn), `layer` is the
    snapshot's file for this transaction, relative to the root where it lies below it.
    """

    files: tuple[FileStep, ...] = ()
    made: tuple[FolderStep, ...] = ()
    removed: tuple[FolderStep, ...] = ()
    areas: tuple[str, ...] = ()
    layer: str = ""


def encode(journal: Journal) -> bytes:
    """Return the journal as JSON."""
    body = {
        "files": [
            {**step._asdict(), "before": _fields(step.before), "after": _fields(step.after)} for step in journal.files
        ],
        "made": [folder._asdict() for folder in journal.made],
        "removed": [folder._asdict() for folder in journal.removed],
        "areas": journal.areas,
        "layer": journal.layer,
    }
    return json.dumps({"format": FORMAT, "body": body}).encode("ascii") + b"\n"


def decode(content: bytes) -> Journal:
    """Read a journal. Raises DamagedJournalError on anything else, one of a newer format included.

    Its paths are any strings: `require_fit` of `plan` checks them.
    """
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise DamagedJournalError(f"it has format {document['format']!r}, this version reads {FORMAT}")
        body = document["body"]
        journal = Journal(
            files=tuple(
                FileStep(step["path"], _file_state(step["before"]), _file_state(step["after"]), step["area"])
                for step in body["files"]
            ),
            made=tuple(FolderStep(**folder) for folder in body["made"]),
            removed=tuple(FolderStep(**folder) for folder in body["removed"]),
            areas=tuple(body["areas"]),
            layer=body["layer"],
        )
        _check_values(journal)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, DamagedJournalError):
            raise
        raise DamagedJournalError("it is not whole") from error
    return journal


def _check_values(journal: Journal) -> None:
    """Raise TypeError or ValueError where a value is not of its type, or is a number that the system does not take."""
    folders = (*journal.made, *journal.removed)
    states = [state for step in journal.files for state in (step.before, step.after) if state]
    paths = [*(step.path for step in journal.files), *(folder.path for folder in folders)]
    "".join([journal.layer, *journal.areas, *paths])
    numbers: list[tuple[Any, int]] = [(step.area, len(journal.areas)) for step in journal.files]
    for state in states:
        numbers += zip(state[1:], (sys.maxsize, _MOST_MODE, _MOST_ID, _MOST_ID), strict=True)
    for folder in folders:
        known = zip(folder[1:], (_MOST_MODE, _MOST_ID, _MOST_ID), strict=True)
        numbers += [(number, most) for number, most in known if number is not None]
    if not all(isinstance(number, int) and -1 <= number <= most for number, most in numbers):
        raise ValueError
    if not all(re.fullmatch("[0-9a-f]{64}", state.sha256) for state in states):
        raise ValueError


_MOST_MODE, _MOST_ID = 0o7777, 2**32 - 2


def _fields(state: FileState | None) -> Mapping[str, Any] | None:
    return None if state is None else state._asdict()


def _file_state(fields: Mapping[str, Any] | None) -> FileState | None:
    return None if fields is None else FileState(**fields)


class Staging:
    """The transaction's folder, opened. `areas` are the folders beside targets, named relative to the root.

    `tree` is for the targets; the areas are walked apart, so that each keeps its folder open.
    """

    def __init__(self, project: Project) -> None:
        self.root = project.root
        self.areas: Sequence[str] = ()
        self._config = os.open(project.agent_config, FOLDER & ~os.O_NOFOLLOW)
        try:
            with suppress(FileExistsError):
                os.mkdir(TRANSACTION_FOLDER, 0o700, dir_fd=self._config)
            self.folder = os.open(TRANSACTION_FOLDER, FOLDER, dir_fd=self._config)
        except OSError:
            os.close(self._config)
            raise
        self.tree = Tree(project.root)
        self._beside = Tree(project.root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.tree.close()
        self._beside.close()
        os.close(self.folder)
        os.close(self._config)

    def area(self, index: int) -> int:
        """Return a descriptor of the staging folder, good until the next question."""
        return self.folder if index == 0 else self._beside.folder(self.areas[index - 1])

    def open_beside(self, areas: Sequence[str]) -> None:
        """Make the folders beside the targets; noted before in `settled.json`, so that none is ever forgotten."""
        sync_folder(self._config)
        NewFiles().write(self.folder, f"{SETTLED}.new", encode(Journal(areas=tuple(areas))))
        self._publish(SETTLED)
        self.areas = areas
        for area in areas:
            parent, name = self._beside.parent(area)
            os.mkdir(name, 0o700, dir_fd=parent)
            NewFiles().write(self._beside.folder(area), ".gitignore", b"*\n")

    def sync(self) -> None:
        """Make the names of the staging folders durable, and the names in those beside their targets."""
        sync_folder(self._config)
        for area in self.areas:
            sync_folder(self._beside.folder(area))
            sync_folder(self._beside.parent(area)[0])

    def begin(self) -> None:
        """Give the journal its name, durably, all of it or nothing: from here on the tree may be half changed."""
        self._publish(JOURNAL)

    def _publish(self, name: str) -> None:
        os.rename(f"{name}.new", name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        sync_folder(self.folder)

    def read(self, name: str) -> Journal | None:
        """Return the journal of that name, None when there is none. Raises DamagedJournalError and OSError.

        Its `areas` are this transaction's from then on.
        """
        try:
            with open_regular(name, folder=self.folder) as file:
                journal = decode(file.readall())
        except FileNotFoundError:
            return None
        if any(area.rpartition("/")[2] != BESIDE_FOLDER for area in journal.areas):
            raise DamagedJournalError("it names something else as a staging folder")
        self.areas = journal.areas
        return journal

    def settle(self) -> None:
        """Take the journal away: from here on the tree is as it shall be. When this raises, the journal is back."""
        os.rename(JOURNAL, SETTLED, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        try:
            sync_folder(self.folder)
        except OSError:
            os.rename(SETTLED, JOURNAL, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            raise

    def clean(self) -> None:
        """Remove every staged file and the staging folders, the notes that name them last.

        Never while the journal is there: the originals are needed then.
        """
        for area in self.areas:
            with suppress(FileNotFoundError):
                self._empty(self._beside.folder(area))
                parent, name = self._beside.parent(area)
                os.rmdir(name, dir_fd=parent)
        self._empty(self.folder, last=SETTLED)
        os.rmdir(TRANSACTION_FOLDER, dir_fd=self._config)

    def _empty(self, folder: int, last: str = "") -> None:
        for name in sorted(os.listdir(folder), key=lambda name: name == last):
            os.unlink(name, dir_fd=folder)


def new_name(position: int) -> str:
    """Return the name of the staged new content of a journal's file."""
    return f"new-{position}"


def old_name(position: int) -> str:
    """Return the name of the kept original of a journal's file."""
    return f"old-{position}"
