"""What can be read of a file's ownership, and set."""

import os
import stat
import struct
from pathlib import Path

import pytest

from code_commit.ownership import Ownership, has_inherited_list, read_attributes, set_attributes, set_mode

ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in [(1, 6, 2**32 - 1), (2, 6, 1234), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1), (32, 4, 2**32 - 1)]
)


def set_or_skip(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except (OSError, AttributeError) as error:
        pytest.skip(f"no such attribute here: {error}")


def test_attributes_of_the_user_and_the_access_list_are_read_and_set(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    new.touch()
    set_or_skip(old, "user.tag", b"\0\xff")
    set_or_skip(old, "system.posix_acl_access", ACL)
    with old.open("rb") as file:
        attributes = read_attributes(file.fileno())
    assert attributes == (("system.posix_acl_access", ACL), ("user.tag", b"\0\xff"))
    with new.open("wb") as file:
        assert set_attributes(file.fileno(), (*attributes, ("unknown.name", b""))) == attributes
    assert {name: os.getxattr(new, name) for name in os.listxattr(new)} == dict(attributes)
    assert new.stat().st_mode == old.stat().st_mode


def test_a_folder_hands_an_access_list_down(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        assert not has_inherited_list(folder)
        set_or_skip(tmp_path, "system.posix_acl_default", ACL)
        assert has_inherited_list(folder)
    finally:
        os.close(folder)


def test_what_is_lost_is_said():
    attributes = (("system.posix_acl_access", b"1"), ("user.a", b"2"))
    old = Ownership(1, 2, attributes)
    assert old.lost_in(old) == ()
    assert old.lost_in(Ownership(3, 4)) == ("owner", "group", "access list", "attribute user.a")
    assert old.lost_in(Ownership(1, 4, attributes[:1])) == ("group", "attribute user.a")
    assert Ownership().lost_in(Ownership(3, 4)) == ()


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o664, 0o2755, 0o4755])
def test_the_mode_is_set_after_the_owner(tmp_path, mode):
    path = tmp_path / "file"
    path.touch()
    with path.open("wb") as file:
        set_mode(file.fileno(), mode, (12345, 23456))
    state = path.stat()
    assert (state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)) == (12345, 23456, mode)
