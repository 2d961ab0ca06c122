"""The local project: its root, its git repository if it has one, and the files of agent-config."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from code_commit.errors import Message, NotSetUpError
from code_commit.files import Tree, explain_unread, read_regular_file
from code_commit.git import (
    Configuration,
    Index,
    Repository,
    UnansweredError,
    ask_git,
    find_repository,
    repository_options,
    require_git,
    require_utf8_names,
)
from code_commit.terminal import shown

AGENT_CONFIG = "agent-config"
BUILD_SCRIPT = "build.sh"
ROLLUP_SCRIPT = "codeRollup.sh"
LOG_FOLDER_SUFFIX = "-committing-code"
TRANSACTION_FOLDER = ".txn"


@dataclass(frozen=True, slots=True)
class Project:
    """The directory that code-commit runs from. `root` is absolute and free of links."""

    root: Path
    git: Repository | None = None

    def ask(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Ask git about the repository that the project was found in; about none where it is in none."""
        return self.git.ask(arguments) if self.git else ask_git(arguments, self.root)

    def has(self, path: str) -> bool:
        return os.path.lexists(self.root / path)

    def has_folder(self, path: str) -> bool:
        return os.path.isdir(self.root / path)  # noqa: PTH112 - it takes any path

    def has_line(self, path: str, line: str) -> bool:
        """Tell whether a file has this line, blanks at its end left out of account; False if it cannot be read."""
        try:
            with Tree(self.root) as tree:
                content = tree.read(path)[0]
        except (OSError, ValueError):
            return False
        sought = line.encode("utf-8", "surrogatepass")
        return sought in content and any(each.rstrip(b" \t\r") == sought for each in content.split(b"\n"))

    def index(self) -> Index:
        """Return the files that git tracks now, none without a repository. Raises UnansweredError."""
        return self.git.index() if self.git else Index()

    def untracked(self) -> list[str]:
        """Return the files that git would track, all files without a repository. Raises UnansweredError."""
        with repository_options(self.root, self.git) as options:
            answer = ask_git([*options, "ls-files", "-z", "--others", "--exclude-standard"], self.root)
        if answer.returncode != 0:
            raise UnansweredError("git ls-files", answer)
        return os.fsdecode(answer.stdout).split("\0")[:-1]

    def configuration(self) -> Configuration:
        """Return git's configuration, an empty one without a repository. Raises UnansweredError."""
        return self.git.configuration() if self.git else Configuration()

    @property
    def prefix(self) -> str:
        """The root's place in git's work tree: "" or "a/b/"."""
        return self.git.prefix if self.git else ""

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
    def has_own_rollup(self) -> bool:
        """Whether codeRollup.txt is what the project's own script wrote."""
        return (self.root / ROLLUP_SCRIPT).exists() and self.codebase_file.exists()

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
    """Return the project in `directory`, by default the current one. Raises NotSetUpError, also without git."""
    try:
        root = Path(os.path.realpath(directory or Path.cwd(), strict=True))
    except OSError as error:
        where = f"the folder {shown(str(directory))}" if directory else "the current directory"
        advice = "name the project's folder" if directory else "change to the project's folder"
        message = f"{where} cannot be used: {error.strerror}; {advice}"
        raise NotSetUpError(message) from error
    require_utf8_names()
    require_git(root)
    project = Project(root, find_repository(root))
    if project.git and not project.agent_config.exists():
        above = [folder for folder in root.parents if folder.is_relative_to(project.git.work_tree)]
        if top := next((folder for folder in above if (folder / AGENT_CONFIG).is_dir()), None):
            raise NotSetUpError(f"this is a folder of the project in {shown(str(top))}: go there, or name it with -C")
    return project


def read_text(path: Path, purpose: str | Message, name: str = "") -> str:
    """Return a user's text file exactly as it is. Raises NotSetUpError when it is missing, empty or not UTF-8."""
    shown_path = shown(name) or f"{AGENT_CONFIG}/{path.name}"
    try:
        content = read_regular_file(path)
    except FileNotFoundError as error:
        raise NotSetUpError(f"{shown_path} is missing: ", *_parts(purpose)) from error
    except OSError as error:
        raise NotSetUpError(explain_unread(path, shown_path, error)) from error
    return require_text(content, shown_path, purpose)


def require_text(content: bytes, name: str, purpose: str | Message) -> str:
    """Return a content as text, exactly as it is. Raises NotSetUpError when it is empty or not UTF-8."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{name} is not UTF-8 text (byte {error.start} is {content[error.start]:#04x}): save it as UTF-8"
        raise NotSetUpError(message) from error
    if not text.strip():
        raise NotSetUpError(f"{name} is empty: ", *_parts(purpose))
    return text


def _parts(purpose: str | Message) -> Message:
    return (purpose,) if isinstance(purpose, str) else purpose
