"""What the LLM is told in a run: each next prompt, by what came of the attempts before it, and so that it fits."""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from code_commit.changes import RejectedResponseError
from code_commit.codebase.additions import find_additions, show_unseen, without_passed
from code_commit.errors import NotSetUpError
from code_commit.exchange import Prompt, Response
from code_commit.job import Job
from code_commit.parse import blocks_of
from code_commit.prompts import (
    FailedBuild,
    Task,
    add_to_history,
    comparable,
    initial_prompt,
    read_build_output,
    read_replacements,
    rejected_prompt,
    repair_prompt,
    tell_attempt,
)
from code_commit.redaction import Redactor
from code_commit.runs.log import AttemptLog
from code_commit.runs.record import BuildResult


class Conversation:
    """Makes the prompts of a run, one after the other. What they show of the project counts as seen by the LLM."""

    def __init__(self, job: Job, task: Task, redactor: Redactor) -> None:
        self._job = job
        self._task = task
        self._redact = redactor.redact_text
        self._redactor = redactor
        self._draft: Callable[[Task], Prompt] = initial_prompt
        """Makes the next prompt of the task, whatever its codebase is by then."""
        self._failed: FailedBuild | None = None
        self._history: list[str] = []
        self._first_seen: dict[object, int] = {}

    def next_prompt(self) -> Prompt:
        """Return the next prompt, with a smaller codebase if it is too long and the settings want it to fit."""
        self._make_room()
        return self._draft(self._task)

    def was_rejected(self, attempt: AttemptLog, response: Response, rejection: RejectedResponseError) -> None:
        """Let the next prompt say why the response cannot be used, and show what it would have changed unseen."""
        self._compare(attempt, response)
        add_to_history(self._history, self._redact(tell_attempt(attempt.record)))
        text, limit = self._redact(response.text), self._job.settings.build_output_limit
        shown_text = text if not limit or len(text) <= limit else ""
        room = self._job.window.room(self._draft(self._task)) - len(shown_text)
        reasons = self._show_unseen(rejection, room)
        self._draft = partial(
            rejected_prompt, failed=self._failed, history=self._history, reasons=reasons, response=shown_text
        )

    def build_failed(
        self, attempt: AttemptLog, response: Response, build: BuildResult, changed: Collection[str]
    ) -> None:
        """Let the next prompt ask for a repair of the build; `changed` are the paths that answers changed so far."""
        self._failed = self._read_failed_build(attempt, changed)
        self._compare(attempt, response, comparable(build, self._failed.output))
        add_to_history(self._history, tell_attempt(attempt.record))
        self._draft = partial(repair_prompt, failed=self._failed, history=self._history)

    def _compare(self, attempt: AttemptLog, response: Response, failure: object = None) -> None:
        """Note which attempt was the first with the same blocks, and which one with the same failure."""
        blocks = blocks_of(response.text)
        keys = ((attempt.record.verdict, blocks) if blocks else None, failure)
        attempt.compared(*(self._first_seen.setdefault(key, attempt.number) if key else attempt.number for key in keys))

    def _make_room(self) -> None:
        """Take a smaller codebase if the prompt is too long; files that the build named go first in it."""
        longest, fit = self._job.window
        if longest is None or fit is None:
            return
        codebase = self._task.codebase
        size = max(len(codebase) + self._job.window.room(self._draft(self._task)), longest // _LEAST_SHARE)
        if size < len(codebase):
            mentions = without_passed(self._failed.output) if self._failed else ""
            with suppress(NotSetUpError):  # no room for a single file: the call says that the prompt does not fit
                self._task = self._task._replace(codebase=fit(size, mentions))
                self._job.rules.codebase = self._task.codebase

    def _show_unseen(self, rejection: RejectedResponseError, room: int) -> list[str]:
        """Add the files that an answer would have changed unseen, and return the reasons of its rejection.

        They take the room that there is, and half of that of a codebase which is made to fit.
        """
        room += len(self._task.codebase) // 2 if self._job.window.fit else 0
        unseen, reasons = show_unseen(self._job.project, rejection, room, self._redactor)
        self._job.rules.note_seen(unseen)
        self._task = self._task._replace(additions=(*self._task.additions, *unseen))
        return [self._redact(reason) for reason in reasons]

    def _read_failed_build(self, attempt: AttemptLog, changed: Collection[str]) -> FailedBuild:
        project, settings, rules = self._job.project, self._job.settings, self._job.rules
        output = read_build_output(attempt.build_file, settings.build_output_limit, attempt.shown_build_file())
        output = self._redact(output)  # a key may have been whole again when the escapes went
        replacements, additions = read_replacements(project.root, changed, self._redact), []
        if settings.codebase_additions:
            known = {*changed, *(file.path for file in self._task.additions)}
            additions = find_additions(project, self._task.codebase, output, known, self._redactor)
        rules.seen.clear()  # what an earlier prompt alone has shown, the LLM no longer knows
        rules.note_seen([*self._task.additions, *replacements, *additions])
        return FailedBuild(output, replacements, additions)


_LEAST_SHARE = 10
"""One part in so many is for the codebase in any case: what is kept for the answer gives way then."""
