"""The prompts: the specification's layouts of the initial query and the repair query, and the cached one.

The system prompts come first, then the user's sections, each under its label on a line of its own. What stands in a
section is data: nothing here, and nothing that reads the response, looks for labels or fences in it.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from code_commit.changes import FileChange, FileRemoval, FileReplacement
from code_commit.errors import LogError, NotSetUpError
from code_commit.exchange import Prompt
from code_commit.files import Tree, decode_text
from code_commit.terminal import settle

Layout = Literal["spec", "cached"]


class SystemPrompts(NamedTuple):
    """The texts of system_prompts/, or of the project's own files of the same names."""

    project_structure: str
    code_modification_instructions: str
    initial_query: str
    repair_query: str
    rejected_response: str


class Task(NamedTuple):
    """What does not change in a run: the system prompts, the query and the codebase, and in which order they go."""

    prompts: SystemPrompts
    query: str
    codebase: str
    layout: Layout = "spec"


def load_system_prompts(overrides: Path) -> SystemPrompts:
    """Read the system prompts, a file in the folder `overrides` before the packaged one. Raises NotSetUpError."""
    packaged = Path(__file__).parents[1] / "system_prompts"
    texts = {}
    for name in SystemPrompts._fields:
        own = overrides / f"{name}.txt"
        try:
            source = own if own.is_file() else packaged / f"{name}.txt"
            texts[name] = source.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise NotSetUpError(f"the system prompt {own.name} cannot be read: {error}") from error
    return SystemPrompts(**texts)


def initial_prompt(task: Task) -> Prompt:
    """Return the prompt of the first call."""
    return _lay_out(task, task.prompts.initial_query, "", "")


def repair_prompt(task: Task, build_output: str, replacements: Iterable[FileChange]) -> Prompt:
    """Return the prompt of a repair: the build's output, and the latest version of every file changed so far."""
    changed = "".join(_replacement(change) for change in sorted(replacements, key=lambda change: change.path))
    return _lay_out(
        task,
        task.prompts.repair_query,
        _section("build.sh output", build_output),
        _section("file replacements", changed),
    )


def rejected_prompt(prompt: Prompt, rejected_response: str, reasons: Iterable[str]) -> Prompt:
    """Return the same prompt with a section after it that says why its response was rejected."""
    told = "\n".join(f"- {reason}" for reason in reasons)
    text = (
        rejected_response.replace("{reasons}", told) if "{reasons}" in rejected_response else rejected_response + told
    )
    return prompt._replace(rest=prompt.rest + _section("rejected response", text))


def _lay_out(task: Task, phase: str, build_output: str, replacements: str) -> Prompt:
    rules = task.prompts.project_structure + task.prompts.code_modification_instructions
    query, codebase = _section("query", task.query), _section("codebase", task.codebase)
    parts = {"query": query, "codebase": codebase, "build output": build_output, "file replacements": replacements}
    if task.layout == "cached":
        return Prompt(rules, codebase + query, phase + build_output + replacements, parts)
    return Prompt(rules + phase, "", build_output + query + codebase + replacements, parts)


def _section(label: str, text: str) -> str:
    return f"[{label}]\n{text}{'' if text.endswith(chr(10)) else chr(10)}\n"


def _replacement(change: FileChange) -> str:
    if isinstance(change, FileReplacement):
        end = "" if change.content.endswith("\n") or not change.content else "\n"
        return f"--- FILE REPLACEMENT {change.path} ---\n{change.content}{end}"
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
