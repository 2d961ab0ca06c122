"""Every benchmark, or those that are named: `python -m bench [NAME..]`."""

import sys

from bench import (
    apply,
    cached_layout,
    capture,
    ignore_check,
    large_job,
    parse,
    rollup,
    sandbox,
    startup,
    whole_run,
)
from bench.running import Bench, make_parser, run

BENCHES: dict[str, Bench] = {
    "startup": startup.measure,
    "whole_run": whole_run.measure,
    "large_job": large_job.measure,
    "apply": apply.measure,
    "parse": parse.measure,
    "capture": capture.measure,
    "ignore_check": ignore_check.measure,
    "rollup": rollup.measure,
    "cached_layout": cached_layout.measure,
    "sandbox": sandbox.measure,
}


def main() -> int:
    """Run them and print one table."""
    parser = make_parser(__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default all: {', '.join(BENCHES)}")
    options = parser.parse_args()
    if unknown := set(options.names) - BENCHES.keys():
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    return run(((name, BENCHES[name]) for name in options.names or BENCHES), options)


if __name__ == "__main__":
    sys.exit(main())
