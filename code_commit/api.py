"""The surface of the core: calls for a supervisor written in Python, for the fleet and for the MCP server.

Import values from their own modules: the record from `code_commit.runs.record`, errors from `code_commit.errors`.
A call prints nothing and leaves the process as it was.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from code_commit.apply.restore import redo as redo_changes
from code_commit.build import hardened_meanwhile
from code_commit.check import RunInputs, inspect_run, repair_inputs_of
from code_commit.check import find_llm_problems as find_problems
from code_commit.check.codebase import check_codebase
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.commands import init
from code_commit.commands.diff import NetDiff, find_compared, net_diff, net_edits
from code_commit.commands.log import logged_run
from code_commit.commands.output import Begun
from code_commit.commands.rollup import make_rollup
from code_commit.commands.run import run_main_job
from code_commit.commands.stats import Comparison
from code_commit.commands.undo import Arguments as UndoArguments
from code_commit.commands.undo import undo_run
from code_commit.errors import CODEBASE, TASK, CodeCommitError, Named, NoKeyError, NotSetUpError, as_setting, in_words
from code_commit.llm.keys import Keys, find_secrets, load_keys, require_key
from code_commit.llm.models import bound_base_url, choose_model
from code_commit.llm.money import price_useful_answer
from code_commit.paths.names import find_protected
from code_commit.paths.patterns import explain_patterns
from code_commit.project import AGENT_CONFIG, USER_VARIABLE, Project, find_project
from code_commit.redaction import Redactor
from code_commit.runs.list import UnreadableRun, find_run_folders, read_run
from code_commit.runs.progress import Progress
from code_commit.runs.record import Event, RunRecord
from code_commit.settings import COMMAND_LINE, ENVIRONMENT, FILE, SETTINGS, Facet, Settings, settings_for
from code_commit.sources import load_settings, read_environment, validate_settings
from code_commit.status import Status

Folder = str | os.PathLike[str]
read_changes = net_edits  # of a run's log folder, below a root
compare = Comparison.of  # the labels of a fleet's results


def rollup(
    directory: Folder = ".",
    pathspecs: Sequence[str] = (),
    *,
    exclude: Sequence[str] = (),
    include: Sequence[str] = (),
    select: bool = False,
    **settings: Any,
) -> Codebase:
    """Write codeRollup.txt as `code-commit rollup` does. Return its content, and what was left out with the reasons.

    Raises NotSetUpError, and MachineError on a full disk; with `select` also LLMError and RejectedResponseError.
    """
    if not isinstance(select, bool):
        raise TypeError(f"select must be True or False, not {select!r}")
    project = find_project(Path(directory))
    lists = {"pathspecs": pathspecs, "exclude": exclude, "include": include}
    validate_settings(lists | settings, SETTINGS | dict.fromkeys(lists, SETTINGS["rollup_exclude"]))
    if settings.get("dry_run"):
        raise NotSetUpError("dry_run= does not keep rollup from writing codeRollup.txt: leave it out")
    files = CodebaseRequest(pathspecs, exclude, include, select=select)
    with hardened_meanwhile(), _naming_arguments():
        return make_rollup(project, settings, files, Progress(Redactor(find_secrets(project)), quiet=True))


def run(
    directory: Folder = ".",
    *,
    query: str | None = None,
    on_step: Callable[[RunRecord, Event], object] | None = None,
    **settings: Any,
) -> RunRecord:
    """Run the main job in a project's folder and return its record. Its `exit_code` says how the run ended.

    `query` is the task, in place of agent-config/query.txt. `settings` are those of config.toml (`model="openai"`,
    `max_repairs=1`); they override the environment and the file. `on_step` is called after each step, once run.json
    has it.

    Raises NotSetUpError if the run could not begin (exit code 2). Nothing was sent or changed then.
    """
    return _run(find_project(Path(directory)), _inputs_of(query), on_step, settings)


def repair(
    directory: Folder = ".",
    *,
    query: str | None = None,
    output: str | bytes | None = None,
    on_step: Callable[[RunRecord, Event], object] | None = None,
    **settings: Any,
) -> RunRecord:
    """Make a project's failing build pass, as `code-commit repair` does, and return the record of the run.

    build.sh runs first. If it passes, nothing is sent, no key is needed and the record has no attempts. `query` has
    words for the LLM on the failure, `output` is what a build printed that failed elsewhere. The others are those of
    `run`.

    Raises NotSetUpError if the run could not begin (exit code 2).
    """
    given = _inputs_of(query).query, output.encode("utf-8", "replace") if isinstance(output, str) else output
    if not isinstance(given[1], bytes | None):
        raise TypeError(f"output must be a str, bytes or None, not {output!r}")
    project = find_project(Path(directory))
    return _run(project, repair_inputs_of(project, *given), on_step, settings)


def _run(
    project: Project,
    inputs: RunInputs,
    on_step: Callable[[RunRecord, Event], object] | None,
    settings: Mapping[str, Any],
) -> RunRecord:
    if on_step is not None and not callable(on_step):
        raise TypeError(f"on_step must be callable or None, not {on_step!r}")
    begun = Begun()

    def note(record: RunRecord, event: Event) -> None:
        begun.note(record, event)
        if on_step:
            on_step(record, event)

    progress = Progress(Redactor(find_secrets(project)), quiet=True, on_step=note)
    options = {"quiet": True, **settings}
    try:
        with hardened_meanwhile(), _naming_arguments():
            return run_main_job(project, options, progress, inputs)
    except CodeCommitError:
        if begun.record is None:
            raise
        return begun.record


def diff(directory: Folder = ".", run: str = "", *, paths: Sequence[str] = ()) -> NetDiff:
    """Return what a run and its builds changed in all, with API keys censored.

    `run` names it as on the command line; "" is the latest one that applied something. `paths` are files, folders or
    patterns that count from the project's root; without any the diff is of all. Raises NotSetUpError and ApplyError.
    """
    project = find_project(Path(directory))
    folder, _ = find_compared(project, run)
    found = net_diff(folder, project.root, project.prefix, project.git, paths)
    return found._replace(diff=Redactor(find_secrets(project)).redact(found.diff))


def undo(
    directory: Folder = ".", run: str = "", *, paths: Sequence[str] = (), attempt: int = 1, force: bool = False
) -> RunRecord:
    """Put back what a run changed, and return the record of the undo, which is a run too.

    `run` names it as on the command line; "" is the latest one that is not undone. `paths` are patterns in the syntax
    of .gitignore: only these files. `attempt` is the first one to take back. Raises NotSetUpError, and ApplyError where
    a file changed since and `force` is not set; nothing was put back then.
    """
    project = find_project(Path(directory))
    given = UndoArguments(run=run, path=tuple(paths), attempt=attempt, force=force)
    with _naming_arguments():
        return undo_run(project, given, Progress(Redactor(find_secrets(project)), quiet=True))


def check(directory: Folder = ".", *, query: str | None = None, **settings: Any) -> list[str]:
    """Return every problem that keeps `run` with the same arguments from beginning.

    Nothing is sent out of this machine or written.
    """
    inputs = _inputs_of(query)
    try:
        project = find_project(Path(directory))
    except NotSetUpError as error:
        return [str(error)]
    report = inspect_run(project, {"quiet": True, **settings}, inputs, _as_argument)
    if report.plan:
        check_codebase(report, report.plan)
    return [report.redactor.redact_text(problem) for problem in report.problems]


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of config.toml in a run's types. Raises NotSetUpError for mistakes and unknown models."""
    if not isinstance(settings, Mapping):
        raise TypeError(f"settings must be a mapping, not {settings!r}")
    values, problems = dict[str, Any](), list[str]()
    try:
        values = validate_settings(settings)
    except NotSetUpError as error:
        problems.append(str(error))
    for name in ("allow", "protect"):
        problems += map(in_words, explain_patterns(name, values.get(name, ())).values())
    for model in map(settings.get, settings_for(Facet.MODEL)):
        try:
            if model and isinstance(model, str):
                provider_of(model)
        except NotSetUpError as error:
            problems.append(in_words(error.message, as_setting))
    if problems:
        raise NotSetUpError("\n".join(problems))
    return values


def provider_of(model: str) -> str:
    """Return the provider of a named model. Raises NotSetUpError for an unknown name."""
    return choose_model(model).provider


def full_name_of(model: str) -> str:
    """Return a model's name with its provider, as the record of a run has it. Raises as `provider_of`."""
    return str(choose_model(model))


def uses_provider(directory: Folder, provider: str) -> bool:
    """Tell whether a project's settings name a model of the provider, or agent-config has its key.

    Without a model in the settings the first provider that has a key counts. Raises NotSetUpError.
    """
    project = find_project(Path(directory))
    own, keys = load_settings(project, {}), load_keys(project)
    used = {provider_of(name) for name in (own.select_model, own.fallback_model) if name}
    used |= {key.provider for key in keys.values() if key.source.startswith(AGENT_CONFIG)}
    return provider in used or provider == choose_model(own.model, keys, keys.unfit).provider


def count_missing_keys(directory: Folder, runs: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Count by provider ("": any) the runs, given as settings, that need a key which the project lacks.

    Raises NotSetUpError, and NoKeyError for an unusable key.
    """
    keys, environment, missing = _keys_of_worker(_folder(directory)), read_environment(os.environ, []), Counter[str]()
    for given in runs:
        settings = Settings(**{**environment, **given})
        selector = settings.select_model if settings.rollup == "select" else ""
        own = () if settings.key_command else (settings.model,)
        for model in (*own, *filter(None, (settings.fallback_model, selector))):
            try:
                require_key(choose_model(model, keys, keys.unfit).provider, keys, settings.base_url)
            except NoKeyError as error:
                if error.provider in keys.unfit:
                    raise
                missing[error.provider] += 1
    return missing


def find_llm_problems(directory: Folder, settings: Mapping[str, Any], *, is_elsewhere: bool) -> list[str]:
    """Return what keeps a run with these settings of config.toml from asking its LLMs, but for missing keys.

    Nothing is asked. A run `is_elsewhere` that has another environment, and keys that are not known here. Raises
    NotSetUpError.
    """
    merged, keys = _as_on_worker(directory, settings, is_elsewhere=is_elsewhere)
    return find_problems(_folder(directory), merged, keys)


def price_answers(directory: Folder, settings: Mapping[str, Any], *, is_elsewhere: bool) -> tuple[float, int]:
    """Return what the shortest useful answer to a run with these settings costs, and how many it may ask for.

    It is in US dollars, 0 where no price is known here, or no model. Raises as `find_llm_problems`.
    """
    (merged, known), usd = _as_on_worker(directory, settings, is_elsewhere=is_elsewhere), 0.0
    keys = Keys() if known is None else known
    with suppress(NotSetUpError):  # the run itself tells it
        usd = price_useful_answer(choose_model(merged.model, keys, keys.unfit), merged)
    return usd, 1 + merged.max_repairs


def _as_on_worker(
    directory: Folder, settings: Mapping[str, Any], *, is_elsewhere: bool
) -> tuple[Settings, Keys | None]:
    """Return the settings of a run on a fleet's worker, and its keys, None where they are not known here."""
    own, environment = check_settings(settings), {} if is_elsewhere else read_environment(os.environ, [])
    merged = Settings(**{**environment, **own}, sources={ENVIRONMENT: environment, COMMAND_LINE: own})
    return merged, None if is_elsewhere else _keys_of_worker(_folder(directory))


def _keys_of_worker(project: Project) -> Keys:
    """Return the keys as a fleet's worker has them, without its user's own. Raises NotSetUpError."""
    return load_keys(project, {**os.environ, USER_VARIABLE: "off"})


def find_addresses(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the base URLs in settings of config.toml, each with its provider, by the names of their settings.

    Raises NotSetUpError.
    """
    own = Settings(**settings, sources={FILE: settings})
    urls = {f"{role}base_url": bound_base_url(own, role) for role in ("", "fallback_")}
    return {name: url for name, url in urls.items() if url and not url.startswith(":")}


def list_runs(directory: Folder = ".") -> list[Path]:
    """Return the log folders of all runs of a project, oldest first; none where there is no such folder."""
    return find_run_folders(_folder(directory))


def read_record(folder: Folder) -> RunRecord:
    """Return the record of the run with this log folder. Raises NotSetUpError if it cannot be read."""
    found = read_run(Path(folder))
    if isinstance(found, UnreadableRun):
        raise NotSetUpError(f"the run {found.run}: {found.why}")
    return found


def redo(directory: Folder, folder: Path) -> None:
    """Make every change of the run with this log folder again, in a tree as it was before the run.

    Raises NotSetUpError and ApplyError.
    """
    project = find_project(Path(directory))
    redo_changes(folder / "snapshot", project, project.agent_config / "redone")


def make_redactor(directory: Folder = ".") -> Redactor:
    """Return the redactor for the keys of a project and of the environment."""
    return Redactor(find_secrets(_folder(directory)))


def render_page(record: RunRecord, start: Folder, *, folder: Path | None = None, patch: bytes | None = None) -> bytes:
    """Return the page of a run as HTML, with links relative to the folder `start`.

    `folder` is its log folder, by default the one in the record. If its tree is gone, `patch` is what the run changed:
    then `start` holds changes.patch, and an unfinished run counts as killed.
    """
    from code_commit.commands import page

    root = Path(start if patch is not None else record.root)
    logged = logged_run(folder or root / record.log_dir, root, record, make_redactor(root))
    if patch is not None:
        status = Status.KILLED if record.status == Status.RUNNING else record.status
        logged = replace(logged, status=status, patch=patch)
    return page.render_page(logged, Path(start))


def render_template(package: str, values: Mapping[str, Any]) -> bytes:
    """Return the page of a package in the style of a run's page, from its page.html.j2, page.css and page.js."""
    from code_commit.commands import page

    return page.render_template(package, values)


def is_protected(path: str) -> bool:
    """Tell whether answers may not change this path in any project."""
    return find_protected(path, ()) is not None


def write_ignore_line(directory: Folder) -> None:
    """Add the line /agent-config to a project's .gitignore if it is missing. Raises NotSetUpError and OSError."""
    init.add_ignored(_folder(directory))


def _folder(directory: Folder) -> Project:
    """Return a folder as a project, without asking git."""
    return Project(Path(os.path.realpath(directory)))


def _inputs_of(query: str | None) -> RunInputs:
    if not isinstance(query, str | None):
        raise TypeError(f"query must be a str or None, not {query!r}")
    return RunInputs(query=query)


@contextmanager
def _naming_arguments() -> Iterator[None]:
    """Let a NotSetUpError name the arguments of a call in place of the command line's options."""
    try:
        yield
    except NotSetUpError as error:
        error.args = (in_words(error.message, _as_argument),)
        raise


def _as_argument(named: Named) -> str:
    if named == CODEBASE:
        return "rollup='fresh' or code-commit rollup"
    return f"{'query' if named == TASK else named.setting}={named.value}"
