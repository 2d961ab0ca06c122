"""HTTP to one API. No exception of this module quotes a header or body of a request, since these hold the key."""

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import RequestBody
from code_commit.llm.certificates import Certificate, tls_context
from code_commit.llm.proxies import is_this_machine, named_proxy, proxy_of
from code_commit.llm.values import is_text, json_or_text, unpacked
from code_commit.settings import Settings
from code_commit.terminal import shown

E = TypeVar("E", bound=BaseException)
FailureKind = Literal["busy", "refused", "unresolved", "missing"]
_FOR_EVER = 1e9  # in seconds; what a socket takes ends at nine times that
_PAUSE_UNREACHED = 2.5  # in seconds, four times: a local server silent for ten seconds is not running


def at(base_url: str, path: str) -> str:
    """Return the address of a path below a base URL, whose query goes with every request."""
    base, _, query = base_url.partition("?")
    return f"{base}{path}" + (f"{'&' if '?' in path else '?'}{query}" if query else "")


class Endpoint(NamedTuple):
    """The model, its address, and the settings of its requests."""

    model: str
    base_url: str
    settings: Settings
    root: Path
    key_source: str  # the place of the key, "" without a key
    censor: Callable[[str], str]  # takes the key out of the API's words: some quote it
    tells_progress: bool = False
    path: str = ""  # of the requests, below the address
    is_vendors: bool = False  # whether the address is the vendor's own
    role: str = ""  # "fallback" or "select", as in LlmConfig

    @property
    def host(self) -> str:
        return shown(urlsplit(self.base_url).hostname or "")

    @property
    def netloc(self) -> str:
        """The host with its port."""
        return shown(urlsplit(self.base_url).netloc)

    @property
    def address_option(self) -> str:
        return f"--{'fallback-' * (self.role == 'fallback')}base-url"

    @property
    def model_option(self) -> str:
        return f"--{self.role and f'{self.role}-'}model"

    @property
    def is_local(self) -> bool:
        return is_this_machine(urlsplit(self.base_url).hostname or "")


class Timing(NamedTuple):
    """The clock of a call, its timeouts and its pauses, in seconds."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    wall_clock: Callable[[], float] = time.time
    random: Callable[[], float] = lambda: time.time() % 1  # from 0 to 1, for jitter

    connect: float = 15.0
    read: float = 60.0  # the longest silence in the answer to a request that can be repeated for free: a poll, a count
    cancel: float = 10.0  # for cancelling a job in all: the user waits for the tool to end
    after_end: float = 15.0  # for what a stream has behind the end of its answer, such as counts

    alive: tuple[int, int, int] = (60, 15, 4)
    """When TCP asks whether a silent host is there: first, then every, and how often before it is not."""
    largest_reply: int = 512 * 1024 * 1024  # in bytes; no model writes that much

    first_poll: float = 0.5
    longest_poll: float = 15.0
    poll_growth: float = 1.6

    first_backoff: float = 1.0
    longest_backoff: float = 60.0


class Reply(NamedTuple):
    """A whole reply. Header names are in lower case; the body is the parsed JSON, else the text."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


@dataclass(eq=False)
class PassingFailure(Exception):  # noqa: N818 - it becomes an LLMError if it does not pass
    """The call failed in a way that can pass. `delay` is the wait that the API asked for, in seconds.

    `kind` is `refused` if nothing on this machine speaks to us there, `unresolved` if nobody has known the name of the
    host in this run, `missing` if the job may not be recorded everywhere yet, else `busy`. `may_be_paid` says that the
    provider may have begun an answer, `status` is the reply's, or one in its body.
    """

    reason: str
    kind: FailureKind = "busy"
    delay: float | None = None
    reply: Reply | None = None
    may_be_paid: bool = False
    status: int | None = None


class UnsentError(LLMError):
    """TLS did not come about, or only the other side spoke it: no API has read the request, though some was sent."""


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
                raise self._explain_unreached(error) from None
            failure = _explain_failure(error, self.endpoint)
            self.has_sent = self.has_sent and not isinstance(failure, UnsentError)
            raise failure from None

    def _explain_unreached(self, error: Exception) -> PassingFailure:
        """Return the failure to connect to the host, or to the proxy before it."""
        import socket

        host, netloc = self.endpoint.host, self.endpoint.netloc
        if self._proxy.hostname:  # whose address may hold a password
            host = shown(self._proxy.hostname)
            port = f":{self._proxy.port}" if self._proxy.port else ""
            netloc = f"the proxy {host}{port} of {self.proxy_variable}"
        failure = PassingFailure(f"no connection to {netloc} ({_words_of(error)})")
        if _find_cause(error, socket.gaierror) and not self._was_connected:
            failure.kind, failure.delay = "unresolved", _PAUSE_UNREACHED
        elif is_this_machine(host) and _find_cause(error, ConnectionRefusedError):
            failure.kind, failure.delay = "refused", _PAUSE_UNREACHED
        return failure


_BINARY = "illegal request line"
"""A part of h11's words on a reply whose first byte begins no text, as that of a TLS alert (0x15) does not."""


def _keep_alive(connected: Any, first: int, every: int, times: int) -> None:
    """Let TCP ask whether a silent host is there, so that a silence alone is no error."""
    import socket

    options = ("TCP_KEEPIDLE", first), ("TCP_KEEPINTVL", every), ("TCP_KEEPCNT", times)
    with suppress(OSError, AttributeError):
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in options:
            if hasattr(socket, name):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _explain_failure(error: Exception, endpoint: Endpoint) -> LLMError | PassingFailure:
    """Return the failure of a request, in a message that quotes nothing of the request."""
    import ssl

    import httpx

    host = endpoint.host
    if lasting := _explain_tls(error, endpoint):
        return UnsentError(lasting)
    if isinstance(error, httpx.ProxyError):
        status = str(error)[:3]
        if status in ("401", "403", "407"):
            return LLMError(f"the proxy refuses to connect to {host} (status {status}): check the proxy variables")
        return PassingFailure(f"the proxy does not reach {host} (HTTPS_PROXY and NO_PROXY say what goes through it)")
    if isinstance(error, UnicodeError):  # the host's name has a part that is empty, too long or no punycode
        return LLMError(f"{host} is not a valid host name: check {endpoint.address_option}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        failure = PassingFailure(f"no connection to {endpoint.netloc} ({_words_of(error)})")
        if endpoint.is_local and (_find_cause(error, ssl.SSLEOFError) or _find_cause(error, ssl.SSLZeroReturnError)):
            said = "the server closed the TLS connection: if it speaks plain http, begin the address with http://"
            failure = PassingFailure(f"no connection to {endpoint.netloc} ({said})", "refused", _PAUSE_UNREACHED)
        return failure
    closed = f"{host} closed the connection before its answer was complete, or sent no HTTP"
    if endpoint.base_url.startswith("http:") and "without sending a response" in str(error):
        closed += "; if it speaks https, begin the address with https://"
    reasons: dict[type[Exception], str] = {
        httpx.WriteTimeout: f"{host} takes the prompt too slowly",
        httpx.ReadTimeout: f"{host} is silent for too long",
        httpx.RemoteProtocolError: closed,
    }
    return PassingFailure(reasons.get(type(error), f"the connection to {host} broke"))


def _words_of(error: Exception) -> str:
    return shown(re.sub(r"^\[Errno -?\d+\] | \(_ssl\.c:\d+\)$", "", str(error)))


def _explain_tls(error: Exception, endpoint: Endpoint) -> str:
    """Return why TLS cannot work there, "" for any other failure."""
    import ssl

    if endpoint.base_url.startswith("http:") and _BINARY in str(error):
        way = f"begin the address with https:// ({endpoint.address_option})"
        return f"{endpoint.netloc}{_or_proxy(endpoint)} speaks no http, but https as it seems: {way}"
    cause = _find_cause(error, ssl.SSLError)
    if cause is not None and "CERTIFICATE_REQUIRED" in (cause.reason or "").upper():
        way = "name it with client_cert and client_key in your own config.toml"
        return f"{endpoint.netloc} demands a client certificate: {way}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        certificate = f"the certificate of {endpoint.host} is not trusted ({cause.verify_message})"
        return f"{certificate}: if a proxy of yours signs it, name its authority with SSL_CERT_FILE"
    if cause is None or cause.reason != "WRONG_VERSION_NUMBER":
        return ""
    if endpoint.is_local:
        return f"{endpoint.netloc} speaks http, not https: begin the address with http:// ({endpoint.address_option})"
    way = f"{endpoint.address_option} and the proxy variables"
    return f"{endpoint.netloc}{_or_proxy(endpoint)} speaks http, not https: check {way}"


def _or_proxy(endpoint: Endpoint) -> str:
    return "" if endpoint.is_local else ", or a proxy before it,"


def _find_cause(error: BaseException | None, kind: type[E]) -> E | None:
    """Return the first exception of a kind in a chain of causes, None without one."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error
