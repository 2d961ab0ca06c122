"""What the tests of the build share: a project whose build.sh is the test's, and a look at what it leaves running."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from build_watch import Built, alive, run_build

from code_commit.build import choose_sandbox
from code_commit.errors import CodeCommitError
from code_commit.project import find_project
from code_commit.settings import Settings

KEY = "sk-test-0123456789abcdef"


Build = Callable[..., Built]


@pytest.fixture
def build(project_folder: Path) -> Build:
    """Run a text as build.sh of the project, in this process."""

    def build_script(script, *, mode="off", timeout=0.0, environment=None, settings=None, run_bit=True):
        path = project_folder / "build.sh"
        if script is not None:
            path.write_bytes(script if isinstance(script, bytes) else script.encode())
            path.chmod(0o755 if run_bit else 0o644)
        project = find_project(project_folder)
        sandbox, _ = choose_sandbox(mode, project, settings or Settings())
        built = Built()
        begun = time.monotonic()
        try:
            built.result = run_build(
                project,
                built.pieces.append,
                timeout=timeout,
                environment=dict(os.environ) if environment is None else environment,
                sandbox=sandbox,
                warn=built.warnings.append,
            )
        except CodeCommitError as error:
            built.error = error
        built.seconds = time.monotonic() - begun
        return built

    return build_script


@pytest.fixture
def mark(request: pytest.FixtureRequest) -> Iterator[str]:
    """A word that stands in the environment of the build's processes, by which `alive` finds them; they are ended after."""
    word = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    yield word
    for pid in alive(word):
        os.kill(pid, signal.SIGKILL)
