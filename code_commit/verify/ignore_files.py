"""The files that git reads ignore rules from, as they were before the run and as they are now."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess

from code_commit.git import ask_git
from code_commit.project import Project
from code_commit.terminal import shown

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class UnansweredError(Exception):
    """A question about the ignore rules has no answer; `str()` says why. Whoever asked must not assume one."""

    def __init__(self, question: str, answer: CompletedProcess[bytes] | None = None) -> None:
        complaint = f" failed: {answer.stderr.decode('utf-8', 'replace')}" if answer else ""
        super().__init__(shown(" ".join((question + complaint).split())))


@dataclass(frozen=True, slots=True)
class IgnoreFiles:
    """The content of ignore files: of each folder's .gitignore (path from the work tree, "" its top), and git's own."""

    by_folder: Mapping[bytes, bytes]
    info_exclude: bytes = b""
    excludes_file: bytes = b""


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The top folder that ignore rules count from, and the project's place in it (b"" or b"a/b")."""

    top: Path
    prefix: bytes

    def place(self, path: str) -> bytes:
        """Return a path of the project as the work tree sees it."""
        encoded = path.encode("utf-8", "surrogateescape")
        return self.prefix + b"/" + encoded if self.prefix else encoded


def find_work_tree(project: Project, *, has_git: bool) -> WorkTree:
    """Return git's work tree; without git the nearest folder above with a .git entry, else the project itself."""
    top = project.root
    if project.git is not None:
        top = project.git.work_tree
    elif not has_git:
        top = next((folder for folder in (top, *top.parents) if os.path.lexists(folder / ".git")), top)
    if not project.root.is_relative_to(top):
        raise UnansweredError(f"the project lies outside of git's work tree {top}")
    relative = project.root.relative_to(top)
    return WorkTree(top, b"" if relative == Path() else os.fsencode(relative))


def folders_of(paths: Iterable[bytes]) -> set[bytes]:
    """Return every folder that the paths lie in, the top b"" included."""
    folders = {b""}
    for path in paths:
        folder = path.rpartition(b"/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition(b"/")[0]
    return folders


def read_ignore_files(project: Project, tree: WorkTree, folders: Iterable[bytes], *, has_git: bool) -> IgnoreFiles:
    """Read the ignore files of the folders, and git's own, as they are now. Raises UnansweredError.

    A .gitignore that is a link is not read, as in git (2.32 and later); a FIFO, on which git would wait for ever,
    is an error.
    """
    top = os.fsencode(tree.top)
    found = ((folder, _read(b"/".join((top, folder, b".gitignore")), os.O_NOFOLLOW)) for folder in folders)
    return IgnoreFiles(
        by_folder={folder: content for folder, content in found if content is not None},
        info_exclude=_read(_info_exclude(project, tree), 0) or b"",
        excludes_file=_read(_excludes_file(project, tree, has_git=has_git), 0) or b"",
    )


def _read(path: bytes | None, flags: int) -> bytes | None:
    if path is None:
        return None
    try:
        descriptor = os.open(path, _READ | flags)
    except OSError:
        return None
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - by descriptor
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            raise UnansweredError(f"{os.fsdecode(path)} is no regular file, git would wait on it for ever: remove it")
        return file.readall() if stat.S_ISREG(mode) else None


def _info_exclude(project: Project, tree: WorkTree) -> bytes | None:
    if project.git is not None:
        return os.fsencode(project.git.common_dir / "info" / "exclude")
    return os.fsencode(tree.top / ".git" / "info" / "exclude")


def _excludes_file(project: Project, tree: WorkTree, *, has_git: bool) -> bytes | None:
    """`core.excludesFile`, or the default that git-config(1) names."""
    if has_git:
        answer = ask_git(["config", "--type=path", "--get", "core.excludesFile"], project.root)
        if answer.returncode == 0:
            path = answer.stdout.removesuffix(b"\n")
            return os.fsencode(tree.top / os.fsdecode(path)) if path else None
    folder = os.environ.get("XDG_CONFIG_HOME") or (os.environ.get("HOME", "") and os.environ["HOME"] + "/.config")
    return os.fsencode(folder) + b"/git/ignore" if folder else None


def list_tracked_folders(project: Project) -> set[bytes]:
    """Return the folders of the work tree whose .gitignore git tracks. Raises UnansweredError."""
    if project.git is None:
        return set()
    pathspecs = [":(top,literal).gitignore", ":(top,glob)**/.gitignore"]
    answer = ask_git(["ls-files", "-z", "--full-name", "--", *pathspecs], project.root)
    if answer.returncode != 0:
        raise UnansweredError("git ls-files", answer)
    return {path.rpartition(b"/")[0] for path in answer.stdout.split(b"\0")[:-1]}


@dataclass(frozen=True, slots=True)
class IgnoreMemory:
    """The ignore rules of before the run: those git tracks are read at its start, others when first met."""

    first: dict[bytes, bytes | None] = field(default_factory=dict)
    start: IgnoreFiles = field(default_factory=lambda: IgnoreFiles({}))

    def before(self, folders: Iterable[bytes], now: IgnoreFiles) -> IgnoreFiles:
        """Return the rules that held for the folders before the run; what is met for the first time counts as now."""
        by_folder = {folder: self.first.setdefault(folder, now.by_folder.get(folder)) for folder in folders}
        known = {folder: content for folder, content in by_folder.items() if content is not None}
        return IgnoreFiles(known, self.start.info_exclude, self.start.excludes_file)


def remember_ignore_files(project: Project, *, has_git: bool) -> IgnoreMemory:
    """Read the ignore files that git tracks, those above and in the root, and git's own. Raises UnansweredError."""
    tree = find_work_tree(project, has_git=has_git)
    folders = list_tracked_folders(project) | folders_of([tree.place("x")])
    start = read_ignore_files(project, tree, folders, has_git=has_git)
    return IgnoreMemory({folder: start.by_folder.get(folder) for folder in folders}, start)


def numbered_lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the patterns of an ignore file as git reads them (dir.c, add_patterns_from_buffer), with their lines."""
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        pattern = _without_blanks(line.removesuffix(b"\r").partition(b"\0")[0])
        if pattern and not pattern.startswith(b"#"):
            yield number, pattern


def _without_blanks(line: bytes) -> bytes:
    """Drop the blanks at the end, except one behind a backslash (dir.c, trim_trailing_spaces)."""
    stripped = line.rstrip(b" ")
    backslashes = len(stripped) - len(stripped.rstrip(b"\\"))
    return stripped + b" " if backslashes % 2 and len(stripped) < len(line) else stripped
