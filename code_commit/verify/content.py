"""Checks that no content of a file is lost. The rules:

not-text      the original, or the new content, is no UTF-8 text
missing       a file is to be removed that is not there
holds-key     the content contains an API key
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

from code_commit.changes import (
    EditBlock,
    FileChange,
    FileRemoval,
    FileReplacement,
    OriginalFile,
    RequestedChange,
    RunWarning,
    VerifiedChange,
)
from code_commit.files import decode_text, folders_of
from code_commit.paths.names import Fault
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.runs.renames import find_renames
from code_commit.runs.words import count
from code_commit.terminal import shown
from code_commit.verify.edits import ContentFault, VisibleLines, edit_text, lines_in_ranges
from code_commit.verify.writing import whole_text, whole_text_as_sent

_SHEBANG, _LOST = b"#!", "\ufffd"


def check_content(
    change: FileChange | EditBlock, original: OriginalFile | None, redactor: Redactor, visible: VisibleLines
) -> FileChange | list[ContentFault]:
    """Return the change with the file's whole new content, edits included; or the rules that it breaks."""
    if isinstance(change, FileRemoval):
        missing = ContentFault(change.line, "missing", "is not there, it cannot be removed: leave the block out")
        return [missing] if original is None else change
    try:
        old = None if original is None else decode_text(original.content)
    except ValueError as error:
        return [ContentFault(change.line, "not-text", f"the file {error}, no response can hold it: leave it as it is")]
    content = change.content if isinstance(change, FileReplacement) else _edited(change, old, visible)
    if not isinstance(content, str):
        return content
    if fault := _text_fault(content, redactor):
        return [ContentFault(change.line, *fault)]
    return FileReplacement(change.path, content, change.line)


def _edited(block: EditBlock, old: str | None, visible: VisibleLines) -> str | list[ContentFault]:
    if old is None:
        return [ContentFault(block.line, "missing", "is not there to be edited: correct the path, or send it whole")]
    content, faults = edit_text(old, block.edits, visible)
    return faults or content


def lost_characters(content: bytes) -> int:
    return content.count(_LOST.encode())


def verified_change(
    asked: RequestedChange, checked: FileChange, original: OriginalFile | None, umask: int
) -> VerifiedChange:
    """Return a change that passed every rule, with the bytes and the mode that the file will have.

    `asked` is the change as the answer has it.
    """
    if isinstance(checked, FileRemoval):
        return VerifiedChange(checked, "delete", None, original.mode if original else 0, original)
    if original is None:
        content = whole_text(checked.content, None).encode()
        mode = 0o777 if content.startswith(_SHEBANG) else 0o666
        return VerifiedChange(checked, "create", content, mode & ~umask, None)
    is_whole = not isinstance(asked, EditBlock)
    text = whole_text(checked.content, original.content.decode()) if is_whole else checked.content
    return VerifiedChange(checked, "replace", text.encode(), original.mode, original)


def content_as_sent(asked: RequestedChange, checked: FileReplacement, original: OriginalFile) -> bytes:
    """Return the content that a file would have with the line ends and the last newline of the answer."""
    old = original.content.decode()
    if isinstance(asked, EditBlock):
        return edit_text(old, asked.edits, as_sent=True)[0].encode()
    return whole_text_as_sent(checked.content, old).encode()


def settle_new_files(verified: Sequence[VerifiedChange], project: Project) -> list[VerifiedChange]:
    """Return the changes, each new file with what it keeps of the one that it renames, or else with the line ends that
    git's attributes ask for. Raises UnansweredError.
    """
    deleted = {change.path: change.original for change in verified if change.content is None and change.original}
    created = {change.path: change for change in verified if change.original is None and change.content}
    contents = {path: change.content or b"" for path, change in created.items()}
    renamed = find_renames({path: original.content for path, original in deleted.items()}, contents)
    for path, old in renamed.items():
        created[path] = _renamed(created[path], old, deleted[old])
    others = contents.keys() - renamed.keys()
    for path in project.git.files_with_crlf(others) if project.git and others else ():
        text = whole_text(contents[path].decode(), None, "\r\n")
        created[path] = created[path]._replace(content=text.encode())
    return [created.get(change.path, change) for change in verified]


def _renamed(change: VerifiedChange, path: str, original: OriginalFile) -> VerifiedChange:
    """Return a new file with the mode, the BOM and the line ends of the deleted one at the path."""
    text = whole_text((change.content or b"").decode(), original.content.decode("utf-8", "surrogateescape"))
    content = text.encode("utf-8", "surrogateescape")
    return change._replace(content=content, mode=original.mode, renamed_from=path)


def _text_fault(content: str, redactor: Redactor) -> Fault | None:
    if "\0" in content:
        return "not-text", "the new content holds a NUL character, git would show no diff of it: leave it out"
    try:
        content.encode("utf-8")
    except UnicodeEncodeError as error:
        return "not-text", f"character {error.start} of the new content is half of a pair: send valid Unicode"
    if redactor.reveals_key(content):
        return "holds-key", "the new content contains an API key: read it where it is needed, write it into no file"
    return None


def read_umask() -> int:
    """Return the process's umask, on Linux without setting it: another thread may be making a file."""
    with suppress(FileNotFoundError):
        status = Path("/proc/self/status").read_text("utf-8", "replace")
        if found := re.search(r"^Umask:\s*([0-7]+)$", status, re.MULTILINE):
            return int(found[1], 8)
    umask = os.umask(0o077)  # macOS has no /proc
    os.umask(umask)
    return umask


def loss_warnings(asked: Iterable[RequestedChange], verified: Iterable[VerifiedChange]) -> Iterator[RunWarning]:
    """Yield a warning for each file that shrinks to under half, or more than half of which ranges replace."""
    edits = {change.path: change.edits for change in asked if isinstance(change, EditBlock)}
    for change in verified:
        if change.original is None and (lost := lost_characters(change.content or b"")):
            message = f"{shown(change.path)} contains U+FFFD, which stands for a lost character: {count(lost, 'time')}"
            yield RunWarning("damaged", message, change.path)
        if change.original is None or change.content is None:
            continue
        path, old, new = shown(change.path), change.original.content, change.content
        if 2 * len(new) < len(old):
            message = f"{path} shrinks to under half: from {len(old)} to {len(new)} bytes"
            yield RunWarning("shrunk", message, change.path)
        if not any(edit.last for edit in edits.get(change.path, ())):
            continue
        size = old.count(b"\n")
        if 2 * (lines := lines_in_ranges(edits[change.path], size - new.count(b"\n"))) > size:
            message = f"{path}: ranges replace {lines:,} of its {size:,} lines: check what they take away"
            yield RunWarning("shrunk", message, change.path)


def unlisted_warnings(created: Iterable[str], indexed: AbstractSet[str]) -> Iterator[RunWarning]:
    """Yield a warning for each new file in a folder that takes the place of a file."""
    for path in created:
        for folder in folders_of([path]) & indexed:
            message = f"{shown(path)}: git status shows it once git add has taken {shown(folder)}, which was a file"
            yield RunWarning("review", f"{message}; code-commit diff shows it now", path)
