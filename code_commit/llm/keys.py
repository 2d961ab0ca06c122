"""The API keys: finding them, checking them, and the texts to censor."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from code_commit.errors import NoKeyError, NotSetUpError
from code_commit.files import explain_unread, read_regular_file
from code_commit.llm.models import VENDORS, check_base_url, choose_model, for_another_address
from code_commit.llm.money import require_price
from code_commit.llm.programs import KeyProgram
from code_commit.llm.reach import header_secrets, reach_of
from code_commit.llm.vendor import SHORTEST_KEY_HERE, ApiKey, LlmConfig
from code_commit.paths.random_values import is_mixed
from code_commit.project import AGENT_CONFIG, Project, find_user_folder, shown_path
from code_commit.regex import regex
from code_commit.runs.words import count
from code_commit.settings import KEYS_VARIABLE, Settings
from code_commit.sources import read_tables
from code_commit.terminal import shown

KEY_VARIABLES = {vendor.name: vendor.key_variable for vendor in VENDORS.values() if vendor.key_variable}

SHORTEST_KEY = 8
_THIS_MACHINE = regex(r"(?i)(chat:)?https?://(localhost|127\.[0-9.]+|\[::1\])(:|/|$)")
_REST_OF_KEY_FILE = regex(r"(?i)[-_. ]?(api[-_. ]?)?keys?([.~].*)?")  # of a name behind the provider's


class Keys(dict[str, ApiKey]):
    """The key of each provider that has one; `unfit` has the reason for each key that cannot be used."""

    def __init__(self, keys: Mapping[str, ApiKey] = {}) -> None:
        super().__init__(keys)
        self.unfit: dict[str, str] = {}
        self.placeholder: ApiKey | None = None
        """The text in the place of the key of `chat` that is too short for one: servers on this machine take it."""
        self.others: list[str] = []  # the secrets of headers
        self._programs: dict[tuple[str, str], ApiKey] = {}

    def printed_by(self, command: str, provider: str, root: Path) -> ApiKey:
        """Return the key that a program prints, the same one all the time. Raises NotSetUpError."""
        if (command, provider) not in self._programs:
            program = KeyProgram(command, root, _key_problem)
            self._programs[command, provider] = ApiKey(provider, "", "key_command", program=program)
        return self._programs[command, provider]

    @property
    def texts(self) -> list[str]:
        """All that no build gets: keys, what programs have printed so far, and secrets of headers."""
        return [*(key.known for key in (*self.values(), *self._programs.values())), *self.others]


def load_keys(project: Project, environment: Mapping[str, str] = os.environ) -> Keys:
    """Return each provider's key: of its file in agent-config, its variable, or the user's own file, in this order.

    Raises NotSetUpError for an unsafe file.
    """
    keys, user = Keys(), find_user_folder(project, environment)
    for provider, variable in KEY_VARIABLES.items():
        name = f"{provider}-key.txt"
        value, source = _read_key_file(project.agent_config / name, f"{AGENT_CONFIG}/{name}"), f"{AGENT_CONFIG}/{name}"
        in_project = value is not None and _lies_in_project(project, provider)
        if value is None:
            value, source = environment.get(variable) or None, variable
        if value is None and (own := user.file(name)):
            value, source = _read_key_file(own, shown_path(own)), shown_path(own)
        if value is not None and not (problem := _key_problem(value)):
            keys[provider] = ApiKey(provider, value, source, in_project)
        elif value is not None:
            keys.unfit[provider] = f"{source} {problem}"
            if provider == "chat" and not _key_problem(value, 1):
                keys.placeholder = ApiKey(provider, value, source, in_project)
        elif misnamed := _find_misnamed_file(project, provider):
            keys.unfit[provider] = f"{AGENT_CONFIG}/{shown(misnamed)} is not read: rename it to {name}"
    keys.others = _header_secrets(project, environment)
    return keys


def key_of(llm: LlmConfig, keys: Keys, root: Path) -> ApiKey | None:
    """Return the key of an LLM, of its key_command where it has one; None if it needs none. Raises NotSetUpError."""
    provider, reach = llm.choice.provider, reach_of(llm.choice, llm.settings)
    if reach.key_command:
        return keys.printed_by(reach.key_command, provider, root)
    if reach.supplies_key(VENDORS[provider], llm.settings):
        return None
    return require_key(provider, keys, llm.settings.base_url)


def _header_secrets(project: Project, environment: Mapping[str, str]) -> list[str]:
    own, of_project = read_tables(project, environment)
    return header_secrets(own, of_project, environment)


def _find_misnamed_file(project: Project, provider: str) -> str:
    """Return a name in agent-config that was meant for the provider's key file, such as openai_key.txt; else ""."""
    with suppress(OSError):
        names = (path.name for path in project.agent_config.iterdir())
        meant = (name for name in names if name.lower().startswith(provider) and name != f"{provider}-key.txt")
        return min((name for name in meant if _REST_OF_KEY_FILE.fullmatch(name[len(provider) :])), default="")
    return ""


def find_secrets(project: Project, environment: Mapping[str, str] = os.environ, *base_urls: str) -> list[str]:
    """Return every text that may be a key, to censor it. Never raises. A base URL of "" is the vendor's."""
    is_here = any(base_urls) and all(_THIS_MACHINE.match(url) for url in base_urls if url)
    secrets, folders = [], [project.agent_config, *map(Path, filter(None, [environment.get(KEYS_VARIABLE)]))]
    folders += filter(None, [find_user_folder(project, environment).path])
    for provider, variable in KEY_VARIABLES.items():
        found = [environment.get(variable, "")]
        for folder in folders:
            with suppress(OSError):
                content = read_regular_file(folder / f"{provider}-key.txt")
                found.append(content.decode("utf-8-sig", "replace"))
        shortest = SHORTEST_KEY_HERE if provider == "chat" and is_here else SHORTEST_KEY
        lines = [line.strip() for text in found for line in text.splitlines()]
        long = [line for line in lines if len(line) >= SHORTEST_KEY]
        secrets += [line for line in long if len(line) >= shortest or is_mixed(line)]
    return [*secrets, *_header_secrets(project, environment)]


def require_key(provider: str, keys: Keys, base_url: str = "") -> ApiKey | None:
    """Return the provider's key, None if it needs none (`replay`, and `chat` without one). Raises NoKeyError."""
    variable = VENDORS[provider].key_variable
    if provider == "chat" and keys.placeholder and _THIS_MACHINE.match(base_url):
        return keys.placeholder
    if provider in keys.unfit:
        raise NoKeyError(keys.unfit[provider], provider=provider)
    if provider in keys or not variable or not VENDORS[provider].needs_key:
        return keys.get(provider)
    way = f"write it into {AGENT_CONFIG}/{provider}-key.txt (mode 600) or set {variable}"
    raise NoKeyError(f"no key for {provider}: {way}", provider=provider)


def _read_key_file(path: Path, name: str) -> str | None:
    """Return the text of a key file, None where it is missing; `name` is its path for messages."""
    try:
        folder_mode, mode = path.parent.stat().st_mode, path.stat().st_mode
        text = read_regular_file(path).decode("utf-8-sig", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotSetUpError(explain_unread(path, name, error)) from error
    groups_that_reach_it = (folder_mode & 0o011) << 2  # search bits of the folder, at the place of the read bits
    if mode & groups_that_reach_it:
        raise NotSetUpError(f"{name} can be read by others: chmod 600 {name}")
    return text.rstrip("\r\n")


def _lies_in_project(project: Project, provider: str) -> bool:
    """Tell whether a key file is in agent-config itself. A link may lead to any of the user's keys."""
    folder = Path(os.path.realpath(project.agent_config))
    return Path(os.path.realpath(folder / f"{provider}-key.txt")).parent == folder


def _key_problem(value: str, shortest: int = SHORTEST_KEY) -> str | None:
    """Return the problem of a key, without quoting it. Header values are visible ASCII (RFC 9110, section 5.5)."""
    if re.match(r"(export )?\w*(KEY|TOKEN) ?= ?[^= ]|[\"']|Bearer ", value):
        return "contains more than the key (NAME= or quotes?): put only the key in it"
    if not re.fullmatch(r"[\x21-\x7e]*", value):
        return (
            "contains a space, a line break or another character that HTTP headers cannot carry: put only the key in it"
        )
    if not value:
        return "is empty: put the key in it"
    if len(value) < shortest:
        return f"contains only {count(len(value), 'character')}, too few for an API key"
    return None


def choose_selector(settings: Settings, own: LlmConfig, keys: Keys, root: Path) -> LlmConfig:
    """Return the LLM that chooses files: the run's `own` with its fallback, or another. Raises NotSetUpError."""
    choice = choose_model(settings.select_model, setting="select_model") if settings.select_model else own.choice
    if choice == own.choice:
        return own
    if choice.provider != own.choice.provider:
        settings = for_another_address(settings)._replace(base_url="")
    settings = settings._replace(context_window=None, fallback_model="")
    check_base_url(choice, settings)
    if settings.max_cost is not None and choice.provider != "replay":
        require_price(choice, settings)
    llm = LlmConfig(choice, None, settings, role="select")
    return llm._replace(key=key_of(llm, keys, root))
