"""`code-commit prompt`: the initial prompt, to paste into any chat. No key is needed."""

from argparse import ArgumentParser

from code_commit.check import inputs_of, plan_run
from code_commit.check.codebase import codebase_for, require_sendable
from code_commit.commands import add_main_job
from code_commit.commands.output import (
    answering,
    output_of,
    print_document,
    print_json,
    redactor_of,
    tell_if_half_changed,
)
from code_commit.commands.run import Arguments
from code_commit.errors import EXIT_SUCCESS
from code_commit.prompts.layout import lay_out
from code_commit.runs.progress import Progress

DESCRIPTION = """\
Prints the prompt that a run with these options would send first, to paste into
any chat. It needs no key, sends nothing anywhere, and writes nothing. If an LLM
would choose the run's files, the printed prompt contains those that fit
instead. Pass the answer to code-commit apply."""

EXAMPLES = """\
code-commit prompt >prompt.txt
code-commit prompt -m 'make the slug drop punctuation' --rollup fit"""


def add_arguments(parser: ArgumentParser) -> None:
    add_main_job(parser)


def run(arguments: Arguments) -> int:
    as_json = output_of(arguments.options).json
    with answering(as_json=as_json) as project:
        tell_if_half_changed(project)
        inputs = inputs_of(project, arguments.task, arguments.query)._replace(command="prompt")
        plan = plan_run(project, arguments.options, inputs)
        codebase = codebase_for(plan)  # without the choice of an LLM, which would cost
        require_sendable(plan, codebase)
        prompt = lay_out(plan.task(codebase)).text
        if as_json:
            print_json(redactor_of(project).redact_json({"prompt": prompt}))
        elif print_document(prompt.encode("utf-8", "backslashreplace")):
            way = "code-commit prompt >FILE keeps them as they are"
            Progress(redactor_of(project)).say(f"characters that a terminal does not show are escaped here: {way}")
        return EXIT_SUCCESS
