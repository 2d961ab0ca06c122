"""Files are opened without following a link or waiting, and are written whole or not at all."""

import os
import resource
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from code_commit.files import (
    KeptRoom,
    NewFiles,
    NotAFileError,
    Tree,
    open_regular,
    read_ends,
    read_regular_file,
    replacing,
)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


NOT_FILES: dict[str, Callable[[Path], object]] = {
    "folder": lambda path: path.mkdir(),
    "FIFO": os.mkfifo,
    "socket": make_socket,
    "link to a folder": lambda path: path.symlink_to("."),
    "link to itself": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("kind", NOT_FILES)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    NOT_FILES[kind](path)
    with pytest.raises(NotAFileError):
        open_regular(path)
    with pytest.raises(NotAFileError, match="not a regular file"):
        read_regular_file(path)


def test_a_link_to_a_file_is_followed_only_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content\n")
    (tmp_path / "link").symlink_to("file")
    assert read_regular_file(tmp_path / "link") == b"content\n"
    with pytest.raises(NotAFileError):
        open_regular(tmp_path / "link")


def test_a_tree_is_walked_from_its_root_and_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/b/file").write_bytes(b"1")
    (tmp_path / "link").symlink_to("a")
    with Tree(tmp_path) as tree:
        for path in ("a/b/c", "a", "", "a/b"):
            assert os.path.samestat(os.fstat(tree.folder(path)), (tmp_path / path).stat())
        assert tree.read("a/b/file")[0] == b"1"
        assert tree.look("a/none/x") is None
        assert tree.existing_folder("a/b/none/x/y") == "a/b"
        for path in ("link/b", "a/../a", "a//b", "/etc"):
            with pytest.raises(OSError, match=r"symbolic|Not a directory|Invalid"):
                tree.folder(path)


@pytest.mark.parametrize("count", [0, 100], ids=["fsync of each", "syncfs"])
def test_new_files_are_as_wanted_and_no_descriptor_is_left(tmp_path: Path, count: int) -> None:
    before = len(list(Path("/dev/fd").iterdir()))
    folder = os.open(tmp_path, os.O_RDONLY)
    with NewFiles(count) as new_files:
        for number in range(150):
            new_files.write(folder, f"{number}", b"%d" % number, 0o640)
        new_files.sync()
        with pytest.raises(FileExistsError):
            new_files.write(folder, "0", b"")
    os.close(folder)
    assert len(list(Path("/dev/fd").iterdir())) == before
    for number in range(150):
        assert (tmp_path / f"{number}").read_bytes() == b"%d" % number
        assert stat.S_IMODE((tmp_path / f"{number}").stat().st_mode) == 0o640


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"old", b"new"):
        with replacing(path, sync=True) as file:
            file.write(content)
    with pytest.raises(TypeError), replacing(path) as file:
        file.writelines([b"half of it, then", "what is not bytes"])
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_room_that_is_kept_is_used_once_and_never_lost_to_a_failure(tmp_path: Path) -> None:
    """Files of this process may have 200,000 bytes."""
    file, room = KeptRoom(tmp_path / "a.json"), tmp_path / ".a.json.room"
    file.keep(100_000)
    assert room.stat().st_size == 131_072
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            file.keep(300_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert room.stat().st_size == 131_072
    file.write(b"{}", sync=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    file.write(b"x" * 200_000)
    assert (tmp_path / "a.json").stat().st_size == 200_000
    file.keep(1)
    file.release()
    file.release()
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("size", "ends"),
    [
        (0, (b"", 0, b"")),
        (5, (b"", 0, b"01234")),
        (6, (b"01", 1, b"345")),
        (10, (b"01", 5, b"789")),
    ],
)
def test_of_a_long_file_the_ends_are_read(size: int, ends: tuple[bytes, int, bytes], tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"0123456789"[:size])
    assert read_ends(tmp_path / "it", 2, 3) == ends


def test_no_end_of_a_link_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(NotAFileError):
        read_ends(tmp_path / "link", 1, 1)
