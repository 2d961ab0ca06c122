"""The codebase additions: files that the output of a failed build names and that the codebase does not hold whole.

A test that the LLM was not shown can hardly be made to pass. Only what a rollup might hold is taken: text files that
git tracks, or does not ignore, and no secrets.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from code_commit.changes import FileReplacement
from code_commit.codebase import Rollup, fit_names, list_files, sections
from code_commit.errors import NotSetUpError
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.verify.content import find_unseen

_SHARE = 10
_MOST_FILES = 200

_MENTION = re.compile(r"(?P<name>(?:[^\s\"'`<>|,;:=*?(]+|\((?!\d))+)(?P<line>[\"']?(?::\[?|, line |\()\d)?")
"""A word that may be a path, and whether a line number follows: `a.py", line 3`, `a.rs:1`, `a.ts(3,4)`, `A.java:[3`."""


class Additions:
    """Finds the additions of each repair of a run: the next one sees again what the one before was shown."""

    def __init__(self, project: Project, codebase: str, redactor: Redactor) -> None:
        self._project = project
        self._codebase = codebase
        self._redactor = redactor
        self._shown: list[str] = []

    def find(self, output: str, known: Collection[str]) -> list[FileReplacement]:
        """Return the files that the output names and the codebase lacks, but for those of `known` paths.

        Those that are named with a line number go first; all are up to a tenth of the codebase's size together.
        Outside of a git repository there are none.
        """
        if self._project.git is None:
            return []
        try:
            paths, _ = list_files(self._project.root, [])
        except NotSetUpError:
            return []  # a build broke the repository: what follows tells that
        named = [*self._shown, *named_files(output, paths, str(self._project.root))]
        texts = self._read([path for path in dict.fromkeys(named) if path in paths and path not in known])
        unseen = find_unseen(texts, self._codebase)
        room, additions = len(self._codebase) // _SHARE, []
        for path, text in texts.items():
            if path in unseen and len(text) <= room:
                room -= len(text)
                additions.append(FileReplacement(path, text))
        self._shown = [addition.path for addition in additions]
        return additions

    def _read(self, paths: Sequence[str]) -> dict[str, str]:
        """Return the text of each file that may stand in a rollup and is not empty."""
        rollup, texts = Rollup(), {}
        names = fit_names(paths[:_MOST_FILES], rollup)
        for name, size, section in sections(self._project.root, names, self._redactor, rollup):
            start = len(f"--- {name} ---\n".encode())
            texts[name] = section.encode()[start : start + size].decode()
        return {name: text for name, text in texts.items() if text.strip()}


def named_files(output: str, paths: Iterable[str], root: str) -> list[str]:
    """Return those of the project's paths that a build's output names, by themselves or by an end that only they have.

    Those that are named with a line number come first.
    """
    by_name = defaultdict(list)
    for path in paths:
        by_name[path.rpartition("/")[2]].append(path)
    named: dict[str, bool] = {}
    for name, line in dict.fromkeys(_MENTION.findall(output.replace(f"file://{root}/", " ").replace(f"{root}/", " "))):
        for word in _spellings(name):
            ends = [path for path in by_name.get(word.rpartition("/")[2], ()) if f"/{path}".endswith(f"/{word}")]
            if word in ends or len(ends) == 1:
                path = word if word in ends else ends[0]
                named[path] = bool(line) or named.get(path, False)
    return sorted(named, key=lambda path: not named[path])


def _spellings(word: str) -> Iterator[str]:
    """Yield a word that may be a path, and what else may be one in `(src/x.ts)`, `a.Test.run(Test.java` or `x.ts.`."""
    bare = word.rstrip(").]}")
    for part in dict.fromkeys((word, bare, bare.rpartition("(")[2])):
        if "." in part or "/" in part:
            yield part.removeprefix("./")
