"""The next prompt: decided by the results of the attempts before it, and shortened until it fits."""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from code_commit.changes import FilesAskedError, RejectedResponseError
from code_commit.codebase.additions import (
    FileViewer,
    changed_names,
    find_additions,
    show_asked,
    show_unseen,
)
from code_commit.codebase.parts import carried_ranges
from code_commit.codebase.text import Codebase, part_of, read_sections, render
from code_commit.errors import NotSetUpError
from code_commit.exchange import Prompt, weigh
from code_commit.files import Tree, decode_text
from code_commit.outputs import without_passed
from code_commit.paths.secrets import explain_secret
from code_commit.project import Project
from code_commit.prompts.dialogue import Turn
from code_commit.prompts.history import AttemptSummary, comparable, tell_attempt, tell_history
from code_commit.prompts.layout import FailedBuild, Rejection, Task, lay_out, lay_out_short, split_closing
from code_commit.prompts.output import read_build_output
from code_commit.redaction import Redactor
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.record import BuildResult
from code_commit.settings import Settings
from code_commit.views import FileView, Hidden, Outline, Part, Removed, Views, Whole, of_kind, whole

_LEAST_SHARE = 10  # one part in so many is for the codebase; the room kept for the answer gives way
# characters of files that answers may ask for in a run whose model's window is not known
_ROOM_WITHOUT_WINDOW = 400_000
_SHORT_FILE = 20_000  # bytes
_UNREADABLE = "(since build.sh ran it can be neither shown nor replaced: {})\n"


class Room(NamedTuple):
    """The room for a prompt: its most characters, None if unknown, and a function that shortens its codebase.
    `shrink` takes the characters and a text whose files come first, and raises NotSetUpError; None if that is not
    wanted.
    """

    longest: int | None = None
    shrink: Callable[[int, str], Codebase] | None = None


class Outcome(NamedTuple):
    """The result of an attempt for the prompts after it: the reasons of a rejected response, else the failed build.

    `unseen` are files that the codebase does not hold whole: a rejected response would have changed them, or asks to
    see them, or a failed build names them. `send_whole` are the paths whose edits did not fit, `ends_alone` files that
    a response would have changed in their line ends alone. Equal values of `change`, or of `failure`, mean the same
    change, or the same failure.
    """

    told: AttemptSummary
    change: object = None
    failure: object = None
    failed: FailedBuild | None = None
    reasons: Sequence[str] = ()
    response: str = ""
    unseen: Sequence[FileView] = ()
    send_whole: Sequence[str] = ()
    ends_alone: Sequence[str] = ()
    copies: Sequence[tuple[str, str]] = ()


def next_prompt(task: Task, outcomes: Sequence[Outcome], longest: int | None = None) -> Prompt:
    """Return the prompt that follows these outcomes, the first one where there are none.

    The short layout leaves the oldest answers out where it would be over `longest` characters with them.
    """
    failed = _last_failed(outcomes)
    if task.layout == "short":
        return _next_dialogue(task, outcomes, failed, longest)
    is_rejected = bool(outcomes and outcomes[-1].reasons)
    history = tell_history([outcome.told for outcome in outcomes], last_is_told_apart=is_rejected)
    rejection = _tell_rejection(task, outcomes[-1]) if is_rejected else None
    return lay_out(task, history, failed, _shown_since(outcomes, failed), rejection)


def _next_dialogue(task: Task, outcomes: Sequence[Outcome], failed: FailedBuild | None, longest: int | None) -> Prompt:
    prompt = lay_out_short(task, [_as_turn(task, done) for done in outcomes], failed, _shown_since(outcomes, failed))
    if longest is not None and len(prompt.text) > longest and len(outcomes) > 1:
        return _next_dialogue(task, outcomes[1:], failed, longest)
    return prompt


def _shown_since(outcomes: Sequence[Outcome], failed: FailedBuild | None) -> list[FileView]:
    """Return the files that were shown beside the codebase, each as shown last; an outline stays beside lines."""
    shown = dict[tuple[str, bool], FileView]()
    for outcome in outcomes:
        if outcome.failed is None or outcome.failed is failed:
            shown |= {(file.path, isinstance(file.view, Outline)): file for file in outcome.unseen}
    return list(shown.values())


def _as_turn(task: Task, done: Outcome) -> Turn:
    output = done.failed and task.shown(done.failed.output)
    return Turn(done.response, output, done.reasons, "".join(map(render, done.unseen)), done.ends_alone, done.copies)


def _tell_rejection(task: Task, outcome: Outcome) -> Rejection:
    reasons = "\n".join(f"- {reason}" for reason in outcome.reasons)
    frame, _ = split_closing(task.prompts.rejected_response)
    text = frame.replace("{reasons}", reasons) if "{reasons}" in frame else frame + reasons
    text += f"\nThe rejected answer, from its line 1 on:\n{outcome.response}" if outcome.response else ""
    return Rejection(text, outcome.send_whole)


class Answer(NamedTuple):
    """A response's text, and that of its blocks."""

    text: str
    blocks: str


class Conversation:
    def __init__(self, project: Project, settings: Settings, redactor: Redactor, task: Task, room: Room) -> None:
        self._project = project
        self._settings = settings
        self._redactor = redactor
        self._task = task
        self._longest, self._shrink = room
        self._outcomes: list[Outcome] = []
        self._views: Views = task.codebase.views if task.first else {}
        self._texts: dict[str, str] = {}  # of files shown in part, as they were then
        if task.first:
            printed = task.first._replace(output=task.first.output + task.first.given)
            self._task = task._replace(first=task.first._replace(named=self._named_by(printed)))

    def next_prompt(self) -> Prompt:
        """Return the next prompt, with a smaller codebase where it is too long and the settings want that."""
        prompt = self._fitting_prompt()
        self._views = prompt.shows.views
        return prompt

    def _fitting_prompt(self) -> Prompt:
        task, longest = self._task, self._longest
        prompt, size = next_prompt(task, self._outcomes, longest), weigh(task.codebase.text)
        if longest is None or self._shrink is None:
            return prompt
        room = max(size + longest - weigh(prompt.text), longest // _LEAST_SHARE)
        if room < size:
            failed, given = _last_failed(self._outcomes) or task.first, task.first.given if task.first else ""
            with suppress(NotSetUpError):
                self._task = task._replace(
                    codebase=self._shrink(room, without_passed(failed.output + given) if failed else "")
                )
        return next_prompt(self._task, self._outcomes, longest)

    def was_rejected(self, attempt: AttemptLog, answer: Answer, rejection: RejectedResponseError) -> None:
        """Note a rejection, and the files that the response asks for or would have changed unseen, if they fit."""
        redact, longest = self._redactor.redact_text, self._longest
        if longest is None:
            asked = (file for done in self._outcomes if not done.failed for file in done.unseen)
            room = _ROOM_WITHOUT_WINDOW - sum(len(file.text) for file in asked)
        else:
            room = longest - len(next_prompt(self._task, self._outcomes).text)
        room += len(self._task.codebase.text) // 2 if self._shrink else 0
        if isinstance(rejection, FilesAskedError):
            shown, told = show_asked(self._viewer(), self._task.codebase.shown, rejection.names, room)
            start, _, notes = tell_attempt(attempt.record)
            summary = AttemptSummary(*map(redact, (start, f"; {told}", notes)))
            self._outcomes.append(Outcome(summary, response=redact(answer.text), unseen=shown))
            return
        change, _ = self._compare(attempt, answer.blocks)
        text = self._kept(attempt, answer)
        shown, reasons = show_unseen(self._viewer(), rejection, room - len(text))
        summary = AttemptSummary(*map(redact, tell_attempt(attempt.record)))
        reasons, whole = [*map(redact, reasons)], self._short(attempt.record.misfits)
        self._outcomes.append(Outcome(summary, change, None, None, reasons, text, shown, whole))

    def _kept(self, attempt: AttemptLog, answer: Answer) -> str:
        """Return the response for the next prompts, "" if it is too long: one that was cut off would be so again."""
        text, limit = self._redactor.redact_text(answer.text), self._settings.build_output_limit
        return "" if attempt.record.cut_off or 0 < limit < len(text) else text

    def _short(self, misfits: Collection[str]) -> list[str]:
        """Return the files whose edits did not fit, and that are short enough to be sent whole."""
        files = {path: self._project.root / path for path in misfits if self._settings.answer_format == "auto"}
        return [path for path, file in files.items() if file.is_file() and file.stat().st_size < _SHORT_FILE]

    def build_failed(
        self,
        attempt: AttemptLog,
        answer: Answer,
        build: BuildResult,
        changed: Collection[str],
        originals: Mapping[str, bytes],
    ) -> None:
        """Note a failed build; `originals` is the content of changed files before the run."""
        texts = {path: content.decode("utf-8", "replace") for path, content in originals.items()}
        self._texts = texts | self._texts
        failed = self._read_failed_build(attempt, changed)._replace(originals=texts)
        same = self._compare(attempt, answer.blocks, comparable(build, failed.output))
        summary, text = tell_attempt(attempt.record), self._kept(attempt, answer)
        named, left = self._named_by(failed, changed), attempt.record.ends_alone
        copies = self._find_copies(failed, texts)
        self._outcomes.append(Outcome(summary, *same, failed, (), text, named, ends_alone=left, copies=copies))

    def _find_copies(self, failed: FailedBuild, before: Collection[str]) -> list[tuple[str, str]]:
        """Return each new file that is a copy of a file which task and output name, and which is still there, with it.

        `before` are the changed files that were there before the run.
        """
        sections = list(read_sections(self._task.codebase.text)) if self._task.layout == "short" else []
        old = {*before, *(path for path, _ in sections)}
        new = {path: text.strip() for path, text in _texts_of(failed) if path not in old and text.strip()}
        named = [each for each in sections if each[0] in self._task.query and each[0] in failed.output]
        held = {text.strip(): path for path, text in named if path not in before and self._project.has(path)}
        return [(path, held[text]) for path, text in new.items() if text in held]

    def last_build_failed(self, attempt: AttemptLog, build: BuildResult, first: BuildResult | None) -> None:
        """Note whether the last build failed in the same way as the first, before the run."""
        before = self._task.first
        if first and before and comparable(first, before.output) == comparable(build, self._read_output(attempt)):
            attempt.record.same_failure_as = 0

    def _viewer(self) -> FileViewer:
        show_lines = self._show_lines if self._settings.answer_format != "files" else None
        return FileViewer(self._project, self._redactor, show_lines, self._views)

    def _show_lines(self, path: str, text: str, ranges: Sequence[tuple[int, int]]) -> FileView:
        """Return lines of a file as it is now, with those of it that the last prompt showed."""
        view, before = self._views.get(path), self._texts.get(path)
        self._texts[path] = text
        part = part_of(text, [*ranges, *(carried_ranges(view, before, text) if isinstance(view, Part) else ())])
        from code_commit.codebase.outline import read_definitions  # its patterns take 8 ms, and few runs need it

        hidden = tuple((each.first, each.name) for each in read_definitions(path, text))
        return FileView(path, part, part.content, hidden)

    def _compare(self, attempt: AttemptLog, blocks: str, failure: object = None) -> tuple[object, object]:
        """Note the first attempts with the same blocks and with the same failure, and return both values."""
        change = (attempt.record.verdict, blocks) if blocks else None
        changes, failures = [done.change for done in self._outcomes], [done.failure for done in self._outcomes]
        attempt.compared(_first_with(change, changes), _first_with(failure, failures))
        return change, failure

    def _read_output(self, attempt: AttemptLog) -> str:
        file, shown_name = attempt.build_file, attempt.shown_build_file()
        output = read_build_output(file, self._settings, shown_name, self._task.passing)
        return self._redactor.redact_text(output)  # a key may have been whole again when the escapes went

    def _read_failed_build(self, attempt: AttemptLog, changed: Collection[str]) -> FailedBuild:
        output = self._read_output(attempt)
        redact, known_text = self._redactor.redact_text, functools.cache(attempt.known_text)
        with Tree(self._project.root) as tree:  # a build may have formatted or removed changed files
            tree.tell_apart(changed)
            replacements = [_read_replacement(tree, path, redact, known_text) for path in sorted(changed)]
        return FailedBuild(output, replacements)

    def _named_by(self, failed: FailedBuild, changed: Collection[str] = ()) -> list[FileView]:
        """Return the files that the output names, and the changed ones of which the last prompt showed lines."""
        viewer, shown, in_part = self._viewer(), list[FileView](), of_kind(self._views, Part).keys()
        if self._settings.codebase_additions:
            asked = (file for done in self._outcomes if not done.failed for file in done.unseen)
            known = {*changed, *(file.path for file in asked if not isinstance(file.view, Outline))}.difference(in_part)
            now = _texts_of(failed)
            names = {name for path, text in now for name in changed_names(path, failed.originals.get(path, ""), text)}
            shown = find_additions(viewer, self._task.codebase.shown, failed.output, known, names)
        others = set(in_part).difference(file.path for file in shown) if viewer.show_lines else ()
        for file in failed.replacements:
            if file.path in others and isinstance(file.view, Whole):
                shown.append(self._show_lines(file.path, file.text, ()))
        return shown


def _texts_of(failed: FailedBuild) -> list[tuple[str, str]]:
    return [(file.path, file.text) for file in failed.replacements if isinstance(file.view, Whole)]


def _first_with(value: object, earlier: Sequence[object]) -> int | None:
    return earlier.index(value) + 1 if value is not None and value in earlier else None


def _last_failed(outcomes: Sequence[Outcome]) -> FailedBuild | None:
    return next((outcome.failed for outcome in reversed(outcomes) if outcome.failed), None)


def _read_replacement(tree: Tree, path: str, redact: Callable[[str], str], known: Callable[[], str]) -> FileView:
    """Return a changed file as it is now."""
    try:
        text = decode_text(tree.read(path)[0])
        if not (secret := explain_secret(path, [text], known)):
            return whole(path, redact(text))
        why = f"it is {secret}"
    except (FileNotFoundError, NotADirectoryError):
        return FileView(path, Removed(), "")
    except ValueError as error:
        why = f"it {error}"
    except OSError as error:
        why = error.strerror or "it cannot be read"
    return FileView(path, Hidden(why), _UNREADABLE.format(why))
