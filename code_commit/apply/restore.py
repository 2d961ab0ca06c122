"""Undo: restore the state before a run, byte for byte and mode for mode, from its snapshot; record its builds."""

import stat
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from code_commit.apply.failures import ChangedSinceError, UnfitPathError
from code_commit.apply.journal import FileState, FileStep, FolderStep, Journal, encode, state_of
from code_commit.apply.lock import locked
from code_commit.apply.plan import require_fit, require_no_link
from code_commit.apply.recover import recover
from code_commit.apply.snapshot import (
    built_name,
    first_folders,
    first_states,
    foreign_steps,
    keep_contents,
    last_states,
    left_states,
    load_contents,
    load_layers,
    read_original,
)
from code_commit.apply.transaction import carry_out
from code_commit.changes import RunWarning
from code_commit.errors import ApplyError
from code_commit.files import NotAFileError, Tree, replacing
from code_commit.project import Project
from code_commit.runs.diff import FileEdit
from code_commit.runs.words import listed
from code_commit.terminal import shown

_Now = tuple[bytes, int]  # the content and the permission bits of a file as it is now


def find_changed(snapshot: Path, since: int = 0) -> list[str]:
    """Return the files that the run changed after so many of its transactions. Raises ApplyError."""
    return sorted(first_states(load_layers(snapshot)[since:]))


def find_unchanged(snapshot: Path) -> list[str]:
    """Return the files that the run touched and left, with its builds, as they were before it. Raises ApplyError."""
    layers = load_layers(snapshot)
    left = left_states(snapshot, layers)
    return sorted(path for path, before in first_states(layers).items() if left[path] == before)


def find_overwritten(snapshot: Path) -> list[str]:
    """Return the files in which the latest transaction overwrote an edit by others. Raises ApplyError."""
    layers = load_layers(snapshot)
    latest, earlier = len(layers), last_states(layers[:-1])
    answered = load_contents(snapshot, until=latest - 1, built=False)
    return sorted(
        step.path
        for number, step in foreign_steps(layers)
        if number == latest and step.path in earlier and _is_edited(snapshot, step, answered.get(step.path, b""))
    )


def _is_edited(snapshot: Path, step: FileStep, answered: bytes) -> bool:
    found = read_original(snapshot, step.path, step.before) if step.before else b""
    return b"".join(found.split()) != b"".join(answered.split())


def ownership_warnings(snapshot: Path) -> list[RunWarning]:
    """Return a warning for each part of the ownership of files that the latest transaction lost. Raises ApplyError."""
    paths: dict[tuple[str, ...], list[str]] = {}
    for step in (load_layers(snapshot) or [Journal()])[-1].files:
        if step.lost:
            paths.setdefault(step.lost, []).append(step.path)
    return [
        RunWarning("owner", f"the {' and the '.join(lost)} of {listed(files)} could not be kept", files[0])
        for lost, files in paths.items()
    ]


class UndoScope(NamedTuple):
    """Select the part of a run to undo: these paths (None: all), and only transactions after the first `since`."""

    paths: Collection[str] | None = None
    since: int = 0


WHOLE = UndoScope()


def restore(
    snapshot: Path, project: Project, own_snapshot: Path, *, force: bool = False, scope: UndoScope = WHOLE
) -> list[FileEdit]:
    """Put back every file, or those of a `scope`, as before the run with this snapshot folder, and return the edits.

    All or nothing, as an apply; `own_snapshot` is the undo's own snapshot folder. Takes the tree's lock unless this
    thread holds it, and repairs an interrupted apply first. Raises, with nothing restored, ChangedSinceError when files
    are not as the run left them, unless `force`; ApplyError when the snapshot is missing or damaged or the files cannot
    be written; NotSetUpError when the lock is held elsewhere.
    """
    with locked(project):
        recover(project)
        edits, folders = plan_undo(snapshot, project, scope, force=force)
        carry_out(edits, project, own_snapshot, folders=folders)
        return edits


def redo(snapshot: Path, project: Project, own_snapshot: Path) -> None:
    """Give every file the state that the run and its builds left, in a tree as before the run. Raises as `restore`."""
    contents, writes = load_contents(snapshot), []
    with locked(project):
        layers = _load_fit(snapshot, project)
        with Tree(project.root) as tree:
            states = left_states(snapshot, layers)
            tree.tell_apart(states)
            for path, state in sorted(states.items()):
                old, old_mode = _look(tree, path) or (None, 0)
                if state and path not in contents:
                    raise ApplyError(f"the snapshot {snapshot} does not contain {shown(path)} as the run left it")
                writes.append(
                    FileEdit(path, old, contents[path] if state else None, old_mode, state.mode if state else 0)
                )
        carry_out(
            [edit for edit in writes if (edit.old, edit.old_mode) != (edit.new, edit.mode)], project, own_snapshot
        )


def plan_undo(
    snapshot: Path, project: Project, scope: UndoScope, *, force: bool
) -> tuple[list[FileEdit], dict[str, FolderStep | None]]:
    """Return the edits that put the scope of a run back, and the folders as they were before it (None: not there).

    A state between two transactions does not count as a change since: a partial undo may have restored it. Raises as
    `restore`.
    """
    layers = _load_fit(snapshot, project)
    if not layers:
        raise ApplyError(f"there is no snapshot in {snapshot}: nothing was restored")
    only, since = scope
    before, folders = first_states(layers[since:]), first_folders(layers[since:])
    left = [left_states(snapshot, layers[:number]) for number in range(since + 1, len(layers) + 1)]
    answered = load_contents(snapshot, until=since, built=False)
    if only is not None:
        folders = {path: step for path, step in folders.items() if any(each.startswith(f"{path}/") for each in only)}
        before = {path: before[path] for path in only}
    edits, changed = [], []
    with Tree(project.root) as tree:
        require_no_link(tree, [f"{folder}/_" for folder in folders])
        tree.tell_apart(before)
        for path, state in sorted(before.items()):
            now = _look(tree, path, folders)
            if _state(now) == state:
                continue
            edits.append(_write_back(snapshot, path, state, now, answered.get(path)))
            if not any(path in states and _state(now) == states[path] for states in left):
                changed.append(path)
    if changed and not force:
        raise ChangedSinceError(snapshot.parent.name, changed)
    return edits, folders


def _load_fit(snapshot: Path, project: Project) -> list[Journal]:
    layers = load_layers(snapshot)
    built = [Journal(tuple(FileStep(path, None, None) for path in left_states(snapshot, layers)))]
    require_fit([*layers, *built], project, what=f"the snapshot of {shown(snapshot.parent.name)}")
    return layers


def changed_since(snapshot: Path, project: Project) -> list[str]:
    """Return the files that are not as the run with this snapshot left them. Raises ApplyError."""
    layers = _load_fit(snapshot, project)
    states, now = left_states(snapshot, layers), _look_at_all(snapshot, layers, project)
    return [path for path, state in sorted(states.items()) if path not in now or _state(now[path]) != state]


def _look_at_all(snapshot: Path, layers: Sequence[Journal], project: Project) -> dict[str, _Now | None]:
    """Return the present files of a run, without those that are not regular or cannot be read."""
    now, folders, paths = {}, first_folders(layers), left_states(snapshot, layers)
    with Tree(project.root) as tree:
        tree.tell_apart(paths)
        for path in paths:
            with suppress(ApplyError, OSError, ValueError):  # no file can have some names
                now[path] = _look(tree, path, folders)
    return now


def note_built(snapshot: Path, project: Project) -> list[FileEdit]:
    """Note the run's files as a build left them, and return how they differ from the answers. Raises as `restore`."""
    layers = load_layers(snapshot)
    now = _look_at_all(snapshot, layers, project)
    _keep_built(snapshot, layers, now)
    return _edits_of_builds(snapshot, last_states(layers), now)


def _keep_built(snapshot: Path, layers: Sequence[Journal], now: Mapping[str, _Now | None]) -> None:
    """Write the layer of the builds after the latest transaction, where they changed a file."""
    left, answers, name = left_states(snapshot, layers), last_states(layers), built_name(len(layers))
    states = {path: _state(found) for path, found in now.items()}
    changed = {path: state for path, state in states.items() if not left[path] == state == answers.get(path)}
    if changed:
        steps = tuple(FileStep(path, left[path], state) for path, state in changed.items())
        with replacing(snapshot / name) as file:
            file.write(encode(Journal(steps)))
        keep_contents(snapshot, name, (found[0] if (found := now[path]) else None for path in changed))


def _edits_of_builds(
    snapshot: Path, answers: Mapping[str, FileState | None], now: Mapping[str, _Now | None]
) -> list[FileEdit]:
    answered, edits = load_contents(snapshot, built=False), []
    for path, state in sorted(answers.items()):
        new, mode = now.get(path) or (None, 0)
        mode = mode if state is None or (mode ^ state.mode) & 0o100 else state.mode
        if _state(None if new is None else (new, mode)) != state:
            old = answered.get(path, new or b"") if state else None  # a full disk may have kept none: then no diff
            edits.append(FileEdit(path, old, new, state.mode if state else 0, mode))
    return edits


def _state(now: _Now | None) -> FileState | None:
    return now and state_of(*now)


def _write_back(
    snapshot: Path, path: str, before: FileState | None, now: _Now | None, answered: bytes | None
) -> FileEdit:
    """Return the edit that writes a file back; `answered` is its content after the transaction before."""
    old, old_mode = now or (None, 0)
    if before is None:
        return FileEdit(path, old, None, old_mode)
    is_answered = answered is not None and sha256(answered).hexdigest() == before.sha256
    new = answered if is_answered else read_original(snapshot, path, before)
    return FileEdit(path, old, new, old_mode, before.mode, owner=before.ownership)


def _look(tree: Tree, path: str, folders: Mapping[str, FolderStep | None] | None = None) -> _Now | None:
    """Return the present file, None where nothing is, or a folder of the run's own making, or of before it."""
    require_no_link(tree, [path])
    found = tree.look(path)
    if found is None or (folders and path in folders and stat.S_ISDIR(found.st_mode)):
        return None
    try:
        content, state = tree.read(path)
    except NotAFileError as error:
        message = f"{shown(path)} is no longer a regular file: move it away; nothing was restored"
        raise UnfitPathError(message) from error
    return content, stat.S_IMODE(state.st_mode)
