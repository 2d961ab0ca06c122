"""How the keeper brings build.sh to life: fork, a session of its own, plain signals, and where wanted a sandbox."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from code_commit.build.namespace import enter_namespace

EXEC_FAILED = 127

_PLAIN_SIGNALS = ("SIGPIPE", "SIGXFZ", "SIGXFSZ")  # those that subprocess restores too: Python ignores them itself
_ASKING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD)


@dataclass(frozen=True, slots=True)
class Launch:
    """What shall be started. `output` is the descriptor for stdout and stderr, `folder` the working directory.

    `boxed` says that the first word is bwrap, `keeps_monitor` that bwrap's own process must stay until the end (it
    carries a process namespace); `namespace` is the user namespace to enter before.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    output: int = -1
    boxed: bool = False
    keeps_monitor: bool = False
    namespace: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """The process whose end is the build's, and its process group.

    `monitor` is bwrap's own process where it stays, `first` the first one of the sandbox's process namespace.
    """

    build: int
    group: int
    monitor: int | None = None
    first: int | None = None


def launch(order: Launch, ignored: Sequence[int]) -> Started | str:
    """Start the process; where that fails return the keeper's answer. `ignored` signals stay ignored in it."""
    return _launch_boxed(order, ignored) if order.boxed else _launch_plain(order, ignored)


def _launch_plain(order: Launch, ignored: Sequence[int]) -> Started | str:
    complaint, complain = os.pipe()
    pid = os.fork()
    if pid == 0:
        _execute(order, ignored, complain)
    os.close(complain)
    number = _read_all(complaint)
    if number:
        os.waitpid(pid, 0)
        return f"failed {int(number)}"
    return Started(pid, pid)


def _launch_boxed(order: Launch, ignored: Sequence[int]) -> Started | str:
    """Start bwrap, let it build the sandbox, and only then let build.sh begin.

    Where bwrap's own process is not needed it is ended before: it stands outside the sandbox, and what runs inside as
    the same user could reach the hidden files through its /proc/PID/root. build.sh then becomes the keeper's child.
    """
    complaint, complain = os.pipe()
    info, info_end = os.pipe()
    block_end, block = os.pipe()
    monitor = os.fork()
    if monitor == 0:
        os.set_inheritable(info_end, True)
        os.set_inheritable(block_end, True)
        held = ("--info-fd", str(info_end), "--block-fd", str(block_end))
        _execute(replace(order, argv=(order.argv[0], *held, *order.argv[1:])), ignored, complain)
    for descriptor in (complain, info_end, block_end):
        os.close(descriptor)
    number = _read_all(complaint)
    child = re.search(rb'"child-pid": *(\d+)', b"" if number else _read_all(info))
    if child is None:
        os.waitpid(monitor, 0)
        return f"failed {int(number)}" if number else "unboxed"
    started = Started(monitor, int(child[1]), monitor, int(child[1]) if order.keeps_monitor else None)
    if not order.keeps_monitor and _is_set_up(monitor, block_end):
        os.kill(monitor, signal.SIGKILL)
        os.waitpid(monitor, 0)
        started = Started(int(child[1]), int(child[1]))
    os.write(block, b"!")
    os.close(block)
    return started


def _is_set_up(monitor: int, block_end: int) -> bool:
    """Wait until bwrap's own process has nothing more to do: then it has closed its copy of the block descriptor.

    False where it ended or cannot be looked at (an installation with the set-user-ID bit).
    """
    for _ in range(5000):
        try:
            if str(block_end) not in {entry.name for entry in Path(f"/proc/{monitor}/fd").iterdir()}:
                return True
        except OSError:
            return False
        time.sleep(0.0002)
    return False


def _execute(order: Launch, ignored: Sequence[int], complain: int) -> NoReturn:
    """Become the program, in the forked process; where that fails write the errno down and leave."""
    try:
        os.setsid()
        for name in _PLAIN_SIGNALS:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        for number in _ASKING_SIGNALS:
            signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(order.output, 1)
        os.dup2(order.output, 2)
        os.chdir(order.folder)
        if order.namespace is not None:
            enter_namespace(order.namespace)
        os.execve(order.argv[0], order.argv, order.environment)  # noqa: S606 - build.sh is what is wanted
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(complain, str(error.errno or 0).encode())
    finally:
        os._exit(EXEC_FAILED)


def _read_all(descriptor: int) -> bytes:
    data = b""
    while piece := os.read(descriptor, 4096):
        data += piece
    os.close(descriptor)
    return data
