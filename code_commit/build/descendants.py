"""The processes that descend from a build: found, adopted when their parent ends, reaped, and ended with the build.

Linux hands us the orphans among our descendants (a subreaper, prctl(2)), so that none gets away by forking twice or by
setsid(2). We reap them as process 1 does: a build may wait until a process is gone. Elsewhere process 1 gets them.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

SET_CHILD_SUBREAPER, GET_CHILD_SUBREAPER = 36, 37  # PR_SET_CHILD_SUBREAPER and PR_GET_... of <linux/prctl.h>
HOLDING_ROUNDS = 100


class Process(NamedTuple):
    """A living process; `group` is its process group, `program` the name of what it runs."""

    pid: int
    parent: int
    group: int
    program: str


class Orphans:
    """The orphans that this process adopts while a build runs, without the children of its own.

    The kernel makes them children of the main thread. Earlier children, processes of our own session, the build itself
    and children of other threads do not count.
    """

    def __init__(self) -> None:
        self._build: int | None = None
        self._strangers: set[int] = set()
        self._left: set[int] = set()

    @contextlib.contextmanager
    def adopted(self) -> Iterator[None]:
        """Adopt orphans inside the block. Survivors live on after it: they are reaped, not ended."""
        children = _children()
        self._left &= children
        self._strangers = children - self._left
        before = _adopt_orphans(True)
        try:
            yield
        finally:
            self.reap()
            self._left |= self._found()
            self._build = None
            _adopt_orphans(before)

    def spare(self, build: int) -> None:
        """Exclude the build's own process: subprocess takes its exit status."""
        self._build = build

    def reap(self) -> None:
        """Take the exit status of the adopted processes that have ended."""
        for pid in self._found():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    def tree(self, build: int | None) -> list[Process]:
        """Return the living processes of a build, parents first: itself, if it has not ended, and its descendants."""
        roots = self._found() - self._left | ({build} if build else set())
        if not roots:
            return []
        listing = {process.pid: process for process in _processes()}
        new = {pid: listing[pid] for pid in roots & listing.keys()}
        tree = dict(new)
        while new := {pid: found for pid, found in listing.items() if found.parent in new and pid not in tree}:
            tree |= new
        return [*tree.values()]

    def _found(self) -> set[int]:
        own = os.getsid(0)
        return {pid for pid in _children() - self._strangers - {self._build} if _session(pid) not in {own, None}}


ORPHANS = Orphans()  # one for this process: the kernel keeps one list of children


def _adopt_orphans(wanted: bool) -> bool:  # noqa: FBT001 - it is the value that is set
    """Make this process the parent of its orphaned descendants, or stop that; return the former state."""
    if sys.platform != "linux":
        return False
    prctl = ctypes.CDLL(None).prctl
    before = ctypes.c_int(0)
    prctl(GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)
    return bool(before.value)


def _children() -> set[int]:
    """Return the children of the main thread. Needs a Linux kernel with CONFIG_PROC_CHILDREN, as distributions have."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:  # noqa: PTH123 - often, and quickly
            return set(map(int, file.read().split()))
    except OSError:
        return set()


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _processes() -> Iterator[Process]:
    if sys.platform != "linux":
        yield from _processes_by_ps()
        return
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - hundreds of names, no paths wanted
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - the same
                line = file.read(512)
        except OSError:
            continue
        begin, end = line.index(b"("), line.rindex(b")")
        state, parent, group = line[end + 2 :].split(maxsplit=3)[:3]
        if state not in (b"Z", b"X"):
            yield Process(int(name), int(parent), int(group), os.fsdecode(line[begin + 1 : end]))


def _processes_by_ps() -> Iterator[Process]:
    """Yield the living processes on a system without /proc, from the output of POSIX ps."""
    columns = [word for column in ("pid", "ppid", "pgid", "state", "comm") for word in ("-o", f"{column}=")]
    listing = subprocess.run(["/bin/ps", "-A", *columns], capture_output=True, check=False).stdout
    for line in listing.splitlines():
        pid, parent, group, state, *program = os.fsdecode(line).split(maxsplit=4)
        if not state.startswith("Z"):
            yield Process(int(pid), int(parent), int(group), os.path.basename("".join(program)))  # noqa: PTH119


def ask_to_end(tree: Callable[[], Iterable[Process]]) -> None:
    """Stop the tree's processes until no new one appears, against fork bombs; then send SIGTERM and SIGCONT to each."""
    held: dict[int, Process] = {}
    for _ in range(HOLDING_ROUNDS):
        new = {process.pid: process for process in tree() if process.pid not in held}
        if not new:
            break
        send(signal.SIGSTOP, new.values())
        held |= new
    for number in (signal.SIGTERM, signal.SIGCONT):
        for pid in held:
            with contextlib.suppress(OSError):
                os.kill(pid, number)


def send(number: int, processes: Iterable[Process]) -> None:
    """Send a signal to all of the processes' groups: a fork bomb is hit at one stroke. Others' groups are skipped."""
    for group in {process.group for process in processes} - {os.getpgrp()}:
        with contextlib.suppress(OSError):
            os.killpg(group, number)
