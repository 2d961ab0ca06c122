"""The keeper: the process between the tool and build.sh, which starts it, waits for it, and ends what descends from it.

It is forked from the tool and speaks with it over two pipes. The tool sends single letters: TERMINATE (SIGTERM to the
whole tree, after GRACE seconds SIGKILL), KILL (SIGKILL at once), HANG_UP (build.sh has ended: SIGHUP to what it left in
its process group, the rest may live on). The end of that pipe without HANG_UP means that the tool is gone, be it by
SIGKILL: everything is killed. The keeper answers with lines: `failed ERRNO`, `unboxed`, `ended RETURNCODE`, and `lost
ERRNO` where the system refuses it what it needs for its own work; the end of its answers means that it has finished.

As a subreaper (prctl(2), Linux) it inherits every orphan of the build, so that none gets away by forking twice or by
setsid(2). What shall live on goes to process 1 when the keeper leaves.
"""

import contextlib
import fcntl
import gc
import os
import select
import signal
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from code_commit.build.descendants import (
    KILL_PAUSE,
    UNKILLABLE_AFTER,
    adopt_orphans,
    ask_to_end,
    find_descendants,
    has_no_child_but,
    kill,
    reap,
    reap_all,
    reap_until_none_is_left,
)
from code_commit.build.launch import Launch, Started, launch

GRACE = 5.0  # seconds between SIGTERM and SIGKILL
SETTLING = 0.05  # seconds in which a fresh `nohup` gets to ignore SIGHUP
MOST_SETTLING = 0.5  # seconds for what a shell has forked to become the program that it was forked for
LOOK_PAUSE = 0.05  # seconds between two looks at what is left after SIGTERM

TERMINATE, KILL, HANG_UP = b"T", b"K", b"H"


def fork_keeper(order: Launch, control: int, answers: int) -> int:
    """Fork the keeper and return its process id. It has no descriptors but these and the order's."""
    with warnings.catch_warnings():  # from 3.12 on for threads of ours: the child runs no code that could wait for one
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _become_keeper(order, control, answers)
    return pid


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def _become_keeper(order: Launch, control: int, answers: int) -> NoReturn:
    code = 1  # the tool ends then what is left
    try:
        gc.disable()  # no finalizer of the tool's objects may run here
        os.setsid()
        ignored = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_IGN]
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        control, answers, output, *namespace = _keep_open(
            control, answers, order.output, *(() if order.namespace is None else (order.namespace,))
        )
        adopt_orphans(True)
        own = replace(order, output=output, namespace=namespace[0] if namespace else None)
        Keeper(control, answers).work(own, ignored)
        code = 0
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(answers, b"lost %d\n" % (error.errno or 0))
    finally:
        os._exit(code)


def _keep_open(*descriptors: int) -> list[int]:
    """Close every descriptor but these, and return their new numbers, behind those of stdin, stdout and stderr.

    The tool's lock and its files must not be held here. Numbers below 3 belong to /dev/null, wherever the tool was
    started from, so that build.sh's own can be put there.
    """
    kept = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3) for descriptor in descriptors]
    low = 0
    for descriptor in sorted(kept):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))
    while os.open(os.devnull, os.O_RDWR) < 2:
        pass
    return kept


class Keeper:
    """The keeper at work: what it waits for, and how far the ending of the tree has come."""

    def __init__(self, control: int, answers: int) -> None:
        self._control = control
        self._answers = answers
        self._met: set[int] = set()
        self._kill_at: float | None = None

    def work(self, order: Launch, ignored: Sequence[int]) -> None:
        """Start build.sh and stay until it has ended and the tool has said what becomes of the rest."""
        wake, bell = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(bell, False)
        signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
        started = launch(order, ignored)
        os.close(order.output)
        if isinstance(started, str):
            self._answer(started)
            return
        listen = {wake, self._control}
        has_ended = False
        while True:
            ready, _, _ = select.select(listen, (), (), self._pause())
            if wake in ready:
                os.read(wake, 4096)
            if self._control in ready:
                command = os.read(self._control, 1)
                if command == HANG_UP:
                    self._hang_up(started)
                    return
                self._begin_ending(started, command)
                listen = listen if command else {wake}
            has_ended = has_ended or self._report_end(started)
            if self._kill_at is not None and self._finish(started):
                return

    def _pause(self) -> float | None:
        if self._kill_at is None:
            return None
        return LOOK_PAUSE if time.monotonic() < self._kill_at else KILL_PAUSE

    @staticmethod
    def _hang_up(started: Started) -> None:
        """Do to what is left in the build's process group what a terminal does that closes.

        A process namespace is closed whole, by the end of its first process.
        """
        with contextlib.suppress(OSError):
            if started.first:
                os.kill(started.first, signal.SIGKILL)
            elif not has_no_child_but(started.build):
                _let_settle(started)
                os.killpg(started.group, signal.SIGHUP)
                os.killpg(started.group, signal.SIGCONT)
        reap([started.build])
        if started.first:
            reap_until_none_is_left()

    def _begin_ending(self, started: Started, command: bytes) -> None:
        """Begin to end the whole tree: in good time when asked to, at once when told to or when the tool has gone."""
        now = time.monotonic()
        if command != TERMINATE:
            self._kill_at = now
        elif self._kill_at is None:
            ask_to_end(os.getpid(), {started.monitor} if started.monitor else ())
            self._kill_at = now + GRACE

    def _report_end(self, started: Started) -> bool:
        """Tell the tool once that build.sh has ended. It stays a zombie, which keeps its group's number from others."""
        code = _exit_code(started.build)
        if code is None:
            return False
        self._answer(f"ended {code}")
        return True

    def _finish(self, started: Started) -> bool:
        """Go on with the ending of the tree; True when nothing of it is left, or nothing that can be killed."""
        pids = find_descendants(os.getpid())
        now = time.monotonic()
        if not pids or self._kill_at is None or now >= self._kill_at + UNKILLABLE_AFTER:
            reap_all()
            return True
        if now >= self._kill_at:
            kill(pids)
        self._met.update(pids)
        reap(self._met - {started.build})
        return False

    def _answer(self, line: str) -> None:
        with contextlib.suppress(OSError):  # the tool has gone: its control pipe says so too
            os.write(self._answers, line.encode() + b"\n")


def _let_settle(started: Started) -> None:
    """Give what the build started last the time to say that it wants to live on.

    A shell that ends right behind `nohup server &` leaves a copy of itself that has yet to become nohup.
    """
    begun = time.monotonic()
    quiet_since = begun
    name = _name_of(started.build) or b"?"
    while members := [pid for pid in find_descendants(os.getpid()) if _group_of(pid) == started.group]:
        now = time.monotonic()
        if any(_name_of(pid) == name for pid in members):
            quiet_since = now
        if now - quiet_since >= SETTLING or now - begun >= MOST_SETTLING:
            return
        time.sleep(KILL_PAUSE)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _name_of(pid: int) -> bytes:
    """Return the name of a process's program; it has one where there is /proc, and keeps it as a zombie."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:  # noqa: PTH123 - many of them, and quickly
            return file.read()
    except OSError:
        return b""


def _exit_code(pid: int) -> int | None:
    """Return how a child ended, as subprocess numbers it, and leave it a zombie where that is possible."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        ended, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
    ending = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if ending is None:
        return None
    return ending.si_status if ending.si_code == os.CLD_EXITED else -ending.si_status
