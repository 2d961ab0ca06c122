"""What every benchmark is given: where to work, how thoroughly, and the environments that are measured."""

import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bench.rows import Row, Skipped

SOURCE = Path(__file__).parents[1]
STEPS = Path(__file__).with_name("steps.py")
PEERS = Path("~/.cache/code-commit-bench").expanduser()
INSTALL_TIMEOUT = 900.0  # seconds


class UnavailableError(Exception):
    """Something that is measured against cannot be had here; the message says why."""


@dataclass(frozen=True)
class Plan:
    """`quick` takes the smallest sizes, two rounds and no peers to install. `folder` is there for one run alone.

    `repository` is the one whose latest commits are replayed as answers, so many of them; `tasks` is how many a
    fleet has.
    """

    folder: Path
    peers: Path = PEERS
    quick: bool = False
    repository: Path = SOURCE
    commits: int = 300
    tasks: int = 200

    @cached_property
    def environment(self) -> Path:
        """An environment with this package, installed when it is first asked for, as a user does: not editable."""
        return make_environment(self.folder / "ours", SOURCE)

    @property
    def command(self) -> Path:
        """Our command."""
        return self.environment / "bin" / "code-commit"

    @property
    def python(self) -> Path:
        """Our interpreter."""
        return self.environment / "bin" / "python"

    def step(self, *arguments: str | Path) -> list[str | Path]:
        """Return the command line that runs one of `steps.py` with our interpreter."""
        return [self.python, "-P", STEPS, *arguments]

    def peer(self, package: str, version: str, script: str) -> Path:
        """Return the command of another tool, installed when it is not there yet. Raises UnavailableError."""
        folder = self.peers / f"{package}-{version}"
        if not (folder / "installed").exists():
            make_environment(folder, f"{package}=={version}")
            (folder / "installed").touch()
        return folder / "bin" / script

    def rounds(self, number: int) -> int:
        """Return how many rounds to run where so many are wanted."""
        return min(2, number) if self.quick else number

    def sizes(self, *sizes: int) -> tuple[int, ...]:
        """Return which of the sizes to measure."""
        return sizes[:1] if self.quick else sizes

    @contextmanager
    def work_folder(self) -> Iterator[Path]:
        """Make a folder for the time of one measurement."""
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


Bench = Callable[[Plan], Iterable[Row | Skipped]]


def make_environment(folder: Path, package: str | Path) -> Path:
    """Make a virtual environment that has the package, compiled. Raises UnavailableError."""
    venv.create(folder, with_pip=True, clear=True)
    options = ["-q", "--disable-pip-version-check", "--compile"]
    command = [folder / "bin" / "python", "-m", "pip", "install", *options, package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{package} cannot be installed: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise UnavailableError(f"{package} cannot be installed: {last}")
    return folder


def say(line: str) -> None:
    """Say how far it is."""
    print(line, file=sys.stderr, flush=True)
