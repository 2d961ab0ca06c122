"""Capturing 100 and 1,000 MB of build output, redacted, to the log, against a pipe into `tee`.

The build prints a file of compiler messages that was made before.
"""

import random
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

from bench.measuring import Command, Cost, in_turns
from bench.plan import Plan
from bench.projects import clear_log, commit_all, make_repository
from bench.rows import Row, Target, timed, weighed

MEGABYTE = 1_000_000
SIZES = (100, 1_000)  # MB
ROUNDS = {100: 9, 1_000: 5}
TIME = Target(1.2)
MEMORY = Target(8 * MEGABYTE, of="difference")
VARIED = 8 * MEGABYTE  # bytes of output in which no line is made twice
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


def build_output(size: int) -> bytes:
    """Return about so many bytes of build output, the same in every run."""
    source = random.Random(size)
    lines, total = [], 0
    while total < size:
        words = dict(zip("abc", source.choices(WORDS, k=3), strict=True))
        line = source.choice(MESSAGES).format(**words, n=source.randrange(10_000), m=source.randrange(100))
        lines.append(line + "\n")
        total += len(lines[-1])
    return "".join(lines).encode()


def measure(plan: Plan) -> Iterator[Row]:
    """Yield the time for each size, and how the memory grows."""
    peaks: list[list[Cost]] = []
    for size in plan.sizes(*SIZES):
        with plan.work_folder() as folder:
            costs = in_turns(_commands(plan, folder, size), plan.rounds(ROUNDS[size]))
        yield timed(f"capture of {size:,} MB of build output", TEE, costs["ours"], costs["tee"], TIME)
        peaks.append(costs["ours"])
    if not plan.quick:
        yield weighed("capture of 1,000 MB", "capture of 100 MB", peaks[1], peaks[0][: len(peaks[1])], MEMORY)


def _commands(plan: Plan, folder: Path, size: int) -> dict[str, Command]:
    output, root, log = folder / "output", folder / "project", folder / "log"
    block = build_output(VARIED)
    with output.open("wb") as file:
        for piece in repeat(block, size * MEGABYTE // len(block)):
            file.write(piece)
    make_repository(root, f"exec cat '{output}'")
    commit_all(root)

    def prepare() -> None:
        clear_log(root)
        log.unlink(missing_ok=True)

    tee = ["sh", "-c", './build.sh | tee "$0" > /dev/null', log]
    return {
        "ours": Command(plan.step("capture"), root, prepare=prepare, times_itself=True),
        "tee": Command(tee, root, prepare=prepare),
    }
