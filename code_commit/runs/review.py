"""The review: compares git's view before a run and after its builds, and warns of changes that `git diff` hides."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from code_commit.files import folders_of, read_regular_file
from code_commit.git import Index, Repository, UnansweredError
from code_commit.project import Project
from code_commit.runs.diff import applied_changes, presence, with_hidden_text
from code_commit.runs.record import RunRecord, TreeBefore
from code_commit.runs.words import listed
from code_commit.terminal import shown

_STATUS = (
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--show-stash", "--no-renames"),
    *("--untracked-files=all", "--ignore-submodules=all", "--", "."),
)
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10, "?": 1}
_UNTRACKED = "??"
Stamp = tuple[int, ...] | None  # changes with the file; None for a missing one
_NEW_NAMED = 3
_RULE_FILES = {".gitignore": "git status may not show new files", ".gitattributes": "git diff may not show changes"}


class TreeState(NamedTuple):
    """The tree as git sees it: two letters for each `listed` path, and `stamps` of the tracked files among them."""

    branch: str
    commit: str
    stashes: int
    replaced: frozenset[str]
    listed: Mapping[str, str]
    stamps: Mapping[str, Stamp]
    indexed: Index
    is_clean: bool

    @property
    def before(self) -> TreeBefore:
        return TreeBefore(self.commit, self.is_clean)

    @property
    def head(self) -> str:
        return f"{self.branch} at {self.commit[:9]}"


def look_at_tree(project: Project, *, with_filters: bool = False) -> TreeState | None:
    """Return git's view of the tree, None outside a repository. Raises UnansweredError."""
    if project.git is None:
        return None
    answer = project.git.ask_unfiltered(_STATUS)
    if answer.returncode != 0:
        raise UnansweredError("git status", answer)
    headers, entries = {"branch.oid": "", "branch.head": "", "stash": "0"}, {}
    for line in os.fsdecode(answer.stdout).split("\0")[:-1]:
        kind, _, rest = line.partition(" ")
        if kind == "#":
            name, _, headers[name] = rest.partition(" ")
        else:
            path = line.split(" ", _FIELDS_BEFORE_PATH[kind])[-1].removeprefix(project.prefix)
            entries[path] = _UNTRACKED if kind == "?" else rest[:2]
    stamps = {path: _stamp(project, path) for path, letters in entries.items() if letters != _UNTRACKED}
    head, commit, stashes = headers["branch.head"], headers["branch.oid"], int(headers["stash"])
    is_clean = not entries or (with_filters and _is_clean_filtered(project))
    return TreeState(head, commit, stashes, _replaced(project.git), entries, stamps, project.index(), is_clean)


def _replaced(git: Repository) -> frozenset[str]:
    """Return the names of the objects that `git replace` substitutes."""
    names = {path.name for path in (git.common_dir / "refs" / "replace").glob("*")}
    with suppress(OSError):
        packed = read_regular_file(git.common_dir / "packed-refs").decode("utf-8", "replace")
        names.update(re.findall(r"refs/replace/(\S+)", packed))
    return frozenset(names)


def _is_clean_filtered(project: Project) -> bool:
    if not project.configuration().filters:
        return False
    answer = project.ask(["status", "--porcelain", "-z", "--ignore-submodules=all", "--", "."])
    return answer.returncode == 0 and not answer.stdout


def untracked_before(before: TreeState | None, paths: Iterable[str]) -> list[str]:
    """Return the paths that were untracked before the run: git diff has no old content of them."""
    return sorted(path for path in paths if before is not None and before.listed.get(path) == _UNTRACKED)


def _stamp(project: Project, path: str) -> Stamp:
    try:
        status = (project.root / path).lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_mode


def review_changes(project: Project, before: TreeState, record: RunRecord) -> list[str]:
    """Record what builds changed since `before`; return warnings about changes that git hides."""
    try:
        after = look_at_tree(project) or before
    except UnansweredError as error:
        return [f"{error}; git diff may not show all of the change, code-commit diff does"]
    answered = {path for change in applied_changes(record.attempts) for path in change.paths}
    gone = {path for path, was_and_is in presence(record.attempts).items() if not any(was_and_is)}
    tracked = (before.stamps.keys() | after.stamps.keys()) - answered
    changed = {path for path in tracked if path not in before.stamps or before.stamps[path] != _stamp(project, path)}
    new = {path for path, letters in after.listed.items() if letters == _UNTRACKED and path not in before.listed}
    new -= answered
    record.build_changes = sorted({*record.build_changes, *map(shown, changed)} - answered)
    record.head_moved = (before.branch, before.commit) != (after.branch, after.commit)
    record.new_files, record.new_file_names = len(new), [shown(path) for path in sorted(new)[:_NEW_NAMED]]
    taken_back = {*record.unchanged}.difference(each.path for each in record.rewritten)  # by another answer
    hidden = () if record.rolled_back else _file_warnings(project, before, after, answered - gone - taken_back)
    rules = _rule_files(project, record.started, after.indexed.files | answered)
    written = [path for path in rules if path in changed or path not in before.indexed.files]
    moved = f"HEAD moved from {before.head} to {after.head}" if record.head_moved else ""
    return [*_repository_warnings(before, after, moved), *hidden, *_rule_warnings(written)]


def _rule_files(project: Project, since: str, known: Collection[str]) -> Iterator[str]:
    """Yield the changed rule files of git that apply to a known file, except the root's .gitignore."""
    start = datetime.fromisoformat(since).timestamp()
    top = project.git.work_tree if project.git else project.root
    above = (os.path.relpath(folder, project.root) for folder in project.root.parents if folder.is_relative_to(top))
    folders = [*folders_of(known), *above]
    for path in (f"{folder}/{name}".lstrip("/") for folder in folders for name in _RULE_FILES):
        with suppress(OSError):
            if path != ".gitignore" and os.lstat(f"{project.root}/{path}").st_ctime >= start:
                yield path


def _rule_warnings(written: Collection[str]) -> Iterator[str]:
    for name, harm in _RULE_FILES.items():
        if paths := [path for path in written if path.rpartition("/")[2] == name]:
            yield f"the build wrote {listed(paths)} (unless you did): {harm} there"


def _repository_warnings(before: TreeState, after: TreeState, moved: str) -> Iterator[str]:
    facts = [moved] if moved else []
    if before.stashes != after.stashes:
        facts.append(f"the number of git stashes changed from {before.stashes} to {after.stashes}")
    if after.replaced - before.replaced:
        facts.append("git replace now substitutes some objects (git replace --list shows them)")
    if hidden := after.indexed.hidden - before.indexed.hidden:
        facts.append(f"git's index was set to hide changes to {listed(hidden)}")
    if facts:
        yield f"during the run {', '.join(facts)}: git diff may not show the whole change, code-commit diff does"


def _file_warnings(project: Project, before: TreeState, after: TreeState, answered: Collection[str]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for path in answered:
        if reason := _reason_not_shown(path, project, before, after):
            reasons.setdefault(reason, []).append(path)
    yield from (f"git diff does not show {listed(paths)}: {reason}" for reason, paths in sorted(reasons.items()))
    if hidden := [path for path in answered if _holds_hidden_text(path, project)]:
        yield (
            f"git diff does not show all of {listed(hidden)}: git does not store the text in $Id: ... $, or another"
            " encoding; code-commit diff shows it"
        )


def _holds_hidden_text(path: str, project: Project) -> bool:
    content = b""
    with suppress(OSError, ValueError):
        content = read_regular_file(project.root / path, follow_link=False)
    stored = project.git.stored(path, content) if project.git else content
    return with_hidden_text(content, stored) != stored


def _reason_not_shown(path: str, project: Project, before: TreeState, after: TreeState) -> str:
    letters = after.listed.get(path)
    if letters is not None:
        was_staged = before.listed.get(path, "..")[0] not in ".?"
        if letters.endswith("."):
            return "staged, see git diff --staged"
        return "" if was_staged or letters[0] in ".?" else "partly staged, see git diff HEAD"
    if path in after.indexed.hidden:
        return "git's index marks it as skip-worktree or assume-unchanged"
    if path not in after.indexed.files and _stamp(project, path):
        return "git ignores it now, or it is in a repository of its own"
    if before.commit != after.commit:
        return "committed"
    return "it is as in HEAD" if path in after.indexed.files else "it is gone, and HEAD does not have it either"
