"""The choice of a codebase's files by an LLM, as a run of its own with a log, a lock and a price."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from code_commit.apply.lock import locked
from code_commit.build import Builder, harden_process
from code_commit.check import RunPlan
from code_commit.check.codebase import require_no_key
from code_commit.codebase.change_logs import logs_of, may_want_entries
from code_commit.codebase.chooser import Choice, Shape, choose_files, selection_prompt
from code_commit.codebase.fit import PART, Chosen, Outlines
from code_commit.codebase.make import fitted, told_beside
from code_commit.codebase.mentions import show_mentions
from code_commit.codebase.near import is_test
from code_commit.codebase.outline import LONG
from code_commit.codebase.parts import FileRequest, find_part
from code_commit.codebase.rank import Survey, rank, within
from code_commit.codebase.select import EXCLUDED, CodebaseRequest, Selection
from code_commit.exchange import CHARACTERS_PER_TOKEN
from code_commit.git import match_patterns
from code_commit.interrupts import hold_signals, interruptible
from code_commit.llm.asking import asking
from code_commit.llm.keys import choose_selector
from code_commit.llm.local import with_window
from code_commit.llm.models import UNLIMITED, longest_prompt
from code_commit.llm.money import require_money
from code_commit.llm.vendor import LlmConfig, estimate_tokens
from code_commit.outputs import without_passed, without_progress
from code_commit.prompts.layout import load_system_prompt, may_change, repeat_task, split_closing
from code_commit.runs.log import QUERY_OF_RUN, RunLog, open_run_log, reopen_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunRecord
from code_commit.runs.words import count
from code_commit.settings import Settings
from code_commit.start import guarded
from code_commit.status import Status
from code_commit.terminal import shown
from code_commit.workflow import ask

_OUTLINES = 40  # files that the choice shows with an outline; it may ask for the folders of others

_CHANGES, _CHOSEN, _MOST_CHOICES = 2, 5, 10
"""Calls after a choice, and how many files it takes, as measured; so many times a choice no codebase is small."""

_PARTS = f"""\
Of a file of more than {PART:,} bytes name only the parts that the task needs,
after a colon: definitions, a method as Class.method, and ranges of lines, as
many as you need, with commas between them or on more lines of the list. Its
imports come by themselves, and so does the comment above a definition. Outlines
of such files have the lines of each definition of {LONG} lines or more
(L120-180). Smaller files may be named in parts too.{{logs}}

^^^files
src/core.py: Command.get_help, parse_options, 120-180
docs/api.md: 270-300, 410-425
^^^end

"""
_FAILS_ALREADY = """\
build.sh fails already, before any change: [build.sh output] is what it printed.
The LLM mends that too: choose the files that this takes.

"""
_OUTPUT = 8_000  # characters of the build's output
_NEWEST = " The newest section of\n{} comes by itself: do not name it."
_LABELS = 500  # tokens for the sections' labels, and for a second question with the faults of the first answer


@dataclass(slots=True)
class FileChooser:
    """Asks an LLM which files the task needs whole. `resume` continues a choice that an error ended.

    `begun` is the log of a run that has built first, in a locked tree: it becomes the choice's, and the run gets a new
    one.
    """

    plan: RunPlan
    progress: Progress
    log: RunLog | None = None
    begun: RunLog | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.log and kind is None:
            chosen = self.log.record.chosen
            names = ", ".join(map(shown, chosen)) or "-"
            self.log.finish(Status.SUCCESS, f"{count(len(chosen), 'file')} chosen: {names}")

    @property
    def record(self) -> RunRecord | None:
        """The record of the choice; None where no LLM was asked."""
        return self.log.record if self.log else None

    def choose(self, survey: Survey, selection: Selection, request: CodebaseRequest) -> Choice | None:
        """Return the files to show whole; None for all. Raises NotSetUpError, LLMError, RejectedResponseError."""
        plan, project, redactor = self.plan, self.plan.project, self.plan.redactor
        asked = choose_selector(plan.settings, plan.llm, plan.keys, project.root)
        if asked is not plan.llm:
            asked = with_window(asked)
        rules, closing = split_closing(load_system_prompt(project.system_prompts, "file_selection"))
        closing = repeat_task(closing, plan.query)
        logs = logs_of(file.name for file in survey.files)
        shown_logs = sorted(file.name for file in survey.files if file.name in logs and may_want_entries(file))
        parts = _PARTS.replace("{logs}", _NEWEST.format(" and ".join(shown_logs)) if shown_logs else "")
        instructions = rules + (parts if request.edits else "")
        instructions += "".join(f"{line}\n\n" for line in may_change(plan.settings))
        instructions += _FAILS_ALREADY if request.output else ""
        output = _in_short(without_progress(without_passed(request.output)))
        files = {file.name: file for file in survey.files}
        fixed = _fixed_tests(plan.settings, files)
        overview = Outlines(
            survey=survey, most=_OUTLINES, fixed=fixed, edits=request.edits, mentions=told_beside(project, request)
        )
        rest = instructions + plan.query + output + show_mentions(survey.mentions) + closing
        tokens = min(_tokens_for(asked, rest), plan.settings.choice_tokens)
        outlines = fitted(selection, redactor, tokens, overview)
        mentions = redactor.redact_text(show_mentions(survey.mentions, outlines.sizes))
        told = {"query": plan.query, "build.sh output": output, "mentions": mentions}
        prompt = selection_prompt(instructions, outlines.text, told, closing)
        if self._is_small(survey, selection, request, len(prompt.text)):
            return None

        def show(folders: Collection[str]) -> str:
            inside = replace(
                overview, survey=within(survey, folders), most=len(files), first=len(files), counts_short=False
            )
            return fitted(Selection(), redactor, tokens, inside).text

        def find_missing(part: FileRequest) -> Sequence[str]:
            file = files.get(part.path)
            return find_part(part.path, file.file_text, part).missing if file and request.edits else ()

        require_no_key(redactor, prompt)
        if plan.inputs.resumed is None:
            require_money(asked.choice, asked.settings, prompt)
        project.agent_config.mkdir(mode=0o700, exist_ok=True)
        asked.share_keys(redactor)
        harden_process()
        hold_signals()  # until the run begins that follows: what was chosen is on record by then
        shape = Shape({*files, *selection.left_out.get(EXCLUDED, ())}, show, find_missing)
        with locked(project), self._open_log(asked, request) as log:
            self.log = log
            with self.progress, asking(asked, project, log) as complete, Builder(project, plan.sandbox) as builder:
                asks = partial(ask, guarded(complete, asked, builder, log))
                return interruptible(lambda: choose_files(prompt, shape, asks, log))

    def _is_small(self, survey: Survey, selection: Selection, request: CodebaseRequest, choice: int) -> bool:
        """Tell whether two changes with all files whole read less than a choice and two changes after it."""
        size, redactor = sum(file.bytes for file in survey.files), self.plan.redactor
        if size > (request.fit or UNLIMITED) * CHARACTERS_PER_TOKEN or size > _MOST_CHOICES * choice:
            return False
        best = [file.name for file in rank(survey)[:_CHOSEN]]
        chosen = Chosen(survey=survey, files=best, edits=request.edits)
        change = fitted(selection, redactor, request.fit or UNLIMITED, chosen)
        if _CHANGES * size > choice + _CHANGES * change.weight:
            return False
        told = f"a small codebase (about {count(round(size / CHARACTERS_PER_TOKEN), 'token')})"
        self.progress.say(f"{told}: all of it is included, and no LLM has to choose")
        return True

    def _open_log(self, asked: LlmConfig, request: CodebaseRequest) -> RunLog:
        plan = self.plan
        if plan.inputs.resumed:
            return reopen_run_log(plan.project, plan.inputs.resumed, plan.settings, self.progress)
        settings = plan.settings._replace(model=str(plan.llm.choice))
        log = self.begun or open_run_log(plan.project, "rollup", settings, self.progress)
        log.record.command, log.record.options = "rollup", settings.as_record()
        log.write_text(QUERY_OF_RUN, plan.query)
        log.record.model, log.record.query = str(asked.choice), plan.query.strip().split("\n")[0]
        log.record.tree = plan.tree.before if plan.tree else None
        for_run = {"for_run": plan.inputs.is_main, "repairs": plan.inputs.command == "repair"}
        log.record.request = request._replace(query="", output="")._asdict() | for_run
        return log


def _in_short(output: str) -> str:
    """Return the first quarter and the end of a long output."""
    first, last = output[: _OUTPUT // 4], output[-(_OUTPUT - _OUTPUT // 4) :]
    return output if len(output) <= _OUTPUT else f"{first}\n[... left out here ...]\n{last}"


def _fixed_tests(settings: Settings, names: Collection[str]) -> set[str]:
    """Return the tests that no answer may change."""
    tests = {name for name in names if is_test(name)}
    fixed = match_patterns(settings.protect, tests)
    return fixed | (tests - match_patterns(settings.allow, tests) if settings.allow else set())


def _tokens_for(asked: LlmConfig, rest: str) -> int:
    """Return how many tokens of outlines the model reads beside the rest of the prompt."""
    longest = longest_prompt(asked) or UNLIMITED
    return max(longest - estimate_tokens(rest) - _LABELS, 1)
