"""How fast a response is parsed, against copying the same text and counting its lines, and how much memory it takes.

Responses of 1, 10 and 100 MB of this package's own source, in turns with its peers. `python -m bench.parse`
"""

import json
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from bench.growth import exponent
from code_commit.changes import FileReplacement
from code_commit.parse import parse_response, render_response

ROUNDS = 5
MEGABYTE = 1_000_000
SIZES = (MEGABYTE, 10 * MEGABYTE, 100 * MEGABYTE)
SPEED_TARGET = 0.25  # of a copy
MEMORY_TARGET = 4.0  # times the response


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


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def measure() -> dict[str, object]:
    """Return the figures as JSON has them."""
    rows = []
    for size in SIZES:
        text = make_response(size)
        data = text.encode()
        peers: dict[str, Callable[[], object]] = {
            "parse": lambda text=text: parse_response(text),
            "copy": lambda data=data: bytearray(data),
            "count lines": lambda text=text: sum(1 for _ in text.splitlines()),
        }
        times: dict[str, list[float]] = {name: [] for name in peers}
        for _ in range(ROUNDS):
            for name, work in peers.items():
                times[name].append(_seconds(work))
        medians = {name: statistics.median(values) for name, values in times.items()}
        rows.append(
            {
                "bytes": len(data),
                "seconds": medians,
                "spread": {name: [min(values), max(values)] for name, values in times.items()},
                "speed_of_copy": medians["copy"] / medians["parse"],
                "speed_of_line_count": medians["count lines"] / medians["parse"],
                "memory_ratio": _peak(peers["parse"]) / len(data),
            }
        )
    growth = exponent([(row["bytes"], row["seconds"]["parse"]) for row in rows])
    return {
        "bench": "parse",
        "rows": rows,
        "exponent": growth,
        "targets": {"speed": SPEED_TARGET, "memory": MEMORY_TARGET},
    }


def main() -> int:
    """Print the figures as a table, then as JSON."""
    figures = measure()
    for row in figures["rows"]:
        print(
            f"{row['bytes'] / MEGABYTE:6.1f} MB  {row['bytes'] / MEGABYTE / row['seconds']['parse']:7.0f} MB/s  "
            f"{row['speed_of_copy']:.2f} of a copy's speed (target {SPEED_TARGET}), "
            f"{row['speed_of_line_count']:.1f} times a line count's, "
            f"memory {row['memory_ratio']:.2f} times the response (target {MEMORY_TARGET:.0f})"
        )
    print(f"time grows with size to the power of {figures['exponent']:.2f}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
