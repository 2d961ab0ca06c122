"""What the index knows, and what git would take for a repository.

Rule `other-repository`: a set of files that turns a folder into a bare repository, whose config git then obeys.
Rule `hidden`: index entries whose changes `git status` and `git diff` do not show, and files below a tracked file.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from code_commit.git import ask_git
from code_commit.project import Project
from code_commit.verify.ignore_files import UnansweredError, folders_of
from code_commit.verify.paths import fold

_REPOSITORY_MARKS = frozenset({"head", "objects", "refs", "commondir"})
_MARKING_FOLDERS = frozenset({"objects", "refs"})
_REPOSITORIES = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))
"""What setup.c's is_git_directory() of git asks for; `commondir` leads it elsewhere for objects and refs."""

_FEW = 64
"""So many paths are named to git; for more of them the whole index is listed and looked up here."""

_SUBMODULE_MODE = b"160000 "


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


def list_submodules(project: Project) -> frozenset[str]:
    """Return the submodules below the root as the index lists them, those without files too. Raises UnansweredError."""
    if project.git is None or not os.path.lexists(project.git.work_tree / ".gitmodules"):
        return frozenset()
    entries = _list_index(project, ["-s"])
    return frozenset(os.fsdecode(entry.partition(b"\t")[2]) for entry in entries if entry.startswith(_SUBMODULE_MODE))


def find_hidden(paths: Collection[str], project: Project) -> frozenset[str]:
    """Return the paths whose changes git does not show. Raises UnansweredError.

    The index marks them `skip-worktree` or `assume-unchanged`, or holds one of their folders as a file: then
    `git status` tells that the file is gone, and nothing of what lies in the folder.
    """
    if project.git is None or not paths:
        return frozenset()
    folders = {folder.decode() for folder in folders_of(path.encode() for path in paths) if folder}
    named = [*paths, *folders]
    entries = _list_index(project, ["-v", "--", *(named if len(named) <= _FEW else [])])
    tags = {entry[2:].decode("utf-8", "surrogateescape"): entry[:1] for entry in entries}
    files = folders.intersection(tags)
    return frozenset(path for path in paths if _is_hidden(tags.get(path, b"")) or _lies_below(path, files))


def _lies_below(path: str, files: Collection[str]) -> bool:
    return any(path.startswith(file + "/") for file in files)


def _is_hidden(tag: bytes) -> bool:
    """`git ls-files -v`: S is skip-worktree, a lowercase letter assume-unchanged."""
    return tag == b"S" or tag.islower()


def _list_index(project: Project, arguments: Sequence[str]) -> list[bytes]:
    answer = ask_git(["--literal-pathspecs", "ls-files", "-z", *arguments], project.root)
    if answer.returncode != 0:
        raise UnansweredError("git ls-files", answer)
    return answer.stdout.split(b"\0")[:-1]
