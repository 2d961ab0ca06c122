"""Where a transaction keeps its files: the new ones, the old ones and the journal, in `agent-config/.txn`.

That folder is on the tree's file system, where renames are atomic, and git does not see it. Where a rename cannot
cross over (agent-config or a part of the tree is a mount of its own), the copies stand in a folder of this module's
own beside their targets, hidden from git by a `.gitignore` of its own.

`journal.json` is there exactly while files may be half changed, `settled.json` while only cleaning up is left.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from code_commit.apply.record import DamagedRecordError, Record, seal, unseal
from code_commit.apply.recovery import TRANSACTION_FOLDER
from code_commit.files import FOLDER, Tree, open_regular, sync_folder, write_new_file
from code_commit.project import Project

BESIDE_FOLDER = ".code-commit-txn"
JOURNAL = "journal.json"
SETTLED = "settled.json"


class Staging:
    """The transaction's folder, opened. `areas` are the folders beside targets, named relative to the root.

    `tree` is for the targets; the areas are walked apart, so that each keeps its folder open.
    """

    def __init__(self, project: Project) -> None:
        self.root = project.root
        self.areas: Sequence[str] = ()
        self._config = os.open(project.agent_config, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.folder = self._open_or_make()
        except OSError:
            os.close(self._config)
            raise
        self.tree = Tree(project.root)
        self._beside = Tree(project.root)

    def _open_or_make(self) -> int:
        try:
            os.mkdir(TRANSACTION_FOLDER, 0o700, dir_fd=self._config)
        except FileExistsError:
            return os.open(TRANSACTION_FOLDER, FOLDER, dir_fd=self._config)
        try:
            sync_folder(self._config)
            return os.open(TRANSACTION_FOLDER, FOLDER, dir_fd=self._config)
        except OSError:
            with suppress(OSError):
                os.rmdir(TRANSACTION_FOLDER, dir_fd=self._config)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tree.close()
        self._beside.close()
        os.close(self.folder)
        os.close(self._config)

    def area(self, index: int) -> int:
        """Return a descriptor of the staging folder, good until the next question."""
        return self.folder if index == 0 else self._beside.folder(self.areas[index - 1])

    def open_beside(self, areas: Sequence[str]) -> None:
        """Make the folders beside the targets; noted before in `settled.json`, so that none is ever forgotten."""
        self.write(SETTLED, seal(Record(areas=tuple(areas))))
        self.areas = areas
        for area in areas:
            parent, name = self._beside.parent(area)
            os.mkdir(name, 0o700, dir_fd=parent)
            write_new_file(self._beside.folder(area), ".gitignore", b"*\n", sync=False)

    def write(self, name: str, record: bytes) -> None:
        """Write a sealed record, durably, all of it or nothing. With the journal the tree may be half changed."""
        new = name + ".new"
        write_new_file(self.folder, new, record, sync=True)
        os.rename(new, name, src_dir_fd=self.folder, dst_dir_fd=self.folder)
        sync_folder(self.folder)

    def read(self, name: str) -> Record | None:
        """Return the record of that name, None when there is none. Raises DamagedRecordError and OSError.

        Its `areas` are this transaction's from then on.
        """
        try:
            with open_regular(name, folder=self.folder) as file:
                record = unseal(file.readall())
        except FileNotFoundError:
            return None
        if any(area.rpartition("/")[2] != BESIDE_FOLDER for area in record.areas):
            raise DamagedRecordError("it names a staging folder that is none")
        self.areas = record.areas
        return record

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
    """Return the name of the staged new content of a record's file."""
    return f"new-{position}"


def old_name(position: int) -> str:
    """Return the name of the kept original of a record's file."""
    return f"old-{position}"
