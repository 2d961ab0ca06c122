"""The local project: its root, its git repository if it has one, and the files of agent-config.

Beside it the folder of what its user keeps for all projects, none of which may lie in the project.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from code_commit.errors import Message, NotSetUpError
from code_commit.files import Tree, decode_text, explain_unread, read_regular_file
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
from code_commit.trust import find_top, is_inside
from code_commit.views import digest_of

AGENT_CONFIG = "agent-config"
BUILD_SCRIPT = "build.sh"
ROLLUP_SCRIPT = "codeRollup.sh"
LOG_FOLDER_SUFFIX = "-committing-code"
TRANSACTION_FOLDER = ".txn"
CONFIG_FILE = "config.toml"
_LARGEST_STREAM = 1 << 28  # bytes
_LARGEST_END = 16 << 20  # bytes of a build's output, at either end; a prompt takes far fewer
_LONGEST_OUTPUT = 1 << 30  # bytes of one that cannot be read from its end
USER_VARIABLE = "CODE_COMMIT_USER_SETTINGS"
"""The variable that keeps the user's own settings and keys out, with the value `off`: a fleet's workers have it."""


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

    def holds(self, path: str, text: str) -> bool:
        """Tell whether a file holds this text, line ends and last newlines left out of account."""
        try:
            with Tree(self.root) as tree:
                return digest_of(decode_text(tree.read(path)[0])) == digest_of(text)
        except (OSError, ValueError):
            return False

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
        return self.agent_config / CONFIG_FILE

    @property
    def system_prompts(self) -> Path:
        return self.agent_config / "system-prompts"

    @property
    def logs(self) -> Path:
        return self.agent_config / "logs"

    @property
    def build_script(self) -> Path:
        return self.root / BUILD_SCRIPT


class UserFolder(NamedTuple):
    """The folder of a user's own config.toml and key files, None where none is read.

    `linked` are the names of its files that lead into the project. `warnings` say what is not read, and why.
    """

    path: Path | None
    linked: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def file(self, name: str) -> Path | None:
        """Return the file of this name, None where there is none that may be read."""
        path = self.path and self.path / name
        return path if path and name not in self.linked and os.path.lexists(path) else None


def find_user_folder(project: Project | None, environment: Mapping[str, str] = os.environ) -> UserFolder:
    """Return the folder `code-commit` of $XDG_CONFIG_HOME, else of ~/.config.

    A relative path counts for none (XDG Base Directory Specification). An answer could write whatever lies in the
    project's work tree, or is linked into it, so none of that is read. A fleet's client is in no project (None).
    """
    if environment.get(USER_VARIABLE, "").lower() in ("off", "0", "false", "no"):
        return UserFolder(None)
    named, folder, warnings = environment.get("XDG_CONFIG_HOME", ""), place_of_user(environment), list[str]()
    if named and not Path(named).is_absolute():
        warnings.append(f"$XDG_CONFIG_HOME is {shown(named)}, a relative path, so it is not read: name an absolute one")
    if folder is None or not os.path.lexists(folder):
        return UserFolder(None, warnings=tuple(warnings))
    if project is None:
        return UserFolder(folder, warnings=tuple(warnings))
    top = str(project.git.work_tree) if project.git else find_top(str(project.root))
    if is_inside(str(folder), top):
        why = "is in the project, so your own settings and keys there are not read for it"
        return UserFolder(None, warnings=(*warnings, f"{shown_path(folder)} {why}"))
    linked = frozenset[str]()
    with suppress(OSError):
        linked = frozenset(path.name for path in folder.iterdir() if is_inside(str(path), top))
    warnings += [f"{shown_path(folder / name)} leads into the project: it is not read" for name in sorted(linked)]
    return UserFolder(folder, linked, tuple(warnings))


def place_of_user(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return where the folder of a user's own settings is, or would be; None without a home."""
    base = Path(environment.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():
        base = Path(os.path.expanduser("~/.config"))  # noqa: PTH111 - no error
    return base / "code-commit" if base.is_absolute() else None


def shown_path(path: Path) -> str:
    """Return a path for a message, `~` in place of the home folder."""
    home = os.path.expanduser("~")  # noqa: PTH111 - no error
    return shown(f"~{str(path)[len(home) :]}" if str(path).startswith(f"{home}/") else str(path))


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
            raise NotSetUpError(f"this folder is inside the project {shown(str(top))}: cd there, or name it with -C")
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


def read_stream(stream: IO[bytes], name: str) -> bytes:
    """Return a user's text of any source. Raises NotSetUpError for one that is larger than any answer, or endless."""
    pieces, size = list[bytes](), 0
    while piece := stream.read(1 << 20):  # a read of all at once would take the memory for the largest
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST_STREAM:
            raise NotSetUpError(f"{name} has more than {_LARGEST_STREAM:,} bytes: is it the right one?")
    return b"".join(pieces)


def read_stream_ends(file: IO[bytes]) -> bytes:
    """Return a build's output of any size, of a large one its first and last lines with the size of what is between.

    Raises NotSetUpError for a stream without an end.
    """
    head, tail, between, streamed = file.read(_LARGEST_END), bytearray(), 0, 0
    if file.seekable():
        read = file.tell()
        between = max(0, file.seek(0, os.SEEK_END) - read - _LARGEST_END)
        file.seek(read + between)
    while piece := file.read(1 << 20):
        tail += piece
        between += max(0, len(tail) - _LARGEST_END)
        del tail[:-_LARGEST_END]
        streamed += len(piece)
        if streamed > _LONGEST_OUTPUT:
            raise NotSetUpError(f"the build output still has no end after {streamed:,} bytes: name a file that ends")
    if not between:
        return head + tail
    head = head[: head.rfind(b"\n") + 1 or head.rfind(b" ") + 1]  # lines or words, since a key must not be cut
    cut = tail.find(b"\n") + 1 or tail.find(b" ") + 1 or len(tail)
    between += _LARGEST_END - len(head) + cut
    return head + f"[{between:,} bytes are left out here]\n".encode() + tail[cut:]


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
