"""Where each API is: the base URL as the vendor's own SDK takes it, checked before a key is sent there."""

import re
from collections.abc import Mapping

from code_commit.errors import NotSetUpError
from code_commit.keys import Provider
from code_commit.model_choice import ModelChoice
from code_commit.settings import Settings
from code_commit.terminal import shown

VENDOR_URLS: Mapping[Provider, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}

_ADDED_VERSIONS: Mapping[Provider, str] = {"anthropic": "/v1", "gemini": "/v1beta"}
"""What the vendor's SDK appends to the base URL that it is given; OpenAI's takes it as a part of the URL."""


def check_base_url(choice: ModelChoice, settings: Settings) -> str:
    """Return where the API is, without a slash at the end and with its version segment; "" for `replay`.

    Raises NotSetUpError for a URL that a key must not go to. It is not quoted where it may hold a secret.
    """
    if choice.provider == "replay":
        return ""
    if not settings.base_url:
        if choice.provider == "chat":
            raise NotSetUpError("--model chat: needs --base-url, such as http://127.0.0.1:11434/v1")
        return VENDOR_URLS[choice.provider]
    return _with_version(choice.provider, _checked(settings.base_url, settings.allow_http))


def _with_version(provider: Provider, url: str) -> str:
    has_version = re.search(r"/v\d+[a-z0-9]*$", url) is not None
    if provider in _ADDED_VERSIONS:
        return url if has_version else url + _ADDED_VERSIONS[provider]
    is_bare_host = url.count("/") == len("//")
    return url + "/v1" if provider == "openai" and is_bare_host else url


def _checked(url: str, allow_http: bool) -> str:  # noqa: FBT001 - it is the setting of this name
    if not re.fullmatch(r"[\x21-\x7e]+", url) or "\\" in url:
        raise NotSetUpError(
            "--base-url holds a blank, a backslash or a character that no URL has: write it percent-encoded"
        )
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port, secret = parts.hostname, parts.port, parts.username is not None or parts.password is not None
    except ValueError as error:
        raise NotSetUpError(f"--base-url is not a URL: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise NotSetUpError("--base-url must start with https:// (or http:// for this machine)")
    if secret:
        raise NotSetUpError("--base-url must hold no user name or password: keys go in headers only")
    if "?" in url or "#" in url:
        raise NotSetUpError("--base-url must end with its path: a query string or fragment is not sent")
    if not host or port == 0:
        raise NotSetUpError("--base-url names no host or port that can be reached")
    if parts.scheme == "http" and not allow_http and not is_this_machine(host):
        raise NotSetUpError(
            f"--base-url would send the key to {shown(host)} unencrypted: use https, or set allow_http = true "
            "in config.toml"
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path}".rstrip("/")


def is_this_machine(host: str) -> bool:
    """Tell whether a host name can only mean this machine."""
    if host.lower() == "localhost":
        return True
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
