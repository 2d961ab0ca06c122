"""The text of a codebase: each file after a line that names it. Its one writer, and its one reader.

--- src/main.rs ---
fn main() {}

Files about the whole project come first, then path by path; the names of files left out stand at the end. Any file may
hold such lines too, so a reader believes them only where they fit the project.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from code_commit.errors import NotSetUpError
from code_commit.exchange import VisibleFiles
from code_commit.files import identity_of, read_regular_file
from code_commit.project import Project, read_text
from code_commit.runs.words import count, listed

NAMES_LINE = "--- FILES WITH NEITHER TEXT NOR OUTLINE HERE ---"
LEFT_OUT_LINE = "--- FILES THAT ARE NOT SHOWN ---"
_OWN_NAMES = {line.removeprefix("--- ").removesuffix(" ---") for line in (NAMES_LINE, LEFT_OUT_LINE)}
_PART = re.compile(r"(.+) \((?:outline(?:, [\d,]+ bytes)?|lines (\d+)-(\d+))\)")  # `a.py (outline, 1,234 bytes)`
_DRESSED = (
    r"(?:(?:[-*+•]|\d+[.)]|---)\s+)?[\"'`]?(?:\./+)*(.+?)[\"'`]?"
    r"(?:\s+\((?:outline|[\d,]+ bytes?)[^()]*\))?(?:\s+---)?[,;]?"
)  # a path in a list: with a bullet, quotes or `./`, or a line of the codebase
_LONGEST_LINE = 500
_LARGEST = 5


def header(path: str) -> str:
    return f"--- {path} ---\n"


def file_section(path: str, text: str) -> str:
    return f"{header(path)}{text}{'' if not text or text.endswith(chr(10)) else chr(10)}\n"


class Section(NamedTuple):
    """A file as it stands in a codebase, after the line that names it; `bytes` is the file's size."""

    name: str
    bytes: int
    text: str

    @property
    def content(self) -> str:
        return self.text[len(header(self.name)) :]

    @property
    def as_name(self) -> str:
        return f"{self.name} ({count(self.bytes, 'byte')})\n"

    def as_outline(self, outline: str) -> str:
        return f"{header(f'{self.name} (outline, {self.bytes:,} bytes)')}{outline}\n"


class Window(NamedTuple):
    """Lines of a file, from the first to the last, both counted from 1, which a prompt shows in its place."""

    path: str
    first: int
    last: int
    text: str

    @property
    def section(self) -> str:
        return file_section(f"{self.path} (lines {self.first}-{self.last})", self.text)


def window(path: str, text: str, first: int, last: int) -> Window:
    lines = text.split("\n")[: -1 if text.endswith("\n") else None]
    first, last = max(first, 1), min(last, len(lines))
    return Window(path, first, last, "".join(f"{line}\n" for line in lines[first - 1 : last]))


def _read_window(path: str, first: int, last: int, content: str) -> Window:
    """Return the window under a codebase's line that names it, with at most as many lines as that line says."""
    lines = content.split("\n")[: max(0, last - first + 1)]
    return Window(path, first, last, "".join(f"{line}\n" for line in lines))


class Written(NamedTuple):
    """A text in a file, valid as long as the file is unchanged, with its length."""

    file: Path
    characters: int
    bytes: int
    identity: tuple[int, ...]

    def read(self) -> str:
        """Return the text. Raises NotSetUpError where the file changed meanwhile."""
        try:
            text = read_regular_file(self.file).decode()
            if identity_of(self.file.stat()) == self.identity:
                return text
        except (OSError, UnicodeDecodeError):
            pass
        raise NotSetUpError(f"{self.file.name} was changed while the run began: start it again")


@dataclass(frozen=True)
class Codebase:
    """A codebase: the parts of its text, or the file that holds it, and what it shows of each file.

    `sizes` are the bytes of each whole file; `left_out` has the other files by reason, each with a detail or "".
    """

    parts: Sequence[str]
    sizes: Mapping[str, int] = field(default_factory=dict)
    outlined: Sequence[str] = ()
    windows: Sequence[Window] = ()
    is_partial: bool = False
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    untracked: Sequence[str] = ()
    warnings: Sequence[str] = ()
    written: Written | None = None

    @cached_property
    def text(self) -> str:
        return self.written.read() if self.written else "".join(self.parts)

    @property
    def characters(self) -> int:
        return self.written.characters if self.written else sum(map(len, self.parts))

    @cached_property
    def bytes(self) -> int:
        sizes = (len(part.encode("utf-8", "surrogatepass")) for part in self.parts)
        return self.written.bytes if self.written else sum(sizes)

    @property
    def largest(self) -> list[tuple[str, int]]:
        return sorted(self.sizes.items(), key=lambda file: -file[1])[:_LARGEST]

    @property
    def shown(self) -> VisibleFiles:
        whole = frozenset(self.sizes) if self.is_partial else None
        return VisibleFiles(
            self.text, whole, windows=tuple((part.path, part.first, part.text) for part in self.windows)
        )


def read_codebase(project: Project) -> Codebase:
    """Return the codebase in codeRollup.txt. Raises NotSetUpError."""
    text = read_text(project.codebase_file, "write the codebase into it, as code-commit rollup does")
    return parse_codebase(text, project.root)


def parse_codebase(text: str, root: Path) -> Codebase:
    """Return a text as the codebase of the project at this root; a part counts only where the project has its file."""
    sections = [(_PART.fullmatch(name), name, content) for name, content in read_sections(text)]
    whole = {name for part, name, _ in sections if not part}
    parts = [(part, content) for part, _, content in sections if part and (root / part[1]).is_file()]
    windows = [_read_window(part[1], int(part[2]), int(part[3]), content) for part, content in parts if part[2]]
    outlined = [part[1] for part, _ in parts if not part[2]]
    _, mark, end = f"\n{text}".rpartition(f"\n{NAMES_LINE}\n")
    named = [line.rpartition(" (")[0] for line in end.partition("\n\n")[0].split("\n")] if mark else []
    only_named = [name for name in named if name and (root / name).is_file()]
    is_partial = bool(only_named) or not whole.issuperset(part[1] for part, _ in parts)
    sizes = dict.fromkeys(whole.difference(_OWN_NAMES, outlined, only_named, (part.path for part in windows)), 0)
    return Codebase([text], sizes, outlined, windows, is_partial)


def read_sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name on each header line of a codebase, and the text up to the next one."""
    for section in f"\n{text}".split("\n--- ")[1:]:
        name, mark, content = section.partition(" ---\n")
        if mark and "\n" not in name:
            yield name, content


def path_of(line: str, files: Collection[str]) -> str:
    """Return the path that a line of a list names, without decoration around it."""
    match = re.fullmatch(_DRESSED, line[:_LONGEST_LINE])
    return line if line in files or not match else match[1]


def find_stale_files(project: Project, codebase: Codebase) -> list[str]:
    """Return a warning that names the files changed since codeRollup.txt was written, [] where there are none."""
    written, stale = project.codebase_file.stat().st_mtime_ns, []
    for name, content in read_sections(codebase.text):
        with suppress(OSError, ValueError):
            if os.stat(f"{project.root}/{name}").st_mtime_ns >= written:  # noqa: PTH116 - half the time
                text = read_regular_file(project.root / name).decode("utf-8", "replace").rstrip("\n")
                if text != content.rstrip("\n") and f"{header(name)}{text}" not in codebase.text:
                    stale.append(name)
    told = "changed since codeRollup.txt was written, the LLM sees the old text"
    return [f"{told}: {listed(stale)}: run code-commit rollup"] if stale else []


def find_unseen(texts: Mapping[str, str], codebase: str) -> set[str]:
    """Return the paths whose text does not stand in the codebase at a line start, apart from line ends and a BOM."""
    rollup = _plain(codebase)
    return {path for path, text in texts.items() if _plain(text).rstrip("\n") not in rollup}


def _plain(text: str) -> str:
    return f"\n{text}".replace("\r\n", "\n").replace("\n\ufeff", "\n")
