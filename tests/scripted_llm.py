"""An LLM by script: each request plays a turn, and each turn has tokens, words and files that no other has."""

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from fake_apis import Answer, interaction, openai_response
from fake_server import FakeServer, Fault, Request

LIMIT, LEAST = 9_000, 8_000  # tokens of an answer, and of one that is worth its money
LOST = {"lost": "drop_mid_body", "broken": "early_end"}  # the request is repeated, and may have been paid for
ASKS = r"/(responses|interactions|messages|chat/completions)$"


class Model(NamedTuple):
    """A model with its address below the server, its key, and US dollars per million tokens."""

    name: str
    place: str
    input: float
    output: float
    cached_input: float
    cache_write: float

    @property
    def provider(self) -> str:
        return self.name.partition(":")[0]

    @property
    def key(self) -> str:
        return f"test-key-of-{self.provider}-0123456789"

    @property
    def has_jobs(self) -> bool:
        return self.provider in ("openai", "gemini")

    def usage(self, answer: Answer) -> dict[str, int]:
        """What the API counts of an answer, in the words of run.json."""
        written = 0 if self.provider == "gemini" else answer.written
        usage = {"input": answer.input_tokens, "cached_input": answer.cached, "cache_write": written}
        return usage | {"output": answer.output_tokens, "reasoning": answer.reasoning}

    def cost(self, answer: Answer) -> float:
        written = 0 if self.provider == "gemini" else answer.written
        plain = answer.input_tokens - answer.cached - written
        paid = plain * self.input + answer.cached * self.cached_input + written * self.cache_write
        return (paid + answer.output_tokens * self.output) / 1e6

    def bid(self, prompt: str, left: float = math.inf) -> tuple[float, int]:
        """What a request may cost, and its longest answer: a token for each byte of the prompt, an answer for the rest."""
        reading = len(prompt.encode()) * self.input / 1e6
        longest = int(max(min(LIMIT, (left - reading) * 1e6 / self.output), LEAST)) if left < math.inf else LIMIT
        return reading + longest * self.output / 1e6, longest


FIRST = {
    provider: Model(f"{provider}:alpha", "first", 3.0, 11.0, 0.5, 2.0)
    for provider in ("chat", "openai", "anthropic", "gemini")
}
SECOND = {provider: Model(f"{provider}:beta", "second", 70.0, 130.0, 17.0, 19.0) for provider in FIRST}
CHOOSER = {provider: Model(f"{provider}:gamma", "first", 400.0, 900.0, 210.0, 230.0) for provider in FIRST}


@dataclass(frozen=True)
class Turn:
    """What the LLM does with one request.

    kind: wrong, right, edit and remove (wrong, too, by an edit, with a removal), back (to "not yet"), empty, cut,
    cannot, files, choice; or no answer: lost, broken, refused, failed (a job that is paid for), held (a job that can
    only be fetched later).
    """

    kind: str
    word: str = ""
    files: Mapping[str, str | None] = field(default_factory=dict)  # what it writes, None for a removal
    text: str = ""
    answer: Answer = field(default=Answer(), repr=False)

    @property
    def answers(self) -> bool:
        return self.kind not in (*LOST, "refused", "failed", "held")

    def is_in(self, log: Path) -> bool:
        """Whether a reply in the log holds the answer."""
        line = json.dumps(self.text.split("\n")[0])[1:-1]
        return any(line in reply.read_text() for reply in log.glob("*-response.json"))


def turns(*kinds: str, start: int = 1) -> list[Turn]:
    """Return a turn for each kind, each with tokens, words and files that no other has: `same` sends the last again."""
    made: list[Turn] = []
    for number, kind in enumerate(kinds, start=start):
        if kind == "same":
            made.append(_counted(replace(next(turn for turn in reversed(made) if turn.files)), number))
            continue
        word = {"right": "ok", "back": "not yet"}.get(kind, "no" + chr(97 + number % 26) * number)
        said = f"Words of turn {word * (kind != 'right') or number}.\n"
        text = {
            "empty": said,
            "cut": f"^^^ok.txt\n{word}\n",
            "cannot": f"^^^cannot\nNot {word}.\n^^^end\n",
            "files": "^^^files\nlong.txt\n^^^end\n",
            "choice": "^^^files\nok.txt\nlong.txt\n^^^end\n",
        }.get(kind, "")
        files: dict[str, str | None] = {}
        if kind in ("wrong", "right", "edit", "remove", "held", "back"):
            files = {"ok.txt": f"{word}\n", f"made_{number}.txt": f"{word}\n" * number}
            files |= {"gone.txt": None} if kind == "remove" else {}
            text = said + "".join(
                f"^^^{name}\n^^^delete\n" if content is None else f"^^^{name}\n{content}^^^end\n"
                for name, content in files.items()
            )
        if kind == "edit":
            text += f"^^^long.txt\n^^^find\nline {number}\n^^^replace\nline {number} {word}\n^^^end\n"
        made.append(_counted(Turn(kind, word, files, text), number))
    return made


def _counted(turn: Turn, number: int) -> Turn:
    counts = {"input_tokens": 2000 + 13 * number, "cached": 100 + number, "written": 50 + 2 * number}
    counts |= {"output_tokens": 40 + 7 * number, "reasoning": 15 + number}
    ending: Any = "cut_off" if turn.kind == "cut" else "complete"
    return replace(turn, answer=Answer(turn.text, ending, pieces=1, **counts))


class Played(NamedTuple):
    """A request that asked for an answer, and what it got."""

    turn: Turn
    request: Request

    @property
    def prompt(self) -> str:
        """All that the LLM read, as the API's own body has it."""
        body = self.request.body
        if "messages" in body:  # chat, and Anthropic with its system prompt apart
            own = "".join(_texts(body.get("system", "")))
            return own + "".join(text for each in body["messages"] for text in _texts(each["content"]))
        return "".join(_texts(body.get("instructions", body.get("system_instruction", "")))) + "".join(
            _texts(body["input"])
        )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        yield from _texts(value.get("content", value.get("text", "")))


class Script(FakeServer):
    """A server that plays its turns, one for each request for an answer."""

    def __init__(self, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(facts=facts)
        self.script: list[Turn] = []
        self.played: list[Played] = []
        self.holds_jobs = False
        self._now = Turn("none")

    def next_fault(self, stage: str) -> Fault | None:
        refusal = {"error": {"message": "No such key.", "code": "invalid_api_key"}}
        if stage == "poll" and self.holds_jobs:
            return Fault("status", status=401, body=refusal)
        if stage != "call":
            return super().next_fault(stage)
        if not re.search(ASKS, self.requests[-1].path):
            return Fault("status", status=404)
        self._now = turn = self.script.pop(0) if self.script else Turn("refused")
        self.played.append(Played(turn, self.requests[-1]))
        self.holds_jobs = turn.kind == "held" or (self.holds_jobs and not turn.answers)
        time.sleep(0.3 * (turn.kind == "choice"))  # it is longer than all beside the calls
        is_stream = not re.search(r"responses|interactions", self.requests[-1].path)
        faults = {
            "refused": Fault("status", status=401, body=refusal),
            "failed": Fault("status", body=self._failed_job()),
            **{kind: Fault(fault if is_stream else "drop") for kind, fault in LOST.items()},
        }
        return faults.get(turn.kind)

    def _failed_job(self) -> dict[str, Any]:
        make = openai_response if "/responses" in self.requests[-1].path else interaction
        error = {"code": "server_error", "message": "The job came to nothing."}
        body = make("resp_0", "alpha", "completed", self._now.answer)
        return body | {"status": "failed", "error": error, "errors": [error]}

    def next_answer(self) -> Answer | None:
        return self._now.answer
