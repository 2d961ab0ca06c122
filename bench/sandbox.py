"""What a sandbox adds to a build: `build.sh` that does nothing, off against guard and strict, taken in turns."""

import json
from collections.abc import Iterator

from bench.measuring import Command
from bench.plan import Plan
from bench.projects import make_repository
from bench.rows import Row, Skipped, Target

ROUNDS = 40
TARGET = Target(0.015, of="difference")
BARE = "the bare build"


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield what each sandbox takes."""
    with plan.work_folder() as folder:
        make_repository(folder / "project", "exit 0")
        said = Command(plan.step("builds", str(plan.rounds(ROUNDS))), folder / "project").run().output
    figures = json.loads(said.rstrip().rpartition("\n")[2])
    times = figures["times"]
    for mode in times.keys() - {"off"}:
        yield Row(f"a build in `{mode}`", BARE, times[mode], times["off"], target=TARGET)
    for mode, why in figures["skipped"].items():
        yield Skipped(f"a build in `{mode}`", BARE, why)
