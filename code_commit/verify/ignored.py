"""The files that git would not show the reviewer: rules `ignored` and `hidden`.

One `git check-ignore` answers for all paths, in an empty repository if the project has none. A path is ignored if the
rules before the run or the present ones match it, since a build may change a .gitignore. If git fails, the response is
rejected.
"""

import os
import stat
import tempfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from code_commit.errors import NotSetUpError
from code_commit.files import folders_of, load_json
from code_commit.git import UnansweredError, ask_git, repository_options
from code_commit.project import Project

# the content of each .gitignore before the run, None where there was none, by its path from the work tree's top
IgnoreFiles = dict[str, bytes | None]
_PLAINLY = "./"  # disables pathspec magic: check-ignore has no `--literal-pathspecs`


def remember_ignore_files(project: Project) -> IgnoreFiles:
    """Return the tracked .gitignore files and those of the root and above it. Raises UnansweredError."""
    top, root = _top(project), project.prefix
    tracked = {root + path for path in project.index().files if path.endswith("/.gitignore")}
    paths = tracked | _ignore_files_above([f"{root}x"])
    return {path: _read(top / path) for path in paths}


def dump_ignore_files(files: IgnoreFiles) -> dict[str, str | None]:
    return {path: None if content is None else content.decode("latin-1") for path, content in files.items()}


def load_ignore_files(document: bytes) -> IgnoreFiles:
    """Return the ignore files that were dumped. Raises ValueError for a damaged document."""
    files = load_json(document)
    if not isinstance(files, dict) or not all(isinstance(text, str | None) for text in files.values()):
        raise ValueError("it holds something else")
    return {path: None if text is None else text.encode("latin-1") for path, text in files.items()}


def _top(project: Project) -> Path:
    return project.git.work_tree if project.git else project.root


def _ignore_files_above(paths: Iterable[str]) -> set[str]:
    return {f"{folder}/.gitignore".lstrip("/") for folder in folders_of(paths)}


def _read(path: Path) -> bytes | None:
    """Return the content of a .gitignore, None for a link, which git 2.32 and later ignores."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISFIFO(mode):
            raise UnansweredError(f"{path} is not a regular file, git would wait on it forever: remove it")
        return path.read_bytes() if stat.S_ISREG(mode) else None
    except OSError:
        return None


def find_ignored(paths: Collection[str], project: Project, before: IgnoreFiles) -> set[str]:
    """Return the paths that the rules of before the run or the present ones ignore. Raises UnansweredError."""
    if not paths:
        return set()
    top, root = _top(project), project.prefix
    now = {path: _read(top / path) for path in _ignore_files_above(root + path for path in paths)}
    then = {path: before.setdefault(path, content) for path, content in now.items()}
    with repository_options(project.root, project.git) as options:
        ignored = _check_ignore(paths, options, project.root)
        return ignored if then == now else ignored | _check_ignore_before(paths, options, root, then)


def _check_ignore_before(paths: Iterable[str], options: Sequence[str], root: str, before: IgnoreFiles) -> set[str]:
    """Ask over a work tree that holds nothing but copies of the ignore files of before the run."""
    with tempfile.TemporaryDirectory(prefix="code-commit-") as folder:
        for path, content in before.items():
            if content:
                copy = Path(folder, path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
        Path(folder, root).mkdir(parents=True, exist_ok=True)
        return _check_ignore(paths, [*options, f"--work-tree={folder}"], Path(folder, root))


def ignored_paths(project: Project, paths: Collection[str]) -> frozenset[str]:
    """Return the paths that git ignores now, tracked or not. Raises NotSetUpError."""
    try:
        return frozenset(find_ignored(paths, project, {}))
    except (UnansweredError, OSError) as error:
        raise NotSetUpError(f"the ignore rules cannot be read: {error}") from error


def _check_ignore(paths: Iterable[str], options: Sequence[str], root: Path) -> set[str]:
    """Ask for all paths at once, sorted: git reads and matches each folder of neighbours once."""
    asked = b"".join(os.fsencode(_PLAINLY + path) + b"\0" for path in sorted(paths))
    answer = ask_git([*options, "check-ignore", "--no-index", "-z", "--stdin"], root, asked)
    if answer.returncode not in (0, 1):
        raise UnansweredError("git check-ignore", answer)
    return {os.fsdecode(path).removeprefix(_PLAINLY) for path in answer.stdout.split(b"\0")[:-1]}


def find_hidden(paths: Collection[str], gone: Collection[str], project: Project) -> frozenset[str]:
    """Return the paths that the index hides, or holds a folder of as a file not gone. Raises UnansweredError."""
    index = project.index()
    return frozenset(
        path for path in paths if path in index.hidden or not (folders_of([path]) & index.files).issubset(gone)
    )
