"""What a rollup that is made to fit holds of what a commit changes: the commit's message is the task.

The codebase is the tree before the commit. A commit counts where all existing files that it changes are whole in so
small a part of it.
"""

import io
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bench.measuring import CommandFailedError
from bench.plan import Plan
from bench.projects import git
from bench.rows import Row
from bench.steps import whole_files

SHARES = (0.05, 0.1, 0.2, 0.5)
LARGE = 256_000  # bytes: left out of a rollup
EVERY = 5
QUICK = 3


def measure(plan: Plan) -> Iterator[Row]:
    """Yield for each share of the codebase how many commits have all their files whole in it."""
    commits = list(islice(commits_of(plan.repository), QUICK if plan.quick else plan.commits // EVERY))
    if not commits:
        raise CommandFailedError(f"{plan.repository} has no commit that changes an existing text file")
    for share in SHARES:
        found = sum(
            changed <= whole_files(files, task, int(share * sum(map(len, files.values()))))
            for task, files, changed in commits
        )
        what = f"commits of {plan.repository.resolve().name} whose files are whole in {share:.0%} of the codebase"
        yield Row(what, "all", [found], [len(commits)], "commits")


def commits_of(repository: Path) -> Iterator[tuple[str, dict[str, str], set[str]]]:
    """Yield every fifth commit: its message, the files before it, and which of them it changes."""
    for name in git(repository, "log", "--no-merges", "--format=%H", "--diff-filter=M").decode().split()[::EVERY]:
        files = _files(repository, f"{name}~")
        listed = git(repository, "diff", "--name-only", "-z", "--diff-filter=M", f"{name}~", name)
        changed = {path for path in listed.decode().split("\0") if path in files}
        if changed:
            yield git(repository, "log", "-1", "--format=%B", name).decode(), files, changed


def _files(repository: Path, commit: str) -> dict[str, str]:
    files = {}
    with tarfile.open(fileobj=io.BytesIO(git(repository, "archive", "--format=tar", commit))) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() and member.size <= LARGE else None
            if content is not None and b"\0" not in (data := content.read()):
                files[member.name] = data.decode("utf-8", "replace")
    return files
