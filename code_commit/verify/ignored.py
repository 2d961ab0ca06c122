"""What git ignores, by git's own word. Rule `ignored`.

With git installed one `git check-ignore` answers for all paths, outside a repository over an empty bare one; where git
is missing `gitignore` answers. A question without an answer rejects.
"""

import os
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from code_commit.errors import ApplyError
from code_commit.git import ask_git, find_git
from code_commit.project import Project
from code_commit.verify.ignore_files import (
    IgnoreFiles,
    IgnoreMemory,
    UnansweredError,
    WorkTree,
    find_work_tree,
    folders_of,
    read_ignore_files,
)
from code_commit.verify.letter_case import read_otherwise

Question = tuple[str | None, Collection[bytes]]
"""The value of core.ignoreCase (None: as it is configured), and the paths to ask for with it."""

_PLAINLY = b"./"
"""In front of a path git sees no pathspec magic in it (check-ignore knows no `--literal-pathspecs`)."""


def find_ignored(paths: Collection[str], project: Project, memory: IgnoreMemory) -> set[str]:
    """Return those of the paths that the rules of before the run or those of now ignore. Raises UnansweredError."""
    if not paths:
        return set()
    has_git = find_git() is not None
    tree = find_work_tree(project, has_git=has_git)
    places = {tree.place(path): path for path in paths}
    folders = folders_of(places)
    now = read_ignore_files(project, tree, folders, has_git=has_git)
    before = memory.before(folders, now)
    if has_git:
        found = _ask(project, tree, _in_any_case(places, now))
        if before != now:
            found |= _ask_over_copies(before, _in_any_case(places, before))
    else:
        found = _ask_pathspec(places, now, any_case=True)
        if before != now:
            found |= _ask_pathspec(places, before, any_case=True)
    return {places[place] for place in found}


def _in_any_case(places: Collection[bytes], files: IgnoreFiles) -> Sequence[Question]:
    """What is ignored with either value is ignored; the second question is for paths whose answer may differ alone."""
    contents = (*files.by_folder.values(), files.info_exclude, files.excludes_file)
    return (("false", places), ("true", read_otherwise(places, contents)))


def find_ignored_now(paths: Collection[str], project: Project) -> set[str]:
    """Return those of the paths that are ignored now, with git's own regard to case. Raises UnansweredError."""
    if not paths:
        return set()
    has_git = find_git() is not None
    tree = find_work_tree(project, has_git=has_git)
    places = {tree.place(path): path for path in paths}
    files = read_ignore_files(project, tree, folders_of(places), has_git=has_git)
    if has_git:
        found = _ask(project, tree, [(None, places)])
    else:
        top = os.fsencode(tree.top)
        asked = {place + b"/" * _is_folder(top + b"/" + place): place for place in places}
        found = {asked[place] for place in _ask_pathspec(asked, files, any_case=False)}
    return {places[place] for place in found}


def _ask(project: Project, tree: WorkTree, questions: Sequence[Question]) -> set[bytes]:
    if project.git is not None:
        return _check_ignore(tree.top, [], questions)
    with empty_repository() as repository:
        options = [f"--git-dir={repository}", f"--work-tree={tree.top}"]
        return _check_ignore(tree.top, options, questions)


def _ask_over_copies(files: IgnoreFiles, questions: Sequence[Question]) -> set[bytes]:
    """Ask git over a work tree that holds nothing but copies of ignore files."""
    with empty_repository(files.info_exclude) as repository:
        tree, excludes = repository.parent / "tree", repository.parent / "excludes"
        excludes.write_bytes(files.excludes_file)
        for folder, content in files.by_folder.items():
            copy = tree / os.fsdecode(folder)
            copy.mkdir(parents=True, exist_ok=True)
            (copy / ".gitignore").write_bytes(content)
        options = [f"--git-dir={repository}", f"--work-tree={tree}", "-c", f"core.excludesFile={excludes}"]
        return _check_ignore(tree, options, questions)


def _ask_pathspec(places: Iterable[bytes], files: IgnoreFiles, *, any_case: bool) -> set[bytes]:
    from code_commit.verify import gitignore

    return gitignore.find_ignored(places, files, any_case=any_case)


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def match_patterns(patterns: Sequence[str], paths: Collection[str], *, any_case: bool) -> set[str]:
    """Return the paths that patterns of .gitignore syntax match, or that lie in a folder they match.

    Raises UnansweredError.
    """
    places = {path.encode(): path for path in paths}
    content = "".join(pattern + "\n" for pattern in patterns).encode("utf-8", "surrogateescape")
    files = IgnoreFiles({}, info_exclude=content)
    if find_git() is None:
        return {places[place] for place in _ask_pathspec(places, files, any_case=any_case)}
    questions = _in_any_case(places, files) if any_case else [("false", places)]
    return {places[place] for place in _ask_over_copies(files, questions)}


def _check_ignore(tree: Path, options: Sequence[str], questions: Sequence[Question]) -> set[bytes]:
    """Ask for all paths of a question at once, sorted: git reads and matches each folder of neighbours once."""
    found: set[bytes] = set()
    for case, places in questions:
        asked = sorted(place for place in places if place not in found)
        if not asked:
            continue
        regard = [] if case is None else ["-c", f"core.ignoreCase={case}"]
        arguments = [*options, *regard, "check-ignore", "--no-index", "-z", "--stdin"]
        answer = ask_git(arguments, tree, b"".join(_PLAINLY + place + b"\0" for place in asked))
        if answer.returncode not in (0, 1):
            raise UnansweredError("git check-ignore", answer)
        found.update(place.removeprefix(_PLAINLY) for place in answer.stdout.split(b"\0")[:-1])
    return found


@contextmanager
def empty_repository(info_exclude: bytes = b"") -> Iterator[Path]:
    """Lay down the least that git takes for a repository, in a private temporary folder, beside an empty `tree`."""
    try:
        with tempfile.TemporaryDirectory(prefix="code-commit-", ignore_cleanup_errors=True) as folder:
            repository = Path(folder, "git")
            for name in ("objects", "refs", "info"):
                (repository / name).mkdir(parents=True)
            (repository / "HEAD").write_bytes(b"ref: refs/heads/main\n")
            (repository / "info" / "exclude").write_bytes(info_exclude)
            Path(folder, "tree").mkdir()
            yield repository
    except OSError as error:
        message = f"the response cannot be checked, nothing was changed: {error.strerror} in {tempfile.gettempdir()}"
        raise ApplyError(message) from error
