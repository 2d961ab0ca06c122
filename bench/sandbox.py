"""What a sandbox adds to a build: `build.sh` that does nothing, off against guard and strict, taken in turns.

`python -m bench.sandbox`
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from bench.job import git
from bench.rows import Row, Skipped, Target
from bench.running import Plan, run_alone
from code_commit.build import Sandbox, choose_sandbox, run_build
from code_commit.config import Settings
from code_commit.errors import NotSetUpError
from code_commit.project import Project, find_project

ROUNDS = 40
TARGET = Target(0.015, of="difference")
BARE = "the bare build"


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield what each sandbox takes."""
    with plan.work_folder() as root:
        project = _make_project(root)
        sandboxes: dict[str, Sandbox | None] = {"off": None}
        for mode in ("guard", "strict"):
            try:
                sandboxes[mode] = choose_sandbox(mode, project, Settings())[0]
            except NotSetUpError as error:
                yield Skipped("sandbox", f"a build in `{mode}`", BARE, str(error))
        times: dict[str, list[float]] = {mode: [] for mode in sandboxes}
        for _ in range(plan.rounds(ROUNDS)):
            for mode, sandbox in sandboxes.items():
                times[mode].append(_build(project, sandbox))
    for mode in sandboxes.keys() - {"off"}:
        yield Row("sandbox", f"a build in `{mode}`", BARE, times[mode], times["off"], target=TARGET)


def _make_project(root: Path) -> Project:
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n")
    (root / "build.sh").write_text("#!/bin/sh\nexit 0\n")
    (root / "build.sh").chmod(0o755)
    (root / "agent-config").mkdir(mode=0o700)
    return find_project(root)


def _build(project: Project, sandbox: Sandbox | None) -> float:
    started = time.perf_counter()
    run_build(project, lambda _: None, timeout=60, environment=dict(os.environ), sandbox=sandbox)
    return time.perf_counter() - started


if __name__ == "__main__":
    raise SystemExit(run_alone("sandbox", measure, __doc__))
