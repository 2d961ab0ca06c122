"""The preflight: everything that must hold before a token is paid for, every failure told at once.

It changes nothing and sends nothing: `code-commit check` prints what it finds, a run starts from it.
"""

import errno
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from code_commit.apply import HALF_CHANGED, is_half_changed, is_locked
from code_commit.build import Sandbox, choose_sandbox
from code_commit.build.command import build_command
from code_commit.changes import RunWarning
from code_commit.errors import BuildError, NotSetUpError, TooLittleMoneyError
from code_commit.exchange import Prompt
from code_commit.files import read_regular_file
from code_commit.llm.keys import ApiKey, Keys, find_secrets, load_keys, require_key
from code_commit.llm.models import (
    check_base_url,
    choose_fallback,
    choose_model,
    context_window,
    doubt_model,
    explain_misfit,
    require_money,
    require_price,
)
from code_commit.llm.vendor import Asked, ModelChoice
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, Project, UnansweredError, read_codebase, read_query
from code_commit.prompts import Task, initial_prompt, load_system_prompts, make_task
from code_commit.protected import watched_from_build
from code_commit.redaction import Redactor
from code_commit.runs.review import TreeState, is_clean, look_at_tree
from code_commit.settings import Settings, load_settings
from code_commit.terminal import TERMINAL, shown
from code_commit.verify import ignored_paths

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadyTree:
    """What a change of the tree needs that no LLM is asked for."""

    settings: Settings
    keys: Mapping[str, ApiKey]
    sandbox: Sandbox | None
    redactor: Redactor
    warnings: Sequence[RunWarning]
    tree: TreeState | None


@dataclass(frozen=True, slots=True)
class Ready(ReadyTree):
    """All that a run needs. `fallback` takes over when `llm` cannot be asked."""

    llm: Asked
    fallback: Asked | None
    base_url: str
    task: Task


class Check(NamedTuple):
    """One line of `code-commit check`: `problem` is None where all is well; `note` is what was found.

    `error` is the problem with all its facts.
    """

    name: str
    problem: str | None = None
    note: str = ""
    error: NotSetUpError | None = None


class RollUp(NamedTuple):
    """Makes the codebase of a run anew and returns it: always, or where the settings want that."""

    make: Callable[[Settings, Redactor], str]
    always: bool


@dataclass(slots=True)
class Findings:
    """What the preflight found: the checks that it made, in their order, and what a run will be warned of."""

    redactor: Redactor
    checks: list[Check] = field(default_factory=list)
    warnings: list[RunWarning] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        return [check.problem for check in self.checks if check.problem is not None]

    def warn(self, *messages: str) -> None:
        self.warnings += [RunWarning("setup", message) for message in messages]

    def refuse(self, name: str, problem: str) -> None:
        self.checks.append(Check(name, problem))

    def ask(self, name: str, question: Callable[[], T], note: Callable[[T], str] = lambda _: "") -> T | None:
        """Ask one question and write its answer down; None where it raised NotSetUpError."""
        try:
            answer = question()
        except NotSetUpError as error:
            self.checks.append(Check(name, str(error), error=error))
            return None
        self.checks.append(Check(name, None, note(answer)))
        return answer


def inspect_project(
    project: Project,
    options: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    task: str | None = None,
    roll_up: RollUp | None = None,
) -> tuple[Findings, Ready | None]:
    """Make every check of the preflight; None stands where one of them found a problem.

    The codebase is made anew, where that is wanted, when nothing else keeps the run from starting.
    """
    findings = _check_ignored(project, environment)
    query = findings.ask("query.txt", lambda: _read_task(project, task), _size)
    findings.ask(BUILD_SCRIPT, lambda: _check_build_script(project, environment, findings.warn))
    settings = _load_settings(findings, project, options, environment)
    found = findings.ask("keys", lambda: load_keys(project, environment), _name_keys)
    keys, choice = Keys() if found is None else found, None
    if settings and (settings.model or found is not None):
        choice = findings.ask("model", lambda: choose_model(settings.model, keys, keys.unfit), str)
    llm, fallback, sandbox, whole, tree = None, None, None, None, None
    if settings and choice:
        llm, fallback = _check_llms(findings, choice, settings, found, project)
    if settings:
        sandbox = _choose_sandbox(findings, settings, project)
        tree = _check_clean(findings, settings, project)
        _check_terminal(findings, settings)
    prompts = findings.ask("system prompts", lambda: load_system_prompts(project.system_prompts))
    findings.ask("lock", lambda: _check_lock(project))
    if roll_up and settings and (roll_up.always or settings.rollup != "file"):
        codebase = None if findings.problems else _make_codebase(findings, settings, roll_up)
    else:
        codebase = findings.ask("codeRollup.txt", lambda: read_codebase(project), _size)
    if query and codebase and prompts and settings:
        whole = make_task(project.root, settings, prompts, query, codebase)
        _check_prompt(findings, initial_prompt(whole), [each for each in (llm, fallback) if each], 0.0)
    if settings and llm and whole and not findings.problems:
        tree_is_ready = (settings, keys, sandbox, findings.redactor, findings.warnings, tree)
        return findings, Ready(*tree_is_ready, llm, fallback, check_base_url(llm.choice, settings), whole)
    return findings, None


def _check_llms(
    findings: Findings, choice: ModelChoice, settings: Settings, keys: Keys | None, project: Project
) -> tuple[Asked, Asked | None]:
    """Check the LLM of the run, its fallback, None where there is none, and the one that chooses files."""
    llm = _check_llm(findings, choice, settings, keys, project)
    fallback = _check_fallback(findings, choice, settings, keys, project) if settings.fallback_model else None
    if settings.rollup == "select" and settings.select_model:
        selector = (settings, choice, keys or Keys())
        findings.ask("select model", lambda: choose_selector(*selector), lambda asked: str(asked.choice))
    if not settings.model:
        findings.warn(f"no model named: {choice}, the first that has a key")
    return llm, fallback


def _check_llm(
    findings: Findings, choice: ModelChoice, settings: Settings, keys: Keys | None, project: Project
) -> Asked:
    """Check all that asking this LLM needs; without `keys`, none of which could be read, its key is not asked for."""
    key = None
    if keys is not None:
        key = findings.ask(
            "key", lambda: require_key(choice.provider, keys), lambda found: found.source if found else "none needed"
        )
    findings.ask("base URL", lambda: check_base_url(choice, settings), str)
    if choice.provider == "replay" and not (project.root / choice.name).is_dir():
        findings.refuse("replay", f"there is no folder {shown(choice.name)} with recorded responses")
    if settings.max_cost is not None and choice.provider != "replay":
        findings.ask("max cost", lambda: require_price(choice, settings))
    findings.warn(*doubt_model(choice))
    return Asked(choice, key, settings)


def _check_fallback(
    findings: Findings, choice: ModelChoice, settings: Settings, keys: Keys | None, project: Project
) -> Asked | None:
    """Check the fallback like the LLM; its problems name its own options."""
    first = len(findings.checks)
    fallback = findings.ask("model", lambda: choose_fallback(choice, settings), lambda found: str(found and found[0]))
    asked = _check_llm(findings, *fallback, keys, project) if fallback else None
    findings.checks[first:] = [
        check._replace(
            name=f"fallback {check.name}",
            problem=check.problem and re.sub(r"--(model|base-url)\b", r"--fallback-\1", check.problem),
        )
        for check in findings.checks[first:]
    ]
    return asked


def choose_selector(settings: Settings, own: ModelChoice, keys: Keys) -> Asked:
    """Return the LLM that chooses files: some settings are those of the run's own model alone.

    Raises NotSetUpError.
    """
    choice = choose_model(settings.select_model, keys, keys.unfit) if settings.select_model else own
    if choice.provider != own.provider:
        settings = settings._replace(base_url="")
    if choice != own:
        settings = settings._replace(context_window=None, fallback_model="")
    check_base_url(choice, settings)
    if settings.max_cost is not None and choice.provider != "replay":
        require_price(choice, settings)
    return Asked(choice, require_key(choice.provider, keys), settings)


def check_tree(project: Project, options: Mapping[str, Any], *, build: bool) -> ReadyTree:
    """Return what a change of the tree needs, with or without a build. Raises NotSetUpError with every problem."""
    findings = _check_ignored(project, os.environ)
    settings = _load_settings(findings, project, options, os.environ)
    keys = findings.ask("keys", lambda: load_keys(project)) or Keys()
    sandbox, tree = None, None
    if build:
        findings.ask(BUILD_SCRIPT, lambda: _check_build_script(project, os.environ, findings.warn))
    if settings:
        sandbox = _choose_sandbox(findings, settings, project) if build else None
        tree = _check_clean(findings, settings, project)
    findings.ask("lock", lambda: _check_lock(project))
    ready = ReadyTree(settings, keys, sandbox, findings.redactor, findings.warnings, tree) if settings else None
    return require_ready(project, findings, ready)


def require_ready(project: Project, findings: Findings, ready: T | None) -> T:
    """Return what is ready. Raises NotSetUpError with every problem."""
    if ready is None or findings.problems:
        only = [check.error for check in findings.checks if check.problem is not None]
        if len(only) == 1 and isinstance(only[0], TooLittleMoneyError):
            raise only[0]
        problems = "\n".join(findings.problems).split("\n")
        if len(problems) > 1:
            problems = [f"{len(problems)} problems to solve:", *(f"- {problem}" for problem in problems)]
        raise NotSetUpError("\n".join(problems + hint_at_init(project)))
    return ready


def hint_at_init(project: Project) -> list[str]:
    """Return what helps a project that nobody prepared."""
    return [] if project.agent_config.exists() else ["code-commit init writes what is missing"]


def _make_codebase(findings: Findings, settings: Settings, roll_up: RollUp) -> str | None:
    question, note = partial(roll_up.make, settings, findings.redactor), ", made anew by each run"
    return findings.ask("codeRollup.txt", question, lambda text: _size(text) + note)


def _check_ignored(project: Project, environment: Mapping[str, str]) -> Findings:
    findings = Findings(Redactor(find_secrets(project, environment)))
    findings.ask(".gitignore", lambda: check_ignore_line(project))
    if own := ", ".join(shown(os.path.relpath(path, project.root)) for path in watched_from_build(project)):
        findings.warn(f"code-commit runs from {own}, which must not change: {_ELSEWHERE}")
    note = "" if project.git else "no repository"
    findings.ask("git", lambda: _check_nothing_is_tracked(project), lambda _: note)
    return findings


_ELSEWHERE = "install it outside the project, by pipx or uv tool"


def _load_settings(
    findings: Findings, project: Project, options: Mapping[str, Any], environment: Mapping[str, str]
) -> Settings | None:
    """Load the settings; they tell a chat key from a dummy, which no prompt or file is refused for."""
    settings = findings.ask("settings", lambda: load_settings(project, options, environment))
    if settings and (settings.base_url or settings.fallback_base_url):
        findings.redactor = Redactor(find_secrets(project, environment, settings.base_url, settings.fallback_base_url))
    return settings


def _read_task(project: Project, given: str | None) -> str:
    """Return the task, that of query.txt where none is given. Raises NotSetUpError."""
    if given is None:
        return read_query(project)
    if not given.strip() or given.encode("utf-8", "ignore").decode() != given:
        raise NotSetUpError("the task is empty, or no UTF-8 text: say after -m what is to be done")
    return given


def check_ignore_line(project: Project) -> None:
    """Raise NotSetUpError unless .gitignore has the line /agent-config and, after all its rules, ignores it."""
    try:
        text = (project.root / ".gitignore").read_bytes().decode("utf-8-sig", "replace")
    except FileNotFoundError as error:
        message = f".gitignore is missing: create it with the line /{AGENT_CONFIG}, and commit it"
        raise NotSetUpError(message) from error
    except OSError as error:
        raise NotSetUpError(f".gitignore cannot be read: {error.strerror}") from error
    lines = {line.removesuffix("\r").rstrip(" ") for line in text.split("\n")}
    if not lines & {f"/{AGENT_CONFIG}", f"/{AGENT_CONFIG}/"}:
        raise NotSetUpError(
            f".gitignore lacks the line /{AGENT_CONFIG}: add and commit it, so that no API key is committed"
        )
    if not ignored_paths(project, [f"{AGENT_CONFIG}/query.txt"]):
        raise NotSetUpError(f".gitignore has /{AGENT_CONFIG}, but a later rule takes it back: remove that rule")


def _check_nothing_is_tracked(project: Project) -> None:
    """Raise NotSetUpError where git tracks a file of agent-config, or does not say what it tracks."""
    try:
        names = sorted(path for path in project.index().files if path.split("/")[0] == AGENT_CONFIG)
    except UnansweredError as error:
        raise NotSetUpError(str(error)) from error
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise NotSetUpError(
            f"git tracks {shown(names[0])}{more}: git rm -r --cached {AGENT_CONFIG}; a key in it must be replaced"
        )


def _check_build_script(project: Project, environment: Mapping[str, str], warn: Callable[[str], object]) -> None:
    """Raise NotSetUpError for a build.sh that cannot be started, or that nobody has written yet."""
    try:
        build_command(project, environment, warn)
        if _UNWRITTEN in read_regular_file(project.build_script):
            raise NotSetUpError(f"{BUILD_SCRIPT} is still the example: put your build and test commands into it")
    except BuildError as error:
        raise NotSetUpError(str(error)) from error
    except OSError as error:
        raise NotSetUpError(f"{BUILD_SCRIPT} cannot be read: {error.strerror}") from error


_UNWRITTEN = b"build.sh: put your build and test commands here"
"""What build.sh.example prints before it fails: as it stands no LLM could make it pass."""


def _name_keys(keys: Keys) -> str:
    fit = ", ".join(f"{key.provider} from {key.source}" for key in keys.values()) or "none"
    return "; ".join([fit, *keys.unfit.values()])


def _choose_sandbox(findings: Findings, settings: Settings, project: Project) -> Sandbox | None:
    chosen = findings.ask(
        "sandbox",
        lambda: choose_sandbox(settings.sandbox, project, settings),
        lambda found: found[0].mode if found[0] else "none",
    )
    sandbox, warning = chosen or (None, None)
    findings.warn(*filter(None, [warning]))
    return sandbox


def _check_terminal(findings: Findings, settings: Settings) -> None:
    """Refuse a run that is to ask on the terminal, where there is none."""
    if not settings.approve or settings.dry_run:
        return
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        findings.refuse("terminal", "approve asks on the terminal, there is none: start it in one, or use --dry-run")


def _check_clean(findings: Findings, settings: Settings, project: Project) -> TreeState | None:
    """Return the tree as git sees it before the run."""
    tree, doubt = None, "this is no git repository: no git diff to review; the log has each attempt's changes as a diff"
    try:
        if tree := look_at_tree(project):
            is_doubtful = not is_clean(project, tree)
            doubt = "git status is not clean: the diff will mix your changes with the LLM's" if is_doubtful else ""
    except UnansweredError as error:
        tree, doubt = None, f"{error}; put that right, or there may be no diff to review"
    if doubt and settings.require_clean:
        findings.refuse("clean tree", f"{doubt}; --require-clean wants a clean one: commit or stash first")
    elif doubt:
        findings.warn(doubt)
    return tree


def _check_prompt(findings: Findings, prompt: Prompt, llms: Sequence[Asked], spent: float) -> None:
    redactor = findings.redactor
    findings.ask("prompt", lambda: check_prompt_has_no_key(redactor, prompt), lambda _: _size(prompt.text))
    misfits = [misfit for llm in llms if (misfit := explain_misfit(llm.choice, llm.settings, prompt))]
    asked = [llm for llm in llms if llm.choice.provider != "replay"]
    unknown = [str(llm.choice) for llm in asked if context_window(llm.choice, llm.settings) is None]
    for llm in llms[:1]:
        if llm.settings.max_cost is not None and llm.choice.provider != "replay":
            left = llm.settings.max_cost - spent
            findings.ask("max cost", partial(require_money, llm.choice, llm.settings, prompt, left))
    note = f"it is not known how much {' and '.join(unknown)} reads" if unknown and not misfits else ""
    findings.checks += [Check("prompt fits", "\n".join(misfits) or None, note)] if llms else []


def _size(text: str) -> str:
    return f"{len(text.encode()):,} bytes"


def check_prompt_has_no_key(redactor: Redactor, prompt: Prompt) -> None:
    if redactor.reveals_key(prompt.text):
        raise NotSetUpError(
            "the prompt would carry an API key: take it out of the query, the rollup or the own system prompts"
        )


def _check_lock(project: Project) -> None:
    """Raise NotSetUpError when a run could not take the lock, or has to repair something first."""
    if project.agent_config.is_dir() and not os.access(project.agent_config, os.W_OK | os.X_OK):
        read_only = os.statvfs(project.agent_config).f_flag & os.ST_RDONLY
        why = os.strerror(errno.EROFS if read_only else errno.EACCES)
        raise NotSetUpError(f"{AGENT_CONFIG} cannot be written to: {why}; make it yours to write")
    holder = is_locked(project)
    if holder is not None:
        raise NotSetUpError(f"another code-commit runs here (process {holder}): wait for it to end")
    if is_half_changed(project):
        raise NotSetUpError(HALF_CHANGED)
