"""Checks that no content of a file is lost. The rules:

not-text      the original, or the new content, is no UTF-8 text
missing       a file is to be removed that is not there
holds-key     the content contains an API key
damaged       characters were lost: U+FFFD stands where the original has none, or ASCII in place of all others
repeated      all of the file comes twice
"""

import os
import re
from collections import Counter
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
    quoted,
)
from code_commit.files import decode_text, folders_of
from code_commit.paths.names import Fault
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.regex import regex
from code_commit.runs.renames import find_renames
from code_commit.runs.words import count
from code_commit.terminal import shown
from code_commit.verify.edits import ContentFault, VisibleLines, edit_text, lines_in_ranges
from code_commit.verify.parts import Suspicion, parts_of
from code_commit.verify.writing import whole_text, whole_text_as_sent

_SHEBANG, _LOST = b"#!", "\ufffd"
_NOT_ASCII, _ASCII_WORD = regex(r"([^\x00-\x7f]+)"), regex(r"[A-Za-z]\w+")
_WORD = regex(r"[^\W_]")
_FEWEST_LOST, _MOST_COMPARED = 3, 50  # lines
_FEWEST_TWICE = 15  # lines; fewer are soon copied, in a table of tests


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


def find_damage(change: FileChange | EditBlock, old: str | None) -> Suspicion | None:
    """Return the first U+FFFD that the answer puts into a file without one; the old text of a new file is None."""
    if isinstance(change, FileRemoval) or old is None or _LOST in old:
        return None
    if isinstance(change, FileReplacement):
        texts = [(change.line, change.content)]
    else:
        texts = [(edit.line, edit.replacement) for edit in change.edits]
    for line, text in texts:
        place = text.find(_LOST)
        if place >= 0:
            said = text[text.rfind("\n", 0, place) + 1 :].partition("\n")[0].strip()
            at = line + 1 + text.count("\n", 0, place) if isinstance(change, FileReplacement) and line else line
            fact = f"'{quoted(said)}' contains U+FFFD in place of a character, and the file has none"
            return Suspicion(at, fact, "write the character that was meant", rule="damaged")
    return None


def find_lost_letters(change: FileChange | EditBlock, old: str | None) -> Suspicion | None:
    """Return the finding that lines of a file come again with ASCII in place of all that was none, or with what their
    bytes are in another encoding, in several lines.
    """
    if not isinstance(change, FileReplacement) or old is None or old.isascii():
        return None
    new, *lines = (text.replace("\r", "") for text in (change.content, *dict.fromkeys(old.split("\n"))))
    lines = [line for line in lines if not line.isascii() and _ASCII_WORD.search(line)]
    is_ascii = new.isascii()
    if not is_ascii and not {*lines}.isdisjoint(new.split("\n")):
        return None
    forms = (f"(?m)^{_lost_form(line, is_ascii=is_ascii)}$" for line in lines[:_MOST_COMPARED])
    again = [found for form in forms if (found := re.search(form, new))]
    if len(again) < _FEWEST_LOST or 2 * len(again) < len(lines):
        return None
    said = again[0][0].strip()
    at = change.line and change.line + 1 + new.count("\n", 0, again[0].start())
    others = "ASCII" if is_ascii else "others"
    fact = f"'{quoted(said)}' and more lines have {others} in place of the file's own characters, and none is left"
    return Suspicion(at, fact, "write the characters of the file", rule="damaged")


def _lost_form(line: str, *, is_ascii: bool) -> str:
    """Return the pattern of a line with ASCII in place of all that is none, or with its bytes read as characters."""
    pieces = _NOT_ASCII.split(line)
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            pieces[at] = re.escape(piece)
        elif is_ascii:
            pieces[at] = "[ -~]{0,4}"
        else:
            pieces[at] = rf"[^\x00-\x3e@-\x7f]{{{len(piece) + 1},{len(piece.encode())}}}"
    return "".join(pieces)


def find_doubling(change: FileChange | EditBlock, old: str | None) -> Suspicion | None:
    """Return the finding that most of a file's lines, which it has once, come twice, one time after the other.

    The first of them begins it again: what is copied within a file stands below its head, or below YAML's `---`.
    """
    if not isinstance(change, FileReplacement) or old is None or 2 * len(change.content) < 3 * len(old):
        return None
    counts = Counter(line for line in map(str.strip, old.split("\n")) if _WORD.search(line))
    places: dict[str, list[int]] = {line: [] for line, number in counts.items() if number == 1}
    lines = [line.strip() for line in change.content.split("\n")]
    for number, line in enumerate(lines):
        if line in places:
            places[line].append(number)
    kept = [found for found in places.values() if found]
    twice = [found for found in kept if len(found) > 1]
    if len(twice) < _FEWEST_TWICE or 2 * len(kept) < len(places) or 4 * len(twice) < 3 * len(kept):
        return None
    start = min(second for _, second, *_ in twice)
    if max(first for first, *_ in twice) > start or next(parts_of(change, old)).is_data:
        return None
    if kept[0][1:2] != [start] or lines[start - 1] == "---" not in lines[: kept[0][0]]:
        return None
    fact = f"all of it comes twice: '{quoted(lines[start])}' begins it again"
    return Suspicion(change.line and change.line + 1 + start, fact, "send the file once", rule="repeated")


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
