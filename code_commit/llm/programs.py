"""Programs that the user names: one that prints an API key (`key_command`), and one that is the LLM (`command:`).

Each runs in an empty folder of its own, in a process group that ends with it, in the environment as it is. It is looked
up without the folders of the project, where an answer could write it.
"""

import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from code_commit.errors import NotSetUpError
from code_commit.redaction import Redactor
from code_commit.terminal import last_lines, shown
from code_commit.trust import find_program, find_top, is_inside, search_outside, with_parent_death_signal

KEY_TIMEOUT = 60.0  # seconds for a program that prints a key
_LONGEST_KEY = 1 << 16  # bytes of a key command's output
_LONGEST_SAID = 1 << 14  # bytes that are kept of the end of stderr
_PIECE = 1 << 16
_LINGER = 0.25  # seconds in which the last output may still come once the program has ended
_TICK = 0.1


class Finished(NamedTuple):
    """The end of a program: its exit code as subprocess numbers it, None where it was ended, and what it printed."""

    code: int | None
    output: bytes
    said: str  # the last lines of stderr
    is_late: bool = False
    is_too_long: bool = False

    @property
    def how(self) -> str:
        """How it ended, in words that follow its name."""
        if self.is_too_long:
            return "printed too much"
        if self.is_late or self.code is None:
            return "has not ended in time"
        if self.code < 0:
            with suppress(ValueError):
                return f"was ended by {signal.Signals(-self.code).name}"
        return f"ended with exit code {self.code}"


def words_of(command: str, root: Path) -> list[str]:
    """Return the words of a command, its program as an absolute path outside the project. Raises NotSetUpError."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise NotSetUpError(f"a command cannot be split into words as a shell does: {error}") from error
    if not words:
        raise NotSetUpError("a command names no program")
    name = os.path.expanduser(words[0])  # noqa: PTH111 - no error
    if os.sep not in name:
        found = find_program(name, root)
        if found is None:
            raise NotSetUpError(f"there is no program {shown(name)} on the PATH outside the project: install it")
        return [found, *words[1:]]
    if is_inside(name, find_top(str(root))):
        where = "a relative path" if not Path(name).is_absolute() else "in the project, where an answer may write it"
        raise NotSetUpError(f"the program {shown(name)} is {where}: name one by its absolute path outside the project")
    if not os.access(name, os.X_OK) or Path(name).is_dir():
        raise NotSetUpError(f"the program {shown(name)} does not exist, or is not executable")
    return [name, *words[1:]]


def run_program(  # noqa: PLR0913 - each of them by its name
    words: Sequence[str],
    root: Path,
    *,
    given: bytes = b"",
    timeout: float,
    longest: int,
    progressed: Callable[[int], object] = lambda _: None,
) -> Finished:
    """Run a program with this input to its end, and end what it leaves in its process group. Raises OSError.

    `timeout` is in seconds, `longest` the bytes of its output; `progressed` is told how many have come.
    """
    with TemporaryDirectory(prefix="code-commit-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            with_parent_death_signal(list(words), root),
            cwd=folder,
            env=search_outside(os.environ, root),
            stdin=subprocess.PIPE if given else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            return _Watch(process, given, longest, progressed).finish(time.monotonic() + timeout)
        finally:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                with suppress(OSError):
                    stream.close()


class _Watch:
    """Feeds a program and reads what it prints."""

    def __init__(
        self, process: subprocess.Popen[bytes], given: bytes, longest: int, progressed: Callable[[int], object]
    ) -> None:
        self._process, self._left, self._longest, self._progressed = process, memoryview(given), longest, progressed
        self._output, self._said = bytearray(), bytearray()
        self._selector = selectors.DefaultSelector()
        for stream, event in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._selector.register(stream, event)

    def finish(self, until: float) -> Finished:
        """Return the end of the program, at the latest at the time `until` of the monotonic clock."""
        ended = None
        with self._selector:
            while self._selector.get_map() or self._process.poll() is None:
                now = time.monotonic()
                if len(self._output) > self._longest:
                    return self._as_finished(None, is_too_long=True)
                if ended is None and self._process.poll() is not None:
                    ended = now
                if now >= until or (ended is not None and now >= ended + _LINGER):  # a child of it holds the pipes
                    break
                self._attend(min(_TICK, max(until - now, 0)))
        code = self._process.poll()
        return self._as_finished(code, is_late=code is None)

    def _as_finished(self, code: int | None, *, is_late: bool = False, is_too_long: bool = False) -> Finished:
        said = "\n".join(map(shown, last_lines(bytes(self._said))))
        return Finished(code, bytes(self._output), said, is_late, is_too_long)

    def _attend(self, pause: float) -> None:
        if not self._selector.get_map():
            time.sleep(min(pause, 0.01))
        for key, _ in self._selector.select(pause):
            stream: IO[bytes] = key.fileobj  # type: ignore[assignment]
            if stream is self._process.stdin:
                self._feed(stream)
            elif piece := os.read(stream.fileno(), _PIECE):
                self._keep(stream, piece)
            else:
                self._selector.unregister(stream)

    def _feed(self, stream: IO[bytes]) -> None:
        """Write what fits; a program that reads no input is none the worse for it."""
        with suppress(BlockingIOError):
            try:
                self._left = self._left[os.write(stream.fileno(), self._left[:_PIECE]) :]
            except BrokenPipeError:
                self._left = self._left[:0]
            if not self._left:
                self._selector.unregister(stream)
                stream.close()

    def _keep(self, stream: IO[bytes], piece: bytes) -> None:
        if stream is self._process.stdout:
            self._output += piece
            self._progressed(len(self._output))
        else:
            self._said += piece
            del self._said[:-_LONGEST_SAID]


class KeyProgram:
    """The program that prints the API key: run once, and again when its key is refused."""

    def __init__(self, command: str, root: Path, problem_of: Callable[[str], str | None]) -> None:
        """Raise NotSetUpError where there is no such program. `problem_of` tells what is wrong with a key."""
        self._words, self._root, self._problem_of = words_of(command, root), root, problem_of
        self.printed = ""  # the key that it printed last, "" before
        self.censor = Redactor([])
        self._shared: list[Redactor] = []

    def share(self, redactor: Redactor) -> None:
        """Let a redactor censor each key that the program prints."""
        self._shared.append(redactor)
        redactor.add(self.printed)

    def key(self) -> str:
        """Return the key. Raises NotSetUpError."""
        return self.printed or self.renew()

    def renew(self) -> str:
        """Run the program again and return its key. Raises NotSetUpError, whose message does not quote it."""
        name = shown(Path(self._words[0]).name)
        try:
            done = run_program(self._words, self._root, timeout=KEY_TIMEOUT, longest=_LONGEST_KEY)
        except OSError as error:
            raise NotSetUpError(f"key_command: {name} cannot be run: {error.strerror}") from error
        value = done.output.decode("utf-8", "replace").strip()
        for redactor in (self.censor, *self._shared):
            redactor.add(value)
        if done.code != 0:
            said = self.censor.redact_cut(done.said.strip().rpartition("\n")[2][-300:])
            raise NotSetUpError(f"key_command: {name} {done.how}" + (f": {said}" if said else "; run it by hand"))
        if problem := self._problem_of(value):
            fault = problem.partition(": ")[0]  # its advice is for a file
            raise NotSetUpError(f"what key_command prints {fault}: run {name} by hand, and log in if it asks")
        self.printed = value
        return value
