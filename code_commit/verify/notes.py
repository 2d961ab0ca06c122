"""A change that the text outside the blocks asks for, in another format. Rule `mixed-format`.

Only blocks change files. A diff, a SEARCH/REPLACE block or a code fence for a file that no block changes would be lost,
and the build would say nothing. Code that the file holds as it is, and a diff that is in it already, only quote it.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from code_commit.changes import EditBlock, FileRemoval, FileReplacement, Note, Reasons, RequestedChange
from code_commit.codebase.text import read_header
from code_commit.files import read_regular_file
from code_commit.git import UnansweredError, match_patterns
from code_commit.paths import names
from code_commit.paths.secrets import is_secret_name
from code_commit.project import Project
from code_commit.terminal import shown
from code_commit.verify import Rules, ignored
from code_commit.verify.markdown import fits, is_any_text

_HINTS = ("```", "~~~", "*** ", "diff --git ", "+++ ", "SEARCH", "--- ", "<")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)")
_HEADER = re.compile(
    r"\*{3} (?:Update|Add|Delete) File: (?P<patch>.+)|diff --git a/.+ b/(?P<git>.+)"
    r"|(?:\+{3}|-{3}) (?:[ab]/)?(?P<unified>[^\s]+)(?:\t.*)?"
)
_FILE_TAGS = (
    re.compile(r"<\w+ (?:path|file|name|filename|file_path)=[\"']([^\"']+)[\"'][^>]*>"),
    re.compile(r"<(?:path|file|filename|file_path)>([^<>]+)</\w+>"),
    re.compile(r"(?:\$ )?cat\s*>\s*[\"']?([^\s\"']+)[\"']?\s*<<-?\s*[\"'\\]?\w+[\"']?"),
    re.compile(r"(?:\$ )?cat\s*<<-?\s*[\"'\\]?\w+[\"']?\s*>\s*[\"']?([^\s\"']+)[\"']?"),
)
_TRANSCRIPT = re.compile(r"\s*(?:>>>|\$|In \[\d+\]:) ")
_SEARCH, _MIDDLE, _REPLACE = (
    re.compile(mark) for mark in (r"<{5,9}(?: .*)?|-{5,9} ?SEARCH.*", r"={5,9}", r">{5,9}(?: .*)?|\+{5,9} ?REPLACE.*")
)
_ELIDED = re.compile(r"\W*(?:\.{3}|\u2026).*")
_NAMING = re.compile(r"[^\s*`\"'()\[\]<>#:,=]*\w[^\s*`\"'()\[\]<>#:,=]*")
_COMMENT = re.compile(r"\s*(?:#|//|--|/\*|<!--|;|%)")
_MOST_WORDS = 2  # on the line that names a file: the path, and a word such as `File:`
_ABOVE = 3  # lines between that line and the change
_FEWEST, _MANY = 3, 10  # lines of a fence that may be those of a file that nothing names
_MOST_PROPOSALS, _MOST_SEARCHED, _MOST_FILES = 50, 8, 20


class _Text(NamedTuple):
    """Lines of the notes, in one Markdown fence or outside of any, and the last ones above; `line` is the first."""

    line: int
    lines: list[str]
    above: Sequence[str] = ()
    info: str | None = None


class _Proposal(NamedTuple):
    """A change that the notes may ask for: `new` lines in place of `old` ones, in the file `path`, "" if none is named.

    `info` is the word of a code fence; None for a format that leaves no doubt.
    """

    line: int
    path: str
    new: Sequence[str]
    old: Sequence[str] = ()
    info: str | None = None
    is_alone: bool = True
    removes: bool = False


def suspect_notes(
    notes: Sequence[Note], changes: Sequence[RequestedChange], project: Project, rules: Rules, reasons: Reasons
) -> None:
    """Add a suspicion for each file that the notes change and no block does, and for examples that are blocks."""
    if not any(hint in note.text for note in notes for hint in _HINTS):
        return
    texts, wrapped = _read(notes)
    _suspect_examples(changes, wrapped, project, reasons)
    judge = _Judge(project, rules, changes)
    told = set[str]()
    for number, proposal in enumerate(_proposals(texts, judge.is_file)):
        if number == _MOST_PROPOSALS:
            break
        path = judge.changed_by(proposal)
        if path and path not in told:
            told.add(path)
            advice = f"send it in a block, ^^^{shown(path)} ... ^^^end, or leave it out of the text"
            fact = "only the text outside the blocks changes it, in another format"
            reasons.suspect(path, proposal.line, "mixed-format", fact, advice)


def _suspect_examples(
    changes: Sequence[RequestedChange], wrapped: Collection[int], project: Project, reasons: Reasons
) -> None:
    """Suspect removals, and files in folders that are not there, in a Markdown fence beside blocks that are in none."""
    if all(change.line in wrapped for change in changes):
        return
    for change in changes:
        folder = change.path.rpartition("/")[0]
        is_example = isinstance(change, FileRemoval) or (folder != "" and not project.has(folder))
        if change.line in wrapped and is_example:
            fact = "its block stands in a Markdown fence, as an example would, and other blocks stand in none"
            advice = "leave the example out, or send all blocks outside of Markdown fences"
            reasons.suspect(change.path, change.line, "mixed-format", fact, advice)


def _read(notes: Sequence[Note]) -> tuple[list[_Text], set[int]]:
    """Return the parts of the notes, each fence by itself, and the lines of the blocks that stand in a fence."""
    parts, wrapped, mark = list[_Text](), set[int](), ""
    for note in notes:
        parts.append(_Text(note.line, [], (), "" if mark else None))
        for number, line in enumerate(note.text.replace("\r", "").split("\n"), note.line):
            fence = _FENCE.fullmatch(line)
            if fence and not mark:
                mark = fence[1]
                above = [text for text in parts[-1].lines[-_ABOVE:] if text.strip()]
                parts.append(_Text(number + 1, [], above, fence[2].strip()))
            elif fence and fence[1].startswith(mark) and not fence[2].strip():
                mark = ""
                parts.append(_Text(number + 1, []))
            else:
                parts[-1].lines.append(line)
        if mark:
            wrapped.add(note.line + note.text.count("\n"))
    return [part for part in parts if part.lines], wrapped


def _proposals(texts: Sequence[_Text], is_file: Callable[[str], bool]) -> Iterator[_Proposal]:
    for text in texts:
        formatted = [*_diffs(text), *_searches(text, is_file), *_files(text, is_file)]
        yield from formatted
        if text.info is None or formatted:
            continue
        path, is_alone = _named_beside(text, is_file)
        if text.info.lower() in ("diff", "patch", "udiff"):
            yield _diff(text.line, path, text.lines)
        else:
            yield _Proposal(text.line, path, text.lines, info=text.info, is_alone=is_alone)


def _named_beside(text: _Text, is_file: Callable[[str], bool]) -> tuple[str, bool]:
    """Return the path in a fence's info, on the last line above or in a first comment; and whether it is alone."""
    for path in _NAMING.findall(text.info or ""):
        if is_file(path):
            return path, True
    for line in (*text.above[-1:], *filter(_COMMENT.match, text.lines[:1])):
        words = [word.removeprefix("./") for word in _NAMING.findall(line)]
        paths = [*filter(is_file, words)]
        is_about_one = len(paths) == 1 and line.rstrip(" *").endswith(":")
        if paths and (len(words) <= _MOST_WORDS or is_about_one):
            return paths[0], len(words) == 1
    return "", False


def _diffs(text: _Text) -> Iterator[_Proposal]:
    headers = list[tuple[int, str]]()
    for at, line in enumerate(text.lines):
        match = _HEADER.fullmatch(line.rstrip()) if line.startswith(("***", "diff", "+++", "---")) else None
        is_pair = match and (
            not match["unified"] or "+++" in (line[:3], *(next_[:3] for next_ in text.lines[at + 1 : at + 2]))
        )
        if match and is_pair and match[match.lastindex or 0] != "/dev/null":
            headers.append((at, match[match.lastindex or 0]))
    for at, path, lines in _below(headers, text.lines):
        removes = text.lines[at].startswith("*** Delete")
        yield _diff(text.line + at, path, lines)._replace(removes=removes)


def _below(named: Sequence[tuple[int, str]], lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each line that names a file, the path, and the lines up to the next one."""
    ends = [*(at for at, _ in named[1:]), len(lines)]
    return ((at, path, lines[at + 1 : end]) for (at, path), end in zip(named, ends, strict=False))


def _diff(line: int, path: str, lines: Sequence[str]) -> _Proposal:
    new, old = ([line[1:] for line in lines if line.startswith(sign) and line[:3] != 3 * sign] for sign in "+-")
    return _Proposal(line, path, new, old)


def _searches(text: _Text, is_file: Callable[[str], bool]) -> Iterator[_Proposal]:
    start = middle = None
    for at, line in enumerate(text.lines):
        if _SEARCH.fullmatch(line.rstrip()):
            start, middle = at, None
        elif start is not None and middle is None and _MIDDLE.fullmatch(line.rstrip()):
            middle = at
        elif start is not None and middle is not None and _REPLACE.fullmatch(line.rstrip()):
            above = [*text.above, *text.lines[max(0, start - _ABOVE) : start]]
            words = (word.removeprefix("./") for line in reversed(above) for word in _NAMING.findall(line))
            path = next(filter(is_file, words), "")
            yield _Proposal(text.line + start, path, text.lines[middle + 1 : at], text.lines[start + 1 : middle])
            start = middle = None


def _files(text: _Text, is_file: Callable[[str], bool]) -> Iterator[_Proposal]:
    """Yield what stands below a line of the prompt that names a file, and below a tag with a path."""
    named: list[tuple[int, str]] = []
    for at, line in enumerate(text.lines):
        header = read_header(line) if line.startswith("--- ") else None
        tags = (tag.match(line.strip()) for tag in _FILE_TAGS) if "<" in line else ()
        tag = next(filter(None, tags), None)
        path = header.path if header else tag[1] if tag else ""
        if path and is_file(path):
            named.append((at, path))
    for at, path, lines in _below(named, text.lines):
        yield _Proposal(text.line + at, path, lines, info="")


class _Judge:
    """Tells which file a proposal changes that the blocks leave alone, though they may change it."""

    def __init__(self, project: Project, rules: Rules, changes: Sequence[RequestedChange]) -> None:
        self._project, self._rules, self._changes = project, rules, changes
        self._limits = names.read_limits(project.root)

    @cached_property
    def _answered(self) -> set[str]:
        return {change.path for change in self._changes}

    @cached_property
    def _lines_of_answer(self) -> set[str]:
        wholes = [change.content for change in self._changes if isinstance(change, FileReplacement)]
        edits = [edit.replacement for block in self._changes if isinstance(block, EditBlock) for edit in block.edits]
        return {line for text in (*wholes, *edits) for line in _stripped(text.split("\n"))}

    def is_file(self, path: str) -> bool:
        if path in self._rules.index.files:
            return True
        is_path = "." in path and names.find_path_fault(path, self._limits) is None
        return is_path and (self._project.root / path).is_file()

    def changed_by(self, proposal: _Proposal) -> str:
        new, old = _stripped(proposal.new), _stripped(proposal.old)
        if not new and not old and not proposal.removes:
            return ""
        if not proposal.path:
            path = self._owner_of(old or new, proposal.info)
            return path if path and self._may_change(path) and self._changes_text(proposal, path, new, old) else ""
        if proposal.path in self._answered or names.find_path_fault(proposal.path, self._limits):
            return ""
        asks = self._changes_text(proposal, proposal.path, new, old)
        return proposal.path if asks and self._may_change(proposal.path) else ""

    def _changes_text(self, proposal: _Proposal, path: str, new: Sequence[str], old: Sequence[str]) -> bool:
        there = self._lines(path)
        had = set(there)
        if proposal.info is None:
            takes_away = proposal.removes or (not new and not had.isdisjoint(old))
            return not had.issuperset(new) or (takes_away and bool(there))
        if _quotes(new, there) or self._lines_of_answer.issuperset(new):
            return False
        if _TRANSCRIPT.match(proposal.new[0]):
            return False
        if is_any_text(proposal.info):
            is_of_file = proposal.is_alone and not any(path in line for line in new)  # else it speaks of the file
            return is_of_file or not had.isdisjoint(new)
        return fits(proposal.info, path)

    def _owner_of(self, lines: Sequence[str], info: str | None) -> str:
        """Return the file that has most of these lines, if they are many, or most of the file."""
        if len(lines) < (_FEWEST if info is not None else 1):
            return ""
        best, most = "", 0
        for path in self._files_with(lines):
            there = {*self._lines(path)}
            same = sum(line in there for line in lines)
            is_most = 2 * same > len(lines) and (info is None or len(lines) >= _MANY or 2 * same > len(there))
            if is_most and (same > most or (same == most and path in self._answered)):
                best, most = path, same
        return "" if best in self._answered else best

    def _files_with(self, lines: Sequence[str]) -> list[str]:
        """Return the files that have most of the longest lines."""
        wanted = sorted({line for line in lines if re.search(r"\w", line)}, key=len)[-_MOST_SEARCHED:]
        if not wanted or self._project.git is None:
            return []
        patterns = "\n".join(wanted).encode("utf-8", "surrogatepass")
        answer = self._project.git.ask(
            ["grep", "-IcFz", "--no-color", "--no-full-name", "--untracked", "-f", "-"], patterns
        )
        found = [entry.partition(b"\0") for entry in answer.stdout.split(b"\n")[:-1]] if answer.returncode == 0 else []
        counted = sorted(((int(count), os.fsdecode(path)) for path, _, count in found), reverse=True)
        return [path for _, path in counted[:_MOST_FILES]]

    def _lines(self, path: str) -> list[str]:
        with suppress(OSError):
            text = read_regular_file(self._project.root / path, follow_link=False).decode("utf-8", "replace")
            return _stripped(text.split("\n"))
        return []

    def _may_change(self, path: str) -> bool:
        settings = self._rules.settings
        if is_secret_name(path) or names.find_protected(path, names.guarded_folders(self._project)):
            return False
        if settings.allow and not match_patterns(settings.allow, [path]):
            return False
        with suppress(UnansweredError, OSError):
            is_ignored = bool(ignored.find_ignored([path], self._project, self._rules.ignore_files))
            return not is_ignored and not match_patterns(settings.protect, [path], any_case=True)
        return False


def _quotes(lines: Sequence[str], there: Sequence[str]) -> bool:
    """Tell whether the lines stand in the file one after the other, dots for others between them apart."""
    text = "\n".join(["", *there, ""])
    passages = "\n".join(("\0" if _ELIDED.fullmatch(line) else line) for line in lines).split("\0")
    return all(f"\n{passage}\n" in text for passage in (passage.strip("\n") for passage in passages) if passage)


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line for line in map(str.strip, lines) if line]
