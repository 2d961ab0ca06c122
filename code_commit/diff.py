"""What changed in files, as a unified diff that `git apply` reads, and as the numbers of run.json."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from code_commit.changes import Action, VerifiedChanges
from code_commit.line_matching import Block, Range, differing_ranges
from code_commit.run_record import AppliedChange

CONTEXT_LINES = 3  # as git diff


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


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What one edit changed: as run.json says it, and as the part of a unified diff."""

    change: AppliedChange
    text: bytes


def diff_file(edit: FileEdit) -> FileDiff:
    """Compare a file before and after; the text is b"" when nothing differs."""
    old, new = _lines(edit.old or b""), _lines(edit.new or b"")
    blocks = list(differing_ranges(old, new))
    removed = sum(end - start for (start, end), _ in blocks)
    added = sum(end - start for _, (start, end) in blocks)
    change = AppliedChange(edit.path, edit.action, len(edit.new or b""), added, removed)
    return FileDiff(change, _file_diff(edit, list(_hunks(old, new, blocks))))


def join_diffs(diffs: Iterable[FileDiff]) -> bytes:
    """Return one unified diff of them all, in the order of their paths."""
    in_order = sorted(diffs, key=lambda diff: diff.change.path.encode("utf-8", "replace"))
    return b"".join(diff.text for diff in in_order)


def unified_diff(edits: Iterable[FileEdit]) -> bytes:
    """Return one diff of all edits, in the order of their paths; b"" when nothing differs."""
    return join_diffs(map(diff_file, edits))


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _file_diff(edit: FileEdit, hunks: list[bytes]) -> bytes:
    name_a, name_b = _quoted("a/" + edit.path), _quoted("b/" + edit.path)
    modes = _mode_lines(edit)
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


def _hunks(old: list[bytes], new: list[bytes], blocks: list[Block]) -> Iterator[bytes]:
    start = 0
    while start < len(blocks):
        end = start + 1
        while end < len(blocks) and blocks[end][0][0] - blocks[end - 1][0][1] <= 2 * CONTEXT_LINES:
            end += 1
        yield _hunk(old, new, blocks[start:end])
        start = end


def _hunk(old: list[bytes], new: list[bytes], blocks: list[Block]) -> bytes:
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


def _span(lines: Range) -> bytes:
    start, end = lines
    return b"%d,%d" % (start + 1 if end > start else start, end - start)
