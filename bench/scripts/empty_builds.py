"""Build in the current folder without a sandbox and in each, in turns; print the seconds as JSON.

    python empty_builds.py ROUNDS

`skipped` says why a sandbox could not be had. A process of its own: each build forks it, which costs the more the
larger it is.
"""

import json
import os
import sys
import time

from code_commit.build import Sandbox, choose_sandbox, run_build
from code_commit.config import Settings
from code_commit.errors import NotSetUpError
from code_commit.project import find_project


def main() -> None:
    """Build."""
    project, skipped = find_project(), {}
    sandboxes: dict[str, Sandbox | None] = {"off": None}
    for mode in ("guard", "strict"):
        try:
            sandboxes[mode] = choose_sandbox(mode, project, Settings())[0]
        except NotSetUpError as error:
            skipped[mode] = str(error)
    times: dict[str, list[float]] = {mode: [] for mode in sandboxes}
    for _ in range(int(sys.argv[1])):
        for mode, sandbox in sandboxes.items():
            started = time.perf_counter()
            run_build(project, lambda _: None, timeout=60, environment=dict(os.environ), sandbox=sandbox)
            times[mode].append(time.perf_counter() - started)
    print(json.dumps({"times": times, "skipped": skipped}))


if __name__ == "__main__":
    main()
