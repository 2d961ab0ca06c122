"""The wire: sockets with a deadline, proxies and certificate authorities as the environment names them.

httpx's own transport has a timeout for each read, which a server that sends one byte a second never meets; here
every read and write is also bound by the deadline of the whole call.
"""

import os
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from code_commit.errors import NotSetUpError
from code_commit.llm.endpoint import is_this_machine

_PIECE = 65536
_IDLE_SECONDS = 5.0
"""A pooled connection older than this may have been dropped by a middlebox without a word."""


class Deadline:
    """When the current call has to be over, on the clock of `now`."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.at = float("inf")

    @property
    def remaining(self) -> float:
        return self.at - self._now()

    def bound(self, timeout: float | None) -> float | None:
        """Return the timeout, shortened to what remains; None where neither is limited."""
        limit = min(self.remaining, float("inf") if timeout is None else timeout)
        return None if limit == float("inf") else limit

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Set the deadline for a block; an earlier one comes back behind it."""
        before, self.at = self.at, self._now() + seconds
        try:
            yield
        finally:
            self.at = before


class _BoundStream(httpcore.NetworkStream):
    """A connection whose every read and write ends with the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limit = self._deadline.bound(timeout)
        if limit is not None and limit <= 0:
            raise httpcore.ReadTimeout("the deadline has passed")
        return self._stream.read(max_bytes, limit)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        view = memoryview(buffer)
        for start in range(0, len(buffer), _PIECE):
            limit = self._deadline.bound(timeout)
            if limit is not None and limit <= 0:
                raise httpcore.WriteTimeout("the deadline has passed")
            self._stream.write(bytes(view[start : start + _PIECE]), limit)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = self._deadline.bound(timeout)
        if limit is not None and limit <= 0:
            raise httpcore.ConnectTimeout("the deadline has passed")
        return _BoundStream(self._stream.start_tls(ssl_context, server_hostname, limit), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _BoundBackend(httpcore.SyncBackend):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        limit = self._deadline.bound(timeout)
        if limit is not None and limit <= 0:
            raise httpcore.ConnectTimeout("the deadline has passed")
        stream = super().connect_tcp(
            host, port, limit, local_address, [*(socket_options or ()), *_keep_alive_options()]
        )
        return _BoundStream(stream, self._deadline)


def _keep_alive_options() -> list[tuple[int, int, int]]:
    """TCP keep-alive: a peer that is gone is noticed although a thinking model sends nothing for minutes."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    idle = getattr(socket, "TCP_KEEPIDLE", getattr(socket, "TCP_KEEPALIVE", None))  # macOS has the second name
    for option, value in (
        (idle, 60),
        (getattr(socket, "TCP_KEEPINTVL", None), 60),
        (getattr(socket, "TCP_KEEPCNT", None), 5),
    ):
        if option is not None:
            options.append((socket.IPPROTO_TCP, option, value))
    return options


class Wire(httpx.BaseTransport):
    """One connection pool for the host of one base URL. Exceptions are httpcore's."""

    def __init__(self, base_url: str, deadline: Deadline) -> None:
        proxy = find_proxy(base_url)
        needs_tls = base_url.startswith("https:") or (proxy is not None and proxy.url.scheme == b"https")
        self._pool = httpcore.ConnectionPool(
            ssl_context=make_ssl_context() if needs_tls else _unused_context(),
            proxy=proxy,
            max_connections=2,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=_BoundBackend(deadline),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the response's body is still to be read."""
        url = request.url
        reply = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            status_code=reply.status,
            headers=reply.headers,
            stream=_Body(reply),
            extensions=reply.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, reply: httpcore.Response) -> None:
        self._reply = reply

    def __iter__(self) -> Iterator[bytes]:
        return self._reply.iter_stream()

    def close(self) -> None:
        self._reply.close()


def _unused_context() -> ssl.SSLContext:
    """A bare context for a client that speaks plain http: loading the authorities takes longer than `import ssl`."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def make_ssl_context() -> ssl.SSLContext:
    """Return a context with the authorities of SSL_CERT_FILE and SSL_CERT_DIR, else the system's, else certifi's.

    A folder of hashed names is preferred to a file: it is read only as far as it is needed. Raises NotSetUpError.
    """
    file, folder = (os.environ.get(variable) or None for variable in _CERTIFICATE_VARIABLES)
    try:
        if file or folder:
            return ssl.create_default_context(cafile=file, capath=folder)
        system = ssl.get_default_verify_paths()
        if any(Path(system.openssl_capath).glob("*.0")):
            return ssl.create_default_context(capath=system.openssl_capath)
        if Path(system.openssl_cafile).exists():
            return ssl.create_default_context(cafile=system.openssl_cafile)
        import certifi

        return ssl.create_default_context(cafile=certifi.where())
    except (OSError, ssl.SSLError) as error:
        names = " and ".join(_CERTIFICATE_VARIABLES)
        raise NotSetUpError(f"the certificate authorities cannot be read: {error}; check {names}") from error


_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def find_proxy(base_url: str) -> httpcore.Proxy | None:
    """Return the proxy that the environment names for the host, None for a direct way.

    What goes to this machine never takes a way around: it may be plain http, and the key is in it.
    Raises NotSetUpError for a proxy that cannot be used, without quoting it: it may hold a password.
    """
    target = urlsplit(base_url)
    host = target.hostname or ""
    proxies = getproxies()
    address = proxies.get(target.scheme) or proxies.get("all")
    if not address or is_this_machine(host) or proxy_bypass(host):
        return None
    problem = f"the proxy that {target.scheme.upper()}_PROXY or ALL_PROXY names cannot be used"
    try:
        proxy = urlsplit(address if "://" in address else f"http://{address}")
        if proxy.scheme not in ("http", "https", "socks5", "socks5h") or not proxy.hostname:
            raise NotSetUpError(f"{problem}: it must be http://HOST:PORT, https://... or socks5://...")
        url = httpcore.URL(scheme=proxy.scheme, host=proxy.hostname, port=proxy.port, target="/")
    except ValueError:
        raise NotSetUpError(f"{problem}: it is not a URL") from None
    if proxy.scheme.startswith("socks5") and find_spec("socksio") is None:
        raise NotSetUpError(f"{problem}: a SOCKS proxy needs the package 'socksio'")
    login = None if proxy.username is None else (unquote(proxy.username), unquote(proxy.password or ""))
    return httpcore.Proxy(url, auth=login, ssl_context=make_ssl_context() if proxy.scheme == "https" else None)
