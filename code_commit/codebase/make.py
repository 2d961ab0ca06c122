"""Makes a codebase of the project's files: all of them whole, or what there is room for."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from textwrap import indent
from typing import TYPE_CHECKING

from code_commit.codebase import select
from code_commit.codebase.select import CodebaseRequest, Selection, read_files
from code_commit.codebase.text import LEFT_OUT_LINE, NOTES_LINE, Codebase, Section, Written
from code_commit.errors import NO_ROOM, MachineError, NotSetUpError
from code_commit.exchange import CHARACTERS_PER_TOKEN, weigh
from code_commit.files import identity_of, replacing
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, Project
from code_commit.redaction import Redactor
from code_commit.runs.words import count, listed
from code_commit.terminal import shown
from code_commit.views import Hidden, Name, Outline, Part, View, Views, Whole, of_kind, whole_of

if TYPE_CHECKING:
    from code_commit.codebase.chooser import Choice
    from code_commit.codebase.fit import Strategy
    from code_commit.codebase.rank import Survey

_SHARE_OF_END = _SHARE_OF_CONTEXT = 10  # one part in so many at most
_SHARE_OF_CONVENTIONS = 4  # of the room, for all of them together; beside a choice twice the longest
_LONGEST_CONVENTIONS, _NOTES, _LONGEST_WORDS = 8_000, 6_000, 1_500  # bytes, characters, characters
_NOT_OF_THE_PROJECT = {select.DELETED, select.OUTSIDE}
_NAMES_LEFT_OUT = 8
_MOST_OF_WHOLE = 3  # definitions of a file that was chosen whole, of which the uses in other files are told
Choose = Callable[["Survey", Selection, CodebaseRequest], "Choice | None"]
"""Returns the files to show whole, None for all."""
_WARNED = (select.REVEALS_KEY, select.CONFIDENTIAL, select.UNREADABLE)
_NAMES_SHOWN = 5


def make_codebase(
    project: Project, exclude: Sequence[str], request: CodebaseRequest, redactor: Redactor, choose: Choose | None = None
) -> Codebase:
    """Return the codebase that is asked for. Raises NotSetUpError where no file is left, and the errors of `choose`."""
    selection = select.select_files(project, exclude, request)
    if request.fit is None:
        return _show_all(project, selection, redactor, writes=False)
    from code_commit.codebase.fit import Chosen, Fill  # its patterns take milliseconds, and few codebases have to fit
    from code_commit.codebase.rank import add_files

    survey = _survey(project, selection, redactor, request)
    choice = choose(survey, selection, request) if choose and request.select else None
    if choice and (excluded := selection.left_out.get(select.EXCLUDED, {})):
        names = [name for name in choice.files if excluded.pop(name, None) is not None]
        survey = add_files(survey, read_files(project.root, names, redactor, selection))
    if choice is None:
        fill = Fill(survey=survey, mentions=told_beside(project, request), edits=request.edits)
        return fitted(selection, redactor, request.fit, fill)
    parts = _chosen_parts(survey, choice) if request.edits else {}
    mentions, names = told_beside(project, request), [name for part in choice.files.values() for name in part.names]
    names += _names_of_whole(survey, choice)
    chosen = Chosen(survey=survey, mentions=mentions, edits=request.edits, files=choice.files, names=names)
    return fitted(selection, redactor, request.fit, replace(chosen, parts=parts), choice.words)


def told_beside(project: Project, request: CodebaseRequest) -> str:
    """Return the text, beside the query, whose files come first: one of its own, or a failed build's output."""
    return request.mentions or request.output.replace(f"{project.root}/", " ")


def _chosen_parts(survey: "Survey", choice: "Choice") -> "dict[str, Part | None]":
    """Return the chosen parts of files, None where a file has none of them."""
    from code_commit.codebase.parts import find_part

    asked = {name: part for name, part in choice.files.items() if not part.is_whole}
    files = (file for file in survey.files if file.name in asked)
    return {file.name: find_part(file.name, file.file_text, asked[file.name]).part for file in files}


def _names_of_whole(survey: "Survey", choice: "Choice") -> Iterator[str]:
    """Yield what the files that were chosen whole define, of those that define little and are no tests."""
    from code_commit.codebase.near import is_document, is_test
    from code_commit.codebase.outline import read_definitions

    whole = {name for name, part in choice.files.items() if part.is_whole and not (is_test(name) or is_document(name))}
    for file in survey.files:
        if file.name in whole:
            names = {each.name for each in read_definitions(file.name, file.file_text) if each.name and each.text}
            outer = [name for name in names if name.count(".") == 0]
            yield from sorted(outer) if len(outer) <= _MOST_OF_WHOLE else ()


def _survey(project: Project, selection: Selection, redactor: Redactor, request: CodebaseRequest) -> "Survey":
    """Read all files once, those that build.sh names first. Raises NotSetUpError where there are none."""
    from code_commit.codebase.additions import named_files
    from code_commit.codebase.rank import survey_files
    from code_commit.codebase.task import with_names_of
    from code_commit.outputs import failed_lines, without_passed

    selection.takes_large = request.edits
    script = next(read_files(project.root, {BUILD_SCRIPT}.intersection(selection.names), redactor, Selection()), None)
    lines = script.content.split("\n") if script else []
    judge = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    judge = re.sub(r"(?<!\S)--(?:deselect|exclude|ignore)[\w-]*[ =]\S+", "", judge)
    judges = named_files(judge, selection.names)
    names = sorted(selection.names, key=lambda name: name not in judges)
    files = read_files(project.root, names, redactor, selection)
    printed = without_passed(request.output)
    query = with_names_of(request.query, printed, selection.names, failed_lines(printed))
    survey = survey_files(files, query, select.read_commits(project), judges, request.mentions)
    _require_files(survey.files, selection)
    return survey


def write_codebase(project: Project, exclude: Sequence[str], request: CodebaseRequest, redactor: Redactor) -> Codebase:
    """Write all files whole into agent-config/codeRollup.txt while they are read. Raises NotSetUpError."""
    return _show_all(project, select.select_files(project, exclude, request), redactor, writes=True)


def _show_all(project: Project, selection: Selection, redactor: Redactor, *, writes: bool) -> Codebase:
    """Return the codebase that has all files whole, in memory, or written while they are read."""
    views: dict[str, View] = {}

    def read() -> Iterator[str]:
        for file in read_files(project.root, selection.names, redactor, selection):
            views[file.name] = whole_of(file.content, file.bytes)
            yield file.text
        _require_files(views, selection)
        yield redactor.redact_text(_left_out_section(selection))

    written = write_parts(project, read()) if writes else None
    parts = [] if written else list(read())
    about = selection.left_out, _untracked(selection, views), selection.warnings
    return Codebase(parts, {**_hidden(selection.left_out), **views}, "made", *about, written)


def _hidden(left_out: Mapping[str, Mapping[str, str]]) -> Views:
    return {path: Hidden(reason) for reason, files in left_out.items() for path in files}


def fitted(selection: Selection, redactor: Redactor, tokens: int, strategy: "Strategy", words: str = "") -> Codebase:
    """Return the codebase that fits into so many tokens. Raises NotSetUpError where that is no file."""
    from code_commit.codebase.change_logs import heads_of_logs, tell_logs
    from code_commit.codebase.fit import Chosen, Fill
    from code_commit.codebase.mentions import find_uses, show_mentions
    from code_commit.codebase.rank import rank

    found, room = strategy.survey.files, int(tokens * CHARACTERS_PER_TOKEN)
    end = redactor.redact_text(_left_out_section(selection))
    if weigh(end) > room // _SHARE_OF_END:
        end = f"{LEFT_OUT_LINE}\n{selection.left_out_line()}\n\n"
    longest, most = room // _SHARE_OF_CONTEXT, room // _SHARE_OF_CONVENTIONS
    if not isinstance(strategy, Fill):
        longest, most = _LONGEST_CONVENTIONS, min(most, 2 * _LONGEST_CONVENTIONS)
    context = _files_for_all_tasks(found, longest, most)
    heads, wants = heads_of_logs(found)
    long = {file.name for file in found if select.CONVENTIONS.fullmatch(file.name)}.difference(context)
    limit = min(_NOTES, room // _SHARE_OF_END) if isinstance(strategy, Chosen) else 0
    strategy = replace(strategy, context=context, heads=heads, conventions=long)
    text, views = strategy.fit(room - weigh(end) - limit)
    sizes = of_kind(views, Whole)
    if isinstance(strategy, Fill) and not sizes and not of_kind(views, Outline):
        raise NotSetUpError(
            f"{tokens:,} tokens are too few for even one file: allow more, or use a model with a larger window"
        )
    left_out = {reason: dict(names) for reason, names in selection.left_out.items()}
    told = cache(lambda size: count(size, "byte"))  # many files have the same
    if only_named := {name: told(view.size) for name, view in views.items() if isinstance(view, Name)}:
        left_out[select.NO_ROOM if isinstance(strategy, Fill) else select.NOT_CHOSEN] = only_named
    notes = ""
    if isinstance(strategy, Chosen):
        seen, mentions = {*sizes, *of_kind(views, Part)}, strategy.survey.mentions
        uses = find_uses([name for name in strategy.names if name not in mentions.lines], rank(strategy.survey), seen)
        facts = {
            "why these files were chosen": words[:_LONGEST_WORDS],
            "change logs": tell_logs(wants, seen),
            "what was chosen, in files not shown": show_mentions(uses),
            "in files not shown": show_mentions(mentions, seen, again=True),
        }
        notes = redactor.redact_text(_notes(facts, limit))
    warnings = [*selection.warnings, *_cuts(views, {*long, *context})]
    about = left_out, _untracked(selection, sizes), warnings
    return Codebase([text, notes, end], {**_hidden(selection.left_out), **views}, "made", *about)


def _files_for_all_tasks(files: Iterable[Section], longest: int, room: int) -> set[str]:
    """Return the READMEs, and the files that tell how to work for which there is room, without longer ones."""
    names = set[str]()
    for file in files:
        if file.bytes <= longest and select.CONTEXT_FILES.fullmatch(file.name):
            room -= file.bytes if (tells_how := select.CONVENTIONS.fullmatch(file.name)) else 0
            if room >= 0 or not tells_how:
                names.add(file.name)
    return names


def _cuts(views: Views, names: Collection[str]) -> Iterator[str]:
    """Yield a warning for each file that tells how to work and is not whole."""
    for name in sorted(names):
        if select.CONVENTIONS.fullmatch(name) and not isinstance(view := views.get(name), Whole):
            what = "outline" if isinstance(view, Outline) else "first lines" if isinstance(view, Part) else "name"
            yield f"{shown(name)} is too long, so the LLM is shown only its {what}: shorten it, or allow more tokens"


def _notes(told: Mapping[str, str], limit: int) -> str:
    """Return the words of the choice and further facts, each line set in, so that it can be taken for no other."""
    notes = ""
    for title, text in told.items():
        note = f"{title}:\n{indent(text.strip(), '  ')}\n"
        notes += note if text.strip() and weigh(notes + note) + len(f"{NOTES_LINE}\n\n") <= limit else ""
    return f"{NOTES_LINE}\n{notes}\n" if notes else ""


def _untracked(selection: Selection, names: Collection[str]) -> list[str]:
    return [name for name in selection.untracked if name in names]


def _require_files(files: Collection[object], selection: Selection) -> None:
    if not files:
        left_out = selection.left_out_line()
        raise NotSetUpError(f"there is no file to roll up{'; ' + left_out if left_out else ''}")


def _left_out_section(selection: Selection) -> str:
    """Return the names of the files that the LLM does not see, a line for each reason; "" where there are none."""
    lines = [
        f"{reason}: {listed(names, _NAMES_LEFT_OUT)}\n"
        for reason, names in sorted(selection.left_out.items())
        if reason not in _NOT_OF_THE_PROJECT
    ]
    return f"{LEFT_OUT_LINE}\n{''.join(lines)}\n" if lines else ""


def write_parts(project: Project, parts: Iterable[str]) -> Written:
    """Replace agent-config/codeRollup.txt by these parts at once, without a sync to disk.

    Raises NotSetUpError, and MachineError where there is no room.
    """
    weight, size, parts = 0, 0, iter(parts)
    first = next(parts)  # before anything is made: there may be no file
    try:
        project.agent_config.mkdir(mode=0o700, exist_ok=True)
        with replacing(project.codebase_file) as output:
            for part in chain([first], parts):
                weight += weigh(part)
                size += output.write(part.encode())
        return Written(project.codebase_file, weight, size, identity_of(project.codebase_file.stat()))
    except OSError as error:
        kind = MachineError if error.errno in NO_ROOM else NotSetUpError
        name = f"{AGENT_CONFIG}/{project.codebase_file.name}"
        raise kind(f"{name} cannot be written, and is as it was: {error.strerror}") from error


def warnings_of(codebase: Codebase) -> list[str]:
    warnings = list(codebase.warnings)
    for reason in _WARNED:
        if files := codebase.left_out.get(reason):
            mend = (
                f"; --include includes {'it' if len(files) == 1 else 'them'}" if reason == select.CONFIDENTIAL else ""
            )
            warnings.append(f"left out ({reason}): {listed(_with_details(files))}{mend}")
    return warnings


def _with_details(files: Mapping[str, str]) -> list[str]:
    return [f"{shown(name)} ({detail})" if detail else shown(name) for name, detail in files.items()]


def summary_of(codebase: Codebase, *, verbose: bool) -> Iterator[str]:
    yield from (f"warning: {warning}" for warning in warnings_of(codebase))
    files = count(len(codebase.sizes), "file")
    outlined, in_part = of_kind(codebase.views, Outline), of_kind(codebase.views, Part)
    size = f"{count(codebase.bytes, 'byte')}, about {count(tokens_of(codebase), 'token')}"
    yield f"{AGENT_CONFIG}/codeRollup.txt: {files}, {size}"
    if outlined or in_part or {select.NO_ROOM, select.NOT_CHOSEN} & codebase.left_out.keys():
        whole, outlines = count(len(codebase.sizes), "file"), count(len(outlined), "outline")
        shown_names = listed(codebase.sizes, len(codebase.sizes) if verbose else _NAMES_SHOWN)
        yield f"made to fit: {outlines}, {whole} whole{': ' if shown_names else ''}{shown_names}"
        yield from (f"shown in part: {shown(path)}, lines {part.where}" for path, part in in_part.items())
    if codebase.untracked:
        yield f"git does not track {len(codebase.untracked):,} of them: {listed(codebase.untracked)}"
    shares = [f"{shown(name)} {size / codebase.bytes:.0%}" for name, size in codebase.largest]
    if shares:
        yield f"largest files: {', '.join(shares)}"
    for reason, left_out in sorted(codebase.left_out.items()):
        names = _with_details(left_out)
        if verbose:
            yield from (f"left out ({reason}): {name}" for name in names)
        elif reason not in _WARNED:
            yield f"left out ({reason}): {listed(names)}"


def tokens_of(codebase: Codebase) -> int:
    return round(codebase.weight / CHARACTERS_PER_TOKEN)
