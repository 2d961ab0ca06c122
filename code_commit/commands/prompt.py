"""`code-commit prompt`: the initial prompt, to paste into any chat. No key is needed, nothing is sent."""

import os
from argparse import ArgumentParser
from typing import Any

from code_commit.check import check_prompt_has_no_key, request_of, take_task
from code_commit.check.tree import read_task
from code_commit.codebase.make import make_codebase
from code_commit.codebase.text import read_codebase
from code_commit.commands import add_main_job
from code_commit.commands.output import print_bytes, tell_if_half_changed
from code_commit.commands.rollup import with_room
from code_commit.errors import EXIT_SUCCESS
from code_commit.llm.keys import find_secrets
from code_commit.project import find_project
from code_commit.prompts.layout import lay_out, load_system_prompts, make_task
from code_commit.redaction import Redactor
from code_commit.settings import load_settings

DESCRIPTION = """\
Prints the prompt that a run with these options would send first, to paste into
any chat. No key is needed, nothing is sent or written; where an LLM would
choose the files, it is what fits. The answer goes to code-commit apply."""

EXAMPLES = """\
code-commit prompt >prompt.txt
code-commit prompt -m 'make the slug drop punctuation' --rollup fit"""


def add_arguments(parser: ArgumentParser) -> None:
    add_main_job(parser)


def run(options: dict[str, Any]) -> int:
    project = find_project()
    tell_if_half_changed(project)
    given = take_task(options, project)
    settings, query = load_settings(project, options), read_task(project, given.query)
    redactor = Redactor(find_secrets(project, os.environ, settings.base_url, settings.fallback_base_url))
    request = request_of(settings, query, fresh=given.fresh)
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
