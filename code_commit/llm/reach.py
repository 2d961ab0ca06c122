"""The way to a model's API beside its address: further headers, the key's header, a certificate, a key command.

All of it is for the address that is set in the same place, and for no other.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from code_commit.errors import NotSetUpError
from code_commit.headers import absolute, is_looked_up, look_up
from code_commit.llm.certificates import Certificate
from code_commit.llm.models import VENDORS, check_base_url, choose_model, names_address
from code_commit.llm.vendor import ModelChoice, Vendor
from code_commit.paths.random_values import looks_random
from code_commit.regex import regex
from code_commit.settings import FILE, USER, Facet, Settings, settings_for
from code_commit.terminal import shown

SHORTEST_SECRET = 8  # characters of a header's value that is censored
_OF_SECRETS = regex("(?i)auth|cookie|credential|key|passw|secret|token")  # in the name of a header
_REACH = settings_for(Facet.REACH)


class Reach(NamedTuple):
    """The way to one address. `plain` are the names of headers whose values stand in a config.toml as text."""

    headers: Mapping[str, str] = {}
    plain: frozenset[str] = frozenset()
    key_header: str = ""
    client_cert: Path | None = None
    client_key: Path | None = None
    key_command: str = ""

    @property
    def certificate(self) -> Certificate | None:
        """The client's certificate with its key, None without one."""
        return (self.client_cert, self.client_key) if self.client_cert else None

    def request_headers(self, vendor: Vendor, key: str, settings: Settings) -> dict[str, str]:
        """Return the headers of every request: the vendor's own, the key's, and the user's, which come first.

        Raises NotSetUpError.
        """
        own = {name: value for name, value in vendor.headers(key, settings).items() if value}
        if self.key_header and key:
            own = {name: value for name, value in own.items() if key not in value} | {self.key_header: key}
        return with_headers(own, self.headers)

    def supplies_key(self, vendor: Vendor, settings: Settings) -> bool:
        """Tell whether a header of the user's takes the place of the one with the key."""
        sample = "key"
        names = {name.lower() for name, value in vendor.headers(sample, settings).items() if sample in value}
        return bool(names & {name.lower() for name in self.headers})

    def shown(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return headers as a log has them: of the user's own texts of eight characters and more only two."""
        hidden = {name for name in self.plain if len(self.headers[name]) >= SHORTEST_SECRET}
        return {
            name: "*" * (len(value) - 2) + value[-2:] if name in hidden else value for name, value in headers.items()
        }


def with_headers(own: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Return both, those of `more` in the place of any that differs in letter case alone."""
    names = {name.lower() for name in more}
    return {name: value for name, value in own.items() if name.lower() not in names} | dict(more)


def reach_of(choice: ModelChoice, settings: Settings, environment: Mapping[str, str] = os.environ) -> Reach:
    """Return the way to the address of a model. Raises NotSetUpError where a part of it is missing."""
    if VENDORS[choice.provider].api is None:
        return Reach()
    given: dict[str, Any] = {}
    # the weakest source first; all as one where a program made the settings
    for source, place in (settings.sources or {"": settings._asdict()}).items():
        if (named := {name: place[name] for name in _REACH if place.get(name)}) and _is_for(
            source, place, choice, settings
        ):
            headers = {**given.get("headers", {}), **named.get("headers", {})}
            given |= named | ({"headers": headers} if headers else {})
    values = given.get("headers", {})
    cert, key = (_file(given.get(name, ""), name) for name in ("client_cert", "client_key"))
    if key and not cert:
        raise NotSetUpError("client_key is set without client_cert: set both")
    if cert and check_base_url(choice, settings).startswith("http:"):
        raise NotSetUpError("client_cert is for https, and the address begins with http://")
    return Reach(
        headers={name: look_up(name, value, environment) for name, value in values.items()},
        plain=frozenset(name for name, value in values.items() if not is_looked_up(value)),
        key_header=given.get("key_header", ""),
        client_cert=cert,
        client_key=key,
        key_command=given.get("key_command", ""),
    )


def _is_for(source: str, place: Mapping[str, Any], choice: ModelChoice, settings: Settings) -> bool:
    """Tell whether what a place says of the way is for the model's address. Raises NotSetUpError."""
    if not source:
        return True
    url = check_base_url(choice, settings)
    if place.get("base_url"):
        return names_address(place, "", choice, settings, url)
    if place.get("model"):
        return choose_model(place["model"]).provider == choice.provider and url == VENDORS[choice.provider].base_url
    if source != USER:
        return True  # for the run's own model, wherever that is
    require_place(settings)
    return True


def require_place(settings: Settings) -> None:
    """Raise NotSetUpError if the user's own config.toml names a way, but neither model nor address that it is for."""
    place = settings.sources.get(USER, {})
    names = ", ".join(f"[{name}]" if name == "headers" else name for name in _REACH if place.get(name))
    if names and not place.get("model") and not place.get("base_url"):
        raise NotSetUpError(f"{USER}: {names} needs an address: set model, or model and base_url, in the same file")


def _file(name: str, setting: str) -> Path | None:
    if not name:
        return None
    path = absolute(name)
    if not path.is_absolute() or not path.is_file():
        why = "is not a file" if path.is_absolute() else "is a relative path"
        raise NotSetUpError(f"{setting}: {shown(name)} {why}: name a PEM file by its absolute path, or ~/...")
    return path


def header_secrets(own: Mapping[str, Any], of_project: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Return the values of `[headers]` in both config.toml that are censored everywhere. Never raises.

    Values of variables and files are. So is a text that looks random, or whose header says that it is secret. Others,
    such as the name of a team, may stand in the project's own files: they are censored where the log has the request.
    """
    found = []
    for place, table in ((USER, own), (FILE, of_project)):
        headers = table.get("headers")
        for name, value in headers.items() if isinstance(headers, Mapping) else ():
            if isinstance(value, str):
                found += [word for word in value.split() if _OF_SECRETS.search(name) or looks_random(word)]
                continue
            with suppress(NotSetUpError, OSError, ValueError, TypeError, AttributeError, KeyError, IndexError):
                found += [look_up(name, value, environment)] if place == USER else []
    words = [word for text in found for word in (text, *text.split())]
    return [word for word in dict.fromkeys(words) if len(word) >= SHORTEST_SECRET]
