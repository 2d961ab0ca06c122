"""HTTP to one API. No exception of this module quotes a header or body of a request, since these hold the key."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import RequestBody
from code_commit.llm.certificates import Certificate, tls_context
from code_commit.llm.endpoint import Endpoint, Reply, Timing, at
from code_commit.llm.failures import UnsentError, explain_failure, explain_unreached
from code_commit.llm.proxies import named_proxy, proxy_of
from code_commit.llm.values import is_text, json_or_text, unpacked
from code_commit.terminal import shown

_FOR_EVER = 1e9  # in seconds; what a socket takes ends at nine times that


class OpenReply(NamedTuple):
    """A reply whose body is still coming. `pieces` raises PassingFailure when the connection breaks."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterator[bytes]

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def read(self) -> Reply:
        return Reply(self.status, self.headers, json_or_text(b"".join(self.pieces)))


class Connection:
    """Sends requests to one endpoint, one at a time. The caller closes it. Raises NotSetUpError."""

    def __init__(
        self,
        endpoint: Endpoint,
        headers: Mapping[str, str],
        timing: Timing,
        certificate: Certificate | None = None,
        renew: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        """`renew` returns the headers with a new key, for a request whose key is refused, or raises LLMError."""
        import httpx

        self._renew = renew
        self.endpoint = endpoint
        self.headers = dict(headers)
        self.timing = timing
        self.deadline = float("inf")  # the end of the current call, on the clock of `timing`
        self.limit = ""  # the time of the current call in words
        self.has_sent = False  # whether any part of the latest request may have reached the API
        self.is_proven = False  # whether the API has answered here, in a form of its own
        self._socket: Any = None
        self._timer = threading.Timer(0, self._shut)
        self._is_shut, self._is_connected, self._was_connected = False, False, False
        context, proxy = tls_context(endpoint.base_url, certificate), proxy_of(endpoint.base_url)
        self._proxy = urlsplit(proxy or "")
        self.proxy_variable = named_proxy(endpoint.base_url)[0] if proxy else ""
        self._new_client = partial(httpx.Client, verify=context, trust_env=False, proxy=proxy)
        try:
            self._client = self._new_client()
        except (ValueError, ImportError, httpx.InvalidURL):
            raise NotSetUpError(
                "the proxy that the variables name cannot be used: check HTTPS_PROXY, ALL_PROXY"
            ) from None

    @property
    def remaining(self) -> float:
        """The seconds until the deadline."""
        return self.deadline - self.timing.now()

    def close(self) -> None:
        self._client.close()

    def reconnect(self) -> None:
        """Replace the connection: a signal in the middle of a request leaves httpx's unusable."""
        self.close()
        self._client = self._new_client()

    def send(self, method: str, path: str, body: RequestBody | None, silence: float | None = None) -> Reply:
        with self.open(method, path, body, silence) as reply:
            return reply.read()

    @contextmanager
    def open(
        self, method: str, path: str, body: RequestBody | None, silence: float | None = None
    ) -> Iterator[OpenReply]:
        """Send a request and yield the reply as it arrives. `silence` is its longest pause, in seconds."""
        remaining = min(max(self.remaining, 0.001), _FOR_EVER)
        connect, read = min(self.timing.connect, remaining), remaining if silence is None else min(silence, remaining)
        with self._translated_errors():
            new_request = partial(
                self._client.build_request,
                method,
                at(self.endpoint.base_url, path),
                content=None if body is None else body.content,
                timeout=(connect, read, remaining, connect),
                extensions={"trace": self._watch},
            )
        with self._shut_at_the_deadline(remaining):
            self.has_sent, self._is_connected = False, False
            with self._translated_errors():
                response = self._client.send(new_request(headers=self.headers), stream=True)
            if response.status_code == HTTPStatus.UNAUTHORIZED and self._renew:
                response.close()
                self.has_sent = False  # a key that is refused begins no answer
                self.headers = dict(self._renew())
                with self._translated_errors():
                    response = self._client.send(new_request(headers=self.headers), stream=True)
            try:
                headers = {name.lower(): value for name, value in response.headers.items()}
                pieces = self._pieces(response.iter_raw())
                coding = headers.get("content-encoding", "identity").strip().lower()
                if coding not in ("", "identity"):
                    pieces = self._readable(pieces, coding, response.is_success)
                yield OpenReply(response.status_code, headers, pieces)
            finally:
                response.close()

    def _readable(self, pieces: Iterator[bytes], coding: str, is_success: bool) -> Iterator[bytes]:  # noqa: FBT001
        """Yield a reply that a proxy has unpacked without a word, or the beginning of a compressed refusal.

        Raises LLMError for a compressed answer, which may be of any size.
        """
        begin = next(pieces, b"")
        if is_success and not is_text(begin):
            said = f"{self.endpoint.host} sent a compressed answer (Content-Encoding: {shown(coding[:40])})"
            way = "turn compression off in the server, or in the proxy before it"
            raise LLMError(f"{said}, which was not asked for and may be of any size: {way}", "refused")
        yield from chain((begin,), pieces) if is_text(begin) else (unpacked(chain((begin,), pieces)),)

    def _pieces(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        size, most = 0, self.timing.largest_reply
        with self._translated_errors():
            for piece in pieces:
                size += len(piece)
                if size > most:
                    raise LLMError(f"{self.endpoint.host} sent more than {most >> 20} MB: no response is that long")
                yield piece
            if self._is_shut:  # which a reply of unknown length takes for its end
                raise self._out_of_time()

    def _out_of_time(self) -> LLMError:
        return LLMError(f"{self.endpoint.host} has not finished the answer within {self.limit}", "timeout")

    @contextmanager
    def _shut_at_the_deadline(self, remaining: float) -> Iterator[None]:
        """Shut the socket when the deadline passes in the block, which ends every read and write.

        httpx's timeouts limit a single read: a server that sends one byte a second never reaches them. The timer fires
        a little later than they do, since their messages say more.
        """
        self._is_shut = False
        self.shut_after(remaining + 0.1)
        try:
            yield
        finally:
            self._timer.cancel()

    def shut_after(self, seconds: float) -> None:
        """Shut the socket of the open reply after so many seconds, whatever was said before."""
        self._timer.cancel()
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._shut)
        self._timer.daemon = True
        self._timer.start()

    def _shut(self) -> None:
        import socket

        self._is_shut = True
        if self._socket is not None:
            with suppress(OSError):  # not SSLSocket's shutdown: a write after it would be in plain text
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _watch(self, event: str, details: Mapping[str, Any]) -> None:
        """Remember the socket of a new connection, and that a request is being sent."""
        self.has_sent |= event.endswith("send_request_headers.started")
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._is_connected = self._was_connected = True
            self._socket = details["return_value"].get_extra_info("socket")
            _keep_alive(self._socket, *self.timing.alive)

    def _peer(self) -> tuple[str, str]:
        """Return the host that the socket goes to, and its name in messages: the API, or the proxy before it."""
        if not self._proxy.hostname:
            return self.endpoint.host, self.endpoint.netloc
        host = shown(self._proxy.hostname)  # without the user's part, which may hold a password
        port = f":{self._proxy.port}" if self._proxy.port else ""
        return host, f"the proxy {host}{port} of {self.proxy_variable}"

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise our exceptions in place of httpx's, unchained, since httpx's may quote the request."""
        import httpx

        try:
            yield
        except (httpx.HTTPError, OSError, UnicodeError) as error:
            unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, UnicodeError)
            self.has_sent = self.has_sent and not isinstance(error, unsent)
            if self._is_shut or (isinstance(error, httpx.ReadTimeout) and self.remaining <= 0.1):
                raise self._out_of_time() from None
            if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) and not self._is_connected:
                raise explain_unreached(error, *self._peer(), was_connected=self._was_connected) from None
            failure = explain_failure(error, self.endpoint)
            self.has_sent = self.has_sent and not isinstance(failure, UnsentError)
            raise failure from None


def _keep_alive(connected: Any, first: int, every: int, times: int) -> None:
    """Let TCP ask whether a silent host is there, so that a silence alone is no error."""
    import socket

    options = ("TCP_KEEPIDLE", first), ("TCP_KEEPINTVL", every), ("TCP_KEEPCNT", times)
    with suppress(OSError, AttributeError):
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in options:
            if hasattr(socket, name):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
