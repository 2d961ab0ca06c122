"""The plan of a run: everything that must hold before a token is paid for. It changes nothing and sends nothing."""

import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from code_commit.build import Sandbox, choose_sandbox
from code_commit.check.codebase import BY_NUMBER, check_prompt, needs_room, request_of, size_of, with_room
from code_commit.check.plan import TASK_OF_REPAIR, Report, RunInputs, RunPlan
from code_commit.check.tree import (
    check_agent_config,
    check_build_script,
    check_clean,
    check_ignore_line,
    check_lock,
    check_nothing_is_tracked,
    check_patterns,
    check_terminal,
    note_unfinished,
    read_task,
)
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import read_codebase
from code_commit.errors import TASK, Message, Named, NoKeyError, NotSetUpError, Word, as_option, as_setting
from code_commit.files import is_folder
from code_commit.git import UnansweredError
from code_commit.llm.addresses import require_address
from code_commit.llm.certificates import VARIABLES, require_authorities, require_certificate
from code_commit.llm.keys import Keys, choose_selector, find_secrets, key_of, load_keys
from code_commit.llm.local import find_server, with_window
from code_commit.llm.models import bound_base_url, check_base_url, choose_fallback, choose_model, warn_of_model
from code_commit.llm.money import require_price
from code_commit.llm.programs import words_of
from code_commit.llm.proxies import proxy_of
from code_commit.llm.reach import reach_of, require_place
from code_commit.llm.vendor import LlmConfig, ModelChoice
from code_commit.paths.protected import watched_from_build
from code_commit.project import (
    AGENT_CONFIG,
    BUILD_SCRIPT,
    Project,
    find_user_folder,
    read_stream,
    read_stream_ends,
    read_text,
    require_text,
)
from code_commit.prompts.layout import load_system_prompts, warn_of_overrides
from code_commit.redaction import Redactor
from code_commit.runs.words import count
from code_commit.settings import Options, Settings
from code_commit.sources import explain_overruled, load_settings
from code_commit.terminal import shown

__all__ = ["RunInputs", "RunPlan", "inputs_of", "inspect_run", "plan_run", "repair_inputs_of"]

_STANDARD_INPUT = "-"
_ELSEWHERE = "install it outside the project, with pipx or uv tool"


def plan_run(project: Project, options: Options, inputs: RunInputs) -> RunPlan:
    """Return the plan of a run. Raises NotSetUpError with every problem.

    A `repair` needs a key only where its first build fails: a missing one is the plan's `lack`.
    """
    report = inspect_run(project, options, inputs._replace(starts=inputs.is_main))
    if report.plan and inputs.excluded:
        settings = report.plan.settings
        exclude = (*settings.rollup_exclude, inputs.excluded)
        report.plan = report.plan._replace(settings=settings._replace(rollup_exclude=exclude))
    try:
        report.require_no_problem(project)
    except NotSetUpError as error:
        if inputs.command == "repair" and report.plan and all(isinstance(each, NoKeyError) for each in report.errors):
            return report.plan._replace(lack=error)
        raise
    if report.plan is None:
        raise NotSetUpError("the settings cannot be used")
    return report.plan


def inputs_of(project: Project, task: str | None, file: str | None) -> RunInputs:
    """Return the inputs of a run with the task of `-m` or of a file; `-m` makes the codebase anew, if no script does.

    `-` stands for standard input. Raises NotSetUpError.
    """
    if _STANDARD_INPUT in (task, file):
        query: str | None = _read_task_given()
    else:
        query = read_text(Path(file), "write the task into it", file) if file else task
    return RunInputs(query=query, fresh=task is not None and not project.has_own_rollup)


def repair_inputs_of(project: Project, words: str | None, output: str | bytes | None) -> RunInputs:
    """Return the inputs of a repair: the words of `-m` on the failure, and a failed build's output.

    `output` is bytes, or the name of a file that holds it; `-` stands for standard input. Raises NotSetUpError.
    """
    if words == _STANDARD_INPUT == output:
        raise NotSetUpError("-m - and --output - both read standard input: only one of them can")
    query = _read_task_given() if words == _STANDARD_INPUT else words
    given = _read_output(output) if isinstance(output, str) else output
    excluded = _pattern_of(project, output) if isinstance(output, str) else ""
    if given is not None and not given.strip():
        raise NotSetUpError("the build output that was given is empty: give what the build printed, or omit --output")
    fresh = not project.has_own_rollup
    query = TASK_OF_REPAIR if query is None else query
    return RunInputs(command="repair", query=query, given=given, excluded=excluded, fresh=fresh)


def _pattern_of(project: Project, file: str) -> str:
    """Return a pattern that leaves a file of the folder out of the codebase; "" where it is of the project."""
    path = os.path.relpath(os.path.realpath(file), project.root)
    with suppress(UnansweredError):
        if path.startswith("../") or path in project.index().files or not project.has(path):
            return ""
    return "/" + re.sub(r"([*?\[\]\\!# ])", r"\\\1", path)


def _read_output(source: str) -> bytes:
    if source == _STANDARD_INPUT:
        way = ("or name the file that contains it",)
        return _read_standard_input("the output of a build on standard input", way, ends_alone=True)
    if not source:
        raise NotSetUpError("--output is empty: name the file of a build's output, or omit the option")
    try:
        with open(source, "rb") as file:  # noqa: PTH123 - as the user names it
            return read_stream_ends(file)
    except OSError as error:
        advice = "name the file of a build's output, or - for standard input"
        raise NotSetUpError(f"{shown(source)} cannot be read: {error.strerror}; {advice}") from error


def _read_task_given() -> str:
    """Return the task on standard input. Raises NotSetUpError."""
    name = "the task on standard input"
    return require_text(
        _read_standard_input(name, ("or give it with ", TASK)), name, ("pipe it in, or give it with ", TASK)
    )


def _read_standard_input(name: str, advice: Message, *, ends_alone: bool = False) -> bytes:
    """Return standard input. Raises NotSetUpError, also for a terminal: a run waits for no user."""
    if sys.stdin.isatty():
        raise NotSetUpError(f"{name} would have to be typed: pipe it in, ", *advice)
    try:
        return read_stream_ends(sys.stdin.buffer) if ends_alone else read_stream(sys.stdin.buffer, name)
    except OSError as error:
        raise NotSetUpError(f"{name} cannot be read: {error.strerror}") from error


def inspect_run(project: Project, options: Options, inputs: RunInputs, word: Word = as_option) -> Report:
    """Run every check that the command needs and return the report. Set its plan only if all parts could be made."""
    environment, needs = inputs.environment, inputs.needs
    report = Report(Redactor(find_secrets(project, environment)), word)
    try:
        check_agent_config(project)
    except NotSetUpError as error:
        report.refuse(AGENT_CONFIG, *error.message)
        return report
    if "tree" in needs:
        _check_ignored(report, project)
        if not inputs.resumed:
            note_unfinished(report, project)
    query: str | None = ""
    if "query" in needs:
        name = "query.txt" if inputs.query is None else "task"
        query = report.ask(name, lambda: read_task(project, inputs.query, inputs.command), size_of)
    if "build" in needs:
        warn = partial(report.warn, kind="build")
        report.ask(BUILD_SCRIPT, lambda: check_build_script(project, environment, warn))
    if settings := _load_settings(report, project, options, inputs):
        _plan_with(report, project, inputs, settings, query)
        return report
    if "tree" in needs:
        report.ask("keys", lambda: load_keys(project, environment), _name_keys)
        report.ask("lock", lambda: check_lock(project))
    return report


def _plan_with(report: Report, project: Project, inputs: RunInputs, settings: Settings, query: str | None) -> None:
    """Make the checks that depend on the settings, and set the report's plan where its parts are there."""
    needs, request = inputs.needs, request_of(inputs, settings, query or "")
    if not inputs.resumed:  # its answers were judged by them
        check_patterns(report, settings, project)
    keys: Keys | None = Keys()
    if "tree" in needs or needs_room(request):
        keys = report.ask("keys", lambda: load_keys(project, inputs.environment), _name_keys)
    llm = _check_llms(report, project, settings, keys, inputs) if "llm" in needs or needs_room(request) else None
    llm = llm and _with_windows(report, llm, inputs)
    sandbox = _choose_sandbox(report, settings, project) if "build" in needs else None
    tree = check_clean(report, settings, project, is_resumed=inputs.resumes_run) if "tree" in needs else None
    if "llm" in needs:
        check_terminal(report, settings)
    prompts, codebase = None, inputs.codebase
    if "prompts" in needs:
        prompts = report.ask("system prompts", lambda: load_system_prompts(project.system_prompts))
        report.warn(*warn_of_overrides(project.system_prompts))
    if "tree" in needs:
        report.ask("lock", lambda: check_lock(project))
    if request and needs_room(request):
        request = _with_room(report, project, llm, request) if llm and query is not None else None
    elif request is None and codebase is None and "prompts" in needs:
        codebase = report.ask("codeRollup.txt", lambda: read_codebase(project), lambda read: count(read.bytes, "byte"))
    if query is None or ("prompts" in needs and prompts is None):
        return
    report.plan = RunPlan(
        project=project,
        inputs=inputs,
        settings=settings,
        redactor=report.redactor,
        keys=Keys() if keys is None else keys,
        asked=llm,
        sandbox=sandbox,
        tree=tree,
        prompts=prompts,
        query=query,
        request=request,
        codebase=codebase,
        warnings=tuple(report.warnings),
    )
    if codebase and prompts:
        check_prompt(report, report.plan, codebase)


def find_llm_problems(project: Project, settings: Settings, keys: Keys | None) -> list[str]:
    """Return what keeps a run from asking the LLMs of these settings, but for keys and recorded responses.

    Nothing is asked. Without `keys` (None) they are not known here.
    """
    report = Report(Redactor([]), as_setting)
    _check_llms(report, project, settings, keys, RunInputs())
    failed = (check for check in report.checks if check.problem and not isinstance(check.error, NoKeyError))
    return [str(check.problem) for check in failed if not check.name.endswith("replay")]  # they may come with the tree


def _with_windows(report: Report, llm: LlmConfig, inputs: RunInputs) -> LlmConfig:
    """Return the LLM and its fallback with the windows that servers of this machine report, if nothing is wrong yet."""
    if report.problems:
        return llm
    ask = with_window if inputs.starts else partial(with_window, warn=partial(report.warn, kind="server"))
    return ask(llm._replace(fallback=llm.fallback and ask(llm.fallback)))


def _with_room(report: Report, project: Project, llm: LlmConfig, request: CodebaseRequest) -> CodebaseRequest | None:
    try:
        return with_room(project, llm, request)
    except NotSetUpError as error:
        report.refuse("codeRollup.txt", *error.message)
        return None


def _check_llms(
    report: Report, project: Project, settings: Settings, keys: Keys | None, inputs: RunInputs
) -> LlmConfig | None:
    """Return the LLM of the run with its fallback, both checked; where none is asked, only the model is checked."""
    if not settings.model and keys is None:
        return None
    known = Keys() if keys is None else keys  # one without a key may have the reasons why
    choice = report.ask("model", lambda: _choose_model(settings, known, inputs), str)
    error = report.checks[-1].error
    if isinstance(error, NoKeyError) and not error.provider and inputs.starts:
        report.advice = find_server()
    if choice is None:
        return None
    check = partial(_check_llm, report, keys=keys, project=project) if "llm" in inputs.needs else lambda llm, **_: llm
    llm = check(LlmConfig(choice, None, settings))
    if settings.fallback_model:
        found = report.ask(
            "fallback model", partial(choose_fallback, choice, settings), lambda llm: str(llm and llm.choice)
        )
        llm = llm._replace(fallback=found and check(found, role="fallback"))
    if "llm" not in inputs.needs:
        return llm
    if settings.select_model:
        _check_selector(report, partial(choose_selector, settings, llm, known, project.root), settings, inputs)
    if not settings.model:
        report.warn(f"no model is set: using {choice}, whose key was found first")
    llm.share_keys(report.redactor)
    if inputs.starts and not report.problems and llm.key:
        report.ask("key command", llm.key.current)
    return llm


def _check_authorities(report: Report, lead: str = "") -> None:
    """Read the certificate authorities that variables name, as a request does; say nothing where none does."""
    if any(map(os.environ.get, VARIABLES)):
        report.ask(f"{lead}authorities", require_authorities, str)


def _check_selector(report: Report, selector: Callable[[], LlmConfig], settings: Settings, inputs: RunInputs) -> None:
    """Check the LLM that chooses files; only its name where none are chosen."""
    if settings.rollup == "select" or (inputs.request and inputs.request.select):
        found = report.ask("select model", selector, lambda found: str(found.choice))
        if found and check_base_url(found.choice, found.settings).startswith("https:"):
            _check_authorities(report, "select ")
    else:
        named = partial(choose_model, settings.select_model, setting="select_model")
        report.ask("select model", named, lambda choice: f"{choice}, only for --rollup select and rollup --select")


def _choose_model(settings: Settings, keys: Keys, inputs: RunInputs) -> ModelChoice:
    try:
        return choose_model(settings.model, keys, keys.unfit)
    except NoKeyError as error:
        if "llm" in inputs.needs and not error.provider and bound_base_url(settings).startswith(":"):
            where = settings.origin("base_url")[0]
            raise NotSetUpError(
                where, " is set without a model: set both, such as ", Named("model", "chat:NAME")
            ) from error
        if "llm" in inputs.needs:
            try:
                require_place(settings)
            except NotSetUpError as unplaced:
                raise NoKeyError(*unplaced.message) from error
            raise
        how = ("name a ", Named("model"), " (no key is needed here), or ", *BY_NUMBER)
        raise NotSetUpError("how much fits depends on the model: ", *how) from error


def _check_llm(report: Report, llm: LlmConfig, keys: Keys | None, project: Project, role: str = "") -> LlmConfig:
    """Return the LLM with its key, after all its checks; `role` (`fallback`) stands before their names and options."""
    choice, settings, lead = llm.choice, llm.settings, f"{role} " if role else ""
    if keys is not None:
        absent = "none needed" if choice.provider in ("command", "replay") else "none; the server may require one"
        source = lambda key: f"{key.source}{'; check does not run it' * bool(key.program)}" if key else absent  # noqa: E731 - a note
        llm = llm._replace(key=report.ask(f"{lead}key", lambda: key_of(llm, keys, project.root), source))
    url = report.ask(f"{lead}base URL", lambda: require_address(llm, project, role), lambda url: url or "none")
    if url:
        report.ask(f"{lead}proxy", lambda: proxy_of(url), lambda proxy: "from the environment" if proxy else "none")
        if keys is not None and url.startswith("https:"):
            _check_authorities(report, lead)
    with suppress(NotSetUpError):  # another check tells it
        if certificate := reach_of(choice, settings).certificate:
            report.ask(f"{lead}certificate", partial(require_certificate, certificate))
    if choice.provider == "replay" and not is_folder(project.root / choice.name):
        report.refuse(f"{lead}replay", f"there is no folder {shown(choice.name)} with recorded responses")
    if choice.provider == "command":
        report.ask(f"{lead}command", partial(words_of, choice.name, project.root), lambda words: shown(words[0]))
    if settings.max_cost is not None and choice.provider != "replay":
        report.ask(f"{lead}price", lambda: require_price(choice, settings))
    report.warn(*warn_of_model(choice))
    return llm


def _check_ignored(report: Report, project: Project) -> None:
    report.ask(".gitignore", lambda: check_ignore_line(project))
    if own := ", ".join(shown(os.path.relpath(path, project.root)) for path in watched_from_build(project)):
        report.warn(f"code-commit is installed inside the project ({own}), where an answer may change it: {_ELSEWHERE}")
    note = "" if project.git else "no repository"
    report.ask("git", lambda: check_nothing_is_tracked(project), lambda _: note)


def _load_settings(report: Report, project: Project, options: Options, inputs: RunInputs) -> Settings | None:
    """Return the settings, which also tell a chat key from a dummy that no prompt or file is refused for."""
    environment, load = inputs.environment, partial(load_settings, project, options, inputs.environment, inputs.logged)
    settings = report.ask("settings", load, lambda it: it.provenance)
    report.warn(*find_user_folder(project, environment).warnings, *(explain_overruled(settings) if settings else ()))
    if settings and (settings.base_url or settings.fallback_base_url):
        report.redactor = Redactor(find_secrets(project, environment, settings.base_url, settings.fallback_base_url))
    return settings


def _name_keys(keys: Keys) -> str:
    fit = ", ".join(f"{key.provider} from {key.source}" for key in keys.values()) or "none"
    here = keys.placeholder
    unfit = keys.unfit | ({"chat": f"{here.source} has a placeholder, for a server on this machine"} if here else {})
    return "; ".join([fit, *unfit.values()])


def _choose_sandbox(report: Report, settings: Settings, project: Project) -> Sandbox | None:
    choice = partial(choose_sandbox, settings.sandbox, project, settings)
    found = report.ask("sandbox", choice, lambda found: found[0].mode if found[0] else "none")
    sandbox, warning = found or (None, None)
    report.warn(*filter(None, [warning]))
    return sandbox
