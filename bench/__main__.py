"""Every benchmark, or those that are named: `python -m bench [NAME..]`. The exit code is 1 when a target is missed."""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import (
    answers,
    apply,
    cached_layout,
    capture,
    choosing,
    edits,
    fitting,
    fleet,
    parse,
    redaction,
    rollup,
    sandbox,
    startup,
    whole_run,
)
from bench.measuring import CommandFailedError
from bench.plan import PEERS, SOURCE, Bench, Plan, UnavailableError, say
from bench.rows import Row, Skipped, as_json, as_lines

BENCHES: dict[str, Bench] = {
    "startup": startup.measure,
    "whole_run": whole_run.measure,
    "apply": apply.measure,
    "parse": parse.measure,
    "edits": edits.measure,
    "answers": answers.measure,
    "capture": capture.measure,
    "redaction": redaction.measure,
    "rollup": rollup.measure,
    "fitting": fitting.measure,
    "choosing": choosing.measure,
    "cached_layout": cached_layout.measure,
    "sandbox": sandbox.measure,
    "fleet": fleet.measure,
    "fleet_size": fleet.measure_size,
}


def read_arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default all: {', '.join(BENCHES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every measured value to a file")
    parser.add_argument("--quick", action="store_true", help="smallest sizes, two rounds, no peers to install")
    parser.add_argument("--peers", type=Path, default=PEERS, metavar="FOLDER", help=f"where peers are, default {PEERS}")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where to work; a real disk")
    parser.add_argument("--repository", type=Path, default=SOURCE, metavar="FOLDER", help="whose commits are replayed")
    parser.add_argument("--commits", type=int, default=300, metavar="N", help="so many of them, default 300")
    parser.add_argument("--tasks", type=int, default=200, metavar="N", help="so many of a fleet, default 200")
    options = parser.parse_args()
    if unknown := set(options.names) - BENCHES.keys():
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    return options


def measure(name: str, plan: Plan) -> Iterator[Row | Skipped]:
    """Yield a benchmark's rows; what keeps it from going on is the last of them."""
    try:
        yield from BENCHES[name](plan)
    except (UnavailableError, CommandFailedError) as error:
        yield Skipped(f"the rest of {name}", "-", " ".join(str(error).split())[:300])


def main() -> int:
    """Run them and print one table."""
    options = read_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs ends and what was laid out goes
    began, load = time.monotonic(), os.getloadavg()[0]
    rows: list[Row | Skipped] = []
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="bench-", ignore_cleanup_errors=True) as folder:
        plan = Plan(Path(folder), options.peers, options.quick, options.repository, options.commits, options.tasks)
        for name in options.names or BENCHES:
            say(f"{time.monotonic() - began:5.0f} s: {name}")
            for row in measure(name, plan):
                say(f"         {' | '.join(filter(None, row.cells()))}")
                rows.append(row)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}
    machine |= {"load_before": load, "seconds": time.monotonic() - began}
    print(*as_lines(rows), sep="\n")
    print("\n{cores} cores, Python {python}, load {load_before:.1f} before, {seconds:.0f} s".format_map(machine))
    if options.json:
        options.json.write_text(json.dumps(as_json(rows, machine), indent=1) + "\n")
    return int(any(isinstance(row, Row) and row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
