"""How fast the key is looked for in what a build prints, in this process: each kind of output against 500 MB/s."""

import base64
import random
from collections.abc import Iterator

from bench.capture import build_output
from bench.measuring import Cost, timed_call
from bench.plan import Plan
from bench.rows import Row, limited
from bench.steps import KEY, redact

MEGABYTE = 1_000_000
BLOCK = 4 * MEGABYTE  # bytes in which nothing is made twice
SIZES = (16, 128)  # MB, the smaller one where it is quick
ROUNDS = 7
RATE = 500 * MEGABYTE  # bytes a second


def kinds_of_output() -> dict[str, bytes]:
    """Return a block of each kind; none of them has the key."""
    noise = random.Random(BLOCK).randbytes(BLOCK)
    rows = (noise[start : start + 16].hex(" ", 2) for start in range(0, BLOCK // 4, 16))
    dump = "".join(f"{16 * number:08x}: {row}\n" for number, row in enumerate(rows))
    return {
        "build logs": build_output(BLOCK),
        "hex dumps": dump.encode(),
        "base64 text": base64.encodebytes(noise),
        "the key's first eight characters": KEY[:8].encode() * (BLOCK // 8),
        "random bytes": noise,
    }


def measure(plan: Plan) -> Iterator[Row]:
    """Yield the time for each kind."""
    size = plan.sizes(*SIZES)[-1] * MEGABYTE
    for kind, block in kinds_of_output().items():
        data = (block * (size // len(block) + 1))[:size]
        costs: list[Cost] = [timed_call(lambda data=data: redact(data)) for _ in range(plan.rounds(ROUNDS))]
        yield limited(f"redact {size // MEGABYTE} MB of {kind}", "500 MB/s", costs, size / RATE)
