"""The settings of a run: each one's name, type, default and explanation.

A setting with a help text is an option of the command line, a variable `CODE_COMMIT_...` and a key of config.toml, the
project's and then the user's own, in this order of precedence. The others are keys of config.toml alone.
"""

import argparse
import contextlib
import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

from code_commit.errors import Named

ENVIRONMENT_PREFIX = "CODE_COMMIT_"
ATTEMPT_VARIABLE, RUN_VARIABLE = "CODE_COMMIT_ATTEMPT", "CODE_COMMIT_RUN"  # for build.sh
KEYS_VARIABLE = "CODE_COMMIT_KEYS"  # names the folder of a fleet worker's `gemini-key.txt`, `openai-key.txt` ...
_WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", Mapping: "a table"}
_PLAIN = {int: "[0-9]+", float: r"[0-9]+(\.[0-9]+)?", bool: "true|false"}  # a text that fits without its quotes
_TABLE = ": write a line with its name in brackets, and each entry as NAME = VALUE on a line below it"
_UNITS = {"S": " of seconds", "USD": " of US dollars"}  # by metavar
NOT_NEGATIVE = "0 or more"
POSITIVE = "more than 0"
FAILING = "from 1 to 255"  # the exit codes of a failure
PROGRAM = "command:"  # the begin of a model that is a program
MOST = 10**12  # the limit of any number, so that sums and products stay finite
BOOLEANS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off", ""), False)
USER, FILE, LOG, ENVIRONMENT, COMMAND_LINE, SERVER = (
    *("your own config.toml", "config.toml", "log", "environment", "options", "server"),
)
"""The sources of settings. The log of a resumed run has no settings of the facet REACH."""


Options = Mapping[str, object]  # settings by their names, as one source has them: `load_settings` checks them


class UnfitValueError(ValueError, argparse.ArgumentTypeError):
    """A value does not fit its setting. The message says what it must be, also for argparse."""


class Facet(Enum):
    """The uses of a setting beside the main job's; `settings_for` finds the settings of one."""

    APPLY = "an option of `apply`"
    RESUME = "an option of `resume`, which overrides the run's own"
    ROLLUP = "an option of `rollup`"
    OUTPUT = "the output of a command, and no more; an option of each command that changes files"
    BUILD = "how the build of one and the same tree ends, and no more"
    LIMIT = "money, time or room; a task of a fleet goes on if it changes"
    MODEL = "the name of an LLM"
    ADDED = "a list to which the user's own adds; it replaces any other"
    REACH = "the way to the address of the same place, for no other; in no log, and looked up anew by `resume`"
    OWN = "the user's own: refused in a project's config.toml, since it runs a program or uses a secret"
    GUARD = "what a run may do to money, tree and machine: told where the project overrules the user's own"


APPLY, RESUME, ROLLUP, OUTPUT, BUILD, LIMIT, MODEL, ADDED, REACH, OWN, GUARD = Facet


class Setting:
    """One setting; without a help text it is a key of config.toml alone. Its facets stand beside it in the table.

    `kind` is str, int, float, bool (a flag), tuple (repeatable, of `part`s) or Mapping (the prices).
    """

    def __init__(self, help_text: str = "", metavar: str = "", limit: str = "") -> None:
        self.help = help_text
        self.metavar = metavar
        self.limit = limit
        self.facets: frozenset[Facet] = frozenset()
        self.kind: Any = str
        self.part: Any = str
        self.choices: tuple[str, ...] = ()
        self.may_be_none = False

    def set_type(self, annotation: Any, default: Any) -> None:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Literal:
            self.choices = arguments
        elif origin is types.UnionType:
            self.kind, self.may_be_none = arguments[0], True
        else:
            self.kind = origin or annotation
        if origin is tuple:
            self.part = arguments[0]
            default = ", ".join(map(str, default))
        if default and self.help:
            self.help += f" (default {f'{default:g}' if self.kind is float else default})"

    def parse(self, text: str) -> Any:
        """Return the value of an option's or a variable's text. Raises UnfitValueError."""
        value: Any = text
        with contextlib.suppress(ValueError):  # `check` refuses text that is no number
            if self.kind is bool:
                value = BOOLEANS.get(text.lower(), text)
            elif self.kind is tuple:
                value = [self.part(part) for part in re.split(r"[,\n]", text) if part]
            elif self.kind is Mapping:
                import tomllib

                value = tomllib.loads(f"value = {text}")["value"]
            else:
                value = self.kind(text)
        return self.check(value)

    def parse_option(self, text: str) -> Any:
        """Return the value of an option's text. Raises UnfitValueError, also for an empty string: a variable unset."""
        if not text.strip():
            raise UnfitValueError("is empty: give it a value, or leave the option out")
        return self.parse(text)

    def parse_part(self, text: str) -> Any:
        """Return the text of one option of a repeatable setting as its part. Raises UnfitValueError."""
        try:
            part = self.part(text)
        except ValueError as error:
            raise UnfitValueError(f"must be {_WORDS[self.part]}") from error
        return self._check_part(part)

    def _check_part(self, part: Any) -> Any:
        if not str(part).strip():
            raise UnfitValueError("must have no empty entry: name a path")
        if self.limit == FAILING and not 1 <= part <= 255:
            raise UnfitValueError(f"must be {self.limit}")
        return part

    def check(self, value: Any) -> Any:
        """Return a value as Settings holds it, with a list as a tuple. Raises UnfitValueError."""
        if self.choices and value not in self.choices:
            raise UnfitValueError(f"must be one of {', '.join(self.choices)}")
        if self.kind is tuple:
            if not isinstance(value, list | tuple) or not all(_is_a(self.part, part) for part in value):
                meant = f', such as ["{value}"]' if self.part is str and isinstance(value, str) else ""
                raise UnfitValueError(f"must be a list of {_WORDS[self.part].removeprefix('a ')}s{meant}")
            return tuple(map(self._check_part, value))
        if value is None and self.may_be_none:
            return None
        if not _is_a(self.kind, value):
            is_plain = isinstance(value, str) and re.fullmatch(_PLAIN.get(self.kind, "(?!)"), value)
            how = _TABLE if self.kind is Mapping else ": leave the quotes out" * bool(is_plain)
            raise UnfitValueError(f"must be {_WORDS[self.kind]}{_UNITS.get(self.metavar, '')}{how}")
        if self.limit and not (0 < value <= MOST or (value == 0 and self.limit == NOT_NEGATIVE)):
            raise UnfitValueError(f"must be {self.limit}" + (f", {MOST:,} at most" if value > MOST else ""))
        return float(value) if self.kind is float else value


class CommandSetting(Setting):
    """A program with its arguments, as a string that is split as a shell does, or as a list of words in config.toml."""

    def check(self, value: Any) -> Any:
        import shlex

        if isinstance(value, list | tuple) and value and all(isinstance(word, str) for word in value):
            value = shlex.join(value)
        if not isinstance(value, str):
            raise UnfitValueError("must be a string, or a list of words")
        try:
            if value and not shlex.split(value):
                raise UnfitValueError("names no program")
        except ValueError as error:
            raise UnfitValueError(f"cannot be split into words as a shell does: {error}") from error
        return value


class HeadersSetting(Setting):
    def check(self, value: Any) -> Any:
        from code_commit.headers import check_headers  # `--help` does without, as without pathlib

        return check_headers(super().check(value))


class HeaderNameSetting(Setting):
    def check(self, value: Any) -> Any:
        from code_commit.headers import is_name

        if super().check(value) and not is_name(value):
            raise UnfitValueError("names no header that may be set: write its name alone, such as api-key")
        return value


def _is_a(kind: Any, value: Any) -> bool:
    return isinstance(value, (int, float) if kind is float else kind) and isinstance(value, bool) == (kind is bool)


class Price(NamedTuple):
    """US dollars per million tokens, as `[prices."MODEL"]` of config.toml gives them."""

    input: Annotated[float, Setting(limit=NOT_NEGATIVE)]
    output: Annotated[float, Setting(limit=NOT_NEGATIVE)]
    cached_input: Annotated[float | None, Setting(limit=NOT_NEGATIVE)] = None
    cache_write: Annotated[float | None, Setting(limit=NOT_NEGATIVE)] = None


class Settings(NamedTuple):
    """All settings. A dataclass would double the time of `--help`."""

    model: Annotated[
        str, Setting("PROVIDER:NAME (gemini, openai, anthropic, chat, command, replay)", "MODEL"), MODEL, ROLLUP
    ] = ""
    select_model: Annotated[
        str, Setting("the LLM that chooses the rollup's files (default: the model)", "MODEL"), MODEL, ROLLUP
    ] = ""
    base_url: Annotated[
        str, Setting("the API's address, if it is not the vendor's; required for chat:", "URL"), RESUME, ROLLUP
    ] = ""
    fallback_model: Annotated[str, Setting("LLM that takes over if the model cannot be called", "MODEL"), MODEL] = ""
    fallback_base_url: Annotated[str, Setting("the fallback's address, if it is not the vendor's", "URL"), RESUME] = ""
    key_command: Annotated[
        str,
        CommandSetting(
            "a command that prints the API key (not in a project's config.toml); run again if the key is refused",
            "COMMAND",
        ),
        *(RESUME, ROLLUP, REACH, OWN),
    ] = ""
    max_repairs: Annotated[
        int, Setting("further attempts after failed builds, rejections, file requests", "N", NOT_NEGATIVE), RESUME
    ] = 3
    on_rejected: Annotated[Literal["retry", "stop"], Setting("ask again after a rejected response, or end the run")] = (
        "retry"
    )
    max_output_tokens: Annotated[
        int | None, Setting("maximum number of tokens the LLM may generate (default: the model's)", "N", POSITIVE)
    ] = None
    reasoning_effort: Annotated[
        str | None, Setting("reasoning effort, if the provider supports it (default: the model's)", "X")
    ] = None
    llm_timeout: Annotated[
        float, Setting("time limit in seconds for an LLM call and its retries", "S", POSITIVE), LIMIT, RESUME, ROLLUP
    ] = 3600.0
    build_timeout: Annotated[
        float, Setting("time limit in seconds for a build; 0: none", "S", NOT_NEGATIVE), LIMIT, BUILD, APPLY, RESUME
    ] = 3600.0
    answer_format: Annotated[
        Literal["files", "edits", "auto"],
        Setting("files: only whole files; edits: allow edits; auto: allow edits if a file is long"),
        APPLY,
    ] = "files"
    rollup: Annotated[
        Literal["file", "fresh", "fit", "select"],
        Setting("file: use codeRollup.txt as is; or rewrite it: fresh (all), fit (what fits), select (an LLM chooses)"),
    ] = "file"
    prompt_layout: Annotated[
        Literal["spec", "cached", "short"], Setting("order of the prompt's sections; `short` is for small models")
    ] = "spec"
    build_first: Annotated[bool, Setting("run build.sh before asking, so that the LLM sees why it fails")] = False
    max_cost: Annotated[
        float | None,
        Setting("stop before a call that could exceed this total, in US dollars", "USD", POSITIVE),
        LIMIT,
        RESUME,
        ROLLUP,
        GUARD,
    ] = None
    allow: Annotated[
        tuple[str, ...],
        Setting("only paths matching GLOB may change (.gitignore syntax, repeatable)", "GLOB"),
        APPLY,
        GUARD,
    ] = ()
    protect: Annotated[
        tuple[str, ...], Setting("paths matching GLOB must not change (repeatable)", "GLOB"), APPLY, ADDED
    ] = ()
    strict: Annotated[
        bool,
        Setting("reject a change to an existing file if the rollup lacks the file or shows another version"),
        APPLY,
        GUARD,
    ] = False
    dry_run: Annotated[
        bool, Setting("verify one answer, print the diff that would be applied, and change nothing"), APPLY
    ] = False
    approve: Annotated[bool, Setting("show each answer's diff, and ask on the terminal before applying it"), GUARD] = (
        False
    )
    rollback: Annotated[bool, Setting("restore every file unless the run ends with a passing build"), APPLY, GUARD] = (
        False
    )
    infrastructure_exit_codes: Annotated[
        tuple[int, ...],
        Setting("exit codes of build.sh that mean that the machine failed, not the code (repeatable)", "N", FAILING),
        BUILD,
    ] = (75,)
    require_clean: Annotated[bool, Setting("refuse to start unless `git status` is clean"), APPLY, GUARD] = False
    sandbox: Annotated[
        Literal["auto", "off", "guard", "strict"], Setting("what the build may touch"), BUILD, APPLY, RESUME, GUARD
    ] = "auto"
    json: Annotated[bool, Setting("print only JSON on stdout, at the end"), OUTPUT] = False
    quiet: Annotated[bool, Setting("print only errors"), OUTPUT] = False
    verbose: Annotated[bool, Setting("print more, such as a build's output as it runs"), OUTPUT] = False

    headers: Annotated[Mapping[str, Any], HeadersSetting(), REACH] = {}
    key_header: Annotated[str, HeaderNameSetting(), REACH] = ""
    client_cert: Annotated[str, Setting(), REACH, OWN] = ""
    client_key: Annotated[str, Setting(), REACH, OWN] = ""
    allow_http: Annotated[bool, Setting(), GUARD] = False
    anthropic_version: str = "2026-10-21"
    context_window: Annotated[int | None, Setting(limit=POSITIVE)] = None
    build_output_limit: Annotated[int, Setting(limit=NOT_NEGATIVE)] = 400_000
    rollup_exclude: tuple[str, ...] = ()
    choice_tokens: Annotated[int, Setting(limit=POSITIVE)] = 40_000
    stream: Annotated[bool, Setting(), LIMIT] = True
    background: Annotated[bool, Setting(), LIMIT] = True
    requests_per_minute: Annotated[int | None, Setting(limit=POSITIVE), LIMIT] = None
    tokens_per_minute: Annotated[int | None, Setting(limit=POSITIVE), LIMIT] = None
    keep_runs: Annotated[int, Setting(limit=NOT_NEGATIVE), LIMIT] = 0
    keep_days: Annotated[int, Setting(limit=NOT_NEGATIVE), LIMIT] = 0
    codebase_additions: bool = False
    file_replacements: Literal["whole", "diff"] = "whole"
    sandbox_network: Annotated[bool, Setting(), BUILD, GUARD] = False
    sandbox_caches: Annotated[tuple[str, ...], Setting(), BUILD, GUARD] = ()
    prices: Annotated[Mapping[str, Price], Setting(), LIMIT] = {}

    sources: Mapping[str, Mapping[str, Any]] = {}
    """The values of each source, the strongest last; empty if a program made the settings."""

    def source_of(self, name: str) -> str:
        """Return the source of a setting's value: `USER`, `FILE`, `LOG`, `ENVIRONMENT`, `COMMAND_LINE`, or ""."""
        return next((source for source, given in [*self.sources.items()][::-1] if name in given), "")

    def origin(self, name: str, value: str = "") -> tuple[str | Named, Mapping[str, Any]]:
        """Return a setting, with a value, in the spelling of its source, and all values of that source."""
        source, told = self.source_of(name), f" of {value}" * bool(value)
        spelled = {ENVIRONMENT: f"{ENVIRONMENT_PREFIX}{name.upper()}{told}"}
        spelled |= {file: f"{file}'s {name}{told}" for file in (USER, FILE)}
        return spelled.get(source, Named(name, value)), self.sources.get(source, {})

    @property
    def provenance(self) -> str:
        """The sources of all values that are no defaults, in words, the strongest first."""
        said = []
        for source in [*self.sources][::-1]:
            names = [name for name in self.sources[source] if self.source_of(name) == source or is_merged(name)]
            said += [f"{', '.join(names)} from {source}"] if names else []
        return "; ".join(said) or "all defaults"

    def as_record(self) -> dict[str, Any]:
        """Return the settings as run.json holds them, with prices as objects, and without the way to an address."""
        values = {name: value for name, value in self._asdict().items() if name in LOGGED}
        return values | {"prices": {model: price._asdict() for model, price in self.prices.items()}}


def _settings_of(shape: type[Settings | Price]) -> dict[str, Setting]:
    table = {}
    for name, annotation in shape.__annotations__.items():
        if name != "sources":
            kind, setting = annotation, Setting()
            if hasattr(annotation, "__metadata__"):
                kind, (setting, *facets) = annotation.__origin__, annotation.__metadata__
                setting.facets = frozenset(facets)
            setting.set_type(kind, shape._field_defaults.get(name))
            table[name] = setting
    return table


SETTINGS = _settings_of(Settings)
OPTIONS = {name: setting for name, setting in SETTINGS.items() if setting.help}
PRICE = _settings_of(Price)
POSITIVE_NUMBER = {"type": SETTINGS["max_output_tokens"].parse}  # for an argument of argparse
LOGGED = tuple(name for name, setting in SETTINGS.items() if REACH not in setting.facets)
"""The settings that run.json holds."""


def settings_for(*facets: Facet) -> tuple[str, ...]:
    """Return the names of the settings that have one of these facets, in the order of the table."""
    return tuple(name for name, setting in SETTINGS.items() if setting.facets.intersection(facets))


def is_merged(name: str) -> bool:
    """Tell whether the user's own value adds to the project's: a table by its keys, or a list of the facet."""
    return SETTINGS[name].kind is Mapping or ADDED in SETTINGS[name].facets


def add_settings(parser: argparse.ArgumentParser, names: Collection[str] = tuple(OPTIONS)) -> None:
    """Add the options of these settings, in the order of the table. One that is not given is absent from the result."""
    group = parser.add_argument_group(
        "settings", "each is also a key in agent-config/config.toml and a variable CODE_COMMIT_..."
    )
    for name, option in OPTIONS.items():
        if name not in names:
            continue
        flag = "--" + name.replace("_", "-")
        if option.kind is bool:
            group.add_argument(flag, action="store_true", help=option.help)
        elif option.choices:
            group.add_argument(flag, choices=option.choices, help=option.help)
        elif option.kind is tuple:
            group.add_argument(flag, action="append", type=option.parse_part, metavar=option.metavar, help=option.help)
        else:
            group.add_argument(flag, type=option.parse_option, metavar=option.metavar, help=option.help)


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `; did you mean 'X'?` with the nearest known name, "" if none is near."""
    import difflib

    nearest = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean '{nearest[0]}'?" if nearest else ""
