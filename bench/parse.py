"""How fast a response is parsed, how much memory that takes, and how soon one of nothing but fences is rejected.

Responses of 10 and 100 MB of this package's own source, in turns with a copy of the bytes, all in this process, whose
results stay alive: what is written into memory that was just freed seems ten times faster.
"""

import tracemalloc
from collections.abc import Iterator

from bench.measuring import Command, Cost, in_turns, timed_call
from bench.plan import Plan
from bench.projects import make_repository, sources
from bench.rows import Row, Target, limited, timed
from bench.steps import parse, render

MEGABYTE = 1_000_000
SIZES = (10, 100)  # MB
ROUNDS = {10: 11, 100: 5}
TIME, MEMORY = Target(4.0), Target(1.3)
COPY = "a copy of the bytes"
FENCES_SIZE = 50 * MEGABYTE
FENCES_LIMIT = 5.0  # seconds
FENCES_ROUNDS = 3


def measure(plan: Plan) -> Iterator[Row]:
    """Yield time and memory for each size, and the time of the rejection."""
    for size in plan.sizes(*SIZES):
        text = render(dict(sources(total_bytes=size * MEGABYTE)))
        data = text.encode()
        costs: dict[str, list[Cost]] = {"parse": [], COPY: []}
        results: list[object] = []
        for _ in range(plan.rounds(ROUNDS[size])):
            costs["parse"].append(timed_call(lambda text=text: parse(text), results.append))
            costs[COPY].append(timed_call(lambda data=data: bytearray(data), results.append))
        what = f"parse of a response of {size} MB"
        yield timed(what, COPY, costs["parse"], costs[COPY], TIME)
        results.clear()
        yield Row(f"{what}, memory", "the response", [_peak(text)], [len(data)], unit="bytes", target=MEMORY)
    if not plan.quick:
        yield _reject_fences(plan)


def _reject_fences(plan: Plan) -> Row:
    with plan.work_folder() as folder:
        root, response = folder / "project", folder / "fences.txt"
        make_repository(root)
        fence = "^^^src/a.py\n"
        response.write_text(fence * (FENCES_SIZE // len(fence)))
        command = Command([plan.command, "apply", "--quiet", response], root, exit_code=4, timeout=60)
        costs = in_turns({"ours": command}, FENCES_ROUNDS, warm_up=False)["ours"]
    return limited("reject 50 MB of nothing but fences", f"{FENCES_LIMIT:.0f} s", costs, FENCES_LIMIT)


def _peak(text: str) -> int:
    tracemalloc.start()
    try:
        parse(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
