"""The preflight: everything that must hold before a token is paid for, every failure told at once.

`check_project` changes nothing and sends nothing; `code-commit check` prints what it finds, a run starts from it.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from code_commit.build import Sandbox, choose_sandbox
from code_commit.config import Settings, load_settings
from code_commit.errors import NotSetUpError
from code_commit.git import ask_git, find_git
from code_commit.keys import ApiKey, Provider, find_secrets, load_keys, require_key
from code_commit.llm import check_base_url
from code_commit.model_choice import ModelChoice, choose_model
from code_commit.preflight.questions import (
    check_build_script,
    check_gitignore,
    check_lock,
    check_nothing_is_tracked,
    check_prompt_fits,
    check_prompt_has_no_key,
)
from code_commit.project import BUILD_SCRIPT, Project, read_codebase, read_query
from code_commit.prompts import Task, initial_prompt, load_system_prompts
from code_commit.redaction import Redactor
from code_commit.terminal import shown

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `code-commit check`: `problem` is None where all is well; `note` is what was found."""

    name: str
    problem: str | None = None
    note: str = ""


@dataclass(slots=True)
class Readiness:
    """What the preflight found out. The parts are None where their check failed."""

    redactor: Redactor
    checks: list[Check] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    settings: Settings | None = None
    keys: dict[Provider, ApiKey] = field(default_factory=dict)
    choice: ModelChoice | None = None
    key: ApiKey | None = None
    base_url: str = ""
    task: Task | None = None
    sandbox: Sandbox | None = None

    @property
    def problems(self) -> list[str]:
        return [check.problem for check in self.checks if check.problem is not None]

    def check(self, name: str, question: Callable[[], T], note: Callable[[T], str] = lambda _: "") -> T | None:
        """Ask one question and write its answer down; None where it raised NotSetUpError."""
        try:
            answer = question()
        except NotSetUpError as error:
            self.checks.append(Check(name, str(error)))
            return None
        self.checks.append(Check(name, None, note(answer)))
        return answer


def check_project(
    project: Project,
    options: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    chosen: Callable[[ModelChoice], object] = lambda _: None,
) -> Readiness:
    """Make every check of the preflight and return all that a run needs. Raises nothing that a check can say.

    `chosen` is told the LLM as soon as it is known: what asking it needs can be loaded while git answers.
    """
    ready = _check_ignored(project, environment)
    query = ready.check("query.txt", lambda: read_query(project), _size)
    codebase = ready.check("codeRollup.txt", lambda: read_codebase(project), _size)
    ready.check(BUILD_SCRIPT, lambda: check_build_script(project, environment))
    _check_settings(ready, project, options, environment)
    if ready.settings:
        _check_model(ready, ready.settings, project, environment)
        if ready.choice:
            chosen(ready.choice)
        _check_sandbox(ready, ready.settings, project)
        _check_clean(ready, ready.settings, project)
    prompts = ready.check("system prompts", lambda: load_system_prompts(project.system_prompts))
    if query and codebase and prompts and ready.settings:
        ready.task = Task(prompts, query, codebase, ready.settings.prompt_layout)
        _check_prompt(ready, ready.task, ready.settings)
    ready.check("lock", lambda: check_lock(project))
    return ready


def check_tree(
    project: Project, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ, *, build: bool
) -> Readiness:
    """Make the checks that a change of the tree needs which no LLM is asked for, with or without a build."""
    ready = _check_ignored(project, environment)
    _check_settings(ready, project, options, environment)
    if build:
        ready.check(BUILD_SCRIPT, lambda: check_build_script(project, environment))
    if ready.settings:
        if build:
            _check_sandbox(ready, ready.settings, project)
        _check_clean(ready, ready.settings, project)
    ready.check("lock", lambda: check_lock(project))
    return ready


def _check_ignored(project: Project, environment: Mapping[str, str]) -> Readiness:
    ready = Readiness(redactor=Redactor(find_secrets(project, environment)))
    ready.check(".gitignore", lambda: check_gitignore(project))
    ready.check("git", lambda: check_nothing_is_tracked(project), lambda _: "" if project.git else "no repository")
    return ready


def _check_settings(
    ready: Readiness, project: Project, options: Mapping[str, Any], environment: Mapping[str, str]
) -> None:
    ready.settings = ready.check("settings", lambda: load_settings(project, options, environment))
    ready.keys = ready.check("keys", lambda: load_keys(project, environment), _name_keys) or {}


def _size(text: str) -> str:
    return f"{len(text.encode()):,} bytes"


def _name_keys(keys: Mapping[Provider, ApiKey]) -> str:
    return ", ".join(f"{key.provider} from {key.source}" for key in keys.values()) or "none"


def _check_model(ready: Readiness, settings: Settings, project: Project, environment: Mapping[str, str]) -> None:
    ready.choice = ready.check("model", lambda: choose_model(settings.model, ready.keys), str)
    if ready.choice is None:
        return
    choice = ready.choice
    ready.key = ready.check(
        "key",
        lambda: require_key(choice.provider, ready.keys, environment),
        lambda key: key.source if key else "none needed",
    )
    ready.base_url = ready.check("base URL", lambda: check_base_url(choice, settings), str) or ""
    if choice.provider == "replay" and not (project.root / choice.name).is_dir():
        ready.checks.append(Check("replay", f"there is no folder {shown(choice.name)} with recorded responses"))
    if not settings.model:
        ready.warnings.append(f"no model named: {choice}, the first that has a key")


def _check_sandbox(ready: Readiness, settings: Settings, project: Project) -> None:
    chosen = ready.check(
        "sandbox", lambda: choose_sandbox(settings.sandbox, project, settings), lambda found: found[1] or ""
    )
    if chosen:
        ready.sandbox, warning = chosen
        ready.warnings += [warning] if warning else []


def _check_clean(ready: Readiness, settings: Settings, project: Project) -> None:
    doubt, mend, harm = _doubt_clean(project)
    if doubt and settings.require_clean:
        ready.checks.append(Check("clean tree", f"{doubt}: {mend} (--require-clean)"))
    elif doubt:
        ready.warnings.append(f"{doubt}: {harm}")


def _doubt_clean(project: Project) -> tuple[str, str, str]:
    """Return why the tree does not count as clean, how to mend it, and what it does to the review; "" for a clean one.

    A question that git does not answer leaves a doubt too.
    """
    if project.git is None:
        why = "this is no git repository" if find_git() else "git is not installed"
        harm = "no git diff to review; the log has each attempt's changes as a diff"
        return why, "only git can tell whether the tree is clean", harm
    status = ask_git(["status", "--porcelain", "-z", "--", "."], project.root)
    if status.returncode != 0:
        complaint = shown(" ".join(status.stderr.decode("utf-8", "replace").split()))
        mend = "mend what git complains of"
        return f"git status failed ({complaint})", mend, f"{mend}, or there may be no diff to review"
    if status.stdout:
        return "git status is not clean", "commit or stash first", "the diff will mix your changes with the LLM's"
    return "", "", ""


def _check_prompt(ready: Readiness, task: Task, settings: Settings) -> None:
    prompt = initial_prompt(task)
    ready.redactor = ready.redactor.knowing(task.codebase)
    ready.check("prompt", lambda: check_prompt_has_no_key(ready.redactor, prompt), lambda _: _size(prompt.text))
    if ready.choice:
        choice = ready.choice
        ready.check("prompt fits", lambda: check_prompt_fits(choice, settings, prompt))
