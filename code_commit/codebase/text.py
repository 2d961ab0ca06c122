"""The text of a codebase: each file after a line that names it. Its one writer, and its one reader.

--- src/main.rs ---
fn main() {}

The same holds for the changed files of a repair prompt, `--- FILE REPLACEMENT src/main.rs ---`.

Files about the whole project come first, then path by path; the names of files left out stand at the end. Any file may
hold such lines too, so a reader believes them only where they fit the project.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from code_commit.errors import CODEBASE, NotSetUpError
from code_commit.exchange import weigh
from code_commit.files import identity_of, is_file, read_regular_file
from code_commit.project import Project, read_text
from code_commit.regex import regex
from code_commit.runs.words import count
from code_commit.views import (
    Basis,
    FileView,
    Name,
    Outline,
    Part,
    Passage,
    Removed,
    Sight,
    Unsure,
    View,
    Views,
    Whole,
    lines_of,
    of_kind,
)

NAMES_LINE = "--- FILES WITH NEITHER TEXT NOR OUTLINE HERE ---"
LEFT_OUT_LINE = "--- FILES THAT ARE NOT SHOWN ---"
NOTES_LINE = "--- NOTES ON THE FILES ABOVE ---"
_OWN_NAMES = {line.removeprefix("--- ").removesuffix(" ---") for line in (NAMES_LINE, LEFT_OUT_LINE, NOTES_LINE)}
_PART = regex(  # `a.py (outline, 1,234 bytes)`, `a.py (lines 1-14, 310-352 of 3,520)`
    r"(.+) \((?:outline(?:, [\d,]+ bytes)?|lines (?P<lines>\d{1,9}-\d{1,9}(?:, \d{1,9}-\d{1,9})*)"
    r"(?: of (?P<of>[\d,]{1,12}))?)\)"
)
REPLACEMENT, _REMOVED, _AS_DIFF = "FILE REPLACEMENT ", "FILE REMOVED ", " (diff)"  # beside a path
_GAP, _NAMES_OF_GAP, _MOST_ELSEWHERE = "[... lines {}-{} are not shown here{}{} ...]\n", 250, 10  # characters, ranges
_NEAR, _LONGEST_GAP = 4, 2_000  # lines, characters: a shorter gap is shown
_SHORT_GAP = 150  # characters: the line that tells of a gap with no more saves nothing
_DRESSED = (
    r"(?:(?:[-*+•]|\d+[.)]|---)\s+)?[\"'`]?(?:\./+)*(.+?)[\"'`]?"
    r"(?:\s+\((?:outline|[\d,]+ bytes?)[^()]*\))?(?:\s+---)?[,;]?"
)  # a path in a list: with a bullet, quotes or `./`, or a line of the codebase
_IN_FOLDER = r"([^,()]+?)(?: \([\d,]+\))?"  # of a line with the names of a folder: `a.py (1,234)`
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

    def __init__(self, name: str, size: int, text: str, read: Callable[[str], str] = str) -> None:
        self.name, self.bytes, self._text, self._read = name, size, text, read

    @property
    def text(self) -> str:
        return self._text or self._read(self.name)

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


def part_of(text: str, ranges: Iterable[tuple[int, int]]) -> Part:
    """Return these lines of a file, from a first to a last one each, from 1; ranges that are near are joined."""
    lines = lines_of(text)
    joined: list[list[int]] = []
    for first, last in sorted((max(first, 1), min(last, len(lines))) for first, last in ranges):
        gap = lines[joined[-1][1] : first - 1] if joined else []
        longest = _LONGEST_GAP if len(gap) < _NEAR else _SHORT_GAP
        if first <= last and joined and sum(len(line) + 1 for line in gap) <= longest:
            joined[-1][1] = max(last, joined[-1][1])
        elif first <= last:
            joined.append([first, last])
    passages = (Passage(first, "".join(f"{line}\n" for line in lines[first - 1 : last])) for first, last in joined)
    return Part(tuple(passages), len(lines))


def render(file: FileView, mark: str = "") -> str:
    """Return a file as it stands in a prompt, after the line that names it and says what is shown of it."""
    match file.view:
        case Part():
            return part_section(file.path, file.view, mark, file.hidden, file.elsewhere)
        case Outline(size=size):
            return file_section(f"{mark}{file.path} (outline, {size:,} bytes)", file.text)
        case Removed():
            return removal_header(file.path)
        case _:
            return file_section(f"{mark}{file.path}", file.text)


def part_section(
    path: str,
    part: Part,
    mark: str = "",
    hidden: Iterable[tuple[int, str]] = (),
    elsewhere: Sequence[tuple[int, int]] = (),
) -> str:
    """Return the passages of a file after a line that says which they are, with a line for each gap between them.

    `hidden` are the first lines and the names of definitions: a gap names those that begin in it, one at the end too.
    It says which lines the codebase has `elsewhere`, and names nothing in them.
    """
    hidden = [(at, name) for at, name in hidden if name and not any(first <= at <= last for first, last in elsewhere)]
    text, end = "", 0
    for passage in part.passages:
        text += (_describe_gap(end + 1, passage.first - 1, hidden, elsewhere) if end else "") + passage.text
        end = passage.last
    if any(line > end for line, _ in hidden):
        text += _describe_gap(end + 1, part.lines, hidden, elsewhere)
    return file_section(f"{mark}{path} (lines {part.where} of {part.lines:,})", text)


def _describe_gap(
    first: int, last: int, definitions: Iterable[tuple[int, str]], elsewhere: Iterable[tuple[int, int]]
) -> str:
    names = [name for line, name in definitions if first <= line <= last]
    told, room = list[str](), _NAMES_OF_GAP
    for name in names:
        if (room := room - len(name) - len(", ")) < 0:
            told.append(f"and {len(names) - len(told)} more")
            break
        told.append(name)
    known = [f"{max(start, first)}-{min(end, last)}" for start, end in elsewhere if start <= last and end >= first]
    more = " and others" if len(known) > _MOST_ELSEWHERE else ""
    there = f", [codebase] has {', '.join(known[:_MOST_ELSEWHERE])}{more}" if known else ""
    return _GAP.format(first, last, there, f": {', '.join(told)}" if told else "")


def _read_part(match: re.Match[str], text: str) -> Part:
    """Return the passages under a codebase's line that names them: as many lines as it says, whatever these hold."""
    ranges = re.findall(r"(\d+)-(\d+)", match["lines"])
    most = sum(int(last) - int(first) + 2 for first, last in ranges)
    passages, lines = list[Passage](), f"\n{text}".partition(f"\n{header(match[0])}")[2].split("\n", max(most, 0))
    for first, last in ranges:
        size = max(0, int(last) - int(first) + 1)
        passages.append(Passage(int(first), "".join(f"{line}\n" for line in lines[:size])))
        lines = lines[size + 1 :]
    return Part(tuple(passages), int((match["of"] or "0").replace(",", "")))


class Written(NamedTuple):
    """A text in a file, valid as long as the file is unchanged, with its weight in tokens as `weigh` has it."""

    file: Path
    weight: int
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

    `left_out` has the files that it does not show, by reason, each with a detail or "".
    """

    parts: Sequence[str]
    views: Views = field(default_factory=dict)
    basis: Basis = "read"
    left_out: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    untracked: Sequence[str] = ()
    warnings: Sequence[str] = ()
    written: Written | None = None

    @cached_property
    def text(self) -> str:
        return self.written.read() if self.written else "".join(self.parts)

    @cached_property
    def weight(self) -> int:
        """The number of characters of code that have as many tokens."""
        return self.written.weight if self.written else sum(map(weigh, self.parts))

    @cached_property
    def bytes(self) -> int:
        sizes = (len(part.encode("utf-8", "surrogatepass")) for part in self.parts)
        return self.written.bytes if self.written else sum(sizes)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the files that it holds whole, 0 where only the line that names one says so."""
        sizes = {path: view.size for path, view in of_kind(self.views, Whole).items()}
        return sizes | dict.fromkeys(of_kind(self.views, Unsure), 0)

    @property
    def largest(self) -> list[tuple[str, int]]:
        return sorted(self.sizes.items(), key=lambda file: -file[1])[:_LARGEST]

    @property
    def shown(self) -> Sight:
        is_partial = any(isinstance(view, Part | Outline | Name) for view in self.views.values())
        return Sight(self.views, self.text, (), self.basis, is_partial)


def read_codebase(project: Project) -> Codebase:
    """Return the codebase in codeRollup.txt. Raises NotSetUpError."""
    text = read_text(project.codebase_file, (CODEBASE, " writes it"))
    return parse_codebase(text, project.root)


def parse_codebase(text: str, root: Path) -> Codebase:
    """Return a text as the codebase of the project at this root.

    A file that it names before a text is Unsure. A part, an outline, or a name alone counts only where the project has
    the file, and no line names it before a text.
    """
    sections = [(_PART.fullmatch(name), name) for name, _ in read_sections(text)]
    views: dict[str, View] = dict.fromkeys(names_at_end(text), Name(0))
    for part, _ in sections:
        if part:
            views[part[1]] = _read_part(part, text) if part["lines"] else Outline(0)
    views = {path: view for path, view in views.items() if is_file(root / path)}
    unsure = {name: Unsure() for part, name in sections if not part and name not in _OWN_NAMES}
    return Codebase([text], views | unsure)


def names_at_end(text: str) -> list[str]:
    """Return the files of which a codebase has only the name."""
    _, mark, end = f"\n{text}".rpartition(f"\n{NAMES_LINE}\n")
    lines = end.partition("\n\n")[0].split("\n") if mark else []
    return [name for line in lines for name in _names_in(line) if name]


def list_names(files: Iterable[Section], sized: int = 0) -> str:
    """Return lines with the names of files, those of a folder on one line, and their bytes from so many on."""
    folders = dict[str, list[Section]]()
    for file in files:
        folders.setdefault(_folder_of(file) or file.name, []).append(file)
    return "".join(_list_folder(folder, inside, sized) for folder, inside in folders.items())


def _folder_of(file: Section) -> str:
    """Return the folder of a file whose name can stand in the line of its folder, else ""."""
    folder, _, name = file.name.rpartition("/")
    return "" if "/: " in file.name or re.search(r"[,()]", name) else folder


def _name_in_folder(file: Section, sized: int) -> str:
    """Return the name of a file without its folder, with its bytes from so many on."""
    name = file.name.rpartition("/")[2]
    return f"{name} ({file.bytes:,})" if file.bytes >= sized else name


def add_to_list(files: Iterable[Section], sized: int) -> Iterator[tuple[str, str]]:
    """Yield the path of each file with what it adds to the lines of `list_names`."""
    begun = set[str]()
    for file in files:
        folder = _folder_of(file)
        yield file.name, f"{_name_in_folder(file, sized)}, " if folder in begun else file.as_name
        begun.update([folder] if folder else ())


def _list_folder(folder: str, files: Sequence[Section], sized: int) -> str:
    one = len(files) == 1
    return files[0].as_name if one else f"{folder}/: {', '.join(_name_in_folder(file, sized) for file in files)}\n"


def count_by_folder(files: Sequence[Section], room: int) -> str:
    """Return the number of files in each folder, of those with most of them where there is no room for all."""
    counts = Counter("/".join(file.name.split("/")[:-1][:2]) or "." for file in files).most_common()
    while counts:
        told = f": {', '.join(f'{folder} {number}' for folder, number in counts)}"
        if weigh(told) <= room:
            return told
        counts = counts[: len(counts) * 3 // 4]
    return ""


def _names_in(line: str) -> list[str]:
    folder, mark, files = line.partition("/: ")
    if mark and re.fullmatch(rf"{_IN_FOLDER}(?:, {_IN_FOLDER})*", files):
        return [f"{folder}/{name}" for name in re.findall(rf"{_IN_FOLDER}(?:, |$)", files)]
    return [line.rpartition(" (")[0]]


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
