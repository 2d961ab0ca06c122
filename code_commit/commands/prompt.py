"""`code-commit prompt`: the initial prompt, to paste into any chat. No key is needed, nothing is sent."""

from argparse import ArgumentParser
from typing import Any

from code_commit.check import check_prompt_has_no_key, request_of
from code_commit.codebase.make import make_codebase
from code_commit.codebase.text import read_codebase
from code_commit.commands.output import print_bytes, redactor_of, tell_if_half_changed
from code_commit.commands.rollup import with_room
from code_commit.errors import EXIT_SUCCESS
from code_commit.project import find_project, read_query
from code_commit.prompts.layout import lay_out, load_system_prompts, make_task
from code_commit.settings import add_settings, load_settings

DESCRIPTION = """\
Prints the prompt that a run would send first, to paste into any chat. No key is
needed, nothing is sent. The answer goes to code-commit apply."""

EXAMPLES = """\
code-commit prompt >prompt.txt
code-commit prompt --prompt-layout cached"""


def add_arguments(parser: ArgumentParser) -> None:
    add_settings(parser, ["answer_format", "prompt_layout"])


def run(options: dict[str, Any]) -> int:
    project = find_project()
    tell_if_half_changed(project)
    settings, query, redactor = load_settings(project, options), read_query(project), redactor_of(project)
    request = request_of(settings, query, fresh=False)
    if request is None:
        codebase = read_codebase(project)
    else:  # without the choice of an LLM, which would cost
        request = with_room(project, settings, request)
        codebase = make_codebase(project, settings.rollup_exclude, request, redactor)
    prompts = load_system_prompts(project.system_prompts)
    prompt = lay_out(make_task(project.root, settings, prompts, query, codebase))
    check_prompt_has_no_key(redactor, prompt)
    print_bytes(prompt.text.encode("utf-8", "backslashreplace"))
    return EXIT_SUCCESS
