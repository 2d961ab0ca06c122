"""What one transaction does, as a value and as the JSON file that is its journal, and later its part of a snapshot.

`{"format": 1, "sha256": ..., "body": ...}`: the checksum is that of the body, keys sorted, without blanks. `format`
grows whenever a reader of the older one would misread it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FORMAT = 1


class DamagedRecordError(ValueError):
    """The bytes are no record that this version wrote."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A regular file: its content by SHA-256 and length, its permission bits, its owner."""

    sha256: str
    size: int
    mode: int
    uid: int
    gid: int

    def same_file(self, other: "FileState | None") -> bool:
        """Tell whether content and mode are the same; a different owner alone makes no difference."""
        return other is not None and (self.sha256, self.mode) == (other.sha256, other.mode)


@dataclass(frozen=True, slots=True)
class FileStep:
    """One file before and after (None: not there). `area` is the index of the staging folder with its two copies."""

    path: str
    before: FileState | None
    after: FileState | None
    area: int = 0


@dataclass(frozen=True, slots=True)
class FolderStep:
    """A folder that is made or removed, with its permission bits and owner (None: the umask and the system decide)."""

    path: str
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One transaction. Folders stand before what is in them.

    `areas` are the staging folders beside their targets (index 1 and up; 0 is agent-config/.txn), `layer` is the
    snapshot's file for this transaction, relative to the root where it lies below it.
    """

    files: tuple[FileStep, ...] = ()
    made: tuple[FolderStep, ...] = ()
    removed: tuple[FolderStep, ...] = ()
    areas: tuple[str, ...] = ()
    layer: str = ""


def seal(record: Record) -> bytes:
    """Return the record as JSON with its checksum."""
    body = {
        "files": [
            {"path": step.path, "area": step.area, "before": _state(step.before), "after": _state(step.after)}
            for step in record.files
        ],
        "made": [_folder(folder) for folder in record.made],
        "removed": [_folder(folder) for folder in record.removed],
        "areas": list(record.areas),
        "layer": record.layer,
    }
    text = _canonical(body)
    return f'{{"format": {FORMAT}, "sha256": "{_digest(text)}", "body": {text}}}\n'.encode("ascii")


def unseal(content: bytes) -> Record:
    """Read a sealed record. Raises DamagedRecordError on anything else, one of a newer format included."""
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise DamagedRecordError(f"it has format {document['format']!r}, this version reads {FORMAT}")
        body = document["body"]
        if document["sha256"] != _digest(_canonical(body)):
            raise DamagedRecordError("its checksum does not match")
        return Record(
            files=tuple(
                FileStep(step["path"], _read_state(step["before"]), _read_state(step["after"]), step["area"])
                for step in body["files"]
            ),
            made=tuple(FolderStep(**folder) for folder in body["made"]),
            removed=tuple(FolderStep(**folder) for folder in body["removed"]),
            areas=tuple(body["areas"]),
            layer=body["layer"],
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, DamagedRecordError):
            raise
        raise DamagedRecordError("it is not whole") from error


def _state(state: FileState | None) -> Mapping[str, Any] | None:
    if state is None:
        return None
    return {"sha256": state.sha256, "size": state.size, "mode": state.mode, "uid": state.uid, "gid": state.gid}


def _folder(folder: FolderStep) -> Mapping[str, Any]:
    return {"path": folder.path, "mode": folder.mode, "uid": folder.uid, "gid": folder.gid}


def _read_state(state: Mapping[str, Any] | None) -> FileState | None:
    return None if state is None else FileState(**state)


def _canonical(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("ascii")).hexdigest()
