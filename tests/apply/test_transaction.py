"""What an apply keeps of the files, and what it does when a file is not as the verification pass saw it."""

import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from apply_driver import MANY_FILES, SNAPSHOT, UNDO_SNAPSHOT, make_tree, read_tree, verified

from code_commit.apply.failures import ChangedUnderUsError, UnfitPathError
from code_commit.apply.recover import needs_recovery
from code_commit.apply.restore import ownership_warnings, restore
from code_commit.apply.transaction import apply_changes
from code_commit.changes import VerifiedChanges
from code_commit.errors import ApplyError
from code_commit.project import Project

USER, OTHER, FOREIGN = 12345, 23456, 34567  # the ordinary user with a group of his own, and two other groups
ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in [(1, 6, 2**32 - 1), (2, 6, 1234), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1), (32, 4, 2**32 - 1)]
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_tree(tmp_path / "tree")


def apply(project: Project, wanted: dict[str, bytes | None]) -> None:
    apply_changes(verified(project.root, wanted), project, project.root / SNAPSHOT)


BYTES = [
    b"",
    b"\n",
    b"no newline",
    b"a\r\nb\r\n",
    b"\xef\xbb\xbfbom",
    b"\x00\xff\xfe binary",
    "ß日本\u2028".encode(),
    b"x" * 3_000_001,
]


@pytest.mark.parametrize("old", [None, *BYTES[:4]], ids=repr)
def test_content_is_written_byte_for_byte(project: Project, old: bytes | None) -> None:
    for number, new in enumerate(BYTES):
        path = f"{number}/file"
        if old is not None:
            (project.root / path).parent.mkdir()
            (project.root / path).write_bytes(old)
        apply(project, {path: new})
        assert (project.root / path).read_bytes() == new


AS_ROOT = pytest.param(0o000, marks=pytest.mark.root)  # what nobody else can read nobody else can replace


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o400, 0o444, 0o600, 0o777, 0o4755, 0o2755, AS_ROOT])
def test_mode_bits_are_kept(project: Project, mode: int) -> None:
    target = project.root / "src/a.py"
    target.chmod(mode)
    before = read_tree(project.root)
    apply(project, {"src/a.py": b"new\n"})
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert target.read_bytes() == b"new\n"
    restore(project.root / SNAPSHOT, project, project.logs / "two/snapshot")
    assert read_tree(project.root) == before


@pytest.mark.parametrize(("mask", "folder"), [(0o022, 0o755), (0o027, 0o750), (0o077, 0o700), (0o002, 0o775)])
def test_new_folders_and_files_get_the_mode_of_the_umask(project: Project, mask: int, folder: int) -> None:
    before = os.umask(mask)
    try:
        apply(project, {"n/m/file": b"1\n", "n/run": b"#!/bin/sh\n"})
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE((project.root / path).stat().st_mode) for path in ("n", "n/m", "n/m/file", "n/run")}
    assert modes == {"n": folder, "n/m": folder, "n/m/file": folder & 0o666, "n/run": folder}


def test_times_are_those_of_the_change(project: Project) -> None:
    os.utime(project.root / "src/a.py", (1, 1))
    start = time.time() - 1
    apply(project, {"src/a.py": b"new\n", "n": b""})
    assert (project.root / "src/a.py").stat().st_mtime >= start
    assert (project.root / "other.txt").exists()


def test_what_would_stay_the_same_is_left_alone(project: Project) -> None:
    before = (project.root / "src/a.py").stat()
    apply(project, {"src/a.py": b"a = 1\n"})
    after = (project.root / "src/a.py").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )
    assert not (project.root / SNAPSHOT).exists()
    assert not needs_recovery(project)


def as_user(action: Callable[[], None], *groups: int) -> None:
    """Do it in a child as an ordinary user of these groups."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setgid(USER)
            os.setuid(USER)
            action()
        except BaseException:  # noqa: BLE001 - a child of the tests must not go on with them
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def owned() -> Iterator[Project]:
    """A tree of the ordinary user, in a folder that this one may enter."""
    folder = Path(tempfile.mkdtemp())
    project = make_tree(folder / "tree")
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, USER, USER)
    yield project
    shutil.rmtree(folder)


def owners(project: Project, *paths: str) -> list[tuple[int, int]]:
    return [(state.st_uid, state.st_gid) for state in map(os.stat, (project.root / path for path in paths))]


@pytest.mark.root
def test_the_group_is_kept_where_the_process_may_and_what_cannot_be_kept_is_said(owned: Project) -> None:
    for path, user, group in (("README.md", USER, OTHER), ("private.txt", USER, FOREIGN), ("src/a.py", OTHER, OTHER)):
        os.chown(owned.root / path, user, group)
        (owned.root / path).chmod(0o664)
    changes = {"README.md": b"1", "private.txt": b"2", "src/a.py": b"3", "run.sh": b"4"}
    as_user(lambda: apply(owned, changes), OTHER)
    assert owners(owned, *changes) == [(USER, OTHER), (USER, USER), (USER, OTHER), (USER, USER)]
    assert {stat.S_IMODE((owned.root / path).stat().st_mode) for path in list(changes)[:3]} == {0o664}
    assert [(each.kind, each.path, str(each)) for each in ownership_warnings(owned.root / SNAPSHOT)] == [
        ("owner", "private.txt", "the group of private.txt could not be kept"),
        ("owner", "src/a.py", "the owner of src/a.py could not be kept"),
    ]
    as_user(lambda: restore(owned.root / SNAPSHOT, owned, owned.logs / "two/snapshot"), OTHER)
    assert owners(owned, "README.md", "src/a.py") == [(USER, OTHER), (USER, OTHER)]


@pytest.mark.root
def test_a_new_file_gets_the_group_of_a_folder_that_hands_it_down(owned: Project) -> None:
    os.chown(owned.root / "src", USER, OTHER)
    (owned.root / "src").chmod(0o2775)
    os.chown(owned.root / "empty", USER, FOREIGN)
    (owned.root / "empty").chmod(0o2775)
    changes = {"src/n": b"1", "src/x/y/n": b"2", "n": b"3", "empty/n": b"4"}
    as_user(lambda: apply(owned, changes), OTHER)
    assert owners(owned, *changes) == [(USER, OTHER), (USER, OTHER), (USER, USER), (USER, USER)]
    assert owners(owned, "src/x", "src/x/y") == [(USER, OTHER)] * 2
    assert [str(each) for each in ownership_warnings(owned.root / SNAPSHOT)] == [
        "the group of empty/n could not be kept"
    ]


@pytest.mark.root
def test_a_deleted_file_comes_back_with_its_group(owned: Project) -> None:
    os.chown(owned.root / "README.md", USER, OTHER)
    as_user(lambda: apply(owned, {"README.md": None}), OTHER)
    as_user(lambda: restore(owned.root / SNAPSHOT, owned, owned.logs / "two/snapshot"), OTHER)
    assert owners(owned, "README.md") == [(USER, OTHER)]


def test_attributes_are_kept_by_a_replacement_a_rename_and_an_undo(project: Project) -> None:
    paths = [project.root / path for path in ("README.md", "src/a.py", "run.sh")]
    for number, path in enumerate(paths):
        try:
            os.setxattr(path, "user.tag", b"\xff%d" % number)
        except (OSError, AttributeError):
            pytest.skip("no extended attributes here")
    old, new = (project.root / path for path in ("src/a.py", "src/moved.py"))
    wanted = {"README.md": b"x", "run.sh": None, "src/a.py": None, "src/moved.py": b"a = 1\n"}
    *others, moved = verified(project.root, wanted).changes
    changes = VerifiedChanges(project.root, (*others, moved._replace(renamed_from="src/a.py")))
    apply_changes(changes, project, project.root / SNAPSHOT)
    assert [os.getxattr(path, "user.tag") for path in (paths[0], new)] == [b"\xff0", b"\xff1"]
    restore(project.root / SNAPSHOT, project, project.logs / "two/snapshot")
    assert [os.getxattr(path, "user.tag") for path in paths] == [b"\xff0", b"\xff1", b"\xff2"]
    assert not new.exists()
    assert old.read_bytes() == b"a = 1\n"
    assert ownership_warnings(project.root / SNAPSHOT) == []


def test_an_access_list_that_a_folder_hands_down_is_said(project: Project) -> None:
    try:
        os.setxattr(project.root / "src", "system.posix_acl_default", ACL)
    except (OSError, AttributeError):
        pytest.skip("no access lists here")
    apply(project, {"src/n": b"1", "src/a.py": b"2"})
    (warning,) = ownership_warnings(project.root / SNAPSHOT)
    assert str(warning) == "the inherited access list of src/n could not be kept"


def test_a_rename_of_case_alone_and_a_file_that_becomes_a_folder(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, {"src/a.py": None, "src/A.py": b"a = 1\n", "dup.txt": None, "dup.txt/x/y": b"a = 1\n"})
    after = read_tree(project.root)
    assert {"src/A.py", "dup.txt/x/y"} < after.keys()
    assert "src/a.py" not in after
    restore(project.root / SNAPSHOT, project, project.logs / "two/snapshot")
    assert read_tree(project.root) == before
    restore(project.logs / "two/snapshot", project, project.logs / "three/snapshot")
    assert read_tree(project.root) == after


CASELESS = "mount -t tmpfs -o casefold none . && mkdir p && chattr +F p && cd p"
RENAMED = """
import os, sys
from pathlib import Path
sys.path[:0] = [{here!r}]
from apply_driver import make_tree, verified
from code_commit.apply.restore import restore
from code_commit.apply.transaction import apply_changes
from code_commit.changes import FileRemoval, FileReplacement
from code_commit.files import Tree
from code_commit.verify.tree import look_at_targets

project = make_tree(Path.cwd())
changes = verified(project.root, {{"src/a.py": None}})
created = changes.changes[0]._replace(change=FileReplacement("src/A.py", ""), action="create", content=b"a", original=None)
originals, faults = look_at_targets(["src/a.py", "src/A.py"], ["src/a.py"], project, (), ())
assert (originals["src/A.py"], faults) == (None, {{}}), faults
both = changes._replace(changes=(*changes.changes, created))
for number in range(2):
    one, two = (project.logs / name / "snapshot" for name in (f"one{{number}}", f"two{{number}}"))
    apply_changes(both, project, one)
    assert "A.py" in os.listdir("src") and "a.py" not in os.listdir("src")
    assert Path("src/A.py").read_bytes() == b"a"
    restore(one, project, two)
    assert "a.py" in os.listdir("src") and "A.py" not in os.listdir("src")
    assert Path("src/a.py").read_bytes() == b"a = 1\\n"
"""


@pytest.mark.parametrize("command", [pytest.param(CASELESS, marks=pytest.mark.root("mount")), "cd ."])
def test_a_rename_of_case_alone_on_a_file_system_without_case(command: str, tmp_path: Path) -> None:
    script = f'{command} || exit 77; exec "$0" -c "$1"'
    code = RENAMED.format(here=str(Path(__file__).parent))
    words = ["sh", "-c", script, sys.executable, code]
    words = ["unshare", "-m", *words] if "mount" in command else words
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr


def test_a_hard_link_elsewhere_keeps_the_old_content(project: Project, tmp_path: Path) -> None:
    os.link(project.root / "src/a.py", tmp_path / "elsewhere")
    apply(project, {"src/a.py": b"new\n"})
    assert (tmp_path / "elsewhere").read_bytes() == b"a = 1\n"
    assert (project.root / "src/a.py").stat().st_nlink == 1
    assert (tmp_path / "elsewhere").stat().st_nlink == 1


def test_two_names_of_one_file_are_changed_apart(project: Project) -> None:
    os.link(project.root / "src/a.py", project.root / "src/z.py")
    apply(project, {"src/a.py": b"A\n", "src/z.py": b"Z\n"})
    assert [(project.root / f"src/{name}.py").read_bytes() for name in "az"] == [b"A\n", b"Z\n"]


@pytest.mark.root
def test_the_owner_of_a_replaced_file_is_kept_and_comes_back(project: Project) -> None:
    for path in ("src/a.py", "run.sh"):
        os.chown(project.root / path, 1234, 4321)
    apply(project, {"src/a.py": b"new\n", "run.sh": None})
    assert owner(project.root / "src/a.py") == (1234, 4321)
    restore(project.root / SNAPSHOT, project, project.logs / "two/snapshot")
    assert owner(project.root / "src/a.py") == owner(project.root / "run.sh") == (1234, 4321)


def owner(path: Path) -> tuple[int, int]:
    return path.stat().st_uid, path.stat().st_gid


@pytest.mark.slow
def test_a_big_file(project: Project, whole) -> None:
    size = 200_000_000 if whole else 20_000_000
    content = os.urandom(1 << 20) * (size >> 20) + b"end"
    apply(project, {"big.bin": b"small\n"})
    apply(project, {"big.bin": content})
    assert (project.root / "big.bin").read_bytes() == content
    apply(project, {"big.bin": content[:-1]})
    restore(project.root / SNAPSHOT, project, project.logs / "two/snapshot")
    assert not (project.root / "big.bin").exists()


def test_many_files_and_their_undo(project: Project) -> None:
    before = read_tree(project.root)
    apply(project, dict(MANY_FILES))
    apply(project, {path: b"changed " + bytes(content or b"") for path, content in MANY_FILES.items()})
    apply(project, dict.fromkeys(MANY_FILES))
    assert read_tree(project.root) == before
    restore(project.root / SNAPSHOT, project, project.logs / "two/snapshot")
    assert read_tree(project.root) == before


@pytest.mark.parametrize(
    "path",
    [
        "n" * 255,
        "/".join(["d"] * 300),
        "/".join(["long" * 60] * 12),
        "tab\there",
        "-rf",
        "a b/ü/日本語",
        "new-0",
        "settled.json",
    ],
)
def test_names_of_every_kind(project: Project, path: str) -> None:
    before = read_tree(project.root)
    apply(project, {path: b"1\n"})
    assert (project.root / path).read_bytes() == b"1\n"
    apply(project, {path: b"2\n"})
    apply(project, {path: None})
    assert read_tree(project.root) == before
    if path in ("tab\there", "-rf"):  # no answer could name it
        with pytest.raises(UnfitPathError):
            restore(project.root / SNAPSHOT, project, project.logs / "two/snapshot")
    else:
        restore(project.root / SNAPSHOT, project, project.logs / "two/snapshot")
    assert read_tree(project.root) == before


@pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../out", "a//b", "./a", "a/."])
def test_a_path_that_no_verification_lets_through_stops_the_apply(project: Project, path: str) -> None:
    before = read_tree(project.root.parent)
    with pytest.raises(ApplyError):
        apply(project, {"src/a.py": b"new\n", path: b"1\n"})
    assert read_tree(project.root.parent) == before


def same_size_and_time(path: Path) -> None:
    now = path.stat()
    path.write_bytes(b"b = 2\n"[: now.st_size])
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))


def to_link(path: Path) -> None:
    path.rename(path.parents[2] / "victim")
    path.symlink_to("../../victim")


def folder_to_link(path: Path) -> None:
    path.parent.rename(path.parents[2] / "outside")
    path.parent.symlink_to("../outside")


def to_socket(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


def folder_to_file(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_bytes(b"")


DISTURBANCES: dict[str, Callable[[Path], object]] = {
    "other content": lambda path: path.write_bytes(b"edited by hand\n"),
    "other content of the same size and time": same_size_and_time,
    "cut to nothing": lambda path: path.write_bytes(b""),
    "another mode": lambda path: path.chmod(0o755),
    "gone": lambda path: path.unlink(),
    "a link": to_link,
    "a dangling link": lambda path: (path.unlink(), path.symlink_to("nowhere")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a FIFO": lambda path: (path.unlink(), os.mkfifo(path)),
    "a socket": to_socket,
    "in a folder that is a link": folder_to_link,
    "in a folder that is gone": lambda path: shutil.rmtree(path.parent),
    "in a folder that is a file": folder_to_file,
}


@pytest.mark.parametrize("wanted", [b"new\n", None], ids=["replaced", "deleted"])
@pytest.mark.parametrize("name", DISTURBANCES)
def test_a_file_that_changed_since_the_verification_stops_everything(
    project: Project, name: str, wanted: bytes | None
) -> None:
    changes = verified(project.root, {"README.md": b"new\n", "src/a.py": wanted, "z.txt": b"z\n"})
    DISTURBANCES[name](project.root / "src/a.py")
    check_refused(project, changes, "src/a.py")


APPEARANCES: dict[str, Callable[[Path], object]] = {
    "a file": lambda path: path.write_bytes(b"somebody's\n"),
    "a file of the same content": lambda path: path.write_bytes(b"new\n"),
    "a link": lambda path: path.symlink_to("other.txt"),
    "a dangling link": lambda path: path.symlink_to("../../nowhere"),
    "a folder": lambda path: path.mkdir(),
    "a FIFO": os.mkfifo,
}


@pytest.mark.parametrize("name", APPEARANCES)
def test_a_file_that_appeared_since_the_verification_stops_everything(project: Project, name: str) -> None:
    changes = verified(project.root, {"README.md": b"new\n", "src/new.py": b"new\n"})
    APPEARANCES[name](project.root / "src/new.py")
    check_refused(project, changes, "src/new.py")


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_folder_to_be_made_that_is_something_else_now(project: Project, kind: str) -> None:
    changes = verified(project.root, {"README.md": b"new\n", "n/m/file": b"new\n"})
    if kind == "link":
        (project.root / "n").symlink_to("../..")
    else:
        (project.root / "n").write_bytes(b"")
    before = read_tree(project.root.parent)
    with pytest.raises(ApplyError, match=r"^n is no longer a folder, or is a link"):
        apply_changes(changes, project, project.root / SNAPSHOT)
    assert read_tree(project.root.parent) == before


def check_refused(project: Project, changes: VerifiedChanges, path: str) -> None:
    before = read_tree(project.root.parent)
    with pytest.raises(ChangedUnderUsError, match=f"^({path} changed on disk|src is no longer a folder)") as caught:
        apply_changes(changes, project, project.root / SNAPSHOT)
    assert caught.value.exit_code == 5
    assert read_tree(project.root.parent) == before
    assert not (project.root / SNAPSHOT).exists()


def test_a_file_that_was_touched_or_rewritten_as_it_was_is_replaced(project: Project) -> None:
    changes = verified(project.root, {"src/a.py": b"new\n", "README.md": b"new\n"})
    (project.root / "src/a.py").touch()
    content = (project.root / "README.md").read_bytes()
    (project.root / "README.md").unlink()
    (project.root / "README.md").write_bytes(content)
    (project.root / "README.md").chmod(0o644)
    apply_changes(changes, project, project.root / SNAPSHOT)
    assert (project.root / "src/a.py").read_bytes() == (project.root / "README.md").read_bytes() == b"new\n"


@pytest.fixture
def disturb() -> Iterator[Callable[[str, Callable[[], object]], None]]:
    """Do something right before the first rename or link of a file; Python tells its audit hooks of it."""
    waiting: list[tuple[str, Callable[[], object]]] = []

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if waiting and event in {"os.rename", "os.link"} and str(arguments[0]).startswith(waiting[0][0]):
            waiting.pop()[1]()

    sys.addaudithook(watch)  # it stays for good, and does nothing when nothing waits
    yield lambda name, action: waiting.append((name, action))
    waiting.clear()


@pytest.mark.parametrize("name", DISTURBANCES)
def test_a_change_between_the_first_rename_and_the_last_is_found(project: Project, name: str, disturb) -> None:
    """`README.md` is replaced first; then `src/a.py` is found to have changed."""
    changes = verified(project.root, {"README.md": b"new\n", "gone/one.txt": None, "src/a.py": b"new\n", "z.txt": b""})
    expected = make_tree(project.root.parent / "expected" / "tree")
    DISTURBANCES[name](expected.root / "src/a.py")
    disturb("new-0", lambda: DISTURBANCES[name](project.root / "src/a.py"))
    with pytest.raises(ApplyError):
        apply_changes(changes, project, project.root / SNAPSHOT)
    assert read_tree(project.root) == read_tree(expected.root)
    assert not needs_recovery(project)


def test_an_apply_that_fails_leaves_the_originals_of_those_before_it(project: Project, disturb) -> None:
    """`dup.txt` was as `src/a.py` was: one original is that of both."""
    before = read_tree(project.root)
    apply(project, {"src/a.py": b"a = 2\n"})
    changes = verified(project.root, {"README.md": b"new\n", "dup.txt": b"new\n"})
    disturb("new-0", lambda: (project.root / "dup.txt").write_bytes(b"edited\n"))
    with pytest.raises(ApplyError):
        apply_changes(changes, project, project.root / SNAPSHOT)
    (project.root / "dup.txt").write_bytes(b"a = 1\n")
    restore(project.root / SNAPSHOT, project, project.root / UNDO_SNAPSHOT)
    assert read_tree(project.root) == before


def test_a_write_between_the_look_at_a_file_and_its_link_is_found(project: Project, disturb) -> None:
    target = project.root / "src/a.py"
    os.utime(target, (1, 1))
    changes = verified(project.root, {"README.md": b"new\n", "src/a.py": b"new\n"})
    disturb("a.py", lambda: target.write_bytes(b"b = 2\n"))
    with pytest.raises(ChangedUnderUsError, match=r"^src/a.py changed on disk"):
        apply_changes(changes, project, project.root / SNAPSHOT)
    assert target.read_bytes() == b"b = 2\n"
    assert (project.root / "README.md").read_bytes() == b"# Old\r\nline\r\n"
    assert not needs_recovery(project)


def test_a_link_swapped_in_before_the_rename_is_not_followed(project: Project, disturb) -> None:
    outside = project.root.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_bytes(b"a = 1\n")
    (outside / "a.py").chmod(0o644)

    def swap() -> None:
        (project.root / "src").rename(project.root / "moved")
        (project.root / "src").symlink_to("../outside")

    changes = verified(project.root, {"README.md": b"new\n", "src/a.py": b"new\n", "src/new.py": b"new\n"})
    disturb("new-0", swap)
    with pytest.raises(ApplyError):
        apply_changes(changes, project, project.root / SNAPSHOT)
    assert (project.root / "README.md").read_bytes() == b"# Old\r\nline\r\n"
    assert [(path.name, path.read_bytes()) for path in outside.iterdir()] == [("a.py", b"a = 1\n")]
