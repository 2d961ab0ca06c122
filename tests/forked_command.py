"""The command, and Dask's, in processes of their own, forked from one that has imported them: no start of Python.

`python -I tests/forked_command.py DESCRIPTOR MODULE...` imports the modules and serves calls from a socket until it is
closed. A call is the words, the folder, the environment, what to hide and what to execute before as JSON, with the three
standard streams and a socket, where the answers are the process's id at once and its exit code at the end.
A fleet starts Python anew, and imports Dask, unless Python is isolated.

They do not wait for the disk, which a run does thirteen times: that nothing is lost in a power cut tests/apply shows,
and a kill takes nothing that was written.
"""

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

LONGEST_CALL = 1 << 17  # bytes
OF_EXTRAS = ("code_commit.fleet", "code_commit.commands.mcp")
NEEDED_LATER = (
    *("ctypes", "difflib", "encodings.ascii", "encodings.idna", "encodings.utf_8_sig"),
    *("ssl", "textwrap", "tomllib", "traceback"),
    *("httpcore", "httpx", "jinja2", "pathspec", "pydantic", "pygments.lexers"),
    *("rich.ansi", "rich.live", "rich.table"),
)
"""What the command imports when it comes to that, a run that asks an LLM in a tenth of a second."""

NEEDS_A_START = ("LANG", "LC_", "LD_", "PYTHON", "COVERAGE")
"""How the variables begin that Python, or the import of the command, looks at."""

PROGRAMS = {
    "code-commit": ("code_commit.__main__", "command"),
    "dask-scheduler": ("distributed.cli.dask_scheduler", "main"),
    "dask-worker": ("distributed.cli.dask_worker", "main"),
}

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 1 << 14, 1 << 18


class ForkedProcess:
    """A process that was forked for a call, in the words of subprocess.Popen."""

    def __init__(self, words: Sequence[str], channel: socket.socket, output: tuple[BinaryIO, BinaryIO]) -> None:
        self.args = words
        self.pid = int(channel.recv(64))
        self.returncode: int | None = None
        self._channel = channel
        self._output = output

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._channel.settimeout(timeout)
            try:
                self.returncode = int(self._channel.recv(64))
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._channel.shutdown(socket.SHUT_WR)
            self._channel.recv(1)  # until then it is there, though it has ended
            self._channel.close()
        return self.returncode

    def printed(self) -> str:
        """Return what it has printed so far."""
        output = self._output[0].fileno()
        return os.pread(output, os.fstat(output).st_size, 0).decode(errors="replace")

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        for file in self._output:
            file.seek(0)
        output, complaint = (file.read().decode(errors="replace") for file in self._output)
        return output, complaint

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.kill()
        self.wait()
        for file in self._output:
            file.close()


class ForkedCommand:
    """The serving process."""

    def __init__(self, environment: Mapping[str, str], *modules: str) -> None:
        self.environment = environment
        self._channel, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-I", __file__, str(there.fileno()), *modules]
        quiet = subprocess.DEVNULL
        with there:
            self._process = subprocess.Popen(
                words, env=environment, pass_fds=[there.fileno()], stdin=quiet, stdout=quiet
            )

    def close(self) -> None:
        self._channel.close()
        self._process.wait()

    def can_run(self, environment: Mapping[str, str]) -> bool:
        """Tell whether a start of Python would make no difference."""
        changed = {name for name, _ in environment.items() ^ self.environment.items()}
        return not any(name.startswith(NEEDS_A_START) for name in changed)

    def start(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        stdin: bytes = b"",
        hidden: str = "",
        before: str = "",
    ) -> ForkedProcess:
        """Start one of the programs; the folder `hidden` is empty for it, and the Python text `before` is executed."""
        call = json.dumps([list(map(os.fsdecode, words)), str(folder), dict(environment), hidden, before]).encode(
            "utf-8"
        )
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - the process closes them
        with there, tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            socket.send_fds(self._channel, [call], [file.fileno() for file in (given, *output, there)])
        return ForkedProcess(words, here, output)

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        stdin: bytes = b"",
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Return what subprocess.run would."""
        words = ["code-commit", *arguments]
        with self.start(words, folder, environment, stdin) as process:
            output, complaint = process.communicate(timeout)
        return subprocess.CompletedProcess(words, process.wait(), output, complaint)


def serve(channel: socket.socket) -> None:
    """Fork a process for each call, and tell the caller when it has ended: it is reaped when the caller knows that."""
    woken, waker = socket.socketpair()
    for end in (woken, waker):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    running: dict[int, int] = {}
    told: dict[int, int] = {}
    sources: list[socket.socket | int] = [channel, woken]
    while channel in sources or running or told:
        ready, _, _ = select.select([*sources, *told], [], [])
        for caller in told.keys() & set(ready):
            with suppress(ChildProcessError):
                os.waitpid(told[caller], 0)
            del told[caller]
            os.close(caller)
        if woken in ready:
            woken.recv(LONGEST_CALL)
            tell_ends(running, told)
        if channel not in ready:
            continue
        call, descriptors, _, _ = socket.recv_fds(channel, LONGEST_CALL, 4)
        if not call:
            sources.remove(channel)
            continue
        *streams, caller = descriptors
        pid = fork_for(json.loads(call), streams, [*sources, waker, caller, *running.values(), *told])
        running[pid] = caller
        os.write(caller, str(pid).encode())


def fork_for(call: list[Any], streams: list[int], kept: Iterable[socket.socket | int]) -> int:
    """Fork the process of a call. What is kept here it must not have: a closed socket tells its other end something."""
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in kept:
            os.close(each if isinstance(each, int) else each.detach())
        become(*call, streams)
    for stream in streams:
        os.close(stream)
    return pid


def tell_ends(running: dict[int, int], told: dict[int, int]) -> None:
    """Tell each caller that waits for a process which has ended; it is one of those that were told then."""
    for pid, caller in list(running.items()):
        code = exit_code(pid)
        if code is not None:
            del running[pid]
            told[caller] = pid
            with suppress(BrokenPipeError):
                os.write(caller, str(code).encode())


def exit_code(pid: int) -> int | None:
    """Return how the process has ended; where the system can, leave it to be reaped, for then its id is nobody else's."""
    if not hasattr(os, "waitid"):
        ended, status = os.waitpid(pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    return None if end is None else end.si_status if end.si_code == os.CLD_EXITED else -end.si_status


def become(
    words: list[str], folder: str, environment: dict[str, str], hidden: str, before: str, streams: list[int]
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if hidden:
        hide(hidden)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = words
    del globals()["__file__"]  # as after `python -c`: the workers of a fleet would import it
    exec(before, {})
    module, function = PROGRAMS[words[0]]
    getattr(importlib.import_module(module), function)()


def hide(folder: str) -> None:
    """Lay an empty file system over the folder, for this process and its children; leave it where that is forbidden."""
    libc = ctypes.CDLL(None)
    if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0:
        libc.mount(b"none", os.fsencode(folder), b"tmpfs", 0, None)


def import_all() -> None:
    """Import what a run may need, and prepare to read records. What only an extra brings is imported by who needs it."""
    import code_commit
    from code_commit.commands import parse
    from code_commit.paths.checks import file_kind
    from code_commit.regex import _Late
    from code_commit.runs.record import load_run_record

    for module in pkgutil.walk_packages(code_commit.__path__, "code_commit."):
        if not module.name.startswith(OF_EXTRAS):
            with suppress(ImportError):
                importlib.import_module(module.name)
    for name in NEEDED_LATER:
        importlib.import_module(name)
    with suppress(ValueError):
        load_run_record(b"0")
    parse(["--max-repairs=1"])  # argparse compiles patterns of its own
    file_kind("a.txt")
    for pattern in gc.get_objects():
        if type(pattern) is _Late:
            assert pattern.groups >= 0  # compiles it, and `re` keeps that


if __name__ == "__main__":
    os.fsync = os.fstat
    import_all()
    for extra in sys.argv[2:]:
        importlib.import_module(extra)
    gc.freeze()  # what the forked ones share stays shared
    serve(socket.socket(fileno=int(sys.argv[1])))
