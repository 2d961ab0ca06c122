"""The sources of a run's settings: options, environment, config.toml and the user's own, merged and checked."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from code_commit.errors import NotSetUpError
from code_commit.files import explain_unread, read_regular_file
from code_commit.headers import is_looked_up
from code_commit.project import AGENT_CONFIG, CONFIG_FILE, USER_VARIABLE, Project, find_user_folder
from code_commit.project import shown_path as path_in_words
from code_commit.settings import (
    ATTEMPT_VARIABLE,
    BOOLEANS,
    COMMAND_LINE,
    ENVIRONMENT,
    ENVIRONMENT_PREFIX,
    FILE,
    KEYS_VARIABLE,
    LOG,
    OPTIONS,
    PRICE,
    PROGRAM,
    RUN_VARIABLE,
    SETTINGS,
    USER,
    Facet,
    Options,
    Price,
    Setting,
    Settings,
    did_you_mean,
    is_merged,
    settings_for,
)
from code_commit.terminal import shown

_NO_SETTINGS = (
    *(ATTEMPT_VARIABLE, RUN_VARIABLE, KEYS_VARIABLE, "CODE_COMMIT_CHAT_API_KEY"),
    *(USER_VARIABLE, "CODE_COMMIT_PACKAGE"),
)
"""docs/ci-examples install the package that the last one names."""


def load_settings(
    project: Project, options: Options, environment: Mapping[str, str] = os.environ, logged: Options | None = None
) -> Settings:
    """Merge the options with environment, config.toml and the user's own. Raises NotSetUpError with all problems.

    `logged` are the settings of the log of a run that is resumed.
    """
    problems: dict[str, list[str]] = {source: [] for source in (USER, FILE, ENVIRONMENT, COMMAND_LINE, LOG)}
    shown_path = f"{AGENT_CONFIG}/{CONFIG_FILE}"
    sources = {
        USER: read_user_settings(project, environment, problems[USER]),
        FILE: _read_config_file(project.config_file, shown_path, problems[FILE]),
        ENVIRONMENT: read_environment(environment, problems[ENVIRONMENT]),
        COMMAND_LINE: _checked(options, problems[COMMAND_LINE]),
    }
    problems[FILE] += explain_what_is_the_users(sources[FILE], shown_path)
    if logged is not None:
        kept, places = _checked(logged, problems[LOG]), (sources[USER], sources[ENVIRONMENT], sources[COMMAND_LINE])
        problems[LOG] += _explain_programs_of_log(kept, *places)
        sources = _as_resumed(sources | ({FILE: {}} if problems[FILE] else {}), kept)
        problems[FILE], problems[ENVIRONMENT] = [], []
    if told := [problem for each in problems.values() for problem in each]:
        raise NotSetUpError("\n".join(told))
    values = {name: value for given in sources.values() for name, value in given.items()}
    own = {name: value for name, value in sources[USER].items() if name not in sources.get(LOG, ())}
    return Settings(
        **(values | merged_settings(values, own)), sources={name: given for name, given in sources.items() if given}
    )


def _as_resumed(sources: Mapping[str, dict[str, Any]], logged: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the sources of a resumed run: of what its log has, environment and files give the REACH alone.

    Beside it stands the address that it is for. They give what the log lacks, as they do to a new run. An address among
    the options is for the model of the log.
    """
    reach, addressed = settings_for(Facet.REACH), ("model", "base_url")
    log = {name: value for name, value in logged.items() if name not in reach}
    of_project = {name: value for name, value in sources[FILE].items() if name in addressed or name not in log}
    variables = {name: value for name, value in sources[ENVIRONMENT].items() if name not in log}
    options = sources[COMMAND_LINE]
    models = [name.replace("base_url", "model") for name in ("base_url", "fallback_base_url") if name in options]
    asked = {name: log[name] for name in models if name in log}
    return {USER: sources[USER], FILE: of_project, LOG: log, ENVIRONMENT: variables, COMMAND_LINE: asked | options}


def explain_what_is_the_users(given: Mapping[str, Any], shown_path: str) -> list[str]:
    """Return what a project's settings may not hold, since it runs a program or uses a secret of the user's."""
    names = [name for name in settings_for(Facet.OWN) if given.get(name)]
    names += [f"{PROGRAM} as {name}" for name in _programs_in(given)]
    names += [f"[headers] {name}" for name, value in given.get("headers", {}).items() if is_looked_up(value)]
    return [f"{shown_path}: only your own config.toml may set {name} (code-commit init --user)" for name in names]


def _programs_in(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the models that are programs, by the settings that name them."""
    models = {name: given.get(name) for name in settings_for(Facet.MODEL)}
    return {name: value for name, value in models.items() if isinstance(value, str) and value.startswith(PROGRAM)}


def _explain_programs_of_log(logged: Mapping[str, Any], *places: Mapping[str, Any]) -> list[str]:
    """Return what keeps the models of a log from being run: programs that none of the user's places names too."""
    named = {value for place in places for value in _programs_in(place).values()}
    return [
        f"the log of this run names the program {value}, and anybody may have written the log: if the program is right,"
        f" confirm it with {ENVIRONMENT_PREFIX}MODEL={value!r} before code-commit resume"
        for value in _programs_in(logged).values()
        if value not in named
    ]


def merged_settings(values: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings whose value the user's own adds to."""
    merged = dict[str, Any]()
    for name in filter(is_merged, own):
        value = values[name]
        is_table = isinstance(value, Mapping)
        merged[name] = {**own[name], **value} if is_table else tuple(dict.fromkeys([*own[name], *value]))
    return merged


def explain_overruled(settings: Settings) -> list[str]:
    """Return what the project's config.toml allows a run that the user restricts elsewhere: it may be anybody's.

    It may put a value in place of the user's own, or open a strict sandbox that it did not ask for.
    """
    own, project = settings.sources.get(USER, {}), settings.sources.get(FILE, {})
    told = [name for name in settings_for(Facet.GUARD) if name in own and settings.source_of(name) == FILE]
    if settings.sandbox == "strict" and "sandbox" not in project:
        told += [name for name in ("sandbox_network", "sandbox_caches") if project.get(name) and name not in own]
    told = [name for name in told if project[name] != own.get(name)]
    values = ", ".join(f"{name} = {shown(json.dumps(project[name]))}" for name in told)
    where = f"{AGENT_CONFIG}/{CONFIG_FILE}"
    return [f"{where} sets {values}, which overrides your own settings: is the file yours?"] if told else []


def read_user_settings(project: Project | None, environment: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """Return the settings of the user's own config.toml, {} where none is read, and append what is wrong with them."""
    if environment.get(USER_VARIABLE, "").lower() not in BOOLEANS:
        problems.append(f"environment variable {USER_VARIABLE} must be off or on: it names no folder")
    path = find_user_folder(project, environment).file(CONFIG_FILE)
    return _read_config_file(path, path_in_words(path), problems) if path else {}


def read_tables(project: Project, environment: Mapping[str, str] = os.environ) -> Iterator[dict[str, Any]]:
    """Yield the user's own config.toml and the project's, unchecked, {} for one that cannot be read."""
    for path in (find_user_folder(project, environment).file(CONFIG_FILE), project.config_file):
        table = {}
        with suppress(OSError, ValueError):
            content = read_regular_file(path).decode() if path else ""
            table = _read_toml(content) if content else {}
        yield table


def _read_toml(content: str) -> dict[str, Any]:
    import tomllib  # a run without such a file does without

    return tomllib.loads(content)


def _read_config_file(path: Path, shown_path: str, problems: list[str]) -> dict[str, Any]:
    try:
        content = read_regular_file(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        problems.append(explain_unread(path, shown_path, error))
        return {}
    try:
        table = _read_toml(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.append(f"{shown_path} is not UTF-8 text (line {line}): save it as UTF-8")
        return {}
    except ValueError as error:
        problems.append(f"{shown_path} is not valid TOML: {error}; put strings in quotes, and each setting only once")
        return {}
    return _checked(table, problems, f"{shown_path}: ")


def validate_settings(table: Mapping[str, Any], known: Mapping[str, Setting] = SETTINGS) -> dict[str, Any]:
    """Return the settings of a user's table. Raises NotSetUpError with a line for each problem."""
    problems: list[str] = []
    values = _checked(table, problems, known=known)
    if problems:
        raise NotSetUpError("\n".join(problems))
    return values


def _checked(
    table: Mapping[str, Any], problems: list[str], where: str = "", known: Mapping[str, Setting] = SETTINGS
) -> dict[str, Any]:
    """Return the valid settings of a table, and append the problems of the others to `problems`."""
    values = {}
    for name, value in table.items():
        if name not in known:
            names = f"there are {', '.join(known)}"
            lists = "code-commit run --help lists most" if SETTINGS.keys() <= known.keys() else ""
            advice = did_you_mean(name, known) or f"; {lists or names}"
            if name in SETTINGS:
                advice = " in this table: move it above the table"
            problems.append(f"{where}there is no setting '{name}'{advice}")
            continue
        if isinstance(value, Mapping):
            misplaced = [each for each, inner in value.items() if each in SETTINGS and not isinstance(inner, Mapping)]
            problems += [f"{where}{each} is inside the [{name}] table: move it above that line" for each in misplaced]
            value = {each: inner for each, inner in value.items() if each not in misplaced}  # noqa: PLW2901
        try:
            values[name] = known[name].check(value)
        except ValueError as error:
            problems.append(f"{where}{name} {error}")
    if "prices" in values:
        tables = values["prices"].items()
        values["prices"] = {model: _price(parts, problems, f"{where}prices.{model}: ") for model, parts in tables}
    return values


def _price(parts: Any, problems: list[str], where: str) -> Price:
    if not isinstance(parts, Mapping):  # older logs have a list
        parts = dict(zip(Price._fields, parts if isinstance(parts, list | tuple) else (), strict=False))
    problems += [f"{where}{name} is missing" for name in ("input", "output") if name not in parts]
    checked = _checked(parts, problems, where, PRICE)
    return Price._make(map(checked.get, Price._fields))


def read_environment(environment: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """Return the settings of `CODE_COMMIT_*` variables. Any other such variable is a problem."""
    values, known = {}, [*_NO_SETTINGS, *(ENVIRONMENT_PREFIX + name.upper() for name in OPTIONS)]
    for variable, text in environment.items():
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in _NO_SETTINGS:
            continue
        if name in OPTIONS:
            try:
                values[name] = OPTIONS[name].parse(text)
            except ValueError as error:
                problems.append(f"environment variable {variable}={shown(repr(text))} {error}")
        elif name in SETTINGS:
            problems.append(f"environment variable {variable}: {name} can be set only in config.toml")
        else:
            of_key = f"; a key goes into a variable such as {name.upper()}" * name.endswith("_api_key")
            hint = did_you_mean(variable, known, cutoff=0.88) or of_key or "; unset it"
            problems.append(f"environment variable {variable} names no option{hint}")
    return values
