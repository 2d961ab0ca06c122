"""Read-only questions to git with the user's own settings, about this repository whatever the variables name."""

import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from code_commit.errors import NotSetUpError
from code_commit.files import folders_of, identity_of
from code_commit.regex import regex
from code_commit.terminal import shown
from code_commit.trust import find_program, outside_environment

_GIT_SECONDS = 120
_CONVERTED = regex(rb"\r|[$]Id:[^\n$]*[$]")  # git may store this in another form
_GIT_FAILED = 128  # git's own exit code when it cannot go on
_OF_ONE_REPOSITORY = regex(
    "GIT_(?:ALTERNATE_OBJECT_DIRECTORIES|COMMON_DIR|CONFIG|DIR|GRAFT_FILE|IMPLICIT_WORK_TREE|INDEX_FILE"
    "|INTERNAL_SUPER_PREFIX|NAMESPACE|NO_REPLACE_OBJECTS|OBJECT_DIRECTORY|PREFIX|QUARANTINE_PATH|REPLACE_REF_BASE"
    "|SHALLOW_FILE|WORK_TREE)"
)
"""Variables that hold for one repository: `git rev-parse --local-env-vars`, NAMESPACE and QUARANTINE_PATH.

Not CONFIG_COUNT and CONFIG_PARAMETERS, which git keeps too where it works for another one (prepare_other_repo_env).
"""
_ANSWERS_OTHERWISE = regex(
    "GIT_(?:.*(?:TRACE|TEST|PATHSPECS|DEBUG|VERBOSE).*|ATTR_SOURCE|CEILING_DIRECTORIES|DIFF_OPTS|EXTERNAL_DIFF"
    "|PAGER_IN_USE|PRINT_SHA1_ELLIPSIS)"
)
"""Variables that change how git answers, or let it run something else."""
_PATH_QUESTIONS = (("--show-toplevel",), ("--absolute-git-dir",), ("--git-common-dir",), ("--git-path", "hooks"))


class Index(NamedTuple):
    """The paths of git's index below the root. Git shows no change of `hidden` files."""

    files: frozenset[str] = frozenset()
    submodules: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()

    def names(self) -> set[str]:
        """Return the files and the folders that they are in."""
        return folders_of(self.files) - {""} | self.files


class Configuration(NamedTuple):
    """Git's configuration: its files inside the work tree, there or not, the names of filters, and the user's files of
    attributes.
    """

    files: tuple[Path, ...] = ()
    filters: tuple[str, ...] = ()
    attributes: tuple[Path, ...] = ()


class UnansweredError(Exception):
    """A question to git has no answer: the caller must not assume one. `complaint` is git's message."""

    def __init__(self, question: str, answer: subprocess.CompletedProcess[bytes] | None = None) -> None:
        self.complaint = answer.stderr.decode("utf-8", "replace") if answer else ""
        failed = f" failed: {self.complaint}" if answer else ""
        super().__init__(shown(" ".join((question + failed).split())))


@dataclass(eq=False)
class Repository:
    """The repository of a project, by absolute paths. Its first identity and configuration hold for the run."""

    root: Path
    work_tree: Path
    git_dir: Path
    common_dir: Path
    hooks_dir: Path
    _index: tuple[tuple[int, ...], Index] | None = field(default=None, init=False)
    _configuration: Configuration | None = field(default=None, init=False)
    _identity: tuple[tuple[int, ...], ...] = field(default=(), init=False)

    @property
    def options(self) -> tuple[str, str]:
        """Return the options that keep git from another repository, which a build may have made."""
        return f"--git-dir={self.git_dir}", f"--work-tree={self.work_tree}"

    @property
    def prefix(self) -> str:
        """Return the root's path in git's work tree: "" or "a/b/"."""
        return "" if self.work_tree == self.root else f"{self.root.relative_to(self.work_tree)}/"

    def ask(
        self, arguments: Sequence[str], stdin: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Ask git about this repository; fail if another one has replaced it."""
        now = tuple(_version(folder)[:2] for folder in (self.root, self.git_dir))
        self._identity = self._identity or now
        if now != self._identity:
            complaint = b"fatal: the folder of the project, or its git directory, is another one than before"
            return subprocess.CompletedProcess(arguments, _GIT_FAILED, b"", complaint)
        return ask_git([*self.options, *arguments], self.root, stdin, variables)

    def ask_unfiltered(
        self, arguments: Sequence[str], stdin: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Ask git as `ask`, without the filters of its configuration, which run programs. Raises UnansweredError."""
        settings = ("process", "clean", "smudge", "required")  # an empty value is no program, and false
        off = [f"filter.{name}.{setting}" for name in self.configuration().filters for setting in settings]
        options, values = configured(dict.fromkeys(off, ""))
        return self.ask([*options, *arguments], stdin, {**values, **(variables or {})})

    def stored(self, path: str, content: bytes) -> bytes:
        """Return a file's content as git would store it, with other line ends or `$Id$`, without running filters."""
        if not _CONVERTED.search(content):
            return content
        settings = ("-c", "core.safecrlf=false", "-c", "core.looseCompression=0")  # it is read again at once
        options = (*settings, "hash-object", "-w", "--stdin", f"--path={path}")
        import tempfile  # most files are stored as they stand
        import zlib

        with tempfile.TemporaryDirectory(prefix="code-commit-") as objects, suppress(UnansweredError, OSError):
            answer = self.ask_unfiltered(options, content, {"GIT_OBJECT_DIRECTORY": objects})
            name = answer.stdout.decode().strip()
            if answer.returncode == 0:
                return zlib.decompress(Path(objects, name[:2], name[2:]).read_bytes()).partition(b"\0")[2]
        return content

    def filtered(self, paths: Iterable[str], names: str = ".*") -> list[str]:
        """Return the paths that a filter of git changes whose name matches the pattern. Raises UnansweredError."""
        if not self.configuration().filters:
            return []
        filters = self._attributes(paths, "filter")
        known = [name for name in self.configuration().filters if re.fullmatch(names, name)]
        return [path for (path, _), name in filters.items() if name in known]

    def _attributes(self, paths: Iterable[str], *names: str) -> dict[tuple[str, str], str]:
        """Return the values of git's attributes by path and name. Raises UnansweredError."""
        asked = b"".join(os.fsencode(f"{path}\0") for path in paths)
        answer = self.ask(["check-attr", "-z", "--stdin", *names], asked)
        if answer.returncode != 0:
            raise UnansweredError("git check-attr", answer)
        words = os.fsdecode(answer.stdout).split("\0")
        return {(path, name): value for path, name, value in zip(words[::3], words[1::3], words[2::3], strict=False)}

    def files_with_crlf(self, new: Collection[str]) -> list[str]:
        """Return the new files that git's attributes give CRLF (`text eol=crlf`). Raises UnansweredError."""
        files = [
            self.work_tree / folder / ".gitattributes" for folder in folders_of(self.prefix + path for path in new)
        ]
        files += [self.common_dir / "info" / "attributes", *self.configuration().attributes]
        if not any(map(os.path.lexists, files)):
            return []
        values = self._attributes(new, "eol", "text")
        return [path for path in new if values.get((path, "eol")) == "crlf" and values.get((path, "text")) != "unset"]

    def index(self) -> Index:
        """Return git's index; git is asked again only when the index file changed. Raises UnansweredError."""
        version = _version(self.git_dir / "index")
        if self._index is None or self._index[0] != version:
            self._index = version, _read_index(self)
        return self._index[1]

    def configuration(self) -> Configuration:
        """Return git's configuration; the first answer holds. Raises UnansweredError."""
        if self._configuration is None:
            self._configuration = _read_configuration(self)
        return self._configuration


def find_repository(root: Path) -> Repository | None:
    """Return the repository that a folder is part of, None where it is of none. Raises NotSetUpError."""
    answer = ask_git(["rev-parse", *(word for question in _PATH_QUESTIONS for word in question)], root)
    if answer.returncode != 0:
        complaint = answer.stderr.decode("utf-8", "replace").strip().expandtabs(4)  # a tab would be shown as `\t`
        if "not a git repository (or any" in complaint:  # another such message names the place that `.git` leads to
            return None
        raise NotSetUpError(f"git cannot work in {root}: {complaint}")
    answers = answer.stdout.split(b"\n")[:-1]
    if len(answers) != len(_PATH_QUESTIONS):  # a folder's name holds a line end
        answers = [ask_git(["rev-parse", *question], root).stdout[:-1] for question in _PATH_QUESTIONS]
    repository = Repository(root, *(Path(os.path.normpath(root / os.fsdecode(path))) for path in answers))
    if not root.is_relative_to(repository.work_tree):
        where = shown(str(repository.work_tree))
        raise NotSetUpError(f"git's work tree is {where} (core.worktree), and this folder is not in it: go there")
    return repository


def _version(file: Path) -> tuple[int, ...]:
    try:
        return identity_of(file.stat())
    except OSError:
        return ()


def _read_index(repository: Repository) -> Index:
    answer = repository.ask(["ls-files", "-z", "-v", "-s"])
    if answer.returncode != 0:
        raise UnansweredError("git ls-files", answer)
    entries = [(entry, os.fsdecode(entry.partition(b"\t")[2])) for entry in answer.stdout.split(b"\0")[:-1]]
    return Index(
        files=frozenset(path for _, path in entries),
        submodules=frozenset(path for entry, path in entries if entry[2:8] == b"160000"),
        hidden=frozenset(path for entry, path in entries if entry[:1] == b"S" or entry[:1].islower()),
    )


def _read_configuration(repository: Repository) -> Configuration:
    """Ask git for its configuration and the files of it; some that it would read may not be there yet."""
    answer = repository.ask(["config", "--list", "--show-origin", "-z"])
    if answer.returncode != 0:
        raise UnansweredError("git config", answer)
    user = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config", "git")
    files = [Path("~/.gitconfig"), user / "config", user / "ignore", user / "attributes"]
    files += [Path(os.environ[name]) for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM") if name in os.environ]
    filters, attributes = set(), [user / "attributes"]
    words = os.fsdecode(answer.stdout).split("\0")
    for origin, entry in zip(words[::2], words[1::2], strict=False):
        key, _, value = entry.partition("\n")
        file = Path(origin.removeprefix("file:"))
        if origin.startswith("file:"):  # else it is an option's or a variable's
            files.append(file)
        if key in {"core.excludesfile", "core.attributesfile"}:
            files.append(Path(value))
            attributes += [Path(value)] * (key == "core.attributesfile")
        elif key.startswith("include") and key.endswith(".path"):
            files.append(file.parent / Path(value).expanduser())
        elif key.startswith("filter."):
            filters.add(key.removeprefix("filter.").rpartition(".")[0])
    paths = {os.path.normpath(repository.work_tree / file.expanduser()) for file in files}
    paths |= {os.path.realpath(path) for path in paths}
    above = repository.root.parents
    inside = (path for path in map(Path, sorted(paths)) if _is_of_work_tree(path, repository) and path not in above)
    named = (repository.work_tree / file.expanduser() for file in attributes)
    return Configuration(tuple(inside), tuple(sorted(filters)), tuple(named))


def _is_of_work_tree(path: Path, repository: Repository) -> bool:
    """Tell whether the path is below the top of the work tree, and not in git's own folders, protected anyway."""
    folders = (repository.git_dir, repository.common_dir)
    return repository.work_tree in path.parents and not any(path.is_relative_to(folder) for folder in folders)


def require_utf8_names() -> None:
    """Raise NotSetUpError where Python takes file names for another encoding: git's are UTF-8 in every locale."""
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        message = f"Python reads file names as {encoding} in this locale, but git has them in UTF-8"
        raise NotSetUpError(f"{message}: set PYTHONUTF8=1 before Python starts")


def require_git(root: Path) -> str:
    """Return git's absolute path. Raises NotSetUpError if git is not installed."""
    git = find_program("git", root)
    if git is None:
        message = "git is not installed, or not on the PATH: code-commit cannot work without it"
        raise NotSetUpError(f"{message}; a git inside the project is not used")
    return git


def configured(values: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return options that set values of git's configuration whatever else sets them, and the variables they take."""
    options, variables = list[str](), dict[str, str]()
    for name, value in values.items():
        if "=" not in name:
            options += ["-c", f"{name}={value}"]
            continue
        variable = f"CODE_COMMIT_VALUE_{len(variables)}"  # `-c` would end such a name too early
        options.append(f"--config-env={name}={variable}")
        variables[variable] = value
    return options, variables


def git_environment(folder: Path) -> dict[str, str]:
    """Return the environment for git in a folder: the user's, without what would lead it to another repository.

    So it takes the configuration, the identity and the logins that `git` takes in the user's shell.
    """
    environment = {
        name: value
        for name, value in outside_environment(folder).items()
        if not (name.startswith("GIT_") and (_OF_ONE_REPOSITORY.fullmatch(name) or _ANSWERS_OTHERWISE.fullmatch(name)))
    }
    return environment | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def ask_git(
    arguments: Sequence[str],
    cwd: Path,
    stdin: bytes = b"",
    variables: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run one read-only git command in `cwd` and return it, whatever its exit code; `variables` are for it alone.

    The environment is that of `git_environment`. No lock is taken, no file system monitor is started, no replaced
    object is read. No answer in two minutes, or in so many seconds, counts as a failure: git waits for ever on a FIFO
    that is named .gitignore.
    """
    ours = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1"}
    environment = {**git_environment(cwd), **ours, **(variables or {})}
    words = [require_git(cwd), "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false", *arguments]
    timeout = seconds or _GIT_SECONDS
    try:
        return subprocess.run(
            words, cwd=cwd, env=environment, input=stdin, capture_output=True, check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        complaint = f"no answer in {timeout} s; is there a FIFO in the tree?"
        return subprocess.CompletedProcess(words, _GIT_FAILED, b"", complaint.encode())


@contextmanager
def repository_options(root: Path, repository: Repository | None) -> Iterator[Sequence[str]]:
    """Yield git's options for the repository, or for an empty one in a private folder if there is none."""
    if repository is not None:
        yield repository.options
        return
    import tempfile  # most projects are in a repository

    with tempfile.TemporaryDirectory(prefix="code-commit-") as folder:
        bare = Path(folder)  # the least that git takes for one
        (bare / "objects").mkdir()
        (bare / "refs").mkdir()
        (bare / "HEAD").write_bytes(b"ref: refs/heads/main\n")
        yield [f"--git-dir={folder}", f"--work-tree={root}"]


Matcher = Callable[[str], object]  # tells whether a path, or a folder of it, matches a pattern


def match_patterns(patterns: Sequence[str], paths: Iterable[str], *, any_case: bool = False) -> set[str]:
    """Return the paths that patterns of .gitignore syntax match, or a folder of theirs does. Raises NotSetUpError."""
    if not patterns:
        return set()
    from pathspec import GitIgnoreSpec

    spelled = [plain_pattern(pattern.lower() if any_case else pattern) for pattern in patterns]
    try:
        rules = GitIgnoreSpec.from_lines(spelled)
    except (ValueError, re.error) as error:
        raise NotSetUpError(f"a pattern in .gitignore syntax cannot be read: {error}") from error
    return {path for path in paths if rules.match_file(_composed(path.lower() if any_case else path))}


def compile_pattern(pattern: str) -> Matcher | None:
    """Return what tells the paths that one pattern names, taken back or not; None if that is no path at all.

    Raises NotSetUpError.
    """
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        rule = GitIgnoreSpecPattern(plain_pattern(pattern))
    except (ValueError, re.error) as error:
        raise NotSetUpError(f"a pattern in .gitignore syntax cannot be read: {error}") from error
    search = rule.regex.match if rule.regex else None
    return search and (lambda path: search(_composed(path)))


def plain_pattern(pattern: str) -> str:
    """Return a pattern as paths are spelled: composed characters, single slashes, no parts of a dot."""
    pattern = _composed(pattern)
    sign, body = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    parts = body.split("/")
    if "." not in parts and "" not in parts[1:-1]:
        return pattern
    start = "/" if parts[0] in ("", ".") else ""
    end = "/" if parts[-1] in ("", ".") else ""
    plain = start + "/".join(part for part in parts if part not in ("", ".")) + end
    return sign + ("/" if plain == "//" else plain)


def _composed(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
