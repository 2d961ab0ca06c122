"""Two paths that are one file on a case-insensitive or normalising file system. Rule `same-file`, and a warning."""

import os
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from code_commit.verify.paths import fold


def find_twins(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each path that another one before it clashes with, and that one: same file, or one the other's folder."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        key = "/".join(map(fold, path.split("/")))
        parents = [key[:end] for end in range(len(key)) if key[end] == "/"]
        twin = (
            files.get(key) or folders.get(key) or next((files[parent] for parent in parents if parent in files), None)
        )
        if twin is not None:
            yield path, twin
            continue
        files[key] = path
        for parent in parents:
            folders.setdefault(parent, path)


def find_folder_twins(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each path with a folder that an earlier path spells differently, and that path (`Src/a`, `src/b`)."""
    spelled: dict[str, tuple[str, str]] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder:
            key = "/".join(map(fold, folder.split("/")))
            first = spelled.setdefault(key, (folder, path))
            if first[0] == folder and first[1] != path:
                break
            if first[0] != folder:
                yield path, first[1]
                break
            folder = folder.rpartition("/")[0]


def find_near_names(created: Iterable[str], root: Path) -> Iterator[tuple[str, str]]:
    """Yield each new path that clashes with a file or folder of the tree on some other file system, and that one.

    Here both can stand side by side (else it is a violation); a checkout elsewhere loses one of them.
    """
    listings: dict[str, dict[str, set[str]]] = {}
    for path in created:
        folder = ""
        for name in path.split("/"):
            if folder not in listings:
                listings[folder] = _list_folded(root / folder)
            near = listings[folder].get(fold(name), set())
            if name not in near:
                yield from ((path, f"{folder}/{other}".lstrip("/")) for other in sorted(near)[:1])
                break
            folder = f"{folder}/{name}".lstrip("/")


def _list_folded(folder: Path) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    try:
        for name in os.listdir(folder):  # noqa: PTH208 - names alone, of folders that may be large
            names.setdefault(fold(name), set()).add(name)
    except OSError:
        return {}
    return names


def other_spelling(folder: int, name: bytes, status: os.stat_result) -> bytes | None:
    """Return how the folder itself spells the entry that `name` led to, None when it is spelled exactly so.

    The folder is read only where another spelling leads to the same file, as nowhere on most Linux file systems.
    """
    text = name.decode()
    variants = {text.swapcase()}
    if not text.isascii():
        variants |= {unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    inode = (status.st_dev, status.st_ino)
    if not any(_inode(folder, variant.encode()) == inode for variant in variants - {text}):
        return None
    listing = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        names = [os.fsencode(entry) for entry in os.listdir(listing)]  # noqa: PTH208 - by descriptor
    finally:
        os.close(listing)
    if name in names:
        return None
    return next((entry for entry in names if _inode(folder, entry) == inode), name)


def _inode(folder: int, name: bytes) -> tuple[int, int] | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return (status.st_dev, status.st_ino)
