"""The two copies that a transaction keeps of each of its files: the original, and the new content.

The original is a hard link where the file system and the permissions allow one, so that what is put back is the very
same file; else it is a copy. The new file keeps owner, extended attributes and access list of the one that it
replaces, as far as this user may set them; other hard links to the replaced file keep its old content, as with git.
"""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from io import FileIO
from typing import NamedTuple

from code_commit.apply.durable import holds, read_attributes, set_owner_and_mode
from code_commit.apply.failures import changed_under_us
from code_commit.apply.plan import Write
from code_commit.apply.record import FileState
from code_commit.apply.staging import Staging, new_name, old_name
from code_commit.files import NotAFileError, write_new_file

NO_HARD_LINKS = {errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

Identity = tuple[int, ...]


class Slot(NamedTuple):
    """Where a file's two copies are: the index of the staging folder, and the file's position in the record."""

    area: int
    position: int


@dataclass(frozen=True, slots=True)
class Kept:
    """The original that is kept: what tells later whether the file is untouched, and what its successor takes over."""

    identity: Identity
    owner: tuple[int, int]
    attributes: Mapping[str, bytes]


def keep_original(staging: Staging, slot: Slot, write: Write, *, sync: bool) -> Kept | None:
    """Keep the file that the write replaces or deletes; None where there must be no file.

    Raises ChangedUnderUsError where the file is not as the plan says.
    """
    if write.old is None:
        if staging.tree.look(write.path) is not None:
            raise changed_under_us(write.path)
        return None
    with _open_as_planned(staging, write) as original:
        attributes = read_attributes(original.fileno())
        copy = (staging.area(slot.area), old_name(slot.position))
        now = _link_or_copy(staging, write, original, attributes, copy)
        if sync:
            os.fsync(original.fileno())
        return Kept(_identity(now), (now.st_uid, now.st_gid), attributes)


def stage_new(staging: Staging, slot: Slot, write: Write, kept: Kept | None, *, sync: bool) -> FileState | None:
    """Write the file's new content under its staged name, with its mode and owner; None where it is to go."""
    if write.new is None:
        return None
    owner = (-1, -1)

    def finish(file: int) -> None:
        nonlocal owner
        if kept is None:
            wanted = write.owner or (-1, _inherited_group(staging, write.path))
            owner = set_owner_and_mode(file, *wanted, write.new_mode)
        else:
            owner = set_owner_and_mode(file, *kept.owner, write.new_mode, kept.attributes)

    write_new_file(
        staging.area(slot.area),
        new_name(slot.position),
        write.new,
        sync=sync,
        finish=finish,
    )
    return FileState(sha256(write.new).hexdigest(), len(write.new), write.new_mode, *owner)


def kept_state(write: Write, kept: Kept | None) -> FileState | None:
    """Return the state of the kept original."""
    if write.old is None or kept is None:
        return None
    return FileState(sha256(write.old).hexdigest(), len(write.old), write.old_mode, *kept.owner)


def check_untouched(staging: Staging, write: Write, kept: Kept | None) -> None:
    """Look once more, right before the change. Raises ChangedUnderUsError when the file is not as it was kept."""
    now = staging.tree.look(write.path)
    if now is None or kept is None:
        if now is None and kept is None:
            return
        raise changed_under_us(write.path)
    if _identity(now) != kept.identity:
        _open_as_planned(staging, write).close()


def _open_as_planned(staging: Staging, write: Write) -> FileIO:
    """Open the file that the write is about. Raises ChangedUnderUsError where it is another now."""
    try:
        file = staging.tree.open_file(write.path)
    except (FileNotFoundError, NotADirectoryError, NotAFileError) as error:
        raise changed_under_us(write.path) from error
    now, old = os.fstat(file.fileno()), write.old or b""
    if stat.S_IMODE(now.st_mode) == write.old_mode and now.st_size == len(old) and holds(file, old):
        return file
    file.close()
    raise changed_under_us(write.path)


def _link_or_copy(
    staging: Staging, write: Write, original: FileIO, attributes: Mapping[str, bytes], copy: tuple[int, str]
) -> os.stat_result:
    """Return the state of the original with its new link."""
    folder, name = staging.tree.parent(write.path)
    area, copy_name = copy
    was = os.fstat(original.fileno())
    try:
        os.link(name, copy_name, src_dir_fd=folder, dst_dir_fd=area, follow_symlinks=False)
    except FileNotFoundError as error:
        raise changed_under_us(write.path) from error
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
    else:
        now = os.stat(copy_name, dir_fd=area, follow_symlinks=False)
        if _without_link(now) != _without_link(was):
            raise changed_under_us(write.path)
        return now

    def finish(file: int) -> None:
        set_owner_and_mode(file, was.st_uid, was.st_gid, write.old_mode, attributes)

    write_new_file(area, copy_name, write.old or b"", sync=True, finish=finish)
    return was


def _without_link(now: os.stat_result) -> Identity:
    """Return what tells whether this is the same file, not written to since: a new link alone changes st_ctime."""
    return (now.st_dev, now.st_ino, now.st_mode, now.st_size, now.st_mtime_ns)


def _identity(now: os.stat_result) -> Identity:
    return (now.st_dev, now.st_ino, now.st_mode, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


def _inherited_group(staging: Staging, path: str) -> int:
    """Return the group that a set-group-id folder gives its new files, -1 where the folder has no such bit."""
    folder = os.fstat(staging.tree.folder(staging.tree.existing_folder(path)))
    return folder.st_gid if folder.st_mode & stat.S_ISGID else -1
