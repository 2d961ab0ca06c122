"""What changed in files, as a unified diff that `git apply` reads, and as the numbers of run.json."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from code_commit.changes import Action, VerifiedChanges
from code_commit.run_record import AppliedChange

CONTEXT_LINES = 3  # as git diff
MOST_LINE_PAIRS = 25_000_000
"""Above this product of differing lines a file is shown as replaced: the search would take longer than a build."""


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file before and after: its content (None: not there) and permission bits."""

    path: str
    old: bytes | None
    new: bytes | None
    old_mode: int = 0o644
    mode: int = 0o644

    @property
    def action(self) -> Action:
        if self.old is None:
            return "create"
        return "delete" if self.new is None else "replace"


def edits_of(changes: VerifiedChanges) -> list[FileEdit]:
    """Return what verified changes do to the files."""
    return [
        FileEdit(
            change.path,
            change.original.content if change.original else None,
            change.content,
            change.original.mode if change.original else change.mode,
            change.mode,
        )
        for change in changes.changes
    ]


def unified_diff(edits: Sequence[FileEdit]) -> bytes:
    """Return one diff of all edits, in the order of their paths; b"" when nothing differs."""
    return b"".join(_file_diff(edit) for edit in sorted(edits, key=lambda edit: edit.path.encode("utf-8", "replace")))


def applied_change(edit: FileEdit) -> AppliedChange:
    """Return what run.json says of one edit."""
    added = removed = 0
    for old, new in _blocks(*_sides(edit)):
        removed += old[1] - old[0]
        added += new[1] - new[0]
    return AppliedChange(edit.path, edit.action, len(edit.new or b""), added, removed)


_Range = tuple[int, int]
_Block = tuple[_Range, _Range]


def _sides(edit: FileEdit) -> tuple[list[bytes], list[bytes]]:
    return _lines(edit.old or b""), _lines(edit.new or b"")


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _file_diff(edit: FileEdit) -> bytes:
    name_a, name_b = _quoted("a/" + edit.path), _quoted("b/" + edit.path)
    modes = _mode_lines(edit)
    hunks = list(_hunks(*_sides(edit)))
    if not hunks and not modes:
        return b""
    header = [b"diff --git %s %s\n" % (name_a, name_b), *modes]
    if hunks:
        header.append(b"--- %s\n" % (b"/dev/null" if edit.old is None else _terminated(name_a)))
        header.append(b"+++ %s\n" % (b"/dev/null" if edit.new is None else _terminated(name_b)))
    return b"".join([*header, *hunks])


def _mode_lines(edit: FileEdit) -> list[bytes]:
    old, new = _git_mode(edit.old_mode), _git_mode(edit.mode)
    if edit.old is None:
        return [b"new file mode %s\n" % new]
    if edit.new is None:
        return [b"deleted file mode %s\n" % old]
    return [b"old mode %s\nnew mode %s\n" % (old, new)] if old != new else []


def _git_mode(mode: int) -> bytes:
    return b"100755" if mode & 0o100 else b"100644"


def _terminated(name: bytes) -> bytes:
    """A name with a blank in it ends with a tab in the `---` and `+++` lines, as git and diff write it."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def _quoted(name: str) -> bytes:
    """Quote a name as git does with core.quotePath=false: where it has a control character, a quote or a backslash."""
    raw = name.encode("utf-8", "surrogatepass")
    if not any(byte < 0x20 or byte in b'"\\\x7f' for byte in raw):
        return raw
    return b'"' + b"".join(_quoted_byte(byte) for byte in raw) + b'"'


def _quoted_byte(byte: int) -> bytes:
    if byte in b'"\\':
        return b"\\%c" % byte
    return b"\\%03o" % byte if byte < 0x20 or byte == 0x7F else bytes([byte])


def _hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    blocks = list(_blocks(old, new))
    start = 0
    while start < len(blocks):
        end = start + 1
        while end < len(blocks) and blocks[end][0][0] - blocks[end - 1][0][1] <= 2 * CONTEXT_LINES:
            end += 1
        yield _hunk(old, new, blocks[start:end])
        start = end


def _hunk(old: list[bytes], new: list[bytes], blocks: list[_Block]) -> bytes:
    lead = min(CONTEXT_LINES, blocks[0][0][0])
    trail = min(CONTEXT_LINES, len(old) - blocks[-1][0][1])
    old_range = (blocks[0][0][0] - lead, blocks[-1][0][1] + trail)
    new_range = (blocks[0][1][0] - lead, blocks[-1][1][1] + trail)
    rows = [b"@@ -%s +%s @@\n" % (_span(old_range), _span(new_range))]
    position = old_range[0]
    for (old_start, old_end), (new_start, new_end) in blocks:
        rows += [b" " + line for line in old[position:old_start]]
        rows += [b"-" + line for line in old[old_start:old_end]]
        rows += [b"+" + line for line in new[new_start:new_end]]
        position = old_end
    rows += [b" " + line for line in old[position : old_range[1]]]
    return b"".join(row if row.endswith(b"\n") else row + b"\n\\ No newline at end of file\n" for row in rows)


def _span(lines: _Range) -> bytes:
    start, end = lines
    return b"%d,%d" % (start + 1 if end > start else start, end - start)


def _blocks(old: list[bytes], new: list[bytes]) -> Iterator[_Block]:
    """Yield the ranges of lines that differ, the equal lines at both ends set aside first."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle_old and not middle_new:
        return
    if not middle_old or not middle_new or len(middle_old) * len(middle_new) > MOST_LINE_PAIRS:
        yield (head, head + len(middle_old)), (head, head + len(middle_new))
        return
    from difflib import SequenceMatcher

    for kind, old_start, old_end, new_start, new_end in SequenceMatcher(None, middle_old, middle_new).get_opcodes():
        if kind != "equal":
            yield (head + old_start, head + old_end), (head + new_start, head + new_end)
