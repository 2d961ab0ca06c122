"""Where that is kept which a build, or the user during it, left in the place of what is put back."""

import contextlib
import itertools
import os
import shutil
import stat
import time
from pathlib import Path

FOLDER_NAME = "changed-by-build"


class Kept:
    """What is replaced: first set aside beside its place, then moved into a new folder that is its owner's alone."""

    def __init__(self, root: Path, folder: Path) -> None:
        """Keep, by the paths below `root`, in a new folder of `folder`; it is made when there is something to keep."""
        self.folder: Path | None = None
        self._root = root
        self._parent = folder
        self._asides: list[tuple[Path, Path]] = []

    def take(self, path: Path) -> None:
        """Take a file or a folder away; a link, a FIFO or a device has no content and just goes. Raises OSError."""
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            aside = self._aside(path)
            path.rename(aside)
            self._asides.append((path, aside))
            if stat.S_ISDIR(mode):  # rename(2): a folder that gets another parent must be writable
                with contextlib.suppress(OSError):
                    aside.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)
        else:
            path.unlink()

    def link(self, path: Path) -> None:
        """Remember a file that is about to be replaced, so that its place is never empty. Raises OSError."""
        if not stat.S_ISREG(path.lstat().st_mode):
            return
        aside = self._aside(path)
        try:
            os.link(path, aside, follow_symlinks=False)
        except OSError:  # a file system without hard links, or a file that may not be linked
            path.rename(aside)
        self._asides.append((path, aside))

    def gather(self) -> dict[Path, str]:
        """Move all that was set aside into the folder; {path: why not, and where it is} of what cannot be moved.

        The deepest come first: then no kept link or file can be in the way of another's parent folder.
        """
        problems: dict[Path, str] = {}
        for path, aside in sorted(self._asides, key=lambda pair: -len(pair[0].parts)):
            try:
                shutil.move(aside, self._place(path))
            except OSError as error:
                problems[path] = (
                    f", and what was there is kept as {aside.name}: {error.strerror or 'it cannot be moved'}"
                )
        self._asides.clear()
        return problems

    def _aside(self, path: Path) -> Path:
        return path.with_name(f".{os.getpid()}-{time.monotonic_ns()}.replaced")

    def _place(self, path: Path) -> Path:
        """Return a free path in the folder, with its parent made."""
        if self.folder is None:
            self.folder = _new_folder(self._parent)
        base = self._root if path.is_relative_to(self._root) else Path(path.anchor)
        for number in itertools.count():
            place = (self.folder / f"again-{number}" if number else self.folder) / path.relative_to(base)
            if not os.path.lexists(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                return place
        raise AssertionError


def _new_folder(parent: Path) -> Path:
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    stamp = time.strftime("%Y-%m-%d-%H-%M-%S", time.gmtime())
    for number in itertools.count(1):
        folder = parent / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise AssertionError
