"""What a run changed in all: from the originals of its snapshot to the content that its last change left."""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from code_commit.apply.journal import FileState
from code_commit.apply.snapshot import first_states, load_layers, read_original
from code_commit.commands.page.excerpt import read_excerpt
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.commands.page.unified import FileDiff, PatchError, parse_diff, patch
from code_commit.diff import FileEdit
from code_commit.errors import ApplyError

MOST_CONTENT = 64_000_000
"""Bytes of a file above which its change is not put together: the page could not show it."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The accumulated change, and the files whose content is no longer known."""

    edits: list[FileEdit]
    unknown: list[str]


def accumulated_change(run: LoggedRun) -> RunResult:
    """Put the run's whole change together. Raises ApplyError where the snapshot cannot be read.

    The last content is taken from the work tree where the file still is as the run left it, else made of the original
    and the diffs of the log. Either counts only with the checksum that the snapshot has of it.
    """
    layers = load_layers(run.folder / "snapshot")
    last = {step.path: step.after for layer in layers for step in layer.files}
    diffs = _logged_diffs(run)
    result = RunResult([], [])
    for path, before in first_states(layers).items():
        after = last[path]
        old = read_original(run.folder / "snapshot", path, before) if before else None
        new = _last_content(run.root / path, old, after, diffs.get(path, [])) if after else None
        if after and new is None:
            result.unknown.append(path)
        elif (before is None) != (after is None) or (before and after and not before.same_file(after)):
            modes = (before.mode if before else 0o644, after.mode if after else 0o644)
            result.edits.append(FileEdit(path, old, new, *modes))
    return result


def _logged_diffs(run: LoggedRun) -> dict[str, list[FileDiff]]:
    """Return the diffs of each file, in the order of the attempts that were applied."""
    diffs: dict[str, list[FileDiff]] = {}
    for attempt in run.record.attempts:
        if attempt.verdict == "applied":
            try:
                excerpt = read_excerpt(run.folder / f"{attempt.number}-changes.diff", MOST_CONTENT, 0)
            except OSError:
                continue
            for file in parse_diff(excerpt.head):
                diffs.setdefault(file.path, []).append(file)
    return diffs


def _last_content(path: Path, old: bytes | None, after: FileState, diffs: list[FileDiff]) -> bytes | None:
    if after.size > MOST_CONTENT:
        return None
    for content in (_read(path), _replayed(old, diffs)):
        if content is not None and sha256(content).hexdigest() == after.sha256:
            return content
    return None


def _read(path: Path) -> bytes | None:
    try:
        return read_excerpt(path, MOST_CONTENT, 0).head
    except (OSError, ValueError):
        return None


def _replayed(content: bytes | None, diffs: list[FileDiff]) -> bytes | None:
    for file in diffs:
        try:
            content = None if file.deleted else patch(content or b"", file)
        except PatchError:
            return None
    return content


def read_result(run: LoggedRun) -> RunResult | str:
    """Return the run's whole change, or in words why it is not known."""
    try:
        return accumulated_change(run)
    except ApplyError as error:
        return str(error)
