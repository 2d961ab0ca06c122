"""Error replies: whether one can pass, and the advice to the user; by the vendors' references, else by HTTP status."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from code_commit.errors import LLMError, LLMErrorKind
from code_commit.llm.http import Endpoint, PassingFailure, Reply, list_of, member, text_of
from code_commit.terminal import shown

LONGEST_MESSAGE = 600
_LONGEST_HEAD = 10_000  # of a web page, in which its title is looked for

_MONEY = r"credit_balance|insufficient_quota|(spend|usage)_limit|billing|payment_required|quota_exceeded"
_TOO_LONG = r"context_length|context_size|string_above_max|request_(body_)?too_large"
_KEY = frozenset(["invalid_api_key", "authentication_error", "authentication", "unauthenticated", "api_key_invalid"])
_LASTING_CODES = """
    invalid_request_error invalid_request invalid_argument failed_precondition
    permission_error permission_denied not_found_error not_found
"""
_LASTING = frozenset(_LASTING_CODES.split())
"""For an error that comes with status 200, or in the middle of a stream; every other one can pass."""

_MONEY_MESSAGE = r"(?i)credit balance|spend(ing)? limit|usage limits?\b|insufficient (balance|funds|credit)"
_TOO_LONG_MESSAGE = (
    r"(?i)context (length|window|size|limit)|prompt is too long|maximum context|too many tokens|token count .* exceeds"
    r"|context.{0,20}overflow"
)
_Advice = tuple[LLMErrorKind, str]  # the kind of the error, and the advice to the user

_PASSING_STATUSES = frozenset({408, 409, 425, 429, 499})

_UNPAID_STATUSES = {*range(300, 500), 503, 529} - {303, 408, 499}
"""The statuses of a refused request. The others may come from a gateway while the provider goes on."""


def may_be_paid(*, sent: bool, status: int | None) -> bool:
    """Tell whether a request for an answer may be billed. `status` is its reply's, None without a reply."""
    return sent and status not in _UNPAID_STATUSES


def refusal_of(reply: Reply, endpoint: Endpoint) -> LLMError | PassingFailure:
    if 300 <= reply.status < 400:
        target = shown(endpoint.censor(reply.headers.get("location", ""))[:200])
        return LLMError(
            f"{endpoint.host} redirects to {target} (status {reply.status}): a key is never sent after a redirect; "
            "name the right address with --base-url",
            "refused",
        )
    body = unwrapped(reply.body)
    codes, message = set(_codes(body)), error_message(body, endpoint)
    status = reply.status if reply.status >= 400 else _embedded_status(codes, message)
    where = f"{endpoint.host} answered {status}" if reply.status >= 400 else f"{endpoint.host} answered with an error"
    said = f"{where}: {message}" if message else where
    lasting = _lasting_advice(status, codes, message, body, endpoint)
    if lasting is None and not _can_pass(status, codes, reply.headers):
        lasting = _advice_by_status(status, codes, endpoint)
    if lasting is not None:
        kind, advice = lasting
        return LLMError(f"{said}; {advice}", kind)
    return PassingFailure(said, delay=asked_delay(reply.headers, body), reply=reply)


def explain_failure(error: Any, endpoint: Endpoint) -> str:
    """Return a failed job's error in words, with advice if repeating it cannot help."""
    body = {"error": error}
    codes, message = set(_codes(body)), error_message(body, endpoint)
    _, advice = _lasting_advice(_embedded_status(codes, message), codes, message, body, endpoint) or ("", "")
    return "; ".join(filter(None, (message, advice)))


def unwrapped(body: Any) -> Any:
    """Return the body, out of the list of one that some Google replies put it into."""
    return body[0] if isinstance(body, list) and len(body) == 1 else body


def has_error(body: Any) -> bool:
    """Tell whether a reply with status 200 is in fact an error."""
    return bool(member(unwrapped(body), "error"))


def error_message(body: Any, endpoint: Endpoint) -> str:
    """Return the API's message, or an HTML page's title, on one printable line: censored, then shortened."""
    if isinstance(body, str):
        title = re.search(r"(?is)<title>(.*?)</title>", body[:_LONGEST_HEAD])
        text = title[1] if title else "" if body.lstrip()[:1] == "<" else body
    else:
        error = member(body, "error")
        told = [member(error, "message"), error, member(body, "detail"), member(body, "message"), member(error, "code")]
        text = next((text for text in told if isinstance(text, str) and text), "")
    line = endpoint.censor(" ".join(text[: 4 * LONGEST_MESSAGE].split()))
    if len(line) > LONGEST_MESSAGE:
        return shown(line[:LONGEST_MESSAGE]) + "..."
    return shown(line.removesuffix("." if not line.endswith("..") else ""))


def _codes(body: Any) -> Iterator[str]:
    error = member(body, "error")
    for holder in (error, member(error, "details"), *list_of(error, "details"), *list_of(body, "errors")):
        for name in ("code", "type", "status", "reason", "error_code"):
            value = member(holder, name)
            if isinstance(value, str | int) and value:
                yield str(value).lower()


def _embedded_status(codes: set[str], message: str) -> int:
    for code in codes:
        if re.fullmatch(r"[45]\d\d", code):
            return int(code)
    if codes & _KEY:
        return 401
    return 400 if codes & _LASTING or _has(codes, _TOO_LONG) or re.search(_TOO_LONG_MESSAGE, message) else 500


def _has(codes: set[str], pattern: str) -> bool:
    return any(re.search(pattern, code) for code in codes)


def _lasting_advice(status: int, codes: set[str], message: str, body: Any, endpoint: Endpoint) -> _Advice | None:
    """Return the advice on an error that is permanent by the API's own words, None for any other."""
    if status == 402 or _has(codes, _MONEY) or (status in (400, 403, 429) and re.search(_MONEY_MESSAGE, message)):
        return "quota", "no money or quota is left there: top up, or raise the limit in the provider's console"
    if status == 429 and _is_daily(body):
        return "quota", "the quota of the day is used up: continue tomorrow, or raise it in the provider's console"
    if status == 401 or codes & _KEY:
        if not endpoint.key_source:
            return "key", "it wants a key: write one into agent-config/chat-key.txt (mode 600)"
        return "key", f"the key from {endpoint.key_source} is refused: put a valid one there"
    if status == 413 or _has(codes, _TOO_LONG) or (status in (400, 422) and re.search(_TOO_LONG_MESSAGE, message)):
        advice = "start a new run with a smaller codeRollup.txt, or name a model with a larger window"
        return "too_long", f"the prompt is too long for {endpoint.model}: {advice}"
    return None


def _is_daily(body: Any) -> bool:
    details = list_of(body, "error", "details")
    violations = [violation for detail in details for violation in list_of(detail, "violations")]
    return any("perday" in text_of(violation, "quotaId").lower() for violation in violations)


def _can_pass(status: int, codes: set[str], headers: Mapping[str, str]) -> bool:
    should_retry = headers.get("x-should-retry", "").strip().lower()
    if should_retry in ("true", "false"):
        return should_retry == "true"
    return "request_body_timeout" in codes or status in _PASSING_STATUSES or (status >= 500 and status != 501)


def _advice_by_status(status: int, codes: set[str], endpoint: Endpoint) -> _Advice:
    """Return the advice on a status that a retry cannot change."""
    if status == 403:
        advice = f"the key may not use {endpoint.model}, or not from here: check its rights in the provider's console"
        return "key", advice
    if status == 404 or "model_not_found" in codes:
        where = f"the address of the API ({endpoint.base_url})"
        hint = _mend_address(endpoint.base_url) if status == 404 else ""
        return "refused", f"check the name of the model ({endpoint.model}) and {where}{hint}"
    options = "--model, --max-output-tokens and --reasoning-effort"
    return "refused", f"the request was not accepted, and a retry cannot help: check {options}"


def _mend_address(url: str) -> str:
    if url.endswith("/chat/completions"):
        return "; leave /chat/completions out of it"
    return "" if re.search(r"/v\d", url) else f"; try {url}/v1"


def asked_delay(headers: Mapping[str, str], body: Any) -> float | None:
    """Return the seconds to wait that a reply asks for: retry-after-ms, retry-after, Google's RetryInfo, or None."""
    milliseconds, seconds = _number(headers.get("retry-after-ms", "")), _number(headers.get("retry-after", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    if seconds is not None:
        return seconds
    delays = (text_of(detail, "retryDelay") for detail in list_of(body, "error", "details"))  # such as "34.07s"
    return next((_number(delay.removesuffix("s")) for delay in delays if delay), None)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,12}(\.\d{0,12})?\s*", text, re.ASCII) else None
