"""The frames of a text, which are not of it: our own labels, tags, tokens, CDATA, a command of a shell, a remark, the
task.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from code_commit.changes import quoted
from code_commit.codebase.text import read_header
from code_commit.marks import find_marks, may_have_marks
from code_commit.regex import regex
from code_commit.verify import markdown
from code_commit.verify.parts import INSTEAD, Part, Surroundings, Suspicion

_TAG = regex(r"</([\w:.\u2016\uff5c|-]+)(?<!--)>")  # not the end of a comment
_TAGS = regex(r"(?:</[\w:.\u2016\uff5c|-]+>\s*)+\Z")  # at the end of a line
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_OPENING_TAG = regex(r"\s*<([A-Za-z][\w:.-]*)(?:\s[^<>\n]*)?(?<!/)>(?:[ \t\r]*(\n))?")
_TOKEN = regex(r"<[|\uff5c][^<>\n]{1,40}[|\uff5c]>|<(?:end_of_\w+|eo[st])>|\[/INST\]")
_HTML = regex(
    r"(?i)(?:html|head|body|main|header|footer|nav|aside|section|article|div|span|p|a|center|table|t(?:able|body|head|foot|r|d|h)"
    r"|ul|ol|li|dl|form|fieldset|select|noscript|script|style|font|b|i|link|meta|base|br|hr|img|input|!doctype)"
)  # a template may close what another one opened
_HEREDOC = regex(r"<<-?[ \t]*[\"']?(\w+)[\"']?")
_SENTENCE = regex(  # of four words, or not in ASCII, with a capital and no sign of code; no comment of Fortran or batch
    r"(?!(?:C|REM)\s)(?=(?:\S+\s+){3}\S|.*[^\x00-\x7f])[^\W\d_a-z](?:`[^`]*`|\w\(\)|[^=;{}()\[\]<>\"#$%&+|\\@~^`])*[.:!\u3002\uff1a\uff01]"
)
_LAST_LINES, _LONGEST_END = 6, 2_000  # lines, characters that may hold them
_MOST_LABELS = 100  # that are looked up


def find_label(part: Part, has: Callable[[str], bool]) -> Suspicion | None:
    """Return the line of a prompt that stands before a file; at either end of the text it is certain to be ours."""
    ends = part.new.strip()
    if "--- " not in ends:
        return None
    first, last = ends.partition("\n")[0], ends.rpartition("\n")[2]
    for line in (first, last, *islice(_label_lines(ends), _MOST_LABELS)):
        label = read_header(line)
        is_there = label is not None and (label.path == part.path or has(label.path))
        if label and (is_there or label.is_marked) and f"\n{line.rstrip()}\n" not in f"\n{part.file}\n":
            is_certain = line in (first, last) and is_there
            fact = f"holds '{quoted(line.strip())}', a line of the prompt that names a file"
            advice = f"leave it out, and what follows it if that is of another file, {INSTEAD}"
            return Suspicion(part.line, fact, advice, may_be_meant=not is_certain)
    return None


def _label_lines(text: str) -> Iterator[str]:
    start = text.find("\n--- ")
    while start >= 0:
        end = text.find("\n", start + 1)
        yield text[start + 1 : len(text) if end < 0 else end]
        start = text.find("\n--- ", start + 1)


def find_frame(part: Part, surroundings: Surroundings) -> tuple[str, str] | None:
    """Return what frames the text and is not of it: a tag, a token, a shell's command, the task; None for nothing."""
    if part.is_data:
        return None
    if command := _find_heredoc(part):
        return (
            f"is the command '{quoted(command)}'",
            "leave out this line and the word that ends its text",
        )
    text = part.new.strip()
    if text.startswith(_CDATA) and text.endswith(_CDATA_END) and _CDATA not in part.file:
        return f"stands in {_CDATA}...{_CDATA_END}", "leave both out"
    if tag := _find_tag(part):
        return f"begins or ends with {tag}, and no other line of the file belongs to it", "leave it out"
    task = next((line for line in surroundings.query.split("\n") if line.strip()), "")
    label = re.search(rf"^\[[a-z. ]+\]\n{re.escape(task)}", part.new, re.MULTILINE) if task in part.new else None
    if task and label and label[0] not in part.file:
        return "holds the task, below its label of the prompt", "leave both out"
    return None


def begins_with_thoughts(part: Part) -> bool:
    start = part.new[:_LONGEST_END]
    mark = next(find_marks(start), None) if may_have_marks(start) else None
    is_first = mark is not None and mark.opens and not start[: mark.start].strip()
    return is_first and not part.is_data and not any(find_marks(part.file))


def _find_heredoc(part: Part) -> str | None:
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


def has_remark(part: Part) -> bool:
    """Tell whether a sentence stands before the old first line of code, or behind the old last one."""
    if part.is_edit or part.old is None or not part.is_code:
        return False
    new, old = (text.split("\n") for text in (part.new, part.old))
    pairs = ((_first_two(new), _first_two(old)), (_first_two(reversed(new)), _first_two(reversed(old))))
    ends = [said[0] for said, there in pairs if said[1:] == there[:1] != []]
    is_said = any(map(_SENTENCE.fullmatch, ends)) and not any(_SENTENCE.fullmatch(line.strip()) for line in old)
    return is_said and markdown.is_known_code(part.path)


def _first_two(lines: Iterable[str]) -> list[str]:
    return [*islice(filter(None, map(str.strip, lines)), 2)]


def _find_tag(part: Part) -> str | None:
    """Return a tag or a token at either end whose counterpart nowhere is."""
    lines = part.new[-_LONGEST_END:].strip().split("\n")[-_LAST_LINES:]
    for name in (
        name for line in map(str.strip, lines) if (end := _TAGS.search(line)) for name in _TAG.findall(end[0])
    ):
        if not _HTML.fullmatch(name) and not part.has(f"<{name}") and f"</{name}" not in part.file:
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
    is_closed = part.has(f"</{opening[1]}")
    is_around = is_closed and lines[-1].strip().endswith(f"</{opening[1]}>") and not part.is_edit
    names_file = part.path in "".join(part.new.lstrip().split("\n", _LAST_LINES)[:_LAST_LINES])
    is_foreign = is_around and part.old is not None and (names_file or not part.old.lstrip().startswith("<"))
    is_lone = opening[2] is not None and (not is_closed or part.path in opening[0])
    return f"<{opening[1]}>" if is_lone or is_foreign else None
