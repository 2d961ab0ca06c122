"""The settings of a run: option, environment variable, config.toml, default, in this precedence; and the API keys.

`Settings` is the one list of them: the command line, the environment and config.toml are read from its fields.
"""

import dataclasses
import math
import os
import re
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from code_commit.changes import shown
from code_commit.errors import NotSetUpError
from code_commit.project import AGENT_CONFIG, Project, read_regular_file

ENVIRONMENT_PREFIX = "CODE_COMMIT_"
CHAT_KEY_VARIABLE = "CODE_COMMIT_CHAT_API_KEY"

Provider = Literal["gemini", "openai", "anthropic", "chat", "replay"]

DEFAULT_MODELS: Mapping[Provider, str] = {
    "gemini": "gemini-4-argon",
    "openai": "gpt-6.2-sol",
    "anthropic": "claude-opus-5-5",
}
"""In the order in which keys are looked for when no model is named. Source: the vendors' model lists, 2026-11-21."""

KEY_VARIABLES: Mapping[Provider, str] = {
    "gemini": "GEMINI_API_KEY",
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "chat": CHAT_KEY_VARIABLE,
}

BARE_NAMES: tuple[tuple[str, Provider], ...] = (
    (r"(gpt-|chatgpt-|o\d).*", "openai"),
    (r"claude-.*", "anthropic"),
    (r"gemini-.*", "gemini"),
)

SHORTEST_KEY = 8


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, as `[prices."MODEL"]` of config.toml gives them."""

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None


def option(default: Any, help_text: str, metavar: str | None = None) -> Any:
    """A setting that the command line has too, as `--its-name`."""
    return dataclasses.field(default=default, metadata={"help": help_text, "metavar": metavar})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set.

    Fields made by `option` are options, environment variables and config.toml keys; the others config.toml keys alone.
    """

    model: str = option("", "PROVIDER:NAME (gemini, openai, anthropic, chat, replay)", "MODEL")
    base_url: str = option("", "where the API is, when not at the vendor; required for chat:", "URL")
    max_repairs: int = option(3, "repair queries after a failed build (default 3)", "N")
    on_rejected: Literal["retry", "stop"] = option("retry", "what follows a rejected response (default retry)")
    max_output_tokens: int | None = option(None, "most tokens the LLM may generate (default: the model's)", "N")
    reasoning_effort: str | None = option(None, "passed on where the provider has it (default: the model's)", "X")
    llm_timeout: float = option(3600.0, "seconds for one LLM call, retries included (default 3600)", "S")
    build_timeout: float = option(3600.0, "seconds for one build, 0 for no limit (default 3600)", "S")
    prompt_layout: Literal["spec", "cached"] = option("spec", "order of the prompt's sections (default spec)")
    max_cost: float | None = option(None, "US dollars: stop before a call that could pass it", "USD")
    allow: tuple[str, ...] = option((), "only paths that match may change (.gitignore syntax, repeatable)", "GLOB")
    protect: tuple[str, ...] = option((), "paths that match may not change either (repeatable)", "GLOB")
    strict: bool = option(False, "reject a change to a file that the rollup lacks or has in another version")
    dry_run: bool = option(False, "ask once, verify, print the diff that would be applied, change nothing")
    rollback: bool = option(False, "without a passing build at the end, put every file back as it was")
    require_clean: bool = option(False, "refuse to start while `git status` is not clean")
    sandbox: Literal["auto", "off", "guard", "strict"] = option("auto", "what the build may touch (default auto)")
    json: bool = option(False, "print run.json on stdout at the end")
    quiet: bool = option(False, "print nothing but errors")
    verbose: bool = option(False, "print more")

    allow_http: bool = False
    gemini_api: Literal["interactions", "generate_content"] = "interactions"
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


OPTIONS = {field.name: field for field in dataclasses.fields(Settings) if "help" in field.metadata}


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


def read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings that `CODE_COMMIT_*` variables name. Raises NotSetUpError."""
    values = {}
    for variable, text in environment.items():
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if not variable.startswith(ENVIRONMENT_PREFIX) or name not in OPTIONS:
            continue
        try:
            values[name] = parse_value(name, text)
        except ValueError as error:
            raise NotSetUpError(f"environment variable {variable}: {error}") from error
    return values


def parse_value(name: str, text: str) -> Any:
    """Turn the text of an option or a variable into the setting's type. Raises ValueError."""
    accepted = typing.get_args(OPTIONS[name].type) or (OPTIONS[name].type,)
    if typing.get_origin(OPTIONS[name].type) is tuple:
        return tuple(part for part in re.split(r"[,\n]", text) if part)
    if typing.get_origin(OPTIONS[name].type) is Literal:
        if text not in accepted:
            raise ValueError(f"must be one of {', '.join(accepted)}")
        return text
    if bool in accepted:
        if text.lower() not in _BOOLEANS:
            raise ValueError("must be true or false")
        return _BOOLEANS[text.lower()]
    number = next((kind for kind in (int, float) if kind in accepted), str)
    try:
        return number(text)
    except ValueError as error:
        raise ValueError(f"must be a {'whole ' if number is int else ''}number") from error


_BOOLEANS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
    "": False,
}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which LLM is asked: `name` is the vendor's model id, for `replay` the folder of recorded responses."""

    provider: Provider
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One API key. Its text appears in no repr; `source` says where it was found."""

    provider: Provider
    value: str = dataclasses.field(repr=False)
    source: str


def choose_model(model: str, keys: Mapping[Provider, ApiKey]) -> ModelChoice:
    """Return the LLM that the `model` setting names, or the default one of the first provider that has a key.

    Raises NotSetUpError for a name that belongs to no provider, and where nothing is said and no key is there.
    """
    if not model:
        provider = next((provider for provider in DEFAULT_MODELS if provider in keys), None)
        if provider is None:
            variables = ", ".join(KEY_VARIABLES[provider] for provider in DEFAULT_MODELS)
            raise NotSetUpError(
                f"no API key: put one into {AGENT_CONFIG}/PROVIDER-key.txt ({', '.join(DEFAULT_MODELS)}; mode 600) "
                f"or a variable ({variables}), or name a --model"
            )
        return ModelChoice(provider, DEFAULT_MODELS[provider])
    prefix, colon, name = model.partition(":")
    if colon and prefix in typing.get_args(Provider):
        return _named_choice(typing.cast(Provider, prefix), name)
    if model in typing.get_args(Provider):
        return _named_choice(typing.cast(Provider, model), DEFAULT_MODELS.get(typing.cast(Provider, model), ""))
    for pattern, provider in BARE_NAMES:
        if re.fullmatch(pattern, model):
            return ModelChoice(provider, model)
    names = ", ".join(f"{provider}:" for provider in typing.get_args(Provider))
    raise NotSetUpError(f"unknown model '{shown(model)}': put its provider before it, one of {names}")


def _named_choice(provider: Provider, name: str) -> ModelChoice:
    if not name:
        what = "a folder of recorded responses" if provider == "replay" else "the model's name"
        raise NotSetUpError(f"--model {provider}: needs {what} behind the colon")
    return ModelChoice(provider, name)


def load_keys(project: Project, environment: Mapping[str, str] = os.environ) -> dict[Provider, ApiKey]:
    """Return the key of every provider that has one: its file in agent-config, else its environment variable.

    A key file that is not fit for use is an error; a variable that is not is left out here and refused by
    `require_key` only when its provider is asked. Raises NotSetUpError.
    """
    keys: dict[Provider, ApiKey] = {}
    for provider, variable in KEY_VARIABLES.items():
        file_key = _read_key_file(project, provider)
        value = file_key if file_key is not None else environment.get(variable, "")
        source = f"{AGENT_CONFIG}/{provider}-key.txt" if file_key is not None else variable
        problem = _key_problem(value)
        if problem and file_key is not None:
            raise NotSetUpError(f"{source} {problem}")
        if value and not problem:
            keys[provider] = ApiKey(provider, value, source)
    return keys


def find_secrets(project: Project, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return everything that may be a key, fit for use or not, so that it can be censored. Never raises."""
    found = [environment.get(variable, "") for variable in KEY_VARIABLES.values()]
    for provider in KEY_VARIABLES:
        with suppress(OSError):
            content = read_regular_file(project.agent_config / f"{provider}-key.txt")
            found.append(content.decode("utf-8-sig", "replace"))
    lines = [line.strip() for text in found for line in text.splitlines()]
    return [line for line in lines if len(line) >= SHORTEST_KEY]


def require_key(
    provider: Provider, keys: Mapping[Provider, ApiKey], environment: Mapping[str, str] = os.environ
) -> ApiKey | None:
    """Return the provider's key; None where it needs none (`replay`, and `chat` without one). Raises NotSetUpError."""
    if provider in keys or provider == "replay":
        return keys.get(provider)
    variable = KEY_VARIABLES[provider]
    if environment.get(variable):
        raise NotSetUpError(f"environment variable {variable} {_key_problem(environment[variable])}")
    if provider == "chat":
        return None
    raise NotSetUpError(
        f"no key for {provider}: write it into {AGENT_CONFIG}/{provider}-key.txt (mode 600) or set {variable}"
    )


def _read_key_file(project: Project, provider: Provider) -> str | None:
    path = project.agent_config / f"{provider}-key.txt"
    shown_path = f"{AGENT_CONFIG}/{path.name}"
    try:
        folder_mode, mode = path.parent.stat().st_mode, path.stat().st_mode
        text = read_regular_file(path).decode("utf-8-sig", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotSetUpError(f"{shown_path} cannot be read: {error.strerror}") from error
    groups_that_reach_it = (folder_mode & 0o011) << 2  # search bits of the folder, at the place of the read bits
    if mode & groups_that_reach_it:
        raise NotSetUpError(f"{shown_path} can be read by others: chmod 600 {shown_path}")
    return text.rstrip("\r\n")


def _key_problem(value: str) -> str | None:
    """Say what makes a key unfit, without quoting it. Header values are visible ASCII (RFC 9110, section 5.5)."""
    if not re.fullmatch(r"[\x21-\x7e]*", value):
        return "holds a blank, a line end or another character that no HTTP header can carry: one line, the key alone"
    if len(value) < SHORTEST_KEY:
        return f"holds no API key: it is shorter than {SHORTEST_KEY} characters"
    return None
