"""What an error reply means: can it pass, and if not, what is the user to do. Every vendor's and gateway's spelling.

The tables are those of the vendors' error references; what is not in them is judged by its HTTP status.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from code_commit.errors import LLMError
from code_commit.llm.http import Endpoint, PassingFailure, Reply, list_of, member, text_of
from code_commit.terminal import shown

LONGEST_MESSAGE = 600
_LONGEST_HEAD = 10_000  # of a web page, in which its title is looked for

_MONEY_CODES = """
    credit_balance_exhausted insufficient_quota organization_spend_limit_exceeded project_spend_limit_exceeded
    organization_usage_limit_exceeded billing_not_active enforced_spend_limit_reached contract_spend_limit_reached
    billing_error payment_required quota_exceeded
"""
_MONEY = frozenset(_MONEY_CODES.split())
_KEY = frozenset(["invalid_api_key", "authentication_error", "authentication", "unauthenticated", "api_key_invalid"])
_TOO_LONG_CODES = """
    context_length_exceeded exceed_context_size_error string_above_max_length request_too_large
    request_body_too_large_after_decoding
"""
_TOO_LONG = frozenset(_TOO_LONG_CODES.split())
_NO_MODEL = frozenset(["model_not_found"])
_PASSING = frozenset(["request_body_timeout", "ramp_limit_exceeded"])

_MONEY_MESSAGE = re.compile(r"(?i)credit balance|spend(ing)? limit|usage limits?\b|insufficient (balance|funds|credit)")
_TOO_LONG_MESSAGE = re.compile(
    r"(?i)context (length|window|size|limit)|prompt is too long|maximum context|too many tokens|token count .* exceeds"
    r"|context.{0,20}overflow"
)
_NO_MODEL_MESSAGE = re.compile(r"(?i)invalid model name|model .{0,80}(not found|does not exist)")

_CODES_OF_STATUS = {
    400: "invalid_request_error invalid_request invalid_argument failed_precondition exceed_context_size_error "
    "context_length_exceeded",
    403: "permission_error permission_denied",
    404: "not_found_error not_found",
    429: "rate_limit_error rate_limit_exceeded slow_down resource_exhausted",
    503: "server_is_overloaded unavailable service_unavailable_error",
    504: "timeout_error deadline_exceeded",
    529: "overloaded_error",
}
"""For an error that comes with status 200, or in the middle of a stream."""

_PASSING_STATUSES = frozenset({408, 409, 425, 429, 499})
_LASTING_STATUSES = frozenset({501, 505, 511})
_OVERLOADS = frozenset({503, 529})


def refusal_of(reply: Reply, endpoint: Endpoint) -> LLMError | PassingFailure:
    """Return the exception that an error reply amounts to."""
    body = unwrapped(reply.body)
    codes = set(_codes(body))
    status = reply.status if reply.status >= 400 else _embedded_status(body, codes)
    message = error_message(body, endpoint.censor)
    where = f"{endpoint.host} answered {status}" if reply.status >= 400 else f"{endpoint.host} answered with an error"
    said = f"{where}: {message}" if message else where
    advice = _lasting_advice(status, codes, message, body, endpoint)
    if advice is None:
        advice = _advice_by_status(status, reply, codes, endpoint)
    if advice is not None:
        return LLMError(f"{said}; {advice}")
    failure = PassingFailure(said, "busy", asked_delay(reply.headers, body), reply)
    failure.is_overload = status in _OVERLOADS
    return failure


def explain_failure(error: Any, endpoint: Endpoint) -> str:
    """Return what a failed job's error says, with advice where repeating does not change it."""
    body = {"error": error}
    codes, message = set(_codes(body)), error_message(body, endpoint.censor)
    advice = _lasting_advice(_embedded_status(body, codes), codes, message, body, endpoint)
    return "; ".join(filter(None, (message, advice)))


def unwrapped(body: Any) -> Any:
    """Return the error object that some Google replies put into a list of one."""
    return body[0] if isinstance(body, list) and len(body) == 1 else body


def has_error(body: Any) -> bool:
    """Tell whether a reply with status 200 is an error in truth."""
    return bool(member(unwrapped(body), "error"))


def error_message(body: Any, censor: Callable[[str], str] = str) -> str:
    """Return what the API says, on one line that a terminal can show: any of the spellings, a page's title for HTML.

    It is censored before it is shortened.
    """
    if isinstance(body, str):
        title = re.search(r"(?is)<title>(.*?)</title>", body[:_LONGEST_HEAD])
        text = title[1] if title else "" if body.lstrip()[:1] == "<" else body
    else:
        error = member(body, "error")
        candidates = (
            member(error, "message"),
            error,
            member(body, "detail"),
            member(body, "message"),
            member(error, "code"),
        )
        text = next((candidate for candidate in candidates if isinstance(candidate, str) and candidate), "")
    line = censor(" ".join(text[: 4 * LONGEST_MESSAGE].split()))
    return shown(line if len(line) <= LONGEST_MESSAGE else line[:LONGEST_MESSAGE] + "...")


def _codes(body: Any) -> Iterator[str]:
    error = member(body, "error")
    for holder in (error, member(error, "details"), *list_of(error, "details"), *list_of(body, "errors")):
        for name in ("code", "type", "status", "reason", "error_code"):
            value = member(holder, name)
            if isinstance(value, str | int) and value:
                yield str(value).lower()


def _embedded_status(body: Any, codes: set[str]) -> int:
    for code in codes:
        if re.fullmatch(r"[45]\d\d", code):
            return int(code)
    for status, names in _CODES_OF_STATUS.items():
        if codes & set(names.split()):
            return status
    if codes & _KEY:
        return 401
    return 400 if _TOO_LONG_MESSAGE.search(error_message(body)) else 500


def _lasting_advice(status: int, codes: set[str], message: str, body: Any, endpoint: Endpoint) -> str | None:
    """Say what to do about an error that the API's own words call lasting, None where they do not."""
    if status == 402 or codes & _MONEY or (status in (400, 403, 429) and _MONEY_MESSAGE.search(message)):
        return "no money or quota is left there: top up, or raise the limit in the provider's console"
    if status == 429 and _is_daily(body):
        return "the quota of the day is used up: go on tomorrow, or raise it in the provider's console"
    if status == 401 or codes & _KEY:
        if not endpoint.key_source:
            return "it wants a key: write one into agent-config/chat-key.txt (mode 600)"
        return f"the key from {endpoint.key_source} is refused: put a valid one there"
    if status == 413 or codes & _TOO_LONG or (status in (400, 422) and _TOO_LONG_MESSAGE.search(message)):
        return (
            f"the prompt is too long for {endpoint.model}: make agent-config/codeRollup.txt smaller, "
            "or name a model with a larger window"
        )
    return None


def _is_daily(body: Any) -> bool:
    for detail in list_of(body, "error", "details"):
        for violation in list_of(detail, "violations"):
            if "perday" in text_of(violation, "quotaId").lower():
                return True
    return False


def _advice_by_status(status: int, reply: Reply, codes: set[str], endpoint: Endpoint) -> str | None:
    """Say what to do about a status that repeating does not change, None where the call can be made again."""
    should_retry = reply.headers.get("x-should-retry", "").strip().lower()
    can_pass = status in _PASSING_STATUSES or (status >= 500 and status not in _LASTING_STATUSES)
    if should_retry == "true" or (codes & _PASSING and should_retry != "false"):
        return None
    if can_pass and should_retry != "false":
        return None
    if status == 403:
        return f"the key may not use {endpoint.model}, or not from here: check its rights in the provider's console"
    if status == 404 or codes & _NO_MODEL or _NO_MODEL_MESSAGE.search(error_message(unwrapped(reply.body))):
        return f"check the name in --model ({endpoint.model}) and the address in --base-url ({endpoint.base_url})"
    if can_pass:
        return "the API says that asking again does not help"
    return "the request was not accepted: check --model, --max-output-tokens and --reasoning-effort"


def asked_delay(headers: Mapping[str, str], body: Any) -> float | None:
    """Return the seconds to wait that an error reply asks for, None where it names none that can be read.

    In this order: retry-after-ms, retry-after (seconds or an HTTP date), Google's RetryInfo.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    stated = headers.get("retry-after", "")
    seconds = _number(stated)
    if seconds is not None:
        return seconds
    until_date = _until(stated)
    if until_date is not None:
        return until_date
    return _retry_info(body)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,12}(\.\d{0,12})?\s*", text, re.ASCII) else None


def _until(date: str) -> float | None:
    if not date:
        return None
    from email.utils import parsedate_to_datetime

    try:
        return max(parsedate_to_datetime(date).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _retry_info(body: Any) -> float | None:
    """Read `retryDelay`, such as "34.07s", from the details of a Google error."""
    for detail in list_of(body, "error", "details"):
        if text_of(detail, "@type").endswith("RetryInfo"):
            delay = member(detail, "retryDelay")
            if isinstance(delay, str) and delay.endswith("s"):
                return _number(delay[:-1])
    return None
