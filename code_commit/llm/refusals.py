"""Refusals: whether a reply is one, its words, whether waiting can help, and the advice to the user.

A reply is a refusal by its status, or because it has words and no answer. It is lasting, whatever the status, by the
matter that the words speak of: a size, money, a period of a day or more, a model, a key.
"""

import re
from typing import Any, NamedTuple

from code_commit.errors import LLMError, LLMErrorKind
from code_commit.llm.endpoint import Endpoint, Reply
from code_commit.llm.failures import PassingFailure
from code_commit.llm.values import json_or_text
from code_commit.llm.waits import asked_wait
from code_commit.llm.words import (
    CODES,
    LONGEST_MESSAGE,
    error_message,
    named_parameters,
    scalars_under,
    told,
    unwrapped,
)
from code_commit.regex import regex
from code_commit.terminal import shown

_PASSING_STATUSES = frozenset({408, 409, 425, 429, 499})
_UNPAID_STATUSES = {*range(300, 500), 503, 529} - {303, 408, 499}
"""The statuses of a refused request. The others may come from a gateway while the provider goes on."""

_OWN_KEY = "write one into agent-config/chat-key.txt (mode 600), or set CODE_COMMIT_CHAT_API_KEY"
_Advice = tuple[LLMErrorKind, str]  # the kind of the error, and the advice to the user

_ASIDE = regex(r"https?://\S+|\(e\.g\.[^)]*\)|\bInput should\b|\bIf you [^.;]*")
"""Google's "(e.g. check quota)" is no used up quota, and pydantic's "Input" is any parameter. A case that is only put
("If you made it just now, wait and try again") is none that was met.
"""
_OFFER = regex(r"(?i)\b(higher|increase|raise)\b.*\blimits?\b")
_KEY_CODES = frozenset(
    ["invalid_api_key", "authentication_error", "authentication", "unauthenticated", "api_key_invalid"]
)
_KEY = regex(
    r"(?i)\b(api|access|secret)[ _-]?key\b.{0,60}\b(in?valid|incorrect|wrong|missing|unknown|expired|revoked|not)\b"
    r"|\b(invalid|incorrect|wrong|missing|unknown|expired|no)( (api|access|secret)[ _-]?(key|token)| key provided)\b"
    r"|\b(expired|revoked) (key|token)\b|\bauthentication (error|failed)\b"
)
_CLOSED = regex(
    r"(?i)\b(account|access|organi[sz]ation|key|service)\b.{0,60}"
    r"\b(terminated|suspended|deactivated|disabled|banned|paused)\b"
)
_NUMBER = r"(\d[\d,_]*)"
_ASKED = regex(
    rf"(?i)\brequest(?:ed)?\W*(?:(?:has|had|uses|is|of|with|contains|needs|for)\W+)?(?:about )?{_NUMBER}"
    rf"|{_NUMBER} tokens? >"
)
_LIMIT = regex(rf"(?i)\b(?:limit|max(?:imum)?|allowed|at most)\W*(?:(?:is|of)\W+)?{_NUMBER}|tokens? > {_NUMBER}")
_NO_LIMIT = regex(r"(?i)\blimit['\"]?\s*(?:is|of|:|=)?\s*0(?![\d.,]*\d)")
_EACH = r"(?i)((?<![a-z])(per|a|each)|/)[ _-]?"  # also within a name: requests_per_minute_per_project
_RATE = regex(_EACH + r"(min(ute)?|sec(ond)?|hour|hr)(?![a-z])|\b[rt]p[ms]\b|per(minute|second|hour)")
_LONG_PERIOD = regex(
    _EACH + r"(day|week|month)(?![a-z])|\b[rt]pd\b|\b(daily|weekly|monthly)\b|perday|[今每当本][日天周月]"
)
_PERIODS = (("week", "week|周"), ("month", "month|月"), ("day", ""))  # by what names them in words of a long one
_NO_MONEY = regex(
    r"(?i)\b(balance|(?<!thinking )budget(?! \d)|prepaid|arrear\w*|good standing|insufficient (funds|credits?|quota)"
    r"|(extra|additional) usage)\b"
    r"|余额|欠费|额度不足"  # of Chinese gateways, which answer 403 or 429 with these words alone
)
_MONEY = regex(r"(?i)\b(billing|payment|credits?|purchase|recharge|top.?up|usage limits?|spend(ing)?( limits?)?)\b")
_QUOTA = regex(r"(?i)\bquota\b")
_EXHAUSTED = regex(r"(?i)\bresource[ _]exhausted\b")  # of Google, which has a quota for each minute
_REACHED = regex(
    r"(?i)\blimit (was |is |has been )?(exceeded|reached|hit)\b|\b(exceeded|reached|hit)\b.{0,30}\blimit\b"
)
_PROMPT = r"(?:prompt|inputs?|context|tokens?|messages|conversation|payload|body|entity)"
_SIZE = r"(?:too (?:long|large|big|many)|exceed\w*|maximum|(?:greater|larger|longer) than|overflow\w*|limit|range)"
_TOO_LONG = regex(
    rf"(?i)\b{_PROMPT}\b.{{0,80}}\b{_SIZE}\b|\b{_SIZE}\b.{{0,60}}\b{_PROMPT}\b|\brequest\W+(is |size )*too (large|long)"
    r"|\b(context|input|prompt) (length|window|size)\b|string above max|[超过]长"
)
_SIZES = regex(r"(?<![\w.:/-])\d{3,}(?:[,_]\d{3})*(?![\w:/-]|\.\d)")
_NO_SIZE = regex(r"(?i)\b(line|col(umn)?|char|position|code|status)\W{1,3}\d+")
_OF_SIZE = regex(r"(?i)tokens\b|token (count|limit)|characters\b|length|\bsize\b|context|prompt|input|长度|上下文")
_SMALLEST_LIMIT = 256  # of a context window, in tokens
_OTHER_LIMIT = regex(r"(?i)\bquota\b|\btime|\brate\b|concurren|\brequests\b|\bexpired?\b")
_OUTPUT = regex(r"(?i)\b(max_(completion_|output_)?tokens|maxOutputTokens)\b")
_TOO_LARGE = regex(r"(?i)too (large|high|big|many)|exceed|greater|larger|>|at most|less than|maximum|range")
_NOT_THERE = (
    r"(not[ _-](exist|found|known|supported|valid|a valid|enabled)|no such|unknown|invalid model|unsupported"
    r"|(doesn|isn).t|does not (exist|support)|no (available )?channel|no access|not have access"
    r"|decommission|deprecat|retired|shut ?down)"
)
_NO_MODEL = regex(
    rf"(?i)\b(model|deployment|engine)s?\b.{{0,80}}{_NOT_THERE}|{_NOT_THERE}.{{0,40}}\b(model|deployment|engine)s?\b"
    r"|\bmodel ((id|name|identifier) )?is invalid\b"
)
_NO_ADDRESS = regex(
    rf"(?i)\b(endpoint|route|url|path)s?\b.{{0,40}}{_NOT_THERE}|\b(unexpected|unknown) (endpoint|route)|\bcannot post\b"
)
_HEADER = regex(
    r"(?i)\b(missing|requires?d?|needs?|lacks?|without|no|invalid|unknown)\b.{0,60}\bheaders?\b"
    r"|\bheaders?\b.{0,60}\b(missing|required?|not|invalid|unknown)\b"
)
_OF_A_KEY = regex(r"(?i)\bauthori[sz]ation\b|\bapi[-_ ]?key\b|\bbearer\b|\btoken\b")
_OF_RIGHTS = regex(
    r"(?i)\b(keys?|tokens?|credentials?|permi\w+|access|allow\w*|rights?|scopes?|roles?|denied|forbidden|may not"
    r"|models?|country|region|location)\b|authori[sz]"
)
_EFFORT = regex(r"(?i)\beffort\b|reasoning[ _.-]?effort|thinking[ _-]?level|output[ _]config")
_NO_MEMORY = regex(r"(?i)\b(requires?|needs?) more\b.{0,40}\bmemory\b")
_PASSES = regex(
    r"(?i)\b(re)?try(ing)?( again)? (later|shortly|soon|in an? )|\btemporar|\bbusy\b|\boverloaded\b"
    r"|\bwait\b.{0,30}\b(re)?try|稍后|稍候"
)
_THROTTLED = regex(r"(?i)\btoo many requests\b|\brate[ _-]?(limits? )?(was |is )?(exceeded|reached|hit)\b|\bthrottl")
_MAY_COME = regex(r"(?i)load|busy|capacity|temporar|moment|later|again|warm|starting|ready|unavailable")
_OF_A_GATEWAY = regex(
    r"(?i)\bbad gateway\b|\btime[d-]? ?out\b|\b5\d\d\b|\b(wait|waking|initiali[sz]ing|booting|sleeping|preparing"
    r"|building|deploying|maintenance|soon|being)\b"
)  # in a page of status 200
_LASTING_CODES = regex(
    r"(?i)\b(invalid|permission|forbidden|not found|failed precondition|bad request"
    r"|polic(y|ies)|violation|mismatch|unsupported|denied)"
)
"""For an error without a status, of a job, in a stream or a reply with status 200: the APIs' own codes."""


class RefusedRequestError(LLMError):
    """A refusal that waiting cannot change: what the API `said`, its reply, and the advice on it."""

    def __init__(self, said: str, advice: str, kind: LLMErrorKind, reply: Reply) -> None:
        super().__init__(f"{said}; {advice}", kind)
        self.said = said
        self.reply = reply


def may_be_paid(*, sent: bool, status: int | None) -> bool:
    """Tell whether a request for an answer may be billed. `status` is its reply's, None without a reply."""
    return sent and status not in _UNPAID_STATUSES


def can_come(body: Any) -> bool:
    """Tell whether the API may answer later, after a body in no form of its own: none, damaged JSON, or a page that
    says that something passes.
    """
    if not isinstance(body, str) or not body.strip():
        return isinstance(body, str)
    lines = (line.encode("utf-8", "replace") for line in body.split("\n") if line.strip())
    if body.lstrip()[0] in "{[":
        return not all(isinstance(json_or_text(line), dict) for line in lines)
    return any(pattern.search("; ".join(told(body))) for pattern in (_PASSES, _MAY_COME, _OF_A_GATEWAY))


def refusal_of(reply: Reply, endpoint: Endpoint, now: float, where: str = "") -> RefusedRequestError | PassingFailure:
    """Return what a refusal comes to. `now` is the time since 1970, `where` begins its message in place of its host."""
    if 300 <= reply.status < 400:
        target = shown(endpoint.censor(reply.headers.get("location", ""))[:200])
        return RefusedRequestError(
            f"{endpoint.host} redirects to {target} (status {reply.status}): a key is never sent after a redirect",
            f"name the right address with {endpoint.address_option}",
            "refused",
            reply,
        )
    body = unwrapped(reply.body)
    where = where or f"{endpoint.host} answered {reply.status if reply.status >= 400 else 'with an error'}"
    message = error_message(body, endpoint)
    said = f"{where}: {message}" if message else where
    wait = asked_wait(reply.headers, body, message, now)
    matter = _Matter.of(reply.status, body, endpoint.model)
    lasting = _lasting_advice(matter, wait, endpoint)
    if lasting is None and not _can_pass(matter, wait, reply):
        lasting = _advice_by_status(matter, endpoint)
    if lasting is not None:
        kind, advice = lasting
        return RefusedRequestError(said, advice, kind, reply)
    return PassingFailure(said, delay=wait, reply=reply, status=matter.status or reply.status)


class _Matter(NamedTuple):
    """The matter of a refusal. `status` is that of the reply or in its body, `text` its codes and words as one.

    The name of the model that was asked for is left out of it: it may speak of anything.
    """

    status: int
    codes: frozenset[str]
    code_words: str
    text: str
    parameters: frozenset[str]
    is_of_model: bool  # whether it names the model

    @classmethod
    def of(cls, status: int, body: Any, model: str) -> "_Matter":
        codes = sorted({str(code) for code in scalars_under(body, CODES)})
        named = " ".join(code for code in codes if not code.isdigit())
        code_words = re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]", " ", named[: 8 * LONGEST_MESSAGE])
        words = "; ".join(told(body))[: 8 * LONGEST_MESSAGE]
        if status < 400:
            status = next((int(code) for code in codes if re.fullmatch(r"[45]\d\d", code)), 0)
        parts = re.split(r"(?<=[.;,(])", _ASIDE.sub(" ", f"{code_words}. {words}"))
        text = "".join(part for part in parts if not _OFFER.search(part))  # an offer is no reason
        text, names = re.subn(rf"(?<![\w-]){re.escape(model)}(?![\w-])", " ", text)
        parameters = named_parameters(body)
        lower = frozenset(code.lower() for code in codes)
        return cls(status, lower, code_words, text, parameters, names > 0 or "model" in parameters)

    def says(self, pattern: re.Pattern[str]) -> bool:
        return pattern.search(self.text) is not None


def _lasting_advice(matter: _Matter, wait: float | None, endpoint: Endpoint) -> _Advice | None:
    """Return the advice on an error that waiting cannot help, None for any other."""
    return (
        _on_header(matter)
        or _on_key(matter, endpoint)
        or _too_large(matter, endpoint)
        or _used_up(matter, wait)
        or _on_effort(matter, endpoint)
        or _on_account_or_model(matter, endpoint)
    )


def _on_header(matter: _Matter) -> _Advice | None:
    """Return the advice on a header that is wanted and is not the key's."""
    if matter.status not in (0, 400, 401, 403, 422) or not matter.says(_HEADER) or matter.says(_OF_A_KEY):
        return None
    return "refused", "name the header that it wants under [headers] in your own config.toml"


def _on_key(matter: _Matter, endpoint: Endpoint) -> _Advice | None:
    is_of_key = matter.codes & _KEY_CODES or (matter.says(_KEY) and matter.status != 429)
    if not is_of_key and (matter.status != 401 or matter.says(_NO_MONEY)):
        return None
    if not is_of_key and endpoint.key_source and matter.is_of_model:
        return None
    if not endpoint.key_source:
        return "key", f"it requires a key: {_OWN_KEY}"
    if endpoint.key_source == "key_command":
        return "key", "the key that key_command printed is refused: run that command in a shell, and log in if it asks"
    return "key", f"the key from {endpoint.key_source} is refused: put a valid one there"


def _on_account_or_model(matter: _Matter, endpoint: Endpoint) -> _Advice | None:
    if matter.says(_CLOSED) and matter.status < 500:
        return "key", "the provider has closed the account or the service: see its console, or use another key"
    if matter.says(_NO_MEMORY):
        return "refused", f"{endpoint.model} does not fit into that machine's memory: name a smaller model"
    is_of_model = matter.parameters <= {"body", "model"} and matter.status not in (404, 429)
    if is_of_model and matter.says(_NO_MODEL) and not matter.says(_MAY_COME):
        return "refused", f"check the name of the model ({endpoint.model}): {endpoint.model_option}"
    return None


def _on_effort(matter: _Matter, endpoint: Endpoint) -> _Advice | None:
    """Return the advice on an effort that the user has asked for, if the refusal names it."""
    effort = endpoint.settings.reasoning_effort
    named = matter.says(_EFFORT) or any(_EFFORT.search(name) for name in matter.parameters)
    if not effort or not named or matter.status not in (0, 400, 404, 422) or matter.says(_MAY_COME):
        return None
    return "refused", f"{endpoint.model} does not accept it: omit --reasoning-effort {effort}, or use another value"


def _used_up(matter: _Matter, wait: float | None) -> _Advice | None:
    """Return the advice on money or a quota that is used up, None where a wait or a period of minutes helps, or where a
    parameter is refused: its value may be quoted.
    """
    console = "raise the limit in the provider's console"
    if (matter.status >= 500 and matter.says(_MAY_COME)) or (matter.status in (400, 422) and matter.parameters):
        return None
    if matter.status == 402 or matter.says(_NO_LIMIT) or matter.says(_NO_MONEY):
        return "quota", f"no money or quota is left there: top up, or {console}"
    long = _LONG_PERIOD.search(matter.text)
    if any("perday" in code for code in matter.codes) or (long and not wait):
        words = long[0].lower() if long else ""
        period = next(name for name, pattern in _PERIODS if re.search(pattern, words))
        return "quota", f"the quota of the {period} is used up: continue when the next one begins, or {console}"
    is_of_money = matter.says(_MONEY) or (matter.says(_QUOTA) and not matter.says(_EXHAUSTED))
    if not wait and is_of_money and not (matter.says(_RATE) or matter.says(_LONG_PERIOD)):
        return "quota", f"no money or quota is left there: top up, or {console}"
    return None


def _too_large(matter: _Matter, endpoint: Endpoint) -> _Advice | None:
    """Return the advice on a request that is larger than a limit, None for any other."""
    smaller = "make the prompt smaller (--rollup select or fit), or name a model with a larger window"
    if matter.status != 413 and (matter.status == 429 or matter.says(_RATE)):
        if not _asks_more_than_the_limit(matter.text):
            return None
        return "too_long", f"the request is larger than this limit, so waiting cannot help: {smaller} or limit"
    has_sizes = matter.status in (0, 400, 422) and matter.says(_OF_SIZE) and _has_two_sizes(matter.text)
    is_of_size = matter.says(_TOO_LONG) or has_sizes
    is_too_long = matter.status == 413 or (is_of_size and not (matter.says(_OTHER_LIMIT) or matter.says(_PASSES)))
    if matter.says(_OUTPUT) and (has_sizes or matter.says(_TOO_LARGE)):
        advice = "ask for a shorter answer with --max-output-tokens, or make the prompt smaller"
        return "too_long" if is_too_long else "refused", advice
    return ("too_long", f"the prompt is too long for {endpoint.model}: {smaller}") if is_too_long else None


def _has_two_sizes(text: str) -> bool:
    """Tell whether a message names two sizes: what was sent, and what fits. The number of a place is none."""
    sizes = {int(re.sub(r"\D", "", size)) for size in _SIZES.findall(_NO_SIZE.sub(" ", text))}
    return sum(size >= _SMALLEST_LIMIT for size in sizes) > 1


def _asks_more_than_the_limit(text: str) -> bool:
    """Tell whether a message names the size that was asked for, and a limit that is smaller."""
    asked, limit = _ASKED.search(text), _LIMIT.search(text)
    if not asked or not limit:
        return False
    size, most = (int(re.sub(r"\D", "", next(filter(None, found.groups())))) for found in (asked, limit))
    return size > most


def _can_pass(matter: _Matter, wait: float | None, reply: Reply) -> bool:
    should_retry = reply.headers.get("x-should-retry", "").strip().lower()
    if should_retry in ("true", "false"):
        return should_retry == "true"
    if "request_body_timeout" in matter.codes:
        return True
    if matter.status == 0:
        return _LASTING_CODES.search(matter.code_words) is None and not matter.says(_NO_ADDRESS)
    passes = wait or matter.says(_PASSES) or matter.says(_THROTTLED)
    if matter.status in _PASSING_STATUSES or (matter.status < 500 and passes):
        return True
    return matter.status >= 500 and matter.status != 501


def _advice_by_status(matter: _Matter, endpoint: Endpoint) -> _Advice:
    """Return the advice on a status that a retry cannot change."""
    if matter.status == 403 and matter.says(_REACHED):
        return "quota", "a limit is reached there: raise it in the provider's console"
    if matter.status in (401, 403):
        return "key", _on_rights(matter, endpoint)
    if matter.status == 404 or matter.says(_NO_ADDRESS):
        where = f"the address of the API ({endpoint.base_url}){mend_address(endpoint)}"
        return "refused", f"check the name of the model ({endpoint.model}) and {where}"
    options = f"{endpoint.model_option}, --max-output-tokens and --reasoning-effort"
    unsaid = sorted(name for name in matter.parameters - {"body"} if not name.isdigit() and name not in matter.text)
    named = f" (it names {shown(endpoint.censor(', '.join(unsaid))[:200])})" if unsaid else ""
    return "refused", f"the request was not accepted{named}, and a retry cannot help: check {options}"


def _on_rights(matter: _Matter, endpoint: Endpoint) -> str:
    """Return the advice on a refusal of status 401 or 403 that is none of the key itself."""
    if not endpoint.key_source:
        return f"no key was sent: if the server requires one, {_OWN_KEY}; otherwise follow its message"
    words_first = matter.text.strip(" .;") and not (matter.says(_OF_RIGHTS) or matter.is_of_model)
    rights = f"the key may not use {endpoint.model}, or not from here: check its rights in the provider's console"
    return f"follow the server's message; if it gives no advice, {rights}" if words_first else rights


def mend_address(endpoint: Endpoint) -> str:
    """Return what may be wrong with an address that has nothing at the API's path, "" if nothing looks so."""
    url, _, query = endpoint.base_url.partition("?")
    if endpoint.path and re.search(rf"{endpoint.path}(/v\d\w*)?$", url):  # the version, where we add one
        return f"; leave {endpoint.path} out of it"
    if "/deployments/" in url:  # of Azure OpenAI, whose addresses have no /v1 then
        return "" if "api-version=" in query else "; Azure wants ?api-version=... at its end"
    if not re.search(r"/v\d", url):
        return f"; try {url}/v1"
    is_other = endpoint.path == "/responses" and not endpoint.is_vendors
    return f"; if only Chat Completions are served there, name the model chat:{endpoint.model}" if is_other else ""
