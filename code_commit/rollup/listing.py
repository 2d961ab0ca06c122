"""Which files the rollup is made of: those git tracks, and untracked ones that it does not ignore."""

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from code_commit.errors import NotSetUpError
from code_commit.git import NOT_A_REPOSITORY, ask_git
from code_commit.terminal import shown

if TYPE_CHECKING:
    from subprocess import CompletedProcess


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths from the project's root, in the order of their bytes, each once; a folder that is not read ends in "/"."""

    paths: list[bytes]
    warnings: list[str] = field(default_factory=list)


def list_files(root: Path, pathspecs: Sequence[str], options: Sequence[str] = ()) -> Listing:
    """Ask git for the files, `options` standing before its command. Raises NotSetUpError with git's complaint.

    The same answer as with `--deduplicate` (git 2.31), also by an older git.
    """
    arguments = [*options, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *pathspecs]
    answer = _ask(arguments, root)
    complaint = answer.stderr.decode("utf-8", "replace").strip()
    if answer.returncode != 0:
        hint = "; a PATHSPEC is a path or a pattern of this project" if answer.returncode == NOT_A_REPOSITORY else ""
        raise NotSetUpError(f"git cannot list the files: {shown(complaint.removeprefix('fatal: '))}{hint}")
    paths = sorted(set(answer.stdout.split(b"\0")))
    warnings = [f"git: {line.removeprefix('warning: ')}" for line in complaint.split("\n") if line]
    return Listing([path for path in paths if path], warnings)


_PATIENCE = 3.0
"""Seconds that git may take before it is looked for what it may wait for."""


def _ask(arguments: Sequence[str], root: Path) -> "CompletedProcess[bytes]":
    from subprocess import TimeoutExpired

    try:
        return ask_git(arguments, root, timeout=_PATIENCE)
    except TimeoutExpired as error:
        blocking = _find_blocking(root)
        if blocking is not None:
            message = f"{shown(blocking)} is no regular file, git would wait for it for ever: remove it"
            raise NotSetUpError(message) from error
    return ask_git(arguments, root)


def _find_blocking(root: Path) -> str | None:
    """Return a .gitignore that can be waited for, a FIFO for instance."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        path = Path(folder, ".gitignore")
        if path.name in names and not (path.is_symlink() or path.is_file()):
            return str(path.relative_to(root))
    return None


def walk_files(root: Path, ignored: Callable[[Sequence[str]], Collection[str]]) -> Listing:
    """List every file that `ignored` does not name, where there is no git to ask.

    It is asked level by level, so that nothing below an ignored folder is looked at.
    """
    paths: list[str] = []
    warnings = []
    folders = [""]
    while folders:
        found: dict[str, bool] = {}
        for folder in folders:
            try:
                entries = _entries(root / folder)
            except OSError as error:
                warnings.append(f"{shown(folder) or 'this folder'} cannot be listed: {error.strerror}")
                continue
            if folder and ".git" in entries:
                paths.append(f"{folder}/")
                continue
            found |= {f"{folder}/{name}" if folder else name: is_folder for name, is_folder in entries.items()}
        found.pop(".git", None)
        hidden = ignored(list(found))
        paths += [path for path, is_folder in found.items() if not is_folder and path not in hidden]
        folders = [path for path, is_folder in found.items() if is_folder and path not in hidden]
    return Listing(sorted(map(os.fsencode, paths)), warnings)


def _entries(folder: Path) -> dict[str, bool]:
    with os.scandir(folder) as entries:
        return {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}


def match_plainly(paths: Collection[bytes], pathspecs: Sequence[str]) -> list[bytes]:
    """Return the paths that pathspecs name, as git reads them without magic: a file, a folder, a pattern.

    Raises NotSetUpError for the magic, which only git reads.
    """
    from fnmatch import fnmatchcase

    plain = [os.path.normpath(pathspec) for pathspec in pathspecs]
    magic = next((pathspec for pathspec in plain if pathspec.startswith((":", "..", "/"))), None)
    if magic is not None:
        raise NotSetUpError(f"{shown(magic)}: without git a PATHSPEC is a path or a pattern of this project")

    def is_named(path: str) -> bool:
        return any(spec in {".", path} or path.startswith(spec + "/") or fnmatchcase(path, spec) for spec in plain)

    return [path for path in paths if is_named(os.fsdecode(path))] if plain else list(paths)
