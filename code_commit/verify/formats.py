"""Content in another format than the file's. Rule `wrong-format`.

LLMs write diffs, SEARCH/REPLACE blocks, numbered lines, Markdown fences, tags and labels. Real files hold such things
too. So nothing is said where the old text was like that: a file is suspected if the answer makes it so, by signs and
numbers before its own lines, or by marks that nothing of the file opens or closes. Our own labels are certain.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from code_commit.changes import EditBlock, FileChange
from code_commit.regex import regex
from code_commit.runs.diff import without_equal_ends
from code_commit.verify import markdown
from code_commit.verify.escapes import is_escaped
from code_commit.verify.frames import begins_with_thoughts, find_frame, find_label, has_remark
from code_commit.verify.parts import INSTEAD, Part, Surroundings, Suspicion, parts_of

_DIFF = regex(
    r"\s*(?:diff --git |--- .+\n\+\+\+ |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|@@(?: .*)?\n"
    r"|\*\*\* (?:Begin Patch|(?:Update|Add) File: ))"
)
_DIFF_END = regex(r"\n\*{3} End (?:Patch|of File)(?: \*{3})?\s*\Z")
_LABEL = regex(r"={3,} (.+) ={3,}|(?i:(?:file|path): ?)?[*`'\"]*([^\s*`'\"]+?)[*`'\"]*:?")
_NUMBERED = regex(r"\s*[L\[(]?(\d{1,9})(?:[\])]?: ?|[.)\]] | ?[|\u2502] ?|\t|\u2192)(.*)")
# groups: the opening and the middle marker; others close a block
_MARKER = r"(?m)^(?:(<{5,9}(?: .*)?|-{5,9} SEARCH.*)|(={5,9})|>{5,9}(?: .*)?|\+{5,9} REPLACE.*)$\n?"
_FEW_LINES, _LONGEST_END = 3, 200
_IN_AN_EDIT = "send the file's own lines alone"
_LABEL_NUMBER = regex(r"(?<![^\W\dL])\d+")  # not that of a name
_LONGEST_LABEL = 60  # characters before a line
_FEW_LABELS, _MOST_LABELS = 3, 200  # lines with one, lines that are looked at
_MOST_BLOCKS = 100  # that are looked for in the old content, each at the cost of its size


class _Block(NamedTuple):
    """The ends of a block between markers, and the text on either side of its middle."""

    start: int
    end: int
    sides: tuple[str, str]


def find_formats(change: FileChange | EditBlock, old: str | None, surroundings: Surroundings) -> Iterator[Suspicion]:
    """Yield the first thing that makes the file, or the lines of an edit, another format; `old` is None if new."""
    for part in parts_of(change, old):
        if label := find_label(part, surroundings.has):
            yield label
        elif found := next((says for is_it, says in _FORMATS if is_it(part)), None) or find_frame(part, surroundings):
            fact, advice = found
            yield Suspicion(part.line, fact, f"{advice}, {_IN_AN_EDIT if part.is_edit else INSTEAD}")


def _names_file(part: Part) -> bool:
    """Tell whether the first line, which the old text has not, is the path, or the language before the old first."""
    lines, old = ([line.strip() for line in text.lstrip().split("\n", 2)] for text in (part.new, part.old or ""))
    label = _LABEL.fullmatch(lines[0]) if lines[0] != old[0] else None
    if label and label[1] == part.path:
        return True
    if not old[0] or part.is_edit:
        return False
    if label and label[2] == part.path:
        return True
    is_language = re.fullmatch(r"[A-Za-z+#]+", lines[0]) is not None and not markdown.is_any_text(lines[0])
    return (
        is_language
        and lines[0] != old[0]
        and lines[1:2] == old[:1]
        and part.is_code
        and markdown.fits(lines[0], part.path)
    )


def _is_fenced(part: Part) -> bool:
    new, old = part.new, part.old or ""
    if part.is_document:
        return _is_fenced_document(part)
    begins = markdown.begins_with_fence(new) and not markdown.begins_with_fence(old)
    ends = markdown.ends_with_fence(new) and not markdown.ends_with_fence(old)
    count = markdown.count_fences(new)
    if not begins and not ends:  # one with words behind it
        is_open = not part.is_edit and count % 2 == 1 and markdown.count_fences(old) % 2 == 0
        return is_open and markdown.is_known_code(part.path)
    wrapped = markdown.unwrap(new) if begins else None
    if part.is_edit:
        if wrapped is not None and markdown.stands_in_text(part.path, part.file, old, new):
            return False
        return wrapped is not None or (count - markdown.count_fences(old)) % 2 == 1
    are_several = count > 2 and count % 2 == 0 and (wrapped is None or _is_closed_early(wrapped))
    return not are_several or markdown.is_known_code(part.path)


def _is_fenced_document(part: Part) -> bool:
    """Tell whether a fence stands around all of a document, before its old first line, or stays open where none did."""
    new, old = part.new, part.old or ""
    begins = markdown.begins_with_fence(new) and not markdown.begins_with_fence(old)
    if begins and not part.is_edit:
        wrapped = markdown.unwrap(new)
        if wrapped is not None and _is_wrapped_document(part, wrapped):
            return True
        if old.strip() and new.strip().split("\n")[1:2] == old.strip().split("\n")[:1]:
            return True
    if not begins and not markdown.ends_with_fence(new):
        return False
    if part.path.endswith((".rst", ".rest")) and new.rstrip().endswith("~"):  # these underline a title there
        return False
    text = part.file.replace(old, new, 1) if part.is_edit else new
    is_open = not part.is_data and markdown.leaves_open(text) and not markdown.leaves_open(part.file)
    return is_open and not (part.is_edit and sum(map(markdown.count_fences, (*part.others, *part.taken))) % 2 == 0)


def _is_closed_early(wrapped: markdown.Wrapped) -> bool:
    mark, word = next(markdown.inner_fences(wrapped.text), ("", "-"))
    return not word and mark.startswith(wrapped.mark)


def _is_wrapped_document(part: Part, wrapped: markdown.Wrapped) -> bool:
    if _is_closed_early(wrapped):
        return False
    if part.old is None:
        is_prose = markdown.DOCUMENT.search(part.path) is not None and not part.is_data
        name = part.path if "." in part.path.rpartition("/")[2] else "README.md"
        return is_prose and wrapped.info != "" and markdown.fits(wrapped.info, name)
    return _resembles(wrapped.text.split("\n"), part.old)


def _is_diff(part: Part) -> bool:
    if _DIFF.match(part.new):
        if part.is_data:
            return False
        is_for_file = part.is_code or f"+++ b/{part.path}\n" in part.new
        return is_for_file if part.old is None else not _DIFF.match(part.old)
    if (end := _DIFF_END.search(part.new, max(0, len(part.new) - _LONGEST_END))) and not part.is_data:
        return end[0].strip() not in part.file and "*** Begin Patch" not in part.new
    if not part.new.startswith(("+", "-")) and "\n+" not in part.new and "\n-" not in part.new:
        return False
    lines, had = ((text or "").split("\n") for text in (part.new, part.old))
    is_one = _are_signed(lines) and not _are_signed(had) and part.is_code
    is_one = is_one or (part.old is not None and _marks_changes(filter(str.strip, lines), set(had)))
    return is_one and not part.is_data


def _are_signed(lines: Iterable[str]) -> bool:
    """Tell whether each line begins with a sign or a blank, not with minus alone: that is a comment or an item."""
    firsts = [line[0] for line in lines if line.strip()]
    return len(firsts) > 1 and "+" in firsts and set(firsts) <= set("+- ")


def _marks_changes(lines: Iterable[str], had: Collection[str]) -> bool:
    """Tell whether the lines are those that the file had, some of them after a minus, and others after a plus."""
    new = [line for line in lines if line not in had]
    added = [line for line in new if re.match(r"\+(?!\+|\w+\+\s).*\w", line)]  # no word that RDoc marks
    removed = [line for line in new if re.match(r"-(?!-).*[^\W\d]", line)]  # no rule, option or negative number
    if not removed and (not added or any(line.startswith(("+", "-")) for line in had)):
        return False
    return all(line[0] == "+" or (line[0] in " -" and line[1:] in had) for line in new)


def _is_numbered(part: Part) -> bool:
    if _has_numbers(part):
        return True
    if not part.is_code or not _NUMBERED.match(part.new) or _NUMBERED.match(part.old or ""):
        return False
    rows = [_NUMBERED.fullmatch(line) for line in part.new.split("\n") if line.strip()]
    numbers, first = [int(row[1]) for row in rows if row], int(rows[0][1]) if rows[0] else -1
    if numbers != [*range(first, first + len(rows))]:
        return False
    if part.is_edit:
        return first == part.first or (len(rows) > 1 and first == 1 and not part.new[:1].isspace())
    is_likely = part.old is not None or markdown.is_known_code(part.path)
    is_indented = any(row and (not row[2].strip() or row[2].startswith(("  ", "\t"))) for row in rows)
    return len(rows) > 1 and (is_likely or is_indented)


@lru_cache(maxsize=1)
def _lines_with_words(text: str) -> frozenset[str]:
    return frozenset(line for line in map(str.strip, text.split("\n")) if re.search(r"\w", line))


def _has_numbers(part: Part) -> bool:
    """Tell whether a third of the lines are old ones, each behind a greater number than those above, and signs."""
    if len([*islice(_LABEL_NUMBER.finditer(part.new), _FEW_LABELS)]) < _FEW_LABELS:
        return False
    had = _lines_with_words(part.file)
    lines = [line for line in map(str.strip, part.new.split("\n")) if line and line not in had] if had else []
    ends = ((line, range(1, min(_LONGEST_LABEL, len(line) // 2 + 1))) for line in islice(lines, _MOST_LABELS))
    labels = (next((line[:at] for at in end if line[at:].strip() in had), "") for line, end in ends)
    numbers = [found for label in labels if (found := _LABEL_NUMBER.findall(label))]
    are_most = len(numbers) >= _FEW_LABELS and 3 * len(numbers) >= min(len(lines), _MOST_LABELS)
    return are_most and any(all(int(a[at]) < int(b[at]) for a, b in pairwise(numbers)) for at in (0, -1))


def _is_prefixed(part: Part) -> bool:
    """Tell whether each line begins with the same signs or blanks, behind which the lines are the old ones."""
    lines = [line for line in part.new.split("\n") if line.strip()]
    first, last = min(lines, default=""), max(lines, default="")
    (shared, _), _ = without_equal_ends(first, last)
    prefix = re.match(r"[^\w\r]*", first[:shared])
    if part.old is None or part.is_edit or not part.is_code or len(lines) < _FEW_LINES or not prefix or not prefix[0]:
        return False
    had = {line.strip() if prefix[0].strip() else line.rstrip() for line in part.old.split("\n")}
    is_there = [
        [(line.strip() if prefix[0].strip() else line.rstrip()) in had for line in text]
        for text in (lines, [line[len(prefix[0]) :] for line in lines])
    ]
    return 2 * sum(is_there[1]) > len(lines) and sum(is_there[0]) < sum(is_there[1])


def _resembles(lines: Sequence[str], old: str) -> bool:
    had = {line.strip() for line in old.split("\n")}
    said = [line.strip() for line in lines if line.strip()]
    return 2 * sum(line in had for line in said) >= len(said) > 0


def _has_markers(part: Part) -> bool:
    """Tell whether there are only blocks between markers, or one of them holds old lines in their old place, or one
    marker is the first line or the last.
    """
    if _ends_in_marker(part):
        return True
    if "=====" not in part.new or re.search(r"^(?:<{5}|-{5,9} SEARCH)", part.file, re.MULTILINE):
        return False
    new, old = (f"\n{text or ''}" for text in (part.new, part.old))
    blocks = list(_blocks(new))
    if not blocks or part.is_data:
        return False
    ends, starts = [0, *(block.end for block in blocks)], [*(block.start for block in blocks), len(new)]
    if not any(new[end:start].strip() for end, start in zip(ends, starts, strict=True)):
        return part.is_code or (part.old is not None and not part.is_edit)
    for block in blocks[:_MOST_BLOCKS]:
        before = new[max(0, new.rfind("\n", 0, block.start - 1)) : block.start]
        after = new[block.end : new.find("\n", block.end)]
        if any(side and before + side + after in old for side in block.sides):
            return True
    return False


def _ends_in_marker(part: Part) -> bool:
    """Tell whether a marker is the first line or the last, and nothing of the kind is in the file.

    A middle one may underline a heading: it counts only as the first line of code.
    """
    if not any(map(part.new.__contains__, ("<<<<<", "=====", ">>>>>", "-----", "+++++"))):
        return False
    text = part.new.strip()
    ends = [re.fullmatch(_MARKER, line) for line in (text.partition("\n")[0], text.rpartition("\n")[2])]
    may_be_middle = part.is_edit and part.is_code and text.startswith("=====")
    is_one = any(end and (may_be_middle or not end[2]) for end in ends)
    return is_one and not part.is_data and not re.search(_MARKER, part.file)


def _blocks(text: str) -> Iterator[_Block]:
    opening = middle = None
    for marker in re.finditer(_MARKER, text):
        if marker[1]:
            opening, middle = marker, None
        elif marker[2]:
            middle = middle or marker
        elif opening and middle:
            sides = text[opening.end() : middle.start()], text[middle.end() : marker.start()]
            yield _Block(opening.start(), marker.end(), sides)
            opening = None


_FORMATS: tuple[tuple[Callable[[Part], bool], tuple[str, str]], ...] = (
    (_names_file, ("begins with a line that names the file", "leave it out")),
    (has_remark, ("has a sentence before its first line or behind its last one", "leave it out")),
    (begins_with_thoughts, ("begins with thoughts", "leave them out")),
    (is_escaped, ("is escaped, as HTML or a string would be", "leave every character as it is in the file")),
    (_is_fenced, ("begins or ends with a Markdown code fence (``` or ~~~)", "leave the fence out")),
    (_is_numbered, ("has a number in front of each line", "leave the numbers out")),
    (_is_prefixed, ("has the same signs or blanks in front of each line", "leave them out")),
    (_is_diff, ("is a diff, not the file", "leave out the signs + - @@ and the lines that it removes")),
    (
        _has_markers,
        ("holds SEARCH/REPLACE or conflict markers (<<<<<<< ======= >>>>>>>)", "leave them and one side out"),
    ),
)
