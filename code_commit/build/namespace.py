"""A user namespace in which every user is who he is outside: what a sandbox of root's needs to be closed.

Inside it, root's capabilities count for files and for changing the user, but not for the processes and the kernel
outside: /proc/PID/root of a process of another user, or of one of root's without capabilities, leads around every
mount, and cannot be entered from another user namespace (ptrace_may_access of the kernel).
"""

import fcntl
import os
import subprocess
from pathlib import Path

_NEW_USER = 0x10000000  # CLONE_NEWUSER of <linux/sched.h>; os.setns exists from Python 3.12 on


def make_identity_namespace(*, nestable: bool) -> int | None:
    """Return a descriptor of a fresh user namespace that maps each user and group to itself; None where that fails.

    Root alone can make one. Without `nestable` nobody can make a further one in it.
    """
    try:
        return _make(nestable=nestable)
    except (OSError, subprocess.SubprocessError):
        return None


def _make(*, nestable: bool) -> int | None:
    holder = subprocess.Popen(
        ["unshare", "--user", "sh", "-c", "echo; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with holder:
        if holder.stdout is None or not holder.stdout.read(1):
            return None
        try:
            for table in ("uid_map", "gid_map"):
                Path(f"/proc/{holder.pid}/{table}").write_text(_identity(table), "ascii")
            if not nestable:
                _forbid_nesting(holder.pid)
            with open(f"/proc/{holder.pid}/ns/user", "rb") as namespace:  # noqa: PTH123 - a number beyond stderr's is wanted
                return fcntl.fcntl(namespace, fcntl.F_DUPFD_CLOEXEC, 3)
        finally:
            holder.kill()


def enter_namespace(namespace: int) -> None:
    """Move this process, which must have a single thread, into the user namespace. Raises OSError."""
    import ctypes

    if ctypes.CDLL(None, use_errno=True).setns(namespace, _NEW_USER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _forbid_nesting(holder: int) -> None:
    """Allow no user namespace below the holder's, as bwrap's own --disable-userns does."""
    script = "echo 0 >/proc/sys/user/max_user_namespaces"
    subprocess.run(["nsenter", f"--user=/proc/{holder}/ns/user", "sh", "-c", script], capture_output=True, check=True)


def _identity(table: str) -> str:
    """Return the map of a namespace within ours: the first column of our own map holds what exists here."""
    ranges = [line.split() for line in Path(f"/proc/self/{table}").read_text("ascii").splitlines()]
    return "".join(f"{first} {first} {count}\n" for first, _, count in ranges)
