"""The verification pass's ignore check of 1, 100 and 10,000 paths, 300 patterns, against `git check-ignore` alone.

Ours reads the ignore files itself too, to judge by the rules of before the run and by those of now.
`python -m bench.ignore_check`
"""

from collections.abc import Iterator
from pathlib import Path

from bench.job import commit_all, git
from bench.measuring import Command, in_turns
from bench.rows import Row, Skipped, Target, timed
from bench.running import Plan, run_alone

SIZES = (1, 100, 10_000)
ROUNDS = {1: 25, 100: 25, 10_000: 7}
PATTERNS = 300
TARGET = Target(1.5)
SCRIPTS = Path(__file__).parent / "scripts"
GIT = "git check-ignore --stdin"
SHAPES = ("*.ext{}", "/build{}/", "cache{}", "**/gen{}/*.tmp", "docs/part{}/*.html", "!keep{}.log")


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield the time for each number of paths."""
    for size in plan.sizes(*SIZES):
        with plan.work_folder() as folder:
            root, paths = folder / "project", folder / "paths"
            paths.write_bytes(b"".join(f"src/part{i // 100}/module{i}.c\0".encode() for i in range(size)))
            make_repository(root)
            commands = {
                "ours": Command([plan.ours.python, SCRIPTS / "check_ignored.py", paths], root, times_itself=True),
                "git": Command(["sh", "-c", 'git check-ignore --no-index -z --stdin < "$0"', paths], root, exit_code=1),
            }
            costs = in_turns(commands, plan.rounds(ROUNDS[size]))
        what = f"ignore check, {size:,} path{'s' * (size > 1)}, {PATTERNS} patterns"
        figures = {"target": TARGET, "series": "ignore check", "size": size, "size_unit": "paths"}
        yield timed("ignore_check", what, GIT, costs["ours"], costs["git"], **figures)


def make_repository(root: Path) -> None:
    """Make a repository whose .gitignore has so many patterns, of the shapes that real ones have."""
    root.mkdir()
    git(root, "init", "-q")
    patterns = [SHAPES[number % len(SHAPES)].format(number) for number in range(PATTERNS - 1)]
    (root / ".gitignore").write_text("\n".join(["/agent-config", *patterns, ""]))
    commit_all(root)


if __name__ == "__main__":
    raise SystemExit(run_alone("ignore_check", measure, __doc__))
