"""One build from its start to its end: the output as it comes, the timeout, the signals, and what is left behind."""

import contextlib
import fcntl
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from code_commit.build.descendants import UNKILLABLE_AFTER, adopt_orphans, find_descendants, kill_descendants
from code_commit.build.keeper import GRACE, HANG_UP, KILL, TERMINATE, fork_keeper
from code_commit.build.launch import Launch
from code_commit.build.signals import DeferredSignals

PIPE_BYTES = 1 << 20  # what the build may be ahead
CHUNK = 1 << 18  # fits into a processor's cache, where the Redactor reads it several times
HEAD_BYTES = 4096
LINGER = 0.25  # seconds in which the last output of a `tee` behind build.sh may still come
LINGER_BYTES = 16 << 20  # a pipe that is held by what writes without end is given up after so much
HEARTBEAT = 0.5  # seconds
KEEPER_PATIENCE = 2.0  # seconds past the last deadline after which the keeper itself counts as lost


@dataclass(slots=True)
class Ending:
    """How the build ended: `answer` is the keeper's last word (`ended 1`, `failed 2`), empty where there was none."""

    answer: str = ""
    timed_out: bool = False
    seconds: float = 0.0
    output_bytes: int = 0
    head: bytes = b""


def supervise(order: Launch, write: Callable[[bytes], object], timeout: float, signals: DeferredSignals) -> Ending:
    """Run the order to its end and hand its output to `write` as it comes; `timeout` in seconds, 0 for none.

    Whatever raises meanwhile, a signal's handler or `write`, ends the whole tree of processes first and is raised
    again then.
    """
    (output, output_end), (control_end, control), (answers, answers_end) = os.pipe(), os.pipe(), os.pipe()
    with contextlib.ExitStack() as at_the_end:
        for descriptor in (output, control, answers):
            at_the_end.callback(os.close, descriptor)
        at_the_end.callback(adopt_orphans, adopt_orphans(True))
        os.set_blocking(output, False)
        with contextlib.suppress(AttributeError, OSError):  # Linux, and within the user's limit: fewer, larger reads
            fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        try:
            keeper = fork_keeper(replace(order, output=output_end), control_end, answers_end)
        finally:
            for descriptor in (output_end, control_end, answers_end):
                os.close(descriptor)
        supervision = Supervision(keeper, output, control, answers, signals, write)
        supervision.watch(timeout)
        supervision.finish()
        return supervision.ending


class Supervision:
    """The tool's side of a running build. Descriptors are owned by the caller."""

    def __init__(  # noqa: PLR0913, PLR0917 - one process, its three pipes, and who listens
        self,
        keeper: int,
        output: int,
        control: int,
        answers: int,
        signals: DeferredSignals,
        write: Callable[[bytes], object],
    ) -> None:
        self.ending = Ending()
        self._keeper = keeper
        self._output = output
        self._control = control
        self._answers = answers
        self._signals = signals
        self._write: Callable[[bytes], object] | None = write
        self._listen = {output, answers, signals.wake}
        self._begun = time.monotonic()
        self._error: BaseException | None = None
        self._lost_at: float | None = None

    def watch(self, timeout: float) -> None:
        """Copy the output and wait: for the end of build.sh, or, once it is told to end, for that of the whole tree."""
        while self._answers in self._listen and not (self.ending.answer and self._lost_at is None):
            now = time.monotonic()
            if timeout and now >= self._begun + timeout and self._lost_at is None:
                self.ending.timed_out = True
                self._end_tree(TERMINATE)
            if self._lost_at is not None and now >= self._lost_at:
                break
            pause = HEARTBEAT
            if timeout and self._lost_at is None:
                pause = min(pause, self._begun + timeout - now)
            self._attend(pause)
        self.ending.seconds = time.monotonic() - self._begun

    def finish(self) -> None:
        """Take the last of the output, let go what may live on, end what may not; raise what was raised meanwhile."""
        until = time.monotonic() + (LINGER if self._lost_at is None else 0)
        most = self.ending.output_bytes + LINGER_BYTES
        while self._output in self._listen and self.ending.output_bytes < most:
            ready, _, _ = select.select({self._output}, (), (), max(0.0, until - time.monotonic()))
            if not ready:
                break
            self._copy()
        if self.ending.answer and self._lost_at is None:
            adopt_orphans(False)
            self._tell(HANG_UP)
        if not self._keeper_has_gone():
            self._end_without_keeper()
        if self._error is not None:
            raise self._error

    def _attend(self, pause: float) -> None:
        """Do what there is to do now, at most one piece of each kind."""
        try:
            ready, _, _ = select.select(self._listen, (), (), max(0.0, pause))
            if self._answers in ready:
                self._hear()
            if self._output in ready:
                self._copy()
            self._signals.deliver()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised again when the tree has ended
            self._note(error)
        with contextlib.suppress(OSError):
            os.kill(self._keeper, signal.SIGCONT)  # in case the build stopped it

    def _copy(self) -> None:
        """Hand on what the pipe holds, up to one chunk."""
        try:
            piece = os.read(self._output, CHUNK)
        except BlockingIOError:
            return
        if not piece:
            self._listen.discard(self._output)
            return
        self.ending.output_bytes += len(piece)
        if len(self.ending.head) < HEAD_BYTES:
            self.ending.head += piece[: HEAD_BYTES - len(self.ending.head)]
        if self._write is not None:
            self._write(piece)

    def _hear(self) -> None:
        line = os.read(self._answers, 256)
        if line:
            self.ending.answer = line.decode().partition("\n")[0]
        else:
            self._listen.discard(self._answers)

    def _note(self, error: BaseException) -> None:
        """Remember what was raised and end the tree for it: the first time with patience, the second without."""
        if self._error is None:
            self._error = error
            self._end_tree(TERMINATE)
        else:
            self._end_tree(KILL)
        if not isinstance(error, KeyboardInterrupt):
            self._write = None  # the sink is broken; the pipe is emptied all the same, or the build could not end

    def _end_tree(self, command: bytes) -> None:
        grace = GRACE if command == TERMINATE else 0.0
        self._lost_at = time.monotonic() + grace + UNKILLABLE_AFTER + KEEPER_PATIENCE
        self._tell(command)

    def _tell(self, command: bytes) -> None:
        with contextlib.suppress(OSError):
            os.write(self._control, command)

    def _keeper_has_gone(self) -> bool:
        """Wait for the keeper's own end; True when it came as it should: with a last word, before its time was over."""
        until = time.monotonic() + KEEPER_PATIENCE
        while time.monotonic() < until:
            pid, status = os.waitpid(self._keeper, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status) == 0
            select.select((), (), (), 0.001)
        return False

    def _end_without_keeper(self) -> None:
        """Kill the keeper and everything that it left to us: the build has killed or outlived it."""
        adopt_orphans(True)
        with contextlib.suppress(OSError):
            os.kill(self._keeper, signal.SIGKILL)
            os.waitpid(self._keeper, 0)
        own = os.getsid(0)
        others = []
        for pid in find_descendants(os.getpid()):
            with contextlib.suppress(OSError):
                others += [pid] if os.getsid(pid) == own else []
        kill_descendants(os.getpid(), others)
