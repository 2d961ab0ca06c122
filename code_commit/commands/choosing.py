"""The choice of a codebase's files by an LLM, as a run of its own with a log, a lock and a price."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

from code_commit.apply import lock_tree
from code_commit.build import harden_process
from code_commit.check import RunPlan
from code_commit.check.codebase import require_no_key
from code_commit.codebase.fit import FitRequest
from code_commit.codebase.make import fitted
from code_commit.codebase.select import CodebaseRequest, Selection
from code_commit.codebase.text import Section
from code_commit.errors import EXIT_SUCCESS
from code_commit.interrupts import hold_signals, interruptible
from code_commit.llm.asking import asking
from code_commit.llm.keys import choose_selector
from code_commit.llm.models import UNLIMITED, longest_prompt, require_money
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN, LlmConfig, estimate_tokens
from code_commit.prompts.layout import load_system_prompt, may_change
from code_commit.runs.log import QUERY_OF_RUN, RunLog, open_run_log, reopen_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunRecord
from code_commit.runs.words import count
from code_commit.terminal import shown

SMALL = 20_000
"""Tokens of a codebase that goes in whole: a choice would cost as much."""

_LABELS = 500
"""Tokens for the sections' labels, and for a second question with the faults of the first answer."""


@dataclass(slots=True)
class FileChooser:
    """Asks which files the task needs whole; `resume` continues the choice until it was left without an error."""

    plan: RunPlan
    progress: Progress
    log: RunLog | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.log and kind is None:
            chosen = self.log.record.chosen
            names = ", ".join(map(shown, chosen)) or "-"
            self.log.finish("success", EXIT_SUCCESS, f"{count(len(chosen), 'file')} chosen: {names}")

    @property
    def record(self) -> RunRecord | None:
        """The record of the choice; None where no LLM was asked."""
        return self.log.record if self.log else None

    def choose(
        self, found: Sequence[Section], selection: Selection, request: CodebaseRequest
    ) -> Collection[str] | None:
        """Return the files to be whole, None for all. Raises NotSetUpError, LLMError, RejectedResponseError."""
        from code_commit.codebase.chooser import choose_files, find_mentions, selection_prompt
        from code_commit.workflow import ask  # few runs choose

        plan, project, redactor = self.plan, self.plan.project, self.plan.redactor
        asked = choose_selector(plan.settings, plan.llm.choice, plan.keys)
        size = sum(len(file.text) for file in found)
        if size <= min(request.fit or SMALL, SMALL) * CHARACTERS_PER_TOKEN:
            tokens = round(size / CHARACTERS_PER_TOKEN)
            self.progress.say(f"a small codebase, about {tokens:,} tokens: all of it goes in, no LLM has to choose")
            return None
        instructions = load_system_prompt(project.system_prompts, "file_selection")
        patterns = "\n".join(may_change(plan.settings))
        instructions += patterns and f"{patterns}\n\n"
        mentions = redactor.redact_text(find_mentions(found, request.query))
        rest = instructions + request.query + mentions
        need = FitRequest(request.query, chosen=(), for_choice=True)
        outlines = fitted(found, selection, redactor, _tokens_for(asked, rest), need)
        prompt = selection_prompt(instructions, request.query, mentions, outlines.text)
        require_no_key(redactor, prompt)
        if plan.inputs.resumed is None:
            require_money(asked.choice, asked.settings, prompt)
        project.agent_config.mkdir(mode=0o700, exist_ok=True)
        harden_process()
        hold_signals()  # until the run begins that follows: what was chosen is on record by then
        with lock_tree(project), self._open_log(asked, request) as log:
            self.log = log
            with self.progress, asking(asked, project, log) as complete:
                names = {file.name for file in found}
                return interruptible(lambda: choose_files(prompt, names, partial(ask, complete), log))

    def _open_log(self, asked: LlmConfig, request: CodebaseRequest) -> RunLog:
        plan = self.plan
        if plan.inputs.resumed:
            return reopen_run_log(plan.project, plan.inputs.resumed, self.progress)
        settings = plan.settings._replace(model=str(plan.llm.choice))
        log = open_run_log(plan.project, "rollup", settings, self.progress)
        log.write_text(QUERY_OF_RUN, request.query)
        log.record.model, log.record.query = str(asked.choice), request.query.strip().split("\n")[0]
        log.record.tree = plan.tree.before if plan.tree else None
        log.record.request = request._replace(query="")._asdict() | {"for_run": plan.inputs.command == "run"}
        return log


def _tokens_for(asked: LlmConfig, rest: str) -> int:
    """Return how many tokens of outlines the model reads beside the rest of the prompt."""
    longest = longest_prompt(asked.choice, asked.settings) or UNLIMITED
    return max(longest - estimate_tokens(rest) - _LABELS, 1)
