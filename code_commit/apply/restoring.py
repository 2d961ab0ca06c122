"""Undo: the state before one run, or before several, byte for byte and mode for mode."""

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from code_commit.apply.carry_out import carry_out
from code_commit.apply.failures import ChangedSinceError
from code_commit.apply.plan import Write
from code_commit.apply.record import FileState, FolderStep, Record
from code_commit.apply.snapshots import first_folders, load_layers, read_original
from code_commit.changes import Action
from code_commit.errors import ApplyError
from code_commit.files import NotAFileError, Tree
from code_commit.project import Project
from code_commit.terminal import shown


@dataclass(frozen=True, slots=True)
class RestoredFile:
    """One file that was put back: its content before the undo and after it (None: not there)."""

    path: str
    old: bytes | None
    new: bytes | None

    @property
    def action(self) -> Action:
        if self.new is None:
            return "delete"
        return "create" if self.old is None else "replace"


@dataclass(slots=True)
class _History:
    """A file over all the runs: before the first, whose `snapshot` has its content, and after the last."""

    snapshot: Path
    before: FileState | None
    after: FileState | None
    changed_between: bool = False


@dataclass(frozen=True, slots=True)
class _Now:
    content: bytes
    mode: int
    sha256: str

    def is_state(self, state: FileState) -> bool:
        return (self.sha256, self.mode) == (state.sha256, state.mode)


def restore_snapshots(
    snapshots: Sequence[Path], project: Project, snapshot: Path, *, force: bool
) -> tuple[RestoredFile, ...]:
    """Do what `restore` of this package says, under the lock that the caller holds."""
    runs = [_load_run(path) for path in snapshots]
    folders = first_folders(layer for layers in runs for layer in layers)
    writes = _writes_back(project, _follow(snapshots, runs), folders, force=force)
    carry_out(writes, project, snapshot, folders=folders)
    return tuple(RestoredFile(write.path, write.old, write.new) for write in writes)


def find_changed_since(snapshot: Path, project: Project) -> list[str]:
    """Do what `changed_since` of this package says."""
    last: dict[str, FileState | None] = {}
    for layer in load_layers(snapshot):
        last.update((step.path, step.after) for step in layer.files)
    with Tree(project.root) as tree:
        return [path for path, after in sorted(last.items()) if not _is(_read_now(tree, path), after)]


def _load_run(snapshot: Path) -> list[Record]:
    layers = load_layers(snapshot)
    if not layers:
        raise ApplyError(f"there is no snapshot in {snapshot}: nothing was restored")
    return layers


def _follow(snapshots: Sequence[Path], runs: Iterable[Iterable[Record]]) -> Mapping[str, _History]:
    histories: dict[str, _History] = {}
    for snapshot, layers in zip(snapshots, runs, strict=True):
        seen: set[str] = set()
        for layer in layers:
            for step in layer.files:
                history = histories.setdefault(step.path, _History(snapshot, step.before, step.before))
                if step.path not in seen and not _same(history.after, step.before):
                    history.changed_between = True
                seen.add(step.path)
                history.after = step.after
    return histories


def _writes_back(
    project: Project, histories: Mapping[str, _History], folders: Mapping[str, FolderStep | None], *, force: bool
) -> list[Write]:
    writes = []
    changed = []
    with Tree(project.root) as tree:
        for path, history in sorted(histories.items()):
            is_folder = path in folders and tree.is_folder(path)  # made in the file's place, or there before it
            now = None if is_folder else _read_now(tree, path)
            if _is(now, history.before):
                continue
            if history.changed_between or not _is(now, history.after):
                changed.append(path)
            writes.append(_write_back(path, history, now))
    if changed and not force:
        raise ChangedSinceError(changed)
    return writes


def _write_back(path: str, history: _History, now: _Now | None) -> Write:
    before = history.before
    return Write(
        path,
        old=None if now is None else now.content,
        old_mode=0 if now is None else now.mode,
        new=None if before is None else read_original(history.snapshot, path, before),
        new_mode=0 if before is None else before.mode,
        owner=None if before is None else (before.uid, before.gid),
    )


def _read_now(tree: Tree, path: str) -> _Now | None:
    from hashlib import sha256

    if tree.look(path) is None:
        return None
    try:
        with tree.open_file(path) as file:
            content = file.readall()
            return _Now(content, stat.S_IMODE(os.fstat(file.fileno()).st_mode), sha256(content).hexdigest())
    except NotAFileError as error:
        raise ApplyError(f"{shown(path)} is no longer a regular file: move it away; nothing was restored") from error


def _is(now: _Now | None, state: FileState | None) -> bool:
    return state is None if now is None else state is not None and now.is_state(state)


def _same(one: FileState | None, other: FileState | None) -> bool:
    return other is None if one is None else one.same_file(other)
