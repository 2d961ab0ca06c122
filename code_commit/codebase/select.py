"""The code rollup: the text files of the project in one file, each after a line that names it.

--- src/main.rs ---
fn main() {}

What tells of the project as a whole comes first, then path by path; at the end stand the names of what was left out.
"""

import functools
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from code_commit.codebase.fit import Room, Section, fit_sections
from code_commit.errors import NotSetUpError
from code_commit.files import NotAFileError, open_regular, read_regular_file, replacing
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.project import AGENT_CONFIG, Project, ask_git
from code_commit.redaction import Redactor
from code_commit.runs.words import listed
from code_commit.terminal import shown

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

BINARY = "binary"
DELETED = "deleted"
EXCLUDED = "excluded"
KEY_FILE = "key file"
LINK = "link"
OUTSIDE = "outside of this folder"
OTHER_REPOSITORY = "submodule or other repository"
REVEALS_KEY = "holds an API key"
CONFIDENTIAL = "looks like a secret"
UNREADABLE = "unreadable"
LOCK_FILE = "lock file"
MINIFIED = "minified"
MARKED = "vendored or generated"
LARGE = "over 256 kB"
NO_ROOM = "no room"
NOT_CHOSEN = "not chosen"

_LARGE = 256_000  # bytes
_CONTEXT_FILES = re.compile(r"(LLMInstructions\.md)|(AGENTS\.md)|(CLAUDE\.md)|((?i:README)(?:\.[^./]*)?)")
_MARKS = ("linguist-vendored", "linguist-generated")
_MINIFIED_NAMES = re.compile(r".*[.-]min\.(js|mjs|css)|.*\.(js|mjs|css)\.map")
_MINIFIABLE = (".js", ".mjs", ".css")
_MINIFIED_LINE = 110
"""Bytes in a line on the average, from which on GitHub's linguist takes a script or a style sheet for minified."""

_LOCK_FILE_NAMES = """
    .terraform.lock.hcl Cargo.lock Cartfile.resolved Gemfile.lock MODULE.bazel.lock Package.resolved Pipfile.lock
    Podfile.lock bun.lock composer.lock conda-lock.yml deno.lock flake.lock go.sum go.work.sum gradle.lockfile mix.lock
    npm-shrinkwrap.json package-lock.json packages.lock.json pdm.lock pixi.lock pnpm-lock.yaml poetry.lock pubspec.lock
    pylock.toml rebar.lock stack.yaml.lock uv.lock yarn.lock
"""
_LOCK_FILES = frozenset(_LOCK_FILE_NAMES.split())
_KEY_FILES = frozenset(f"{provider}-key.txt" for provider in KEY_VARIABLES)
_SECRET_NAMES = re.compile(
    r"\.env(?!.*\.(example|sample|template|dist)$).*|.*\.(pem|key|p12|pfx|jks|keystore|kdbx|tfstate)"
    r"|id_(rsa|dsa|ecdsa|ed25519)[^.]*|[._]netrc|\.pypirc|\.git-credentials|\.htpasswd|\.pgpass|\.dockercfg",
    re.IGNORECASE,
)
_SECRET_SHAPES = {
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----(\\[nr]|[^0-9A-Za-z+/])*([0-9A-Za-z-]+: .*\n\s*)*[0-9A-Za-z+/]{40}"
    r"|\A-----BEGIN [A-Z0-9 ]*PRIVATE KEY": "a private key",
    r"\bAKIA[A-Z2-7]{16}\b": "a key of AWS",
    r"\bAccountKey=[0-9A-Za-z+/]{86}==": "a key of Azure",
    r"\bAIza[0-9A-Za-z_-]{35}|\bGOCSPX-[0-9A-Za-z_-]{28}": "a key of Google",
    r"\bgh[pousr]_[0-9A-Za-z]{36}|\bgithub_pat_[0-9A-Za-z_]{60}": "a token of GitHub",
    r"\bglpat-[0-9A-Za-z_-]{20}": "a token of GitLab",
    r"\bhf_[0-9A-Za-z]{34}\b": "a key of Hugging Face",
    r"\bnpm_[0-9A-Za-z]{36}\b|(?m:^)(//\S+:)?_auth(Token)?=[0-9A-Za-z+/-]{12}": "a login of npm",
    r"\bpypi-AgE[0-9A-Za-z_-]{50}": "a token of PyPI",
    r"\bSG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}": "a key of SendGrid",
    r"\bxox[abeprs]-\d+-[0-9A-Za-z-]{20}": "a token of Slack",
    r"\b[sr]k_live_[0-9A-Za-z]{20}": "a key of Stripe",
    r"\bsk-((proj|svcacct|admin|ant|or)-[0-9A-Za-z_-]{40}|[0-9A-Za-z]{32})": "an API key",
}
"""The shapes of secrets, in what Python's and Rust's regular expressions have in common."""
_IN_EXAMPLES = "EXAMPLE"  # at the end of the keys in Amazon's documents
_LARGEST = 5
_NAMES_LEFT_OUT = 20
_BINARY_SHOWS_IN = 8000  # bytes, as git has it


@dataclass(slots=True)
class Rollup:
    """What became of each file: in the rollup with its size, or left out for a reason."""

    bytes: int = 0
    characters: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    """The bytes of each file that is in it."""
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each reason the files, and a detail where there is one."""
    outlined: Sequence[str] = ()
    """Those of which it has outlines."""
    untracked: Sequence[str] = ()
    """Those in it that git does not track."""
    included: Collection[str] = ()
    """Files that may be in it although they look like secrets."""
    named: Collection[str] = ()
    """Files that may be in it although they are large or nobody wrote them, for they were asked for by their names."""
    warnings: Sequence[str] = ()

    @property
    def largest(self) -> list[tuple[str, int]]:
        """The largest files with their bytes, the largest first."""
        return sorted(self.sizes.items(), key=lambda file: -file[1])[:_LARGEST]

    def leave_out(self, reason: str, name: str, detail: str = "") -> None:
        self.left_out.setdefault(reason, {})[name] = detail

    def is_wanted(self, name: str) -> bool:
        return name in self.included or name in self.named

    def left_out_line(self) -> str:
        """Return the reasons with their counts in one line, "" where nothing was left out."""
        counts = [f"{reason} {len(names)}" for reason, names in sorted(self.left_out.items())]
        return f"left out: {', '.join(counts)}" if counts else ""


class _UnfitFileError(Exception):
    """A file that the rollup does without."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail


def list_files(root: Path, pathspecs: Sequence[str], options: Sequence[str] = ()) -> tuple[dict[str, bool], list[str]]:
    """Ask git which files it tracks or would track, `options` standing before its command; return its warnings too.

    The paths are relative to the root, in the order of their bytes, each with whether git tracks it; a folder that git
    does not enter ends in "/". Raises NotSetUpError with git's complaint.
    """
    question = ["ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", "--", *pathspecs]
    answer = ask_git([*options, *question], root)
    complaint = answer.stderr.decode("utf-8", "replace").strip()
    if answer.returncode != 0:
        hint = "; a PATHSPEC is a path or a pattern of this project" if pathspecs else ""
        raise NotSetUpError(f"git cannot list the files: {shown(complaint.removeprefix('fatal: '))}{hint}")
    entries = sorted((entry[2:], entry[:1] != b"?") for entry in answer.stdout.split(b"\0") if entry)
    warnings = [f"git: {line.removeprefix('warning: ')}" for line in complaint.split("\n") if line]
    return {path.decode("utf-8", "surrogateescape"): is_tracked for path, is_tracked in entries}, warnings


def find_marked(root: Path, names: Collection[str], options: Sequence[str] = ()) -> set[str]:
    """Return the files that .gitattributes calls vendored or generated. Raises NotSetUpError."""
    asked = b"".join(os.fsencode(name) + b"\0" for name in names)
    answer = ask_git([*options, "check-attr", "--stdin", "-z", *_MARKS], root, asked)
    if answer.returncode != 0:
        raise NotSetUpError(
            f"git cannot read the attributes: {shown(answer.stderr.decode('utf-8', 'replace').strip())}"
        )
    fields = iter(answer.stdout.split(b"\0"))
    return {
        os.fsdecode(name) for name, _, value in zip(fields, fields, fields, strict=False) if value in {b"set", b"true"}
    }


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names with those first that tell of the whole project, the others by the bytes of their paths."""

    def place(name: str) -> tuple[int, bytes]:
        match = _CONTEXT_FILES.fullmatch(name)
        return match.lastindex or 0 if match else len(_CONTEXT_FILES.pattern), os.fsencode(name)

    return sorted(names, key=place)


def fit_names(paths: Iterable[str], rollup: Rollup) -> list[str]:
    """Return the names that may stand in the rollup; the others go into `rollup`, except those of agent-config."""
    names = []
    for path in paths:
        if path.startswith(f"{AGENT_CONFIG}/"):
            continue
        name = path.rpartition("/")[2]
        reason = _fault_of_name(path)
        if not reason and path not in rollup.included and _SECRET_NAMES.fullmatch(name):
            reason = CONFIDENTIAL
        if not reason and not rollup.is_wanted(path):
            reason = LOCK_FILE if name in _LOCK_FILES else MINIFIED if _MINIFIED_NAMES.fullmatch(name) else None
        if reason:
            rollup.leave_out(reason, path)
        else:
            names.append(path)
    return names


def _fault_of_name(path: str) -> str | None:
    if path.startswith("../"):
        return OUTSIDE
    if path.endswith("/"):
        return OTHER_REPOSITORY
    if shown(path) != path:
        return "unprintable name"
    return KEY_FILE if path.rpartition("/")[2] in _KEY_FILES else None


def write_rollup(
    project: Project, names: Collection[str], redactor: Redactor, rollup: Rollup, room: Room | None = None
) -> None:
    """Write agent-config/codeRollup.txt from the files of these names, and into `rollup` what came of each.

    Where it has to fit into some `room`, not all files are whole.

    The rollup before it stays until the new one is whole. Raises NotSetUpError, and leaves it, when no file is left or
    the new one cannot be written. It is not synced: after a power cut it is made again.
    """
    try:
        project.agent_config.mkdir(mode=0o700, exist_ok=True)
        with replacing(project.codebase_file) as output:
            for piece in make_codebase(project.root, names, redactor, rollup, room):
                rollup.characters += len(piece)
                rollup.bytes += output.write(piece.encode())
    except OSError as error:
        message = f"{AGENT_CONFIG}/{project.codebase_file.name} cannot be written, it is as it was: {error.strerror}"
        raise NotSetUpError(message) from error


def make_codebase(
    root: Path, names: Collection[str], redactor: Redactor, rollup: Rollup, room: Room | None = None
) -> Iterator[str]:
    """Yield the text of a rollup, piece by piece, and write into `rollup` what came of each file.

    Raises NotSetUpError where no file is left.
    """
    files = sections(root, names, redactor, rollup)
    return fitted(files, redactor, rollup, room) if room else _whole(files, redactor, rollup)


def _whole(files: Iterable[Section], redactor: Redactor, rollup: Rollup) -> Iterator[str]:
    """Yield the rollup of all files, piece by piece. Raises NotSetUpError when there are none."""
    for file in files:
        rollup.sizes[file.name] = file.bytes
        yield file.text
    _require_files(rollup.sizes, rollup)
    yield redactor.redact_text(_left_out_section(rollup))


def fitted(files: Iterable[Section], redactor: Redactor, rollup: Rollup, room: Room) -> Iterator[str]:
    """Yield the rollup of what there is room for. Raises NotSetUpError when there are no files, or not even for one."""
    found = list(files)
    _require_files(found, rollup)
    end = redactor.redact_text(_left_out_section(rollup))
    if len(end) > room.characters // _SHARE_OF_END:
        end = f"{LEFT_OUT_LINE}\n{rollup.left_out_line()}\n\n"
    longest = room.characters // _SHARE_OF_CONTEXT
    context = {file.name for file in found if _CONTEXT_FILES.fullmatch(file.name) and len(file.text) <= longest}
    made = fit_sections(found, context, room._replace(characters=room.characters - len(end)))
    if room.chosen is None and not made.whole and not made.outlines:
        raise NotSetUpError(f"{room.tokens:,} tokens have no room for a file: allow more of them")
    rollup.sizes = {file.name: file.bytes for file in made.whole}
    rollup.outlined = list(made.outlines)
    for file in [*made.names, *made.unnamed]:
        rollup.leave_out(NO_ROOM if room.chosen is None else NOT_CHOSEN, file.name, f"{file.bytes:,} bytes")
    yield made.text
    yield end


_SHARE_OF_END = _SHARE_OF_CONTEXT = 10
"""One part in so many at most: a longer file of the project's conventions takes its turn with the others."""


def _require_files(files: Collection[object], rollup: Rollup) -> None:
    if not files:
        left_out = rollup.left_out_line()
        raise NotSetUpError(f"there is no file to roll up{'; ' + left_out if left_out else ''}")


def _left_out_section(rollup: Rollup) -> str:
    """Return the names of the files that the LLM does not see, for each reason a line; "" where there are none."""
    lines = [
        f"{reason}: {listed(names, _NAMES_LEFT_OUT)}\n"
        for reason, names in sorted(rollup.left_out.items())
        if reason not in _NOT_OF_THE_PROJECT
    ]
    return f"{LEFT_OUT_LINE}\n{''.join(lines)}\n" if lines else ""


LEFT_OUT_LINE = "--- FILES THAT ARE NOT SHOWN ---"
_NOT_OF_THE_PROJECT = {DELETED, OUTSIDE}


def find_stale_files(project: Project, codebase: str) -> list[str]:
    """Return a warning that names the files that changed since codeRollup.txt was written, [] where there are none."""
    written, stale = project.codebase_file.stat().st_mtime_ns, []
    for section in f"\n{codebase}".split("\n--- "):
        name, mark, content = section.partition(" ---\n")
        with suppress(OSError, ValueError):
            if mark and os.stat(f"{project.root}/{name}").st_mtime_ns >= written:  # noqa: PTH116 - half the time
                text = read_regular_file(project.root / name).decode("utf-8", "replace").rstrip("\n")
                if text != content.rstrip("\n") and f"--- {name} ---\n{text}" not in codebase:
                    stale.append(name)
    told = "changed since codeRollup.txt was written, the LLM sees the old text"
    return [f"{told}: {listed(stale)}: run code-commit rollup"] if stale else []


def sections(root: Path, names: Collection[str], redactor: Redactor, rollup: Rollup) -> Iterator[Section]:
    """Yield the part of the rollup of each file that is fit for one."""
    folders = {name.rpartition("/")[0] for name in names}
    behind_links = {folder for folder in folders if os.path.realpath(root / folder) != str(root / folder)}
    for name in names:
        if name.rpartition("/")[0] in behind_links:
            rollup.leave_out(LINK, name, "behind a link")
            continue
        try:
            content = _read(f"{root}/{name}", is_wanted=rollup.is_wanted(name))
            section = _section(name, content, redactor, may_be_secret=name in rollup.included)
        except _UnfitFileError as fault:
            rollup.leave_out(fault.reason, name, fault.detail)
        except (FileNotFoundError, NotADirectoryError):
            rollup.leave_out(DELETED, name)
        except NotAFileError:
            rollup.leave_out(_kind_of(root / name), name)
        except OSError as error:
            rollup.leave_out(UNREADABLE, name, str(error.strerror))
        else:
            yield Section(name, len(content), section)


def _kind_of(path: Path) -> str:
    if path.is_symlink():
        return LINK
    return OTHER_REPOSITORY if path.is_dir() else "no regular file"


def _read(path: str, *, is_wanted: bool) -> bytes:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size if size <= _LARGE else _BINARY_SHOWS_IN)
        if b"\0" in content:
            raise _UnfitFileError(BINARY)
        if size > _LARGE and not is_wanted:
            raise _UnfitFileError(LARGE, f"{size:,} bytes")
        content += file.readall() if size > _LARGE else b""
    if path.endswith(_MINIFIABLE) and not is_wanted and len(content) > _MINIFIED_LINE * (content.count(b"\n") + 1):
        raise _UnfitFileError(MINIFIED)
    return content


def find_secret(text: str) -> str | None:
    """Return what a text holds that looks like somebody's secret, and in which line; None where it looks like none."""
    if not _any_shape().isinstance_python(text):
        return None
    for shape, what in _SECRET_SHAPES.items():
        for match in re.finditer(shape, text):
            if not match[0].endswith(_IN_EXAMPLES):
                return f"{what} in line {text.count(chr(10), 0, match.start()) + 1}"
    return None


@functools.cache
def _any_shape() -> "SchemaValidator":
    """Return what finds any of the shapes by Rust's regular expressions, which pydantic brings along, in one pass."""
    from pydantic_core import SchemaValidator, core_schema

    return SchemaValidator(core_schema.str_schema(pattern="|".join(_SECRET_SHAPES), regex_engine="rust-regex"))


def _section(name: str, content: bytes, redactor: Redactor, *, may_be_secret: bool) -> str:
    if b"\0" in content:
        raise _UnfitFileError(BINARY)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise _UnfitFileError("not UTF-8") from None
    if not may_be_secret and (secret := find_secret(text)):
        raise _UnfitFileError(CONFIDENTIAL, secret)
    section = f"--- {name} ---\n{text}{'' if not text or text.endswith(chr(10)) else chr(10)}\n"
    if redactor.reveals_key(section):
        raise _UnfitFileError(REVEALS_KEY)
    return section
