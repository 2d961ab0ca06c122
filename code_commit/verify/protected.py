"""The critical files of the specification, and what would hide changes from the reviewer or run code in git.

Rule `protected`. Names are compared as `fold` sees them, up to a colon: what a case-insensitive, normalising or
Windows file system takes for a protected name is one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from code_commit.project import Project
from code_commit.protected import PROTECTED, PROTECTED_ANYWHERE
from code_commit.verify.paths import fold

RULE = "protected"

_INSTEAD = {
    ".gitignore": "leave it as it is, it decides what the reviewer sees; put files where git does not ignore them",
    "Cargo.lock": "leave it as it is; change Cargo.toml, and the build brings the lock file up to date",
    "build.sh": "leave it as it is and change the code that it builds",
    "codeRollup.sh": "leave it as it is, the supervisor owns it; change the code alone",
    "LLMInstructions.md": "leave it as it is, the supervisor owns it; change the code alone",
    "UserSpecification.md": "leave it as it is and change the code until it does what the specification says",
    ".git": "git's own files are the supervisor's; change files of the work tree alone",
    "agent-config": "leave the folder as it is, it holds the supervisor's settings; put the file elsewhere",
    "target": "the folder belongs to the build; put the file elsewhere, as src/",
    ".gitattributes": "leave it as it is, it decides what the reviewer sees in git diff",
    ".gitmodules": "leave it as it is, it says which other repositories belong here",
}

_IN_ROOT = {fold(name): name for name in PROTECTED}
_ANYWHERE = {fold(name): name for name in PROTECTED_ANYWHERE}
_GIT_LINK_NAMES = frozenset({"git~1", ".git"})

_HOOKS = frozenset(
    (
        *(
            "applypatch-msg",
            "pre-applypatch",
            "post-applypatch",
            "pre-commit",
            "pre-merge-commit",
            "prepare-commit-msg",
        ),
        *("commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push"),
        *("pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction"),
        *(
            "push-to-checkout",
            "pre-auto-gc",
            "post-rewrite",
            "sendemail-validate",
            "fsmonitor-watchman",
            "p4-changelist",
        ),
        *("p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit", "post-index-change"),
    )
)
"""Source: git's githooks(5)."""


@dataclass(frozen=True, slots=True)
class GuardedFolder:
    """A folder inside the project that git runs code or keeps its files in; `parts` is its folded path."""

    parts: tuple[str, ...]
    path: Path
    message: str


def guarded_folders(project: Project) -> tuple[GuardedFolder, ...]:
    """Return the folders inside the project that its git configuration names: the git directory and the hooks."""
    if project.git is None:
        return ()
    named = (
        (project.git.git_dir, "lies in the git directory: change files of the work tree alone"),
        (project.git.common_dir, "lies in the git directory: change files of the work tree alone"),
        (project.git.hooks_dir, "lies in the folder of git's hooks (core.hooksPath): leave the hooks as they are"),
    )
    return tuple(
        GuardedFolder(tuple(map(fold, path.relative_to(project.root).parts)), path, f"is protected: it {message}")
        for path, message in named
        if path.is_relative_to(project.root)
    )


def find_protected(path: str, guarded: Iterable[GuardedFolder]) -> str | None:
    """Return what to do instead of changing the path when it is protected, else None."""
    keys = [_key(part) for part in path.split("/")]
    name = _IN_ROOT.get(keys[0]) or next((_ANYWHERE[key] for key in keys if key in _ANYWHERE), None)
    if name:
        return f"{name} is protected: {_INSTEAD[name]}"
    for folder in guarded:
        depth = len(folder.parts)
        if tuple(keys[:depth]) == folder.parts and (depth or (len(keys) == 1 and keys[0] in _HOOKS)):
            return folder.message
    return None


def _key(part: str) -> str:
    key = fold(part)
    if ":" in key:
        key = key.partition(":")[0].rstrip(" .")
    return ".git" if key in _GIT_LINK_NAMES else key
