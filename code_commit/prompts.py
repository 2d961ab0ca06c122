"""The prompts: the specification's layouts of the initial query and the repair query, and the cached one.

The system prompts come first, then the user's sections, each under its label on a line of its own. What stands in a
section is data: nothing here, and nothing that reads the response, looks for labels or fences in it.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from code_commit.changes import FileChange, FileRemoval, FileReplacement
from code_commit.errors import LogError, NotSetUpError
from code_commit.exchange import Prompt, labelled
from code_commit.files import Tree, decode_text
from code_commit.runs.record import Attempt, BuildResult
from code_commit.runs.words import duration, listed
from code_commit.settings import Settings
from code_commit.terminal import settle, shown

Layout = Literal["spec", "cached"]


class SystemPrompts(NamedTuple):
    """The texts of system_prompts/, or of the project's own files of the same names."""

    project_structure: str
    code_modification_instructions: str
    initial_query: str
    repair_query: str
    rejected_response: str
    edit_instructions: str


class Task(NamedTuple):
    """What hardly changes in a run: the system prompts, the query and the codebase, and in which order they go.

    `circumstances` is what the prompts say of this project and its run; `attempts` is how many there are at most.
    `late_edits` is how to send edits, where that is told as soon as an answer made a file long, or a long one is added.
    `additions` are files that the codebase does not hold whole, and that an answer would have changed.
    """

    prompts: SystemPrompts
    query: str
    codebase: str
    layout: Layout = "spec"
    circumstances: str = ""
    attempts: int = 4
    late_edits: str = ""
    additions: tuple[FileReplacement, ...] = ()


class FailedBuild(NamedTuple):
    """What a repair prompt shows of a build that failed.

    `replacements` are the files that answers changed, as they are now; `additions` those that the output names and the
    codebase lacks.
    """

    output: str
    replacements: Sequence[FileChange]
    additions: Sequence[FileReplacement] = ()


def load_system_prompts(overrides: Path) -> SystemPrompts:
    """Read the system prompts, a file in the folder `overrides` before the packaged one. Raises NotSetUpError."""
    return SystemPrompts(*(load_system_prompt(overrides, name) for name in SystemPrompts._fields))


def load_system_prompt(overrides: Path, name: str) -> str:
    """Read one of the system prompts. Raises NotSetUpError."""
    own = overrides / f"{name}.txt"
    packaged = Path(__file__).parents[1] / "system_prompts" / own.name
    try:
        return (own if own.is_file() else packaged).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotSetUpError(f"the system prompt {own.name} cannot be read: {error}") from error


def make_task(root: Path, settings: Settings, prompts: SystemPrompts, query: str, codebase: str) -> Task:
    """Return the task of a run in the project at `root`."""
    edits = prompts.edit_instructions if _offers_edits(settings, codebase) else ""
    late_edits = prompts.edit_instructions if settings.answer_format == "auto" and not edits else ""
    circumstances = edits + "".join(f"{line}\n" for line in _circumstances(root, settings)) + "\n"
    return Task(prompts, query, codebase, settings.prompt_layout, circumstances, 1 + settings.max_repairs, late_edits)


def _offers_edits(settings: Settings, codebase: str) -> bool:
    if settings.answer_format == "auto":
        return any(section.count("\n") > _LONG_FILE + 1 for section in codebase.split("\n--- "))
    return settings.answer_format == "edits"


_LONG_FILE = 200
"""Lines; the one that names the file and the blank one after it come on top."""


def _circumstances(root: Path, settings: Settings) -> Iterator[str]:
    """Yield what the prompts say of the project and the run: its folder, what may change, how long a build may take."""
    only = "no path begins with it, unless a folder of that name is in [codebase]"
    yield f"The project's root folder is called {shown(root.name)}; {only}."
    if settings.build_timeout:
        limit = duration(settings.build_timeout)
        yield f"build.sh is stopped after {limit}; that counts as a failure."
    if settings.allow:
        yield f"Only paths that match one of these patterns (.gitignore syntax) may change: {_patterns(settings.allow)}"
    if settings.protect:
        yield f"Paths that match one of these are protected as well: {_patterns(settings.protect)}"


def _patterns(patterns: Iterable[str]) -> str:
    return ", ".join(map(shown, patterns))


def initial_prompt(task: Task, history: Sequence[str] = ()) -> Prompt:
    """Return the prompt of the first call; `history` tells of attempts that were rejected."""
    return _lay_out(task, task.prompts.initial_query, history)


def repair_prompt(task: Task, failed: FailedBuild, history: Sequence[str] = ()) -> Prompt:
    """Return the prompt of a repair: the build's output, and the latest version of every file changed so far."""
    return _lay_out(task, task.prompts.repair_query, history, failed)


def rejected_prompt(
    task: Task, failed: FailedBuild | None, history: Sequence[str], reasons: Iterable[str], response: str = ""
) -> Prompt:
    """Return the prompt of before with a section after it that says why its response, if given, was rejected.

    The last of `history` is that attempt; its line there only points to the section.
    """
    history = [*history[:-1], f"{history[-1].partition(_NOTHING_WRITTEN)[0]}: see [rejected response].\n"]
    prompt = repair_prompt(task, failed, history) if failed else initial_prompt(task, history)
    told = "\n".join(f"- {reason}" for reason in reasons)
    frame = task.prompts.rejected_response
    text = frame.replace("{reasons}", told) if "{reasons}" in frame else frame + told
    if response:
        text += f"\nThe rejected answer, from its line 1 on:\n{response}"
    return prompt._replace(rest=prompt.rest + labelled("rejected response", text))


def tell_attempt(attempt: Attempt) -> str:
    """Return what an attempt changed, how it ended, and the LLM's own notes, in one or two lines."""
    idle = not attempt.changes
    told = f"sent the change of attempt {attempt.same_change_as} again and " if attempt.same_change_as else ""
    if attempt.verdict == "rejected":
        told += f"was rejected{_NOTHING_WRITTEN}: {attempt.reasons[0]}"
        told += " (and more)" if len(attempt.reasons) > 1 else ""
    elif not idle:
        added, removed = (sum(getattr(change, f"lines_{what}") for change in attempt.changes) for what in _COUNTED)
        told += f"changed {listed([change.path for change in attempt.changes], 8)} (+{added} -{removed})"
    else:
        told += "changed nothing, every file held that already"
    if attempt.build:
        told += f"; the build failed: {attempt.build.ending}"
        told += f", just as after attempt {attempt.same_failure_as}" if attempt.same_failure_as else ""
        is_repeated = attempt.same_change_as or attempt.same_failure_as
        told += _STUCK if idle or is_repeated else ""
    notes = " ".join(attempt.notes.split())
    short = notes if len(notes) <= _LONGEST_NOTES else f"{notes[:_LONGEST_NOTES]} ..."
    return f"Attempt {attempt.number} {told}" + (f"{_NOTES}{short}\n" if notes else "\n")


def add_to_history(history: list[str], told: str) -> None:
    """Append what is told of an attempt; the attempt before it loses its notes where they are the same."""
    notes = "".join(told.partition(_NOTES)[1:])
    if notes and history and history[-1].endswith(notes):
        history[-1] = history[-1].removesuffix(notes) + "\n"
    history.append(told)


_COUNTED = ("added", "removed")
_LONGEST_NOTES = 600
_NOTES = "\n  Its notes: "
_NOTHING_WRITTEN = ", nothing of it was written"
_STUCK = ": if the cause lies in the project, take another way now; if outside, send ^^^cannot"


def comparable(build: BuildResult, output: str) -> tuple[object, ...]:
    """Return what two builds that failed in the same way have in common: how they ended, and their last lines.

    Numbers and times are left out, which differ from one build to the next.
    """
    lines = [line for line in re.sub(_NUMBER, "", output[-_COMPARED_CHARACTERS:]).split("\n") if line.strip()]
    return build.exit_code, build.signal, build.timed_out, *lines[-_COMPARED_LINES:]


_NUMBER = r"\b0x[\da-fA-F]+|(?<!\w)\d+([.,:]\d+)*(?![.,:]?\d)(\s?([mnu\u00b5]?s|min|seconds?|h)\b|(?!\w))"
_COMPARED_LINES, _COMPARED_CHARACTERS = 20, 20_000


def _told(history: Sequence[str]) -> str:
    """Return the history, at most 2,000 characters: the older attempts lose their notes first, then their lines."""
    lines = list(history)
    for number, told in enumerate(history):
        if sum(map(len, lines)) > _LONGEST_HISTORY:
            lines[number] = told.partition(_NOTES)[0].removesuffix("\n") + "\n"
    text = "".join(lines)
    return text if len(text) <= _LONGEST_HISTORY else f"...{text[3 - _LONGEST_HISTORY :]}"


_LONGEST_HISTORY = 1_950
"""With the words before it, 2,000."""


def _lay_out(task: Task, phase: str, history: Sequence[str], failed: FailedBuild | None = None) -> Prompt:
    rules = task.prompts.project_structure + task.prompts.code_modification_instructions + task.circumstances
    if history:
        phase += f"This is attempt {len(history) + 1} of {task.attempts}. Before it:\n{_told(history)}\n"
    query, codebase = labelled("query", task.query), labelled("codebase", task.codebase)
    changes = sorted(failed.replacements, key=lambda change: change.path) if failed else []
    shown_changes = [_replacement(change) for change in changes]
    files = {file.path: file for file in (*task.additions, *(failed.additions if failed else ()))}
    for change in changes:
        files.pop(change.path, None)
    added = [f"--- {file.path} ---\n{_ended(file.content)}\n" for file in files.values()]
    if any(text.count("\n") > _LONG_FILE + 1 for text in [*shown_changes, *added]):
        phase = task.late_edits + phase
    output = labelled("build.sh output", failed.output) if failed else ""
    replacements = labelled("file replacements", "".join(shown_changes)) if failed else ""
    additions = labelled("codebase additions", "".join(added)) if added else ""
    parts = {"query": query, "codebase": codebase, "build output": output}
    parts |= {"codebase additions": additions, "file replacements": replacements}
    if task.layout == "cached":
        return Prompt(rules, codebase + query, phase + output + additions + replacements, parts)
    return Prompt(rules + phase, "", output + query + codebase + additions + replacements, parts)


def _ended(content: str) -> str:
    return content if content.endswith("\n") or not content else content + "\n"


def _replacement(change: FileChange) -> str:
    if isinstance(change, FileReplacement):
        return f"--- FILE REPLACEMENT {change.path} ---\n{_ended(change.content)}"
    return f"--- FILE REMOVED {change.path} ---\n"


def read_replacements(root: Path, paths: Iterable[str], redact: Callable[[str], str]) -> list[FileChange]:
    """Return what the tree holds now of files that answers changed: a build may have formatted or removed them."""
    with Tree(root) as tree:
        return [_read_replacement(tree, path, redact) for path in sorted(paths)]


def _read_replacement(tree: Tree, path: str, redact: Callable[[str], str]) -> FileChange:
    try:
        return FileReplacement(path, redact(decode_text(tree.read(path)[0])))
    except (FileNotFoundError, NotADirectoryError):
        return FileRemoval(path)
    except ValueError as error:
        why = f"it {error}"
    except OSError as error:
        why = error.strerror or "it cannot be read"
    return FileReplacement(path, f"(since build.sh ran it can be neither shown nor replaced: {why})\n")


def read_build_output(log_file: Path, limit: int, shown_name: str) -> str:
    """Return a build log as text for the prompt: as a terminal would finally show it, without colours.

    `limit` is in bytes, 0 for none: of a longer output the first and the last lines are kept, half of the limit each,
    with a line between them that says how much is missing and that all of it is in `shown_name`. Raises LogError.
    """
    head, tail, unread = _read_ends(log_file, _RAW_BYTES_PER_LIMIT * limit)
    text = head + tail
    if not unread and (not limit or len(text.encode()) <= limit):
        return text
    first = head.encode()[: limit // 2].decode("utf-8", "ignore")
    last = text.encode()[-limit // 2 :].decode("utf-8", "ignore")
    first = first[: first.rfind("\n") + 1] or first
    last = last[last.find("\n") + 1 :] or last
    missing = len(text.encode()) - len(first.encode()) - len(last.encode()) + unread
    return f"{first}[... {missing:,} bytes of the output are left out here; all of it is in {shown_name} ...]\n{last}"


def _read_ends(log_file: Path, window: int) -> tuple[str, str, int]:
    """Return the settled text of the first and the last `window` bytes (0: all), and how many bytes lie between."""
    try:
        with log_file.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            if not window or size <= 2 * window:
                return settle(file.read()), "", 0
            head = settle(file.read(window))
            file.seek(size - window)
            return head, settle(file.read(window)), size - 2 * window
    except OSError as error:
        raise LogError(log_file, error) from error


_RAW_BYTES_PER_LIMIT = 4
"""Progress bars and colours shrink to less than a quarter of their bytes; more than that need not be read."""
