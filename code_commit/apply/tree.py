"""The project's files and folders, reached from the root one component after the other, never through a link."""

import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from code_commit.apply.durable import FOLDER, OLD_FILE


class OpenFile(NamedTuple):
    """A descriptor, and what the file was when it was opened."""

    descriptor: int
    state: os.stat_result


class Tree:
    """Paths are relative to the root, with `/`; the root itself is the empty path. Open until `close`."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._latest = ("", self._root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.forget()
        os.close(self._root)

    def forget(self) -> None:
        """Walk anew from the root at the next question: folders have come or gone."""
        path, folder = self._latest
        self._latest = ("", self._root)
        if path:
            os.close(folder)

    def folder(self, path: str) -> int:
        """Return a descriptor of the folder, good until the next question. Raises OSError (ENOENT, ENOTDIR, ELOOP)."""
        latest, descriptor = self._latest
        if path == latest:
            return descriptor
        if latest and path.startswith(f"{latest}/"):
            self._latest = (path, _walk(os.dup(descriptor), path[len(latest) + 1 :]))
            os.close(descriptor)
            return self._latest[1]
        self.forget()
        if path:
            self._latest = (path, _walk(os.dup(self._root), path))
        return self._latest[1]

    def parent(self, path: str) -> tuple[int, str]:
        """Return the folder that the path's last component is in, and that component."""
        folder, _, name = path.rpartition("/")
        return self.folder(folder), name

    def look(self, path: str) -> os.stat_result | None:
        """Return what is at the path, itself even if it is a link; None when nothing is."""
        try:
            folder, name = self.parent(path)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def is_folder(self, path: str) -> bool:
        """Tell whether there is a folder at the path, and no link to one."""
        found = self.look(path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def open_file(self, path: str) -> OpenFile | None:
        """Open the regular file at the path for reading; None when there is no regular file."""
        folder, name = self.parent(path)
        return open_regular(folder, name)

    def existing_folder(self, path: str) -> str:
        """Return the path's nearest ancestor that is there as a folder."""
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            try:
                self.folder(folder)
            except (FileNotFoundError, NotADirectoryError):
                continue
            break
        return folder


def _walk(here: int, path: str) -> int:
    """Return a descriptor of the folder below `here`, which is closed."""
    for name in path.split("/"):
        try:
            if name in {"", ".", ".."}:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
            below = os.open(name, FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def open_regular(folder: int, name: str) -> OpenFile | None:
    """Open a regular file of the folder for reading; None when there is none (a link, a FIFO, a device, nothing)."""
    try:
        file = os.open(name, OLD_FILE, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EMLINK, errno.ENXIO}:
            return None
        raise
    state = os.fstat(file)
    if not stat.S_ISREG(state.st_mode):
        os.close(file)
        return None
    return OpenFile(file, state)


def folder_of(path: str) -> str:
    """Return the path of the folder that the path is in."""
    return path.rpartition("/")[0]


def folders_above(path: str) -> list[str]:
    """Return every folder that the path lies in, the nearest first, without the root."""
    folders = []
    while path := folder_of(path):
        folders.append(path)
    return folders


def parts(path: str) -> list[str]:
    """Sort key: a folder's files stand together, a folder before what is in it."""
    return path.split("/")
