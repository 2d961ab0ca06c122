"""The environments that are measured: ours, as a user installs it, and each peer's, made by the bench itself."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1]
CACHE = Path("~/.cache/code-commit-bench").expanduser()
KEPT_UNUSED = 86_400.0  # seconds
INSTALL_TIMEOUT = 900.0  # seconds


class UnavailableError(Exception):
    """Something that is measured against cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def script(self, name: str) -> Path:
        """Return a command that a package has installed."""
        return self.folder / "bin" / name

    def pip(self, *arguments: str | Path) -> None:
        """Run pip in it. Raises UnavailableError with the last line of what it said."""
        command = [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--compile", *arguments]
        run_installer(command)


def run_installer(command: list[str | Path], folder: Path | None = None) -> None:
    """Run an installer to its end. Raises UnavailableError with the last line of what it said."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"it cannot be installed: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise UnavailableError(f"it cannot be installed: {last}")


def install_ours(cache: Path = CACHE) -> Environment:
    """Return an environment that holds this package as it is now, installed as a user does: not editable, compiled.

    Each state of the source has its own, so that two runs of the benchmarks do not take it from one another; what was
    not used for a day goes.
    """
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    environment = Environment(cache / f"code-commit-{_source_digest()}-{python}")
    used = environment.folder / "used"
    with locked(cache):
        if not used.exists():
            shutil.rmtree(environment.folder, ignore_errors=True)
            venv.create(environment.folder, with_pip=True)
            environment.pip(SOURCE)
        used.touch()
        for mark in cache.glob("code-commit-*-python*/used"):
            if mark.stat().st_mtime < time.time() - KEPT_UNUSED:
                shutil.rmtree(mark.parent, ignore_errors=True)
    return environment


def _source_digest() -> str:
    digest = hashlib.sha256((SOURCE / "pyproject.toml").read_bytes())
    for folder in ("code_commit", "system_prompts", "agent-config.example"):
        for path in sorted((SOURCE / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path.relative_to(SOURCE)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def locked(cache: Path) -> Iterator[None]:
    """Hold the cache's lock, for the time of an installation."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
