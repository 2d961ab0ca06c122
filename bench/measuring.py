"""Measuring commands: what one cost, and two of them in turns."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

METER = Path(__file__).with_name("meter.py")
TIMEOUT = 300.0  # seconds for one command


class CommandFailedError(Exception):
    """A command ended otherwise than it should, so that there is nothing to compare."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command cost. `peak` is that of its largest process, in bytes; `output` its stdout."""

    wall: float
    cpu: float
    peak: int
    output: str


@dataclass(frozen=True)
class Command:
    """A command to measure. `prepare` runs before each time and is not measured."""

    argv: Sequence[str | Path]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], object] = lambda: None
    exit_code: int = 0
    timeout: float = TIMEOUT
    times_itself: bool = False
    """Whether the last line of its output, wall and CPU seconds of the part that counts, stands for the whole."""

    def run(self) -> Cost:
        """Run it once. Raises CommandFailedError, with the end of what it said."""
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
            wall, cpu, peak, code = report.read_text().split()
        if int(code) != self.exit_code:
            raise CommandFailedError(f"{self.argv[0]} ended with {code}, not {self.exit_code}: {said[-2000:]}")
        if self.times_itself:
            wall, cpu = said.rstrip().rpartition("\n")[2].split()
        return Cost(float(wall), float(cpu), int(peak), said)

    def _start(self, report: Path, output: int) -> bool:
        """Run the meter; False when the time was over before its end."""
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
            end_session(process)
        return True


def end_session(process: "subprocess.Popen[Any]") -> None:
    """Kill what a command that was started in a session of its own has left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def plain_environment() -> dict[str, str]:
    """Return the few variables that every command gets: no keys, no settings, no proxies of whoever measures."""
    names = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL")
    return {name: os.environ[name] for name in names if name in os.environ} | {"GIT_CONFIG_NOSYSTEM": "1"}


def in_turns(commands: Mapping[str, Command], rounds: int, *, warm_up: bool = True) -> dict[str, list[Cost]]:
    """Run the commands one after the other, that many rounds: what disturbs one round disturbs all of them."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for command in commands.values() if warm_up else ():
        command.run()
    for _ in range(rounds):
        for name, command in commands.items():
            costs[name].append(command.run())
    return costs


def timed_call(work: Callable[[], object], keep: Callable[[object], None] = lambda _: None) -> Cost:
    """Call a function of this process. What it returns goes to `keep`, and only then away."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    cost = Cost(time.perf_counter() - wall, time.process_time() - cpu, peak=0, output="")
    keep(result)
    return cost
