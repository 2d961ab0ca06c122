"""Content in another format than the file's. Rule `wrong-format`.

LLMs write diffs, SEARCH/REPLACE blocks, numbered lines, Markdown fences, tags and labels. Real files hold such things
too. So nothing is said where the old text was like that: a file is suspected if the answer makes it so, by signs and
numbers before its own lines, or by marks that nothing of the file opens or closes. Our own labels are certain.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from html import unescape
from itertools import islice
from typing import NamedTuple

from code_commit.changes import EditBlock, FileChange, FileReplacement, SuspicionRule, quoted
from code_commit.codebase.text import read_header
from code_commit.verify import markdown

_PATCH = re.compile(r"(?i)\.(?:cocci|diff|dpatch|patch|rej)\Z")
_OF_TESTS = re.compile(r"(?i)(?:\A|/)(?:tests?|specs?|testdata|fixtures?|snapshots?|goldens?)/")
_TABLE = re.compile(r"(?i)\.(?:csv|dat|log|out|properties|psv|tab|tsv|ya?ml)\Z")  # lines begin with numbers and signs

_DIFF = re.compile(
    r"\s*(?:diff --git |--- .+\n\+\+\+ |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|@@(?: .*)?\n"
    r"|\*\*\* (?:Begin Patch|(?:Update|Add) File: ))"
)
_LABEL = re.compile(r"={3,} (.+) ={3,}|(?i:(?:file|path): ?)?[`'\"]?([^\s`'\"]+?)[`'\"]?:?")
_FEW_LINES = 3
_ENTITY = re.compile(r"\s&(?:lt|gt|amp);")
_NUMBERED = re.compile(r"\s*[L\[(]?(\d{1,9})(?:[\])]?: ?|[.)\]] | ?[|\u2502] ?|\t|\u2192)(.*)")
_NUMBER = re.compile(r"\s*(\d{1,9})(?:[^\w\s]? |\Z)(.*)")  # where the rest is the file's
# groups: the opening and the middle marker; others close a block
_MARKER = r"(?m)^(?:(<{5,9}(?: .*)?|-{5,9} SEARCH.*)|(={5,9})|>{5,9}(?: .*)?|\+{5,9} REPLACE.*)$\n?"
_TAG, _TAGS = re.compile(r"</([\w:.-]+)>"), re.compile(r"(?:</[\w:.-]+>\s*)+")
_OPENING_TAG = re.compile(r"\s*<([A-Za-z][\w:.-]*)(?:\s[^<>\n]*)?(?<!/)>[ \t\r]*\n")
_TOKEN = re.compile(r"<[|\uff5c][^<>\n]{1,40}[|\uff5c]>|<(?:end_of_\w+|eo[st])>|\[/INST\]")
_HTML = re.compile(
    r"(?i)(?:html|head|body|main|header|footer|nav|aside|section|article|div|span|p|a|center|table|t(?:able|body|head|foot|r|d|h)"
    r"|ul|ol|li|dl|form|fieldset|select|noscript|script|style|font|b|i|link|meta|base|br|hr|img|input|!doctype)"
)  # a template may close what another one opened
_HEREDOC = re.compile(r"<<-?[ \t]*[\"']?(\w+)[\"']?")
_LAST_LINES, _LONGEST_END = 6, 2_000  # lines, characters that may hold them
_MOST_LABELS = 100  # that are looked up
_MOST_BLOCKS = 100  # that are looked for in the old content, each at the cost of its size
_INSTEAD = "send the file's own lines alone, all of them"
_IN_AN_EDIT = "send the file's own lines alone"


class Suspicion(NamedTuple):
    """A finding about the text from a line of the response on, and the advice; not `may_be_meant` if it is certain."""

    line: int
    fact: str
    advice: str
    may_be_meant: bool = True
    rule: SuspicionRule = "wrong-format"


class Surroundings(NamedTuple):
    """The facts beside the answer's text: whether the project has a path, and the task, "" if it is unknown."""

    has: Callable[[str], bool]
    query: str = ""


class _Part(NamedTuple):
    """A text to judge: all of a file, or the lines that an edit puts in place of `old`.

    `old` is None for a new file, `file` the whole old text, `others` all that the answer puts into the file.
    """

    path: str
    new: str
    old: str | None
    line: int
    file: str
    others: Sequence[str]
    is_edit: bool = False

    @property
    def first(self) -> int:
        """The number of the first line of `old` in the file, from 1."""
        return 1 + self.file.count("\n", 0, max(0, f"\n{self.file}".find(f"\n{self.old}")))

    @property
    def is_document(self) -> bool:
        return markdown.is_document(self.path)

    @property
    def is_data(self) -> bool:
        """Whether the file may be a diff or a conflict: a patch, or what a test of such a tool expects."""
        is_of_tests = _OF_TESTS.search(self.path) is not None
        return _PATCH.search(self.path) is not None or (is_of_tests and not markdown.is_known_code(self.path))

    @property
    def is_code(self) -> bool:
        return is_code(self.path) and not self.is_data and not self.is_document


class _Row(NamedTuple):
    """A line with a number before it, and its text without the number."""

    number: int
    text: str


class _Block(NamedTuple):
    """The ends of a block between markers, and the text on either side of its middle."""

    start: int
    end: int
    sides: tuple[str, str]


def is_code(path: str) -> bool:
    """Tell whether nothing in a file's name says that it is prose, a table or a patch."""
    return not any(kind.search(path) for kind in (markdown.DOCUMENT, _TABLE, _PATCH))


def find_formats(change: FileChange | EditBlock, old: str | None, surroundings: Surroundings) -> Iterator[Suspicion]:
    """Yield the first thing that makes the file, or the lines of an edit, another format; `old` is None if new."""
    for part in _parts(change, old):
        if label := _find_label(part, surroundings.has):
            yield label
        elif found := next((says for is_it, says in _FORMATS if is_it(part)), None) or _find_frame(part, surroundings):
            fact, advice = found
            yield Suspicion(part.line, fact, f"{advice}, {_IN_AN_EDIT if part.is_edit else _INSTEAD}")


def _parts(change: FileChange | EditBlock, old: str | None) -> Iterator[_Part]:
    if isinstance(change, FileReplacement):
        yield _Part(change.path, change.content, old, change.line, old or "", (change.content,))
    elif isinstance(change, EditBlock) and old is not None:
        others = [edit.replacement for edit in change.edits]
        for edit in change.edits:
            start, end = (old.find(edit.find), old.find(edit.last)) if edit.last else (0, -1)
            there = old[start : end + len(edit.last)] if 0 <= start < end else edit.find
            yield _Part(change.path, edit.replacement, there, edit.line, old, others, is_edit=True)


def _find_label(part: _Part, has: Callable[[str], bool]) -> Suspicion | None:
    """Return the line of a prompt that stands before a file; at either end of the text it is certain to be ours."""
    ends = part.new.strip()
    if "--- " not in ends:
        return None
    first, last = ends.partition("\n")[0], ends.rpartition("\n")[2]
    for line in (first, last, *islice(_label_lines(ends), _MOST_LABELS)):
        label = read_header(line)
        is_there = label is not None and (label.path == part.path or has(label.path))
        if (
            label
            and (is_there or label.is_marked)
            and f"\n{line.rstrip()}\n" not in f"\n{part.file}\n".replace("\r\n", "\n")
        ):
            is_certain = line in (first, last) and is_there
            fact = f"holds '{quoted(line.strip())}', a line of the prompt that names a file"
            advice = f"leave it out, and what follows it if that is of another file, {_INSTEAD}"
            return Suspicion(part.line, fact, advice, may_be_meant=not is_certain)
    return None


def _label_lines(text: str) -> Iterator[str]:
    start = text.find("\n--- ")
    while start >= 0:
        end = text.find("\n", start + 1)
        yield text[start + 1 : len(text) if end < 0 else end]
        start = text.find("\n--- ", start + 1)


def _names_file(part: _Part) -> bool:
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


def _is_escaped(part: _Part) -> bool:
    """Tell whether the lines are the old ones but for entities of HTML, or line ends written as backslash and n."""
    if not part.old or part.is_edit:
        return False
    if _has_entity(part.new) and not _has_entity(part.old) and part.is_code and markdown.is_known_code(part.path):
        return True
    signs = [sum(map(text.count, ("<", "&&"))) for text in (part.new, part.old)]
    plain = unescape(part.new) if "&" in part.new and signs[0] == 0 < signs[1] else part.new
    if "\\n" in plain and plain.strip().count("\n") < _FEW_LINES <= part.old.count("\n"):
        plain = plain.replace("\\n", "\n").replace('\\"', '"')
    old = {line for line in part.old.split("\n") if line.strip()}
    return plain is not part.new and sum(map(old.__contains__, plain.split("\n"))) > sum(
        map(old.__contains__, part.new.split("\n"))
    )


def _has_entity(text: str) -> bool:
    """Tell whether an entity of HTML stands between blanks on a line without quotes and tags, as no code has it."""
    lines = (line for line in text.split("\n") if "&" in line)
    return any(_ENTITY.search(line) and not re.search(r"[\"'`<>]", line) for line in lines)


def _is_fenced(part: _Part) -> bool:
    new, old = part.new, part.old or ""
    if part.is_document:
        return _is_fenced_document(part)
    begins = markdown.begins_with_fence(new) and not markdown.begins_with_fence(old)
    ends = markdown.ends_with_fence(new) and not markdown.ends_with_fence(old)
    if not begins and not ends:
        return False
    wrapped = markdown.unwrap(new) if begins else None
    count = markdown.count_fences(new)
    if part.is_edit:
        if wrapped is not None and markdown.stands_in_text(part.path, part.file, old, new):
            return False
        return wrapped is not None or (count - markdown.count_fences(old)) % 2 == 1
    are_several = count > 2 and count % 2 == 0 and (wrapped is None or _is_closed_early(wrapped))
    return not are_several or markdown.is_known_code(part.path)


def _is_fenced_document(part: _Part) -> bool:
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
    text = part.file.replace(old, new, 1) if part.is_edit else new
    return not part.is_data and markdown.leaves_open(text) and not markdown.leaves_open(part.file)


def _is_closed_early(wrapped: markdown.Wrapped) -> bool:
    mark, word = next(markdown.inner_fences(wrapped.text), ("", "-"))
    return not word and mark.startswith(wrapped.mark)


def _is_wrapped_document(part: _Part, wrapped: markdown.Wrapped) -> bool:
    if _is_closed_early(wrapped):
        return False
    if part.old is None:
        is_prose = markdown.DOCUMENT.search(part.path) is not None and not part.is_data
        name = part.path if "." in part.path.rpartition("/")[2] else "README.md"
        return is_prose and wrapped.info != "" and markdown.fits(wrapped.info, name)
    return _resembles(wrapped.text.split("\n"), part.old)


def _is_diff(part: _Part) -> bool:
    if _DIFF.match(part.new):
        if part.is_data:
            return False
        is_for_file = part.is_code or f"+++ b/{part.path}\n" in part.new
        return is_for_file if part.old is None else not _DIFF.match(part.old)
    if not part.new.startswith(("+", "-")) and "\n+" not in part.new and "\n-" not in part.new:
        return False
    lines, had = ((text or "").replace("\r\n", "\n").split("\n") for text in (part.new, part.old))
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
    added = [line for line in new if re.match(r"\+(?!\+).*\w", line)]
    removed = [line for line in new if re.match(r"-(?!-).*[^\W\d]", line)]  # no rule, option or negative number
    if not removed and (not added or any(line.startswith(("+", "-")) for line in had)):
        return False
    return all(line[0] == "+" or (line[0] in " -" and line[1:] in had) for line in new)


def _is_numbered(part: _Part) -> bool:
    old = part.old or ""
    starts = [[pattern.match(text) is not None for pattern in (_NUMBERED, _NUMBER)] for text in (part.new, old)]
    if not any(starts[0]) or any(starts[1]):
        return False
    rows = _numbered_rows(part.new, _NUMBERED) if starts[0][0] and part.is_code else []
    if rows and all(row.number == number for number, row in enumerate(rows, rows[0].number)):
        if part.is_edit:
            is_run = len(rows) > 1 and rows[0].number == 1 and not part.new[:1].isspace()
            return is_run or rows[0].number == part.first
        is_likely = part.old is not None or markdown.is_known_code(part.path) or _look_like_code(rows)
        return len(rows) > 1 and is_likely
    rows = _numbered_rows(part.new, _NUMBERED if starts[0][0] else _NUMBER) if old else []
    return len(rows) > 1 and _resembles([row.text for row in rows], old)


def _numbered_rows(text: str, pattern: re.Pattern[str]) -> list[_Row]:
    """Return the lines that are not blank, without the numbers before them; none where these do not ascend."""
    rows, last = list[_Row](), -1
    for line in text.split("\n"):
        match = pattern.fullmatch(line)
        if line.strip() and (match is None or int(match[1]) <= last):
            return []
        if match:
            last = int(match[1])
            rows.append(_Row(last, match[2]))
    return rows


def _common_prefix(lines: Sequence[str]) -> str:
    """Return what all lines begin with: what the first and the last of them do when they are sorted."""
    first, last = min(lines, default=""), max(lines, default="")
    return first[
        : next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    ]


def _is_prefixed(part: _Part) -> bool:
    """Tell whether each line begins with the same signs or blanks, behind which the lines are the old ones."""
    lines = [line for line in part.new.split("\n") if line.strip()]
    prefix = re.match(r"[^\w\r]*", _common_prefix(lines))
    if part.old is None or part.is_edit or not part.is_code or len(lines) < _FEW_LINES or not prefix or not prefix[0]:
        return False
    had = {line.strip() if prefix[0].strip() else line.rstrip() for line in part.old.split("\n")}
    is_there = [
        [(line.strip() if prefix[0].strip() else line.rstrip()) in had for line in text]
        for text in (lines, [line[len(prefix[0]) :] for line in lines])
    ]
    return 2 * sum(is_there[1]) > len(lines) and sum(is_there[0]) < sum(is_there[1])


def _look_like_code(rows: Iterable[_Row]) -> bool:
    return any(not row.text.strip() or row.text.startswith(("  ", "\t")) for row in rows)


def _resembles(lines: Sequence[str], old: str) -> bool:
    had = {line.strip() for line in old.split("\n")}
    said = [line.strip() for line in lines if line.strip()]
    return 2 * sum(line in had for line in said) >= len(said) > 0


def _has_markers(part: _Part) -> bool:
    """Tell whether there are only blocks between markers, or one of them holds old lines in their old place."""
    if "=====" not in part.new or re.search(r"^(?:<{5}|-{5,9} SEARCH)", part.file, re.MULTILINE):
        return False
    new, old = (f"\n{text or ''}".replace("\r\n", "\n") for text in (part.new, part.old))
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


_FORMATS: tuple[tuple[Callable[[_Part], bool], tuple[str, str]], ...] = (
    (_names_file, ("begins with a line that names the file", "leave it out")),
    (_is_escaped, ("is escaped, as HTML or a string would be", "leave every character as it is in the file")),
    (_is_fenced, ("begins or ends with a Markdown code fence (``` or ~~~)", "leave the fence out")),
    (_is_numbered, ("has a number in front of each line", "leave the numbers out")),
    (_is_prefixed, ("has the same signs or blanks in front of each line", "leave them out")),
    (_is_diff, ("is a diff, not the file", "leave out the signs + - @@ and the lines that it removes")),
    (
        _has_markers,
        ("holds SEARCH/REPLACE or conflict markers (<<<<<<< ======= >>>>>>>)", "leave them and one side out"),
    ),
)


def _find_frame(part: _Part, surroundings: Surroundings) -> tuple[str, str] | None:
    """Return what frames the text and is not of it: a tag, a token, a shell's command, the task; None for nothing."""
    if part.is_data:
        return None
    if command := _find_heredoc(part):
        return (
            f"is the command '{quoted(command)}'",
            "leave out this line and the word that ends its text",
        )
    if tag := _find_tag(part):
        return f"begins or ends with {tag}, and no other line of the file belongs to it", "leave it out"
    task = next((line for line in surroundings.query.split("\n") if line.strip()), "")
    label = re.search(rf"^\[[a-z. ]+\]\r?\n{re.escape(task)}", part.new, re.MULTILINE) if task in part.new else None
    if task and label and label[0] not in part.file:
        return "holds the task, below its label of the prompt", "leave both out"
    return None


def _find_heredoc(part: _Part) -> str | None:
    """Return the first line if it lets a shell write all the others into the file."""
    if "<<" not in part.new[:_LONGEST_END]:
        return None
    text = part.new.strip()
    command, _, lines = text.partition("\n")
    word = _HEREDOC.search(command)
    names = re.findall(r"[^\s\"'<>=|&;]+", command)
    is_for_file = any(path.removeprefix("./") in (part.path, part.path.rpartition("/")[2]) for path in names)
    is_all = word and is_for_file and lines.rpartition("\n")[2].strip() == word[1]
    return command if is_all and command not in part.file else None


def _find_tag(part: _Part) -> str | None:
    """Return a tag or a token at either end whose counterpart nowhere is."""
    texts = (part.file, *part.others)
    lines = part.new[-_LONGEST_END:].strip().split("\n")[-_LAST_LINES:]
    for name in (name for line in map(str.strip, lines) if _TAGS.fullmatch(line) for name in _TAG.findall(line)):
        if not _HTML.fullmatch(name) and not any(f"<{name}" in text for text in texts) and f"</{name}" not in part.file:
            return f"</{name}>"
    token = _TOKEN.search(lines[-1]) if "<" in lines[-1] or "[" in lines[-1] else None
    if (
        token
        and lines[-1].rstrip().endswith(token[0])
        and token[0] not in part.file
        and part.new.count(token[0][:2]) == 1
    ):
        return quoted(token[0])
    opening = _OPENING_TAG.match(part.new)
    if opening is None or _HTML.fullmatch(opening[1]) or f"<{opening[1]}" in part.file:
        return None
    is_closed = any(f"</{opening[1]}" in text for text in texts)
    is_around = is_closed and lines[-1].strip() == f"</{opening[1]}>" and not part.is_edit
    is_foreign = is_around and part.old is not None and not part.old.lstrip().startswith("<")
    return f"<{opening[1]}>" if not is_closed or is_foreign or part.path in opening[0] else None
