"""What a sandbox adds to a build: `build.sh` that does nothing, off against guard and strict, taken in turns.

`python -m bench.sandbox`
"""

import json
from collections.abc import Iterator
from pathlib import Path

from bench.job import git
from bench.measuring import Command
from bench.rows import Row, Skipped, Target
from bench.running import Plan, run_alone

ROUNDS = 40
TARGET = Target(0.015, of="difference")
BARE = "the bare build"
SCRIPT = Path(__file__).parent / "scripts" / "empty_builds.py"


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield what each sandbox takes."""
    with plan.work_folder() as root:
        git(root, "init", "-q")
        (root / ".gitignore").write_text("/agent-config\n")
        (root / "build.sh").write_text("#!/bin/sh\nexit 0\n")
        (root / "build.sh").chmod(0o755)
        (root / "agent-config").mkdir(mode=0o700)
        said = Command([plan.ours.python, SCRIPT, str(plan.rounds(ROUNDS))], root).run().output
    figures = json.loads(said.rstrip().rpartition("\n")[2])
    times = figures["times"]
    for mode in sorted(times.keys() - {"off"}):
        yield Row("sandbox", f"a build in `{mode}`", BARE, times[mode], times["off"], target=TARGET)
    for mode, why in figures["skipped"].items():
        yield Skipped("sandbox", f"a build in `{mode}`", BARE, why)


if __name__ == "__main__":
    raise SystemExit(run_alone("sandbox", measure, __doc__))
