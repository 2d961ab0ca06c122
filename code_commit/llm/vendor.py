"""The facts of a vendor. A further vendor is a module with its `VENDOR` and its place in `models.VENDORS`."""

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from code_commit.exchange import CHARACTERS_PER_TOKEN, Prompt, Response, Usage, weigh
from code_commit.grammar import CLOSING
from code_commit.llm.call import Call, Events, HasAnswer
from code_commit.llm.endpoint import Endpoint, Reply
from code_commit.llm.programs import KeyProgram
from code_commit.paths.random_values import is_mixed
from code_commit.redaction import Redactor
from code_commit.regex import regex
from code_commit.settings import Price, Settings

SHORTEST_KEY_HERE = 16  # for a chat server on this machine: a shorter one in words, such as `lm-studio`, is a dummy
_UNKNOWN_MAX_OUTPUT = 64_000
_ENDS = (
    ("filtered", r"filter|safety|recitation|sensitive|block|prohibited|refus|guardrail|moderat"),
    ("broken", r"error|abort|cancel|fail|insufficient|interrupt|time_?out|unavailable"),
    ("cut off", r"length|max|limit|window|trunc"),
    ("another's", r"(?<![a-z])(?:ab|un|pre|partial|(?:not|no|non|early|forced?|user|client)(?![a-z]))"),
    ("complete", r"(?<![a-z])(?:stop|end|eo[sdt]|done|complete|normal|natural|succe|finish(?!_reason))"),
)
"""The ends of an answer by the words of its finish reason; the first that fits counts. An end that is denied
(`not_finished`), or that somebody else made (`user_stop`), is none of the answer."""
_CLOSING_FENCE = regex(rf"\^{{3,}}[ \t]*({'|'.join(CLOSING)})?\s*")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One API key, which no repr shows. `in_project` says that its file is in the project's own agent-config.

    A `program` prints it; then `value` is empty.
    """

    provider: str
    value: str = dataclasses.field(repr=False)
    source: str
    in_project: bool = False
    program: KeyProgram | None = None

    @property
    def is_dummy(self) -> bool:
        """Whether it is a placeholder in words, which a chat server on this machine takes for a key."""
        return self.provider == "chat" and 0 < len(self.value) < SHORTEST_KEY_HERE and not is_mixed(self.value)

    @property
    def known(self) -> str:
        """The key as far as it is known: no program runs for it."""
        return self.program.printed if self.program else self.value

    def current(self) -> str:
        """Return the key, of its program where it has one. Raises NotSetUpError."""
        return self.program.key() if self.program else self.value


class ModelChoice(NamedTuple):
    """One LLM. `name` is the vendor's model id, or the folder of recorded responses for `replay`."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


class LlmConfig(NamedTuple):
    """An LLM to ask, its key (None if it needs none), its settings, and the LLM that takes over."""

    choice: ModelChoice
    key: ApiKey | None
    settings: Settings
    fallback: "LlmConfig | None" = None
    tells_progress: bool = False  # as llama.cpp's server can
    role: str = ""  # "fallback" or "select", which stands before the names of its settings

    def share_keys(self, redactor: Redactor) -> None:
        """Let a redactor censor the keys that programs print, the fallback's too."""
        for llm in filter(None, (self, self.fallback)):
            if llm.key and llm.key.program:
                llm.key.program.share(redactor)


class PriceChange(NamedTuple):
    """Prices that replace the first ones, from a day on (UTC) or for prompts of more than so many tokens."""

    price: Price
    from_day: str = ""
    above_tokens: int = 0


class Model(NamedTuple):
    """One model, with the most tokens of a prompt and its answer, of the answer alone, and of the prompt alone."""

    context_window: int
    max_output: int
    price: Price
    changes: tuple[PriceChange, ...] = ()
    max_input: int | None = None


class TokenCounter(NamedTuple):
    """The request by which an API counts the tokens of a prompt for free."""

    path: Callable[[str], str]  # returns the path below the base URL, from the model
    request_body: Callable[[Endpoint, Prompt], dict[str, Any]]
    member: str


class API(NamedTuple):
    path: str  # below the base URL
    request_body: Callable[[Endpoint, Prompt], dict[str, Any]]
    """Returns the request, as the vendor's reference defines it."""
    usage: Callable[[Any], Usage]  # returns the tokens that the body of a final reply counts, 0 if it has no count
    read: Callable[[Call, Reply], Response]
    """Returns the answer without its usage. Raises LLMError, or PassingFailure if the request can be retried."""
    has_answer: HasAnswer
    assemble: Callable[[Call, Events], dict[str, Any]] | None = None
    """Joins the events of a streamed answer; None for a background job."""
    counter: TokenCounter | None = None
    renames: Mapping[str, str] = {}  # the other name of each limit of the answer, for servers that know only that one


def bearer_header(key: str, _: Settings) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


class Vendor(NamedTuple):
    """All facts of one vendor of LLMs, or of one kind of server."""

    name: str  # the word before the colon in `--model`; the key is in agent-config/NAME-key.txt
    key_variable: str = ""  # the environment variable of its key; "" if it has none
    needs_key: bool = True
    headers: Callable[[str, Settings], dict[str, str]] = bearer_header
    """Returns its own headers, from the key ("" for none) and the settings. Raises NotSetUpError."""

    base_url: str = ""  # as the vendor's own SDK takes it, with the version; "" if the user must name it
    adds_version_to_paths: bool = True  # the SDK appends the version to any base URL, not only to a bare host
    api: API | None = None

    default_model: str = ""
    names: str = "the model's name"  # what stands behind the colon
    sample: str = ""  # how it is written, if not as `NAME:NAME`
    bare_names: str = ""  # a regular expression for models that need no vendor's name before them
    models: Mapping[str, Model] = {}  # the known models; any other can be used too, but has no price

    def find_model(self, name: str) -> Model | None:
        """Return the known model, also for a dated name (`claude-sonnet-4-5-20250929`)."""
        return self.models.get(name) or self.models.get(re.sub(r"-(\d{8}|\d{4}-\d{2}-\d{2})$", "", name))


_SAME_MODEL = regex(  # a date or a revision, a variant of a router or a tag, a quantized file
    r"(?:[-_:@.](?:\d{3,}|\d{4}-\d\d-\d\d|\d\d-\d\d|v\d+(?::\d+)?|latest|preview|i?q\d\w*|[bf]p?f?\d+|gguf)|:[a-z]+)*"
)


def is_same_model(asked: str, answered: str) -> bool:
    """Tell whether two names may mean one model: one has a maker before it, or a date or a revision after it.

    A number of one or two digits after it is another version.
    """
    if asked == answered:
        return True
    one, other = sorted((name.lower().replace(".", "-") for name in (asked, answered)), key=len)
    before, found, after = other.partition(re.sub(r":[a-z]+$", "", one.rpartition("/")[2]))
    is_maker = re.fullmatch(r"(.*[-/:])?", before) is not None
    is_alias = re.search(r"(?i)(^|[^a-z])(latest|auto|default|router)([^a-z]|$)", asked) is not None
    return is_alias or bool(found and is_maker and _SAME_MODEL.fullmatch(after))


def max_output(model: Model | None, settings: Settings) -> int:
    """Return the output limit for an API that requires one, from the setting or else the model."""
    return settings.max_output_tokens or (model.max_output if model else _UNKNOWN_MAX_OUTPUT)


def has_open_block(text: str) -> bool:
    """Tell whether an answer's last fence of three carets opens a block."""
    fence = ("\n" + text).rfind("\n^^^")
    line = text[fence:].partition("\n")[0]
    return fence >= 0 and not _CLOSING_FENCE.fullmatch(line)


def estimate_tokens(text: str) -> int:
    return round(weigh(text) / CHARACTERS_PER_TOKEN)


def most_tokens(text: str) -> int:
    """Return the most tokens of a text: one for each byte, or for each of the normal form that some take."""
    normal = text if text.isascii() else unicodedata.normalize("NFKC", text)
    forms = (text,) if normal is text else (text, normal)
    return max(len(form.encode("utf-8", "replace")) for form in forms)


def end_of(reason: str) -> str:
    """Return how an answer ended by the words of its finish reason, its stop reason or its state; "" if these say
    nothing.
    """
    return next((end for end, words in _ENDS if re.search(words, reason.lower())), "")


def cut_off(limit: int | None) -> str:
    size = f" of {limit} tokens" if limit else ""
    return f"cut off at the output limit{size} (--max-output-tokens)"
