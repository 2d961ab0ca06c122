"""A project to run the whole job in: a git work tree with a query, a rollup, and a build that wants one right line."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path

from bench.environments import SOURCE
from bench.measuring import CommandFailedError

BUILD = "#!/bin/sh\ngrep -q '^right$' answer.txt\n"
GIT_CONFIG = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
INTO_ONE_PACK = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=0")
"""Files over the threshold go into a pack at once: ten thousand loose objects would take a minute."""


@dataclass(frozen=True, slots=True)
class Job:
    """The project's folder; `reset` puts it back into the state of before any run."""

    root: Path

    def reset(self) -> None:
        """Take away what a run has left."""
        (self.root / "answer.txt").write_text("not yet\n")
        shutil.rmtree(self.root / "agent-config" / "logs", ignore_errors=True)
        for leftover in (".aider.chat.history.md", ".aider.input.history"):
            (self.root / leftover).unlink(missing_ok=True)


def make_job(root: Path, *, files: int, rollup_bytes: int) -> Job:
    """Lay out a project with so many committed files, and a rollup of that many bytes of real source."""
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n/.aider*\n")
    (root / "build.sh").write_text(BUILD)
    (root / "build.sh").chmod(0o755)
    write_sources(root / "src", files=files)
    agent_config = root / "agent-config"
    agent_config.mkdir(mode=0o700)
    (agent_config / "query.txt").write_text("Write the line `right` into answer.txt, and nothing else.\n")
    (agent_config / "codeRollup.txt").write_text(rollup_text(rollup_bytes), "utf-8")
    job = Job(root)
    job.reset()
    commit_all(root)
    return job


def git(root: Path, *arguments: str, exit_codes: Sequence[int] = (0,)) -> None:
    """Run git in the folder. Raises CommandFailedError."""
    done = subprocess.run(["git", *GIT_CONFIG, *arguments], cwd=root, check=False, capture_output=True)
    if done.returncode not in exit_codes:
        raise CommandFailedError(f"git {arguments[0]}: {done.stderr.decode(errors='replace')}")


def git_output(root: Path, *arguments: str) -> bytes:
    """Run git in the folder and return what it prints."""
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout


def commit_all(root: Path) -> None:
    """Commit everything, and let the disk come to rest."""
    git(root, *INTO_ONE_PACK, "add", "-A")
    git(root, "commit", "-qm", "start")
    os.sync()


def source_texts() -> list[str]:
    """Return the contents of this package's modules."""
    return [path.read_text("utf-8") for path in sorted((SOURCE / "code_commit").rglob("*.py"))]


def rollup_text(size: int) -> str:
    """Return about so many bytes as a rollup has them."""
    pieces, total = [], 0
    for number, text in zip(count(), cycle(source_texts())):
        pieces.append(f"--- src/{number}.py ---\n{text}\n")
        total += len(pieces[-1])
        if total >= size:
            return "".join(pieces)
    return ""


def write_sources(folder: Path, *, files: int = 0, total_bytes: int = 0) -> None:
    """Write real source files, a hundred a folder, until there are so many of them and of their bytes."""
    texts: Iterator[str] = cycle(source_texts())
    written = 0
    for number in count():
        if number >= files and written >= total_bytes:
            return
        path = folder / f"part{number // 100}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"# module {number}\n{next(texts)}"
        path.write_text(text, "utf-8")
        written += len(text)


def prepared(job: Job, answer_with: Callable[[Sequence[str]], None], answers: Sequence[str]) -> Callable[[], None]:
    """Return what sets both up for one run: the project as it was, the LLM at its first answer."""

    def prepare() -> None:
        job.reset()
        answer_with(answers)

    return prepare
