"""The selection of a codebase's files: git, secrets, patterns and sizes decide; each file left out has a reason."""

import codecs
import errno
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from code_commit.codebase.bundles import SUFFIXES, is_built, is_generated
from code_commit.codebase.near import is_document, is_test
from code_commit.codebase.text import Section, file_section
from code_commit.errors import Named, NotSetUpError
from code_commit.files import NotAFileError, Tree, folders_of, open_regular, read_all
from code_commit.git import ask_git, match_patterns, repository_options
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.paths.patterns import explain_patterns, find_unmatched
from code_commit.paths.secrets import ENCRYPTING_FILTERS, find_secret, is_public_key, is_secret_name
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, Project
from code_commit.redaction import Redactor
from code_commit.regex import regex
from code_commit.terminal import shown

BINARY, UTF_16 = "binary", "UTF-16, not UTF-8"
DELETED = "deleted"
NOT_CHECKED_OUT = "not checked out"
GENERATED = "vendored or generated"
LINK = "link"
OUTSIDE = "outside of this folder"
OTHER_REPOSITORY = "submodule or other repository"
REVEALS_KEY = "contains an API key"
CONFIDENTIAL = "looks like a secret"
UNREADABLE = "unreadable"
MINIFIED = "minified"
BUILT = "built bundle"
NO_ROOM = "no room"
NOT_CHOSEN = "not chosen"
EXCLUDED = "excluded"
_LARGE, _LARGEST = 256_000, 10_000_000  # bytes of a file: unless it is named, and where an LLM may choose parts of it
_MARKS_OF_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HELD = 12_000_000  # characters of texts in memory; others are read again
CONVENTIONS = regex(
    r"(LLMInstructions\.md)|(AGENTS\.md)|(CLAUDE\.md)|(\.github/copilot-instructions\.md)|(\.cursor/rules/[^/]+)"
)
CONTEXT_FILES = regex(rf"{CONVENTIONS.pattern}|((?i:README)(?:\.[^./]*)?)")
_MARKS = ("linguist-vendored", "linguist-generated", "filter")
_MARKED = regex(rb"([^\0]*)\0([^\0]*)\0([^\0]*)\0")  # an answer of git's about a path
_MINIFIED_NAMES = regex(r".*[.-]min\.(js|mjs|css)|.*\.(js|mjs|css)\.map")
_MINIFIABLE = (".js", ".mjs", ".css")
_MINIFIED_LINE = 110  # bytes of a line on average, from which on GitHub's linguist calls a file minified
_WRITTEN_LINE = regex(rb"^(?:\t|  ).{,5000}$", re.MULTILINE)  # indented, as tools that minify leave none

_LOCK_FILES = regex(
    r".*\.(lock|lockfile|resolved)|.*[.-]lock\.(hcl|json|ya?ml)|npm-shrinkwrap\.json|pylock(\..*)?\.toml"
    r"|go(\.work)?\.sum|cabal\.project\.freeze"
)
_KEY_FILES = frozenset(f"{provider}-key.txt" for provider in KEY_VARIABLES)
_MOST_COMMITS, _COMMIT_SECONDS = 2_000, 5  # whose messages are read, and in how many seconds
_MOST_TOUCHED = 30  # files of a commit that tells of them
_BINARY_SHOWS_IN = 8000  # bytes, as git has it
_POINTERS = {"version https://git-lfs.github.com/spec/": "Git LFS", "/annex/objects/": "git-annex"}
_OWN_MARK = '<meta name="generator" content="code-commit">'
_NO_FOLDER = {errno.ENOTDIR, errno.ELOOP, errno.EMLINK}  # of a link, Linux says the first, others the second or third


class CodebaseRequest(NamedTuple):
    """The codebase to make: of the files that the pathspecs name, or of all.

    `include` has pathspecs of files to take against all rules. `fit` is its limit in tokens (0: the model's), or None;
    with `select` an LLM chooses. The `query`, `mentions` and the `output` of a build that failed before rank the files;
    with `edits` answers may be edits.
    """

    pathspecs: Sequence[str] = ()
    exclude: Sequence[str] = ()
    include: Sequence[str] = ()
    fit: int | None = None
    select: bool = False
    query: str = ""
    mentions: str = ""
    edits: bool = False
    output: str = ""


class Commit(NamedTuple):
    """An earlier commit: its message, and the paths that it changed."""

    message: str
    paths: Sequence[str]


@dataclass(slots=True)
class Selection:
    """The files that a codebase may hold, and those left out by reason, each with a detail. Files that are `included`
    may look like secrets; `named` ones may be large or generated; git keeps `absent` ones out of the tree. With
    `takes_large` all may be large.
    """

    names: list[str] = field(default_factory=list)
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    untracked: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    included: Collection[str] = ()
    named: Collection[str] = ()
    absent: Collection[str] = ()
    takes_large: bool = False

    def leave_out(self, reason: str, name: str, detail: str = "") -> None:
        self.left_out.setdefault(reason, {})[name] = detail

    def is_wanted(self, name: str) -> bool:
        return name in self.included or name in self.named

    def left_out_line(self) -> str:
        counts = [f"{reason} {len(names)}" for reason, names in sorted(self.left_out.items())]
        return f"left out: {', '.join(counts)}" if counts else ""


def select_files(project: Project, rollup_exclude: Sequence[str], request: CodebaseRequest) -> Selection:
    """Return the files for a codebase, those about the whole project first, and build.sh. Raises NotSetUpError."""
    selection = Selection()
    with repository_options(project.root, project.git) as options:
        paths, selection.warnings = list_files(project.root, request.pathspecs, options)
        if request.pathspecs and not paths:
            raise NotSetUpError(
                "\n".join(f"{shown(name)} matches no file, or only ignored ones" for name in request.pathspecs)
            )
        missing = (name for name in request.pathspecs if not (re.search(r"[*?[:]", name) or project.has(name)))
        selection.warnings += [f"there is no {shown(name)} here, so it is not in the codebase" for name in missing]
        paths |= (included := _list_included(project.root, request.include, options))
        selection.included = included
        if BUILD_SCRIPT not in paths and project.build_script.is_file():
            paths[BUILD_SCRIPT] = list_files(project.root, [BUILD_SCRIPT], options)[0].get(BUILD_SCRIPT, "?")
        selection.named = {BUILD_SCRIPT, *map(os.path.normpath, request.pathspecs)}
        selection.absent = find_absent(paths)
        names = fit_names(project.root, paths, selection)
        dropped = find_marked(project.root, names, selection, options)
    if exclude := [*rollup_exclude, *request.exclude]:
        dropped = dict.fromkeys(match_patterns(exclude, names), EXCLUDED) | dropped
        unmatched = [] if request.pathspecs else find_unmatched(exclude, paths)
        told = (
            f"{shown(pattern)} excludes no file; did you mean {shown(near)!r}?" for pattern, near in unmatched if near
        )
        selection.warnings += told  # not of a pattern for any project, as *.svg
        useless = explain_patterns("exclude:", exclude, project.root)
        selection.warnings += ("".join(map(str, message)) for message in useless.values())
    for name in sorted(dropped):
        selection.leave_out(dropped[name], name)
    selection.names = sorted((name for name in names if name not in dropped), key=place_of)
    if project.git is not None:
        selection.untracked = [name for name in selection.names if paths[name] == "?"]
    return selection


def _list_included(root: Path, pathspecs: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """Return the files that the pathspecs name as `list_files` does. Raises NotSetUpError where one names none."""
    for pathspec in pathspecs:
        if not (pathspec.startswith((":!", ":^", ":(exclude")) or list_files(root, [pathspec], options)[0]):
            raise NotSetUpError(Named("include", shown(pathspec)), " matches no file, or only ignored ones")
    return list_files(root, pathspecs, options)[0] if pathspecs else {}


class _UnfitFileError(Exception):
    """The reason why a file is left out, and perhaps a detail."""


def list_files(root: Path, pathspecs: Sequence[str], options: Sequence[str] = ()) -> tuple[dict[str, str], list[str]]:
    """Return git's files by path, each with git's tag, and git's warnings: `?` is not tracked, `S` not checked out.

    Raises NotSetUpError.
    """
    question = ["ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", "--", *pathspecs]
    answer = ask_git([*options, *question], root)
    complaint = answer.stderr.decode("utf-8", "replace").strip()
    if answer.returncode != 0:
        hint = "; a PATHSPEC is a path or a pattern in this project" if pathspecs else ""
        raise NotSetUpError(
            f"git cannot list the files: {shown(' '.join(complaint.removeprefix('fatal: ').split()))}{hint}"
        )
    entries = sorted((entry[2:], entry[:1]) for entry in answer.stdout.split(b"\0") if entry)
    warnings = [f"git: {line.removeprefix('warning: ')}" for line in complaint.split("\n") if line]
    unmerged = {entry[2:] for entry in answer.stdout.split(b"\0") if entry[:1] == b"M"}
    warnings += [f"{shown(os.fsdecode(path))} is not merged: resolve its conflict first" for path in sorted(unmerged)]
    return {path.decode("utf-8", "surrogateescape"): sys.intern(tag.decode()) for path, tag in entries}, warnings


def find_absent(paths: Mapping[str, str]) -> set[str]:
    """Return the paths of `list_files` that a sparse checkout keeps out of the tree."""
    return {name for name, tag in paths.items() if tag == "S"}


def read_commits(project: Project) -> list[Commit]:
    """Return the latest commits of the project that change few files, [] where git does not tell them soon."""
    if project.git is None:
        return []
    question = ["log", f"-n{_MOST_COMMITS}", "--no-merges", "--no-show-signature", "--no-ext-diff", "--no-renames"]
    question += ["-z", "--relative", "--name-only", "--format=%x01%B%x02"]
    options, offline = project.git.options, {"GIT_NO_LAZY_FETCH": "1"}
    answer = ask_git([*options, *question], project.root, variables=offline, seconds=_COMMIT_SECONDS)
    told = answer.stdout.decode("utf-8", "replace") if answer.returncode == 0 else ""
    parts = (entry.partition("\2") for entry in told.split("\1")[1:])
    commits = ((message, paths.strip("\n\0")) for message, _, paths in parts)
    few = ((message, paths) for message, paths in commits if paths.count("\0") < _MOST_TOUCHED)
    return [Commit(message, [path for path in paths.split("\0") if path]) for message, paths in few]


def find_marked(
    root: Path, names: Collection[str], selection: Selection, options: Sequence[str] = ()
) -> dict[str, str]:
    """Return unwanted files that .gitattributes has encrypted, vendored or generated, and why. Raises NotSetUpError.

    A project marks its own tests and documents as vendored, to keep them out of statistics: they count only as such
    below a folder with other files that are marked.
    """
    asked = b"".join(os.fsencode(name) + b"\0" for name in names)
    answer = ask_git([*options, "check-attr", "--stdin", "-z", *_MARKS], root, asked)
    if answer.returncode != 0:
        raise NotSetUpError(
            f"git cannot read the attributes: {shown(answer.stderr.decode('utf-8', 'replace').strip())}"
        )
    marked, vendored = dict[str, str](), list[str]()
    for entry in _MARKED.finditer(answer.stdout):  # a list of all of them would take most of the memory
        path, mark, value = entry.groups()
        if value == b"unspecified":
            continue
        name = os.fsdecode(path)
        if mark == b"filter":
            if name not in selection.included and re.fullmatch(ENCRYPTING_FILTERS, os.fsdecode(value)):
                marked[name] = CONFIDENTIAL
        elif value in {b"set", b"true"} and not selection.is_wanted(name):
            vendored.append(name) if mark == b"linguist-vendored" else marked.setdefault(name, GENERATED)
    own = {name for name in vendored if is_document(name) or is_test(name)}
    folders = {name.rpartition("/")[0] for name in vendored if name not in own} - {""}
    others = (name for name in vendored if name not in own or folders & folders_of([name]))
    return dict.fromkeys(others, GENERATED) | marked


def place_of(name: str) -> tuple[int, str]:
    """Return the key that sorts the files of a codebase: those about the whole project first, the others by path."""
    match = CONTEXT_FILES.fullmatch(name)
    return match.lastindex or 0 if match else len(CONTEXT_FILES.pattern), name


def fit_names(root: Path, paths: Collection[str], selection: Selection) -> list[str]:
    """Return the names that may stand in a codebase, without agent-config; the others go into the selection."""
    names, environments = [], find_environments(root, paths)
    for path in paths:
        if path.startswith(f"{AGENT_CONFIG}/"):
            continue
        if environments and not selection.is_wanted(path) and (inside := environments & folders_of([path])):
            selection.leave_out("installed packages", f"{min(inside)}/")
            continue
        if reason := _fault_of_name(root, path, selection):
            selection.leave_out(reason, path)
        else:
            names.append(path)
    return names


def find_environments(root: Path, paths: Iterable[str]) -> set[str]:
    """Return the folders of these paths that package managers fill: node_modules, Python's virtual environments."""
    return {
        folder
        for folder in folders_of(paths) - {""}
        if folder.rpartition("/")[2] == "node_modules" or os.path.lexists(f"{root}/{folder}/pyvenv.cfg")
    }


def _fault_of_name(root: Path, path: str, selection: Selection) -> str | None:
    name = path.rpartition("/")[2]
    if path.startswith("../"):
        return OUTSIDE
    if path.endswith("/"):
        return OTHER_REPOSITORY
    if shown(path) != path:
        return "unprintable name"
    if name in _KEY_FILES:
        return "key file"
    if path not in selection.included and is_secret_name(path) and not _holds_public_keys(root / path):
        return CONFIDENTIAL
    unwanted = "lock file" if _LOCK_FILES.fullmatch(name) else MINIFIED if _MINIFIED_NAMES.fullmatch(name) else None
    return None if unwanted and selection.is_wanted(path) else unwanted


def _holds_public_keys(path: Path) -> bool:
    with suppress(OSError), open_regular(path) as file:
        text = file.read(_BINARY_SHOWS_IN + 1)
        return len(text) <= _BINARY_SHOWS_IN and is_public_key(text.decode("utf-8", "replace"))
    return False


def read_files(root: Path, names: Collection[str], redactor: Redactor, selection: Selection) -> Iterator[Section]:
    """Yield the section of each file that is fit for a codebase; the reasons of the others go into the selection.

    Once many texts are held, a section lets go of its own when the next one is read.
    """
    held, read_again = 0, partial(_read_again, root, redactor, selection)
    with Tree(root) as tree:
        for name in names:
            try:
                size, text = _read_section(tree, name, redactor, selection)
            except _UnfitFileError as unfit:
                reason, *detail = unfit.args
                selection.leave_out(reason, name, *detail)
            except NotAFileError:
                selection.leave_out(_kind_of(root / name), name)
            except OSError as error:
                selection.leave_out(*_why_unread(root, name, error, selection))
            else:
                yield (section := Section(name, size, text, read_again))
                held += len(text)
                if held > _HELD:
                    section.release()


def _read_section(tree: Tree, name: str, redactor: Redactor, selection: Selection) -> tuple[int, str]:
    content = _read(tree, name, selection)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise _UnfitFileError("not UTF-8") from None
    if name.endswith(".html") and _OWN_MARK in text:
        raise _UnfitFileError("page of code-commit")
    if tool := next((tool for start, tool in _POINTERS.items() if text.startswith(start)), ""):
        raise _UnfitFileError(f"pointer of {tool}")
    if not selection.is_wanted(name) and is_generated(name, text):
        raise _UnfitFileError(GENERATED, "by its header")
    if name.endswith(SUFFIXES) and not selection.is_wanted(name) and is_built(text):
        raise _UnfitFileError(BUILT)
    section = file_section(name, text)
    if redactor.reveals_key(section):
        raise _UnfitFileError(REVEALS_KEY)
    if name not in selection.included and (secret := find_secret(text, path=name)):
        raise _UnfitFileError(CONFIDENTIAL, secret)
    return len(content), section


def _read_again(root: Path, redactor: Redactor, selection: Selection, name: str) -> str:
    try:
        with Tree(root) as tree:
            return _read_section(tree, name, redactor, selection)[1]
    except (_UnfitFileError, OSError) as error:
        raise NotSetUpError(f"{shown(name)} was changed while the codebase was made: start again") from error


def _why_unread(root: Path, name: str, error: OSError, selection: Selection) -> tuple[str, str, str]:
    folder = root / name.rpartition("/")[0]
    if error.errno in _NO_FOLDER and os.path.realpath(folder) != str(folder):
        return LINK, name, "behind a link"
    is_gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
    gone = NOT_CHECKED_OUT if name in selection.absent else DELETED
    return (gone, name, "") if is_gone else (UNREADABLE, name, str(error.strerror))


def _kind_of(path: Path) -> str:
    if path.is_symlink():
        return LINK
    return OTHER_REPOSITORY if path.is_dir() else "no regular file"


def _read(tree: Tree, path: str, selection: Selection) -> bytes:
    file, state = tree.open(path)
    is_wanted = selection.is_wanted(path)
    try:
        content = os.read(file, state.st_size if state.st_size <= _LARGE else _BINARY_SHOWS_IN)
        if b"\0" in content:
            raise _UnfitFileError(UTF_16 if content.startswith(_MARKS_OF_UTF_16) else BINARY)
        if state.st_size > _LARGE:
            if not is_wanted and (state.st_size > _LARGEST or not selection.takes_large):
                limit = "10 MB" if selection.takes_large else "256 kB"
                raise _UnfitFileError(f"over {limit}", f"{state.st_size:,} bytes")
            content += read_all(file, state.st_size - len(content))
            if b"\0" in content:
                raise _UnfitFileError(BINARY)
    finally:
        os.close(file)
    if path.endswith(_MINIFIABLE) and not is_wanted and _is_minified(content):
        raise _UnfitFileError(MINIFIED)
    return content


def _is_minified(content: bytes) -> bool:
    """Tell whether lines are long, and most of the text is in lines that nobody indented."""
    is_long = len(content) > _MINIFIED_LINE * (content.count(b"\n") + 1)
    return is_long and 2 * sum(map(len, _WRITTEN_LINE.findall(content))) < len(content)
