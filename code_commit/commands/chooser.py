"""The choice of a rollup's files by an LLM, as a run of its own: within which log and lock, and for what price."""

import os
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from code_commit.apply import lock_tree
from code_commit.build import harden_process
from code_commit.codebase.fit import UNLIMITED, Room
from code_commit.codebase.select import Rollup, fitted, sections
from code_commit.commands.asking import asking
from code_commit.errors import EXIT_SUCCESS
from code_commit.llm.keys import load_keys, require_key
from code_commit.llm.models import choose_fallback, choose_model, longest_prompt
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN, Asked, estimate_tokens
from code_commit.preflight import check_prompt_has_no_key, choose_selector
from code_commit.project import Project
from code_commit.prompts import load_system_prompt
from code_commit.runs.log import RunLog, open_run_log, reopen_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import FileChoice, RunRecord
from code_commit.runs.words import count
from code_commit.settings import Settings
from code_commit.terminal import shown
from code_commit.workflow import ask

if TYPE_CHECKING:
    from code_commit.commands.rollup import FileSelection

SMALL = 20_000
"""Tokens of a codebase of which all files go in whole: to choose among them would cost as much."""


@dataclass(slots=True)
class FileChooser:
    """Asks which files the task needs whole, where that is wanted. `interrupted` is an earlier choice to go on with.

    `log` is that of the choice, which ends when the rollup is there: until then, and until the run that is to follow
    has begun, `resume` goes on with it.
    """

    project: Project
    progress: Progress
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    interrupted: tuple[Path, RunRecord] | None = None
    log: RunLog | None = None

    def choose(
        self, settings: Settings, files: "FileSelection", names: Collection[str], rollup: Rollup, room: Room
    ) -> Collection[str] | None:
        """Return which of the files with these names are to be whole, None where all may be.

        `rollup` has those that are left out so far. Raises NotSetUpError, LLMError and RejectedResponseError.
        """
        from code_commit.codebase.chooser import (
            select_files,
            selection_prompt,
        )  # a run whose files nobody chooses does without

        project, redactor = self.project, self.progress.redactor
        keys = load_keys(project, self.environment)
        own = choose_model(settings.model, keys, keys.unfit)
        asked = choose_selector(settings, own, keys)
        spare = choose_fallback(asked.choice, asked.settings)
        fallback = Asked(spare[0], require_key(spare[0].provider, keys), spare[1]) if spare else None
        found = list(sections(project.root, names, redactor, rollup := deepcopy(rollup)))
        size = sum(len(file.text) for file in found)
        if size <= min(room.characters, SMALL * CHARACTERS_PER_TOKEN):
            tokens = round(size / CHARACTERS_PER_TOKEN)
            self.progress.say(f"a small codebase, about {tokens:,} tokens: all of it goes in, no LLM has to choose")
            return None
        instructions = load_system_prompt(project.system_prompts, "file_selection")
        outlines = fitted(found, redactor, rollup, _room(asked, instructions, room.query))
        prompt = selection_prompt(instructions, room.query, "".join(outlines))
        check_prompt_has_no_key(redactor, prompt)
        project.agent_config.mkdir(mode=0o700, exist_ok=True)
        harden_process()
        with lock_tree(project), self._open_log(settings._replace(model=str(own)), files, asked, room.query) as log:
            self.log = log
            with self.progress, asking(asked, project, log, fallback) as complete:
                return select_files(prompt, {file.name for file in found}, partial(ask, complete), log)

    def _open_log(self, settings: Settings, files: "FileSelection", asked: Asked, query: str) -> RunLog:
        if self.interrupted:
            return reopen_run_log(*self.interrupted, self.progress.redactor, self.progress)
        log = open_run_log(self.project, "rollup", settings, self.progress.redactor, self.progress)
        log.record.model, log.record.query = str(asked.choice), query.strip().split("\n")[0]
        log.record.options |= files._asdict()
        return log

    def finish(self) -> None:
        """End the log, if there is one: the rollup is there."""
        if self.log:
            chosen = self.log.record.chosen
            names = ", ".join(map(shown, chosen)) or "-"
            self.log.finish("success", EXIT_SUCCESS, f"{count(len(chosen), 'file')} chosen: {names}")

    def note_in(self, record: RunRecord) -> None:
        """Write into the record of the run that follows what the choice cost."""
        if self.log:
            run, totals = self.log.record, self.log.record.totals
            record.choice = FileChoice(
                run.run,
                run.asked_model,
                totals.attempts,
                totals.llm_seconds,
                totals.usage,
                totals.cost_usd,
                totals.unsettled_usd,
            )


def _room(asked: Asked, instructions: str, query: str) -> Room:
    """Return how much of the outlines the model reads."""
    longest = longest_prompt(asked.choice, asked.settings) or UNLIMITED
    tokens = max(longest - estimate_tokens(instructions + query) - _LABELS, 1)
    return Room(tokens, int(tokens * CHARACTERS_PER_TOKEN), query, chosen=())


_LABELS = 500
"""Tokens for the sections' labels, and for a second question that says what is wrong with the first answer."""
