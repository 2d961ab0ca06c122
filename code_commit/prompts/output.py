"""A build's output in a prompt: without most of the lines that only say what passed, and within its limit.

A line is left out only for what it says itself: that something passed, in a form in which failures are told too, or
which began before the first failure; or what nearly all such lines have before or under them; or what the same project
printed when its build passed, before the run. Every other line stays.
"""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from code_commit.codebase.passed import LONGEST, NUMBER, SAYS_FAILED, Form, Statement, read_statement
from code_commit.errors import LogError
from code_commit.files import read_ends
from code_commit.regex import regex
from code_commit.settings import Settings
from code_commit.terminal import render

# bytes that are read of each end: progress bars and colours shrink to less than a quarter, tests that pass to far less
_RAW_BYTES_PER_LIMIT, _LEAST_READ = 4, 1_000_000
_LEAST, _OFTEN = 3, 5  # lines left out in one place; lines of one form that are not there by accident
_LEAST_KNOWN = 10  # lines left out in one place where some may be no more than known
_NEARLY_ALL = 0.9
_NOTABLE = regex(rf"{SAYS_FAILED.pattern}|\b(?:warn|skip|todo|except|panic|abort|fatal|tim(?:ed|e) ?out)")
_NONE_FAILED = regex(r"(?i)\b(?:0|no) (?:fail|error|skip)\w*|\b(?:fail|error|skip)\w*: *0\b")
_PLACE = regex(r"\[\s*\d+(?:/\d+|%)\s*\]")  # how far a build has come
_TELLS_MORE = regex(r" # |%|[:=]\s+\d|no tests")  # than a name: TAP's directives, coverage, counts
_NOWHERE = 10**9  # the indentation of a line that nothing stands under


def read_build_output(log_file: Path, settings: Settings, shown_name: str, before: str = "") -> str:
    """Return a build log as a terminal would finally show it, without colours; of one of which a prompt would show more
    than `build_output_limit` bytes the first and last lines, and one between them that names the whole log. Raises
    LogError.
    """
    limit, layout = settings.build_output_limit, settings.prompt_layout
    window = max(_RAW_BYTES_PER_LIMIT * limit, _LEAST_READ) if limit else sys.maxsize
    try:
        ends = read_ends(log_file, window, window)
    except OSError as error:
        raise LogError(log_file, error) from error
    whole, unread = [render(ends.head), render(ends.tail)], ends.between
    head, tail = (shown_output(end, layout, before) for end in whole)
    text = head + tail
    if not unread and (not limit or len(text.encode()) <= limit):
        return "".join(whole)
    first = (head if unread else text).encode()[: limit // 2].decode("utf-8", "ignore")
    last = text.encode()[-limit // 2 :].decode("utf-8", "ignore")
    first = first[: first.rfind("\n") + 1] or first
    last = last[last.find("\n") + 1 :] or last
    missing = len(text.encode()) - len(first.encode()) - len(last.encode()) + unread
    least = "" if [head, tail] == whole else "at least "
    gap = f"{least}{missing:,} bytes of the output are left out here; all of it is in {shown_name}"
    return f"{first}[... {gap} ...]\n{last}"


def shown_output(output: str, layout: str, before: str = "") -> str:
    """Return an output as the prompts of a layout show it: whole in that of the specification.

    `before` is the output of a build of the same project that passed.
    """
    return output if layout == "spec" else _without_passed(output, before)


@lru_cache(maxsize=4)
def _without_passed(output: str, before: str) -> str:
    lines, known = output.split("\n"), Counter(_PLACE.sub("", line) for line in before.split("\n") if line.strip())
    pieces, least = list[str](), _LEAST_KNOWN if known else _LEAST
    why = "that only say what passed" + (", or that build.sh also printed when it passed before," if known else "")
    for is_quiet, numbers in groupby(range(len(lines)), key=_find_quiet(lines, known).__getitem__):
        run = [lines[number] for number in numbers]
        if is_quiet and len(run) > least:
            run[:-1] = [f"[... {len(run) - 1:,} lines {why} are left out here ...]"]
        pieces += run
    return "\n".join(pieces)


def _find_quiet(lines: Sequence[str], known: Counter[str]) -> list[bool]:
    """Tell of each line whether it is known, or all that it says is that something passed."""
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
