"""The paths that a response or a journal may name: plain ones inside the project, not protected, each spelled one way.

Strings alone are looked at here, no file. The rules that a path can break:

    outside        it may leave the project: absolute, `..`, a drive, a URL, something a shell would expand
    unclear-path   it is not plain: backslashes, invisible characters, doubled slashes, blanks or dots at an end
    windows-name   Windows gives the name a meaning of its own: devices, 8.3 names
    too-long       the file system does not take names or paths of this length; or all paths are too much together
    protected      it is one of the critical files, would hide changes from the reviewer, or is code that git runs
    same-file      on some file system it is the same file as another path of the response

They are rules for new names: what git tracks has its name, whatever stands here.
Protected names are compared by `fold`, up to a colon, as a case-insensitive, normalising or Windows file system does.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from code_commit.changes import quoted
from code_commit.files import folders_of
from code_commit.paths.protected import PROTECTED, PROTECTED_ANYWHERE, repository_marks, watched_from_build
from code_commit.project import Project
from code_commit.regex import regex

Fault = tuple[str, str]  # the name of the broken rule, and the advice
Tracked = Callable[[], Collection[str]]

_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)  # Default_Ignorable_Code_Point of Unicode 15's DerivedCoreProperties.txt: file systems may drop them from a name

_EMOJI = "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"

_INVISIBLE = f"[{_IGNORABLE}\u2800\ufdd0-\ufdef\ufffe\uffff]"
_EMOJI_JOINT = f"(?<=[{_EMOJI}])\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)|(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])"
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zs", "Zl", "Zp"})

_OUTSIDE = "name the file relative to the project's root, such as src/main.rs, and stay inside the project"
_CANONICAL = "spell the path with single slashes and without '.' parts, such as src/main.rs"

_DEVICE = r"(?:\A|/)(?i:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3]) *(?:[.:/]|\Z)"
"""Source: "Naming Files, Paths, and Namespaces" of Microsoft's Win32 documentation: with any extension too."""

_SHORT_NAME = r"(?:\A|/)(?=[^./]{2,8}(?:[./]|\Z))[^./~]{0,6}~[0-9]{1,7}(?:\.[^./]{0,3})?(?:/|\Z)"
_NEVER_WRITTEN = regex("[\0-\x1f\x7f\ud800-\udfff]")

_FAULTS: tuple[tuple[str, str, str], ...] = (
    ("unclear-path", r"\A\Z", "the path is empty: name a file after the carets"),
    ("outside", r"\A/", f"is an absolute path: {_OUTSIDE}"),
    ("outside", r"(?:\A|/)\.\.(?:/|\Z)", f"contains '..': {_OUTSIDE}"),
    ("outside", r"\A[A-Za-z][A-Za-z0-9+.-]*:/|\A[A-Za-z]:", f"begins with a drive or is a URL: {_OUTSIDE}"),
    ("outside", r"\A[~$]|\A%[^%/]*%", f"begins with what a shell expands: {_OUTSIDE}"),
    ("unclear-path", r"\\", "contains a backslash: separate folders with /"),
    ("unclear-path", r"/\Z", "ends with a slash: name a file; its folders are made as needed"),
    ("unclear-path", r"//|(?:\A|/)\.(?:/|\Z)", f"is not canonical: {_CANONICAL}"),
    ("unclear-path", r"[. ](?:/|\Z)", "has a dot or blank at the end of a name, or a comment: leave it out"),
    ("unclear-path", r"\A[ :-]|/ ", "begins with a blank, '-' or ':': begin with a letter, a digit, '_' or '.'"),
    ("windows-name", _DEVICE, "is the name of a device on Windows (con, nul, aux, com1 ...): choose another name"),
    (
        "windows-name",
        _SHORT_NAME,
        "looks like the 8.3 alias of another name (git~1): choose a name without ~ and digits",
    ),
)  # the rule, the pattern of a path that breaks it, the message with its advice

_ANY_FAULT = "|".join(pattern for _, pattern, _ in _FAULTS)
_MOST_FOLDERS = 50_000
_MOST_FOLDER_TEXT = 20_000_000  # characters of all paths times their depth: 50,000 files, 50 characters long, 8 deep
_INSTEAD = {
    ".gitignore": "; put files where git does not ignore them",
    "Cargo.lock": "; the build brings it up to date with Cargo.toml",
    "UserSpecification.md": "; change the code until it does what the specification says",
    ".git": "; change files of the work tree alone",
    "agent-config": "; put the file elsewhere: the folder holds the supervisor's settings",
    "target": "; put the file elsewhere, such as in src/: the folder belongs to the build",
}  # the advice in place of a change of a protected file


class Limits(NamedTuple):
    """The file system's longest name, and longest path from the project's root, in bytes."""

    name: int
    path: int


def read_limits(root: Path) -> Limits:
    """Return the limits of the file system of the project's root (POSIX pathconf)."""
    return Limits(os.pathconf(root, "PC_NAME_MAX"), os.pathconf(root, "PC_PATH_MAX") - 2 - len(os.fsencode(root)))


def find_flood(paths: Iterable[str], limits: Limits) -> Fault | None:
    """Return the fault of all paths together, which are checked folder by folder. Ignores those too long alone."""
    named = [path for path in paths if len(path) <= limits.path]
    text = sum(len(path) * (1 + path.count("/")) for path in named)
    if text <= _MOST_FOLDER_TEXT and len(folders_of(named)) <= _MOST_FOLDERS:
        return None
    return "too-long", "the paths are too long and too deep, all together: send fewer files, in fewer folders"


def find_path_fault(path: str, limits: Limits, tracked: Tracked = frozenset) -> Fault | None:
    """Return the first rule that the path breaks, with the advice; None for a path that can be used.

    `tracked` returns the files that git tracks and their folders; a path in such a folder is new in its rest alone.
    """
    fault = _find_fault(path, limits)
    if fault is None or fault[0] == "too-long" or _NEVER_WRITTEN.search(path):
        return fault
    there, known = path, tracked()
    while there and there not in known:
        there = there.rpartition("/")[0]
    if there in ("", path):
        return None if there else fault
    return _find_fault(f"x{path[len(there) :]}", limits) or _length_fault(path, limits)


def _find_fault(path: str, limits: Limits) -> Fault | None:
    if len(path) > limits.path:  # no further rule has to read a path of any length
        return _length_fault(path, limits)
    if re.search(_ANY_FAULT, path):
        return next((rule, message) for rule, pattern, message in _FAULTS if re.search(pattern, path))
    is_plain = path.isascii() and path.isprintable()
    return (None if is_plain else _character_fault(path)) or _length_fault(path, limits)


def _character_fault(path: str) -> Fault | None:
    odd = next(filter(_is_invisible, re.sub(_EMOJI_JOINT, "", path)), None)
    if odd is not None:
        return "unclear-path", f"contains the character U+{ord(odd):04X}, which is invisible: leave it out"
    if any(unicodedata.normalize("NFKC", part).endswith((".", " ")) for part in path.split("/")):
        return "unclear-path", "has a dot or blank at the end of a name: leave it out"
    return None


def _is_invisible(character: str) -> bool:
    if unicodedata.category(character) in _INVISIBLE_CATEGORIES:
        return character != " "
    return re.match(_INVISIBLE, character) is not None


def _length_fault(path: str, limits: Limits) -> Fault | None:
    if len(path) * 4 <= min(limits.name, limits.path):
        return None
    encoded = path.encode("utf-8", "surrogatepass")
    if len(encoded) > limits.path:
        return "too-long", f"is {len(encoded)} bytes long, {limits.path} are allowed here: choose a shorter path"
    longest = max(map(len, encoded.split(b"/")))
    if longest > limits.name:
        return "too-long", f"has a name of {longest} bytes, the file system allows {limits.name}: choose a shorter name"
    return None


@lru_cache(maxsize=4096)
def fold(name: str) -> str:
    """Return a key without case, compatible forms of Unicode, invisible characters, and dots and blanks at the end."""
    if name.isascii():
        return name.lower().rstrip(" .")
    visible = re.sub(f"[{_IGNORABLE}]", "", unicodedata.normalize("NFKC", name))
    folded = visible.upper().casefold().replace("i\u0307", "i")
    return unicodedata.normalize("NFKC", folded).rstrip(" .")


_IN_ROOT = {fold(name): name for name in PROTECTED}
_ANYWHERE = {fold(name): name for name in PROTECTED_ANYWHERE}


class GuardedFolder(NamedTuple):
    """A folder or file inside the project that git or this tool executes or reads; `parts` is its folded path."""

    parts: tuple[str, ...]
    path: Path
    message: str


def guarded_folders(project: Project) -> tuple[GuardedFolder, ...]:
    """Return git's and this tool's own files and folders inside the project. Raises UnansweredError."""
    named = [(path, "lies in the folder that code-commit itself runs from") for path in watched_from_build(project)]
    named += [(path, "would make the folder a git repository") for path in repository_marks(project)]
    if project.git is not None:
        inside_git = "lies in the git directory: change files of the work tree alone"
        named += [(project.git.git_dir, inside_git), (project.git.common_dir, inside_git)]
        in_hooks = "lies in the folder of git's hooks (core.hooksPath): leave the hooks as they are"
        named += [(project.git.hooks_dir, in_hooks), (Path(os.path.realpath(project.git.hooks_dir)), in_hooks)]
        configures = "is a file that git takes its configuration from (see git config --list --show-origin): leave it"
        named += [(path, configures) for path in project.configuration().files]
    return tuple(
        GuardedFolder(tuple(map(fold, path.relative_to(project.root).parts)), path, f"is protected: it {message}")
        for path, message in named
        if path.is_relative_to(project.root)
    )


def find_protected(path: str, guarded: Iterable[GuardedFolder]) -> str | None:
    """Return why the path is protected, with the advice; None where it is not."""
    keys = [fold(part).partition(":")[0].rstrip(" .") for part in path.split("/")]
    name = _IN_ROOT.get(keys[0]) or next((_ANYWHERE[key] for key in keys if key in _ANYWHERE), None)
    if name:
        say = _INSTEAD.get(name, ", and say outside the fences what it needs")
        return f"{name} is protected: leave its block out{say}"
    for folder in guarded:
        if tuple(keys[: len(folder.parts)]) == folder.parts:
            return folder.message
    return None


def find_case_collisions(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each path that some file system takes for an earlier one, itself or by a folder, and the message."""
    spellings: dict[str, tuple[str, str]] = {}  # by key the first spelling of each file and folder, and its path
    files: set[str] = set()
    for path in paths:
        spelling = key = ""
        for part in path.split("/"):
            spelling, key = f"{spelling}/{part}", f"{key}/{fold(part)}"
            first, first_path = spellings.setdefault(key, (spelling, path))
            if spelling != first or key in files or (spelling == f"/{path}" and path != first_path):
                message = f"is the same file or folder as {quoted(first_path)}, or lies below it, on some file systems"
                yield path, f"{message}: choose one spelling, or another name"
                break
        else:
            files.add(key)
