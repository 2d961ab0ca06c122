"""`code-commit run`: the main job, from the plan to the end of the attempts."""

import json
from argparse import SUPPRESS, ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path

from code_commit.apply.recover import recover
from code_commit.check import RunInputs, RunPlan, inputs_of, plan_run
from code_commit.check.codebase import codebase_for, require_sendable
from code_commit.commands import add_main_job
from code_commit.commands.approve import approval_of
from code_commit.commands.output import recording, show_end
from code_commit.first_build import building_first
from code_commit.interrupts import interruptible
from code_commit.project import AGENT_CONFIG, ROLLUP_SCRIPT, Project, read_text
from code_commit.runs.log import RunLog
from code_commit.runs.progress import Progress
from code_commit.runs.record import BuildResult, RunRecord
from code_commit.settings import Options
from code_commit.start import Before, after_choice, start_run
from code_commit.workflow import attempt_loop

DESCRIPTION = """\
Does the main job, like code-commit without a command. Asks the LLM for the
change that -m or agent-config/query.txt describes, verifies the whole answer,
applies all of it or nothing, and runs build.sh. While the build fails, it asks
for a repair, up to three times. Nothing is committed. With -m it first creates
agent-config/ if that is missing. It then writes a new codeRollup.txt, as
code-commit rollup does, unless the project has its own codeRollup.sh for that."""

EXAMPLES = """\
code-commit
code-commit -m 'make the slug drop punctuation'
code-commit run --model anthropic:claude-opus-5-5 --max-cost 2
code-commit run --model chat:qwen3-coder --base-url http://127.0.0.1:11434/v1
code-commit run --allow 'src/' --allow 'tests/' --rollback
code-commit run --dry-run >proposed.diff"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """A task as text or as a file of that name, and settings; `built` is a file with what `check` told of a build."""

    task: str | None = None
    query: str | None = None
    built: str = ""
    options: Options = field(default_factory=dict)


def add_arguments(parser: ArgumentParser) -> None:
    add_main_job(parser)
    parser.add_argument("--built", default="", help=SUPPRESS)  # of a fleet, whose baseline it was


def run(arguments: Arguments) -> int:
    options = arguments.options
    with recording("run", options) as (project, progress):
        inputs = inputs_of(project, arguments.task, arguments.query)
        if arguments.built:
            told = json.loads(
                read_text(Path(arguments.built), "name a file with the output of check --build --json", arguments.built)
            )
            inputs = inputs._replace(built=(BuildResult(**told["build"]), told["build_output"]))
        if arguments.task is not None and not inputs.fresh:
            progress.say(f"codeRollup.txt stays as it is: {ROLLUP_SCRIPT} writes it, not -m")
        return show_end(project, run_main_job(project, options, progress, inputs))


def run_main_job(project: Project, options: Options, progress: Progress, inputs: RunInputs) -> RunRecord:
    """Return the record of the whole job. Raises NotSetUpError before it starts, and the errors of the steps."""
    progress.say(recover(project))
    plan = plan_run(project, options, inputs)
    progress.redactor = plan.redactor
    if progress.verbose:
        progress.say(f"settings: {plan.settings.provenance}")
    if not project.agent_config.exists():
        progress.say(f"making {AGENT_CONFIG}/, which is missing")
    with building_first(plan, progress) as begun:
        if begun.log and begun.has_ended:
            return begun.log.record
        return _ask_and_change(*begun, progress)


def _ask_and_change(plan: RunPlan, begun: RunLog | None, progress: Progress) -> RunRecord:
    """Make the codebase and run the attempts; `begun` is the log of a run that has built first."""
    choice = None
    if plan.request and plan.request.select:
        from code_commit.commands.choosing import FileChooser  # it imports what few runs need: all that outlines a file

        with FileChooser(plan, progress, begun=begun) as chooser:
            codebase = codebase_for(plan, chooser.choose)
        choice = chooser.record
    else:
        codebase = codebase_for(plan)
    with after_choice(choice):
        if plan.request or plan.first:
            require_sendable(plan, codebase, is_paid=choice is not None)
        approve = approval_of(plan.settings, progress)
    with start_run(plan, codebase, progress, approve=approve, before=Before(choice, begun)) as run:
        return interruptible(lambda: attempt_loop(run))
