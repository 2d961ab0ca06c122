"""What the cached prompt layout saves: the share of each prompt that repeats the call before, and the input's cost.

A run of four attempts on this very package, from its own logs, in both layouts. The prices are those of the table in
code_commit/llm/models.py; tokens are taken as proportional to bytes. `python -m bench.cached_layout`
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from bench.rows import Row, Target
from bench.running import Plan, run_alone
from code_commit.changes import FileReplacement
from code_commit.config import Price, Settings
from code_commit.llm.models import CHARACTERS_PER_TOKEN
from code_commit.llm.prices import price_of
from code_commit.model_choice import ModelChoice
from code_commit.parse import render_response

SOURCE = Path(__file__).parents[1]
MODELS = (
    ModelChoice("openai", "gpt-6.2-sol"),
    ModelChoice("anthropic", "claude-opus-5-5"),
    ModelChoice("gemini", "gemini-4-argon"),
)
TARGET = Target(0.45)
SPEC = "the specification's order"


def make_project(root: Path) -> None:
    """Lay out this package with a build that fails three times, each time at another file of the response."""
    shutil.copytree(SOURCE / "code_commit", root / "code_commit", ignore=shutil.ignore_patterns("__pycache__"))
    (root / ".gitignore").write_text("/agent-config\n")
    names = ["parse.py", "prompts.py", "diff.py", "git.py"]
    checks = "\n".join(
        f"grep -n attempt-{number} code_commit/{name} && echo ok-{number}" for number, name in enumerate(names)
    )
    (root / "build.sh").write_text(f"#!/bin/sh\nset -e\nfind code_commit -name '*.py' | sort\n{checks}\n")
    (root / "build.sh").chmod(0o755)
    recorded = root / "agent-config" / "recorded"
    recorded.mkdir(mode=0o700, parents=True)
    for number, name in enumerate(names):
        content = (root / "code_commit" / name).read_text() + f"# attempt-{number}\n"
        change = FileReplacement(f"code_commit/{name}", content)
        (recorded / f"{number + 1}-response.txt").write_text(render_response([change]))
    files = sorted((root / "code_commit").rglob("*.py"))
    rollup = "\n".join(f"--- {path.relative_to(root)} ---\n{path.read_text()}" for path in files)
    (root / "agent-config" / "codeRollup.txt").write_text(rollup)
    (root / "agent-config" / "query.txt").write_text("Mark four modules.\n")


def prompts_of_a_run(layout: str) -> list[bytes]:
    """Run the job in a temporary folder and return the four prompts as they were sent."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_project(root)
        command = [sys.executable, "-m", "code_commit", "--model", "replay:agent-config/recorded", "--sandbox", "off"]
        subprocess.run([*command, "--prompt-layout", layout], cwd=root, check=True, capture_output=True)
        (log,) = (root / "agent-config" / "logs").iterdir()
        return [(log / f"{number}-query.txt").read_bytes() for number in range(1, 5)]


def shared_prefix(first: bytes, second: bytes) -> int:
    """Return how many bytes at the start are the same."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[:middle] == second[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def repeated_share(prompts: Sequence[bytes]) -> float:
    """Return the share of all prompt bytes that are an exact prefix of the call before."""
    repeated = sum(shared_prefix(before, after) for before, after in pairwise(prompts))
    return repeated / sum(map(len, prompts))


def input_cost(prompts: Sequence[bytes], price: Price, *, cached: bool) -> float:
    """Return what the prompts cost in dollars; cached, the prefix is written once and read by the later calls."""
    if not cached:
        return _dollars(sum(map(len, prompts)), price.input)
    prefix = min(shared_prefix(prompts[0], prompt) for prompt in prompts[1:])
    write = price.cache_write if price.cache_write is not None else price.input
    read = price.cached_input if price.cached_input is not None else price.input
    rest = sum(len(prompt) - prefix for prompt in prompts)
    return _dollars(prefix, write) + _dollars(prefix * (len(prompts) - 1), read) + _dollars(rest, price.input)


def _dollars(size: int, price: float) -> float:
    """Return the price of so many bytes; it is given for a million tokens."""
    return size / CHARACTERS_PER_TOKEN * price / 1_000_000


def measure(_: Plan) -> Iterator[Row]:
    """Yield the share of the prompts' bytes that repeats the call before, and the input's cost for each provider."""
    spec, cached = prompts_of_a_run("spec"), prompts_of_a_run("cached")
    again = [repeated_share(cached) * sum(map(len, cached))], [repeated_share(spec) * sum(map(len, spec))]
    yield Row("cached_layout", "prompt bytes that repeat the call before, 4 attempts", SPEC, *again, unit="bytes")
    for choice in MODELS:
        price = price_of(choice, Settings())
        if price is not None:
            costs = [input_cost(cached, price, cached=True)], [input_cost(spec, price, cached=False)]
            what = f"input cost, 4 attempts, {choice}"
            yield Row("cached_layout", what, SPEC, *costs, unit="dollars", target=TARGET)


if __name__ == "__main__":
    raise SystemExit(run_alone("cached_layout", measure, __doc__))
