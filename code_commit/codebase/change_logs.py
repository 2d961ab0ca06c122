"""The heads of change logs: where new entries go, and whether a change log wants any."""

import re
from collections.abc import Iterable

from code_commit.codebase.rank import CHANGE_LOG
from code_commit.codebase.text import Section, part_of
from code_commit.views import Part

_MOST_UNRELEASED, _HEAD, _HEAD_OF_RELEASE = 200, 60, 20
"""Lines of a change log: with new entries, without sections, without new entries."""
_OPEN = "has a section for changes that are not released: what users notice is entered there"
_CLOSED = "has no section for changes that are not released: no entry is wanted but where the task says so"
_LONGEST_HEAD, _NEAR_TITLE, _SECTIONS = 20_000, 40, 2  # characters, characters, headings of a log without sections
_HEADING = re.compile(r"#{1,3} .*|(?P<text>\S.*)(?=\n(?:={3,}|-{3,}|~{3,})$)", re.MULTILINE)
_UNRELEASED = re.compile(r"(?i)\bunreleased\b|\bupcoming\b|\bin development\b|\bnot (?:yet )?released\b")


def heads_of_logs(files: Iterable[Section]) -> tuple[dict[str, Part], list[str]]:
    """Return the first lines of each long change log, and a sentence for each of the root: does it want an entry."""
    heads, told = dict[str, Part](), list[str]()
    for file in files:
        if CHANGE_LOG.fullmatch(file.name):
            content = file.content
            last, is_open = _end_of_unreleased(content)
            if content.count("\n") > last + 1:
                heads[file.name] = part_of(file.file_text, [(1, last)])
            if "/" not in file.name and is_open is not None:
                told.append(f"{file.name} {_OPEN if is_open else _CLOSED}\n")
    return heads, told


def _level(text: str, heading: re.Match[str]) -> int:
    """Return the level of a heading, 1 for the highest, by its signs or by those that underline it."""
    signs = len(heading[0]) - len(heading[0].lstrip("#"))
    return signs or 1 + "=-~".index(text[heading.end() + 1])


def _end_of_unreleased(text: str) -> tuple[int, bool | None]:
    """Return how many lines of a change log to show, with the heading after its section for what is not released, and
    whether it has such a section; None where it has no sections.
    """
    text = text[:_LONGEST_HEAD]
    headings = list(_HEADING.finditer(text))
    for number, heading in enumerate(headings):
        if _UNRELEASED.search(text[heading.start() : heading.end() + _NEAR_TITLE]):
            level = _level(text, heading)
            after = next((each for each in headings[number + 1 :] if _level(text, each) <= level), None)
            return min(text.count("\n", 0, after.start()) + 2, _MOST_UNRELEASED) if after else _HEAD, True
    return (_HEAD_OF_RELEASE, False) if len(headings) > _SECTIONS else (_HEAD, None)
