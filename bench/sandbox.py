"""What a sandbox adds to a build: `build.sh` that does nothing, off against guard and strict, taken in turns.

`python -m bench.sandbox`
"""

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from code_commit.build import choose_sandbox, run_build
from code_commit.config import Settings
from code_commit.errors import NotSetUpError
from code_commit.project import find_project

ROUNDS = 40
MODES = ("off", "guard", "strict")
TARGET_MS = 15.0


def measure(rounds: int = ROUNDS) -> dict[str, object]:
    """Return the figures as JSON has them: medians in ms, and the ratio and the difference to the bare build."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        (root / ".gitignore").write_text("/agent-config\n")
        (root / "build.sh").write_text("#!/bin/sh\nexit 0\n")
        (root / "build.sh").chmod(0o755)
        (root / "agent-config").mkdir(mode=0o700)
        project = find_project(root)
        sandboxes = {}
        for mode in MODES:
            try:
                sandboxes[mode] = choose_sandbox(mode, project, Settings())[0]
            except NotSetUpError as error:
                print(f"{mode} is left out: {error}")
        times: dict[str, list[float]] = {mode: [] for mode in sandboxes}
        for _ in range(rounds):
            for mode, sandbox in sandboxes.items():
                started = time.perf_counter()
                run_build(project, lambda _: None, timeout=60, environment=dict(os.environ), sandbox=sandbox)
                times[mode].append((time.perf_counter() - started) * 1000)
    bare = statistics.median(times["off"])
    rows = {
        mode: {
            "median_ms": statistics.median(values),
            "best_ms": min(values),
            "worst_ms": max(values),
            "ratio": statistics.median(values) / bare,
            "added_ms": statistics.median(values) - bare,
        }
        for mode, values in times.items()
    }
    return {"bench": "sandbox", "rounds": rounds, "rows": rows, "target_added_ms": TARGET_MS}


def main() -> int:
    """Print the figures as a table, then as JSON."""
    figures = measure()
    for mode, row in figures["rows"].items():
        print(
            f"{mode:6}  {row['median_ms']:6.1f} ms ({row['best_ms']:.1f} to {row['worst_ms']:.1f})  "
            f"{row['ratio']:.2f} times the bare build, +{row['added_ms']:.1f} ms (target +{TARGET_MS:.0f})"
        )
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
