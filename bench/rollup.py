"""Rolling up checkouts of 1, 10 and 100 MB, against `git ls-files | xargs cat`. `python -m bench.rollup`"""

from collections.abc import Iterator
from pathlib import Path

from bench.job import commit_all, git, write_sources
from bench.measuring import Command, in_turns
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.running import Plan, run_alone

MEGABYTE = 1_000_000
SIZES = (1, 10, 100)  # MB
ROUNDS = {1: 15, 10: 11, 100: 5}
CAT = "git ls-files | xargs cat"
CAT_TARGET = Target(2.5)
CAT_TARGET_FROM = 10  # MB


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield time and memory against each peer, for each size."""
    for size in plan.sizes(*SIZES):
        with plan.work_folder() as folder:
            root = make_checkout(folder, size)
            yield from _against_cat(plan, root, size)


def make_checkout(folder: Path, size: int) -> Path:
    """Make a repository of real sources, so many MB of them."""
    root = folder / "project"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n")
    write_sources(root / "src", total_bytes=size * MEGABYTE)
    commit_all(root)
    (root / "agent-config").mkdir(mode=0o700)
    return root


def _against_cat(plan: Plan, root: Path, size: int) -> Iterator[Row]:
    cat = ["sh", "-c", 'git ls-files -z | xargs -0 cat > "$0"', root / "agent-config" / "cat.txt"]
    commands = {
        "ours": Command([plan.ours.script("code-commit"), "rollup", "--quiet"], root),
        "cat": Command(cat, root),
    }
    costs = in_turns(commands, plan.rounds(ROUNDS[size]))
    target = CAT_TARGET if size >= CAT_TARGET_FROM else None
    what, in_bytes = f"rollup of {size} MB", size * MEGABYTE
    yield timed("rollup", what, CAT, costs["ours"], costs["cat"], target=target, series="rollup", size=in_bytes)
    yield weighed("rollup", f"{what}, memory", CAT, costs["ours"], costs["cat"], series="rollup, memory", size=in_bytes)


if __name__ == "__main__":
    raise SystemExit(run_alone("rollup", measure, __doc__))
