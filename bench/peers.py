"""The tools that are measured against: which version, how it is installed, how it is kept from the network."""

import shutil
import venv
from dataclasses import dataclass
from pathlib import Path

from bench.environments import Environment, UnavailableError, locked, run_installer


@dataclass(frozen=True, slots=True)
class Peer:
    """A package of PyPI, or of npm, in an environment of its own."""

    package: str
    version: str
    script: str
    registry: str = "PyPI"

    def __str__(self) -> str:
        return f"{self.package} {self.version}"

    def install(self, cache: Path) -> Path:
        """Return its command, installed when it is not there yet. Raises UnavailableError."""
        folder = cache / f"{self.package}-{self.version}"
        command = folder / ("bin" if self.registry == "PyPI" else "node_modules/.bin") / self.script
        done = folder / "installed"
        with locked(cache):
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                self._install(folder)
                done.touch()
        return command

    def _install(self, folder: Path) -> None:
        if self.registry == "PyPI":
            venv.create(folder, with_pip=True)
            Environment(folder).pip(f"{self.package}=={self.version}")
            return
        if shutil.which("npm") is None:
            raise UnavailableError("it needs npm")
        folder.mkdir(parents=True)
        options = ["--silent", "--no-audit", "--no-fund", "--engine-strict", "--prefix", folder]
        run_installer(["npm", "install", *options, f"{self.package}@{self.version}"], folder)


AIDER = Peer("aider-chat", "0.86.2", "aider")
MINI_SWE_AGENT = Peer("mini-swe-agent", "2.4.6", "mini")
FILES_TO_PROMPT = Peer("files-to-prompt", "0.6", "files-to-prompt")
GITINGEST = Peer("gitingest", "0.3.1", "gitingest")
REPOMIX = Peer("repomix", "1.14.0", "repomix", registry="npm")
"""The versions behind it need a Node.js that is younger than 20."""
