"""Verifying and applying a response of 10 and 1,000 files, against `git apply`.

Eight of ten files are replaced, one is new, one deleted. Ours is durable when it returns; `git apply` alone is not, so
it is followed by `sync -f`. The steps alone are measured without an interpreter's start, the command with it. Ours make
the change, git makes it back, and so on: a thousand files are not laid out anew for every time.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.measuring import Command, in_turns
from bench.plan import Plan
from bench.projects import clear_log, commit_all, git, make_repository, source_texts, write_file
from bench.rows import Row, Target, timed, weighed
from bench.steps import render

SIZES = (10, 1_000)
ROUNDS = {10: 15, 1_000: 5}
TARGET = Target(3.0)
LINES_A_FILE = 60
DURABLE = "git apply + sync -f"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a tree as a response, and back as a patch."""

    root: Path
    response: Path
    patch_back: Path

    def prepare(self) -> None:
        """Clear the log, and let git and the disk come to rest."""
        clear_log(self.root)
        git(self.root, "status", "--porcelain")  # refreshes the index
        os.sync()


def make_change(folder: Path, files: int) -> Change:
    """Make a repository, and a change of so many files in it."""
    root = folder / "tree"
    make_repository(root)
    before, after = _contents(files)
    _write_tree(root, before, {})
    commit_all(root)
    change = Change(root, folder / "there.txt", folder / "back.patch")
    replaced = {name: text for name, text in after.items() if text != before.get(name)}
    removals = "".join(f"^^^{name}\n^^^delete\n" for name in sorted(before.keys() - after.keys()))
    change.response.write_text(render(replaced) + removals)
    _write_tree(root, after, before)
    git(root, "add", "--intent-to-add", "-A")
    change.patch_back.write_bytes(git(root, "diff", "-R", "HEAD"))
    git(root, "reset", "-q")
    _write_tree(root, before, after)
    return change


def _write_tree(root: Path, wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    for name in present.keys() - wanted.keys():
        (root / name).unlink()
    for name, text in wanted.items():
        write_file(root / name, text)


def _contents(files: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files before and after a change of so many."""
    lines = "".join(source_texts()).split("\n")
    before, after = {}, {}
    for number in range(files):
        name = f"src/part{number // 100}/module{number}.py"
        start = number * 7 % (len(lines) - LINES_A_FILE)
        text = "\n".join([f"# module {number}", *lines[start : start + LINES_A_FILE], ""])
        if number % 10 != 1:
            before[name] = text
        if number % 10 != 2:
            after[name] = text.replace("# module", "# changed module") + "# the last line is new\n"
    return before, after


def measure(plan: Plan) -> Iterator[Row]:
    """Yield time and memory of the steps and of the command, for each size."""
    for files in plan.sizes(*SIZES):
        with plan.work_folder() as folder:
            change = make_change(folder, files)
            root, prepare = change.root, change.prepare
            back = ["sh", "-c", 'git apply "$0" && { sync -f . 2>/dev/null || sync; }', change.patch_back]
            command = [plan.command, "apply", "--quiet", change.response]
            commands = {
                "steps": Command(plan.step("apply", change.response), root, prepare=prepare, times_itself=True),
                "git": Command(back, root, prepare=prepare),
                "command": Command(command, root, prepare=prepare),
                "git again": Command(back, root, prepare=prepare),
            }
            costs = in_turns(commands, plan.rounds(ROUNDS[files]))
        what = f"verify and apply, {files:,} files"
        yield timed(what, DURABLE, costs["steps"], costs["git"], TARGET)
        yield weighed(what, DURABLE, costs["steps"], costs["git"])
        yield timed(f"`code-commit apply`, {files:,} files", DURABLE, costs["command"], costs["git again"])
