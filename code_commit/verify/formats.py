"""Content in another format than the file's: rule `wrong-format`.

LLMs write diffs, SEARCH/REPLACE blocks, numbered lines, Markdown fences, or the codebase's line that names a file. Real
files hold such things too. So a file is rejected only if its old content was not like that, and the new content is
nothing else, or the old one with marks in it. A new file must have the name of a code file.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

_CODE = re.compile(
    r"\.(?:c|cc|cjs|cpp|cs|css|dart|exs?|go|h|hpp|hs|html|java|jsx?|json|kt|lua|mjs|php|pl|pyi?|rb|rs|scala|scss|sh|sql"
    r"|svelte|swift|tf|toml|tsx?|vue|xml|zig)\Z",
    re.IGNORECASE,
)  # no yaml: a map of numbers looks like numbered lines

# neither code nor documents: these never begin with a Markdown fence
_CONFIGURATION = r"(?i)(?:\.(?:ya?ml|ini|cfg|mk|cmake|gradle)|(?:\A|/)(?:makefile|dockerfile|cmakelists\.txt))\Z"

# patches, and what a test of a merge tool may expect
_DATA = r"(?i)\.(?:cocci|diff|dpatch|patch|rej)\Z|(?:\A|/)(?:tests?|specs?|testdata|fixtures)/"

_DIFF = re.compile(
    r"\s*(?:diff --git |--- .+\n\+\+\+ |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|@@(?: .*)?\n"
    r"|\*\*\* (?:Begin Patch|(?:Update|Add) File: ))"
)
_LABEL = re.compile(r"\s*(-{3,}|={3,}) (.+) \1\s*?$", re.MULTILINE)
_NUMBERED = re.compile(r"\s*(\d{1,9})(?:: ?| ?\| ?|\t|\u2192)(.*)")
_FENCED = r"(?s)\s*```+([^\n`]*)\n(.*)\n```+\s*"
_LAST_FENCE = r"(?:\A|\n)```+\s*\Z"
_INNER_FENCE = r"(?m)^```+ *(\S*)"
# groups: the opening and the middle marker; others close a block
_MARKER = r"(?m)^(?:(<{5,9}(?: .*)?|-{5,9} SEARCH.*)|(={5,9})|>{5,9}(?: .*)?|\+{5,9} REPLACE.*)$\n?"
_LONGEST_END = 100  # characters that may hold the last line
_MOST_BLOCKS = 100  # that are looked for in the old content, each at the cost of its size
_INSTEAD = "send the file's own lines alone, all of them"


class _File(NamedTuple):
    """The contents to judge; `old` is None for a new file."""

    path: str
    new: str
    old: str | None
    is_code: bool
    is_data: bool


class _Block(NamedTuple):
    """The ends of a block between markers, and the text on either side of its middle."""

    start: int
    end: int
    sides: tuple[str, str]


def is_code(path: str) -> bool:
    return _CODE.search(path) is not None


def find_wrong_format(path: str, new: str, old: str | None) -> str | None:
    """Return what the new content is instead of the file, None for a proper one; `old` is None for a new file."""
    file = _File(path, new, old, is_code(path), not is_code(path) and re.search(_DATA, path) is not None)
    return next((f"{message}, {_INSTEAD}" for is_it, message in _FORMATS if is_it(file)), None)


def without_fence(path: str, new: str, old: str | None) -> tuple[str, int]:
    """Return code without the Markdown fence around all of it, and the number of lines before its first.

    Content with a further fence inside, or whose old content began with a fence, is returned unchanged.
    """
    match = re.fullmatch(_FENCED, new) if new.lstrip().startswith("```") else None
    is_sure = match and is_code(path) and not re.search(_INNER_FENCE, match[2])
    if not match or not is_sure or (old or "").lstrip().startswith("```"):
        return new, 0
    return f"{match[2]}\n", new.count("\n", 0, match.start(2))


def _names_file(file: _File) -> bool:
    labels = [_LABEL.match(text) for text in (file.new, file.old or "")]
    return [label is not None and label[2] == file.path for label in labels] == [True, False]


def _is_fenced(file: _File) -> bool:
    begins, began = (text.lstrip().startswith("```") for text in (file.new, file.old or ""))
    if file.is_code:
        ends, ended = (re.search(_LAST_FENCE, text[-_LONGEST_END:]) for text in (file.new, file.old or ""))
        return (begins and not began) or (ends is not None and not ended)  # the other fence may be outside the block
    match = re.fullmatch(_FENCED, file.new) if begins and not began else None
    if match is None:
        return False
    inner = re.findall(_INNER_FENCE, match[2])
    if inner and not inner[0]:  # the first fence is closed before the end
        return False
    if file.old is None and not file.is_data and re.search(_CONFIGURATION, file.path):
        return True
    if file.old is None:
        return file.path.endswith(".md") and match[1].strip().lower() in ("markdown", "md")
    return _resembles(match[2].split("\n"), file.old)


def _is_diff(file: _File) -> bool:
    if file.is_data:
        return False
    if _DIFF.match(file.new):
        is_for_file = file.is_code or f"+++ b/{file.path}\n" in file.new
        return is_for_file if file.old is None else not _DIFF.match(file.old)
    if not file.new.startswith(("+", "-")) and "\n+" not in file.new and "\n-" not in file.new:
        return False
    lines, had = ((text or "").replace("\r\n", "\n").split("\n") for text in (file.new, file.old))
    if file.is_code and _are_signed(lines) and not _are_signed(had):
        return True
    return file.old is not None and _marks_changes(filter(str.strip, lines), set(had))


def _are_signed(lines: Iterable[str]) -> bool:
    firsts = [line[0] for line in lines if line.strip()]
    return len(firsts) > 1 and set(firsts) <= set("+- ")


def _marks_changes(lines: Iterable[str], had: Collection[str]) -> bool:
    """Tell whether the lines are those that the file had, some of them after a minus, and others after a plus."""
    new = [line for line in lines if line not in had]
    added = [line for line in new if re.match(r"\+(?!\+).*\w", line)]
    removed = [line for line in new if re.match(r"-(?!-).*[^\W\d]", line)]  # no rule, option or negative number
    if not removed and (not added or any(line.startswith(("+", "-")) for line in had)):
        return False
    return all(line[0] == "+" or (line[0] in " -" and line[1:] in had) for line in new)


def _is_numbered(file: _File) -> bool:
    if not _NUMBERED.match(file.new) or _NUMBERED.match(file.old or ""):
        return False
    rows = [_NUMBERED.fullmatch(line) for line in file.new.split("\n") if line.strip()]
    numbers = {int(row[1]) - number for number, row in enumerate(filter(None, rows))}
    if None in rows or len(rows) == 1 or len(numbers) > 1:
        return False
    return file.is_code or (file.old is not None and _resembles([row[2] for row in rows if row], file.old))


def _resembles(lines: Sequence[str], old: str) -> bool:
    had = {line.strip() for line in old.split("\n")}
    said = [line.strip() for line in lines if line.strip()]
    return 2 * sum(line in had for line in said) >= len(said) > 0


def _has_markers(file: _File) -> bool:
    """Tell whether there are only blocks between markers, or one of them holds old lines in their old place."""
    if file.is_data or "=====" not in file.new or re.search(r"^(?:<{5}|-{5,9} SEARCH)", file.old or "", re.MULTILINE):
        return False
    new, old = (f"\n{text or ''}".replace("\r\n", "\n") for text in (file.new, file.old))
    blocks = list(_blocks(new))
    ends, starts = [0, *(block.end for block in blocks)], [*(block.start for block in blocks), len(new)]
    if blocks and not any(new[end:start].strip() for end, start in zip(ends, starts, strict=True)):
        return file.is_code or file.old is not None
    for block in blocks[:_MOST_BLOCKS]:
        before = new[max(0, new.rfind("\n", 0, block.start - 1)) : block.start]
        after = new[block.end : new.find("\n", block.end)]
        if any(side and before + side + after in old for side in block.sides):
            return True
    return False


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


_FORMATS: tuple[tuple[Callable[[_File], bool], str], ...] = (
    (_names_file, "begins with a line that names the file: leave it out"),
    (_is_fenced, "begins or ends with a Markdown code fence (```): leave the fence out"),
    (_is_numbered, "has a number in front of each line: leave the numbers out"),
    (_is_diff, "is a diff, not the file: leave the signs + - @@ out"),
    (_has_markers, "holds SEARCH/REPLACE or conflict markers (<<<<<<< ======= >>>>>>>): leave them out"),
)
