"""Capturing 10, 100 and 1,000 MB of build output, redacted, to the log, against a pipe into `tee`.

The build prints a file of compiler messages that was made before. `python -m bench.capture`
"""

import random
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.job import commit_all, git
from bench.measuring import Command, Cost, in_turns
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.running import Plan, run_alone

MEGABYTE = 1_000_000
SIZES = (10, 100, 1_000)  # MB
ROUNDS = {10: 15, 100: 9, 1_000: 5}
TIME = Target(0.8)
MEMORY = Target(8 * MEGABYTE, of="difference")
VARIED = 8 * MEGABYTE  # bytes of output in which no line is made twice
SCRIPT = Path(__file__).parent / "scripts" / "capture_build.py"
TEE = "sh -c 'build.sh | tee'"
WORDS = ("buffer", "parser", "socket", "token", "index", "render", "queue", "cache", "frame", "codec", "widget", "scan")
MESSAGES = (
    "src/{a}/{b}.c:{n}:{m}: warning: unused variable '{c}_{n}' [-Wunused-variable]",
    "   Compiling {a}-{b} v{m}.{n}.0 (/home/user/src/{c})",
    "error[E0{n}]: cannot borrow `*{a}.{b}` as mutable because it is also borrowed as immutable",
    "  --> crates/{a}/src/{b}.rs:{n}:{m}",
    "{n:5} |     let {a} = {b}.{c}(&mut self.{a}, {n})?;",
    "test {a}::{b}::{c}_{n} ... ok",
    "[{m:3}%] Building CXX object lib/{a}/CMakeFiles/{a}.dir/{b}_{c}{n}.cpp.o",
    "\x1b[32mPASS\x1b[0m tests/{a}/{b}.test.ts ({n} ms)",
    "{n:08x}{m:08x}: the {a} of {b} has no {c}, key=sk-{n:016x} was not taken",
    "",
)


def write_output(path: Path, size: int) -> None:
    """Write about so many bytes of build output."""
    source = random.Random(size)  # the same output in every run
    lines, total = [], 0
    while total < min(size, VARIED):
        words = {"a": source.choice(WORDS), "b": source.choice(WORDS), "c": source.choice(WORDS)}
        numbers = {"n": source.randrange(10_000), "m": source.randrange(100)}
        lines.append(source.choice(MESSAGES).format(**words, **numbers) + "\n")
        total += len(lines[-1])
    block = "".join(lines).encode()
    with path.open("wb") as file:
        while (left := size - file.tell()) > 0:
            file.write(block[:left])


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield time and memory for each size."""
    peaks: dict[int, list[Cost]] = {}
    for size in plan.sizes(*SIZES):
        with plan.work_folder() as folder:
            costs = in_turns(_commands(plan, folder, size), plan.rounds(ROUNDS[size]))
        what = f"capture of {size:,} MB of build output"
        figures = {"target": TIME, "series": "capture", "size": size * MEGABYTE}
        yield timed("capture", what, TEE, costs["ours"], costs["tee"], **figures)
        peaks[size] = costs["ours"]
    yield from _memory_rows(peaks)


def _commands(plan: Plan, folder: Path, size: int) -> dict[str, Command]:
    output, root, log = folder / "output", folder / "project", folder / "log"
    write_output(output, size * MEGABYTE)
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n")
    (root / "build.sh").write_text(f"#!/bin/sh\nexec cat '{output}'\n")
    (root / "build.sh").chmod(0o755)
    commit_all(root)

    def prepare() -> None:
        shutil.rmtree(root / "agent-config", ignore_errors=True)
        (root / "agent-config").mkdir(mode=0o700)
        log.unlink(missing_ok=True)

    tee = ["sh", "-c", './build.sh | tee "$0" > /dev/null', log]
    return {
        "ours": Command([plan.ours.python, SCRIPT], root, prepare=prepare, times_itself=True),
        "tee": Command(tee, root, prepare=prepare),
    }


def _memory_rows(peaks: Mapping[int, list[Cost]]) -> Iterator[Row]:
    least = min(peaks)
    for size, costs in peaks.items():
        if size != least:
            pairs = min(len(costs), len(peaks[least]))
            what, against = f"capture of {size:,} MB, memory", f"capture of {least} MB"
            yield weighed("capture", what, against, costs[:pairs], peaks[least][:pairs], target=MEMORY)


if __name__ == "__main__":
    raise SystemExit(run_alone("capture", measure, __doc__))
