"""The environments that are measured: ours, as a user installs it, and each peer's, made by the bench itself."""

import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1]
CACHE = Path("~/.cache/code-commit-bench").expanduser()
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
    """Return an environment that holds this package as it is now, installed as a user does: not editable, compiled."""
    folder = cache / f"code-commit-python{sys.version_info.major}.{sys.version_info.minor}"
    environment = Environment(folder)
    if not environment.python.exists():
        venv.create(folder, with_pip=True)
        environment.pip("hatchling")
    with tempfile.TemporaryDirectory() as wheels:
        run_installer(
            [environment.python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", wheels, SOURCE]
        )
        environment.pip(*Path(wheels).glob("*.whl"))  # what it depends on, where that has grown
        environment.pip("--force-reinstall", "--no-deps", *Path(wheels).glob("*.whl"))
    return environment
