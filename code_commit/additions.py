"""The codebase additions: files that the output of a failed build names and that the codebase does not hold whole.

A test that the LLM was not shown can hardly be made to pass. Only what a rollup might hold is taken: text files that
git tracks, or does not ignore, and no secrets.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from code_commit.changes import FileReplacement
from code_commit.codebase import Rollup, fit_names, list_files, sections
from code_commit.errors import NotSetUpError
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.verify.content import find_unseen

_SHARE = 10
_SMALLEST_ROOM = 8_000
_MOST_FILES = 200

_MENTION = re.compile(r"(?P<name>(?:[^\s\"'`<>|,;:=*?(]+|\((?!\d))+)(?P<line>[\"']?(?::\[?|, line |\()\d)?")
"""A word that may be a path, and whether a line number follows: `a.py", line 3`, `a.rs:1`, `a.ts(3,4)`, `A.java:[3`."""


def find_additions(
    project: Project, codebase: str, output: str, known: Collection[str], redactor: Redactor
) -> list[FileReplacement]:
    """Return the files that the output names and the codebase lacks, but for those of `known` paths.

    Those that are named with a line number go first; all are up to a tenth of the codebase's size together, of a
    small one up to 8,000 characters. Outside of a git repository there are none.
    """
    if project.git is None:
        return []
    try:
        paths, _ = list_files(project.root, [], project.git.options)
    except NotSetUpError:
        return []  # a build broke the repository: what follows tells that
    named = [path for path in named_files(output, paths, str(project.root)) if path not in known]
    rollup, texts = Rollup(), {}
    for path, size, section in sections(project.root, fit_names(named[:_MOST_FILES], rollup), redactor, rollup):
        start = len(f"--- {path} ---\n".encode())
        texts[path] = section.encode()[start : start + size].decode()
    unseen = find_unseen(texts, codebase)
    room, additions = max(len(codebase) // _SHARE, _SMALLEST_ROOM), []
    for path, text in texts.items():
        if path in unseen and text.strip() and len(text) <= room:
            room -= len(text)
            additions.append(FileReplacement(path, text))
    return additions


def named_files(output: str, paths: Collection[str], root: str) -> list[str]:
    """Return those of the project's paths that a build's output names, by themselves or by an end that only they have.

    Those that are named with a line number come first.
    """
    by_name = defaultdict(list)
    for path in paths:
        by_name[path.rpartition("/")[2]].append(path)
    named: dict[str, bool] = {}
    for name, line in dict.fromkeys(_MENTION.findall(output.replace(f"file://{root}/", " ").replace(f"{root}/", " "))):
        for word in _spellings(name):
            near = by_name.get(word.rpartition("/")[2], ())
            ends = [word] if word in paths else [path for path in near if path.endswith(f"/{word}")]
            if len(ends) == 1:
                named[ends[0]] = bool(line) or named.get(ends[0], False)
    return sorted(named, key=lambda path: not named[path])


def _spellings(word: str) -> Iterator[str]:
    """Yield a word that may be a path, and what else may be one in `(src/x.ts)`, `a.Test.run(Test.java` or `x.ts.`."""
    bare = word.rstrip(").]}")
    for part in dict.fromkeys((word, bare, bare.rpartition("(")[2])):
        if "." in part or "/" in part:
            yield part.removeprefix("./")
