"""The two copies that a transaction keeps of each of its files: the original, and the new content.

The original is a hard link where the file system and the permissions allow one, so that what is put back is the very
same file; else it is a copy. The new file keeps owner, extended attributes and access list of the one that it
replaces, as far as this user may set them; other hard links to the replaced file keep its old content, as with git.
"""

import errno
import os
import stat

from code_commit.apply.durable import copy_attributes, holds, set_owner, write_new_file
from code_commit.apply.failures import changed_under_us
from code_commit.apply.plan import Write
from code_commit.apply.record import FileState
from code_commit.apply.staging import Staging, new_name, old_name
from code_commit.apply.tree import open_regular

NO_HARD_LINKS = {errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

Identity = tuple[int, ...]


def keep_original(staging: Staging, area: int, position: int, write: Write, *, sync: bool) -> Identity | None:
    """Keep the file that the write replaces or deletes, and return what tells later whether it is untouched.

    None where there must be no file. Raises ChangedUnderUsError where the file is not as the plan says.
    """
    if write.old is None:
        if staging.tree.look(write.path) is not None:
            raise changed_under_us(write.path)
        return None
    original = _open_as_planned(staging, write)
    try:
        _link_or_copy(staging, write, original, staging.area(area), old_name(position))
        if sync:
            os.fsync(original)
        return _identity(os.fstat(original))
    finally:
        os.close(original)


def stage_new(staging: Staging, area: int, position: int, write: Write, *, sync: bool) -> FileState:
    """Write the file's new content under its staged name, with its mode and owner, and return its state."""
    from hashlib import sha256

    content = write.new or b""
    kept = None if write.old is None else open_regular(staging.area(area), old_name(position))

    def finish(file: int) -> None:
        if kept is None:
            set_owner(file, *(write.owner or (-1, _inherited_group(staging, write.path))))
        else:
            was = os.fstat(kept)
            set_owner(file, was.st_uid, was.st_gid)
            copy_attributes(kept, file)
        os.fchmod(file, write.new_mode)

    try:
        made = write_new_file(staging.area(area), new_name(position), content, sync=sync, finish=finish)
    finally:
        if kept is not None:
            os.close(kept)
    return FileState(sha256(content).hexdigest(), len(content), write.new_mode, made.st_uid, made.st_gid)


def kept_state(staging: Staging, area: int, position: int, write: Write) -> FileState | None:
    """Return the state of the kept original."""
    from hashlib import sha256

    if write.old is None:
        return None
    now = os.stat(old_name(position), dir_fd=staging.area(area), follow_symlinks=False)
    return FileState(sha256(write.old).hexdigest(), len(write.old), write.old_mode, now.st_uid, now.st_gid)


def check_untouched(staging: Staging, write: Write, identity: Identity | None) -> None:
    """Look once more, right before the change. Raises ChangedUnderUsError when the file is not as it was kept."""
    now = staging.tree.look(write.path)
    if now is None or identity is None:
        if now is None and identity is None:
            return
        raise changed_under_us(write.path)
    if _identity(now) != identity:
        os.close(_open_as_planned(staging, write))


def _open_as_planned(staging: Staging, write: Write) -> int:
    """Open the file that the write is about. Raises ChangedUnderUsError where it is another now."""
    try:
        file = staging.tree.open_file(write.path)
    except (FileNotFoundError, NotADirectoryError):
        file = None
    if file is None:
        raise changed_under_us(write.path)
    try:
        if _is_as_planned(file, write):
            return file
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    raise changed_under_us(write.path)


def _link_or_copy(staging: Staging, write: Write, original: int, area: int, copy: str) -> None:
    folder, name = staging.tree.parent(write.path)
    was = os.fstat(original)
    try:
        os.link(name, copy, src_dir_fd=folder, dst_dir_fd=area, follow_symlinks=False)
    except FileNotFoundError as error:
        raise changed_under_us(write.path) from error
    except OSError as error:
        if error.errno not in NO_HARD_LINKS:
            raise
    else:
        if not os.path.samestat(os.stat(copy, dir_fd=area, follow_symlinks=False), was):
            raise changed_under_us(write.path)
        return

    def finish(file: int) -> None:
        set_owner(file, was.st_uid, was.st_gid)
        copy_attributes(original, file)
        os.fchmod(file, write.old_mode)

    write_new_file(area, copy, write.old or b"", sync=True, finish=finish)


def _is_as_planned(file: int, write: Write) -> bool:
    return stat.S_IMODE(os.fstat(file).st_mode) == write.old_mode and holds(file, write.old or b"")


def _identity(now: os.stat_result) -> Identity:
    return (now.st_dev, now.st_ino, now.st_mode, now.st_size, now.st_mtime_ns, now.st_ctime_ns)


def _inherited_group(staging: Staging, path: str) -> int:
    """Return the group that a set-group-id folder gives its new files, -1 where the folder has no such bit."""
    folder = os.fstat(staging.tree.folder(staging.tree.existing_folder(path)))
    return folder.st_gid if folder.st_mode & stat.S_ISGID else -1
