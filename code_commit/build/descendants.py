"""The descendants of a process, also those that began a session of their own, and how they are ended."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator

SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER and its question of <linux/prctl.h>
GET_CHILD_SUBREAPER = 37
HOLDING_ROUNDS = 100
KILL_PAUSE = 0.01  # seconds between two rounds of SIGKILL
UNKILLABLE_AFTER = 5.0  # seconds of SIGKILL after which a process is stuck in the kernel, or not ours to kill


def adopt_orphans(wanted: bool) -> bool:  # noqa: FBT001 - it is the value that is set
    """Make this process the parent of its orphaned descendants, or stop that; return how it was before.

    Linux only (prctl(2)); elsewhere orphans go to process 1 and nothing happens.
    """
    if sys.platform != "linux":
        return False
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    before = ctypes.c_int(0)
    prctl(GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)
    return bool(before.value)


def find_descendants(root: int, besides: Collection[int] = (), *, with_ended: bool = False) -> list[int]:
    """Return the living descendants of a process, parents first; `besides` are left out with all that is below them.

    `with_ended` adds those that have ended and wait for their parent to take notice.
    """
    children: dict[int, list[int]] = {}
    for pid, parent in _parents(with_ended):
        children.setdefault(parent, []).append(pid)
    found = [root]
    met = {root, *besides}  # a pid may come twice when it is used again while we look
    for pid in found:  # grows while it is walked
        new = [child for child in children.get(pid, ()) if child not in met]
        met.update(new)
        found += new
    return found[1:]


def has_no_child_but(pid: int) -> bool:
    """Tell at the cost of one small file that this process has no other child; False where that is not known.

    As its orphaned descendants become its children (`adopt_orphans`), it has no other descendant then either.
    Needs a Linux kernel with CONFIG_PROC_CHILDREN, and a process of one thread.
    """
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:  # noqa: PTH123 - no path is wanted
            return file.read().split() == [b"%d" % pid]
    except OSError:
        return False


def _parents(with_ended: bool) -> Iterator[tuple[int, int]]:  # noqa: FBT001 - it is handed on
    """Yield (process, parent) of every process."""
    if sys.platform != "linux":
        yield from _parents_by_ps(with_ended)
        return
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - hundreds of names, no paths wanted
        with contextlib.suppress(OSError):
            descriptor = os.open(f"/proc/{name}/stat", os.O_RDONLY)
            try:
                line = os.read(descriptor, 512)
            finally:
                os.close(descriptor)
            state, parent = line[line.rindex(b")") + 2 :].split()[:2]
            if with_ended or state not in (b"Z", b"X"):
                yield int(name), int(parent)


def _parents_by_ps(with_ended: bool) -> Iterator[tuple[int, int]]:  # noqa: FBT001 - the same
    """The same where there is no /proc; the output's form is that of POSIX."""
    listing = subprocess.run(
        ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "state="], capture_output=True, check=False
    ).stdout
    for line in listing.splitlines():
        pid, parent, state = line.split()[:3]
        if with_ended or not state.startswith(b"Z"):
            yield int(pid), int(parent)


def send(number: int, pids: Collection[int]) -> None:
    """Send a signal to each of the processes; those that have gone meanwhile, or are not ours, are passed over."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def ask_to_end(root: int, besides: Collection[int] = ()) -> None:
    """Send SIGTERM to the descendants of a process, once to each, and wake up those that are stopped.

    They are held first, until no new one appears: what forks without end would forever be ahead of the signal. What
    they start afterwards, to clean up, is not meant.
    """
    held: list[int] = []
    for _ in range(HOLDING_ROUNDS):
        new = [pid for pid in find_descendants(root) if pid not in besides and pid not in held]
        if not new:
            break
        send(signal.SIGSTOP, new)
        held += new
    send(signal.SIGTERM, held)
    send(signal.SIGCONT, held)


def kill(pids: Collection[int]) -> None:
    """Send SIGKILL, to whole process groups first: what forks faster than we look is hit at one stroke."""
    own = os.getpgrp()
    groups = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            groups.add(os.getpgid(pid))
    for group in groups - {own}:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    send(signal.SIGKILL, pids)


def kill_descendants(root: int, besides: Collection[int] = ()) -> None:
    """Send SIGKILL to the descendants of a process until none is left, or what is left cannot be killed."""
    deadline = time.monotonic() + UNKILLABLE_AFTER
    while (pids := find_descendants(root, besides, with_ended=True)) and time.monotonic() < deadline:
        kill(pids)
        time.sleep(KILL_PAUSE)
        reap(pids)


def reap(pids: Collection[int]) -> None:
    """Take the exit status of those of the processes that are our children and have ended: no zombie stays."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)


def reap_until_none_is_left() -> None:
    """Wait for children that have been killed already, and take their exit status."""
    deadline = time.monotonic() + UNKILLABLE_AFTER
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.001)


def reap_all() -> None:
    """Take the exit status of every child that has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
