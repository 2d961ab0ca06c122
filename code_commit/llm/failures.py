"""Failures of a connection, in words that quote nothing of a request."""

import re
from dataclasses import dataclass
from typing import Literal, TypeVar

from code_commit.errors import LLMError
from code_commit.llm.endpoint import Endpoint, Reply
from code_commit.llm.proxies import is_this_machine
from code_commit.terminal import shown

E = TypeVar("E", bound=BaseException)
FailureKind = Literal["busy", "refused", "unresolved", "missing"]
_PAUSE_UNREACHED = 2.5  # in seconds, four times: a local server silent for ten seconds is not running


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


_BINARY = "illegal request line"
"""A part of h11's words on a reply whose first byte begins no text, as that of a TLS alert (0x15) does not."""


def explain_unreached(error: Exception, host: str, name: str, *, was_connected: bool) -> PassingFailure:
    """Return the failure to connect to a host. `was_connected` tells whether one was reached before in the run."""
    import socket

    failure = PassingFailure(f"no connection to {name} ({_words_of(error)})")
    if _find_cause(error, socket.gaierror) and not was_connected:
        failure.kind, failure.delay = "unresolved", _PAUSE_UNREACHED
    elif is_this_machine(host) and _find_cause(error, ConnectionRefusedError):
        failure.kind, failure.delay = "refused", _PAUSE_UNREACHED
    return failure


def explain_failure(error: Exception, endpoint: Endpoint) -> LLMError | PassingFailure:
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
        return PassingFailure(f"the proxy cannot reach {host} (HTTPS_PROXY and NO_PROXY say what goes through it)")
    if isinstance(error, UnicodeError):  # the host's name has a part that is empty, too long or no punycode
        return LLMError(f"{host} is not a valid host name: check {endpoint.address_option}")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        failure = PassingFailure(f"no connection to {endpoint.netloc} ({_words_of(error)})")
        if endpoint.is_local and (_find_cause(error, ssl.SSLEOFError) or _find_cause(error, ssl.SSLZeroReturnError)):
            said = "the server closed the TLS connection: if it speaks plain http, begin the address with http://"
            failure = PassingFailure(f"no connection to {endpoint.netloc} ({said})", "refused", _PAUSE_UNREACHED)
        return failure
    closed = f"{host} closed the connection before its answer was complete, or did not answer in HTTP"
    if endpoint.base_url.startswith("http:") and "without sending a response" in str(error):
        closed += "; if it speaks https, begin the address with https://"
    reasons: dict[type[Exception], str] = {
        httpx.WriteTimeout: f"{host} accepts the prompt too slowly",
        httpx.ReadTimeout: f"{host} has been silent for too long",
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
        return f"{endpoint.netloc}{_or_proxy(endpoint)} seems to speak https, not http: {way}"
    cause = _find_cause(error, ssl.SSLError)
    if cause is not None and "CERTIFICATE_REQUIRED" in (cause.reason or "").upper():
        way = "name it with client_cert and client_key in your own config.toml"
        return f"{endpoint.netloc} demands a client certificate: {way}"
    if isinstance(cause, ssl.SSLCertVerificationError):
        certificate = f"the certificate of {endpoint.host} is not trusted ({cause.verify_message})"
        return f"{certificate}: if your own proxy signs it, set SSL_CERT_FILE to the CA certificate of the proxy"
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
