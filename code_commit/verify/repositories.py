"""A set of files that turns a folder into a bare repository, whose config git then obeys. Rule `other-repository`."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from code_commit.verify.paths import fold

_REPOSITORY_MARKS = frozenset({"head", "objects", "refs", "commondir"})
_MARKING_FOLDERS = frozenset({"objects", "refs"})
_REPOSITORIES = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))
"""What setup.c's is_git_directory() of git asks for; `commondir` leads it elsewhere for objects and refs."""


def find_bare_repositories(written: Iterable[str], root: Path) -> Iterator[tuple[str, str]]:
    """Yield each path that, with the others, makes a folder look like a repository; and the folder."""
    marked: dict[str, dict[str, str]] = {}
    for path in written:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            mark = fold(part)
            if mark in _REPOSITORY_MARKS and (mark in _MARKING_FOLDERS or depth == len(parts) - 1):
                marked.setdefault("/".join(parts[:depth]), {}).setdefault(mark, path)
    for folder, marks in marked.items():
        there = {mark for mark in _REPOSITORY_MARKS - marks.keys() if _is_there(root, folder, mark)}
        if any(needed <= there | marks.keys() for needed in _REPOSITORIES):
            yield from ((path, folder) for path in marks.values())


def _is_there(root: Path, folder: str, mark: str) -> bool:
    if mark == "head":
        head = root / folder / "HEAD"
        return os.path.lexists(head) and not head.is_dir()
    return os.path.lexists(root / folder / mark)
