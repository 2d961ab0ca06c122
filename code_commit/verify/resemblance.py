"""New files that are likely meant to be existing ones: relations between their lines, and what the LLM was shown.

astray   a suspicion: it is an existing file in a folder that is not there, or without one; or is called `PATH`
copy     a suspicion: it has most lines of a file of its name, or of one in a folder of its name
gone     a suspicion: the LLM was shown a file of this path, which is not there any more
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

from code_commit.files import Tree
from code_commit.project import Project
from code_commit.terminal import shown
from code_commit.verify.new_paths import Doubt
from code_commit.views import Part, Unsure, Views, Whole

_MOST_NEW = 200
_MOST_COMPARED = 50
_SHORTEST_COMPARED = 10  # lines
_LARGER = 8  # bytes for each character of a new file: no larger one has most lines in common with it


class NewFiles(NamedTuple):
    """The answer's new files, by path: their contents; all paths of the answer; what git tracks; the task."""

    contents: Mapping[str, str]
    answered: Collection[str]
    tracked: Collection[str]
    query: str


def find_astray(files: NewFiles, project: Project) -> Iterator[Doubt]:
    """Yield each new path, of up to two hundred, that is an existing one under other folders.

    A folder is taken as intended if the query names it, or if most of its new files are unlike existing ones.
    """
    new, answered = files.contents, files.answered
    if len(new) > _MOST_NEW:
        return
    names = {path.rpartition("/")[2] for path in new if not project.has(path.split("/")[0])}
    likely = [path for path in files.tracked if path.rpartition("/")[2] in names] if names else []
    with Tree(project.root) as tree:
        meant = {path: seen for path, text in new.items() if (seen := _find_meant(path, text, answered, likely, tree))}
    for path in new:
        if path.split("/")[0] == "PATH" and not project.has("PATH"):
            yield Doubt(path, "astray", "has the name of an example in the instructions", "write the file's own path")
        elif path in meant:
            folder, existing = meant[path]
            beside = [other in meant for other in new if other.startswith(f"{folder}/")]
            if 2 * sum(beside) >= len(beside) and not _names_it(files.query, f"{folder}/"):
                fact = f"has most lines of {shown(existing)}, and there is no folder {shown(folder)}/"
                yield Doubt(path, "astray", fact, f"write {shown(existing)}")


def _names_it(query: str, path: str) -> bool:
    return re.search(rf"(?<![\w./-])(?:\./)?{re.escape(path)}", query) is not None


def _find_meant(
    path: str, text: str, answered: Collection[str], likely: Iterable[str], tree: Tree
) -> tuple[str, str] | None:
    """Return a missing folder of the path, and the existing file under another folder that has most of its lines."""
    folders = list(accumulate(path.split("/"), "{}/{}".format))[:-1]
    others = [(folder, path[len(folder) + 1 :]) for folder in folders]
    others += [(folder, path[len(folder) // 2 + 1 :]) for folder in folders if _is_twice(folder)]
    others += [(folders[0], other) for other in likely if folders and other.endswith(f"/{path}")]
    given = _Lines(text)
    for folder, other in others:
        with suppress(OSError):
            if other not in answered and not tree.look(folder) and given.are_most_of(other, tree):
                return folder, other
    return None


def _is_twice(folder: str) -> bool:
    half = len(folder) // 2
    return folder[half:] == f"/{folder[:half]}"


def find_copies(files: NewFiles, project: Project) -> Iterator[Doubt]:
    """Yield each new path, of up to two hundred, in a folder that is there, with most lines of a file that stays.

    Both have one name (and no third file has it), or one folder and names that differ in the suffix alone; or the
    file's folder has the new one's name: `slug.py` beside `slug/__init__.py`. A name that the query has is intended.
    """
    if len(files.contents) > _MOST_NEW:
        return
    new = [path for path in files.contents if project.has(_split(path).folder) and not _names_it(files.query, path)]
    likely = _namesakes(new, files.tracked) if new else {}
    with Tree(project.root) as tree:
        for path, others in likely.items():
            given = _Lines(files.contents[path])
            for other in others:
                with suppress(OSError):
                    if other not in files.answered and given.are_most_of(other, tree):
                        advice = f"make the change in {shown(other)}"
                        yield Doubt(path, "copy", f"has most lines of {shown(other)}, which stays as it is", advice)
                        break


class _Parts(NamedTuple):
    folder: str
    stem: str
    name: str


def _split(path: str) -> _Parts:
    folder, _, name = path.rpartition("/")
    return _Parts(folder, name.rpartition(".")[0] or name, name)


def _namesakes(new: Iterable[str], tracked: Iterable[str]) -> dict[str, list[str]]:
    """Return for each new path the tracked files that its name may mean."""
    wanted = {path: _split(path) for path in new}
    stems = {parts.stem for parts in wanted.values()}
    names, beside, below = defaultdict(list), defaultdict(list), defaultdict(list)
    for path in tracked:
        folder, _, name = path.rpartition("/")
        if (stem := name.rpartition(".")[0] or name) in stems:
            names[name].append(path)
            beside[folder, stem].append(path)
        if (above := folder.rpartition("/")[2]) in stems:
            below[above].append(path)
    return {
        path: [
            *(names[parts.name] if len(names[parts.name]) == 1 else ()),
            *beside[parts.folder, parts.stem],
            *below[parts.stem][:_MOST_COMPARED],
        ]
        for path, parts in wanted.items()
    }


class _Lines:
    """The lines of a new file without blanks around them."""

    def __init__(self, text: str) -> None:
        self._size = len(text)
        self._given = _stripped(text)
        self._lines = {*self._given}

    def are_most_of(self, path: str, tree: Tree) -> bool:
        """Tell whether they are most of an existing file's of ten lines or more, and not all. Raises OSError."""
        state = tree.look(path)
        if state is None or state.st_size > _LARGER * self._size:
            return False
        old = tree.read(path)[0].decode("utf-8", "replace")
        said = _stripped(old)
        is_like = 2 * sum(line in self._lines for line in said) > len(said) and said != self._given
        return is_like and old.count("\n") >= _SHORTEST_COMPARED


def _stripped(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]


def find_gone(paths: Iterable[str], views: Views, project: Project, tracked: Iterable[str]) -> Iterator[Doubt]:
    """Yield each path whose file the prompt shows and the project does not have, but for an answer's removal."""
    for path in paths:
        if isinstance(views.get(path), Whole | Part | Unsure):
            name = f"/{path.rpartition('/')[2]}"
            moved = [other for other in tracked if f"/{other}".endswith(name) and project.has(other)]
            where = f" ({shown(moved[0])}?)" if len(moved) == 1 else ""
            fact = "was deleted or renamed after the codebase was made"
            yield Doubt(path, "gone", fact, f"leave it out, and make the change where its code is now{where}")
