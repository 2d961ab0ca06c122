"""The local project: its root, its git work tree if it has one, and the files of agent-config.

Git is asked, never told: read-only questions with an environment that nothing outside can bend.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from code_commit.errors import NotSetUpError
from code_commit.files import read_regular_file
from code_commit.terminal import shown
from code_commit.trust import find_program, outside_environment

AGENT_CONFIG = "agent-config"
BUILD_SCRIPT = "build.sh"
LOG_FOLDER_SUFFIX = "-committing-code"
TRANSACTION_FOLDER = ".txn"


class GitRepository(NamedTuple):
    """Where git keeps the repository that the project is part of. All paths are absolute."""

    work_tree: Path
    git_dir: Path
    common_dir: Path
    hooks_dir: Path

    @property
    def options(self) -> tuple[str, str]:
        """Return the words for git by which it looks for no other repository, which a build may have laid down."""
        return f"--git-dir={self.git_dir}", f"--work-tree={self.work_tree}"


class Index(NamedTuple):
    """What git's index lists below the root. Of `hidden` files it shows no change to anybody."""

    files: frozenset[str] = frozenset()
    submodules: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()


class Configuration(NamedTuple):
    """What git is configured by and with: the files inside the work tree, there or not, and the names of filters."""

    files: tuple[Path, ...] = ()
    filters: tuple[str, ...] = ()


class UnansweredError(Exception):
    """A question to git has no answer; `str()` says why. Whoever asked must not assume one."""

    def __init__(self, question: str, answer: subprocess.CompletedProcess[bytes] | None = None) -> None:
        complaint = f" failed: {answer.stderr.decode('utf-8', 'replace')}" if answer else ""
        super().__init__(shown(" ".join((question + complaint).split())))


@dataclass(frozen=True, slots=True)
class Project:
    """The directory that code-commit runs from. `root` is absolute and free of links."""

    root: Path
    git: GitRepository | None = None
    _indexes: dict[tuple[int, ...], Index] = field(default_factory=dict, compare=False, repr=False)
    """By the `stat` of the index file: git is asked again only when that has changed."""
    _configurations: list[Configuration] = field(default_factory=list, compare=False, repr=False)
    """The one of when it was first asked for: what comes later may be a build's."""
    _identities: list[tuple[tuple[int, ...], ...]] = field(default_factory=list, compare=False, repr=False)
    """Which folders the root and the git directory were when git was first asked."""

    def ask(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Ask git about the repository that the project was found in, and about no other that took its place."""
        if self.git is None:
            return ask_git(arguments, self.root)
        now = tuple(_version(folder)[:2] for folder in (self.root, self.git.git_dir))
        self._identities.append(now)
        if now != self._identities[0]:
            complaint = b"fatal: the folder of the project, or its git directory, is another one than before"
            return subprocess.CompletedProcess(arguments, _GIT_FAILED, b"", complaint)
        return ask_git([*self.git.options, *arguments], self.root)

    def index(self) -> Index:
        """Return what git tracks now. Raises UnansweredError."""
        if self.git is None:
            return Index()
        key = _version(self.git.git_dir / "index")
        if key not in self._indexes:
            self._indexes[key] = _read_index(self)
        return self._indexes[key]

    def configuration(self) -> Configuration:
        """Return what git is configured by; the first answer holds. Raises UnansweredError."""
        if self.git is None:
            return Configuration()
        if not self._configurations:
            self._configurations.append(_read_configuration(self, self.git))
        return self._configurations[0]

    def ask_unfiltered(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Ask git about the content of files, without the filters of its configuration: they may run what is in it.

        Raises UnansweredError where the configuration cannot be read.
        """
        settings = ("process=", "clean=", "smudge=", "required=false")
        off = [f"filter.{name}.{setting}" for name in self.configuration().filters for setting in settings]
        return self.ask([*(word for setting in off for word in ("-c", setting)), *arguments])

    @property
    def prefix(self) -> str:
        """Where the root is in git's work tree: "" or "a/b/"."""
        top = self.git.work_tree if self.git else self.root
        return "" if top == self.root else f"{self.root.relative_to(top)}/"

    @property
    def agent_config(self) -> Path:
        return self.root / AGENT_CONFIG

    @property
    def query_file(self) -> Path:
        return self.agent_config / "query.txt"

    @property
    def codebase_file(self) -> Path:
        return self.agent_config / "codeRollup.txt"

    @property
    def config_file(self) -> Path:
        return self.agent_config / "config.toml"

    @property
    def system_prompts(self) -> Path:
        return self.agent_config / "system-prompts"

    @property
    def logs(self) -> Path:
        return self.agent_config / "logs"

    @property
    def build_script(self) -> Path:
        return self.root / BUILD_SCRIPT


def find_project(directory: Path | None = None) -> Project:
    """Return the project in `directory` (the current one when None).

    Raises NotSetUpError without git, and where git refuses the directory.
    """
    try:
        root = Path(os.path.realpath(directory or Path.cwd(), strict=True))
    except OSError as error:
        message = f"the current directory cannot be used: {error.strerror}; change to the project's folder"
        raise NotSetUpError(message) from error
    require_git(root)
    project = Project(root, _find_repository(root))
    if project.git and not project.agent_config.exists():
        above = [folder for folder in root.parents if folder.is_relative_to(project.git.work_tree)]
        if top := next((folder for folder in above if (folder / AGENT_CONFIG).is_dir()), None):
            raise NotSetUpError(f"this is a folder of the project in {shown(str(top))}: go there, or name it with -C")
    return project


def _find_repository(root: Path) -> GitRepository | None:
    answer = ask_git(["rev-parse", *(word for question in _PATH_QUESTIONS for word in question)], root)
    if answer.returncode != 0:
        complaint = answer.stderr.decode("utf-8", "replace").strip()
        if "not a git repository" in complaint:
            return None
        raise NotSetUpError(f"git cannot work in {root}: {complaint}")
    answers = answer.stdout.split(b"\n")[:-1]
    if len(answers) != len(_PATH_QUESTIONS):  # a folder's name holds a line end
        answers = [ask_git(["rev-parse", *question], root).stdout[:-1] for question in _PATH_QUESTIONS]
    repository = GitRepository(*(Path(os.path.normpath(root / os.fsdecode(path))) for path in answers))
    if not root.is_relative_to(repository.work_tree):
        where = shown(str(repository.work_tree))
        raise NotSetUpError(f"git's work tree is {where} (core.worktree), and this folder is not in it: go there")
    return repository


_PATH_QUESTIONS = (("--show-toplevel",), ("--absolute-git-dir",), ("--git-common-dir",), ("--git-path", "hooks"))


def _version(file: Path) -> tuple[int, ...]:
    try:
        status = file.stat()
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _read_index(project: Project) -> Index:
    answer = project.ask(["ls-files", "-z", "-v", "-s"])
    if answer.returncode != 0:
        raise UnansweredError("git ls-files", answer)
    files, submodules, hidden = set(), set(), set()
    for entry in answer.stdout.split(b"\0")[:-1]:
        path = os.fsdecode(entry.partition(b"\t")[2])
        tag, mode = entry[:1], entry[2:8]
        files.add(path)
        if mode == b"160000":
            submodules.add(path)
        if tag == b"S" or tag.islower():  # skip-worktree, assume-unchanged
            hidden.add(path)
    return Index(frozenset(files), frozenset(submodules), frozenset(hidden))


def _read_configuration(project: Project, git: GitRepository) -> Configuration:
    """Ask git what it is configured with, and from which files; some that it would read too may not be there yet."""
    answer = project.ask(["config", "--list", "--show-origin", "-z"])
    if answer.returncode != 0:
        raise UnansweredError("git config", answer)
    user = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config", "git")
    files = [Path("~/.gitconfig"), user / "config", user / "ignore", user / "attributes"]
    files += [Path(os.environ[name]) for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM") if name in os.environ]
    filters = set()
    words = os.fsdecode(answer.stdout).split("\0")
    for origin, entry in zip(words[::2], words[1::2], strict=False):
        key, _, value = entry.partition("\n")
        file = Path(origin.removeprefix("file:"))
        files.append(file)
        if key in {"core.excludesfile", "core.attributesfile"}:
            files.append(Path(value))
        elif key.startswith("include") and key.endswith(".path"):
            files.append(file.parent / Path(value).expanduser())
        elif key.startswith("filter."):
            filters.add(key.removeprefix("filter.").rpartition(".")[0])
    paths = {os.path.normpath(git.work_tree / file.expanduser()) for file in files}
    paths |= {os.path.realpath(path) for path in paths}
    above = project.root.parents
    inside = (path for path in map(Path, sorted(paths)) if _is_of_work_tree(path, git) and path not in above)
    return Configuration(tuple(inside), tuple(sorted(filters)))


def _is_of_work_tree(path: Path, git: GitRepository) -> bool:
    """Tell whether the path is below the top of the work tree, and not of git's own folders: those are anyway."""
    folders = (git.git_dir, git.common_dir)
    return git.work_tree in path.parents and not any(path.is_relative_to(folder) for folder in folders)


def require_git(root: Path) -> str:
    """Return git's absolute path. Raises NotSetUpError where there is none."""
    git = find_program("git", root)
    if git is None:
        message = "git is not installed, or not on the PATH: code-commit cannot work without it"
        raise NotSetUpError(f"{message}; one that lies inside the project does not count")
    return git


def ask_git(arguments: Sequence[str], cwd: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run one read-only git command in `cwd` and return it, whatever its exit code.

    The `GIT_*` environment is cleared, so that a hook's or an alias's `GIT_DIR` does not answer for another
    repository; the user's own configuration stays. No lock is taken, no file system monitor is started, and nothing
    is read that `git replace` put in the place of another object. No answer in two minutes counts as a failure: git
    waits for ever on a FIFO that is named .gitignore.
    """
    environment = {name: value for name, value in outside_environment(cwd).items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    environment["GIT_NO_REPLACE_OBJECTS"] = "1"
    words = [require_git(cwd), "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false", *arguments]
    try:
        return subprocess.run(
            words, cwd=cwd, env=environment, input=stdin, capture_output=True, check=False, timeout=_GIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        complaint = f"no answer in {_GIT_SECONDS} s; is there a FIFO in the tree?"
        return subprocess.CompletedProcess(words, _GIT_FAILED, b"", complaint.encode())


_GIT_SECONDS = 120
_GIT_FAILED = 128
"""The exit code of git itself when it cannot go on."""


def read_text(path: Path, purpose: str, name: str = "") -> str:
    """Return a user's text file exactly as it is. Raises NotSetUpError when it is missing, empty or not UTF-8."""
    shown_path = shown(name) or f"{AGENT_CONFIG}/{path.name}"
    try:
        content = read_regular_file(path)
    except FileNotFoundError as error:
        raise NotSetUpError(f"{shown_path} is missing: {purpose}") from error
    except OSError as error:
        raise NotSetUpError(f"{shown_path} cannot be read: {error.strerror}") from error
    return text_of(content, shown_path, purpose)


def text_of(content: bytes, name: str, purpose: str) -> str:
    """Return a content as text, exactly as it is. Raises NotSetUpError when it is empty or not UTF-8."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{name} is not UTF-8 text (byte {error.start} is {content[error.start]:#04x}): convert it"
        raise NotSetUpError(message) from error
    if not text.strip():
        raise NotSetUpError(f"{name} is empty: {purpose}")
    return text


def read_query(project: Project) -> str:
    """Return the hand-written task, unchanged. Raises NotSetUpError."""
    return read_text(project.query_file, "write the task into it; code-commit -m needs none")


def read_codebase(project: Project) -> str:
    """Return the code rollup, unchanged. Raises NotSetUpError."""
    return read_text(project.codebase_file, "write the codebase into it, as code-commit rollup does")
