"""How a codebase that was written before differs from the tree: files that changed, are gone, or are new.

It may be another tool's. A file counts as gone only where its section surely begins, or git knew it. It counts as new
only where the codebase has all other files like it. Files shown in part are not compared.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from code_commit.codebase.select import CodebaseRequest, Selection, read_files, select_files
from code_commit.codebase.text import Codebase, names_in_part
from code_commit.files import Tree
from code_commit.project import Project
from code_commit.redaction import Redactor

_MARK, _MARK_END = "\n--- ", " ---"
_SECOND = 10**9
_UNTOLD = b"only goes back to"  # git's words where its log of HEAD is younger than the question


class Differences(NamedTuple):
    """The files that differ. One that is gone comes with its new path, or ""."""

    changed: list[str]
    gone: dict[str, str]
    new: list[str]


class _Missing(NamedTuple):
    """The section of a file that is not there, by the place of its text.

    A section surely begins at the text's start, and after a section that is as its file is.
    """

    place: int
    is_sure: bool


class _Differing(NamedTuple):
    """The section of a file with another content. `is_part`: what it has stands in the file."""

    is_first: bool
    is_newer: bool
    is_part: bool


def find_differences(project: Project, codebase: Codebase, exclude: Sequence[str], redactor: Redactor) -> Differences:
    """Return how the codebase in codeRollup.txt differs from the tree. Raises NotSetUpError and UnansweredError."""
    written, text = project.codebase_file.stat().st_mtime_ns, f"\n{codebase.text}"
    current, differing, missing = _compare(project, codebase, text, written)
    tracked, in_part = project.index().files, set(names_in_part(text))
    lost = {name: section.place for name, section in missing.items() if section.is_sure and current}
    doubtful = {name: section.place for name, section in missing.items() if name not in lost}
    doubtful |= dict.fromkeys((name for name in in_part if not project.has(name)), len(text))
    shown = in_part.union(codebase.sizes)
    late = {name for name in tracked - shown if _is_younger(project, name, written)} if shown else set()
    before = _tree_at(project, written) if late or doubtful else set()
    new: list[str] = []
    if late := (late - before if before else set()):  # of an unknown tree a copy's files would all be new
        lacked = tracked.intersection(select_files(project, exclude, CodebaseRequest()).names) - shown
        new = list(_find_new(project, redactor, late & lacked, lacked - late, shown))
    gone = lost | {name: place for name, place in doubtful.items() if name in tracked or name in before}
    moved = dict(_find_moved(project, gone, new, text))
    return Differences(
        sorted(_find_changed(current, differing)),
        {name: moved.get(name, "") for name in sorted(gone)},
        sorted(set(new).difference(moved.values())),
    )


def _compare(
    project: Project, codebase: Codebase, text: str, written: int
) -> tuple[set[str], dict[str, _Differing], dict[str, _Missing]]:
    """Return the files that the text holds as they are, those that differ, and those that are missing.

    A line inside a file that is as it is begins no section.
    """
    current, differing, missing = set[str](), dict[str, _Differing](), dict[str, _Missing]()
    place = end = 0
    with Tree(project.root) as tree:
        while (start := text.find(_MARK, place)) >= 0:
            place = _find_or_end(text, "\n", start + 1)
            name = text[start + len(_MARK) : place].removesuffix(_MARK_END)
            if name not in codebase.sizes or not text.endswith(_MARK_END, start, place):
                continue
            try:
                file, state = tree.read(name)
            except (FileNotFoundError, NotADirectoryError):
                missing.setdefault(name, _Missing(place + 1, start <= end))
                continue
            except (OSError, ValueError):
                continue
            content = file.decode("utf-8", "replace")
            if found := _end_of(content, text, place + 1):
                current.add(name)
                place = end = found
            else:
                is_part = text[place + 1 : _find_or_end(text, _MARK, place)].strip() in content
                differing[name] = _Differing(not start, state.st_mtime_ns >= written, is_part)
    return current, differing, missing


def _find_or_end(text: str, mark: str, place: int) -> int:
    found = text.find(mark, place)
    return found if found >= 0 else len(text)


def _end_of(content: str, text: str, place: int) -> int:
    """Return where the section ends that has this content from the place on, 0 where it has another."""
    for spelling in (content, content.removeprefix("\ufeff").replace("\r\n", "\n")):
        body = spelling.rstrip("\n")
        if text.startswith(body, place):
            end = place + len(body)
            while text.startswith("\n", end):
                end += 1
            if end == len(text) or text.startswith(_MARK[1:], end):
                return end - 1
    return 0


def _find_changed(current: Collection[str], differing: dict[str, _Differing]) -> Iterator[str]:
    """Yield the files that differ, if the text has sections as ours are.

    The text may hold no file as it is (numbered, without comments) if most differ, among those with an old date.
    """
    differs = {name: section for name, section in differing.items() if name not in current}
    if current or any(section.is_first for section in differs.values()):
        old = [name for name, section in differs.items() if not (section.is_newer or section.is_part)]
        yield from (name for name, section in differs.items() if section.is_newer)
        yield from old if len(old) <= max(len(current), 1) else ()


def _is_younger(project: Project, name: str, written: int) -> bool:
    """Tell whether a file came, or was touched, after the codebase was written: no program sets this date."""
    try:
        return os.lstat(f"{project.root}/{name}").st_ctime_ns > written
    except OSError:
        return False


def _tree_at(project: Project, written: int) -> set[str]:
    """Return the files of the commit that was checked out then, none where git does not tell it."""
    commit = f"HEAD@{{{written // _SECOND - 1} +0000}}"  # a commit of the same second may be later
    answer = project.ask(["ls-tree", "-r", "-z", "--name-only", commit])
    if answer.returncode != 0 or _UNTOLD in answer.stderr:
        return set()
    return set(os.fsdecode(answer.stdout).split("\0"))


def _find_new(
    project: Project, redactor: Redactor, new: Collection[str], lacked: Collection[str], shown: Iterable[str]
) -> Iterator[str]:
    """Yield the new files that the same rollup would hold. `lacked` are the older ones that it does not hold.

    A rollup that lacks nothing holds all. Another one holds a file if it holds all files of this suffix in the nearest
    folder that has some, which is the root only for files right in it.
    """

    def lacks_any(names: Iterable[str]) -> bool:
        return next(read_files(project.root, sorted(names), redactor, Selection()), None) is not None

    is_whole = not lacks_any(lacked)
    held = {place for name in shown for place in _places_of(name)}
    for file in read_files(project.root, sorted(new), redactor, Selection()):
        nearest = next((place for place in _places_of(file.name) if place in held), None)
        if is_whole or (nearest and not lacks_any(name for name in lacked if nearest in _places_of(name))):
            yield file.name


def _places_of(path: str) -> list[tuple[str, str]]:
    """Return each folder of the path with its suffix, the nearest first."""
    *folders, name = path.split("/")
    above = ["/".join(folders[:depth]) for depth in range(len(folders), 0, -1)]
    return [(folder, PurePosixPath(name).suffix) for folder in above or [""]]


def _find_moved(project: Project, gone: dict[str, int], new: Iterable[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield each file that is gone and has the content of a new one, with that; each new one once."""
    left = dict(gone)
    with Tree(project.root) as tree:
        for path in new if gone else ():
            content = tree.read(path)[0].decode("utf-8", "replace")
            name = next((name for name, place in left.items() if _end_of(content, text, place)), "")
            if name and content.strip():
                del left[name]
                yield name, path
