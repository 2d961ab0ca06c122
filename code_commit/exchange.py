"""One exchange with an LLM: the prompt, the response, and its cost."""

import json
import math
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from code_commit.changes import RejectedResponseError, Violation
from code_commit.views import Sight

_SHORTER = (
    ": send a shorter one, with no file that need not change, with edits of the places that change where the"
    " instructions offer them, and few words outside the blocks"
)
CHARACTERS_PER_TOKEN = 3.2  # for source code, in today's tokenizers; an estimate on the safe side
_TOKENS_OF_LETTER = ((range(0xC2, 0xE0), 0.7), (range(0xE0, 0xF0), 1.2), (range(0xF0, 0xF5), 3.0))  # by its first byte
_BYTES_OF_LETTER = {bytes(first): tokens * CHARACTERS_PER_TOKEN - 1 for first, tokens in _TOKENS_OF_LETTER}
_LONG_RUN, _VARIED = 60, 12  # characters of base64 or hex without a gap, different ones among them: else it is a line
_IN_RUN = (string.ascii_letters + string.digits + "+/_-").encode()
_AS_RUN = bytes(ord("a") if byte in _IN_RUN else ord(" ") for byte in range(256))
_MORE_IN_RUN = CHARACTERS_PER_TOKEN / 1.3 - 1  # a token has 1.3 characters of base64


class Prompt(NamedTuple):
    """Everything that is sent, in order: the system prompts, then the user message.

    `parts` are the user's parts by their names, for their sizes. `stable` is the part of the user message that is the
    same in every call of a run (empty in the specification's layout); a provider that wants cache boundaries marked
    puts one after `system` and one after `stable`. `dialogue` is `stable` as messages, each with its role, where the
    layout has an exchange of them.
    """

    system: str
    stable: str
    rest: str
    parts: Mapping[str, str] = {}
    shows: Sight = Sight()
    dialogue: Sequence[tuple[str, str]] = ()

    @property
    def user(self) -> str:
        return self.stable + self.rest

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each part in bytes, without empty ones."""
        return {name: len(part.encode("utf-8", "surrogatepass")) for name, part in self.parts.items() if part}

    @property
    def text(self) -> str:
        return self.system + self.user


def weigh(text: str) -> int:
    """Return how many characters of source code have as many tokens as a text, counted by kind of character.

    Base64, hex, and letters that take several bytes have more tokens than code, by what today's tokenizers do to them.
    """
    data, weight = text.encode("utf-8", "replace"), float(len(text))
    if len(data) > len(text):
        weight += sum((len(data) - len(data.translate(None, first))) * more for first, more in _BYTES_OF_LETTER.items())
    return math.ceil(weight + _MORE_IN_RUN * sum(len(run) for run in _runs(data) if _is_random(run)))


def _runs(data: bytes) -> Iterator[bytes]:
    marked, end = data.translate(_AS_RUN) + b" ", 0
    while (start := marked.find(b"a" * _LONG_RUN, end)) >= 0:
        end = marked.index(b" ", start)
        yield data[start:end]


def _is_random(run: bytes) -> bool:
    has_digit = any(byte in run for byte in string.digits.encode())
    return len(set(run)) >= _VARIED and (has_digit or not (b"_" in run or b"-" in run))


def labelled(label: str, text: str) -> str:
    return f"[{label}]\n{text}{'' if text.endswith(chr(10)) else chr(10)}\n"


class RequestBody(dict[str, Any]):
    """The body of a request, which is not changed: a large one is put into JSON once, to be logged and sent."""

    @cached_property
    def content(self) -> bytes:
        return json.dumps(self, ensure_ascii=False).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call: all of the prompt is `input`, parts of it `cached_input` and `cache_write`; `output` is the
    answer.
    """

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars that were paid, None where no price is known, and beside them the most that may have been paid.

    `unpriced` counts the requests that may have been paid for at a price that is not known, and whose answer is lost
    or not used.
    """

    settled: float | None = None
    unsettled: float = 0.0
    unpriced: int = 0

    @property
    def highest(self) -> float:
        """The most that it can be, which a limit counts."""
        return (self.settled or 0.0) + self.unsettled

    def __add__(self, other: "Cost") -> "Cost":
        known = [cost for cost in (self.settled, other.settled) if cost is not None]
        settled, unpriced = sum(known) if known else None, self.unpriced + other.unpriced
        return Cost(settled, self.unsettled + other.unsettled, unpriced)


class Settlement(NamedTuple):
    """The cost of a request by its final reply, in place of its reservation; in US dollars.

    `reserved` and `cost_usd` are None where the price is not known. `unsettled_usd` is the highest cost
    of the tokens that the reply does not count: those of the prompt, or those of the answer.
    """

    reserved: float | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    unsettled_usd: float = 0.0


class Response(NamedTuple):
    """The answer of the LLM. `finish_reason` is the API's own word.

    `incomplete` is None when the API said that the response is complete, otherwise the reason, in words for the user
    and the LLM; with `is_cut_off` it is the output limit. `settlement` is what it costs, `thoughts` are those that came
    apart from the text; `model` is the name that the API gives to the model that answered, "" for none.
    """

    text: str
    finish_reason: str
    incomplete: str | None = None
    is_cut_off: bool = False
    request_id: str | None = None
    settlement: Settlement = Settlement()
    thoughts: str = ""
    model: str = ""

    def complete_text(self) -> str:
        """Return the text, or raise RejectedResponseError when the API did not call it complete."""
        if self.incomplete is not None:
            rule, advice = ("cut-off", _SHORTER) if self.is_cut_off else ("incomplete", "")
            raise RejectedResponseError([Violation("", 0, rule, f"the response is {self.incomplete}{advice}")])
        return self.text
