"""The settings of a run. Each stands once, here: its name, type and default, and how it is written and explained.

One with a help text is an option of the command line, a variable `CODE_COMMIT_...` and a key of config.toml; the
others are keys of config.toml alone. An option goes before the variable, that before config.toml, that before the
default.
"""

import argparse
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from code_commit.errors import NotSetUpError

if TYPE_CHECKING:
    from pathlib import Path

    from code_commit.project import Project

ENVIRONMENT_PREFIX = "CODE_COMMIT_"


class Price(NamedTuple):
    """US dollars per million tokens, as `[prices."MODEL"]` of config.toml gives them."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None


class Option:
    """How one setting is written on the command line and in a variable.

    `kind` is what its text becomes: str, int, float, bool (a flag) or tuple (repeatable, of `part`s); `choices` are
    the only texts that it may have, where there are such.
    """

    def __init__(self, help_text: str, metavar: str = "") -> None:
        self.help = help_text
        self.metavar = metavar
        self.kind: Any = str
        self.part: Any = str
        self.choices: tuple[str, ...] = ()

    def set_type(self, annotation: Any, default: Any) -> None:
        """Take the rest from the setting's type and default."""
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Literal:
            self.choices = arguments
        elif origin is types.UnionType:  # with None
            self.kind = arguments[0]
        else:
            self.kind = origin or annotation
        if origin is tuple:
            self.part = arguments[0]
            default = ", ".join(map(str, default))
        if default:
            self.help += f" (default {f'{default:g}' if self.kind is float else default})"

    def parse(self, text: str) -> Any:
        """Turn the text of an option or a variable into the setting's type. Raises ValueError."""
        if self.choices and text not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        if self.kind is bool:
            if text.lower() not in _BOOLEANS:
                raise ValueError("must be true or false")
            return _BOOLEANS[text.lower()]
        kind = self.part if self.kind is tuple else self.kind
        try:
            return tuple(kind(part) for part in re.split(r"[,\n]", text) if part) if self.kind is tuple else kind(text)
        except ValueError as error:
            raise ValueError(f"must be a {'whole ' if kind is int else ''}number") from error


_BOOLEANS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off", ""), False)

NOT_NEGATIVE = "0 or more"
POSITIVE = "more than 0"


class Settings(NamedTuple):
    """Everything that can be set. No dataclass: that would take `--help` longer to load than all the rest of it."""

    model: Annotated[str, Option("PROVIDER:NAME (gemini, openai, anthropic, chat, replay)", "MODEL")] = ""
    select_model: Annotated[str, Option("the LLM that chooses the files of a rollup (default: model)", "MODEL")] = ""
    base_url: Annotated[str, Option("where the API is, when not at the vendor; required for chat:", "URL")] = ""
    fallback_model: Annotated[str, Option("takes over when the model cannot be asked", "MODEL")] = ""
    fallback_base_url: Annotated[str, Option("where the fallback is, when not at the vendor", "URL")] = ""
    max_repairs: Annotated[int, NOT_NEGATIVE, Option("repair queries after a failed build", "N")] = 3
    on_rejected: Annotated[Literal["retry", "stop"], Option("what follows a rejected response")] = "retry"
    max_output_tokens: Annotated[
        int | None, POSITIVE, Option("most tokens the LLM may generate (default: the model's)", "N")
    ] = None
    reasoning_effort: Annotated[
        str | None, Option("passed on where the provider has it (default: the model's)", "X")
    ] = None
    llm_timeout: Annotated[float, POSITIVE, Option("seconds for one LLM call, retries included", "S")] = 3600.0
    build_timeout: Annotated[float, NOT_NEGATIVE, Option("seconds for one build, 0 for no limit", "S")] = 3600.0
    answer_format: Annotated[
        Literal["files", "edits", "auto"], Option("files whole, edits of them too, or those where a file is long")
    ] = "files"
    rollup: Annotated[
        Literal["file", "fresh", "fit", "select"],
        Option("codeRollup.txt as it stands, or made first: all, what fits, or what the LLM chooses"),
    ] = "file"
    prompt_layout: Annotated[Literal["spec", "cached"], Option("order of the prompt's sections")] = "spec"
    max_cost: Annotated[float | None, POSITIVE, Option("US dollars: stop before a call that could pass it", "USD")] = (
        None
    )
    allow: Annotated[
        tuple[str, ...], Option("only paths that match may change (.gitignore syntax, repeatable)", "GLOB")
    ] = ()
    protect: Annotated[tuple[str, ...], Option("paths that match may not change either (repeatable)", "GLOB")] = ()
    strict: Annotated[bool, Option("reject a change to a file that the rollup lacks or has in another version")] = False
    dry_run: Annotated[bool, Option("ask once, verify, print the diff that would be applied, change nothing")] = False
    approve: Annotated[bool, Option("show the diff of each answer and ask on the terminal before it is applied")] = (
        False
    )
    rollback: Annotated[bool, Option("without a passing build at the end, put every file back as it was")] = False
    infrastructure_exit_codes: Annotated[
        tuple[int, ...], Option("exit codes of build.sh for a failure that no repair can mend (repeatable)", "N")
    ] = (75,)
    require_clean: Annotated[bool, Option("refuse to start while `git status` is not clean")] = False
    sandbox: Annotated[Literal["auto", "off", "guard", "strict"], Option("what the build may touch")] = "auto"
    json: Annotated[bool, Option("print run.json on stdout at the end")] = False
    quiet: Annotated[bool, Option("print nothing but errors")] = False
    verbose: Annotated[bool, Option("print more, and the build's output as it comes")] = False

    allow_http: bool = False
    anthropic_version: str = "2026-10-21"
    context_window: Annotated[int | None, POSITIVE] = None
    build_output_limit: Annotated[int, NOT_NEGATIVE] = 400_000
    rollup_exclude: tuple[str, ...] = ()
    keep_runs: Annotated[int, NOT_NEGATIVE] = 0
    keep_days: Annotated[int, NOT_NEGATIVE] = 0
    codebase_additions: bool = False
    sandbox_network: bool = False
    sandbox_caches: tuple[str, ...] = ()
    prices: Mapping[str, Price] = {}

    def as_record(self) -> dict[str, Any]:
        """Return them as run.json holds them: each price with the names of its parts."""
        return self._asdict() | {"prices": {model: price._asdict() for model, price in self.prices.items()}}


def _options() -> dict[str, Option]:
    options = {}
    for name, annotation in Settings.__annotations__.items():
        for option in _metadata(annotation):
            if isinstance(option, Option):
                option.set_type(annotation.__origin__, Settings._field_defaults[name])
                options[name] = option
    return options


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__metadata__", ())


OPTIONS = _options()


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str] = tuple(OPTIONS)) -> None:
    """Add the options of these settings. One that is not given is absent from the result and overrides nothing."""
    group = parser.add_argument_group(
        "options of the main job", "each also a key of agent-config/config.toml and a variable CODE_COMMIT_..."
    )
    for name in names:
        flag, option = "--" + name.replace("_", "-"), OPTIONS[name]
        if option.kind is bool:
            group.add_argument(flag, action="store_true", help=option.help)
        elif option.choices:
            group.add_argument(flag, choices=option.choices, help=option.help)
        elif option.kind is tuple:
            group.add_argument(flag, action="append", type=option.part, metavar=option.metavar, help=option.help)
        else:
            group.add_argument(flag, type=_parsed_by(name, option), metavar=option.metavar, help=option.help)


def _parsed_by(name: str, option: Option) -> Callable[[str], Any]:
    """Return the option's type for argparse: what does not fit is told in the setting's own words."""

    def parse(text: str) -> Any:
        try:
            value = option.parse(text)
            _check_range(name, value)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return value

    return parse


def load_settings(
    project: "Project", options: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> Settings:
    """Merge the options given on the command line with the environment and config.toml. Raises NotSetUpError."""
    values = read_config_file(project.config_file) | read_environment(environment) | dict(options)
    for name in values.keys() - set(Settings._fields):
        raise NotSetUpError(_unknown(name))
    try:
        return _in_range(Settings(**values))
    except ValueError as error:
        raise NotSetUpError(str(error)) from error


def _in_range(settings: Settings) -> Settings:
    """Return the settings. Raises ValueError for a number out of range, whichever source it came from."""
    for name in Settings._fields:
        try:
            _check_range(name, getattr(settings, name))
        except ValueError as error:
            raise ValueError(f"{name} {error}") from error
    return settings


def _check_range(name: str, value: Any) -> None:
    limits = _metadata(Settings.__annotations__[name])
    if NOT_NEGATIVE in limits and not 0 <= value < _INFINITE:
        raise ValueError(f"must be {NOT_NEGATIVE}")
    if POSITIVE in limits and value is not None and not 0 < value < _INFINITE:
        raise ValueError(f"must be {POSITIVE}")


_INFINITE = float("inf")


def read_config_file(path: "Path") -> dict[str, Any]:
    """Return the settings that config.toml names, {} where there is none. Raises NotSetUpError."""
    from code_commit.files import read_regular_file  # `--help` needs neither it nor pathlib
    from code_commit.project import AGENT_CONFIG

    shown_path = f"{AGENT_CONFIG}/{path.name}"
    try:
        content = read_regular_file(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NotSetUpError(f"{shown_path} cannot be read: {error.strerror}") from error
    import tomllib

    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NotSetUpError(f"{shown_path} is not valid TOML: {error}") from error
    try:
        return validate_settings(table)
    except ValueError as error:
        raise NotSetUpError("\n".join(f"{shown_path}: {problem}" for problem in str(error).split("\n"))) from error


def validate_settings(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a table that somebody wrote. Raises ValueError with a line for each that is unfit."""
    if not table:
        return {}
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    adapter = TypeAdapter(Settings, config=ConfigDict(hide_input_in_errors=True))
    try:
        settings = _in_range(adapter.validate_python(table))
    except ValidationError as error:
        problems = [_explain(details["loc"], details["type"], details["msg"]) for details in error.errors()]
        raise ValueError("\n".join(problems)) from error
    return {name: getattr(settings, name) for name in table}


def _explain(location: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(map(str, location))
    if kind == "extra_forbidden":
        return _unknown(name)
    return f"{name + ': ' if name else ''}{message.removeprefix('Value error, ')}"


def _unknown(name: str) -> str:
    return f"there is no setting '{name}'{did_you_mean(name, Settings._fields)}"


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `; did you mean 'X'?` with the nearest of the known names, "" where none is near."""
    import difflib

    nearest = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean '{nearest[0]}'?" if nearest else ""


def read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that `CODE_COMMIT_*` variables name.

    Raises NotSetUpError, also for a variable that is nearly one: a misspelt limit must not be no limit. Others may be
    somebody else's.
    """
    values = {}
    for variable, text in environment.items():
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        if name not in OPTIONS:
            if name in Settings._fields:
                raise NotSetUpError(f"environment variable {variable}: {name} can be set in config.toml alone")
            known = [ENVIRONMENT_PREFIX + option.upper() for option in OPTIONS]
            if hint := did_you_mean(variable, known, cutoff=0.92):
                raise NotSetUpError(f"environment variable {variable} names no option{hint}")
            continue
        try:
            values[name] = OPTIONS[name].parse(text)
        except ValueError as error:
            raise NotSetUpError(f"environment variable {variable}: {error}") from error
    return values
