"""The proxy to an address, by the variables that name proxies and what needs none."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from code_commit.errors import NotSetUpError


def proxy_of(base_url: str) -> str | None:
    """Return the proxy to an address. None leads to this machine: the request may be plain http, and it holds the key.

    Raises NotSetUpError.
    """
    return None if is_this_machine(urlsplit(base_url).hostname or "") else proxy_for(base_url)


def proxy_for(url: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the proxy to an address, None for none. Raises NotSetUpError, which names the variable that is at fault.

    The variables for other schemes are not looked at.
    """
    variable, value = named_proxy(url, environment)
    if not value or _needs_none(url, _read(environment, "no_proxy")[1]):
        return None
    proxy = value if "://" in value else f"http://{value}"
    kind, _, rest = proxy.partition("://")
    kind = {"socks": "socks5"}.get(kind.lower(), kind.lower())  # as desktops write it
    with suppress(ValueError):
        parts = urlsplit(f"{kind}://{rest}")
        port = parts.port  # raises ValueError
        if parts.hostname and port != 0 and kind in ("http", "https", "socks5", "socks5h"):
            if kind.startswith("socks"):
                _require_socks(variable)
            return f"{kind}://{rest}"
    wanted = "it must be http://HOST:PORT, https://... or socks5://..."
    raise NotSetUpError(f"the proxy that {variable} names cannot be used: {wanted}")


def named_proxy(url: str, environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Return the variable that names a proxy to addresses of this scheme, and its value, each "" for none."""
    found = (_read(environment, f"{name}_proxy") for name in (urlsplit(url).scheme, "all"))
    return next((each for each in found if each[1]), ("", ""))


def _require_socks(variable: str) -> None:
    from importlib.util import find_spec  # few proxies are of that kind

    if find_spec("socksio") is None:
        way = "in the clone, pip install '.[socks]', or pipx install --force '.[socks]'"
        raise NotSetUpError(f"{variable} names a SOCKS proxy, which needs the package 'socksio': {way}")


def _read(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """Return the variable in use and its value. The name in lower case comes first, as for curl.

    A CGI program takes HTTP_PROXY from a request's header.
    """
    names = [name, name.upper()]
    if name == "http_proxy" and "REQUEST_METHOD" in environment:
        names = [name]
    return next(((each, environment[each].strip()) for each in names if environment.get(each, "").strip()), ("", ""))


def _needs_none(url: str, exempt: str) -> bool:
    """Tell whether NO_PROXY names the address: by `*`, a host or its domain, an IP address or network, with a port."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".").lower()
    port = str(parts.port or (80 if parts.scheme == "http" else 443))
    return any(_is_named(host, port, entry) for entry in re.split(r"[,\s]+", exempt.lower()) if entry)


def _is_named(host: str, port: str, entry: str) -> bool:
    import ipaddress

    entry = re.sub(r"^[a-z]+://", "", entry)
    named = re.fullmatch(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>\d+))?|(?P<address>.*)", entry)
    if named is None or (named["port"] and named["port"] != port):
        return False
    name = (named["host"] or named["address"] or "").strip("[]").rstrip(".")
    if name == "*":
        return True
    with suppress(ValueError):
        network = ipaddress.ip_network(name, strict=False)
        return ipaddress.ip_address(host) in network
    suffix = name.removeprefix("*").removeprefix(".")
    return bool(suffix) and (host == suffix or host.endswith(f".{suffix}"))


def is_this_machine(host: str) -> bool:
    """Tell whether a host name can only mean this machine."""
    return re.fullmatch(r"(?i)localhost|127(\.\d{1,3}){3}|::1", host) is not None
