"""One transaction as a value, and as the JSON file that is its journal and later its part of a snapshot.

The journal stands in `agent-config/.txn`, with the new files and the old ones (`new-0`, `old-0` ...): on the tree's
file system, where renames are atomic, and unseen by git. If a rename cannot cross over (a mount), the copies stand in a
folder beside their targets, hidden from git by a `.gitignore` of its own.

`journal.json` is there exactly while files may be half changed, `settled.json` while only cleaning up is left.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from code_commit.files import FOLDER, NewFiles, Tree, load_json, open_regular, sync_folder
from code_commit.ownership import Ownership, is_kept
from code_commit.project import TRANSACTION_FOLDER, Project

FORMAT = 1
"""Grows when a reader of the older one would misread it. Older versions also wrote a checksum, which is not read."""

BESIDE_FOLDER = ".code-commit-txn"
JOURNAL = "journal.json"
SETTLED = "settled.json"
NOBODY = Ownership()
_MOST = {"size": sys.maxsize, "mode": 0o7777, "uid": 2**32 - 2, "gid": 2**32 - 2}


class DamagedJournalError(Exception):
    """The bytes are not a journal that this version reads."""


@dataclass(frozen=True)
class FileState:
    """A regular file: its content by SHA-256 and length, its permission bits, its owner, its attributes with the values
    in base 16.
    """

    sha256: str
    size: int
    mode: int
    uid: int = field(compare=False)
    gid: int = field(compare=False)
    attributes: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def ownership(self) -> Ownership:
        return Ownership(self.uid, self.gid, tuple((name, bytes.fromhex(value)) for name, value in self.attributes))


@dataclass(frozen=True)
class FileStep:
    """One file before and after (None: not there). `area` is the index of the staging folder with its two copies.

    `lost` says in words what of the ownership could not be kept.
    """

    path: str
    before: FileState | None
    after: FileState | None
    area: int = 0
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class FolderStep:
    """A folder to make or remove, with its permission bits and owner (None: the umask and the system decide)."""

    path: str
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True)
class Journal:
    """One transaction, folders before their contents."""

    files: tuple[FileStep, ...] = ()
    made: tuple[FolderStep, ...] = ()
    removed: tuple[FolderStep, ...] = ()
    areas: tuple[str, ...] = ()  # the staging folders beside their targets, from index 1; 0 is agent-config/.txn
    layer: str = ""  # the snapshot's file for this transaction, relative to the root


def state_of(content: bytes, mode: int, owner: Ownership = NOBODY) -> FileState:
    attributes = tuple((name, value.hex()) for name, value in owner.attributes)
    return FileState(sha256(content).hexdigest(), len(content), mode, owner.uid, owner.gid, attributes)


def encode(journal: Journal) -> bytes:
    return json.dumps({"format": FORMAT, "body": journal}, default=_fields).encode("ascii") + b"\n"


def _fields(value: object) -> dict[str, object]:
    """Return the fields of a value, without those that older versions do not read, where they are empty."""
    return {name: each for name, each in vars(value).items() if each or name not in ("attributes", "lost")}


def decode(content: bytes) -> Journal:
    """Return the journal; `require_fit` checks its paths. Raises DamagedJournalError, for a newer format too."""
    try:
        document = load_json(content)
        if document["format"] != FORMAT:
            raise DamagedJournalError(f"it has format {document['format']!r}, this version reads {FORMAT}")
        body = document["body"]
        journal = Journal(
            files=tuple(
                FileStep(
                    step["path"],
                    _file_state(step["before"]),
                    _file_state(step["after"]),
                    step["area"],
                    tuple(step.get("lost", ())),
                )
                for step in body["files"]
            ),
            made=tuple(FolderStep(**folder) for folder in body["made"]),
            removed=tuple(FolderStep(**folder) for folder in body["removed"]),
            areas=tuple(body["areas"]),
            layer=body["layer"],
        )
        _check_values(journal)
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedJournalError("it is not whole") from error
    return journal


def _check_values(journal: Journal) -> None:
    """Raise TypeError or ValueError where a value is not of its type, or is a number that the system does not take."""
    folders = (*journal.made, *journal.removed)
    states = [state for step in journal.files for state in (step.before, step.after) if state]
    "".join(word for step in journal.files for word in step.lost)
    "".join([journal.layer, *journal.areas, *[step.path for step in journal.files], *[step.path for step in folders]])
    numbers: list[tuple[Any, int]] = [(step.area, len(journal.areas)) for step in journal.files]
    numbers += [(vars(state)[name], most) for state in states for name, most in _MOST.items()]
    known = [(vars(folder).get(name), most) for folder in folders for name, most in _MOST.items()]
    numbers += [(number, most) for number, most in known if number is not None]
    if not all(isinstance(number, int) and -1 <= number <= most for number, most in numbers):
        raise ValueError
    if not all(re.fullmatch("[0-9a-f]{64}", state.sha256) for state in states):
        raise ValueError
    if not all(is_kept(name) for state in states for name, _ in state.ownership.attributes):
        raise ValueError


def _file_state(fields: Mapping[str, Any] | None) -> FileState | None:
    if fields is None:
        return None
    return FileState(**{**fields, "attributes": tuple((name, value) for name, value in fields.get("attributes", ()))})


class Staging(AbstractContextManager["Staging"]):
    """The transaction's folder, opened. `areas` are the folders beside targets, named relative to the root."""

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
        self._beside = Tree(project.root)  # apart from the tree for the targets: each keeps its folder open

    def __exit__(self, *exception: object) -> None:
        self.tree.close()
        self._beside.close()
        os.close(self.folder)
        os.close(self._config)

    def area(self, index: int) -> int:
        """Return a descriptor of the staging folder, good until the next call."""
        return self.folder if index == 0 else self._beside.folder(self.areas[index - 1])

    def open_beside(self, areas: Sequence[str]) -> None:
        """Make the folders beside the targets, named before in `settled.json`, so that a crash forgets none."""
        sync_folder(self._config)
        NewFiles().write(self.folder, f"{SETTLED}.new", encode(Journal(areas=tuple(areas))))
        self.publish(SETTLED)
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

    def publish(self, name: str) -> None:
        """Rename NAME.new to NAME, durably."""
        os.rename(f"{name}.new", name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        sync_folder(self.folder)

    def read(self, name: str) -> Journal | None:
        """Return the journal of that name and take over its `areas`. Raises DamagedJournalError and OSError."""
        try:
            with open_regular(name, folder=self.folder) as file:
                journal = decode(file.readall())
        except FileNotFoundError:
            return None
        if any(area.rpartition("/")[2] != BESIDE_FOLDER for area in journal.areas):
            raise DamagedJournalError("it names something else as a staging folder")
        self.areas = journal.areas
        return journal

    def commit(self) -> None:
        """Take the journal away: every file is as it is to be. When this raises, the journal is back."""
        os.rename(JOURNAL, SETTLED, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        try:
            sync_folder(self.folder)
        except OSError:
            os.rename(SETTLED, JOURNAL, src_dir_fd=self.folder, dst_dir_fd=self.folder)
            raise

    def clean(self) -> None:
        """Remove the staged files and their folders, the notes that name them last. Without a journal alone."""
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
