"""Tasks made of a repository's own commits: the parent, the message, and the tests that the commit brought along."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from code_commit.api import is_protected
from code_commit.commands.output import print_json
from code_commit.errors import CodeCommitError, NotSetUpError
from code_commit.files import is_folder
from code_commit.fleet.baseline import UnpaidStore
from code_commit.fleet.repositories import read_blobs
from code_commit.fleet.results import TaskOutcome
from code_commit.fleet.table import FleetTable
from code_commit.fleet.tasks import Files, FleetTask, Solution
from code_commit.git import ask_git, match_patterns
from code_commit.status import Status

_REMOVED, _PLAIN_MODES = "000000", {"100644", "100755"}


def read_history(repository: Path, commits: str) -> list[tuple[str, str]]:
    """Return each commit of a range with its parent, newest first, but for merges. Raises NotSetUpError."""
    if not is_folder(repository):
        raise NotSetUpError(f"{repository} is not a folder: clone the repository first")
    answer = ask_git(["rev-list", "--no-merges", "--parents", "--end-of-options", commits], repository)
    if answer.returncode != 0:
        said = answer.stderr.decode("utf-8", "replace").strip()
        raise NotSetUpError(f"git cannot list the commits {commits} of {repository}: {said}")
    pairs = [line.split() for line in answer.stdout.decode().splitlines()]
    return [(pair[0], pair[1]) for pair in pairs if len(pair) > 1]


def tasks_of(
    repository: Path, commits: Sequence[tuple[str, str]], tests: Sequence[str], kind: str, unfit: Counter[str]
) -> Iterator[tuple[dict[str, Any], Solution]]:
    """Yield a line and a solution for each commit that makes a task; count in `unfit` why the others make none.

    The files that match `tests` (in .gitignore syntax) are the line's member `kind`.
    """
    for commit, parent in commits:
        raw = ask_git(["diff-tree", "-r", "-z", "--no-renames", parent, commit], repository).stdout
        words = raw.decode("utf-8", "surrogateescape").split("\0")
        changes = {path: entry.removeprefix(":").split() for entry, path in zip(words[::2], words[1::2], strict=False)}
        named = sorted(match_patterns(tests, changes))
        if not named:
            unfit["no test changed"] += 1
        elif len(named) == len(changes):
            unfit["only tests changed"] += 1
        elif any(map(is_protected, changes.keys() - set(named))):
            unfit["a protected file changed"] += 1
        else:
            try:
                before, after = (_texts_of(repository, changes, named, side) for side in (0, 1))
            except ValueError as error:
                is_of_name = isinstance(error, UnicodeEncodeError)
                unfit["the name of a test is not UTF-8" if is_of_name else "a file that is not text changed"] += 1
                continue
            words = ["log", "-1", "--no-show-signature", "--format=%B", commit]
            message = ask_git(words, repository).stdout.decode("utf-8", "replace")
            query = message.strip() or commit
            yield {"id": commit[:12], "commit": parent, "query": query, kind: after}, Solution(commit, before)


def _texts_of(repository: Path, changes: Mapping[str, Sequence[str]], tests: Sequence[str], side: int) -> Files:
    """Return the texts of a commit's tests, before it (0) or after it (1), None for a file that is not there.

    Raises ValueError where a changed file is no text, or the name of a test is not UTF-8.
    """
    states = {path: change[side::2][:2] for path, change in changes.items()}
    blobs = read_blobs(repository, [blob for mode, blob in states.values() if mode != _REMOVED])
    texts = {}
    for path, (mode, blob) in states.items():
        content = blobs.get(blob, b"\0")
        if mode != _REMOVED and (mode not in _PLAIN_MODES or b"\0" in content):
            raise ValueError(path)
        texts[path] = None if mode == _REMOVED else content.decode()
    for path in tests:
        path.encode()
    return {path: texts[path] for path in tests}


class Sieve(UnpaidStore):
    """Prints the lines of valid tasks, and counts in `unfit` why the others are not valid.

    It ends the fleet after `most` lines, or when the first `hope` tasks are not valid for one reason.
    """

    def __init__(self, table: FleetTable, lines: Mapping[str, str], most: int, unfit: Counter[str], hope: int) -> None:
        self.fit = 0
        self.hopeless = ""  # the words of the last build if it gave up
        self._table, self._lines, self._most, self._unfit, self._hope = table, lines, most, unfit, hope

    def take(self, _: FleetTask, outcome: TaskOutcome) -> bool:
        result = outcome.result
        if result.status == Status.INTERRUPTED or self.fit == self._most:
            return False
        self._table.report(result)
        if result.is_green:
            self.fit += 1
            print_json(self._lines[result.id])
        else:
            kind = result.error or result.reason
            self._unfit[kind] += 1
            if not self.fit and self._unfit[kind] >= self._hope:
                self.hopeless = result.message
        if self.fit == self._most or self.hopeless:
            raise EnoughError
        return True


class EnoughError(CodeCommitError):
    """The sieve has enough: the running builds are ended."""
