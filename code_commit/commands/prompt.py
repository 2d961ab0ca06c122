"""`code-commit prompt`: the initial prompt, to paste into any chat. No key is needed, nothing is sent."""

from argparse import ArgumentParser
from typing import Any

from code_commit.commands.output import print_bytes, redactor_of, tell_if_half_changed
from code_commit.errors import EXIT_SUCCESS
from code_commit.preflight import check_prompt_has_no_key
from code_commit.project import find_project, read_codebase, read_query
from code_commit.prompts import initial_prompt, load_system_prompts, make_task
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
    settings = load_settings(project, options)
    prompts = load_system_prompts(project.system_prompts)
    prompt = initial_prompt(make_task(project.root, settings, prompts, read_query(project), read_codebase(project)))
    check_prompt_has_no_key(redactor_of(project), prompt)
    print_bytes(prompt.text.encode("utf-8", "backslashreplace"))
    return EXIT_SUCCESS
