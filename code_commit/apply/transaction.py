"""The transaction: all of a plan, or nothing of it.

Stage and sync every new file, keep and sync every old one, write and sync the journal; then unlinks, folders and
renames, and sync of the folders. Taking the journal away is the commit point. An error puts everything back in
process; what a crash leaves is put back by `recover`.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from code_commit.apply.copies import Kept, Slot, check_untouched, keep_original, kept_state, stage_new
from code_commit.apply.failures import changed_under_us, reason
from code_commit.apply.plan import Plan, Write, folder_of
from code_commit.apply.put_back import (
    make_folder,
    put_back,
    remove_folder,
    set_folder_mode,
    sync_touched,
    touched_folders,
)
from code_commit.apply.record import FileStep, Record, seal
from code_commit.apply.snapshots import (
    first_states,
    layer_name,
    make_snapshot_folders,
    remove_layer,
    remove_originals,
    write_layer,
    write_originals,
)
from code_commit.apply.staging import BESIDE_FOLDER, JOURNAL, Staging, new_name
from code_commit.errors import ApplyError
from code_commit.files import ending_signals_held, find_file_system_sync, sync_folder
from code_commit.terminal import shown

SYNC_AT_ONCE = 64  # from this many files on one `syncfs` costs less than an fsync each, also beside other writers


class Transaction:
    """One plan on its way. `at` is the path at work, for the message of an error.

    `layers` are the records of the run's earlier transactions, `beside` stages the files beside their targets.
    """

    def __init__(
        self, staging: Staging, plan: Plan, snapshot: Path, layers: Sequence[Record], *, beside: bool = False
    ) -> None:
        self.at = os.path.relpath(snapshot, staging.root)
        self._staging = staging
        self._plan = plan
        self._snapshot = snapshot
        self._layers = layers
        self._beside = beside
        many = len(plan.writes) >= SYNC_AT_ONCE and not beside
        self._sync_file_system: Callable[[int], None] | None = find_file_system_sync() if many else None
        self._removed = {folder.path for folder in plan.removed}
        self._areas: dict[str, int] = {}
        self._kept: list[Kept | None] = []
        self._originals: list[str] = []
        self._started: list[int] = []
        self._record = Record()

    def run(self) -> None:
        """Carry it out. When this raises (OSError, ApplyError, KeyboardInterrupt), every file is as it was."""
        try:
            self._stage()
        except BaseException:
            self._abandon()
            raise
        with ending_signals_held():
            try:
                self._change()
            except BaseException as error:
                self._put_back(error)
                raise
            with suppress(OSError):
                self._staging.clean()

    def _stage(self) -> None:
        if self._beside:
            self._areas = self._areas_beside()
            self._staging.open_beside(tuple(self._areas))
        sync = self._sync_file_system is None
        steps = [self._stage_file(position, write, sync=sync) for position, write in enumerate(self._plan.writes)]
        self.at = os.path.relpath(self._snapshot, self._staging.root)
        layer = f"{self.at}/{layer_name(len(self._layers) + 1)}"
        self._record = Record(tuple(steps), self._plan.made, self._plan.removed, tuple(self._areas), layer)
        self._keep_in_snapshot(sync=sync)
        if self._sync_file_system is not None:
            self._sync_file_system(self._staging.folder)
        for index, area in enumerate(self._areas, start=1):
            sync_folder(self._staging.area(index))
            sync_folder(self._staging.tree.folder(folder_of(area)))

    def _stage_file(self, position: int, write: Write, *, sync: bool) -> FileStep:
        self.at = write.path
        slot = Slot(self._areas[self._area_of(write.path)] if self._beside else 0, position)
        kept = None
        if write.path not in self._removed:  # else it is a folder until then
            kept = keep_original(self._staging, slot, write, sync=sync)
        self._kept.append(kept)
        after = stage_new(self._staging, slot, write, kept, sync=sync)
        return FileStep(write.path, kept_state(write, kept), after, slot.area)

    def _areas_beside(self) -> dict[str, int]:
        areas = sorted({self._area_of(write.path) for write in self._plan.writes})
        return {area: index for index, area in enumerate(areas, start=1)}

    def _area_of(self, path: str) -> str:
        folder = self._staging.tree.existing_folder(path)
        while folder in self._removed:
            folder = folder_of(folder)
        return f"{folder}/{BESIDE_FOLDER}".lstrip("/")

    def _keep_in_snapshot(self, *, sync: bool) -> None:
        earlier = first_states(self._layers)
        kept = {state.sha256 for state in earlier.values() if state is not None}
        contents = {
            step.before.sha256: write.old
            for step, write in zip(self._record.files, self._plan.writes, strict=True)
            if write.old is not None and step.before is not None and write.path not in earlier
        }
        make_snapshot_folders(self._snapshot)
        same_device = self._snapshot.stat().st_dev == os.fstat(self._staging.folder).st_dev
        missing = {name: content for name, content in contents.items() if name not in kept}
        write_originals(self._snapshot, missing, self._originals, sync=sync or not same_device)

    def _change(self) -> None:
        """Change the tree: what goes, goes first, so that a file can take a folder's place and the reverse."""
        tree = self._staging.tree
        journal = seal(self._record)
        self._staging.write(JOURNAL, journal)
        write_layer(self._snapshot, layer_name(len(self._layers) + 1), journal)
        for position, write in enumerate(self._plan.writes):
            if write.new is None:
                self._delete(position, write)
        for folder in reversed(self._plan.removed):
            self.at = folder.path
            remove_folder(tree, folder.path)
        tree.forget()
        for folder in self._plan.made:
            self.at = folder.path
            try:
                make_folder(tree, folder)
            except FileExistsError as error:
                if folder.path not in self._removed:
                    raise changed_under_us(folder.path) from error
                set_folder_mode(tree, folder)
        for position, write in enumerate(self._plan.writes):
            if write.new is not None:
                self._move_in_place(position, write)
        if self._sync_file_system is not None:
            self._sync_file_system(self._staging.folder)
        else:
            sync_touched(tree, touched_folders(self._record))
        self._staging.settle()

    def _delete(self, position: int, write: Write) -> None:
        self.at = write.path
        check_untouched(self._staging, write, self._kept[position])
        folder, name = self._staging.tree.parent(write.path)
        self._started.append(position)
        os.unlink(name, dir_fd=folder)

    def _move_in_place(self, position: int, write: Write) -> None:
        self.at = write.path
        check_untouched(self._staging, write, self._kept[position])
        area = self._staging.area(self._record.files[position].area)
        folder, name = self._staging.tree.parent(write.path)
        self._started.append(position)
        os.rename(new_name(position), name, src_dir_fd=area, dst_dir_fd=folder)

    def _put_back(self, cause: BaseException) -> None:
        try:
            put_back(self._staging, self._record, self._started)
            remove_layer(self._staging.root / self._record.layer)
        except (OSError, ValueError, ApplyError) as error:
            raise ApplyError(
                f"{shown(self.at)} could not be written ({reason(cause)}), and putting everything back failed "
                f"({reason(error)}): run code-commit again, it repairs the tree before anything else"
            ) from error
        with suppress(OSError):
            self._staging.settle()  # there is no journal yet where writing it failed
        self._abandon()

    def _abandon(self) -> None:
        with suppress(OSError):
            remove_originals(self._snapshot, self._originals)
        with suppress(OSError):
            self._staging.clean()
