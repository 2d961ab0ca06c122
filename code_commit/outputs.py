"""The lines of a build's output: which say that something passed or failed, as test runners do, and which tell most.

A line is quiet only for what it says itself: that something passed, in a form in which failures are told too, or
which began before the first failure; or what nearly all such lines have before or under them; or what the same project
printed when its build passed, before the run. No other line is.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import compress, groupby
from typing import NamedTuple

from code_commit.regex import regex
from code_commit.terminal import TAIL_BYTES, render

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
_OFTEN, _NEARLY_ALL = 5, 0.9  # lines of one form that are not there by accident
_NOTABLE = regex(rf"{SAYS_FAILED.pattern}|\b(?:warn|skip|todo|except|panic|abort|fatal|tim(?:ed|e) ?out)")
_NONE_FAILED = regex(r"(?i)\b(?:0|no) (?:fail|error|skip)\w*|\b(?:fail|error|skip)\w*: *0\b")
_PLACE = regex(r"\[\s*\d+(?:/\d+|%)\s*\]")  # how far a build has come
_TELLS_MORE = regex(r" # |%|[:=]\s+\d|no tests")  # than a name: TAP's directives, coverage, counts
_NOWHERE = 10**9  # the indentation of a line that nothing stands under
_FAILS = regex(
    r"(?i)(?<![\w/.-])(?:\w*error|\w*exception|fatal|fail(?:ed|ures?|s|ing)?|panicked|traceback|undefined|not ok)\b"
    rf"(?![\w./-]*\w)|{BAD_SIGN}"
)
_COUNTED = regex(r"(?i)\b\d+ (?:\w+ )?(?:error|fail)\w*|\b(?:error|fail)\w*(?: \w+)?\W+\d+")
_COUNTS = regex(r"\W*(?:[A-Za-z_]+\W+){1,2}\d[\w\s.,:|()]*")  # a line with a word or two for its numbers
_FRAME = regex(r"\s*(?:at \S|\.{3} \d+ more$|\d+: \S)")  # of a stack trace
"""Words that tell a failure, unless they belong to a name or an option, or count; and lines that give no reason."""
_MOST, _LAST, _FOLLOWING = 12, 3, 8
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


def find_quiet(lines: Sequence[str], before: str = "") -> list[bool]:
    """Tell of each line whether it is known, or all that it says is that something passed.

    Known are the lines of `before`, the output of a build of the same project that passed.
    """
    known = Counter(_PLACE.sub("", line) for line in before.split("\n") if line.strip())
    statements = _read_statements(lines)
    forms, notable = _find_forms(lines, statements), [_says(_NOTABLE, line) for line in lines]
    passed = [
        one if one and one.form in forms and not (one.has_failed or bad or _TELLS_MORE.search(one.item)) else None
        for one, bad in zip(statements, notable, strict=True)
    ]
    companions = _find_companions(lines, passed) if any(passed) else ()
    quiet = [_takes(known, line) or one is not None for one, line in zip(passed, lines, strict=True)]
    for number in reversed(range(len(lines) - 1)):
        if number in companions or not lines[number].strip():
            quiet[number] = quiet[number + 1] and not notable[number]
    return quiet


def _takes(known: Counter[str], line: str) -> bool:
    """Tell whether a line is one of the known lines, and take it from them."""
    known[key := _PLACE.sub("", line)] -= 1
    return known[key] >= 0


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _says(words: re.Pattern[str], line: str) -> bool:
    return bool(words.search(line) and words.search(_NONE_FAILED.sub("", line)))


def _read_statements(lines: Sequence[str]) -> list[Statement | None]:
    """Read each line; the first word belongs to a form only where many have it: else it is a name."""
    read = [read_statement(line) for line in lines]
    often = Counter(one.form for one in read if one)
    return [one and one._replace(form=one.form if often[one.form] >= _OFTEN else one.form[:3]) for one in read]


def _find_forms(lines: Sequence[str], statements: Sequence[Statement | None]) -> set[Form]:
    """Return the forms that a test runner has: a failure is told in it too, or the first one came later."""
    forms, failed, has_failed = set[Form](), set[Form](), False
    for line, one in zip(lines, statements, strict=True):
        if one is None:
            has_failed = has_failed or _says(SAYS_FAILED, line)
        elif one.has_failed:
            failed.add(one.form)
            has_failed = True
        elif not has_failed:
            forms.add(one.form)
    return forms | failed


def _find_companions(lines: Sequence[str], passed: Sequence[Statement | None]) -> set[int]:
    """Return the lines that belong to one that says what passed, as nearly all lines of its form have such a one.

    Numbers left out of account they are the same line after it, the same lines under it, or the same text before its
    name.
    """
    named, owners = dict[str, int](), dict[int, tuple[int, str]]()
    for number in reversed(range(len(lines))):
        line, one = " ".join(lines[number].split()), passed[number]
        if one:
            last_word = one.item if one.form[0] == "leading" else one.item.rpartition(" ")[2]
            named |= {one.item: number, last_word: number}
        elif len(line) <= LONGEST:
            starts = [0, *(space.end() for space in re.finditer(" ", line))]
            start = next((start for start in starts if line[start:] in named), None)
            if start is not None:
                owners[number] = (named[line[start:]], NUMBER.sub("#", line[:start]))
    owner, depth = 0, _NOWHERE
    for number, line in enumerate(lines):
        if passed[number]:
            owner, depth = number, _indent(line)
        elif line.strip() and _indent(line) + (number == owner + 1) > depth:
            owners.setdefault(number, (owner, NUMBER.sub("#", line)))
        elif line.strip():
            depth = _NOWHERE
    forms = {number: (one.form, _indent(lines[number])) for number, one in enumerate(passed) if one}
    often, most = Counter((text, forms[owner]) for owner, text in set(owners.values())), Counter(forms.values())
    usual = {(text, form) for (text, form), count in often.items() if count >= max(_OFTEN, most[form] * _NEARLY_ALL)}
    return {number for number, (owner, text) in owners.items() if (text, forms[owner]) in usual}


def telling_lines(output: bytes, file: str = "") -> list[str]:
    """Return the lines of a failed build that tell most, as a terminal shows them, below the file that has all."""
    if len(output) >= TAIL_BYTES:
        output = output[-TAIL_BYTES:].partition(b"\n")[2]  # it begins within a line
    text = render(output).rstrip().expandtabs()
    lines = text.split("\n") if text else []
    numbers = telling(lines)
    left_out = [number for number, line in enumerate(lines) if line.strip() and number not in numbers]
    above = [f"[... the other lines are in {file} ...]"] if file and left_out else []
    rows = [lines[number] for number in numbers]
    if left_out and any(numbers[-_LAST - 1] < number < numbers[-_LAST] for number in left_out):
        rows.insert(-_LAST, "[...]")
    return above + rows


def failure_line(output: bytes) -> str:
    """Return the first of the lines that tell most which tells a failure with its reason; else the last one."""
    rows = telling_lines(output)
    return next((row for number, row in enumerate(rows) if _tells_reason(rows[number:])), rows[-1] if rows else "")


def telling(lines: Sequence[str], most: int = _MOST) -> list[int]:
    """Return the numbers of the lines of a failed build that tell most, `most` of them.

    Return the last ones that are not quiet. If they tell no failure with its reason, let the first lines that do take
    the place of most: those of a test, above the counts of its runner.
    """
    quiet, stay, others = find_quiet(lines), list[int](), list[int]()
    for number, line in enumerate(lines):
        is_further = stay and _FRAME.match(line) and _FRAME.match(lines[stay[-1]])
        (others if quiet[number] or is_further or not line.strip() else stay).append(number)
    if len(stay) <= most:
        return sorted([*stay, *others[len(others) - min(len(others), most - len(stay)) :]])
    kept = [lines[number] for number in stay]
    end = len(kept) - most

    def tells(number: int) -> bool:
        return _tells_reason(kept[number : number + 1 + _FOLLOWING])

    first = None if any(map(tells, range(end, len(kept)))) else next(filter(tells, range(end)), None)
    return stay[end:] if first is None else stay[first:][: most - _LAST] + stay[-_LAST:]


def tells_failure(line: str) -> bool:
    """Tell whether a line has a word of a failure, not in a name, an option or a count."""
    return _FAILS.search(_COUNTED.sub("", line)) is not None


def _tells_reason(lines: Sequence[str]) -> bool:
    """Tell whether the first line tells a failure, and itself or two of the three after it a reason."""
    first, *after = lines
    one = read_statement(first)
    if not tells_failure(first) or (one and not one.has_failed):
        return False
    worded = [line for line in after if re.search(r"\w", line) and not _FRAME.match(line)]
    return _has_reason(one) or sum(map(_may_be_reason, worded[:3])) > 1


def _may_be_reason(line: str) -> bool:
    one = read_statement(line)
    return _has_reason(one) if one else _COUNTS.fullmatch(line) is None


def _has_reason(statement: Statement | None) -> bool:
    return statement is not None and statement.has_failed and " - " in statement.item
