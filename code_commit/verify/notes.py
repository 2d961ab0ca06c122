"""A change that the text outside the blocks asks for, in another format. Rule `mixed-format`.

Only blocks change files. A diff, a SEARCH/REPLACE block or a code fence for a file that no block changes would be lost,
and the build would say nothing. Code that the file holds as it is, and a diff that is in it already, only quote it.
"""

import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cached_property

from code_commit.changes import EditBlock, FileRemoval, FileReplacement, Note, Reasons, RequestedChange
from code_commit.files import read_regular_file
from code_commit.git import UnansweredError, match_patterns
from code_commit.paths import names
from code_commit.paths.secrets import is_secret_name
from code_commit.project import Project
from code_commit.regex import regex
from code_commit.terminal import shown
from code_commit.verify import Rules, ignored
from code_commit.verify.markdown import fits, is_any_text
from code_commit.verify.proposals import Proposal, find_proposals, read_texts

_TRANSCRIPT = regex(r"\s*(?:>>>|\$|In \[\d+\]:) ")
_ELIDED = regex(r"\W*(?:\.{3}|\u2026).*")
_FEWEST, _MANY = 3, 10  # lines of a fence that may be those of a file that nothing names
_MOST_PROPOSALS, _MOST_SEARCHED, _MOST_FILES = 200, 8, 20
_LIKE = 0.6  # the ratio of difflib from which a line is a changed one
_MOST_COMPARED, _LONGEST_LINE = 100, 400


def suspect_notes(
    notes: Sequence[Note], changes: Sequence[RequestedChange], project: Project, rules: Rules, reasons: Reasons
) -> None:
    """Add a suspicion for each file that the notes change and no block does, and for examples that are blocks."""
    texts, wrapped = read_texts(notes)
    _suspect_examples(changes, wrapped, project, reasons)
    judge = _Judge(project, rules, changes)
    told = set[str]()
    for number, proposal in enumerate(find_proposals(texts, judge.is_file)):
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

    def changed_by(self, proposal: Proposal) -> str:
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

    def _changes_text(self, proposal: Proposal, path: str, new: Sequence[str], old: Sequence[str]) -> bool:
        there = self._lines(path)
        had = set(there)
        if proposal.kind != "change":
            asks = _continues(proposal.new, there) if proposal.kind == "bare" else _calls_for(proposal.new, there)
            return asks and not self._lines_of_answer.issuperset(new)
        if proposal.info is None:
            takes_away = proposal.removes or (not new and not had.isdisjoint(old))
            return not had.issuperset(new) or (takes_away and bool(there))
        is_quotation = _quotes(new, there) or self._lines_of_answer.issuperset(new)
        if is_quotation or _TRANSCRIPT.match(proposal.new[0]):
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


def _calls_for(values: Sequence[str], there: Sequence[str]) -> bool:
    return any(_replaces(value, values, there) for value in values)


def _replaces(value: str, others: Sequence[str], there: Sequence[str]) -> bool:
    """Tell whether a string is lines for a file that it has not all, or like another string that stands in it."""
    lines = _stripped(value.split("\n"))
    if set(there).issuperset(lines):
        return False
    if len(lines) > 1:
        return True
    text = "\n".join(there)
    old = (each.strip() for each in others if re.search(r"\w\W+\w", each.strip()))
    return any(each in text and _ratio(each, value.strip()) >= _LIKE for each in old if value.strip() not in text)


def _continues(lines: Sequence[str], there: Sequence[str]) -> bool:
    """Tell whether lines are some of a file and others with them: between these, indented below one, or like one."""
    had = {line for line in there if re.search(r"\w\W*\w", line)}
    same = [number for number, line in enumerate(lines) if line.strip() in had]
    if not same:
        return False
    others = [(number, line) for number, line in enumerate(lines) if line.strip() not in there]
    return any(
        same[0] < number < same[-1]
        or (number > same[0] and line[:1].isspace() and not lines[same[0]][:1].isspace())
        or any(_ratio(line.strip(), each) >= _LIKE for each in there[:_MOST_COMPARED])
        for number, line in others[:_MOST_COMPARED]
    )


def _ratio(one: str, other: str) -> float:
    longest = max(len(one), len(other))
    is_like = longest <= _LONGEST_LINE and 2 * min(len(one), len(other)) >= longest
    return SequenceMatcher(None, one, other, autojunk=False).ratio() if is_like else 0.0


def _quotes(lines: Sequence[str], there: Sequence[str]) -> bool:
    """Tell whether the lines stand in the file one after the other, dots for others between them apart."""
    text = "\n".join(["", *there, ""])
    passages = "\n".join(("\0" if _ELIDED.fullmatch(line) else line) for line in lines).split("\0")
    return all(f"\n{passage}\n" in text for passage in (passage.strip("\n") for passage in passages) if passage)


def _stripped(lines: Sequence[str]) -> list[str]:
    return [line for line in map(str.strip, lines) if line]
