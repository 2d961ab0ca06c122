"""What came of a build, and what it left running."""

import contextlib
import os
import pickle
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from code_commit.build import Builder, Sandbox
from code_commit.errors import CodeCommitError
from code_commit.project import Project
from code_commit.runs.record import BuildResult

T = TypeVar("T")


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


def in_time(seconds: float, build: Callable[[], Built]) -> Built:
    """Return the first of three builds that takes less than the seconds, or the last: a busy machine delays one of them."""
    built = build()
    for _ in range(2):
        if built.seconds >= seconds:
            built = build()
    return built


def run_build(
    project: Project,
    write: Callable[[bytes], object],
    *,
    timeout: float,
    environment: Mapping[str, str],
    sandbox: Sandbox | None = None,
    warn: Callable[[str], object] = lambda _: None,
) -> BuildResult:
    """Run the one build of a run."""
    with Builder(project, sandbox) as builder:
        return builder.run(write, timeout=timeout, environment=environment, warn=warn)


def open_files() -> set[tuple[str, str]]:
    """Return each descriptor of this process with what it leads to.

    What an earlier test left open may be closed between two calls, when its object is collected: look for what is new.
    """
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor that listed the others
            found.add((link.name, str(link.readlink())))
    return found


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


def as_user(uid: int, work: Callable[[], T]) -> T:
    """Do something in a child process that belongs to the user, and return its result.

    What the work needs is imported before: the user may not be able to read where Python is installed.
    """
    here, there = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside the threads of the test runner
        pid = os.fork()
    if pid == 0:
        try:
            os.close(here)
            if uid != os.geteuid():
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            answer = pickle.dumps(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again on the other side
            answer = pickle.dumps(error)
        with os.fdopen(there, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        result = pickle.loads(pipe.read())
    os.waitpid(pid, 0)
    if isinstance(result, BaseException):
        raise result
    return result
