"""The text of a codebase: each file after a line that names it. Its one writer, and its one reader.

--- src/main.rs ---
fn main() {}

The same holds for the changed files of a repair prompt, `--- FILE REPLACEMENT src/main.rs ---`.

Files about the whole project come first, then path by path; the names of files left out stand at the end. Any file may
hold such lines too, so a reader believes them only where they fit the project.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from code_commit.errors import CODEBASE, NotSetUpError
from code_commit.exchange import VisibleFiles, Window
from code_commit.files import identity_of, is_file, read_regular_file
from code_commit.project import Project, read_text
from code_commit.runs.words import count

NAMES_LINE = "--- FILES WITH NEITHER TEXT NOR OUTLINE HERE ---"
LEFT_OUT_LINE = "--- FILES THAT ARE NOT SHOWN ---"
NOTES_LINE = "--- NOTES ON THE FILES ABOVE ---"
_OWN_NAMES = {line.removeprefix("--- ").removesuffix(" ---") for line in (NAMES_LINE, LEFT_OUT_LINE, NOTES_LINE)}
_PART = re.compile(  # `a.py (outline, 1,234 bytes)`, `a.py (lines 1-14, 310-352 of 3,520)`
    r"(.+) \((?:outline(?:, [\d,]+ bytes)?|lines (?P<lines>\d{1,9}-\d{1,9}(?:, \d{1,9}-\d{1,9})*)"
    r"(?: of (?P<of>[\d,]{1,12}))?)\)"
)
REPLACEMENT, _REMOVED, _AS_DIFF = "FILE REPLACEMENT ", "FILE REMOVED ", " (diff)"  # beside a path
_GAP, _NAMES_OF_GAP = "[... lines {}-{} are not shown here{} ...]\n", 400  # characters
_NEAR = 4  # lines: a shorter gap is shown
_DRESSED = (
    r"(?:(?:[-*+•]|\d+[.)]|---)\s+)?[\"'`]?(?:\./+)*(.+?)[\"'`]?"
    r"(?:\s+\((?:outline|[\d,]+ bytes?)[^()]*\))?(?:\s+---)?[,;]?"
)  # a path in a list: with a bullet, quotes or `./`, or a line of the codebase
_LONGEST_LINE = 500
_LARGEST = 5


def header(path: str) -> str:
    return f"--- {path} ---\n"


def replacement_header(path: str, *, is_diff: bool) -> str:
    return header(f"{REPLACEMENT}{path}{_AS_DIFF if is_diff else ''}")


def removal_header(path: str) -> str:
    return header(f"{_REMOVED}{path}")


class Header(NamedTuple):
    """A line that stands before a file in a prompt; `is_marked` if it says more than the path, which is "" for none."""

    path: str
    is_marked: bool


def read_header(line: str) -> Header | None:
    """Return what a line says if it has the form of those that stand before a file, or before the names of files."""
    match = re.fullmatch(r"--- (.+) ---[ \t\r]*", line)
    if match is None:
        return None
    name = match[1].removeprefix(REPLACEMENT).removeprefix(_REMOVED).removesuffix(_AS_DIFF)
    part = _PART.fullmatch(name)
    path = part[1] if part else name
    return Header("" if path in _OWN_NAMES else path, path != match[1] or path in _OWN_NAMES)


def file_section(path: str, text: str) -> str:
    return f"{header(path)}{text}{'' if not text or text.endswith(chr(10)) else chr(10)}\n"


class Section:
    """A file as it stands in a codebase, after the line that names it; `bytes` is the file's size.

    A released text is read again at each use.
    """

    __slots__ = ("_read", "_text", "bytes", "name")

    def __init__(self, name: str, size: int, text: str, read: Callable[[], str] = str) -> None:
        self.name, self.bytes, self._text, self._read = name, size, text, read

    @property
    def text(self) -> str:
        return self._text or self._read()

    def release(self) -> None:
        self._text = ""

    @property
    def content(self) -> str:
        return self.text[len(header(self.name)) :]

    @property
    def file_text(self) -> str:
        """The content without the line ends that the codebase has after it."""
        return self.content.encode()[: self.bytes].decode()

    @property
    def as_name(self) -> str:
        return f"{self.name} ({count(self.bytes, 'byte')})\n"

    def as_outline(self, outline: str) -> str:
        return f"{header(f'{self.name} (outline, {self.bytes:,} bytes)')}{outline}\n"


def window(path: str, text: str, ranges: Iterable[tuple[int, int]]) -> Window:
    """Return these lines of a file, from a first to a last one each, from 1; ranges that are near are joined."""
    lines = lines_of(text)
    joined: list[list[int]] = []
    for first, last in sorted((max(first, 1), min(last, len(lines))) for first, last in ranges):
        if first <= last and joined and first <= joined[-1][1] + _NEAR:
            joined[-1][1] = max(last, joined[-1][1])
        elif first <= last:
            joined.append([first, last])
    passages = [(first, "".join(f"{line}\n" for line in lines[first - 1 : last])) for first, last in joined]
    return Window(path, len(lines), passages)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends and a BOM."""
    text = text.removeprefix("\ufeff")
    return text.removesuffix("\n").split("\n") if text else []


def window_section(part: Window, mark: str = "", hidden: Sequence[tuple[int, str]] = ()) -> str:
    """Return the passages of a file after a line that says which they are, with a line for each gap between them.

    `hidden` are the first lines and the names of definitions: a gap names those that begin in it.
    """
    text, end = "", 0
    for (first, last), (_, passage) in zip(part.ranges, part.passages, strict=True):
        text += (_describe_gap(end + 1, first - 1, hidden) if end else "") + passage
        end = last
    return file_section(f"{mark}{part.path} (lines {part.where} of {part.lines:,})", text)


def _describe_gap(first: int, last: int, definitions: Iterable[tuple[int, str]]) -> str:
    names = [name for line, name in definitions if name and first <= line <= last]
    told, room = list[str](), _NAMES_OF_GAP
    for name in names:
        if (room := room - len(name) - len(", ")) < 0:
            told.append(f"and {len(names) - len(told)} more")
            break
        told.append(name)
    return _GAP.format(first, last, f": {', '.join(told)}" if told else "")


def _read_window(match: re.Match[str], text: str) -> Window:
    """Return the passages under a codebase's line that names them: as many lines as it says, whatever these hold."""
    ranges = re.findall(r"(\d+)-(\d+)", match["lines"])
    most = sum(int(last) - int(first) + 2 for first, last in ranges)
    passages, lines = [], f"\n{text}".partition(f"\n{header(match[0])}")[2].split("\n", max(most, 0))
    for first, last in ranges:
        size = max(0, int(last) - int(first) + 1)
        passages.append((int(first), "".join(f"{line}\n" for line in lines[:size])))
        lines = lines[size + 1 :]
    return Window(match[1], int((match["of"] or "0").replace(",", "")), passages)


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
        return VisibleFiles(self.text, whole, windows={part.path: part for part in self.windows})


def read_codebase(project: Project) -> Codebase:
    """Return the codebase in codeRollup.txt. Raises NotSetUpError."""
    text = read_text(project.codebase_file, (CODEBASE, " writes it"))
    return parse_codebase(text, project.root)


def parse_codebase(text: str, root: Path) -> Codebase:
    """Return a text as the codebase of the project at this root; a part counts only where the project has its file."""
    sections = [(_PART.fullmatch(name), name) for name, _ in read_sections(text)]
    whole = {name for part, name in sections if not part}
    parts = [part for part, _ in sections if part and is_file(root / part[1])]
    windows = [_read_window(part, text) for part in parts if part["lines"]]
    outlined = [part[1] for part in parts if not part["lines"]]
    only_named = [name for name in names_at_end(text) if is_file(root / name)]
    is_partial = bool(only_named) or not whole.issuperset(part[1] for part in parts)
    sizes = dict.fromkeys(whole.difference(_OWN_NAMES, outlined, only_named, (part.path for part in windows)), 0)
    return Codebase([text], sizes, outlined, windows, is_partial)


def names_at_end(text: str) -> list[str]:
    """Return the files of which a codebase has only the name."""
    _, mark, end = f"\n{text}".rpartition(f"\n{NAMES_LINE}\n")
    names = (line.rpartition(" (")[0] for line in end.partition("\n\n")[0].split("\n"))
    return [name for name in names if name] if mark else []


def names_in_part(text: str) -> list[str]:
    """Return the files, there or not, of which a codebase has an outline, some lines, or only the name."""
    parts = (_PART.fullmatch(name) for name, _ in read_sections(text))
    return [*(part[1] for part in parts if part), *names_at_end(text)]


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


def find_unseen(texts: Mapping[str, str], codebase: str) -> set[str]:
    """Return the paths whose text does not stand in the codebase at a line start, apart from line ends and a BOM."""
    rollup = _plain(codebase)
    return {path for path, text in texts.items() if _plain(text).rstrip("\n") not in rollup}


def _plain(text: str) -> str:
    return f"\n{text}".replace("\r\n", "\n").replace("\n\ufeff", "\n")
