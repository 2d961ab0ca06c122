"""The settings of a run: option, environment variable, config.toml, default, in this precedence."""

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from code_commit.errors import NotSetUpError
from code_commit.files import read_regular_file
from code_commit.options import OPTIONS
from code_commit.project import AGENT_CONFIG, Project

ENVIRONMENT_PREFIX = "CODE_COMMIT_"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, as `[prices."MODEL"]` of config.toml gives them."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set in config.toml; what `options.OPTIONS` names is an option and a variable too."""

    model: str = ""
    base_url: str = ""
    max_repairs: int = 3
    on_rejected: Literal["retry", "stop"] = "retry"
    max_output_tokens: int | None = None
    reasoning_effort: str | None = None
    llm_timeout: float = 3600.0
    build_timeout: float = 3600.0
    prompt_layout: Literal["spec", "cached"] = "spec"
    max_cost: float | None = None
    allow: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    strict: bool = False
    dry_run: bool = False
    rollback: bool = False
    require_clean: bool = False
    sandbox: Literal["auto", "off", "guard", "strict"] = "auto"
    json: bool = False
    quiet: bool = False
    verbose: bool = False

    allow_http: bool = False
    anthropic_version: str = "2026-10-21"
    context_window: int | None = None
    build_output_limit: int = 400_000
    sandbox_network: bool = False
    sandbox_caches: tuple[str, ...] = ()
    prices: Mapping[str, Price] = dataclasses.field(default_factory=dict)

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid", "hide_input_in_errors": True}

    def __post_init__(self) -> None:
        """Raise ValueError for numbers out of range, whichever source they came from."""
        for name in ("max_repairs", "build_timeout", "build_output_limit"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be 0 or more")
        for name in ("llm_timeout", "max_output_tokens", "max_cost", "context_window"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be more than 0")


def load_settings(
    project: Project, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> Settings:
    """Merge the options given on the command line with the environment and config.toml. Raises NotSetUpError."""
    values = read_config_file(project.config_file) | read_environment(environment) | dict(options)
    for name in values.keys() - {field.name for field in dataclasses.fields(Settings)}:
        raise NotSetUpError(_explain((name,), _UNKNOWN, ""))
    try:
        return Settings(**values)
    except ValueError as error:
        raise NotSetUpError(str(error)) from error


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the settings that config.toml names, {} where there is none. Raises NotSetUpError."""
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
    if not table:
        return {}
    from pydantic import TypeAdapter, ValidationError

    try:
        settings = TypeAdapter(Settings).validate_python(table)
    except ValidationError as error:
        problems = [_explain(details["loc"], details["type"], details["msg"]) for details in error.errors()]
        raise NotSetUpError("\n".join(f"{shown_path}: {problem}" for problem in problems)) from error
    return {name: getattr(settings, name) for name in table}


_UNKNOWN = "unexpected_keyword_argument"


def _explain(location: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(map(str, location))
    if kind != _UNKNOWN:
        return f"{name + ': ' if name else ''}{message.removeprefix('Value error, ')}"
    import difflib

    close = difflib.get_close_matches(name, [field.name for field in dataclasses.fields(Settings)], n=1)
    return f"there is no setting '{name}'" + (f"; did you mean '{close[0]}'?" if close else "")


def _refuse_misspelt(variable: str, name: str) -> None:
    import difflib

    close = difflib.get_close_matches(name, OPTIONS, n=1, cutoff=_NEARLY)
    if close:
        meant = ENVIRONMENT_PREFIX + close[0].upper()
        raise NotSetUpError(f"environment variable {variable} names no option; did you mean {meant}?")


_NEARLY = 0.85


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
            _refuse_misspelt(variable, name)
            continue
        try:
            values[name] = OPTIONS[name].parse(text)
        except ValueError as error:
            raise NotSetUpError(f"environment variable {variable}: {error}") from error
    return values
