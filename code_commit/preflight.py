"""The preflight: everything that must hold before a token is paid for, every failure told at once.

`check_project` changes nothing and sends nothing; `code-commit check` prints what it finds, a run starts from it.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from code_commit.apply import is_locked, needs_recovery
from code_commit.build import Sandbox, choose_sandbox
from code_commit.changes import shown
from code_commit.config import (
    ApiKey,
    ModelChoice,
    Provider,
    Settings,
    choose_model,
    find_secrets,
    load_keys,
    load_settings,
    require_key,
)
from code_commit.errors import NotSetUpError
from code_commit.exchange import Prompt
from code_commit.git import ask_git, find_git
from code_commit.llm import check_base_url, context_window, estimate_tokens
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, Project, read_codebase, read_query
from code_commit.prompts import Task, initial_prompt, load_system_prompts
from code_commit.redaction import Redactor
from code_commit.verify import ignored_paths

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
    project: Project, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> Readiness:
    """Make every check of the preflight and return all that a run needs. Raises nothing that a check can say."""
    ready = Readiness(redactor=Redactor(find_secrets(project, environment)))
    ready.check(".gitignore", lambda: check_gitignore(project))
    ready.check("git", lambda: _check_nothing_is_tracked(project), lambda _: "" if project.git else "no repository")
    query = ready.check("query.txt", lambda: read_query(project), _size)
    codebase = ready.check("codeRollup.txt", lambda: read_codebase(project), _size)
    ready.check(BUILD_SCRIPT, lambda: _check_build_script(project))
    ready.settings = ready.check("settings", lambda: load_settings(project, options, environment))
    ready.keys = ready.check("keys", lambda: load_keys(project, environment), _name_keys) or {}
    if ready.settings:
        _check_model(ready, ready.settings, project, environment)
        _check_sandbox(ready, ready.settings, project)
        _check_clean(ready, ready.settings, project)
    prompts = ready.check("system prompts", lambda: load_system_prompts(project.system_prompts))
    if query and codebase and prompts and ready.settings:
        ready.task = Task(prompts, query, codebase, ready.settings.prompt_layout)
        _check_prompt(ready, ready.task, ready.settings)
    ready.check("lock", lambda: _check_lock(project))
    return ready


def check_gitignore(project: Project) -> None:
    """Raise NotSetUpError unless .gitignore has the line /agent-config and, after all its rules, ignores it."""
    try:
        text = (project.root / ".gitignore").read_bytes().decode("utf-8-sig", "replace")
    except FileNotFoundError as error:
        raise NotSetUpError(f".gitignore is missing: create it with the line /{AGENT_CONFIG}") from error
    except OSError as error:
        raise NotSetUpError(f".gitignore cannot be read: {error.strerror}") from error
    lines = {line.removesuffix("\r").rstrip(" ") for line in text.split("\n")}
    if not lines & {f"/{AGENT_CONFIG}", f"/{AGENT_CONFIG}/"}:
        raise NotSetUpError(f".gitignore lacks the line /{AGENT_CONFIG}: add it, so that no API key is committed")
    if not ignored_paths(project, [f"{AGENT_CONFIG}/query.txt"]):
        raise NotSetUpError(f".gitignore has /{AGENT_CONFIG}, but a later rule takes it back: remove that rule")


def _size(text: str) -> str:
    return f"{len(text.encode()):,} bytes"


def _check_nothing_is_tracked(project: Project) -> None:
    if project.git is None:
        return
    tracked = ask_git(["ls-files", "-z", "--", AGENT_CONFIG], project.root)
    names = [os.fsdecode(name) for name in tracked.stdout.split(b"\0") if name]
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise NotSetUpError(
            f"git tracks {shown(names[0])}{more}: git rm -r --cached {AGENT_CONFIG}; a key in it must be replaced"
        )
    if tracked.returncode != 0:
        raise NotSetUpError(f"git ls-files failed: {tracked.stderr.decode('utf-8', 'replace').strip()}")


def _check_build_script(project: Project) -> None:
    if not project.build_script.exists():
        raise NotSetUpError(f"{BUILD_SCRIPT} is missing: create it; it must exit with 0 when the build passes")
    if not project.build_script.is_file():
        raise NotSetUpError(f"{BUILD_SCRIPT} is not a file")


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
    if project.git is None:
        why = "this is no git repository" if find_git() else "git is not installed"
        ready.warnings.append(f"{why}: no git diff to review; the log has each attempt's changes as a diff")
        return
    status = ask_git(["status", "--porcelain", "-z", "--", "."], project.root)
    if not status.stdout:
        return
    if settings.require_clean:
        ready.checks.append(Check("clean tree", "git status is not clean: commit or stash first (--require-clean)"))
    else:
        ready.warnings.append("git status is not clean: the diff will mix your changes with the LLM's")


def _check_prompt(ready: Readiness, task: Task, settings: Settings) -> None:
    prompt = initial_prompt(task)
    ready.check("prompt", lambda: _check_prompt_has_no_key(ready.redactor, prompt), lambda _: _size(prompt.text))
    if ready.choice:
        choice = ready.choice
        ready.check("prompt fits", lambda: _check_prompt_fits(choice, settings, task, prompt))


def _check_prompt_has_no_key(redactor: Redactor, prompt: Prompt) -> None:
    if redactor.reveals_key(prompt.text):
        raise NotSetUpError(
            "the prompt would carry an API key: take it out of the query, the rollup or the own system prompts"
        )


def _check_prompt_fits(choice: ModelChoice, settings: Settings, task: Task, prompt: Prompt) -> None:
    window = context_window(choice, settings)
    tokens = estimate_tokens(prompt.text)
    if window and tokens > window:
        sizes = f"query {len(task.query.encode()):,} bytes, codebase {len(task.codebase.encode()):,} bytes"
        raise NotSetUpError(
            f"the prompt does not fit {choice}: about {tokens:,} tokens, it reads {window:,} ({sizes}): roll up less"
        )


def _check_lock(project: Project) -> None:
    holder = is_locked(project)
    if holder is not None:
        raise NotSetUpError(f"another code-commit runs here (process {holder}): wait for it to end")
    if needs_recovery(project):
        raise NotSetUpError("an interrupted apply has to be repaired: any other code-commit command does it")
