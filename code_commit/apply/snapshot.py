"""The snapshot of a run: every file that the run touched as it was before, and as the run left it.

    snapshot/changes-1.json         the journal of the run's first transaction, 2 that of the next, without a gap
    snapshot/built-1.json           the files that the builds after it left in another state than it had
    snapshot/originals/SHA256       the content of each file before the run touched it for the first time, and before a
                                    later transaction where a build or another program changed it
    snapshot/changes-1.contents     the files' contents after the transaction, one after the other, for `diff` and the
                                    page: written once it is committed, and not synced; so has built-1.contents

A layer counts once its transaction is committed; until then the transaction's journal names it, and both are removed
together. A content that a layer names is never overwritten.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from code_commit.apply.journal import DamagedJournalError, FileState, FileStep, FolderStep, Journal, decode
from code_commit.errors import ApplyError
from code_commit.files import NewFiles, opened_folder, read_regular_file, replacing, sync_folder, sync_names
from code_commit.regex import regex

ORIGINALS = "originals"
LAYER_NAME = regex(r"changes-([1-9][0-9]*)\.json")


def load_layers(snapshot: Path) -> list[Journal]:
    """Return the journals of a run's transactions in order. Raises ApplyError."""
    try:
        names = [entry.name for entry in snapshot.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ApplyError(f"the snapshot {snapshot} cannot be read: {error.strerror}") from error
    numbers = sorted(int(match[1]) for name in names if (match := LAYER_NAME.fullmatch(name)))
    if numbers != list(range(1, len(numbers) + 1)):
        raise ApplyError(f"the snapshot {snapshot} is incomplete: a changes-N.json is missing, nothing was changed")
    return [_load(snapshot / layer_name(number)) for number in numbers]


def _load(path: Path) -> Journal:
    try:
        return decode(read_regular_file(path, follow_link=False))
    except OSError as error:
        raise ApplyError(f"the snapshot's {path.name} cannot be read: {error.strerror} ({path.parent})") from error
    except DamagedJournalError as error:
        message = f"the snapshot's {path.name} is damaged, nothing was changed: {error} ({path.parent})"
        raise ApplyError(message) from error


def layer_name(number: int) -> str:
    """Return the name of the journal of a run's transaction, from 1."""
    return f"changes-{number}.json"


def first_states(layers: Iterable[Journal]) -> dict[str, FileState | None]:
    """Return each file's state before the first transaction that touched it."""
    states: dict[str, FileState | None] = {}
    for layer in layers:
        for step in layer.files:
            states.setdefault(step.path, step.before)
    return states


def last_states(layers: Iterable[Journal]) -> dict[str, FileState | None]:
    """Return each file's state after the last transaction that touched it."""
    return {step.path: step.after for layer in layers for step in layer.files}


def foreign_steps(layers: Iterable[Journal]) -> list[tuple[int, FileStep]]:
    """Return each file's first step, and those that found it changed since its last, with the transaction's number."""
    left: dict[str, str | None] = {}
    found = []
    for number, layer in enumerate(layers, start=1):
        for step in layer.files:
            if step.path not in left or left[step.path] != _name(step.before):
                found.append((number, step))
            left[step.path] = _name(step.after)
    return found


def _name(state: FileState | None) -> str | None:
    return state.sha256 if state else None


def left_states(snapshot: Path, layers: Iterable[Journal]) -> dict[str, FileState | None]:
    """Return each file's state as the run, or a build of it since, left it. Raises ApplyError."""
    states: dict[str, FileState | None] = {}
    for number, layer in enumerate(layers, start=1):
        states |= {step.path: step.after for step in (*layer.files, *_load_built(snapshot, number))}
    return states


def _load_built(snapshot: Path, number: int) -> tuple[FileStep, ...]:
    path = snapshot / built_name(number)
    return _load(path).files if path.exists() else ()


def built_name(number: int) -> str:
    return f"built-{number}.json"


def first_folders(layers: Iterable[Journal]) -> dict[str, FolderStep | None]:
    """Return each folder that was made or removed as it was before (None: not there)."""
    folders: dict[str, FolderStep | None] = {}
    for layer in layers:
        for folder in layer.removed:
            folders.setdefault(folder.path, folder)
        for folder in layer.made:
            folders.setdefault(folder.path, None)
    return folders


def read_original(snapshot: Path, path: str, state: FileState) -> bytes:
    """Return a content that the snapshot keeps of a file. Raises ApplyError when it is missing or damaged."""
    try:
        content = read_regular_file(snapshot / ORIGINALS / state.sha256, follow_link=False)
    except OSError as error:
        message = f"the snapshot has no readable original of {path}, nothing was changed: {error.strerror} ({snapshot})"
        raise ApplyError(message) from error
    if sha256(content).hexdigest() != state.sha256:
        raise ApplyError(f"the snapshot's original of {path} is damaged, nothing was changed ({snapshot})")
    return content


def load_originals(snapshot: Path) -> dict[str, bytes]:
    """Return the former contents of the files that the run changed or deleted. Raises ApplyError."""
    states = first_states(load_layers(snapshot))
    return {path: read_original(snapshot, path, state) for path, state in states.items() if state is not None}


def keep_contents(snapshot: Path, layer: str, contents: Iterable[bytes | None]) -> None:
    """Keep the contents of a layer's files, by its file's name; a full disk keeps nothing."""
    with suppress(OSError), replacing(_contents_of(snapshot, layer)) as file:
        for content in contents:
            file.write(content or b"")


def load_contents(snapshot: Path, *, until: int | None = None, built: bool = True) -> dict[str, bytes]:
    """Return the contents of its files that the run left, where they were kept whole. Raises ApplyError.

    `until` is the number of transactions that count; without `built` the builds after them do not.
    """
    contents: dict[str, bytes] = {}
    for number, layer in enumerate(load_layers(snapshot)[:until], start=1):
        contents |= _read_contents(_contents_of(snapshot, layer_name(number)), layer.files)
        if built:
            contents |= _read_contents(_contents_of(snapshot, built_name(number)), _load_built(snapshot, number))
    return contents


def _contents_of(snapshot: Path, layer: str) -> Path:
    return (snapshot / layer).with_suffix(".contents")


def _read_contents(path: Path, steps: Iterable[FileStep]) -> dict[str, bytes]:
    try:
        rest = memoryview(read_regular_file(path, follow_link=False))
    except OSError:
        return {}
    contents = {}
    for step in steps:
        if step.after is not None:
            content, rest = rest[: step.after.size], rest[step.after.size :]
            if sha256(content).hexdigest() == step.after.sha256:
                contents[step.path] = bytes(content)
    return contents


def write_originals(snapshot: Path, contents: Mapping[str, bytes], new_files: NewFiles) -> None:
    """Write contents by their SHA-256 into the run's snapshot folder, which is made where it is missing."""
    for path in (snapshot, snapshot / ORIGINALS):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened_folder(snapshot / ORIGINALS) as folder:
        for name, content in contents.items():
            with suppress(FileNotFoundError):  # no layer names it: an interrupted attempt left it, maybe half of it
                os.unlink(name, dir_fd=folder)
            new_files.write(folder, name, content)


def sync_snapshot(snapshot: Path) -> None:
    """Make the names in the snapshot durable, its own, and that of its run."""
    for path in (snapshot / ORIGINALS, snapshot, snapshot.parent, snapshot.parent.parent):
        sync_names(path)


def remove_originals(snapshot: Path, names: Iterable[str]) -> None:
    """Remove contents that no layer names."""
    for name in names:
        with suppress(FileNotFoundError):
            (snapshot / ORIGINALS / name).unlink()
    for folder in (snapshot / ORIGINALS, snapshot):
        with suppress(OSError):
            folder.rmdir()


def write_layer(snapshot: Path, number: int, content: bytes) -> None:
    """Write the journal of a run's transaction, durably."""
    with opened_folder(snapshot) as folder:
        NewFiles().write(folder, layer_name(number), content)
        sync_folder(folder)


def remove_layer(path: Path) -> None:
    """Remove the layer of a transaction that did not come to pass, durably, if it is there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.unlink()
        sync_names(path.parent)
