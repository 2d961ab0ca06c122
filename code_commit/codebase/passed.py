"""The lines of a build's output: whether one says that something passed or failed, in the forms of test runners."""

import re
from itertools import compress, groupby
from typing import NamedTuple

from code_commit.regex import regex

LONGEST = 300  # characters of a line that says no more
BAD_SIGN = "[\u2715-\u2718\u00d7]"
_BAD = rf"(?i:not ok|fail(?:ed|ure)?|error|{BAD_SIGN})"
_MARK = rf"(?P<mark>(?i:ok|pass(?:ed)?|[\u2713\u2714\u221a])|{_BAD})"
_UNIT = r"(?:%|[mnu\u00b5]?s|sec(?:onds?)?)"
_TAIL = rf"(?P<tail>[.!]?(?:\s+[\[(]\s*\d[\d.,]*\s*{_UNIT}?\s*[\])]\.?|\s+\d[\d.,]*\s?{_UNIT}\.?)*)\s*"
_LEADING = regex(
    rf"\s*(?P<by>(?:\[[^\]]*\]\s*)*(?:---\s+|\[\s*|\()?){_MARK}"
    rf"(?=[\s:)\]]|$)(?:(?<=ok) \d+(?: -)?(?= ))?[\s:)\]]*(?P<item>(?![\s:)\]\d]).*?){_TAIL}"
)
_TRAILING = regex(rf"\s*(?P<item>\S.*?)(?<![\s.:>*])(?P<by>[\s.:>*]+){_MARK}{_TAIL}")
# dots of pytest, the plan of TAP, a class that surefire ran
_KNOWN = regex(
    r"(?:\S+ )?\.+\s+\[\s*\d+%\]\s*|\s*1\.\.\d+"
    r"|(?:\[INFO\] )?Tests run: \d+(?:, \w+: 0)+, Time elapsed: [\d.]+ s(?:ec)? --? in (?P<item>\S+)"
)
_ENDS_WELL = regex(r".*\s(?:passed|ok)\s*")  # which may be prose
_OF_DIFF = regex(r"\s*[-+<>|?!E](?:\s|$)")
SAYS_FAILED = regex(rf"(?i)\b(?:fail|error|not ok)|{BAD_SIGN}")
NUMBER = regex(r"\d+(?:[.,]\d+)*")
_MARKS = regex(r"\s*(?:[^\w\s]|[A-Za-z])+\s*(?:\[ *\d+%\]\s*)?")
_LEAST_LINES, _LEAST_MARKS, _MOST_KINDS = 3, 20, 16  # lines of marks; characters, and different ones, of such a line
Form = tuple[str, ...]


class Statement(NamedTuple):
    """A line that says whether something passed: its name, and the form of the line, without names and numbers."""

    item: str
    form: Form
    has_failed: bool = False


def read_statement(line: str) -> Statement | None:
    """Return what a line says that something passed or failed; None if it says neither, or more than that."""
    if found := _KNOWN.fullmatch(line):
        return Statement(found["item"] or "", ("JUnit" if found["item"] else "progress",))
    if len(line) > LONGEST or _OF_DIFF.match(line):
        return None
    found = _LEADING.fullmatch(line) or _TRAILING.fullmatch(line)
    if found is None:
        return None
    mark, by, item = found["mark"], found["by"].split(), found["item"].split()
    tail = NUMBER.sub("#", "".join(found["tail"].split()))
    case = "upper" if mark.isupper() else "lower" if mark.islower() else "title" if mark.istitle() else "symbol"
    form: Form = ("trailing", case)
    if found.re.pattern == _LEADING.pattern:
        form = ("leading", NUMBER.sub("#", "".join(by)), case)
    elif item[-1].isdigit():
        return None  # it counts
    elif by or tail:
        form = ("trailing", by[0][0] if by else "", tail, item[0])
    elif case != "upper":
        return None
    return Statement(found["item"].strip(), form, re.fullmatch(_BAD, mark) is not None)


def without_passed(output: str) -> str:
    """Return a build's output without lines that only say what passed, if other lines say that something failed."""
    if not SAYS_FAILED.search(output):
        return output
    lines = output.split("\n")
    stay = (SAYS_FAILED.search(line) or not (read_statement(line) or _ENDS_WELL.fullmatch(line)) for line in lines)
    return "\n".join(compress(lines, stay))


def without_progress(output: str) -> str:
    """Return a build's output without the marks of single tests, where these fill several lines: `..x..F..`."""
    pieces = list[str]()
    for are_marks, run in groupby(output.split("\n"), key=_are_marks):
        lines = list(run)
        is_long = are_marks and len(lines) >= _LEAST_LINES
        pieces += [f"[... {len(lines):,} lines of marks are not shown here ...]"] if is_long else lines
    return "\n".join(pieces)


def _are_marks(line: str) -> bool:
    return len(line) >= _LEAST_MARKS and len({*line}) <= _MOST_KINDS and _MARKS.fullmatch(line) is not None


def failed_lines(output: str) -> str:
    """Return the lines of a build's output that say that something failed."""
    return "\n".join(line for line in output.split("\n") if SAYS_FAILED.search(line))
