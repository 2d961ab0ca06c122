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

_ASIDE = regex(r"https?://\S+|\(e\.g\.[^)]*\)|\bInput should\b|\bIf you [^.;]*|(?i:\bno\b[^.;]{0,60}\bcharged\b)")
"""Google's "(e.g. check quota)" is no used up quota, and pydantic's "Input" is any parameter. A case that is only put
("If you made it just now, wait and try again") is none that was met, and credits that were not charged are none.
"""
_OFFER = regex(r"(?i)\b(higher|increase|raise)\b.*\blimits?\b")
_NAME_OF_KEY = r"(api|access|secret)[ _-]?(key|token)"
_KEY = regex(
    rf"(?i)\b{_NAME_OF_KEY}\b.{{0,60}}\b(in?valid|incorrect|wrong|missing|unknown|expired|revoked|not)\b"
    rf"|\b(invalid|incorrect|wrong|missing|unknown|expired|no)( {_NAME_OF_KEY}| key provided)\b"
    r"|\b(expired|revoked) (key|token)\b|\bauthentication (error|failed)\b|\bunauthenticated\b"
)
_OF_A_KEY = regex(r"(?i)\bauth|\bapi[-_ ]?key\b|\bbearer\b|\btoken\b")
_CLOSED = regex(
    r"(?i)\b(account|access|organi[sz]ation|key|service)\b.{0,60}"
    r"\b(terminated|suspended|deactivated|disabled|banned|paused)\b"
)
_NUMBER = r"(\d[\d,_]*)"
_ASKED = regex(rf"(?i)\brequest(?:ed)?\b\W*(?:\w+\W+){{0,2}}?{_NUMBER}|{_NUMBER} tokens? >")
_LIMIT = regex(rf"(?i)\b(?:limit|max(?:imum)?|allowed|at most)\W*(?:(?:is|of)\W+)?{_NUMBER}|tokens? > {_NUMBER}")
_NO_LIMIT = regex(r"(?i)\blimit['\"]?\s*(?:is|of|:|=)?\s*0(?![\d.,]*\d)")
_EACH = r"(?i)((?<![a-z])(per|a|each)|/)[ _-]?"  # also within a name: requests_per_minute_per_project
_RATE = regex(_EACH + r"(min(ute)?|sec(ond)?|hour|hr)(?![a-z])|\b[rt]p[ms]\b|per(minute|second|hour)")
_PASSES = regex(
    rf"{_RATE.pattern}|\bthrottl|\btoo many requests\b|\brate[ _-]?(limits? )?(was |is )?(exceeded|reached|hit)\b"
    r"|\bresource[ _]exhausted\b|\b(re)?try(ing)?( again)? (later|shortly|soon|in an? )|\btemporar|\bbusy\b"
    r"|\boverloaded\b|\bwait\b.{0,30}\b(re)?try|\brequest body timeout\b|稍[后候]"
)
"""The words of a limit that begins anew soon, as Google's exhausted resource does each minute, and of a busy server."""
_LONG_PERIOD = regex(
    _EACH + r"(day|week|month)(?![a-z])|\b[rt]pd\b|\b(daily|weekly|monthly)\b|per(day|week|month)|[今每当本][日天周月]"
)
_PERIODS = (("week", "week|周"), ("month", "month|月"), ("day", ""))  # by what names them in words of a long one
_NO_MONEY = regex(
    r"(?i)\b(balance|(?<!thinking )budget(?! \d)|prepaid|arrear\w*|good standing|insufficient (funds|credits?|quota)"
    r"|(extra|additional) usage)\b"
    r"|余额|欠费"  # of Chinese gateways, which answer 403 or 429 with these words alone
)
_MONEY = regex(r"(?i)\b(billing|payment|credits?|purchase|recharge|top.?up|usage limits?|spend(ing)?)\b")
_QUOTA = regex(r"(?i)\bquota\b|额度")
_LIMITED = regex(r"(?i)\blimit\b")
_PROMPT = r"(?:prompt|inputs?|context|tokens?|messages|conversation|payload|body|entity)"
_SIZE = r"(?:too (?:long|large|big|many)|exceed\w*|maximum|(?:greater|larger|longer) than|overflow\w*|limit|range)"
_TOO_LONG = regex(
    rf"(?i)\b{_PROMPT}\b.{{0,80}}\b{_SIZE}\b|\b{_SIZE}\b.{{0,60}}\b{_PROMPT}\b|\brequest\W+(is |size )*too (large|long)"
    r"|\b(context|input|prompt) (length|window|size)\b|string above max|[超过]长"
)
_SIZES = regex(r"(?<![\w.:/-])\d{3,}(?:[,_]\d{3})*(?![\w:/-]|\.\d)")
_NO_SIZE = regex(r"(?i)\b(line|col(umn)?|char|position|code|status)\W{1,3}\d+")
_OF_SIZE = regex(rf"(?i){_PROMPT}\b|characters\b|length|\bsize\b|长度|上下文")
_SMALLEST_LIMIT = 256  # of a context window, in tokens
_OTHER_LIMIT = regex(r"(?i)\bquota\b|\btime|\brate\b|concurren|\brequests\b|\bexpired?\b")
_OUTPUT = regex(r"(?i)\bmax(imum)?[ _]?((completion|output|new)[ _]?)?tokens\b|\boutput tokens\b")
_NOT_THERE = (
    r"(not[ _-](exist|support|found|known|(a )?valid|enabled)|(doesn|isn).t|no such|no (available )?channel"
    r"|(no|not have) access|unknown|invalid model|unsupported|decommission|deprecat|retired|shut ?down)"
)
_NO_MODEL = regex(
    rf"(?i)\b(model|deployment|engine)s?\b.{{0,80}}{_NOT_THERE}|{_NOT_THERE}.{{0,40}}\b(model|deployment|engine)s?\b"
    r"|\bmodel ((id|name|identifier) )?is invalid\b"
)
_NO_ADDRESS = regex(r"(?i)\b(unexpected|unknown|invalid|no such) (endpoint|route|url|path)\b|\bcannot post\b")
_EFFORT = regex(r"(?i)(?<![-\w])(effort|think|reasoning|output[ _]config)")  # as the parameters are named that are sent
_NO_MEMORY = regex(r"(?i)\b(requires?|needs?) more\b.{0,40}\bmemory\b")
_MAY_COME = regex(
    r"(?i)load|busy|capacity|temporar|moment|later|again|warm|starting|ready|unavailable|bad gateway|time[d-]? ?out"
    r"|\b(wait|waking|initiali[sz]ing|booting|sleeping|preparing|building|deploying|maintenance|soon|being)\b|稍"
)
_LASTING_CODES = regex(
    r"(?i)\b(invalid|permission|forbidden|not found|failed precondition|bad request|polic|violation|mismatch"
    r"|unsupported|denied)"
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
    words = "; ".join(told(body))
    return bool(_MAY_COME.search(words) or re.search(r"\b5\d\d\b", words))


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
        return cls(status, code_words, text, parameters, names > 0 or "model" in parameters)

    def says(self, pattern: re.Pattern[str]) -> bool:
        return pattern.search(self.text) is not None

    @property
    def of_header(self) -> bool:
        """Whether it speaks of a header that is not the key's."""
        return "header" in self.text.lower() and not self.says(_OF_A_KEY)

    @property
    def may_come(self) -> bool:
        """Whether it speaks of something that passes. A status of 4xx says that the request itself is refused."""
        return not 400 <= self.status < 500 and self.says(_MAY_COME)


def _lasting_advice(matter: _Matter, wait: float | None, endpoint: Endpoint) -> _Advice | None:
    """Return the advice on an error that waiting cannot help, None for any other."""
    return (
        _on_key(matter, endpoint)
        or _too_large(matter, endpoint)
        or _used_up(matter, wait)
        or _on_effort(matter, endpoint)
        or _on_account_or_model(matter, endpoint)
    )


def _on_key(matter: _Matter, endpoint: Endpoint) -> _Advice | None:
    """Return the advice on a key that is refused, by its words or by the status."""
    is_asked = matter.status == 401 and not matter.says(_NO_MONEY)
    is_sure = is_asked and not (endpoint.key_source or matter.of_header)
    is_valid = matter.status == 429 or (is_asked and matter.is_of_model)
    if is_sure or (matter.says(_KEY) and not is_valid):
        return "key", _on_source(endpoint) if endpoint.key_source else f"it requires a key: {_OWN_KEY}"
    return _advice_by_status(matter, endpoint) if is_asked else None


def _on_source(endpoint: Endpoint) -> str:
    """Return what to do about a key that is refused, by where it comes from."""
    if endpoint.key_source == "key_command":
        return "the key that key_command printed is refused: run that command in a shell, and log in if it asks"
    return f"the key from {endpoint.key_source} is refused: put a valid one there"


def _on_account_or_model(matter: _Matter, endpoint: Endpoint) -> _Advice | None:
    if matter.says(_CLOSED) and matter.status < 500 and matter.status != 403:
        return "key", "the provider has closed the account or the service: see its console, or use another key"
    if matter.says(_NO_MEMORY):
        return "refused", f"{endpoint.model} does not fit into that machine's memory: name a smaller model"
    is_of_model = matter.parameters <= {"body", "model"} and matter.status not in (401, 403, 404, 429)
    if is_of_model and matter.says(_NO_MODEL) and not matter.may_come:
        return "refused", f"check the name of the model ({endpoint.model}): {endpoint.model_option}"
    return None


def _on_effort(matter: _Matter, endpoint: Endpoint) -> _Advice | None:
    """Return the advice on an effort that the user has asked for, if the refusal names it."""
    effort = endpoint.settings.reasoning_effort
    named = matter.says(_EFFORT) or any(_EFFORT.search(name) for name in matter.parameters)
    if not effort or not named or matter.status not in (0, 400, 404, 422) or matter.may_come:
        return None
    return "refused", f"{endpoint.model} does not accept it: omit --reasoning-effort {effort}, or use another value"


def _used_up(matter: _Matter, wait: float | None) -> _Advice | None:
    """Return the advice on money or a quota that is used up, None where a wait or a period of minutes helps, or where a
    parameter is refused: its value may be quoted.
    """
    console = "raise the limit in the provider's console"
    if (matter.status and matter.may_come) or (matter.status in (400, 422) and matter.parameters):
        return None
    shorter = ", or lower --max-output-tokens" if matter.says(_OUTPUT) else ""
    no_money = f"no money or quota is left there for it: top up, or {console}{shorter}"
    if matter.status == 402 or matter.says(_NO_LIMIT) or matter.says(_NO_MONEY):
        return "quota", no_money
    long = _LONG_PERIOD.search(matter.code_words) or (None if wait else _LONG_PERIOD.search(matter.text))
    if long:
        period = next(name for name, pattern in _PERIODS if re.search(pattern, long[0].lower()))
        return "quota", f"the quota of the {period} is used up: continue when the next one begins, or {console}"
    is_of_quota = matter.says(_QUOTA) and not matter.says(_PASSES)
    if not wait and (is_of_quota or (matter.says(_MONEY) and not matter.says(_RATE))):
        return "quota", no_money
    return None


def _too_large(matter: _Matter, endpoint: Endpoint) -> _Advice | None:
    """Return the advice on a request that is larger than a limit, None for any other."""
    smaller, other = "make the prompt smaller (--rollup select or fit)", "or name a model with a larger window"
    is_of_rate = matter.status in (402, 413, 429) or matter.says(_PASSES)
    if is_of_rate and _asks_more_than_the_limit(matter.text):
        ways = f"{smaller}, lower --max-output-tokens, {other} or limit"
        return "too_long", f"the request is larger than this limit, so waiting cannot help: {ways}"
    if is_of_rate and matter.status != 413:
        return None
    has_sizes = matter.status in (0, 400, 422) and matter.says(_OF_SIZE) and _has_two_sizes(matter.text)
    is_of_size = matter.says(_TOO_LONG) or has_sizes
    is_too_long = matter.status == 413 or (is_of_size and not matter.says(_OTHER_LIMIT))
    if matter.says(_OUTPUT) and matter.status < 500 and not matter.says(_MONEY):
        advice = "set a limit that it accepts with --max-output-tokens, or make the prompt smaller"
        return "too_long" if is_too_long else "refused", advice
    return ("too_long", f"the prompt is too long for {endpoint.model}: {smaller}, {other}") if is_too_long else None


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
    if matter.status == 0:
        return _LASTING_CODES.search(matter.code_words) is None and not matter.says(_NO_ADDRESS)
    passes = wait or matter.says(_PASSES) or matter.status >= 500
    return matter.status in _PASSING_STATUSES or (matter.status != 501 and bool(passes))


def _advice_by_status(matter: _Matter, endpoint: Endpoint) -> _Advice:
    """Return the advice on a status that a retry cannot change: what its words say comes first, if it has any."""
    if matter.status == 403 and matter.says(_LIMITED):
        return "quota", "a limit is reached there: raise it in the provider's console"
    if matter.status in (404, 405) or (matter.status not in (401, 403) and matter.says(_NO_ADDRESS)):
        where = f"the address of the API ({endpoint.base_url}){mend_address(endpoint)}"
        return "refused", f"check the name of the model ({endpoint.model}) and {where}"
    header = ", and add a header under [headers] in your own config.toml" if matter.of_header else ""
    words_first = f"follow the server's message{header}; if it gives no advice, " if matter.text.strip(" .;") else ""
    if matter.status in (401, 403):
        return "key", words_first + _on_rights(matter, endpoint)
    options = f"{endpoint.model_option}, --max-output-tokens and --reasoning-effort"
    unsaid = sorted(name for name in matter.parameters - {"body"} if not name.isdigit() and name not in matter.text)
    named = f" (it names {shown(endpoint.censor(', '.join(unsaid))[:200])})" if unsaid else ""
    return "refused", f"the request was not accepted{named}, and a retry cannot help: {words_first}check {options}"


def _on_rights(matter: _Matter, endpoint: Endpoint) -> str:
    """Return what a status of 401 or 403 means where no words tell it."""
    if not endpoint.key_source:
        return f"no key was sent: if the server requires one, {_OWN_KEY}"
    if matter.status == 401 and not matter.is_of_model:
        return _on_source(endpoint)
    return f"the key may not use {endpoint.model}, or not from here: check its rights in the provider's console"


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
