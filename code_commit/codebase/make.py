"""Makes a codebase of the project's files: all of them whole, or what there is room for."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from code_commit.codebase.select import (
    CONTEXT_FILES,
    DELETED,
    NO_ROOM,
    NOT_CHOSEN,
    OUTSIDE,
    CodebaseRequest,
    Selection,
    read_files,
    select_files,
)
from code_commit.codebase.text import LEFT_OUT_LINE, Codebase, Section, Written
from code_commit.errors import NotSetUpError
from code_commit.files import identity_of, replacing
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, Project
from code_commit.redaction import Redactor
from code_commit.runs.words import count, listed

if TYPE_CHECKING:
    from code_commit.codebase.fit import Need

_SHARE_OF_END = _SHARE_OF_CONTEXT = 10
"""One part in so many at most: a longer file of the project's conventions takes its turn with the others."""
_NOT_OF_THE_PROJECT = {DELETED, OUTSIDE}
_NAMES_LEFT_OUT = 20

Choose = Callable[[Sequence[Section], Selection, CodebaseRequest], Collection[str] | None]
"""Returns which of the files are to be whole, None where all may be."""


def make_codebase(
    project: Project,
    rollup_exclude: Sequence[str],
    request: CodebaseRequest,
    redactor: Redactor,
    choose: Choose | None = None,
) -> Codebase:
    """Return the codebase that is asked for. Raises NotSetUpError where no file is left, and what `choose` raises."""
    selection = select_files(project, rollup_exclude, request)
    if request.fit is None:
        sizes: dict[str, int] = {}
        parts = list(_whole(project, selection, redactor, sizes))
        return _all_files(sizes, selection, parts)
    from code_commit.codebase.fit import Need  # its patterns take milliseconds, and few codebases have to fit

    found = list(read_files(project.root, selection.names, redactor, selection))
    chosen = choose(found, selection, request) if choose and request.select else None
    need = Need(request.query, request.mentions, chosen, edits=request.edits)
    return fitted(found, selection, redactor, request.fit, need)


def write_codebase(
    project: Project,
    rollup_exclude: Sequence[str],
    request: CodebaseRequest,
    redactor: Redactor,
    choose: Choose | None = None,
) -> Codebase:
    """Write the codebase into agent-config/codeRollup.txt, and return it: all files are held by that file alone.

    Raises NotSetUpError also where that cannot be written.
    """
    if request.fit is None:
        sizes: dict[str, int] = {}
        selection = select_files(project, rollup_exclude, request)
        written = _write(project, _whole(project, selection, redactor, sizes))
        return _all_files(sizes, selection, [], written)
    made = make_codebase(project, rollup_exclude, request, redactor, choose)
    _write(project, made.parts)
    return made


def _whole(project: Project, selection: Selection, redactor: Redactor, sizes: dict[str, int]) -> Iterator[str]:
    """Yield the parts of a codebase that has all files whole; `sizes` gets the bytes of each file."""
    for file in read_files(project.root, selection.names, redactor, selection):
        sizes[file.name] = file.bytes
        yield file.text
    _require_files(sizes, selection)
    yield redactor.redact_text(_left_out_section(selection))


def _all_files(
    sizes: Mapping[str, int], selection: Selection, parts: Sequence[str], written: Written | None = None
) -> Codebase:
    about = selection.left_out, _untracked(selection, sizes), selection.warnings
    return Codebase(parts, sizes, [], [], False, *about, written)


def fitted(found: Sequence[Section], selection: Selection, redactor: Redactor, tokens: int, need: "Need") -> Codebase:
    """Return the codebase of what there is room for. Raises NotSetUpError where that is no file."""
    from code_commit.codebase.additions import named_files
    from code_commit.codebase.fit import fit_sections

    _require_files(found, selection)
    room = int(tokens * CHARACTERS_PER_TOKEN)
    end = redactor.redact_text(_left_out_section(selection))
    if len(end) > room // _SHARE_OF_END:
        end = f"{LEFT_OUT_LINE}\n{selection.left_out_line()}\n\n"
    longest = room // _SHARE_OF_CONTEXT
    context = {file.name for file in found if CONTEXT_FILES.fullmatch(file.name) and len(file.text) <= longest}
    script = next((file.content for file in found if file.name == BUILD_SCRIPT), "")
    judge = "\n".join(line for line in script.split("\n") if not line.lstrip().startswith("#"))
    judge = re.sub(r"(?<!\S)--(?:deselect|exclude|ignore)[\w-]*[ =]\S+", "", judge)
    need = need._replace(judges=named_files(judge, {file.name for file in found}))
    made = fit_sections(found, context, room - len(end), need)
    if need.chosen is None and not made.whole and not made.outlines:
        raise NotSetUpError(f"{tokens:,} tokens have no room for a file: allow more of them")
    left_out = {reason: dict(names) for reason, names in selection.left_out.items()}
    if only_named := {file.name: count(file.bytes, "byte") for file in [*made.names, *made.unnamed]}:
        left_out[NO_ROOM if need.chosen is None else NOT_CHOSEN] = only_named
    sizes = {file.name: file.bytes for file in made.whole}
    is_partial = len(sizes) < len(found)
    untracked = _untracked(selection, sizes)
    about = left_out, untracked, selection.warnings
    return Codebase([made.text, end], sizes, list(made.outlines), made.windows, is_partial, *about)


def _untracked(selection: Selection, sizes: Collection[str]) -> list[str]:
    return [name for name in selection.untracked if name in sizes]


def _require_files(files: Collection[object], selection: Selection) -> None:
    if not files:
        left_out = selection.left_out_line()
        raise NotSetUpError(f"there is no file to roll up{'; ' + left_out if left_out else ''}")


def _left_out_section(selection: Selection) -> str:
    """Return the names of the files that the LLM does not see, for each reason a line; "" where there are none."""
    lines = [
        f"{reason}: {listed(names, _NAMES_LEFT_OUT)}\n"
        for reason, names in sorted(selection.left_out.items())
        if reason not in _NOT_OF_THE_PROJECT
    ]
    return f"{LEFT_OUT_LINE}\n{''.join(lines)}\n" if lines else ""


def _write(project: Project, parts: Iterable[str]) -> Written:
    """Write agent-config/codeRollup.txt; the one before it stays until the new one is whole.

    Raises NotSetUpError, and leaves that one, when the new one cannot be written. It is not synced: after a power cut
    it is made again.
    """
    characters, size, parts = 0, 0, iter(parts)
    first = next(parts)  # before anything is made: there may be no file
    try:
        project.agent_config.mkdir(mode=0o700, exist_ok=True)
        with replacing(project.codebase_file) as output:
            for part in chain([first], parts):
                characters += len(part)
                size += output.write(part.encode())
        return Written(project.codebase_file, characters, size, identity_of(project.codebase_file.stat()))
    except OSError as error:
        message = f"{AGENT_CONFIG}/{project.codebase_file.name} cannot be written, it is as it was: {error.strerror}"
        raise NotSetUpError(message) from error
