"""Measuring commands: what one of them cost."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

METER = Path(__file__).with_name("meter.py")
TIMEOUT = 300.0  # seconds for one command
VARIABLES = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL")


class CommandFailedError(Exception):
    """A command ended otherwise than it should, so that there is nothing to compare."""


class UnavailableError(Exception):
    """Something that a comparison needs cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What something cost: seconds, and the bytes of its largest process; `figure` is what else may be counted."""

    wall: float = 0.0
    cpu: float = 0.0
    peak: float = 0.0
    figure: float = 0.0


@dataclass(frozen=True)
class Command:
    """A command to measure. `prepare` runs before each time and is not measured."""

    argv: Sequence[str | Path]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], object] = lambda: None
    exit_code: int = 0
    unavailable: int | None = None
    """The exit code by which it says that it cannot be done on this machine."""
    timeout: float = TIMEOUT
    times_itself: bool = False
    """Whether the last line of its output has `wall cpu peak` of the part that counts, and peak 0 is that of all."""

    def run(self) -> Cost:
        """Run it once. Raises UnavailableError, and CommandFailedError with the end of what it said."""
        self.prepare()
        with tempfile.TemporaryDirectory() as folder:
            report, output = Path(folder, "report"), Path(folder, "output")
            with output.open("wb") as file:
                finished = self._start(report, file.fileno())
            said = output.read_text("utf-8", "replace")
            if not finished:
                raise CommandFailedError(f"{self.argv[0]} did not end within {self.timeout} s: {said[-2000:]}")
            if not report.exists():
                raise CommandFailedError(f"{self.argv[0]} could not be started: {said[-2000:]}")
            wall, cpu, peak, code = map(float, report.read_text().split())
        if code == self.unavailable:
            raise UnavailableError(said.strip()[-300:])
        if code != self.exit_code:
            raise CommandFailedError(f"{self.argv[0]} ended with {code:.0f}, not {self.exit_code}: {said[-2000:]}")
        if self.times_itself:
            wall, cpu, own_peak = map(float, said.rstrip().rpartition("\n")[2].split())
            peak = own_peak or peak
        return Cost(wall, cpu, peak)

    def _start(self, report: Path, output: int) -> bool:
        """Run the meter, and end what it left; False when the time was over before its end."""
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", METER, report, *self.argv],
            cwd=self.folder,
            env=plain_environment() | dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return True


def plain_environment() -> dict[str, str]:
    """Return the few variables that a command gets: no keys, settings, proxies or PYTHON* of whoever measures."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ} | {"GIT_CONFIG_NOSYSTEM": "1"}
