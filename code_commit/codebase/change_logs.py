"""The heads of change logs: where new entries go, and whether a change log wants any."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from code_commit.codebase.near import is_document
from code_commit.codebase.rank import CHANGE_LOG
from code_commit.codebase.text import Section, part_of
from code_commit.regex import regex
from code_commit.views import Part

_MOST_UNRELEASED, _HEAD, _HEAD_OF_RELEASE, _BEFORE_SECTION = 200, 60, 20, 20
"""Lines of a change log: with new entries, without sections, of a section that may want none, before a late section."""
_NO_SECTION = [(1, _HEAD)]
_OPEN = "has a section for changes that are not released: what users notice is entered there"
_CLOSED = "has no section for changes that are not released: no entry is wanted but where the task says so"
_LONGEST_HEAD, _NEAR_TITLE, _SECTIONS = 200_000, 60, 2  # characters, characters, headings of a log without sections
_NO_TEXT = regex(r"<!--.*?(?:-->|\Z)|^(?P<fence>```|~~~).*?(?:^(?P=fence)|\Z)", re.DOTALL | re.MULTILINE)
_LINES = "=-~^\"'+#*"  # under a heading
_TITLE = regex(
    r"^(?:(?P<signs>#{1,6}|={1,5}|\*{1,5}(?=[ \t].*(?:\d\.\d|\?\.\?|(?i:unreleased))))[ \t]+(?P<text>\S.*)"
    r"|<h(?P<level>[1-6])\b[^>\n]*>(?P<html>.*)</h[1-6]>"
    r"|(?P<bold>\*\*|__)(?P<strong>[^*_\n]+)(?P=bold)\W*$"
    rf"|(?P<underlined> ?[^\s*+-].*)\n(?P<line>[{re.escape(_LINES)}])(?P=line){{2,}}[ \t]*$"
    r"|(?<![^\n]\n)(?P<plain>(?!\.\. )[^\s\-*+#<|>].{0,99}?)[ \t]*$)",
    re.MULTILINE,
)
_RELEASE = regex(
    r"(?<![\w.])[vV]?\d+(?:\.(?:\d+|[xX]\b))+(?:[.+-]?[A-Za-z]\w*(?:\.\d+)*)*(?![\w.]*\w)|\b\d{4}[-/.]\d\d?[-/.]\d\d?\b"
)
_UNRELEASED = regex(
    r"(?i)\bun-?released\b|\bupcoming\b|\bin (?:development|progress)\b|\b(?:not|to be) (?:yet )?released\b|\bnot yet\b"
    r"|\bTB[AD]\b|\bWIP\b|\bwork in progress\b|\$NEXT\b|\bvNext\b|\d[.-]?(?:dev\d*|snapshot)\b"
    r"|(?<!\w)[?xy]{4}-[?xm]{2}-[?xd]{2}|(?<!\w)[?x]\.[?x]"
)
_YEAR = regex(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_NEXT = regex(
    r"(?i)\W*(?:(?:the|changes(?: (?:in|on|since|for))?) )?(?:next|head|main|master|trunk|develop(?:ment)?|dev|edge"
    r"|pending|future|current)(?: (?:branch|release|version|changes))?\W*"
)
_BEFORE_RELEASE, _AFTER_RELEASE = regex(r"(?:(?:\S+\s+){0,6})?\W{0,3}"), regex(r".*[^.,]")
"""The text before a release in a plain line that is a heading, and after it: else the line is a sentence."""


class _Heading(NamedTuple):
    """A heading: its line from 1, its level, 1 for the highest, and whether it names a release, or what is not one.

    One that is `numbered` begins with the release; one that is `dated` has a year in it or under it.
    """

    line: int
    level: int
    is_release: bool
    is_open: bool
    is_numbered: bool
    is_dated: bool


def heads_of_logs(files: Iterable[Section]) -> tuple[dict[str, Part], dict[str, bool]]:
    """Return the first lines of each long change log, and for each of the root whether it wants entries, if sure."""
    heads, wants = dict[str, Part](), dict[str, bool]()
    for file in files:
        if CHANGE_LOG.fullmatch(file.name):
            content = file.content
            ranges, is_open = _find_unreleased(content)
            if content.count("\n") > ranges[-1][1] + 1 or len(ranges) > 1:
                heads[file.name] = part_of(file.file_text, ranges)
            if "/" not in file.name and is_open is not None:
                wants[file.name] = is_open
    return heads, wants


def logs_of(names: Iterable[str], folders: Collection[str] = ()) -> set[str]:
    """Return the change logs in the root and in these folders; without any, the only one a folder below the root."""
    logs = {name for name in names if CHANGE_LOG.fullmatch(name)}
    there = {name for name in logs if (folder := name.rpartition("/")[0]) in folders or not folder}
    below = {name for name in logs if name.count("/") == 1}
    return there or (below if len(below) == 1 else set())


def may_want_entries(file: Section) -> bool:
    """Tell whether a change log has a section that may be for what is not released."""
    ranges, is_open = _find_unreleased(file.content)
    return is_open is not False and ranges != _NO_SECTION


def tell_logs(wants: Mapping[str, bool], seen: Collection[str]) -> str:
    """Return a sentence for each change log: does it want an entry. A section that is not `seen` is not promised."""
    told = {name: _OPEN if is_open else _CLOSED for name, is_open in wants.items() if name in seen or not is_open}
    return "".join(f"{name} {sentence}\n" for name, sentence in told.items())


def is_change_log(file: Section) -> bool:
    """Tell whether a file is a change log, by its name or by the releases that most of its headings name."""
    if CHANGE_LOG.fullmatch(file.name):
        return True
    headings = list(_headings(file.content)) if is_document(file.name) else []
    return sum(heading.is_release for heading in headings) > max(len(headings) // 2, _SECTIONS)


def _headings(text: str) -> Iterator[_Heading]:
    """Yield the headings of a change log: of Markdown, reStructuredText, AsciiDoc, Org, HTML, bold or plain lines."""
    text = _NO_TEXT.sub(lambda match: "\n" * match[0].count("\n"), text[:_LONGEST_HEAD])
    line, counted = 1, 0
    for match in _TITLE.finditer(text):
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        title = match["text"] or match["html"] or match["strong"] or match["underlined"] or match["plain"]
        release, unreleased = _RELEASE.search(title), _UNRELEASED.search(title)
        under = text[match.end() : match.end() + 2 * _NEAR_TITLE].lstrip(f"{_LINES} \t\n").partition("\n")[0]
        is_open = bool(unreleased or _NEXT.fullmatch(title) or (release and _UNRELEASED.search(under[:_NEAR_TITLE])))
        if match["plain"] and not _NEXT.fullmatch(title):
            named = release or unreleased
            if not named or not _is_title(title, named):
                continue
        level = len(match["signs"] or "") or int(match["level"] or 0)
        level = level or (_LINES.index(match["line"]) + 1 if match["line"] else len(_LINES))
        is_numbered = release is not None and not re.search(r"\w", title[: release.start()])
        is_dated = _YEAR.search(f"{title} {under[:_NEAR_TITLE]}") is not None
        yield _Heading(line, level, release is not None and not is_open, is_open, is_numbered, is_dated)


def _is_title(line: str, named: re.Match[str]) -> bool:
    """Tell whether a plain line that names a release is a title, and no sentence."""
    is_end = _AFTER_RELEASE.fullmatch(line) is not None
    return is_end and _BEFORE_RELEASE.fullmatch(line, 0, named.start()) is not None


def _find_unreleased(text: str) -> tuple[list[tuple[int, int]], bool | None]:
    """Return the lines of a change log to show, with the heading after its section for what is not released, and
    whether it has such a section; None where that is not sure.
    """
    headings = list(_headings(text))
    first = next((number for number, heading in enumerate(headings) if heading.is_open or heading.is_release), None)
    if first is None:
        return _NO_SECTION, None
    section, later = headings[first], headings[first + 1 :]
    if not section.is_open:
        is_sure = bool(later) and not any(heading.is_open for heading in later)
        is_sure = is_sure and not any(heading.level == section.level for heading in headings[1:first])
        is_sure = is_sure and (section.is_dated or not any(heading.is_dated for heading in later if heading.is_release))
        return [(1, section.line + (0 if is_sure else _HEAD_OF_RELEASE))], False if is_sure else None
    ends = [heading for heading in later if heading.level <= section.level or heading.is_numbered]
    after = next((heading for heading in ends if heading.is_release), next(iter(ends), None))
    last = min(after.line + 1 if after else text.count("\n"), section.line + _MOST_UNRELEASED)
    return [(1, last)] if section.line <= _HEAD else [(1, _BEFORE_SECTION), (section.line, last)], True
