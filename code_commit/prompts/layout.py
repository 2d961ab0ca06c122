"""The prompts: the specification's layouts of the initial query and the repair query, the cached and the short one.

The system prompts come first, then the user's sections, each under its label on a line of its own. The text of a
section is data: labels and fences in it mean nothing. The short layout is an exchange of messages without labels.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from code_commit.codebase.text import (
    REPLACEMENT,
    Codebase,
    header,
    read_header,
    read_sections,
    render,
    replacement_header,
)
from code_commit.errors import NotSetUpError
from code_commit.exchange import Prompt, labelled
from code_commit.git import match_patterns
from code_commit.paths.protected import PROTECTED
from code_commit.prompts.dialogue import Turn, lay_out_dialogue, with_output
from code_commit.prompts.output import shown_output
from code_commit.runs.diff import hunks_between
from code_commit.runs.words import duration
from code_commit.settings import Settings
from code_commit.terminal import shown
from code_commit.views import FileView, Outline, Part, Removed, Sight, Whole, beyond, of_kind

Layout = Literal["spec", "cached", "short"]
_TASK_AGAIN, _LONGEST_AGAIN = ":\n\n{query}\n\n", 1_000  # characters of a task that is repeated at the end
_WHOLE, _WHOLE_OR_EDITS = "whole", "whole, or as edits where it is long"
_CLOSING = "\n[answer]\n"  # before the last lines of a prompt, in the file of a system prompt
_FOLDER = "{folder}"  # before the paths of the examples: a folder of the project, "" where it has none
_LAST = "This is the last answer that will be used: a list of files would be of no use now.\n\n"
_FAILS_ALREADY = """\
build.sh fails already, before any change: [build.sh output] is what it printed.
The task is done when it passes, so mend what makes it fail as well, wherever
that lies.

"""
_PACKAGED = Path(__file__).parents[2] / "system_prompts"
_LONG_FILE = 200  # lines, without the blank one after it
_DIFFS = """\
In [file replacements] a line that ends with (diff) --- stands before a unified
diff of the file from [codebase] to what it holds now. Send no diff yourself."""
_CONTEXT_LINES, _SHORTER = 10, 3


class SystemPrompts(NamedTuple):
    project_structure: str
    code_modification_instructions: str
    initial_query: str
    repair_query: str
    rejected_response: str
    edit_instructions: str
    short_instructions: str = ""
    first_repair_query: str = ""


class Task(NamedTuple):
    """The parts of a prompt that hardly change in a run. `circumstances` describes the project and the run, with
    `edits` also how to send edits; `late_edits` explains edits once a file is long. With `diffs`, changed files are
    shown as diffs. `first` is the build that failed before the run; with `repairs` to mend that is the task. `passing`
    is the output of one that passed.
    """

    prompts: SystemPrompts
    query: str
    codebase: Codebase
    layout: Layout = "spec"
    circumstances: str = ""
    attempts: int = 4
    late_edits: str = ""
    edits: bool = False
    diffs: bool = False
    first: "FailedBuild | None" = None
    repairs: bool = False
    passing: str = ""

    def shown(self, output: str) -> str:
        """Return the output of a build as the prompts show it."""
        return shown_output(output, self.layout, self.passing)


class FailedBuild(NamedTuple):
    """A failed build in a repair prompt: `replacements` are changed files as they are now, `originals` their texts
    before the run. A first build may have `given`, the output of a build that failed elsewhere, which all prompts show
    after that of the project's own, and `named`, the files that they name and the codebase lacks.
    """

    output: str
    replacements: Sequence[FileView] = ()
    originals: Mapping[str, str] = {}
    given: str = ""
    named: Sequence[FileView] = ()


class Rejection(NamedTuple):
    """The reasons why the response before was rejected; `send_whole` are the paths of edits that did not fit."""

    text: str
    send_whole: Sequence[str] = ()


def load_system_prompts(overrides: Path) -> SystemPrompts:
    """Read the system prompts, a file in the folder `overrides` before the packaged one. Raises NotSetUpError."""
    return SystemPrompts(*(load_system_prompt(overrides, name) for name in SystemPrompts._fields))


def split_closing(prompt: str) -> tuple[str, str]:
    """Return a system prompt, and the lines that its file has for the end of the whole prompt."""
    text, mark, closing = prompt.partition(_CLOSING)
    return text + mark[:1], closing


def repeat_task(closing: str, query: str) -> str:
    """Return the last lines of a prompt with the task in them, without it where it is long or they begin with it."""
    query = query.strip()
    is_repeated = len(query) <= _LONGEST_AGAIN and not closing.startswith(query.rstrip("."))
    return closing.replace("{query}", query) if is_repeated else closing.replace(_TASK_AGAIN, ". ")


def load_system_prompt(overrides: Path, name: str) -> str:
    own = overrides / f"{name}.txt"
    try:
        text = (own if own.is_file() else _PACKAGED / own.name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotSetUpError(f"the system prompt {own.name} cannot be read: {error}") from error
    if not text.strip():
        raise NotSetUpError(f"{_shown(own)} is empty: write the prompt into it, or remove it")
    return text


def warn_of_overrides(overrides: Path) -> list[str]:
    """Return a warning for each text file in the folder `overrides` that has the name of no system prompt."""
    names = {path.name for path in _PACKAGED.glob("*.txt")}
    others = sorted(path for path in overrides.glob("*.txt") if path.name not in names)
    return [f"{_shown(path)} is not read: the names are {', '.join(sorted(names))}" for path in others]


def _shown(override: Path) -> str:
    return shown("/".join(override.parts[-3:]))


def make_task(settings: Settings, prompts: SystemPrompts, query: str, codebase: Codebase) -> Task:
    folder = _example_folder(settings, codebase)
    prompts = SystemPrompts(*(text.replace(_FOLDER, folder) for text in prompts))
    is_short = settings.prompt_layout == "short"
    edits = prompts.edit_instructions if _offers_edits(settings, codebase) and not is_short else ""
    late_edits = prompts.edit_instructions if settings.answer_format == "auto" and not edits and not is_short else ""
    attempts = most_attempts(settings)
    lines = may_change(settings) if is_short else _circumstances(settings, attempts)
    circumstances = edits + "".join(f"{line}\n" for line in lines) + "\n"
    layout, diffs = settings.prompt_layout, _shows_diffs(settings)
    return Task(prompts, query, codebase, layout, circumstances, attempts, late_edits, bool(edits), diffs)


def most_attempts(settings: Settings) -> int:
    return 1 if settings.dry_run else 1 + settings.max_repairs


def _offers_edits(settings: Settings, codebase: Codebase) -> bool:
    if settings.answer_format == "auto":
        is_long = (content.count("\n") > _LONG_FILE for _, content in read_sections(codebase.text))
        return bool(of_kind(codebase.views, Part)) or any(is_long)
    return settings.answer_format == "edits"


def _example_folder(settings: Settings, codebase: Codebase) -> str:
    """Return the folder, with its slash, of the first file of the codebase that is in one and may change.

    Folders with a dot in front come last, for they hold what belongs to other tools.
    """
    headers = (read_header(header(name).rstrip()) for name, _ in read_sections(codebase.text))
    named = dict.fromkeys(found.path for found in headers if found)
    paths = [path for path in named if "/" in path and path.split("/")[0] not in PROTECTED]
    fixed = match_patterns(settings.protect, paths)
    fixed |= set(paths) - match_patterns(settings.allow, paths) if settings.allow else set()
    free = sorted((path for path in paths if path not in fixed), key=lambda path: path.startswith("."))
    return f"{free[0].rpartition('/')[0]}/" if free else ""


def _shows_diffs(settings: Settings) -> bool:
    return settings.file_replacements == "diff" and settings.prompt_layout == "cached"


def _circumstances(settings: Settings, attempts: int) -> Iterator[str]:
    if attempts > 1:
        yield f"You have {attempts} attempts: each answer is one, also a rejected one and a list of files to see."
    if _shows_diffs(settings):
        yield _DIFFS
    if settings.build_timeout:
        limit = duration(settings.build_timeout)
        yield f"build.sh is stopped after {limit}; that counts as a failure."
    yield from may_change(settings)


def may_change(settings: Settings) -> Iterator[str]:
    if settings.allow:
        yield f"Only paths that match one of these patterns (.gitignore syntax) may change: {_patterns(settings.allow)}"
    if settings.protect:
        yield f"Paths that match one of these are protected as well: {_patterns(settings.protect)}"


def _patterns(patterns: Iterable[str]) -> str:
    return ", ".join(map(shown, patterns))


def lay_out(
    task: Task,
    history: Sequence[str] = (),
    failed: FailedBuild | None = None,
    additions: Sequence[FileView] = (),
    rejection: Rejection | None = None,
) -> Prompt:
    """Return the prompt of the first call, or where a build failed the one that asks for a repair. `additions` are
    files that the codebase does not hold whole.
    """
    if task.layout == "short":
        return lay_out_short(task)
    shown = failed or task.first
    rules = task.prompts.project_structure + task.prompts.code_modification_instructions + task.circumstances
    build = shown or FailedBuild("")
    initial = task.prompts.first_repair_query if task.repairs else task.prompts.initial_query
    phase, closing = split_closing(task.prompts.repair_query if failed else initial)
    phase += _FAILS_ALREADY if shown and not (failed or task.repairs) else ""
    additions = [*(() if failed else build.named), *additions]
    asked, changed = {file.path for file in additions}, {change.path for change in build.replacements}
    parts_now = {file.path: file for file in additions if isinstance(file.view, Part)}
    changes = list(_show_changes(task, build, parts_now, asked))
    others = [file for file in additions if file.path not in changed]
    added = [render(file) for file in others if not isinstance(file.view, Part)]
    is_long = parts_now or any(text.count("\n") > _LONG_FILE + 1 for text in [*changes, *added])
    late_edits = task.late_edits if is_long else ""
    phase = late_edits + phase + _tell_attempt(task, history)
    added += [render(fresh) for file in others if (fresh := _beyond_codebase(task, file))]
    query, codebase = labelled("query", task.query), labelled("codebase", task.codebase.text)
    printed = task.shown(build.output + (task.first.given if task.first else ""))
    output = labelled("build.sh output", printed) if shown else ""
    unseen = labelled("codebase additions", "".join(added)) if added else ""
    replacements = labelled("file replacements", "".join(changes)) if failed else ""
    is_cached = task.layout == "cached"
    now = phase if is_cached else ""
    end = replacements + _end(task, now, closing, rejection, offers_edits=bool(task.edits or late_edits))
    parts = {"query": task.query, "codebase": task.codebase.text, "build output": printed}
    parts |= {"codebase additions": "".join(added), "file replacements": "".join(changes)}
    parts |= {"rejected response": rejection.text if rejection else ""}
    shows = _sight_of(task, additions, build)
    if is_cached:
        return Prompt(rules, codebase + query, unseen + output + end, parts, shows)
    return Prompt(rules + phase, "", output + query + codebase + unseen + end, parts, shows)


def lay_out_short(
    task: Task, turns: Sequence[Turn] = (), failed: FailedBuild | None = None, added: Sequence[FileView] = ()
) -> Prompt:
    """Return a prompt as an exchange of messages. A file that is now as an answer sent it is not shown again. A first
    build's output is shown where to repair it is the task, or where it names files that the codebase has not: what the
    model can tell from the project itself leads a small one astray.
    """
    build, sent = failed or FailedBuild(""), "\n".join(turn.response for turn in turns)
    others = [
        each
        for each in build.replacements
        if isinstance(each.view, Removed) or f"^^^{each.path}\n{each.text.rstrip()}\n" not in sent
    ]
    changed = "".join(_show_changes(task, build._replace(replacements=others), {}, ()))
    codebase, instructions = task.codebase.text, task.prompts.short_instructions
    first, query = task.first if task.first and (task.repairs or task.first.named) else None, task.query
    if first:
        query = with_output(query, task.shown(first.output + first.given), first.named, repairs=task.repairs)
        added = [*first.named, *added]
    system, earlier, last = lay_out_dialogue(instructions, codebase, query, turns, changed)
    flat = "".join(f"[{role}]\n{text}" for role, text in earlier) + "[user]\n"
    output = task.shown((failed or first or build).output)
    parts = {"query": task.query, "codebase": codebase, "build output": output, "answers": sent}
    return Prompt(system + task.circumstances, flat, last, parts, _sight_of(task, added, build), earlier)


def _end(task: Task, phase: str, closing: str, rejection: Rejection | None, *, offers_edits: bool) -> str:
    """Return the reasons of a rejection, then what to do and send now: the task again, where it is short, and the form.

    It has a label, for the section before it may end with a file.
    """
    text = ""
    if rejection:
        text = labelled("rejected response", rejection.text)
        closing = split_closing(task.prompts.rejected_response)[1] or closing
    closing = repeat_task(closing, task.query).replace("{form}", _WHOLE_OR_EDITS if offers_edits else _WHOLE)
    if rejection and rejection.send_whole:
        paths = ", ".join(map(shown, rejection.send_whole))
        closing = f"Send {paths} whole this time, without ^^^find.\n{closing}"
    return text + (labelled("answer", phase + closing) if phase + closing else "")


def _tell_attempt(task: Task, history: Sequence[str]) -> str:
    number = len(history) + 1
    before = f"This is attempt {number} of {task.attempts}. Before it:\n{''.join(history)}\n" if history else ""
    return before + (_LAST if number == task.attempts else "")


def _sight_of(task: Task, added: Sequence[FileView], build: FailedBuild) -> Sight:
    """Return what the prompt shows of files: the codebase, then the added files, then the changed ones as they are now.

    An added outline takes nothing away, and of a changed file with added lines these are shown.
    """
    codebase, parts = task.codebase.shown, {file.path for file in added if isinstance(file.view, Part)}
    changed = [file for file in build.replacements if file.path not in parts]
    beside = [*(file for file in added if file.path not in {change.path for change in changed}), *changed]
    views = dict(codebase.views)
    for file in beside:
        if not (isinstance(file.view, Outline) and isinstance(views.get(file.path), Whole | Part)):
            views[file.path] = file.view
    return codebase._replace(views=views, beside=[file.text for file in beside])


def _beyond_codebase(task: Task, file: FileView) -> FileView | None:
    """Return a file that is shown in part with the lines alone that the codebase lacks, None where it has them all."""
    known = task.codebase.views.get(file.path)
    part = beyond(file.view, known) if isinstance(file.view, Part) else None
    if part is None or not part.passages:
        return None
    ranges = known.ranges if isinstance(known, Part) and part is not file.view else ()
    return file._replace(view=part, elsewhere=tuple(ranges))


def _ended(content: str) -> str:
    return content if content.endswith("\n") or not content else content + "\n"


def _show_changes(
    task: Task, failed: FailedBuild, parts: Mapping[str, FileView], asked: Collection[str]
) -> Iterator[str]:
    """Yield each changed file by path: in part, whole, or as a much shorter diff against the codebase that holds it."""
    codebase = f"\n{task.codebase.text}" if task.diffs else ""
    for change in sorted(failed.replacements, key=lambda change: change.path):
        if isinstance(change.view, Removed):
            yield render(change)
            continue
        if change.path in parts:
            yield render(parts[change.path], REPLACEMENT).removesuffix("\n")
            continue
        text, original = _ended(change.text), failed.originals.get(change.path)
        is_diff = False
        if task.diffs and original is not None and change.path not in asked:
            _, held, after = codebase.partition(f"\n{header(change.path)}{_ended(original)}")
            is_whole = held and (not after.strip() or after.startswith("\n--- "))
            diff = hunks_between(_ended(original), text, _CONTEXT_LINES) if is_whole else text
            is_diff = len(diff) * _SHORTER < len(text)
            text = diff if is_diff else text
        yield f"{replacement_header(change.path, is_diff=is_diff)}{text}"
