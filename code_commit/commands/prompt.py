"""`code-commit prompt`: the initial prompt, to paste into any chat. No key is needed, nothing is sent."""

from collections.abc import Mapping
from typing import Any

from code_commit.config import load_settings
from code_commit.keys import find_secrets
from code_commit.preflight.questions import check_prompt_has_no_key
from code_commit.project import Project, read_codebase, read_query
from code_commit.prompts import Task, initial_prompt, load_system_prompts
from code_commit.redaction import Redactor


def prompt_command(project: Project, options: Mapping[str, Any]) -> str:
    """Return the prompt's text. Raises NotSetUpError, also for a prompt that would carry an API key."""
    settings = load_settings(project, options)
    prompts = load_system_prompts(project.system_prompts)
    prompt = initial_prompt(Task(prompts, read_query(project), read_codebase(project), settings.prompt_layout))
    check_prompt_has_no_key(Redactor(find_secrets(project)), prompt)
    return prompt.text
