"""What a run changed in all, as one diff: from the originals of its snapshot to what it left, not to today's tree."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from code_commit.apply.journal import FileState
from code_commit.apply.snapshot import ORIGINALS, first_states, last_states, left_states, load_layers, read_original
from code_commit.changes import DeclinedError, EditBlock, FileReplacement, RejectedResponseError, RequestedChange
from code_commit.diff import FileEdit, diff_files, header_of
from code_commit.files import open_regular
from code_commit.parse import parse_response


class NetDiff(NamedTuple):
    """A run's whole change as a diff that `git apply` reads, and the files whose content of then is lost."""

    diff: bytes
    unknown: list[str]


def net_diff(folder: Path, root: Path, prefix: str = "") -> NetDiff:
    """Return what the run of this log folder changed below `root`. Raises ApplyError where the snapshot is damaged.

    What the run and its builds made of a file, or else the run alone, is looked for by its checksum: in the tree, in
    the run's responses, and in the snapshots, for a later run that changed or undid it has kept it. Where it is
    nowhere, the diff of the one attempt that changed the file says the same, but for a key that is censored in it.
    `prefix` stands before every path.
    """
    layers = load_layers(folder / "snapshot")
    left, last = left_states(folder / "snapshot", layers), last_states(layers)
    steps = Counter(step.path for layer in layers for step in layer.files)
    responses, sections = _changes_of_responses(folder), _sections_of_diffs(folder)
    edits, parts, unknown = [], [], []
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
        elif not prefix and steps[path] == 1 and header_of(path) in sections:
            parts.append(sections[header_of(path)])
        else:
            unknown.append(path)
    return NetDiff(b"".join([diff_files(edits)[1], *parts]), unknown)


def _find(state: FileState, file: Path, responses: list[bytes], logs: Path) -> bytes | None:
    """Return the content that has the checksum; None where it is nowhere."""

    def candidates() -> Iterator[bytes]:
        yield _read(file)
        for response in responses:
            yield response
            yield response.replace(b"\n", b"\r\n")  # so is a file written that had such line ends
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


def _sections_of_diffs(folder: Path) -> dict[bytes, bytes]:
    """Return what the attempts' diffs say of each file, by the line that it begins with."""
    diffs = b"".join(map(_read, folder.glob("*-changes.diff")))
    sections = re.split(rb"^(?=diff --git )", diffs, flags=re.MULTILINE)
    return {section[: section.find(b"\n") + 1]: section for section in sections}


def _read(path: Path) -> bytes:
    """Return a file's content; b"" where there is none that can be read."""
    try:
        with open_regular(path) as file:
            return file.readall()
    except OSError:
        return b""
