"""What a run changed in all, as one diff: from the originals of its snapshot to what it left, not to today's tree."""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from code_commit.apply.journal import FileState
from code_commit.apply.snapshot import ORIGINALS, first_states, last_states, left_states, load_layers, read_original
from code_commit.changes import DeclinedError, EditBlock, FileReplacement, RejectedResponseError, RequestedChange
from code_commit.diff import FileEdit, diff_files
from code_commit.files import open_regular
from code_commit.parse import parse_response


class NetDiff(NamedTuple):
    """A run's whole change as a diff that `git apply` reads, and the files whose content of then is lost."""

    diff: bytes
    unknown: list[str]


def net_diff(folder: Path, root: Path, prefix: str = "") -> NetDiff:
    """Return what the run of this log folder changed below `root`. Raises ApplyError where the snapshot is damaged.

    What the run and its builds made of a file, or else the run alone, is looked for by its checksum: in the tree, in
    the run's responses, and in the snapshots, for a later run that changed or undid it has kept it. `prefix` stands
    before every path.
    """
    layers = load_layers(folder / "snapshot")
    left, last = left_states(folder / "snapshot", layers), last_states(layers)
    responses = _changes_of_responses(folder)
    edits, unknown = [], []
    for path, before in first_states(layers).items():
        after, new = left[path], None
        old = read_original(folder / "snapshot", path, before) if before else None
        made = _contents_made(old, responses.get(path, ()))
        for state in filter(None, (left[path], last[path]) if after else ()):
            after, new = state, _find(state, root / path, made, folder.parent)
            if new is not None:
                break
        if before == after or (before and before.same_file(after)):
            continue
        if new is not None or after is None:
            modes = (before.mode if before else 0o644, after.mode if after else 0o644)
            edits.append(FileEdit(prefix + path, old, new, *modes))
        else:
            unknown.append(path)
    return NetDiff(diff_files(edits)[1], unknown)


def _find(state: FileState, file: Path, responses: list[bytes], logs: Path) -> bytes | None:
    """Return the content that has the checksum; None where it is nowhere."""

    def candidates() -> Iterator[bytes]:
        yield _read(file)
        for content in chain.from_iterable((made, made.replace(b"\n", b"\r\n")) for made in responses):
            yield content
            yield BOM_UTF8 + content  # a file is written as it was before: with such line ends, with a BOM
        for log in logs.iterdir():
            yield _read(log / "snapshot" / ORIGINALS / state.sha256)

    return next((content for content in candidates() if sha256(content).hexdigest() == state.sha256), None)


def _changes_of_responses(folder: Path) -> dict[str, list[RequestedChange]]:
    """Return what the responses, one after the other, ask for each file."""
    by_path: dict[str, list[RequestedChange]] = {}
    for path in sorted(folder.glob("*-response.txt"), key=lambda path: (len(path.name), path.name)):
        with suppress(RejectedResponseError, DeclinedError):
            for change in parse_response(_read(path).decode("utf-8", "replace")):
                by_path.setdefault(change.path, []).append(change)
    return by_path


def _contents_made(original: bytes | None, changes: Iterable[RequestedChange]) -> list[bytes]:
    """Return all that the changes can have made of a file: they may have been applied or not."""
    contents = [original.decode("utf-8", "replace")] if original is not None else []
    for change in changes:
        if isinstance(change, FileReplacement):
            contents.append(change.content)
        elif isinstance(change, EditBlock):
            from code_commit.verify.edits import edit_text  # a diff of whole files needs nothing of that package

            contents += [text for text, faults in [edit_text(text, change.edits) for text in contents] if not faults]
    return [text.encode() for text in contents]


def _read(path: Path) -> bytes:
    """Return a file's content; b"" where there is none that can be read."""
    try:
        with open_regular(path) as file:
            return file.readall()
    except OSError:
        return b""
