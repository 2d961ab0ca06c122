"""The next prompt: decided by the results of the attempts before it, and shortened until it fits."""

import functools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from code_commit.changes import FileChange, FileRemoval, FileReplacement, FilesAskedError, RejectedResponseError
from code_commit.codebase.additions import find_additions, show_asked, show_unseen, without_passed
from code_commit.codebase.text import Codebase
from code_commit.errors import LogError, NotSetUpError
from code_commit.exchange import Prompt
from code_commit.files import Tree, decode_text, read_ends
from code_commit.paths.secrets import explain_secret
from code_commit.project import Project
from code_commit.prompts.history import AttemptSummary, comparable, tell_attempt, tell_history
from code_commit.prompts.layout import FailedBuild, Task, lay_out, split_closing
from code_commit.redaction import Redactor
from code_commit.runs.log import AttemptLog
from code_commit.runs.record import BuildResult
from code_commit.settings import Settings
from code_commit.terminal import render

_LEAST_SHARE = 10  # one part in so many is for the codebase; the room kept for the answer gives way
# characters of files that answers may ask for in a run whose model's window is not known
_ROOM_WITHOUT_WINDOW = 400_000
_RAW_BYTES_PER_LIMIT = 4  # progress bars and colours shrink to less than a quarter of their bytes
_UNREADABLE = "(since build.sh ran it can be neither shown nor replaced: {})\n"


class Room(NamedTuple):
    """The room for a prompt: its most characters, None where nobody knows, and a function that shortens its codebase.
    `shrink` takes the characters and a text whose files come first, and raises NotSetUpError; None if that is not
    wanted.
    """

    longest: int | None = None
    shrink: Callable[[int, str], Codebase] | None = None


class Outcome(NamedTuple):
    """The result of an attempt for the prompts after it: the reasons of a rejected response, else the failed build.

    `unseen` are files that a rejected response would have changed unseen, or asks to see. Equal values of `change`, or
    of `failure`, mean the same change, or the same failure.
    """

    told: AttemptSummary
    change: object = None
    failure: object = None
    failed: FailedBuild | None = None
    reasons: Sequence[str] = ()
    response: str = ""
    unseen: Sequence[FileReplacement] = ()


def next_prompt(task: Task, outcomes: Sequence[Outcome]) -> Prompt:
    """Return the prompt that follows these outcomes, the first one where there are none."""
    failed, unseen = _last_failed(outcomes), [file for outcome in outcomes for file in outcome.unseen]
    is_rejected = bool(outcomes and outcomes[-1].reasons)
    history = tell_history([outcome.told for outcome in outcomes], last_is_told_apart=is_rejected)
    return lay_out(task, history, failed, unseen, _tell_rejection(task, outcomes[-1]) if is_rejected else "")


def _tell_rejection(task: Task, outcome: Outcome) -> str:
    reasons = "\n".join(f"- {reason}" for reason in outcome.reasons)
    frame, _ = split_closing(task.prompts.rejected_response)
    text = frame.replace("{reasons}", reasons) if "{reasons}" in frame else frame + reasons
    return text + (f"\nThe rejected answer, from its line 1 on:\n{outcome.response}" if outcome.response else "")


class Conversation:
    def __init__(self, project: Project, settings: Settings, redactor: Redactor, task: Task, room: Room) -> None:
        self._project = project
        self._settings = settings
        self._redactor = redactor
        self._task = task
        self._longest, self._shrink = room
        self._outcomes: list[Outcome] = []

    def next_prompt(self) -> Prompt:
        """Return the next prompt, with a smaller codebase where it is too long and the settings want that."""
        task, longest = self._task, self._longest
        prompt, size = next_prompt(task, self._outcomes), len(task.codebase.text)
        if longest is None or self._shrink is None:
            return prompt
        room = max(size + longest - len(prompt.text), longest // _LEAST_SHARE)
        if room < size:
            failed = _last_failed(self._outcomes)
            with suppress(NotSetUpError):
                self._task = task._replace(codebase=self._shrink(room, without_passed(failed.output) if failed else ""))
        return next_prompt(self._task, self._outcomes)

    def was_rejected(self, attempt: AttemptLog, response: str, blocks: str, rejection: RejectedResponseError) -> None:
        """Note a rejection, and the files that the response asks for or would have changed unseen, if they fit."""
        redact, limit, longest = self._redactor.redact_text, self._settings.build_output_limit, self._longest
        if longest is None:
            room = _ROOM_WITHOUT_WINDOW - sum(len(file.content) for done in self._outcomes for file in done.unseen)
        else:
            room = longest - len(next_prompt(self._task, self._outcomes).text)
        room += len(self._task.codebase.text) // 2 if self._shrink else 0
        if isinstance(rejection, FilesAskedError):
            unseen, shown = show_asked(self._project, self._task.codebase.text, rejection.names, room, self._redactor)
            start, _, notes = tell_attempt(attempt.record)
            self._outcomes.append(Outcome(AttemptSummary(*map(redact, (start, f"; {shown}", notes))), unseen=unseen))
            return
        change, _ = self._compare(attempt, blocks)
        text = redact(response)
        is_kept = not attempt.record.cut_off and (not limit or len(text) <= limit)
        text = text if is_kept else ""  # one that was cut off would only be written as long again
        unseen, reasons = show_unseen(self._project, rejection, room - len(text), self._redactor)
        told = AttemptSummary(*map(redact, tell_attempt(attempt.record)))
        self._outcomes.append(Outcome(told, change, None, None, [*map(redact, reasons)], text, unseen))

    def build_failed(
        self,
        attempt: AttemptLog,
        blocks: str,
        build: BuildResult,
        changed: Collection[str],
        originals: Mapping[str, bytes],
    ) -> None:
        """Note a failed build; `originals` is the content before the run of files that are shown as diffs."""
        failed = self._read_failed_build(attempt, changed)
        texts = {path: content.decode("utf-8", "replace") for path, content in originals.items()}
        failed = failed._replace(originals=texts)
        same = self._compare(attempt, blocks, comparable(build, failed.output))
        self._outcomes.append(Outcome(tell_attempt(attempt.record), *same, failed))

    def _compare(self, attempt: AttemptLog, blocks: str, failure: object = None) -> tuple[object, object]:
        """Note the first attempts with the same blocks and with the same failure, and return both values."""
        change = (attempt.record.verdict, blocks) if blocks else None
        changes, failures = [done.change for done in self._outcomes], [done.failure for done in self._outcomes]
        attempt.compared(_first_with(change, changes), _first_with(failure, failures))
        return change, failure

    def _read_failed_build(self, attempt: AttemptLog, changed: Collection[str]) -> FailedBuild:
        output = read_build_output(attempt.build_file, self._settings.build_output_limit, attempt.shown_build_file())
        output = self._redactor.redact_text(output)  # a key may have been whole again when the escapes went
        redact, known_text = self._redactor.redact_text, functools.cache(attempt.known_text)
        with Tree(self._project.root) as tree:  # a build may have formatted or removed changed files
            replacements = [_read_replacement(tree, path, redact, known_text) for path in sorted(changed)]
        if not self._settings.codebase_additions:
            return FailedBuild(output, replacements)
        known = {*changed, *(file.path for outcome in self._outcomes for file in outcome.unseen)}
        additions, windows = find_additions(self._project, self._task.codebase.text, output, known, self._redactor)
        return FailedBuild(output, replacements, additions, windows if self._settings.answer_format != "files" else ())


def _first_with(value: object, earlier: Sequence[object]) -> int | None:
    return earlier.index(value) + 1 if value is not None and value in earlier else None


def _last_failed(outcomes: Sequence[Outcome]) -> FailedBuild | None:
    return next((outcome.failed for outcome in reversed(outcomes) if outcome.failed), None)


def _read_replacement(tree: Tree, path: str, redact: Callable[[str], str], known: Callable[[], str]) -> FileChange:
    try:
        text = decode_text(tree.read(path)[0])
        if why := explain_secret(path, [text], known):
            return FileReplacement(path, _UNREADABLE.format(f"it is {why}"))
        return FileReplacement(path, redact(text))
    except (FileNotFoundError, NotADirectoryError):
        return FileRemoval(path)
    except ValueError as error:
        why = f"it {error}"
    except OSError as error:
        why = error.strerror or "it cannot be read"
    return FileReplacement(path, _UNREADABLE.format(why))


def read_build_output(log_file: Path, limit: int, shown_name: str) -> str:
    """Return a build log as a terminal would finally show it, without colours; of one over `limit` bytes (0: none) the
    first and last lines, and one between them that names the whole log. Raises LogError.
    """
    window = _RAW_BYTES_PER_LIMIT * limit or sys.maxsize
    try:
        ends = read_ends(log_file, window, window)
    except OSError as error:
        raise LogError(log_file, error) from error
    head, unread, tail = render(ends.head), ends.between, render(ends.tail)
    text = head + tail
    if not unread and (not limit or len(text.encode()) <= limit):
        return text
    first = (head if unread else text).encode()[: limit // 2].decode("utf-8", "ignore")
    last = text.encode()[-limit // 2 :].decode("utf-8", "ignore")
    first = first[: first.rfind("\n") + 1] or first
    last = last[last.find("\n") + 1 :] or last
    missing = len(text.encode()) - len(first.encode()) - len(last.encode()) + unread
    return f"{first}[... {missing:,} bytes of the output are left out here; all of it is in {shown_name} ...]\n{last}"
