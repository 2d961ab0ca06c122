"""Real full disks, quotas, limits, permissions and mounts in the way of an apply."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kill_points import driver_environment

SCRIPT = Path(__file__).with_name("limited_apply.py")
NOBODY = 65534
ME = os.geteuid()


def limited(
    root: Path, *, size: int = 10, ready: str = "", limit: int = 0, mount: str = "", user: int = ME
) -> dict[str, Any]:
    """Run the script, inside a mount namespace of its own where something is mounted first."""
    command = [sys.executable, "-B", "-S", str(SCRIPT), str(root), str(size), ready, str(limit), str(user)]
    if mount:
        command = ["unshare", "-m", "sh", "-ec", f'{mount}\nexec "$@"', "sh", *command]
    done = subprocess.run(command, env=driver_environment(), stdout=subprocess.PIPE, text=True, check=True, timeout=180)
    return json.loads(done.stdout)


def refused(result: dict[str, Any], words: str) -> None:
    assert result["error"] == "ApplyError", result
    assert words in result["message"]
    assert result["message"].endswith("every file is as it was before")
    assert result["old"], result
    assert not result["left"]


def applied(result: dict[str, Any]) -> None:
    assert result["error"] is None, result
    assert result["new"]
    assert not result["left"]


def test_nothing_in_the_way(tmp_path: Path) -> None:
    applied(limited(tmp_path / "tree"))


@pytest.mark.root("mount")
@pytest.mark.parametrize("pages", range(6, 17))
def test_a_full_disk(tmp_path: Path, pages: int) -> None:
    result = limited(tmp_path / "tree", size=pages * 4096, mount=f"mount -t tmpfs -o size=64k none {tmp_path}")
    if result["error"] or pages > 8:
        refused(result, "the disk is full: free some space")
    else:
        applied(result)


@pytest.mark.root("mount")
@pytest.mark.parametrize("inodes", range(16, 26))
def test_no_inodes_left(tmp_path: Path, inodes: int) -> None:
    result = limited(tmp_path / "tree", mount=f"mount -t tmpfs -o nr_inodes={inodes} none {tmp_path}")
    if result["error"]:
        refused(result, "the disk is full: free some space")
    else:
        applied(result)


@pytest.mark.parametrize("limit", [999_999, 4096, 1])
def test_a_limit_for_the_size_of_files(tmp_path: Path, limit: int) -> None:
    refused(limited(tmp_path / "tree", size=1_000_000, limit=limit), "larger than the limit for files")


@pytest.mark.root
def test_an_immutable_file(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    probe = tmp_path / "probe"
    probe.touch()
    if shutil.which("chattr") is None or subprocess.run(["chattr", "+i", probe], check=False).returncode != 0:
        pytest.skip("no immutable files on this file system")
    subprocess.run(["chattr", "-i", probe], check=True)
    try:
        refused(limited(root, ready="chattr +i sub/b.txt"), "look for an immutable flag")
    finally:
        subprocess.run(["chattr", "-i", root / "sub/b.txt"], check=True)


@pytest.mark.root("mount")
def test_a_folder_that_is_mounted_read_only(tmp_path: Path) -> None:
    ready = "mount --bind sub sub && mount -o remount,ro,bind sub"
    refused(limited(tmp_path / "tree", ready=ready, mount="true"), "the file system is read-only")


@pytest.mark.root("mount")
@pytest.mark.parametrize("folder", ["sub", "agent-config"])
def test_a_folder_that_is_a_mount_of_its_own(tmp_path: Path, folder: str) -> None:
    """A rename cannot cross into it: the files are staged beside their targets."""
    applied(limited(tmp_path / "tree", ready=f"mount --bind {folder} {folder}", mount="true"))


@pytest.mark.root("mount")
def test_agent_config_on_another_file_system(tmp_path: Path) -> None:
    applied(limited(tmp_path / "tree", ready="mount -t tmpfs none agent-config", mount="true"))


@pytest.mark.root("mount")
def test_a_file_that_is_a_mount_point(tmp_path: Path) -> None:
    result = limited(tmp_path / "tree", ready="mount --bind a.txt a.txt", mount="true")
    assert result["error"] == "ApplyError"
    assert result["old"]
    assert not result["left"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can reach and write to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.root
def test_another_user_without_anything_in_the_way(open_folder: Path) -> None:
    applied(limited(open_folder / "tree", user=NOBODY))


@pytest.mark.root
@pytest.mark.parametrize("folder", ["sub", ".", "agent-config"])
def test_a_folder_that_this_user_cannot_write_to(open_folder: Path, folder: str) -> None:
    result = limited(open_folder / "tree", user=NOBODY, ready=f"chmod a-w {folder}")
    (open_folder / "tree" / folder).chmod(0o755)
    if folder == "agent-config":
        assert result["error"] == "NotSetUpError"
        assert ".lock cannot be opened: Permission denied" in result["message"]
        assert result["old"]
    else:
        refused(result, "permission denied: make the file and its folder writable")


@pytest.mark.root
def test_a_file_of_somebody_else_in_a_folder_of_this_user(open_folder: Path) -> None:
    """A rename needs rights in the folder alone; the hard link that keeps the original may be forbidden: it is copied."""
    root = open_folder / "tree"
    fifo = open_folder / "go"
    os.mkfifo(fifo, 0o666)
    command = [sys.executable, "-B", "-S", str(SCRIPT), str(root), "10", f"cat {fifo}", "0", str(NOBODY)]
    with subprocess.Popen(command, env=driver_environment(), stdout=subprocess.PIPE, text=True) as process:
        with fifo.open("w"):  # the tree is made
            os.chown(root / "a.txt", 0, 0)
        output = process.stdout.read()
    applied(json.loads(output))
    assert (root / "a.txt").read_bytes() == b"A\n"
    assert (root / "a.txt").stat().st_uid == NOBODY
