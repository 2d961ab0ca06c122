"""The codebase additions: files beside a codebase that does not hold them whole, named by a failed build or an answer.

Only what a rollup might hold is taken: text files that git tracks or does not ignore, and no secrets.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

from code_commit.changes import FileReplacement, RejectedResponseError, in_words
from code_commit.codebase.select import Selection, find_marked, fit_names, list_files, read_files
from code_commit.codebase.text import Window, find_unseen, path_of, window
from code_commit.errors import NotSetUpError
from code_commit.git import repository_options
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.runs.words import listed
from code_commit.settings import did_you_mean

_SHARE = 10
_SMALLEST_ROOM = 8_000
_MOST_FILES = 200
_AROUND = 30  # lines, before and after one that the output names in a file that is too long
# a path, and its line number: `a.py", line 3`, `a.rs:1`
_MENTION = r"((?:[^\s\"'`<>|,;:=*?(]+|\((?!\d))+)(?:[\"']?(?::\[?|, line |\()(\d{1,7}))?"
_MOST_TOLD, _MOST_HINTS, _LONGEST_NAME = 8, 5, 200
_SHOWN = "[codebase] did not hold it whole, [codebase additions] does now: make the change again, to what stands there"
_NOT_SHOWN = "it cannot be shown whole ({}), so a change could lose the rest: leave its block out and say what it needs"
_FAILED = r"(?i)\b(fail|error|not ok)"
_PASSED = r"\s*(PASS|ok|\u2713)\s|.*\s(PASSED|passed|ok)(\s+[\[(].*)?\s*$"


def find_additions(
    project: Project, codebase: str, output: str, known: Collection[str], redactor: Redactor
) -> tuple[list[FileReplacement], list[Window]]:
    """Return the files that the output names and the codebase lacks, without `known` ones, and windows on long ones."""
    if project.git is None:
        return [], []
    try:
        paths, _ = list_files(project.root, [], project.git.options)
    except NotSetUpError:
        return [], []  # a build broke the repository: what follows tells that
    lines = named_files(output, paths, str(project.root))
    named = [path for path in lines if path not in known]
    texts = _read(project, named[:_MOST_FILES], redactor, Selection())
    unseen = find_unseen(texts, codebase)
    room, additions, windows = max(len(codebase) // _SHARE, _SMALLEST_ROOM), [], list[Window]()
    for path, text in texts.items():
        if path not in unseen or not text.strip():
            continue
        if len(text) <= room:
            room -= len(text)
            additions.append(FileReplacement(path, text))
            continue
        for part in _windows(path, text, lines[path]):
            if len(part.text) <= room:
                room -= len(part.text)
                windows.append(part)
    return additions, windows


def _windows(path: str, text: str, lines: Iterable[int]) -> Iterator[Window]:
    near = {number for line in lines for number in range(line - _AROUND, line + _AROUND + 1)}
    numbers = sorted(near.intersection(range(1, text.count("\n") + 2)))
    for _, run in groupby(enumerate(numbers), key=lambda item: item[1] - item[0]):
        together = [number for _, number in run]
        yield window(path, text, together[0], together[-1])


def show_unseen(
    project: Project, rejection: RejectedResponseError, room: int, redactor: Redactor
) -> tuple[list[FileReplacement], list[str]]:
    """Return the files that a rejected answer would have changed unseen, up to `room` characters, and its reasons."""
    others = [reason for reason in rejection.violations if reason.rule != "unseen"]
    unseen = [reason for reason in rejection.violations if reason.path not in {other.path for other in others}]
    selection = Selection(named=[reason.path for reason in unseen])
    texts = _read_named(project, selection, room, redactor)
    told = dict.fromkeys(texts, _SHOWN)
    told |= {path: _NOT_SHOWN.format(reason) for reason, left_out in selection.left_out.items() for path in left_out}
    reasons = [*others, *(replace(reason, message=told.get(reason.path, reason.message)) for reason in unseen)]
    return [FileReplacement(path, text) for path, text in texts.items()], in_words(reasons, rejection.more)


def show_asked(
    project: Project, codebase: str, names: Sequence[str], room: int, redactor: Redactor
) -> tuple[list[FileReplacement], str]:
    """Return the files that an answer asks to see, up to `room` characters, and a sentence on each line of its list."""
    paths: Mapping[str, bool] = {}
    with suppress(NotSetUpError), repository_options(project.root, project.git) as options:
        paths, _ = list_files(project.root, [], options)
    asked = dict.fromkeys(path_of(name, paths) for name in names)
    selection = Selection(named=[path for path in asked if path in paths])
    texts = _read_named(project, selection, room, redactor)
    for path in texts.keys() - find_unseen(texts, codebase):
        selection.leave_out("[codebase] has it whole", path)
        del texts[path]
    others = {path: reason for reason, left_out in selection.left_out.items() for path in left_out}
    for number, path in enumerate(path for path in asked if path not in paths):
        hint = did_you_mean(path[:_LONGEST_NAME], paths) if number < _MOST_HINTS else ""
        others[path] = f"no file of the project{hint}"
    not_shown = listed([f"{path[:_LONGEST_NAME]} ({reason})" for path, reason in others.items()], _MOST_TOLD)
    told = [f"shown whole from now on: {listed(texts, _MOST_TOLD)}"] if texts else []
    told += [f"not shown: {not_shown}"] if others else []
    return [FileReplacement(path, text) for path, text in texts.items()], "; ".join(told)


def _read_named(project: Project, selection: Selection, room: int, redactor: Redactor) -> dict[str, str]:
    """Return the selection's presentable texts, up to `room` characters; record why other files are left out."""
    texts = _read(project, selection.named, redactor, selection)
    for path, text in list(texts.items()):
        if len(text) > room:
            selection.leave_out(f"too large with {len(texts.pop(path)):,} characters", path)
        room -= len(texts.get(path, ""))
    return texts


def _read(project: Project, paths: Collection[str], redactor: Redactor, selection: Selection) -> dict[str, str]:
    """Return the text of each file that may be shown, and record in the selection why another may not."""
    names = fit_names(project.root, paths, selection)
    with repository_options(project.root, project.git) as options:
        for name, reason in find_marked(project.root, names, selection, options).items():
            names.remove(name)
            selection.leave_out(reason, name)
    files = read_files(project.root, names, redactor, selection)
    return {file.name: file.content.encode()[: file.bytes].decode() for file in files}


def named_files(output: str, paths: Collection[str], root: str = "") -> dict[str, set[int]]:
    """Return the paths that a text names, by a unique end or in a copy of the project, each with its line numbers."""
    by_name = defaultdict(list)
    for path in paths:
        by_name[path.rpartition("/")[2]].append(path)
    named: dict[str, set[int]] = {}
    elsewhere: list[tuple[str, str, str]] = []
    output = without_passed(output)
    if root:
        output = output.replace(f"file://{root}/", " ").replace(f"{root}/", " ")
    for name, line in dict.fromkeys(re.findall(_MENTION, output)):
        for word in _spellings(name):
            near = by_name.get(word.rpartition("/")[2], ())
            ends = [word] if word in paths else [path for path in near if path.endswith(f"/{word}")]
            if len(ends) == 1:
                named.setdefault(ends[0], set()).update([int(line)] if line else [])
            elif word.startswith("/"):
                tails = (word[slash.end() :] for slash in re.finditer("/", word))
                elsewhere += [(word.removesuffix(path), path, line) for path in tails if path in paths]
    for path, line in _of_copies(elsewhere, root.rpartition("/")[2]):
        named.setdefault(path, set()).update([int(line)] if line else [])
    return dict(sorted(named.items(), key=lambda item: not item[1]))


def _of_copies(elsewhere: Sequence[tuple[str, str, str]], name: str) -> Iterator[tuple[str, str]]:
    """Yield the paths and lines in a folder of this name, or in one of which several files are named."""
    files = defaultdict(set)
    for folder, path, _ in elsewhere:
        files[folder].add(path)
    for folder, path, line in elsewhere:
        if folder.endswith(f"/{name}/") or len(files[folder]) > 1:
            yield path, line


def without_passed(output: str) -> str:
    """Return a build's output without lines that only say what passed, if other lines say that something failed."""
    lines = output.split("\n")
    failed = [re.search(_FAILED, line) is not None for line in lines]
    if not any(failed):
        return output
    return "\n".join(line for line, bad in zip(lines, failed, strict=True) if bad or not re.match(_PASSED, line))


def _spellings(word: str) -> Iterator[str]:
    """Yield a word that may be a path, and the paths within `(src/x.ts)`, `a.Test.run(Test.java` or `x.ts.`."""
    bare = word.rstrip(").]}")
    for part in dict.fromkeys((word, bare, bare.rpartition("(")[2])):
        if "." in part or "/" in part:
            yield part.removeprefix("./")
