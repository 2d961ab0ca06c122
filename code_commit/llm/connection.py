"""One HTTP connection to one API: a request goes out, a reply comes back, and every failure in words of our own.

No exception that leaves this module quotes a header or a body that was sent: the key is in them.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from urllib.parse import urlsplit

import httpcore
import httpx

from code_commit.errors import LLMError
from code_commit.exchange import RequestBody
from code_commit.llm.json_values import parse_json
from code_commit.llm.pace import Pace
from code_commit.llm.wire import Deadline, Wire
from code_commit.terminal import shown

FailureKind = Literal["busy", "unsent", "lost", "broken", "garbage", "early", "gone"]


class PassingFailure(Exception):  # noqa: N818 - it ends as an LLMError when it does not pass
    """The call failed in a way that can pass.

    `kind`: `busy` the API said so; `unsent` nothing reached it; `lost` it may have begun to work unseen; `broken` a
    stream ended early; `garbage` what came is no API's reply; `early` a new job is not found, as its record may
    not be everywhere yet; `gone` an older one is not found. `delay` is what the API asked for, in seconds.
    """

    def __init__(
        self, reason: str, kind: FailureKind, delay: float | None = None, reply: "Reply | None" = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind
        self.delay = delay
        self.reply = reply
        self.is_overload = False


@dataclass(frozen=True)
class Reply:
    """A whole reply. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @cached_property
    def body(self) -> Any:
        """The parsed JSON, or the text where it is none."""
        try:
            return parse_json(self.data)
        except ValueError:
            return self.data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class OpenReply:
    """A reply whose body is still coming. `pieces` raises PassingFailure when the connection breaks."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterator[bytes]

    def read(self) -> Reply:
        return Reply(self.status, self.headers, b"".join(self.pieces))


class Connection:
    """Sends requests below one base URL. Close it at the end."""

    def __init__(self, base_url: str, headers: Mapping[str, str], pace: Pace) -> None:
        self.base_url = base_url
        self.headers = dict(headers)
        self.host = shown(urlsplit(base_url).hostname or "")
        self.deadline = Deadline(pace.now)
        self.pace = pace
        self._client = httpx.Client(
            transport=Wire(base_url, self.deadline), headers=headers, follow_redirects=False, trust_env=False
        )

    def close(self) -> None:
        self._client.close()

    def send(self, method: str, path: str, body: Mapping[str, Any] | None, silence: float) -> Reply:
        """Send a request and read the whole reply. Raises PassingFailure and LLMError."""
        with self.open(method, path, body, silence) as reply:
            return reply.read()

    @contextmanager
    def open(self, method: str, path: str, body: Mapping[str, Any] | None, silence: float) -> Iterator[OpenReply]:
        """Send a request and hand over the reply as it comes; `silence` is the longest pause of it, in seconds."""
        body = RequestBody(body) if body is not None and not isinstance(body, RequestBody) else body
        content = None if body is None else body.content
        timeout = httpx.Timeout(silence, connect=self.pace.connect, write=self.pace.write, pool=self.pace.connect)
        request = self._client.build_request(method, self.base_url + path, content=content, timeout=timeout)
        with self._own_words():
            response = self._client.send(request, stream=True)
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            if response.is_redirect or 300 <= response.status_code < 400:
                raise LLMError(self._redirected(response.status_code, headers.get("location", "")))
            yield OpenReply(response.status_code, headers, self._pieces(response))
        finally:
            response.close()

    def _pieces(self, response: httpx.Response) -> Iterator[bytes]:
        size = 0
        with self._own_words():
            for piece in response.iter_bytes():
                size += len(piece)
                if size > self.pace.largest_reply:
                    raise LLMError(
                        f"{self.host} sent more than {self.pace.largest_reply >> 20} MB: no response is that long"
                    )
                yield piece

    def _redirected(self, status: int, location: str) -> str:
        try:
            target = shown(urlsplit(location).hostname or "another path of its own")
        except ValueError:
            target = "an address that is none"
        return (
            f"{self.host} redirects to {target} (status {status}): a key is never sent after a redirect; "
            "name the right address with --base-url"
        )

    @contextmanager
    def _own_words(self) -> Iterator[None]:
        """Turn the HTTP library's exceptions into ours; theirs may quote what was sent, so they are not chained."""
        try:
            yield
        except _HTTP_ERRORS as error:
            failure = self._failure(error)
        else:
            return
        raise failure from None

    def _failure(self, error: Exception) -> Exception:
        certificate = _certificate_problem(error)
        if certificate:
            return LLMError(
                f"the certificate of {self.host} is not trusted ({certificate}): if a proxy of yours signs it, "
                "name its authority with SSL_CERT_FILE"
            )
        for kinds, reason, kind in _EXPLAINED:
            if isinstance(error, kinds):
                return PassingFailure(reason.format(host=self.host), kind)
        if isinstance(error, httpcore.ProxyError | httpx.ProxyError):
            status = str(error)[:3]
            if status in ("401", "403", "407"):
                return LLMError(
                    f"the proxy refuses the way to {self.host} (status {status}): check the proxy variables"
                )
            return PassingFailure(f"the proxy does not reach {self.host}", "unsent")
        if isinstance(error, httpcore.LocalProtocolError | httpcore.UnsupportedProtocol | httpx.InvalidURL):
            return LLMError(f"no request to {self.host} can be made ({type(error).__name__}): check --base-url")
        return PassingFailure(f"the connection to {self.host} broke ({type(error).__name__})", "lost")


_HTTP_ERRORS = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    httpcore.ConnectionNotAvailable,
    OSError,
)

_EXPLAINED: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, FailureKind], ...] = (
    ((httpcore.ConnectTimeout, httpcore.PoolTimeout), "no connection to {host} in time", "unsent"),
    (httpcore.ConnectError, "no connection to {host}", "unsent"),
    (httpcore.WriteTimeout, "{host} takes the prompt too slowly", "lost"),
    (httpcore.ReadTimeout, "{host} is silent for too long", "lost"),
    (httpcore.RemoteProtocolError, "{host} broke off, or what it sent is not HTTP", "lost"),
    (httpx.DecodingError, "what {host} sent cannot be decompressed", "garbage"),
)


def _certificate_problem(error: BaseException | None) -> str:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return ""
