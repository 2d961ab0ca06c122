"""Rolling up checkouts of 10 and 100 MB, against `git ls-files | xargs cat`, and making 10 MB fit into a fifth."""

from collections.abc import Iterator

from bench.measuring import Command, in_turns, timed_call
from bench.plan import Plan
from bench.projects import commit_all, make_repository, sources, write_file
from bench.rows import Row, Target, limited, timed, weighed
from bench.steps import outlines

MEGABYTE = 1_000_000
SIZES = (10, 100)  # MB
ROUNDS = {10: 11, 100: 5}
CAT = "git ls-files | xargs cat"
TARGET = Target(2.5)
FIT_SIZE = 10 * MEGABYTE
FIT_TOKENS = str(FIT_SIZE // 5 // 3)
FIT_SECONDS, FIT_MEMORY = 3.0, 500 * MEGABYTE
OUTLINE_SPEED = 1 * MEGABYTE  # a second


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
    if not plan.quick:
        yield from _fit(plan)
    texts = dict(sources(total_bytes=MEGABYTE))
    costs = [timed_call(lambda: outlines(texts), [].append) for _ in range(plan.rounds(5))]
    size = sum(map(len, texts.values()))
    yield limited("outlines of 1 MB of Python", "1 MB/s", costs, size / OUTLINE_SPEED)


def _fit(plan: Plan) -> Iterator[Row]:
    with plan.work_folder() as folder:
        root = folder / "project"
        make_repository(root)
        for name, text in sources(total_bytes=FIT_SIZE):
            write_file(root / name, text)
        commit_all(root)
        write_file(
            root / "agent-config" / "query.txt", "Undo says how many files it has restored, and which it left.\n"
        )
        command = Command([plan.command, "rollup", "--quiet", "--fit", FIT_TOKENS], root)
        costs = in_turns({"fit": command}, plan.rounds(5))["fit"]
    yield limited("fit of 10 MB into a fifth", "3 s", costs, FIT_SECONDS)
    peaks = [float(cost.peak) for cost in costs]
    limits = [float(FIT_MEMORY)] * len(peaks)
    yield Row("fit of 10 MB into a fifth, memory", "500 MB", peaks, limits, unit="bytes", target=Target(1.0))
