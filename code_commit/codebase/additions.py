"""The codebase additions: files beside a codebase that does not hold them whole, named by a failed build or an answer.

Only what a rollup might hold is taken: text files that git tracks or does not ignore, and no secrets.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from code_commit.changes import RejectedResponseError, in_words
from code_commit.codebase.near import is_test
from code_commit.codebase.parts import FileRequest, find_part, read_requests
from code_commit.codebase.select import Selection, find_absent, find_marked, fit_names, list_files, read_files
from code_commit.codebase.text import part_of
from code_commit.errors import NotSetUpError
from code_commit.git import repository_options
from code_commit.outputs import failed_lines, without_passed
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.regex import regex
from code_commit.runs.words import listed
from code_commit.settings import did_you_mean
from code_commit.views import FileView, Outline, Part, Sight, Views, Whole, beyond, find_unseen, whole

if TYPE_CHECKING:
    from code_commit.codebase.outline import Definition

_SHARE = 10
_SMALLEST_ROOM = 8_000
_MOST_FILES = 200
_AROUND, _LONGEST_FUNCTION = 30, 120  # lines beside one that the output names in a long file; of a whole function
_MOST_NEXT_TESTS = 5
_MOST_BARE = 10  # files that a build names without a line number, beside some with one
_SIGNS = r"\s\"'`<>|,;:=*?"
_BETWEEN = rf"[{_SIGNS}]|\((?=\d)"  # what ends a path, but where a file of the project is named so
# a path, and its line number: `a.py", line 3`, `a.rs:1`
_MENTION = rf"((?:[^{_SIGNS}(]+|\((?!\d))+)(?:[\"']?(?::\[?|, line |\()(\d{{1,7}}))?"
_PIECE = rf"(?:[^{_SIGNS}(/\\]+|\((?!\d))+"  # of a path
_NEXT_PIECE = regex(rf"(?:\\?(?:{_BETWEEN}))+{_PIECE}")
_ENDS_SENTENCE = ").]}"
_FILE_URL = regex(r"file://[^\s\"'`<>()]+")
_STAND_INS = 0xE000  # the first of the characters that are for private use
_MOST_TOLD, _MOST_HINTS, _LONGEST_NAME = 8, 5, 200
_LONG, _LONGEST_WHOLE = 40_000, 200_000  # bytes of a file that is not shown whole unasked, and of one never shown whole
_SHOWN = "[codebase] did not hold it whole, [codebase additions] does now: redo the change against that text"
_NOT_SHOWN = "it cannot be shown whole ({}), so a change could lose the rest: leave its block out and say what it needs"
_SHOWN_ANEW = "it has changed since its lines were shown; they are shown again: redo the change against that text"
_ON_THE_WAY = regex(  # a line number on the way to what failed: of an include, of what made a template
    r"(?<=from )(\S+?)(?::\d+)+[,:]$|^(\S+?)(?::\d+)+:(?= +required (?:from|by) (?!here\b))", re.MULTILINE
)


class FileViewer(NamedTuple):
    """Reads files of a project for a prompt.

    `show_lines` returns lines of a file, by its path, text and ranges, with those of it that are shown already; None
    where no file may be shown in part. `views` are those of the last prompt.
    """

    project: Project
    redactor: Redactor
    show_lines: Callable[[str, str, Sequence[tuple[int, int]]], FileView] | None
    views: Views

    def shows_part(self, path: str) -> bool:
        return isinstance(self.views.get(path), Part)

    def read(self, paths: Collection[str], selection: Selection) -> dict[str, str]:
        """Return the text of each file that may be shown, and record in the selection why another may not."""
        project = self.project
        names = fit_names(project.root, paths, selection)
        with repository_options(project.root, project.git) as options:
            for name, reason in find_marked(project.root, names, selection, options).items():
                names.remove(name)
                selection.leave_out(reason, name)
        files = read_files(project.root, names, self.redactor, selection)
        return {file.name: file.file_text for file in files}


def find_additions(
    viewer: FileViewer, codebase: Sight, output: str, known: Collection[str], touched: Collection[str] = ()
) -> list[FileView]:
    """Return the files that the output names and the codebase lacks, without `known` ones; of long ones some lines.

    A long test file has the lines that failed, and the next tests that use `touched` names: a build may stop at the
    first failure.
    """
    project = viewer.project
    if project.git is None:
        return []
    try:
        paths, _ = list_files(project.root, [], project.git.options)
    except NotSetUpError:
        return []  # a build broke the repository: what follows tells that
    lines = named_files(output, paths, str(project.root))
    named = [path for path in lines if path not in known]
    placed = [path for path in named[:_MOST_FILES] if lines[path]]
    texts = viewer.read(placed, Selection(takes_large=viewer.show_lines is not None))
    texts |= viewer.read(named[len(placed) : _MOST_FILES], Selection())
    unseen = find_unseen(texts, codebase)
    room, additions = max(len(codebase.codebase) // _SHARE, _SMALLEST_ROOM), list[FileView]()
    for path, text in texts.items():
        if path not in unseen or not text.strip():
            continue
        if len(text) <= room:
            room -= len(text)
            additions.append(whole(path, text))
        elif viewer.show_lines:
            fitting = []
            for ranges in (_around(path, text, lines[path]), *_next_tests(path, text, lines[path], touched)):
                for passage in beyond(part_of(text, ranges), codebase.views.get(path)).passages:
                    if len(passage.text) <= room:
                        room -= len(passage.text)
                        fitting.append((passage.first, passage.last))
            additions += [viewer.show_lines(path, text, fitting)] if fitting else []
    return additions


def _around(path: str, text: str, lines: Collection[int]) -> list[tuple[int, int]]:
    """Return the lines around these, with the whole functions that they are in."""
    around = [(line - _AROUND, line + _AROUND) for line in lines]
    definitions = [each for each in _definitions(path, text) if each.last - each.first <= _LONGEST_FUNCTION]
    around += [
        (each.first, each.last) for each in definitions if any(each.first <= line <= each.last for line in lines)
    ]
    return around


def _next_tests(
    path: str, text: str, lines: Collection[int], touched: Collection[str]
) -> Iterator[list[tuple[int, int]]]:
    """Yield the ranges of some tests after the lines that failed which use one of the names."""
    if not (lines and touched and is_test(path)):
        return
    uses, all_lines = re.compile(rf"\b(?:{'|'.join(map(re.escape, touched))})\b"), text.split("\n")
    later = [each for each in _definitions(path, text) if each.first > max(lines) and each.name]
    using = (each for each in later if uses.search("\n".join(all_lines[each.first - 1 : each.last])))
    short = (each for each in using if each.last - each.first <= _LONGEST_FUNCTION)
    yield from ([(each.first, each.last)] for each in islice(short, _MOST_NEXT_TESTS))


def changed_names(path: str, before: str, now: str) -> set[str]:
    """Return the names of the innermost definitions of a file that were not in it as they are now."""
    lines = now.split("\n")
    changed = [
        each
        for each in _definitions(path, now)
        if each.name and "\n".join(lines[each.first - 1 : each.last]) not in before
    ]
    return {
        each.name.rpartition(".")[2]
        for each in changed
        if not any(each.first < other.first and other.last <= each.last for other in changed)
    }


def _definitions(path: str, text: str) -> "Sequence[Definition]":
    from code_commit.codebase.outline import read_definitions  # its patterns take 8 ms, and few runs need it

    return read_definitions(path, text)


def show_unseen(viewer: FileViewer, rejection: RejectedResponseError, room: int) -> tuple[list[FileView], list[str]]:
    """Return the files that a rejected answer would have changed unseen, up to `room` characters, and its reasons.

    A long file that is shown in part is not shown whole, and one that has changed since is shown in part anew.
    """
    faults, others = rejection.violations, {fault.path for fault in rejection.violations if fault.rule != "unseen"}
    shown, told = list[FileView](), dict[str, str]()
    selection = Selection(named=[fault.path for fault in faults if fault.path not in others])
    for path, text in viewer.read(selection.named, selection).items():
        if viewer.show_lines and viewer.shows_part(path) and len(text) > _LONG:
            continue
        if len(text) > room:
            selection.leave_out(f"too large with {len(text):,} characters", path)
            continue
        room -= len(text)
        shown.append(whole(path, text))
        told[path] = _SHOWN
    told |= {path: _NOT_SHOWN.format(reason) for reason, left_out in selection.left_out.items() for path in left_out}
    stale = [fault.path for fault in faults if fault.rule == "stale" and viewer.shows_part(fault.path)]
    for path, text in viewer.read(stale, Selection()).items():
        if viewer.show_lines:
            shown.append(viewer.show_lines(path, text, ()))
            told[path] = _SHOWN_ANEW
    reasons = [replace(fault, message=told.get(fault.path, fault.message)) for fault in faults]
    return shown, in_words(reasons, rejection.more)


def show_asked(viewer: FileViewer, codebase: Sight, names: Sequence[str], room: int) -> tuple[list[FileView], str]:
    """Return the files that an answer asks to see, up to `room` characters, and a sentence on each line of its list."""
    paths: Mapping[str, str] = {}
    with suppress(NotSetUpError), repository_options(viewer.project.root, viewer.project.git) as options:
        paths, _ = list_files(viewer.project.root, [], options)
    requests = read_requests(names, paths)
    selection = Selection(named=[path for path in requests if path in paths], absent=find_absent(paths))
    texts = viewer.read(selection.named, selection)
    unseen, shown, others = find_unseen(texts, codebase), list[FileView](), list[str]()
    for path, text in texts.items():
        if path not in unseen:
            selection.leave_out("[codebase] has it whole", path)
            continue
        found, missing = _find_asked(viewer, path, text, requests[path])
        others += [f"{path}: {phrase}" for phrase in missing]
        if found and len(found.text) <= room:
            room -= len(found.text)
            shown.append(found)
        elif found:
            selection.leave_out(f"too large with {len(found.text):,} characters", path)
    others += [f"{path} ({reason})" for reason, left_out in selection.left_out.items() for path in left_out]
    for number, path in enumerate(path for path in requests if path not in paths):
        hint = did_you_mean(path[:_LONGEST_NAME], paths) if number < _MOST_HINTS else ""
        others.append(f"{path[:_LONGEST_NAME]} (not a file of the project{hint})")
    at_once = [_name_asked(file) for file in shown if not isinstance(file.view, Part)]
    in_part = [_name_asked(file) for file in shown if isinstance(file.view, Part)]
    kinds = {"shown whole from now on": at_once, "shown in part": in_part, "not shown": others}
    return shown, "; ".join(f"{kind}: {listed(files, _MOST_TOLD)}" for kind, files in kinds.items() if files)


def _name_asked(file: FileView) -> str:
    match file.view:
        case Part():
            return f"{file.path} (lines {file.view.where})"
        case Outline(size=size):
            return f"{file.path} (outline, {size:,} bytes)"
        case _:
            return file.path


def _find_asked(
    viewer: FileViewer, path: str, text: str, request: FileRequest
) -> tuple[FileView | None, Sequence[str]]:
    """Return the requested file or lines, and a phrase for each item that the file lacks. A very large file that is
    requested whole is shown as its outline.
    """
    if viewer.show_lines is None or isinstance(viewer.views.get(path), Whole):
        return whole(path, text), ()
    if not request.is_whole:
        found = find_part(path, text, request)
        return found.part and viewer.show_lines(path, text, found.part.ranges), found.missing
    if (size := len(text.encode())) <= _LONGEST_WHOLE:
        return whole(path, text), ()
    from code_commit.codebase.outline import brief, outline  # its patterns take 8 ms, and few runs need it

    return FileView(path, Outline(size), brief(outline(path, text, numbered=True))), ()


def named_files(output: str, paths: Collection[str], root: str = "") -> dict[str, set[int]]:
    """Return the paths that a text names, by a unique end or in a copy of the project, each with its line numbers.

    Beside files with line numbers, one without is not among them where a line says that it passed, or where so many
    have none that they are all that was built, unless a line says that it failed.
    """
    output = _FILE_URL.sub(lambda match: unquote(match[0]), output)
    if root:
        output = output.replace(f"file://{root}/", " ").replace(f"{root}/", " ")
    stand_ins, output, folder = _with_stand_ins(output, paths, root.rpartition("/")[2])
    remaining = without_passed(output)
    named = _names_in(_ON_THE_WAY.sub(r" \1\2 ", remaining), stand_ins, folder)
    if (bare := {path for path, lines in named.items() if not lines}) and len(bare) < len(named):
        kept = remaining.split("\n")
        failed = failed_lines(remaining)
        passed = "\n".join(set(output.split("\n")).difference(kept))
        progress = bare if len(bare) > _MOST_BARE else bare.intersection(_names_in(passed, stand_ins, folder))
        for path in progress.difference(_names_in(failed, stand_ins, folder) if progress else ()):
            del named[path]
    return {stand_ins[path]: lines for path, lines in sorted(named.items(), key=lambda item: not item[1])}


def _with_stand_ins(output: str, paths: Collection[str], folder: str) -> tuple[dict[str, str], str, str]:
    """Return the paths by what they are in a text in which no blank or the like ends them, the output as that text, and
    the project's folder likewise.

    A known name decides where it ends: other characters stand for such signs within it.
    """
    between = re.compile(_BETWEEN)
    known = {between.sub(_stand_in, path): path for path in paths}
    odd = [folder, *(path for other, path in known.items() if path != other)]
    names = {name for path in odd for name in path.split("/") if between.search(name)}
    begins = {name[: sign.start()] for name in names for sign in between.finditer(name)}
    pieces, end = list[str](), 0
    for word in re.finditer(_PIECE, output) if names else ():
        for start in dict.fromkeys((word.start(), word.start() + word[0].rfind("(") + 1)):
            if start >= end and (found := _longest_name(output, start, word.end(), names, begins)):
                pieces += [output[end:start], between.sub(_stand_in, found[0])]
                end = found[1]
    return known, "".join([*pieces, output[end:]]), between.sub(_stand_in, folder)


def _stand_in(sign: re.Match[str]) -> str:
    return chr(_STAND_INS + ord(sign[0]))


def _longest_name(
    output: str, start: int, end: int, names: Collection[str], begins: Collection[str]
) -> tuple[str, int] | None:
    """Return the longest of the names at a place of the output, and its end; backslashes may stand before its signs."""
    found, escaped = None, re.compile(rf"\\(?={_BETWEEN})")
    while True:
        name = escaped.sub("", output[start:end])
        bare = name.rstrip(_ENDS_SENTENCE)
        found = next(((each, end - len(name) + len(each)) for each in (name, bare) if each in names), found)
        after = _NEXT_PIECE.match(output, end) if name in begins else None
        if after is None:
            return found
        end = after.end()


def _names_in(output: str, paths: Collection[str], folder: str) -> dict[str, set[int]]:
    by_name = defaultdict(list)
    for path in paths:
        by_name[path.rpartition("/")[2]].append(path)
    named: dict[str, set[int]] = {}
    elsewhere: list[tuple[str, str, str]] = []
    for name, line in dict.fromkeys(re.findall(_MENTION, output)):
        for word in _spellings(name):
            near = by_name.get(word.rpartition("/")[2], ())
            ends = [word] if word in paths else [path for path in near if path.endswith(f"/{word}")]
            if len(ends) == 1:
                named.setdefault(ends[0], set()).update([int(line)] if line else [])
            elif word.startswith("/"):
                tails = (word[slash.end() :] for slash in re.finditer("/", word))
                elsewhere += [(word.removesuffix(path), path, line) for path in tails if path in paths]
    for path, line in _of_copies(elsewhere, folder):
        named.setdefault(path, set()).update([int(line)] if line else [])
    return named


def _of_copies(elsewhere: Sequence[tuple[str, str, str]], name: str) -> Iterator[tuple[str, str]]:
    """Yield the paths and lines in a folder of this name, or in one of which several files are named."""
    files = defaultdict(set)
    for folder, path, _ in elsewhere:
        files[folder].add(path)
    for folder, path, line in elsewhere:
        if folder.endswith(f"/{name}/") or len(files[folder]) > 1:
            yield path, line


def _spellings(word: str) -> Iterator[str]:
    """Yield a word that may be a path, and the paths within `(src/x.ts)`, `a.Test.run(Test.java` or `x.ts.`.

    Backslashes between folders count as slashes.
    """
    word = re.sub(r"\\+", "/", word)
    bare = word.rstrip(_ENDS_SENTENCE)
    for part in dict.fromkeys((word, bare, bare.rpartition("(")[2])):
        if "." in part or "/" in part:
            yield part.removeprefix("./")
