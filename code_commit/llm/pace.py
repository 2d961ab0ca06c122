"""The pace of requests: so many requests and tokens a minute to a model, for all runs of this user together."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from code_commit.errors import MachineError
from code_commit.interrupts import begin_call
from code_commit.llm.endpoint import Endpoint, Timing

_LONGEST_NAP = 1.0  # seconds
_CLOCK_ERROR = 60.0  # seconds by which the clocks of two machines may differ
_LONGEST_TURN = 24 * 3600.0  # seconds that runs wait for one another, unless their pace is slower
_MOST_TOKENS = 1 << 24  # more than one request has, and its answer


class Pace:
    """Lets the requests to one model at one address begin as far apart as its settings say.

    All runs share two files in `folder`: a queue, which the run has locked that asks next, and the time from which it
    may ask, beside the time when that was written. A run that is killed leaves nothing in them that holds up others,
    nor does a disk that damages them.
    """

    def __init__(self, endpoint: Endpoint, folder: Path | None, timing: Timing) -> None:
        settings = endpoint.settings
        self._per_request = 60 / (settings.requests_per_minute or float("inf"))
        self._per_token = 60 / (settings.tokens_per_minute or float("inf"))
        self._furthest = max(_LONGEST_TURN, _MOST_TOKENS * self._per_token)
        self._name = sha256(f"{endpoint.base_url} {endpoint.model}".encode()).hexdigest()[:16]
        self._folder, self._timing = folder, timing

    def wait(self, tokens: int, tell: Callable[[str], object]) -> None:
        """Return when a request with a prompt of so many tokens may begin. Raises MachineError and Interrupted."""
        gap = max(self._per_request, tokens * self._per_token)
        if gap:
            with self._locked(f"{self._name}.queue"):
                while left := self._take(gap):
                    begin_call()
                    tell(f"waiting for its turn, {left:.0f} s (requests_per_minute, tokens_per_minute)")
                    self._timing.sleep(min(left, _LONGEST_NAP))

    def add(self, tokens: int) -> None:
        """Count tokens that were not known before the request, if that can be written: the answer is there."""
        if self._per_token:
            with suppress(MachineError), self._locked(self._name) as file:
                self._write(file, max(self._read(file), self._timing.wall_clock()) + tokens * self._per_token)

    def _take(self, gap: float) -> float:
        """Take the turn if it has come, and return 0; else return the seconds that are left."""
        with self._locked(self._name) as file:
            now = self._timing.wall_clock()
            left = max(0.0, self._read(file) - now)
            if not left:
                self._write(file, now + gap)
            return left

    def _read(self, file: int) -> float:
        """Return when the next request may begin; 0 if no pace is written, or the clock was set back since."""
        try:
            written, at = map(float, os.pread(file, 99, 0).split())
        except ValueError:
            return 0.0
        is_past = written <= self._timing.wall_clock() + _CLOCK_ERROR
        return at if is_past and at <= written + self._furthest else 0.0  # not with NaN or infinity either

    def _write(self, file: int, at: float) -> None:
        os.ftruncate(file, 0)
        os.pwrite(file, f"{self._timing.wall_clock()!r} {at!r}".encode(), 0)

    @contextmanager
    def _locked(self, name: str) -> Iterator[int]:
        """Open a file of the pace, which others wait for until the block ends."""
        if self._folder is None:
            raise _no_pace("XDG_STATE_HOME is in the project")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise _no_pace(f"{self._folder}: {error.strerror}") from error


def _no_pace(why: str) -> MachineError:
    advice = "name another folder with XDG_STATE_HOME, or omit these settings"
    return MachineError(f"requests_per_minute and tokens_per_minute cannot be enforced: {why}; {advice}")
