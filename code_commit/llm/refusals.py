"""What an error reply means: can it pass, and if not, what is the user to do. Every vendor's and gateway's spelling.

The tables are those of the vendors' error references; what is not in them is judged by its HTTP status.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from code_commit.errors import LLMError
from code_commit.llm.connection import PassingFailure, Reply
from code_commit.llm.json_values import list_of, member, text_of
from code_commit.llm.pace import Pace
from code_commit.llm.waiting import asked_delay
from code_commit.terminal import shown

LONGEST_MESSAGE = 600
_LONGEST_HEAD = 10_000  # of a web page, in which its title is looked for

_MONEY = frozenset(
    [
        "credit_balance_exhausted",
        "insufficient_quota",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "billing_not_active",
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "billing_error",
        "payment_required",
        "quota_exceeded",
    ]
)
_KEY = frozenset(["invalid_api_key", "authentication_error", "authentication", "unauthenticated", "api_key_invalid"])
_TOO_LONG = frozenset(
    [
        "context_length_exceeded",
        "exceed_context_size_error",
        "string_above_max_length",
        "request_too_large",
        "request_body_too_large_after_decoding",
    ]
)
_NO_MODEL = frozenset(["model_not_found"])
_PASSING = frozenset(["request_body_timeout", "ramp_limit_exceeded"])

_MONEY_MESSAGE = re.compile(r"(?i)credit balance|spend(ing)? limit|usage limits?\b|insufficient (balance|funds|credit)")
_TOO_LONG_MESSAGE = re.compile(
    r"(?i)context (length|window|size|limit)|prompt is too long|maximum context|too many tokens|token count .* exceeds"
    r"|context.{0,20}overflow"
)
_NO_MODEL_MESSAGE = re.compile(r"(?i)invalid model name|model .{0,80}(not found|does not exist)")

_STATUS_OF_CODE = {
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "slow_down": 429,
    "resource_exhausted": 429,
    "overloaded_error": 529,
    "server_is_overloaded": 503,
    "unavailable": 503,
    "service_unavailable_error": 503,
    "timeout_error": 504,
    "deadline_exceeded": 504,
    "invalid_request_error": 400,
    "invalid_request": 400,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "exceed_context_size_error": 400,
    "context_length_exceeded": 400,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "not_found": 404,
}
"""For an error that comes with status 200, or in the middle of a stream."""

_PASSING_STATUSES = frozenset({408, 409, 425, 429, 499})
_LASTING_STATUSES = frozenset({501, 505, 511})
_OVERLOADS = frozenset({503, 529})


@dataclass(frozen=True, slots=True)
class Subject:
    """Who was asked what: the words that the advice is made of."""

    model: str
    base_url: str
    host: str
    key_source: str
    """Where the key was found, "" where there is none."""
    censor: Callable[[str], str]
    """Takes the key out of what the API says: some quote it."""


def refusal_of(reply: Reply, subject: Subject, pace: Pace) -> LLMError | PassingFailure:
    """Return the exception that an error reply amounts to."""
    body = unwrapped(reply.body)
    codes = set(_codes(body))
    status = reply.status if reply.status >= 400 else _embedded_status(body, codes)
    message = error_message(body, subject.censor)
    where = f"{subject.host} answered {status}" if reply.status >= 400 else f"{subject.host} answered with an error"
    said = f"{where}: {message}" if message else where
    advice = _lasting_advice(status, codes, message, body, subject)
    if advice is None:
        advice = _advice_by_status(status, reply, codes, subject)
    if advice is not None:
        return LLMError(f"{said}; {advice}")
    failure = PassingFailure(said, "busy", asked_delay(reply.headers, body, pace), reply)
    failure.is_overload = status in _OVERLOADS
    return failure


def explain_failure(error: Any, subject: Subject) -> str:
    """Return what a failed job's error says, with advice where repeating does not change it."""
    body = {"error": error}
    codes, message = set(_codes(body)), error_message(body, subject.censor)
    advice = _lasting_advice(_embedded_status(body, codes), codes, message, body, subject)
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
    known = [_STATUS_OF_CODE[code] for code in codes if code in _STATUS_OF_CODE]
    if known:
        return known[0]
    if codes & _KEY:
        return 401
    return 400 if _TOO_LONG_MESSAGE.search(error_message(body)) else 500


def _lasting_advice(status: int, codes: set[str], message: str, body: Any, subject: Subject) -> str | None:
    """Say what to do about an error that the API's own words call lasting, None where they do not."""
    if status == 402 or codes & _MONEY or (status in (400, 403, 429) and _MONEY_MESSAGE.search(message)):
        return "no money or quota is left there: top up, or raise the limit in the provider's console"
    if status == 429 and _is_daily(body):
        return "the quota of the day is used up: go on tomorrow, or raise it in the provider's console"
    if status == 401 or codes & _KEY:
        if not subject.key_source:
            return "it wants a key: write one into agent-config/chat-key.txt (mode 600)"
        return f"the key from {subject.key_source} is refused: put a valid one there"
    if status == 413 or codes & _TOO_LONG or (status in (400, 422) and _TOO_LONG_MESSAGE.search(message)):
        return (
            f"the prompt is too long for {subject.model}: make agent-config/codeRollup.txt smaller, "
            "or name a model with a larger window"
        )
    return None


def _is_daily(body: Any) -> bool:
    for detail in list_of(body, "error", "details"):
        for violation in list_of(detail, "violations"):
            if "perday" in text_of(violation, "quotaId").lower():
                return True
    return False


def _advice_by_status(status: int, reply: Reply, codes: set[str], subject: Subject) -> str | None:
    """Say what to do about a status that repeating does not change, None where the call can be made again."""
    should_retry = reply.headers.get("x-should-retry", "").strip().lower()
    can_pass = status in _PASSING_STATUSES or (status >= 500 and status not in _LASTING_STATUSES)
    if should_retry == "true" or (codes & _PASSING and should_retry != "false"):
        return None
    if can_pass and should_retry != "false":
        return None
    if status == 403:
        return f"the key may not use {subject.model}, or not from here: check its rights in the provider's console"
    if status == 404 or codes & _NO_MODEL or _NO_MODEL_MESSAGE.search(error_message(unwrapped(reply.body))):
        return f"check the name in --model ({subject.model}) and the address in --base-url ({subject.base_url})"
    if can_pass:
        return "the API says that asking again does not help"
    return "the request was not accepted: check --model, --max-output-tokens and --reasoning-effort"
