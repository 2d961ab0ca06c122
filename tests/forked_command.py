"""The command in processes of its own, forked from one that has imported it: most tests need no start of Python.

`python -P tests/forked_command.py DESCRIPTOR` serves calls from a socket until it is closed. A call is the words after
`code-commit`, the folder and the environment as JSON, with the three standard streams; the answers are the process's
id at once and its exit code at the end.
"""

import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

LONGEST_CALL = 1 << 17  # bytes
OF_EXTRAS = ("code_commit.fleet", "code_commit.commands.mcp")
NEEDS_A_START = ("PATH", "LANG", "LC_", "LD_", "PYTHON", "COVERAGE")
"""How the variables begin that Python, or the import of the command, looks at."""


class ForkedCommand:
    """The serving process, for one call at a time."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._channel, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        words = [sys.executable, "-P", __file__, str(there.fileno())]
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
        changed = {name for name, _ in environment.items() ^ self._environment.items()}
        return not any(name.startswith(NEEDS_A_START) for name in changed)

    def run(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: bytes, timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Return what subprocess.run would."""
        with self._lock, ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            files[0].write(stdin)
            files[0].seek(0)
            call = json.dumps([list(map(os.fsdecode, arguments)), str(folder), dict(environment)]).encode("utf-8")
            self._channel.settimeout(None)
            socket.send_fds(self._channel, [call], [file.fileno() for file in files])
            pid = int(self._channel.recv(64))
            self._channel.settimeout(timeout)
            try:
                code = int(self._channel.recv(64))
            except TimeoutError:
                self._channel.settimeout(None)
                os.kill(pid, signal.SIGKILL)
                self._channel.recv(64)
                raise
            output = []
            for file in files[1:]:
                file.seek(0)
                output.append(file.read())
        return subprocess.CompletedProcess(["code-commit", *arguments], code, *output)


def serve(channel: socket.socket) -> None:
    while True:
        call, streams, _, _ = socket.recv_fds(channel, LONGEST_CALL, 3)
        if not call:
            return
        pid = os.fork()
        if pid == 0:
            channel.close()
            become(*json.loads(call), streams)
        for stream in streams:
            os.close(stream)
        channel.send(str(pid).encode())
        channel.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def become(arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["code-commit", *arguments]
    from code_commit.__main__ import command

    command()


def import_all() -> None:
    """Import what a run may need. What only an extra brings is imported by who needs it, as ever."""
    import code_commit

    for module in pkgutil.walk_packages(code_commit.__path__, "code_commit."):
        if not module.name.startswith(OF_EXTRAS):
            with suppress(ImportError):
                importlib.import_module(module.name)


if __name__ == "__main__":
    import_all()
    serve(socket.socket(fileno=int(sys.argv[1])))
