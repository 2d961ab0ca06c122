"""The transaction: it carries out all of a plan, or nothing.

Stage every new file, keep every old one, write the journal and sync all of it; then unlinks, folders and renames, and
sync of the folders. Taking the journal away is the commit point. An error puts everything back in process, `recover`
does it after a crash.

The original is kept by a hard link where that is possible, so that the very same file comes back; else by a copy. Other
hard links to a replaced file keep its old content, as with git.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from code_commit.apply.failures import ChangedUnderUsError, reason
from code_commit.apply.journal import (
    BESIDE_FOLDER,
    JOURNAL,
    NOBODY,
    FileStep,
    FolderStep,
    Journal,
    Staging,
    encode,
    state_of,
)
from code_commit.apply.lock import locked
from code_commit.apply.plan import Plan, folder_of, make_plan
from code_commit.apply.recover import make_folder, recover, recover_files, remove_folder, set_folder_mode, sync_touched
from code_commit.apply.snapshot import (
    first_folders,
    foreign_steps,
    keep_contents,
    layer_name,
    load_layers,
    remove_originals,
    sync_snapshot,
    write_layer,
    write_originals,
)
from code_commit.changes import VerifiedChanges
from code_commit.errors import ApplyError
from code_commit.files import NewFiles, NotAFileError, Tree, identity_of, read_all
from code_commit.interrupts import signals_blocked
from code_commit.ownership import Attributes, Ownership, has_inherited_list, read_attributes
from code_commit.project import AGENT_CONFIG, TRANSACTION_FOLDER, Project
from code_commit.runs.diff import FileEdit, edits_of
from code_commit.terminal import shown

NO_HARD_LINKS = {errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def apply_changes(changes: VerifiedChanges, project: Project, snapshot: Path) -> None:
    """Write all the verified changes, or none. `snapshot` is the run's snapshot folder, made where it is missing.

    Takes the tree's lock unless this thread holds it, and repairs an interrupted apply first. Raises, with every file
    as it was, ChangedUnderUsError when a file is not as the verification pass saw it, NotSetUpError when the lock is
    held elsewhere, ApplyError for everything else.
    """
    with locked(project):
        recover(project)
        carry_out(edits_of(changes), project, snapshot)


def carry_out(
    writes: Sequence[FileEdit], project: Project, snapshot: Path, folders: Mapping[str, FolderStep | None] | None = None
) -> None:
    """Do all the writes or none, under the lock that the caller holds. Raises ApplyError.

    `folders` says how the folders to restore were (None: not there); without it, folders that become empty go, and
    those that the run removed earlier come back with their mode where a file needs them.
    """
    layers = load_layers(snapshot)
    at = writes[0].path if writes else str(snapshot)
    try:
        with Tree(project.root) as tree:
            tree.tell_apart(write.path for write in writes)
            earlier = first_folders(layers) if folders is None else folders
            plan = make_plan(tree, writes, earlier, exact=folders is not None)
        if not (plan.writes or plan.made or plan.removed):
            return
        at = f"{AGENT_CONFIG}/{TRANSACTION_FOLDER}"
        for beside in (False, True):
            with Staging(project) as staging:
                transaction = Transaction(staging, plan, snapshot, layers, beside=beside)
                try:
                    transaction.run()
                    break
                except OSError as error:
                    if error.errno != errno.EXDEV or beside:
                        raise
                finally:
                    at = transaction.at
        keep_contents(snapshot, layer_name(len(layers) + 1), (write.new for write in plan.writes))
    except OSError as error:
        message = f"{shown(at)} could not be written: {reason(error)}; every file is as it was before"
        raise ApplyError(message) from error


class _Kept(NamedTuple):
    """The file that a write replaces or deletes."""

    status: os.stat_result
    attributes: Attributes

    @property
    def owner(self) -> Ownership:
        return Ownership(self.status.st_uid, self.status.st_gid, self.attributes)


class Transaction:
    """Carries out one plan, after the journals of `layers`. `at` is the current path, for an error message."""

    def __init__(
        self, staging: Staging, plan: Plan, snapshot: Path, layers: Sequence[Journal], *, beside: bool = False
    ) -> None:
        self.at = os.path.relpath(snapshot, staging.root)
        self._staging = staging
        staging.tree.tell_apart(write.path for write in plan.writes)
        self._plan = plan
        self._made = {folder.path: folder for folder in plan.made}
        self._snapshot = snapshot
        self._layers = layers
        self._beside = beside
        self._removed = {folder.path for folder in plan.removed}
        self._areas: dict[str, int] = {}
        self._new_files = NewFiles(len(plan.writes))
        self._kept: list[os.stat_result | None] = []
        self._originals: dict[str, bytes] = {}
        self._started: list[int] = []
        self._journal = Journal()
        self._encoded = b""

    def run(self) -> None:
        """Carry it out. When this raises (OSError, ApplyError, KeyboardInterrupt), every file is as it was."""
        try:
            with self._new_files:
                self._stage()
        except BaseException:
            self._abandon()
            raise
        with signals_blocked():
            try:
                self._change()
            except BaseException as error:
                self._recover(error)
                raise
            with suppress(OSError):
                self._staging.clean()

    def _stage(self) -> None:
        if self._beside:
            areas = sorted({self._area_of(write.path) for write in self._plan.writes})
            self._areas = {area: index for index, area in enumerate(areas, start=1)}
            self._staging.open_beside(areas)
        steps = [self._stage_file(position, write) for position, write in enumerate(self._plan.writes)]
        self.at = os.path.relpath(self._snapshot, self._staging.root)
        layer = f"{self.at}/{layer_name(len(self._layers) + 1)}"
        self._journal = Journal(tuple(steps), self._plan.made, self._plan.removed, tuple(self._areas), layer)
        self._encoded = encode(self._journal)
        self._keep_in_snapshot()
        self._new_files.write(self._staging.folder, f"{JOURNAL}.new", self._encoded)
        if not self._new_files.sync():
            sync_snapshot(self._snapshot)
            self._staging.sync()

    def _stage_file(self, position: int, write: FileEdit) -> FileStep:
        self.at = write.path
        area = self._areas[self._area_of(write.path)] if self._beside else 0
        kept = None if write.path in self._removed else self._keep(position, area, write)  # it is a folder until then
        self._kept.append(kept and kept.status)
        before = state_of(write.old, write.old_mode, kept.owner) if write.old is not None and kept is not None else None
        if write.new is None:
            return FileStep(write.path, before, None, area)
        wanted = kept.owner if kept is not None else write.owner or self._owner_of_new(write)
        folder = self._staging.area(area)
        given = self._new_files.write(folder, f"new-{position}", write.new, write.mode, wanted)
        lost = wanted.lost_in(given)
        if before is None and has_inherited_list(self._staging.tree.folder(self._folder_of_new(write.path))):
            lost = (*lost, "inherited access list")
        return FileStep(write.path, before, state_of(write.new, write.mode, given), area, lost)

    def _owner_of_new(self, write: FileEdit) -> Ownership:
        """Return what a new file keeps of the one that it renames, or else the group of a folder that hands it down."""
        if write.renamed_from:
            with self._opened(write.renamed_from) as (file, status):
                return Ownership(status.st_uid, status.st_gid, read_attributes(file))
        folder = os.fstat(self._staging.tree.folder(self._folder_of_new(write.path)))
        made = self._made.get(folder_of(write.path))
        mode, gid = (made.mode, made.gid) if made and made.mode is not None else (folder.st_mode, folder.st_gid)
        return Ownership(gid=gid) if gid is not None and mode & stat.S_ISGID else NOBODY

    def _folder_of_new(self, path: str) -> str:
        return self._staging.tree.existing_folder(path)

    def _area_of(self, path: str) -> str:
        folder = self._staging.tree.existing_folder(path)
        while folder in self._removed:
            folder = folder_of(folder)
        return f"{folder}/{BESIDE_FOLDER}".lstrip("/")

    def _keep(self, position: int, area: int, write: FileEdit) -> _Kept | None:
        """Keep the file that is to change, and return it; None for a new file. Raises ChangedUnderUsError."""
        if write.old is None:
            if self._staging.tree.look(write.path) is not None:
                raise ChangedUnderUsError(write.path)
            return None
        was = self._look_as_planned(write)
        copies, copy = self._staging.area(area), f"old-{position}"
        folder, name = self._staging.tree.parent(write.path)
        try:
            os.link(name, copy, src_dir_fd=folder, dst_dir_fd=copies, follow_symlinks=False)
        except FileNotFoundError as error:
            raise ChangedUnderUsError(write.path) from error
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            self._new_files.write(copies, copy, write.old, write.old_mode, was.owner)
            return was
        now = os.stat(copy, dir_fd=copies, follow_symlinks=False)
        if identity_of(now)[:-1] != identity_of(was.status)[:-1]:  # a new link alone changes st_ctime
            raise ChangedUnderUsError(write.path)
        return was._replace(status=now)

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        """Open a file that has to be there, and give its state. Raises ChangedUnderUsError."""
        try:
            file, now = self._staging.tree.open(path)
        except (FileNotFoundError, NotADirectoryError, NotAFileError) as error:
            raise ChangedUnderUsError(path) from error
        try:
            yield file, now
        finally:
            os.close(file)

    def _look_as_planned(self, write: FileEdit) -> _Kept:
        """Return the file that the write is about. Raises ChangedUnderUsError where it is another now."""
        with self._opened(write.path) as (file, now):
            content, attributes = read_all(file, now.st_size), read_attributes(file)
        if (content, stat.S_IMODE(now.st_mode)) != (write.old, write.old_mode):
            raise ChangedUnderUsError(write.path)
        return _Kept(now, attributes)

    def _keep_in_snapshot(self) -> None:
        """Keep each content that no transaction of the run wrote, such as an edit between two of them."""
        foreign, latest = foreign_steps([*self._layers, self._journal]), len(self._layers) + 1
        known = {step.before.sha256 for number, step in foreign if number < latest and step.before}
        new = {step.path for number, step in foreign if number == latest}
        for step, write in zip(self._journal.files, self._plan.writes, strict=True):
            if write.old is not None and step.before and step.path in new and step.before.sha256 not in known:
                self._originals[step.before.sha256] = write.old
        write_originals(self._snapshot, self._originals, self._new_files)

    def _change(self) -> None:
        """Change the tree: deletions first, so that a file can take a folder's place and the reverse."""
        tree = self._staging.tree
        self._staging.publish(JOURNAL)
        for position, write in enumerate(self._plan.writes):
            if write.new is None:
                self._change_file(position, write)
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
                    raise ChangedUnderUsError(folder.path) from error
                set_folder_mode(tree, folder)
        for position, write in enumerate(self._plan.writes):
            if write.new is not None:
                self._change_file(position, write)
        self.at = self._journal.layer
        write_layer(self._snapshot, len(self._layers) + 1, self._encoded)
        sync_touched(tree, self._journal)
        self._staging.commit()

    def _change_file(self, position: int, write: FileEdit) -> None:
        """Delete a file or move it in place. Raises ChangedUnderUsError when it is not as it was kept."""
        self.at = write.path
        now, kept = self._staging.tree.look(write.path), self._kept[position]
        if (now is None) != (kept is None):
            raise ChangedUnderUsError(write.path)
        if now and kept and identity_of(now) != identity_of(kept):
            self._look_as_planned(write)
        area = self._staging.area(self._journal.files[position].area)
        folder, name = self._staging.tree.parent(write.path)
        self._started.append(position)
        if write.new is None:
            os.unlink(name, dir_fd=folder)
        else:
            os.rename(f"new-{position}", name, src_dir_fd=area, dst_dir_fd=folder)

    def _recover(self, cause: BaseException) -> None:
        try:
            recover_files(self._staging, self._journal, self._started)
        except (OSError, ValueError, ApplyError) as error:
            raise ApplyError(
                f"{shown(self.at)} could not be written ({reason(cause)}), and putting everything back failed "
                f"({reason(error)}): run code-commit again, it repairs the tree before anything else"
            ) from error
        with suppress(OSError):
            self._staging.commit()  # there is no journal yet where giving it its name failed
        self._abandon()

    def _abandon(self) -> None:
        with suppress(OSError):
            remove_originals(self._snapshot, self._originals)
        with suppress(OSError):
            self._staging.clean()
