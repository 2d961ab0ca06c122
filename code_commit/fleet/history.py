"""Tasks made of a repository's own commits: the parent, the message, and the tests that the commit brought along."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from code_commit.errors import NotSetUpError
from code_commit.fleet.tasks import Files, Solution
from code_commit.git import ask_git, match_patterns
from code_commit.paths import find_protected

_REMOVED, _PLAIN_MODES = "000000", {"000000", "100644", "100755"}


class UnfitError(Exception):
    """A commit is no task; `str()` says why, for all of its kind alike."""


def read_history(repository: Path, commits: str) -> list[tuple[str, str]]:
    """Return each commit of a range, newest first, and its parent; merges and first commits are left out.

    Raises NotSetUpError.
    """
    if not repository.is_dir():
        raise NotSetUpError(f"{repository} is no folder: clone the repository first")
    answer = ask_git(["rev-list", "--no-merges", "--parents", "--end-of-options", commits], repository)
    if answer.returncode != 0:
        raise NotSetUpError(f"the history of {repository}: {answer.stderr.decode('utf-8', 'replace').strip()}")
    pairs = [line.split() for line in answer.stdout.decode().splitlines()]
    return [(pair[0], pair[1]) for pair in pairs if len(pair) > 1]


def tasks_of(
    repository: Path, commits: Sequence[tuple[str, str]], tests: Sequence[str], kind: str, unfit: Counter[str]
) -> Iterator[tuple[dict[str, Any], Solution]]:
    """Yield each commit that is a task, by its line and its solution; count in `unfit` why others are none.

    Its tests, the files that patterns of .gitignore syntax name, are the line's `kind`.
    """
    for commit, parent in commits:
        try:
            before, after = _tests_of(repository, commit, parent, tests)
        except UnfitError as error:
            unfit[str(error)] += 1
        else:
            message = ask_git(["log", "-1", "--format=%B", commit], repository).stdout.decode("utf-8", "replace")
            line = {"id": commit[:12], "commit": parent, "query": message.strip() or commit, kind: after}
            yield line, Solution(commit, before)


def _tests_of(repository: Path, commit: str, parent: str, tests: Sequence[str]) -> tuple[Files, Files]:
    """Return the tests that a commit changed, as they were and as it left them. Raises UnfitError."""
    raw = ask_git(["diff-tree", "-r", "-z", "--no-renames", parent, commit], repository).stdout
    entries = raw.decode("utf-8", "surrogateescape").split("\0")
    changes = {path: entry.removeprefix(":").split() for entry, path in zip(entries[::2], entries[1::2], strict=False)}
    named = match_patterns(tests, changes)
    if not named:
        raise UnfitError("no test changed")
    if len(named) == len(changes):
        raise UnfitError("nothing but tests changed")
    if any(find_protected(path, ()) for path in changes.keys() - named):
        raise UnfitError("a protected file changed")
    before, after = (
        {path: _text_of(repository, words[side], words[side + 2]) for path, words in changes.items()} for side in (0, 1)
    )
    return {path: before[path] for path in sorted(named)}, {path: after[path] for path in sorted(named)}


def _text_of(repository: Path, mode: str, blob: str) -> str | None:
    text = b"" if mode == _REMOVED else ask_git(["cat-file", "blob", blob], repository).stdout
    try:
        if mode in _PLAIN_MODES and b"\0" not in text:
            return None if mode == _REMOVED else text.decode()
    except UnicodeDecodeError:
        pass
    raise UnfitError("a file that is no text changed")
