"""Verifying and applying a response of 10, 1,000 and 10,000 files, against `git apply`. `python -m bench.apply`

Eight of ten files are replaced, one is new, one deleted. Ours is durable when it returns; `git apply` alone is not, so
it is also followed by `sync -f`. The steps alone are measured without an interpreter's start, the command with it.
Ours make the change, git makes it back, and so on: ten thousand files are not laid out anew for every time.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.job import commit_all, git, git_output, source_texts
from bench.measuring import Command, Cost, in_turns
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.running import Plan, run_alone

SIZES = (10, 1_000, 10_000)
ROUNDS = {10: 15, 1_000: 5, 10_000: 3}
TARGET = Target(2.0)
LINES_A_FILE = 60
STEPS = Path(__file__).parent / "scripts" / "apply_steps.py"
DURABLE = "git apply + sync -f"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a tree, as a patch and as a response."""

    root: Path
    patch: Path
    response: Path

    def prepare(self) -> None:
        """Clear the log, and let git and the disk come to rest."""
        shutil.rmtree(self.root / "agent-config", ignore_errors=True)
        (self.root / "agent-config").mkdir(mode=0o700)
        git(self.root, "update-index", "-q", "--refresh", exit_codes=(0, 1))
        os.sync()


def write_tree(root: Path, wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Write the files that are wanted, and unlink the others."""
    for name in present.keys() - wanted.keys():
        (root / name).unlink(missing_ok=True)
    for name, text in wanted.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_changes(folder: Path, files: int) -> tuple[Change, Change]:
    """Make a repository; return a change of so many files in it, and that change back."""
    root = folder / f"tree{files}"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n*.o\n/target\n")
    before, after = _contents(files)
    write_tree(root, before, {})
    commit_all(root)
    write_tree(root, after, before)
    git(root, "add", "--intent-to-add", "-A")
    there = Change(root, folder / "there.patch", folder / "there.txt")
    there.patch.write_bytes(git_output(root, "diff", "HEAD"))
    there.response.write_text(_response(before, after))
    back = Change(root, folder / "back.patch", folder / "back.txt")
    back.patch.write_bytes(git_output(root, "diff", "-R", "HEAD"))
    back.response.write_text(_response(after, before))
    git(root, "reset", "-q")
    write_tree(root, before, after)
    return there, back


def _response(present: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    """Return the response that makes the one of the other."""
    replaced = [f"^^^{name}\n{text}^^^end\n" for name, text in wanted.items() if text != present.get(name)]
    return "".join([*replaced, *(f"^^^{name}\n^^^delete\n" for name in sorted(present.keys() - wanted.keys()))])


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


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield time and memory of the steps and of the command, for each size."""
    for files in plan.sizes(*SIZES):
        with plan.work_folder() as folder:
            commands = _commands(plan, *make_changes(folder, files))
            costs = in_turns(commands, plan.rounds(ROUNDS[files]), warm_up=files < max(SIZES))
        yield from _rows(files, costs)


def _commands(plan: Plan, there: Change, back: Change) -> dict[str, Command]:
    """Return the commands in the order in which each finds the tree as it needs it."""
    steps = [plan.ours.python, STEPS, there.response]
    command = [plan.ours.script("code-commit"), "apply", "--quiet", there.response]
    durable = ["sh", "-c", 'git apply "$0" && { sync -f . 2>/dev/null || sync; }', back.patch]
    return {
        "steps": Command(steps, there.root, prepare=there.prepare, times_itself=True),
        "git": Command(["git", "apply", back.patch], back.root, prepare=back.prepare),
        "command": Command(command, there.root, prepare=there.prepare),
        "durable": Command(durable, back.root, prepare=back.prepare),
    }


def _rows(files: int, costs: Mapping[str, list[Cost]]) -> Iterator[Row]:
    steps, size = "verify and apply", {"series": "verify and apply", "size": files, "size_unit": "files"}
    shown = f"{files:,} files"
    yield timed("apply", f"{steps}, {shown}", DURABLE, costs["steps"], costs["durable"], target=TARGET, **size)
    yield timed("apply", f"{steps}, {shown}", "git apply, not durable", costs["steps"], costs["git"], **size)
    size["series"] = "code-commit apply"
    yield timed("apply", f"`code-commit apply`, {shown}", DURABLE, costs["command"], costs["durable"], **size)
    size["series"] = "verify and apply, memory"
    yield weighed("apply", f"{steps}, {shown}, memory", "git apply", costs["steps"], costs["git"], **size)


if __name__ == "__main__":
    raise SystemExit(run_alone("apply", measure, __doc__))
