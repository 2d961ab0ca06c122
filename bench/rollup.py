"""Rolling up checkouts of 10 and 100 MB, against `git ls-files | xargs cat`."""

from collections.abc import Iterator

from bench.measuring import Command, in_turns
from bench.plan import Plan
from bench.projects import commit_all, make_repository, sources, write_file
from bench.rows import Row, Target, timed, weighed

MEGABYTE = 1_000_000
SIZES = (10, 100)  # MB
ROUNDS = {10: 11, 100: 5}
CAT = "git ls-files | xargs cat"
TARGET = Target(2.5)


def measure(plan: Plan) -> Iterator[Row]:
    """Yield time and memory for each size."""
    for size in plan.sizes(*SIZES):
        with plan.work_folder() as folder:
            root = folder / "project"
            make_repository(root)
            for name, text in sources(total_bytes=size * MEGABYTE):
                write_file(root / name, text)
            commit_all(root)
            cat = ["sh", "-c", 'git ls-files -z | xargs -0 cat > "$0"', root / "agent-config" / "cat.txt"]
            commands = {"ours": Command([plan.command, "rollup", "--quiet"], root), "cat": Command(cat, root)}
            costs = in_turns(commands, plan.rounds(ROUNDS[size]))
        yield timed(f"rollup of {size} MB", CAT, costs["ours"], costs["cat"], TARGET)
        yield weighed(f"rollup of {size} MB", CAT, costs["ours"], costs["cat"])
