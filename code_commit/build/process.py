"""One supervised build: its output as it comes, its timeout, the signals, and the processes that it leaves behind."""

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from code_commit.build.descendants import ORPHANS, Process, ask_to_end, send
from code_commit.interrupts import DeferredSignals

PIPE_BYTES = 1 << 20  # what the build may be ahead
CHUNK = 1 << 18  # fits into the cache of a processor, where the Redactor reads it several times
HEAD_BYTES = 4096
TICK = 0.05  # seconds between two polls of state that no signal reports
GRACE = 5.0  # seconds between SIGTERM and SIGKILL
UNKILLABLE_AFTER = 5.0  # seconds of SIGKILL after which a process is stuck in the kernel, or not ours to kill
PAUSE = 0.01  # seconds between two looks at processes that are about to end
LINGER = 0.25  # seconds in which the last output may still come, of a `tee` that build.sh did not wait for
LINGER_BYTES = 16 << 20  # the most that is still read from a pipe that a background process writes to
MOST_SETTLING = 0.5  # seconds for a fork of the shell to execute its program
UNSETTLED = {"build.sh", "bash", "nohup"}  # these may be about to execute a program that ignores SIGHUP
HANG_UP_PAUSE = 0.05  # seconds for processes that do not ignore SIGHUP to end


@dataclass(slots=True)
class Started:
    """A build that was started: `process` is build.sh itself, or the bubblewrap around it.

    `group` is build.sh's process group; None in a process namespace, where nothing lives on. Bubblewrap reports to
    `status`; `guardian` ends the build where the tool is killed.
    """

    process: subprocess.Popen[bytes]
    group: int | None = None
    status: FileIO | None = None
    guardian: subprocess.Popen[bytes] | None = None

    def was_executed(self) -> bool:
        """Tell, when it has ended, whether build.sh was executed: bubblewrap reports the exit code of nothing else."""
        return self.status is None or b'"exit-code"' in (self.status.read() or b"")

    def close(self) -> None:
        for stream in (self.process.stdout, self.status):
            if stream is not None:
                stream.close()
        end_guardian(self.guardian)


def end_guardian(guardian: subprocess.Popen[bytes] | None) -> None:
    if guardian is not None:
        guardian.kill()
        guardian.communicate()


@dataclass(slots=True)
class Ending:
    """How the build ended: `returncode` is as subprocess numbers it, `head` how its output began."""

    returncode: int | None = None
    was_executed: bool = True
    timed_out: bool = False
    seconds: float = 0.0
    output_bytes: int = 0
    head: bytes = b""


def start_process(
    argv: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    pass_fds: Collection[int] = (),
    group: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program without input, with one pipe for all its output, in a session or the group. Raises OSError."""
    process = subprocess.Popen(
        argv,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=group is None,
        process_group=group,
        pass_fds=pass_fds,
    )
    with contextlib.suppress(AttributeError, OSError):  # Linux, and within the user's limit: fewer, larger reads
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)  # type: ignore[arg-type]
    return process


def supervise(
    start: Callable[[], Started], write: Callable[[bytes], object], timeout: float, signals: DeferredSignals
) -> Ending:
    """Start a build, hand its output to `write` as it comes, and return how it ended; `timeout` in seconds, 0 for none.

    An exception of `write` or of a signal's handler ends the build, with all its descendants, and is raised again.
    """
    with ORPHANS.adopted():
        begun = time.monotonic()
        started = start()
        ORPHANS.spare(started.process.pid)
        with contextlib.closing(started):
            supervision = Supervision(started, write, signals)
            supervision.watch(begun, timeout)
            supervision.finish()
        return supervision.ending


class Supervision:
    def __init__(self, started: Started, write: Callable[[bytes], object], signals: DeferredSignals) -> None:
        assert started.process.stdout is not None  # noqa: S101 - it is a pipe
        self.ending = Ending()
        self._started = started
        self._signals = signals
        self._write: Callable[[bytes], object] | None = write
        self._looked = time.monotonic()
        self._kill_at: float | None = None
        self._error: BaseException | None = None
        self._output: int | None = started.process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        self._poll.register(signals.wake, select.POLLIN)
        os.set_blocking(self._output, False)

    def watch(self, begun: float, timeout: float) -> None:
        """Copy the output until build.sh has ended, with all its descendants where it was told to end."""
        while not self._is_over():
            self._attend(TICK if self._kill_at is None else PAUSE)
            if timeout and self._kill_at is None and time.monotonic() >= begun + timeout:
                self.ending.timed_out = True
                self._end(GRACE)
        self.ending.seconds = time.monotonic() - begun
        self.ending.returncode = self._started.process.returncode
        self.ending.was_executed = self._started.was_executed()

    def finish(self) -> None:
        """Read the last output, release the processes that may live on, end the others; raise the recorded error."""
        until = time.monotonic() + (LINGER if self._kill_at is None else 0)
        most = self.ending.output_bytes + LINGER_BYTES
        while self._output is not None and self.ending.output_bytes < most:
            pause = max(0, until - time.monotonic())
            if not self._attend(pause) and not pause:
                break
        if self._kill_at is None and self.ending.was_executed and self._started.group is not None:
            self._hang_up(self._started.group)
        elif self._kill_at is None:
            self._end(0)
        while self._kill_at is not None and not self._is_over():
            self._attend(PAUSE)
        if self._error is not None:
            raise self._error

    def _is_over(self) -> bool:
        """Tell whether build.sh has ended; or, once it was told to end, whether nothing of it is left to kill."""
        has_ended = self._started.process.poll() is not None
        if self._kill_at is None:
            return has_ended
        tree = self._tree()
        now = time.monotonic()
        if now >= self._kill_at:
            send(signal.SIGKILL, tree)
        return not tree or now >= self._kill_at + UNKILLABLE_AFTER

    def _tree(self) -> list[Process]:
        process = self._started.process
        return ORPHANS.tree(process.pid if process.poll() is None else None)

    def _attend(self, pause: float) -> bool:
        """Handle output and signals, waiting at most `pause` seconds; tell whether there was output."""
        ready: set[int] = set()
        try:
            ready = {descriptor for descriptor, _ in self._poll.poll(1000 * pause)}
            if self._output in ready:
                self._copy()
            if self._signals.wake in ready or time.monotonic() >= self._looked + TICK:
                self._looked = time.monotonic()
                ORPHANS.reap()
                if self._signals.deliver() and self._kill_at is not None:
                    self._end(0)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again when the build has ended
            self._note(error)
        return bool(ready - {self._signals.wake})

    def _copy(self) -> None:
        assert self._output is not None  # noqa: S101 - it was ready
        piece = os.read(self._output, CHUNK)
        if not piece:
            self._poll.unregister(self._output)
            self._output = None
            return
        self.ending.output_bytes += len(piece)
        if len(self.ending.head) < HEAD_BYTES:
            self.ending.head += piece[: HEAD_BYTES - len(self.ending.head)]
        if self._write is not None:
            self._write(piece)

    def _note(self, error: BaseException) -> None:
        """Record an error and end the build: the first time with a grace period, the second time at once."""
        self._end(GRACE if self._kill_at is None else 0)
        self._error = self._error or error
        if not isinstance(error, KeyboardInterrupt):
            self._write = None  # the sink is broken; the pipe is emptied all the same, or the build could not end

    def _end(self, grace: float) -> None:
        """Begin to end the whole build, with SIGKILL after `grace` seconds. Bubblewrap ends with its content."""
        if grace:
            bubblewrap = self._started.process.pid if self._started.status else None
            ask_to_end(lambda: [process for process in self._tree() if process.pid != bubblewrap])
        self._kill_at = time.monotonic() + grace

    def _hang_up(self, group: int) -> None:
        """Hang up on the rest of build.sh's process group, as a closing terminal does.

        A shell that ends right after `nohup server &` leaves a copy of itself that has yet to become nohup.
        """
        self._wait_while(lambda: any(left.program in UNSETTLED for left in self._left_in(group)), MOST_SETTLING)
        if self._left_in(group) or sys.platform != "linux":  # elsewhere no orphan is known
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGHUP)
                os.killpg(group, signal.SIGCONT)
            self._wait_while(lambda: bool(self._left_in(group)), HANG_UP_PAUSE)

    def _wait_while(self, condition: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while condition() and time.monotonic() < until:
            time.sleep(PAUSE)

    def _left_in(self, group: int) -> list[Process]:
        return [process for process in self._tree() if process.group == group]
