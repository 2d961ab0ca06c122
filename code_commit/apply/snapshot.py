"""The snapshot of a run: what every file that the run touched was before, and what the run made of it.

    snapshot/changes-1.json         the journal of the run's first transaction, 2 that of the next, without a gap
    snapshot/built-1.json           the files that the builds after it left in another state than it had
    snapshot/originals/SHA256       the content of each file before the run touched it for the first time, and what a
                                    build or somebody else made of it before a later transaction
    snapshot/changes-1.contents     what the transaction made of its files, one after the other; so has built-1.contents

The contents are for `diff` and the page alone: they are written when the transaction is committed, and not synced.

Each of these layers counts once its transaction is committed; until then it is named in the transaction's journal and
goes with it. A content is never written over one that a layer names.
"""

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from code_commit.apply.journal import DamagedJournalError, FileState, FileStep, FolderStep, Journal, decode
from code_commit.errors import ApplyError
from code_commit.files import NewFiles, open_regular, opened_folder, replacing, sync_folder, sync_names

ORIGINALS = "originals"
LAYER_NAME = re.compile(r"changes-([1-9][0-9]*)\.json")


def load_layers(snapshot: Path) -> list[Journal]:
    """Return the journals of a run's transactions in order, none where it changed nothing yet. Raises ApplyError."""
    try:
        names = [entry.name for entry in snapshot.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ApplyError(f"the snapshot {snapshot} cannot be read: {error.strerror}") from error
    numbers = sorted(int(match[1]) for name in names if (match := LAYER_NAME.fullmatch(name)))
    if numbers != list(range(1, len(numbers) + 1)):
        raise ApplyError(f"the snapshot {snapshot} is not whole: a changes-N.json is missing, nothing was changed")
    return [_load(snapshot / layer_name(number)) for number in numbers]


def count_transactions(snapshot: Path) -> int:
    """Return how many transactions of a run changed the tree. Raises ApplyError."""
    return len(load_layers(snapshot))


def _load(path: Path) -> Journal:
    try:
        with open_regular(path) as file:
            return decode(file.readall())
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
    """Return each step that found a file in a state that no transaction had left, and its transaction's number from 1.

    What was there then is kept in the folder of originals.
    """
    left: dict[str, str | None] = {}
    found = []
    for number, layer in enumerate(layers, start=1):
        for step in layer.files:
            if step.path not in left or left[step.path] != _name(step.before):
                found.append((number, step))
            left[step.path] = _name(step.after)
    return found


def _name(state: FileState | None) -> str | None:
    return state and state.sha256


def left_states(snapshot: Path, layers: Iterable[Journal]) -> dict[str, FileState | None]:
    """Return each file's state as the run, or a build of it since, left it. Raises ApplyError."""
    states: dict[str, FileState | None] = {}
    for number, layer in enumerate(layers, start=1):
        built = snapshot / built_name(number)
        steps = [*layer.files, *(_load(built).files if built.exists() else ())]
        states |= {step.path: step.after for step in steps}
    return states


def built_name(number: int) -> str:
    """Return the name of what is noted of the builds after a run's transaction, from 1."""
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
        with open_regular(snapshot / ORIGINALS / state.sha256) as file:
            content = file.readall()
    except OSError as error:
        message = f"the snapshot has no readable original of {path}, nothing was changed: {error.strerror} ({snapshot})"
        raise ApplyError(message) from error
    if sha256(content).hexdigest() != state.sha256:
        raise ApplyError(f"the snapshot's original of {path} is damaged, nothing was changed ({snapshot})")
    return content


def load_originals(snapshot: Path) -> dict[str, bytes]:
    """Return what the files that the run changed held before it, where they were there. Raises ApplyError."""
    states = first_states(load_layers(snapshot))
    return {path: read_original(snapshot, path, state) for path, state in states.items() if state is not None}


def keep_contents(snapshot: Path, layer: str, contents: Iterable[bytes | None]) -> None:
    """Keep what a layer, by the name of its file, made of its files; a full disk keeps nothing."""
    with suppress(OSError), replacing(_contents_of(snapshot, layer)) as file:
        for content in contents:
            file.write(content or b"")


def load_contents(snapshot: Path, *, until: int | None = None, built: bool = True) -> dict[str, bytes]:
    """Return what the run with this snapshot left of its files, where that was kept whole. Raises ApplyError.

    `until` is the number of transactions that count; without `built` it is what they left, before their builds.
    """
    contents: dict[str, bytes] = {}
    for number, layer in enumerate(load_layers(snapshot)[:until], start=1):
        noted = snapshot / built_name(number)
        steps = {layer_name(number): layer.files, noted.name: _load(noted).files if built and noted.exists() else ()}
        for name, files in steps.items():
            contents |= _read_contents(_contents_of(snapshot, name), files)
    return contents


def _contents_of(snapshot: Path, layer: str) -> Path:
    return (snapshot / layer).with_suffix(".contents")


def _read_contents(path: Path, steps: Iterable[FileStep]) -> dict[str, bytes]:
    try:
        with open_regular(path) as file:
            rest = memoryview(file.readall())
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
            with suppress(FileNotFoundError):  # no layer names it: it is of an interrupted attempt, maybe half of it
                os.unlink(name, dir_fd=folder)
            new_files.write(folder, name, content)


def sync_snapshot(snapshot: Path) -> None:
    """Make the names in the snapshot durable, and its own, in the folder of its run and in that of all runs."""
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
    if LAYER_NAME.fullmatch(path.name) is None:
        raise DamagedJournalError("it names something else as its file in the snapshot")
    with suppress(FileNotFoundError, NotADirectoryError):
        path.unlink()
        sync_names(path.parent)
