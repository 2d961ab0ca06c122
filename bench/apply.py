"""Verifying and applying a response of 10, 1,000 and 10,000 files, against `git apply`. `python -m bench.apply`

Eight of ten files are replaced, one is new, one deleted. Ours is durable when it returns; `git apply` alone is not, so
it is also followed by `sync -f`. The steps alone are measured without an interpreter's start, the command with it.
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
ROUNDS = {10: 15, 1_000: 9, 10_000: 4}
TARGET = Target(2.0)
LINES_A_FILE = 60
STEPS = Path(__file__).parent / "scripts" / "apply_steps.py"
DURABLE = "git apply + sync -f"


@dataclass(frozen=True, slots=True)
class Change:
    """A change in a tree of its own: what the files were, and the change as a patch and as a response."""

    root: Path
    patch: Path
    response: Path
    before: Mapping[str, str]
    after: Mapping[str, str]

    def undo(self) -> None:
        """Put every file back, clear the log, and let the disk come to rest."""
        shutil.rmtree(self.root / "agent-config", ignore_errors=True)
        (self.root / "agent-config").mkdir(mode=0o700)
        write_tree(self.root, self.before, self.after)
        git(self.root, "update-index", "-q", "--refresh")
        git(self.root, "status")
        os.sync()


def write_tree(root: Path, wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    """Write the files that are wanted, and unlink the others."""
    for name in present.keys() - wanted.keys():
        (root / name).unlink(missing_ok=True)
    for name, text in wanted.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_change(folder: Path, files: int) -> Change:
    """Make a repository, and a change of so many files in it."""
    root = folder / f"tree{files}"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n*.o\n/target\n")
    before, after = _contents(files)
    write_tree(root, before, {})
    commit_all(root)
    write_tree(root, after, before)
    git(root, "add", "--intent-to-add", "-A")
    change = Change(root, folder / f"{files}.patch", folder / f"{files}-response.txt", before, after)
    change.patch.write_bytes(git_output(root, "diff", "HEAD"))
    git(root, "reset", "-q")
    deleted = before.keys() - after.keys()
    blocks = [f"^^^{name}\n{text}^^^end\n" for name, text in after.items() if text != before.get(name)]
    change.response.write_text("".join([*blocks, *(f"^^^{name}\n^^^delete\n" for name in sorted(deleted))]))
    return change


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
            change = make_change(folder, files)
            costs = in_turns(_commands(plan, change), plan.rounds(ROUNDS[files]), warm_up=files < max(SIZES))
        yield from _rows(files, costs)


def _commands(plan: Plan, change: Change) -> dict[str, Command]:
    python, script = plan.ours.python, plan.ours.script("code-commit")
    steps = [python, STEPS, change.response]
    command = [script, "apply", "--quiet", change.response]
    durable = ["sh", "-c", 'git apply "$0" && { sync -f . 2>/dev/null || sync; }', change.patch]
    return {
        "steps": Command(steps, change.root, prepare=change.undo, times_itself=True),
        "git": Command(["git", "apply", change.patch], change.root, prepare=change.undo),
        "durable": Command(durable, change.root, prepare=change.undo),
        "command": Command(command, change.root, prepare=change.undo),
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
