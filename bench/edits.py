"""How fast finds are looked up, and how that grows with the file and the number of finds.

Four sizes of trouble: finds that are all there, finds none of which is there (each is told its nearest passage), one
find in a file of equal lines, and one of half of these lines.
"""

import math
from collections.abc import Iterator, Sequence

from bench.measuring import Cost, timed_call
from bench.plan import Plan
from bench.projects import sources
from bench.rows import Row, Target, limited, timed
from bench.steps import edit

MEGABYTE = 1_000_000
SIZE, FINDS, EQUAL_LINES = 10, 10_000, 100_000
ROUNDS = 5
LIMIT = 1.0  # seconds
TIMES = 10
GROWTH = Target(2.0)
Pairs = Sequence[tuple[str, str]]


def measure(plan: Plan) -> Iterator[Row]:
    """Yield the time of each trouble against its limit, and that of the first against a tenth of it."""
    rounds = plan.rounds(ROUNDS)
    large, small = _file(SIZE), _file(SIZE / TIMES)
    costs: dict[str, list[Cost]] = {"large": [], "small": []}
    for _ in range(rounds):
        costs["large"].append(_timed(large, _finds(large, FINDS), 0))
        costs["small"].append(_timed(small, _finds(small, FINDS // TIMES), 0))
    limit = f"{LIMIT:.0f} s"
    yield limited(f"{FINDS:,} finds in {SIZE} MB", limit, costs["large"], LIMIT)
    grown = TIMES * math.log(len(large)) / math.log(len(small))
    expected = [Cost(cost.wall * grown, cost.cpu * grown, 0, "") for cost in costs["small"]]
    yield timed("the same", f"a tenth of both, n log n: times {grown:.1f}", costs["large"], expected, GROWTH)
    missing = [(find.replace("\n", " # not there\n", 1), "") for find, _ in _finds(large, FINDS)]
    missed = [_timed(large, missing, FINDS) for _ in range(rounds)]
    yield limited(f"{FINDS:,} finds that are not in {SIZE} MB", f"{2 * LIMIT:.0f} s", missed, 2 * LIMIT)
    equal = "    }\n" * EQUAL_LINES
    for count in (1, EQUAL_LINES // 2):
        found = [_timed(equal, [("    }\n" * count, "")], 1) for _ in range(rounds)]
        yield limited(f"a find of {count:,} lines in {EQUAL_LINES:,} equal ones", limit, found, LIMIT)


def _file(megabytes: float) -> str:
    """Return this package's own source over and over, each line with its number."""
    text = "".join(content for _, content in sources(total_bytes=round(megabytes * MEGABYTE)))
    lines = text.split("\n")[:-1]
    return "".join(f"{line} # {number}\n" for number, line in enumerate(lines))


def _finds(text: str, count: int) -> Pairs:
    """Return so many pairs that change a line each, of three that are found, over the whole file."""
    lines = text.split("\n")[:-1]
    step = len(lines) // count
    passages = (lines[at : at + 3] for at in range(0, step * count, step))
    return [("".join(f"{line}\n" for line in part), f"{part[0]}\nnew\n{part[-1]}\n") for part in passages]


def _timed(text: str, pairs: Pairs, faults: int) -> Cost:
    results: list[int] = []
    cost = timed_call(lambda: edit(text, pairs), results.append)
    if results != [faults]:
        raise AssertionError(f"{results[0]} faults, not {faults}")
    return cost
