"""What every benchmark is given, and how one runs alone: `python -m bench.NAME`."""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.environments import CACHE, Environment, UnavailableError, install_ours
from bench.measuring import CommandFailedError
from bench.rows import Row, Skipped
from bench.table import as_json, as_lines, as_text, growth_lines


@dataclass(frozen=True)
class Plan:
    """Where to work and how thoroughly: `quick` takes the smallest sizes, two rounds and no peers to install."""

    folder: Path
    cache: Path = CACHE
    quick: bool = False

    @cached_property
    def ours(self) -> Environment:
        """Our own environment, installed when it is first asked for."""
        return install_ours(self.cache)

    def rounds(self, number: int) -> int:
        """Return how many rounds to run where so many are wanted."""
        return min(2, number) if self.quick else number

    def sizes(self, *sizes: int) -> tuple[int, ...]:
        """Return which of the sizes to measure."""
        return sizes[:1] if self.quick else sizes

    @contextmanager
    def work_folder(self) -> Iterator[Path]:
        """Make a folder for the time of one benchmark."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="bench-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)


Bench = Callable[[Plan], Iterable[Row | Skipped]]


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of the options that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measured value to a file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw cost against size (the `bench` extra)")
    parser.add_argument("--quick", action="store_true", help="smallest sizes, two rounds, no peers to install")
    parser.add_argument("--peers", type=Path, default=CACHE, metavar="FOLDER", help=f"environments, default {CACHE}")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where to work; a real disk")
    return parser


def run(benches: Iterable[tuple[str, Bench]], options: argparse.Namespace) -> int:
    """Run benchmarks and print their rows; the exit code is 1 when a target is missed."""
    if options.plot and find_spec("matplotlib") is None:
        sys.exit("--plot needs matplotlib: pip install -e '.[bench]'")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs ends and what was laid out goes
    began, load = time.monotonic(), os.getloadavg()[0]
    plan = Plan(options.folder, options.peers, options.quick)
    rows: list[Row | Skipped] = []
    for name, bench in benches:
        _say(f"{time.monotonic() - began:5.0f} s: {name}")
        for row in _rows_of(name, bench, plan):
            _say(f"         {as_text(row)}")
            rows.append(row)
    machine = describe_machine() | {"load_before": load, "seconds": time.monotonic() - began}
    report(rows, machine, options.json, options.plot)
    return int(any(isinstance(row, Row) and row.met is False for row in rows))


def _rows_of(name: str, bench: Bench, plan: Plan) -> Iterator[Row | Skipped]:
    """Yield a benchmark's rows; what keeps it from going on is the last of them, and the others still run."""
    try:
        yield from bench(plan)
    except (UnavailableError, CommandFailedError) as error:
        yield Skipped(name, f"the rest of {name}", "-", " ".join(str(error).split())[:300])


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def report(rows: Sequence[Row | Skipped], machine: dict[str, Any], json_file: Path | None, plot: Path | None) -> None:
    """Print the table and write the files that are wanted."""
    print(*as_lines(rows), "", *growth_lines(rows), sep="\n")
    load = f"load {machine['load_before']:.1f} before"
    print(f"\n{machine['cores']} cores, Python {machine['python']}, {load}, {machine['seconds']:.0f} s")
    if json_file:
        json_file.write_text(json.dumps(as_json(rows, machine), indent=1) + "\n")
    if plot:
        from bench.plot import draw

        draw([row for row in rows if isinstance(row, Row)], plot)


def describe_machine() -> dict[str, Any]:
    """Return what a reader needs to know of this machine, and nothing else."""
    return {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}


def run_alone(name: str, bench: Bench, description: str | None) -> int:
    """Run one benchmark as a command of its own."""
    return run([(name, bench)], make_parser(description).parse_args())
