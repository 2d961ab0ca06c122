"""What code-commit costs: every benchmark, or those that are named. The exit code is 1 when a target is missed."""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench import answers, apply, commands, commits, fleet, small_model, tokens, whole_run
from bench.comparing import Comparison, Plan, Row, Unmeasured, compare, compare_tools, tables
from bench.environments import CACHE, SOURCE, Tool, tool_at, tool_of
from bench.measuring import CommandFailedError, UnavailableError

BENCHES: dict[str, Callable[[Plan], Iterator[Comparison]]] = {
    "startup": commands.start_up,
    "whole_run": whole_run.measure,
    "apply": apply.measure,
    "parse": commands.parse,
    "edits": commands.edits,
    "capture": commands.capture,
    "redaction": commands.redaction,
    "rollup": commands.rollup,
    "sandbox": commands.sandbox,
    "log": commands.log,
    "answers": answers.answers,
    "codebases": commits.codebases,
    "choosing": commits.choosing,
    "tokens": tokens.measure,
    "cached_layout": whole_run.cached_layout,
    "fleet": fleet.measure,
}
IDLE_LOAD, OWN_LOAD = 0.5, 2.0
"""The load averages that a machine may have before us, and with us: a command at a time, with what it starts."""
QUICK_ROUNDS, ROUNDS_AGAINST = 5, 9


def read_arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default all: {', '.join(BENCHES)}")
    parser.epilog = "A real model behind a server: python -m bench small_model --help"
    parser.add_argument("--against", metavar="REVISION", help="measure this tree against a revision: what is worse?")
    parser.add_argument("--quick", action="store_true", help="smallest sizes, few rounds, no peers to install")
    parser.add_argument("--rounds", type=int, default=100, metavar="N", help="so many at most of each comparison")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measured value to a file")
    parser.add_argument("--environment", type=Path, metavar="FOLDER", help="measure what is installed there")
    parser.add_argument("--kept", type=Path, default=CACHE, metavar="FOLDER", help=f"for environments, default {CACHE}")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where to work; a real disk")
    parser.add_argument("--repository", type=Path, default=SOURCE, metavar="FOLDER", help="whose commits are replayed")
    parser.add_argument("--commits", type=int, default=50, metavar="N", help="so many of them, default 50")
    options = parser.parse_args()
    if unknown := set(options.names) - BENCHES.keys():
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    return options


class Session:
    """Benchmarks of this tree, or of this tree against a revision; and what is known of the machine."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._loads = [os.getloadavg()[0]]
        self._began = time.monotonic()
        self._seen: set[tuple[str, bool]] = set()
        self._options = options
        self._now = Tool(options.environment.absolute()) if options.environment else tool_of(SOURCE, options.kept)
        self._then = tool_at(options.against, options.kept) if options.against else None

    @property
    def _by_cpu(self) -> bool:
        """Whether only CPU time says something: others use the machine, or it has to be quick."""
        others = self._loads[0] > IDLE_LOAD or max(self._loads) > OWN_LOAD
        return others or (self._then is not None and self._options.quick)

    def rows(self, name: str, plan: Plan) -> Iterator[Row | Unmeasured]:
        """Yield the rows of a benchmark. What goes wrong is one of them, and the rest goes on."""
        say(f"{time.monotonic() - self._began:5.0f} s: {name}")
        try:
            for comparison in BENCHES[name](plan):
                try:
                    yield from self._compared(comparison)
                except Exception as error:  # noqa: BLE001 - one comparison that fails leaves the others
                    yield Unmeasured(comparison.what, comparison.against, told(error), comparison.grows)
        except Exception as error:  # noqa: BLE001 - the same for what they need
            yield Unmeasured(f"the rest of {name}", "-", told(error))

    def _compared(self, comparison: Comparison) -> list[Row]:
        self._loads.append(os.getloadavg()[0])
        most = min(self._options.rounds, QUICK_ROUNDS if self._options.quick else self._options.rounds)
        if self._then is None:
            return compare(comparison, self._now, min(comparison.rounds, most), by_cpu=self._by_cpu)
        if (key := (comparison.what, comparison.time is None)) in self._seen:
            return []
        self._seen.add(key)
        rounds = min(comparison.rounds, ROUNDS_AGAINST, most)
        return compare_tools(comparison, self._now, self._then, rounds, by_cpu=self._by_cpu)

    def machine(self) -> str:
        """Return what the figures depend on."""
        system = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
        loads = f"load average {self._loads[0]:.1f} before, {max(self._loads):.1f} at most"
        seconds, judged = time.monotonic() - self._began, "CPU time" if self._by_cpu else "wall time"
        return f"{datetime.now(UTC):%Y-%m-%d}, {system}, {seconds:.0f} s; {loads}: judged by {judged}."


def told(error: Exception) -> Exception:
    """Show where an error comes from that no command ended with."""
    if not isinstance(error, UnavailableError | CommandFailedError):
        traceback.print_exception(error)
    return error


def say(line: str) -> None:
    """Say how far it is."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Run them, and print the tables, and at the end what is not as it should be."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs ends and what was laid out goes
    if sys.argv[1:2] == ["small_model"]:
        return small_model.main(sys.argv[2:])
    options = read_arguments()
    try:
        session = Session(options)
    except UnavailableError as error:
        say(str(error))
        return 2
    rows: list[Row | Unmeasured] = []
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="bench-", ignore_cleanup_errors=True) as folder:
        plan = Plan(Path(folder), options.kept, options.quick, options.repository, options.commits)
        for name in [name for name in BENCHES if name in (options.names or BENCHES)]:
            for row in session.rows(name, plan):
                say(f"         {' | '.join(filter(None, row.cells()))}")
                rows.append(row)
    machine = session.machine()
    print(tables(rows), machine, sep="\n\n")
    if options.json:
        figures = {"machine": machine, "rows": [asdict(row) | {"met": row.met} for row in rows]}
        options.json.write_text(json.dumps(figures, indent=1, default=str) + "\n")
    bad = [" | ".join(filter(None, row.cells())) for row in rows if row.met is False]
    if bad:
        print("", "Worse by more than a tenth:" if options.against else "Missed:", *bad, sep="\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
