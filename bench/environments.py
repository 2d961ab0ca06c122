"""What is measured: environments with the built wheel of a tree or of a revision, and those of other tools.

They are kept from one time to the next, by what the wheel holds.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.measuring import CommandFailedError, UnavailableError

SOURCE = Path(__file__).parents[1]
CACHE = Path("~/.cache/code-commit-bench").expanduser()
INSTALL_TIMEOUT = 900.0  # seconds
INSTALLED = "installed"  # the file that says that an environment is whole
KEPT = 6  # environments with a wheel


@dataclass(frozen=True, slots=True)
class Tool:
    """An environment that has code-commit; `name` is how a table calls it."""

    folder: Path
    name: str = "this tree"

    @property
    def command(self) -> Path:
        return self.folder / "bin" / "code-commit"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def with_fleet(self) -> "Tool":
        """Return the environment that has what a fleet needs too: much of it is imported by whoever finds it there."""
        wheel = next(self.folder.glob("*.whl"), None)
        if wheel is None:
            return self
        return Tool(environment(self.folder.with_name(f"{self.folder.name}-fleet"), f"{wheel}[fleet]"), self.name)


def tool_of(source: Path, kept: Path, name: str = "this tree") -> Tool:
    """Return the environment with the wheel of a tree. Raises UnavailableError."""
    with tempfile.TemporaryDirectory() as folder:
        run_pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source)
        (wheel,) = Path(folder).glob("*.whl")
        place = kept / f"code-commit-{hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]}"
        if not (place / wheel.name).exists():
            environment(place, wheel)
            shutil.copy(wheel, place)
    os.utime(place)
    for old in sorted(kept.glob("code-commit-*"), key=lambda folder: folder.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return Tool(place, name)


def tool_at(revision: str, kept: Path, repository: Path = SOURCE) -> Tool:
    """Return the environment with the wheel of a revision, or one that is there already under this name.

    Raises UnavailableError.
    """
    if Path(revision, "bin", "code-commit").exists():
        return Tool(Path(revision).absolute(), revision)
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=repository, capture_output=True, check=False)
        if archive.returncode != 0:
            raise UnavailableError(f"{revision}: {archive.stderr.decode(errors='replace').strip()}")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        return tool_of(Path(folder), kept, revision)


@cache
def environment(folder: Path, package: str | Path) -> Path:
    """Make a virtual environment that has the package, compiled, where it is not there. Raises UnavailableError."""
    if not (folder / INSTALLED).exists():
        venv.create(folder, clear=True)
        run_pip("--python", folder / "bin" / "python", "install", package)
        command = [folder / "bin" / "python", "-m", "compileall", "-q", folder / "lib"]
        subprocess.run(command, env=_environment(), capture_output=True, check=False)  # some files are for no Python
        (folder / INSTALLED).touch()
    return folder


def run_pip(*arguments: str | Path) -> None:
    """Raises UnavailableError with its last complaint."""
    command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *arguments]
    try:
        done = subprocess.run(
            command, env=_environment(), capture_output=True, text=True, check=False, timeout=INSTALL_TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{arguments[-1]} cannot be installed: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise UnavailableError(f"{arguments[-1]} cannot be installed: {last}")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git in the folder and return what it prints. Raises CommandFailedError."""
    identity = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")
    done = subprocess.run(["git", *identity, *arguments], cwd=root, check=False, capture_output=True, input=stdin)
    if done.returncode != 0:
        raise CommandFailedError(f"git {arguments[0]}: {done.stderr.decode(errors='replace')}")
    return done.stdout
