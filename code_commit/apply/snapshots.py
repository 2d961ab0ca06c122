"""The snapshot of a run: what every file that the run touched was before, and what the run made of it.

    snapshot/changes-1.json         the record of the run's first transaction, 2 that of the next, without a gap
    snapshot/originals/SHA256       the content of each file before the run touched it for the first time

A record counts once its transaction is committed; until then it is named in the transaction's journal and goes
with it. A content is never written over one that a record names.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from code_commit.apply.record import DamagedRecordError, FileState, FolderStep, Record, unseal
from code_commit.errors import ApplyError
from code_commit.files import FOLDER, open_regular, sync_folder, write_new_file

ORIGINALS = "originals"
LAYER_NAME = re.compile(r"changes-([1-9][0-9]*)\.json")


def load_layers(snapshot: Path) -> list[Record]:
    """Return the records of a run's transactions in order, none where it changed nothing yet. Raises ApplyError."""
    try:
        names = [entry.name for entry in snapshot.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ApplyError(f"the snapshot {snapshot} cannot be read: {error.strerror}") from error
    numbers = sorted(int(match[1]) for name in names if (match := LAYER_NAME.fullmatch(name)))
    if numbers != list(range(1, len(numbers) + 1)):
        raise ApplyError(f"the snapshot {snapshot} is not whole: a changes-N.json is missing, nothing was changed")
    return [_load(snapshot, number) for number in numbers]


def _load(snapshot: Path, number: int) -> Record:
    name = layer_name(number)
    try:
        with _opened(snapshot) as folder:
            return unseal(_content(folder, name))
    except OSError as error:
        raise ApplyError(f"the snapshot's {name} cannot be read: {error.strerror} ({snapshot})") from error
    except DamagedRecordError as error:
        raise ApplyError(f"the snapshot's {name} is damaged, nothing was changed: {error} ({snapshot})") from error


def layer_name(number: int) -> str:
    """Return the name of the record of a run's transaction, from 1."""
    return f"changes-{number}.json"


def first_states(layers: Iterable[Record]) -> dict[str, FileState | None]:
    """Return each file's state before the first transaction that touched it."""
    states: dict[str, FileState | None] = {}
    for layer in layers:
        for step in layer.files:
            states.setdefault(step.path, step.before)
    return states


def first_folders(layers: Iterable[Record]) -> dict[str, FolderStep | None]:
    """Return each folder that was made or removed as it was before (None: not there)."""
    folders: dict[str, FolderStep | None] = {}
    for layer in layers:
        for folder in layer.removed:
            folders.setdefault(folder.path, folder)
        for folder in layer.made:
            folders.setdefault(folder.path, None)
    return folders


def read_original(snapshot: Path, path: str, state: FileState) -> bytes:
    """Return a file's content before the run. Raises ApplyError when it is missing or damaged."""
    from hashlib import sha256

    try:
        with _opened(snapshot / ORIGINALS) as folder:
            content = _content(folder, state.sha256)
    except OSError as error:
        message = f"the snapshot has no readable original of {path}, nothing was changed: {error.strerror} ({snapshot})"
        raise ApplyError(message) from error
    if sha256(content).hexdigest() != state.sha256:
        raise ApplyError(f"the snapshot's original of {path} is damaged, nothing was changed ({snapshot})")
    return content


def make_snapshot_folders(snapshot: Path) -> None:
    """Make the run's snapshot folder where it is missing."""
    for path in (snapshot, snapshot / ORIGINALS):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_originals(snapshot: Path, contents: Mapping[str, bytes], written: list[str], *, sync: bool) -> None:
    """Write contents by their SHA-256; `written` is told of each, before it is there."""
    with _opened(snapshot / ORIGINALS) as folder:
        there = set(os.listdir(folder))  # noqa: PTH208 - a descriptor
        for name, content in contents.items():
            if name in there:  # no record names it: it is from an attempt that was interrupted, maybe half of it
                os.unlink(name, dir_fd=folder)
            written.append(name)
            write_new_file(folder, name, content, sync=sync)
    for path in (snapshot / ORIGINALS, snapshot, snapshot.parent, snapshot.parent.parent):
        sync_path(path)


def remove_originals(snapshot: Path, written: Iterable[str]) -> None:
    """Remove contents that no record names."""
    for name in written:
        with suppress(FileNotFoundError):
            (snapshot / ORIGINALS / name).unlink()
    for folder in (snapshot / ORIGINALS, snapshot):
        with suppress(OSError):
            folder.rmdir()


def write_layer(snapshot: Path, name: str, content: bytes) -> None:
    """Write a transaction's record, durably."""
    with _opened(snapshot) as folder:
        write_new_file(folder, name, content, sync=True)
        sync_folder(folder)


def remove_layer(path: Path) -> None:
    """Remove the record of a transaction that did not come to pass, durably, if it is there."""
    if LAYER_NAME.fullmatch(path.name) is None:
        raise DamagedRecordError("it names a snapshot record that is none")
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return
    sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Make the folder's names durable."""
    with _opened(path) as folder:
        sync_folder(folder)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    folder = os.open(path, FOLDER & ~os.O_NOFOLLOW)
    try:
        yield folder
    finally:
        os.close(folder)


def _content(folder: int, name: str) -> bytes:
    with open_regular(name, folder=folder) as file:
        return file.readall()
