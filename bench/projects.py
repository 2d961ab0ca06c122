"""The projects to work on: git work trees of real source."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import count, cycle
from pathlib import Path

from bench.measuring import CommandFailedError
from bench.plan import SOURCE

GIT_CONFIG = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
INTO_ONE_PACK = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=0")
"""Files over the threshold go into a pack at once: ten thousand loose objects would take a minute."""


def git(root: Path, *arguments: str) -> bytes:
    """Run git in the folder and return what it prints. Raises CommandFailedError."""
    done = subprocess.run(["git", *GIT_CONFIG, *arguments], cwd=root, check=False, capture_output=True)
    if done.returncode != 0:
        raise CommandFailedError(f"git {arguments[0]}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def make_repository(root: Path, build: str = "") -> None:
    """Make an empty work tree, with this as build.sh."""
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n/.aider*\n")
    if build:
        (root / "build.sh").write_text(f"#!/bin/sh\n{build}\n")
        (root / "build.sh").chmod(0o755)
    clear_log(root)


def clear_log(root: Path) -> None:
    """Leave an empty agent-config."""
    shutil.rmtree(root / "agent-config", ignore_errors=True)
    (root / "agent-config").mkdir(mode=0o700)


def commit_all(root: Path) -> None:
    """Commit everything, and let the disk come to rest."""
    git(root, *INTO_ONE_PACK, "add", "-A")
    git(root, "commit", "-qm", "start")
    os.sync()


def source_texts() -> list[str]:
    """Return the contents of this package's modules."""
    return [path.read_text("utf-8") for path in sorted((SOURCE / "code_commit").rglob("*.py"))]


def sources(*, files: int = 0, total_bytes: int = 0) -> Iterator[tuple[str, str]]:
    """Yield names and contents, a hundred a folder, until there are so many files and so many bytes."""
    written, texts = 0, cycle(source_texts())
    for number in count():
        if number >= files and written >= total_bytes:
            return
        text = f"# module {number}\n{next(texts)}"
        yield f"src/part{number // 100}/module{number}.py", text
        written += len(text)


def write_file(path: Path, text: str) -> None:
    """Write a file, and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
