"""What the cached prompt layout saves: the share of each prompt that repeats the call before, and the input's cost.

A run of four attempts on this very package, from its own logs, in both layouts. The prices are those of our table;
tokens are taken as proportional to bytes.
"""

import shutil
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from bench.measuring import Command
from bench.plan import SOURCE, Plan
from bench.projects import make_repository, write_file
from bench.rows import Row, Target
from bench.steps import prices, render

TARGET = Target(0.45)
SPEC = "the specification's order"
BYTES_PER_TOKEN = 3.2
ATTEMPTS = 4


def measure(plan: Plan) -> Iterator[Row]:
    """Yield the share of the prompts' bytes that repeats the call before, and the input's cost for each provider."""
    spec, cached = prompts_of_a_run(plan, "spec"), prompts_of_a_run(plan, "cached")
    again = [[sum(_shared(*pair) for pair in pairwise(prompts))] for prompts in (cached, spec)]
    yield Row("prompt bytes that repeat the call before, 4 attempts", SPEC, *again, unit="bytes")
    for model, (plain, write, read) in prices():
        costs = [cached_cost(cached, plain, write, read)], [sum(map(len, spec)) / BYTES_PER_TOKEN * plain]
        yield Row(f"input cost, 4 attempts, {model}", SPEC, *costs, unit="dollars", target=TARGET)


def prompts_of_a_run(plan: Plan, layout: str) -> list[bytes]:
    """Run the job and return the prompts as they were sent."""
    with plan.work_folder() as folder:
        root = folder / "project"
        _make_project(root)
        argv = [plan.command, "--quiet", "--model", "replay:agent-config/recorded", "--sandbox", "off"]
        Command([*argv, "--prompt-layout", layout], root).run()
        (log,) = (root / "agent-config" / "logs").iterdir()
        return [(log / f"{number}-query.txt").read_bytes() for number in range(1, ATTEMPTS + 1)]


def _make_project(root: Path) -> None:
    """Lay out this package with a build that fails three times, each time at another file of the response."""
    files = sorted((SOURCE / "code_commit").rglob("*.py"))
    names = [path.relative_to(SOURCE) for path in files if "/" not in str(path.relative_to(SOURCE / "code_commit"))]
    checks = [f"grep -n attempt-{number} {name} && echo ok" for number, name in enumerate(names[:ATTEMPTS])]
    make_repository(root, "\n".join(["set -e", "find code_commit -name '*.py' | sort", *checks]))
    shutil.copytree(SOURCE / "code_commit", root / "code_commit", ignore=shutil.ignore_patterns("__pycache__"))
    for number, name in enumerate(names[:ATTEMPTS]):
        response = render({str(name): (SOURCE / name).read_text("utf-8") + f"# attempt-{number}\n"})
        write_file(root / f"agent-config/recorded/{number + 1}-response.txt", response)
    rollup = "\n".join(f"--- {path.relative_to(SOURCE)} ---\n{path.read_text('utf-8')}" for path in files)
    write_file(root / "agent-config/codeRollup.txt", rollup)
    write_file(root / "agent-config/query.txt", "Mark four modules.\n")


def cached_cost(prompts: Sequence[bytes], plain: float, write: float, read: float) -> float:
    """Return what the prompts cost in dollars: what they share is written to the cache once and read by the later."""
    shared = _shared(*prompts)
    rest = sum(len(prompt) - shared for prompt in prompts)
    return (shared * (write + read * (len(prompts) - 1)) + rest * plain) / BYTES_PER_TOKEN


def _shared(*prompts: bytes) -> int:
    """Return how many bytes at the start are the same in all of them."""
    first, last = min(prompts), max(prompts)
    return bisect_left(range(1, len(first) + 1), True, key=lambda size: first[:size] != last[:size])
