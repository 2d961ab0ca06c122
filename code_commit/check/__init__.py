"""The preflight: everything that must hold before a token is paid for, every failure told at once.

It changes nothing and sends nothing: `code-commit check` prints what it finds, a run starts from it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from code_commit.build import Sandbox, choose_sandbox
from code_commit.changes import RunWarning
from code_commit.check.report import Check, Report, require_no_problem
from code_commit.check.tree import (
    check_build_script,
    check_clean,
    check_ignore_line,
    check_lock,
    check_nothing_is_tracked,
    check_terminal,
    read_task,
)
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase, find_stale_files, read_codebase
from code_commit.errors import NotSetUpError
from code_commit.exchange import Prompt
from code_commit.llm.keys import Keys, choose_selector, find_secrets, load_keys, require_key
from code_commit.llm.models import (
    UNLIMITED,
    check_base_url,
    choose_fallback,
    choose_model,
    context_window,
    doubt_model,
    explain_misfit,
    longest_prompt,
    require_money,
    require_price,
)
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN, Asked, ModelChoice, estimate_tokens
from code_commit.paths.protected import watched_from_build
from code_commit.project import BUILD_SCRIPT, Project, read_text
from code_commit.prompts.layout import SystemPrompts, Task, lay_out, load_system_prompts, make_task
from code_commit.redaction import Redactor
from code_commit.runs.record import TreeBefore
from code_commit.runs.review import TreeState
from code_commit.runs.words import count
from code_commit.settings import Settings, load_settings
from code_commit.terminal import shown

_ELSEWHERE = "install it outside the project, by pipx or uv tool"


@dataclass(frozen=True, slots=True)
class CheckedTree:
    """What a change of the tree needs that no LLM is asked for. `tree` and `before` are None where git told nothing."""

    settings: Settings
    environment: Mapping[str, str]
    keys: Keys
    sandbox: Sandbox | None
    redactor: Redactor
    warnings: list[RunWarning]
    tree: TreeState | None
    before: TreeBefore | None


@dataclass(frozen=True, slots=True)
class Checked(CheckedTree):
    """All that a run needs but its codebase. `fallback` takes over when `llm` cannot be asked; `query` is the task."""

    llm: Asked
    fallback: Asked | None
    prompts: SystemPrompts
    query: str

    def task(self, project: Project, codebase: Codebase) -> Task:
        """Return the task of a run with this codebase."""
        tokens = longest_prompt(self.llm.choice, self.settings)
        task = make_task(project.root, self.settings, self.prompts, self.query, codebase)
        return task._replace(longest=int(tokens * CHARACTERS_PER_TOKEN) if tokens else None)


class Given(NamedTuple):
    """What a run is given in place of files of agent-config: the task, the codebase, None where it takes theirs.

    `fresh` says that the codebase is to be made again, as settings may too. A run that goes on has `begun`: what its
    money no longer pays for ends it as any other.
    `environment` is where keys and settings are looked for, and what the build gets.
    """

    query: str | None = None
    codebase: Codebase | None = None
    fresh: bool = False
    begun: bool = False
    environment: Mapping[str, str] = os.environ


NOTHING_GIVEN = Given()


def take_task(options: dict[str, Any], project: Project) -> Given:
    """Take the task out of a command's options; `-m` is for a fresh codebase, but where a script of the project's
    own has written one.

    Raises NotSetUpError for a file that cannot be read.
    """
    task, file = options.pop("task", None), options.pop("query", None)
    query = read_text(Path(file), "write the task into it", file) if file else task
    return Given(query, fresh=task is not None and not project.has_own_rollup)


def request_of(settings: Settings, query: str, *, fresh: bool) -> CodebaseRequest | None:
    """Return which codebase a run of this task makes first, None where it takes codeRollup.txt as it is."""
    if settings.rollup == "file" and not fresh:
        return None
    fit = ALL_THAT_IS_LEFT if settings.rollup in ("fit", "select") else None
    return CodebaseRequest(fit=fit, select=settings.rollup == "select", query=query)


ALL_THAT_IS_LEFT = 0
BY_NUMBER = "say how many tokens, as in code-commit rollup --fit 100000, and take that with --rollup file"


def inspect_project(
    project: Project, options: Mapping[str, Any], given: Given = NOTHING_GIVEN
) -> tuple[Report, Checked | None, Codebase | None]:
    """Make every check of the preflight: what it found, what a run starts from, and the codebase where it is there.

    None stands where a check found a problem, and for a codebase that is to be made first.
    """
    environment = given.environment
    report = _check_ignored(project, environment)
    query = report.ask("query.txt" if given.query is None else "task", lambda: read_task(project, given.query), _size)
    report.ask(BUILD_SCRIPT, lambda: check_build_script(project, environment, partial(report.warn, kind="build")))
    settings = _load_settings(report, project, options, environment)
    found = report.ask("keys", lambda: load_keys(project, environment), _name_keys)
    keys, choice = Keys() if found is None else found, None
    if settings and (settings.model or found is not None):
        choice = report.ask("model", lambda: choose_model(settings.model, keys, keys.unfit), str)
    llm, fallback, sandbox, tree, before, codebase, checked = None, None, None, None, None, None, None
    if settings and choice:
        llm, fallback = _check_llms(report, choice, settings, found, project)
    if settings:
        sandbox = _choose_sandbox(report, settings, project)
        tree, before = check_clean(report, settings, project)
        check_terminal(report, settings)
    prompts = report.ask("system prompts", lambda: load_system_prompts(project.system_prompts))
    report.ask("lock", lambda: check_lock(project))
    if settings and not given.codebase and request_of(settings, "", fresh=given.fresh):
        made_first = True
    else:
        made_first = False
        codebase = report.ask("codeRollup.txt", lambda: given.codebase or read_codebase(project), _size_of)
    if settings and llm and prompts and query:
        of_tree = (settings, environment, keys, sandbox, report.redactor, report.warnings, tree, before)
        checked = Checked(*of_tree, llm, fallback, prompts, query)
        if codebase:
            check_prompt(report, project, checked, codebase, begun=given.begun)
    elif settings and prompts and query and codebase:
        prompt = lay_out(make_task(project.root, settings, prompts, query, codebase))
        report.ask("prompt", lambda: check_prompt_has_no_key(report.redactor, prompt), lambda _: _size(prompt.text))
    if report.problems or not (codebase or made_first):
        return report, None, None
    return report, checked, codebase


def check_run(
    project: Project, options: Mapping[str, Any], given: Given = NOTHING_GIVEN
) -> tuple[Checked, Codebase | None]:
    """Return what a run starts from, and its codebase where that is not made first. Raises NotSetUpError."""
    report, checked, codebase = inspect_project(project, options, given)
    require_no_problem(project, report)
    if checked is None:
        raise NotSetUpError("no LLM can be asked: name a --model")
    return checked, codebase


def require_fit(project: Project, checked: Checked, codebase: Codebase, *, begun: bool) -> None:
    """Raise NotSetUpError unless the first prompt of a run with this codebase can be sent."""
    report = Report(checked.redactor)
    check_prompt(report, project, checked, codebase, begun=begun)
    require_no_problem(project, report)


def check_prompt(
    report: Report, project: Project, checked: Checked, codebase: Codebase, *, begun: bool = False
) -> None:
    """Check the first prompt of a run with this codebase: that no key is in it, that it fits, that the money does.

    Of a run that has `begun` the money is not checked: something was paid for.
    """
    prompt = lay_out(checked.task(project, codebase))
    redactor, llms = report.redactor, [llm for llm in (checked.llm, checked.fallback) if llm]
    report.ask("prompt", lambda: check_prompt_has_no_key(redactor, prompt), lambda _: _size(prompt.text))
    misfits = [misfit for llm in llms if (misfit := explain_misfit(llm.choice, llm.settings, prompt))]
    asked = [llm for llm in llms if llm.choice.provider != "replay"]
    unknown = [str(llm.choice) for llm in asked if context_window(llm.choice, llm.settings) is None]
    if checked.llm in asked and checked.settings.max_cost is not None and not begun:
        report.ask("max cost", partial(require_money, checked.llm.choice, checked.llm.settings, prompt))
    told = f"it is not known how much {' and '.join(unknown)} reads: context_window in config.toml can tell"
    note = told if unknown and not misfits else ""
    report.checks.append(Check("prompt fits", "\n".join(misfits) or None, note))


def tokens_left(project: Project, choice: ModelChoice, settings: Settings, request: CodebaseRequest) -> int:
    """Return how many tokens the codebase may have that is asked for, where no number of them is given.

    That is what the model reads, less its answer, the rest of the prompt, and what a repair adds: the build's output
    and the changed files. Raises NotSetUpError where it is not known how much the model reads.
    """
    longest = longest_prompt(choice, settings) or (UNLIMITED if request.select else 0)
    if not longest:
        raise NotSetUpError(
            f"it is not known how much {choice} reads: set context_window in config.toml, or {BY_NUMBER}"
        )
    edits, prompts = settings._replace(answer_format="edits"), load_system_prompts(project.system_prompts)
    prompt = lay_out(make_task(project.root, edits, prompts, request.query, Codebase([""])))
    repair = longest // 4 if settings.max_repairs else 0
    return max(longest - repair - estimate_tokens(prompt.text), 1)


def stale_warnings(project: Project, codebase: Codebase) -> list[RunWarning]:
    """Return what a run with codeRollup.txt as it stands is warned of."""
    return [RunWarning("codebase", message) for message in find_stale_files(project, codebase)]


def _check_llms(
    report: Report, choice: ModelChoice, settings: Settings, keys: Keys | None, project: Project
) -> tuple[Asked, Asked | None]:
    """Check the LLM of the run, its fallback, None where there is none, and the one that chooses files."""
    llm = _check_llm(report, (choice, settings), keys, project)
    fallback = _check_fallback(report, choice, settings, keys, project) if settings.fallback_model else None
    if settings.rollup == "select" and settings.select_model:
        about = (settings, choice, keys or Keys())
        report.ask("select model", lambda: choose_selector(*about), lambda asked: str(asked.choice))
    if not settings.model:
        report.warn(f"no model named: {choice}, the first that has a key")
    return llm, fallback


def _check_llm(
    report: Report, llm: tuple[ModelChoice, Settings], keys: Keys | None, project: Project, role: str = ""
) -> Asked:
    """Check all that asking this LLM needs; without `keys`, none of which could be read, its key is not asked for.

    `role` stands before the names of its checks and options: `fallback`.
    """
    choice, settings = llm
    lead = f"{role} " if role else ""
    key = None
    if keys is not None:
        source = lambda found: found.source if found else "none needed"  # noqa: E731 - a note
        key = report.ask(f"{lead}key", lambda: require_key(choice.provider, keys), source)
    report.ask(f"{lead}base URL", lambda: check_base_url(choice, settings, role), str)
    if choice.provider == "replay" and not (project.root / choice.name).is_dir():
        report.refuse(f"{lead}replay", f"there is no folder {shown(choice.name)} with recorded responses")
    if settings.max_cost is not None and choice.provider != "replay":
        report.ask(f"{lead}max cost", lambda: require_price(choice, settings))
    report.warn(*doubt_model(choice))
    return Asked(choice, key, settings)


def _check_fallback(
    report: Report, choice: ModelChoice, settings: Settings, keys: Keys | None, project: Project
) -> Asked | None:
    """Check the fallback like the LLM."""
    question = partial(choose_fallback, choice, settings)
    fallback = report.ask("fallback model", question, lambda found: str(found and found[0]))
    return _check_llm(report, fallback, keys, project, "fallback") if fallback else None


def check_tree(project: Project, options: Mapping[str, Any], *, build: bool) -> CheckedTree:
    """Return what a change of the tree needs, with or without a build. Raises NotSetUpError with every problem."""
    report = _check_ignored(project, os.environ)
    settings = _load_settings(report, project, options, os.environ)
    keys = report.ask("keys", lambda: load_keys(project)) or Keys()
    sandbox, tree, before = None, None, None
    if build:
        report.ask(BUILD_SCRIPT, lambda: check_build_script(project, os.environ, partial(report.warn, kind="build")))
    if settings:
        sandbox = _choose_sandbox(report, settings, project) if build else None
        tree, before = check_clean(report, settings, project)
    report.ask("lock", lambda: check_lock(project))
    require_no_problem(project, report)
    if settings is None:
        raise NotSetUpError("the settings cannot be used")
    return CheckedTree(settings, os.environ, keys, sandbox, report.redactor, report.warnings, tree, before)


def _check_ignored(project: Project, environment: Mapping[str, str]) -> Report:
    report = Report(Redactor(find_secrets(project, environment)))
    report.ask(".gitignore", lambda: check_ignore_line(project))
    if own := ", ".join(shown(os.path.relpath(path, project.root)) for path in watched_from_build(project)):
        report.warn(f"code-commit runs from {own}, which must not change: {_ELSEWHERE}")
    note = "" if project.git else "no repository"
    report.ask("git", lambda: check_nothing_is_tracked(project), lambda _: note)
    return report


def _load_settings(
    report: Report, project: Project, options: Mapping[str, Any], environment: Mapping[str, str]
) -> Settings | None:
    """Load the settings; they tell a chat key from a dummy, which no prompt or file is refused for."""
    settings = report.ask("settings", lambda: load_settings(project, options, environment))
    if settings and (settings.base_url or settings.fallback_base_url):
        report.redactor = Redactor(find_secrets(project, environment, settings.base_url, settings.fallback_base_url))
    return settings


def _name_keys(keys: Keys) -> str:
    fit = ", ".join(f"{key.provider} from {key.source}" for key in keys.values()) or "none"
    return "; ".join([fit, *keys.unfit.values()])


def _choose_sandbox(report: Report, settings: Settings, project: Project) -> Sandbox | None:
    chosen = report.ask(
        "sandbox",
        lambda: choose_sandbox(settings.sandbox, project, settings),
        lambda found: found[0].mode if found[0] else "none",
    )
    sandbox, warning = chosen or (None, None)
    report.warn(*filter(None, [warning]))
    return sandbox


def _size(text: str) -> str:
    return count(len(text.encode()), "byte")


def _size_of(codebase: Codebase) -> str:
    return count(codebase.bytes, "byte")


def check_prompt_has_no_key(redactor: Redactor, prompt: Prompt) -> None:
    if redactor.reveals_key(prompt.text):
        raise NotSetUpError(
            "the prompt would carry an API key: take it out of the query, the rollup or the own system prompts"
        )
