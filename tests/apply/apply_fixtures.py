"""The driver's server, the two trees that are allowed, a folder in memory, and a way to print the counts."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apply_driver import NEW_FILES, SNAPSHOT, Tree, make_tree, read_tree, verified
from kill_points import MEMORY, Driver

from code_commit.apply.transaction import apply_changes


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    server = Driver()
    yield server
    server.close()


@pytest.fixture
def fast_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a kill does not care, and thousands of syncs take no time."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=MEMORY))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tree, Tree]:
    """The tree before the changes of `NEW_FILES`, and the one after them."""
    project = make_tree(tmp_path_factory.mktemp("trees") / "tree")
    old = read_tree(project.root)
    apply_changes(verified(project.root, NEW_FILES), project, project.root / SNAPSHOT)
    return old, read_tree(project.root)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a count so that it is seen without -s."""

    def write(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}\n")

    return write
