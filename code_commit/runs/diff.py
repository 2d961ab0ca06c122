"""Changes of files as a unified diff that `git apply` reads, and as the numbers of run.json.

Lines that occur once in both versions, in the same order, are anchors (Bram Cohen's patience diff); the lines between
two of them are compared in turn. Starting `git diff --no-index` takes many times as long, and difflib takes quadratic
time.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import eq, itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from code_commit.changes import Action, AppliedChange, FileKind, VerifiedChanges
from code_commit.files import read_regular_file
from code_commit.git import Repository
from code_commit.ownership import Ownership
from code_commit.paths.checks import file_kind
from code_commit.paths.secrets import explain_secret
from code_commit.regex import regex
from code_commit.runs.record import Attempt
from code_commit.runs.renames import find_renames

CONTEXT_LINES = 3  # as git diff
NOT_SHOWN = b"# %s (a secret, not shown)\n"
MOST_LEVELS = 16  # recursions; each takes time for all lines
MOST_LINES = 250_000  # of both versions together; longer files are replaced whole, to save gigabytes of memory
Range = tuple[int, int]
Block = tuple[Range, Range]  # lines of the old version, first to before last, and the new ones in their place
T = TypeVar("T")
_OWN_ID = regex(rb"[$]Id:(?: (?:[0-9a-f]{40}(?:[0-9a-f]{24})? )?)?[$]")
_FUNCTION_REACH = 500  # lines before a hunk
# git's own rule, and nested functions
_FUNCTION = regex(rb"[A-Za-z_$]|\s+(?:\w+ ){0,3}(?:def|class|func|fn|function|interface|struct|impl)\b")


class FileEdit(NamedTuple):
    """A file before and after: its content (None: not there), permission bits, and the owner of a restored one.

    A new file keeps the owner of the file `renamed_from`.
    """

    path: str
    old: bytes | None
    new: bytes | None
    old_mode: int = 0o644
    mode: int = 0o644
    owner: Ownership | None = None
    renamed_from: str = ""

    @property
    def action(self) -> Action:
        if self.old is None:
            return "create"
        return "delete" if self.new is None else "replace"


def edits_of(changes: VerifiedChanges) -> list[FileEdit]:
    """Return the edits of verified changes, without files that stay as they are."""
    edits = (
        FileEdit(
            change.path,
            change.original.content if change.original else None,
            change.content,
            change.original.mode if change.original else change.mode,
            change.mode,
            renamed_from=change.renamed_from,
        )
        for change in changes.changes
    )
    return [edit for edit in edits if (edit.old, edit.old_mode) != (edit.new, edit.mode)]


def kind_of(path: str, before: str = "") -> FileKind:
    """Return the kind of a file that checks the work, by its name or by the one before; "" for any other."""
    return file_kind(path) or file_kind(before)


def known_text(log_folder: Path) -> str:
    texts = []
    for path in (*sorted(log_folder.glob("*-query.txt")), *sorted(log_folder.glob("*-response.txt"))):
        with suppress(OSError):
            texts.append(read_regular_file(path).decode("utf-8", "replace"))
    return "\n".join(texts)


def diff_files(
    edits: Iterable[FileEdit],
    git: Repository | None = None,
    prefix: str = "",
    known: Callable[[], str] = str,
    *,
    renames: bool = True,
) -> tuple[list[AppliedChange], bytes]:
    """Return the numbers of each edit, and one diff of all of them by path, b"" if nothing differs.

    The diff compares contents as `git` stores them, for `git apply --index`, but leaves no text out. A secret outside
    the `known` text is replaced by a line that `git apply` ignores. With `renames`, a file that
    was renamed is one change.
    """
    changes, texts = [], {}
    for edit in with_renames(edits) if renames else edits:
        path, before = edit.path, edit.renamed_from or edit.path
        old, new = edit.old or b"", edit.new or b""
        if git is not None:
            old, new = git.stored(before, old), with_hidden_text(new, git.stored(path, new), old)
        added, removed, hunks = _differences(old, new)
        action: Action = "create" if edit.renamed_from else edit.action
        kind, size = kind_of(path, before), len(edit.new or b"")
        changes.append(AppliedChange(path, action, size, added, removed, kind, edit.renamed_from))
        both = [content.decode("utf-8", "replace") for content in (old, new)]
        is_secret = hunks and any(explain_secret(name, both, known) for name in {path, before})
        named = edit._replace(path=prefix + path, renamed_from=edit.renamed_from and prefix + before)
        shown = b"".join(NOT_SHOWN % _quoted(prefix + name) for name in dict.fromkeys((before, path)))
        texts[named.path.encode("utf-8", "replace")] = shown if is_secret else _file_diff(named, hunks)
    return changes, b"".join(text for _, text in sorted(texts.items()))


def with_renames(edits: Iterable[FileEdit]) -> list[FileEdit]:
    """Return the edits, with one in place of both for each deleted file that a new one renames."""
    by_path = {edit.path: edit._replace(renamed_from="") for edit in edits}
    deleted = {path: edit.old for path, edit in by_path.items() if edit.old is not None and edit.new is None}
    created = {path: edit.new for path, edit in by_path.items() if edit.old is None and edit.new is not None}
    for path, before in find_renames(deleted, created).items():
        gone = by_path.pop(before)
        by_path[path] = by_path[path]._replace(old=gone.old, old_mode=gone.old_mode, renamed_from=before)
    return list(by_path.values())


def with_hidden_text(written: bytes, stored: bytes, before: bytes = b"") -> bytes:
    """Return the content as git stores it, except new lines with text that git leaves out: these as written."""
    if written == stored or _without_conversion(written) == _without_conversion(stored):
        return stored
    lines, as_stored = _lines(written), _lines(stored)
    if len(lines) != len(as_stored):
        return written
    known = set(_lines(before))
    return b"".join(
        kept if line in known or _without_conversion(line) == _without_conversion(kept) else line
        for line, kept in zip(lines, as_stored, strict=True)
    )


def _without_conversion(content: bytes) -> bytes:
    """Return a content without carriage returns and object names, which git adds on checkout."""
    return _OWN_ID.sub(b"$Id$", content).replace(b"\r\n", b"\n")


def hunks_between(before: str, after: str, context: int) -> str:
    """Return the hunks of a unified diff with so many context lines; "" if nothing differs."""
    _, _, hunks = _differences(before.encode(), after.encode(), context)
    return b"".join(hunks).decode()


def _differences(before: bytes, after: bytes, context: int = CONTEXT_LINES) -> tuple[int, int, list[bytes]]:
    sizes = _count_lines(before), _count_lines(after)
    if before == after:
        return 0, 0, []
    if not before or not after or sum(sizes) > MOST_LINES:
        header = b"@@ -%s +%s @@\n" % (_span((0, sizes[0])), _span((0, sizes[1])))
        return sizes[1], sizes[0], [header + _marked(b"-", before) + _marked(b"+", after)]
    old, new = _lines(before), _lines(after)
    blocks = list(differing_ranges(old, new))
    removed = sum(end - start for (start, end), _ in blocks)
    added = sum(end - start for _, (start, end) in blocks)
    return added, removed, list(_hunks(old, new, blocks, context))


def _count_lines(content: bytes) -> int:
    return content.count(b"\n") + (content[-1:] not in (b"", b"\n"))


def _marked(mark: bytes, content: bytes) -> bytes:
    """Return all lines with the mark before each, without a list of them."""
    if not content:
        return b""
    text = mark + content.removesuffix(b"\n").replace(b"\n", b"\n" + mark) + b"\n"
    return text if content.endswith(b"\n") else text + b"\\ No newline at end of file\n"


def _lines(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _file_diff(edit: FileEdit, hunks: Sequence[bytes]) -> bytes:
    name_a, name_b = _quoted("a/" + (edit.renamed_from or edit.path)), _quoted("b/" + edit.path)
    modes = _mode_lines(edit)
    if not hunks and not modes and not edit.renamed_from:
        return b""
    header = [b"diff --git %s %s\n" % (name_a, name_b), *modes]
    if edit.renamed_from:
        header.append(b"rename from %s\nrename to %s\n" % (_quoted(edit.renamed_from), _quoted(edit.path)))
    if hunks:
        header.append(b"--- %s\n" % (b"/dev/null" if edit.old is None else _terminated(name_a)))
        header.append(b"+++ %s\n" % (b"/dev/null" if edit.new is None else _terminated(name_b)))
    return b"".join([*header, *hunks])


def _mode_lines(edit: FileEdit) -> list[bytes]:
    old, new = (b"100755" if mode & 0o100 else b"100644" for mode in (edit.old_mode, edit.mode))
    if edit.old is None:
        return [b"new file mode %s\n" % new]
    if edit.new is None:
        return [b"deleted file mode %s\n" % old]
    return [b"old mode %s\nnew mode %s\n" % (old, new)] if old != new else []


def _terminated(name: bytes) -> bytes:
    """Return the name for a `---` or `+++` line: with a tab after it if it has a blank, as git and diff do."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name


def _quoted(name: str) -> bytes:
    """Return a name quoted as git does with core.quotePath=false: for control characters, quotes and backslashes."""
    raw = name.encode("utf-8", "surrogatepass")
    quoted = re.sub(rb'["\\]', rb"\\\g<0>", raw)
    quoted = re.sub(rb"[\x00-\x1f\x7f]", lambda match: b"\\%03o" % match[0][0], quoted)
    return raw if quoted == raw else b'"%s"' % quoted


def _hunks(old: Sequence[bytes], new: Sequence[bytes], blocks: Sequence[Block], context: int) -> Iterator[bytes]:
    start = 0
    while start < len(blocks):
        end = start + 1
        while end < len(blocks) and blocks[end][0][0] - blocks[end - 1][0][1] <= 2 * context:
            end += 1
        yield _hunk(old, new, blocks[start:end], context)
        start = end


def _hunk(old: Sequence[bytes], new: Sequence[bytes], blocks: Sequence[Block], context: int) -> bytes:
    lead = min(context, blocks[0][0][0])
    trail = min(context, len(old) - blocks[-1][0][1])
    old_range = (blocks[0][0][0] - lead, blocks[-1][0][1] + trail)
    new_range = (blocks[0][1][0] - lead, blocks[-1][1][1] + trail)
    rows = [b"@@ -%s +%s @@%s\n" % (_span(old_range), _span(new_range), _function_before(old, old_range[0]))]
    position = old_range[0]
    for (old_start, old_end), (new_start, new_end) in blocks:
        rows += [b" " + line for line in old[position:old_start]]
        rows += [b"-" + line for line in old[old_start:old_end]]
        rows += [b"+" + line for line in new[new_start:new_end]]
        position = old_end
    rows += [b" " + line for line in old[position : old_range[1]]]
    return b"".join(row if row.endswith(b"\n") else row + b"\n\\ No newline at end of file\n" for row in rows)


def _function_before(lines: Sequence[bytes], start: int) -> bytes:
    """Return the nearest line before a hunk that names a function, as git writes it after `@@`, or b""."""
    for line in reversed(lines[max(0, start - _FUNCTION_REACH) : start]):
        if _FUNCTION.match(line):
            return b" " + line.strip()[:80].decode("utf-8", "ignore").encode()
    return b""


def _span(lines: Range) -> bytes:
    start, end = lines
    return b"%d,%d" % (start + 1 if end > start else start, end - start)


def differing_ranges(old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[Block]:
    """Yield the ranges of lines that differ, in order, without equal lines at their ends."""
    pending = [(((0, len(old)), (0, len(new))), MOST_LEVELS)]
    while pending:
        block, levels = pending.pop()
        (old_start, old_end), (new_start, new_end) = block = without_equal_ends(old, new, block)
        before, after = old[old_start:old_end], new[new_start:new_end]
        if levels and before and after and (shared := anchors(before, after)):
            corners = [(-1, -1), *shared, (len(before), len(after))]
            for (a, b), (next_a, next_b) in zip(corners[-2::-1], corners[:0:-1], strict=True):
                if (next_a, next_b) != (a + 1, b + 1):
                    between = (old_start + a + 1, old_start + next_a), (new_start + b + 1, new_start + next_b)
                    pending.append((between, levels - 1))
        elif before or after:
            yield block


def without_equal_ends(
    old: Sequence[T], new: Sequence[T], block: Block | None = None, equal: Callable[[T, T], bool] = eq
) -> Block:
    """Return the lines of a block, or all, without those that are `equal` at its ends."""
    (old_start, old_end), (new_start, new_end) = block or ((0, len(old)), (0, len(new)))
    while old_start < old_end and new_start < new_end and equal(old[old_start], new[new_start]):
        old_start, new_start = old_start + 1, new_start + 1
    while old_start < old_end and new_start < new_end and equal(old[old_end - 1], new[new_end - 1]):
        old_end, new_end = old_end - 1, new_end - 1
    return (old_start, old_end), (new_start, new_end)


def anchors(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the longest series of lines that occur once in both, in the same order, by patience sorting."""
    counts = Counter(old)
    place = {line: index for index, line in enumerate(new) if counts[line] == 1}
    again = Counter(new)
    shared = [(index, place[line]) for index, line in enumerate(old) if line in place and again[line] == 1]
    if shared == sorted(shared, key=itemgetter(1)):
        return shared
    ends: list[int] = []  # the lowest place in `new` that ends a chain of each length
    chains: list[tuple[tuple[int, int], Any]] = []  # its last pair, and the chain before that
    for pair in shared:
        length = bisect_left(ends, pair[1])
        ends[length : length + 1] = [pair[1]]
        chains[length : length + 1] = [(pair, chains[length - 1] if length else None)]
    chain, rest = [], chains[-1]
    while rest:
        pair, rest = rest
        chain.append(pair)
    return chain[::-1]


def presence(attempts: Iterable[Attempt]) -> dict[str, tuple[bool, bool]]:
    """Return whether each file of the applied answers was there before them, and whether it is after them."""
    found = dict[str, tuple[bool, bool]]()
    for change in applied_changes(attempts):
        if old := change.renamed_from:
            found[old] = found.get(old, (True, True))[0], False
        was = found[change.path][0] if change.path in found else change.action != "create"
        found[change.path] = was, change.action != "delete"
    return found


def applied_changes(attempts: Iterable[Attempt]) -> Iterator[AppliedChange]:
    return (change for attempt in attempts if attempt.verdict for change in attempt.changes)
