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
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

LONGEST_CALL = 1 << 17  # bytes
OF_EXTRAS = ("code_commit.fleet", "code_commit.commands.mcp")
NEEDED_LATER = (
    *("ctypes", "difflib", "encodings.idna", "ssl", "textwrap", "tomllib", "traceback"),
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
    """Fork for each call a process that waits for the one that it forks."""
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        call, descriptors, _, _ = socket.recv_fds(channel, LONGEST_CALL, 4)
        if not call:
            break
        *streams, answers = descriptors
        if os.fork() == 0:
            channel.close()
            pid = os.fork()
            if pid == 0:
                os.close(answers)
                become(*json.loads(call), streams)
            os.write(answers, str(pid).encode())
            os.write(answers, str(exit_code(pid)).encode())
            os.read(answers, 1)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
    with suppress(ChildProcessError):
        while os.wait():
            pass


def exit_code(pid: int) -> int:
    """Wait for the process's end; where the system can, leave it to be reaped, for then its id is nobody else's."""
    if not hasattr(os, "waitid"):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status


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
    from code_commit.paths.checks import file_kind
    from code_commit.runs.record import load_run_record

    for module in pkgutil.walk_packages(code_commit.__path__, "code_commit."):
        if not module.name.startswith(OF_EXTRAS):
            with suppress(ImportError):
                importlib.import_module(module.name)
    for name in NEEDED_LATER:
        importlib.import_module(name)
    with suppress(ValueError):
        load_run_record(b"")
    file_kind("a.txt")


if __name__ == "__main__":
    os.fsync = os.fstat
    import_all()
    for extra in sys.argv[2:]:
        importlib.import_module(extra)
    gc.freeze()  # what the forked ones share stays shared
    serve(socket.socket(fileno=int(sys.argv[1])))
