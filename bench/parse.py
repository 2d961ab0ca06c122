"""How fast a response is parsed, against copying the same text and counting its lines, and how much memory it takes.

Responses of 1, 10 and 100 MB of this package's own source, in turns with its peers, all in this process, whose
results stay alive: what is written into memory that was just freed seems ten times faster. `python -m bench.parse`
"""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measuring import Cost
from bench.rows import Row, Target, timed
from bench.running import Plan, run_alone
from code_commit.changes import FileReplacement
from code_commit.parse import parse_response, render_response

ROUNDS = {1: 15, 10: 11, 100: 5}
MEGABYTE = 1_000_000
SIZES = (1, 10, 100)  # MB
TIME = Target(4.0)  # a quarter of a copy's speed
MEMORY = Target(1.3)


def make_response(size: int) -> str:
    """Return a response of about so many bytes, of real source files."""
    sources = sorted((Path(__file__).parents[1] / "code_commit").rglob("*.py"))
    files = [path.read_text("utf-8") for path in sources]
    changes, total = [], 0
    while total < size:
        content = files[len(changes) % len(files)]
        changes.append(FileReplacement(f"src/{len(changes)}.py", content))
        total += len(content)
    return render_response(changes)


def _cost(work: Callable[[], object], results: list[object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    results.append(work())
    return Cost(time.perf_counter() - wall, time.process_time() - cpu, peak=0, output="")


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measure(plan: Plan) -> Iterator[Row]:
    """Yield time and memory for each size."""
    for size in plan.sizes(*SIZES):
        text = make_response(size * MEGABYTE)
        data = text.encode()
        works: dict[str, Callable[[], object]] = {
            "parse": lambda text=text: parse_response(text),
            "a copy of the bytes": lambda data=data: bytearray(data),
            "a line count": lambda text=text: sum(1 for _ in text.splitlines()),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in works}
        results: list[object] = []
        for _ in range(plan.rounds(ROUNDS[size])):
            for name, work in works.items():
                costs[name].append(_cost(work, results))
        what = f"parse of a response of {size} MB"
        for peer, target in (("a copy of the bytes", TIME), ("a line count", None)):
            figures = {"target": target, "series": "parse", "size": len(data)}
            yield timed("parse", what, peer, costs["parse"], costs[peer], **figures)
        results.clear()
        peak = [_peak(works["parse"])]
        figures = {"unit": "bytes", "target": MEMORY, "series": "parse, memory", "size": len(data)}
        yield Row("parse", f"{what}, memory beside it", "the response", peak, [len(data)], **figures)


if __name__ == "__main__":
    raise SystemExit(run_alone("parse", measure, __doc__))
