"""`code-commit prompt`: the initial prompt, to paste into any chat. No key is needed."""

from argparse import ArgumentParser

from code_commit.check import inputs_of, plan_run
from code_commit.check.codebase import codebase_for, require_sendable
from code_commit.commands import add_main_job
from code_commit.commands.output import print_document, redactor_of, tell_if_half_changed
from code_commit.commands.run import Arguments
from code_commit.errors import EXIT_SUCCESS
from code_commit.project import find_project
from code_commit.prompts.layout import lay_out
from code_commit.runs.progress import Progress

DESCRIPTION = """\
Prints the prompt that a run with these options would send first, to paste into
any chat. It needs no key, sends nothing out of this machine and writes nothing.
Where an LLM would choose the files of the run, the prompt has those that fit.
Give the answer to code-commit apply."""

EXAMPLES = """\
code-commit prompt >prompt.txt
code-commit prompt -m 'make the slug drop punctuation' --rollup fit"""


def add_arguments(parser: ArgumentParser) -> None:
    add_main_job(parser)


def run(arguments: Arguments) -> int:
    project = find_project()
    tell_if_half_changed(project)
    inputs = inputs_of(project, arguments.task, arguments.query)._replace(command="prompt")
    plan = plan_run(project, arguments.options, inputs)
    codebase = codebase_for(plan)  # without the choice of an LLM, which would cost
    require_sendable(plan, codebase)
    if print_document(lay_out(plan.task(codebase)).text.encode("utf-8", "backslashreplace")):
        Progress(redactor_of(project)).say(
            "characters that a terminal does not show are escaped here: code-commit prompt >FILE keeps them as they are"
        )
    return EXIT_SUCCESS
