"""The critical files: no response may name them, no build may change them."""

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from code_commit.files import read_regular_file
from code_commit.git import UnansweredError
from code_commit.project import BUILD_SCRIPT, ROLLUP_SCRIPT, Project
from code_commit.trust import own_folders

PROTECTED = (
    ".gitignore",
    "Cargo.lock",
    "build.sh",
    "codeRollup.sh",
    "LLMInstructions.md",
    "UserSpecification.md",
    ".git",
    "agent-config",
    "target",
)  # the specification's list, in its order; its last entry, the files that .gitignore specifies, is `verify`'s

PROTECTED_ANYWHERE = (".git", ".gitignore", "UserSpecification.md", ".gitattributes", ".gitmodules")
"""At any depth: the specification's "any file named", and the files that bend git's view of a folder."""

USER_SPECIFICATION = "UserSpecification.md"

ROOT_FILES = (".gitignore", BUILD_SCRIPT, ROLLUP_SCRIPT, "LLMInstructions.md", USER_SPECIFICATION)
"""The files of the list that a build must not change: cargo writes Cargo.lock and target itself."""

_INFO_FILES = ("info/exclude", "info/attributes", "info/sparse-checkout", "info/grafts")
GIT_FILES = ("config", "config.worktree", "commondir", *_INFO_FILES)
"""The files of a git directory that run a program or hide a change. Not info/refs: `git gc` writes it."""


def protected_from_build(project: Project) -> list[Path]:
    """Return the files and folders that a build must not change but for agent-config, absolute, existing or not."""
    paths = [*(project.root / name for name in ROOT_FILES), *repository_marks(project)]
    if project.git is not None:
        with suppress(UnansweredError):  # the preflight has told it
            index = project.index()
            paths += [project.root / path for path in sorted(index.files) if path.endswith(f"/{USER_SPECIFICATION}")]
            paths += project.configuration().files
            paths += chain.from_iterable(_of_submodule(project.root / path) for path in sorted(index.submodules))
        link_to_git_dir = project.git.work_tree / ".git"
        if link_to_git_dir.is_symlink() or not link_to_git_dir.is_dir():
            paths.append(link_to_git_dir)
        folders = dict.fromkeys((project.git.git_dir, project.git.common_dir))
        paths += [folder / name for folder in folders for name in GIT_FILES]
        hooks = (project.git.hooks_dir, Path(os.path.realpath(project.git.hooks_dir)))
        paths += [folder for folder in hooks if not project.root.is_relative_to(folder)]
    return list(dict.fromkeys(paths))


def _of_submodule(folder: Path) -> Iterator[Path]:
    """Yield the files of a submodule that name its repository, and GIT_FILES of that: `git status` reads them."""
    git_dir = folder / ".git"
    if not git_dir.is_dir():
        yield git_dir
        with suppress(OSError):
            git_dir = folder / os.fsdecode(read_regular_file(git_dir)).strip().removeprefix("gitdir: ")
    if git_dir.is_dir():
        yield from (Path(os.path.normpath(git_dir / name)) for name in (*GIT_FILES, "hooks"))


def repository_marks(project: Project) -> list[Path]:
    """Return the paths that would make git take the root, or a folder above it, for another repository."""
    top = project.git.work_tree if project.git else project.root.parent
    folders = [folder for folder in (project.root, *project.root.parents) if folder.is_relative_to(top)]
    return [folder / mark for folder in folders if folder != top for mark in (".git", "HEAD")]


def watched_from_build(project: Project) -> list[Path]:
    """Return the folders inside the project that this tool runs from: too large to keep a copy."""
    return [Path(folder) for folder in own_folders(str(project.root))]
