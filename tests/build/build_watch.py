"""What came of a build, and what it left running."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from code_commit.errors import CodeCommitError
from code_commit.run_record import BuildResult


@dataclass
class Built:
    """What came of one build: its result or the error, all of its output, and how long the call took."""

    result: BuildResult | None = None
    error: CodeCommitError | None = None
    pieces: list[bytes] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def output(self) -> str:
        return b"".join(self.pieces).decode("utf-8", "replace")


def alive(mark: str) -> list[int]:
    """Return the processes that have the word in their environment and have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def alive_after(mark: str, seconds: float) -> list[int]:
    """Return what is still alive when it has had so long to end."""
    until = time.monotonic() + seconds
    while (found := alive(mark)) and time.monotonic() < until:
        time.sleep(0.02)
    return found
