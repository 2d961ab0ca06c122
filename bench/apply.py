"""Verifying and applying a response of 10 and 1,000 files, against `git apply`.

Eight of ten files are replaced, one is new, one deleted. Ours is durable when it returns; `git apply` alone is not, so
it is followed by `sync -f`. The steps are measured without an interpreter's start, the command with it. Each goes one
way or the other between the same two trees: a thousand files are not laid out anew for every time.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.comparing import SHOWN, Comparison, Plan, growth, ours, shell, step
from bench.environments import git
from bench.projects import clear_log, commit_all, make_repository, sources, write_file, write_response

LINES_A_FILE = 60
DURABLE = "`git apply`, `sync -f`"
APPLY_BACK = 'git apply --whitespace=nowarn -R "$1" && { sync -f . 2>/dev/null || sync; }'


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a tree, as a response and as a patch. The first of its files is replaced."""

    root: Path
    response: Path
    patch: Path
    first: Path

    def prepare(self, *, changed: bool) -> None:
        """Bring the tree to one side of the change, clear the log, and let git and the disk come to rest."""
        clear_log(self.root)
        if self.first.read_text().startswith("# changed") != changed:
            git(self.root, "apply", "--whitespace=nowarn", *([] if changed else ["-R"]), str(self.patch))
        git(self.root, "status", "--porcelain")  # refreshes the index
        os.sync()


def make_change(folder: Path, files: int) -> Change:
    """Make a repository, and a change of so many files in it: the tree is as after it."""
    root = make_repository(folder / f"tree{files}")
    before, after = {}, {}
    for number, (name, text) in enumerate(sources(files=files)):
        part = "".join(text.splitlines(keepends=True)[:LINES_A_FILE])
        if number % 10 != 1:
            before[name] = part
        if number % 10 != 2:
            after[name] = f"# changed\n{part}# the last line is new\n"
    for name, text in before.items():
        write_file(root / name, text)
    commit_all(root)
    removals = "".join(f"^^^{name}\n^^^delete\n" for name in before.keys() - after.keys())
    response = write_response(folder / f"there{files}.txt", after, removals)
    for name in before.keys() - after.keys():
        (root / name).unlink()
    for name, text in after.items():
        write_file(root / name, text)
    git(root, "add", "--intent-to-add", "-A")
    patch = folder / f"there{files}.patch"
    patch.write_bytes(git(root, "diff", "HEAD"))
    git(root, "reset", "-q")
    return Change(root, response, patch, root / next(iter(before)))


def measure(plan: Plan) -> Iterator[Comparison]:
    """Yield the steps and the command, for each size."""
    with plan.work_folder() as folder:
        for files in plan.sizes(10, 1_000):
            change = make_change(folder, files)
            there, back = (partial(change.prepare, changed=changed) for changed in (False, True))
            steps = step(change.root, "apply", change.response, prepare=there)
            command = ours(change.root, "apply", "--quiet", change.response, prepare=there)
            git_apply = shell(change.root, APPLY_BACK, change.patch, prepare=back)
            rounds = 15 if files == 10 else 4
            yield Comparison(f"verify and apply {files:,} files", DURABLE, steps, git_apply, rounds, 3.0, SHOWN)
            most = 4.0 if files == 1_000 else SHOWN
            yield Comparison(
                f"`code-commit apply` of {files:,} files", DURABLE, command, git_apply, rounds, most, SHOWN
            )
        if not plan.quick:
            fewer = make_change(folder, 100)
            there = partial(fewer.prepare, changed=False)
            small = ours(fewer.root, "apply", "--quiet", fewer.response, prepare=there)
            yield growth("apply 100 files", command, small, 3)
